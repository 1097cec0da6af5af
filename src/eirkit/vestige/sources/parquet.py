"""Reads rows of Parquet files, and parses the footer to find their row groups.

The footer is not parsed by pyarrow, whose `RowGroupMetaData.column` ends the process if a column's statistics are
damaged (std::terminate, which cannot be caught). Only the required fields are kept. The encoding is Thrift's compact
protocol; the field numbers are those of parquet-format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

from eirkit.errors import InputFileError, MissingExtraError
from eirkit.vestige.sources.streams import LARGEST_RATIO, cause_of

_DEEPEST = 32  # nesting levels; a valid footer needs six
_FREE_BYTES = 1 << 24  # that any file may unpack to; a dictionary repeats one value in every row at no cost
_TAIL_BYTES = 8  # the footer's length and the magic bytes
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)
_VARINTS, _FIXED = frozenset({_I16, _I32, _I64}), {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8, _UUID: 16}


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are stored together."""

    start: int  # rows before the group
    stop: int
    claimed_bytes: int  # unpacked
    values: int  # values in all columns; a list has many in one row
    first_byte: int  # of the stored data
    last_byte: int


def read_row_groups(stored: IO[bytes]) -> tuple[RowGroup, ...]:
    """Return the row groups of an open file.

    Raises:
        ValueError: there is no footer, or it cannot be parsed.
    """
    end = stored.seek(0, 2)
    if end < _TAIL_BYTES:
        raise ValueError("too short for a footer")
    stored.seek(end - _TAIL_BYTES)
    length = int.from_bytes(stored.read(_TAIL_BYTES)[:4], "little")
    if length > end - _TAIL_BYTES:
        raise ValueError("the footer is longer than the file")
    stored.seek(end - _TAIL_BYTES - length)
    return _row_groups(stored.read(length))


@lru_cache(maxsize=4)  # a file is opened again for each of its sections
def _row_groups(footer: bytes) -> tuple[RowGroup, ...]:
    walk, groups = _Walk(footer), tuple[RowGroup, ...]()
    for field, kind in walk.fields():
        if (field, kind) == (4, _LIST):
            groups = tuple(_groups_of(walk))
        else:
            walk.step_over(kind)
    return groups


def _groups_of(walk: _Walk) -> Iterator[RowGroup]:
    start = 0
    for _ in walk.structs():
        columns: list[_Column] = []
        claimed = rows = 0
        for field, kind in walk.fields():
            if (field, kind) == (1, _LIST):
                columns = [_column_of(walk) for _ in walk.structs()]
            elif (field, kind) == (2, _I64):
                claimed = walk.integer()
            elif (field, kind) == (3, _I64):
                rows = walk.integer()
            else:
                walk.step_over(kind)
        begins = [column.dictionary_page or column.data_page for column in columns]
        ends = [begin + one.stored_bytes for begin, one in zip(begins, columns, strict=True)]
        yield RowGroup(
            start,
            start + rows,
            max(claimed, sum(one.claimed_bytes for one in columns)),
            sum(one.values for one in columns),
            min(begins, default=0),
            max(ends, default=0),
        )
        start += rows


@dataclass(slots=True)
class _Column:
    """A column of a row group."""

    values: int = 0
    claimed_bytes: int = 0
    stored_bytes: int = 0
    data_page: int = 0
    dictionary_page: int = 0


_COLUMN_FIELDS = {5: "values", 6: "claimed_bytes", 7: "stored_bytes", 9: "data_page", 11: "dictionary_page"}


def _column_of(walk: _Walk) -> _Column:
    column = _Column()
    for chunk_field, chunk_kind in walk.fields():
        if (chunk_field, chunk_kind) != (3, _STRUCT):
            walk.step_over(chunk_kind)
            continue
        for field, kind in walk.fields():
            name = _COLUMN_FIELDS.get(field)
            if name is None or kind != _I64:
                walk.step_over(kind)
            else:
                setattr(column, name, walk.integer())
    return column


class _Walk:
    """A position in a Thrift message; every step fails rather than read past the end."""

    def __init__(self, message: bytes) -> None:
        self.message, self.place = message, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and the type of each field of a struct; the caller reads or skips its value."""
        field = 0
        while head := self._byte():
            kind = head & 15
            field = field + (head >> 4) if head >> 4 else self.integer()
            yield field, kind

    def structs(self) -> Iterator[None]:
        """Stop at each struct of a list."""
        kind, count = self._list_head()
        if kind == _STRUCT:
            for _ in range(count):
                yield
        else:
            self._step_over_elements(kind, count, 0)

    def integer(self) -> int:
        """Return an integer of at most 64 bits."""
        bits = self._varint()
        return (bits >> 1) ^ -(bits & 1)

    def step_over(self, kind: int, depth: int = 0) -> None:
        """Skip a value."""
        if depth > _DEEPEST:
            raise ValueError("the footer is nested too deep")
        if kind in (_TRUE, _FALSE):
            return  # a boolean field's type is its value
        if kind == _STRUCT:
            for _, inner in self.fields():
                self.step_over(inner, depth + 1)
        elif kind == _MAP:
            if count := self._varint():
                kinds = self._byte()
                for _ in range(count):
                    self._step_over_elements(kinds >> 4, 1, depth)
                    self._step_over_elements(kinds & 15, 1, depth)
        elif kind in (_LIST, _SET):
            self._step_over_elements(*self._list_head(), depth)
        else:
            self._step_over_elements(kind, 1, depth)

    def _step_over_elements(self, kind: int, count: int, depth: int) -> None:
        if kind in _FIXED:
            self._advance(count * _FIXED[kind])
        elif kind in _VARINTS:
            for _ in range(count):
                self._varint()
        elif kind == _BINARY:
            for _ in range(count):
                self._advance(self._varint())
        elif kind in (_LIST, _SET, _MAP, _STRUCT):
            for _ in range(count):
                self.step_over(kind, depth + 1)
        else:
            raise ValueError(f"the footer holds an unknown type, {kind}")

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        return head & 15, head >> 4 if head >> 4 != 15 else self._varint()

    def _varint(self) -> int:
        bits = shift = 0
        while True:
            byte = self._byte()
            bits |= (byte & 127) << shift
            if byte < 128:
                return bits & 0xFFFF_FFFF_FFFF_FFFF
            shift += 7
            if shift > 63:
                raise ValueError("the footer holds a number of more than 64 bits")

    def _byte(self) -> int:
        if self.place >= len(self.message):
            raise ValueError("the footer ends too early")
        self.place += 1
        return self.message[self.place - 1]

    def _advance(self, count: int) -> None:
        if count > len(self.message) - self.place:
            raise ValueError("the footer ends too early")
        self.place += count


_ROWS_AT_ONCE = 16  # a row of a data set usually holds a whole run
_SPLIT = "write it with smaller row groups"
_TRUST = "unpack it yourself if you trust it"


def read_rows(
    stored: IO[bytes], source: str, limit_bytes: int, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
    """Yield the rows between two positions with their numbers, from 1; an error's text is the reason alone.

    Raises:
        InputFileError: the file is damaged as a whole, or claims to be larger than it can be.
    """
    file, groups, stored_bytes = _opened(stored, source, limit_bytes)
    end = groups[-1].stop if stop is None and groups else stop or 0
    produced = unpacked = 0
    most = max(min(limit_bytes, _FREE_BYTES), LARGEST_RATIO * stored_bytes)
    for place, group in enumerate(groups):
        if group.stop <= start or group.start >= end:
            continue
        number = group.start
        # In a part of a row group rows are converted one by one, so that a damaged row costs no other.
        is_whole = start <= group.start and group.stop <= end
        for rows in _batches(file, place, group, limit_bytes if is_whole else 0):
            if isinstance(rows, Exception):
                yield max(number, start) + 1, rows
                break
            if number + rows.num_rows <= start or number >= end:
                number += rows.num_rows
                continue
            produced += rows.nbytes
            if rows.nbytes > limit_bytes:
                raise InputFileError(f"{source}: rows of more than {limit_bytes:,} bytes; split it")
            for row in _as_python(rows):
                # A batch counts a value of a dictionary once, however many of its rows hold it.
                unpacked += (
                    sum(len(value) for value in row.values() if isinstance(value, str)) if isinstance(row, dict) else 0
                )
                if max(produced, unpacked) > most:
                    raise InputFileError(f"{source}: grows more than {LARGEST_RATIO} times when unpacked; {_TRUST}")
                number += 1
                yield number, row


def _as_python(rows: Any) -> Iterator[Mapping[str, Any] | Exception]:
    """Yield rows as Python values; a row that cannot be converted is yielded as its error."""
    import pyarrow

    for place in range(rows.num_rows):
        try:
            yield rows.slice(place, 1).to_pylist()[0]
        # Strings that are not UTF-8, dates out of range and unknown time zones fail only here.
        except (ValueError, ArithmeticError, LookupError, pyarrow.ArrowException) as error:
            yield InputFileError(
                f"holds a value that cannot be read ({type(error).__name__}); repair or remove the row"
            )


def row_groups(stored: IO[bytes], source: str, limit_bytes: int) -> Sequence[RowGroup]:
    """Return the row groups of a file.

    Raises:
        InputFileError: as `read_rows`.
    """
    return _opened(stored, source, limit_bytes)[1]


def _opened(stored: IO[bytes], source: str, limit_bytes: int) -> tuple[Any, Sequence[RowGroup], int]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("reading Parquet files", "vestige") from error
    try:
        stored_bytes = stored.seek(0, 2)
        stored.seek(0)
        file = parquet.ParquetFile(stored)
        groups = read_row_groups(stored)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputFileError(f"{source}: damaged Parquet ({cause_of(error)}); restore the file") from error
    reason = _why_refused(file.metadata, groups, stored_bytes, limit_bytes)
    if reason:
        raise InputFileError(f"{source}: {reason}")
    return file, groups, stored_bytes


def _why_refused(metadata: Any, groups: Sequence[RowGroup], stored_bytes: int, limit_bytes: int) -> str | None:
    """Return why a file is refused, from its own metadata; None if it is not."""
    claimed, rows = sum(group.claimed_bytes for group in groups), metadata.num_rows
    if claimed > max(limit_bytes, LARGEST_RATIO * stored_bytes):
        return f"claims to hold {claimed:,} bytes in {stored_bytes:,}; {_TRUST}"
    largest = max((group.claimed_bytes for group in groups), default=0)
    if largest > limit_bytes:
        return f"has a row group of {largest:,} bytes, more than {limit_bytes:,}; {_SPLIT}"
    if max(rows, sum(group.values for group in groups)) > LARGEST_RATIO * stored_bytes:
        return f"claims to hold {rows:,} rows in {stored_bytes:,} bytes; {_TRUST}"
    if [group.stop - group.start for group in groups] != [
        metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)
    ]:
        return "has a footer that can be read in two ways; restore the file"
    if any(group.claimed_bytes < 0 or group.stop < group.start for group in groups):
        return "claims a negative size; restore the file"
    return None


def _columns(schema: Any) -> list[str] | None:
    """Return the columns to read, None for all; timestamps are left out, since Python cannot represent all of them."""
    import pyarrow

    read = [field.name for field in schema if not pyarrow.types.is_temporal(field.type)]
    return read if len(read) < len(schema) else None


def _batches(file: Any, place: int, group: RowGroup, limit_bytes: int) -> Iterator[Any]:
    """Yield a row group in batches, and an error where it is damaged."""
    import pyarrow

    # A dictionary-encoded value may occur in every row, so batches are small enough to bound their size.
    at_once = max(1, min(_ROWS_AT_ONCE, limit_bytes // max(1, group.claimed_bytes)))
    try:
        yield from file.iter_batches(batch_size=at_once, row_groups=[place], columns=_columns(file.schema_arrow))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        what = f"rows up to {group.stop:,} are damaged Parquet ({cause_of(error)}); restore the file"
        yield InputFileError(what)
