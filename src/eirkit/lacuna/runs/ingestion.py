"""One ingestion for several runs: those of one seed in cells that differ only in the budget of what a memory shows.

The first gives the conversation to the memory. The others take over what was recorded of that and ask their questions
in the same scope, unless a recall may change what the system holds, or was seen to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from msgspec import structs

from eirkit.lacuna.agents.driver import consult
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.telemetry import Consultation, Trace
from eirkit.lacuna.memories.calls import call_with_timeout, usage_of
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult, MemorySystem, MemoryUsage
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.memories.values import check_contents
from eirkit.lacuna.runs.cells import Cell, Planned
from eirkit.lacuna.tasks.task import ConversationSpec
from eirkit.records.money import exact_usd
from eirkit.records.runs import SharedIngestion
from eirkit.records.settings import DOCUMENTED


@dataclass(slots=True)
class Ingestion:
    """A conversation that a memory takes in for several runs."""

    run: str = ""  # that gave it to the memory; empty until the last session is taken in
    observed: tuple[Consultation, ...] = ()  # one for each session
    used: MemoryUsage = field(default_factory=MemoryUsage)  # after the last session
    error: Exception | None = None  # why it failed, and with it every run that waits for it

    async def take_in(self, session: Session, memory: MemorySystem, trace: Trace, run: str, seconds: float) -> None:
        """Give the memory every session before the first question, and keep what was recorded."""
        observed: list[Consultation] = []
        while isinstance(call := session.request(), MemoryCall) and call.verb == "observe":
            one = await consult(memory, session.position, call, session.records, perf_counter, seconds)
            _log(session, trace, one)
            observed.append(one)
        self.observed, self.used, self.run = tuple(observed), await usage_of(memory, seconds), run

    def take_over(self, session: Session, trace: Trace) -> None:
        """Log what another run recorded, as if this one had."""
        for one in self.observed:
            _log(session, trace, one)

    async def is_intact(self, memory: MemorySystem, seconds: float) -> bool:
        """True if a system holds the texts that it held after the last session, as far as it can list them."""
        then = self.observed[-1].stored if self.observed else None
        held = check_contents(await call_with_timeout(seconds, "contents", memory.contents))
        return then is None or held is None or sorted(held) == sorted(then)

    def usage_since(self, begun: MemoryUsage, ended: MemoryUsage) -> MemoryUsage:
        """Return the usage of a run that took it over, as if it had been alone.

        Args:
            begun: of the scope when the run began.
            ended: when it had ended.
        """
        return replace(
            ended,
            model_calls=self.used.model_calls + ended.model_calls - begun.model_calls,
            input_tokens=self.used.input_tokens + ended.input_tokens - begun.input_tokens,
            output_tokens=self.used.output_tokens + ended.output_tokens - begun.output_tokens,
            cost_usd=_cost(self.used, begun, ended),
        )

    @property
    def shared(self) -> SharedIngestion:
        """What a run that took it over did not ask for and pay itself."""
        used = self.used
        return SharedIngestion(self.run, used.model_calls, used.input_tokens, used.output_tokens, used.cost_usd)


def _log(session: Session, trace: Trace, observed: Consultation) -> None:
    trace.log.append(observed)
    session.receive_memory(MemoryResult(observed.passages))
    trace.log.extend(session.drain())


def _cost(used: MemoryUsage, begun: MemoryUsage, ended: MemoryUsage) -> float | None:
    if begun.model_calls == ended.model_calls:
        return used.cost_usd
    if used.cost_usd is None or begun.cost_usd is None or ended.cost_usd is None:
        return None
    return float(exact_usd(used.cost_usd) + exact_usd(ended.cost_usd) - exact_usd(begun.cost_usd))


def cells_that_share(planned: Iterable[Planned]) -> Mapping[str, Sequence[Planned]]:
    """Return the cells that differ only in their budget, with their seeds, by the id of each; others are left out."""
    alike: dict[str, list[Planned]] = {}
    for cell, seeds in planned:
        if (key := _shared_key(cell)) is not None:
            alike.setdefault(key, []).append((cell, seeds))
    return {cell.id: group for group in alike.values() if len(group) > 1 for cell, _ in group}


def _shared_key(cell: Cell) -> str | None:
    """Return the id that a cell has with the usual budget; None if it has no memory that can take in for others."""
    if cell.access.memory is None or not isinstance(cell.task, ConversationSpec):
        return None
    plan = cell.memory_plan
    if plan is None or memory_factory().recall_writes(plan):
        return None
    return replace(cell, access=structs.replace(cell.access, budget=DOCUMENTED)).id
