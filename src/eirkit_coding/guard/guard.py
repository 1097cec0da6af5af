"""Finds file content that left the context of a conversation, and how likely it is to be needed again.

The estimate is the share of files with a similar history that recorded runs used again; the counts contain no text of
any run, and `python -m studies.guard_replay` recomputes them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from msgspec import Struct

from eirkit.errors import InputFileError
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.formats.message_rows import read_messages
from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.ledger import Ledger, Line, Message, tokens_of
from eirkit.vestige.lines import is_distinctive
from eirkit.vestige.tokens import Counter, estimating_counter
from eirkit.vestige.trajectory import Recording, Trajectory
from eirkit.vestige.viewer_output import names_file
from eirkit_coding.guard.conversation import Transcript, openai_messages, whole_text

MOST_USES = 4
IDLE = (0, 1, 3, 7, 15)  # upper ends of the bins, in turns; the last bin is open
PRIOR_USED, PRIOR = 1, 2  # pseudo-counts: one reuse in two files, so that no estimate is 0 or 1


@dataclass(frozen=True, slots=True)
class FileHistory:
    """What the run has done with a file so far."""

    uses: int  # turns that read or wrote it
    idle: int  # turns since the last of them
    written: bool

    @property
    def history_bin(self) -> str:
        """The name of the bin in which files with this history are counted."""
        resting = next((str(most) for most in IDLE if self.idle <= most), "more")
        return f"{'written' if self.written else 'read'} {min(self.uses, MOST_USES)} {resting}"


Counts = Mapping[str, tuple[int, int]]  # history bin → (files used again, all files)


def reuse_chance(past: FileHistory, counts: Counts | None = None) -> float:
    """Return the share of files with this history that were used again; 0.5 for a history never observed."""
    used, every = (counts if counts is not None else bundled_counts()).get(past.history_bin, (0, 0))
    return (used + PRIOR_USED) / (every + PRIOR)


def count_reuse(pasts: Iterable[tuple[FileHistory, bool]]) -> dict[str, tuple[int, int]]:
    """Return how many files of each history bin were used again, and how many there were."""
    found: dict[str, tuple[int, int]] = {}
    for past, again in pasts:
        used, every = found.get(past.history_bin, (0, 0))
        found[past.history_bin] = (used + again, every + 1)
    return dict(sorted(found.items()))


@cache
def bundled_counts() -> Counts:
    """Return the counts that ship with the package."""
    text = Path(__file__).with_name("reuse_odds.json").read_text("utf-8")
    return {name: (used, every) for name, (used, every) in json.loads(text)["counts"].items()}


IN_VIEW = 0.5  # share of a file's distinctive lines below which its content counts as lost
_FOLDER = re.compile(r"(?:[Ww]orking directory: |<cwd>)(/[^\s<]{1,400})")
LIKELY = 0.5  # chance of reuse from which a loss is reported


class Loss(Struct, frozen=True):
    """One file whose content left the context."""

    turn: int  # replies of the agent before the request
    path: str
    tokens: int  # of the lines that the agent had seen
    kept: float  # share of them that is still in the context
    uses: int  # turns that read or wrote it
    idle_turns: int  # turns since the last of these
    written: bool  # the agent wrote the file itself
    chance: float  # estimated chance that the file is read or edited again
    likely: bool

    def __str__(self) -> str:
        verb = "edited" if self.written else "read"
        return (
            f"{self.path} ({self.tokens:,} tokens) left the context; {verb}, used in {self.uses} "
            f"{'turn' if self.uses == 1 else 'turns'}, last {self.idle_turns} ago: "
            f"{self.chance:.0%} of such files are used again"
        )


class Monitor:
    """Watches one conversation. Pass the messages of each request to `see`, in the shape that its server accepts."""

    def __init__(self, likely: float = LIKELY, count: Counter | None = None) -> None:
        self.likely = likely
        self._count = count or estimating_counter()
        self._transcript = Transcript()
        self._view: list[str] = []  # the texts of the previous request
        self._root: str | None = None  # the folder in which the agent works, if a message says so
        self._reported: dict[str, int] = {}  # path → turn of the last access when its loss was reported

    def see(self, messages: Sequence[object], system: object = "") -> tuple[Loss, ...]:
        """Return the files that this request no longer shows, the most likely to be needed first.

        Args:
            messages: the whole context of a request.
            system: the system prompt, where the server takes it beside the messages, as Anthropic's API does.
        """
        before = self._view
        change = self._transcript.take(messages)
        self._view = [text_of(system), *self._transcript.visible]
        if self._root is None and (said := next(filter(None, map(_FOLDER.search, self._view)), None)):
            self._root = said[1]
        if not change.gone:
            return ()
        found = [loss for loss in self._losses(before) if self._is_news(loss)]
        return tuple(sorted(found, key=lambda loss: (-loss.chance, -loss.tokens, loss.path)))

    def overlaps(self, messages: Sequence[object]) -> bool:
        """Return whether a context shares a message with this conversation, apart from common opening messages."""
        return self._transcript.overlaps(messages)

    def is_named_in(self, messages: Sequence[object]) -> bool:
        """Return whether a context, such as a summary, names a file of this conversation."""
        text = "\n".join(whole_text(message) for message in openai_messages(messages))
        return any(names_file(text, path) for path in known_files(self._trajectory(), sys.maxsize))

    def _losses(self, before: Sequence[str]) -> Iterable[Loss]:
        trajectory = self._trajectory()
        now = len(trajectory.turns)
        ledger = Ledger(root=trajectory.root)
        for turn in trajectory.turns:
            ledger.take(turn)
        held, left = _lines_in(before, ledger, now), _lines_in(self._view, ledger, now + 1)
        for path, past in known_files(trajectory, now + 1).items():
            known = max(1, sum(map(_tells, ledger.known(path))))
            was, stays = held.get(path, []), set(map(id, left.get(path, ())))
            gone, kept = [line for line in was if id(line) not in stays], len(stays) / known
            if kept < IN_VIEW <= len(was) / known:
                chance = reuse_chance(past)
                tokens = tokens_of(gone, self._count)
                yield Loss(
                    now, path, tokens, kept, past.uses, past.idle, past.written, chance, likely=chance >= self.likely
                )

    def _trajectory(self) -> Trajectory:
        try:
            prompt, turns = read_messages(self._transcript.messages)
        except InputFileError:  # a malformed conversation touches no files
            prompt, turns = "", ()
        recording = Recording(
            run_id="live", task_id="live", format="live", source="", turns=turns, prompt=prompt, root=self._root
        )
        return interpret(recording, self._count)

    def _is_news(self, loss: Loss) -> bool:
        touched = loss.turn - loss.idle_turns
        if self._reported.get(loss.path) == touched:
            return False
        self._reported[loss.path] = touched
        return True


def _tells(line: Line) -> bool:
    return is_distinctive(line.key)


def _lines_in(texts: Iterable[str], ledger: Ledger, number: int) -> dict[str, list[Line]]:
    """Return the distinctive lines of each file that some texts show; what the ledger held before is dropped."""
    ledger.clear()
    message = Message(number, "quoted")
    for text in texts:
        ledger.quote(message, text)
    return {path: list(filter(_tells, ledger.held(path))) for path in ledger.files}


def known_files(trajectory: Trajectory, cut: int) -> dict[str, FileHistory]:
    """Return the history of each file that was accessed before a cut and not removed."""
    touched: dict[str, list[int]] = {}
    written: set[str] = set()
    for turn in trajectory.turns:
        if turn.number >= cut:
            break
        for path in {read.path for read in turn.reads} | {write.path for write in turn.writes}:
            touched.setdefault(path, []).append(turn.number)
        for write in turn.writes:
            (written.discard if write.kind == "delete" else written.add)(write.path)
            if write.kind == "delete":
                touched.pop(write.path, None)
    return {path: FileHistory(len(turns), cut - 1 - turns[-1], path in written) for path, turns in touched.items()}
