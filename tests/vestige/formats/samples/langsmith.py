"""LangSmith (2026): runs of a trace, after the published fields; messages as LangChain and OpenAI log them."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def run(id: str, kind: str, name: str, start: int, inputs: Any, outputs: Any, **more: Any) -> dict[str, Any]:
    """Return an exported run."""
    own = {"id": id, "name": name, "run_type": kind, "inputs": inputs, "outputs": outputs, "trace_id": "t1"}
    when = {"start_time": f"2026-11-16T13:17:{start:02d}.000000", "dotted_order": f"{start}Z{id}", "error": None}
    return {**own, **when, "parent_run_id": None if id == "t1" else "t1", "status": "success", **more}


def message(kind: str, **kwargs: Any) -> dict[str, Any]:
    """Return a message as LangChain serializes it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


COUNTS = {
    "prompt_tokens": 2000,
    "completion_tokens": 20,
    "total_tokens": 2020,
    "prompt_token_details": {"cache_read": 100},
}
EXTRA = {"metadata": {"ls_model_name": "gpt-5", "ls_provider": "openai"}}
ASKED = message("HumanMessage", content="Mend a.py", type="human")
CAT = {"name": "bash", "args": {"command": "cat a.py"}, "id": "c1", "type": "tool_call"}
FIRST = message("AIMessage", content="", type="ai", tool_calls=[CAT])
SHOWN = message("ToolMessage", content="x = 1", type="tool", tool_call_id="c1")
EDIT = '{"path": "a.py", "old_str": "x = 1", "new_str": "x = 2"}'
SECOND = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c2", "function": {"name": "edit", "arguments": EDIT}}],
}
RUNS = [
    run("t1", "chain", "agent", 0, {"input": "Mend a.py"}, {"output": "Done."}),
    run(
        "r1",
        "llm",
        "ChatOpenAI",
        1,
        {"messages": [[ASKED]]},
        {"generations": [[{"message": FIRST}]]},
        extra=EXTRA,
        **COUNTS,
    ),
    run(
        "r2",
        "tool",
        "bash",
        2,
        {"input": "{'command': 'cat a.py'}"},
        {"output": {"content": "x = 1", "tool_call_id": "c1"}},
    ),
    run(
        "r3",
        "llm",
        "ChatOpenAI",
        3,
        {"messages": [[ASKED, FIRST, SHOWN]]},
        {"choices": [{"message": SECOND}]},
        extra=EXTRA,
    ),
    run("r4", "tool", "edit", 4, {"input": EDIT}, {"output": "Edited."}),
    run(
        "r5",
        "llm",
        "ChatOpenAI",
        5,
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "Done."}]},
        extra=EXTRA,
    ),
]

FILES = {"runs.jsonl": as_lines(*RUNS)}
