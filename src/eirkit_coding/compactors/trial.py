"""Tries compactors at the cuts of a run within time limits; a failure costs only the compactor that failed.

Compactors that ship with eirkit and import nothing foreign run in this process. All others run in a process of their
own, which sees no keys and is ended if it hangs.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from msgspec import ValidationError, convert, to_builtins

from eirkit.errors import (
    ContractError,
    EirkitError,
    InputFileError,
    PluginError,
    SpendCapReached,
    StoreError,
    UsageError,
)
from eirkit.lacuna.memories.child_process import KeptProcess, inherited_variables, variables_without_secrets
from eirkit.lacuna.memories.embeddings import Vectors
from eirkit.lacuna.memories.endpoint import ModelEndpoint
from eirkit.lacuna.memories.environments import python_of, reason_not_installed
from eirkit.lacuna.memories.times import START_SECONDS
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import Model, ModelOptions
from eirkit.limits import time_limit
from eirkit.registry import call, locate
from eirkit_coding.compaction.context import ContextMessage, LineCounter
from eirkit_coding.compaction.cuts import CompactorOutcome, ContextCut, failed, judge
from eirkit_coding.compactors.compactor import (
    CompactorUsage,
    Informed,
    TokenBudget,
    VendorSummary,
    compactors,
    find_compactor,
    make_compactor,
)
from eirkit_coding.compactors.host import HostAnswer, checked
from eirkit_coding.compactors.summary import MakeModel, ModelCompactor

LIMIT_SECONDS = 60.0  # for one compaction
MOST_DEATHS = 3  # after so many compactions in a row that hung or ended its process, a compactor is not asked again
HOST = "eirkit_coding.compactors.host"


@dataclass(frozen=True, slots=True)
class CompactorChoice:
    """A compactor with its settings."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, without the folder of a file, and the settings that were given."""
        file, colon, attribute = self.name.rpartition(":")
        name = f"{Path(file).name}{colon}{attribute}"
        given = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{name} ({given})" if given else name

    @property
    def code(self) -> str | None:
        """A digest of the file that it is in; None if it is named otherwise."""
        place = Path(_place(self.name) or "")
        return blake2b(place.read_bytes(), digest_size=16).hexdigest() if place.is_file() else None


@dataclass(frozen=True, slots=True)
class CompactionEffort:
    """What one compaction took, whether it succeeded or not."""

    seconds: float = 0.0
    usage: CompactorUsage = field(default_factory=CompactorUsage)


class CompactorSeat(Protocol):
    """Where a compactor is asked: in this process, or in one of its own."""

    effort: CompactionEffort  # of the last compaction

    def ask(self, cut: ContextCut, budget: TokenBudget) -> Sequence[ContextMessage]:
        """Return what it makes of a cut.

        Raises:
            PluginError, StoreError, TimeoutError: it raised, ended its process, or took too long.
            ContractError: it returned something else.
        """
        ...

    def close(self) -> None: ...


class HereSeat:
    """A compactor in this process; a limit on processor time ends it if it hangs.

    Args:
        make: makes the models that it asks, if it asks any.
    """

    def __init__(
        self,
        choice: CompactorChoice,
        seconds: float = LIMIT_SECONDS,
        make: MakeModel = make_metered,
    ) -> None:
        self.kind, self.seconds, self.effort = find_compactor(choice.name), seconds, CompactionEffort()
        self._made = None if issubclass(self.kind, Informed) else make_compactor(self.kind, choice.settings)
        if isinstance(self._made, ModelCompactor):
            self._made.connect(make)

    def ask(self, cut: ContextCut, budget: TokenBudget) -> Sequence[ContextMessage]:
        asked = self.kind.knowing(cut) if issubclass(self.kind, Informed) else self._made
        assert asked is not None
        before, began = asked.usage(), perf_counter()
        try:
            with time_limit(self.seconds, "a compaction"):
                found = call("compactor", asked.compact, cut.messages, budget)
        except InputFileError as error:
            raise TimeoutError(f"took more than {self.seconds:g} s of processor time") from error
        finally:
            self.effort = CompactionEffort(perf_counter() - began, spent_since(before, asked.usage()))
        return checked(found)

    def close(self) -> None:
        if isinstance(self._made, ModelCompactor):
            self._made.close()


class ProcessSeat:
    """A compactor in a process of its own, which is started again after one that hung or died.

    Args:
        python: the interpreter with its packages.
        model: answers what its own code asks, if it asks a model.
    """

    def __init__(
        self, choice: CompactorChoice, python: Path, seconds: float = LIMIT_SECONDS, model: Model | None = None
    ) -> None:
        self.choice, self.python, self.seconds = choice, python, seconds
        self._endpoint = None if model is None else ModelEndpoint(model, _no_embedding)
        self._address = ""
        self._runner = asyncio.Runner()
        self._process: KeptProcess | None = None
        self._stated = CompactorUsage()  # by the compactor itself, since its process was started
        self._began = 0.0
        self._deaths = 0
        self.effort = CompactionEffort()

    def ask(self, cut: ContextCut, budget: TokenBudget) -> Sequence[ContextMessage]:
        self.effort = CompactionEffort()
        if self._deaths >= MOST_DEATHS:
            raise StoreError(f"was not asked after {MOST_DEATHS} compactions in a row that ended its process")
        if self._endpoint is not None:
            self._endpoint.clear()
        answer: HostAnswer | None = None
        try:
            answer = self._runner.run(self._answer(cut, budget))
        except (TimeoutError, StoreError):
            self._deaths += 1
            self._runner.run(self._end())
            raise
        finally:
            seconds = perf_counter() - self._began if answer is None else answer.seconds
            self.effort = CompactionEffort(seconds, self._used(answer))
            if self._endpoint is not None and isinstance(self._endpoint.failure, SpendCapReached):
                raise self._endpoint.failure
        self._deaths = 0
        if answer.raised is not None:
            raise PluginError("compactor", self.choice.label, "compact", answer.raised.reason, answer.raised.place)
        if answer.fault:
            raise ContractError(answer.fault)
        return answer.messages

    def _used(self, answer: HostAnswer | None) -> CompactorUsage:
        """Return what the last compaction used; what a process did not say before it ended is not known."""
        if self._endpoint is not None:
            meter = self._endpoint.meter
            return CompactorUsage(meter.calls, meter.input_tokens, meter.output_tokens, meter.cost_usd)
        if answer is None or answer.usage is None:
            return CompactorUsage(cost_usd=None)
        spent, self._stated = spent_since(self._stated, answer.usage), answer.usage
        return spent

    def start(self) -> None:
        """Load the compactor, so that a wrong name or setting is found before anything is tried."""
        self._runner.run(self._started())

    def close(self) -> None:
        self._runner.run(self._end())
        if self._endpoint is not None and self._address:
            self._runner.run(self._endpoint.stop())
        self._runner.close()

    async def _answer(self, cut: ContextCut, budget: TokenBudget) -> HostAnswer:
        self._began = perf_counter()
        process = await self._started()
        self._began = perf_counter()
        try:
            async with asyncio.timeout(self.seconds):
                answer = await process.ask("compact", to_builtins(cut.messages), budget.tokens)
        except TimeoutError:
            raise TimeoutError(f"took more than {self.seconds:g} s") from None
        try:
            return convert(answer, HostAnswer)
        except ValidationError as error:
            raise StoreError(f"its process answered wrongly: {error}") from error

    async def _started(self) -> KeptProcess:
        if self._process is None:
            name, self._stated = self.choice.name, CompactorUsage()
            is_own = compactors.is_foreign(name)
            seen = (variables_without_secrets if is_own else inherited_variables)(os.environ)
            self._process = KeptProcess(name, self.python, seen, "compactor", HOST)
            async with asyncio.timeout(START_SECONDS):
                settings = dict(self.choice.settings)
                if self._endpoint is not None:
                    settings["base_url"] = self._address = self._address or await self._endpoint.start()
                await self._process.ask("load", name, _place(name), settings)
        return self._process

    async def _end(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            await process.end()


def _no_embedding(texts: Sequence[str]) -> Vectors:
    raise UsageError("compactors have no embedding; use one that asks a model only")


def _place(name: str) -> str | None:
    file = name.rpartition(":")[0]
    return str(locate(file).resolve()) if file.endswith(".py") else None


def spent_since(before: CompactorUsage, after: CompactorUsage) -> CompactorUsage:
    """Return what was used between two looks."""
    costs = before.cost_usd, after.cost_usd
    return CompactorUsage(
        after.calls - before.calls,
        after.input_tokens - before.input_tokens,
        after.output_tokens - before.output_tokens,
        None if costs[0] is None or costs[1] is None else costs[1] - costs[0],
    )


@dataclass(frozen=True, slots=True)
class TriedCompaction:
    """One compaction: which, what became of it, and what it took."""

    choice: CompactorChoice
    budget: int
    outcome: CompactorOutcome
    usage: CompactorUsage
    seconds: float


def try_compactor(
    choice: CompactorChoice, seat: CompactorSeat, cut: ContextCut, budget: int, counter: LineCounter
) -> TriedCompaction:
    """Ask a compactor at a cut and return what its answer is worth; whatever it does wrong is its own failure.

    Raises:
        SpendCapReached: the next call of a model could cost more than the user allows.
    """
    try:
        messages = seat.ask(cut, TokenBudget(budget, counter))
    except SpendCapReached:
        raise
    except TimeoutError as error:
        outcome = failed("too late", str(error))
    except ContractError as error:
        outcome = failed("invalid", str(error))
    except PluginError as error:
        outcome = failed("raised", error.reason)
    except EirkitError as error:
        outcome = failed("raised", str(error))
    else:
        outcome = judge(cut, budget, messages, counter)
    return TriedCompaction(choice, budget, outcome, seat.effort.usage, seat.effort.seconds)


def asks_by_itself(choice: CompactorChoice) -> bool:
    """True if another project's code decides what a model is asked, so that nobody knows it beforehand."""
    return not compactors.is_foreign(choice.name) and issubclass(find_compactor(choice.name), VendorSummary)


def _vendor_model(choice: CompactorChoice, make: MakeModel) -> Model | None:
    """Return the model that a vendor's summary asks; None for any other compactor."""
    if not asks_by_itself(choice):
        return None
    make_compactor(
        find_compactor(choice.name), choice.settings
    )  # so that a wrong setting is named before a process is started
    if not (model := str(choice.settings.get("model", ""))):
        raise UsageError(f"the compactor {choice.name} asks a model; give --set {choice.name}.model=PROVIDER/NAME")
    return make(model, ModelOptions(base_url=str(choice.settings.get("base_url", "")) or None))


def open_seat(choice: CompactorChoice, seconds: float = LIMIT_SECONDS, make: MakeModel = make_metered) -> CompactorSeat:
    """Return the place where a compactor is asked, once it is known to accept its settings.

    Raises:
        UsageError: there is no such compactor, or it has no such setting.
    """
    python = Path(sys.executable)
    if not compactors.is_foreign(choice.name):
        kind = find_compactor(choice.name)
        if not kind.requirements.packages:
            return HereSeat(choice, seconds, make)
        if (why := reason_not_installed(choice.name, kind.requirements)) is not None:
            raise UsageError(f"compactor {choice.name!r}: {why}")
        python = python_of(choice.name) or python
    seat = ProcessSeat(choice, python, seconds, _vendor_model(choice, make))
    try:
        seat.start()
    except BaseException:
        seat.close()
        raise
    return seat
