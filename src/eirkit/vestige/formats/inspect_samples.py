"""The messages or the events of an Inspect sample to turns.

Long texts of events stand apart as attachments and are put back where they are named. Usage belongs to the events of
the model, one for each reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eirkit.vestige.formats.building import RunBuilder, count_of, items_of, mapping_of, string_of
from eirkit.vestige.formats.messages import arguments_of, read_conversation, shell_name, text_of
from eirkit.vestige.trajectory import Call, RecordedTurn, Usage

_ATTACHED = "attachment://"
_SHELL_ARGUMENTS = ("command", "cmd")
_SESSION = "bash_session"
_PROMPT = re.compile(r"(?:\A|(?<=\n))(?:[\w.-]{1,64}@[\w.-]{1,64}:[^\n]{0,400}|(?:ba|z)?sh-[\d.]{1,9})[$#]\s*\Z")


def sample_turns(sample: Mapping[str, Any]) -> tuple[str, tuple[RecordedTurn, ...]]:
    """Return the prompt and the turns of a sample."""
    attachments = mapping_of(sample.get("attachments"))
    messages = sample["messages"] if isinstance(sample.get("messages"), list) else []
    events = items_of(sample.get("events"))
    replies = [event for event in events if event.get("event") == "model" and _reply(event)]
    spoken = sum(message.get("role") == "assistant" for message in items_of(messages))
    # The final messages of a compacted sample are what was left of it; its events tell the whole.
    if not spoken or (len(replies) > spoken and any(event.get("event") == "compaction" for event in events)):
        return _from_events(events, items_of(messages), attachments)
    conversation = read_conversation(_openai_style(messages, attachments), make_call=_call)
    turns = conversation.turns
    if len(replies) == len(turns):
        turns = tuple(replace(turn, usage=_usage(event)) for turn, event in zip(turns, replies, strict=True))
    return conversation.prompt, turns


def has_session(sample: Mapping[str, Any]) -> bool:
    """True if commands were typed into a shell that stays."""
    said = [*items_of(sample.get("messages")), *map(_reply, items_of(sample.get("events")))]
    return any(call.get("function") == _SESSION for message in said for call in items_of(message.get("tool_calls")))


def _openai_style(messages: Sequence[Any], attachments: Mapping[str, Any]) -> Iterator[object]:
    for message in messages:
        if not isinstance(message, dict):
            yield message
            continue
        calls = [
            {
                "id": call.get("id"),
                "name": call.get("function"),
                "arguments": _attached(call.get("arguments"), attachments),
            }
            for call in items_of(message.get("tool_calls"))
        ]
        yield {**message, "content": _text(message.get("content"), attachments), "tool_calls": calls}


def _call(tool: str, arguments: Mapping[str, Any], output: str, answer: Mapping[str, Any]) -> Call:
    error = mapping_of(answer.get("error"))
    name, asked = _as_shell(tool, arguments)
    return Call(name, asked, _printed(tool, output) or string_of(error.get("message")), failed=bool(error))


def _printed(tool: str, output: str) -> str:
    """Return what a session printed, without the prompt at which it waits."""
    return _PROMPT.sub("", output) if tool == _SESSION and output.rstrip().endswith(("$", "#")) else output


def _as_shell(tool: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if tool == _SESSION and isinstance(arguments.get("input"), str):
        entered = arguments.get("action") == "type_submit" or arguments["input"].endswith("\n")
        return ("bash", {"command": arguments["input"].rstrip("\n")}) if entered else (tool, arguments)
    typed = next((arguments[key] for key in _SHELL_ARGUMENTS if isinstance(arguments.get(key), str)), None)
    if tool in ("bash", _SESSION, "shell") and typed is not None:
        return "bash", {**{name: value for name, value in arguments.items() if name != "cmd"}, "command": typed}
    return shell_name(tool, arguments), arguments


def _from_events(
    events: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]], attachments: Mapping[str, Any]
) -> tuple[str, tuple[RecordedTurn, ...]]:
    builder = RunBuilder()
    for event in events:
        kind = event.get("event")
        if kind == "model" and _reply(event):
            _take_reply(builder, event, attachments)
        elif kind == "tool":
            _take_tool(builder, event, attachments)
        elif kind == "compaction":
            builder.break_off("compaction")
            builder.carry(_text(event.get("summary") or event.get("content"), attachments))
    prompt = builder.prompt or "\n\n".join(_text(message.get("content"), attachments) for message in messages[:2])
    return prompt, builder.turns()


def _take_reply(builder: RunBuilder, event: Mapping[str, Any], attachments: Mapping[str, Any]) -> None:
    given = items_of(event.get("input"))
    for message in given:
        builder.hear(_text(message.get("content"), attachments))
    if builder.is_broken and given:
        builder.carry(_text(given[-1].get("content"), attachments))
    builder.begin()
    reply = _reply(event)
    builder.say(_text(reply.get("content"), attachments))
    builder.use(_usage(event))
    for call in items_of(reply.get("tool_calls")):
        arguments = arguments_of(_attached(call.get("arguments"), attachments))
        builder.ask(string_of(call.get("id")), *_as_shell(string_of(call.get("function")), arguments))


def _take_tool(builder: RunBuilder, event: Mapping[str, Any], attachments: Mapping[str, Any]) -> None:
    error = mapping_of(event.get("error"))
    printed = _printed(string_of(event.get("function")), _text(event.get("result"), attachments))
    output = printed or string_of(error.get("message"))
    builder.answer(string_of(event.get("id")), output, failed=bool(error))


def _reply(event: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = items_of(mapping_of(event.get("output")).get("choices"))
    return mapping_of(choices[0].get("message")) if choices else {}


def _usage(event: Mapping[str, Any]) -> Usage | None:
    counts = mapping_of(mapping_of(event.get("output")).get("usage"))
    if not counts:
        return None
    fresh = count_of(counts.get("input_tokens"))
    cached = count_of(counts.get("input_tokens_cache_read"))
    written = count_of(counts.get("input_tokens_cache_write"))
    total = count_of(counts.get("total_tokens"))
    answer = count_of(counts.get("output_tokens"))
    # Some servers count cached input within the input and some beside it; the total tells which.
    whole = fresh if total and total < fresh + answer + cached + written else fresh + cached + written
    return Usage(whole, answer, min(whole, cached))


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Put attachments back into a call's arguments, one level deep, which is where events keep them."""
    if isinstance(value, dict):
        return {name: _resolved(inner, attachments) for name, inner in value.items()}
    return _resolved(value, attachments)


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return string_of(attachments.get(value.removeprefix(_ATTACHED))) or value
    return value


def _text(content: object, attachments: Mapping[str, Any]) -> str:
    if isinstance(content, list):
        return "\n".join(filter(None, (_text_of_block(block, attachments) for block in content)))
    return text_of(_resolved(content, attachments))


def _text_of_block(block: object, attachments: Mapping[str, Any]) -> str:
    text = block.get("text") if isinstance(block, dict) else block
    return string_of(_resolved(text, attachments))
