"""Reads the tokens of every response from session logs, each counted once, wherever it is logged again.

Unlike the turns of a run, this includes abandoned branches, rolled-back turns and requests for summaries: they were
paid for, too. A meter takes the lines of a log while the log's reader takes them, so that a log is parsed once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct, structs

from eirkit.lacuna.models.prices import CHARS_PER_TOKEN
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import (
    count_of,
    items_of,
    mapping_of,
    parsed,
    seconds_of,
    string_of,
    whole_number,
)
from eirkit.vestige.sources.databases import MAGIC, has_columns, open_database, rows_of
from eirkit.vestige.sources.documents import LogDocument
from eirkit_coding.sessions.claude_code import is_command
from eirkit_coding.sessions.opencode import TABLES, stored_messages

Line = Mapping[str, Any]


Cut = Literal["", "compaction", "clear", "results cleared", "resumed"]


class Response(Struct, frozen=True, gc=False):
    """The tokens of one response of a model, which do not overlap, and where in which context it came."""

    key: str  # equal in all copies of it
    at: float  # seconds since 1970
    project: str  # the folder in which the session was started; "" if the log does not say
    model: str
    fresh_tokens: int  # neither read from a cache nor written to one
    cache_read_tokens: int
    cache_write_tokens: int  # kept for minutes
    cache_write_hour_tokens: int  # kept for an hour
    output_tokens: int
    thread: str = ""  # the context that it belongs to: a session, or a sub-agent of one
    sub_agent: bool = False
    before: str | None = None  # the key of the response that its context continues; None: the last one of the thread
    cut: Cut = ""  # what took a part out of the context since that response, or changed its beginning
    summary_tokens: int = 0  # about: of the summary that has taken the context's place
    is_summary: bool = False  # itself the request for a summary
    stated_usd: float | None = None  # what the agent itself says that it cost

    @property
    def cached_tokens(self) -> int:
        """The part of the prompt that the next request can read from a cache."""
        return self.cache_read_tokens + self.cache_write_tokens + self.cache_write_hour_tokens

    @property
    def prompt_tokens(self) -> int:
        return self.fresh_tokens + self.cache_read_tokens + self.cache_write_tokens + self.cache_write_hour_tokens

    @property
    def tokens(self) -> int:
        """All tokens: the prompt with the reply, which is how full the context was."""
        return self.prompt_tokens + self.output_tokens


class UnknownResponse(Struct, frozen=True, gc=False):
    """A response with something else in place of a number of tokens."""

    key: str  # equal in all copies of it
    at: float
    project: str
    source: str  # the log


class Place(NamedTuple):
    """Where a response came: the fields of the same names in `Response`."""

    thread: str = ""
    sub_agent: bool = False
    before: str | None = None
    cut: Cut = ""
    summary_tokens: int = 0
    is_summary: bool = False
    stated_usd: float | None = None

    @classmethod
    def of(cls, response: Response) -> Place:
        return cls(*(getattr(response, name) for name in cls._fields))


class ResponseMeter(ABC):
    """Collects the responses of one log; what it is given besides lines of usage is ignored."""

    def __init__(self) -> None:
        self.project = ""
        self.found: dict[str, Response] = {}
        # Of responses with something else in place of a number of tokens, the time and the folder.
        self.unknown: dict[str, tuple[float, str]] = {}

    @abstractmethod
    def take(self, line: Line) -> None:
        """Take one line, or one message, of a log."""

    def responses(self) -> tuple[Response, ...]:
        """Return the responses in the order in which they came, with the session's folder where they have none."""
        ordered = sorted(self.found.values(), key=lambda response: (response.at, response.key))
        return tuple(
            response if response.project else structs.replace(response, project=self.project) for response in ordered
        )

    def unknown_responses(self, source: str) -> tuple[UnknownResponse, ...]:
        """Return the responses of a log whose tokens are unknown, in the order in which they came."""
        found = (UnknownResponse(key, at, own or self.project, source) for key, (at, own) in self.unknown.items())
        return tuple(sorted(found, key=lambda response: (response.at, response.key)))

    def counts(self, key: str, at: float | None, *stated: object, project: str = "") -> list[int] | None:
        """Return stated numbers of tokens, 0 where there is none; None if one is no such number."""
        found = [0 if count is None else whole_number(count) for count in stated]
        known = [count for count in found if count is not None]
        if len(known) == len(found):
            return known
        if at is not None:
            self.unknown.setdefault(key, (at, project))
        return None

    def add(
        self,
        key: str,
        at: float | None,
        model: str,
        counts: tuple[int, int, int, int, int],
        project: str = "",
        place: Place = Place(),  # noqa: B008 (frozen)
    ) -> None:
        """Add a response; a log repeats one while its reply grows, and the longest version counts."""
        before = self.found.get(key)
        if at is None or not any(counts) or (before is not None and before.output_tokens > counts[-1]):
            return
        self.unknown.pop(key, None)
        own = place if before is None else Place.of(before)
        self.found[key] = Response(
            key,
            before.at if before is not None else at,
            project,
            model,
            *counts,
            own.thread,
            own.sub_agent,
            own.before,
            own.cut,
            own.summary_tokens,
            own.is_summary,
            own.stated_usd,
        )


def _dollars(stated: object) -> float | None:
    """Return what an agent says that a response cost; 0 stands for a model whose price it does not know."""
    is_number = isinstance(stated, (int, float)) and not isinstance(stated, bool)
    return float(stated) if is_number and 0 < stated < math.inf else None  # type: ignore[arg-type,operator]


class _Line(NamedTuple):
    """What a line of Claude Code hands on to the lines that follow it in their chain."""

    thread: str
    reply: str  # the key of the last response; empty before the first one
    cut: Cut = ""  # since that response
    summary_tokens: int = 0


class _Claude(ResponseMeter):
    """Claude Code: usage stands in every line of a reply, and lines of a reply share the message's id."""

    def __init__(self) -> None:
        super().__init__()
        self.folders: dict[str, str] = {}  # of each session in the file
        self.lines: dict[str, _Line] = {}  # by uuid
        self.last: dict[str, _Line] = {}  # by thread

    def take(self, line: Line) -> None:
        session, folder = string_of(line.get("sessionId")), string_of(line.get("cwd"))
        self.project = self.project or folder
        if folder and session not in self.folders:
            self.folders[session] = folder
        if line.get("type") == "progress":  # some versions log the replies of sub-agents inside such lines
            data = mapping_of(line.get("data"))
            if inner := mapping_of(data.get("message")):
                agent = string_of(data.get("agentId")) or string_of(line.get("parentToolUseID"))
                self._take(inner, session, agent)
        self._take(line, session, "")

    def _take(self, line: Line, session: str, agent: str) -> None:
        """Take a line of a session, or one of a sub-agent that stands in a line of its caller."""
        before = self._before(line, session, agent)
        kind, place = line.get("type"), before
        if kind == "assistant":
            place = self._meter(line, session, before)
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            place = before._replace(cut="compaction")
        elif kind == "system" and line.get("subtype") == "microcompact_boundary":
            place = before._replace(cut=before.cut or "results cleared")
        elif kind == "user" and line.get("isCompactSummary") is True:
            size = len(text_of(mapping_of(line.get("message")).get("content")))
            place = before._replace(cut="compaction", summary_tokens=round(size / CHARS_PER_TOKEN))
        elif kind == "user" and is_command(line, "clear"):
            place = before._replace(cut="clear")
        elif kind == "user" and is_command(line, "exit"):
            place = before._replace(cut=before.cut or "resumed")
        self.last[place.thread] = place
        if uuid := string_of(line.get("uuid")):
            self.lines.setdefault(uuid, place)

    def _before(self, line: Line, session: str, agent: str) -> _Line:
        """Return the place after which a line stands: that of its parent, else of the last line of its context."""
        parent = string_of(line.get("parentUuid")) or string_of(line.get("logicalParentUuid"))
        known = self.lines.get(parent)
        is_side = bool(agent) or line.get("isSidechain") is True
        name = agent or string_of(line.get("agentId"))
        if is_side and not name and known is not None and "/" in known.thread:
            return known
        thread = f"{session}/{name or string_of(line.get('uuid'))}" if is_side else session
        if known is not None and ("/" in known.thread) == is_side and not agent:
            return known._replace(thread=thread)
        if parent == "" and line.get("type") == "user" and not is_side and line.get("isCompactSummary") is not True:
            return _Line(thread, "")
        return self.last.get(thread, _Line(thread, ""))

    def _meter(self, line: Line, session: str, before: _Line) -> _Line:
        """Count a response; return the place after it."""
        message = mapping_of(line.get("message"))
        usage, model = mapping_of(message.get("usage")), string_of(message.get("model"))
        if model == "<synthetic>" or line.get("isApiErrorMessage") is True:
            return before
        key = string_of(message.get("id")) or string_of(line.get("uuid"))
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        by_age = mapping_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
        at = seconds_of(line.get("timestamp"))
        own = self.folders.get(session, "")
        if counts := self.counts(key, at, *map(usage.get, names), by_age, project=own):
            fresh, read, written, output, hour = counts
            hour = min(written, hour)
            place = Place(before.thread, "/" in before.thread, before.reply, before.cut, before.summary_tokens)
            place = place._replace(stated_usd=_dollars(line.get("costUSD")))  # in older versions
            self.add(key, at, model, (fresh, read, written - hour, hour, output), own, place)
        return _Line(before.thread, key)


class _Codex(ResponseMeter):
    """Codex: an event gives the tokens of the last response and the session's total, equal if it is a repetition."""

    def __init__(self) -> None:
        super().__init__()
        self.session = self.model = self.folder = ""
        self.total, self.has_records = -1, False
        self.cut: Cut = ""
        self.is_sub_agent = False

    def take(self, line: Line) -> None:
        kind, payload = line.get("type"), mapping_of(line.get("payload"))
        if kind == "session_meta" and (not self.session or self.total >= 0 or self.has_records):
            # A fork begins with a copy of its origin's events; another rollout may be appended to the file.
            self.session = string_of(payload.get("forked_from_id")) or string_of(payload.get("id"))
            self.folder = string_of(payload.get("cwd"))
            self.is_sub_agent = "subagent" in mapping_of(payload.get("source"))
            self.project = self.project or self.folder
            self.total, self.has_records = -1, False
        elif kind == "compacted":
            self.cut = "compaction"
        elif kind == "turn_context":
            self.model = string_of(payload.get("model")) or self.model
        elif kind == "token_usage_record":  # newer versions have one for each response, and the events besides
            if not self.has_records:
                self.has_records = True
                for known in (self.found, self.unknown):
                    for key in [key for key in known if key.startswith(f"{self.session}/")]:
                        del known[key]
            self._add(string_of(payload.get("response_id")), mapping_of(payload.get("usage")), line)
        elif kind == "event_msg" and payload.get("type") == "token_count" and not self.has_records:
            self._count(mapping_of(payload.get("info")), line)

    def _count(self, info: Line, line: Line) -> None:
        last, total = mapping_of(info.get("last_token_usage")), mapping_of(info.get("total_token_usage"))
        if count_of(total.get("total_tokens")) == self.total:
            return
        self.total = count_of(total.get("total_tokens"))
        self._add(f"{self.session}/{self.total}/{last.get('input_tokens')}/{last.get('output_tokens')}", last, line)

    def _add(self, key: str, used: Line, line: Line) -> None:
        names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
        at = seconds_of(line.get("timestamp"))
        if counts := self.counts(key, at, *map(used.get, names), project=self.folder):
            prompt, cached, written, output = counts
            cached = min(prompt, cached)
            written = min(prompt - cached, written)
            parts = (prompt - cached - written, cached, written, 0, output)
            self.add(key, at, self.model, parts, self.folder, Place(self.session, self.is_sub_agent, cut=self.cut))
            self.cut = ""


class _Gemini(ResponseMeter):
    """Gemini CLI: a message comes again under its id when it changes, and in every history that is told again."""

    def __init__(self) -> None:
        super().__init__()
        self.session = ""

    def take(self, line: Line) -> None:
        self.session = self.session or string_of(line.get("sessionId"))
        for message in items_of(line.get("messages")) or items_of(mapping_of(line.get("$set")).get("messages")):
            self.take(message)
        tokens = mapping_of(line.get("tokens"))
        if line.get("type") != "gemini" or not tokens:
            return
        key, at = f"{self.session}/{string_of(line.get('id'))}", seconds_of(line.get("timestamp"))
        if counts := self.counts(key, at, *map(tokens.get, ("input", "cached", "tool", "output", "thoughts"))):
            prompt, cached, tool, output, thoughts = counts
            parts = (max(0, prompt - cached) + tool, min(prompt, cached), 0, 0, output + thoughts)
            self.add(key, at, string_of(line.get("model")), parts, place=Place(self.session))


class _Opencode(ResponseMeter):
    """opencode: every message of the agent has its tokens, summaries included."""

    def take(self, line: Line) -> None:
        tokens = mapping_of(line.get("tokens"))
        if line.get("role") != "assistant" or not tokens:
            return
        cache, key = mapping_of(tokens.get("cache")), string_of(line.get("id"))
        stated = (*map(tokens.get, ("input", "output", "reasoning")), cache.get("read"), cache.get("write"))
        at, folder = seconds_of(mapping_of(line.get("time")).get("created")), string_of(line.get("directory"))
        if counts := self.counts(key, at, *stated, project=folder):
            fresh, output, reasoning, read, written = counts
            parts = (fresh, read, written, 0, output + reasoning)
            is_summary = line.get("summary") is True
            place = Place(string_of(line.get("sessionID")), line.get("is_sub_agent") is True, is_summary=is_summary)
            place = place._replace(stated_usd=_dollars(line.get("cost")))
            self.add(key, at, string_of(line.get("modelID")), parts, folder, place)


METERS: Mapping[str, Callable[[], ResponseMeter]] = {
    "claude-code": _Claude,
    "codex": _Codex,
    "gemini-cli": _Gemini,
    "opencode": _Opencode,
}
"""The formats whose responses are counted."""


class MeteredDocument:
    """A log whose lines a meter takes while a reader reads them."""

    def __init__(self, document: LogDocument, meter: ResponseMeter) -> None:
        self._document, self._meter = document, meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._document, name)

    def json(self) -> Any:
        value = self._document.json()
        self._meter.take(mapping_of(value))
        return value

    def lines(self) -> Iterator[tuple[int, Any | Exception]]:
        for number, value in self._document.lines():
            if isinstance(value, dict):
                self._meter.take(value)
            yield number, value


def take_messages(meter: ResponseMeter, document: LogDocument) -> None:
    """Give a meter the messages of opencode, which are in no lines of the document."""
    if document.head.startswith(MAGIC):
        if not has_columns(document, TABLES):
            return
        with open_database(document) as connection:
            sessions = {row["id"]: row for row in map(dict, rows_of(connection, "SELECT * FROM session"))}
            for row in rows_of(connection, "SELECT id, session_id, data FROM message"):
                id = row["session_id"]
                session = sessions.get(id, {})
                more = {"id": row["id"], "sessionID": id, "directory": session.get("directory")}
                more["is_sub_agent"] = bool(session.get("parent_id"))
                meter.take({**mapping_of(parsed(row["data"])), **more})
    else:
        for message, folder in stored_messages(document):
            meter.take({**message, "directory": folder})


def unique(several: Iterable[Iterable[Response]]) -> list[Response]:
    """Return the responses of several logs, of copies the longest, in the order in which they came."""
    found: dict[str, Response] = {}
    for response in (response for responses in several for response in responses):
        before = found.get(response.key)
        if before is None or response.output_tokens > before.output_tokens:
            found[response.key] = response
    return sorted(found.values(), key=lambda response: (response.at, response.key))
