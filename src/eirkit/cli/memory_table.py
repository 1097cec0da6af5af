"""How `lacuna run` shows external memories: what became of missing results, what it cost, and a word on each system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.agents.stores.memory_factory import EXTRACTOR, model_of

Row = Mapping[str, Any]

FATES = {
    "unwritten": "never written by the agent",
    "unsought": "written, and not searched for",
    "lost": "the store does not have it",
    "not found": "the store has it, and the search did not bring it",
    "other value": "its label came back with another value",
    "unused": "it came back, and the answer does not follow from it",
    "used": "it came back and was used",
}
COSTS = {
    "held/needed bits": "at their peaks, in the values of the records in the store or in sight, against what the task "
    "needed at the very least (EIR)",
    "counted by": "the system's own word on what it holds, or what it was given where it cannot tell",
    "own calls, own tokens": "what the system asked of a model itself; not shown where none asked",
}


def fate_columns(rows: Sequence[Row]) -> dict[str, list[object]]:
    """Return what became of missing results, for rows that have an external memory."""
    fates = [row["memory_system"]["fates"] for row in rows]
    return {
        "scored": [f"{row['scored']}/{row['attempted']}" for row in rows],
        "unwritten": [fate["unwritten"] for fate in fates],
        "unsought": [fate["not_sought"] for fate in fates],
        "lost": [fate["not_stored"] for fate in fates],
        "not found": [fate["not_found"] for fate in fates],
        "other value": [fate["other_value"] for fate in fates],
        "unused": [fate["not_used"] for fate in fates],
        "used": [fate["used"] for fate in fates],
    }


def fate_legend(columns: Mapping[str, Sequence[object]]) -> dict[str, str]:
    """Return what the fates mean that some result had."""
    return {name: text for name, text in FATES.items() if any(columns[name])}


def cost_columns(rows: Sequence[Row]) -> dict[str, list[object]]:
    """Return time, size and the systems' own calls, if there were any, for the same rows."""
    found = [row["memory_system"] for row in rows]
    own: dict[str, list[object]] = {
        "own calls": [one["model_calls"] for one in found],
        "own tokens": [one["input_tokens"] + one["output_tokens"] for one in found],
    }
    return {
        "ms/write": [_milliseconds(one["write_seconds"]) for one in found],
        "ms/search": [_milliseconds(one["search_seconds"]) for one in found],
        "records": [one["records"] for one in found],
        "bytes": [one["bytes"] for one in found],
        "held/needed bits": [_floor(one["floor"]) for one in found],
        "counted by": [None if one["floor"] is None else one["floor"]["counted"] for one in found],
        **(own if any(own["own calls"]) else {}),
    }


def memory_remarks(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a word on each system, good or bad, and which rows do not compare."""
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
    """Yield a line for each system and panel whose rows with nothing wrong had something to find."""
    good: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not row["memory_system"]["diagnosis"] and row["scored"]:
            good.setdefault((row["memory"], row["panel"]), []).append(row)
    for (memory, panel), held in good.items():
        brought, left = (sum(_sum(row, *fates) for row in held) for fates in (_BROUGHT, _LEFT))
        tasks = _tasks(held)
        if not brought and not left:
            yield f"{memory} was not put to the test ({panel} panel; {tasks}): no result was missing"
        elif not brought:
            yield (
                f"{memory} was not put to the test ({panel} panel; {tasks}): the agent never wrote or never searched "
                f"for the {left} results that were missing; let one that does take its place: reference/recoverer"
            )
        elif not left:
            yield (
                f"{memory} held everything the task needed ({panel} panel; {tasks}): all {brought} results that were "
                "missing came back"
            )
        else:
            yield (
                f"{memory} held everything it was asked for ({panel} panel; {tasks}): {brought} results that were "
                f"missing came back, {left} were never written or never searched for"
            )


def _tasks(rows: Sequence[Row]) -> str:
    """Return which workloads rows are of, at which capacity."""
    by_h: dict[int, dict[str, None]] = {}
    for row in rows:
        by_h.setdefault(row["h"], {})[row["workload"]] = None
    return "; ".join(f"{', '.join(workloads)} at h = {h}" for h, workloads in by_h.items())


_BROUGHT, _LEFT = ("used", "not_used"), ("unwritten", "not_sought")


def _sum(row: Row, *fates: str) -> int:
    return sum(row["memory_system"]["fates"][fate] for fate in fates)


def _is_scripted(row: Row) -> bool:
    return model_of(row["memory"], row["memory_settings"]) == EXTRACTOR


def _floor(floor: Mapping[str, Any] | None) -> str | None:
    return None if floor is None else f"{floor['held_bits']:.0f}/{floor['needed_bits']:.0f}"


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1000 * seconds:.2f}"
