"""The page of a comparison: which side is ahead and by how much, cell by cell, and what changed between the two."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from eirkit.logs.cohorts.cohort import COHORT_MEASURES
from eirkit.show.chart import Axis, Chart, Series
from eirkit.show.comparison.measures import measure_of, title_of
from eirkit.show.comparison.pairs import Comparison, Difference
from eirkit.show.comparison.verdict import fates_sentence, grouped, shown_difference, verdict_of
from eirkit.show.logs.cohorts import GOAL_COLUMNS
from eirkit.show.page import Headline, Listing, Page, Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table

MOST_ROWS = 40  # of a chart


def comparison_page(found: Comparison, a: Path, b: Path) -> Page:
    """Return the page of a comparison."""
    sections = tuple(section for section in _sections(found, a, b) if section is not None)
    title = f"{found.b} against {found.a}"
    return Page(title, headline_of(found), sections, "a comparison, paired", found.as_json(), "comparison")


def headline_of(found: Comparison) -> Headline:
    """Return the first measure's difference, and whether chance would do."""
    first = found.overall[0]
    sentences = [verdict_of(found), *filter(None, [fates_sentence(found)])]
    sentences += [f"Mind: {warning}." for warning in found.warnings]
    return Headline(
        shown_difference(first), f"{measure_of(first.measure).label}, {found.b} − {found.a}", tuple(sentences)
    )


def _sections(found: Comparison, a: Path, b: Path) -> Iterator[Section | None]:
    how = "with a 95% interval: whole tasks are drawn again, and their signs flipped for p"
    told = f"Every difference is {found.b} − {found.a} {how}."
    yield Section("Differences over all pairs", (told,), tuple(_tables(found)))
    if found.parts:
        measure = found.overall[0].measure
        rows = [part for part in found.parts if part.measure == measure]
        items = (_chart(rows, measure), _table("by-cell", "By cell", found, found.parts))
        yield Section("Differences by cell", (), items if len(rows) > 1 else items[1:])
    yield _sides(found)
    columns = (Column("name", "setting"), Column("a", found.a), Column("b", found.b))
    table = Table("changes", "Settings that differ", columns, tuple(asdict(change) for change in found.changes))
    words = () if found.changes else ("Nothing that the manifests record.",)
    yield Section("What changed", words, (table,) if found.changes else ())
    command = shlex.join(["eirkit", "compare", str(a), str(b), "--out", "comparison.html"])
    yield Section("How to make this again", (), (Listing("command", "The command", command),))


def _tables(found: Comparison) -> Iterator[Table]:
    for group, rows in grouped(found.overall):
        yield _table(group.id, title_of(group), found, rows)


def _table(name: str, title: str, found: Comparison, rows: Sequence[Difference]) -> Table:
    columns = (
        *((Column("where", "cell"),) if any(row.where for row in rows) else ()),
        Column("label", "measure"),
        Column("pairs", "pairs"),
        Column("clusters", "tasks"),
        Column("a", found.a, 3),
        Column("b", found.b, 3),
        Column("difference", "difference", 3),
        Column("low", "from", 3),
        Column("high", "to", 3),
        Column("p", "p", 3, least=0.001),
    )
    return Table(name, title, columns, tuple(row.as_json() for row in rows))


def _chart(rows: Sequence[Difference], measure: str) -> Chart:
    chosen = sorted(rows, key=lambda row: row.difference)[:MOST_ROWS]
    series = Series(
        "difference",
        "points",
        tuple(row.where for row in chosen),
        tuple(row.difference for row in chosen),
        tuple(row.low for row in chosen),
        tuple(row.high for row in chosen),
    )
    none = Series("no difference", "rule", (chosen[0].where,), (0.0,), dashed=True)
    apart = sum(row.low is not None and row.high is not None and not row.low <= 0 <= row.high for row in chosen)
    told = f"In {apart} of {counted(len(chosen), 'cell')} zero lies outside the interval."
    one = measure_of(measure)
    axes = Axis("cell", "category"), Axis(f"difference in {one.heading}", percent=one.unit == "share")
    return Chart("differences", f"Difference in {one.label}, with 95% intervals", told, *axes, (series, none))


def _sides(found: Comparison) -> Section | None:
    if not found.sides:
        return None
    columns = (
        Column("cohort", "folder"),
        Column("runs", "runs"),
        Column("resolved", "resolved"),
        *GOAL_COLUMNS,
        Column.of(COHORT_MEASURES["failure_auc"]),
        Column("auc_low", "from", 3, meaning="95% interval"),
        Column("auc_high", "to", 3),
    )
    return Section("Each side by itself", (), (Table("sides", "Cohorts", columns, found.sides),))
