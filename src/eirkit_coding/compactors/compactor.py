"""The compactor protocol: given the messages of a context and a budget, return the messages to go on with.

A compactor sees what an agent has seen and nothing of what comes later. Only `Informed` compactors are told what later
work needs, through their constructor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, isabstract, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from eirkit.errors import ContractError, UsageError
from eirkit.lacuna.memories.memory import Requirements
from eirkit.registry import Registry, call
from eirkit_coding.compaction.context import ContextMessage, split_opening

if TYPE_CHECKING:  # much to import for two annotations; `eirkit doctor` wants the names alone
    from eirkit_coding.compaction.context import LineCounter
    from eirkit_coding.compaction.cuts import ContextCut


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How much a compactor may return; system messages of the opening are not counted."""

    tokens: int
    counter: LineCounter

    def count(self, messages: Iterable[ContextMessage]) -> int:
        """Return the tokens of messages as they are counted against the budget."""
        return sum(map(self.counter.message_tokens, messages))


@dataclass(frozen=True, slots=True)
class CompactorUsage:
    """What a compactor's own calls of models used, since it was constructed."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0  # None: the price is unknown


class Compactor(ABC):
    """One way to shorten a context; constructed once, and asked at every cut by itself.

    Keyword arguments of the constructor are its settings, with the vendor's defaults where it has a vendor.
    """

    requirements: ClassVar[Requirements] = Requirements()  # with packages, it runs in an environment of its own

    @abstractmethod
    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        """Return the messages to go on with; a call and its result stay together or go together.

        Args:
            messages: the whole context; an opening with the role `system` comes first and may be left out.
        """

    def usage(self) -> CompactorUsage:
        """Return what its own calls of models used so far."""
        return CompactorUsage()


class VendorSummary(Compactor):
    """A compactor of another project that asks a model itself, through OpenAI's API, at an address on loopback.

    There eirkit answers with the chosen model, so that the vendor's code sees no key and its spending is accounted for.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        base_url: of the chosen model's server; its own code is given the address on loopback instead.
    """

    def __init__(self, *, model: str = "", base_url: str = "") -> None:
        self.model, self.base_url = model, base_url


class Informed(Compactor):
    """A compactor that is told what later work needs: a bound, never a candidate."""

    @classmethod
    @abstractmethod
    def knowing(cls, cut: ContextCut) -> Self:
        """Return the compactor for one cut."""


compactors: Registry[type[Compactor]] = Registry(
    "compactor", group="eirkit_coding.compactors", package="eirkit_coding.compactors"
)


def find_compactor(name: str) -> type[Compactor]:
    """Return the compactor with this name, or at `path/file.py:Name`.

    Raises:
        ContractError: it is not a compactor.
    """
    found: Any = compactors.get(name)
    if not isinstance(found, type) or not issubclass(found, Compactor) or isabstract(found):
        raise ContractError(
            f"{name} is not a compactor; extend eirkit_coding.compactors.compactor.Compactor with compact()"
        )
    return found


def make_compactor(kind: type[Compactor], settings: Mapping[str, Any]) -> Compactor:
    """Construct a compactor with settings.

    Raises:
        UsageError: it has no such setting.
        PluginError: its constructor raised.
    """
    known = settings_of(kind)
    for name in settings:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise UsageError(f"compactor {kind.__name__} has no setting {name!r}; it has: {listed}")
    return call("compactor", kind, **settings)


def settings_of(kind: type[Compactor]) -> dict[str, Any]:
    """Return the settings of a compactor and their defaults, None for a setting without one."""
    if issubclass(kind, Informed):
        return {}
    given = (parameter for parameter in signature(kind).parameters.values() if parameter.kind == Parameter.KEYWORD_ONLY)
    return {parameter.name: None if parameter.default is Parameter.empty else parameter.default for parameter in given}


def answered_groups(messages: Sequence[ContextMessage]) -> list[tuple[ContextMessage, ...]]:
    """Return messages in groups that stay together: a reply with the results of its calls, or one message."""
    groups: list[list[ContextMessage]] = []
    for message in messages:
        if message.role == "tool" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]


def without_opening(messages: Sequence[ContextMessage]) -> list[tuple[ContextMessage, ...]]:
    """Return the groups of a context after its opening."""
    return answered_groups(split_opening(messages)[1])
