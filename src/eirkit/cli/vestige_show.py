"""`eirkit vestige show`: one analysed run for reading: demand by cut, what was live at the peak, what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.chart import bars
from eirkit.cli.output import emit, json_option, table
from eirkit.errors import UsageError
from eirkit.report.wording import counted
from eirkit.vestige.tables import RUN, read_analysis, read_rows, run_ids

CHART_COLUMNS, CHART_LINES = 100, 8
LISTED = 15  # rows of a table for reading; --json has them all
# Tables of which a run has few rows; the larger ones are for queries.
SMALL = ("files", "clips", "hidden_lines", "anomalies", "breaks", "dropped", "gaps", "entities")
GOALS = {"gold": "reference patch", "log": "the log", "own-edits": "the run's own last edit; none was given"}


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("run_id")
@json_option
def show(folder: Path, run_id: str, as_json: bool) -> None:
    """Show what the run RUN_ID in the analysis DIR needed at each cut; cut t lies just before turn t."""
    visibility = read_analysis(folder)["options"]["visibility"]
    document = _document(folder, run_id, visibility)
    emit(document, as_json, lambda console: _render(console, document))


def _document(folder: Path, run_id: str, visibility: str) -> dict[str, Any]:
    found = read_rows(folder, "runs", run_id)
    if not found:
        raise UsageError(_unknown(folder, run_id))
    cuts = _without_run(read_rows(folder, "cuts", run_id))
    tables = {name: _without_run(read_rows(folder, name, run_id)) for name in SMALL}
    at_peak = _live(read_rows(folder, "states", run_id), found[0], visibility)
    return {**found[0], "visibility": visibility, "cuts": cuts, "live_at_peak": at_peak, **tables}


def _unknown(folder: Path, run_id: str) -> str:
    known = run_ids(folder)
    near = get_close_matches(run_id, known, n=1) or [name for name in known if run_id in name][:1] or known[:1]
    return f"no run named {run_id!r} in {folder}; did you mean {near[0]!r}?"


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
    values = [cut["demand_tokens" if run["unit"] == "tokens" else "later_used"] for cut in run["cuts"]]
    say(_peak_line(run))
    for line in _chart(values, console.width):
        say(line)
    _render_tables(console, run)
    _render_losses(run, say)


def _peak_line(run: Mapping[str, Any]) -> str:
    if run["unit"] != "tokens":
        peak = counted(run["later_used_peak"], "entity", "entities")
        return f"peak: {peak} used later, at cut {run['later_used_peak_cut']}"
    if not run["goal_accessed"]:
        return "no goal file was read or written: no coverage, which is not the same as no need"
    context = "unknown" if run["peak_context_tokens"] is None else f"{run['peak_context_tokens']:,}"
    peak = f"peak demand: {run['peak_demand_tokens']:,} tokens at cut {run['peak_cut']}"
    return f"{peak} ({run['visibility']}); used later for anything: {run['later_used_peak']:,}; context: {context}"


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
        console.print(table("Live at the peak", ("file", "version", "tokens", "seen in turn", "last used"), live))
    spent = sorted(run["files"], key=lambda row: (-row["read_tokens"], row["path"]))[:LISTED]
    counts = ("reads", "read_tokens", "repeat_tokens", "dead_tokens", "writes")
    rows = [(row["path"], *(f"{row[name]:,}" for name in counts)) for row in spent]
    console.print(table("Files", ("file", "reads", "tokens", "again", "in vain", "writes"), rows))


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
    if not cost["live_files"]:
        return "no file was still needed"
    was = "was" if cost["live_files"] == 1 else "were"
    needed = f"{counted(cost['live_files'], 'file')} of {counted(cost['live_tokens'], 'token')} {was} still needed"
    fates = (
        f"{cost['dropped_tokens']:,} tokens of that not carried over",
        f"{counted(cost['reread_files'], 'file')} read again ({counted(cost['reread_tokens'], 'token')} shown)",
        f"{counted(cost['overwritten_files'], 'file')} overwritten",
        f"{counted(cost['never_reread_files'], 'file')} never read again"
        f" ({counted(cost['never_reread_tokens'], 'token')} not carried over)",
    )
    return "; ".join((needed, *fates))
