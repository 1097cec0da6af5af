"""Reads OpenHands event histories: `output.jsonl` with a run per line, a list of events, or a conversation folder.

Actions of one model response are one turn; its usage, copied onto every action and observation, is counted once. A
condensation breaks the context before the next turn, and its summary is the carried-over text. Events of the software
agent SDK have another form; `openhands_sdk.py` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import text_of, usage_of
from eirkit.vestige.formats.openhands import IPYTHON, IPYTHON_CALL, cell_result, repository_root
from eirkit.vestige.formats.openhands_sdk import (
    ends_in_finish,
    files_of_conversation,
    is_sdk,
    is_state,
    read_conversation_files,
    tell_sdk,
)
from eirkit.vestige.formats.run_builder import RunBuilder, items_of, mapping_of, skipped, string_of, whole_document
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, LoggedUsage, Recording, formats

Event = Mapping[str, Any]

_LINE = re.compile(rb'\s*\{\s*"instance_id"\s*:')
_EVENTS = re.compile(rb'\s*\[\s*\{\s*"(?:id|timestamp|source|action|message|kind)"\s*:')
_EVENT_KEYS = (b'"source":', b'"timestamp":', b'"action":', b'"args":')
_SDK_KEYS = re.compile(rb'"kind"\s*:\s*"(?:SystemPrompt|Message|Action)Event"')
# Bookkeeping of the scaffold: neither actions of the agent nor part of its context.
_SILENT = frozenset(
    {"recall", "change_agent_state", "null", "pause", "resume", "stop", "start", "condensation_request"}
)
_EDITOR = ("command", "path", "file_text", "old_str", "new_str", "insert_line")
_REWRITE = ("path", "content", "start", "end")


@formats.add("openhands-events")
class OpenHandsEvents:
    """`output.jsonl` of OpenHands evaluations, exported event lists, and stored conversations."""

    run_per_line = True  # in JSON lines, one run per line

    def recognizes(self, document: LogDocument) -> int:
        """Return whether lines have a task and its patch, or the document is a list of events."""
        head = document.head
        if _LINE.match(head):
            is_output = b'"test_result":' in head and (b'"git_patch":' in head or b'"history":' in head)
            return MARKED if is_output else 0
        if not _EVENTS.match(head):
            return MARKED if is_state(document) else 0
        is_list = all(key in head for key in _EVENT_KEYS) or _SDK_KEYS.search(head) is not None
        return MARKED if is_list else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the files that are read with the state of a conversation."""
        return files_of_conversation(folder, names)

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run on each line, or the one of a list of events or of a conversation."""
        if is_state(document):
            yield from _conversation(document)
            return
        if document.head.lstrip().startswith(b"["):
            yield _exported(document)
            return
        try:
            for number, line in document.lines():
                yield _line(line, document, number)
        except InputFileError as error:
            yield skipped(document, error)


def _conversation(document: LogDocument) -> Iterator[Recording | Skipped]:
    state = whole_document(document)
    if isinstance(state, Skipped):
        yield state
        return
    for item in read_conversation_files(document, state):
        if isinstance(item, Skipped):
            yield item
            continue
        try:
            run = _recording(item.run, document.source, "run")
        except InputFileError as error:
            yield skipped(document, error)
            continue
        yield replace(run, root=run.root or item.folder or None, exit_status=run.exit_status or item.status)


def _exported(document: LogDocument) -> Recording | Skipped:
    try:
        events = document.json()
        if not isinstance(events, list):
            raise InputFileError("is not a list of events; restore the file")
        name = document.name.removesuffix(".json") or "run"
        return _recording({"instance_id": name, "history": events}, document.source, name)
    except InputFileError as error:
        return skipped(document, error)


def _line(line: object, document: LogDocument, number: int) -> Recording | Skipped:
    if isinstance(line, Exception):
        return skipped(document, line, str(number))
    try:
        return _recording(mapping_of(line), f"{document.source}:{number}", f"line-{number}")
    except InputFileError as error:
        return skipped(document, error, str(number))


def _recording(run: Mapping[str, Any], source: str, name: str) -> Recording:
    history = run.get("history")
    if not isinstance(history, list):
        raise InputFileError("has no history of events; give the file that OpenHands wrote, not its summary")
    events = _flat(history)
    builder = RunBuilder()
    listed = items_of(mapping_of(run.get("metrics")).get("token_usages"))
    (tell_sdk if is_sdk(events) else _tell)(
        events, builder, {string_of(counts.get("response_id")): usage_of(counts) for counts in listed}
    )
    instruction = string_of(run.get("instruction"))
    prompt = builder.prompt or instruction
    task, result = string_of(run.get("instance_id")) or name, mapping_of(run.get("test_result"))
    return Recording(
        run_id=task,
        task_id=task,
        format="openhands-events",
        source=source,
        turns=builder.turns(),
        model=_model(run),
        resolved=_resolved(run, result),
        prompt=prompt,
        submission=string_of(result.get("git_patch")) or None,
        root=repository_root(prompt) or repository_root(instruction),
        exit_status=string_of(run.get("error")) or _ending(events),
    )


def _model(run: Mapping[str, Any]) -> str:
    settings, metrics = mapping_of(run.get("metadata")), mapping_of(run.get("metrics"))
    told = (mapping_of(settings.get(name)).get("model") for name in ("llm_config", "llm"))
    used = (counts.get("model") for counts in items_of(metrics.get("token_usages"))[:1])
    return next(filter(None, map(string_of, (*told, *used))), "")


def _flat(history: Sequence[object]) -> list[Event]:
    """Return the events in order; the oldest files store each action and its observation as a pair."""
    events: list[Event] = []
    for number, entry in enumerate(history):
        parts = entry if isinstance(entry, list) else [entry]
        for part in parts:
            if not isinstance(part, dict):
                raise InputFileError(f"event {number} is not a JSON object; repair it or leave the run out")
            if isinstance(entry, list):
                # The second half of a pair is the observation of the first.
                part = {"id": f"pair {number}", **part} if "action" in part else {"cause": f"pair {number}", **part}
            events.append(part)
    return events


def _tell(events: Sequence[Event], builder: RunBuilder, usages: Mapping[str, LoggedUsage | None]) -> None:
    response, folder = "", None
    for event in events:
        if "action" in event:
            response = _act(event, builder, usages, response, folder)
        elif "observation" in event:
            folder = _observe(event, builder) or folder


def _act(
    event: Event, builder: RunBuilder, usages: Mapping[str, LoggedUsage | None], response: str, folder: str | None
) -> str:
    """Add an action to the builder and return the id of the response it came from."""
    kind, arguments = string_of(event.get("action")), mapping_of(event.get("args"))
    if kind == "condensation":
        builder.break_off("compaction")
        builder.carry(string_of(arguments.get("summary")))
        return ""
    if kind == "system" or (kind == "message" and event.get("source") == "user"):
        told = text_of(arguments.get("content")) or string_of(event.get("message"))
        (builder.hear if kind == "system" else builder.request)(told)
        return response
    if kind in _SILENT or event.get("source") == "user":
        return response
    answered = mapping_of(mapping_of(event.get("tool_call_metadata")).get("model_response"))
    own = string_of(answered.get("id"))
    if not own or own != response:
        builder.begin()
        builder.use(usage_of(answered.get("usage")) or usages.get(own))
        builder.say(string_of(arguments.get("thought")) if kind != "message" else text_of(arguments.get("content")))
    if kind != "message":
        builder.ask(f"{event.get('id')}", *_asked(kind, event, arguments), folder)
    return own


def _asked(kind: str, event: Event, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments of an action, whether or not the log names the tool."""
    called = string_of(mapping_of(event.get("tool_call_metadata")).get("function_name"))
    given = {name: value for name, value in arguments.items() if value is not None and name != "thought"}
    if kind == "run":
        return "bash", {"command": string_of(given.get("command"))}
    if kind in IPYTHON:
        return IPYTHON_CALL, _chosen(given, ("code",))
    if kind == "read":
        return called or "str_replace_editor", {"command": "view", **_chosen(given, ("path", "view_range"))}
    if kind == "edit" and "command" in given:
        return called or "str_replace_editor", _chosen(given, _EDITOR)
    if kind == "edit":
        return called or "edit_file", _chosen(given, _REWRITE)
    return called or kind or "unknown", given


def _chosen(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _observe(event: Event, builder: RunBuilder) -> str | None:
    """Add an observation to the builder and return the shell's directory after it."""
    kind, extras = string_of(event.get("observation")), mapping_of(event.get("extras"))
    content = string_of(event.get("content"))
    if kind == "condense":
        if not builder.is_broken:
            builder.break_off("compaction")
        builder.carry(content)
        return None
    state = mapping_of(extras.get("metadata"))
    code = state.get("exit_code", extras.get("exit_code"))
    cause = event.get("cause")
    if kind == "error" and cause is None:
        # A call that could not be parsed leaves no action, only this observation.
        builder.begin()
        builder.reject()
    elif cause is not None:
        failed = kind in ("error", "user_rejected") or content.startswith("ERROR:")
        content = cell_result(content) if kind in IPYTHON else content
        builder.answer(f"{cause}", content, failed=failed, exit_code=code if isinstance(code, int) else None)
    return string_of(state.get("working_dir")) or None


def _resolved(run: Mapping[str, Any], result: Mapping[str, Any]) -> bool | None:
    for place in (mapping_of(run.get("report")), mapping_of(result.get("report")), result):
        if isinstance(place.get("resolved"), bool):
            return bool(place["resolved"])
    return None


def _ending(events: Sequence[Event]) -> str:
    last = next((event for event in reversed(events) if "action" in event), {})
    return "finish" if last.get("action") == "finish" or ends_in_finish(events) else ""
