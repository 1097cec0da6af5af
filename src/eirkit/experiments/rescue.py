"""The causal rescue: the same task under no injection, under restoration, and under a sham of equal length.

Arms are whole trajectories with an injection at every step that misses something, paired by seed and step. Tasks come
in, with their answers; accuracies at the missed steps and paired tests go out. With an external memory behind the agent
the control arm is run first: steps and injections are those for which its memory did not bring what was missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from eirkit.agents.conditions import Cache
from eirkit.agents.managed import ACTION_LIMIT, ManagedOptions, ManagedSession
from eirkit.agents.model import ModelOptions
from eirkit.agents.session import ControlledSession, Injector, Session, inject_nothing
from eirkit.agents.stores.memory_factory import MODEL, RUN_MODEL, MemoryPlan, check_plan
from eirkit.agents.telemetry import Trace
from eirkit.errors import SpecError
from eirkit.findings.causes import RunScore, Verdict, judge, score
from eirkit.findings.fates import FATES, Fate, look_up
from eirkit.findings.pooling import deviation, mean
from eirkit.findings.statistics import Interval, bootstrap, mcnemar, sign_flip
from eirkit.runs.cells import EXTERNAL, NATIVE, STRICT, Access
from eirkit.runs.sessions import make_session
from eirkit.runs.trial import Bench, Trial, Workbench
from eirkit.seeds import below, words
from eirkit.tasks.generation import generate_many, prepare
from eirkit.tasks.policy import find_policy
from eirkit.tasks.retention import Retention
from eirkit.tasks.simulation.plain import outlook_of
from eirkit.tasks.task import Payload, TaskInstance, TaskSpec, without_seed
from eirkit.tasks.view import PublicStep, Record, publish

Arm = Literal["control", "oracle", "sham"]
Truth = Literal["true", "submitted"]  # what the oracle restores
ARMS: tuple[Arm, ...] = ("control", "oracle", "sham")


Lacking = Mapping[int, frozenset[int]]  # by step: what it missed and nothing brought


class Restoration:
    """Restores every missing result, or those of them that nothing else brings: the true one, or the one submitted."""

    def __init__(self, task: TaskInstance, truth: Truth = "true", lacking: Lacking | None = None) -> None:
        self.task, self.truth, self.lacking = task, truth, lacking

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        wanted = missing if self.lacking is None else [r for r in missing if r in self.lacking.get(step.t, ())]
        return tuple((r, value) for r in wanted if (value := self.operand(r, submitted)) is not None)

    def operand(self, r: int, submitted: Mapping[int, Payload]) -> Payload | None:
        """Return what the oracle would restore; None where nothing was ever submitted."""
        return self.task.step(r).answer if self.truth == "true" else submitted.get(r)


class Sham(Restoration):
    """Carries the required label and another earlier answer of the same task: the oracle's length, not its content."""

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        restored = super().__call__(step, missing, submitted)
        return tuple((r, self._other(step.t, r, operand, submitted)) for r, operand in restored)

    def _other(self, t: int, r: int, operand: Payload, submitted: Mapping[int, Payload]) -> Payload:
        """Return an earlier answer, drawn by the task's seed: neither the operand nor what was submitted for it."""
        earlier = (self.operand(s, submitted) for s in range(1, t))
        others = [value for value in earlier if value is not None and value not in (operand, submitted.get(r))]
        if not others:
            # A task whose earlier answers all coincide has nothing to offer; the next value is as wrong and as long.
            return tuple((value + 1) % self.task.spec.q for value in operand)
        return others[int(below(words([self.task.spec.seed], 1, "sham", t, r)[0, 0], len(others)))]


INJECTORS: dict[Arm, Callable[[TaskInstance, Truth, Lacking | None], Injector]] = {
    "control": lambda task, truth, lacking: inject_nothing,
    "oracle": Restoration,
    "sham": Sham,
}


@dataclass(frozen=True, slots=True)
class Setup:
    """The condition that all arms share."""

    spec: TaskSpec
    h: int
    policy: str = "fifo"
    truth: Truth = "true"
    managed: bool = False  # the action loop in place of Controlled Retention; recovery is off in both
    memory: MemoryPlan | None = None  # behind the action loop; then the last h records stay in sight, or none if strict
    actions: int = ACTION_LIMIT  # of a run in the action loop

    def session(self, task: TaskInstance, arm: Arm, lacking: Lacking | None = None) -> Session:
        """Return the session of one arm.

        Args:
            lacking: what alone is injected; everything that is missing unless given.
        """
        inject = INJECTORS[arm](task, self.truth, lacking)
        if self.memory is not None:
            session = make_session(self._access(self.memory), task, prepare(task.spec))
            session.inject = inject
            return session
        public = publish(task, prepare(task.spec))
        retention = Retention(find_policy(self.policy).for_task(outlook_of(task)), self.h)
        if self.managed:
            return ManagedSession(public, Cache(retention), ManagedOptions(actions=self.actions), inject)
        return ControlledSession(public, retention, inject)

    def _access(self, memory: MemoryPlan) -> Access:
        return Access(
            condition=EXTERNAL,
            policy=None,
            memory=memory.name,
            memory_settings=memory.settings,
            panel=self.panel or NATIVE,
            h=self.h,
            actions=self.actions,
        )

    @property
    def panel(self) -> str | None:
        """Strict where the memory is held to h records and nothing else is in sight; None without a memory."""
        return None if self.memory is None else NATIVE if self.memory.limit is None else STRICT

    def check(self) -> None:
        """Raise UsageError where the policy or the memory system is unknown, or cannot be had as it is wanted."""
        find_policy(self.policy)
        if self.memory is not None:
            check_plan(self.memory)

    def for_model(self, model: str) -> Setup:
        """Return the setup in which a memory that is to ask the run's own model asks this one."""
        if self.memory is None or self.memory.settings.get(MODEL) != RUN_MODEL:
            return self
        return replace(self, memory=replace(self.memory, settings={**self.memory.settings, MODEL: model}))

    def as_json(self) -> dict[str, Any]:
        """Return the condition without a task's seed; a memory and its limit of actions only where there is one."""
        how: dict[str, Any] = {name: getattr(self, name) for name in ("h", "policy", "truth", "managed")}
        if self.memory is not None:
            settings = dict(self.memory.settings)
            how |= {"memory": self.memory.name, "memory_settings": settings, "panel": self.panel}
        return {"task": without_seed(self.spec), **how, **self._limit()}

    def _limit(self) -> dict[str, int]:
        return {} if self.actions == ACTION_LIMIT else {"actions": self.actions}

    def trial(self, task: TaskInstance, arm: Arm, lacking: Lacking | None = None) -> Trial:
        """Return the session with what tells it from all others."""
        what = {"evidence": "rescue", "arm": arm, **self.as_json(), "task": task.spec.as_json()}
        if lacking is not None:
            what["injected"] = [[t, sorted(refs)] for t, refs in sorted(lacking.items())]
        return Trial(what, self.session(task, arm, lacking), self.memory, task)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm of one model."""

    model: str
    arm: Arm
    steps: int  # scored steps with a missing input; with a memory those at which the control arm's did not bring it
    accuracy: float | None  # at those steps, pooled over trajectories; None where nothing was missing
    scored: int  # trajectories
    attempted: int
    trajectory_accuracy: float | None  # over all steps, mean over trajectories
    trajectory_accuracy_sd: float | None
    self_consistent_accuracy: float | None
    missed_steps: (
        float | None
    )  # a trajectory: steps that need something out of sight, whether a memory brings it or not
    memory: str | None = None
    fates: Mapping[Fate, int] | None = None  # what became of missing results; only with a memory


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against another at the steps that both missed, paired by seed and step."""

    model: str
    arms: tuple[Arm, Arm]
    pairs: int
    trajectories: int
    difference: Interval  # of accuracies at missed steps, first − second; resampled by trajectory
    mcnemar_p: float
    permutation_p: float  # sign flips of each trajectory's difference


@dataclass(frozen=True, slots=True)
class Rescue:
    """All arms of all models."""

    rows: tuple[ArmRow, ...]
    contrasts: tuple[Contrast, ...]
    failures: tuple[str, ...]  # trajectories lost to infrastructure, and why

    @property
    def repair_effect(self) -> float | None:
        """Accuracy at missed steps, oracle − sham; None for several models, whose effects are not one number."""
        return self.repair_effect_of({row.model for row in self.rows})

    def repair_effect_of(self, models: Collection[str]) -> float | None:
        """The same where only some of the models count."""
        chosen = self.repair_effects(models)
        return chosen[0].difference.estimate if len(chosen) == 1 else None

    def repair_effects(self, models: Collection[str]) -> list[Contrast]:
        """The contrast of oracle and sham of each of these models that has one."""
        return [c for c in self.contrasts if c.arms == ("oracle", "sham") and c.model in models]

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": [asdict(row) for row in self.rows],
            "repair_effect": self.repair_effect,
            "contrasts": [asdict(contrast) for contrast in self.contrasts],
            "failures": list(self.failures),
        }


@dataclass(frozen=True, slots=True)
class _Run:
    verdicts: tuple[Verdict, ...]
    score: RunScore
    lacking: Lacking
    fates: Mapping[Fate, int] | None  # of an external memory


Runs = Mapping[int, _Run]  # by seed
Steps = Mapping[int, Collection[int]]  # by seed


def rescue(
    setup: Setup, seeds: Sequence[int], models: Iterable[str], options: ModelOptions, bench: Bench | None = None
) -> Rescue:
    """Run every arm of every model over the seeds and compare them."""
    if not seeds:
        raise SpecError("no seeds given; the arms are paired by seed")
    bench = bench or Workbench()
    rows, contrasts, failures = [], [], []
    for model in models:
        runs, lost = _run_arms(setup.for_model(model), seeds, model, options, bench)
        failures += lost
        chosen = _chosen(setup, runs["control"])
        memory = None if setup.memory is None else setup.memory.name
        rows += [replace(_row(model, arm, runs[arm], len(seeds), chosen), memory=memory) for arm in ARMS]
        for first, second in (("oracle", "sham"), ("oracle", "control"), ("sham", "control")):
            contrasts += _contrast(model, (first, second), runs[first], runs[second], chosen)  # type: ignore[arg-type, index]
    return Rescue(tuple(rows), tuple(contrasts), tuple(failures))


def _chosen(setup: Setup, control: Runs) -> Steps | None:
    """Return the steps that count, by seed; None where all missed ones do.

    A memory brings some of what is missing. Which steps it leaves lacking is a matter of the control arm, so the same
    steps count in every arm, however they were answered.
    """
    return None if setup.memory is None else {seed: run.lacking for seed, run in control.items()}


def _run_arms(
    setup: Setup, seeds: Sequence[int], model: str, options: ModelOptions, bench: Bench
) -> tuple[dict[Arm, dict[int, _Run]], list[str]]:
    tasks = list(generate_many(setup.spec, seeds))
    runs: dict[Arm, dict[int, _Run]] = {arm: {} for arm in ARMS}
    lost = []
    for arms in (ARMS,) if setup.memory is None else (ARMS[:1], ARMS[1:]):
        jobs = [(arm, task) for arm in arms for task in tasks]
        trials = [setup.trial(task, arm, _lacking(setup, arm, task, runs["control"])) for arm, task in jobs]
        for (arm, task), result in zip(jobs, bench.run(model, options, trials), strict=True):
            if isinstance(result, Trace):
                runs[arm][task.spec.seed] = _judged(task, result, looked_up=setup.memory is not None)
            else:
                lost.append(f"{model}, {arm}, seed {task.spec.seed}: {result}")
    return runs, lost


def _lacking(setup: Setup, arm: Arm, task: TaskInstance, control: Runs) -> Lacking | None:
    """Return what the memory of the control arm did not bring; None where everything missing is to be injected."""
    if setup.memory is None or arm == "control":
        return None
    known = control.get(task.spec.seed)
    return {} if known is None else known.lacking


def _judged(task: TaskInstance, trace: Trace, *, looked_up: bool) -> _Run:
    decisions = trace.decisions
    verdicts = judge(task, prepare(task.spec), decisions, trace.actions)
    left = {one.t: frozenset(one.missing) - frozenset(one.fetched) for one in decisions}
    lacking = {t: refs for t, refs in left.items() if refs}
    fates = look_up(decisions, verdicts, trace.consultations).fates if looked_up else None
    return _Run(verdicts, score(verdicts, decisions, max_turn=trace.ending == "action-limit"), lacking, fates)


def _row(model: str, arm: Arm, runs: Runs, attempted: int, chosen: Steps | None) -> ArmRow:
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
        fates=_sum_fates(runs.values()),
    )


def _sum_fates(runs: Iterable[_Run]) -> dict[Fate, int] | None:
    found = [run.fates for run in runs if run.fates is not None]
    return {fate: sum(fates[fate] for fates in found) for fate in FATES} if found else None


def _contrast(model: str, arms: tuple[Arm, Arm], first: Runs, second: Runs, chosen: Steps | None) -> list[Contrast]:
    """Return the comparison of two arms, or nothing where they share no missed step."""
    shared = {seed: _pairs(first[seed], second[seed], seed, chosen) for seed in first if seed in second}
    by_trajectory = [pairs for pairs in shared.values() if pairs]
    if not by_trajectory:
        return []
    pairs = [pair for trajectory in by_trajectory for pair in trajectory]
    gains = [sum(a - b for a, b in trajectory) for trajectory in by_trajectory]
    sizes = [len(trajectory) for trajectory in by_trajectory]

    def difference(chosen: Sequence[int]) -> float:
        return sum(gains[i] for i in chosen) / sum(sizes[i] for i in chosen)

    return [
        Contrast(
            model=model,
            arms=arms,
            pairs=len(pairs),
            trajectories=len(by_trajectory),
            difference=bootstrap(difference, len(by_trajectory)),
            mcnemar_p=mcnemar([a for a, _ in pairs], [b for _, b in pairs]).p,
            permutation_p=sign_flip([gain / size for gain, size in zip(gains, sizes, strict=True)]).p,
        )
    ]


def _pairs(first: _Run, second: _Run, seed: int, chosen: Steps | None) -> list[tuple[bool, bool]]:
    both = zip(first.verdicts, second.verdicts, strict=True)
    return [(a.correct, b.correct) for a, b in both if _counts(a, seed, chosen) and _counts(b, seed, chosen)]


def _counts(verdict: Verdict, seed: int, chosen: Steps | None) -> bool:
    """True for a scored step that misses something, and is one of those chosen where some are."""
    return verdict.missed and verdict.scored and (chosen is None or verdict.t in chosen.get(seed, ()))
