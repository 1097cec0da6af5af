"""`eirkit vestige show`: one analysed run for reading: demand by cut, what was live at the peak, what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.chart import bars
from eirkit.cli.fitting import GAP, matches, named_table
from eirkit.cli.memory_table import heading
from eirkit.cli.output import emit, json_option
from eirkit.errors import UsageError
from eirkit.logs.corpus.rows import LOG_MEASURES
from eirkit.logs.corpus.summary import BREAK_MEASURES, READING_MEASURES
from eirkit.logs.tables import RUN, read_analysis, read_rows, run_ids
from eirkit.show.phrases import counted, listed, number

CHART_COLUMNS, CHART_LINES = 100, 8
SUGGESTED = 5  # names of runs in a message
OF_FILES = {"read_tokens": "read_tokens", "repeat_tokens": "repeat_tokens", "dead_tokens": "dead_read_tokens"}
LISTED = 15  # rows of a table for reading; --json has them all
# Tables of which a run has few rows; the larger ones are for queries.
SMALL = ("files", "clips", "hidden_lines", "anomalies", "breaks", "dropped", "gaps", "entities")
GOALS = {"gold": "reference patch", "log": "the log", "own-edits": "the run's own last edit; none was given"}


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("run_id", required=False)
@json_option
def show(folder: Path, run_id: str | None, as_json: bool) -> None:
    """Show what the run RUN_ID in the analysis DIR needed at each cut; cut t lies just before turn t."""
    visibility = read_analysis(folder)["options"]["visibility"]
    document = _document(folder, _chosen(folder, run_id), visibility)
    emit(document, as_json, lambda console: _render(console, document))


def _document(folder: Path, run_id: str, visibility: str) -> dict[str, Any]:
    found = read_rows(folder, "runs", run_id)
    if not found:
        raise UsageError(_unknown(folder, run_id))
    cuts = _without_run(read_rows(folder, "cuts", run_id))
    tables = {name: _without_run(read_rows(folder, name, run_id)) for name in SMALL}
    at_peak = _live(read_rows(folder, "states", run_id), found[0], visibility)
    return {**found[0], "visibility": visibility, "cuts": cuts, "live_at_peak": at_peak, **tables}


def _chosen(folder: Path, run_id: str | None) -> str:
    """Return the run that is meant: by its name, or by a name as tables shorten it."""
    if run_id is None:
        raise UsageError(f"which run of {folder}? {_known(run_ids(folder))}")
    meant = [name for name in run_ids(folder) if matches(run_id, name)] if GAP in run_id else []
    return meant[0] if len(meant) == 1 else run_id


def _unknown(folder: Path, run_id: str) -> str:
    known = run_ids(folder)
    near = [name for name in known if run_id in name or matches(run_id, name)] or get_close_matches(run_id, known)
    if near:
        return f"no run named {run_id!r} in {folder}; did you mean {' or '.join(near[:SUGGESTED])}?"
    return f"no run named {run_id!r} in {folder}; {_known(known)}"


def _known(names: Sequence[str]) -> str:
    if not names:
        return "it holds no runs; analyse a corpus that has some"
    return f"name one of {listed(names, SUGGESTED + 1)}"


def _without_run(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != RUN} for row in rows]


def _live(states: list[dict[str, Any]], run: Mapping[str, Any], visibility: str) -> list[dict[str, Any]]:
    """Return the states that were live at the run's peak, the dearest first."""
    in_tokens = run["unit"] == "tokens"
    cut = run["peak_cut"] if in_tokens else run["later_used_peak_cut"]
    start = "made_at" if in_tokens and visibility == "environment" else "first_seen"
    live = [state for state in states if cut and state["last_used"] and state[start] < cut <= state["last_used"]]
    names = ("path", "version", "tokens", "first_seen", "last_used")
    chosen = sorted(live, key=lambda state: (-state["tokens"], state["path"]))
    return [{name: state[name] for name in names} for state in chosen]


def _render(console: Console, run: Mapping[str, Any]) -> None:
    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    outcome = {True: "resolved", False: "failed", None: "outcome unknown"}[run["resolved"]]
    turns = counted(run["turns"], "turn")
    say(f"{run['run_id']} ({run['format']}, {run['model'] or 'model unknown'}): {turns}, {outcome}")
    if run["unit"] == "tokens":
        files = ", ".join(run["goal_files"]) or "none"
        say(f"goal: {files} ({GOALS[run['goal_source']]})")
    in_goal = run["unit"] == "tokens" and run["goal_accessed"]
    values = [cut["demand_tokens" if in_goal else "later_used"] for cut in run["cuts"]]
    say(_peak_line(run))
    for line in _chart(values, console.width) if in_goal or any(values) else ():
        say(line)
    _render_tables(console, run)
    _render_losses(run, say)


def _peak_line(run: Mapping[str, Any]) -> str:
    if run["unit"] != "tokens":
        peak = counted(run["later_used_peak"], "entity", "entities")
        return f"{LOG_MEASURES['later_used_peak'].label}: {peak} at cut {run['later_used_peak_cut']}"
    if not run["goal_accessed"]:
        used = run["later_used_peak"]
        label = LOG_MEASURES["later_used_peak"].label
        drawn = f"; {label}: {used:,} tokens at cut {run['later_used_peak_cut']}" if used else ""
        return f"no goal file was read or written: no coverage, which is not the same as no need{drawn}"
    context = "unknown" if run["peak_context_tokens"] is None else f"{run['peak_context_tokens']:,}"
    peak = f"{LOG_MEASURES['peak_demand_tokens'].label}: {run['peak_demand_tokens']:,} tokens at cut {run['peak_cut']}"
    later, prompt = LOG_MEASURES["later_used_peak"].label, LOG_MEASURES["peak_context_tokens"].label
    return f"{peak} ({run['visibility']}); {later}: {run['later_used_peak']:,}; {prompt}: {context}"


def _chart(values: Sequence[int], room: int) -> list[str]:
    """Return bars with both axes; a column that stands for several cuts has the height of the largest."""
    if not any(values):
        return ["nothing was needed at any cut"] if values else []
    top = f"{max(values):,}"
    width = -(-len(values) // max(1, min(CHART_COLUMNS, room - len(top) - len(" │  cut"))))
    columns = [float(max(values[at : at + width])) for at in range(0, len(values), width)]
    drawn = [
        f"{edge:>{len(top)}} │{line.partition('│')[2]}"
        for edge, line in zip(_edges(top), bars(columns, CHART_LINES), strict=True)
    ]
    margin = " " * (len(top) + 1)
    first, last = "1", f"{len(values):,}"
    ticks = first + last.rjust(len(columns) - len(first)) if len(columns) > len(first + last) else first
    several = [] if width == 1 else [f"{margin} (a column is the largest of {width} cuts)"]
    return [*drawn, f"{margin}└{'─' * len(columns)}", f"{margin} {ticks}  cut", *several]


def _edges(top: str) -> list[str]:
    return [top, *[""] * (CHART_LINES - 2), "0"]


def _render_tables(console: Console, run: Mapping[str, Any]) -> None:
    live = [
        (row["path"], row["version"], f"{row['tokens']:,}", row["first_seen"], row["last_used"])
        for row in run["live_at_peak"][:LISTED]
    ]
    if live:
        console.print(
            named_table(console, "Live at the peak", ("file", "version", "tokens", "seen in turn", "last used"), live)
        )
    spent = sorted(run["files"], key=lambda row: (-row["read_tokens"], row["path"]))[:LISTED]
    counts = {"reads": "reads", **{key: heading(READING_MEASURES[name]) for key, name in OF_FILES.items()}}
    if run["unit"] == "tokens" and not run["goal_accessed"]:
        del counts["dead_tokens"]  # without a goal nothing says what led to it
    counts["writes"] = "writes"
    rows = [(row["path"], *(f"{row[name]:,}" for name in counts)) for row in spent]
    if rows:
        console.print(named_table(console, "Files", ("file", *counts.values()), rows))


def _render_losses(run: Mapping[str, Any], say: Any) -> None:
    for cost in run["breaks"]:
        say(f"{cost['kind']} before turn {cost['cut']}: {_break_line(cost)}")
    if run["clipped_views"]:
        clipped = counted(run["clipped_views"], "clipped view")
        say(f"{clipped}, {run['clipped_goal_views']:,} of goal files")
    for event in run["anomalies"][:LISTED]:
        say(f"turn {event['turn']}: {event['signature'].replace('_', ' ')}")


def _break_line(cost: Mapping[str, Any]) -> str:
    """Return what became of the files that were still needed, each number with what it counts."""
    if not cost.get("measured", True):
        return "what was still needed is not measured: no file was used"
    if not cost["live_files"]:
        return "nothing that was still needed was in the context"
    was = "was" if cost["live_files"] == 1 else "were"
    needed = f"{counted(cost['live_files'], 'file')} of {counted(cost['live_tokens'], 'token')} {was} still needed"
    fates = (
        f"{cost['dropped_tokens']:,} tokens of that {BREAK_MEASURES['dropped_tokens'].label}",
        f"{_of_files(cost, 'reread_files', 'reread_dropped_tokens')} read again, which showed "
        f"{counted(cost['reread_tokens'], 'token')}",
        f"{_of_files(cost, 'overwritten_files', 'overwritten_tokens')} edited without rereading",
        f"{_of_files(cost, 'never_reread_files', 'never_reread_tokens')} never read again",
    )
    return "; ".join((needed, *fates))


def _of_files(cost: Mapping[str, Any], files: str, tokens: str) -> str:
    """Return how many files, and what of their tokens was not carried over; an older analysis may not say it."""
    return f"{counted(cost[files], 'file')} ({number(cost.get(tokens))} of these)"
