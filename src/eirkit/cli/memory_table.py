"""Tables and remarks of `lacuna run` on external memories: fates of needed records, and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.agents.stores.memory_factory import EXTRACTOR, model_of
from eirkit.findings.fates import NOT_ASKED, RETURNED
from eirkit.findings.measures import FATE_MEASURES, MEMORY_MEASURES
from eirkit.show.table import Column

Row = Mapping[str, Any]

COUNTED_BY = "who says what is held: the system itself, or eirkit from what it was given where the system cannot tell"

Columns = dict[Column, list[Any]]


def fate_columns(rows: Sequence[Row]) -> Columns:
    """Return columns with the fates of needed records; fates that no record had are left out."""
    systems = [row["memory_system"] for row in rows]
    shown = [one for one in FATE_MEASURES if any(system["fates"][one.id] for system in systems)]
    return {
        Column.of(MEMORY_MEASURES["needed"]): [sum(one["fates"].values()) for one in systems],
        **{Column.of(one): [system["fate_shares"].get(one.id) for system in systems] for one in shown},
    }


def cost_columns(rows: Sequence[Row]) -> Columns:
    """Return time, size and the systems' own calls, if there were any, for the same rows."""
    found = [row["memory_system"] for row in rows]
    figures: dict[str, list[Any]] = {
        "write_ms": [_milliseconds(one["write_seconds"]) for one in found],
        "search_ms": [_milliseconds(one["search_seconds"]) for one in found],
        "records": [one["records"] for one in found],
        "bytes": [one["bytes"] for one in found],
        "held_bits": [_bits(one["floor"], "held_bits") for one in found],
        "needed_bits": [_bits(one["floor"], "needed_bits") for one in found],
    }
    if any(one["model_calls"] for one in found):
        figures["model_calls"] = [one["model_calls"] for one in found]
        figures["memory_tokens"] = [one["input_tokens"] + one["output_tokens"] for one in found]
    counted_by = [None if one["floor"] is None else one["floor"]["counted"] for one in found]
    plain = {"write_ms", "search_ms", "records", "bytes"}  # whose labels say it all
    columns: Columns = {
        Column.of(MEMORY_MEASURES[key], **({"meaning": ""} if key in plain else {})): values
        for key, values in figures.items()
    }
    return columns | {Column("counted", "counted by", priority=1, meaning=COUNTED_BY): counted_by}


def memory_remarks(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a remark on each system, and on rows that cannot be compared."""
    yield from _held(rows)
    several = len({row["panel"] for row in rows}) > 1
    for row in rows:
        where = f"memory {row['memory']}, {row['workload']}, h = {row['h']}{', ' + row['panel'] if several else ''}"
        for finding in row["memory_system"]["diagnosis"]:
            yield f"{where}: {finding}"
    if any(row["memory_system"]["model_calls"] and _is_scripted(row) for row in rows):
        yield (
            f"{EXTRACTOR} answered what the systems asked of a model: a script, not a model, and its tokens are an "
            "estimate; give them a model with --memory-set NAME.model=PROVIDER/MODEL"
        )
    if any(row["panel"] == "native" and row["scored"] for row in rows):
        remedy = "" if several else "; add --panel strict"
        yield (
            "native panel: each system keeps as much as it likes, so its rows do not compare with those held to h"
            f"{remedy}"
        )


def _held(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each system and panel, over its scored rows without a diagnosed problem."""
    good: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not row["memory_system"]["diagnosis"] and row["scored"]:
            good.setdefault((row["memory"], row["panel"]), []).append(row)
    for (memory, panel), held in good.items():
        brought, left = (sum(_sum(row, *fates) for row in held) for fates in (RETURNED, NOT_ASKED))
        tasks = _tasks(held)
        where, never = f"({panel} panel; {tasks})", " or ".join(FATE_MEASURES[fate].label for fate in NOT_ASKED)
        if not brought and not left:
            yield f"{memory} was not tested {where}: no record was needed from it"
        elif not brought:
            yield (
                f"{memory} was not tested {where}: the {left} records needed from it were {never}; try an agent that "
                "writes and searches, such as reference/recoverer"
            )
        elif not left:
            yield f"{memory} returned every record needed from it {where}: {brought} of {brought}"
        else:
            yield (
                f"{memory} returned every record it was asked for {where}: {brought} of {brought + left}; {left} were "
                f"{never}"
            )


def _tasks(rows: Sequence[Row]) -> str:
    """Return the workloads of rows and their capacities, in words."""
    by_h: dict[int, dict[str, None]] = {}
    for row in rows:
        by_h.setdefault(row["h"], {})[row["workload"]] = None
    return "; ".join(f"{', '.join(workloads)} at h = {h}" for h, workloads in by_h.items())


def _sum(row: Row, *fates: str) -> int:
    return sum(row["memory_system"]["fates"][fate] for fate in fates)


def _is_scripted(row: Row) -> bool:
    return model_of(row["memory"], row["memory_settings"]) == EXTRACTOR


def _bits(floor: Mapping[str, Any] | None, which: str) -> float | None:
    return None if floor is None else float(floor[which])


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
