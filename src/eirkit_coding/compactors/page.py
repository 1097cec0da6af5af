"""The result of `eirkit vestige compact` as a document and a page: which compactor keeps what was needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import to_builtins

from eirkit.errors import InputFileError
from eirkit.report.document import Axis, Chart, Document, Mark, Page, Section, Series, facts
from eirkit.report.folders import pages, refuse_others
from eirkit.report.table import Cell, Column, Table, counted, listed, points, share
from eirkit.vestige.measures import COMPACTOR_MEASURES
from eirkit_coding.compactors.records import BenchmarkResults, CompactorRow, ExampleCut, read_manifest

ORACLE, SHAM, NULL = "oracle", "random", "null"
_BOUNDS = (ORACLE, SHAM, NULL)
_KINDS = ("read_kept", "written_kept", "rules_verbatim", "rules_kept", "paths_kept", "names_kept")
_MOST_SHOWN = 60  # lines of the example


def compaction_document(results: BenchmarkResults, *, next_command: str = "") -> Document:
    """Return the document of a benchmark from its JSON data."""
    rows = results.rows
    sections = [Section("", _notes(results), tuple(_tables(rows, results.budgets)))]
    sections.append(Section("What each drops", (), tuple(_kinds(rows, budget) for budget in results.budgets[-1:])))
    if failures := _failures(rows):
        sections.append(Section("Failures", (), (failures,)))
    if any(row.calls for row in rows):
        sections.append(Section("Own calls", (), (_spending(rows),)))
    details = [Section("Needed tokens kept, over tokens used", (), (_frontier(results),))]
    if results.example:
        details.append(_example(results.example))
    details.append(Section("What was read", (), (_facts(results),)))
    return Document(
        "vestige-compact",
        "Which compactor, at which budget",
        tuple(_answer(results)),
        to_builtins(results),
        tuple(sections),
        tuple(details),
        next=next_command,
    )


@pages.add("compaction-benchmark")
def compaction_page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a benchmark's folder."""
    refuse_others(others)
    results = read_manifest(folder).results
    if results is None:
        raise InputFileError(f"the benchmark in {folder} is not complete; repeat its command")
    return compaction_document(results).page()


def _answer(results: BenchmarkResults) -> Iterator[str]:
    """Yield the answer for each budget, the largest first: the best candidate, how sure that is, and the bounds."""
    if not results.needing_cuts:
        yield "At no cut was a line needed that the context showed, so compactors cannot be compared on these logs."
        return
    for budget in sorted(results.budgets, reverse=True):
        own = {row.compactor: row for row in results.rows if row.budget == budget and row.cuts}
        candidates = [row for name, row in own.items() if name not in _BOUNDS]
        if not candidates:
            continue
        best = max(candidates, key=lambda row: row.kept_share or 0.0)
        if not best.kept_share or best.gain_share is None:
            names = listed([row.compactor for row in candidates])
            yield f"At {budget:,} tokens none of {names} keeps a needed line."
            continue
        kept = f"{share(best.kept_share)} of the needed tokens"
        chance = f"{points(best.gain_share)} points against random lines of the same size"
        random = (own[SHAM].kept_share if SHAM in own else None) or 0.0
        if best.kept_share < random:
            best_kept = f"{best.compactor}, keeps {best.kept_share:.1%} of the needed tokens"
            yield (
                f"At {budget:,} tokens random lines keep more, {random:.1%}, than every compactor tried but the "
                f"oracle; the best, {best_kept}, {chance}."
            )
            continue
        if best.gain_share < 0:
            yield f"At {budget:,} tokens {best.compactor} keeps {kept}, {chance}; no other compactor keeps more."
            continue
        ranking = results.rankings[str(budget)]
        others = [name for name in ranking.leaders if name != best.compactor] if ranking else []
        unsure = f" {listed(others)} {'is' if len(others) == 1 else 'are'} not shown to keep less." if others else ""
        yield f"At {budget:,} tokens {best.compactor} keeps the most of the compactors tried: {kept}, {chance}.{unsure}"


def _notes(results: BenchmarkResults) -> tuple[str, ...]:
    cuts, needing = counted(results.cuts, "cut"), counted(results.needing_cuts, "cut")
    return (
        f"{cuts} of {counted(results.runs, 'run')} ({results.at}); something in the context was needed at {needing}. "
        "A cut counts for a budget if its context is larger.",
    )


def _tables(rows: Sequence[CompactorRow], budgets: Sequence[int]) -> Iterator[Table]:
    """Yield a table for each budget; only the last explains the columns."""
    for budget in budgets:
        table = _table(rows, budget)
        plain = tuple(replace(column, meaning="", whole="") for column in table.columns)
        yield table if budget == budgets[-1] else replace(table, columns=plain)


def _table(rows: Sequence[CompactorRow], budget: int) -> Table:
    kept, regret, gain = (COMPACTOR_MEASURES[name] for name in ("kept_share", "regret_share", "gain_share"))
    columns = (
        Column("compactor", "compactor", role="name"),
        Column.of(kept, percent=True),
        Column("kept_range", "95%", figures=True, meaning="simultaneous over compactors and budgets, clustered by run"),
        Column.of(regret, percent=True),
        Column("gain", gain.label, figures=True, meaning=f"{gain.meaning}, in percentage points"),
        Column("used_tokens", "used", 0, meaning=COMPACTOR_MEASURES["used_tokens_mean"].meaning),
        Column("failed", "failed", meaning=COMPACTOR_MEASURES["failed_compactions"].meaning),
        Column("cuts", "cuts"),
    )
    own = [row for row in rows if row.budget == budget]
    ordered = sorted(own, key=lambda row: (-(row.kept_share or 0.0), row.compactor))
    cells = tuple({**to_builtins(row), "kept_range": _range(row), "gain": _gain(row)} for row in ordered)
    return Table(f"budget-{budget}", f"Budget {budget:,} tokens", columns, cells)


def _range(row: CompactorRow) -> str | None:
    low, high = row.kept_low, row.kept_high
    return None if low is None or high is None else f"{max(0.0, low):.0%}–{min(1.0, high):.0%}"


def _gain(row: CompactorRow) -> str | None:
    return None if row.gain_share is None else points(row.gain_share)


def _kinds(rows: Sequence[CompactorRow], budget: int) -> Table:
    columns = (
        Column("compactor", "compactor", role="name"),
        *(Column.of(COMPACTOR_MEASURES[name], priority=place) for place, name in enumerate(_KINDS)),
    )
    own = tuple(to_builtins(row) for row in rows if row.budget == budget)
    return Table(f"kinds-{budget}", f"Kept by kind, budget {budget:,} tokens", columns, own)


def _failures(rows: Sequence[CompactorRow]) -> Table | None:
    found: list[Mapping[str, Cell]] = [
        {"compactor": row.compactor, "budget": row.budget, "how": how, "cuts": failures.cuts, "first": failures.first}
        for row in rows
        for how, failures in row.failures.items()
    ]
    columns = (
        Column("compactor", "compactor", role="name"),
        Column("budget", "budget"),
        Column("how", "failure", role="text"),
        Column("cuts", "cuts"),
        Column("first", "the first", role="text"),
    )
    note = "A compactor that fails at a cut keeps nothing there."
    return Table("failures", "Failures by compactor", columns, tuple(found), note) if found else None


def _spending(rows: Sequence[CompactorRow]) -> Table:
    columns = (
        Column("compactor", "compactor", role="name"),
        Column("budget", "budget"),
        Column("calls", "calls"),
        Column("input_tokens", "input tokens"),
        Column("output_tokens", "output tokens"),
        Column("cost_usd", "$", 4),
    )
    return Table(
        "spending", "Calls and cost by compactor", columns, tuple(to_builtins(row) for row in rows if row.calls)
    )


def _frontier(results: BenchmarkResults) -> Chart:
    """Return the frontier: the oracle above, random lines below, every compactor between or beneath them."""
    names = list(dict.fromkeys(row.compactor for row in results.rows))
    series: list[Series] = []
    mark: Mark = "line" if len({row.budget for row in results.rows}) > 1 else "points"  # a line needs two
    for name in sorted(names, key=lambda name: (name not in (ORACLE, SHAM), name)):
        own = sorted((row for row in results.rows if row.compactor == name and row.cuts), key=lambda row: row.budget)
        if own and name != NULL:
            used = tuple(row.used_tokens for row in own)
            kept = tuple(row.kept_share for row in own)
            low = tuple(None if row.kept_low is None else max(0.0, row.kept_low) for row in own)
            high = tuple(None if row.kept_high is None else min(1.0, row.kept_high) for row in own)
            is_bound = name in _BOUNDS
            series.append(
                Series(name, mark, used, kept, () if is_bound else low, () if is_bound else high, dashed=is_bound)
            )
    described = "; ".join(
        f"{row.compactor} at {row.budget:,}: {share(row.kept_share)}" for row in results.rows if row.cuts
    )
    return Chart(
        "frontier",
        "Needed tokens kept, over tokens used",
        f"Share of the needed tokens that each compactor kept, by the tokens it used: {described}.",
        Axis("tokens used, mean over cuts", low=0.0),
        Axis.of(COMPACTOR_MEASURES["kept_share"]),
        tuple(series),
        f"{ORACLE} is the best selection of lines and {SHAM} draws lines at random; both may fill the whole budget.",
    )


def _example(example: ExampleCut) -> Section:
    """Return one cut side by side: its needed lines, and who kept each."""
    names = list(dict.fromkeys(name for line in example.lines for name in line.kept))
    columns = (
        Column("file", "file", role="name"),
        Column("text", "needed line", role="text"),
        *(Column(f"kept-{place}", name, figures=True) for place, name in enumerate(names)),
    )
    rows = []
    for line in example.lines[:_MOST_SHOWN]:
        marks = {f"kept-{place}": "kept" if line.kept[name] else "–" for place, name in enumerate(names)}
        rows.append({"file": line.paths[0], "text": line.text.strip(), **marks})
    left = len(example.lines) - len(rows)
    words = (
        f"Run {example.run_id} before turn {example.turn}, budget {example.budget:,} tokens: "
        f"the cut at which the compactors differ most.{f' {left} further lines are not shown.' if left else ''}",
    )
    return Section("One cut, line by line", words, (Table("example", "Needed lines", columns, tuple(rows)),))


def _facts(results: BenchmarkResults) -> Table:
    found = [
        ("runs", f"{results.runs:,}, {results.uncut:,} of them without a cut"),
        ("cuts", f"{results.cuts:,}, at {results.at}"),
        ("compactors", listed(results.compactors, 20)),
        ("skipped", f"{counted(len(results.skipped), 'part')} of the logs"),
    ]
    return facts("read", "", found)
