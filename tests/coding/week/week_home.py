"""Writes a home folder with sessions of four agents at given times, and counts its tokens from the raw files alone."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Line = dict[str, Any]
HOUR = 3600.0
RULE = "Never touch config.toml."
SUMMARY = "This session is being continued from a previous conversation. The parser was mended."


def iso(at: float) -> str:
    """Return a time as agents write it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def source_text(size: int, name: str = "value") -> str:
    """Return a Python file of about a number of characters, with no line twice."""
    lines, total = [], 0
    while total < size:
        lines.append(f"{name}_{len(lines)} = compute({len(lines)}, offset={7 * len(lines)})")
        total += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


class ClaudeSession:
    """Lines of a Claude Code session, one minute apart."""

    def __init__(self, session: str, project: str, at: float, model: str = "claude-opus-4-5-20251101") -> None:
        self.session, self.project, self.at, self.model = session, project, at, model
        self.lines: list[Line] = []

    def add(self, kind: str, parent: str | None = "", **more: Any) -> Line:
        """Add a line after the last one, or after another parent."""
        self.at += 60
        before = self.lines[-1]["uuid"] if self.lines else None
        line = {"parentUuid": before if parent == "" else parent, "isSidechain": False, "type": kind}
        line |= {"sessionId": self.session, "cwd": self.project, "version": "2.1.325", "timestamp": iso(self.at)}
        line |= {"uuid": f"{self.session}-{len(self.lines)}", **more}
        self.lines.append(line)
        return line

    def ask(self, text: str) -> None:
        self.add("user", message={"role": "user", "content": text})

    def reply(self, *blocks: Line, prompt: int = 2_000, output: int = 50, parent: str | None = "") -> None:
        """Add a reply as Claude Code logs it: a line for each block, with usage that grows in the last one."""
        id = f"msg_{self.session}_{len(self.lines)}"
        for place, block in enumerate(blocks):
            is_last = place == len(blocks) - 1
            written = prompt // 4
            usage = {
                "input_tokens": 7,
                "cache_read_input_tokens": prompt,
                "cache_creation_input_tokens": written,
                "cache_creation": {"ephemeral_5m_input_tokens": written - 100, "ephemeral_1h_input_tokens": 100},
                "output_tokens": output if is_last else 1,
            }
            message = {"id": id, "role": "assistant", "model": self.model, "content": [block], "usage": usage}
            self.add("assistant", parent if not place else "", message=message, requestId=f"req_{id}")

    def result(self, call: str, output: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": output}
        self.add("user", message={"role": "user", "content": [block]})

    def read(self, path: str, text: str, **usage: int) -> None:
        """Read a whole file."""
        call = f"toolu_{self.session}_{len(self.lines)}"
        shown = "".join(f"{n:>6}→{line}\n" for n, line in enumerate(text.splitlines(), 1))
        self.reply(_use(call, "Read", file_path=f"{self.project}/{path}"), **usage)
        self.result(call, shown)

    def print(self, path: str, text: str) -> None:
        """Print a file with a command, after which Claude Code does not put it back at a compaction."""
        call = f"toolu_{self.session}_{len(self.lines)}"
        self.reply(_use(call, "Bash", command=f"cat {path}"))
        self.result(call, text)

    def write(self, path: str, text: str) -> None:
        call = f"toolu_{self.session}_{len(self.lines)}"
        self.reply(
            {"type": "text", "text": "Now."}, _use(call, "Write", file_path=f"{self.project}/{path}", content=text)
        )
        self.result(call, "File created successfully.")

    def compact(self, trigger: str = "") -> None:
        """Compact the context to a summary that forgets what the user ruled."""
        last = self.lines[-1]["uuid"]
        stated = {"compactMetadata": {"trigger": trigger, "preTokens": 150_000}} if trigger else {}
        self.add("system", None, subtype="compact_boundary", logicalParentUuid=last, **stated)
        self.add("user", isCompactSummary=True, message={"role": "user", "content": SUMMARY})
        if trigger == "manual":
            said = "<command-name>/compact</command-name>\n<command-args>let's do a review</command-args>"
            self.add("user", message={"role": "user", "content": said})

    def save(self, path: Path) -> Path:
        return save_lines(path, self.lines, self.at)


def _use(id: str, tool: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments}


def save_lines(path: Path, lines: list[Line], at: float) -> Path:
    """Write JSON lines into a file that was last changed at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (at, at))
    return path


def claude_home(home: Path, at: float) -> ClaudeSession:
    """Write a session in which a rule is lost and broken, its resumed copy, and a sub-agent."""
    one = ClaudeSession("s1", "/work/shop", at)
    parser = source_text(6_000)
    one.ask(f"Mend parser.py. {RULE}")
    one.read("parser.py", parser)
    one.read("parser.py", parser, prompt=4_000)
    one.compact()
    one.read("parser.py", parser, prompt=1_000)
    one.write("config.toml", "debug = true\n")
    fork = one.lines[-1]["uuid"]
    one.reply({"type": "text", "text": "An answer that the user went back from."}, output=400)
    one.ask("Go on.")
    one.lines[-1]["parentUuid"] = fork
    one.reply({"type": "text", "text": "Done."}, prompt=8_000)
    one.add("assistant", message={"id": "x", "model": "<synthetic>", "role": "assistant", "content": [], "usage": {}})
    folder = home / ".claude" / "projects" / "-work-shop"
    one.save(folder / "s1.jsonl")
    again = [{**line, "sessionId": "s2"} for line in one.lines]
    more = ClaudeSession("s2", "/work/shop", one.at)
    more.lines = again
    more.reply({"type": "text", "text": "Resumed."}, prompt=3_000)
    more.save(folder / "s2.jsonl")
    helper = ClaudeSession("s1", "/work/shop", at, "claude-haiku-4-5")
    helper.lines = []
    helper.ask("Look around.")
    helper.reply({"type": "text", "text": "Seen."}, prompt=900)
    side = [{**line, "isSidechain": True, "agentId": "a1", "uuid": f"a1-{line['uuid']}"} for line in helper.lines]
    save_lines(folder / "s1" / "subagents" / "agent-a1.jsonl", side, helper.at)
    return one


def codex_home(home: Path, at: float) -> Path:
    """Write a rollout with a repeated token count."""
    lines: list[Line] = []
    total = 0

    def add(kind: str, **payload: Any) -> None:
        lines.append({"timestamp": iso(at + 30 * len(lines)), "type": kind, "payload": payload})

    add("session_meta", id="c1", cwd="/work/site", cli_version="0.166.0", source="cli", originator="codex_cli_rs")
    add("turn_context", cwd="/work/site", model="gpt-5.5")
    add("event_msg", type="user_message", message="Show the page.")
    for number in range(4):
        call = f"call_{number}"
        add("response_item", type="function_call", call_id=call, name="shell", arguments='{"command": ["cat", "a.md"]}')
        add("response_item", type="function_call_output", call_id=call, output=source_text(2_000, "line"))
        last = {"input_tokens": 9_000 + number, "cached_input_tokens": 4_000, "output_tokens": 70}
        total += 9_070 + number
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last, "model_context_window": 258_400}
        add("event_msg", type="token_count", info=info)
        add("event_msg", type="token_count", info=info)
    name = f"rollout-{iso(at)[:19].replace(':', '-')}-c1.jsonl"
    return save_lines(home / ".codex" / "sessions" / "2026" / "11" / "14" / name, lines, at + HOUR)


def gemini_home(home: Path, at: float) -> Path:
    """Write a session whose messages come twice, the second time with the calls."""
    lines: list[Line] = [{"sessionId": "g1", "projectHash": "p1", "startTime": iso(at), "kind": "main"}]
    for number in range(3):
        tokens = {"input": 5_000, "output": 40, "cached": 1_000, "thoughts": 60, "tool": 5, "total": 5_105}
        message = {"id": f"m{number}", "type": "gemini", "timestamp": iso(at + number * 60), "model": "gemini-2.5-pro"}
        lines.append({**message, "content": "Look.", "tokens": {**tokens, "output": 10}})
        lines.append({**message, "content": "Look.", "tokens": tokens})
    lines.append({"$set": {"messages": lines[1:]}})
    return save_lines(home / ".gemini" / "tmp" / "shop" / "chats" / "session-1.jsonl", lines, at + HOUR)


def opencode_home(home: Path, at: float) -> Path:
    """Write a database with two sessions in two projects."""
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT)")
    connection.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
    connection.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
    for number, folder in enumerate(("/work/shop", "/work/notes")):
        session, created = f"ses_{number}", round((at + number * HOUR) * 1000)
        connection.execute("INSERT INTO session VALUES (?, NULL, ?, '1.18.33')", (session, folder))
        tokens = {"input": 800, "output": 30, "reasoning": 5, "cache": {"read": 2_000, "write": 300}}
        said = {"role": "assistant", "modelID": "some-model", "time": {"created": created}, "tokens": tokens}
        for place, data in enumerate(({"role": "user"}, said, said)):
            row = (f"msg_{number}_{place}", session, created + place, json.dumps(data))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    os.utime(path, (at + 2 * HOUR, at + 2 * HOUR))
    return path


def write_home(home: Path, at: float) -> None:
    """Write sessions of four agents around a time, and one of Claude Code in the week before."""
    claude_home(home, at)
    codex_home(home, at + 2 * HOUR)
    gemini_home(home, at + 3 * HOUR)
    opencode_home(home, at + 4 * HOUR)
    before = ClaudeSession("s0", "/work/shop", at - 7 * 24 * HOUR)
    before.ask("Begin.")
    before.reply({"type": "text", "text": "Begun."}, prompt=10_000)
    before.save(home / ".claude" / "projects" / "-work-shop" / "s0.jsonl")


def raw_counts(home: Path) -> Iterator[tuple[str, float, Counter[str]]]:
    """Yield agent, time and tokens of every response, by a counter that shares no code with the package."""
    replies: dict[str, tuple[float, Line]] = {}
    for path in sorted((home / ".claude").rglob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            if line["type"] == "assistant" and line["message"]["model"] != "<synthetic>":
                id, usage = line["message"]["id"], line["message"]["usage"]
                at = datetime.fromisoformat(line["timestamp"]).timestamp()
                replies[id] = (min(at, replies[id][0]) if id in replies else at, usage)
    for at, usage in replies.values():
        counts = Counter(fresh=usage["input_tokens"], read=usage["cache_read_input_tokens"])
        counts += Counter(write=usage["cache_creation_input_tokens"], output=usage["output_tokens"])
        yield "claude-code", at, counts
    for path in sorted((home / ".codex").rglob("*.jsonl")):
        events = [line for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "event_msg"]
        told = [line for line in events if line["payload"]["type"] == "token_count"]
        for line in told[::2]:  # every event is written twice
            usage, at = line["payload"]["info"]["last_token_usage"], line["timestamp"]
            cached = usage["cached_input_tokens"]
            counts = Counter(fresh=usage["input_tokens"] - cached, read=cached, output=usage["output_tokens"])
            yield "codex", datetime.fromisoformat(at).timestamp(), counts
    for path in sorted((home / ".gemini").rglob("*.jsonl")):
        messages = {line["id"]: line for line in map(json.loads, path.read_text().splitlines()) if "tokens" in line}
        for line in messages.values():
            used, at = line["tokens"], datetime.fromisoformat(line["timestamp"]).timestamp()
            fresh = used["total"] - used["output"] - used["thoughts"] - used["cached"]
            yield "gemini-cli", at, Counter(fresh=fresh, read=used["cached"], output=used["output"] + used["thoughts"])
    for path in sorted((home / ".local").rglob("*.db")):
        for (text,) in sqlite3.connect(path).execute("SELECT data FROM message"):
            data = json.loads(text)
            if "tokens" in data:
                used, cache = data["tokens"], data["tokens"]["cache"]
                counts = Counter(fresh=used["input"], read=cache["read"], write=cache["write"])
                counts += Counter(output=used["output"] + used["reasoning"])
                yield "opencode", data["time"]["created"] / 1000, counts
