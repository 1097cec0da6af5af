"""OpenHands completions: two requests of one task, and one of a model that takes no tool calls."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json


def block(text: str) -> list[dict[str, str]]:
    """Return content as a list of one block."""
    return [{"type": "text", "text": text}]


def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a native call."""
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": as_json(arguments).decode()}}


PROMPT = [
    {"content": block("You are an agent."), "role": "system"},
    {"content": block("<uploaded_files>\n/workspace/repo__1.0\n</uploaded_files>\nSolve it."), "role": "user"},
]
LOOK = {
    "content": block("Look."),
    "role": "assistant",
    "tool_calls": [call("c1", "execute_bash", command="cd pkg && ls")],
}
LISTED = (
    "cd pkg && ls\r\na.py\r\nb.py[Python Interpreter: /usr/bin/python]\n"
    "root@openhands-workspace:/workspace/repo__1.0/pkg # \n[Command finished with exit code 0]"
)
VIEW = {
    "role": "assistant",
    "tool_calls": [
        call("c2", "str_replace_editor", command="view", path="/workspace/repo__1.0/pkg/a.py", view_range=[1, 9])
    ],
}


def answer(id: str, tool: str, text: str) -> dict[str, Any]:
    """Return what a tool answered."""
    return {"content": block(text), "role": "tool", "tool_call_id": id, "name": tool}


def completion(messages: list[dict[str, Any]], message: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request and its response."""
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 30}}
    response = {"id": "r", "model": "maker/model-1", "choices": [{"message": message}], "usage": usage}
    return {"messages": messages, "response": response, "args": [], "kwargs": {}, "timestamp": 1.0, "cost": 0.1, **more}


FIRST = completion(PROMPT, LOOK)
LAST = completion(
    [
        *PROMPT,
        LOOK,
        answer("c1", "execute_bash", LISTED),
        VIEW,
        answer("c2", "str_replace_editor", "ERROR:\nno such file"),
    ],
    {"content": "Done.", "role": "assistant", "tool_calls": [call("c3", "finish")]},
)
TEXTUAL = completion(
    [
        {"content": "You are an agent.", "role": "system"},
        {"content": "Solve it.", "role": "user"},
        {
            "content": "Look.\n<function=execute_bash>\n<parameter=command>\nls\n</parameter>\n</function>",
            "role": "assistant",
        },
        {
            "content": "EXECUTION RESULT of [execute_bash]:\na.py\n[The command completed with exit code 3.]\n"
            "[Current working directory: /workspace]\n[Python interpreter: /usr/bin/python]",
            "role": "user",
        },
    ],
    {"content": "<function=finish>\n</function>", "role": "assistant"},
)

FILES = {
    "llm_completions/owner__repo-1/model-1733344700.25.json": as_json(FIRST),
    "llm_completions/owner__repo-1/model-1733344751.5.json": as_json(LAST),
    "llm_completions/owner__repo-2/model-1733344800.0.json": as_json(TEXTUAL),
}
