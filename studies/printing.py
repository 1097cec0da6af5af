"""Prints the tables of a study as text, or as JSON or Markdown if the arguments ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from eirkit.cli.output import WholeConsole, table
from eirkit.show.table import Table

WIDTH = 150  # columns


def markdown(tables: Iterable[Table]) -> str:
    """Return tables as they stand in the documentation."""
    return "\n\n".join(f"**{one.title}**\n\n{one.markdown()}" for one in tables)


def show(tables: Sequence[Table], arguments: Sequence[str]) -> None:
    """Print tables; those without rows are left out."""
    shown = [one for one in tables if one.rows]
    if "--json" in arguments:
        print(json.dumps({"tables": [one.as_json() for one in shown]}, ensure_ascii=False, allow_nan=False))
    elif "--markdown" in arguments:
        print(markdown(shown))
    else:
        console = WholeConsole(width=WIDTH)
        for one in shown:
            console.print(table(one.title, [column.title for column in one.columns], one.lines()))
