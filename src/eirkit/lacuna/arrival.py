"""One step of an agent-managed run, from its arrival to the decision that is recorded about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from eirkit.lacuna.session import Decision
from eirkit.lacuna.task import Payload
from eirkit.lacuna.view import PublicStep, Record


@dataclass(slots=True)
class Arrival:
    """What is known about the current step since it was revealed."""

    step: PublicStep
    retained: frozenset[int]  # at hand when it arrived
    missing: tuple[int, ...]
    beyond: tuple[int, ...]  # missing, and neither READ nor RECOMPUTE can bring it
    unwritten: frozenset[int]  # beyond, and no memory system was given it
    restored: tuple[Record, ...]
    fetched: dict[int, Payload] = field(default_factory=dict)  # read, recomputed or found; in sight until the next step
    displaced: dict[int, Payload] = field(
        default_factory=dict
    )  # references that a fetched record drove out: in sight too
    worked_out: dict[int, Payload] = field(default_factory=dict)  # results on the way to a recomputed one; not shown
    found: str | None = None  # passages of the last search
    sought: set[int] = field(default_factory=set)  # steps whose number stood in a query
    reads: int = 0
    recomputations: int = 0
    recovery_depth: int = 0
    actions: int = 0
    answers: int = 0  # attempts
    fault: str = "unanswered"  # why there is no answer yet
    answered: bool = False

    @property
    def unavailable(self) -> tuple[int, ...]:
        """The missing results that no interface supplies: never written, or searched for by number in vain.

        A query that does not name a record says nothing about whether the record could be had.
        """
        return tuple(r for r in self.beyond if r in self.unwritten or (r in self.sought and r not in self.fetched))

    def decision(self, submitted: Payload | None) -> Decision:
        """Return the record of the step."""
        return Decision(
            t=self.step.t,
            required=self.step.refs,
            retained=tuple(sorted(self.retained)),
            missing=self.missing,
            unavailable=self.unavailable,
            restored=self.restored,
            submitted=submitted,
            fault=self.fault if submitted is None else None,
            fetched=tuple(sorted(self.fetched)),
            reads=self.reads,
            recomputations=self.recomputations,
            recovery_depth=self.recovery_depth,
            actions=self.actions,
            answers=self.answers,
        )
