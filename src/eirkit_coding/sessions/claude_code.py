"""Reads Claude Code sessions: one JSON object per line, linked by `parentUuid`.

The chain that ends in the session's last line is the run; abandoned branches are left out. A reply is spread over lines
that share `message.id`. Every sub-agent is a run of its own, named `<session>/<agent>`, because it has its own context
and its caller sees only the final answer. It has a file or lines of its own, or stands in the `progress` lines of its
caller, which are left out where there is a file. Compaction and `/clear` are breaks inside a run; a session continued
in another file under the same slug is another run with that slug in its details.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from eirkit.vestige.formats.messages import take_reply, take_results, text_of, usage_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    is_own_file,
    items_of,
    mapping_of,
    seconds_of,
    string_of,
    take_lines,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, KeptContext, Recording, formats
from eirkit_coding.sessions.claude_prompts import ClaudePrompts, attached_file

Entry = Mapping[str, Any]

_COMMAND = "<command-"  # prefix of the record of a slash command; users may quote one
# How lines of type `user` begin that no user wrote; a command of the user's own, with a message, is a prompt.
_NOT_PROMPTS = (
    *("<command-name>", "<local-command-", "<bash-", "<system-reminder>", "<task-notification>", "<user-prompt-submit"),
    *("[Request interrupted", "Caveat: "),
)
_META = ".meta.json"  # how the name of a sub-agent's description ends
_AGENT = "agent-"  # how the names of a sub-agent's files begin
_MAIN = ""  # key of the session's own chain, as opposed to those of sub-agents


@formats.add("claude-code")
class ClaudeCode:
    """Session files of Claude Code."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the lines have session and parent, or are the summaries that precede them."""
        own = (entry for entry in document.first_records if _is_entry(entry) or _is_summary(entry))
        first = next(own, None)
        return 0 if first is None else MARKED

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the files that describe sub-agents, whose lines may stand in those of their caller."""
        described = ((name, name.removesuffix(_META)) for name in names if name.endswith(_META))
        return [name for name, stem in described if stem.startswith(_AGENT) or f"{stem}.jsonl" in names]

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the session, then its sub-agents; of sessions that were appended to one file, each in turn."""
        entries: list[Entry] = []
        prompts = ClaudePrompts()
        reported = _Reported(document)

        def take(entry: Entry) -> None:
            entries.append(entry)
            prompts.take(entry)
            if entry.get("type") == "progress" and (line := reported.line(entry)) is not None:
                entries.append(line)

        yield from take_lines(document, take)
        sessions = _by_session(_without_repeats(entries))
        first = next((place for place, session in enumerate(sessions) if _reply_ids(session)), 0)
        found = [
            _recording(document, agent, own, prompts, is_first=place == first)
            for place, session in enumerate(sessions)
            for agent, own in _by_agent(session, _agent_of_file(document)).items()
        ]
        yield from [item for item in found if isinstance(item, Recording)] or found[:1]


class _Reported:
    """The lines of sub-agents that stand inside those of their caller."""

    def __init__(self, document: LogDocument) -> None:
        self._folder = document.parent
        self._last: dict[str, str] = {}  # by sub-agent: the line before
        self._elsewhere: dict[str, bool] = {}

    def line(self, entry: Entry) -> Entry | None:
        """Return the line of a sub-agent, as its own file would have it; None if there is none, or such a file."""
        data = mapping_of(entry.get("data"))
        message = mapping_of(data.get("message"))
        agent = string_of(data.get("agentId")) or string_of(entry.get("parentToolUseID"))
        uuid, session = string_of(message.get("uuid")), string_of(entry.get("sessionId"))
        if data.get("type") != "agent_progress" or not (agent and uuid) or self._has_file(session, agent):
            return None
        place = f"{session}/{agent}"
        before, self._last[place] = self._last.get(place), uuid
        shared = {name: entry[name] for name in ("sessionId", "cwd", "version", "slug") if name in entry}
        return {**shared, **message, "isSidechain": True, "agentId": agent, "parentUuid": before}

    def _has_file(self, session: str, agent: str) -> bool:
        name = f"{_AGENT}{agent}.jsonl"
        if name not in self._elsewhere:
            places = () if self._folder is None else (self._folder, self._folder / session / "subagents")
            self._elsewhere[name] = any(is_own_file(folder / name, folder) for folder in places)
        return self._elsewhere[name]


def _is_entry(entry: Entry) -> bool:
    # Qwen Code writes lines with the same keys, whose messages have `parts` in place of `content`.
    return (
        "sessionId" in entry
        and "parentUuid" in entry
        and "uuid" in entry
        and "parts" not in mapping_of(entry.get("message"))
        and "systemPayload" not in entry
    )


def _is_summary(entry: Entry) -> bool:
    return "leafUuid" in entry and "summary" in entry


def _without_repeats(entries: Iterable[Entry]) -> list[Entry]:
    """Leave out lines with a uuid seen before: a resumed session copies its history."""
    seen: set[str] = set()
    kept = []
    for entry in entries:
        uuid = string_of(entry.get("uuid"))
        if uuid and uuid not in seen:
            seen.add(uuid)
            kept.append(entry)
    return kept


def _by_session(entries: Sequence[Entry]) -> Sequence[list[Entry]]:
    """Divide lines into sessions: a line belongs to that of its parent, else to that of its name.

    A session that was resumed has another name and goes on from lines of the first: also from one that is damaged, and
    from a compaction, whose lines may name no parent.
    """
    sessions: list[list[Entry]] = []
    known = {string_of(entry.get("uuid")) for entry in entries}
    of_line: dict[str, int] = {}
    of_name: dict[str, int] = {}
    for entry in entries:
        parent = string_of(entry.get("parentUuid")) or string_of(entry.get("logicalParentUuid"))
        name = string_of(entry.get("sessionId"))
        goes_on = parent not in known if parent else entry.get("isCompactSummary") is True or _is_boundary(entry)
        is_new = not sessions or (bool(name) and not goes_on)
        place = of_line.get(parent, of_name.get(name, len(sessions) if is_new else len(sessions) - 1))
        if place == len(sessions):
            sessions.append([])
        sessions[place].append(entry)
        of_line[string_of(entry.get("uuid"))] = place
        of_name.setdefault(name, place)
    return sessions or [[]]


def _agent_of_file(document: LogDocument) -> str:
    stem = document.name.removesuffix(".jsonl")
    return stem.removeprefix(_AGENT) if stem.startswith(_AGENT) else _MAIN


def _by_agent(entries: Iterable[Entry], file_agent: str) -> dict[str, list[Entry]]:
    """Group lines by session and sub-agent, according to their id, their file, or the line where they begin."""
    agents: dict[str, list[Entry]] = {_MAIN: []}
    agent_of: dict[str, str] = {}
    unnamed = 0
    for entry in entries:
        agent = _MAIN
        if entry.get("isSidechain") is True:
            agent = string_of(entry.get("agentId")) or file_agent
            agent = agent or agent_of.get(string_of(entry.get("parentUuid")), _MAIN)
            if not agent:
                unnamed += 1
                agent = f"sidechain-{unnamed}"
        agent_of[string_of(entry.get("uuid"))] = agent
        agents.setdefault(agent, []).append(entry)
    return agents


def _recording(
    document: LogDocument, agent: str, entries: Sequence[Entry], prompts: ClaudePrompts, *, is_first: bool
) -> Recording | Skipped:
    chosen = _main_chain(entries)
    builder = RunBuilder()
    models: list[str] = []
    _take_all(builder, chosen, models, prompts)
    session = _first(chosen, "sessionId") or document.name.removesuffix(".jsonl")
    is_whole_file = is_first and agent in (_MAIN, _agent_of_file(document))
    run_id = f"{session}/{agent}" if agent else session
    origins = (string_of(mapping_of(entry.get("forkedFrom")).get("sessionId")) for entry in chosen)
    origin = next(filter(None, origins), "")
    return builder.recording(
        document,
        "claude-code",
        run_id,
        place="" if is_whole_file else agent if is_first else run_id,
        parent=session if agent else "",
        model=next(iter(models), ""),
        root=_first(chosen, "cwd"),
        agent_version=_first(chosen, "version"),
        details={
            "session": session,
            "slug": _first(chosen, "slug"),
            "first_uuid": _first(chosen, "uuid"),
            "abandoned_replies": len(_reply_ids(entries) - _reply_ids(chosen)),
            **({"agent": agent} if agent else {}),
            **({"forked_from": origin} if origin else {}),
        },
    )


def _main_chain(entries: Sequence[Entry]) -> list[Entry]:
    """Return the lines that lead to the last one, with the parallel calls beside them, in file order."""
    place = {string_of(entry.get("uuid")): number for number, entry in enumerate(entries)}
    kept: set[int] = set()
    leaf = _last_word(entries, len(entries))
    while leaf is not None:
        first = _climb(entries, place, leaf, kept)
        # Where a chain starts again, after a break or a damaged line, the lines before it still happened.
        leaf = _last_word(entries, first)
    return _with_companions(entries, kept)


def _last_word(entries: Sequence[Entry], end: int) -> int | None:
    return next((n for n in range(end - 1, -1, -1) if entries[n].get("type") in ("user", "assistant")), None)


def _climb(entries: Sequence[Entry], place: Mapping[str, int], leaf: int, kept: set[int]) -> int:
    """Mark a line and its ancestors as kept; return the index of the first of them."""
    number: int | None = leaf
    first = leaf
    while number is not None and number not in kept:
        kept.add(number)
        first = min(first, number)
        entry = entries[number]
        parent = string_of(entry.get("parentUuid")) or string_of(entry.get("logicalParentUuid"))
        number = place.get(parent) if parent else None
    return first


def _with_companions(entries: Sequence[Entry], kept: set[int]) -> list[Entry]:
    """Add parallel calls and their results, which branch off the chain, and compaction records."""
    replies = _reply_ids([entries[number] for number in kept])
    calls = {
        string_of(block.get("id"))
        for entry in entries
        if _reply_id(entry) in replies
        for block in items_of(_content(entry))
    }
    followed = {string_of(entry.get("parentUuid")) for entry in entries}

    def belongs(entry: Entry) -> bool:
        # A compaction with descendants is on the chain if they are; one without stays at its position.
        is_loose = _is_boundary(entry) and string_of(entry.get("uuid")) not in followed
        return is_loose or _reply_id(entry) in replies or bool(_answers(entry) & calls)

    return [entry for number, entry in enumerate(entries) if number in kept or belongs(entry)]


def _reply_ids(entries: Iterable[Entry]) -> set[str]:
    return {_reply_id(entry) for entry in entries} - {""}


def _reply_id(entry: Entry) -> str:
    """Return the id that the lines of one reply share; empty for anything but a model's reply."""
    if entry.get("type") != "assistant":
        return ""
    message = mapping_of(entry.get("message"))
    if message.get("model") == "<synthetic>" or entry.get("isApiErrorMessage") is True:
        return ""
    return string_of(message.get("id")) or string_of(entry.get("uuid"))


def _answers(entry: Entry) -> set[str]:
    if entry.get("type") != "user":
        return set()
    return {string_of(block.get("tool_use_id")) for block in items_of(_content(entry))} - {""}


def _content(entry: Entry) -> object:
    return mapping_of(entry.get("message")).get("content")


def _is_boundary(entry: Entry) -> bool:
    return entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"


def _take_all(builder: RunBuilder, entries: Sequence[Entry], models: list[str], prompts: ClaudePrompts) -> None:
    current = ""
    by_uuid = {string_of(entry.get("uuid")): entry for entry in entries}
    shown: list[Entry] = []  # files that the user attached, which the next reply has read
    for entry in entries:
        reply = _reply_id(entry)
        if reply:
            if reply != current:
                if builder.is_broken and (sent := prompts.sent(entry)) is not None:
                    builder.keep(sent)
                builder.begin(seconds_of(entry.get("timestamp")))
                current = reply
                _take_shown(builder, shown)
            message = mapping_of(entry.get("message"))
            take_reply(builder, message.get("content"), string_of(entry.get("cwd")) or None)
            builder.use(usage_of(message.get("usage")))
            if message.get("model"):
                models.append(string_of(message.get("model")))
        elif entry.get("type") == "user":
            _take_user(builder, entry)
        elif _is_boundary(entry):
            builder.break_off("compaction", mapping_of(entry.get("compactMetadata")).get("trigger"))
            builder.keep(prompts.kept(entry, by_uuid))
        elif entry.get("type") == "attachment" and (file := attached_file(entry)) is not None:
            if builder.is_broken:
                builder.keep(KeptContext("preserved", (file.content or "",), (file,), is_complete=True))
            else:
                shown.append(entry)


def _take_shown(builder: RunBuilder, shown: list[Entry]) -> None:
    """Add a view for each file that was attached to a prompt."""
    for entry in shown:
        file = attached_file(entry)
        if file is not None:
            builder.ask(string_of(entry.get("uuid")), "Read", {"file_path": file.path})
            builder.answer(string_of(entry.get("uuid")), file.content or "")
    shown.clear()


def _take_user(builder: RunBuilder, entry: Entry) -> None:
    content = _content(entry)
    text = text_of(content)
    if entry.get("isCompactSummary") is True:
        if not builder.is_broken:
            builder.break_off("compaction")
        builder.carry(text)
    elif is_command(entry, "clear"):
        builder.break_off("clear")
    else:
        if _is_prompt(entry, text):
            builder.request(text)
        else:
            builder.hear(text)
        take_results(builder, content, mapping_of(entry.get("toolUseResult")))


def is_command(entry: Entry, name: str) -> bool:
    """Return whether a line of type `user` is the record of a slash command."""
    text = text_of(_content(entry))
    return f"<command-name>/{name}</command-name>" in text and text.lstrip().startswith(_COMMAND)


def _is_prompt(entry: Entry, text: str) -> bool:
    """Return whether a line of type `user` is what the user wrote, not a result or a notice of the scaffold."""
    is_own = entry.get("isMeta") is not True and not _answers(entry)
    return is_own and bool(text.strip()) and not text.lstrip().startswith(_NOT_PROMPTS)


def _first(entries: Iterable[Entry], field: str) -> str:
    return next(filter(None, (string_of(entry.get(field)) for entry in entries)), "")
