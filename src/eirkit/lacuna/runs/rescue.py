"""The causal rescue: compares no injection, restored results and a sham of equal length on the same tasks.

An arm is a cell whose runs have an injection at every step with a missing input. Arms are paired by seed and step;
accuracies and paired tests are computed from the recorded runs. With a memory system the control arm runs first, and
only inputs that its memory did not return are injected and counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from msgspec import structs

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.intervals import paired
from eirkit.lacuna.findings.statistics import deviation, mcnemar, mean, sign_flip
from eirkit.lacuna.findings.validity import check_validity, repair_shown, system_remarks
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.arms import RescueSetup
from eirkit.lacuna.runs.cells import Cell, CellPlan
from eirkit.lacuna.runs.family import Unrecovered, family_of
from eirkit.lacuna.runs.runner import Results, Runner, runner_or_temporary
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.task import GeneratedTask
from eirkit.records.evidence import ArmRow, Compared, Contrast
from eirkit.records.runs import OUTCOMES, Outcome, RunScore
from eirkit.records.settings import Arm
from eirkit.records.sweeps import Validity


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
    verdicts: tuple[Verdict, ...]
    score: RunScore
    unrecovered: Unrecovered
    outcomes: Mapping[Outcome, int] | None  # of an external memory
    old: frozenset[int] = frozenset()  # questions of a conversation that were answered with an old value
    outdated: frozenset[int] = frozenset()  # questions about something that was said differently before
    systems: tuple[str, ...] = ()  # lines about the memory system


_BLIND = ("blind", "unexplained")
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
        failures += _failures(setup, model, options, seeds, results)
        systems |= dict.fromkeys(line for arm in runs.values() for run in arm.values() for line in run.systems)
        chosen = _chosen(setup, runs["control"])
        blind, right = (sum(getattr(run.score, name) for run in runs["control"].values()) for name in _BLIND)
        validity[model] = check_validity(blind, right, setup.spec, recognized=setup.memory is not None)
        memory = None if setup.memory is None else setup.memory.name
        made = (_row(model, arm, runs[arm], len(seeds), chosen, has_old="stale" in setup.arms) for arm in setup.arms)
        rows += [structs.replace(row, memory=memory) for row in made]
        pairs: tuple[tuple[Arm, Arm], ...] = (("oracle", "sham"), ("oracle", "control"), ("sham", "control"))
        for first, second in pairs:
            contrasts += _contrast(model, (first, second), runs[first], runs[second], chosen)
        if "stale" in setup.arms:
            outdated = {seed: run.outdated for seed, run in runs["control"].items()}
            for of in get_args(Compared):
                contrasts += _contrast(model, ("stale", "control"), runs["stale"], runs["control"], outdated, of)
    return Rescue(tuple(rows), tuple(contrasts), tuple(failures), validity, tuple(systems))


def _failures(
    setup: RescueSetup, model: str, options: ModelOptions, seeds: Sequence[int], results: Results
) -> Iterator[str]:
    """Yield why runs of a model were lost."""
    arms = {setup.cell(arm, model, options).id: arm for arm in setup.arms}
    for (cell, seed), why in results.losses(setup.cells([model], options, seeds)).items():
        yield f"{model}, {arms[cell]}, seed {seed}: {why}"


def _chosen(setup: RescueSetup, control: Runs) -> Steps | None:
    """Return the steps that count, by seed; None if all steps with a miss do.

    A memory returns some missing inputs. The control arm determines at which steps it does not, and the same steps
    count in every arm.
    """
    return None if not setup.only_lacking else {seed: run.unrecovered for seed, run in control.items()}


def _read_arm(setup: RescueSetup, cell: Cell, seeds: Sequence[int], results: Results) -> dict[int, _Run]:
    """Return the runs of an arm that have ended, by seed."""
    found = {}
    for task in generate_many(setup.spec, seeds):
        if (run := _read_run(task, cell, results)) is not None:
            found[task.spec.seed] = run
    return found


def _read_run(task: GeneratedTask, cell: Cell, results: Results) -> _Run | None:
    seed = task.spec.seed
    record, trace = results.record(cell, seed), results.trace(cell, seed)
    if record is None or trace is None:
        return None
    systems = system_remarks([(cell.access.memory, record.memory)])
    if record.score is None:
        raise InputFileError(f"run {record.run} has no score; restore the folder")
    found = family_of(task.spec).rescued(task, record, trace)
    outcomes = None if record.memory is None or record.conversation is not None else record.memory.outcomes
    return _Run(found.verdicts, record.score, found.unrecovered, outcomes, found.old, found.outdated, systems)


def _row(model: str, arm: Arm, runs: Runs, attempted: int, chosen: Steps | None, *, has_old: bool) -> ArmRow:
    missed = [
        verdict.correct for seed, run in runs.items() for verdict in run.verdicts if _counts(verdict, seed, chosen)
    ]
    scores = [run.score for run in runs.values()]
    accuracies = [found.accuracy for found in scores]
    return ArmRow(
        model=model,
        arm=arm,
        steps=len(missed),
        accuracy=mean(map(float, missed)),
        scored=len(scores),
        attempted=attempted,
        trajectory_accuracy=mean(accuracies),
        trajectory_accuracy_sd=deviation(accuracies),
        self_consistent_accuracy=mean(found.self_consistent_accuracy for found in scores),
        missed_steps=mean(float(found.missed) for found in scores),
        outcomes=_sum_outcomes(runs.values()),
        misled=_misled(runs, chosen) if has_old else None,
    )


def _misled(runs: Runs, chosen: Steps | None) -> float | None:
    """Return the share of the steps that count which were answered with an old value."""
    counted = [(run, v.t) for seed, run in runs.items() for v in run.verdicts if _counts(v, seed, chosen)]
    return mean(float(t in run.old) for run, t in counted)


def _sum_outcomes(runs: Iterable[_Run]) -> dict[Outcome, int] | None:
    found = [run.outcomes for run in runs if run.outcomes is not None]
    return {outcome: sum(counts.get(outcome, 0) for counts in found) for outcome in OUTCOMES} if found else None


def _contrast(
    model: str, arms: tuple[Arm, Arm], first: Runs, second: Runs, chosen: Steps | None, of: Compared = "accuracy"
) -> list[Contrast]:
    """Return the comparison of two arms; empty if they share no step with a miss."""
    shared = {seed: _pairs(first[seed], second[seed], seed, chosen, of) for seed in first if seed in second}
    by_trajectory = [pairs for pairs in shared.values() if pairs]
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


def _pairs(first: _Run, second: _Run, seed: int, chosen: Steps | None, of: Compared) -> list[tuple[bool, bool]]:
    verdicts = zip(first.verdicts, second.verdicts, strict=True)
    both = [(a, b) for a, b in verdicts if _counts(a, seed, chosen) and _counts(b, seed, chosen)]
    if of == "misled":
        return [(a.t in first.old, b.t in second.old) for a, b in both]
    return [(a.correct, b.correct) for a, b in both]


def _counts(verdict: Verdict, seed: int, chosen: Steps | None) -> bool:
    """True for a scored step with a miss that is among the chosen steps, if there are any."""
    return verdict.missed and verdict.scored and (chosen is None or verdict.t in chosen.get(seed, ()))
