"""Typed JSON documents: the manifest and the summary of a folder, written in one step and validated when read.

A document begins with its schema, such as `runs/1`, by which a folder is recognized, and ends with its checksum.
"""

from __future__ import annotations

import errno
import os
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from eirkit.errors import InfrastructureError, InputFileError, UsageError
from eirkit.folders import open_ordinary, replace_file

LARGEST_DOCUMENT = 1 << 28  # bytes
MANIFEST, SUMMARY = "manifest.json", "summary.json"
_SEAL = b',\n "crc32": '  # before the checksum of all that precedes it, so that a changed byte is found
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # numbers of errors
RUNS_SCHEMA = "runs/1"  # of the manifest of a folder of runs
T = TypeVar("T")


def write_struct(path: Path, schema: str, document: object) -> None:
    """Replace a file with one document; concurrent readers see the old or the new one.

    Raises:
        InfrastructureError: the disk is full.
        UsageError: nothing can be written there.
    """
    body = msgspec.json.encode(document)
    head = msgspec.json.encode(schema)
    whole = b'{"schema":%s%s%s' % (head, b"" if body == b"{}" else b",", body[1:])
    text = msgspec.json.format(whole, indent=1)[:-2]  # without the last line break and brace
    try:
        replace_file(path, b"%s%s%d\n}\n" % (text, _SEAL, zlib.crc32(text)), is_durable=True)
        sync_folder(path.parent)
    except OSError as error:
        if error.errno in FULL:
            raise InfrastructureError(f"cannot write {path}: {error.strerror}; free disk space and resume") from error
        raise UsageError(f"cannot write {path}: {error.strerror}; choose another folder") from error


def read_struct(path: Path, schema: str, kind: type[T]) -> T:
    """Return the document in a file.

    Raises:
        InputFileError: the file is missing, too large, damaged or of another schema.
    """
    try:
        with open_ordinary(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read() if size <= LARGEST_DOCUMENT else b""
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    if size > LARGEST_DOCUMENT:
        raise InputFileError(f"{path} has more than {LARGEST_DOCUMENT:,} bytes; restore the file")
    return decode_struct(content, schema, kind, str(path))


def decode_struct(content: bytes, schema: str, kind: type[T], where: str) -> T:
    """Return the document in some bytes; `where` is for the message if they are something else."""
    text, seal, checksum = content.rpartition(_SEAL)
    if str(zlib.crc32(text)).encode() != checksum.rstrip(b"\n }") if seal else schema == RUNS_SCHEMA:
        raise InputFileError(f"{where}: changed since it was written, as its checksum shows; restore the file")
    try:
        found = msgspec.json.decode(content, type=_Head).schema
        if found != schema:
            raise InputFileError(f"{where}: schema {found!r}, expected {schema!r}; use the version that wrote it")
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{where}: not a document of {schema!r} ({error}); restore the file") from error


def schema_of(path: Path) -> str | None:
    """Return the schema of a document; None if the file is none."""
    try:
        with open_ordinary(path) as stream:
            head = stream.read(64).lstrip(b"{ \n")
    except OSError:
        return None
    parts = head.split(b'"', 4)
    return parts[3].decode("utf-8", "replace") if len(parts) == 5 and parts[1] == b"schema" else None


class _Head(msgspec.Struct):
    schema: str | None = None


def sync_folder(folder: Path) -> None:
    """Force the names of new files in a folder to disk: a file is lost if its directory entry is."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
