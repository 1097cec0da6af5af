"""Tables of cohorts and their tests, for the terminal and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import asdict

from eirkit.records.analysis import CohortRow, CohortTest
from eirkit.report.document import Section
from eirkit.report.logs.sentences import goal_is_known
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.vestige.measures import COHORT_MEASURES, LOG_MEASURES

NOTES = "; "  # between the notes on a test
UNCOVERED = "runs of n that touched no goal file and count with demand 0: missing coverage, not lack of need"


def cohort_table(rows: Sequence[CohortRow]) -> Table:
    """Return the cohorts with their need and the area by which it goes with failure."""
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


def cohort_tests(name: str, tests: Sequence[CohortTest]) -> Iterator[Section]:
    """Yield the tests of one cohort, and what did not enter them."""
    shown = [test for test in tests if test.estimate is not None and not _is_quantile(test)]
    if shown:
        noted = [f"note on {', '.join(names)}: {note}" for names, note in _notes(shown)]
        yield Section("", (), (_test_table(name, shown),))
        yield Section("", (*noted, *_left_out(shown)))
    if quantiles := [test for test in tests if _is_quantile(test)]:
        yield Section("", (), (_quantile_table(name, quantiles),))
        yield Section("", tuple(_left_out(quantiles)))
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
    return Table(f"tests-{name}", f"Tests on {name}", columns, tuple(rows), " ".join(_explained(tests)))


def _uncovered(test: CohortTest) -> int | None:
    return test.details.uncovered or None


def _explained(tests: Sequence[CohortTest]) -> Iterator[str]:
    """Yield what the tests show; a scale or a limit that several share is said once."""
    for limits, alike in _grouped(tests, lambda test: test.does_not_show):
        said: list[str] = []
        for scale, group in _grouped(alike, lambda test: test.scale):
            yield from said
            yield from (f"{test.name} shows {test.shows}." for test in group)
            said = [f"{'Each is' if len(group) > 1 else 'It is'} the {scale}."]
        shown = f"{'None of them shows' if len(alike) > 1 else 'It does not show'} {limits}."
        yield " ".join([*said, *([shown] if limits else [])])


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
    limits = f"It does not show {tests[0].does_not_show}."
    return Table(f"later-{name}", f"Held at the peak for later use, {name}", columns, rows, limits)


def _missing(tests: Sequence[CohortTest], shown: Sequence[CohortTest]) -> Iterator[str]:
    """Yield why there is no estimate, each reason once with the tests that it stops; not what was noted before."""
    noted = {part for test in shown for part in test.note.split(NOTES)}
    reasons: dict[str, list[str]] = {}
    for test in tests:
        own = NOTES.join(part for part in test.note.split(NOTES) if part not in noted)
        reasons.setdefault(own or test.note, []).append(test.name)
    for reason, names in reasons.items():
        yield f"no estimate of {', '.join(names)}: {reason}"


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
