"""Decompresses files and archive members as streams; refuses archives that unpack to suspicious sizes.

Only ordinary files are opened, nothing is unpacked to disk, and a stream that grows out of proportion to its compressed
size is stopped.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import weakref
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from eirkit.errors import InputFileError, MissingExtraError
from eirkit.vestige.sources.remote import Location, Remote

CHUNK_BYTES = 1 << 20
_LARGEST_COPY = 1 << 26  # bytes
_BUFFER_BYTES = 1 << 16
# Repeated prompts make agent logs compress a hundredfold; far higher ratios are decompression bombs.
LARGEST_RATIO = 200
_UNSUSPECTED_BYTES = 1 << 26  # outputs up to this size are never refused
LONGEST_LABEL = 300
ZIP_MAGIC = b"PK\x03\x04"
EMPTY_ZIP_MAGIC = b"PK\x05\x06"
PARQUET_MAGIC = b"PAR1"
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCRYPTED = 0x1  # bit in a member's flags
_ZSTD_METHOD = 93  # compression method of a member; older versions of Python lack it
_LOCAL_HEADER_BYTES = 30  # bytes before a member's name
_ZSTD_FEED_BYTES = 1 << 10  # four bytes can expand to 128 KiB: fed so little at a time, at most 32 MiB come out at once
_LARGEST_WINDOW = 1 << 27  # bytes; the default of `zstd --long`
_ENDINGS = (".gz", ".zst", ".zstd")
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_BROKEN = (EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError)

Opener = Callable[[], IO[bytes]]


def why_not_a_file(path: Path) -> str | None:
    """Return why a path is not an ordinary file, without opening it; None if it is one."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        return f"cannot be read ({cause_of(error)}); check the path and its permissions"
    return _why_not_regular(mode)


def _why_not_regular(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    kind = _KINDS.get(stat.S_IFMT(mode), "not a file")
    return f"is {kind}; save its content as a file and give that"


def open_file(path: Location, label: str) -> io.BufferedReader:
    """Open an ordinary file; anything else is refused without blocking."""
    if isinstance(path, Remote):
        return path.open()
    try:
        # A pipe that replaced the file since the check must not block the open.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise InputFileError(f"{label}: cannot be read ({cause_of(error)}); check its permissions") from error
    reason = _why_not_regular(os.fstat(descriptor).st_mode)
    if reason:
        os.close(descriptor)
        raise InputFileError(f"{label} {reason}")
    return io.BufferedReader(io.FileIO(descriptor, "rb"), _BUFFER_BYTES)


def open_unpacked(open_stored: Opener, label: str, limit_bytes: int) -> io.BufferedReader:
    """Open a stream of the decompressed bytes of what `open_stored` opens."""
    stored = open_stored()
    magic = _peek(stored, label)
    if magic.startswith(_GZIP_MAGIC):
        unpacked: Any = gzip.GzipFile(fileobj=stored)
    elif magic.startswith(_ZSTD_MAGIC):
        unpacked = _zstd(stored)
    elif magic.startswith(_UTF_16) and magic != codecs.BOM_UTF32_LE:
        unpacked = _Utf16Stream(stored)
    elif isinstance(stored, io.BufferedReader):
        return stored  # an uncompressed file needs no guard
    else:
        unpacked = stored
    guarded = _Guarded(unpacked, stored, label, min(limit_bytes, _UNSUSPECTED_BYTES))
    return io.BufferedReader(guarded, _BUFFER_BYTES)


def _peek(stored: IO[bytes], label: str) -> bytes:
    try:
        magic = stored.read(4)
        stored.seek(0)
    except (*_BROKEN, OSError) as error:
        stored.close()
        raise InputFileError(f"{label}: cannot be read ({cause_of(error)}); restore the file") from error
    return magic


def _zstd(stored: IO[bytes]) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError("reading .zst files", "vestige") from error
    return _ZstdStream(stored, zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW), zstandard.ZstdError)


class _ZstdStream:
    """The concatenated frames of a zstd file; unlike the package's own stream it detects a truncated last frame."""

    def __init__(self, stored: IO[bytes], decompressor: Any, error: type[Exception]) -> None:
        self.stored, self.decompressor, self.error = stored, decompressor, error
        self.frame = decompressor.decompressobj()
        self.is_begun = False
        self.waiting = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self.waiting:
            taken = self.stored.read(_ZSTD_FEED_BYTES)
            if not taken:
                if self.is_begun:
                    raise ValueError("the file is truncated")
                return b""
            self.waiting = memoryview(self._unpacked(taken))
        content, self.waiting = self.waiting[:size], self.waiting[size:]
        return bytes(content)

    def _unpacked(self, taken: bytes) -> bytes:
        unpacked = []
        while taken:
            try:
                unpacked.append(self.frame.decompress(taken))
            except self.error as error:
                raise ValueError(str(error)) from error
            self.is_begun, taken = not self.frame.eof, self.frame.unused_data if self.frame.eof else b""
            if not self.is_begun:
                self.frame = self.decompressor.decompressobj()
        return b"".join(unpacked)

    def close(self) -> None:
        self.waiting = memoryview(b"")


class _Utf16Stream:
    """A UTF-16 file as UTF-8: Windows PowerShell saves in that encoding what is redirected to a file."""

    def __init__(self, stored: IO[bytes]) -> None:
        self.stored, self.waiting = stored, b""
        self.decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def read(self, size: int) -> bytes:
        while not self.waiting:
            taken = self.stored.read(_BUFFER_BYTES)
            self.waiting = self.decoder.decode(taken, not taken).encode()
            if not taken:
                break
        content, self.waiting = self.waiting[:size], self.waiting[size:]
        return content

    def close(self) -> None:
        self.waiting = b""


class _Guarded(io.RawIOBase):
    """Compares bytes out with bytes in, and names the file in errors."""

    def __init__(self, unpacked: Any, stored: IO[bytes], label: str, limit_bytes: int) -> None:
        self.unpacked, self.stored, self.label, self.limit_bytes = unpacked, stored, label, limit_bytes
        self.produced_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self.unpacked.read(len(buffer))
        except (*_BROKEN, OSError) as error:
            raise InputFileError(f"{self.label}: damaged ({cause_of(error)}); restore the file") from error
        buffer[: len(content)] = content
        self.produced_bytes += len(content)
        if self.produced_bytes > self.limit_bytes and self.unpacked is not self.stored:
            taken = max(1, self.stored.tell())
            if self.produced_bytes > LARGEST_RATIO * taken:
                grown = f"grows more than {LARGEST_RATIO} times when unpacked"
                raise InputFileError(f"{self.label}: {grown}; unpack it yourself if you trust it")
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self.unpacked.close()
            self.stored.close()
        super().close()


def read_bounded(stream: io.BufferedReader, label: str, limit_bytes: int) -> bytes:
    """Return all bytes of a stream, or refuse if it is longer than allowed."""
    chunks, total = [], 0
    try:
        # A file is read at its size plus one byte, which shows whether it is growing.
        size = os.fstat(stream.fileno()).st_size if isinstance(stream.raw, io.FileIO) else 0
        while total + size <= limit_bytes and (chunk := stream.read(max(size + 1, CHUNK_BYTES))):
            chunks.append(chunk)
            total, size = total + len(chunk), 0
    except OSError as error:
        raise InputFileError(f"{label}: cannot be read ({cause_of(error)}); restore the file") from error
    if total + size > limit_bytes:
        raise InputFileError(f"{label}: longer than {limit_bytes:,} bytes; split it into smaller files")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class _Slice(io.RawIOBase):
    """A range of bytes of a stream, as a stream of its own."""

    def __init__(self, stored: IO[bytes], first: int, end: int) -> None:
        self.stored, self.first, self.end = stored, first, end
        stored.seek(first)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.stored.read(min(len(buffer), max(0, self.end - self.stored.tell())))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation("can only seek to an absolute position")
        return self.stored.seek(self.first + offset) - self.first

    def tell(self) -> int:
        return self.stored.tell() - self.first

    def close(self) -> None:
        if not self.closed:
            self.stored.close()
        super().close()


def open_slice(stored: IO[bytes], first: int, end: int) -> IO[bytes]:
    """Return a range of a stream as a stream of its own; a short one is read at once, which is quicker."""
    if end - first > _LARGEST_COPY:
        return cast(IO[bytes], _Slice(stored, first, end))
    with stored:
        stored.seek(first)
        return io.BytesIO(stored.read(end - first))


class Archive:
    """A zip archive, opened on first use; member names are labels and never paths on this machine."""

    def __init__(self, open_stored: Opener, label: str, limit_bytes: int) -> None:
        self.open_stored, self.label, self.limit_bytes = open_stored, label, limit_bytes
        self._archive: zipfile.ZipFile | None = None

    def members(self) -> list[zipfile.ZipInfo]:
        """Return the files in it by name; an archive that claims to grow out of proportion is refused."""
        archive = self._opened()
        found = [entry for entry in archive.infolist() if not entry.is_dir()]
        stored_bytes = archive.start_dir
        # A member is never read beyond its claimed size, so the claims bound the whole archive.
        claimed = sum(entry.file_size for entry in found)
        if claimed > max(self.limit_bytes, LARGEST_RATIO * stored_bytes):
            raise InputFileError(f"{self.label}: claims to hold {claimed:,} bytes; unpack it yourself if you trust it")
        return sorted(found, key=lambda entry: (entry.filename, entry.header_offset))

    @property
    def directory_byte(self) -> int:
        """The offset of its central directory."""
        return self._opened().start_dir

    def open(self, member: zipfile.ZipInfo, label: str) -> IO[bytes]:
        """Open one of its files."""
        if member.flag_bits & _ENCRYPTED:
            raise InputFileError(f"{label}: encrypted; unpack the archive with its password first")
        try:
            return self._compressed(member) if member.compress_type == _ZSTD_METHOD else self._opened().open(member)
        except (*_BROKEN, OSError) as error:
            raise InputFileError(f"{label}: damaged ({cause_of(error)}); restore the file") from error

    def _compressed(self, member: zipfile.ZipInfo) -> IO[bytes]:
        """Return a member as stored; a zstd member is then unpacked like a zstd file."""
        stored = self.open_stored()
        stored.seek(member.header_offset)
        header = stored.read(_LOCAL_HEADER_BYTES)
        if not header.startswith(ZIP_MAGIC) or len(header) < _LOCAL_HEADER_BYTES:
            stored.close()
            raise zipfile.BadZipFile("a member is not at its recorded offset")
        lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        first = member.header_offset + _LOCAL_HEADER_BYTES + lengths
        return cast(IO[bytes], _Slice(stored, first, first + member.compress_size))

    def _opened(self) -> zipfile.ZipFile:
        if self._archive is None:
            stored = self.open_stored()
            weakref.finalize(self, stored.close)
            try:
                self._archive = zipfile.ZipFile(stored)
            except (*_BROKEN, OSError) as error:
                raise InputFileError(
                    f"{self.label}: a damaged archive ({cause_of(error)}); restore the file"
                ) from error
        return self._archive


def without_compression(name: str) -> str:
    """Return a file's name without suffixes of compression."""
    for ending in _ENDINGS:
        if name.lower().endswith(ending):
            return name[: -len(ending)]
    return name


def as_label(text: str) -> str:
    """Return an untrusted file name as text that can be printed and stored anywhere."""
    if not (text.isascii() and text.isprintable()):
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= LONGEST_LABEL else f"…{text[-LONGEST_LABEL:]}"


def cause_of(error: Exception) -> str:
    """Return an error's message, shortened to one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return as_label(str(error)) or type(error).__name__
