"""`langchain-clear-tool-uses`: ClearToolUsesEdit of LangChain (package langchain), in an environment of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from eirkit.agents.memory import Requirements
from eirkit.compactors.compactor import Compactor, TokenBudget, compactors
from eirkit.logs.compaction.context import ContextCall, ContextMessage


@compactors.add("langchain-clear-tool-uses")
class LangChainClearToolUses(Compactor):
    """Clear old tool results with LangChain's ClearToolUsesEdit, by its own code.

    It knows no budget: where clearing does not suffice, the result is over the budget.

    Args:
        keep: newest tool results that stay; 3 is LangChain's default.
        trigger: tokens from which on it acts; 0 is at every cut. LangChain's default is 100000.
        clear_at_least: it clears results only until so many tokens are reclaimed; 0, LangChain's default, clears all.
        clear_tool_inputs: also clear the arguments of these calls; not by default.
    """

    requirements: ClassVar[Requirements] = Requirements(
        packages=("langchain",), installs=(("langchain>=1.4,<2", "splintr-rs>=0.22,<0.23", "msgspec"),)
    )

    def __init__(
        self, *, keep: int = 3, trigger: int = 0, clear_at_least: int = 0, clear_tool_inputs: bool = False
    ) -> None:
        self.keep, self.trigger = keep, trigger
        self.clear_at_least, self.clear_tool_inputs = clear_at_least, clear_tool_inputs

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        from langchain.agents.middleware.context_editing import ClearToolUsesEdit

        edit = ClearToolUsesEdit(
            trigger=self.trigger,
            keep=self.keep,
            clear_at_least=self.clear_at_least,
            clear_tool_inputs=self.clear_tool_inputs,
        )
        theirs = [_theirs(one) for one in messages]
        edit.apply(theirs, count_tokens=lambda some: budget.count(map(_ours, some)))
        return [_ours(one) for one in theirs]


def _theirs(message: ContextMessage) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    if message.role == "tool":
        return ToolMessage(content=message.text, tool_call_id=message.call_id, name=message.tool)
    if message.role == "assistant":
        calls = [{"id": one.id, "name": one.tool, "args": dict(one.arguments)} for one in message.calls]
        return AIMessage(content=message.text, tool_calls=calls)
    return (SystemMessage if message.role == "system" else HumanMessage)(content=message.text)


_ROLES: Mapping[str, Any] = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


def _ours(message: Any) -> ContextMessage:
    calls = tuple(ContextCall(one["id"], one["name"], one["args"]) for one in getattr(message, "tool_calls", ()))
    answered, tool = getattr(message, "tool_call_id", ""), (message.name or "") if message.type == "tool" else ""
    return ContextMessage(_ROLES[message.type], str(message.content), calls, answered, tool)
