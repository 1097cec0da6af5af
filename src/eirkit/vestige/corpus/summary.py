"""Summarises a whole analysis in one JSON document, updated run by run: counts, quantiles, and what is worth acting on.

Nothing of a run is kept but numbers and, of its files, those that were read again. Worth acting on are files that were
shown again and again, compactions that dropped most of what may have been needed, rules of the user that were lost and
then broken, and clipped views that were never looked at again, each with its tokens and the turn to look at. How much
money that is depends on prices, which the pages add.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from heapq import nlargest
from typing import Any

from eirkit.vestige.corpus.analysis import Analysis
from eirkit.vestige.corpus.rows import RunRow
from eirkit.vestige.demand.entities import SHELL_TOOL_TURNS
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.tables import Columns

QUANTILES = (0.5, 0.9, 0.99)
LISTED = 10  # runs and files
_MOST_FILES = 100_000  # files kept by name; beyond that the least reread are dropped

_SUMS = (
    "turns",
    "reads",
    "writes",
    "trajectory_tokens",
    "undivided_reads",
    "read_tokens",
    "repeat_tokens",
    "dead_read_tokens",
    "clipped_views",
    "clipped_goal_views",
    "clipped_modified_views",
    "lines_recovered",
    "lines_never_recovered",
    "lines_ambiguous",
    "edit_failures",
    "repeated_commands",
    "repeated_edits",
    "submits_after_failed_test",
    "overflow_errors",
)
_ROLLED_UP = ("turns", "calls", "reads", "writes", "trajectory_tokens")  # of sub-agents, for the run that started them
_BREAK_SUMS = (
    "live_tokens",
    "dropped_tokens",
    "reread_tokens",
    "never_reread_tokens",
    "reread_dropped_tokens",
    "overwritten_tokens",
    "unknown_tokens",
)
_BREAK_COUNTS = ("compactions", "clears", "manual_compactions", "automatic_compactions")
MOST_OF_A_KIND = 3  # things of a kind
LEAST_TOKENS = 500  # less is not worth acting on
LEAST_USD = Decimal(1)  # likewise, where the price is known
LEAST_REPEATS = 2  # times that a file was shown again
_CHARACTERS_OF_A_TOKEN = 4  # of a token, by a rule of thumb


@dataclass(slots=True)
class RepeatedFile:
    """One file that was shown again although unchanged, over all runs."""

    path: str
    tokens: int = 0
    reads: int = 0
    runs: int = 0
    most: int = 0  # tokens that one reading showed again
    place: tuple[str, int, str] = ("", 0, "")  # run and turn of that reading, and the run's model

    def add(self, run: RunRow, tokens: int, reads: int, turn: int | None, most: int) -> None:
        self.tokens, self.reads, self.runs = self.tokens + tokens, self.reads + reads, self.runs + 1
        if most > self.most and turn is not None:
            self.most, self.place = most, (run.run_id, turn, run.model)

    def rank(self) -> tuple[int, int, str]:
        return self.tokens, self.reads, self.path

    def as_json(self) -> dict[str, Any]:
        run_id, turn, _ = self.place
        found = {"path": self.path, "repeat_tokens": self.tokens, "repeat_reads": self.reads, "runs": self.runs}
        return {**found, "run_id": run_id, "turn": turn}


@dataclass(slots=True)
class CorpusAdvice:
    """What the runs added so far have to act on."""

    instructions: Tally[str] = field(default_factory=Tally)  # the user's at breaks, by what became of them
    todos: Tally[str] = field(default_factory=Tally)  # open items of the agent's list, likewise
    _compactions: list[dict[str, Any]] = field(default_factory=list)
    _broken: list[dict[str, Any]] = field(default_factory=list)
    _clips: list[dict[str, Any]] = field(default_factory=list)

    def add(self, analysis: Analysis) -> None:
        """Add one run."""
        run = {"run_id": analysis.run.run_id, "model": analysis.run.model}
        names = ("cut", "kind", "trigger", "dropped_tokens", "reread_tokens", "overwritten_tokens")
        for row in _rows(analysis, "breaks", names):
            # What was neither read again nor edited may have been for a task that was over: nothing to act on. Neither
            # is a break that the user started: when to do it was decided.
            if (
                row["trigger"] != "manual"
                and min(row["dropped_tokens"], row["reread_tokens"] + row["overwritten_tokens"]) >= LEAST_TOKENS
            ):
                found = {"kind": "compaction", **run, "turn": row["cut"], "subject": row["kind"]}
                found["trigger"] = row["trigger"]
                cost = {"tokens": row["dropped_tokens"], "count": row["reread_tokens"]}
                self._compactions = _largest([*self._compactions, {**found, **cost}])
        for row in _rows(analysis, "instructions", ("cut", "kind", "text", "survival", "broken_turn", "broken_by")):
            (self.todos if row["kind"] == "todo" else self.instructions)[row["survival"]] += 1
            if row["broken_turn"] is not None:
                self.instructions["broken"] += 1
                found = {"kind": "instruction", **run, "turn": row["broken_turn"], "subject": row["text"]}
                self._broken.append({**found, "tokens": None, "cut": row["cut"], "by": row["broken_by"]})
        del self._broken[MOST_OF_A_KIND:]
        for row in _rows(analysis, "clips", ("turn", "paths", "later_viewed", "hidden_characters")):
            hidden = (row["hidden_characters"] or 0) // _CHARACTERS_OF_A_TOKEN
            if row["paths"] and not row["later_viewed"] and hidden >= LEAST_TOKENS:
                found = {"kind": "clip", **run, "turn": row["turn"], "subject": ", ".join(row["paths"])}
                self._clips = _largest([*self._clips, {**found, "tokens": hidden}])

    def as_json(self, repeated: Sequence[RepeatedFile]) -> list[dict[str, Any]]:
        """Return what to act on: broken rules first, then the rest by tokens spent again, and clipped views last."""
        files = [
            {
                **dict(zip(("run_id", "turn", "model"), file.place, strict=True)),
                "kind": "file",
                "subject": file.path,
                "tokens": file.tokens,
                "count": file.reads,
                "runs": file.runs,
            }
            for file in repeated
            if file.tokens >= LEAST_TOKENS and file.reads >= LEAST_REPEATS
        ]
        rest = [*files[:MOST_OF_A_KIND], *self._compactions, *self._clips]
        return [*self._broken, *sorted(rest, key=_weight)]


def _weight(one: dict[str, Any]) -> tuple[bool, int, str, str]:
    """Return the key by which things are listed: most tokens first; those that a cut output hid were not spent."""
    return one["kind"] == "clip", -_spent(one), one["kind"], one["subject"]


def _spent(one: dict[str, Any]) -> int:
    """Return the tokens of a thing: of a compaction, those that reading again took."""
    tokens: int = one["count"] if one["kind"] == "compaction" else one["tokens"]
    return tokens


def _rows(analysis: Analysis, table: str, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    columns: list[Sequence[Any]] = [analysis.tables.get(table, {}).get(name, ()) for name in names]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _largest(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return nlargest(MOST_OF_A_KIND, found, key=lambda one: (_spent(one), one["tokens"], one["run_id"], -one["turn"]))


@dataclass(slots=True)
class _Coverage:
    """How many calls in the logs of one format and version were understood."""

    runs: int = 0
    calls: int = 0
    understood: int = 0
    silent_runs: int = 0  # runs with calls of which none was understood: what they read and wrote is unknown
    unknown: Tally[str] = field(default_factory=Tally)  # calls that were not understood, by tool

    def add(self, run: RunRow, table: Columns) -> None:
        self.runs += 1
        self.calls += run.calls
        self.understood += run.calls_understood
        self.silent_runs += run.calls > 0 and not run.calls_understood
        columns: list[Sequence[Any]] = [table.get(name, ()) for name in ("tool", "calls", "understood")]
        for tool, calls, understood in zip(*columns, strict=True):
            if calls > understood:
                self.unknown[tool] += calls - understood

    def as_json(self) -> dict[str, Any]:
        unknown = [{"tool": tool, "calls": calls} for tool, calls in self.unknown.most_common(LISTED)]
        names = ("runs", "calls", "understood", "silent_runs")
        return {**{name: getattr(self, name) for name in names}, "unknown": unknown}


@dataclass(slots=True)
class AnalysisSummary:
    """The summary of the runs added so far."""

    skipped: list[Skipped] = field(default_factory=list)
    runs: int = 0
    _sums: Tally[str] = field(default_factory=Tally)
    _breaks: Tally[str] = field(default_factory=Tally)
    _formats: Tally[str] = field(default_factory=Tally)
    _goals: Tally[str] = field(default_factory=Tally)
    _outcomes: Tally[str] = field(default_factory=Tally)
    _measured: Tally[str] = field(default_factory=Tally)  # of runs over files only
    _later: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by unit: peaks in that unit and in files
    _shares: list[float] = field(default_factory=list)  # peak shares of context windows
    _files: dict[str, RepeatedFile] = field(default_factory=dict)  # by path
    _advice: CorpusAdvice = field(default_factory=CorpusAdvice)
    _largest: dict[str, list[RunRow]] = field(default_factory=dict)  # by unit: units are never compared
    _costliest: list[dict[str, Any]] = field(default_factory=list)  # breaks
    _coverage: dict[tuple[str, str], _Coverage] = field(default_factory=dict)  # by format and version of the agent
    _sub_agents: dict[str, Tally[str]] = field(default_factory=dict)  # by the run that started them: their sums

    def add(self, analysis: Analysis) -> None:
        """Add one run."""
        run = analysis.run
        self.runs += 1
        self._sums.update({name: getattr(run, name) or 0 for name in _SUMS})
        self._formats[run.format] += 1
        covered = self._coverage.setdefault((run.format, run.agent_version), _Coverage())
        covered.add(run, analysis.tables.get("calls", {}))
        self._outcomes[{True: "resolved", False: "failed", None: "unknown"}[run.resolved]] += 1
        if run.unit != "tokens" or run.tool_turns >= SHELL_TOOL_TURNS:
            self._later.setdefault(run.unit, []).append((run.later_used_peak, run.later_used_peak_files))
        if run.peak_context_share is not None:
            self._shares.append(run.peak_context_share)
        if run.goal_source is not None:
            self._add_goal(run)
            self._add_files(analysis)
        if run.parent_run:
            sums = {"runs": 1, **{name: getattr(run, name) for name in _ROLLED_UP}}
            self._sub_agents.setdefault(run.parent_run, Tally()).update(sums)
        largest = self._largest.setdefault(run.unit, [])
        if len(largest) < LISTED or _rank(run) > _rank(largest[-1]):
            self._largest[run.unit] = nlargest(LISTED, [*largest, run], key=_rank)
        self._add_breaks(analysis)
        self._advice.add(analysis)

    def _add_goal(self, run: RunRow) -> None:
        self._goals[run.goal_source or ""] += 1
        self._measured.update(
            runs=1,
            covered=int(run.goal_accessed),
            peak=run.peak_demand_tokens or 0,
            seen=run.peak_seen_tokens or 0,
            environment=run.peak_environment_tokens or 0,
            paper=run.peak_paper_tokens or 0,
        )
        if run.goal_accessed:  # without goal access no read can be called unused
            self._measured.update(read=run.judged_read_tokens or 0, dead=run.dead_read_tokens or 0)

    def _add_breaks(self, analysis: Analysis) -> None:
        table = analysis.tables.get("breaks", {})
        names = ("kind", "trigger", "cut", *_BREAK_SUMS, "measured", *_BREAK_COUNTS)
        columns: list[Sequence[Any]] = [table.get(name, ()) for name in names]
        for values in zip(*columns, strict=True):
            row = dict(zip(names, values, strict=True))
            sums = {name: row[name] for name in (*_BREAK_COUNTS, *_BREAK_SUMS)}
            unmeasured = 0 if row["measured"] else row["compactions"] + row["clears"]
            self._breaks.update({"unmeasured": unmeasured, **sums})
            listed = [*self._costliest, {"run_id": analysis.run.run_id, **row}]
            self._costliest = nlargest(LISTED, listed, key=lambda one: int(one["live_tokens"]))

    def _add_files(self, analysis: Analysis) -> None:
        table = analysis.tables["files"]
        names = ("path", "repeat_tokens", "repeat_reads", "repeat_turn", "most_repeated")
        columns: list[Sequence[Any]] = [table[name] for name in names]
        for path, tokens, reads, turn, most in zip(*columns, strict=True):
            if tokens:
                file = self._files.get(path) or self._files.setdefault(path, RepeatedFile(path))
                file.add(analysis.run, tokens, reads, turn, most)
        if len(self._files) > 2 * _MOST_FILES:
            kept = nlargest(_MOST_FILES, self._files.values(), key=RepeatedFile.rank)
            self._files = {file.path: file for file in kept}

    def as_json(self) -> dict[str, Any]:
        """Return the document; a share of nothing is None."""
        runs, covered = self._measured["runs"], self._measured["covered"]
        return {
            "runs": self.runs,
            "skipped": [{"source": one.source, "reason": one.reason} for one in self.skipped],
            "goal_access": _share(covered, runs),
            "mean_peak_tokens": _share(self._measured["peak"], runs),
            "mean_peak_covered_tokens": _share(self._measured["peak"], covered),  # runs without coverage have demand 0
            "mean_peak_seen_tokens": _share(self._measured["seen"], runs),
            "mean_peak_environment_tokens": _share(self._measured["environment"], runs),
            "mean_peak_paper_tokens": _share(self._measured["paper"], runs),
            "judged_read_tokens": self._measured["read"],  # of covered runs, in segments whose goal is known
            "covered_runs": covered,
            "goal_runs": runs,  # runs over files, which can have a goal
            "goal_sources": dict(sorted(self._goals.items())),
            "formats": dict(sorted(self._formats.items())),
            "coverage": [
                {"format": format, "agent_version": version, **found.as_json()}
                for (format, version), found in sorted(self._coverage.items())
            ],
            "sub_agents": self._rolled_up(),
            "outcomes": {name: self._outcomes[name] for name in ("resolved", "failed", "unknown")},
            **{name: self._sums[name] for name in _SUMS},
            "dead_read_covered_tokens": self._measured["dead"],
            "dead_read_share": _share(self._measured["dead"], self._measured["read"]),  # of covered runs
            "repeat_share": _share(self._sums["repeat_tokens"], self._sums["read_tokens"]),
            "breaks": {name: self._breaks[name] for name in (*_BREAK_COUNTS, *_BREAK_SUMS, "unmeasured")},
            "later_used": {unit: _quantiles(peaks) for unit, peaks in sorted(self._later.items())},
            "mean_peak_context_share": _share(sum(self._shares), len(self._shares)),
            "costliest_breaks": self._costliest,
            "largest": [_listed(run) for unit in sorted(self._largest, reverse=True) for run in self._largest[unit]],
            "repeated_files": self._repeated(),
            "instructions": dict(self._advice.instructions),
            "todos": dict(self._advice.todos),
            "advice": self._advice.as_json(nlargest(LISTED, self._files.values(), key=RepeatedFile.rank)),
        }

    def _rolled_up(self) -> dict[str, Any]:
        """Return the sums over all sub-agents, and by the run that started them; all totals count each of them once."""
        names = ("runs", *_ROLLED_UP)
        listed = nlargest(LISTED, self._sub_agents.items(), key=lambda item: item[1]["trajectory_tokens"])
        return {
            **{name: sum(sums[name] for sums in self._sub_agents.values()) for name in names},
            "parents": len(self._sub_agents),
            "by_parent": [{"parent_run": parent, **{name: sums[name] for name in names}} for parent, sums in listed],
        }

    def _repeated(self) -> list[dict[str, Any]]:
        return [file.as_json() for file in nlargest(LISTED, self._files.values(), key=RepeatedFile.rank)]


def _rank(run: RunRow) -> tuple[int, int]:
    needed = run.later_used_peak if run.peak_demand_tokens is None else run.peak_demand_tokens
    return needed, run.later_used_peak


def _listed(run: RunRow) -> dict[str, Any]:
    names = ("run_id", "unit", "turns", "peak_demand_tokens", "peak_cut", "later_used_peak", "later_used_peak_cut")
    more = (
        "goal_source",
        "goal_files",
        "goal_accessed",
        "read_tokens",
        "repeat_tokens",
        "dead_read_tokens",
        "peak_context_tokens",
    )
    return {name: getattr(run, name) for name in (*names, *more)}


def _quantiles(peaks: list[tuple[int, int]]) -> dict[str, Any]:
    """Return quantiles of later-used peaks, in the unit and in files, by linear interpolation."""
    columns = {"peak": sorted(peak for peak, _ in peaks), "files": sorted(files for _, files in peaks)}
    found: dict[str, Any] = {"runs": len(peaks)}
    for name, values in columns.items():
        for share in QUANTILES:
            found[f"{name}_p{round(share * 100)}"] = _quantile(values, share)
    return found


def _quantile(values: list[int], share: float) -> float:
    place = (len(values) - 1) * share
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
