"""One session told in the shapes of many agents, so that what is odd about it can be tried with every one of them.

A session is a list of prompts, replies with calls, and compactions. Times may run backwards, and the results of a reply
may come in another order than its calls, or as lists of blocks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tests.vestige.formats.samples import as_json, as_lines

Line = dict[str, Any]
Kind = Literal["view", "edit", "shell"]
_START = datetime(2026, 11, 16, 12, tzinfo=UTC)
_USAGE = {"input_tokens": 2000, "output_tokens": 20}


@dataclass(frozen=True, slots=True)
class Did:
    """One call: a view of a whole file, an edit or a command."""

    kind: Kind
    target: str  # path, or the command
    output: str = ""
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True)
class Unusual:
    """A session and how it is told."""

    told: Sequence[str | tuple[Did, ...] | None]  # prompts, the calls of a reply, and None for a compaction
    root: str = "/repo"
    step_seconds: int = 1  # negative: the clock runs backwards
    reverses: bool = False  # the results of a reply in another order than its calls
    as_blocks: bool = False  # results as lists of blocks, where the format has them
    has_image: bool = False  # with a picture among them
    summary: str = ""  # of every compaction
    name: str = "s1"

    def numbered(self) -> Iterator[tuple[int, str, Any]]:
        """Yield the parts with their number and time."""
        for number, part in enumerate(self.told):
            yield number, (_START + timedelta(seconds=number * self.step_seconds)).isoformat(), part

    def answered(self, number: int, calls: Sequence[Did]) -> list[tuple[str, Did]]:
        """Return the results of a reply in the order in which they come."""
        pairs = [(f"c{number}-{place}", call) for place, call in enumerate(calls)]
        return pairs[::-1] if self.reverses else pairs

    def result(self, call: Did) -> Any:
        """Return the output of a call, as text or as blocks."""
        if not self.as_blocks:
            return call.output
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
        return [{"type": "text", "text": call.output}, *([image] if self.has_image else [])]


def _tool(
    call: Did, view: tuple[str, str], edit: tuple[str, str, str, str], shell: tuple[str, str]
) -> tuple[str, Line]:
    """Return the name and the arguments of a call in the words of an agent."""
    if call.kind == "view":
        return view[0], {view[1]: call.target}
    if call.kind == "edit":
        return edit[0], {edit[1]: call.target, edit[2]: call.old, edit[3]: call.new}
    return shell[0], {shell[1]: call.target}


def _claude_tool(call: Did) -> tuple[str, Line]:
    return _tool(call, ("Read", "file_path"), ("Edit", "file_path", "old_string", "new_string"), ("Bash", "command"))


def _numbered(text: str) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


def claude_code(one: Unusual) -> dict[str, bytes]:
    """Return a session of Claude Code 2.1."""
    lines: list[Line] = []
    parent = None

    def add(uuid: str, kind: str, at: str, **more: Any) -> None:
        nonlocal parent
        facts = {"sessionId": one.name, "isSidechain": False, "cwd": one.root, "version": "2.1.325", "timestamp": at}
        lines.append({"parentUuid": parent, "type": kind, "uuid": uuid, **facts, **more})
        parent = uuid

    for number, at, part in one.numbered():
        if part is None:
            add(f"b{number}", "system", at, subtype="compact_boundary", logicalParentUuid=parent, content="")
            add(f"k{number}", "user", at, isCompactSummary=True, message={"role": "user", "content": one.summary})
        elif isinstance(part, str):
            add(f"u{number}", "user", at, message={"role": "user", "content": part})
        else:
            names = [_claude_tool(call) for call in part]
            asked = [
                {"type": "tool_use", "id": f"c{number}-{place}", "name": name, "input": given}
                for place, (name, given) in enumerate(names)
            ]
            reply = {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": _USAGE}
            for place, block in enumerate(asked):
                add(f"a{number}-{place}", "assistant", at, message={**reply, "content": [block]})
            for id, call in one.answered(number, part):
                shown = one.result(Did(call.kind, "", _numbered(call.output)) if call.kind == "view" else call)
                result = {"type": "tool_result", "tool_use_id": id, "content": shown}
                add(f"r{id}", "user", at, message={"role": "user", "content": [result]})
    return {f"{one.name}.jsonl": as_lines(*lines)}


def stream_json(one: Unusual) -> dict[str, bytes]:
    """Return what `claude -p --output-format stream-json` prints."""
    start = {
        "type": "system",
        "subtype": "init",
        "session_id": one.name,
        "cwd": one.root,
        "model": "m",
        "tools": ["Read"],
    }
    lines: list[Line] = [{**start, "claude_code_version": "2.1.325"}]

    def add(kind: str, id: str, *content: Line) -> None:
        message = {"id": id, "role": kind, "content": list(content), "usage": _USAGE}
        lines.append({"type": kind, "session_id": one.name, "parent_tool_use_id": None, "message": message})

    for number, _, part in one.numbered():
        if part is None:
            lines.append({"type": "system", "subtype": "compact_boundary", "session_id": one.name})
        elif isinstance(part, str):
            add("user", f"u{number}", {"type": "text", "text": part})
        else:
            for place, call in enumerate(part):
                name, given = _claude_tool(call)
                add(
                    "assistant",
                    f"m{number}",
                    {"type": "tool_use", "id": f"c{number}-{place}", "name": name, "input": given},
                )
            for id, call in one.answered(number, part):
                shown = one.result(Did(call.kind, "", _numbered(call.output)) if call.kind == "view" else call)
                add("user", f"r{id}", {"type": "tool_result", "tool_use_id": id, "content": shown})
    return {f"{one.name}.stream.jsonl": as_lines(*lines)}


def codex(one: Unusual) -> dict[str, bytes]:
    """Return a rollout of Codex; views are commands, edits are patches."""
    lines: list[Line] = []

    def add(kind: str, at: str, **payload: Any) -> None:
        lines.append({"timestamp": at, "type": kind, "payload": payload})

    add(
        "session_meta",
        "2026-11-16T12:00:00Z",
        id=one.name,
        cwd=one.root,
        originator="codex_cli_rs",
        cli_version="0.166.0",
    )
    add("turn_context", "2026-11-16T12:00:00Z", cwd=one.root, model="gpt-5.5", approval_policy="never")
    for number, at, part in one.numbered():
        if part is None:
            add("compacted", at, message=one.summary, replacement_history=[])
        elif isinstance(part, str):
            add("response_item", at, type="message", role="user", content=[{"type": "input_text", "text": part}])
        else:
            for place, call in enumerate(part):
                id, command = f"c{number}-{place}", call.target
                if call.kind == "edit":
                    change = f"*** Update File: {call.target}\n@@\n-{call.old}\n+{call.new}\n"
                    patch = f"*** Begin Patch\n{change}*** End Patch\n"
                    add("response_item", at, type="custom_tool_call", call_id=id, name="apply_patch", input=patch)
                    continue
                if call.kind == "view":
                    command = f"Get-Content '{call.target}'" if "\\" in call.target else f"cat '{call.target}'"
                given = json.dumps({"command": ["bash", "-lc", command]})
                add("response_item", at, type="function_call", call_id=id, name="shell", arguments=given)
            for id, call in one.answered(number, part):
                kind = "custom_tool_call_output" if call.kind == "edit" else "function_call_output"
                output = json.dumps({"output": call.output or "Success.", "metadata": {"exit_code": 0}})
                add("response_item", at, type=kind, call_id=id, output=output)
    return {f"rollout-{one.name}.jsonl": as_lines(*lines)}


def _gemini_calls(one: Unusual, number: int, part: Sequence[Did]) -> list[tuple[str, str, Line, Did]]:
    edit = ("replace", "file_path", "old_string", "new_string")
    named = {
        id: _tool(call, ("read_file", "file_path"), edit, ("run_shell_command", "command"))
        for id, call in one.answered(number, part)
    }
    return [(id, *named[id], call) for id, call in one.answered(number, part)]


def gemini_cli(one: Unusual) -> dict[str, bytes]:
    """Return a session of Gemini CLI as JSON lines."""
    context = f"<session_context>\n- **Workspace Directories:**\n  - {one.root}\n</session_context>"
    lines: list[Line] = [
        {"sessionId": one.name, "projectHash": "p", "kind": "main", "startTime": "2026-11-16T12:00:00Z"},
        {"id": "u", "type": "user", "content": [{"text": context}]},
    ]
    for number, at, part in one.numbered():
        if part is None:
            snapshot = {
                "id": f"k{number}",
                "type": "user",
                "content": [{"text": f"<state_snapshot>{one.summary}</state_snapshot>"}],
            }
            lines.append({"$set": {"messages": [snapshot] if one.summary else []}})
        elif isinstance(part, str):
            lines.append({"id": f"u{number}", "timestamp": at, "type": "user", "content": [{"text": part}]})
        else:
            calls = [
                {
                    "id": id,
                    "name": name,
                    "args": given,
                    "status": "success",
                    "result": [{"functionResponse": {"id": id, "name": name, "response": {"output": call.output}}}],
                }
                for id, name, given, call in _gemini_calls(one, number, part)
            ]
            tokens = {"input": 2000, "output": 20}
            reply = {"id": f"m{number}", "timestamp": at, "type": "gemini", "content": "", "model": "gemini-2.5-pro"}
            lines.append({**reply, "tokens": tokens, "toolCalls": calls})
    return {f"session-{one.name}.jsonl": as_lines(*lines)}


def qwen_code(one: Unusual) -> dict[str, bytes]:
    """Return a session of Qwen Code."""
    lines: list[Line] = []

    def add(kind: str, at: str, **more: Any) -> None:
        parent = lines[-1]["uuid"] if lines else None
        facts = {"sessionId": one.name, "cwd": one.root, "version": "0.24.4", "timestamp": at}
        lines.append({"uuid": f"q{len(lines)}", "parentUuid": parent, **facts, "type": kind, **more})

    for number, at, part in one.numbered():
        if part is None:
            told = [{"role": "user", "parts": [{"text": one.summary}]}] if one.summary else []
            payload = {"info": {"originalTokenCount": 9000, "newTokenCount": 0}, "compressedHistory": told}
            add("system", at, subtype="chat_compression", systemPayload=payload)
        elif isinstance(part, str):
            add("user", at, message={"role": "user", "parts": [{"text": part}]}, provenance="real_user")
        else:
            calls = _gemini_calls(one, number, part)
            edit = {"name": "edit"}
            asked = [
                {"functionCall": {"id": id, "name": name, "args": given} | (edit if call.kind == "edit" else {})}
                for id, name, given, call in sorted(calls)
            ]
            usage = {"promptTokenCount": 2000, "candidatesTokenCount": 20}
            add("assistant", at, message={"role": "model", "parts": asked}, model="qwen3", usageMetadata=usage)
            for id, _, _, call in calls:
                response = {"functionResponse": {"id": id, "name": "x", "response": {"output": call.output}}}
                told_back = {"callId": id, "status": "success"}
                add("tool_result", at, message={"role": "user", "parts": [response]}, toolCallResult=told_back)
    return {f"{one.name}.qwen.jsonl": as_lines(*lines)}


def opencode(one: Unusual) -> dict[str, bytes]:
    """Return an export of opencode."""
    edit, view = ("edit", "filePath", "oldString", "newString"), ("read", "filePath")
    messages: list[Line] = []
    for number, _, part in one.numbered():
        if part is None:
            messages.append({"info": {"role": "user"}, "parts": [{"type": "compaction", "auto": True}]})
            parts = [{"type": "text", "text": one.summary}] if one.summary else []
            messages.append({"info": {"role": "assistant", "summary": True, "mode": "compaction"}, "parts": parts})
        elif isinstance(part, str):
            messages.append({"info": {"role": "user"}, "parts": [{"type": "text", "text": part}]})
        else:
            parts = []
            for id, call in one.answered(number, part):
                name, given = _tool(call, view, edit, ("bash", "command"))
                state = {"status": "completed", "input": given, "output": call.output, "metadata": {}}
                parts.append({"type": "tool", "tool": name, "callID": id, "state": state})
            tokens = {"input": 1000, "output": 20, "cache": {"read": 1000, "write": 0}}
            messages.append({"info": {"role": "assistant", "modelID": "m", "tokens": tokens}, "parts": parts})
    info = {"id": f"ses_{one.name}", "slug": "a", "projectID": "p", "directory": one.root, "version": "1.18.33"}
    return {f"{one.name}.opencode.json": as_json({"info": info, "messages": messages})}


def copilot_cli(one: Unusual) -> dict[str, bytes]:
    """Return the events of Copilot CLI."""
    edit, view = ("edit", "path", "old_str", "new_str"), ("view", "path")
    lines: list[Line] = []

    def add(kind: str, at: str, **data: Any) -> None:
        lines.append({"type": kind, "data": data, "id": f"e{len(lines)}", "timestamp": at, "parentId": None})

    about = {"producer": "copilot-agent", "copilotVersion": "1.0.102", "selectedModel": "m"}
    add("session.start", "2026-11-16T12:00:00Z", sessionId=one.name, context={"cwd": one.root}, **about)
    for number, at, part in one.numbered():
        if part is None:
            add("session.compaction_start", at, currentTokens=9000, tokenLimit=10_000)
            counts = {"messagesRemoved": 0, "preCompactionTokens": 9000, "postCompactionTokens": 0}
            add("session.compaction_complete", at, success=True, summaryContent=one.summary, **counts)
        elif isinstance(part, str):
            add("user.message", at, content=part)
        else:
            named = {
                f"c{number}-{place}": _tool(call, view, edit, ("bash", "command")) for place, call in enumerate(part)
            }
            asked = [
                {"toolCallId": id, "name": name, "arguments": given, "type": "function"}
                for id, (name, given) in named.items()
            ]
            add("assistant.message", at, model="m", content="", toolRequests=asked)
            for id, (name, given) in named.items():
                add("tool.execution_start", at, toolCallId=id, toolName=name, arguments=given)
            for id, call in one.answered(number, part):
                add("tool.execution_complete", at, toolCallId=id, success=True, result={"content": call.output})
    return {f"{one.name}/events.jsonl": as_lines(*lines)}


def goose(one: Unusual) -> dict[str, bytes]:
    """Return an export of goose."""
    last = max((number for number, _, part in one.numbered() if part is None), default=-1)
    messages: list[Line] = []

    def add(number: int, role: str, *blocks: Line) -> None:
        seen = {"userVisible": True, "agentVisible": number > last}
        messages.append({"role": role, "content": list(blocks), "metadata": seen})

    for number, _, part in one.numbered():
        if part is None:
            add(number + (number == last), "user", {"type": "text", "text": one.summary})
        elif isinstance(part, str):
            add(number, "user", {"type": "text", "text": part})
        else:
            asked = []
            for place, call in enumerate(part):
                command = f"cat {call.target}" if call.kind == "view" else call.target
                given = {"path": call.target, "before": call.old, "after": call.new}
                name, told = ("edit", given) if call.kind == "edit" else ("developer__shell", {"command": command})
                value = {"status": "success", "value": {"name": name, "arguments": told}}
                asked.append({"type": "toolRequest", "id": f"c{number}-{place}", "toolCall": value})
            add(number, "assistant", *asked)
            results = []
            for id, call in one.answered(number, part):
                content = one.result(call) if one.as_blocks else [{"type": "text", "text": call.output}]
                value = {"status": "success", "value": {"content": content, "isError": False}}
                results.append({"type": "toolResponse", "id": id, "toolResult": value})
            add(number, "user", *results)
    export = {"id": f"g{one.name}", "working_dir": one.root, "goose_mode": "auto", "conversation": messages}
    return {f"{one.name}.goose.json": as_json(export)}


def kimi_code(one: Unusual) -> dict[str, bytes]:
    """Return a session of Kimi Code."""
    edit, view = ("Edit", "path", "old_string", "new_string"), ("Read", "path")
    lines: list[Line] = [{"type": "metadata", "protocol_version": "1.5", "created_at": 1}]
    summary = {"compactedCount": 0, "tokensBefore": 9000, "tokensAfter": 0, "keptUserMessageCount": 0}
    for number, _, part in one.numbered():
        time = 10_000 + number * one.step_seconds

        def event(kind: str, time: int = time, **more: Any) -> Line:
            told = {"type": kind, **more}
            return {"type": "context.append_loop_event", "agentId": "main", "event": told, "time": time}

        if part is None:
            told = {"summary": one.summary, "contextSummary": one.summary}
            lines.append({"type": "context.apply_compaction", **told, **summary})
        elif isinstance(part, str):
            message = {"role": "user", "content": [{"type": "text", "text": part}], "origin": {"kind": "user"}}
            lines.append({"type": "context.append_message", "agentId": "main", "message": message, "time": time})
        else:
            lines.append(event("step.begin", step=number))
            for place, call in enumerate(part):
                name, given = _tool(call, view, edit, ("Bash", "command"))
                lines.append(event("tool.call", toolCallId=f"c{number}-{place}", name=name, args=given))
            for id, call in one.answered(number, part):
                lines.append(event("tool.result", toolCallId=id, result={"output": call.output}))
            lines.append(event("step.end", usage={"inputOther": 2000, "output": 20}))
    state = {"id": f"session_{one.name}", "version": 2, "cwd": one.root}
    home = f"session_{one.name}"
    return {f"{home}/state.json": as_json(state), f"{home}/agents/main/wire.jsonl": as_lines(*lines)}


def _blocks(one: Unusual, tool: Callable[[Did], tuple[str, Line]]) -> list[Line]:
    """Return messages of a role and blocks, as several agents keep them."""
    messages: list[Line] = []
    for number, _, part in one.numbered():
        if isinstance(part, str):
            messages.append({"role": "user", "content": [{"type": "text", "text": part}]})
        elif part is not None:
            named = [tool(call) for call in part]
            asked = [
                {"type": "tool_use", "id": f"c{number}-{place}", "name": name, "input": given}
                for place, (name, given) in enumerate(named)
            ]
            messages.append({"role": "assistant", "content": asked})
            told = [
                {"type": "tool_result", "tool_use_id": id, "content": one.result(call)}
                for id, call in one.answered(number, part)
            ]
            messages.append({"role": "user", "content": told})
    return [*messages, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def droid(one: Unusual) -> dict[str, bytes]:
    """Return a session of Droid."""
    tools = ("Read", "file_path"), ("Edit", "file_path", "old_str", "new_str"), ("Execute", "command")
    messages = _blocks(one, lambda call: _tool(call, *tools))
    start = {"type": "session_start", "id": one.name, "cwd": one.root, "version": "0.81.0"}
    lines = [{"type": "message", "id": f"m{place}", "message": told} for place, told in enumerate(messages)]
    return {f"{one.name}.droid.jsonl": as_lines(start, *lines)}


def amp(one: Unusual) -> dict[str, bytes]:
    """Return a thread of Amp."""
    tools = ("Read", "path"), ("edit_file", "path", "old_str", "new_str"), ("Bash", "cmd")
    messages = _blocks(one, lambda call: _tool(call, *tools))
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                content = block.pop("content")
                text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                block["toolUseID"] = block.pop("tool_use_id")
                block["run"] = {"status": "done", "result": {"output": text, "content": _numbered(text), "exitCode": 0}}
    env = {
        "initial": {"trees": [{"uri": f"file://{one.root}"}], "platform": {"os": "linux", "clientVersion": "0.0.1790"}}
    }
    return {f"threads/T-{one.name}.json": as_json({"v": 1, "id": f"T-{one.name}", "env": env, "messages": messages})}


def openhands_events(one: Unusual) -> dict[str, bytes]:
    """Return the events of the software agent SDK."""
    history: list[Line] = [{"id": "0", "kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"text": "x"}}]

    def add(kind: str, at: str, source: str = "agent", **more: Any) -> str:
        id = str(len(history))
        history.append({"id": id, "timestamp": at, "source": source, **more, "kind": kind})
        return id

    for number, at, part in one.numbered():
        if part is None:
            add("Condensation", at, "environment", forgotten_event_ids=[], summary=one.summary)
        elif isinstance(part, str):
            content = [{"type": "text", "text": part}]
            add("MessageEvent", at, "user", llm_message={"role": "user", "content": content})
        else:
            actions = {}
            for place, call in enumerate(part):
                name, given = "file_editor", {"command": "view", "path": call.target, "kind": "FileEditorAction"}
                if call.kind == "edit":
                    given |= {"command": "str_replace", "old_str": call.old, "new_str": call.new}
                elif call.kind == "shell":
                    name, given = "terminal", {"command": call.target, "is_input": False, "kind": "TerminalAction"}
                id = f"c{number}-{place}"
                asked = {
                    "thought": [],
                    "action": given,
                    "tool_name": name,
                    "tool_call_id": id,
                    "llm_response_id": f"r{number}",
                }
                call_of = {"id": id, "name": name, "arguments": "{}"}
                actions[id] = (add("ActionEvent", at, **asked, tool_call=call_of), name)
            for id, call in one.answered(number, part):
                text = f"Here's the result of running `cat -n` on {call.target}:\n{_cat(call.output)}\n"
                shown = {"view": text, "edit": f"The file {call.target} has been edited.", "shell": call.output}[
                    call.kind
                ]
                seen = {"content": [{"type": "text", "text": shown}], "is_error": False, "kind": "AnyObservation"}
                action, name = actions[id]
                about = {"tool_name": name, "tool_call_id": id, "observation": seen, "action_id": action}
                add("ObservationEvent", at, "environment", **about)
    run = {"instance_id": one.name, "test_result": {"git_patch": ""}, "history": history, "metadata": {}, "error": None}
    return {f"{one.name}.openhands.jsonl": as_lines(run)}


def _cat(text: str) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(text.split("\n"), 1))


def atif(one: Unusual) -> dict[str, bytes]:
    """Return a trajectory in ATIF 1.5; views are commands."""
    steps: list[Line] = []
    for number, at, part in one.numbered():
        step = {"step_id": len(steps) + 1, "timestamp": at}
        if part is None:
            steps.append({**step, "source": "system", "message": one.summary})
        elif isinstance(part, str):
            steps.append({**step, "source": "user", "message": part})
        else:
            asked = []
            for place, call in enumerate(part):
                name, given = _claude_tool(call)
                asked.append({"tool_call_id": f"c{number}-{place}", "function_name": name, "arguments": given})
            results = [
                {"source_call_id": id, "content": _numbered(call.output) if call.kind == "view" else call.output}
                for id, call in one.answered(number, part)
            ]
            told = {"source": "agent", "message": "", "tool_calls": asked, "observation": {"results": results}}
            steps.append({**step, **told, "metrics": {"prompt_tokens": 2000, "completion_tokens": 20}})
    agent = {"name": "claude-code", "version": "2.1.325", "model_name": "m"}
    run = {"schema_version": "ATIF-v1.5", "session_id": one.name, "agent": agent, "steps": steps}
    return {f"{one.name}.atif.json": as_json(run)}


SHAPES: dict[str, Callable[[Unusual], dict[str, bytes]]] = {
    "amp": amp,
    "atif": atif,
    "claude-code": claude_code,
    "codex": codex,
    "copilot-cli": copilot_cli,
    "droid": droid,
    "gemini-cli": gemini_cli,
    "goose": goose,
    "kimi-code": kimi_code,
    "opencode": opencode,
    "openhands-events": openhands_events,
    "qwen-code": qwen_code,
    "stream-json": stream_json,
}
