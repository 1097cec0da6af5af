"""`eirkit vestige query`: runs SQL over the tables of an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.cli.command import Show, command, document_options, option
from eirkit.logs.corpus.query import QueryResult, query
from eirkit.show.document import Document, Section
from eirkit.show.table import Cell, Column, Table, counted


@command("query", example='eirkit vestige query out/analysis "SELECT run_id, turns FROM runs"')
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("sql", metavar="SQL")
@option("--rows", type=click.IntRange(1), default=100, show_default=True, help="Most rows to print.")
@document_options
def run_query(folder: Path, sql: str, rows: int, show: Show) -> None:
    """Run one SELECT over the tables of the analysis in DIR.

    Tables: runs, calls, cuts, states, files, actions, rereads, exposures, gaps, clips, hidden_lines, anomalies, breaks,
    dropped, entities; the first column of each is run_id. To see the columns of one: SELECT * FROM cuts LIMIT 1.
    """
    answer = query(folder, sql, rows)
    listed = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    show(_query_document(folder, answer, {"rows": listed, "cut": answer.cut}))


def _query_document(folder: Path, answer: QueryResult, data: dict[str, Any]) -> Document:
    said = counted(len(answer.rows), "row") + ("; there are more, see --rows." if answer.cut else ".")
    then = f"eirkit report {quote(str(folder))}"
    section = Section("", (), (_table(answer.columns, answer.rows),))
    return Document("vestige-query", "Query", (said,), data, (section,), next=then)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    # A query may name two columns alike, so a repeated name gets a number in its key.
    keys = [name if names.index(name) == place else f"{name}_{place + 1}" for place, name in enumerate(names)]
    columns = tuple(Column(key, name) for key, name in zip(keys, names, strict=True))
    return Table("rows", "Rows", columns, tuple(dict(zip(keys, map(_cell, row), strict=True)) for row in rows))


def _cell(value: Any) -> Cell:
    plain = _plain(value)
    return plain if isinstance(plain, (str, int, float, bool)) or plain is None else str(plain)


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
