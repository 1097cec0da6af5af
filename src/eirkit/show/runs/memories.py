"""External memories of a sweep, and what everything cost: summary rows come in, sections go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.findings.fates import FATES
from eirkit.show.chart import Axis, Chart, Series
from eirkit.show.page import Section
from eirkit.show.phrases import share
from eirkit.show.runs.folder import Coordinates, SweepFolder, condition_of
from eirkit.show.table import Column, Table

Row = Mapping[str, Any]
SAID = {
    "used": "came back and entered the answer",
    "not_used": "came back, and the answer does not follow from it",
    "other_value": "came back with another value",
    "not_found": "in the store, and no search brought it",
    "not_stored": "sought, and the store does not have it",
    "not_sought": "written, and never sought",
    "unwritten": "never written by the agent",
}
TITLES = {
    "used": "used",
    "not_used": "unused",
    "other_value": "other value",
    "not_found": "not found",
    "not_stored": "lost by the store",
    "not_sought": "not sought",
    "unwritten": "not written",
}


def memory_section(sweep: SweepFolder) -> Section | None:
    """Return what became of each result that had left the agent's sight, and what its keeping took."""
    rows = [row for row in sweep.rows if row["memory_system"] is not None]
    if not rows:
        return None
    named = Coordinates(rows)
    words = [
        f"{condition_of(row)}, {row['workload']}, h = {row['h']}: {finding}"
        for row in rows
        for finding in row["memory_system"]["diagnosis"]
    ]
    if any(row["panel"] == "native" and row["scored"] for row in rows):
        words.append(
            "Native panel: each system keeps as much as it likes, so its rows do not compare with those held to h "
            "records; `--panel strict` makes them compare."
        )
    asked = [row for row in rows if sum(row["memory_system"]["fates"].values())]
    charts = (fates_chart(asked, Coordinates(asked)),) if asked else ()
    tables = (_fates_table(rows, named), _costs_table(rows, named)) if any(row["scored"] for row in rows) else ()
    return Section("Memory systems", tuple(words), (*charts, *tables))


def fates_chart(rows: Sequence[Row], named: Coordinates) -> Chart:
    """Return the fates of needed results as shares, stacked."""
    places = tuple(named.label(row) if named.varying else condition_of(row) for row in rows)
    fates = [row["memory_system"]["fates"] for row in rows]
    present = [fate for fate in SAID if any(one[fate] for one in fates)]
    series = tuple(
        Series(TITLES[fate], "bars", places, tuple(one[fate] / sum(one.values()) for one in fates)) for fate in present
    )
    used = [one["used"] / sum(one.values()) for one in fates]
    pairs = sorted(zip(used, places, strict=True))
    (least, worst), (most, best) = pairs[0], pairs[-1]
    told = f"Used: {share(most)} of what was needed with {best}"
    told += f", {share(least)} with {worst}." if best != worst else "."
    axes = Axis("memory", "category"), Axis("share of needed results", low=0.0, high=1.0, percent=True)
    return Chart("fates", "What became of results that had left the agent’s sight", told, *axes, series, stacked=True)


def _fates_table(rows: Sequence[Row], named: Coordinates) -> Table:
    columns = (*_places(named), *(Column(fate, TITLES[fate], meaning=SAID[fate]) for fate in reversed(FATES)))
    lines = tuple({**_place(row, named), **row["memory_system"]["fates"]} for row in rows)
    return Table("fates-by-cell", "Fates of needed results, counted", columns, lines)


def _costs_table(rows: Sequence[Row], named: Coordinates) -> Table:
    columns = (
        *_places(named),
        Column("write", "ms a write", 2),
        Column("search", "ms a search", 2),
        Column("slowest", "slowest, ms", 1),
        Column("records", "records", meaning="held at most"),
        Column("bytes", "bytes"),
        Column("held", "held bits", 0, meaning="at their peak, in the values of what was stored or in sight"),
        Column("needed", "needed bits", 0, meaning="EIR at its peak"),
        Column("calls", "own calls", meaning="that the system made of a model"),
        Column("tokens", "own tokens"),
        Column("cost", "own cost, $", 4),
    )
    return Table(
        "memory-costs", "Time, size and the systems’ own calls", columns, tuple(_costs(r, named) for r in rows)
    )


def _places(named: Coordinates) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in named.varying) or (Column("memory", "memory"),)


def _place(row: Row, named: Coordinates) -> dict[str, int | str]:
    return named.cells(row) or {"memory": condition_of(row)}


def _costs(row: Row, named: Coordinates) -> dict[str, Any]:
    found = row["memory_system"]
    floor = found["floor"] or {"held_bits": None, "needed_bits": None}
    return {
        **_place(row, named),
        "write": _milliseconds(found["write_seconds"]),
        "search": _milliseconds(found["search_seconds"]),
        "slowest": _milliseconds(found["slowest_seconds"]),
        "records": found["records"],
        "bytes": found["bytes"],
        "held": floor["held_bits"],
        "needed": floor["needed_bits"],
        "calls": found["model_calls"],
        "tokens": found["input_tokens"] + found["output_tokens"],
        "cost": found["cost_usd"],
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def spending_section(sweep: SweepFolder) -> Section | None:
    """Return calls, tokens and money by model; nothing where only agents without tokens were asked."""
    if not any(row["input_tokens"] or row["output_tokens"] or row["cost_usd"] for row in sweep.rows):
        return None
    models = dict.fromkeys(row["model"] for row in sweep.rows)
    lines = tuple(_spent(model, [row for row in sweep.rows if row["model"] == model]) for model in models)
    columns = (
        Column("model", "model"),
        Column("runs", "runs"),
        Column("calls", "calls"),
        Column("cache_hits", "from cache"),
        Column("input_tokens", "tokens in"),
        Column("output_tokens", "tokens out"),
        Column("cost_usd", "cost, $", 4, meaning="a dash: the price of some replies is not known"),
    )
    known = [line["cost_usd"] for line in lines]
    whole = "not known for every model" if None in known else f"${sum(known):,.2f}"
    calls = sum(line["calls"] for line in lines)
    words = (f"{calls:,} calls, {whole}.",)
    return Section("Money and tokens", words, (Table("spending", "What the models took", columns, lines),))


def _spent(model: str, rows: Sequence[Row]) -> dict[str, Any]:
    names = ("calls", "cache_hits", "input_tokens", "output_tokens")
    tried = [row for row in rows if row["calls"] is not None]
    costs = [row["cost_usd"] for row in tried]
    sums = {name: sum(row[name] for row in tried) for name in names}
    runs = sum(row["scored"] for row in rows)
    return {"model": model, "runs": runs, **sums, "cost_usd": None if None in costs else sum(costs)}
