"""The format family, and the two shapes of a run: as it was recorded, and as what its actions read and wrote.

A format turns bytes into a `Recording`: calls and what they returned, nothing interpreted. `touches.py` turns that into
a `Trajectory`: files read and written, turn by turn. Everything in a log is text from strangers: nothing here runs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from eirkit.facts import fact
from eirkit.logs.sources.documents import Document, Skipped
from eirkit.registry import Registry

Break = Literal["compaction", "clear"]
Domain = Literal["files", "entities"]
WriteKind = Literal["whole", "edit", "delete"]


@fact
class LoggedUsage:
    """Tokens of the model's responses in a turn as the log gives them; what a log repeats is counted once."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of the input
    largest: LoggedUsage | None = None  # of several responses the one that filled the context most

    @classmethod
    def total(cls, several: Sequence[LoggedUsage]) -> LoggedUsage:
        """Return what several responses used; none used nothing."""
        if len(several) == 1:
            return several[0]
        return cls(
            sum(one.input_tokens for one in several),
            sum(one.output_tokens for one in several),
            sum(one.cached_tokens for one in several),
            max(several, key=lambda one: one.input_tokens + one.output_tokens, default=None),
        )


@fact
class Call:
    """One tool call and what came back; a shell command is a call of `bash` with the argument `command`."""

    tool: str
    arguments: Mapping[str, Any]
    output: str = ""
    exit_code: int | None = None  # None: the log does not say
    failed: bool = False  # the tool itself reported an error
    full_output: str | None = None  # the text before the scaffold cut it, where the log keeps both
    working_folder: str | None = None  # where the log says in which folder the call began


@fact
class Lines:
    """Lines of a file, both ends included, from 1."""

    first: int
    last: int


@fact
class FileRead:
    """A file whose content an action put before the agent."""

    path: str
    tokens: int | None = None  # given by the log; counted from the content where it is None
    content: str | None = None  # what the agent saw of it
    lines: Mapping[int, str] | None = None  # the same by number, where the viewer numbers them
    requested: Lines | None = None  # the range that was asked for; None: the whole file
    clipped: bool = False  # part of the answer was left out by the scaffold


@fact
class FileWrite:
    """A file that an action changed, made or removed."""

    path: str
    kind: WriteKind = "edit"
    tokens: int | None = None  # of the version it made, where the log gives it
    content: str | None = None  # the whole new content, where the action shows it
    removed: str | None = None  # of an edit: the text that left
    added: str | None = None  # and the text that came


@fact
class Touches:
    """What one call or one turn read and wrote; reads come before writes."""

    reads: tuple[FileRead, ...] = ()
    writes: tuple[FileWrite, ...] = ()


@fact
class RecordedTurn:
    """One reply of the agent and what its calls returned."""

    calls: tuple[Call, ...] = ()
    text: str = ""  # what the agent wrote beside its calls
    usage: LoggedUsage | None = None
    touches: Touches | None = None  # where the log itself says what was read and written
    tokens: int | None = None  # of the turn, where the log gives them
    broken: Break | None = None  # the context was compacted or cleared just before this turn
    carried: str = ""  # what took the place of the context then, such as a summary
    rejected: bool = False  # the scaffold refused the reply: none of its calls was carried out


@dataclass(frozen=True, slots=True)
class Recording:
    """One run as a log tells it."""

    run_id: str
    task_id: str
    format: str
    source: str  # the file, and the place in it where it holds several runs
    turns: tuple[RecordedTurn, ...]
    model: str = ""
    resolved: bool | None = None  # None: the run does not say; a file of outcomes may
    reward: float | None = None
    goal_files: tuple[str, ...] | None = None  # None: not given; (): given, and there is none
    prompt: str = ""  # what the agent was told before its first turn
    submission: str | None = None  # the final diff, where one was handed in
    root: str | None = None  # the repository's folder, where the log says
    exit_status: str = ""
    domain: Domain = "files"
    details: Mapping[str, Any] = field(default_factory=dict)  # what only this format knows, such as a task's own text


@fact
class Turn:
    """One turn as the graph sees it."""

    number: int  # from 1
    reads: tuple[FileRead, ...]
    writes: tuple[FileWrite, ...]
    tokens: int  # of the reply and what its calls returned
    recorded: RecordedTurn


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run with what it touched; paths are relative to the repository's folder, others absolute."""

    recording: Recording
    turns: tuple[Turn, ...]
    root: str | None  # the repository's folder, as the log says or as it was inferred
    unresolved: int = 0  # words in commands that named files nobody can tell: globs, outputs of other commands


class Format(Protocol):
    """One kind of log."""

    def recognises(self, document: Document) -> bool:
        """True if a document's beginning can only be of this format; cheap, and never raises."""
        ...

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the runs in a document one at a time; what is damaged is yielded as skipped, never dropped."""
        ...


@runtime_checkable
class FolderFormat(Format, Protocol):
    """A format whose runs lie in several files of a folder: one document is the run, the others belong to it."""

    def claims(self, folder: Path, names: Sequence[str]) -> Collection[str]:
        """Return those of a folder's names, files or sub-folders, that are read with another document there.

        They are no runs of their own, whatever else recognises them. Asked once for every folder, so cheap; never
        raises.
        """
        ...


formats: Registry[type[Format]] = Registry("format", group="eirkit.formats", package="eirkit.logs.formats")
