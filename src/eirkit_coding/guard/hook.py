"""The hooks of the guard: reads an event of a coding agent from standard input and answers in the agent's schema.

At a compaction it stores what the session works with, and right after it says what is likely gone and needed. It keeps
its place in the transcript, so that each call reads only what is new. Whatever happens, it exits with 0 and prints
nothing or one JSON object; a failure is one line in the guard's log. Nothing is sent anywhere.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal

from msgspec import Struct, ValidationError, convert, to_builtins

from eirkit.errors import InputFileError, UsageError
from eirkit.folders import files_for_owner_only, own_folder, replace_file
from eirkit.limits import time_limit
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.sources.documents import ReadLimits, Skipped, StoredDocument
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Recording, formats
from eirkit_coding.guard.other_transcripts import last_snapshot, new_messages, new_rows, prompt_in
from eirkit_coding.guard.trial import Arm, Compaction, draw_arm, json_line
from eirkit_coding.guard.working_set import WorkingSet, other_files, restored_text, sham_text

FORMATS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}
SECONDS = 20  # after which a call gives up; agents wait at most twice as long
READ_SECONDS = 10.0  # of processor time for what is new in a transcript; then only its prompts are read
MOST_BYTES = 32 << 20  # of a transcript that are interpreted; of what lies before, only prompts are read
MOST_KEPT = 200  # sessions, and texts that did not fit; the oldest are removed
_HEAD_BYTES = 4096  # by which a transcript is recognized
_PROMPT_BYTES = 1 << 14  # of a line that is read for its prompt alone
_EVENT_BYTES = 1 << 20  # of an event
_LOG_BYTES = 1 << 20  # after which the guard's log begins again


def guard_folder() -> Path:
    """Return the folder of the guard's own files."""
    return own_folder() / "guard"


@dataclass(slots=True)
class SessionMemory:
    """What the guard knows about one session, and its place in the transcript."""

    transcript: str = ""
    head: str = ""  # digest of its beginning
    offset: int = 0
    working: WorkingSet = field(default_factory=WorkingSet)
    compactions: int = 0
    arm: Arm = "restore"
    restored: str = ""  # the text after the last compaction
    snapshot: str = ""  # of Gemini CLI: the id of the last summary that was answered
    layout: Literal[4] = 4  # of the file; another number makes it obsolete


class Sessions:
    """The memories of sessions, one file each, so that sessions at the same time do not meet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, agent: str, session: str) -> Path:
        return self.folder / f"{agent}-{sha256(session.encode('utf-8', 'replace')).hexdigest()[:24]}.json"

    def load(self, agent: str, session: str) -> SessionMemory:
        """Return a session's memory; an empty one if there is none or it is damaged."""
        try:
            return convert(json.loads(self.path(agent, session).read_bytes()), SessionMemory)
        except (OSError, ValueError, RecursionError, ValidationError):
            return SessionMemory()

    def save(self, agent: str, session: str, memory: SessionMemory) -> None:
        path = self.path(agent, session)
        is_new = not path.exists()
        write_own(path, json_line(memory))
        if is_new:
            keep_newest(self.folder)


def keep_newest(folder: Path, most: int = MOST_KEPT) -> None:
    """Remove the oldest files of a folder of the guard, beyond so many."""
    with suppress(OSError):
        dated = sorted((path.stat().st_mtime, path) for path in folder.iterdir() if path.is_file())
        for _, path in dated[:-most]:
            path.unlink(missing_ok=True)


def write_own(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; a reader sees the old one or the whole new one."""
    with files_for_owner_only():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


def catch_up(memory: SessionMemory, agent: str, transcript: Path, session: str = "", folder: str = "") -> str:
    """Read what was written to a transcript since the last time; from the beginning if it is another file.

    Returns what of the new part could not be read and why; nothing if all of it was.
    """
    if agent == "opencode":
        content, row = new_rows(transcript, session, memory.offset if memory.transcript == str(transcript) else 0)
        memory.transcript, memory.offset = str(transcript), row
        return _interpret(memory, agent, content, content, folder)
    if not transcript.is_file():  # a pipe would never end
        raise FileNotFoundError(f"{transcript} is not a file")
    with transcript.open("rb") as stream:
        head = sha256(stream.read(_HEAD_BYTES)).hexdigest()
        size = stream.seek(0, os.SEEK_END)
        begins_alike = head == memory.head or memory.offset < _HEAD_BYTES
        if memory.transcript != str(transcript) or size < memory.offset or not begins_alike:
            memory.offset, memory.working = 0, WorkingSet()
        memory.transcript, memory.head = str(transcript), head
        start = memory.offset
        if size - start > MOST_BYTES:
            stream.seek(start)
            start = _hear_only(memory.working, stream, size - MOST_BYTES)
        stream.seek(0)
        first = stream.readline(MOST_BYTES) if agent in ("codex", "gemini") and start else b""
        stream.seek(start)
        new = stream.read(max(0, size - start))
    complete = new.rfind(b"\n") + 1
    memory.offset = start + complete
    read = new_messages(new[:complete]) if agent == "gemini" else new[:complete]
    return _interpret(memory, agent, first + read, read, folder)


def _interpret(memory: SessionMemory, agent: str, content: bytes, new: bytes, folder: str) -> str:
    working = deepcopy(memory.working)  # so that an interrupt leaves nothing half done
    damaged: list[Skipped] = []
    try:
        with time_limit(READ_SECONDS, "the transcript"):
            for item in _read(agent, content):
                if isinstance(item, Skipped):
                    damaged += [item] if ":" in item.source else []  # a line; a new part without a reply is none
                elif "parent_run" not in item.details:  # a sub-agent has a context of its own
                    rooted = item if item.root else replace(item, root=folder or None)
                    working.take(interpret(rooted, estimating_counter()))
    except InputFileError as error:
        _hear_only(memory.working, io.BytesIO(new), len(new))
        return f"only prompts were read: {error}"
    memory.working = working
    return f"damaged lines left out: {len(damaged)}; the first is {damaged[0].reason}" if damaged else ""


def _hear_only(working: WorkingSet, stream: IO[bytes], stop: int) -> int:
    """Take the user's prompts up to a place in the transcript, and return where the next line begins."""
    while line := stream.readline(_PROMPT_BYTES):
        if not line.endswith(b"\n"):
            while (rest := stream.readline(_EVENT_BYTES)) and not rest.endswith(b"\n"):
                pass
        elif b'"tool_result"' not in line and b'"user' in line:
            working.hear(prompt_in(line))
        if stream.tell() >= stop:
            break
    return stream.tell()


def _read(agent: str, content: bytes) -> Iterator[Recording | Skipped]:
    """Yield the runs in some lines of a transcript, and what of them is damaged."""
    limits = ReadLimits()
    name = "transcript.json" if agent == "opencode" else "transcript.jsonl"
    document = StoredDocument(lambda: io.BytesIO(content), "transcript", name, None, limits)
    yield from formats.get(FORMATS[agent])().read(document)


class _Payload(Struct, frozen=True):
    """What is used of an event's JSON."""

    session_id: str | None = None
    transcript_path: str | None = None
    cwd: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event of an agent, in the names that all of them share."""

    agent: str
    name: str
    session: str
    transcript: Path | None
    folder: str  # in which the session works
    source: str  # of the start of a session: what started it

    @classmethod
    def read(cls, agent: str, name: str, payload: object) -> HookEvent:
        """Return the event that an agent described in JSON.

        Raises:
            ValidationError: it is not described in the form that agents document.
        """
        if agent not in FORMATS:
            raise UsageError(f"there is no guard for {agent!r}; give {', '.join(FORMATS)}")
        found = convert(payload, _Payload)
        path = found.transcript_path or ""
        return cls(
            agent=agent,
            name=name,
            session=found.session_id or path,
            transcript=Path(path) if path else None,
            folder=found.cwd or "",
            source=found.source or "",
        )


class HookOutput(Struct, frozen=True, rename="camel"):
    """What an event's answer adds to the context."""

    hook_event_name: str
    additional_context: str


class HookAnswer(Struct, frozen=True, rename="camel"):
    """The answer to an event, in the schema that all agents share."""

    hook_specific_output: HookOutput


def respond(event: HookEvent, folder: Path, now: float) -> HookAnswer | None:
    """Return the answer to an event, None for silence.

    Raises: whatever goes wrong; `main` turns it into a line of the log.
    """
    sessions = Sessions(folder / "sessions")
    memory = sessions.load(event.agent, event.session)
    if event.name == "PreCompact":
        _read_transcript(memory, event, folder, now)
        memory.compactions += 1
        sessions.save(event.agent, event.session, memory)
        return None
    if event.name == "Resume":
        return _answer("SessionStart", memory.restored)
    if not _follows_compaction(memory, event):
        return None
    with suppress(OSError, OutOfTimeError):  # what was stored before the compaction is still known
        _read_transcript(memory, event, folder, now)
    memory.working.compact(event.agent)
    memory.restored = _restore(memory, event, folder, now)
    with suppress(OSError):  # on a full disk the answer is still good
        sessions.save(event.agent, event.session, memory)
    return _answer(event.name, memory.restored)


def _answer(name: str, text: str) -> HookAnswer | None:
    return HookAnswer(HookOutput(name, text)) if text else None


def _follows_compaction(memory: SessionMemory, event: HookEvent) -> bool:
    """Return whether this is the first event after a compaction; Gemini CLI has none of its own for that."""
    if event.name == "SessionStart":
        return event.source == "compact"
    if event.name not in ("BeforeAgent", "AfterTool") or event.transcript is None:
        return False
    with event.transcript.open("rb") as stream:
        known = memory.offset if memory.transcript == str(event.transcript) else 0
        stream.seek(max(known, stream.seek(0, os.SEEK_END) - MOST_BYTES))
        snapshot = last_snapshot(stream.read(MOST_BYTES))
    if not snapshot or snapshot == memory.snapshot:
        return False
    memory.snapshot = snapshot
    memory.compactions += 1
    return True


def _read_transcript(memory: SessionMemory, event: HookEvent, folder: Path, now: float) -> None:
    if event.transcript is None:
        raise FileNotFoundError("the event names no transcript")
    if complaint := catch_up(memory, event.agent, event.transcript, event.session, event.folder):
        log(folder, f"{event.agent} {event.name}: {event.transcript}: {complaint}", now)


def _restore(memory: SessionMemory, event: HookEvent, folder: Path, now: float) -> str:
    """Return what to say after a compaction, under a trial by the arm that was drawn."""
    name = f"{event.agent}-{sha256(event.session.encode('utf-8', 'replace')).hexdigest()[:12]}-{memory.compactions}.md"
    rest = folder / "restored" / name
    found = restored_text(memory.working, event.folder, str(rest))
    if found is None:
        return ""
    compaction = Compaction(
        at=now,
        agent=event.agent,
        session=event.session,
        transcript=str(event.transcript or ""),
        number=memory.compactions,
        bytes=len(found.text.encode()),
        files=found.files,
    )
    memory.arm = draw_arm(folder, event.folder, compaction)
    if memory.arm == "nothing":
        return ""
    if memory.arm == "sham":
        unused = other_files(Path(event.folder), memory.working.files) if event.folder else iter(())
        return sham_text(len(found.text.encode()), unused)
    if found.is_cut:
        try:
            write_own(rest, f"{found.whole}\n".encode("utf-8", "replace"))
            keep_newest(rest.parent)
        except OSError:  # without the file the text must not name it
            found = restored_text(memory.working, event.folder, "not stored: the disk is full or read-only") or found
    return found.text


def main(arguments: list[str]) -> int:
    """Answer one event: `AGENT EVENT`, with the event's JSON on standard input. Always returns 0."""
    folder = guard_folder()
    where = " ".join(arguments[:2])
    try:
        _limit_time()
        agent, name = arguments[:2]
        payload = json.loads(sys.stdin.buffer.read(_EVENT_BYTES))
        answer = respond(HookEvent.read(agent, name, payload), folder, time.time())
        _end_limit()
        if answer is not None:
            sys.stdout.write(json.dumps(to_builtins(answer)))
            sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - an agent must never notice that its guard failed
        _end_limit()
        log(folder, f"{where}: {type(error).__name__}: {error}", time.time())
    return 0


class OutOfTimeError(BaseException):
    """The time of a call has passed; not an Exception, so that no reader takes it for damage in a transcript."""


def _limit_time() -> None:
    """Give up after some seconds, whatever the transcript holds, and again if that is not heard."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)


def _end_limit() -> None:
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def _give_up(_number: int, _frame: object) -> None:
    raise OutOfTimeError(f"gave up after {SECONDS} s")


def log(folder: Path, line: str, now: float) -> None:
    """Append one line to the guard's log; where that is impossible, nothing is left to do."""
    path = folder / "guard.log"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    with suppress(OSError, ValueError), files_for_owner_only():
        folder.mkdir(parents=True, exist_ok=True)
        is_long = path.is_file() and path.stat().st_size > _LOG_BYTES
        with path.open("w" if is_long else "a", encoding="utf-8", errors="replace") as stream:
            stream.write(f"{stamp} {' '.join(line.split())[:500]}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
