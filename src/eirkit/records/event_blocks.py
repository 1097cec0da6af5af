"""The events of stored runs: blocks of JSON lines, one zstd frame for each run, so that any block can be read alone.

Frames are independent: a torn last one costs itself, and `zstd -dc` prints the whole file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import zstandard

from eirkit.errors import InputFileError
from eirkit.folders import open_ordinary

EVENTS = "events.jsonl.zst"
LARGEST_BLOCK = 1 << 28  # bytes of the events of one run
_LEVEL = 1  # up to level 14 none makes these blocks smaller by more than 2%, and this one is the fastest


def pack(block: bytes) -> bytes:
    """Return a block as one frame."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(block)


def unpack(frame: bytes, path: Path, most: int = LARGEST_BLOCK) -> bytes:
    """Return the block of a frame; a frame that does not say how long its block is, and keep to it, is damaged.

    Raises:
        InputFileError: it is damaged, or larger than any run.
    """
    try:
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= most:
            raise InputFileError(f"{path}: a block claims {size:,} bytes, of at most {most:,}; restore the file")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as error:
        raise InputFileError(f"{path}: a block cannot be decompressed ({error}); restore the file") from error


def read_block(path: Path, offset: int, size: int, most: int = LARGEST_BLOCK) -> bytes:
    """Return the lines of one run, given its place in the file.

    Args:
        most: bytes that they may have.

    Raises:
        InputFileError: they are damaged, or larger.
    """
    if not 0 <= size <= most:
        raise InputFileError(f"{path}: a block of {size:,} bytes, of at most {most:,}; restore the file")
    with open_ordinary(path) as stream:
        stream.seek(offset)
        return unpack(stream.read(size), path, most)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield all lines of an events file up to a torn last one."""
    with open_ordinary(path) as stored:
        reader = zstandard.ZstdDecompressor().stream_reader(stored, read_across_frames=True)
        lines = io.BufferedReader(reader, 1 << 16)
        try:
            while (line := lines.readline(LARGEST_BLOCK)).endswith(b"\n"):
                yield line
            if len(line) == LARGEST_BLOCK:
                raise InputFileError(f"{path} has a line of more than {LARGEST_BLOCK:,} bytes; restore the file")
        except zstandard.ZstdError as error:
            raise InputFileError(f"{path} cannot be decompressed ({error}); restore the file") from error
