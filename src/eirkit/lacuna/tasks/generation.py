"""Generates tasks from specifications, singly and in batches; a single task is row 0 of a batch of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve
from eirkit.errors import ContractError, SpecError, UsageError
from eirkit.lacuna.tasks.task import (
    ASKING,
    CHANGING,
    WITHOUT_INPUT,
    AnySpec,
    ConversationSpec,
    GeneratedTask,
    Kind,
    Step,
    TaskInstance,
    TaskSpec,
    fingerprint,
)
from eirkit.lacuna.tasks.workload import (
    Graph,
    References,
    TextWorkload,
    Values,
    Workload,
    as_tuples,
    find_workload,
)
from eirkit.seeds import below, words

BATCH = 1024  # tasks generated together when iterating, as long as they are small; the arrays then stay in cache
_KEPT_CELLS = 1 << 14  # values or references of a batch that is kept: 128 tasks of 64 steps, 200 kB
BATCH_CELLS = 1 << 22  # values or references a batch; bounds memory whatever the size of a task


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Many tasks that differ only in their seed, as arrays."""

    spec: TaskSpec  # its seed is ignored in favor of `seeds`
    seeds: NDArray[np.uint64]
    kinds: tuple[Kind, ...]
    references: References  # (seeds, n, fan_in), zero-padded
    inputs: Values  # (seeds, n, width); meaningless where the step only asks
    answers: Values  # (seeds, n, width)

    def __len__(self) -> int:
        return len(self.seeds)

    def task(self, row: int) -> TaskInstance:
        """Return one task of the batch as plain data."""
        spec = self.spec.with_seed(int(self.seeds[row]))
        graph = as_tuples(self.references[row])
        steps = range(1, spec.n + 1)
        given = map(tuple, self.inputs[row].tolist())
        inputs = (None if kind in WITHOUT_INPUT else values for kind, values in zip(self.kinds, given, strict=True))
        answers = map(tuple, self.answers[row].tolist())
        scored = (t > spec.warm_up for t in steps)
        if CHANGING.isdisjoint(self.kinds):
            made = tuple(map(Step, steps, self.kinds, inputs, graph, answers, scored))
        else:
            changed = [refs[0] if kind in CHANGING else 0 for kind, refs in zip(self.kinds, graph, strict=True)]
            needed = [() if target else refs for target, refs in zip(changed, graph, strict=True)]
            made = tuple(map(Step, steps, self.kinds, inputs, needed, answers, scored, changed))
        return TaskInstance(spec, fingerprint(spec, graph), made)


@overload
def generate(spec: TaskSpec) -> TaskInstance: ...
@overload
def generate(spec: AnySpec) -> GeneratedTask: ...
def generate(spec: AnySpec) -> GeneratedTask:
    """Return the task that the specification determines."""
    return next(iter(generate_many(spec, [spec.seed])))


def generate_batch(spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> TaskBatch:
    """Return the tasks of many seeds; row i equals `generate` at seed i to the byte."""
    return batch_of(prepare(spec), spec, seeds)


def batch_of(workload: Workload, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> TaskBatch:
    """Return the tasks of a given workload object, registered or not, that has accepted the parameters."""
    keys = _as_keys(spec, seeds)
    if not type(workload).__module__.startswith("eirkit."):
        batch = _drawn(workload, spec, keys)
        if len(keys):
            _refuse_moods(workload, batch)
        return batch
    if len(keys) * spec.n * max(workload.width(spec), spec.fan_in) > _KEPT_CELLS:
        return _drawn(workload, spec, keys)
    return kept_batches(type(workload), spec, tuple(keys.tolist()))


def _drawn(workload: Workload, spec: TaskSpec, keys: NDArray[np.uint64]) -> TaskBatch:
    return _fill(workload, spec, keys, references_of(workload, spec, keys))


def references_of(workload: Workload, spec: TaskSpec, keys: NDArray[np.uint64]) -> References:
    """Return what the steps of many tasks refer to, after a check of what a third-party workload returned."""
    found = workload.references(spec, keys)
    if type(workload).__module__.startswith("eirkit."):
        return found
    shape = _shape(found)
    if len(shape) != 3 or shape[:2] != (len(keys), spec.n):
        raise ContractError(
            f"{spec.workload} returned references {found!r:.200}; return an integer array of shape (seeds, n, fan_in)"
        )
    if not ((found >= 0) & (found < np.arange(1, spec.n + 1)[:, None])).all():
        raise ContractError(f"{spec.workload} refers to steps that are not earlier; refer to 1 … t − 1, or 0 for none")
    return found


def _shape(found: object) -> tuple[int, ...]:
    """Return the shape of an array of integers; () for anything else."""
    return found.shape if isinstance(found, np.ndarray) and found.dtype.kind in "iu" else ()


@lru_cache(maxsize=32)  # the cells of a sweep, its control and its prompts are made of the same few tasks
def kept_batches(workload: type[Workload], spec: TaskSpec, seeds: tuple[int, ...]) -> TaskBatch:
    """Return a small batch of one of our own workloads, the same one for the same arguments."""
    batch = _drawn(workload(), spec, np.array(seeds, dtype=np.uint64))
    for array in (batch.seeds, batch.references, batch.inputs, batch.answers):
        array.flags.writeable = False  # the cache hands the same arrays to everyone
    return batch


def generate_batches(spec: TaskSpec, seeds: Sequence[int], largest: int = BATCH) -> Iterator[TaskBatch]:
    """Yield batches of at most `largest` tasks that cover the seeds in order, each small enough to hold."""
    width = prepare(spec).width(spec)
    rows = max(1, min(largest, BATCH_CELLS // (spec.n * max(width, spec.fan_in))))
    for start in range(0, len(seeds), rows):
        yield generate_batch(spec, seeds[start : start + rows])


@overload
def generate_many(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[TaskInstance]: ...
@overload
def generate_many(spec: AnySpec, seeds: Sequence[int]) -> Iterator[GeneratedTask]: ...
def generate_many(spec: AnySpec, seeds: Sequence[int]) -> Iterator[GeneratedTask]:
    """Return tasks in the order of the seeds, of which one batch is held at a time."""
    return _of_numbers(spec, seeds) if isinstance(spec, TaskSpec) else prepare(spec).tasks(spec, seeds)


def _of_numbers(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[TaskInstance]:
    for batch in generate_batches(spec, seeds):
        for row in range(len(batch)):
            yield batch.task(row)


def from_graph(spec: TaskSpec, graph: Graph) -> TaskInstance:
    """Return a task over a given graph; n, lookback and fan-in become those of the graph."""
    reach = max((t - r for t, refs in enumerate(graph, 1) for r in refs), default=1)
    fan_in = max(1, *(len(refs) for refs in graph)) if graph else 1
    spec = replace(spec, n=len(graph), lookback=reach, fan_in=fan_in)
    workload = prepare(spec)
    if set(workload.kinds(spec)) != {"compute"} or type(workload).references is not Workload.references:
        raise SpecError(f"{spec.workload} draws its own references; use --graph with a compute workload")
    references = np.zeros((1, spec.n, fan_in), dtype=np.int32)
    for t, refs in enumerate(graph):
        references[0, t, : len(refs)] = refs
    return _fill(workload, spec, _as_keys(spec, [spec.seed]), references).task(0)


@overload
def prepare(spec: TaskSpec) -> Workload: ...
@overload
def prepare(spec: ConversationSpec) -> TextWorkload: ...
@overload
def prepare(spec: AnySpec) -> Workload | TextWorkload: ...
def prepare(spec: AnySpec) -> Workload | TextWorkload:
    """Return the specification's workload after it has accepted the parameters.

    Raises:
        UsageError: the workload is of the other family.
    """
    workload = find_workload(spec.workload)
    if isinstance(spec, TaskSpec) and isinstance(workload, Workload):
        workload.check(spec)
        return workload
    if isinstance(spec, ConversationSpec) and isinstance(workload, TextWorkload):
        workload.check(spec)
        return workload
    parts = "a preset" if isinstance(workload, TextWorkload) else "n, m and the like"
    raise UsageError(f"{spec.workload} is described by {parts}; give those")


def graph_of(task: TaskInstance) -> Graph:
    """Return the references of all steps, to records that they need or change: what the fingerprint is of."""
    return tuple((step.target,) if step.target else step.refs for step in task.steps)


def needs_of(task: TaskInstance) -> Graph:
    """Return the references of all steps to records that they need."""
    return tuple(step.refs for step in task.steps)


def needed_references(workload: Workload, spec: TaskSpec, keys: NDArray[np.uint64]) -> References:
    """Return what the steps of many tasks refer to and need."""
    found = references_of(workload, spec, keys)
    if workload.changes:
        found[:, [kind in CHANGING for kind in workload.kinds(spec)]] = 0
    return found


def demand_of(task: TaskInstance, cuts: Sequence[int] | None = None) -> DemandCurve:
    """Return EIR after each step of the task, or after the chosen steps alone."""
    return prepare(task.spec).demand(task.spec, graph_of(task), cuts)


def _refuse_moods(workload: Workload, batch: TaskBatch) -> None:
    """Raise ContractError if a third-party workload makes different tasks from the same seed."""
    spec, first = batch.spec, batch.seeds[:1]
    again = _fill(workload, spec, first, references_of(workload, spec, first))
    for what, once, twice in (
        ("references", batch.references[:1], again.references),
        ("answers", batch.answers[:1], again.answers),
    ):
        if once.shape != twice.shape or not np.array_equal(once, twice):
            raise ContractError(
                f"{spec.workload} gives different {what} for the same seed; make them depend on the arguments alone"
            )


def _as_keys(spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> NDArray[np.uint64]:
    if len(seeds):
        spec.with_seed(int(min(seeds)))  # raises SpecError for an invalid seed
        spec.with_seed(int(max(seeds)))
    return np.array(seeds, dtype=np.uint64)


def _fill(workload: Workload, spec: TaskSpec, keys: NDArray[np.uint64], references: References) -> TaskBatch:
    """Return the tasks over given references: inputs drawn from the seeds, answers computed step by step."""
    width = workload.width(spec)
    inputs = below(words(keys, spec.n * width, "input"), spec.q).reshape(len(keys), spec.n, width)
    answers = _answers(workload, spec, references, inputs)
    return TaskBatch(spec, keys, workload.kinds(spec), references, inputs, answers)


def _answers(workload: Workload, spec: TaskSpec, references: References, inputs: Values) -> Values:
    answers = np.zeros_like(inputs)
    standing = np.zeros_like(inputs) if workload.changes else answers  # what each record says now
    ends = np.full(inputs.shape[:2], spec.n)  # the last step at which it does
    rows = np.arange(len(inputs))[:, None]
    for t, kind in enumerate(workload.kinds(spec), 1):
        refs = references[:, t - 1]
        if workload.changes:
            standing[ends < t] = 0
            label = refs[:, 0] - 1 if kind in CHANGING else t - 1
            refs = np.zeros_like(refs) if kind in CHANGING else refs
        # A reference 0 means none. It reads the answer of step t, which is still zero.
        operands = standing[rows, np.where(refs == 0, t, refs) - 1]
        found = workload.operate_batch(spec, kind, inputs[:, t - 1], operands, refs > 0)
        if _shape(found) != answers[:, t - 1].shape:
            raise ContractError(
                f"{spec.workload} answered {found!r:.200}; return an integer array of shape {answers[:, t - 1].shape}"
            )
        answers[:, t - 1] = found
        if workload.changes and kind not in ASKING:
            standing[rows[:, 0], label] = found
            ends[rows[:, 0], label] = t + spec.expiry if spec.expiry else spec.n
    if answers.size and not (answers.min() >= 0 and answers.max() < spec.q):
        raise ContractError(f"{spec.workload} answered outside 0 … {spec.q - 1}; reduce answers modulo spec.q")
    return answers
