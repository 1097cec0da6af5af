"""One recorded LACUNA run: its steps, cones and pressure, why a step is wrong, and which failures are like it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

from msgspec.structs import replace

from eirkit import extensions
from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import EirkitError
from eirkit.lacuna.findings.causes import Spread, Verdict, spread_of
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.measures import KIND_MEASURES, OUTCOME_MEASURES
from eirkit.lacuna.findings.why import WhyCard, way_measure
from eirkit.lacuna.tasks.cones import ancestors, cone_of
from eirkit.lacuna.tasks.generation import demand_of, generate, prepare
from eirkit.lacuna.tasks.task import GeneratedTask, TaskInstance, TaskSpec, spec_of
from eirkit.lacuna.tasks.workload import Graph, Units, units_of
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Decision, Event, Verdicts, WrongStep
from eirkit.records.runs import LostAnswer, RunRecord
from eirkit.records.settings import STRICT
from eirkit.report.table import counted
from eirkit.report.viewer import documents
from eirkit.report.viewer.documents import (
    OF_DECISION,
    Cone,
    Pressure,
    PressureCurve,
    ShownExchange,
    ShownScore,
    SimilarExample,
    SimilarFailures,
    Step,
    taken,
)
from eirkit.report.viewer.run_table import FolderRuns, short_label
from eirkit.report.viewer.tables import NOTHING
from eirkit.report.viewer.task_views import ConversationView, NumberView, view_of

# What makes prompts again knows how agents are run; it is imported when a page asks for it.
REPLAY = "eirkit.report.viewer.prompts:replay"
LONGEST = 5_000  # steps of a task that are shown
EXAMPLES = 3
_KEPT = ("memory", "profile", "condition", "policy")  # what makes two runs those of one memory
MOST_OPENED = 6  # runs that are read in search of examples
# What the measures of each group count.
_COUNTED = (
    (KIND_MEASURES, "wrong step"),
    (OUTCOME_MEASURES, "needed record"),
    (SYMPTOM_MEASURES, "wrong answer"),
    (ANSWER_CAUSE_MEASURES, "wrong answer"),
)


class LacunaRun:
    """A recorded run; expensive parts are computed on first use."""

    def __init__(self, folder: Path, record: RunRecord, *, plugins: bool) -> None:
        self.folder, self.record, self.plugins = folder, record, plugins

    @cached_property
    def events(self) -> list[Event]:
        with SweepDatabase(self.folder) as database:
            return database.events(self.record.run)

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        return {event.t: event for event in self.events if isinstance(event, Decision)}

    @cached_property
    def task(self) -> Rebuilt:
        """The regenerated task, or the reason why it cannot be generated."""
        parameters, access = self.record.setting.task, self.record.setting.access
        named = [parameters.workload, access.policy or "", access.condition]
        if not self.plugins and (foreign := [name for name in named if ":" in name]):
            return Rebuilt(None, f"{foreign[0]} is code beside the run; start the viewer with --plugins to run it")
        try:
            if (length := parameters.length) > LONGEST:
                return Rebuilt(None, f"the task has {length} steps, more than the {LONGEST} that are shown; use --json")
            task = generate(spec_of(parameters, self.record.seed))
        except (EirkitError, TypeError) as error:
            return Rebuilt(None, f"the task cannot be generated here: {error}")
        if self.record.fingerprint != task.fingerprint:
            return Rebuilt(None, "the task's graph is another one here; look at it with the version that wrote it")
        return Rebuilt(task, "")

    @cached_property
    def replayed(self) -> Replayed:
        """Its prompts and replies."""
        replay: Callable[[LacunaRun], Replayed] = extensions.load(REPLAY)
        return replay(self)

    @property
    def units(self) -> Units:
        """What the workload calls its tasks and their steps."""
        return Units() if self.task.instance is None else units_of([self.record.setting.task.workload])

    @cached_property
    def view(self) -> NumberView | ConversationView | None:
        """What the task's family shows of the run; None for an unknown task."""
        task = self.task.instance
        return None if task is None else view_of(task, self.record, self.events)

    @cached_property
    def graph(self) -> Graph:
        """The references of every step; if the task is unknown, those recorded in decisions."""
        if self.view is not None:
            return self.view.graph
        steps = range(1, min(LONGEST, self.record.setting.task.length) + 1)
        return tuple(self.decisions[t].required if t in self.decisions else () for t in steps)

    @property
    def verdicts(self) -> dict[int, Verdict]:
        """The verdict on every step; empty for a probe, which submits nothing, and for an unknown task."""
        return {} if self.view is None else self.view.verdicts

    def card(self, t: int) -> WhyCard | None:
        """Return why a step is wrong; None for a probe, which submits nothing, and for an unknown task."""
        return None if self.view is None or t not in self.verdicts else self.view.card(t)

    def document(self, runs: FolderRuns) -> documents.LacunaRun:
        """Return the whole run, without prompts and replies."""
        record, memory = self.record, self.record.memory
        access = record.setting.access
        return documents.LacunaRun(
            run=record.run,
            label=short_label(record),
            cell=record.pooled_cell,
            seed=record.seed,
            model=record.setting.model,
            ending=record.ending,
            task=record.setting.task,
            units=self.units,
            access=access,
            lost=record.lost,
            profile=None if memory is None else memory.profile,
            warnings=() if memory is None else memory.warnings,
            # Under the strict panel the memory holds all records, and none are in the context.
            capacity=None if access.panel == STRICT else access.h,
            score=None if record.score is None else taken(ShownScore, record.score),
            unknown=self.task.reason,
            steps=tuple(self._step(t) for t in range(1, len(self.graph) + 1)),
            siblings=tuple(runs.siblings(record.run)),
        )

    def _step(self, t: int) -> Step:
        decision, verdict = self.decisions.get(t), self.verdicts.get(t)
        step = Step(t=t, refs=self.graph[t - 1]) if self.view is None else self.view.step(t)
        lost = self._lost(t)
        if decision is not None:
            step = replace(step, **{name: getattr(decision, name) for name in OF_DECISION})
        elif lost is not None:
            step = replace(step, required=self.graph[t - 1], retained=lost.resident, missing=(lost.target,))
        if verdict is not None:
            return replace(step, correct=verdict.correct, missed=verdict.missed, cause=verdict.cause, why=verdict.kind)
        if decision is not None and (wrong := self._recorded_wrong.get(t)) is not None:
            return replace(step, correct=False, cause=wrong.cause, why=wrong.kind)
        return step

    @cached_property
    def _recorded_wrong(self) -> dict[int, WrongStep]:
        verdicts = (event for event in self.events if isinstance(event, Verdicts))
        return {step.t: step for event in verdicts for step in event.wrong}

    def spread(self, t: int) -> Spread:
        """Return how the error of a step arose and spread."""
        return spread_of(self.graph, self.verdicts, t)

    def cone(self, t: int) -> Cone | None:
        """Return what must be computed again to have the missing inputs of a step; None if none are missing."""
        decision, lost = self.decisions.get(t), self._lost(t)
        if decision is not None:
            missing, resident = decision.missing, decision.retained
        else:
            missing, resident = ((), ()) if lost is None else ((lost.target,), lost.resident)
        return self._cone(missing, resident) if missing else None

    def question(self, t: int) -> documents.Question | None:
        """Return a question with the conversation until then; None for another task."""
        return None if self.view is None else self.view.question(t)

    def _lost(self, t: int) -> LostAnswer | None:
        """Return the missing result of a probe at its own step; None at every other step."""
        lost = self.record.lost
        return lost if lost is not None and lost.at == t else None

    def step_at(self, t: int) -> int:
        """Return the step that an event belongs to: the only one of a probe; events before step 1 belong to step 1."""
        return max(1, t) if self.record.lost is None else self.record.lost.at

    def _cone(self, missing: Sequence[int], resident: Sequence[int]) -> Cone:
        nodes = ancestors(self.graph, missing, resident)
        each = [cone_of(self.graph, target, resident) for target in missing]
        inside = set(nodes)
        return Cone(
            targets=tuple(missing),
            nodes=tuple(nodes),
            edges=tuple((r, t) for t in nodes for r in self.graph[t - 1] if r in inside),
            resident=tuple(sorted({r for t in nodes for r in self.graph[t - 1]} - inside)),
            depth=max((cone.depth for cone in each), default=0),
            naive=str(sum(cone.naive for cone in each)),
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """The exchanges of a run, and why some prompts could not be rebuilt."""

    exchanges: list[ShownExchange]
    reason: str  # why prompts are not exact; empty if all are


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A regenerated task, or the reason why there is none."""

    instance: GeneratedTask | None
    reason: str


KEPT_CURVES = 256
_counting = Lock()  # one count at a time: two would slow each other down


def pressure_lines(run: LacunaRun) -> Pressure:
    """Return the bits needed and the capacity in bits after each step t = 0 … n, or why they are unknown."""
    task = run.task.instance
    if run.record.lost is not None:
        return Pressure("a probe is about one lost answer and has no capacity", None)
    if task is None:
        return Pressure(run.task.reason, None)
    if not isinstance(task, TaskInstance):
        return Pressure("the floor of a conversation is not one of steps; its run record has it in bytes", None)
    try:
        with _counting:
            curve = _curve(task.spec)
    except EirkitError as error:
        return Pressure(str(error), None)
    record_bits = math.log2(prepare(task.spec).alphabet(task.spec))
    h = run.record.setting.access.h or task.spec.m
    against = pressure(curve, h, record_bits)
    found = PressureCurve(
        needed_bits=curve.lower_bits,
        upper_bits=None if curve.certified else curve.upper_bits,
        capacity_bits=against.capacity_bits,
        pressure=against.ratios,
        peak_pressure=against.peak,
        record_bits=record_bits,
        held_bits=tuple(len(decision.retained) * record_bits for decision in run.decisions.values()),
        method=curve.method,
        h=h,
    )
    return Pressure("", found)


@lru_cache(maxsize=KEPT_CURVES)
def _curve(spec: TaskSpec) -> DemandCurve:
    return demand_of(generate(spec))


def similar_to(runs: FolderRuns, run: LacunaRun, card: WhyCard) -> SimilarFailures | None:
    """Return the failures like that of a card; None for a right step."""
    if (way := card.way) is None:
        return None
    found = [row for row, counts in enumerate(runs.ways) if counts.get(way)]
    own, place = run.record.run, runs.place(run.record.run)
    kept = [runs.coded(key) for key in _KEPT]
    apart = {row: sum(int(coded.codes[row] != coded.codes[place]) for coded in kept) for row in found}
    # Runs of the same memory first, this run last of them.
    order = sorted(found, key=lambda row: (apart[row], row == place))
    examples: list[SimilarExample] = []
    for row in order[:MOST_OPENED]:
        name = runs.name(row)
        other = run if row == place else LacunaRun(run.folder, runs.record(name), plugins=run.plugins)
        step = next((t for t in wrong_steps(other) if (name, t) != (own, card.t) and _way(other, t) == way), None)
        examples += [] if step is None else [SimilarExample(name, step)]
    total = sum(runs.ways[row][way] for row in found)
    varying = [coded.labels[coded.codes[place]] for coded in kept if len(coded.labels) > 1]
    memory = ", ".join(name for name in varying if name != NOTHING) or None
    same = sum(runs.ways[row][way] for row in found if not apart[row]) if memory else None
    what = f"{counted(total, _noun(way))} ({way_measure(way).label})"
    with_memory = "" if memory is None else f", {same:,} of them with {memory}"
    where = f"in {len(found):,} of {counted(runs.rows, 'run')}"
    return SimilarFailures(
        way=way,
        count=total,
        runs=len(found),
        of_runs=runs.rows,
        examples=tuple(examples[:EXAMPLES]),
        memory=memory,
        of_memory=same,
        sentence=f"Like it in this folder, itself included: {what} {where}{with_memory}.",
    )


def wrong_steps(run: LacunaRun) -> list[int]:
    """Return the wrong steps of a run in order."""
    return [t for t, verdict in run.verdicts.items() if not verdict.correct]


def _way(run: LacunaRun, t: int) -> str | None:
    talk = run.record.conversation
    if talk is not None:  # what a card says, without the judgment that it is made by
        return next((answer.cause for answer in talk.wrong if answer.t == t), None)
    card = run.card(t)
    return None if card is None else card.way


def _noun(way: str) -> str:
    """Return what a measure of failures counts."""
    return next(noun for group, noun in _COUNTED if any(measure.id == way for measure in group))
