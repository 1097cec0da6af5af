"""The page of a comparison: which side is ahead and by how much, cell by cell, and what changed between the two."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from eirkit.report.chart import Axis, Chart, Series
from eirkit.report.comparison import Comparison, Difference
from eirkit.report.page import Headline, Listing, Page, Section
from eirkit.report.table import Column, Table
from eirkit.report.wording import counted, number, points, share

MOST_ROWS = 40  # of a chart
SHARES = ("accuracy", "missed", "task right", "missing state", "from an earlier error", "own mistake")
SHARES_OF_RUNS = ("failed", "goal reached", "any rework")
LOWER_IS_BETTER = ("missed", "failed", "missing state", "from an earlier error", "own mistake", "any rework")


def comparison_page(found: Comparison, a: Path, b: Path) -> Page:
    """Return the page of a comparison."""
    sections = tuple(section for section in _sections(found, a, b) if section is not None)
    title = f"{found.b} against {found.a}"
    return Page(title, headline_of(found), sections, "a comparison, paired", found.as_json(), "comparison")


def headline_of(found: Comparison) -> Headline:
    """Return the first measure's difference, and whether chance would do."""
    first = found.overall[0]
    amount = shown(first, first.difference, signed=True)
    better = (first.difference > 0) != (first.measure in LOWER_IS_BETTER)
    verdict = "the same as" if first.difference == 0 else "better than" if better else "worse than"
    sides = f"{shown(first, first.b)} against {shown(first, first.a)}"
    sentences = [f"{found.b} is {verdict} {found.a} in {first.measure}: {sides}, {_ends(first)}."]
    sentences.append(
        f"Paired over {counted(first.pairs, found.unit.removesuffix('s'))} of {counted(first.clusters, 'task')}."
    )
    sentences += [f"Mind: {warning}." for warning in found.warnings]
    return Headline(amount, f"{first.measure}, {found.b} − {found.a}", tuple(sentences))


def _ends(one: Difference) -> str:
    if one.low == one.high == 0:
        return "the same in every pair"
    if one.low is None or one.high is None:
        return "of a single task, so no interval is known"
    apart = "zero is outside it" if not one.low <= 0 <= one.high else "zero is inside it, so it may be chance"
    return f"95% interval {shown(one, one.low, signed=True)} to {shown(one, one.high, signed=True)}, {apart}"


def shown(one: Difference, value: float, *, signed: bool = False) -> str:
    """Return a figure of a measure as people read it: shares in per cent, their differences in points."""
    if one.measure in (*SHARES, *SHARES_OF_RUNS):
        return f"{points(value)} points" if signed else share(value)
    text = number(value, 1)
    return f"+{text}" if signed and value > 0 else text.replace("-", "−")


def _sections(found: Comparison, a: Path, b: Path) -> Iterator[Section | None]:
    yield Section("Differences over all pairs", (), (_table("overall", "All pairs", found, found.overall),))
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


def _table(name: str, title: str, found: Comparison, rows: Sequence[Difference]) -> Table:
    columns = (
        *((Column("where", "cell"),) if any(row.where for row in rows) else ()),
        Column("measure", "measure"),
        Column("pairs", "pairs"),
        Column("clusters", "tasks", meaning="drawn again as a whole"),
        Column("a", found.a, 3),
        Column("b", found.b, 3),
        Column("difference", "difference", 3, meaning=f"{found.b} − {found.a}"),
        Column("low", "from", 3, meaning="95% interval"),
        Column("high", "to", 3),
        Column("p", "p", 3, least=0.001, meaning="sign flips of tasks"),
    )
    return Table(name, title, columns, tuple(asdict(row) for row in rows))


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
    axes = Axis("cell", "category"), Axis(f"difference in {measure}", percent=measure in SHARES)
    return Chart("differences", f"Difference in {measure}, with 95% intervals", told, *axes, (series, none))


def _sides(found: Comparison) -> Section | None:
    if not found.sides:
        return None
    columns = (
        Column("cohort", "folder"),
        Column("runs", "runs"),
        Column("resolved", "resolved"),
        Column("goal_access", "goal access", 3, percent=True),
        Column("mean_peak_tokens", "mean peak", 0),
        Column("failure_auc", "failure AUC", 3),
        Column("auc_low", "from", 3, meaning="95% interval"),
        Column("auc_high", "to", 3),
    )
    return Section("Each side by itself", (), (Table("sides", "Cohorts", columns, found.sides),))
