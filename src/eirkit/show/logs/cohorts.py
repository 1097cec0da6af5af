"""Sections of the page for cohort statistics: failure AUC by cohort, tests, and what each does and does not show."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.logs.measures import COHORT_MEASURES
from eirkit.show.chart import Axis, Chart, Series
from eirkit.show.logs.analysed import Analysed
from eirkit.show.logs.sentences import GOAL_COLUMNS, goal_is_known
from eirkit.show.page import Item, Section
from eirkit.show.phrases import listed
from eirkit.show.table import Column, Table

Test = Mapping[str, Any]


def cohort_sections(found: Analysed, where: str) -> Iterator[Section]:
    """Yield the sections on the failure AUC of each cohort and on the tests."""
    if found.cohorts is None:
        return
    yield _areas(found.cohorts["cohorts"])
    tests = [test for test in found.cohorts["tests"] if not test["name"].startswith("used-later-")]
    if tests:
        yield _tests(tests)
    else:
        words = f"Not run on so many runs for a page; run `eirkit vestige cohort {shlex.quote(where)}`."
        yield Section("Tests", (words,))


def _areas(rows: Sequence[Test]) -> Section:
    columns = (
        Column("cohort", "cohort"),
        Column("runs", "runs"),
        Column("resolved", "resolved"),
        Column("failed", "failed"),
        Column("unknown", "unknown"),
        Column("tasks", "tasks"),
        *GOAL_COLUMNS,
        Column.of(COHORT_MEASURES["covered_failure_auc"]),
        Column("covered_auc_low", "from", 3, meaning="95% interval"),
        Column("covered_auc_high", "to", 3),
        Column.of(COHORT_MEASURES["failure_auc"]),
    )
    table = Table("cohorts", "Cohorts", columns, tuple(map(_with_area, rows)))
    notes = tuple(f"{row['cohort']}: {row['note']}" for row in rows if row["note"])
    return Section("Does need go with failure?", notes, (table,))


def _with_area(row: Test) -> Test:
    """Return the table row of a cohort; runs over entities have no goal files, so their AUC is over all runs."""
    if row["unit"] == "tokens":
        unknown = {} if row["covered_runs"] else {"mean_peak_tokens": None}
        return {**row, **unknown, **({} if goal_is_known(row) else {"goal_access": None})}
    own = {"covered_failure_auc": "failure_auc", "covered_auc_low": "auc_low", "covered_auc_high": "auc_high"}
    return {**row, **{name: row[whole] for name, whole in own.items()}, "failure_auc": None}


def _tests(tests: Sequence[Test]) -> Section:
    known = [test for test in tests if test["estimate"] is not None]
    rows = [{**test, "uncovered": test["details"].get("uncovered") or None} for test in known]
    uncovered = Column(
        "uncovered", "of these uncovered", meaning="touched no goal file and enter with 0; not lack of need"
    )
    several = len({test["cohort"] for test in tests}) > 1
    columns = (
        *((Column("cohort", "cohort"),) if several else ()),
        Column("name", "test"),
        Column("estimate", "estimate", 3, least=0.001),
        Column("low", "from", 3, least=0.001, meaning="95% interval"),
        Column("high", "to", 3, least=0.001),
        Column("p", "p", 3, least=0.001),
        Column("n", "n"),
        *((uncovered,) if any(row.get(uncovered.key) for row in rows) else ()),
        Column("scale", "scale"),
    )
    if not known:
        return Section("Tests", (f"These runs are too few or too alike: none of {len(tests)} tests has an estimate.",))
    words = "Nothing was fixed in advance, so every test is exploratory; `eirkit vestige cohort --suite` fixes some."
    tables = (Table("tests", "Tests", columns, tuple(rows)), _meanings(known), _missing(tests))
    items: tuple[Item, ...] = (*_ratio_chart(known), *(table for table in tables if table.rows))
    return Section("Tests", (words,), items)


def _meanings(tests: Sequence[Test]) -> Table:
    """Return the table of what tests show and do not show; tests with the same interpretation share a row."""
    readings: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        readings.setdefault((test["shows"], test["does_not_show"]), []).append(test["name"])
    columns = (Column("tests", "test"), Column("shows", "shows"), Column("not", "does not show"))
    rows = tuple(
        {"tests": ", ".join(dict.fromkeys(names)), "shows": shows, "not": limits}
        for (shows, limits), names in readings.items()
    )
    return Table("readings", "How to read the tests", columns, rows)


def _ratio_chart(tests: Sequence[Test]) -> tuple[Chart, ...]:
    """Return a chart of ratios with their intervals; a ratio of 1 means no association."""
    shown = [test for test in tests if "ratio" in test["scale"] and test["low"] is not None and test["low"] > 0]
    if not shown:
        return ()
    apart = [test["name"] for test in shown if not test["low"] <= 1 <= test["high"]]
    told = f"Intervals without 1, which is no association: {listed(apart) if apart else 'none'}."
    points = Series(
        "ratio",
        "points",
        tuple(test["name"] for test in shown),
        tuple(test["estimate"] for test in shown),
        tuple(test["low"] for test in shown),
        tuple(test["high"] for test in shown),
    )
    none = Series("no association", "rule", (shown[0]["name"],), (1.0,), dashed=True)
    axes = Axis("test", "category"), Axis("odds or rate ratio", "log")
    return (Chart("ratios", "Ratios with 95% intervals", told, *axes, (points, none)),)


def _missing(tests: Sequence[Test]) -> Table:
    """Return the table of reasons for missing estimates, each with the tests it applies to."""
    reasons: dict[str, list[str]] = {}
    for test in tests:
        if test["estimate"] is None:
            reasons.setdefault(test["note"], []).append(test["name"])
    rows = tuple({"reason": reason, "tests": ", ".join(dict.fromkeys(names))} for reason, names in reasons.items())
    columns = (Column("reason", "why there is no estimate"), Column("tests", "tests"))
    return Table("no-estimate", "Tests without an estimate", columns, rows)
