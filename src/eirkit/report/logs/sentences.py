"""Sentences about analysed runs that pages and commands share: demand and failure, coverage, sub-agents, advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from eirkit.lacuna.models.prices import MILLION, load_prices
from eirkit.report.document import Section
from eirkit.report.table import Column, Table, counted, in_viewer, listed, share
from eirkit.vestige.actions.touches import UNDERSTOOD_SHARE
from eirkit.vestige.audits.occupancy import name_in, plain_name
from eirkit.vestige.corpus.summary import LEAST_USD
from eirkit.vestige.measures import LOG_MEASURES

CHANCE = 0.5
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
        said += (
            f" {counted(left_out, 'run')} {'is' if left_out == 1 else 'are'} left out: {_who(left_out)} {UNCOVERED}."
        )
    return f"{said} This is association, not cause."


def _who(runs: int) -> str:
    return "it" if runs == 1 else "they"


def bounds(low: float, high: float, threshold: float = CHANCE) -> str:
    """Return `0.52 to 0.66`, with a third digit if a bound would otherwise round to the threshold."""
    digits = 3 if any(f"{end:.2f}" == f"{threshold:.2f}" for end in (low, high)) else 2
    return f"{low:.{digits}f} to {high:.{digits}f}"


def cohort_sentence(row: Mapping[str, Any]) -> str:
    """Return a summary of a cohort's row in sentences."""
    known = row["resolved"] + row["failed"]
    runs = counted(row["runs"], "run")
    first = f"{runs}, {row['resolved']:,} of {known:,} with a known outcome succeeded." if known else f"{runs}."
    if row["covered_failure_auc"] is not None:
        ends = row["covered_auc_low"], row["covered_auc_high"]
        return f"{first} {need_sentence(row['covered_failure_auc'], *ends, row['auc_n'] - row['covered_auc_n'])}"
    if row["unit"] != "tokens" and row["failure_auc"] is not None:
        ends = row["auc_low"], row["auc_high"]
        return f"{first} {need_sentence(row['failure_auc'], *ends, 0)}"
    if not (row["resolved"] and row["failed"]):
        return f"{first} Whether need goes with failure is not measured: outcomes of both kinds are needed."
    return f"{first} Whether need goes with failure is not measured: too few of them touched a goal file."


def later_runs(unit: str, runs: int) -> str:
    """Return the number of runs behind later-use figures, in words; only runs over files leave out short runs."""
    said = counted(runs, "run")
    return f"{said} of three tool turns or more" if unit == "tokens" else said


def goal_is_known(document: Mapping[str, Any]) -> bool:
    """Return True if goals are known: given as input, or taken from files that runs edited."""
    return bool(document["covered_runs"]) or not set(document["goal_sources"]) <= {"own-edits"}


def goal_runs(document: Mapping[str, Any]) -> int:
    """Return how many runs can have a goal, which are those over files."""
    return sum(document["goal_sources"].values())


def is_reached(run: Mapping[str, Any]) -> bool:
    """Return True if a listed run touched a goal file."""
    return bool(run["goal_accessed"])


def advice_rows(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return what to do, one row for each thing: the dearest first, and nothing that is known to have cost little."""
    things = [{"usd": input_cost(thing), **thing} for thing in document["advice"]]
    worth = [thing for thing in things if thing["usd"] is None or thing["usd"] >= LEAST_USD]
    ranked = sorted(worth, key=lambda thing: -(thing["usd"] or 0))
    return tuple({**thing, "words": _words(thing), "tokens": _spent(thing)} for thing in ranked)


def advice_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what to act on, numbered, with its cost and the turn to look at."""
    for number, one in enumerate(rows, 1):
        tokens = "" if one["tokens"] is None else counted(one["tokens"], "token")
        if tokens and one.get("kind") == "compaction":
            tokens += " dropped"
        money = "" if one["usd"] is None or one["usd"] < CENT else f"at least ${one['usd']:.2f}"
        place = f"turn {one['turn']} of {one['run_id']}"
        yield f"{number}. {one['words']} [{'; '.join(filter(None, (tokens, money, place)))}]"


def advice_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section with which a page begins."""
    rows = advice_rows(document)
    if not rows:
        return None
    columns = tuple(one for one in ADVICE_COLUMNS if one.key != "usd" or any(row["usd"] is not None for row in rows))
    linked = tuple({**row, "view": in_viewer(run=row["run_id"], turn=row["turn"])} for row in rows)
    return Section("What to do", (), (Table("advice", "Worth acting on", columns, linked),))


def input_cost(thing: Mapping[str, Any]) -> float | None:
    """Return what the tokens spent again cost once as input of its model; None if either is unknown."""
    names = _prices()
    name = name_in(names, str(thing.get("model") or ""))
    tokens = thing.get("count") if thing.get("kind") == "compaction" else _spent(thing)
    return None if name is None or tokens is None else tokens * names[name] / MILLION


def _spent(thing: Mapping[str, Any]) -> int | None:
    """Return the tokens of a thing; those that a cut output hid were not spent."""
    tokens: int | None = None if thing.get("kind") == "clip" else thing.get("tokens")
    return tokens


@cache
def _prices() -> dict[str, float]:
    listed = load_prices().built_in
    return {plain_name(name): float(price.input) for name, price in listed.items() if not name.endswith("*")}


def _words(thing: Mapping[str, Any]) -> str:
    subject = str(thing["subject"])
    if thing["kind"] == "file":
        runs = f" in {counted(thing['runs'], 'run')}" if thing["runs"] > 1 else ""
        again = f"{subject}, or a part of it, was shown again {counted(thing['count'], 'time')}{runs} though unchanged"
        return f"{again}: note what matters of it in the agent's memory file, or split it."
    if thing["kind"] == "compaction":
        again = f"reading them again took {counted(thing['count'], 'token')}"
        told = again if thing["count"] else "they were edited without reading them again"
        doubt = "" if thing.get("trigger") == "auto" else "unless you started it yourself, "
        then = f"{doubt}compact between tasks, or name what to keep"
        return f"A {subject} dropped files that later work used; {told}: {then}."
    if thing["kind"] == "instruction":
        lost = f"{_quoted(subject)} is not in what the compaction before turn {thing['cut']} left"
        return f"{lost}, and was then broken ({thing['by'][:60]}): put it into the agent's instruction file."
    first, *others = subject.split(", ")
    shown = f"{first} and {counted(len(others), 'other file')}" if others else first
    hid = f"An output that showed {shown} was cut by about {counted(thing['tokens'], 'token')}"
    return f"{hid}, and not looked at again: read in parts, narrow the search, or raise the limit of the output."


def _quoted(text: str) -> str:
    return f"“{text if len(text) <= 80 else text[:79] + '…'}”"


def coverage_of(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the coverage of each format and version with calls."""
    return [one for one in document["coverage"] if one["calls"]]


def is_silent(document: Mapping[str, Any]) -> bool:
    """Return whether there were calls and none was understood, so that nothing is known of what the runs needed."""
    rows = coverage_of(document)
    return bool(rows) and not any(one["understood"] for one in rows)


def coverage_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a summary, the logs with most calls first."""
    rows = sorted(coverage_of(document), key=lambda one: -one["calls"])
    for row in rows[:_LINES]:
        yield MEASURE.label, f"{row['understood']:,} of {row['calls']:,} in {_log(row)}"
    if rest := rows[_LINES:]:
        understood, calls = (sum(one[name] for one in rest) for name in ("understood", "calls"))
        yield MEASURE.label, f"{understood:,} of {calls:,} in {counted(len(rest), 'other version')}"


def split_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how many reads are of files that were printed together; nothing if there are none."""
    if found := document["undivided_reads"]:
        yield (
            "unknown split",
            f"{counted(found, 'read')} of files printed together; each counts an equal part of the tokens",
        )


def sub_agent_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how many of the runs are sub-agents, and their part of the tokens; nothing if there are none."""
    found = document["sub_agents"]
    if found["runs"]:
        part = share(found["trajectory_tokens"] / max(1, document["trajectory_tokens"]))
        yield (
            "sub-agents",
            f"{found['runs']:,} of the runs, of {counted(found['parents'], 'other')}, with {part} of the tokens",
        )


def sub_agents_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section of a page on what sub-agents did for the runs that started them; None if there are none."""
    found = document["sub_agents"]
    if not found["runs"]:
        return None
    part = share(found["trajectory_tokens"] / max(1, document["trajectory_tokens"]))
    words = [
        f"{found['runs']:,} of {counted(document['runs'], 'run')} are sub-agents of "
        f"{counted(found['parents'], 'run')}, with {part} of all tokens. A sub-agent is a run of its own: every total "
        "counts it once, and its caller's figures leave it out."
    ]
    if found["parents"] > len(found["by_parent"]):
        words.append(f"Listed are the {len(found['by_parent'])} whose sub-agents took most tokens.")
    table = Table("sub-agents", "Sub-agents, by the run that started them", _STARTED, tuple(found["by_parent"]))
    return Section("What sub-agents did", tuple(words), (table,))


def coverage_warnings(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each format and version of which too few calls were understood."""
    for row in coverage_of(document):
        if row["understood"] < UNDERSTOOD_SHARE * row["calls"]:
            names = listed([f"{one['tool']} ({one['calls']:,})" for one in row["unknown"]], _NAMED)
            known = f"{row['understood']:,} of {row['calls']:,} calls in {_log(row)} were understood"
            yield f"warning: {known}, so what these runs read and wrote is not fully known. Not understood: {names}."
        elif row["silent_runs"]:
            runs = counted(row["silent_runs"], "run")
            yield f"warning: no call was understood in {runs} of {_log(row)}; what they needed is not known."


def coverage_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section of a page; None if no run made a call."""
    rows = coverage_of(document)
    if not rows:
        return None
    understood, calls = (sum(one[name] for one in rows) for name in ("understood", "calls"))
    words = f"{understood:,} of {calls:,} calls ({share(understood / calls)}) were understood: {MEASURE.meaning}."
    table = tuple({**one, "log": _log(one), "names": _names(one)} for one in rows)
    warnings = tuple(coverage_warnings(document))
    return Section("How much was understood", (words, *warnings), (Table("coverage", "Calls", _COLUMNS, table),))


def _log(row: Mapping[str, Any]) -> str:
    return f"{row['format']} {row['agent_version']}".rstrip()


def _names(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{one['tool']} {one['calls']:,}" for one in row["unknown"])
