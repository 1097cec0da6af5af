"""Which calls of recorded runs were understood, and which runs are sub-agents: facts, warnings, sections of pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.logs.actions.touches import UNDERSTOOD_SHARE
from eirkit.logs.measures import LOG_MEASURES
from eirkit.show.document import Section
from eirkit.show.table import Column, Table, counted, listed, share

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


def coverage_of(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the coverage of each format and version with calls; an analysis by an earlier eirkit has none."""
    return [one for one in document.get("coverage", ()) if one["calls"]]


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
    if found := document.get("undivided_reads"):
        yield (
            "unknown split",
            f"{counted(found, 'read')} of files printed together; each counts an equal part of the tokens",
        )


def sub_agent_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how many of the runs are sub-agents, and their part of the tokens; nothing if there are none."""
    found = document.get("sub_agents", {})
    if found.get("runs"):
        part = share(found["trajectory_tokens"] / max(1, document["trajectory_tokens"]))
        yield (
            "sub-agents",
            f"{found['runs']:,} of the runs, of {counted(found['parents'], 'other')}, with {part} of the tokens",
        )


def sub_agents_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section of a page on what sub-agents did for the runs that started them; None if there are none."""
    found = document.get("sub_agents", {})
    if not found.get("runs"):
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
