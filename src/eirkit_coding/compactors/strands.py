"""`strands-sliding-window` and `strands-summary`: conversation managers of Strands, in their own environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from eirkit.lacuna.memories.memory import Requirements
from eirkit_coding.compaction.context import ContextCall, ContextMessage, split_opening
from eirkit_coding.compactors.compactor import Compactor, TokenBudget, VendorSummary, answered_groups, compactors

_INSTALLS = (("strands-agents>=1.60,<2", "openai>=2,<4", "splintr-rs>=0.22,<0.23"),)


@compactors.add("strands-sliding-window")
class StrandsSlidingWindow(Compactor):
    """Drop the oldest messages with Strands' SlidingWindowConversationManager; it knows no budget.

    Args:
        window_size: messages that stay; 40 is Strands' default.
    """

    requirements: ClassVar[Requirements] = Requirements(packages=("strands",), installs=_INSTALLS)

    def __init__(self, *, window_size: int = 40) -> None:
        self.window_size = window_size

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        from strands.agent.conversation_manager import SlidingWindowConversationManager

        manager = SlidingWindowConversationManager(window_size=self.window_size)
        opening, rest = split_opening(messages)
        agent = _agent(rest, None, manager)
        manager.apply_management(agent)
        return [*opening, *_ours(agent.messages)]


@compactors.add("strands-summary")
class StrandsSummary(VendorSummary):
    """Summarize the oldest messages with Strands' SummarizingConversationManager and its prompt; it knows no budget.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        base_url: of an OpenAI-compatible server.
        summary_ratio: share of the messages that is summarized; 0.3 is Strands' default.
        preserve_recent_messages: newest messages that stay in any case; 10 is Strands' default.
    """

    requirements: ClassVar[Requirements] = Requirements(packages=("strands", "openai"), installs=_INSTALLS)

    def __init__(
        self, *, model: str = "", base_url: str = "", summary_ratio: float = 0.3, preserve_recent_messages: int = 10
    ) -> None:
        super().__init__(model=model, base_url=base_url)
        self.summary_ratio, self.preserve_recent_messages = summary_ratio, preserve_recent_messages

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        from strands.agent.conversation_manager import SummarizingConversationManager
        from strands.models.openai import OpenAIModel
        from strands.types.exceptions import ContextWindowOverflowException

        manager = SummarizingConversationManager(
            summary_ratio=self.summary_ratio, preserve_recent_messages=self.preserve_recent_messages
        )
        client = {"base_url": self.base_url, "api_key": "none", "max_retries": 0}
        opening, rest = split_opening(messages)
        agent = _agent(rest, OpenAIModel(client_args=client, model_id="eirkit"), manager)
        # As where a request was too long: then a summary that fails is an error and not passed over.
        manager.reduce_context(agent, e=ContextWindowOverflowException("the context is too long"))
        return [*opening, *_ours(agent.messages)]


def _agent(messages: Sequence[ContextMessage], model: Any, manager: Any) -> Any:
    from strands import Agent
    from strands.models.openai import OpenAIModel

    # Without a model it is never asked; Strands would otherwise look for credentials of a cloud.
    chosen = model or OpenAIModel(client_args={"api_key": "none"}, model_id="none")
    return Agent(
        model=chosen, messages=list(_theirs(messages)), conversation_manager=manager, callback_handler=None, tools=[]
    )


def _theirs(messages: Sequence[ContextMessage]) -> Iterator[dict[str, Any]]:
    """Yield the messages as Strands has them: the results of a reply's calls are one message of the user."""
    for first, *results in answered_groups(messages):
        content: list[dict[str, Any]] = [{"text": first.text}] if first.text or not first.calls else []
        content += [{"toolUse": {"toolUseId": o.id, "name": o.tool, "input": dict(o.arguments)}} for o in first.calls]
        yield {"role": "assistant" if first.role == "assistant" else "user", "content": content}
        if results:
            answers = [
                {"toolResult": {"toolUseId": o.call_id, "status": "success", "content": [{"text": o.text}]}}
                for o in results
            ]
            yield {"role": "user", "content": answers}


def _ours(messages: Sequence[Any]) -> Iterator[ContextMessage]:
    tools: dict[str, str] = {}
    for message in messages:
        text = "\n".join(part["text"] for part in message["content"] if "text" in part)
        uses = [part["toolUse"] for part in message["content"] if "toolUse" in part]
        tools |= {use["toolUseId"]: use["name"] for use in uses}
        results = [part["toolResult"] for part in message["content"] if "toolResult" in part]
        for result in results:
            output = "\n".join(part["text"] for part in result["content"] if "text" in part)
            used = result["toolUseId"]
            yield ContextMessage("tool", output, call_id=used, tool=tools.get(used, ""))
        if text or uses or not results:
            calls = tuple(ContextCall(use["toolUseId"], use["name"], use["input"]) for use in uses)
            yield ContextMessage("assistant" if message["role"] == "assistant" else "user", text, calls)
