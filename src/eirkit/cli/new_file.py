"""A new file of records, which is there once it is whole, and never in place of another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eirkit.errors import UsageError
from eirkit.records.lines import RecordWriter


@contextmanager
def new_records(out: Path, schema: str) -> Iterator[RecordWriter]:
    """Yield the writer of a new file, which is there once the block has ended; after a failure nothing is."""
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.part")
    _refuse_to_overwrite(out)
    try:
        with RecordWriter(unfinished, schema) as writer:
            yield writer
        _refuse_to_overwrite(out)
        unfinished.rename(out)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}; choose another file") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _refuse_to_overwrite(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists; choose a new file or remove it")
