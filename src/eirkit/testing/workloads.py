"""`check_workload`: the conformance suite of workloads, with random tasks and brute-force counts of small ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.tasks.certification import certify
from eirkit.lacuna.tasks.generation import batch_of, graph_of, needed_references
from eirkit.lacuna.tasks.standing import standing_at
from eirkit.lacuna.tasks.task import ASKING, Kind, TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Workload, workloads
from eirkit.lacuna.tasks.workloads import StepwiseSum
from eirkit.testing.conformance import Conformance, try_all

SPECS = 40  # random specifications
FEWEST = 8  # specifications that must be accepted for a meaningful test
SMALL = ((10, 4), (11, 5), (9, 1), (7, 6))  # n and m of the tasks whose references are checked exhaustively
MANY = 3_000  # seeds, which show every reference that can happen there: the rarest has probability above 1/100


def check_workload(workload: type[Workload] | str) -> Conformance:
    """Run the conformance suite on a workload and return what held; `notes` says on which sizes its EIR was certified.

    Args:
        workload: the class, its registered name, or `path/file.py:Name`.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        UsageError: it is not a workload, or it accepts almost no parameters.
    """
    kind = workloads.get(workload) if isinstance(workload, str) else workload
    if not (isinstance(kind, type) and issubclass(kind, Workload)):
        raise UsageError(f"{workload!r} is not a workload; subclass eirkit.lacuna.tasks.workload.Workload")
    made = kind()
    return try_all(_Subject(made, tuple(_specs(made))), REQUIREMENTS)


@dataclass(frozen=True, slots=True)
class _Subject:
    workload: Workload
    specs: tuple[TaskSpec, ...]

    def tasks(self) -> Iterator[TaskInstance]:
        return (batch_of(self.workload, spec, [spec.seed]).task(0) for spec in self.specs)

    def small(self) -> Iterator[TaskSpec]:
        for n, m in SMALL:
            if (spec := _accepted(self.workload, TaskSpec(_name(self.workload), n=n, m=m))) is not None:
                yield spec


def _name(workload: Workload) -> str:
    return type(workload).__name__


def _specs(workload: Workload) -> Iterator[TaskSpec]:
    """Yield random specifications that the workload accepts, the same in every run of the suite."""
    draw, found = random.Random(1), 0
    for _ in range(20 * SPECS):
        n = draw.randint(2, 20)
        drawn = TaskSpec(
            _name(workload),
            n=n,
            m=draw.randint(1, min(8, n - 1)),
            lookback=draw.choice([None, None, draw.randint(1, 8)]),
            fan_in=draw.randint(1, 5),
            slots=draw.randint(1, 3),
            digits=draw.randint(1, 9),
            k=draw.randint(1, 4),
            seed=draw.getrandbits(64),
            warm_up=draw.randint(0, n),
        )
        if (spec := _accepted(workload, drawn)) is not None:
            yield spec
            found += 1
        if found == SPECS:
            return
    if found < FEWEST:
        raise UsageError(f"{_name(workload)} accepts {found} of {20 * SPECS} specifications; let check() refuse fewer")


def _accepted(workload: Workload, spec: TaskSpec) -> TaskSpec | None:
    """Return the specification if the workload accepts it, perhaps with one slot; None if it does not."""
    for tried in (spec, replace(spec, slots=1)):
        try:
            workload.check(tried)
        except SpecError:
            continue
        return tried
    return None


def _says(subject: _Subject) -> None:
    """It says in words what a step computes."""
    assert subject.workload.rule(subject.specs[0]).strip(), "rule() is empty; write a docstring or a rule for agents"


def _computes(subject: _Subject) -> None:
    """Answers follow from inputs and references, and from nothing else."""
    for task in subject.tasks():
        submitted = {step.t: step.answer for step in task.steps}
        for step, standing in zip(task.steps, standing_at(task, submitted), strict=True):
            changed = subject.workload.changes
            operands = [standing.values[r] if changed else task.step(r).answer for r in step.refs]
            again = tuple(subject.workload.operate(task.spec, step.input, operands))
            assert again == step.answer, f"step {step.t} is {step.answer} in the task and {again} by operate()"


def _batches(subject: _Subject) -> None:
    """operate_batch gives what operate gives, row by row."""
    for spec in subject.specs:
        rng = np.random.default_rng(spec.n)
        rows, width = 4, subject.workload.width(spec)
        for kind in sorted(set(subject.workload.kinds(spec))):
            fresh = rng.integers(0, spec.q, (rows, width))
            # References come first and padding last, as in every reference array.
            present = np.arange(spec.fan_in)[None, :] < rng.integers(0, spec.fan_in + 1, (rows, 1))
            operands = rng.integers(0, spec.q, (rows, spec.fan_in, width)) * present[:, :, None]
            together = subject.workload.operate_batch(spec, kind, fresh, operands, present)
            one_by_one = Workload.operate_batch(subject.workload, spec, kind, fresh, operands, present)
            assert np.array_equal(together, one_by_one), f"they differ at {spec}"


def _is_well_formed(subject: _Subject) -> None:
    """Every step has its kind, its width and values of the alphabet; a step that asks has one reference."""
    for task in subject.tasks():
        spec = task.spec
        kinds, width = subject.workload.kinds(spec), subject.workload.width(spec)
        assert len(kinds) == spec.n, f"kinds() has {len(kinds)} entries for {spec.n} steps"
        assert set(kinds) <= set(get_args(Kind)), f"kinds() has {sorted(set(kinds) - set(get_args(Kind)))}"
        for step in task.steps:
            assert step.kind not in ASKING or len(step.refs) == 1, f"step {step.t} asks for {len(step.refs)} answers"
            for values in (step.answer, step.input or step.answer):
                assert len(values) == width, f"step {step.t} has {len(values)} values; width() says {width}"
                assert all(0 <= v < spec.q for v in values), f"step {step.t} has {values}, outside 0 … {spec.q - 1}"


def _refers(subject: _Subject) -> None:
    """References are distinct, ascending, earlier than their step, stored, and no later than last_use says."""
    for task in subject.tasks():
        for step in task.steps:
            assert list(step.refs) == sorted(set(step.refs)), f"step {step.t} refers to {step.refs}"
            for r in step.refs:
                assert 1 <= r < step.t, f"step {step.t} refers to step {r}"
                latest = subject.workload.last_use(task.spec, r)
                assert step.t <= latest, f"step {step.t} refers to step {r}, whose last_use() is {latest}"
                assert subject.workload.stores(task.spec, r), f"step {step.t} refers to step {r}, which is not stored"


def _knows_last_use(subject: _Subject) -> None:
    """last_use is the last step that can ask, as many seeds show."""
    for spec in subject.small():
        references = needed_references(subject.workload, spec, np.arange(MANY, dtype=np.uint64))
        for t in range(1, spec.n + 1):
            asking = np.flatnonzero((references == t).any(axis=(0, 2))) + 1
            last, said = int(asking[-1]) if len(asking) else 0, subject.workload.last_use(spec, t)
            assert said == last, (
                f"n = {spec.n}, m = {spec.m}: step {t} is asked for until {last}, last_use() says {said}"
            )


def _repeats(subject: _Subject) -> None:
    """A seed gives one task, alone and in every batch; other seeds give others."""
    for spec in subject.specs[:10]:
        seeds = [spec.seed, 3, 1 << 63]
        together = batch_of(subject.workload, spec, seeds)
        for row, seed in enumerate(seeds):
            alone = batch_of(subject.workload, spec, [seed]).task(0)
            assert together.task(row) == alone, f"seed {seed} gives one task alone and another in a batch of {seeds}"
    for spec in subject.small():
        drawn = batch_of(subject.workload, spec, range(50))
        different = {tuple(step.answer for step in drawn.task(row).steps) for row in range(50)}
        assert len(different) == 50, f"50 seeds give {len(different)} tasks"


def _draws_the_graph_first(subject: _Subject) -> str | None:
    """The graph, and so its fingerprint, does not depend on the values; the base graph is that of Stepwise Sum."""
    shared = type(subject.workload).references is Workload.references
    for spec in subject.specs:
        graph = _fingerprint(subject.workload, spec)
        other = replace(spec, digits=9 if spec.digits < 9 else 1)
        assert _fingerprint(subject.workload, other) == graph, "its references depend on the values; draw them by seed"
        if shared:
            assert _fingerprint(StepwiseSum(), spec) == graph, "its fingerprint differs from that of Stepwise Sum"
    return None if shared else "references of its own, so its fingerprints are not those of Stepwise Sum"


def _fingerprint(workload: Workload, spec: TaskSpec) -> str:
    return batch_of(workload, spec, [spec.seed]).task(0).fingerprint


def _knows_its_demand(subject: _Subject) -> str:
    """The EIR that it states is the one that counting small instances gives."""
    found = certify(subject.workload)
    shown = "; ".join(found.differences[:3])
    assert not found.differences, f"{len(found.differences)} of {found.cuts} cuts differ: {shown}"
    return str(found)


def _has_whole_curves(subject: _Subject) -> None:
    """Its demand covers every cut, is nothing at both ends, and is the same for chosen cuts."""
    for task in subject.tasks():
        graph = graph_of(task)
        if task.spec.digits > 4:
            continue  # frontier counts are slow for large alphabets
        try:
            whole = subject.workload.demand(task.spec, graph)
        except UsageError:
            return
        ends = (whole.counts[0], whole.counts[-1])
        assert len(whole.counts) == task.spec.n + 1, f"{len(whole.counts)} cuts are given for {task.spec.n} steps"
        assert all(end is not None and end.upper == 1 for end in ends), "something must survive before or after it all"
        chosen = subject.workload.demand(task.spec, graph, cuts=[1]).counts
        assert chosen[1] == whole.counts[1], "demand(cuts=[1]) differs from the whole curve there"


REQUIREMENTS = (
    _says,
    _computes,
    _batches,
    _is_well_formed,
    _refers,
    _knows_last_use,
    _repeats,
    _draws_the_graph_first,
    _has_whole_curves,
    _knows_its_demand,
)
