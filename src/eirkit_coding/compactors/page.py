"""The result of `eirkit vestige compact` as a document and a page: which compactor keeps what was needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.records.lines import read_document
from eirkit.report.document import Axis, Chart, Document, Mark, Page, Section, Series, facts
from eirkit.report.folders import pages, refuse_others
from eirkit.report.table import Cell, Column, Table, counted, listed, points, share
from eirkit.vestige.measures import COMPACTOR_MEASURES
from eirkit_coding.compaction import MANIFEST, MANIFEST_SCHEMA

ORACLE, SHAM, NULL = "oracle", "random", "null"
_BOUNDS = (ORACLE, SHAM, NULL)
_KINDS = ("read_kept", "written_kept", "rules_verbatim", "rules_kept", "paths_kept", "names_kept")
_MOST_SHOWN = 60  # lines of the example

Row = Mapping[str, Any]


def compaction_document(data: Mapping[str, Any], *, next_command: str = "") -> Document:
    """Return the document of a benchmark from its JSON data."""
    rows = data["rows"]
    sections = [Section("", _notes(data), tuple(_tables(rows, data["budgets"])))]
    sections.append(Section("What each drops", (), tuple(_kinds(rows, budget) for budget in data["budgets"][-1:])))
    if failures := _failures(rows):
        sections.append(Section("Failures", (), (failures,)))
    if any(row["calls"] for row in rows):
        sections.append(Section("Own calls", (), (_spending(rows),)))
    details = [Section("Needed tokens kept, over tokens used", (), (_frontier(data),))]
    if data["example"]:
        details.append(_example(data["example"]))
    details.append(Section("What was read", (), (_facts(data),)))
    return Document(
        "vestige-compact",
        "Which compactor, at which budget",
        tuple(_answer(data)),
        data,
        tuple(sections),
        tuple(details),
        next=next_command,
    )


@pages.add("compaction-benchmark")
def compaction_page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a benchmark's folder."""
    refuse_others(others)
    found = read_document(folder / MANIFEST, MANIFEST_SCHEMA)
    return compaction_document(found["results"]).page()


def _answer(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer for each budget, the largest first: the best candidate, how sure that is, and the bounds."""
    if not data["needing_cuts"]:
        yield "At no cut was a line needed that the context showed, so compactors cannot be compared on these logs."
        return
    for budget in sorted(data["budgets"], reverse=True):
        own = {row["compactor"]: row for row in data["rows"] if row["budget"] == budget and row["cuts"]}
        candidates = [row for name, row in own.items() if name not in _BOUNDS]
        if not candidates:
            continue
        best = max(candidates, key=lambda row: row["kept_share"])
        if not best["kept_share"]:
            names = listed([row["compactor"] for row in candidates])
            yield f"At {budget:,} tokens none of {names} keeps a needed line."
            continue
        kept = f"{share(best['kept_share'])} of the needed tokens"
        chance = f"{points(best['gain_share'])} points against random lines of the same size"
        random = own[SHAM]["kept_share"] if SHAM in own else 0.0
        if best["kept_share"] < random:
            best_kept = f"{best['compactor']}, keeps {best['kept_share']:.1%} of the needed tokens"
            yield (
                f"At {budget:,} tokens random lines keep more, {random:.1%}, than every compactor tried but the "
                f"oracle; the best, {best_kept}, {chance}."
            )
            continue
        if best["gain_share"] < 0:
            yield f"At {budget:,} tokens {best['compactor']} keeps {kept}, {chance}; no other compactor keeps more."
            continue
        leaders = (data["rankings"][str(budget)] or {}).get("leaders") or [best["compactor"]]
        others = [name for name in leaders if name != best["compactor"]]
        unsure = f" {listed(others)} {'is' if len(others) == 1 else 'are'} not shown to keep less." if others else ""
        yield f"At {budget:,} tokens {best['compactor']} keeps most: {kept}, {chance}.{unsure}"


def _notes(data: Mapping[str, Any]) -> tuple[str, ...]:
    cuts, needing = counted(data["cuts"], "cut"), counted(data["needing_cuts"], "cut")
    return (
        f"{cuts} of {counted(data['runs'], 'run')} ({data['at']}); something in the context was needed at {needing}. "
        "A cut counts for a budget if its context is larger.",
    )


def _tables(rows: Sequence[Row], budgets: Sequence[int]) -> Iterator[Table]:
    """Yield a table for each budget; only the last explains the columns."""
    for budget in budgets:
        table = _table(rows, budget)
        plain = tuple(replace(column, meaning="", whole="") for column in table.columns)
        yield table if budget == budgets[-1] else replace(table, columns=plain)


def _table(rows: Sequence[Row], budget: int) -> Table:
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
    own = [row for row in rows if row["budget"] == budget]
    ordered = sorted(own, key=lambda row: (-(row["kept_share"] or 0.0), row["compactor"]))
    cells = tuple({**row, "kept_range": _range(row, "kept"), "gain": _gain(row)} for row in ordered)
    return Table(f"budget-{budget}", f"Budget {budget:,} tokens", columns, cells)


def _range(row: Row, name: str) -> str | None:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return None if low is None else f"{max(0.0, low):.0%}–{min(1.0, high):.0%}"


def _gain(row: Row) -> str | None:
    return None if row["gain_share"] is None else points(row["gain_share"])


def _kinds(rows: Sequence[Row], budget: int) -> Table:
    columns = (
        Column("compactor", "compactor", role="name"),
        *(Column.of(COMPACTOR_MEASURES[name], priority=place) for place, name in enumerate(_KINDS)),
    )
    own = tuple(row for row in rows if row["budget"] == budget)
    return Table(f"kinds-{budget}", f"Kept by kind, budget {budget:,} tokens", columns, own)


def _failures(rows: Sequence[Row]) -> Table | None:
    found: list[Mapping[str, Cell]] = [
        {"compactor": row["compactor"], "budget": row["budget"], "how": how, "cuts": one["cuts"], "first": one["first"]}
        for row in rows
        for how, one in row["failures"].items()
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


def _spending(rows: Sequence[Row]) -> Table:
    columns = (
        Column("compactor", "compactor", role="name"),
        Column("budget", "budget"),
        Column("calls", "calls"),
        Column("input_tokens", "input tokens"),
        Column("output_tokens", "output tokens"),
        Column("cost_usd", "$", 4),
    )
    return Table("spending", "Calls and cost by compactor", columns, tuple(row for row in rows if row["calls"]))


def _frontier(data: Mapping[str, Any]) -> Chart:
    """Return the frontier: the oracle above, random lines below, every compactor between or beneath them."""
    names = list(dict.fromkeys(row["compactor"] for row in data["rows"]))
    series: list[Series] = []
    mark: Mark = "line" if len({row["budget"] for row in data["rows"]}) > 1 else "points"  # a line needs two
    for name in sorted(names, key=lambda name: (name not in (ORACLE, SHAM), name)):
        own = sorted(
            (row for row in data["rows"] if row["compactor"] == name and row["cuts"]), key=lambda row: row["budget"]
        )
        if own and name != NULL:
            used = tuple(row["used_tokens"] for row in own)
            kept = tuple(row["kept_share"] for row in own)
            ends = [(row["kept_low"], row["kept_high"]) for row in own]
            low = tuple(None if one is None else max(0.0, one) for one, _ in ends)
            high = tuple(None if one is None else min(1.0, one) for _, one in ends)
            is_bound = name in _BOUNDS
            series.append(
                Series(name, mark, used, kept, () if is_bound else low, () if is_bound else high, dashed=is_bound)
            )
    said = "; ".join(
        f"{row['compactor']} at {row['budget']:,}: {share(row['kept_share'])}" for row in data["rows"] if row["cuts"]
    )
    return Chart(
        "frontier",
        "Needed tokens kept, over tokens used",
        f"Share of the needed tokens that each compactor kept, by the tokens it used: {said}.",
        Axis("tokens used, mean over cuts", low=0.0),
        Axis.of(COMPACTOR_MEASURES["kept_share"]),
        tuple(series),
        f"{ORACLE} is the best selection of lines and {SHAM} draws lines at random; both may fill the whole budget.",
    )


def _example(example: Mapping[str, Any]) -> Section:
    """Return one cut side by side: its needed lines, and who kept each."""
    names = list(dict.fromkeys(name for line in example["lines"] for name in line["kept"]))
    columns = (
        Column("file", "file", role="name"),
        Column("text", "needed line", role="text"),
        *(Column(f"kept-{place}", name, figures=True) for place, name in enumerate(names)),
    )
    rows = []
    for line in example["lines"][:_MOST_SHOWN]:
        marks = {f"kept-{place}": "kept" if line["kept"][name] else "–" for place, name in enumerate(names)}
        rows.append({"file": line["paths"][0], "text": line["text"].strip(), **marks})
    left = len(example["lines"]) - len(rows)
    words = (
        f"Run {example['run_id']} before turn {example['turn']}, budget {example['budget']:,} tokens: "
        f"the cut at which the compactors differ most.{f' {left} further lines are not shown.' if left else ''}",
    )
    return Section("One cut, line by line", words, (Table("example", "Needed lines", columns, tuple(rows)),))


def _facts(data: Mapping[str, Any]) -> Table:
    found = [
        ("runs", f"{data['runs']:,}, {data['uncut']:,} of them without a cut"),
        ("cuts", f"{data['cuts']:,}, at {data['at']}"),
        ("compactors", listed(data["compactors"], 20)),
        ("skipped", f"{counted(len(data['skipped']), 'part')} of the logs"),
    ]
    return facts("read", "", found)
