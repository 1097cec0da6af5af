"""Reads Inspect logs: `.eval` archives with one file per sample, and the older single JSON file.

Each sample and epoch is a run. In an unfinished log the journal replaces the header. The turns come from the sample's
messages, or, where the context was compacted or only events were kept, from the events of the model and its tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, read_conversation, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    begins_with_info,
    count_of,
    items_of,
    logged_usage,
    mapping_of,
    number_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, Call, LoggedUsage, RecordedTurn, Recording, formats

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
    # The final messages of a compacted sample are only the remainder; its events are complete.
    if not spoken or (len(replies) > spoken and any(event.get("event") == "compaction" for event in events)):
        return _from_events(events, items_of(messages), attachments)
    conversation = read_conversation(_openai_style(messages, attachments), make_call=_call)
    turns = conversation.turns
    if len(replies) == len(turns):
        turns = tuple(replace(turn, usage=_usage(event)) for turn, event in zip(turns, replies, strict=True))
    return conversation.prompt, turns


def has_session(sample: Mapping[str, Any]) -> bool:
    """Return whether commands were typed into a persistent shell."""
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
    """Return what a session printed, without the trailing shell prompt."""
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
            error = mapping_of(event.get("error"))
            printed = _printed(string_of(event.get("function")), _text(event.get("result"), attachments))
            output = printed or string_of(error.get("message"))
            builder.answer(string_of(event.get("id")), output, failed=bool(error))
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


def _reply(event: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = items_of(mapping_of(event.get("output")).get("choices"))
    return mapping_of(choices[0].get("message")) if choices else {}


def _usage(event: Mapping[str, Any]) -> LoggedUsage | None:
    counts = mapping_of(mapping_of(event.get("output")).get("usage"))
    names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "total_tokens", "output_tokens")
    if not counts or logged_usage(map(counts.get, names), (), None) is None:
        return None
    fresh = count_of(counts.get("input_tokens"))
    cached = count_of(counts.get("input_tokens_cache_read"))
    written = count_of(counts.get("input_tokens_cache_write"))
    total = count_of(counts.get("total_tokens"))
    answer = count_of(counts.get("output_tokens"))
    # Some servers include cached input in the input and some do not; the total shows which.
    whole = fresh if total and total < fresh + answer + cached + written else fresh + cached + written
    return LoggedUsage(whole, answer, min(whole, cached))


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Resolve attachments in a call's arguments, one level deep, where events keep them."""
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


_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_HEADERS = ("header.json", "_journal/start.json")
_LOG_KEYS = (b'"eval"', b'"status"', b'"run_id"', b'"version"')


@formats.add("inspect")
class Inspect:
    """Logs of Inspect."""

    run_per_member = "samples/"  # folder of an archive with one run per file

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the archive has a header and samples, or the object has an evaluation at the top level."""
        head = document.head
        if begins_with_info(head):
            return 0
        if head.startswith(b"PK"):
            try:
                inside = {_inner(document, member) for member in document.members()}
            except InputFileError:
                return 0
            is_log = any(header in inside for header in _HEADERS) and any(map(_is_sample_or_journal, inside))
            return MARKED if is_log else 0
        return MARKED if head.lstrip()[:1] == b"{" and all(key in head for key in _LOG_KEYS) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the samples one at a time."""
        if not document.head.startswith(b"PK"):
            yield from _read_json_log(document)
            return
        try:
            members = {_inner(document, member): member for member in document.members()}
        except InputFileError as error:
            yield skipped(document, error)
            return
        header: Mapping[str, Any] = {}
        for name in _HEADERS:
            found = whole_document(members[name]) if name in members and not header else header
            if isinstance(found, Skipped):
                yield found
            else:
                header = found
        samples = [member for name, member in members.items() if name.startswith("samples/")]
        for member in samples:
            sample = whole_document(member)
            yield sample if isinstance(sample, Skipped) else _run(member, header, sample)
        if not samples:
            yield skipped(document, "holds no sample; leave it out")


def _read_json_log(document: LogDocument) -> Iterator[Recording | Skipped]:
    log = whole_document(document)
    if isinstance(log, Skipped):
        yield log
        return
    samples: Sequence[Any] = log["samples"] if isinstance(log.get("samples"), list) else ()
    for number, sample in enumerate(samples, 1):
        if isinstance(sample, dict):
            yield _run(document, log, sample, str(number))
        else:
            yield skipped(document, "is not a sample; restore the log", str(number))
    if not samples:
        yield skipped(document, "holds no sample; leave it out")


def _is_sample_or_journal(name: str) -> bool:
    return name.startswith(("samples/", "_journal/"))


def _inner(document: LogDocument, member: LogDocument) -> str:
    return member.source.removeprefix(f"{document.source}:")


def _run(
    document: LogDocument, header: Mapping[str, Any], sample: Mapping[str, Any], place: str = ""
) -> Recording | Skipped:
    try:
        return _recording(document, header, sample, f"{document.source}:{place}" if place else document.source)
    except InputFileError as error:
        return skipped(document, error, place)


def _recording(document: LogDocument, header: Mapping[str, Any], sample: Mapping[str, Any], source: str) -> Recording:
    evaluation = mapping_of(header.get("eval"))
    prompt, turns = sample_turns(sample)
    sample_id, epoch = string_of(sample.get("id")) or document.name, string_of(sample.get("epoch")) or "1"
    log_id = string_of(evaluation.get("eval_id")) or string_of(evaluation.get("task_id"))
    scores = {name: mapping_of(score).get("value") for name, score in mapping_of(sample.get("scores")).items()}
    reward = next(filter(_is_number, map(_grade, scores.values())), None)
    usage = mapping_of(sample.get("model_usage"))
    return Recording(
        run_id="/".join(filter(None, (log_id, sample_id, epoch))),
        task_id=sample_id,
        format="inspect",
        source=source,
        turns=turns,
        model=string_of(evaluation.get("model")) or next(iter(usage), ""),
        reward=reward,
        resolved=None if reward is None else reward >= 1,
        prompt=prompt,
        exit_status=_ending(sample),
        details={
            "evaluation": string_of(evaluation.get("task")),
            "scores": scores,
            "model_usage": usage,
            "error": string_of(mapping_of(sample.get("error")).get("message")),
            "keeps_folder": has_session(sample),  # other tools of Inspect run every command in a new shell
        },
    )


def _grade(value: object) -> float | None:
    return _GRADES.get(value) if isinstance(value, str) else number_of(value)


def _is_number(value: float | None) -> bool:
    return value is not None


def _ending(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return "error"
    limit = string_of(mapping_of(sample.get("limit")).get("type"))
    if limit:
        return f"{limit} limit"
    choices = items_of(mapping_of(sample.get("output")).get("choices"))
    return string_of(choices[0].get("stop_reason")) if choices else ""
