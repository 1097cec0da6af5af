"""Sections of a sweep's page on its external memory systems and on what its models cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.findings.measures import FATE_MEASURES, MEMORY_MEASURES, SPENDING_MEASURES
from eirkit.show.chart import Axis, Chart, Series
from eirkit.show.page import Section
from eirkit.show.phrases import share
from eirkit.show.runs.folder import Coordinates, SweepFolder, condition_of
from eirkit.show.table import Column, Table

Row = Mapping[str, Any]


def memory_section(sweep: SweepFolder) -> Section | None:
    """Return the section on the fates of records needed from external memories, and on what the memories cost."""
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
    """Return a stacked chart of the fates of needed records, as shares."""
    places = tuple(named.label(row) if named.varying else condition_of(row) for row in rows)
    shares = [row["memory_system"]["fate_shares"] for row in rows]
    series = tuple(
        Series.of(one, "bars", places, tuple(found[one.id] for found in shares))
        for one in FATE_MEASURES
        if any(found[one.id] for found in shares)
    )
    used = FATE_MEASURES["used"]
    pairs = sorted(zip([found["used"] for found in shares], places, strict=True))
    (least, worst), (most, best) = pairs[0], pairs[-1]
    told = f"Of {used.of}, {used.label}: {share(most)} with {best}"
    told += f", {share(least)} with {worst}." if best != worst else "."
    axes = Axis("memory", "category"), Axis(f"share of {used.of}", low=0.0, high=1.0, percent=True)
    return Chart("fates", FATE_MEASURES.title, told, *axes, series, stacked=True)


def _fates_table(rows: Sequence[Row], named: Coordinates) -> Table:
    columns = (*_places(named), Column.of(MEMORY_MEASURES["needed"]), *map(Column.of, FATE_MEASURES))
    lines = tuple({**_place(row, named), **_fates(row["memory_system"])} for row in rows)
    return Table("fates-by-cell", FATE_MEASURES.title, columns, lines)


def _fates(system: Row) -> dict[str, Any]:
    return {"needed": sum(system["fates"].values()), **system["fate_shares"]}


def _costs_table(rows: Sequence[Row], named: Coordinates) -> Table:
    shown = [one for one in MEMORY_MEASURES if one.id != "needed"]
    columns = (*_places(named), *map(Column.of, shown))
    lines = tuple({**_place(row, named), **_costs(row["memory_system"])} for row in rows)
    return Table("memory-costs", MEMORY_MEASURES.title, columns, lines)


def _places(named: Coordinates) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in named.varying) or (Column("memory", "memory"),)


def _place(row: Row, named: Coordinates) -> dict[str, int | str]:
    return named.cells(row) or {"memory": condition_of(row)}


def _costs(found: Row) -> dict[str, Any]:
    floor = found["floor"] or {"held_bits": None, "needed_bits": None}
    return {
        "write_ms": _milliseconds(found["write_seconds"]),
        "search_ms": _milliseconds(found["search_seconds"]),
        "slowest_ms": _milliseconds(found["slowest_seconds"]),
        **{name: found[name] for name in ("records", "bytes", "model_calls")},
        **{name: floor[name] for name in ("held_bits", "needed_bits")},
        "memory_tokens": found["input_tokens"] + found["output_tokens"],
        "memory_cost_usd": found["cost_usd"],
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def spending_section(sweep: SweepFolder) -> Section | None:
    """Return the section on calls, tokens and money by model; None if no agent used tokens."""
    if not any(row["input_tokens"] or row["output_tokens"] or row["cost_usd"] for row in sweep.rows):
        return None
    models = dict.fromkeys(row["model"] for row in sweep.rows)
    lines = tuple(_spent(model, [row for row in sweep.rows if row["model"] == model]) for model in models)
    columns = (
        Column("model", "model"),
        Column("runs", "runs"),
        *(Column.of(one) for one in SPENDING_MEASURES if one.id != "agent_tokens"),
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
