"""The steps of an ATIF trajectory, added to a run in the making one after another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eirkit.vestige.formats.building import RunBuilder, count_of, items_of, mapping_of, string_of
from eirkit.vestige.formats.gemini_outputs import shell_result
from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.trajectory import Usage

Step = Mapping[str, Any]
_AskedCall = tuple[str, str, Mapping[str, Any]]

_SUMMARISED = re.compile(r"context summari[sz]ation|summari[sz]ed|compact(?:ed|ion)", re.IGNORECASE)
_REFUSED = "Previous response had parsing errors"
_TERMINAL_TOOLS = frozenset({"bash_command", "terminal", "exec_command"})
_SCREEN_BYTES = 1 << 22  # of a reply that may spell its commands as JSON


def take_steps(builder: RunBuilder, steps: Iterable[Step]) -> None:
    """Add the steps of one trajectory."""
    for step in steps:
        source, is_copy = step.get("source"), step.get("is_copied_context") is True
        if is_copy:
            _take_copy(builder, step)
        elif source == "agent":
            _take_reply(builder, step)
        elif source == "system" and _is_break(step):
            builder.break_off(_kind(step))
            builder.carry(_summary(step))
        elif builder.is_broken:
            builder.carry(text_of(step.get("message")))
        else:
            builder.hear(text_of(step.get("message")))


def _take_copy(builder: RunBuilder, step: Step) -> None:
    text = text_of(step.get("message"))
    if builder.is_broken:
        builder.carry(text)
    else:
        builder.hear(text)


def _is_break(step: Step) -> bool:
    if mapping_of(mapping_of(step.get("extra")).get("context_management")):
        return True
    refers = any(result.get("subagent_trajectory_ref") for result in _results(step))
    return refers and _SUMMARISED.search(text_of(step.get("message"))) is not None


def _kind(step: Step) -> Any:
    managed = mapping_of(mapping_of(step.get("extra")).get("context_management"))
    return "clear" if managed.get("type") in ("clear", "reset") else "compaction"


def _summary(step: Step) -> str:
    """Return a summary that the step itself holds; one in the message alone only says that there was one."""
    managed = mapping_of(mapping_of(step.get("extra")).get("context_management"))
    return string_of(managed.get("summary")) or "\n".join(text_of(result.get("content")) for result in _results(step))


def _take_reply(builder: RunBuilder, step: Step) -> None:
    text = text_of(step.get("message"))
    results = _results(step)
    asked = _asked(step) or _spelt_out(text)
    builder.begin()
    builder.say(text)
    if step.get("llm_call_count") != 0:
        builder.use(_usage(mapping_of(step.get("metrics"))))
    if not asked and any(text_of(result.get("content")).startswith(_REFUSED) for result in results):
        builder.reject()
    calls = _joined(asked, results)
    for id, _, _ in calls:
        builder.release(id)  # ids need to be unique in their step alone
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
    """Give what is typed into a terminal the one name and argument that shell commands have."""
    typed = next((arguments[key] for key in ("command", "keystrokes", "cmd") if key in arguments), None)
    if tool in _TERMINAL_TOOLS and isinstance(typed, str):
        return "bash", {**arguments, "command": typed.rstrip("\n")}
    return shell_name(tool, arguments), arguments


def _spelt_out(text: str) -> list[_AskedCall]:
    """Return the commands of a reply that is itself the JSON which a terminal agent was told to write."""
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
            told = shell_result(output)  # the steps of Gemini CLI hold its outputs as its sessions do
            builder.answer(call, told.text, failed=failed, exit_code=told.exit_code)
        else:
            builder.answer_last(output, failed=failed)


def _results(step: Step) -> list[Step]:
    return items_of(mapping_of(step.get("observation")).get("results"))


def _usage(metrics: Mapping[str, Any]) -> Usage | None:
    if "prompt_tokens" not in metrics and "completion_tokens" not in metrics:
        return None
    prompt = count_of(metrics.get("prompt_tokens"))
    return Usage(
        prompt, count_of(metrics.get("completion_tokens")), min(prompt, count_of(metrics.get("cached_tokens")))
    )
