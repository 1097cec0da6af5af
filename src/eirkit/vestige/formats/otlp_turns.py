"""The spans of one run to its turns, in the order in which they began.

A span with facts of a turn gathers what lies within it; every other inference begins a turn. Tools and operations on a
memory belong to the turn before them. Where a turn says what it touched, that takes the place of its calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eirkit.vestige.formats.building import RunBuilder, items_of, string_of
from eirkit.vestige.formats.messages import arguments_of, shell_name
from eirkit.vestige.formats.otlp_spans import (
    CALL_FACTS,
    INFERENCE,
    MEMORY,
    TOOL,
    TURN_FACTS,
    Span,
    as_text,
    asked_parts,
    facts_of,
    said_parts,
    structured,
    usage_of,
)
from eirkit.vestige.trajectory import Break, Read, RecordedTurn, Touches, Usage, Write, WriteKind

_KINDS: tuple[WriteKind, ...] = ("whole", "edit", "delete")
_BREAKS: tuple[Break, ...] = ("compaction", "clear")


@dataclass(slots=True)
class _Group:
    """The spans of one turn."""

    facts: Mapping[str, Any] | None  # of a turn of its own
    spans: list[Span] = field(default_factory=list)


def turns_of(builder: RunBuilder, spans: Sequence[Span]) -> tuple[RecordedTurn, ...]:
    """Return the turns of a run; the builder keeps what was said before the first."""
    groups = _groups(spans)
    for group in groups:
        _take(builder, group)
    return tuple(_finished(turn, group) for turn, group in zip(builder.turns(), groups, strict=True))


def _groups(spans: Sequence[Span]) -> list[_Group]:
    by_id = {span.id: span for span in spans}
    contained: dict[str, _Group] = {}  # by the span of a turn of its own
    groups: list[_Group] = []
    for span in spans:
        if TURN_FACTS in span.attributes:
            contained[span.id] = _Group(facts_of(span, TURN_FACTS))
            groups.append(contained[span.id])
        elif span.parent in contained:
            contained[span.parent].spans.append(span)
        elif span.operation in INFERENCE:
            groups.append(_Group(None, [span]))
        elif groups and (span.operation == TOOL or _is_own_memory(span, by_id)):
            groups[-1].spans.append(span)
    return groups


def _is_own_memory(span: Span, by_id: Mapping[str, Span]) -> bool:
    """True for an operation on a memory that no tool stands for."""
    above = by_id.get(span.parent)
    return span.operation in MEMORY and (above is None or above.operation != TOOL)


def _take(builder: RunBuilder, group: _Group) -> None:
    replies = [span for span in group.spans if span.operation in INFERENCE]
    told = list(asked_parts(replies[0])) if replies else []
    for part in told:
        if part.kind == "text":
            builder.hear(part.text)
    for part in reversed(told):  # a request repeats all before it: where ids are used again, the last answer is meant
        if part.kind == "answer":
            builder.answer(part.id, part.text)
    _break_off(builder, group.facts or {})
    builder.begin()
    waiting: list[tuple[str, str]] = []  # calls without an answer: id and tool
    folders = {_call_id(span): _folder(span) for span in group.spans if CALL_FACTS in span.attributes}
    for span in group.spans:
        if span.operation in INFERENCE:
            _take_reply(builder, span, waiting, folders)
        else:
            _take_call(builder, span, waiting)
    if (group.facts or {}).get("rejected") is True:
        builder.reject()


def _break_off(builder: RunBuilder, facts: Mapping[str, Any]) -> None:
    for kind in _BREAKS:
        if facts.get("broken") == kind:
            builder.break_off(kind)
            builder.carry(string_of(facts.get("carried")))


def _call_id(span: Span) -> str:
    return string_of(span.attributes.get("gen_ai.tool.call.id"))


def _folder(span: Span) -> str | None:
    return string_of(facts_of(span, CALL_FACTS).get("working_folder")) or None


def _take_reply(
    builder: RunBuilder, span: Span, waiting: list[tuple[str, str]], folders: Mapping[str, str | None]
) -> None:
    said = said_parts(span)
    builder.say("\n".join(part.text for part in said if part.kind == "text"))
    for part in said:
        if part.kind == "call":
            id = part.id or f"{span.id}/{len(waiting)}"
            if builder.is_answered(id):
                builder.release(id)
            builder.ask(id, *_as_shell(part.tool, part.arguments or {}), folder=folders.get(id))
            waiting.append((id, part.tool))


def _take_call(builder: RunBuilder, span: Span, waiting: list[tuple[str, str]]) -> None:
    given = span.attributes
    if span.operation == TOOL:
        tool, arguments = (
            string_of(given.get("gen_ai.tool.name")),
            arguments_of(given.get("gen_ai.tool.call.arguments")),
        )
        output = as_text(given.get("gen_ai.tool.call.result"))
    else:
        tool, arguments, output = span.operation, _memory_arguments(given), _memory_records(given)
    facts = facts_of(span, CALL_FACTS)
    # Without an id it answers the oldest call of this tool that waits; else it is a call that no reply shows.
    id = _call_id(span) or next((known for known, name in waiting if name == tool), span.id)
    asked = _as_shell(tool, arguments)
    if builder.is_answered(id) and builder.asked(id) != asked:
        builder.release(id)
    builder.ask(id, *asked, folder=_folder(span))
    code = facts.get("exit_code")
    builder.answer(
        id,
        output,
        failed=bool(span.error),
        exit_code=code if type(code) is int else None,
        full_output=string_of(facts.get("full_output")) or None,
    )
    waiting[:] = [entry for entry in waiting if entry[0] != id]


def _as_shell(tool: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return shell_name(tool, arguments), arguments


def _memory_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        "query": "gen_ai.memory.query.text",
        "record": "gen_ai.memory.record.id",
        "store": "gen_ai.memory.store.id",
    }
    return {name: given[key] for name, key in named.items() if isinstance(given.get(key), str)}


def _memory_records(given: Mapping[str, Any]) -> str:
    records = items_of(structured(given.get("gen_ai.memory.records")))
    return "\n".join(as_text(record.get("content")) for record in records)


def _finished(turn: RecordedTurn, group: _Group) -> RecordedTurn:
    used = [usage for span in group.spans if (usage := usage_of(span)) is not None]
    if used:
        turn = replace(turn, usage=Usage.together(used))
    if group.facts is None:
        return turn
    tokens, touched = group.facts.get("tokens"), group.facts.get("touches")
    turn = replace(turn, tokens=tokens if type(tokens) is int and tokens >= 0 else None)
    return replace(turn, calls=(), touches=_touches(touched)) if isinstance(touched, dict) else turn


def _touches(given: Mapping[str, Any]) -> Touches:
    reads = tuple(
        Read(path, _count(item.get("tokens")), _text(item.get("content")), clipped=item.get("clipped") is True)
        for item in items_of(given.get("reads"))
        if (path := string_of(item.get("path")))
    )
    writes = tuple(
        Write(path, _kind(item.get("kind")), _count(item.get("tokens")), _text(item.get("content")))
        for item in items_of(given.get("writes"))
        if (path := string_of(item.get("path")))
    )
    return Touches(reads, writes)


def _kind(value: object) -> WriteKind:
    return next((kind for kind in _KINDS if kind == value), "edit")


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
