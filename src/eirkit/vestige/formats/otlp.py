"""OTLP/JSON exports of traces by the GenAI conventions: JSON lines, or one document, of exported requests.

Each agent that was invoked is a run; without such spans each conversation or trace is. An inference is a turn with the
tools that were executed after it; a span that says itself what it read and wrote is a turn of its own. Spans of one
trace may be spread over the file and stand in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.building import RunBuilder, mapping_of, number_of, objects_by_line, skipped, string_of
from eirkit.vestige.formats.otlp_spans import (
    AGENT,
    INFERENCE,
    RUN_FACTS,
    TURN_FACTS,
    Span,
    facts_of,
    spans_of,
    verdict_of,
)
from eirkit.vestige.formats.otlp_turns import turns_of
from eirkit.vestige.source import Document, Skipped
from eirkit.vestige.trajectory import Recording, formats

_BEGINNING = re.compile(rb'\s*(?:\[\s*)?\{\s*"resource_?[sS]pans"\s*:')
_HIGHEST = 1000  # spans above a span
_NO_RUN = "holds no span of an agent or a model (gen_ai.operation.name); there is nothing to analyse"


@formats.add("otlp")
class Otlp:
    """Traces of OpenTelemetry in OTLP/JSON, with the GenAI conventions' spans."""

    def recognises(self, document: Document) -> bool:
        """True for an object, or a list of them, that begins with the spans of a resource."""
        return _BEGINNING.match(document.head) is not None

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the runs of a file, each when all of it has been read."""
        spans: list[Span] = []
        for export in _exports(document):
            if isinstance(export, Skipped):
                yield export
            else:
                spans += spans_of(export)
        runs = _runs(spans)
        for name, members in runs.items():
            yield _recording(document, name, members)
        if not runs:
            yield skipped(document, _NO_RUN)


def _exports(document: Document) -> Iterator[Mapping[str, Any] | Skipped]:
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
    """True unless the file is JSON lines: a list, or an object whose first line is no object by itself."""
    first, ends, _ = head.lstrip().partition(b"\n")
    return first.startswith(b"[") or (bool(ends) and not first.rstrip().endswith(b"}"))


class _Members:
    """The spans of one run, and of the agent that made them."""

    def __init__(self, parent: str) -> None:
        self.parent = parent  # the run that invoked this one
        self.agents: list[Span] = []
        self.spans: list[Span] = []


def _runs(spans: Sequence[Span]) -> dict[str, _Members]:
    """Return the runs by name, in the order in which they began; agents that never asked a model are none."""
    ordered = sorted(spans, key=lambda span: span.start)
    by_id = {(span.trace, span.id): span for span in reversed(ordered)}
    # Exporters deliver at least once.
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
    """True if something was said; a run of our own may have ended before that."""
    told = any(RUN_FACTS in agent.attributes for agent in run.agents)
    return told or any(span.operation in INFERENCE or TURN_FACTS in span.attributes for span in run.spans)


def _owner(span: Span, by_id: Mapping[tuple[str, str], Span]) -> Span | None:
    """Return the nearest agent above a span."""
    above = by_id.get((span.trace, span.parent))
    for _ in range(_HIGHEST):
        if above is None or above.operation == AGENT:
            return above
        above = by_id.get((above.trace, above.parent))
    return None


def _agents_at_top(spans: Sequence[Span], owners: Mapping[tuple[str, str], Span | None]) -> set[str]:
    """Return the conversations and traces in which more than one agent, by its name, was invoked at the top."""
    names: dict[str, set[str]] = {}
    for span in spans:
        if span.operation == AGENT and owners[span.trace, span.id] is None:
            names.setdefault(_conversation(span), set()).add(_agent_name(span))
    return {conversation for conversation, known in names.items() if len(known) > 1}


def _name(span: Span, agent: Span | None, owners: Mapping[tuple[str, str], Span | None], several: set[str]) -> str:
    """Return the name of the run that a span belongs to; an agent that another one invoked has a run of its own."""
    if agent is None:
        return _conversation(span)
    conversation = _conversation(agent)
    if owners[agent.trace, agent.id] is not None:
        return f"{conversation}/{agent.id}"
    return f"{conversation}/{_agent_name(agent)}" if conversation in several else conversation


def _conversation(span: Span) -> str:
    return string_of(span.attributes.get("gen_ai.conversation.id")) or span.trace


def _agent_name(span: Span) -> str:
    return string_of(span.attributes.get("gen_ai.agent.name")) or span.id


def _recording(document: Document, name: str, members: _Members) -> Recording:
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
        format="otlp",
        source=document.source,
        turns=turns,
        model=string_of(told.get("model")) or _model([*members.agents, *members.spans]),
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


def _model(spans: Sequence[Span]) -> str:
    for key in ("gen_ai.request.model", "gen_ai.response.model"):
        for span in spans:
            if model := string_of(span.attributes.get(key)):
                return model
    return ""
