"""`eirkit vestige show`: shows one analysed run: demand by cut, live states at the peak, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.cli.command import Show, command, document_options
from eirkit.errors import UsageError
from eirkit.report.document import Axis, Chart, Document, Item, Section, Series
from eirkit.report.logs.break_sentences import break_line, break_name
from eirkit.report.table import Column, Table, counted, listed
from eirkit.report.terminal import may_be
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES
from eirkit.vestige.tables import RUN, read_analysis, read_rows, run_ids

SUGGESTED = 5  # names of runs in a message
LISTED = 15  # rows of a table for reading; --json has them all
# Tables of which a run has few rows; the larger ones are for queries.
SMALL = ("files", "clips", "hidden_lines", "anomalies", "breaks", "dropped", "gaps", "entities")
GOALS = {
    "gold": "from the reference patch",
    "log": "from the log",
    "own-edits": "what the run itself edited; no goal was given",
}


@command(example="eirkit vestige show out/analysis RUN_ID")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("run_id", metavar="[RUN_ID]", required=False)
@document_options
def show(folder: Path, run_id: str | None, show: Show) -> None:
    """Show what the run RUN_ID of the analysis in DIR needed at each cut; cut t lies just before turn t."""
    visibility = read_analysis(folder)["options"]["visibility"]
    data = _data(folder, _chosen(folder, run_id), visibility)
    show(_document(data, folder))


def _data(folder: Path, run_id: str, visibility: str) -> dict[str, Any]:
    found = read_rows(folder, "runs", run_id)
    if not found:
        raise UsageError(_unknown(folder, run_id))
    cuts = _without_run(read_rows(folder, "cuts", run_id))
    tables = {name: _without_run(read_rows(folder, name, run_id)) for name in SMALL}
    tables["instructions"] = _without_run(read_rows(folder, "instructions", run_id))
    at_peak = _live(read_rows(folder, "states", run_id), found[0], visibility)
    tools = _without_run(read_rows(folder, "calls", run_id))
    more = {"visibility": visibility, "cuts": cuts, "live_at_peak": at_peak, "calls_by_tool": tools}
    return {**found[0], **more, **tables}


def _chosen(folder: Path, run_id: str | None) -> str:
    """Return the run with a name, given in full, by its beginning or as shortened in tables."""
    known = run_ids(folder)
    if run_id is None:
        raise UsageError(f"which run of {folder}? {_known(known)}")
    if run_id in known:
        return run_id
    meant = [name for name in known if name.startswith(run_id) or may_be(run_id, name)]
    if len(meant) > 1:
        how = "begin with" if all(name.startswith(run_id) for name in meant) else "may be meant by"
        raise UsageError(f"{len(meant)} runs of {folder} {how} {run_id!r}; {_known(meant)}")
    return meant[0] if meant else run_id


def _unknown(folder: Path, run_id: str) -> str:
    known = run_ids(folder)
    near = [name for name in known if run_id in name or may_be(run_id, name)] or get_close_matches(run_id, known)
    if near:
        return f"no run named {run_id!r} in {folder}; did you mean {' or '.join(near[:SUGGESTED])}?"
    return f"no run named {run_id!r} in {folder}; {_known(known)}"


def _known(names: Sequence[str]) -> str:
    if not names:
        return "it holds no runs; analyse logs that have some"
    return f"name one of {listed(names, SUGGESTED + 1)}"


def _without_run(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != RUN} for row in rows]


def _live(states: list[dict[str, Any]], run: Mapping[str, Any], visibility: str) -> list[dict[str, Any]]:
    """Return the states that were live at the run's peak, the largest first."""
    in_tokens = run["unit"] == "tokens"
    cut = run["peak_cut"] if in_tokens else run["later_used_peak_cut"]
    start = "made_at" if in_tokens and visibility == "environment" else "first_seen"
    live = [state for state in states if cut and state["last_used"] and state[start] < cut <= state["last_used"]]
    names = ("path", "version", "tokens", "first_seen", "last_used")
    chosen = sorted(live, key=lambda state: (-state["tokens"], state["path"]))
    return [{name: state[name] for name in names} for state in chosen]


def _document(run: Mapping[str, Any], folder: Path) -> Document:
    outcome = {True: "resolved", False: "failed", None: "outcome unknown"}[run["resolved"]]
    source = f"{run['format']}, {run['model'] or 'model unknown'}"
    head = f"{run['run_id']} ({source}): {counted(run['turns'], 'turn')}, {outcome}"
    words = [_peak_line(run), *_coverage(run)]
    if run["unit"] == "tokens":
        words.append(f"goal: {', '.join(run['goal_files']) or 'none'} ({GOALS[run['goal_source']]})")
    sections = [Section("", tuple(words)), Section("", (), tuple(_items(run)))]
    if losses := tuple(_losses(run)):
        sections.append(Section("Losses", losses))
    sections = [one for one in sections if one.words or one.items]
    then = f"eirkit view {quote(str(folder))}"
    return Document("vestige-show", str(run["run_id"]), (head,), run, tuple(sections), next=then)


def _coverage(run: Mapping[str, Any]) -> Iterator[str]:
    if run["calls"]:
        label = LOG_MEASURES["calls_understood"].label
        missed = [
            f"{one['tool']} ({one['calls'] - one['understood']:,})"
            for one in run["calls_by_tool"]
            if one["calls"] > one["understood"]
        ]
        rest = f"; not understood: {listed(missed, SUGGESTED)}" if missed else ""
        yield f"{label}: {run['calls_understood']:,} of {run['calls']:,}{rest}"


def _peak_line(run: Mapping[str, Any]) -> str:
    if run["unit"] != "tokens":
        peak = counted(run["later_used_peak"], "entity", "entities")
        return f"{LOG_MEASURES['later_used_peak'].label}: {peak} at cut {run['later_used_peak_cut']}"
    if not run["goal_accessed"]:
        used = run["later_used_peak"]
        label = LOG_MEASURES["later_used_peak"].label
        drawn = f"; {label}: {used:,} tokens at cut {run['later_used_peak_cut']}" if used else ""
        return f"no goal file was read or written: no coverage, which is not the same as no need{drawn}"
    context = "unknown" if run["peak_context_tokens"] is None else f"{run['peak_context_tokens']:,} tokens"
    where = f" at cut {run['peak_cut']}" if run["peak_cut"] is not None else ""
    peak = f"{LOG_MEASURES['peak_demand_tokens'].label}: {run['peak_demand_tokens']:,} tokens{where}"
    later = f"{LOG_MEASURES['later_used_peak'].label}: {run['later_used_peak']:,} tokens"
    return f"{peak} ({run['visibility']}); {later}; {LOG_MEASURES['peak_context_tokens'].label}: {context}"


def _items(run: Mapping[str, Any]) -> Iterator[Item]:
    if chart := _chart(run):
        yield chart
    yield from filter(lambda table: table.rows, (_live_table(run), _file_table(run)))


def _chart(run: Mapping[str, Any]) -> Chart | None:
    """Return a chart of demand over cuts; None if demand is zero or unknown."""
    in_goal = run["unit"] == "tokens" and run["goal_accessed"]
    values = tuple(cut["demand_tokens" if in_goal else "later_used"] for cut in run["cuts"])
    if not any(values):
        return None
    title = f"{'Demand' if in_goal else 'Used later'}, {run['unit']}"
    cuts = tuple(cut["cut"] for cut in run["cuts"])
    alt = f"At most {max(values):,} {run['unit']} at a cut."
    series = Series("demand", "bars", cuts, values)
    return Chart("demand", title, alt, Axis("cut"), Axis(str(run["unit"]), low=0.0), (series,))


def _live_table(run: Mapping[str, Any]) -> Table:
    columns = (
        Column("path", "file", role="name"),
        Column("version", "version"),
        Column("tokens", "tokens"),
        Column("first_seen", "first seen", meaning="turn"),
        Column("last_used", "last used", meaning="turn"),
    )
    return Table("live-at-peak", "Live at the peak", columns, tuple(run["live_at_peak"][:LISTED]))


def _file_table(run: Mapping[str, Any]) -> Table:
    spent = sorted(run["files"], key=lambda row: (-row["read_tokens"], row["path"]))[:LISTED]
    vain = READING_MEASURES["dead_read_tokens"]
    in_vain = (Column("dead_tokens", vain.heading, 0, meaning=vain.description),)
    # Without a goal nothing says what led to it.
    known = run["unit"] != "tokens" or run["goal_accessed"]
    columns = (
        Column("path", "file", role="name"),
        Column("reads", "reads"),
        Column.of(READING_MEASURES["read_tokens"]),
        Column.of(READING_MEASURES["repeat_tokens"]),
        *(in_vain if known else ()),
        Column("writes", "writes"),
    )
    return Table("files", "Files", columns, tuple(spent))


def _losses(run: Mapping[str, Any]) -> Iterator[str]:
    breaks = {cost["cut"]: cost["kind"] for cost in run["breaks"]}
    for cost in run["breaks"]:
        yield f"{break_name(cost)} before turn {cost['cut']}: {break_line(cost)}"
    for one in (one for one in run["instructions"] if one["survival"] == "gone"):
        broken = (
            "" if one["broken_turn"] is None else f", then broken in turn {one['broken_turn']} ({one['broken_by']})"
        )
        kind = {"todo": "open to-do"}.get(one["kind"], one["kind"])
        left = f"what the {breaks.get(one['cut'], 'compaction')} before turn {one['cut']} left"
        yield f"{kind} not found in {left}: “{one['text']}”{broken}"
    if run["clipped_views"]:
        clipped = counted(run["clipped_views"], "clipped view")
        yield f"{clipped}, {run['clipped_goal_views']:,} of goal files"
    for event in run["anomalies"][:LISTED]:
        yield f"turn {event['turn']}: {event['signature'].replace('_', ' ')}"
