"""One analysed run for reading: its rows come in; a time line, its graph, its demand and its losses go out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.report.viewer.analysis_tables import TABLES, AnalysisTables
from eirkit.report.wording import counted
from eirkit.vestige.clipping import old_lines
from eirkit.vestige.gold import Gold

MOST_ACTIONS = 20_000  # that are drawn


def run_document(tables: AnalysisTables, run_id: str, gold: Gold | None = None) -> dict[str, Any]:
    """Return everything that the analysis says about a run; reference patches tell what hidden lines said."""
    run = tables.run(run_id)
    rows = {name: tables.rows(name, run_id) for name in TABLES}
    if gold is not None and rows["hidden_lines"]:
        lost = old_lines(gold.get(run["task_id"]), {row["path"] for row in rows["hidden_lines"]})
        rows["hidden_lines"] = [
            {**row, "text": lost.get(row["path"], {}).get(row["line"])} for row in rows["hidden_lines"]
        ]
    options: Mapping[str, Any] = tables.summary.get("options", {})
    actions = rows.pop("actions")
    return {
        "kind": "vestige",
        "run": run,
        "visibility": options.get("visibility"),
        "turns": turns_of(run["turns"], actions, rows),
        "actions": actions[:MOST_ACTIONS],
        "actions_left_out": max(0, len(actions) - MOST_ACTIONS),
        "goal": sorted({one["path"] for one in actions if one["sink"]}),
        **rows,
    }


def turns_of(turns: int, actions: Sequence[Mapping[str, Any]], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one entry a turn: what it read and wrote, in vain or not, and what befell it."""
    found: list[dict[str, Any]] = [
        {"turn": turn, "reads": 0, "dead": 0, "writes": 0, "needed": False, "events": []}
        for turn in range(1, turns + 1)
    ]
    for action in actions:
        entry = found[action["turn"] - 1]
        entry["needed"] |= action["necessary"]
        if action["kind"] == "read":
            entry["reads"] += 1
            entry["dead"] += not action["necessary"]
        else:
            entry["writes"] += 1
    for name, place, words in _EVENTS:
        for row in rows[name]:
            if row[place] <= turns:
                found[row[place] - 1]["events"].append(words(row))
    return found


def _clip(row: Mapping[str, Any]) -> str:
    hidden = row["hidden_characters"]
    return f"clipped: {'an unknown number of' if hidden is None else f'{hidden:,}'} characters hidden"


def _hidden(row: Mapping[str, Any]) -> str:
    later = {"recovered": f"shown in turn {row['recovered_turn']}", "never": "never shown before the file was edited"}
    return f"gold line {row['path']}:{row['line']} hidden, {later.get(row['outcome'], row['outcome'])}"


def _break(row: Mapping[str, Any]) -> str:
    if not row.get("measured", True):
        return f"{row['kind']}: what was still needed is not measured, since no file was used"
    if not row["live_files"]:
        return f"{row['kind']}: nothing that was still needed was in the context"
    needed = f"{counted(row['live_tokens'], 'token')} of {counted(row['live_files'], 'file')} still needed"
    return f"{row['kind']}: {needed}, {row['dropped_tokens']:,} of these not carried over"


def _anomaly(row: Mapping[str, Any]) -> str:
    return str(row["signature"]).replace("_", " ")


_EVENTS = (
    ("breaks", "cut", _break),
    ("clips", "turn", _clip),
    ("hidden_lines", "turn", _hidden),
    ("anomalies", "turn", _anomaly),
)
