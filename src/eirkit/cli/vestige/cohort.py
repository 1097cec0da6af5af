"""`eirkit vestige cohort` and `vestige query`: statistics over analyzed runs, and SQL over their tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec import to_builtins

from eirkit.cli.command import Show, command, document_options, option
from eirkit.records.analysis import CohortKey, CohortStatistics
from eirkit.report.document import Document, Section
from eirkit.report.logs.cohort_tables import cohort_table, cohort_tests
from eirkit.report.logs.sentences import cohort_sentence
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.vestige.cohorts.cohort import ANALYSES, BY
from eirkit.vestige.corpus.query import QueryResult
from eirkit.vestige.results.analysis import Analysis

ROWS = 100  # that a query prints
EVERY_ROW = 1 << 40
_PATH = click.Path(path_type=Path)


@command(example="eirkit vestige cohort out/analysis --by model")
@click.argument("folders", metavar="DIR...", type=_PATH, nargs=-1, required=True)
@option("--by", type=click.Choice(BY), default="all", show_default=True, help="How the runs are split into cohorts.")
@option(
    "--suite",
    type=_PATH,
    metavar="FILE",
    help="TOML with [cohort]: tests fixed in advance, settings.",
)
@option("--only", type=click.Choice(tuple(ANALYSES)), multiple=True, help="Run this analysis only. Can be repeated.")
@option("--seed", type=click.IntRange(min=0), help="Seed of bootstraps and posteriors.  [default: 0]")
@document_options
def cohort(
    folders: tuple[Path, ...],
    by: CohortKey,
    suite: Path | None,
    only: tuple[str, ...],
    seed: int | None,
    show: Show,
) -> None:
    """Compare failed and resolved runs of the analyses in DIR.

    Runs of several folders are pooled unless --by splits them.
    """
    found = Analysis(folders[0]).cohorts(*folders[1:], by=by, suite=suite, only=only, seed=seed)
    show(_document(found, folders[0]))


def _document(found: CohortStatistics, folder: Path) -> Document:
    rows = found.cohorts
    answer = tuple(f"{row.cohort}: {cohort_sentence(row)}" if len(rows) > 1 else cohort_sentence(row) for row in rows)
    sections = [Section("", (), (cohort_table(rows),))]
    for row in rows:
        sections += cohort_tests(row.cohort, [test for test in found.tests if test.cohort == row.cohort])
    sections.append(Section("", tuple(_plan_words(found))))
    then = f"eirkit report {quote(str(folder))}"
    return Document("vestige-cohort", "Cohort statistics", answer, to_builtins(found), tuple(sections), next=then)


def _plan_words(found: CohortStatistics) -> Iterator[str]:
    plan = found.plan
    if found.repeated_runs:
        runs = counted(found.repeated_runs, "run occurs", "runs occur")
        yield f"{runs} more than once; every interval takes them for new runs"
    if not plan.planned:
        yield "nothing was fixed in advance: every test is exploratory; a suite file (--suite) fixes some"
        return
    when = f" on {plan.recorded}" if plan.recorded else ""
    family = "Holm over these"
    if plan.not_run:
        family += f", {len(plan.not_run):,} that {'was' if len(plan.not_run) == 1 else 'were'} not run among them"
    yield f"fixed in advance{when}: {', '.join(plan.planned)} (suite {plan.digest[:12]}); {family}"


@command("query", example='eirkit vestige query out/analysis "SELECT run_id, turns FROM runs"')
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("sql", metavar="SQL")
@option("--all", "everything", is_flag=True, help=f"Print all rows, not only the first {ROWS}.")
@document_options
def run_query(folder: Path, sql: str, everything: bool, show: Show) -> None:
    """Run one SELECT over the tables of the analysis in DIR.

    Tables: runs, calls, cuts, states, files, actions, rereads, exposures, gaps, clips, hidden_lines, anomalies, breaks,
    dropped, instructions, entities; the first column of each is run_id. `SELECT * FROM cuts LIMIT 1` shows columns.
    """
    show(_query_document(folder, Analysis(folder).query(sql, EVERY_ROW if everything else ROWS)))


def _query_document(folder: Path, answer: QueryResult) -> Document:
    listed = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    data = {"rows": listed, "cut": answer.cut}
    said = counted(len(answer.rows), "row") + ("; there are more, see --all." if answer.cut else ".")
    then = f"eirkit report {quote(str(folder))}"
    # A query may name two columns alike, so a repeated name gets a number in its key.
    names = answer.columns
    keys = [name if names.index(name) == place else f"{name}_{place + 1}" for place, name in enumerate(names)]
    columns = tuple(Column(key, name) for key, name in zip(keys, names, strict=True))
    rows = tuple(dict(zip(keys, map(_cell, row), strict=True)) for row in answer.rows)
    section = Section("", (), (Table("rows", "Rows", columns, rows),))
    return Document("vestige-query", "Query", (said,), data, (section,), next=then)


def _cell(value: Any) -> Cell:
    plain = _plain(value)
    return str(plain) if isinstance(plain, list) else plain


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
