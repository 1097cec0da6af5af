"""`openhands-condenser`: LLMSummarizingCondenser of OpenHands (openhands-sdk, Python 3.12), in its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from eirkit.lacuna.memories.memory import Requirements
from eirkit_coding.compaction.context import ContextMessage, split_opening
from eirkit_coding.compactors.compactor import TokenBudget, VendorSummary, compactors


@compactors.add("openhands-condenser")
class OpenHandsCondenser(VendorSummary):
    """Forget older events and summarize them with OpenHands' LLMSummarizingCondenser and its prompt.

    The cut requests the condensation, so it happens at any size. It knows no budget: where the summary and what stays
    are larger, the result is over the budget.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        base_url: of an OpenAI-compatible server.
        max_size: events; half of the context, and at most half of this, stays; 240 is OpenHands' default.
        keep_first: oldest events that stay; 2 is OpenHands' default.
    """

    requirements: ClassVar[Requirements] = Requirements(
        packages=("openhands.sdk",),
        installs=(("openhands-sdk>=1.58,<2", "splintr-rs>=0.22,<0.23"),),
        python=">=3.12",
    )

    def __init__(self, *, model: str = "", base_url: str = "", max_size: int = 240, keep_first: int = 2) -> None:
        super().__init__(model=model, base_url=base_url)
        self.max_size, self.keep_first = max_size, keep_first

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        # Otherwise importing it fetches a list of prices from the network and prints a banner.
        os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}
        from openhands.sdk import LLM
        from openhands.sdk.context.condenser import LLMSummarizingCondenser
        from openhands.sdk.context.view import View
        from openhands.sdk.event.condenser import Condensation, CondensationRequest
        from pydantic import SecretStr

        key = SecretStr("none")
        model = LLM(model="openai/eirkit", base_url=self.base_url, api_key=key, usage_id="condenser", num_retries=0)
        condenser = LLMSummarizingCondenser(llm=model, max_size=self.max_size, keep_first=self.keep_first)
        opening, rest = split_opening(messages)
        events = [*_theirs(rest), CondensationRequest()]
        found = condenser.condense(View.from_events(events))
        if isinstance(found, Condensation):
            found = View.from_events([*events, found])
        return [*opening, *_ours(found.events, rest)]


def _theirs(messages: Sequence[ContextMessage]) -> Iterator[Any]:
    """Yield the messages as events: of a reply one for each call; its id begins with the message's place."""
    from openhands.sdk import Message, TextContent
    from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
    from openhands.sdk.llm import MessageToolCall
    from openhands.sdk.tool.schema import Observation

    class ToolOutput(Observation):  # type: ignore[misc]
        """What any tool returned."""

    actions: dict[str, str] = {}
    for place, message in enumerate(messages):
        content = [TextContent(text=message.text)] if message.text else []
        if message.role == "tool":
            about = {"tool_name": message.tool, "tool_call_id": message.call_id, "action_id": actions[message.call_id]}
            yield ObservationEvent(id=f"{place}:", observation=ToolOutput(content=content), **about)
        elif not message.calls:
            source = "agent" if message.role == "assistant" else "user"
            yield MessageEvent(id=f"{place}:", source=source, llm_message=Message(role=message.role, content=content))
        for number, call in enumerate(message.calls):
            actions[call.id] = f"{place}:{number}"
            arguments = json.dumps(dict(call.arguments))
            made = MessageToolCall(id=call.id, name=call.tool, arguments=arguments, origin="completion")
            yield ActionEvent(
                id=actions[call.id],
                thought=content if number == 0 else [],
                action=None,
                tool_name=call.tool,
                tool_call_id=call.id,
                tool_call=made,
                llm_response_id=f"reply {place}",
            )


def _ours(events: Sequence[Any], messages: Sequence[ContextMessage]) -> Iterator[ContextMessage]:
    """Yield what stayed as it was given, and the summary as OpenHands shows it to its agent."""
    from openhands.sdk.event.condenser import CondensationSummaryEvent

    before = ""
    for event in events:
        place = str(event.id).partition(":")[0]
        if isinstance(event, CondensationSummaryEvent):
            yield ContextMessage("user", "\n".join(part.text for part in event.to_llm_message().content))
        elif place != before:
            yield messages[int(place)]
        before = place
