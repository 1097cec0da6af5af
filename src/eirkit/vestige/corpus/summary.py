"""Summarizes a whole analysis, updated run by run: counts, quantiles, and what is worth acting on.

Nothing of a run is kept but numbers and, of its files, those that were read again. Worth acting on are files that were
shown again and again, compactions that dropped most of what may have been needed, rules of the user that were lost and
then broken, and clipped views that were never looked at again, each with its tokens and the turn to look at. How much
money that is depends on prices, which the pages add.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from importlib.metadata import version
from typing import TypeAlias

from msgspec import convert
from msgspec.structs import asdict

from eirkit.records.analysis import (
    Advice,
    AnalysisSummary,
    BreakTotals,
    FormatCoverage,
    InstructionCounts,
    LaterUse,
    ListedRun,
    LogSources,
    MeasuringOptions,
    OutcomeCounts,
    RepeatedFile,
    RunBreak,
    RunRow,
    SkippedInput,
    StartedSubAgents,
    SubAgents,
    ToolCoverage,
    UnknownTool,
)
from eirkit.vestige.corpus.analysis import AnalysisOptions, AnalyzedRun
from eirkit.vestige.measures import LEAST_REPEATS, LEAST_TOKENS, SHELL_TOOL_TURNS
from eirkit.vestige.sources.documents import Skipped

LISTED = 10  # runs and files
MOST_OF_A_KIND = 3  # things of a kind to act on
_MOST_FILES = 100_000  # files kept by name; beyond that the least reread are dropped
_CHARACTERS_OF_A_TOKEN = 4  # of a token, by a rule of thumb

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
_BREAK_SUMS = tuple(name for name in BreakTotals.__struct_fields__ if name != "unmeasured")
_Sums: TypeAlias = Tally[str]  # by the name of a field


@dataclass(slots=True)
class _FileTotals:
    """One file that was shown again although unchanged, over the runs so far."""

    path: str
    tokens: int = 0
    reads: int = 0
    runs: int = 0
    most: int = 0  # tokens that one reading showed again
    run_id: str = ""  # run and turn of that reading, and the run's model
    turn: int = 0
    model: str = ""

    def rank(self) -> tuple[int, int, str]:
        return self.tokens, self.reads, self.path


@dataclass(slots=True)
class _CorpusAdvice:
    """What the runs added so far have to act on."""

    instructions: _Sums = field(default_factory=Tally)  # the user's at breaks, by what became of them
    todos: _Sums = field(default_factory=Tally)  # open items of the agent's list, likewise
    _compactions: list[Advice] = field(default_factory=list)
    _broken: list[Advice] = field(default_factory=list)
    _clips: list[Advice] = field(default_factory=list)

    def add(self, found: AnalyzedRun) -> None:
        """Add one run."""
        run_id, model = found.run.run_id, found.run.model
        for cost in found.breaks:
            # What was neither read again nor edited may have been for a task that was over: nothing to act on. Neither
            # is a break that the user started: when to do it was decided.
            used = min(cost.dropped_tokens, cost.reread_tokens + cost.overwritten_tokens)
            if cost.trigger != "manual" and used >= LEAST_TOKENS:
                compaction = Advice(
                    kind="compaction",
                    run_id=run_id,
                    model=model,
                    turn=cost.cut,
                    subject=cost.kind,
                    trigger=cost.trigger,
                    tokens=cost.dropped_tokens,
                    count=cost.reread_tokens,
                )
                self._compactions = _largest([*self._compactions, compaction])
        for told in found.instructions:
            (self.todos if told.kind == "todo" else self.instructions)[told.survival] += 1
            if told.broken_turn is not None:
                self.instructions["broken"] += 1
                rule = Advice(
                    kind="instruction",
                    run_id=run_id,
                    model=model,
                    turn=told.broken_turn,
                    subject=told.text,
                    cut=told.cut,
                    by=told.broken_by,
                )
                self._broken.append(rule)
        del self._broken[MOST_OF_A_KIND:]
        for clip in found.clips:
            hidden = (clip.hidden_characters or 0) // _CHARACTERS_OF_A_TOKEN
            if clip.paths and not clip.later_viewed and hidden >= LEAST_TOKENS:
                files = ", ".join(clip.paths)
                view = Advice(kind="clip", run_id=run_id, model=model, turn=clip.turn, subject=files, tokens=hidden)
                self._clips = _largest([*self._clips, view])

    def listed(self, repeated: Sequence[_FileTotals]) -> tuple[Advice, ...]:
        """Return what to act on: broken rules first, then the rest by tokens spent again, and clipped views last."""
        files = [
            Advice(
                kind="file",
                run_id=file.run_id,
                turn=file.turn,
                model=file.model,
                subject=file.path,
                tokens=file.tokens,
                count=file.reads,
                runs=file.runs,
            )
            for file in repeated
            if file.tokens >= LEAST_TOKENS and file.reads >= LEAST_REPEATS
        ]
        rest = [*files[:MOST_OF_A_KIND], *self._compactions, *self._clips]
        # What a cut output hid was not spent.
        ranked = sorted(rest, key=lambda thing: (thing.kind == "clip", -_spent(thing), thing.kind, thing.subject))
        return (*self._broken, *ranked)


def _spent(thing: Advice) -> int:
    """Return the tokens of a thing: of a compaction, those that reading again took."""
    return thing.count if thing.kind == "compaction" else thing.tokens or 0


def _largest(found: list[Advice]) -> list[Advice]:
    return nlargest(
        MOST_OF_A_KIND, found, key=lambda thing: (_spent(thing), thing.tokens or 0, thing.run_id, -thing.turn)
    )


@dataclass(slots=True)
class _Coverage:
    """How many calls in the logs of one format and version were understood."""

    runs: int = 0
    calls: int = 0
    understood: int = 0
    silent_runs: int = 0
    unknown: _Sums = field(default_factory=Tally)  # calls that were not understood, by tool

    def add(self, run: RunRow, tools: Sequence[ToolCoverage]) -> None:
        self.runs += 1
        self.calls += run.calls
        self.understood += run.calls_understood
        self.silent_runs += run.calls > 0 and not run.calls_understood
        for tool in tools:
            if tool.calls > tool.understood:
                self.unknown[tool.tool] += tool.calls - tool.understood

    def of(self, format: str, agent_version: str) -> FormatCoverage:
        unknown = tuple(UnknownTool(tool, calls) for tool, calls in self.unknown.most_common(LISTED))
        return FormatCoverage(format, agent_version, self.runs, self.calls, self.understood, self.silent_runs, unknown)


@dataclass(slots=True)
class CorpusTotals:
    """The totals of the runs added so far."""

    skipped: list[Skipped] = field(default_factory=list)
    runs: int = 0
    _sums: _Sums = field(default_factory=Tally)
    _breaks: _Sums = field(default_factory=Tally)
    _formats: _Sums = field(default_factory=Tally)
    _goals: _Sums = field(default_factory=Tally)
    _outcomes: _Sums = field(default_factory=Tally)
    _measured: _Sums = field(default_factory=Tally)  # of runs over files only
    _later: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by unit: peaks in that unit and in files
    _shares: list[float] = field(default_factory=list)  # peak shares of context windows
    _files: dict[str, _FileTotals] = field(default_factory=dict)  # by path
    _advice: _CorpusAdvice = field(default_factory=_CorpusAdvice)
    _largest: dict[str, list[RunRow]] = field(default_factory=dict)  # by unit: units are never compared
    _costliest: list[RunBreak] = field(default_factory=list)
    _coverage: dict[tuple[str, str], _Coverage] = field(default_factory=dict)  # by format and version of the agent
    _sub_agents: dict[str, _Sums] = field(default_factory=dict)  # by the run that started them: their sums

    def add(self, found: AnalyzedRun) -> None:
        """Add one run."""
        run = found.run
        self.runs += 1
        self._sums.update({name: getattr(run, name) or 0 for name in _SUMS})
        self._formats[run.format] += 1
        self._coverage.setdefault((run.format, run.agent_version), _Coverage()).add(run, found.calls)
        self._outcomes[{True: "resolved", False: "failed", None: "unknown"}[run.resolved]] += 1
        if run.unit != "tokens" or run.tool_turns >= SHELL_TOOL_TURNS:
            self._later.setdefault(run.unit, []).append((run.later_used_peak, run.later_used_peak_files))
        if run.peak_context_share is not None:
            self._shares.append(run.peak_context_share)
        if run.goal_source is not None:
            self._goals[run.goal_source] += 1
            self._add_goal(run)
            self._add_files(found)
        if run.parent_run:
            sums = {"runs": 1, **{name: getattr(run, name) for name in _ROLLED_UP}}
            self._sub_agents.setdefault(run.parent_run, Tally()).update(sums)
        largest = self._largest.setdefault(run.unit, [])
        if len(largest) < LISTED or _rank(run) > _rank(largest[-1]):
            self._largest[run.unit] = nlargest(LISTED, [*largest, run], key=_rank)
        for cost in found.breaks:
            unmeasured = 0 if cost.measured else cost.compactions + cost.clears
            self._breaks.update({"unmeasured": unmeasured, **{name: getattr(cost, name) for name in _BREAK_SUMS}})
            listed = [*self._costliest, RunBreak(run_id=run.run_id, **asdict(cost))]
            self._costliest = nlargest(LISTED, listed, key=lambda one: one.live_tokens)
        self._advice.add(found)

    def _add_goal(self, run: RunRow) -> None:
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

    def _add_files(self, found: AnalyzedRun) -> None:
        for use in found.files:
            if use.repeat_tokens:
                file = self._files.get(use.path) or self._files.setdefault(use.path, _FileTotals(use.path))
                file.tokens, file.reads, file.runs = (
                    file.tokens + use.repeat_tokens,
                    file.reads + use.repeat_reads,
                    file.runs + 1,
                )
                if use.most_repeated > file.most and use.repeat_turn is not None:
                    file.most, file.run_id, file.turn = use.most_repeated, found.run.run_id, use.repeat_turn
                    file.model = found.run.model
        if len(self._files) > 2 * _MOST_FILES:
            kept = nlargest(_MOST_FILES, self._files.values(), key=_FileTotals.rank)
            self._files = {file.path: file for file in kept}

    def summary(self, options: AnalysisOptions, logs: LogSources | None = None) -> AnalysisSummary:
        """Return the summary; a share of nothing is None."""
        runs, covered = self._measured["runs"], self._measured["covered"]
        repeated = nlargest(LISTED, self._files.values(), key=_FileTotals.rank)
        return AnalysisSummary(
            complete=True,
            logs=logs,
            eirkit=version("eirkit"),
            options=MeasuringOptions(
                options.visibility, options.goal_tests, options.own_edits, options.rule, options.windows.dated
            ),
            runs=self.runs,
            skipped=tuple(SkippedInput(part.source, part.reason) for part in self.skipped),
            goal_access=_share(covered, runs),
            mean_peak_tokens=_share(self._measured["peak"], runs),
            mean_peak_covered_tokens=_share(self._measured["peak"], covered),  # runs without coverage have demand 0
            mean_peak_seen_tokens=_share(self._measured["seen"], runs),
            mean_peak_environment_tokens=_share(self._measured["environment"], runs),
            mean_peak_paper_tokens=_share(self._measured["paper"], runs),
            judged_read_tokens=self._measured["read"],
            covered_runs=covered,
            goal_runs=runs,
            goal_sources=dict(sorted(self._goals.items())),
            formats=dict(sorted(self._formats.items())),
            coverage=tuple(found.of(*log) for log, found in sorted(self._coverage.items(), key=lambda item: item[0])),
            sub_agents=self._rolled_up(),
            outcomes=OutcomeCounts(*(self._outcomes[name] for name in OutcomeCounts.__struct_fields__)),
            **{name: self._sums[name] for name in _SUMS},
            dead_read_covered_tokens=self._measured["dead"],
            dead_read_share=_share(self._measured["dead"], self._measured["read"]),
            repeat_share=_share(self._sums["repeat_tokens"], self._sums["read_tokens"]),
            breaks=BreakTotals(*(self._breaks[name] for name in BreakTotals.__struct_fields__)),
            later_used={unit: _later_use(peaks) for unit, peaks in sorted(self._later.items())},
            mean_peak_context_share=_share(sum(self._shares), len(self._shares)),
            costliest_breaks=tuple(self._costliest),
            largest=tuple(
                convert(run, ListedRun, from_attributes=True)
                for unit in sorted(self._largest, reverse=True)
                for run in self._largest[unit]
            ),
            repeated_files=tuple(
                RepeatedFile(file.path, file.tokens, file.reads, file.runs, file.run_id, file.turn) for file in repeated
            ),
            instructions=InstructionCounts(**self._advice.instructions),
            todos=InstructionCounts(**self._advice.todos),
            advice=self._advice.listed(repeated),
        )

    def _rolled_up(self) -> SubAgents:
        """Return the sums over all sub-agents, and by the run that started them."""
        names = ("runs", *_ROLLED_UP)
        listed = nlargest(LISTED, self._sub_agents.items(), key=lambda item: item[1]["trajectory_tokens"])
        return SubAgents(
            **{name: sum(sums[name] for sums in self._sub_agents.values()) for name in names},
            parents=len(self._sub_agents),
            by_parent=tuple(
                StartedSubAgents(parent_run=parent, **{name: sums[name] for name in names}) for parent, sums in listed
            ),
        )


def _rank(run: RunRow) -> tuple[int, int]:
    needed = run.later_used_peak if run.peak_demand_tokens is None else run.peak_demand_tokens
    return needed, run.later_used_peak


def _later_use(peaks: list[tuple[int, int]]) -> LaterUse:
    columns = sorted(peak for peak, _ in peaks), sorted(files for _, files in peaks)
    return LaterUse(len(peaks), *(_quantile(values, share) for values in columns for share in (0.5, 0.9, 0.99)))


def _quantile(values: list[int], share: float) -> float:
    """Return a quantile by linear interpolation."""
    place = (len(values) - 1) * share
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
