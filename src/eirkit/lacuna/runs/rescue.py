"""The causal rescue: compares no injection, restored results and a sham of equal length on the same tasks.

An arm is a cell whose runs have an injection at every step with a missing input. Arms are paired by seed and step;
accuracies and paired tests are computed from the recorded runs. With a memory system the control arm runs first, and
only inputs that its memory did not return are injected and counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from msgspec import structs

from eirkit.errors import InputFileError, SpecError
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.intervals import paired
from eirkit.lacuna.findings.statistics import deviation, mcnemar, mean, sign_flip
from eirkit.lacuna.findings.validity import check_validity, repair_shown, system_remarks
from eirkit.lacuna.memories.factory import check_plan
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, CellPlan, Planned
from eirkit.lacuna.runs.family import RescuedRun, TaskFamily, family_of
from eirkit.lacuna.runs.runner import Results, Runner, runner_or_temporary
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.task import AnySpec, spec_of
from eirkit.records.evidence import ArmRow, Compared, Contrast, RescueSettings
from eirkit.records.runs import OUTCOMES, Outcome, RunScore
from eirkit.records.settings import ACTION_LIMIT, DOCUMENTED, EXTERNAL, NATIVE, STRICT, Access, Arm, RescueArm, Truth
from eirkit.records.sweeps import Validity


@dataclass(frozen=True, slots=True)
class RescueSetup:
    """The condition that all arms share."""

    spec: AnySpec
    h: int | None  # None in conversations
    policy: str = "fifo"
    truth: Truth = "true"
    managed: bool = False  # the action loop in place of Controlled Retention; recovery is off in both
    memory: MemoryPlan | None = None  # for the action loop; then the last h records stay in context, or none if strict
    actions: int = ACTION_LIMIT  # of a run in the action loop
    budget: str = DOCUMENTED  # of what the memory puts into a prompt

    def cells(self, models: Iterable[str], options: ModelOptions, seeds: Sequence[int]) -> Iterator[Planned]:
        """Yield every arm of every model.

        Raises:
            SpecError: there are no seeds.
        """
        if not seeds:
            raise SpecError("no seeds are given; give at least one")
        for model in models:
            yield from ((self.cell(arm, model, options), seeds) for arm in self.arms)

    @property
    def family(self) -> TaskFamily[Any, Any]:
        return family_of(self.spec)

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.family.arms

    @property
    def only_lacking(self) -> bool:
        """True if only what the memory did not return is restored, and counts."""
        return self.memory is not None and self.family.only_lacking

    def cell(self, arm: Arm, model: str, options: ModelOptions) -> Cell:
        done = RescueArm(arm, self.truth, only_lacking=self.only_lacking)
        return Cell(self.spec.with_seed(0), model, self.access, options, done)

    @property
    def access(self) -> Access:
        """How agents access their earlier results, in all arms."""
        return self.family.rescue_access(self._asked)

    @property
    def _asked(self) -> Access:
        if self.memory is not None:
            memory, panel = self.memory, self.panel or NATIVE
            return Access(
                EXTERNAL,
                None,
                memory.name,
                dict(memory.settings),
                panel,
                h=self.h,
                actions=self.actions,
                budget=self.budget,
            )
        if self.managed:
            return Access(self.policy, None, h=self.h, actions=self.actions)
        return Access(policy=self.policy, h=self.h)

    @property
    def panel(self) -> str | None:
        """`strict` if the memory is limited to h records and nothing stays in context; None without a memory."""
        return None if self.memory is None else NATIVE if self.memory.limit is None else STRICT

    def check(self) -> None:
        """Raise UsageError if the policy or the memory system is unknown or cannot be used as requested."""
        find_policy(self.policy)
        if self.memory is not None:
            check_plan(self.memory)

    @classmethod
    def of(cls, settings: RescueSettings) -> RescueSetup:
        """Return the condition that the settings of a plan describe."""
        memory = None
        if settings.memory is not None:
            limit = settings.h if settings.panel == STRICT else None
            memory = MemoryPlan(settings.memory, settings.memory_settings, limit)
        return cls(
            spec_of(settings.task),
            settings.h,
            settings.policy,
            settings.truth,
            settings.managed,
            memory,
            settings.actions,
            settings.budget,
        )


@dataclass(frozen=True, slots=True)
class Rescue:
    """All arms of all models."""

    rows: tuple[ArmRow, ...]
    contrasts: tuple[Contrast, ...]
    failures: tuple[str, ...]  # trajectories lost to infrastructure, and why
    validity: Mapping[str, Validity]  # of the arm without an injection, by model
    systems: tuple[str, ...] = ()  # in which profile the memory was used, and what its code warned of

    @property
    def repair_effect(self) -> float | None:
        """Accuracy at missed steps, oracle − sham; None for several models, or where no repair is shown."""
        return self.repair_effect_of({row.model for row in self.rows})

    def repair_effect_of(self, models: Collection[str]) -> float | None:
        """The repair effect of these models; None unless exactly one of them has one."""
        chosen = self.repair_effects(models)
        if len(chosen) != 1 or not self.repairs(chosen[0].model):
            return None
        return chosen[0].difference.estimate

    def repairs(self, model: str) -> bool:
        """True if restoring is shown to repair answers of this model."""
        found = [self.contrast(model, ("oracle", arm)) for arm in ("sham", "control")]
        differences = [one.difference for one in found if one is not None]
        return len(differences) == len(found) and repair_shown(differences, self.validity[model].finding)

    def contrast(self, model: str, arms: tuple[str, str]) -> Contrast | None:
        """The comparison of two arms of a model; None if they share no step."""
        return next((one for one in self.contrasts if one.model == model and one.arms == arms), None)

    def repair_effects(self, models: Collection[str]) -> list[Contrast]:
        """The contrasts of oracle and sham for these models."""
        return [c for c in self.contrasts if c.arms == ("oracle", "sham") and c.model in models]


@dataclass(frozen=True, slots=True)
class _Run:
    answers: RescuedRun
    score: RunScore
    outcomes: Mapping[Outcome, int] | None  # of an external memory
    systems: tuple[str, ...]  # lines about the memory system


Runs = Mapping[int, _Run]  # by seed
Steps = Mapping[int, Collection[int]]  # by seed


def rescue(
    setup: RescueSetup, seeds: Sequence[int], models: Sequence[str], options: ModelOptions, runner: Runner | None = None
) -> Rescue:
    """Run every arm of every model over the seeds and compare them; without a runner, runs are not kept."""
    plan = CellPlan("rescue", tuple(setup.cells(models, options, seeds)))
    with runner_or_temporary(runner) as chosen:
        return measure_rescue(setup, seeds, models, options, chosen.complete(plan))


def measure_rescue(
    setup: RescueSetup, seeds: Sequence[int], models: Iterable[str], options: ModelOptions, results: Results
) -> Rescue:
    """Compare the arms of every model from the recorded runs."""
    rows: list[ArmRow] = []
    contrasts: list[Contrast] = []
    failures: list[str] = []
    validity: dict[str, Validity] = {}
    systems: dict[str, None] = {}
    for model in models:
        runs = {arm: _read_arm(setup, setup.cell(arm, model, options), seeds, results) for arm in setup.arms}
        arms = {setup.cell(arm, model, options).id: arm for arm in setup.arms}
        losses = results.losses(setup.cells([model], options, seeds))
        failures += [f"{model}, {arms[cell]}, seed {seed}: {why}" for (cell, seed), why in losses.items()]
        systems |= dict.fromkeys(line for arm in runs.values() for run in arm.values() for line in run.systems)
        control = runs["control"]
        # A memory returns some missing inputs. The control arm tells at which steps it does not, and the same count in
        # every arm; without a memory all steps with a miss do.
        chosen = {seed: run.answers.unrecovered for seed, run in control.items()} if setup.only_lacking else None
        validity[model] = check_validity(
            sum(run.score.blind for run in control.values()),
            sum(run.score.unexplained for run in control.values()),
            setup.spec,
            recognized=setup.memory is not None,
        )
        memory = None if setup.memory is None else setup.memory.name
        made = (_row(model, arm, runs[arm], len(seeds), chosen, has_old="stale" in setup.arms) for arm in setup.arms)
        rows += [structs.replace(row, memory=memory) for row in made]
        pairs: tuple[tuple[Arm, Arm], ...] = (("oracle", "sham"), ("oracle", "control"), ("sham", "control"))
        for first, second in pairs:
            contrasts += _contrast(model, (first, second), runs[first], runs[second], chosen)
        if "stale" in setup.arms:
            outdated = {seed: run.answers.outdated for seed, run in control.items()}
            for of in get_args(Compared):
                contrasts += _contrast(model, ("stale", "control"), runs["stale"], control, outdated, of)
    return Rescue(tuple(rows), tuple(contrasts), tuple(failures), validity, tuple(systems))


def _read_arm(setup: RescueSetup, cell: Cell, seeds: Sequence[int], results: Results) -> dict[int, _Run]:
    """Return the runs of an arm that have ended, by seed."""
    found = {}
    for task in generate_many(setup.spec, seeds):
        seed = task.spec.seed
        record, trace = results.record(cell, seed), results.trace(cell, seed)
        if record is None or trace is None:
            continue
        if record.score is None:
            raise InputFileError(f"run {record.run} has no score; restore the folder")
        answers = setup.family.rescued(task, record, trace)
        outcomes = None if record.memory is None or record.conversation is not None else record.memory.outcomes
        found[seed] = _Run(answers, record.score, outcomes, system_remarks([(cell.access.memory, record.memory)]))
    return found


def _row(model: str, arm: Arm, runs: Runs, attempted: int, chosen: Steps | None, *, has_old: bool) -> ArmRow:
    counted = [(run, v) for seed, run in runs.items() for v in run.answers.verdicts if _counts(v, seed, chosen)]
    outcomes = [run.outcomes for run in runs.values() if run.outcomes is not None]
    scores = [run.score for run in runs.values()]
    accuracies = [found.accuracy for found in scores]
    return ArmRow(
        model=model,
        arm=arm,
        steps=len(counted),
        accuracy=mean(float(verdict.correct) for _, verdict in counted),
        scored=len(scores),
        attempted=attempted,
        trajectory_accuracy=mean(accuracies),
        trajectory_accuracy_sd=deviation(accuracies),
        self_consistent_accuracy=mean(found.self_consistent_accuracy for found in scores),
        missed_steps=mean(float(found.missed) for found in scores),
        outcomes={name: sum(counts.get(name, 0) for counts in outcomes) for name in OUTCOMES} if outcomes else None,
        misled=mean(float(verdict.t in run.answers.old) for run, verdict in counted) if has_old else None,
    )


def _contrast(
    model: str, arms: tuple[Arm, Arm], first: Runs, second: Runs, chosen: Steps | None, of: Compared = "accuracy"
) -> list[Contrast]:
    """Return the comparison of two arms; empty if they share no step with a miss."""
    by_trajectory = []
    for seed in (seed for seed in first if seed in second):
        one, other = first[seed].answers, second[seed].answers
        verdicts = zip(one.verdicts, other.verdicts, strict=True)
        both = [(a, b) for a, b in verdicts if _counts(a, seed, chosen) and _counts(b, seed, chosen)]
        if both:
            by_trajectory.append(
                [(a.t in one.old, b.t in other.old) if of == "misled" else (a.correct, b.correct) for a, b in both]
            )
    if not by_trajectory:
        return []
    pairs = [pair for trajectory in by_trajectory for pair in trajectory]
    gains = [sum(a - b for a, b in trajectory) for trajectory in by_trajectory]
    sizes = [len(trajectory) for trajectory in by_trajectory]
    return [
        Contrast(
            model=model,
            arms=arms,
            pairs=len(pairs),
            trajectories=len(by_trajectory),
            difference=paired(by_trajectory),
            mcnemar_p=mcnemar([a for a, _ in pairs], [b for _, b in pairs]).p,
            permutation_p=sign_flip([gain / size for gain, size in zip(gains, sizes, strict=True)]).p,
            of=of,
        )
    ]


def _counts(verdict: Verdict, seed: int, chosen: Steps | None) -> bool:
    """True for a scored step with a miss that is among the chosen steps, if there are any."""
    return verdict.missed and verdict.scored and (chosen is None or verdict.t in chosen.get(seed, ()))
