"""The prompts of the `completion` protocol: a step as text that a base model goes on with.

Worked examples come first, then the records that are visible, one on a line, an empty line, and the beginning of the
line that the model completes: `A_07 =`. A step that copies asks for the record that it copies; any other names its
operator, input and references: `sum 0017 A_07 A_08 =`. Nothing but the digits of an answer can follow, by a grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from eirkit.lacuna.models.message import Message
from eirkit.lacuna.tasks.task import Payload, TaskSpec, show_label, show_labels, show_record, show_records, show_values
from eirkit.lacuna.tasks.view import PublicStep, Record, Visible
from eirkit.lacuna.tasks.workload import Workload
from eirkit.seeds import drawing, words

EXAMPLES = 6
COPY = "copy"  # the operator of steps that give back a value as it is
_STREAM = "completion examples"


def render_completion(visible: Visible) -> tuple[Message, Message]:
    """Return the worked examples, which are the same at every step of a task, and the text to go on with."""
    task = visible.task
    return worked_examples(task.spec.with_seed(0), task.workload, task.width), Message("user", _state(visible))


@lru_cache(maxsize=64)
def worked_examples(spec: TaskSpec, workload: Workload, width: int) -> Message:
    """Return examples with as many records as the task's window, drawn independently of every task."""
    below = drawing(words([spec.m], 1 << 10, _STREAM)[0, ::-1].tolist(), spec.m, _STREAM)

    def values() -> Payload:
        return workload.canonical(tuple(below(spec.q) for _ in range(width)))

    shown = []
    for _ in range(EXAMPLES):
        labels = list(range(1, spec.n + 1))
        steps = sorted(labels.pop(below(len(labels))) for _ in range(min(spec.m, len(labels) - 1)))
        records = [(t, values()) for t in steps]
        if workload.operator == COPY:
            refs: tuple[int, ...] = (steps[below(len(steps))],)
        else:
            refs = tuple(sorted({steps[below(len(steps))] for _ in range(spec.fan_in)}))
        fresh = None if workload.operator == COPY else values()
        step = PublicStep(max(steps), "recall" if fresh is None else "compute", fresh, refs)
        answer = workload.operate(spec, fresh, [values for t, values in records if t in refs])
        shown.append(f"{_text(spec, workload, records, step)} {show_values(spec.digits, answer)}\n\n")
    return Message("system", "".join(shown))


def _state(visible: Visible) -> str:
    spec, step = visible.task.spec, visible.step
    if step is None:
        return "STEP none"
    records = dict((*visible.records, *visible.restored, *visible.fetched))
    passages = (visible.notes or "").splitlines()
    return _text(spec, visible.task.workload, sorted(records.items()), step, passages)


def _text(
    spec: TaskSpec, workload: Workload, records: Iterable[Record], step: PublicStep, passages: Sequence[str] = ()
) -> str:
    lines = [*show_records(spec, records), *passages]
    if workload.operator != COPY:
        words_of_step = [workload.operator or spec.workload]
        if step.input is not None:
            words_of_step.append(show_values(spec.digits, step.input))
        asked = " ".join([*words_of_step, *show_labels(spec, step.refs)])
    elif step.input is not None:
        lines.append(show_record(spec, step.t, step.input))
        asked = show_label(spec, step.t)
    else:
        asked = show_label(spec, step.refs[0])
    return "\n".join([*lines, "", f"{asked} ="])
