"""Remote corpora: lists and opens the files below a URL that fsspec supports, without copying them to disk.

A remote file is treated like a member of an archive: nothing beside it is read. Every error of a file system becomes an
InputFileError that names the URL.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from eirkit.errors import EirkitError, InputFileError, MissingExtraError, UsageError

MARK = "://"
# What stores need besides an address, in the terms of their packages.
_ACCESS = {
    "s3": "your access: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile, AWS_ENDPOINT_URL for another server",
    "hf": "your access: the network, HF_TOKEN for a private or gated data set, HF_ENDPOINT for a mirror",
}
_PACKAGES = {"s3": "s3fs", "hf": "huggingface_hub", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}
_BUFFER_BYTES = 1 << 16
_KEPT = ("ETag", "etag", "VersionId", "blob_id", "sha", "lfs", "mtime", "created", "last_modified", "LastModified")


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder of a file system that fsspec supports; used in place of a path."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last component of its path."""
        return PurePosixPath(self.url.partition(MARK)[2]).name or self.url

    def is_dir(self) -> bool:
        """True unless it is one file."""
        return bool(_info(self.url)["type"] != "file")

    def size(self) -> int:
        """Return its size in bytes; 0 if its store does not report it."""
        return int(_info(self.url).get("size") or 0)

    def identity(self) -> bytes:
        """Return a digest that changes with the file, from its store's metadata alone."""
        info = _info(self.url)
        known = [info.get("size"), *(info.get(key) for key in _KEPT)]
        return blake2b(repr((self.url, known)).encode("utf-8", "replace"), digest_size=16).digest()

    def open(self) -> io.BufferedReader:
        """Open an ordinary file for random access."""
        if _info(self.url)["type"] != "file":
            raise InputFileError(f"{self.url} is not a file; give a file or a folder of files")
        with _named(self.url):
            system, path = _system(self.url)
            return io.BufferedReader(_Raw(system.open(path, "rb"), self.url), _BUFFER_BYTES)

    def files(self) -> Iterator[tuple[str, Remote]]:
        """Yield the files below a folder by name, each with its path relative to it; hidden ones are left out."""
        with _named(self.url):
            system, path = _system(self.url)
            found = system.find(path)
        home = str(path).rstrip("/")
        for one in sorted(found):
            inside = str(one).removeprefix(home).lstrip("/")
            if not any(part.startswith(".") for part in inside.split("/")):
                yield inside, Remote(system.unstrip_protocol(one))


Location: TypeAlias = Path | Remote


def as_location(text: str) -> Location:
    """Return a URL as a remote location and anything else as a path."""
    return Remote(text) if MARK in text and not Path(text).exists() else Path(text)


class _Raw(io.RawIOBase):
    """A remote file; every error of its store names it."""

    def __init__(self, stream: Any, url: str) -> None:
        self.stream, self.url = stream, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _named(self.url):
            content = self.stream.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, place: int, whence: int = 0) -> int:
        with _named(self.url):
            return int(self.stream.seek(place, whence))

    def tell(self) -> int:
        return int(self.stream.tell())

    def close(self) -> None:
        if not self.closed:
            self.stream.close()
        super().close()


@lru_cache(maxsize=1 << 12)
def _info(url: str) -> dict[str, Any]:
    """Return the metadata of a file, requested once, since a corpus does not change while it is read."""
    with _named(url):
        system, path = _system(url)
        return dict(system.info(path))


def _system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("reading remote corpora", "remote") from error
    if "::" in url:
        raise UsageError(f"{url} is a chain of URLs; give the last one alone, since archives are read in place")
    system, path = fsspec.core.url_to_fs(url)
    return system, path


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Convert every error of a file system to one line that names the URL."""
    try:
        yield
    except EirkitError:
        raise
    except FileNotFoundError as error:
        raise InputFileError(f"{url} does not exist; {_remedy(url, 'hf')}") from error
    except ImportError as error:  # fsspec names the package that supports the protocol
        package = _PACKAGES.get(url.partition(MARK)[0], "the package that it names")
        raise UsageError(f"{url}: a package is missing ({error}); pip install {package}") from error
    except Exception as error:  # every store has its own exceptions, without a common base
        cause = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputFileError(f"{url}: cannot be read ({cause}); {_remedy(url, *_ACCESS)}") from error


def _remedy(url: str, *stores: str) -> str:
    """Return what to check; some stores need more than the address."""
    protocol = url.partition(MARK)[0]
    if protocol in stores:
        return f"check the address and {_ACCESS[protocol]}"
    return "check the address" + (" and your access to it" if len(stores) > 1 else "")
