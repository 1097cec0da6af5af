"""Parses untrusted JSON and JSON lines: returns the value, or raises one sentence that says why it is invalid.

Nothing here recurses on the input. Lone surrogates and NaN, which strict parsers reject but real logs contain, are
accepted; invalid UTF-8 and excessive nesting are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from io import BufferedReader
from itertools import islice
from typing import IO, Any

from eirkit.errors import EirkitError, InputFileError, MissingExtraError
from eirkit.limits import memory_left

PARSER_NESTING = 1024  # nesting at which the parser itself gives up
_SMALL_BYTES = 1 << 16  # texts for which nobody asks how much memory is left
_MOST_GROWTH = (
    60  # bytes for a byte of text, at most: `{"":0},` becomes a dictionary of 232, beside 12 of a buffer for each
)
_LARGE_BYTES = 1 << 25  # of a text whose commas and brackets are counted before it is parsed
_MOST_VALUES = 1 << 23  # their objects take up to 2 GB
_FEWEST_BYTES = 25  # for each comma and bracket of a text with more values; prose and logs have 60 and more
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PAIR_OR_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_LONE_LENGTH = len(rb"\ud800")
_BRACKETS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_MOST_FIRST = 40
_FEWEST_FIRST = 8  # that are read even if each of them is longer than a document's beginning
_MOST_LINES = 400  # that are read at most, those that are no objects included
_BEGINNING_BYTES = 1 << 16
_SPREAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*+[\[{][ \t]*+\r?\n")  # the first line only opens a value


def parse_json(content: bytes, nesting: int) -> Any:
    """Return the value of a JSON text.

    Raises:
        InputFileError: its text is the reason alone, without the file.
    """
    if len(content) > _LARGE_BYTES:
        # A text may be little but commas and brackets: its objects would take many times its size.
        values = sum(map(content.count, (b",", b"[", b"{")))
        if values > _MOST_VALUES and values * _FEWEST_BYTES > len(content):
            reason = f"holds {values:,} values in {len(content):,} bytes, which no agent log does; leave it out"
            raise InputFileError(reason)
    try:
        value = _strict_parser()(content) if _is_roomy(len(content)) else _parse_in_little_memory(content)
    except ValueError as error:
        value = _parse_leniently(content.removeprefix(BYTE_ORDER_MARK), nesting, error)
    if nesting < PARSER_NESTING and is_deeper(value, nesting):
        raise InputFileError(f"nested deeper than {nesting} levels, which no agent log is; leave it out")
    return value


@cache
def _strict_parser() -> Callable[[bytes], Any]:
    try:
        import orjson
    except ImportError as error:
        raise MissingExtraError("reading recorded runs", "vestige") from error
    return orjson.loads


def _is_roomy(length: int) -> bool:
    """Return whether the objects of a text fit into memory, whatever it holds."""
    left = memory_left() if length > _SMALL_BYTES else None
    return left is None or length * _MOST_GROWTH < left


def _parse_in_little_memory(content: bytes) -> Any:
    """Parse with msgspec, which raises MemoryError where orjson uses what it was not given and crashes."""
    import msgspec

    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_deeper(value: Any, levels: int) -> bool:
    """Return whether containers are nested more than this many levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not level:
            return False
        inner = []
        for container in level:
            for child in container.values() if type(container) is dict else container:
                if type(child) is dict or type(child) is list:
                    inner.append(child)
        level = inner
    return bool(level)


def _parse_leniently(content: bytes, nesting: int, refusal: ValueError) -> Any:
    if not content.strip():
        raise InputFileError("empty; leave it out")
    if b"\0" in content:
        raise InputFileError(
            f"holds a null byte at {content.index(0)}; it is not text or was truncated; restore or remove it"
        )
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise InputFileError(f"not UTF-8 at byte {error.start}; save it as UTF-8") from error
    if _is_bracketed_deeper(content, nesting):
        raise InputFileError(f"nested deeper than {nesting} levels, which no agent log is; leave it out")
    try:
        return json.loads(_PAIR_OR_ESCAPE.sub(_replace_lone, content))
    except (ValueError, RecursionError):
        raise InputFileError(f"not JSON ({refusal}); restore or remove it") from refusal


def _replace_lone(found: re.Match[bytes]) -> bytes:
    escape = found.group()
    return rb"\ufffd" if len(escape) == _LONE_LENGTH else escape


def _is_bracketed_deeper(content: bytes, nesting: int) -> bool:
    depth = 0
    for token in _BRACKETS.finditer(content):
        letter = content[token.start()]
        if letter != 0x22:  # a quoted string
            depth += 1 if letter in b"[{" else -1
            if depth > nesting:
                return True
    return False


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
    return tuple(islice(_objects(lines), _MOST_FIRST))


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
            for line in islice(iter(partial(stream.readline, line_bytes), b""), _MOST_LINES):
                read += len(line)
                lines += [line] if _is_object(line) else []
                if read >= _BEGINNING_BYTES and len(lines) >= _FEWEST_FIRST:
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


def parse_line(line: bytes, nesting: int) -> Any | Exception:
    """Return the value of a line, or the error whose text is the reason alone."""
    try:
        return parse_json(line, nesting)
    except MissingExtraError:
        raise
    except EirkitError as error:
        return error
