"""A scripted model server on loopback that speaks the four request shapes of today's agents.

Every request is recorded as it was received, which is the truth about what the context held. A request of the main
agent gets the next step of the script; one for a summary gets the summary; any other, such as one for a title, a short
text.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, Any]  # the tool's name, and its arguments: an object, or the text of a custom tool

SUMMARY = (
    "<state_snapshot><overall_goal>Mend operation_7 in calc.py.</overall_goal>"
    "<key_knowledge>calc.py was edited once; test_calc.py still fails.</key_knowledge></state_snapshot>"
)
_ASKS = re.compile(
    r"CONTEXT CHECKPOINT COMPACTION|compaction_trigger|create a detailed summary|detailed prompt for continuing|"
    r"anchored summary|Create a handoff summary|[Ss]ummarize (?:the|this) conversation|"
    r"generate a (?:new )?<state_snapshot>"
)
_SUMMARIZES = re.compile(r"state_snapshot|compact|summar", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the scripted model; `usage` is the number of prompt tokens it claims."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: int = 2_000


@dataclass
class Script:
    """The replies that are still to be given, and the requests that came."""

    replies: Sequence[Reply]
    fewest_tools: int = 1  # of a request of the main agent
    summary_usage: int = 2_000
    summary: str = SUMMARY
    requests: list[dict[str, Any]] = field(default_factory=list)
    given: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Record a request and return the reply to it."""
        with self.lock:
            kind = self._kind(body)
            if kind == "step":
                reply = self.replies[self.given] if self.given < len(self.replies) else Reply("Nothing is left to do.")
                self.given += 1
            else:
                reply = Reply(self.summary, usage=self.summary_usage) if kind == "summary" else Reply("A title")
            step = self.given - 1 if kind == "step" else None
            self.requests.append({"kind": kind, "step": step, "path": path, "body": body, "reply": asdict(reply)})
        return reply

    def _kind(self, body: Mapping[str, Any]) -> str:
        last, system = _last_message(body), _system(body)
        tools = _tools(body)
        if _ASKS.search(last) or (
            not tools and "title" not in system[:400].lower() and _SUMMARIZES.search(last + system)
        ):
            return "summary"
        return "step" if tools >= self.fewest_tools else "aside"


def _last_message(body: Mapping[str, Any]) -> str:
    for key in ("input", "messages", "contents"):
        value = body.get(key)
        if isinstance(value, list):  # a reminder of the scaffold, as a message of the system, may come last
            return json.dumps([item for item in value if item.get("role") != "system"][-1:])
        if value:
            return str(value)
    return ""


def _system(body: Mapping[str, Any]) -> str:
    told = [body.get(key) for key in ("system", "instructions", "systemInstruction")]
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else {}
    return json.dumps([*told, first if first.get("role") in ("system", "developer") else ""])


def _tools(body: Mapping[str, Any]) -> int:
    given = list(body.get("tools") or [])
    items = body.get("input")
    for item in items if isinstance(items, list) else []:
        if item.get("type") == "additional_tools":
            given += item.get("tools") or []
    return sum(len(tool.get("functionDeclarations") or tool.get("tools") or [tool]) for tool in given)


Event = dict[str, Any]


def _responses(number: int, body: Mapping[str, Any], reply: Reply) -> tuple[Event, list[Event]]:
    """OpenAI's Responses; the request of a remote compaction gets one opaque item."""
    items: list[Event] = []
    if "compaction_trigger" in _last_message(body):
        items.append({"type": "compaction", "id": f"cmp_{number}", "encrypted_content": "c2NyaXB0ZWQ="})
    elif reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append(
            {"type": "message", "id": f"m{number}", "role": "assistant", "status": "completed", "content": content}
        )
    for place, (tool, arguments) in enumerate(reply.calls):
        named = {"id": f"f{number}_{place}", "call_id": f"call_{number}_{place}", "name": tool, "status": "completed"}
        if isinstance(arguments, str):
            items.append({"type": "custom_tool_call", **named, "input": arguments})
        else:
            items.append({"type": "function_call", **named, "arguments": json.dumps(arguments)})
    usage = {"input_tokens": reply.usage, "output_tokens": 20, "total_tokens": reply.usage + 20}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": body.get("model"), "output": items}
    whole |= {"status": "completed", "usage": usage | details}
    events = [{"type": "response.created", "response": whole | {"status": "in_progress", "output": [], "usage": None}}]
    for place, item in enumerate(items):
        events += [
            {"type": f"response.output_item.{when}", "output_index": place, "item": item} for when in ("added", "done")
        ]
    events.append({"type": "response.completed", "response": whole})
    return whole, [{**event, "sequence_number": place} for place, event in enumerate(events)]


def _chat(number: int, body: Mapping[str, Any], reply: Reply) -> tuple[Event, list[Event]]:
    """OpenAI's Chat Completions."""
    usage = {"prompt_tokens": reply.usage, "completion_tokens": 20, "total_tokens": reply.usage + 20}
    calls = [
        {"index": place, "id": f"call_{number}_{place}", "type": "function"}
        | {"function": {"name": tool, "arguments": json.dumps(arguments)}}
        for place, (tool, arguments) in enumerate(reply.calls)
    ]
    message: Event = {"role": "assistant", "content": reply.text} | ({"tool_calls": calls} if calls else {})
    base = {"id": f"cc_{number}", "created": 0, "model": body.get("model")}
    end = "tool_calls" if calls else "stop"
    whole = {**base, "object": "chat.completion", "usage": usage}
    whole["choices"] = [{"index": 0, "message": message, "finish_reason": end}]
    base["object"] = "chat.completion.chunk"
    return whole, [
        {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        {**base, "choices": [], "usage": usage},
    ]


def _messages(number: int, body: Mapping[str, Any], reply: Reply) -> tuple[Event, list[Event]]:
    """Anthropic's Messages."""
    blocks: list[Event] = [{"type": "text", "text": reply.text}] if reply.text else []
    for place, (tool, arguments) in enumerate(reply.calls):
        blocks.append({"type": "tool_use", "id": f"toolu_{number}_{place}", "name": tool, "input": arguments})
    end = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": reply.usage, "output_tokens": 20}
    usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    base = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model"), "usage": usage}
    events: list[Event] = [{"type": "message_start", "message": {**base, "content": [], "stop_reason": None}}]
    for place, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start, delta = (
                {**block, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])},
            )
        events.append({"type": "content_block_start", "index": place, "content_block": start})
        events.append({"type": "content_block_delta", "index": place, "delta": delta})
        events.append({"type": "content_block_stop", "index": place})
    events += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}, {"type": "message_stop"}]
    return {**base, "content": blocks, **end}, events


def _gemini(number: int, body: Mapping[str, Any], reply: Reply) -> tuple[Event, list[Event]]:
    """Google's generateContent."""
    parts: list[Event] = [{"text": reply.text}] if reply.text else []
    for place, (tool, arguments) in enumerate(reply.calls):
        parts.append({"functionCall": {"id": f"call_{number}_{place}", "name": tool, "args": arguments}})
    usage = {"promptTokenCount": reply.usage, "candidatesTokenCount": 20, "totalTokenCount": reply.usage + 20}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": f"r{number}"}
    return whole, [whole]


_SHAPES = {"/responses": _responses, "/chat/completions": _chat, "/messages": _messages, "enerateContent": _gemini}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        listed = {
            "object": "list",
            "models": [],
            "data": [{"id": "fake-model", "object": "model", "owned_by": "bench"}],
        }
        self._send(json.dumps(listed if "/models" in self.path else {}).encode())

    def do_POST(self) -> None:
        try:
            body = json.loads(self._body())
        except ValueError:
            self._send(b"{}")
            return
        if "countTokens" in self.path or "count_tokens" in self.path:
            self._send(b'{"totalTokens": 2000, "input_tokens": 2000}')
            return
        shape = next((make for mark, make in _SHAPES.items() if mark in self.path), None)
        if shape is None:
            self._send(b"{}")
            return
        reply = self.script.answer(self.path, body)
        whole, events = shape(len(self.script.requests), body, reply)
        if body.get("stream") or "streamGenerateContent" in self.path:
            self._send("".join(_streamed(events, self.path)).encode(), "text/event-stream")
        else:
            self._send(json.dumps(whole).encode())

    def _body(self) -> bytes:
        if (self.headers.get("Transfer-Encoding") or "").lower() == "chunked":
            raw = b"".join(iter(self._chunk, b""))
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def _send(self, content: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _streamed(events: list[Event], path: str) -> Iterator[str]:
    for event in events:
        named = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{named}data: {json.dumps(event)}\n\n"
    if "/chat/completions" in path:
        yield "data: [DONE]\n\n"


def serve(script: Script) -> ThreadingHTTPServer:
    """Start a server for a script on a free port of loopback; the caller shuts it down."""
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
