"""`eirkit show` of an analysis: one run: demand by cut, live states at the peak, and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote

from msgspec import to_builtins
from msgspec.structs import asdict

from eirkit.errors import UsageError
from eirkit.records.analysis import RunBreak, RunDetails
from eirkit.report.document import Axis, Chart, Document, Item, Section, Series
from eirkit.report.logs.break_sentences import break_line, break_name
from eirkit.report.table import Cell, Column, Table, counted, listed
from eirkit.report.terminal import may_be
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES
from eirkit.vestige.results.analysis import Analysis

SUGGESTED = 5  # names of runs in a message
LISTED = 15  # rows of a table for reading; --json has them all
GOALS = {
    "gold": "from the reference patch",
    "log": "from the log",
    "own-edits": "what the run itself edited; no goal was given",
}


def analyzed_run(folder: Path, run_id: str | None, every: bool = False) -> Document:
    """Return what a run needed at each cut, where cut t lies just before turn t; without a name, the runs.

    Args:
        every: list all runs.
    """
    analysis = Analysis(folder)
    if run_id is None:
        return _listing(analysis, every)
    return _document(analysis.run(_chosen(analysis, run_id)), folder)


def _listing(analysis: Analysis, every: bool) -> Document:
    """Return the runs, that with the costliest compaction first: with the most tokens of files that were needed."""
    folder, breaks = analysis.folder, dict[str, list[RunBreak]]()
    for cost in analysis.breaks():
        breaks.setdefault(cost.run_id, []).append(cost)
    most = {name: max(cost.live_tokens for cost in own) for name, own in breaks.items()}
    rows: list[dict[str, Cell]] = [
        {
            "run": run.run_id,
            "model": run.model or None,
            "turns": run.turns,
            "compactions": sum(one.compactions for one in breaks.get(run.run_id, ())),
            "live": most.get(run.run_id),
            "dropped": sum(one.dropped_tokens for one in breaks.get(run.run_id, ())),
        }
        for run in sorted(analysis.runs, key=lambda run: -most.get(run.run_id, -1))
    ]
    columns = (
        Column("run", "run", role="name"),
        Column("model", "model"),
        Column("turns", "turns"),
        Column("compactions", "compactions"),
        Column(
            "live", "needed, tokens", meaning="of files that were needed later, at the costliest compaction or clear"
        ),
        Column("dropped", "dropped, tokens", meaning="of these files, over all compactions and clears"),
    )
    shown = rows if every else rows[:LISTED]
    part = "" if len(shown) == len(rows) else f"; {len(shown)} of {len(rows):,}, --all lists every one"
    table = Table("runs", f"Runs, the costliest compaction first{part}", columns, tuple(shown))
    cut = sum(bool(row["compactions"]) for row in rows)
    answer = f"{cut:,} of {counted(len(rows), 'run')} {'was' if cut == 1 else 'were'} compacted."
    where = quote(str(folder))
    then = f"eirkit show {where} {quote(str(rows[0]['run']))}" if rows else f"eirkit view {where}"
    data = {"folder": str(folder), "runs": rows, "listed": len(shown)}
    sections = (Section("", (), (table,)),) if rows else ()
    return Document("vestige-show", f"Runs of {folder}", (answer,), data, sections, next=then)


def _chosen(analysis: Analysis, run_id: str) -> str:
    """Return the run with a name, given in full, by its beginning or as shortened in tables."""
    folder, known = analysis.folder, analysis.run_ids()
    if run_id in known:
        return run_id
    meant = [name for name in known if name.startswith(run_id) or may_be(run_id, name)]
    if len(meant) > 1:
        how = "begin with" if all(name.startswith(run_id) for name in meant) else "may be meant by"
        raise UsageError(f"{len(meant)} runs of {folder} {how} {run_id!r}; {_known(meant)}")
    if meant:
        return meant[0]
    near = [name for name in known if run_id in name] or get_close_matches(run_id, known)
    hint = f"did you mean {' or '.join(near[:SUGGESTED])}?" if near else _known(known)
    raise UsageError(f"no run named {run_id!r} in {folder}; {hint}")


def _known(names: Sequence[str]) -> str:
    if not names:
        return "it holds no runs; analyze logs that have some"
    return f"name one of {listed(names, SUGGESTED + 1)}"


def _document(run: RunDetails, folder: Path) -> Document:
    outcome = {True: "resolved", False: "failed", None: "outcome unknown"}[run.resolved]
    source = f"{run.format}, {run.model or 'model unknown'}"
    head = f"{run.run_id} ({source}): {counted(run.turns, 'turn')}, {outcome}"
    words = [_peak_line(run), *_coverage(run)]
    if run.unit == "tokens":
        words.append(f"goal: {', '.join(run.goal_files) or 'none'} ({GOALS[run.goal_source or 'own-edits']})")
    tables = [table for table in (_live_table(run), _file_table(run)) if table.rows]
    items: tuple[Item, ...] = (*filter(None, [_chart(run)]), *tables)
    every = Section("", tuple(words)), Section("", (), items), Section("Losses", tuple(_losses(run)))
    sections = [section for section in every if section.words or section.items]
    then = f"eirkit view {quote(str(folder))}"
    return Document("vestige-show", run.run_id, (head,), to_builtins(run), tuple(sections), next=then)


def _coverage(run: RunDetails) -> Iterator[str]:
    if run.calls:
        label = LOG_MEASURES["calls_understood"].label
        missed = [
            f"{tool.tool} ({tool.calls - tool.understood:,})"
            for tool in run.calls_by_tool
            if tool.calls > tool.understood
        ]
        rest = f"; not understood: {listed(missed, SUGGESTED)}" if missed else ""
        yield f"{label}: {run.calls_understood:,} of {run.calls:,}{rest}"


def _peak_line(run: RunDetails) -> str:
    if run.unit != "tokens":
        peak = counted(run.later_used_peak, "entity", "entities")
        return f"{LOG_MEASURES['later_used_peak'].label}: {peak} at cut {run.later_used_peak_cut}"
    if not run.goal_accessed:
        used = run.later_used_peak
        label = LOG_MEASURES["later_used_peak"].label
        drawn = f"; {label}: {used:,} tokens at cut {run.later_used_peak_cut}" if used else ""
        return f"no goal file was read or written: no coverage, which is not the same as no need{drawn}"
    context = "unknown" if run.peak_context_tokens is None else f"{run.peak_context_tokens:,} tokens"
    where = f" at cut {run.peak_cut}" if run.peak_cut is not None else ""
    peak = f"{LOG_MEASURES['peak_demand_tokens'].label}: {run.peak_demand_tokens:,} tokens{where}"
    later = f"{LOG_MEASURES['later_used_peak'].label}: {run.later_used_peak:,} tokens"
    return f"{peak} ({run.visibility}); {later}; {LOG_MEASURES['peak_context_tokens'].label}: {context}"


def _chart(run: RunDetails) -> Chart | None:
    """Return a chart of demand over cuts; None if demand is zero or unknown."""
    in_goal = run.unit == "tokens" and run.goal_accessed
    values = tuple((cut.demand_tokens or 0) if in_goal else cut.later_used for cut in run.cuts)
    if not any(values):
        return None
    title = f"{'Demand' if in_goal else 'Used later'}, {run.unit}"
    cuts = tuple(cut.cut for cut in run.cuts)
    alt = f"At most {max(values):,} {run.unit} at a cut."
    series = Series("demand", "bars", cuts, values)
    return Chart("demand", title, alt, Axis("cut"), Axis(run.unit, low=0.0), (series,))


def _live_table(run: RunDetails) -> Table:
    columns = (
        Column("path", "file", role="name"),
        Column("version", "version"),
        Column("tokens", "tokens"),
        Column("first_seen", "first seen", meaning="turn"),
        Column("last_used", "last used", meaning="turn"),
    )
    return Table("live-at-peak", "Live at the peak", columns, tuple(map(asdict, run.live_at_peak[:LISTED])))


def _file_table(run: RunDetails) -> Table:
    spent = sorted(run.files, key=lambda file: (-file.read_tokens, file.path))[:LISTED]
    vain = READING_MEASURES["dead_read_tokens"]
    in_vain = (Column("dead_tokens", vain.heading, 0, meaning=vain.description),)
    # Without a goal nothing says what led to it.
    known = run.unit != "tokens" or run.goal_accessed
    columns = (
        Column("path", "file", role="name"),
        Column("reads", "reads"),
        Column.of(READING_MEASURES["read_tokens"]),
        Column.of(READING_MEASURES["repeat_tokens"]),
        *(in_vain if known else ()),
        Column("writes", "writes"),
    )
    return Table("files", "Files", columns, tuple(map(asdict, spent)))


def _losses(run: RunDetails) -> Iterator[str]:
    breaks = {cost.cut: cost.kind for cost in run.breaks}
    for cost in run.breaks:
        yield f"{break_name(cost)} before turn {cost.cut}: {break_line(cost)}"
    for rule in (rule for rule in run.instructions if rule.survival == "gone"):
        broken = "" if rule.broken_turn is None else f", then broken in turn {rule.broken_turn} ({rule.broken_by})"
        kind = {"todo": "open to-do"}.get(rule.kind, rule.kind)
        left = f"what the {breaks.get(rule.cut, 'compaction')} before turn {rule.cut} left"
        yield f"{kind} not found in {left}: “{rule.text}”{broken}"
    if run.clipped_views:
        clipped = counted(run.clipped_views, "clipped view")
        yield f"{clipped}, {run.clipped_goal_views:,} of goal files"
    for event in run.anomalies[:LISTED]:
        yield f"turn {event.turn}: {event.signature.replace('_', ' ')}"
