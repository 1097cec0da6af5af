"""Reads Copilot CLI sessions (`events.jsonl`): replies with their calls, results, and compactions.

A compaction runs while the agent goes on: what came before it began is replaced, and what came since stays. Its
`messagesRemoved` is the difference of lengths, the summary included, and does not say which messages those were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.messages import arguments_of, shell_name, text_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    count_of,
    items_of,
    mapping_of,
    prompted_usage,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, NAMED, KeptContext, LoggedUsage, Recording, formats
from eirkit_coding.sessions.appended import read_sessions

Event = Mapping[str, Any]

_ENDED = re.compile(r"\n?<shellId: [^\n<>]{1,80} completed with exit code -?\d{1,9}>\s*\Z")
_OWN = ("session.start", "assistant.message", "assistant.turn_start", "tool.execution_start", "user.message")


@formats.add("copilot-cli")
class CopilotCli:
    """Session files of GitHub's Copilot CLI."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the events are named and wrapped as this agent does it."""
        events = [event for event in document.first_records if isinstance(event.get("data"), dict)]
        if any(mapping_of(event.get("data")).get("producer") == "copilot-agent" for event in events):
            return NAMED
        return MARKED if any(event.get("type") in _OWN for event in events) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session's one run, or those of sessions that were appended to one file."""
        yield from read_sessions(document, _Session)


class _Session:
    """The state while a session is read."""

    def __init__(self) -> None:
        self.builder = RunBuilder()
        self.start: Event = {}
        self.model = ""
        self.window: int | None = None
        self.usage: LoggedUsage | None = None
        self.before = 0  # turns when the compaction that runs began

    def session_of(self, event: Event) -> str:
        """Return the name of the session that an event starts."""
        return string_of(mapping_of(event.get("data")).get("sessionId")) if event.get("type") == "session.start" else ""

    def take(self, event: Event) -> None:
        """Process one event."""
        kind, data = event.get("type"), mapping_of(event.get("data"))
        if kind == "session.start":
            self.start = self.start or data
            self.model = self.model or string_of(data.get("selectedModel"))
        elif kind == "user.message":
            self.builder.request(string_of(data.get("content")))
        elif kind == "session.usage_record":
            counts = mapping_of(data.get("usage"))
            given, written = [counts.get("inputTokens")], [counts.get("outputTokens")]
            self.usage = prompted_usage(given, written, counts.get("cacheReadTokens"))
        elif kind == "assistant.message":
            self._take_reply(data)
        elif kind == "tool.execution_complete":
            self._take_result(data)
        elif kind == "session.compaction_start":
            self.window = count_of(data.get("tokenLimit")) or self.window
            self.before = self.builder.turn_count
        elif kind == "session.compaction_complete" and data.get("success") is not False:
            self._compact(data)

    def _take_reply(self, data: Event) -> None:
        self.builder.begin()
        self.builder.say(string_of(data.get("content")))
        self.builder.use(self.usage)
        self.usage = None
        self.model = self.model or string_of(data.get("model"))
        for call in items_of(data.get("toolRequests")):
            arguments = arguments_of(call.get("arguments"))
            tool = shell_name(string_of(call.get("name")), arguments)
            self.builder.ask(string_of(call.get("toolCallId")), tool, arguments)

    def _take_result(self, data: Event) -> None:
        result, code = mapping_of(data.get("result")), mapping_of(data.get("shellExecution")).get("exitCode")
        failed = data.get("success") is False
        output = _ENDED.sub("", string_of(result.get("content")))
        output = output or text_of(mapping_of(data.get("error")).get("message"))
        self.builder.answer(string_of(data.get("toolCallId")), output, failed=failed, exit_code=code)

    def _compact(self, data: Event) -> None:
        stayed = tuple(range(self.before + 1, self.builder.turn_count + 1))
        self.builder.break_off("compaction")
        self.builder.carry(string_of(data.get("summaryContent")))
        before, after = (count_of(data.get(f"{when}CompactionTokens")) or None for when in ("pre", "post"))
        self.builder.keep(
            KeptContext("removed", turns=stayed, is_complete=True, tokens_before=before, tokens_after=after)
        )

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run."""
        where = mapping_of(self.start.get("context"))
        return self.builder.recording(
            document,
            "copilot-cli",
            string_of(self.start.get("sessionId")),
            place=place,
            model=self.model,
            root=string_of(where.get("gitRoot")) or string_of(where.get("cwd")),
            agent_version=string_of(self.start.get("copilotVersion")),
            window=self.window,
        )
