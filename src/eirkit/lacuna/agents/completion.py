"""The prompts of the `completion` protocol: a step as text that a base model goes on with.

Worked examples come first, then what is asked, the records that are known, one on a line, an empty line, and what is
asked again, for the model to complete: `A7:`. A step that copies asks for the record that it copies; any other names
its operator, input and references: `sum 0017 A7 A8:`. Nothing but the digits of an answer can follow, by a grammar.

The form was chosen with Gemma 3 270M on seeds that no page reports. Of 60 lookups more were right with a colon in place
of ` = ` (27 to 47, among sixteen records), with labels in the examples that the task does not use (40 to 54, among
eight) and with the question first (39 to 53, among eight labeled from 1 on).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from eirkit.lacuna.agents.situation import everything_known, situation_of
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.tasks.task import Payload, TaskSpec, show_values
from eirkit.lacuna.tasks.view import PublicStep, Record, Visible
from eirkit.lacuna.tasks.workload import Workload
from eirkit.seeds import drawing, words

EXAMPLES = 6
COPY = "copy"  # the operator of steps that give back a value as it is
_STREAM = "completion examples"


def render_completion(visible: Visible) -> tuple[Message, Message]:
    """Return the worked examples, which are the same at every step of a task, and the text to go on with."""
    task, text = visible.task, "STEP none"
    if visible.step is not None:
        known = everything_known(situation_of(Request((), visible=visible)))
        text = _text(task.spec, task.workload, sorted(known.items()), visible.step)
    return worked_examples(task.spec.with_seed(0), task.workload, task.width), Message("user", text)


@lru_cache(maxsize=64)
def worked_examples(spec: TaskSpec, workload: Workload, width: int) -> Message:
    """Return examples with as many records as the task's window, drawn independently of every task."""
    below = drawing(words([spec.m], 1 << 10, _STREAM)[0, ::-1].tolist(), spec.m, _STREAM)

    def values() -> Payload:
        return workload.canonical(tuple(below(spec.q) for _ in range(width)))

    shown = []
    for _ in range(EXAMPLES):
        labels = _labels_of_examples(spec)
        steps = sorted(labels.pop(below(len(labels))) for _ in range(min(spec.m, len(labels) - 1)))
        held = [values() for _ in steps]
        if workload.operator == COPY:  # a step that recalled holds the value of another
            held = [held[below(len(held))] for _ in steps]
        records = list(zip(steps, held, strict=True))
        if workload.operator == COPY:
            refs: tuple[int, ...] = (steps[below(len(steps))],)
        else:
            refs = tuple(sorted({steps[below(len(steps))] for _ in range(spec.fan_in)}))
        fresh = None if workload.operator == COPY else values()
        step = PublicStep(max(steps), "recall" if fresh is None else "compute", fresh, refs)
        answer = workload.operate(spec, fresh, [values for t, values in records if t in refs])
        shown.append(f"{_text(spec, workload, records, step)} {show_values(spec.digits, answer)}\n\n")
    return Message("system", "".join(shown))


def _labels_of_examples(spec: TaskSpec) -> list[int]:
    """Return labels as wide as those of the task that are not its own, where there are enough of them."""
    others = list(range(spec.n + 1, 10 ** len(str(spec.n))))
    return others if len(others) > spec.m else list(range(1, spec.n + 1))


def _text(spec: TaskSpec, workload: Workload, records: Iterable[Record], step: PublicStep) -> str:
    lines = [f"A{t}: {show_values(spec.digits, values)}" for t, values in records]
    if workload.operator != COPY:
        given = [] if step.input is None else [show_values(spec.digits, step.input)]
        asked = " ".join([workload.operator or spec.workload, *given, *(f"A{t}" for t in step.refs)])
    elif step.input is not None:
        # Nothing else is needed to keep a value, and values that occur often in a list would be written in its place.
        lines = [f"A{step.t}: {show_values(spec.digits, step.input)}"]
        asked = f"A{step.t}"
    else:
        asked = f"A{step.refs[0]}"
    return "\n".join([asked, *lines, "", f"{asked}:"])
