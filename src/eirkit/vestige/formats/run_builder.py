"""Builds a run from a stream of records: replies, calls, results that may come late, and what a compaction kept.

For formats whose logs are streams of events rather than lists of messages. Records repeated under one id are taken
once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.members import Folder, MemberPath
from eirkit.vestige.trajectory import Break, Call, KeptContext, LoggedUsage, RecordedTurn, Recording, Trigger

_TRIGGERS: tuple[Trigger, ...] = ("manual", "auto")
_INFO_FIRST = re.compile(rb'\s*\{\s*"info"\s*:')


class _OpenCall:
    """A call that may still get its result."""

    __slots__ = ("answered", "arguments", "exit_code", "failed", "folder", "full_output", "output", "tool")

    def __init__(self, tool: str, arguments: Mapping[str, Any], folder: str | None) -> None:
        self.tool, self.arguments, self.folder = tool, arguments, folder
        self.answered, self.failed, self.output = False, False, ""
        self.exit_code: int | None = None
        self.full_output: str | None = None

    def close(self) -> Call:
        return Call(self.tool, self.arguments, self.output, self.exit_code, self.failed, self.full_output, self.folder)


class _OpenTurn:
    """A reply to which more may still be added."""

    __slots__ = ("asked", "at", "breaks", "calls", "carried", "kept", "rejected", "texts", "usage")

    def __init__(
        self,
        asked: str,
        breaks: Sequence[tuple[Break, Trigger]],
        carried: str,
        kept: KeptContext | None,
        at: float | None,
    ) -> None:
        self.asked, self.breaks, self.carried, self.kept, self.at = asked, breaks, carried, kept, at
        self.calls: list[_OpenCall] = []
        self.texts: list[str] = []
        self.usage: LoggedUsage | None = None
        self.rejected = False

    def close(self) -> RecordedTurn:
        found = tuple(trigger for _, trigger in self.breaks)
        return RecordedTurn(
            calls=tuple(call.close() for call in self.calls),
            text="\n".join(filter(None, self.texts)),
            usage=self.usage,
            broken=self.breaks[-1][0] if self.breaks else None,
            carried=self.carried,
            kept=self.kept,
            rejected=self.rejected,
            asked=self.asked,
            at=self.at,
            earlier_breaks=tuple(kind for kind, _ in self.breaks[:-1]),
            triggers=found if any(trigger != "unknown" for trigger in found) else (),
        )


class RunBuilder:
    """A run under construction; methods about a turn refer to the last one begun."""

    def __init__(self) -> None:
        self._turns: list[_OpenTurn] = []
        self._calls: dict[str, _OpenCall] = {}
        self._prompt: list[str] = []
        self._breaks: list[tuple[Break, Trigger]] = []  # since the last turn
        self._carried: list[str] = []
        self._asked: list[str] = []
        self._kept: KeptContext | None = None

    @property
    def turn_count(self) -> int:
        """How many turns have begun."""
        return len(self._turns)

    @property
    def is_broken(self) -> bool:
        """True between a break of the context and the next turn."""
        return bool(self._breaks)

    @property
    def is_waiting(self) -> bool:
        """True if the last turn has calls, whose results the model has not answered yet."""
        return bool(self._turns) and bool(self._turns[-1].calls)

    @property
    def last_usage(self) -> LoggedUsage | None:
        """The usage of the last turn."""
        return self._turns[-1].usage if self._turns else None

    @property
    def said(self) -> str:
        """What the agent wrote in the last turn."""
        return "\n".join(self._turns[-1].texts) if self._turns else ""

    @property
    def prompt(self) -> str:
        """What was said before the first turn."""
        return "\n\n".join(filter(None, self._prompt))

    def hear(self, text: str) -> None:
        """Add a message of a user or scaffold; it is part of the prompt until the first turn begins."""
        if not self._turns:
            self._prompt.append(text)

    def request(self, text: str) -> None:
        """Add a prompt of the user, which begins a segment; unlike `hear`, never a message of the scaffold."""
        if text not in self._prompt:  # some logs have a prompt as a message and as an event
            self.hear(text)
        self._asked.append(text)

    def break_off(self, kind: Break, trigger: object = None) -> None:
        """Record that the context is compacted or cleared before the next turn; the last one says what stayed.

        Args:
            trigger: who started it as the log has it, `manual` or `auto`; anything else is unknown.
        """
        self._breaks.append((kind, next((known for known in _TRIGGERS if known == trigger), "unknown")))
        self._carried, self._kept = [], None

    def carry(self, text: str) -> None:
        """Add text that replaces the context after a break."""
        if self._breaks:
            self._carried.append(text)

    def keep(self, kept: KeptContext) -> None:
        """Record what else is in the context after a break; several records of one break add up."""
        if not self._breaks:
            return
        before = self._kept
        if before is None:
            self._kept = kept
            return
        self._kept = replace(
            before if kept.evidence == "size" else kept,
            texts=before.texts + kept.texts,
            files=before.files + kept.files,
            turns=before.turns + kept.turns,
            is_complete=before.is_complete or kept.is_complete,
            is_opaque=before.is_opaque or kept.is_opaque,
            tokens_before=before.tokens_before or kept.tokens_before,
            tokens_after=before.tokens_after or kept.tokens_after,
        )

    def begin(self, at: float | None = None) -> None:
        """Begin a turn; a break before the first turn is ignored, since there was nothing to lose.

        Args:
            at: when the reply came, in seconds since 1970, if the log says so.
        """
        breaks = self._breaks if self._turns else ()
        carried = "\n\n".join(filter(None, self._carried)) if breaks else ""
        asked = "\n\n".join(filter(None, self._asked))
        self._turns.append(_OpenTurn(asked, breaks, carried, self._kept if breaks else None, at))
        if self._breaks and not breaks:
            self._prompt += self._carried
        self._breaks, self._carried, self._asked, self._kept = [], [], [], None

    def say(self, text: str) -> None:
        """Add text that the agent wrote in this turn."""
        self._turns[-1].texts.append(text)

    def use(self, usage: LoggedUsage | None) -> None:
        """Set the usage of this turn; where a log repeats it while it grows, the last value counts."""
        if usage is not None:
            self._turns[-1].usage = usage

    def reject(self) -> None:
        """Record that the scaffold rejected this reply."""
        self._turns[-1].rejected = True

    def ask(
        self, id: str, tool: str, arguments: Mapping[str, Any], folder: str | None = None, turn: int | None = None
    ) -> None:
        """Add a call to this turn, or to that of a number, once per id; an empty id identifies no call."""
        place = len(self._turns) if turn is None else turn
        if (id and id in self._calls) or place > len(self._turns):  # a turn that was rolled back
            return
        call = _OpenCall(tool, arguments, folder)
        self._turns[place - 1].calls.append(call)
        if id:
            self._calls[id] = call

    def is_answered(self, id: str) -> bool:
        """Return whether the call with an id has its result."""
        return id in self._calls and self._calls[id].answered

    def asked(self, id: str) -> tuple[str, Mapping[str, Any]] | None:
        """Return the tool and the arguments of the call with an id."""
        call = self._calls.get(id)
        return None if call is None else (call.tool, call.arguments)

    def release(self, id: str) -> None:
        """Let an id be used for another call from now on, where ids are reused in every turn."""
        self._calls.pop(id, None)

    def answer(
        self,
        id: str,
        output: str,
        *,
        failed: bool = False,
        exit_code: object = None,
        full_output: str | None = None,
    ) -> None:
        """Set the result of a call, whichever turn it was made in; a second result is a repetition.

        Args:
            exit_code: as the log has it; unknown if it is no whole number.
        """
        call = self._calls.get(id)
        if call is not None and not call.answered:
            call.answered, call.output, call.failed = True, output, failed
            call.exit_code = exit_code if type(exit_code) is int else None
            call.full_output = full_output

    def extend(self, id: str, output: str, exit_code: int | None) -> None:
        """Add what a command printed later, while it still ran; its exit code comes with the last part."""
        call = self._calls.get(id)
        if call is not None:
            call.output += output
            call.exit_code = exit_code if exit_code is not None else call.exit_code

    def answer_last(self, output: str, *, failed: bool = False) -> None:
        """Set the result of the last call of this turn, where the result names no call."""
        if self._turns and self._turns[-1].calls:
            call = self._turns[-1].calls[-1]
            call.output = f"{call.output}\n{output}" if call.answered and call.output else output
            call.answered, call.failed = True, call.failed or failed

    def drop_summary(self, text: str) -> None:
        """Drop the last turn if it is no more than the summary in a text, which some logs have as a reply, too."""
        last = self._turns[-1] if self._turns else None
        said = "\n".join(filter(None, last.texts)) if last is not None and not last.calls else ""
        if said and said in text:
            self._turns.pop()

    def drop_from(self, first: int) -> None:
        """Drop the turns from a number on, counted from 0: they were rolled back."""
        del self._turns[first:]

    def turns(self) -> tuple[RecordedTurn, ...]:
        """Return the turns so far."""
        return tuple(turn.close() for turn in self._turns)

    def recording(
        self, document: LogDocument, format: str, run_id: str, *, place: str = "", parent: str = "", **facts: Any
    ) -> Recording | Skipped:
        """Return the run, or that there is no reply in it; `facts` are other fields, of which empty ones are unknown.

        `place` is the run's position in a document of several; `parent` is the run that started a sub-agent.
        """
        if not self._turns:
            return skipped(document, "holds no reply of the agent; leave it out", place)
        run_id = run_id or document.name.removesuffix(".json").removesuffix(".jsonl")
        known = {"task_id": parent or run_id} | {name: value for name, value in facts.items() if value}
        if parent:
            known["details"] = {**known.get("details", {}), "parent_run": parent}
        source = f"{document.source}:{place}" if place else document.source
        return Recording(run_id=run_id, format=format, source=source, turns=self.turns(), prompt=self.prompt, **known)


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def string_of(value: object) -> str:
    """Return a string as it is, an integer as its digits, and an empty string for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def items_of(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list, without other items."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number_of(value: object) -> float | None:
    """Return a finite number as it is, and None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float) and abs(value) < float(1 << 53):
        return float(value)
    return None


def count_of(value: object) -> int:
    """Return a number of tokens; 0 for anything else."""
    return whole_number(value) or 0


def logged_usage(given: Iterable[object], written: Iterable[object], cached: object) -> LoggedUsage | None:
    """Return the usage of a response from stated numbers of tokens; None, which is unknown, if one is no number.

    Args:
        given: parts of the prompt, None where one is not stated.
        written: parts of the reply.
        cached: what of the prompt was read from a cache.
    """
    inputs, outputs, read = (_sum_of(parts) for parts in (given, written, (cached,)))
    if inputs is None or outputs is None or read is None:
        return None
    return LoggedUsage(inputs, outputs, min(inputs, read))


def prompted_usage(given: Iterable[object], written: Iterable[object], cached: object) -> LoggedUsage | None:
    """Return what `logged_usage` does; None also where the prompt has no token, so that nothing was counted."""
    found = logged_usage(given, written, cached)
    return found if found is not None and found.input_tokens else None


def _sum_of(stated: Iterable[object]) -> int | None:
    found = [0 if one is None else whole_number(one) for one in stated]
    known = [one for one in found if one is not None]
    return sum(known) if len(known) == len(found) else None


def whole_number(value: object) -> int | None:
    """Return a number that is not negative, rounded down; None for anything else."""
    number = None if isinstance(value, bool) else number_of(value)
    return int(number) if number is not None and number >= 0 else None


def seconds_of(value: object) -> float | None:
    """Return a time in seconds since 1970 from an ISO text or a number of milliseconds; None for anything else."""
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    milliseconds = None if isinstance(value, bool) else number_of(value)
    return None if milliseconds is None or milliseconds <= 0 else milliseconds / 1000


def parsed(text: object) -> Any:
    """Return the content of a JSON text in a field; None for anything else."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def whole_document(document: LogDocument) -> Mapping[str, Any] | Skipped:
    """Return the object in a document, or why there is none."""
    try:
        value = document.json()
    except InputFileError as error:
        return skipped(document, error)
    return value if isinstance(value, dict) else Skipped(document.source, "is not a JSON object; restore the file")


def read_one_run(
    document: LogDocument, make: Callable[[Mapping[str, Any], LogDocument], Recording | Skipped]
) -> Iterator[Recording | Skipped]:
    """Yield the run in a JSON object, or why there is none."""
    content = whole_document(document)
    if isinstance(content, Skipped):
        yield content
        return
    try:
        made = make(content, document)
    except InputFileError as error:
        made = skipped(document, error)
    del content  # before the run is measured
    yield made


def is_own_file(path: Folder, folder: Folder) -> bool:
    """Return whether a path is an ordinary file inside a folder, without a link that leads out; archives have none."""
    if isinstance(path, MemberPath) or isinstance(folder, MemberPath):
        return path.is_file()
    try:
        return path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def skipped(document: LogDocument, error: Exception | str, place: str = "") -> Skipped:
    """Return the report about a document, or a part of it, that cannot be read."""
    reason = str(error).removeprefix(f"{document.source}: ")
    return Skipped(f"{document.source}:{place}" if place else document.source, reason)


def objects_by_line(document: LogDocument) -> Iterator[Mapping[str, Any] | Skipped]:
    """Yield the objects of a JSON lines document, and lines that cannot be read with their number."""
    lines: Iterable[tuple[int, Any | Exception]] = document.lines()
    try:
        for number, value in lines:
            if isinstance(value, dict):
                yield value
            elif isinstance(value, Exception):
                yield skipped(document, value, str(number))
            else:
                yield skipped(document, "is not a JSON object; remove the line", str(number))
    except InputFileError as error:
        yield skipped(document, error)


def take_lines(document: LogDocument, take: Callable[[Mapping[str, Any]], None]) -> Iterator[Skipped]:
    """Give the objects of a JSON lines document to a reader; yield the lines that cannot be read."""
    for value in objects_by_line(document):
        if isinstance(value, Skipped):
            yield value
        else:
            take(value)


def begins_with_info(head: bytes) -> bool:
    """Return whether the first key of an object is `info`, as in the logs of some scaffolds."""
    return _INFO_FIRST.match(head) is not None
