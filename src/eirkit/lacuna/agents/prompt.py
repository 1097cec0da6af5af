"""The wording of prompts: the rules and state of a task as a model reads them, in the `full` or `compact` format.

`full` explains everything in words; `compact` has records, operator, input and references, and no prose. A line that
depends on the task's values has a fixed width, so the length of a prompt says nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from eirkit.errors import UnknownNameError
from eirkit.lacuna.agents.completion import render_completion
from eirkit.lacuna.agents.protocol import USAGE, how_to_reply, show_form
from eirkit.lacuna.models.factory import split_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, NumberForm, models
from eirkit.lacuna.tasks.task import TaskSpec, show_label, show_labels, show_records, show_values
from eirkit.lacuna.tasks.view import Budgets, PublicTask, Visible
from eirkit.lacuna.tasks.workload import Workload
from eirkit.records.settings import COMPLETION, TEXT

Renderer = Callable[[Visible], tuple[Message, ...]]


def render(visible: Visible) -> tuple[Message, ...]:
    """Return the rules as system message and the current state as user message."""
    if visible.protocol == COMPLETION:
        return render_completion(visible)
    task = visible.task
    system = _system(task.spec, task.workload, task.width, visible.commands, visible.protocol)
    return system, Message("user", state(visible))


def rules(task: PublicTask, commands: tuple[str, ...]) -> str:
    """Return the system message: the operator, the format and the commands."""
    return _system(task.spec, task.workload, task.width, commands, TEXT).content


def render_compact(visible: Visible) -> tuple[Message, ...]:
    """Return the messages in the compact format: a step is one line, such as `A_09 = sum 0017 A_07 A_08`."""
    if visible.protocol == COMPLETION:
        return render_completion(visible)
    task = visible.task
    system = _compact_system(task.spec, task.width, visible.commands, visible.protocol)
    return system, Message("user", compact_state(visible))


FULL, COMPACT = "full", "compact"
DIALECTS: dict[str, Renderer] = {FULL: render, COMPACT: render_compact}


@lru_cache(maxsize=256)  # the same for every decision of a run
def _system(spec: TaskSpec, workload: Workload, width: int, commands: tuple[str, ...], protocol: str) -> Message:
    lines = [
        f"You carry out a task of {spec.n} steps, one step at a time.",
        _workload_line(spec, width),
        f"RULE {workload.rule(spec)}",
        f"Answers are called A_t. A value is a number from 0 to {spec.q - 1}, written with {spec.digits} digits.",
        "You see only what is shown below; earlier messages are gone.",
        *how_to_reply(commands, width, protocol),
    ]
    return Message("system", "\n".join(lines))


@lru_cache(maxsize=256)
def _compact_system(spec: TaskSpec, width: int, commands: tuple[str, ...], protocol: str) -> Message:
    usage = [USAGE[word].partition(":")[0] for word in commands]
    if protocol != TEXT:
        only_answers = commands == ("ANSWER",)
        usage = (
            [show_form(NumberForm(0, width, 0), protocol)] if only_answers else how_to_reply(commands, width, protocol)
        )
    return Message("system", "\n".join([_workload_line(spec, width), *usage]))


def _workload_line(spec: TaskSpec, width: int) -> str:
    return f"WORKLOAD {spec.workload} n={spec.n} q={spec.q} width={width} k={spec.k}"


def state(visible: Visible) -> str:
    """Return the user message: retained records, the step, and the remaining budgets."""
    spec, records = visible.task.spec, visible.records
    lines = [f"RETAINED {len(records)}", *show_records(spec, records)]
    if visible.restored:
        lines += ["RESTORED", *show_records(spec, visible.restored)]
    if visible.fetched:
        lines += ["FETCHED", *show_records(spec, visible.fetched)]
    lines += _surroundings(visible, _step_lines(visible))
    return "\n".join(lines)


def compact_state(visible: Visible) -> str:
    """Return the user message in the compact format; only managed runs show where records come from."""
    spec = visible.task.spec
    if visible.budgets is None:
        lines = show_records(spec, (*visible.records, *visible.restored, *visible.fetched))
    else:
        lines = [f"RETAINED {len(visible.records)}", *show_records(spec, visible.records)]
        lines += show_records(spec, (*visible.restored, *visible.fetched))
    return "\n".join([*lines, *_surroundings(visible, [_expression(visible)])])


def _surroundings(visible: Visible, step: list[str]) -> list[str]:
    """Return the step with the notes and memory before it and the budgets and outcomes after it."""
    if visible.notes is None and visible.budgets is None and not (visible.room or visible.outcomes):
        return step  # as in every prompt of Controlled Retention
    lines = [] if visible.notes is None else ["NOTES", visible.notes, "END NOTES"]
    if visible.room:
        lines.append(f"MEMORY {visible.room}")
    lines += step
    if visible.budgets is not None:
        lines.append(_budget_line(visible.budgets))
    return lines + [f"RESULT {outcome}" for outcome in visible.outcomes]


def _expression(visible: Visible) -> str:
    """Return a step as one line: `A_09 = sum 0017 A_07 A_08`."""
    task, step = visible.task, visible.step
    if step is None:
        return "STEP none"
    words = [f"{show_label(task.spec, step.t)} =", task.workload.operator or task.spec.workload]
    if step.input is not None:
        words.append(show_values(task.spec.digits, step.input))
    changed = ["changes", show_label(task.spec, step.target)] if step.target else []
    return " ".join([*words, *changed, *show_labels(task.spec, step.refs), *(["answered"] if visible.answered else [])])


def _step_lines(visible: Visible) -> list[str]:
    spec, step = visible.task.spec, visible.step
    if step is None:
        return ["STEP none"]
    head = f"STEP {show_label(spec, step.t)[2:]} {step.kind}"
    lines = [f"{head} answered" if visible.answered else head]
    if step.input is not None:
        lines.append("INPUT " + show_values(spec.digits, step.input))
    if step.target:
        lines.append("CHANGES " + show_label(spec, step.target))
    if step.refs:
        lines.append("REFS " + " ".join(show_labels(spec, step.refs)))
    return lines


def _budget_line(budgets: Budgets) -> str:
    left = (("actions", budgets.actions), ("reads", budgets.reads), ("recomputations", budgets.recomputations))
    return "LEFT " + " ".join(f"{name}={'unlimited' if value is None else value}" for name, value in left)


def renderer_of(string: str, options: ModelOptions) -> Renderer:
    """Return the prompt renderer of a model: the format of its options, else of its provider."""
    own = getattr(models.get(split_model(string)[0]), "dialect", FULL)
    name = own if options.dialect is None else options.dialect
    if name not in DIALECTS:
        raise UnknownNameError("dialect", name, DIALECTS)
    return DIALECTS[name]
