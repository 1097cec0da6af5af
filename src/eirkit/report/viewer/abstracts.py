"""One line on each folder that can be looked at: who ran what, how many runs, and how it came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from eirkit.errors import EirkitError
from eirkit.lacuna.sweeps.cells import STRICT
from eirkit.lacuna.sweeps.manifest import read_manifest
from eirkit.lacuna.sweeps.run_store import SUMMARY
from eirkit.records import read_document
from eirkit.report.viewer.places import MANIFEST, Kind, Place
from eirkit.report.wording import counted
from eirkit.vestige.tables import read_analysis

MOST_NAMED = 3  # of models, workloads or capacities
LARGEST = 1 << 20  # bytes of a summary that is read for a single line


def abstract(place: Place) -> str:
    """Return the line; an empty one where the folder's documents do not say, which its own page will explain."""
    try:
        return _SAYING[place.kind](place.path)
    except (EirkitError, OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ""


def _sweep(folder: Path) -> str:
    manifest = read_manifest(folder)
    grid: list[Mapping[str, Any]] = manifest.suite["grid"]
    who, what = _named(_values(grid, "model")), _named(_values(grid, "workload"))
    parts = [counted(manifest.runs, "run"), f"{who} on {what}"]
    if memories := [name for name in _values(grid, "memory") if name]:
        parts.append(f"memory {_named(memories)}")
    if held := _values(grid, "h"):
        parts.append(f"h {_named(held)}")
    return "; ".join(parts + _accuracy(folder / SUMMARY))


def _accuracy(path: Path) -> list[str]:
    """Return how right the cells were, where all is done."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        return []
    rows = read_document(path, "summary/1")["rows"]
    found = sorted(row["accuracy"] for row in rows if row["accuracy"] is not None)
    if not found:
        return []
    least, most = f"{found[0]:.2f}", f"{found[-1]:.2f}"
    return [f"accuracy {least}" if least == most else f"accuracy {least} to {most}"]


def _evidence(folder: Path) -> str:
    """Say what was asked; each kind of evidence has settings of its own."""
    manifest = read_document(folder / MANIFEST, "evidence/1")
    settings = manifest["settings"]
    parts = [str(manifest["command"])]
    who, what = _named(settings.get("models", ())), settings.get("task", {}).get("workload", "")
    if about := " on ".join(filter(None, (who, what))):
        parts.append(about)
    if memory := settings.get("memory"):
        parts.append(f"memory {memory}" + (", strict" if settings.get("panel") == STRICT else ""))
    if "h" in settings:
        parts.append(f"h {settings['h']}")
    return "; ".join(parts)


def _analysis(folder: Path) -> str:
    summary = read_analysis(folder)
    runs, formats, peak = summary["runs"], _named(summary["formats"]), summary["mean_peak_tokens"]
    known = peak is not None and summary.get("covered_runs") != 0  # where no goal was reached, zero says nothing
    demand = f"mean peak demand {peak:,.0f} tokens" if known else "demand not measured: no run reached a goal file"
    return f"{counted(runs, 'run')}; {formats}; {demand}"


def _values(grid: Iterable[Mapping[str, Any]], axis: str) -> list[Any]:
    """Return the different values of an axis over all blocks of a suite, in their order."""
    found: list[Any] = []
    for block in grid:
        value = block.get(axis, ())
        found += value if isinstance(value, (list, tuple)) else [value]
    return list(dict.fromkeys(found))


def _named(values: Iterable[Any]) -> str:
    names = [str(value) for value in values]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


_SAYING: dict[Kind, Callable[[Path], str]] = {"sweep": _sweep, "evidence": _evidence, "analysis": _analysis}
