"""What is visible to an agent in this process: the step, the values it knows, and those that it misses.

Records are objects; only notes and passages of memories are text, of which an agent learns what `recognize` says that
they state.
"""

from __future__ import annotations

from msgspec import Struct

from eirkit.lacuna.agents.recognition import recognize
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.view import Visible


class Situation(Struct, frozen=True, gc=False):
    """What an agent has before it for one decision."""

    visible: Visible
    t: int  # 0: no step has been revealed
    input: Payload | None
    refs: tuple[int, ...]
    values: dict[int, Payload]  # known, of the referenced steps at least

    @property
    def spec(self) -> TaskSpec:
        return self.visible.task.spec

    @property
    def commands(self) -> tuple[str, ...]:
        return self.visible.commands

    @property
    def label(self) -> int:
        """The record that the answer is the value of."""
        return self.visible.step.label if self.visible.step is not None else self.t

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple([r for r in self.refs if r not in self.values])

    def operate(self, values: dict[int, Payload]) -> Payload:
        """Apply the rule to the referenced values that are given, leaving out missing ones."""
        operands = [values[r] for r in self.refs if r in values]
        return self.visible.task.workload.operate(self.visible.task.spec, self.input, operands)


def situation_of(request: Request) -> Situation:
    """Return what a request shows.

    Raises:
        ValueError: it is no request of a task, or it came as text alone.
    """
    visible = request.visible
    if not isinstance(visible, Visible):
        raise ValueError("the request has no visible records; agents in this process take part in eirkit's tasks alone")
    step = visible.step
    values = dict(visible.records)
    if visible.restored or visible.fetched:
        values.update(visible.restored)
        values.update(visible.fetched)
    if step is None:
        return Situation(visible, 0, None, (), values)
    if visible.notes:
        values = _with_notes(visible, values, step.refs)
    return Situation(visible, step.t, step.input, step.refs, values)


def everything_known(situation: Situation) -> dict[int, Payload]:
    """Return every value that is visible, whatever step it belongs to."""
    if not situation.visible.notes:
        return situation.values
    return _with_notes(situation.visible, situation.values, range(1, situation.t + 1))


def _with_notes(visible: Visible, values: dict[int, Payload], steps: tuple[int, ...] | range) -> dict[int, Payload]:
    """Return values with those that notes or passages state for some steps."""
    notes = visible.notes or ""
    if "SEARCH" in visible.commands:  # passages come after what is shown as records, the best first
        lacking = [t for t in steps if t not in values]
        stated = _stated(visible, notes.split("\n"), lacking, best_first=True)
        rest = [t for t in lacking if t not in stated]
        return values | stated | (_stated(visible, [notes], rest) if rest else {})
    return values | _stated(visible, notes.split("\n"), steps)


def _stated(
    visible: Visible, texts: list[str], steps: list[int] | tuple[int, ...] | range, *, best_first: bool = False
) -> dict[int, Payload]:
    """Return what texts state for some steps, of which nothing is known: no value of a record is negative."""
    width, now = visible.task.width, None if visible.step is None else visible.step.t
    unknown = (-1,) * width
    stated = recognize(texts, dict.fromkeys(steps, unknown), best_first=best_first, now=now).stated
    return {t: tuple(map(int, digits)) for t, digits in stated.items() if len(digits) == width}
