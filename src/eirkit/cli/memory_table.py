"""How `lacuna run` shows external memories: what became of missing results, time, size, and the system's own calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.lacuna.stores.making import EXTRACTOR, model_of

LEGEND = (
    "of the results that were missing: unwritten by the agent, unsought by it, lost by the store, in the store and not "
    "found, found with another value, found and unused, used; held/needed bits: at their peaks, in the values of the "
    "records that were stored or in sight, against what the task needed at the very least (EIR)"
)


def memory_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[object]]:
    """Return the columns of the rows that have an external memory."""
    found = [row["memory_system"] for row in rows]
    fates = [one["fates"] for one in found]
    return {
        "panel": [row["panel"] for row in rows],
        "scored": [f"{row['scored']}/{row['attempted']}" for row in rows],
        "unwritten": [fate["unwritten"] for fate in fates],
        "unsought": [fate["not_sought"] for fate in fates],
        "lost": [fate["not_stored"] for fate in fates],
        "not found": [fate["not_found"] for fate in fates],
        "other value": [fate["other_value"] for fate in fates],
        "unused": [fate["not_used"] for fate in fates],
        "used": [fate["used"] for fate in fates],
        "ms/write": [_milliseconds(one["write_seconds"]) for one in found],
        "ms/search": [_milliseconds(one["search_seconds"]) for one in found],
        "records": [one["records"] for one in found],
        "bytes": [one["bytes"] for one in found],
        "held/needed bits": [_floor(one["floor"]) for one in found],
        "own calls": [one["model_calls"] for one in found],
        "own tokens": [one["input_tokens"] + one["output_tokens"] for one in found],
    }


def memory_remarks(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with each system, and which rows do not compare."""
    for row in rows:
        for finding in row["memory_system"]["diagnosis"]:
            yield f"memory {row['memory']}, {row['workload']}, h = {row['h']}: {finding}"
    if any(row["memory_system"]["model_calls"] and _is_scripted(row) for row in rows):
        yield (
            f"{EXTRACTOR} answered what the systems asked of a model: a script, not a model, and its tokens are an "
            "estimate; give them a model with --memory-set NAME.model=PROVIDER/MODEL"
        )
    if any(row["panel"] == "native" for row in rows):
        yield (
            "native panel: each system keeps as much as it likes, so its rows do not compare with those held to h; "
            "add --panel strict"
        )


def _is_scripted(row: Mapping[str, Any]) -> bool:
    return model_of(row["memory"], row["memory_settings"]) == EXTRACTOR


def _floor(floor: Mapping[str, Any] | None) -> str | None:
    return None if floor is None else f"{floor['held_bits']:.0f}/{floor['needed_bits']:.0f}"


def _milliseconds(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1000 * seconds:.2f}"
