"""Compactors that keep whole messages by their place: `null`, `keep-last` and `head-and-tail`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from eirkit.compactors.compactor import Compactor, TokenBudget, compactors, without_opening
from eirkit.errors import UsageError
from eirkit.logs.compaction.context import ContextMessage, split_opening

_Group = tuple[ContextMessage, ...]


@compactors.add("null")
class KeepNothing(Compactor):
    """Keep nothing but the opening."""

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        return split_opening(messages)[0]


@compactors.add("keep-last")
class KeepLast(Compactor):
    """Keep the newest messages that fit, whole; a reply and the results of its calls stay together."""

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        newest = _fitting(reversed(without_opening(messages)), budget, budget.tokens)
        return (*split_opening(messages)[0], *chain.from_iterable(reversed(newest)))


@compactors.add("head-and-tail")
class HeadAndTail(Compactor):
    """Keep the oldest and the newest messages that fit, whole.

    Args:
        head_share: the share of the budget for the oldest messages; the newest have the rest.
    """

    def __init__(self, *, head_share: float = 0.5) -> None:
        self.head_share = head_share
        if not 0 <= head_share <= 1:
            raise UsageError(f"head_share is {head_share}; give a share from 0 to 1")

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        groups = without_opening(messages)
        head = _fitting(groups, budget, int(budget.tokens * self.head_share))
        used = sum(map(budget.count, head))
        tail = _fitting(reversed(groups[len(head) :]), budget, budget.tokens - used)
        return (*split_opening(messages)[0], *chain.from_iterable((*head, *reversed(tail))))


def _fitting(groups: Iterable[_Group], budget: TokenBudget, tokens: int) -> list[_Group]:
    """Return groups in order up to the first that does not fit."""
    found = []
    for group in groups:
        tokens -= budget.count(group)
        if tokens < 0:
            break
        found.append(group)
    return found
