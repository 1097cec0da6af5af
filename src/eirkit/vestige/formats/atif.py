"""Reads the Agent Trajectory Interchange Format (ATIF), versions 1.0 to 1.8.

A step of the agent is a turn. Steps marked as copied context repeat another file and are not counted again; scripted
steps (`llm_call_count` 0) are turns without usage. A summarized context breaks the run. Continuations beside a file
(`NAME.cont-1.json`) are read with it as one run; sub-agents, in their own files or embedded, are runs of their own that
name their parent.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise, takewhile
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.gemini_parts import shell_result
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    begins_with_info,
    is_own_file,
    items_of,
    logged_usage,
    mapping_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, NAMED, KeptContext, LoggedUsage, Recording, formats

Step = Mapping[str, Any]
_AskedCall = tuple[str, str, Mapping[str, Any]]

_SUMMARIZED = re.compile(r"context summari[sz]ation|summari[sz]ed|compact(?:ed|ion)", re.IGNORECASE)
# A step names the sub-agents that made a summary; the context with which the agent went on is not shown.
_UNTOLD = KeptContext("size", is_opaque=True)
_REFUSED = "Previous response had parsing errors"
_TERMINAL_TOOLS = frozenset({"bash_command", "terminal", "exec_command"})
_SCREEN_BYTES = 1 << 22  # longest reply that is searched for commands in JSON


def take_steps(builder: RunBuilder, steps: Iterable[Step]) -> None:
    """Add the steps of one trajectory."""
    for step, after in pairwise((*steps, None)):
        assert step is not None
        source, is_copy = step.get("source"), step.get("is_copied_context") is True
        if is_copy:
            text = text_of(step.get("message"))
            if builder.is_broken:
                builder.carry(text)
            else:
                builder.hear(text)
        elif source == "agent":
            _take_reply(builder, step)
        elif source == "system" and _is_break(step):
            builder.break_off(_kind(step))
            builder.carry(_summary(step))
            if not _is_told(step, after):
                builder.keep(_UNTOLD)
        elif builder.is_broken:
            builder.carry(text_of(step.get("message")))
        else:
            builder.hear(text_of(step.get("message")))


def _is_break(step: Step) -> bool:
    if mapping_of(mapping_of(step.get("extra")).get("context_management")):
        return True
    refers = any(result.get("subagent_trajectory_ref") for result in _results(step))
    return refers and _SUMMARIZED.search(text_of(step.get("message"))) is not None


def _is_told(step: Step, after: Step | None) -> bool:
    """Return whether a break says itself what took the context's place, or the steps after it repeat that."""
    managed = mapping_of(mapping_of(step.get("extra")).get("context_management"))
    return bool(managed or _summary(step).strip()) or after is None or after.get("is_copied_context") is True


def _kind(step: Step) -> Any:
    managed = mapping_of(mapping_of(step.get("extra")).get("context_management"))
    return "clear" if managed.get("type") in ("clear", "reset") else "compaction"


def _summary(step: Step) -> str:
    """Return a summary that the step itself holds; one in the message only announces that there was one."""
    managed = mapping_of(mapping_of(step.get("extra")).get("context_management"))
    return string_of(managed.get("summary")) or "\n".join(text_of(result.get("content")) for result in _results(step))


def _take_reply(builder: RunBuilder, step: Step) -> None:
    text = text_of(step.get("message"))
    results = _results(step)
    asked = _asked(step) or _spelled_out(text)
    builder.begin()
    builder.say(text)
    if step.get("llm_call_count") != 0:
        builder.use(_usage(mapping_of(step.get("metrics"))))
    if not asked and any(text_of(result.get("content")).startswith(_REFUSED) for result in results):
        builder.reject()
    calls = _joined(asked, results)
    for id, _, _ in calls:
        builder.release(id)  # ids need to be unique only within their step
    for id, tool, arguments in calls:
        builder.ask(id, tool, arguments)
    _take_results(builder, results)


def _asked(step: Step) -> list[_AskedCall]:
    found = []
    for call in items_of(step.get("tool_calls")):
        tool, arguments = string_of(call.get("function_name")), arguments_of(call.get("arguments"))
        found.append((string_of(call.get("tool_call_id")), *_as_shell(tool, arguments)))
    return found


def _as_shell(tool: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Give commands typed into a terminal the tool name and argument that shell commands have."""
    typed = next((arguments[key] for key in ("command", "keystrokes", "cmd") if key in arguments), None)
    if tool in _TERMINAL_TOOLS and isinstance(typed, str):
        return "bash", {**arguments, "command": typed.rstrip("\n")}
    return shell_name(tool, arguments), arguments


def _spelled_out(text: str) -> list[_AskedCall]:
    """Return the commands of a reply that is itself JSON, as some terminal agents are told to write."""
    if not text.lstrip().startswith("{") or '"commands"' not in text or len(text) > _SCREEN_BYTES:
        return []
    try:
        reply = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return []
    return [("", *_as_shell("bash_command", command)) for command in items_of(reply.get("commands"))]


def _joined(asked: Sequence[_AskedCall], results: Sequence[Step]) -> Sequence[_AskedCall]:
    """Make one call of commands that were typed one after another before the screen was read once."""
    nameless = not any(string_of(result.get("source_call_id")) for result in results)
    if len(asked) < 2 or len(results) > 1 or not nameless or any(tool != "bash" for _, tool, _ in asked):
        return asked
    commands = "\n".join(string_of(arguments.get("command")) for _, _, arguments in asked)
    return [(asked[0][0], "bash", {"command": commands})]


def _take_results(builder: RunBuilder, results: Sequence[Step]) -> None:
    for result in results:
        output = text_of(result.get("content"))
        failed = result.get("is_error") is True or mapping_of(result.get("extra")).get("is_error") is True
        call = string_of(result.get("source_call_id"))
        if call:
            told = shell_result(output)  # ATIF files of Gemini CLI wrap outputs as its sessions do
            builder.answer(call, told.text, failed=failed, exit_code=told.exit_code)
        else:
            builder.answer_last(output, failed=failed)


def _results(step: Step) -> list[Step]:
    return items_of(mapping_of(step.get("observation")).get("results"))


def _usage(metrics: Mapping[str, Any]) -> LoggedUsage | None:
    if "prompt_tokens" not in metrics and "completion_tokens" not in metrics:
        return None
    prompt, written, cached = map(metrics.get, ("prompt_tokens", "completion_tokens", "cached_tokens"))
    return logged_usage([prompt], [written], cached)


_FIRST_CONTINUATION = ".cont-1.json"
_STEP_KEYS = frozenset({b"steps", b"step_id", b"source"})


@formats.add("atif")
class Atif:
    """ATIF trajectory files."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the object names the schema; or has its steps, where the schema stands behind them."""
        if _is_atif(document.head):
            return NAMED
        is_object = document.head.lstrip()[:1] == b"{" and not begins_with_info(document.head)
        return MARKED if is_object and _STEP_KEYS.issubset(document.quoted) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the continuations whose first part is beside them."""
        known = frozenset(names)
        beginnings = (name.removesuffix(_FIRST_CONTINUATION) for name in names if name.endswith(_FIRST_CONTINUATION))
        return [
            continuation
            for stem in beginnings
            if f"{stem}.json" in known and _begins_with_atif(folder / f"{stem}.json")
            for continuation in _continuation_names(folder, stem)
        ]

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run with its continuations, then its embedded sub-agents."""
        trajectory = whole_document(document)
        if isinstance(trajectory, Skipped):
            yield trajectory
            return
        if not isinstance(trajectory.get("steps"), list):
            yield skipped(document, "has no list of steps; restore the file")
            return
        for number, step in enumerate(trajectory["steps"], 1):
            if not isinstance(step, dict):
                yield skipped(document, "is not a step; restore the file", f"step {number}")
        parts = [trajectory]
        for part in _continuations(document):
            if isinstance(part, Skipped):
                yield part
            else:
                parts.append(part)
        yield _recording(document, parts)
        own_id = _own_id(trajectory, document)
        for part in parts:
            waiting = deque((own_id, child) for child in items_of(part.get("subagent_trajectories")))
            while waiting:
                parent, child = waiting.popleft()
                recording = _recording(document, [child], parent)
                yield recording
                waiting.extend((recording.run_id, inner) for inner in items_of(child.get("subagent_trajectories")))


def _is_atif(head: bytes) -> bool:
    """Return whether the beginning of a document names the schema at the top level."""
    if begins_with_info(head):
        return False
    return head.lstrip()[:1] == b"{" and re.search(rb'"schema_version"\s*:\s*"ATIF-v', head) is not None


def _recording(document: LogDocument, parts: list[Mapping[str, Any]], parent: str = "") -> Recording:
    """Return the run that a trajectory and its continuations record."""
    builder = RunBuilder()
    for number, part in enumerate(parts):
        if number and not builder.is_broken:
            builder.break_off("compaction")
        take_steps(builder, items_of(part.get("steps")))
    trajectory, agent = parts[0], mapping_of(parts[0].get("agent"))
    extra = mapping_of(agent.get("extra"))
    parent = parent or string_of(extra.get("parent_session_id"))
    own_id = _own_id(trajectory, document)
    return Recording(
        run_id=f"{parent}/{own_id}" if parent and not own_id.startswith(parent) else own_id,
        task_id=parent or own_id,
        format="atif",
        source=document.source,
        turns=builder.turns(),
        model=_model(trajectory),
        prompt=builder.prompt,
        details={
            "schema_version": string_of(trajectory.get("schema_version")),
            "agent": string_of(agent.get("name")),
            "parts": len(parts),
            **({"parent_run": parent} if parent else {}),
        },
    )


def _continuations(document: LogDocument) -> Iterator[Mapping[str, Any] | Skipped]:
    """Yield the continuations of a trajectory: files beside it with its name and a number."""
    folder = document.parent
    if folder is not None:
        for name in _continuation_names(folder, document.name.removesuffix(".json")):
            yield _part_at(folder / name, document)


def _continuation_names(folder: Folder, stem: str) -> Iterator[str]:
    names = (f"{stem}.cont-{number}.json" for number in count(1))
    return takewhile(lambda name: is_own_file(folder / name, folder), names)


def _part_at(path: Folder, document: LogDocument) -> Mapping[str, Any] | Skipped:
    source = f"{document.source.removesuffix(document.name)}{path.name}"
    try:
        return whole_document(open_document(path, source=source))
    except InputFileError as error:
        return Skipped(source, str(error))


def _begins_with_atif(path: Folder) -> bool:
    try:
        return _is_atif(open_document(path).head)
    except InputFileError:
        return False


def _own_id(trajectory: Mapping[str, Any], document: LogDocument) -> str:
    named = string_of(trajectory.get("trajectory_id")) or string_of(trajectory.get("session_id"))
    return named or document.name.removesuffix(".json").removesuffix(".trajectory")


def _model(trajectory: Mapping[str, Any]) -> str:
    named = string_of(mapping_of(trajectory.get("agent")).get("model_name"))
    steps = items_of(trajectory.get("steps"))
    return named or next(filter(None, (string_of(step.get("model_name")) for step in steps)), "")
