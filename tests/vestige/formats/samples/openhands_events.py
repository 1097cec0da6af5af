"""OpenHands events: a run with parallel calls, a condensation, a call nobody understood and an error; old pairs; and a
run of the software agent SDK."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json, as_lines

PATCH = "diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
PROMPT = "<uploaded_files>\n/workspace/repo__1.0\n</uploaded_files>\nSolve it."


def response(id: str, tool: str, prompt_tokens: int) -> dict[str, Any]:
    """Return what both an action and its observation repeat of the response they come from."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 3}
    return {"function_name": tool, "tool_call_id": id, "model_response": {"id": id, "usage": usage, "choices": []}}


def event(id: int, source: str, **facts: Any) -> dict[str, Any]:
    """Return an event."""
    return {"id": id, "timestamp": "2025-01-01T00:00:00", "source": source, "message": "", **facts}


FIRST, SECOND, THIRD = (
    response("r1", "execute_bash", 100),
    response("r2", "str_replace_editor", 200),
    response("r3", "finish", 50),
)
VIEWED = {**FIRST, "function_name": "str_replace_editor", "tool_call_id": "another call of the same response"}
PATH = "/workspace/repo__1.0/pkg/a.py"
HISTORY = [
    event(0, "agent", action="system", args={"content": "You are an agent.", "tools": []}),
    event(1, "user", action="message", args={"content": PROMPT}),
    event(2, "user", action="recall", args={"query": "q"}),
    event(3, "environment", observation="recall", cause=2, content="", extras={}),
    event(4, "agent", action="run", tool_call_metadata=FIRST, args={"command": "cd pkg", "thought": "Look."}),
    event(
        5, "agent", action="read", tool_call_metadata=VIEWED, args={"path": PATH, "view_range": [1, 9], "thought": ""}
    ),
    event(6, "agent", observation="read", cause=5, content="1\tx = 1", tool_call_metadata=VIEWED, extras={}),
    event(
        7,
        "agent",
        observation="run",
        cause=4,
        content="",
        tool_call_metadata=FIRST,
        extras={"metadata": {"exit_code": 0, "working_dir": "/workspace/repo__1.0/pkg"}},
    ),
    event(8, "agent", observation="error", content="Parameter 'command' is missing.", extras={}),
    event(9, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"}),
    event(10, "agent", action="condensation", args={"forgotten_event_ids": [4, 5], "summary": "Looked at a.py."}),
    event(
        11,
        "agent",
        action="edit",
        tool_call_metadata=SECOND,
        args={
            "path": PATH,
            "command": "str_replace",
            "file_text": None,
            "old_str": "x = 1",
            "new_str": "x = 2",
            "start": 1,
            "end": -1,
            "thought": "Change.",
        },
    ),
    event(12, "agent", observation="edit", cause=11, content="ERROR:\nno", tool_call_metadata=SECOND, extras={}),
    event(13, "agent", action="finish", tool_call_metadata=THIRD, args={"final_thought": "done", "thought": ""}),
]


def run(task: str, history: list[Any], **more: Any) -> dict[str, Any]:
    """Return one line of an evaluation's output."""
    return {
        "instance_id": task,
        "test_result": {"git_patch": PATCH},
        "instruction": PROMPT,
        "metadata": {"llm_config": {"model": "maker/model-1"}},
        "history": history,
        "metrics": {"token_usages": [{"response_id": "r1", "prompt_tokens": 100, "completion_tokens": 3}]},
        "error": None,
        **more,
    }


PAIRS = [
    [
        {"source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."}},
        {"source": "agent", "observation": "run", "content": "a.py", "extras": {"exit_code": 2}},
    ],
    [{"source": "agent", "action": "message", "args": {"content": "Done."}}, {"source": "user", "observation": "null"}],
]


def sdk_event(id: str, kind: str, source: str = "agent", **facts: Any) -> dict[str, Any]:
    """Return an event of the software agent SDK."""
    return {"id": id, "timestamp": "2026-01-01T00:00:00", "source": source, **facts, "kind": kind}


def sdk_action(id: str, response: str, tool: str, action: dict[str, Any] | None, thought: str = "") -> dict[str, Any]:
    """Return an action; the ids of calls begin anew with every response, as some servers have it."""
    asked = {"id": "call_0", "name": tool, "arguments": '{"command": "as the model wrote it"}', "origin": "completion"}
    said = [{"type": "text", "text": thought}] if thought else []
    told = {"thought": said, "action": action, "tool_name": tool, "tool_call_id": f"{response}-{id}"}
    return sdk_event(id, "ActionEvent", **told, tool_call=asked, llm_response_id=response)


def sdk_answer(id: str, action: str, tool: str, text: str, **facts: Any) -> dict[str, Any]:
    """Return an observation."""
    seen = {"content": [{"type": "text", "text": text}], "is_error": False, **facts, "kind": "AnyObservation"}
    about = {"tool_name": tool, "tool_call_id": "any", "observation": seen, "action_id": action}
    return sdk_event(id, "ObservationEvent", "environment", **about)


def _terminal(command: str, **facts: Any) -> dict[str, Any]:
    return {"command": command, "is_input": False, "timeout": None, **facts, "kind": "TerminalAction"}


def _state(exit_code: int) -> dict[str, Any]:
    return {"exit_code": exit_code, "metadata": {"exit_code": exit_code, "working_dir": "/workspace/repo__1.0/pkg"}}


SDK_HISTORY = [
    sdk_event("0", "SystemPromptEvent", system_prompt={"type": "text", "text": "You are an agent."}, tools=[]),
    sdk_event("1", "MessageEvent", "user", llm_message={"role": "user", "content": [{"type": "text", "text": PROMPT}]}),
    sdk_action("2", "r1", "terminal", _terminal("cd pkg && cat a.py"), "Look."),
    sdk_action("3", "r1", "file_editor", {"command": "view", "path": PATH, "kind": "FileEditorAction"}),
    sdk_answer("4", "3", "file_editor", f"Here's the result of running `cat -n` on {PATH}:\n     1\tx = 1\n"),
    sdk_answer("5", "2", "terminal", "x = 1\n", **_state(0)),
    sdk_action("6", "r2", "terminal", None),
    sdk_event("7", "AgentErrorEvent", tool_name="terminal", tool_call_id="r2-6", error="No such parameter."),
    sdk_action("8", "r3", "terminal", _terminal("rm a.py")),
    sdk_event("9", "UserRejectObservation", "environment", tool_call_id="r3-8", rejection_reason="No.", action_id="8"),
    sdk_event("10", "Condensation", "environment", forgotten_event_ids=["2"], summary="Looked at a.py."),
    sdk_action(
        "11",
        "r4",
        "file_editor",
        {"command": "str_replace", "path": PATH, "old_str": "x = 1", "new_str": "x = 2", "kind": "FileEditorAction"},
    ),
    sdk_answer("12", "11", "file_editor", f"The file {PATH} has been edited."),
    sdk_action("13", "r5", "terminal", _terminal("sed -i s/2/3/ a.py; false")),
    sdk_answer("14", "13", "terminal", "", **_state(1)),
    sdk_action("15", "r6", "terminal", _terminal("y", is_input=True)),
    sdk_answer("16", "15", "terminal", "", **_state(-1)),
    sdk_event(
        "17",
        "MessageEvent",
        llm_message={"role": "assistant", "content": [{"type": "text", "text": "Done?"}]},
        llm_response_id="r7",
    ),
    sdk_event("18", "ConversationStateUpdateEvent", "environment", key="execution_status", value="finished"),
    sdk_action("19", "r8", "finish", {"message": "done", "kind": "FinishAction"}),
]
SDK_RUN = {
    "instance_id": "owner__repo-3",
    "attempt": 1,
    "test_result": {"git_patch": PATCH},
    "instruction": PROMPT,
    "metadata": {"llm": {"model": "maker/model-2"}, "dataset": "d"},
    "history": SDK_HISTORY,
    "metrics": {"token_usages": [{"model": "m", "response_id": "r1", "prompt_tokens": 9, "completion_tokens": 3}]},
    "error": None,
}
STATE = {
    "id": "0b1c",
    "agent": {"kind": "Agent", "llm": {"model": "maker/model-2"}},
    "workspace": {"kind": "LocalWorkspace", "working_dir": "/home/u/p"},
    "execution_status": "finished",
    "stats": {"usage_to_metrics": {"agent": SDK_RUN["metrics"]}},
}
EVENT_FILES = {
    f"conversations/0b1c/events/event-{number:05d}-0b1c0000-{number:04d}.json": as_json(event)
    for number, event in enumerate(SDK_HISTORY)
}

FILES = {
    "output.jsonl": as_lines(
        run("owner__repo-1", HISTORY, report={"resolved": True}),
        run("owner__repo-2", PAIRS, error="RuntimeError: limit"),
    ),
    "trajectory.json": as_json(HISTORY),
    "sdk.jsonl": as_lines(SDK_RUN),
    "sdk-events.json": as_json(SDK_HISTORY),
    "conversations/0b1c/base_state.json": as_json(STATE),
    **EVENT_FILES,
}
BESIDE = frozenset(EVENT_FILES)
