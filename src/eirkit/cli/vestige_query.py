"""`eirkit vestige query`: SQL over the tables of an analysis."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.fitting import expanded, width_of
from eirkit.cli.output import emit, json_option, table
from eirkit.logs.corpus.query import QueryResult, query
from eirkit.show.phrases import counted


@click.command("query")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("sql")
@click.option("--rows", type=click.IntRange(1), default=100, show_default=True, help="At most so many are printed.")
@json_option
def run_query(folder: Path, sql: str, rows: int, as_json: bool) -> None:
    """Run one SELECT over the tables of the analysis in FOLDER.

    Tables: runs, cuts, states, files, actions, rereads, exposures, gaps, clips, hidden_lines, anomalies, breaks,
    dropped, entities; each begins with run_id. `DESCRIBE` is no SELECT: `SELECT * FROM cuts LIMIT 1` shows columns.
    """
    answer = query(folder, sql, rows)
    listed = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    emit({"rows": listed, "cut": answer.cut}, as_json, lambda console: _render(console, answer))


def _render(console: Console, answer: QueryResult) -> None:
    whole = table(counted(len(answer.rows), "row"), answer.columns, answer.rows)
    if width_of(console, whole) <= console.width:
        console.print(whole)
    else:
        for line in expanded(answer.columns, answer.rows):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if answer.cut:
        console.print("there are more; ask for them with --rows", markup=False, highlight=False)


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
