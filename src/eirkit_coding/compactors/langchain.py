"""`langchain-clear-tool-uses` and `langchain-summary`: LangChain's own code, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from eirkit.lacuna.memories.memory import Requirements
from eirkit_coding.compaction.context import ContextCall, ContextMessage, split_opening
from eirkit_coding.compactors.compactor import Compactor, TokenBudget, VendorSummary, compactors


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
        packages=("langchain",), installs=(("langchain>=1.4,<2", "splintr-rs>=0.22,<0.23"),)
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
        theirs = [_theirs(message) for message in messages]
        edit.apply(theirs, count_tokens=lambda some: budget.count(map(_ours, some)))
        return [_ours(message) for message in theirs]


@compactors.add("langchain-summary")
class LangChainSummary(VendorSummary):
    """Summarize the older messages with LangChain's SummarizationMiddleware and its prompt.

    It knows no budget: where the summary and the newest messages are larger, the result is over the budget.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        base_url: of an OpenAI-compatible server.
        keep: newest messages that stay; 20 is LangChain's default.
        trim: tokens of the older messages that are shown to the model, the newest; 4000 is LangChain's default.
    """

    requirements: ClassVar[Requirements] = Requirements(
        packages=("langchain", "langchain_openai"),
        installs=(("langchain>=1.4,<2", "langchain-openai>=1,<2", "splintr-rs>=0.22,<0.23"),),
    )

    def __init__(self, *, model: str = "", base_url: str = "", keep: int = 20, trim: int = 4000) -> None:
        super().__init__(model=model, base_url=base_url)
        self.keep, self.trim = keep, trim

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        from langchain.agents.middleware import SummarizationMiddleware
        from langchain_openai import ChatOpenAI
        from langgraph.runtime import Runtime

        asked: Any = ChatOpenAI(model="eirkit", base_url=self.base_url, api_key="none", max_retries=0)
        # The cut says when, so it acts from the first message on; LangChain has no default.
        middleware: Any = SummarizationMiddleware(
            asked, trigger=("messages", 1), keep=("messages", self.keep), trim_tokens_to_summarize=self.trim
        )
        opening, rest = split_opening(messages)
        # In an agent of LangChain the task is a message of the user, at which its choice of what to show may begin.
        task = [replace(message, role="user") for message in opening]
        found = middleware.before_model({"messages": [_theirs(message) for message in (*task, *rest)]}, Runtime())
        if found is None:
            return messages
        return [*opening, *(_ours(message) for message in found["messages"] if message.type != "remove")]


def _theirs(message: ContextMessage) -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    if message.role == "tool":
        return ToolMessage(content=message.text, tool_call_id=message.call_id, name=message.tool)
    if message.role == "assistant":
        calls = [{"id": call.id, "name": call.tool, "args": dict(call.arguments)} for call in message.calls]
        return AIMessage(content=message.text, tool_calls=calls)
    return (SystemMessage if message.role == "system" else HumanMessage)(content=message.text)


_ROLES: Mapping[str, Any] = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


def _ours(message: Any) -> ContextMessage:
    calls = tuple(ContextCall(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", ()))
    answered, tool = getattr(message, "tool_call_id", ""), (message.name or "") if message.type == "tool" else ""
    return ContextMessage(_ROLES[message.type], str(message.content), calls, answered, tool)
