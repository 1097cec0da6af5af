"""The core types: log formats, a run as recorded (`Recording`), and a run with the files it touched (`Trajectory`).

A format turns bytes into a `Recording`: calls and their results, uninterpreted. `actions/touches.py` turns that into a
`Trajectory`: files read and written, turn by turn. All text in a log is untrusted, and none of it is executed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from eirkit.records.analysis import Break as Break  # what authors of formats need
from eirkit.records.analysis import Domain as Domain
from eirkit.records.analysis import Trigger as Trigger
from eirkit.registry import Registry
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.sources.members import Folder

WriteKind = Literal["whole", "edit", "delete"]
Evidence = Literal[
    "prompt",  # the next request as it was sent
    "history",  # the messages that replaced the context: replacement histories, compressed histories, visible messages
    "preserved",  # the messages and files that the log says were kept or put back
    "removed",  # the messages that the log says were removed; the others stayed
    "size",  # only how large the context was before and after
]


class LoggedUsage(Struct, frozen=True, gc=False):
    """Tokens of the model's responses in a turn, as logged; repeated records are counted once."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of the input
    largest: LoggedUsage | None = None  # of several responses, the one with the largest context

    @classmethod
    def total(cls, several: Sequence[LoggedUsage]) -> LoggedUsage:
        """Return the sum over several responses, zero for none."""
        if len(several) == 1:
            return several[0]
        return cls(
            sum(one.input_tokens for one in several),
            sum(one.output_tokens for one in several),
            sum(one.cached_tokens for one in several),
            max(several, key=lambda one: one.input_tokens + one.output_tokens, default=None),
        )


class Call(Struct, frozen=True, gc=False):
    """One tool call and its result; a shell command is a call of `bash` with the argument `command`."""

    tool: str
    arguments: Mapping[str, Any]
    output: str = ""
    exit_code: int | None = None  # None: the log does not say
    failed: bool = False  # the tool itself reported an error
    full_output: str | None = None  # the text before the scaffold truncated it, if the log keeps both
    working_folder: str | None = None  # the folder in which the call started, if the log says so


class Lines(Struct, frozen=True, gc=False):
    """A range of lines of a file, both ends included, from 1."""

    first: int
    last: int


class FileRead(Struct, frozen=True, gc=False):
    """A file whose content an action showed to the agent."""

    path: str
    tokens: int | None = None  # from the log; None: counted from the content
    content: str | None = None  # what the agent saw of it
    lines: Mapping[int, str] | None = None  # the same by line number, if the viewer prints them
    requested: Lines | None = None  # the requested range; None: the whole file
    clipped: bool = False  # the scaffold truncated the output
    undivided: bool = False  # printed with other files without a mark between them: its tokens are an equal part
    rewritten: bool = False  # the turn had written the file before, so that this is the new version


class FileWrite(Struct, frozen=True, gc=False):
    """A file that an action changed, created or removed."""

    path: str
    kind: WriteKind = "edit"
    tokens: int | None = None  # of the new version, if the log gives it
    content: str | None = None  # the whole new content, if the action shows it
    removed: str | None = None  # of an edit: the removed text
    added: str | None = None  # of an edit: the added text
    restored: bool = False  # it put the committed content back


class Touches(Struct, frozen=True, gc=False):
    """What one call or one turn read and wrote; reads come before writes."""

    reads: tuple[FileRead, ...] = ()
    writes: tuple[FileWrite, ...] = ()


class KeptContext(Struct, frozen=True, gc=False):
    """What a log says of the context right after a break, beyond the summary in `RecordedTurn.carried`.

    `texts` and `turns` were in the context word for word. `is_complete` says that nothing else of the past was: what is
    in neither of them nor in the summary is then gone. Otherwise what is not named may be gone or not.
    """

    evidence: Evidence
    texts: tuple[str, ...] = ()  # results, messages and files, kept or put back
    files: tuple[FileRead, ...] = ()  # of those texts, the files that the scaffold itself put back
    turns: tuple[int, ...] = ()  # earlier turns, from 1, that stayed with the results of their calls
    is_complete: bool = False
    is_opaque: bool = False  # something was kept that the log does not show, or in encrypted form only
    tokens_before: int | None = None  # of the context, as logged
    tokens_after: int | None = None


class RecordedTurn(Struct, frozen=True, gc=False):
    """One reply of the agent and the results of its calls."""

    calls: tuple[Call, ...] = ()
    text: str = ""  # what the agent wrote besides its calls
    usage: LoggedUsage | None = None
    touches: Touches | None = None  # if the log itself says what was read and written
    tokens: int | None = None  # of the turn, if the log gives them
    broken: Break | None = None  # the context was compacted or cleared just before this turn
    carried: str = ""  # what replaced the context then, such as a summary
    kept: KeptContext | None = None  # what else was in the context then; None: the log does not say
    rejected: bool = False  # the scaffold rejected the reply: none of its calls was executed
    asked: str = ""  # what the user asked just before this turn, which begins a segment of the session
    at: float | None = None  # when the reply came, in seconds since 1970; None: the log does not say
    earlier_breaks: tuple[Break, ...] = ()  # since the turn before, besides `broken`, which was the last of them
    triggers: tuple[Trigger, ...] = ()  # of `earlier_breaks` and `broken`, where the log says who started them

    def breaks(self, kind: Break) -> int:
        """Return how many breaks of a kind came just before this turn."""
        return self.earlier_breaks.count(kind) + (self.broken == kind)

    @property
    def trigger(self) -> Trigger:
        """Who started the break just before this turn; only users clear a context."""
        if self.broken == "clear":
            return "manual"
        return self.triggers[-1] if self.triggers else "unknown"


@dataclass(frozen=True, slots=True)
class Recording:
    """One run as logged."""

    run_id: str
    task_id: str
    format: str
    source: str  # the file, and the position in it if it holds several runs
    turns: tuple[RecordedTurn, ...]
    model: str = ""
    resolved: bool | None = None  # None: not recorded in the run; a result file may give it
    reward: float | None = None
    goal_files: tuple[str, ...] | None = None  # None: not given; (): given as empty
    prompt: str = ""  # the messages before the first turn
    submission: str | None = None  # the final diff, if one was submitted
    root: str | None = None  # the repository's folder, if the log says so
    exit_status: str = ""
    domain: Domain = "files"
    agent_version: str = ""  # of the agent that wrote the log, if the log says so
    window: int | None = None  # the model's context window in tokens, if the log says so
    details: Mapping[str, Any] = field(default_factory=dict)  # data specific to the format, such as the task's text


class Turn(Struct, frozen=True, gc=False):
    """One turn as used by the graph."""

    number: int  # from 1
    reads: tuple[FileRead, ...]
    writes: tuple[FileWrite, ...]
    tokens: int  # of the reply and the results of its calls
    recorded: RecordedTurn


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run with the files it touched; paths are relative to the repository's folder, others absolute."""

    recording: Recording
    turns: tuple[Turn, ...]
    root: str | None  # the repository's folder, from the log or inferred
    unclear_calls: tuple[tuple[str, int], ...] = ()  # by tool: calls that may have touched other files


SHAPE, MARKED, NAMED = 1, 2, 3
"""How sure a format is of a document: 1, it has a general shape that other logs share, such as a list of messages; 2,
it has keys that only this format writes; 3, it names the agent or the schema. 0 is another format, and True is 1."""


class LogFormat(Protocol):
    """One kind of log."""

    def recognizes(self, document: LogDocument) -> int:
        """Return how sure it is that a document is of this format, judged by its beginning; cheap, and never raises."""
        ...

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the runs in a document one at a time; damaged parts are yielded as skipped, never dropped."""
        ...


@runtime_checkable
class FolderFormat(LogFormat, Protocol):
    """A format whose runs consist of several files in a folder: one document is the run, the others belong to it."""

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the names in a folder, files or subfolders, that are read with another document there.

        They are not runs of their own, whatever else recognizes them. Called once per folder, so it must be cheap; it
        never raises.
        """
        ...


formats: Registry[type[LogFormat]] = Registry("format", group="eirkit.formats", package="eirkit.vestige.formats")
