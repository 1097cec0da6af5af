"""eirkit's own folder (EIRKIT_HOME), files below a folder, private folders, and files replaced in one step."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_UNFINISHED = ".unfinished"
_LARGEST_SMALL = 1 << 26  # bytes
DEEPEST_FOLDER = 200  # levels below the given folder; deeper ones are skipped


def own_folder() -> Path:
    """Return the folder of what eirkit keeps for this user: `EIRKIT_HOME`, or `~/.cache/eirkit`."""
    return Path(os.environ.get("EIRKIT_HOME") or Path.home() / ".cache" / "eirkit")


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the ordinary files below a folder in no particular order; what cannot be listed is left out."""
    waiting = [(str(folder), 0)]
    while waiting:  # not recursive: 1,500 nested folders exceed the interpreter's limit
        here, depth = waiting.pop()
        for entry in _entries(here):
            if entry.is_dir(follow_symlinks=False):
                waiting += [(entry.path, depth + 1)] if depth < DEEPEST_FOLDER else []
            elif (path := Path(entry.path)).is_file():  # unlike the entry's own method, false for a link to itself
                yield path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def open_ordinary(path: Path) -> BinaryIO:
    """Open a file to read; a pipe or device in its place, which may never end, is an OSError and is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "Not an ordinary file", str(path))


def read_small(path: Path) -> str:
    """Return the text of a file that a user named; one larger than anyone writes, or endless, is an OSError."""
    with path.open("rb") as stream:
        content = stream.read(_LARGEST_SMALL + 1)
    if len(content) > _LARGEST_SMALL:
        raise OSError(errno.EFBIG, f"Larger than {_LARGEST_SMALL >> 20} MiB", str(path))
    return content.decode()


def close_to_others(folder: Path) -> None:
    """Make a folder, or take over an existing one, so that only its owner can read what it contains."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    for path in files_below(folder):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)


@contextmanager
def files_for_owner_only() -> Iterator[None]:
    """Create files and folders in the block that only their owner can read, whatever the umask is.

    Seeds are answers: who knows the seed of a task can generate it. The umask belongs to the process, so a second block
    that overlaps the first must not outlive it.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def replace_file(path: Path, content: bytes, *, is_durable: bool = False) -> None:
    """Replace a file: a reader sees the old one or the whole new one, and after a failure the old one is still there.

    A link at the name of the unfinished file is not followed: in a folder that others can write to, it would lead
    anywhere. What a process that was killed left unfinished is removed. A device or pipe, such as /dev/null, is written
    to and stays.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(content)
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}{_UNFINISHED}")
    unfinished.unlink(missing_ok=True)
    try:
        with unfinished.open("xb") as stream:
            stream.write(content)
            if is_durable:
                stream.flush()
                os.fsync(stream.fileno())
        unfinished.replace(path)
        for other in _entries(str(path.parent)):
            if is_unfinished(other.name, path.name) and not _is_running(int(other.name.split(".")[-2])):
                with suppress(OSError):
                    Path(other.path).unlink()
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def filled_folder(folder: Path, last: str) -> Iterator[Path]:
    """Yield a folder to write in, whose entries are moved to `folder` when the block ends, the file `last` at the end.

    If the block fails, nothing is left. What a process that was killed left there is removed by `clear_unfinished`.
    """
    created = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{last}.{os.getpid()}{_UNFINISHED}"
    unfinished.mkdir()
    try:
        yield unfinished
        for path in sorted(unfinished.iterdir(), key=lambda path: (path.name == last, path.name)):
            path.rename(folder / path.name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        with suppress(OSError):  # not empty: the block succeeded, or somebody else has written there
            for one in created:
                one.rmdir()


def clear_unfinished(folder: Path, last: str, folders: Collection[str]) -> None:
    """Remove what a process that was killed before it wrote `last` left: what it worked in, and folders it moved."""
    entries = _entries(str(folder))
    begun = [one for one in entries if is_unfinished(one.name, last) and not _is_running(int(one.name.split(".")[-2]))]
    if begun and all(one.name != last for one in entries):
        begun += [one for one in entries if one.name in folders]
    for one in begun:
        if one.is_dir(follow_symlinks=False):
            shutil.rmtree(one.path)


def is_unfinished(name: str, finished: str) -> bool:
    """Return whether a file is what `replace_file` writes before it takes the name of the finished one."""
    start = f".{finished}."
    inner = name.removeprefix(start).removesuffix(_UNFINISHED)
    return name.startswith(start) and name.endswith(_UNFINISHED) and inner.isascii() and inner.isdigit()


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no harmless way to ask
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
