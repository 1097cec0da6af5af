"""One LACUNA run in the viewer: its steps, cones and pressure, and how errors spread from step to step.

An error with the cause "cascade" follows from wrong answers among its references; any other cause is an origin. So an
error is traced back through cascades to its origins, and forward through the cascades that refer to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from eirkit.agents.session import Decision
from eirkit.agents.telemetry import Trace, trace_of
from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import EirkitError
from eirkit.findings.causes import Cause, RunScore, Verdict, judge, read_cause, read_score, score
from eirkit.findings.conversations import recorded_verdicts
from eirkit.runs.attempt import score_record
from eirkit.runs.cells import STRICT
from eirkit.runs.store import read_events
from eirkit.show.viewer.told import told_document
from eirkit.tasks.cones import ancestors, cone_of
from eirkit.tasks.conversations import ToldWorld, unspell
from eirkit.tasks.generation import demand_of, generate, graph_of, prepare
from eirkit.tasks.task import TaskInstance, TaskSpec
from eirkit.tasks.workload import Graph

CASCADE: Cause = "cascade"


@dataclass(frozen=True, slots=True)
class Spread:
    """The origins and consequences of one wrong step; empty for a correct step."""

    origins: tuple[int, ...]  # wrong steps at which it began
    path: tuple[tuple[int, int], ...]  # edges from an earlier wrong step to the one that used it
    spoilt: tuple[int, ...]  # later steps that are wrong because of it


def spread_of(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> Spread:
    """Return the origins of a step's error, the path from them, and the later errors that it caused."""
    if not _is_wrong(verdicts, t):
        return Spread((), (), ())
    origins, edges, waiting, seen = set(), set(), [t], {t}
    while waiting:
        at = waiting.pop()
        before = _wrong_sources(graph, verdicts, at)
        if not before:
            origins.add(at)
        edges |= {(source, at) for source in before}
        waiting += [source for source in before if source not in seen]
        seen |= set(before)
    return Spread(tuple(sorted(origins)), tuple(sorted(edges)), _spoilt(graph, verdicts, t))


def _spoilt(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> tuple[int, ...]:
    found = {t}
    for later in range(t + 1, len(graph) + 1):
        if not found.isdisjoint(_wrong_sources(graph, verdicts, later)):
            found.add(later)
    return tuple(sorted(found - {t}))


def _wrong_sources(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> list[int]:
    """Return the wrong answers that caused a cascade error; empty for any other cause."""
    verdict = verdicts.get(t)
    if verdict is None or verdict.cause != CASCADE:
        return []
    return [source for source in graph[t - 1] if _is_wrong(verdicts, source)]


def _is_wrong(verdicts: Mapping[int, Verdict], t: int) -> bool:
    return t in verdicts and not verdicts[t].correct


LONGEST = 5_000  # steps of a task that are shown
_OF_DECISION = ("required", "retained", "missing", "unavailable", "restored", "submitted", "fault", "fetched")
_EFFORT = ("reads", "recomputations", "actions", "answers")


class LacunaRun:
    """A recorded run; expensive parts are computed on first use."""

    def __init__(self, folder: Path, record: Mapping[str, Any], *, plugins: bool) -> None:
        self.folder, self.record, self.plugins = folder, record, plugins

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
        if isinstance(task, ToldWorld):
            return {v.t: v for v in recorded_verdicts(task, self.record)}
        return {v.t: v for v in judge(task, prepare(task.spec), self.trace.decisions, self.trace.actions)}

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
        if isinstance(task, ToldWorld):
            step |= {name: [unspell(step[name])] for name in ("answer", "submitted") if step.get(name) is not None}
        if verdict is not None:
            step |= {"correct": verdict.correct, "missed": verdict.missed, "cause": verdict.cause, "why": verdict.kind}
        elif decision is not None and (wrong := self._recorded_wrong.get(t)) is not None:
            step |= {"correct": False, "cause": wrong[0], "why": wrong[1]}
        return step

    @cached_property
    def _recorded_wrong(self) -> dict[int, tuple[str, str]]:
        found = (event for event in self.events if event["type"] == "verdicts")
        return {t: (read_cause(cause, kind), kind) for event in found for t, cause, kind in event["wrong"]}

    def around(self, t: int) -> dict[str, Any]:
        """Return how the error of a step arose and spread, and the cone needed to rebuild its missing inputs."""
        decision, task = self.decisions.get(t), self.task.instance
        missing = decision.missing if decision is not None else self._sought(t) or ()
        resident = decision.retained if decision is not None else self.moment.get("resident", ())
        return {
            "spread": asdict(spread_of(self.graph, self.verdicts, t)),
            "cone": self._cone(missing, resident) if missing else None,
            **({"told": told_document(task, self.record, self.events, t)} if isinstance(task, ToldWorld) else {}),
        }

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
