"""Prints the tables of a study as text, or as JSON or Markdown if the arguments ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from eirkit.report.document import plain_data
from eirkit.report.table import Table
from eirkit.report.terminal import table_lines

WIDTH = 150  # columns


def markdown(tables: Iterable[Table]) -> str:
    """Return tables as they stand in the documentation."""
    return "\n\n".join(f"**{one.title}**\n\n{one.markdown()}" for one in tables)


def show(tables: Sequence[Table], arguments: Sequence[str]) -> None:
    """Print tables; those without rows are left out."""
    shown = [one for one in tables if one.rows]
    if "--json" in arguments:
        print(json.dumps({"tables": plain_data(shown)}, ensure_ascii=False, allow_nan=False))
    elif "--markdown" in arguments:
        print(markdown(shown))
    else:
        for one in shown:
            print("\n".join(line.text for line in table_lines(one, WIDTH)), end="\n\n")
