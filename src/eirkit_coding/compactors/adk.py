"""`adk-compaction`: compaction of events in Google's Agent Development Kit (package google-adk), in its environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar
from urllib.request import Request, urlopen

from eirkit.lacuna.memories.memory import Requirements
from eirkit_coding.compaction.context import ContextCall, ContextMessage, split_opening
from eirkit_coding.compactors.compactor import TokenBudget, VendorSummary, answered_groups, compactors

AGENT = "agent"
MODEL_SECONDS = 50  # for one reply, within the limit of a compaction


@compactors.add("adk-compaction")
class AdkCompaction(VendorSummary):
    """Summarize older events with ADK's LlmEventSummarizer and its prompt, as a token threshold makes it do.

    It knows no budget: where the summary and the newest events are larger, the result is over the budget.

    Args:
        model: provider/name, as `--model` of `eirkit lacuna run` takes it.
        base_url: of an OpenAI-compatible server.
        event_retention_size: newest events that stay; ADK has no default and wants it to be given.
    """

    # Which events are summarized is decided in functions that are not public, so the version is fixed.
    requirements: ClassVar[Requirements] = Requirements(
        packages=("google.adk",), installs=(("google-adk==2.13.0", "splintr-rs>=0.22,<0.23"),)
    )

    def __init__(self, *, model: str = "", base_url: str = "", event_retention_size: int = 10) -> None:
        super().__init__(model=model, base_url=base_url)
        self.event_retention_size = event_retention_size

    def compact(self, messages: Sequence[ContextMessage], budget: TokenBudget) -> Sequence[ContextMessage]:
        opening, rest = split_opening(messages)
        return [*opening, *_ours(asyncio.run(self._compacted(rest)))]

    async def _compacted(self, messages: Sequence[ContextMessage]) -> Sequence[Any]:
        from google.adk.apps.compaction import _events_to_compact_for_token_threshold
        from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
        from google.adk.flows.llm_flows.context._contents import _get_contents

        events = list(_theirs(messages))
        older = _events_to_compact_for_token_threshold(events=events, event_retention_size=self.event_retention_size)
        if older:
            made = await LlmEventSummarizer(llm=_endpoint_model(self.base_url)).maybe_summarize_events(events=older)
            events += [made] if made is not None else []
        found: Sequence[Any] = _get_contents(None, events, AGENT, preserve_function_call_ids=True)
        return found


def _endpoint_model(address: str) -> Any:
    """Return a model of ADK that asks the endpoint; ADK's own way there is another large package."""
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class EndpointModel(BaseLlm):  # type: ignore[misc]
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[Any]:
            prompt = "\n".join(part.text or "" for content in llm_request.contents for part in content.parts)
            text = await asyncio.to_thread(_asked, address, prompt)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))

    return EndpointModel(model="eirkit")


def _asked(address: str, prompt: str) -> str:
    body = json.dumps({"model": "eirkit", "messages": [{"role": "user", "content": prompt}]}).encode()
    request = Request(f"{address}/chat/completions", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=MODEL_SECONDS) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


def _theirs(messages: Sequence[ContextMessage]) -> Iterator[Any]:
    """Yield the messages as events; the results of a reply's calls are one event."""
    from google.adk.events import Event
    from google.genai import types

    def event(author: str, role: str, parts: list[Any], place: int) -> Any:
        content = types.Content(role=role, parts=parts)
        return Event(author=author, content=content, timestamp=float(place), invocation_id=f"e{place}", id=f"{place}")

    place = 0
    for first, *results in answered_groups(messages):
        parts = [types.Part(text=first.text)] if first.text or not first.calls else []
        for call in first.calls:
            made = types.FunctionCall(id=call.id, name=call.tool, args=dict(call.arguments))
            parts.append(types.Part(function_call=made))
        is_agent = first.role == "assistant"
        place += 1
        yield event(AGENT if is_agent else "user", "model" if is_agent else "user", parts, place)
        if results:
            answers = [
                types.FunctionResponse(id=result.call_id, name=result.tool, response={"result": result.text})
                for result in results
            ]
            place += 1
            yield event(AGENT, "user", [types.Part(function_response=answer) for answer in answers], place)


def _ours(contents: Sequence[Any]) -> Iterator[ContextMessage]:
    for content in contents:
        text = "\n".join(part.text for part in content.parts if part.text)
        made = [part.function_call for part in content.parts if part.function_call]
        answers = [part.function_response for part in content.parts if part.function_response]
        for answer in answers:
            output = str((answer.response or {}).get("result", answer.response))
            yield ContextMessage("tool", output, call_id=answer.id or "", tool=answer.name or "")
        if text or made:
            calls = tuple(ContextCall(call.id or "", call.name, dict(call.args or {})) for call in made)
            yield ContextMessage("assistant" if content.role == "model" else "user", text, calls)
