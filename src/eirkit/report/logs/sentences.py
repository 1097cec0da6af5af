"""Sentences about analyzed runs that pages and commands share: demand and failure, coverage, sub-agents, advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from msgspec.structs import asdict, replace

from eirkit.lacuna.models.prices import MILLION, load_prices
from eirkit.records.analysis import Advice, AnalysisSummary, CohortRow, FormatCoverage, ListedRun, RepeatedFile
from eirkit.report.document import Section
from eirkit.report.table import Column, Table, counted, in_viewer, listed, share
from eirkit.vestige.measures import LEAST_USD, LOG_MEASURES, READING_MEASURES, UNDERSTOOD_SHARE
from eirkit.vestige.model_names import name_in, plain_name

CHANCE = 0.5
GOALS = {
    "gold": "the reference patch",
    "log": "the log itself",
    "own-edits": "none given: what each part of a session edited and kept",
}
SIGNATURES = ("edit_failures", "repeated_commands", "repeated_edits", "submits_after_failed_test", "overflow_errors")
UNCOVERED = "touched no goal file, so what they needed is not known"

_GOAL, _PEAK = LOG_MEASURES["goal_accessed"], LOG_MEASURES["peak_demand_tokens"]
GOAL_COLUMNS = (
    Column("goal_access", _GOAL.label, 3, percent=True, meaning=_GOAL.description),
    Column("mean_peak_tokens", f"mean {_PEAK.label}", 0, meaning="tokens, runs without a goal file as 0"),
)
CENT = 0.01  # less money is not worth a word
ADVICE_COLUMNS = (
    Column("words", "what to do"),
    Column("run_id", "run", role="name", link="view"),
    Column("turn", "turn", link="view"),
    Column("tokens", "tokens"),
    Column("usd", "at least, $", 2, meaning="the tokens once, at the model's present price of input"),
)
MEASURE = LOG_MEASURES["calls_understood"]
_NAMED = 4  # tools that a sentence names
_LINES = 4  # versions that the summary in the terminal lists
_COLUMNS = (
    Column("log", "log", role="name"),
    Column("runs", "runs"),
    Column("understood", "understood", meaning=MEASURE.meaning),
    Column("calls", "calls"),
    Column("names", "not understood"),
)
_STARTED = (
    Column("parent_run", "started by", role="name"),
    Column("runs", "sub-agents"),
    *(Column(name, name) for name in ("turns", "calls", "reads", "writes")),
    Column("trajectory_tokens", "tokens", meaning="tokens of the sub-agents, not of the run that started them"),
)


def need_sentence(estimate: float, low: float | None, high: float | None, left_out: int) -> str:
    """Return a sentence on how well demand predicts failure.

    Args:
        left_out: runs with a known outcome that touched no goal file.
    """
    ends = "" if low is None or high is None else f" (95% interval {bounds(low, high)})"
    said = (
        f"A failed run needed more than a successful one with probability {estimate:.2f}{ends}; 0.50 would be chance."
    )
    if left_out:
        are, they = ("is", "it") if left_out == 1 else ("are", "they")
        said += f" {counted(left_out, 'run')} {are} left out: {they} {UNCOVERED}."
    return f"{said} This is association, not cause."


def bounds(low: float, high: float, threshold: float = CHANCE) -> str:
    """Return `0.52 to 0.66`, with a third digit if a bound would otherwise round to the threshold."""
    digits = 3 if any(f"{end:.2f}" == f"{threshold:.2f}" for end in (low, high)) else 2
    return f"{low:.{digits}f} to {high:.{digits}f}"


def cohort_sentence(row: CohortRow) -> str:
    """Return a summary of a cohort in sentences."""
    known = row.resolved + row.failed
    runs = counted(row.runs, "run")
    first = f"{runs}, {row.resolved:,} of {known:,} with a known outcome succeeded." if known else f"{runs}."
    if row.covered_failure_auc is not None:
        left_out = row.auc_n - (row.covered_auc_n or 0)
        return f"{first} {need_sentence(row.covered_failure_auc, row.covered_auc_low, row.covered_auc_high, left_out)}"
    if row.unit != "tokens" and row.failure_auc is not None:
        return f"{first} {need_sentence(row.failure_auc, row.auc_low, row.auc_high, 0)}"
    if not (row.resolved and row.failed):
        return f"{first} Whether need goes with failure is not measured: outcomes of both kinds are needed."
    return f"{first} Whether need goes with failure is not measured: too few of them touched a goal file."


def later_runs(unit: str, runs: int) -> str:
    """Return the number of runs behind later-use figures, in words; only runs over files leave out short runs."""
    said = counted(runs, "run")
    return f"{said} of three tool turns or more" if unit == "tokens" else said


def signature_counts(summary: AnalysisSummary) -> Iterator[tuple[str, int]]:
    """Yield how often each signature of trouble occurs, under its label."""
    for key in SIGNATURES:
        yield LOG_MEASURES[key].label, getattr(summary, key)


def largest_table(runs: Sequence[ListedRun]) -> Table:
    """Return the runs with the largest demand; goal figures are unknown of those that touched no goal file."""
    shown = [run for run in runs if run.goal_accessed or run.later_used_peak]
    several = len({run.unit for run in shown}) > 1
    unit = Column("unit", "unit", meaning=f"in which {LOG_MEASURES['later_used_peak'].label} is counted")
    columns = (
        Column("run_id", "run", role="name", link="view"),
        Column("turns", "turns"),
        *(Column.of(LOG_MEASURES[key]) for key in ("peak_demand_tokens", "peak_cut", "later_used_peak")),
        *((unit,) if several else ()),
        Column.of(READING_MEASURES["read_tokens"], priority=1),
        Column.of(READING_MEASURES["repeat_tokens"], priority=3),
        Column.of(READING_MEASURES["dead_read_tokens"], priority=2),
        Column.of(LOG_MEASURES["peak_context_tokens"], priority=4),
    )
    known = (
        run if run.goal_accessed else replace(run, peak_demand_tokens=None, dead_read_tokens=None) for run in shown
    )
    rows = tuple({**asdict(run), "view": in_viewer(run=run.run_id, turn=run.peak_cut or 1)} for run in known)
    return Table("largest", "Runs with the largest demand", columns, rows)


def repeated_table(files: Sequence[RepeatedFile]) -> Table:
    """Return the files that were read again."""
    again = Column.of(READING_MEASURES["repeat_tokens"])
    columns = (Column("path", "file", role="name"), Column("repeat_reads", "reads"), again)
    return Table("read-again", "Read again although unchanged", columns, tuple(map(asdict, files)))


def goal_is_known(found: AnalysisSummary | CohortRow) -> bool:
    """Return True if goals are known: given as input, or taken from files that runs edited."""
    return bool(found.covered_runs) or not set(found.goal_sources) <= {"own-edits"}


class AdviceRow(Advice, frozen=True, kw_only=True, omit_defaults=False):
    """One thing to act on with its price, in words."""

    words: str


def advice_rows(things: Iterable[Advice]) -> tuple[AdviceRow, ...]:
    """Return what to do, one row for each thing: the dearest first, and nothing that is known to have cost little."""
    rows = [
        AdviceRow(**{**asdict(thing), "tokens": _spent(thing), "usd": _cost(thing)}, words=_words(thing))
        for thing in things
    ]
    worth = [row for row in rows if row.usd is None or row.usd >= LEAST_USD]
    return tuple(sorted(worth, key=lambda row: -(row.usd or 0)))


def advice_lines(rows: Iterable[AdviceRow]) -> Iterator[str]:
    """Yield what to act on, numbered, with its cost and the turn to look at."""
    for number, row in enumerate(rows, 1):
        tokens = "" if row.tokens is None else counted(row.tokens, "token")
        if tokens and row.kind == "compaction":
            tokens += " dropped"
        money = "" if row.usd is None or row.usd < CENT else f"at least ${row.usd:.2f}"
        place = f"turn {row.turn} of {row.run_id}" if row.turn else f"most of it in {row.run_id}"
        yield f"{number}. {row.words} [{'; '.join(filter(None, (tokens, money, place)))}]"


def advice_section(summary: AnalysisSummary) -> Section | None:
    """Return the section with which a page begins."""
    rows = advice_rows(summary.advice)
    if not rows:
        return None
    columns = tuple(
        column for column in ADVICE_COLUMNS if column.key != "usd" or any(row.usd is not None for row in rows)
    )
    linked = tuple({**asdict(row), "view": in_viewer(run=row.run_id, turn=row.turn)} for row in rows)
    return Section("What to do", (), (Table("advice", "Worth acting on", columns, linked),))


def _cost(thing: Advice) -> float | None:
    """Return what the tokens spent again cost once as input of the model; None if either is unknown."""
    if thing.usd is not None:
        return thing.usd
    names = _prices()
    name = name_in(names, thing.model)
    tokens = thing.count if thing.kind == "compaction" else _spent(thing)
    return None if name is None or tokens is None else tokens * names[name] / MILLION


def _spent(thing: Advice) -> int | None:
    """Return the tokens of a thing; those that a cut output hid were not spent."""
    return None if thing.kind == "clip" else thing.tokens


@cache
def _prices() -> dict[str, float]:
    listed = load_prices().built_in
    return {plain_name(name): float(price.input) for name, price in listed.items() if not name.endswith("*")}


def _words(thing: Advice) -> str:
    if thing.kind == "file":
        runs = f" in {counted(thing.runs, 'run')}" if thing.runs > 1 else ""
        again = (
            f"{thing.subject}, or a part of it, was shown again {counted(thing.count, 'time')}{runs} though unchanged"
        )
        return f"{again}: note what matters of it in the agent's memory file, or split it."
    if thing.kind == "compaction":
        again = f"reading them again took {counted(thing.count, 'token')}"
        told = again if thing.count else "they were edited without reading them again"
        doubt = "" if thing.trigger == "auto" else "unless you started it yourself, "
        then = f"{doubt}compact between tasks, or name what to keep"
        return f"A {thing.subject} dropped files that later work used; {told}: {then}."
    if thing.kind == "instruction":
        rule = thing.subject if len(thing.subject) <= 80 else f"{thing.subject[:79]}…"
        lost = f"“{rule}” is not in what the compaction before turn {thing.cut} left"
        return f"{lost}, and was then broken ({thing.by[:60]}): put it into the agent's instruction file."
    if thing.kind == "expired":
        again = f"{counted(thing.count, 'request')} came later than the cache lives, and paid for what it held again"
        return f"{again}: go on sooner, or begin the next task in a new session."
    first, *others = thing.subject.split(", ")
    shown = f"{first} and {counted(len(others), 'other file')}" if others else first
    hid = f"An output that showed {shown} was cut by about {counted(thing.tokens or 0, 'token')}"
    return f"{hid}, and not looked at again: read in parts, narrow the search, or raise the limit of the output."


def coverage_of(summary: AnalysisSummary) -> list[FormatCoverage]:
    """Return the coverage of each format and version with calls."""
    return [log for log in summary.coverage if log.calls]


def is_silent(summary: AnalysisSummary) -> bool:
    """Return whether there were calls and none was understood, so that nothing is known of what the runs needed."""
    logs = coverage_of(summary)
    return bool(logs) and not any(log.understood for log in logs)


def coverage_facts(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    """Yield the lines of a summary, the logs with most calls first."""
    logs = sorted(coverage_of(summary), key=lambda log: -log.calls)
    for log in logs[:_LINES]:
        yield MEASURE.label, f"{log.understood:,} of {log.calls:,} in {_log(log)}"
    if rest := logs[_LINES:]:
        understood, calls = sum(log.understood for log in rest), sum(log.calls for log in rest)
        yield MEASURE.label, f"{understood:,} of {calls:,} in {counted(len(rest), 'other version')}"


def split_facts(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    """Yield how many reads are of files that were printed together; nothing if there are none."""
    if summary.undivided_reads:
        reads = counted(summary.undivided_reads, "read")
        yield "unknown split", f"{reads} of files printed together; each counts an equal part of the tokens"


def sub_agent_facts(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    """Yield how many of the runs are sub-agents, and their part of the tokens; nothing if there are none."""
    found = summary.sub_agents
    if found.runs:
        part = share(found.trajectory_tokens / max(1, summary.trajectory_tokens))
        yield (
            "sub-agents",
            f"{found.runs:,} of the runs, of {counted(found.parents, 'other')}, with {part} of the tokens",
        )


def sub_agents_section(summary: AnalysisSummary) -> Section | None:
    """Return the section of a page on what sub-agents did for the runs that started them; None if there are none."""
    found = summary.sub_agents
    if not found.runs:
        return None
    part = share(found.trajectory_tokens / max(1, summary.trajectory_tokens))
    words = [
        f"{found.runs:,} of {counted(summary.runs, 'run')} are sub-agents of "
        f"{counted(found.parents, 'run')}, with {part} of all tokens. A sub-agent is a run of its own: every total "
        "counts it once, and its caller's figures leave it out."
    ]
    if found.parents > len(found.by_parent):
        words.append(f"Listed are the {len(found.by_parent)} whose sub-agents took most tokens.")
    rows = tuple(map(asdict, found.by_parent))
    table = Table("sub-agents", "Sub-agents, by the run that started them", _STARTED, rows)
    return Section("What sub-agents did", tuple(words), (table,))


def coverage_warnings(summary: AnalysisSummary) -> Iterator[str]:
    """Yield a sentence for each format and version of which too few calls were understood."""
    for log in coverage_of(summary):
        if log.understood < UNDERSTOOD_SHARE * log.calls:
            names = listed([f"{missed.tool} ({missed.calls:,})" for missed in log.unknown], _NAMED)
            known = f"{log.understood:,} of {log.calls:,} calls in {_log(log)} were understood"
            yield f"warning: {known}, so what these runs read and wrote is not fully known. Not understood: {names}."
        elif log.silent_runs:
            runs = counted(log.silent_runs, "run")
            yield f"warning: no call was understood in {runs} of {_log(log)}; what they needed is not known."


def coverage_section(summary: AnalysisSummary) -> Section | None:
    """Return the section of a page; None if no run made a call."""
    logs = coverage_of(summary)
    if not logs:
        return None
    understood, calls = sum(log.understood for log in logs), sum(log.calls for log in logs)
    words = f"{understood:,} of {calls:,} calls ({share(understood / calls)}) were understood: {MEASURE.meaning}."
    rows = tuple(
        {
            **asdict(log),
            "log": _log(log),
            "names": ", ".join(f"{missed.tool} {missed.calls:,}" for missed in log.unknown),
        }
        for log in logs
    )
    warnings = tuple(coverage_warnings(summary))
    return Section("How much was understood", (words, *warnings), (Table("coverage", "Calls", _COLUMNS, rows),))


def _log(log: FormatCoverage) -> str:
    return f"{log.format} {log.agent_version}".rstrip()
