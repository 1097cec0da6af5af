"""Rows of a Parquet file within bounds: an open file comes in, rows with their numbers go out.

What the file claims about itself is looked at before any of it is unpacked. A row group that is damaged costs itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from eirkit.errors import InputFileError, MissingExtraError
from eirkit.vestige.unpacking import LARGEST_RATIO, cause_of

_ROWS_AT_ONCE = 16  # a row of a data set holds a whole run
_SPLIT = "write it with smaller row groups"
_TRUST = "unpack it yourself if you trust it"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that lie together."""

    start: int  # rows before it
    stop: int
    claimed_bytes: int  # unpacked
    first_byte: int  # of what is stored
    last_byte: int


def read_rows(
    stored: IO[bytes], source: str, limit_bytes: int, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
    """Yield the rows between two places with their numbers, from 1; an error's text is the reason alone.

    Raises:
        InputFileError: the file is damaged as a whole, or claims to be larger than it can be.
    """
    file, groups, stored_bytes = _opened(stored, source, limit_bytes)
    end = groups[-1].stop if stop is None and groups else stop or 0
    produced = 0
    for place, group in enumerate(groups):
        if group.stop <= start or group.start >= end:
            continue
        number = group.start
        # Of a part of a row group each row is looked at alone: one that cannot be read must not cost its neighbours.
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
            if produced > max(limit_bytes, LARGEST_RATIO * stored_bytes):
                raise InputFileError(f"{source}: grows more than {LARGEST_RATIO} times when unpacked; {_TRUST}")
            for row in _as_python(rows):
                number += 1
                yield number, row


def _as_python(rows: Any) -> Iterator[Mapping[str, Any] | Exception]:
    """Yield rows as Python values; one whose text is none is yielded as its error and costs nobody else."""
    for place in range(rows.num_rows):
        try:
            yield rows.slice(place, 1).to_pylist()[0]
        except ValueError as error:  # strings that are no UTF-8 are found only here
            yield InputFileError(
                f"holds a value that cannot be read ({type(error).__name__}); repair or remove the row"
            )


def row_groups(stored: IO[bytes], source: str, limit_bytes: int) -> list[RowGroup]:
    """Return where the rows of a file lie.

    Raises:
        InputFileError: as `read_rows`.
    """
    return _opened(stored, source, limit_bytes)[1]


def _opened(stored: IO[bytes], source: str, limit_bytes: int) -> tuple[Any, list[RowGroup], int]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("reading Parquet files", "vestige") from error
    try:
        stored_bytes = stored.seek(0, 2)
        stored.seek(0)
        file = parquet.ParquetFile(stored)
        groups = list(_groups(file.metadata))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputFileError(f"{source}: damaged Parquet ({cause_of(error)}); restore the file") from error
    reason = _why_refused(file.metadata, groups, stored_bytes, limit_bytes)
    if reason:
        raise InputFileError(f"{source}: {reason}")
    return file, groups, stored_bytes


def _groups(metadata: Any) -> Iterator[RowGroup]:
    start = 0
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        columns = [group.column(number) for number in range(group.num_columns)]
        begins = [one.dictionary_page_offset or one.data_page_offset for one in columns]
        ends = [begin + one.total_compressed_size for begin, one in zip(begins, columns, strict=True)]
        claimed = max(group.total_byte_size, sum(one.total_uncompressed_size for one in columns))
        yield RowGroup(start, start + group.num_rows, claimed, min(begins, default=0), max(ends, default=0))
        start += group.num_rows


def _why_refused(metadata: Any, groups: list[RowGroup], stored_bytes: int, limit_bytes: int) -> str | None:
    """Return why a file is not read at all, from what it says of itself."""
    claimed, rows = sum(group.claimed_bytes for group in groups), metadata.num_rows
    if claimed > max(limit_bytes, LARGEST_RATIO * stored_bytes):
        return f"claims to hold {claimed:,} bytes in {stored_bytes:,}; {_TRUST}"
    largest = max((group.claimed_bytes for group in groups), default=0)
    if largest > limit_bytes:
        return f"has a row group of {largest:,} bytes, more than {limit_bytes:,}; {_SPLIT}"
    if max(rows, _values(metadata)) > LARGEST_RATIO * stored_bytes:
        return f"claims to hold {rows:,} rows in {stored_bytes:,} bytes; {_TRUST}"
    if any(group.claimed_bytes < 0 or group.stop < group.start for group in groups):
        return "claims to hold less than nothing; restore the file"
    return None


def _values(metadata: Any) -> int:
    """Return the number of values in all columns; a list has many in one row."""
    groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
    return sum(group.column(number).num_values for group in groups for number in range(group.num_columns))


def _batches(file: Any, place: int, group: RowGroup, limit_bytes: int) -> Iterator[Any]:
    """Yield a row group in batches, and an error where it is damaged."""
    import pyarrow

    # A value that a file stores once may stand in every row: so few rows at a time that this cannot be too much.
    at_once = max(1, min(_ROWS_AT_ONCE, limit_bytes // max(1, group.claimed_bytes)))
    try:
        yield from file.iter_batches(batch_size=at_once, row_groups=[place])
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        what = f"rows up to {group.stop:,} are damaged Parquet ({cause_of(error)}); restore the file"
        yield InputFileError(what)
