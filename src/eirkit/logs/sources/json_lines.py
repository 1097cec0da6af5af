"""Parses JSON lines, and reads their first records, from which the format of a log is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from io import BufferedReader
from itertools import islice
from typing import IO, Any

from eirkit.errors import EirkitError, InputFileError, MissingExtraError
from eirkit.logs.sources.json_parser import PARSER_NESTING, parse_json
from eirkit.records import broken_seal, needs_seal

_MOST = 40
_FEWEST = 8  # that are read even if each of them is longer than a document's beginning
_LINES = 400  # that are read at most, those that are no objects included
_BEGINNING_BYTES = 1 << 16
_SPREAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*+[\[{][ \t]*+\r?\n")  # the first line only opens a value


def first_records(
    head: bytes, is_whole: bool, open_document: Callable[[], AbstractContextManager[BufferedReader]], line_bytes: int
) -> tuple[Mapping[str, Any], ...]:
    """Return the objects on the first lines of a document; none for one JSON value on several lines.

    Args:
        head: its beginning.
        is_whole: whether that is all of it.
        line_bytes: the longest line that is read.
    """
    if _SPREAD.match(head):
        return ()
    lines = head.split(b"\n")
    if not is_whole:
        lines.pop()  # it is cut
        if not shows_an_object(head) and head.count(b"{"):
            lines = _beyond(open_document, line_bytes)
    return tuple(islice(_objects(lines), _MOST))


def shows_an_object(head: bytes) -> bool:
    """Return whether a line with an object ends in the beginning of a longer document."""
    start = 0
    while (end := head.find(b"\n", start)) >= 0:
        if _is_object(head[start:end]):
            return True
        start = end + 1
    return False


def _beyond(open_document: Callable[[], AbstractContextManager[BufferedReader]], line_bytes: int) -> list[bytes]:
    """Return the first lines of a document whose first record is longer than its beginning; none if it is one line.

    A document of one line is one JSON value, which is parsed once, when it is read.
    """
    lines: list[bytes] = []
    read = 0
    try:
        with open_document() as stream:
            for line in islice(iter(partial(stream.readline, line_bytes), b""), _LINES):
                read += len(line)
                lines += [line] if _is_object(line) else []
                if read >= _BEGINNING_BYTES and len(lines) >= _FEWEST:
                    break
    except InputFileError:
        pass
    return lines if len(lines) > 1 else []


def _is_object(line: bytes) -> bool:
    return line.lstrip(b"\xef\xbb\xbf \t\r")[:1] == b"{"


def _objects(lines: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        if not _is_object(line) or line.rstrip()[-1:] != b"}":
            continue
        try:
            value = parse_json(line, PARSER_NESTING)
        except InputFileError:
            continue
        if isinstance(value, dict):
            yield value


def pass_blank_lines(stream: BufferedReader) -> int:
    """Skip blank lines in large steps, and return how many there were."""
    passed = 0
    while (waiting := stream.peek()) and waiting.isspace() and b"\n" in waiting:
        end = waiting.rindex(b"\n") + 1
        passed += waiting.count(b"\n", 0, end)
        stream.read(end)
    return passed


def finds_next_line(stream: IO[bytes], line: bytes, most_bytes: int) -> bool:
    """Pass over the rest of an endless line, and return whether it ends within so many bytes."""
    passed = len(line)
    while not line.endswith(b"\n"):
        line = stream.readline(_BEGINNING_BYTES)
        passed += len(line)
        if not line or passed > most_bytes:
            return False
    return True


def parse_line(line: bytes, nesting: int, *, sealed: bool = False) -> Any | Exception:
    """Return the value of a line, or the error whose text is the reason alone; of a sealed one, also if it changed."""
    if sealed and (why := broken_seal(line, is_needed=needs_seal(line))) is not None:
        return InputFileError(why)
    try:
        return parse_json(line, nesting)
    except MissingExtraError:
        raise
    except EirkitError as error:
        return error
