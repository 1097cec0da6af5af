"""`eirkit vestige cohort` and `vestige query`: statistics over analysed runs, and SQL over their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from eirkit.cli.command import Show, command, document_options, option
from eirkit.records.analysis import CohortKey, CohortRow, CohortStatistics, CohortTest
from eirkit.report.document import Document, Section
from eirkit.report.logs.sentences import cohort_sentence, goal_is_known
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.vestige.cohorts.cohort import ANALYSES, BY
from eirkit.vestige.cohorts.finding import Resampled
from eirkit.vestige.corpus.query import QueryResult
from eirkit.vestige.measures import COHORT_MEASURES, LOG_MEASURES
from eirkit.vestige.results.analysis import Analysis

NOTES = "; "  # between the notes on a test
UNCOVERED = "runs of n that touched no goal file and count with demand 0: missing coverage, not lack of need"
_PATH = click.Path(path_type=Path)


@command(example="eirkit vestige cohort out/analysis --by model")
@click.argument("folders", metavar="DIR...", type=_PATH, nargs=-1, required=True)
@option("--by", type=click.Choice(BY), default="all", show_default=True, help="How the runs are split into cohorts.")
@option("--suite", type=_PATH, metavar="FILE", help="TOML with [cohort] planned = [the tests fixed in advance].")
@option("--base-lines", type=_PATH, metavar="FILE", help="Lines of each task's gold files: JSON, or CSV task_id,lines.")
@option(
    "--disjoint",
    type=_PATH,
    multiple=True,
    metavar="DIR",
    help="An analysis of other runs, to estimate how hard tasks are. Can be repeated.",
)
@option("--only", type=click.Choice(tuple(ANALYSES)), multiple=True, help="Run this analysis only. Can be repeated.")
@option(
    "--resample",
    type=click.Choice(("tasks", "runs")),
    help="What the bootstraps of the gap analysis resample.  [default: tasks]",
)
@option("--seed", type=click.IntRange(min=0), help="Seed of bootstraps and posteriors.  [default: 0]")
@document_options
def cohort(
    folders: tuple[Path, ...],
    by: CohortKey,
    suite: Path | None,
    base_lines: Path | None,
    disjoint: tuple[Path, ...],
    only: tuple[str, ...],
    resample: Resampled | None,
    seed: int | None,
    show: Show,
) -> None:
    """Compare failed and resolved runs of the analyses in DIR.

    Runs of several folders are pooled unless --by splits them.
    """
    found = Analysis(folders[0]).cohorts(
        *folders[1:],
        by=by,
        suite=suite,
        base_lines=base_lines,
        disjoint=disjoint,
        only=only,
        resample=resample,
        seed=seed,
    )
    show(_document(found, folders[0]))


def _document(found: CohortStatistics, folder: Path) -> Document:
    rows = found.cohorts
    answer = tuple(f"{row.cohort}: {cohort_sentence(row)}" if len(rows) > 1 else cohort_sentence(row) for row in rows)
    sections = [Section("", (), (_cohort_table(rows),))]
    for row in rows:
        sections += _test_sections(row.cohort, [test for test in found.tests if test.cohort == row.cohort])
    sections.append(Section("", tuple(_plan_words(found))))
    then = f"eirkit report {quote(str(folder))}"
    return Document("vestige-cohort", "Cohort statistics", answer, to_builtins(found), tuple(sections), next=then)


def _cohort_table(rows: Sequence[CohortRow]) -> Table:
    unknown = any(row.unknown for row in rows)
    columns = (
        Column("cohort", "cohort", role="name"),
        Column("runs", "runs"),
        Column("resolved", "resolved"),
        *((Column("unknown", "unknown"),) if unknown else ()),
        Column("tasks", "tasks"),
        Column("goal_access", LOG_MEASURES["goal_accessed"].label, percent=True, priority=1),
        Column("peak", f"mean {LOG_MEASURES['peak_demand_tokens'].label}", figures=True),
        Column("area", COHORT_MEASURES["covered_failure_auc"].label),
        Column("interval", "95%", figures=True),
    )
    shown = tuple(
        {
            **asdict(row),
            "goal_access": row.goal_access if goal_is_known(row) else None,
            "peak": _peak(row),
            "area": _area(row)[0],
            "interval": _area(row)[1],
        }
        for row in rows
    )
    notes = [*_uncovered_notes(rows), *(f"{row.cohort}: {row.note}" for row in rows if row.note)]
    return Table("cohorts", "Cohorts", columns, shown, ". ".join(notes))


def _test_sections(name: str, tests: Sequence[CohortTest]) -> Iterator[Section]:
    shown = [test for test in tests if test.estimate is not None and not _is_quantile(test)]
    if shown:
        yield Section("", (), (_test_table(name, shown),))
        yield Section("", tuple(_explained(shown)))
    if quantiles := [test for test in tests if _is_quantile(test)]:
        yield Section("", (), (_quantile_table(name, quantiles),))
        limits = f"It does not show {quantiles[0].does_not_show}."
        yield Section("", (limits, *_left_out(quantiles)))
    if missing := tuple(_missing([test for test in tests if test.estimate is None], shown)):
        yield Section("", missing)


def _test_table(name: str, tests: Sequence[CohortTest]) -> Table:
    planned, uncovered = any(test.planned for test in tests), any(map(_uncovered, tests))
    columns = (
        Column("name", "test", role="name"),
        Column("estimate", "estimate", figures=True),
        Column("interval", "95%", figures=True),
        Column("p", "p", least=0.001),
        *((Column("p_holm", "p, Holm", least=0.001),) if planned else ()),
        Column("n", "n"),
        *((Column("uncovered", "uncovered", meaning=UNCOVERED, priority=1),) if uncovered else ()),
        *((Column("fixed", "fixed", priority=2),) if planned else ()),
    )
    rows: list[dict[str, Cell]] = [
        {
            **asdict(test),
            "estimate": _number(test.estimate),
            "interval": _interval(test.low, test.high),
            "uncovered": _uncovered(test),
            "fixed": "planned" if test.planned else "exploratory",
        }
        for test in tests
    ]
    return Table(f"tests-{name}", f"Tests on {name}", columns, tuple(rows))


def _uncovered(test: CohortTest) -> int | None:
    return test.details.uncovered or None


def _explained(tests: Sequence[CohortTest]) -> Iterator[str]:
    """Yield what the tests show; a scale, a limit or a note that several share is said once."""
    for limits, alike in _grouped(tests, lambda test: test.does_not_show):
        said: list[str] = []
        for scale, group in _grouped(alike, lambda test: test.scale):
            yield from said
            yield from (f"{test.name} shows {test.shows}." for test in group)
            said = [f"{'Each is' if len(group) > 1 else 'It is'} the {scale}."]
        shown = f"{'None of them shows' if len(alike) > 1 else 'It does not show'} {limits}."
        yield " ".join([*said, *([shown] if limits else [])])
    for names, note in _notes(tests):
        yield f"note on {', '.join(names)}: {note}"
    yield from _left_out(tests)


def _left_out(tests: Sequence[CohortTest]) -> Iterator[str]:
    """Yield what did not enter tests that have an estimate; tests that left out the same are named together."""
    together: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for test in tests:
        left_out = tuple((part.reason, part.rows) for part in test.excluded)
        together.setdefault(left_out, []).append(test.name)
    for left_out, names in together.items():
        if left_out:
            said = ", ".join(f"{rows:,} ({reason})" for reason, rows in left_out)
            yield f"left out of {', '.join(names)}: {said}"


def _grouped(tests: Sequence[CohortTest], key: Callable[[CohortTest], str]) -> Iterable[tuple[str, list[CohortTest]]]:
    groups: dict[str, list[CohortTest]] = {}
    for test in tests:
        groups.setdefault(key(test), []).append(test)
    return groups.items()


def _notes(tests: Iterable[CohortTest]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each note once with the tests that it is on; notes on the same tests together."""
    tests_of: dict[str, list[str]] = {}
    for test in tests:
        for part in filter(None, test.note.split(NOTES)):
            tests_of.setdefault(part, []).append(test.name)
    together: dict[tuple[str, ...], list[str]] = {}
    for part, names in tests_of.items():
        together.setdefault(tuple(names), []).append(part)
    return ((names, NOTES.join(parts)) for names, parts in together.items())


def _is_quantile(test: CohortTest) -> bool:
    return test.name.startswith("used-later-") and test.estimate is not None


def _quantile_table(name: str, tests: Sequence[CohortTest]) -> Table:
    columns = (
        Column("scale", "quantile", role="text"),
        Column("estimate", "value", 1),
        Column("interval", "95%", figures=True),
        Column("n", "runs"),
    )
    rows = tuple(
        {"scale": test.scale, "estimate": test.estimate, "n": test.n, "interval": _interval(test.low, test.high)}
        for test in tests
    )
    return Table(f"later-{name}", f"Held at the peak for later use, {name}", columns, rows)


def _missing(tests: Sequence[CohortTest], shown: Sequence[CohortTest]) -> Iterator[str]:
    """Yield why there is no estimate, each reason once with the tests that it stops; not what was noted before."""
    noted = {part for test in shown for part in test.note.split(NOTES)}
    reasons: dict[str, list[str]] = {}
    for test in tests:
        own = NOTES.join(part for part in test.note.split(NOTES) if part not in noted)
        reasons.setdefault(own or test.note, []).append(test.name)
    for reason, names in reasons.items():
        yield f"no estimate of {', '.join(names)}: {reason}"


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


def _area(row: CohortRow) -> tuple[float | None, str | None]:
    """Return the failure AUC of runs whose need is known, with its interval."""
    if row.unit == "tokens":
        return row.covered_failure_auc, _interval(row.covered_auc_low, row.covered_auc_high)
    return row.failure_auc, _interval(row.auc_low, row.auc_high)


def _uncovered_notes(rows: Sequence[CohortRow]) -> Iterator[str]:
    """Yield what the area would be if runs without coverage had needed nothing."""
    for row in rows:
        left = row.auc_n - (row.covered_auc_n or 0) if row.unit == "tokens" else 0
        if left and row.failure_auc is not None:
            ends = _interval(row.auc_low, row.auc_high)
            who = counted(left, "run that touched no goal file", "runs that touched no goal file")
            said = f"AUC {row.failure_auc:.3f}{f' ({ends})' if ends else ', without an interval'}"
            yield f"{row.cohort}: with {who} as needing 0, {said}"


def _peak(row: CohortRow) -> str | None:
    if row.unit == "tokens" and not row.covered_runs:
        return None
    if row.mean_peak_tokens is not None:
        return f"{row.mean_peak_tokens:,.0f} tokens"
    return None if row.mean_peak_entities is None else f"{row.mean_peak_entities:.1f} entities"


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{_number(low)} … {_number(high)}"


def _number(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


@command("query", example='eirkit vestige query out/analysis "SELECT run_id, turns FROM runs"')
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("sql", metavar="SQL")
@option("--rows", type=click.IntRange(1), default=100, show_default=True, help="Most rows to print.")
@document_options
def run_query(folder: Path, sql: str, rows: int, show: Show) -> None:
    """Run one SELECT over the tables of the analysis in DIR.

    Tables: runs, calls, cuts, states, files, actions, rereads, exposures, gaps, clips, hidden_lines, anomalies, breaks,
    dropped, instructions, entities; the first column of each is run_id. `SELECT * FROM cuts LIMIT 1` shows columns.
    """
    show(_query_document(folder, Analysis(folder).query(sql, rows)))


def _query_document(folder: Path, answer: QueryResult) -> Document:
    listed = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
    data = {"rows": listed, "cut": answer.cut}
    said = counted(len(answer.rows), "row") + ("; there are more, see --rows." if answer.cut else ".")
    then = f"eirkit report {quote(str(folder))}"
    section = Section("", (), (_query_table(answer.columns, answer.rows),))
    return Document("vestige-query", "Query", (said,), data, (section,), next=then)


def _query_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
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
