"""`clear-tool-results`: clears the results of old tool calls, by the rule of Anthropic's `clear_tool_uses_20250919`.

https://docs.claude.com/en/docs/build-with-claude/context-editing documents the rule. The text that the API puts in the
place of a result is not documented; ours is a setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eirkit.compactors.compactor import Compactor, TokenBudget, compactors
from eirkit.logs.compaction.context import ContextCall, ContextMessage, split_opening

PLACEHOLDER = "[tool result cleared]"


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
        uses = [one.call_id for one in split_opening(messages)[1] if one.role == "tool" and one.tool not in spared]
        cleared = frozenset(uses[: max(0, len(uses) - self.keep)])
        found = [self._cleared(one, cleared) for one in messages]
        return found if before - budget.count(found) >= self.clear_at_least else messages

    def _cleared(self, message: ContextMessage, cleared: frozenset[str]) -> ContextMessage:
        if message.call_id in cleared:
            return replace(message, text=self.placeholder)
        if self.clear_tool_inputs and any(call.id in cleared for call in message.calls):
            calls = (ContextCall(one.id, one.tool, {}) if one.id in cleared else one for one in message.calls)
            return replace(message, calls=tuple(calls))
        return message
