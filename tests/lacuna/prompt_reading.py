"""Reads a prompt back into what it shows, for scripted agents behind a server, which receive nothing but its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ActionForm, Form, NumberForm, Request, Tool
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Budgets, ProbeView, PublicStep, PublicTask, Record, Visible

_RECORD = re.compile(r"^A_(\d+) = (\d+(?: \d+)*)$", re.MULTILINE)
_STEP = re.compile(r"^STEP (\d+) (\w+)( answered)?$(?:\nINPUT ([\d ]+)$)?(?:\nREFS (.+)$)?", re.MULTILINE)
_EXPRESSION = re.compile(r"^A_(\d+) = [^\d\s]\S*((?: \d+)*)((?: A_\d+)*)( answered)?$", re.MULTILINE)
_LABEL = re.compile(r"A_(\d+)")
_WORKLOAD = re.compile(r"^WORKLOAD (\S+) n=(\d+) q=(\d+) width=(\d+) k=(\d+)$", re.MULTILINE)
_TARGET = re.compile(r"^TARGET A_(\d+) (unknown|=)", re.MULTILINE)
_RESIDENT = re.compile(r"^RESIDENT(.*)$", re.MULTILINE)
_READS = re.compile(r"^READS (\d+)$", re.MULTILINE)
_NODE = re.compile(r"^NODE A_(\d+) input (?:(?! refs )[\w ])++ refs (.+) (?:known|unknown)$", re.MULTILINE)
_RESULT = re.compile(r"^RESULT ([\d ]+)$", re.MULTILINE)
_COMMAND = re.compile(r"^([A-Z]+)(?: \w+)*(?::|$)|^([a-z]+)\([a-z, ]*\): ", re.MULTILINE)
_LEFT = re.compile(r"^LEFT actions=\S+ reads=(\S+) recomputations=(\S+)$", re.MULTILINE)
_ROOM = re.compile(r"^MEMORY (\d+) of (\d+) ", re.MULTILINE)
_OUTCOME = re.compile(r"^RESULT (.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^SUMMARY at most (\d+) characters$", re.MULTILINE)
_NOTES = re.compile(r"^NOTES\n(.*)\nEND NOTES$", re.MULTILINE | re.DOTALL)


def read_body(body: Mapping[str, Any]) -> Request:
    """Return the request of a chat completion, with what its prompt shows."""
    messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    tools = tuple(Tool(one["function"]["name"], "", one["function"]["parameters"]) for one in body.get("tools", ()))
    return read_prompt(Request(messages, tools, schema=schema))


def read_prompt(request: Request) -> Request:
    """Return a request with what its prompt shows; as it is if it belongs to no task."""
    rules, text = request.messages[0].content, request.messages[-1].content
    found = _WORKLOAD.search(rules)
    if found is None:
        return request
    n, q, width, k = (int(number) for number in found.groups()[1:])
    spec = TaskSpec(found[1], n=n, m=min(16, n - 1) or 1, digits=len(str(q)) - 1, k=k)
    workload = prepare(spec)
    if workload.width(spec) != width:
        spec = replace(spec, slots=width)
    task = PublicTask(spec, workload, (), width)
    form: Form = ActionForm(("READ", "DONE"), width, q)
    visible: Visible | ProbeView
    if "\nPROBE " in rules:
        visible = _probe(task, text)
    else:
        commands = tuple(dict.fromkeys((one or other.upper()) for one, other in _COMMAND.findall(rules))) or ("ANSWER",)
        commands = tuple(word for word in commands if word not in ("WORKLOAD", "RULE"))
        visible = _visible(task, text, commands or ("ANSWER",))
        t = visible.step.t if visible.step else 0
        form = NumberForm(t, width, q) if visible.commands == ("ANSWER",) else ActionForm(visible.commands, width, q)
    return Request(request.messages, request.tools, schema=request.schema, form=form, visible=visible)


def _probe(task: PublicTask, text: str) -> ProbeView:
    target, resident, reads = _TARGET.search(text), _RESIDENT.search(text), _READS.search(text)
    assert None not in (target, resident, reads)
    held = tuple(map(int, _LABEL.findall(resident[1])))
    known = {*held, int(target[1])} if target[2] == "=" else set(held)
    nodes = {int(t): tuple(map(int, _LABEL.findall(refs))) for t, refs in _NODE.findall(text)}
    return ProbeView(task, int(target[1]), held, int(reads[1]), nodes, frozenset(known))


def _visible(task: PublicTask, text: str, commands: tuple[str, ...]) -> Visible:
    notes = _NOTES.search(text)
    state = text if notes is None else text[: notes.start()] + text[notes.end() :]
    left, room, summary, result = (one.search(state) for one in (_LEFT, _ROOM, _SUMMARY, _RESULT))
    return Visible(
        task,
        _step(state),
        answered=(found := _STEP.search(state) or _EXPRESSION.search(state)) is not None and " answered" in found[0],
        records=_records(state),
        notes=None if notes is None else notes[1],
        free=int(room[2]) - int(room[1]) if room else 0,
        commands=commands,
        budgets=Budgets(None, *(None if one == "unlimited" else int(one) for one in left.groups())) if left else None,
        outcomes=tuple(_OUTCOME.findall(state)),
        result=tuple(map(int, result[1].split())) if result and "CALCULATE" in commands else None,
        summary_characters=int(summary[1]) if summary else None,
    )


def _records(state: str) -> tuple[Record, ...]:
    return tuple((int(t), tuple(map(int, values.split()))) for t, values in _RECORD.findall(state))


def _step(state: str) -> PublicStep | None:
    if found := _STEP.search(state):
        t, kind, _, fresh, refs = found.groups()
    elif found := _EXPRESSION.search(state):
        (t, fresh, refs, _), kind = found.groups(), "compute"
    else:
        return None
    given = tuple(map(int, fresh.split())) if fresh else None
    return PublicStep(int(t), kind, given or None, tuple(map(int, _LABEL.findall(refs or ""))))
