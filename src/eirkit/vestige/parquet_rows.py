"""Rows of a Parquet file within bounds: an open file comes in, rows with their numbers go out.

What the file claims about itself is looked at before any of it is unpacked. A row group that is damaged costs itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from eirkit.errors import InputFileError, MissingExtraError
from eirkit.vestige.parquet_footer import RowGroup, read_row_groups
from eirkit.vestige.unpacking import LARGEST_RATIO, cause_of

_ROWS_AT_ONCE = 16  # a row of a data set holds a whole run
_SPLIT = "write it with smaller row groups"
_TRUST = "unpack it yourself if you trust it"


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
    import pyarrow

    for place in range(rows.num_rows):
        try:
            yield rows.slice(place, 1).to_pylist()[0]
        # Strings that are no UTF-8, dates outside the calendar and unknown time zones are found only here.
        except (ValueError, ArithmeticError, LookupError, pyarrow.ArrowException) as error:
            yield InputFileError(
                f"holds a value that cannot be read ({type(error).__name__}); repair or remove the row"
            )


def row_groups(stored: IO[bytes], source: str, limit_bytes: int) -> Sequence[RowGroup]:
    """Return where the rows of a file lie.

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
    """Return why a file is not read at all, from what it says of itself."""
    claimed, rows = sum(group.claimed_bytes for group in groups), metadata.num_rows
    if claimed > max(limit_bytes, LARGEST_RATIO * stored_bytes):
        return f"claims to hold {claimed:,} bytes in {stored_bytes:,}; {_TRUST}"
    largest = max((group.claimed_bytes for group in groups), default=0)
    if largest > limit_bytes:
        return f"has a row group of {largest:,} bytes, more than {limit_bytes:,}; {_SPLIT}"
    if max(rows, sum(group.values for group in groups)) > LARGEST_RATIO * stored_bytes:
        return f"claims to hold {rows:,} rows in {stored_bytes:,} bytes; {_TRUST}"
    if [group.stop - group.start for group in groups] != _rows_of_groups(metadata):
        return "has a footer that can be read in two ways; restore the file"
    if any(group.claimed_bytes < 0 or group.stop < group.start for group in groups):
        return "claims to hold less than nothing; restore the file"
    return None


def _rows_of_groups(metadata: Any) -> list[int]:
    return [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]


def _columns(schema: Any) -> list[str] | None:
    """Return which columns are read, None for all: not moments, which nobody asks for and Python cannot always hold."""
    import pyarrow

    read = [field.name for field in schema if not pyarrow.types.is_temporal(field.type)]
    return read if len(read) < len(schema) else None


def _batches(file: Any, place: int, group: RowGroup, limit_bytes: int) -> Iterator[Any]:
    """Yield a row group in batches, and an error where it is damaged."""
    import pyarrow

    # A value that a file stores once may stand in every row: so few rows at a time that this cannot be too much.
    at_once = max(1, min(_ROWS_AT_ONCE, limit_bytes // max(1, group.claimed_bytes)))
    try:
        yield from file.iter_batches(batch_size=at_once, row_groups=[place], columns=_columns(file.schema_arrow))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        what = f"rows up to {group.stop:,} are damaged Parquet ({cause_of(error)}); restore the file"
        yield InputFileError(what)
