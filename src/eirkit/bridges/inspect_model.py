"""Our models as models of Inspect: its messages and tools come in, its output goes out. Loaded by Inspect alone."""

from __future__ import annotations

from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolChoice, ToolInfo

from eirkit.agents.model import Message, ModelOptions, Reply, Request, Tool, Usage
from eirkit.agents.serving.model_factory import make_model


class EirkitModel(ModelAPI):
    """One model of ours, named as `eirkit lacuna run --model` names it."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        # On a command line every value of an agent's setting is a text.
        extra = {name: str(value) for name, value in model_args.items()}
        self.model = make_model(model_name, ModelOptions(base_url=base_url, extra=extra))
        self._calls = 0

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Return the model's reply."""
        offered = tuple(
            Tool(tool.name, tool.description, tool.parameters.model_dump(exclude_none=True)) for tool in tools
        )
        messages = tuple(Message(_role(one), one.text) for one in input)
        request = Request(messages, offered, config.max_tokens or Request(messages).max_tokens)
        return self._output(await self.model.reply(request))

    def _output(self, reply: Reply) -> ModelOutput:
        calls = []
        for call in reply.calls:
            self._calls += 1
            calls.append(InspectCall(f"call_{self._calls}", call.name, dict(call.arguments)))
        message = ChatMessageAssistant(
            content=reply.text, tool_calls=calls or None, model=self.model_name, source="generate"
        )
        choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
        return ModelOutput(model=self.model_name, choices=[choice], usage=_usage(reply.usage))


def _role(message: ChatMessage) -> Any:
    return message.role if message.role in ("system", "assistant") else "user"


def _usage(usage: Usage) -> ModelUsage:
    """Return the counts; Inspect keeps cached tokens apart from its input tokens, we do not."""
    return ModelUsage(
        input_tokens=usage.input_tokens - usage.cached_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        input_tokens_cache_read=usage.cached_tokens,
    )
