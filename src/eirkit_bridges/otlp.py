"""Reads OTLP/JSON trace exports with the GenAI semantic conventions: JSON lines, or one document.

Each invoked agent is a run; without such spans each conversation or trace is one. An inference is a turn, with the
tools executed after it; a span that itself says what it read and wrote is a turn of its own. Spans of one trace may be
spread over the file in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from msgspec import structs

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, shell_name
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    items_of,
    mapping_of,
    number_of,
    objects_by_line,
    skipped,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import (
    NAMED,
    Break,
    LoggedUsage,
    RecordedTurn,
    Recording,
    formats,
)
from eirkit_bridges.otlp_spans import (
    AGENT,
    CALL_FACTS,
    INFERENCE,
    MEMORY,
    RUN_FACTS,
    TOOL,
    TURN_FACTS,
    OtlpSpan,
    as_text,
    asked_parts,
    facts_of,
    kept_of,
    said_parts,
    size_of,
    spans_of,
    structured,
    touches_of,
    usage_of,
    verdict_of,
    words_of,
)

_BREAKS: tuple[Break, ...] = ("compaction", "clear")


@dataclass(slots=True)
class _Group:
    """The spans of one turn."""

    facts: Mapping[str, Any] | None  # attributes of a span that is a turn of its own
    spans: list[OtlpSpan] = field(default_factory=list)


def turns_of(builder: RunBuilder, spans: Sequence[OtlpSpan]) -> tuple[RecordedTurn, ...]:
    """Return the turns of a run; the builder keeps what was said before the first."""
    groups = _groups(spans)
    for group in groups:
        _take(builder, group)
    return tuple(_finished(turn, group) for turn, group in zip(builder.turns(), groups, strict=True))


def _groups(spans: Sequence[OtlpSpan]) -> list[_Group]:
    by_id = {span.id: span for span in spans}
    contained: dict[str, _Group] = {}  # by the span that is a turn of its own
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


def _is_own_memory(span: OtlpSpan, by_id: Mapping[str, OtlpSpan]) -> bool:
    """Return whether a memory operation is not part of a tool call."""
    above = by_id.get(span.parent)
    return span.operation in MEMORY and (above is None or above.operation != TOOL)


def _take(builder: RunBuilder, group: _Group) -> None:
    replies = [span for span in group.spans if span.operation in INFERENCE]
    told = list(asked_parts(replies[0])) if replies else []
    for part in told:
        if part.kind == "text":
            builder.hear(part.text)
    for part in reversed(told):  # a request repeats the history: where ids are reused, the last result counts
        if part.kind == "answer":
            builder.answer(part.id, part.text)
    _break_off(builder, group.facts or {})
    builder.begin()
    waiting: list[tuple[str, str]] = []  # calls without a result: id and tool
    folders = {_call_id(span): _folder(span) for span in group.spans if CALL_FACTS in span.attributes}
    for span in group.spans:
        if span.operation in INFERENCE:
            _take_reply(builder, span, waiting, folders)
        else:
            _take_call(builder, span, waiting)
    if (group.facts or {}).get("rejected") is True:
        builder.reject()


def _break_off(builder: RunBuilder, facts: Mapping[str, Any]) -> None:
    earlier, triggers = facts.get("earlier_breaks"), facts.get("triggers")
    told = [*(earlier if isinstance(earlier, list) else ()), facts.get("broken")]
    known = triggers if isinstance(triggers, list) and len(triggers) == len(told) else [None] * len(told)
    for name, trigger in zip(told, known, strict=True):
        for kind in (one for one in _BREAKS if one == name):
            builder.break_off(kind, trigger)
    builder.carry(string_of(facts.get("carried")))


def _call_id(span: OtlpSpan) -> str:
    return string_of(span.attributes.get("gen_ai.tool.call.id"))


def _folder(span: OtlpSpan) -> str | None:
    return string_of(facts_of(span, CALL_FACTS).get("working_folder")) or None


def _take_reply(
    builder: RunBuilder, span: OtlpSpan, waiting: list[tuple[str, str]], folders: Mapping[str, str | None]
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


def _take_call(builder: RunBuilder, span: OtlpSpan, waiting: list[tuple[str, str]]) -> None:
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
    # Without an id it is the result of the oldest open call of this tool, else a call of its own.
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
        turn = structs.replace(turn, usage=LoggedUsage.total(used))
    if group.facts is None:
        return turn
    tokens, touched, at = (group.facts.get(name) for name in ("tokens", "touches", "at"))
    turn = structs.replace(turn, tokens=tokens if type(tokens) is int and tokens >= 0 else None)
    turn = structs.replace(turn, at=at if isinstance(at, float) and isfinite(at) else None)
    turn = structs.replace(
        turn, asked=words_of(group.facts.get("asked")) or turn.asked, kept=kept_of(group.facts.get("kept"))
    )
    return structs.replace(turn, calls=(), touches=touches_of(touched)) if isinstance(touched, dict) else turn


_BEGINNING = re.compile(rb'\s*(?:\[\s*)?\{\s*"resource_?[sS]pans"\s*:')
_HIGHEST = 1000  # most ancestors of a span that are followed
_NO_RUN = "holds no span of an agent or a model (gen_ai.operation.name); leave it out"


@formats.add("otlp")
class Otlp:
    """OpenTelemetry traces in OTLP/JSON with spans of the GenAI conventions."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the document is an object, or a list of objects, that begins with the spans of a resource."""
        return NAMED if _BEGINNING.match(document.head) is not None else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the runs of a file once all of it has been read."""
        spans: list[OtlpSpan] = []
        for export in _exports(document):
            if isinstance(export, Skipped):
                yield export
            else:
                spans += spans_of(export)
        yield from runs_of(document, spans, "otlp")


def runs_of(document: LogDocument, spans: Sequence[OtlpSpan], format: str) -> Iterator[Recording | Skipped]:
    """Yield the runs that some spans record."""
    runs = _runs(spans)
    for name, members in runs.items():
        yield _recording(document, name, members, format)
    if not runs:
        yield skipped(document, _NO_RUN)


def _exports(document: LogDocument) -> Iterator[Mapping[str, Any] | Skipped]:
    if not _is_one_document(document.head):
        yield from objects_by_line(document)
        return
    try:
        whole = document.json()
    except InputFileError as error:
        yield skipped(document, error)
        return
    yield from (mapping_of(value) for value in (whole if isinstance(whole, list) else [whole]))


def _is_one_document(head: bytes) -> bool:
    """Return whether the file is not JSON lines: a list, or an object that spans several lines."""
    first, ends, _ = head.lstrip().partition(b"\n")
    return first.startswith(b"[") or (bool(ends) and not first.rstrip().endswith(b"}"))


class _Members:
    """The spans of one run, and of the agent that made them."""

    def __init__(self, parent: str) -> None:
        self.parent = parent  # the run that invoked this one
        self.agents: list[OtlpSpan] = []
        self.spans: list[OtlpSpan] = []


def _runs(spans: Sequence[OtlpSpan]) -> dict[str, _Members]:
    """Return the runs by name, in order of their start; agents that never called a model are not runs."""
    ordered = sorted(spans, key=lambda span: span.start)
    by_id = {(span.trace, span.id): span for span in reversed(ordered)}
    # Exporters deliver at least once, so spans may be repeated.
    ordered = [span for span in ordered if not span.id or by_id[span.trace, span.id] is span]
    owners = {key: _owner(span, by_id) for key, span in by_id.items()}
    several = _agents_at_top(ordered, owners)
    found: dict[str, _Members] = {}
    for span in ordered:
        agent = span if span.operation == AGENT else owners[span.trace, span.id]
        name = _name(span, agent, owners, several)
        above = owners[agent.trace, agent.id] if agent else None
        parent = _name(above, above, owners, several) if above else ""
        members = found.setdefault(name, _Members(parent))
        if span.operation == AGENT:
            members.agents.append(span)
        else:
            members.spans.append(span)
    return {name: run for name, run in found.items() if _is_run(run)}


def _is_run(run: _Members) -> bool:
    """Return whether a model was called; a LACUNA run may have ended before that."""
    told = any(RUN_FACTS in agent.attributes for agent in run.agents)
    return told or any(span.operation in INFERENCE or TURN_FACTS in span.attributes for span in run.spans)


def _owner(span: OtlpSpan, by_id: Mapping[tuple[str, str], OtlpSpan]) -> OtlpSpan | None:
    """Return the nearest agent above a span."""
    above = by_id.get((span.trace, span.parent))
    for _ in range(_HIGHEST):
        if above is None or above.operation == AGENT:
            return above
        above = by_id.get((above.trace, above.parent))
    return None


def _agents_at_top(spans: Sequence[OtlpSpan], owners: Mapping[tuple[str, str], OtlpSpan | None]) -> set[str]:
    """Return the conversations and traces in which more than one agent was invoked at the top level."""
    names: dict[str, set[str]] = {}
    for span in spans:
        if span.operation == AGENT and owners[span.trace, span.id] is None:
            names.setdefault(_conversation(span), set()).add(_agent_name(span))
    return {conversation for conversation, known in names.items() if len(known) > 1}


def _name(
    span: OtlpSpan, agent: OtlpSpan | None, owners: Mapping[tuple[str, str], OtlpSpan | None], several: set[str]
) -> str:
    """Return the name of the run of a span; an agent that another one invoked has a run of its own."""
    if agent is None:
        return _conversation(span)
    conversation = _conversation(agent)
    if owners[agent.trace, agent.id] is not None:
        return f"{conversation}/{agent.id}"
    return f"{conversation}/{_agent_name(agent)}" if conversation in several else conversation


def _conversation(span: OtlpSpan) -> str:
    return string_of(span.attributes.get("gen_ai.conversation.id")) or span.trace


def _agent_name(span: OtlpSpan) -> str:
    return string_of(span.attributes.get("gen_ai.agent.name")) or span.id


def _recording(document: LogDocument, name: str, members: _Members, format: str) -> Recording:
    builder = RunBuilder()
    turns = turns_of(builder, members.spans)
    told: Mapping[str, Any] = {}
    for agent in members.agents:
        told = facts_of(agent, RUN_FACTS) or told
    reward, resolved = verdict_of([*members.spans, *members.agents])
    goals, verdict = told.get("goal_files"), told.get("resolved")
    ended = [agent.error for agent in members.agents if agent.error]
    return Recording(
        run_id=name,
        task_id=string_of(told.get("task_id")) or name,
        format=format,
        source=document.source,
        turns=turns,
        model=string_of(told.get("model")) or _model([*members.agents, *members.spans]),
        agent_version=string_of(told.get("agent_version")),
        window=size_of(told.get("window")),
        resolved=verdict if isinstance(verdict, bool) else resolved,
        reward=number_of(told.get("reward")) if "reward" in told else reward,
        goal_files=tuple(map(string_of, goals)) if isinstance(goals, list) else None,
        prompt=builder.prompt,
        submission=string_of(told.get("submission")) or None,
        root=string_of(told.get("root")) or None,
        exit_status=string_of(told.get("exit_status")) or (ended[-1] if ended else ""),
        domain="entities" if told.get("domain") == "entities" else "files",
        details={"agent": _agent_name(members.agents[0]) if members.agents else "", "parent_run": members.parent},
    )


def _model(spans: Sequence[OtlpSpan]) -> str:
    for key in ("gen_ai.request.model", "gen_ai.response.model"):
        for span in spans:
            if model := string_of(span.attributes.get(key)):
                return model
    return ""
