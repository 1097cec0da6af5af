"""Copilot CLI 1.0 (November 2026): a view, an edit and a command, with a compaction that runs during the edit."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def event(kind: str, **data: Any) -> dict[str, Any]:
    """Return an event."""
    return {"type": kind, "data": data, "id": kind, "timestamp": "2026-11-16T13:17:06.578Z", "parentId": None}


def asked(id: str, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return the events of a reply with one call."""
    usage = {"model": "claude-sonnet-4.5", "inputTokens": 2000, "outputTokens": 20, "cacheReadTokens": 100}
    call = {"toolCallId": id, "name": tool, "arguments": arguments, "type": "function"}
    return [
        event("session.usage_record", usage=usage),
        event("assistant.message", model="claude-sonnet-4.5", content="", toolRequests=[call]),
        event("tool.execution_start", toolCallId=id, toolName=tool, arguments=arguments),
    ]


START = event(
    "session.start",
    sessionId="p1",
    producer="copilot-agent",
    copilotVersion="1.0.102",
    selectedModel="claude-sonnet-4.5",
    context={"cwd": "/repo", "gitRoot": "/repo"},
)
EVENTS = [
    START,
    event("user.message", content="Mend a.py"),
    *asked("c1", "view", path="/repo/a.py", view_range=[2, 3]),
    event("tool.execution_complete", toolCallId="c1", success=True, result={"content": "x = 1\ny = 2\n"}),
    event("session.compaction_start", currentTokens=97_728, tokenLimit=100_000),
    *asked("c2", "edit", path="/repo/a.py", old_str="x = 1", new_str="x = 2"),
    event("tool.execution_complete", toolCallId="c2", success=True, result={"content": "File /repo/a.py updated."}),
    event(
        "session.compaction_complete",
        success=True,
        messagesRemoved=1,
        summaryContent="a.py was read",
        preCompactionTokens=97_728,
        postCompactionTokens=12_461,
    ),
    *asked("c3", "bash", command="python3 t.py"),
    event(
        "tool.execution_complete",
        toolCallId="c3",
        success=True,
        shellExecution={"exitCode": 1},
        result={"content": "AssertionError\n<shellId: 1 completed with exit code 1>"},
    ),
    event("assistant.message", model="claude-sonnet-4.5", content="Done.", toolRequests=[]),
]

FILES = {"p1/events.jsonl": as_lines(*EVENTS)}
