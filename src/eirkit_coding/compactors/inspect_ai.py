"""`inspect-edit` and `inspect-trim`: compaction strategies of Inspect (package inspect_ai), in its own environment."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from eirkit.lacuna.memories.memory import Requirements
from eirkit_coding.compaction.context import ContextCall, ContextMessage
from eirkit_coding.compactors.compactor import Compactor, TokenBudget, compactors


class _InspectStrategy(Compactor):
    """A strategy of Inspect that asks no model; it knows no budget."""

    requirements: ClassVar[Requirements] = Requirements(
        packages=("inspect_ai",), installs=(("inspect-ai==0.3.285", "splintr-rs>=0.22,<0.23"),)
    )

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        from inspect_ai.model import get_model

        # Strategies ask the model only whether it keeps reasoning; Inspect's mock model is never sent anything.
        asked = self.strategy().compact(get_model("mockllm/model"), [_theirs(message) for message in messages], [])
        found, more = asyncio.run(asked)
        return [_ours(message) for message in (*found, *([more] if more is not None else []))]

    @abstractmethod
    def strategy(self) -> Any:
        """Return the strategy as Inspect has it."""


@compactors.add("inspect-edit")
class InspectEdit(_InspectStrategy):
    """Clear old tool results with Inspect's CompactionEdit; where that does not suffice, it is over the budget.

    Args:
        keep_tool_uses: newest tool uses that stay; 3 is Inspect's default.
        keep_tool_inputs: keep the arguments of cleared calls, as by default.
    """

    def __init__(self, *, keep_tool_uses: int = 3, keep_tool_inputs: bool = True) -> None:
        self.keep_tool_uses, self.keep_tool_inputs = keep_tool_uses, keep_tool_inputs

    def strategy(self) -> Any:
        from inspect_ai.model import CompactionEdit

        return CompactionEdit(keep_tool_uses=self.keep_tool_uses, keep_tool_inputs=self.keep_tool_inputs)


@compactors.add("inspect-trim")
class InspectTrim(_InspectStrategy):
    """Drop the oldest messages with Inspect's CompactionTrim; where that does not suffice, it is over the budget.

    Args:
        preserve: share of the conversation's messages that stays; 0.8 is Inspect's default.
    """

    def __init__(self, *, preserve: float = 0.8) -> None:
        self.preserve = preserve

    def strategy(self) -> Any:
        from inspect_ai.model import CompactionTrim

        return CompactionTrim(preserve=self.preserve)


def _theirs(message: ContextMessage) -> Any:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageTool, ChatMessageUser
    from inspect_ai.tool import ToolCall

    if message.role == "tool":
        return ChatMessageTool(content=message.text, tool_call_id=message.call_id, function=message.tool)
    if message.role == "assistant":
        calls = [ToolCall(id=call.id, function=call.tool, arguments=dict(call.arguments)) for call in message.calls]
        return ChatMessageAssistant(content=message.text, tool_calls=calls or None)
    return (ChatMessageSystem if message.role == "system" else ChatMessageUser)(content=message.text)


def _ours(message: Any) -> ContextMessage:
    made = getattr(message, "tool_calls", None) or ()
    calls = tuple(ContextCall(call.id, call.function, call.arguments) for call in made)
    answered, tool = getattr(message, "tool_call_id", None) or "", getattr(message, "function", None) or ""
    return ContextMessage(message.role, message.text, calls, answered, tool)
