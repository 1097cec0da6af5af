"""Compactors without a model: by place, `clear-tool-results`, and the references `oracle`, `random` and `recorded`.

`null`, `keep-last` and `head-and-tail` keep whole messages by their place. `clear-tool-results` follows the rule of
Anthropic's `clear_tool_uses_20250919` (https://docs.claude.com/en/docs/build-with-claude/context-editing); the text
that the API puts in the place of a result is not documented, so ours is a setting. `oracle` keeps the best lines,
`random` is the sham, and `recorded` is the log's own compaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import Self

from eirkit.errors import ContractError, UsageError
from eirkit_coding.compaction.context import MESSAGE_TOKENS, ContextCall, ContextMessage, split_opening, texts_of
from eirkit_coding.compaction.cuts import ContextCut, NeededLine
from eirkit_coding.compaction.selection import best_selection, random_selection
from eirkit_coding.compactors.compactor import Compactor, Informed, TokenBudget, compactors, without_opening

_Group = tuple[ContextMessage, ...]
PLACEHOLDER = "[tool result cleared]"


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


@compactors.add("clear-tool-results")
class ClearToolResults(Compactor):
    """Clear all tool results but the newest, as Anthropic's clear_tool_uses_20250919 does; everything else stays.

    It knows no budget: where clearing does not suffice, the result is over the budget.

    Args:
        keep: newest tool uses whose results stay; 3 is Anthropic's default.
        trigger: tokens from which on it acts; 0 is at every cut. Anthropic's default is 100000.
        clear_at_least: it acts only if it clears so many tokens; Anthropic's default is no such minimum.
        clear_tool_inputs: also clear the arguments of these calls; not by default.
        exclude_tools: tools whose results stay, separated by commas; none by default.
        placeholder: what stands in place of a result.
    """

    def __init__(
        self,
        *,
        keep: int = 3,
        trigger: int = 0,
        clear_at_least: int = 0,
        clear_tool_inputs: bool = False,
        exclude_tools: str = "",
        placeholder: str = PLACEHOLDER,
    ) -> None:
        self.keep, self.trigger, self.clear_at_least = keep, trigger, clear_at_least
        self.clear_tool_inputs, self.exclude_tools, self.placeholder = clear_tool_inputs, exclude_tools, placeholder

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        before = budget.count(messages)
        if before < self.trigger:
            return messages
        spared = {name.strip() for name in self.exclude_tools.split(",")}
        uses = [
            message.call_id
            for message in split_opening(messages)[1]
            if message.role == "tool" and message.tool not in spared
        ]
        cleared = frozenset(uses[: max(0, len(uses) - self.keep)])
        found = [self._cleared(message, cleared) for message in messages]
        return found if before - budget.count(found) >= self.clear_at_least else messages

    def _cleared(self, message: ContextMessage, cleared: frozenset[str]) -> ContextMessage:
        if message.call_id in cleared:
            return replace(message, text=self.placeholder)
        if self.clear_tool_inputs and any(call.id in cleared for call in message.calls):
            calls = (ContextCall(call.id, call.tool, {}) if call.id in cleared else call for call in message.calls)
            return replace(message, calls=tuple(calls))
        return message


@compactors.add("oracle")
class BestLines(Informed):
    """Keep as many tokens of needed lines as fit, knowing which are needed: no compactor can keep more."""

    def __init__(self, needed: Mapping[str, NeededLine]) -> None:
        self.needed = needed

    @classmethod
    def knowing(cls, cut: ContextCut) -> Self:
        return cls(cut.needed)

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        lines = list(self.needed.values())
        chosen = best_selection([line.tokens for line in lines], budget.tokens - MESSAGE_TOKENS)
        return _with_lines(messages, (lines[place].text for place in chosen))


@compactors.add("recorded")
class Recorded(Informed):
    """Keep what replaced the context in the recorded run, as far as its log shows it; only with `--at real`."""

    def __init__(self, replaced_by: Sequence[ContextMessage] | None) -> None:
        self.replaced_by = replaced_by

    @classmethod
    def knowing(cls, cut: ContextCut) -> Self:
        return cls(cut.replaced_by)

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        if self.replaced_by is None:
            raise ContractError("the log does not say, or only in encrypted form, that anything took its place here")
        return (*split_opening(messages)[0], *self.replaced_by)


@compactors.add("random")
class RandomLines(Compactor):
    """Keep lines of the context at random, up to the first that does not fit.

    Args:
        seed: of the draw; a context always gives the same lines with the same seed.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        rest = split_opening(messages)[1]
        lines = list(budget.counter.message_lines(rest))
        drawn = random_selection(
            [line.tokens for line in lines], budget.tokens - MESSAGE_TOKENS, _seed(rest, self.seed)
        )
        return _with_lines(messages, (lines[place].text for place in drawn))


def _with_lines(messages: Sequence[ContextMessage], lines: Iterable[str]) -> tuple[ContextMessage, ...]:
    text = "\n".join(lines)
    return (*split_opening(messages)[0], *((ContextMessage("user", text),) if text else ()))


def _seed(messages: Sequence[ContextMessage], seed: int) -> int:
    digest = blake2b(f"{seed}".encode(), digest_size=8)
    for message in messages:
        for text in texts_of(message):
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
    return int.from_bytes(digest.digest(), "little") >> 1
