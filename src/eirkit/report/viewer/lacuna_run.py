"""One recorded LACUNA run: its steps, cones and pressure, why a step is wrong, and which failures are like it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import EirkitError
from eirkit.lacuna.agents.conditions import COMPACTION, MEMORY
from eirkit.lacuna.agents.session import Decision
from eirkit.lacuna.agents.telemetry import Trace, trace_of
from eirkit.lacuna.conversation.outcomes import Seen, recorded_verdicts
from eirkit.lacuna.conversation.why import told_card
from eirkit.lacuna.conversation.workload import ToldTask, ToldWorld, unspell
from eirkit.lacuna.findings.causes import RunScore, Verdict, judge, read_score, score, spread_of
from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.findings.fates import recorded_consultations
from eirkit.lacuna.findings.measures import FATE_MEASURES, KIND_MEASURES
from eirkit.lacuna.findings.why import StepExplainer, WhyCard, way_measure
from eirkit.lacuna.runs.attempt import score_record
from eirkit.lacuna.runs.cells import STRICT, Access
from eirkit.lacuna.runs.conversations import shown_part
from eirkit.lacuna.runs.store import read_events
from eirkit.lacuna.tasks.cones import ancestors, cone_of
from eirkit.lacuna.tasks.generation import demand_of, generate, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, Units, units_of
from eirkit.report.table import counted
from eirkit.report.viewer.run_index import RunIndex
from eirkit.report.viewer.told import told_document

LONGEST = 5_000  # steps of a task that are shown
_OF_DECISION = ("required", "retained", "missing", "unavailable", "restored", "submitted", "fault", "fetched")
_EFFORT = ("reads", "recomputations", "actions", "answers")
EXAMPLES = 3
_KEPT = ("memory", "profile", "condition", "policy")  # what makes two runs those of one memory
MOST_OPENED = 6  # runs that are read in search of examples
# What the measures of each group count.
_COUNTED = ((KIND_MEASURES, "wrong step"), (FATE_MEASURES, "needed record"), (WORD_FATES, "wrong answer"))


class LacunaRun:
    """A recorded run; expensive parts are computed on first use."""

    def __init__(self, folder: Path, record: Mapping[str, Any], *, plugins: bool) -> None:
        self.folder, self.record, self.plugins = folder, record, plugins
        self._explained: StepExplainer | None = None

    @property
    def moment(self) -> Mapping[str, Any]:
        """The subject of a probe: the step, the missing result, and the records held at that step."""
        found: Mapping[str, Any] = self.record.get("moment", {})
        return found

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        return read_events(self.folder, self.record["events"])

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.events, self.record["ending"])

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        return {decision.t: decision for decision in self.trace.decisions}

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the task, with its seed."""
        return {**self.record["task"], "seed": self.record["seed"]}

    @cached_property
    def task(self) -> Rebuilt:
        """The regenerated task, or the reason why it cannot be generated."""
        access = self.record["access"]
        named = [self.parameters["workload"], access.get("policy") or "", access.get("condition") or ""]
        if not self.plugins and (foreign := [name for name in named if ":" in name]):
            return Rebuilt(None, f"{foreign[0]} is code beside the run; start the viewer with --plugins to run it")
        try:
            spec = TaskSpec(**self.parameters)
            if spec.n > LONGEST:
                return Rebuilt(None, f"the task has {spec.n} steps, more than the {LONGEST} that are shown; use --json")
            task = generate(spec)
        except (EirkitError, TypeError) as error:
            return Rebuilt(None, f"the task cannot be generated here: {error}")
        told = self.record.get("fingerprint")
        if told not in (None, task.fingerprint):
            return Rebuilt(None, "the task's graph is another one here; look at it with the version that wrote it")
        return Rebuilt(task, "")

    @property
    def units(self) -> Units:
        """What the workload calls its tasks and their steps."""
        return Units() if self.task.instance is None else units_of([str(self.parameters["workload"])])

    @cached_property
    def graph(self) -> Graph:
        """The references of every step; if the task is unknown, those recorded in decisions."""
        if self.task.instance is not None:
            return graph_of(self.task.instance)
        steps = range(1, min(LONGEST, int(self.parameters["n"])) + 1)
        return tuple(self.decisions[t].required if t in self.decisions else () for t in steps)

    @cached_property
    def verdicts(self) -> dict[int, Verdict]:
        """The verdict on every step; empty for a probe, which submits nothing, and for an unknown task."""
        task = self.task.instance
        if task is None or not self.decisions:
            return {}
        if isinstance(task, ToldTask):
            return {v.t: v for v in recorded_verdicts(task, self.record)}
        return {v.t: v for v in judge(task, prepare(task.spec), self.trace.decisions, self.trace.actions)}

    def card(self, t: int) -> WhyCard | None:
        """Return why a step is wrong; None for a probe, which submits nothing, and for an unknown task."""
        task = self.task.instance
        if task is None or t not in self.verdicts:
            return None
        if isinstance(task, ToldTask):
            return self._told_card(task, t) if isinstance(task, ToldWorld) else None
        return self._explainer(task).card(t)

    def _explainer(self, task: TaskInstance) -> StepExplainer:
        if self._explained is None:
            decisions, access = self.trace.decisions, self.record["access"]
            limit = access.get("h") if access.get("panel") == STRICT else None
            calls = recorded_consultations(self.events, decisions)
            more = (self.trace.actions, calls, access.get("memory"), limit)
            self._explained = StepExplainer(task, decisions, self.verdicts, *more)
        return self._explained

    def _told_card(self, task: ToldWorld, t: int) -> WhyCard:
        access, decision = Access(**self.record["access"]), self.decisions.get(t)
        calls = recorded_consultations(self.events, ())
        shown = shown_part(access, task, t, self._prompts)
        seen = None if shown is None else Seen((shown,), (), False, access.condition == COMPACTION)
        if access.condition == MEMORY:
            stored = tuple(one.stored for one in calls or () if one.call.verb == "observe")
            found = next((one.passages for one in calls or () if one.call.verb == "recall" and one.t == t), ())
            seen = None if calls is None else Seen(found, stored[: task.asked[t - 1].after], True)
        wrong = {number: (fate, evidence) for number, fate, evidence in self.record["words"]["wrong"]}
        submitted = None if decision is None else decision.submitted
        return told_card(task, t, self.verdicts[t], submitted, wrong.get(t), seen)

    def score(self) -> RunScore | None:
        """Return the recorded score, or one computed from the verdicts."""
        if "score" in self.record:
            return read_score(self.record["score"])
        if not self.verdicts:
            return None
        limited = self.trace.ending == "action-limit"
        return score(list(self.verdicts.values()), self.trace.decisions, max_turn=limited)

    def document(self) -> dict[str, Any]:
        """Return the whole run as JSON data, without prompts and replies."""
        shared = ("run", "seed", "model", "settings", "access", "intervention", "ending", "usage", "cell", "memory")
        found = self.score()
        return {
            "kind": "lacuna",
            **{name: self.record[name] for name in shared if name in self.record},
            **({"trial": self.moment} if self.is_probe else {}),  # the page begins at its step
            "task": self.parameters,
            "units": asdict(self.units),
            "capacity": self.capacity,
            "score": None if found is None else score_json(found),
            "unknown": self.task.reason,
            "steps": [self._step(t) for t in range(1, len(self.graph) + 1)],
        }

    @property
    def capacity(self) -> int | None:
        """How many records fit in the context; None under the strict panel, where the memory holds them all."""
        how = self.record["access"]
        return None if how.get("panel") == STRICT else how.get("h")

    def _step(self, t: int) -> dict[str, Any]:
        decision, verdict, task = self.decisions.get(t), self.verdicts.get(t), self.task.instance
        step: dict[str, Any] = {"t": t, "refs": self.graph[t - 1]}
        if task is not None:
            whole = task.step(t)
            step |= {"kind": whole.kind, "input": whole.input, "answer": whole.answer, "scored": whole.scored}
        if decision is not None:
            step |= {name: getattr(decision, name) for name in (*_OF_DECISION, *_EFFORT)}
        elif (sought := self._sought(t)) is not None:
            step |= {"required": self.graph[t - 1], "retained": self.moment["resident"], "missing": sought}
        if isinstance(task, ToldTask):
            step |= {name: [unspell(step[name])] for name in ("answer", "submitted") if step.get(name) is not None}
        if verdict is not None:
            step |= {"correct": verdict.correct, "missed": verdict.missed, "cause": verdict.cause, "why": verdict.kind}
        elif decision is not None and (wrong := self._recorded_wrong.get(t)) is not None:
            step |= {"correct": False, "cause": wrong[0], "why": wrong[1]}
        return step

    @cached_property
    def _recorded_wrong(self) -> dict[int, tuple[str, str]]:
        found = (event for event in self.events if event["type"] == "verdicts")
        return {t: (cause, kind) for event in found for t, cause, kind in event["wrong"]}

    def around(self, t: int) -> dict[str, Any]:
        """Return how the error of a step arose and spread, and the cone needed to rebuild its missing inputs."""
        decision, task = self.decisions.get(t), self.task.instance
        missing = decision.missing if decision is not None else self._sought(t) or ()
        resident = decision.retained if decision is not None else self.moment.get("resident", ())
        return {
            "spread": asdict(spread_of(self.graph, self.verdicts, t)),
            "cone": self._cone(missing, resident) if missing else None,
            **({"told": self._told(task, t)} if isinstance(task, ToldWorld) else {}),
        }

    def _told(self, task: ToldWorld, t: int) -> dict[str, Any]:
        shown = shown_part(Access(**self.record["access"]), task, t, self._prompts)
        decision = self.decisions.get(t)
        submitted = None if decision is None else decision.submitted
        return told_document(task, self.record, self.events, t, submitted, shown)

    @property
    def _prompts(self) -> dict[int, str]:
        """What the model was sent for each question, where the texts of the run were kept."""
        asked = (one for one in self.events if one["type"] == "exchange" and one["t"])
        return {one["t"]: one["prompt"] for one in asked if "prompt" in one}

    def _sought(self, t: int) -> tuple[int, ...] | None:
        """Return the missing result of a probe at its own step; None at every other step."""
        return (self.moment["target"],) if self.is_probe and self.moment["at"] == t else None

    @property
    def is_probe(self) -> bool:
        return bool(self.moment)

    def step_of(self, event: Mapping[str, Any]) -> int:
        """Return the step that an event belongs to: the only one of a probe; events before step 1 belong to step 1."""
        return int(self.moment["at"]) if self.is_probe else max(1, int(event["t"]))

    def _cone(self, missing: Sequence[int], resident: Sequence[int]) -> dict[str, Any]:
        nodes = ancestors(self.graph, missing, resident)
        each = [cone_of(self.graph, target, resident) for target in missing]
        inside = set(nodes)
        edges = [(r, t) for t in nodes for r in self.graph[t - 1] if r in inside]
        held = sorted({r for t in nodes for r in self.graph[t - 1]} - inside)
        return {
            "targets": list(missing),
            "nodes": nodes,
            "edges": edges,
            "resident": held,  # the retained records that the cone ends at
            "depth": max((one.depth for one in each), default=0),
            "naive": str(sum(one.naive for one in each)),  # a string, because it may exceed the numbers of JavaScript
        }


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A regenerated task, or the reason why there is none."""

    instance: TaskInstance | None
    reason: str


def score_json(found: RunScore) -> dict[str, Any]:
    """Return a score as JSON data, with the rates computed from it."""
    rates = ("accuracy", "step_accuracy", "self_consistent_accuracy", "miss_rate", "error_shares", "aligned")
    return {**score_record(found), **{name: getattr(found, name) for name in rates}}


KEPT_CURVES = 256
_counting = Lock()  # one count at a time: two would slow each other down


def pressure_lines(run: LacunaRun) -> dict[str, Any]:
    """Return the bits needed and the capacity in bits after each step t = 0 … n, or why they are unknown."""
    task = run.task.instance
    if run.is_probe:
        return {"unknown": "a probe is about one lost answer and has no capacity"}
    if task is None:
        return {"unknown": run.task.reason}
    try:
        with _counting:
            curve = _curve(task.spec)
    except EirkitError as error:
        return {"unknown": str(error)}
    record_bits = math.log2(prepare(task.spec).alphabet(task.spec))
    h = run.record["access"].get("h") or task.spec.m
    against = pressure(curve, h, record_bits)
    return {
        "needed_bits": curve.lower_bits,
        "upper_bits": None if curve.certified else curve.upper_bits,
        "capacity_bits": against.capacity_bits,
        "pressure": against.ratios,
        "peak_pressure": against.peak,
        "record_bits": record_bits,
        "held_bits": [len(decision.retained) * record_bits for decision in run.trace.decisions],
        "method": curve.method,
        "h": h,
    }


@lru_cache(maxsize=KEPT_CURVES)
def _curve(spec: TaskSpec) -> DemandCurve:
    return demand_of(generate(spec))


@dataclass(frozen=True, slots=True)
class SimilarFailures:
    """How often runs of a folder failed in the same way, this failure included."""

    way: str  # the identifier of a measure: a fate, or the kind of a wrong step
    count: int
    runs: int
    of_runs: int
    examples: tuple[tuple[str, int], ...]  # run and step: of the same memory first, and of these of other runs first
    memory: str | None = None  # of this failure, where runs of the folder differ in it
    of_memory: int | None = None  # how many of them are of that memory

    def sentence(self) -> str:
        what = f"{counted(self.count, _noun(self.way))} ({way_measure(self.way).label})"
        own = "" if self.memory is None else f", {self.of_memory:,} of them with {self.memory}"
        where = f"in {self.runs:,} of {counted(self.of_runs, 'run')}"
        return f"Like it in this folder, itself included: {what} {where}{own}."

    def as_json(self) -> dict[str, Any]:
        examples = [{"run": run, "t": t} for run, t in self.examples]
        return {**asdict(self), "examples": examples, "sentence": self.sentence()}


def similar_to(index: RunIndex, run: LacunaRun, card: WhyCard) -> SimilarFailures | None:
    """Return the failures like that of a card; None for a right step."""
    if (way := card.way) is None:
        return None
    found = [row for row, counts in enumerate(index.ways) if counts.get(way)]
    own, place = str(run.record["run"]), index.place(str(run.record["run"]))
    kept = [index.column(key) for key in _KEPT]
    apart = {row: sum(column[row] != column[place] for column in kept) for row in found}
    # Runs of the same memory first, this run last of them.
    order = sorted(found, key=lambda row: (apart[row], row == place))
    examples: list[tuple[str, int]] = []
    for row in order[:MOST_OPENED]:
        name = str(index.column("run")[row])
        other = run if row == place else LacunaRun(run.folder, index.record(name), plugins=run.plugins)
        step = next((t for t in wrong_steps(other) if (name, t) != (own, card.t) and _way(other, t) == way), None)
        examples += [] if step is None else [(name, step)]
    total = sum(index.ways[row][way] for row in found)
    varying = [column for column in kept if len({str(value) for value in column}) > 1]
    memory = ", ".join(str(column[place]) for column in varying if column[place]) or None
    same = sum(index.ways[row][way] for row in found if not apart[row]) if memory else None
    return SimilarFailures(way, total, len(found), len(index), tuple(examples[:EXAMPLES]), memory, same)


def wrong_steps(run: LacunaRun) -> list[int]:
    """Return the wrong steps of a run in order."""
    return [t for t, verdict in run.verdicts.items() if not verdict.correct]


def _way(run: LacunaRun, t: int) -> str | None:
    if "words" in run.record:  # what a card says, without the judgement that it is made by
        return next((str(fate) for wrong, fate, _ in run.record["words"]["wrong"] if wrong == t), None)
    card = run.card(t)
    return None if card is None else card.way


def _noun(way: str) -> str:
    """Return what a measure of failures counts."""
    return next(noun for group, noun in _COUNTED if any(one.id == way for one in group))
