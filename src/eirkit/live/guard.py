"""How often a file with a given past is used again: its uses, how long ago the last was, and whether it was edited.

The counts come from recorded runs (`python -m studies.guard_replay` makes them anew); no text of any run is in them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from eirkit.errors import InputFileError
from eirkit.live.transcript import Transcript, openai_messages, whole_text
from eirkit.logs.actions.touches import interpret
from eirkit.logs.audits.compaction import names_file, normalized_line, note_lines, share_kept
from eirkit.logs.formats.message_rows import read_messages
from eirkit.logs.formats.messages import text_of
from eirkit.logs.tokens import Counter, estimating_counter
from eirkit.logs.trajectory import Recording, Trajectory

MOST_USES = 4
IDLE = (0, 1, 3, 7, 15)  # turns; up to each of them, and beyond the last
PRIOR_USED, PRIOR = 1, 2  # one of two imagined files, so that no past is certain


@dataclass(frozen=True, slots=True)
class FileHistory:
    """What the run has done with a file so far."""

    uses: int  # turns that read or wrote it
    idle: int  # turns since the last of them
    written: bool

    @property
    def history_bin(self) -> str:
        """The name of the cell in which such pasts are counted."""
        resting = next((str(most) for most in IDLE if self.idle <= most), "more")
        return f"{'written' if self.written else 'read'} {min(self.uses, MOST_USES)} {resting}"


Counts = Mapping[str, tuple[int, int]]  # cell → used again, all


def reuse_chance(past: FileHistory, counts: Counts | None = None) -> float:
    """Return the share of files with such a past that were used again; a cell that nobody saw gives a half."""
    used, every = (counts if counts is not None else bundled_counts()).get(past.history_bin, (0, 0))
    return (used + PRIOR_USED) / (every + PRIOR)


def count_reuse(pasts: Iterable[tuple[FileHistory, bool]]) -> dict[str, tuple[int, int]]:
    """Return the counts of pasts, each with whether the file was used again."""
    found: dict[str, tuple[int, int]] = {}
    for past, again in pasts:
        used, every = found.get(past.history_bin, (0, 0))
        found[past.history_bin] = (used + again, every + 1)
    return dict(sorted(found.items()))


@cache
def bundled_counts() -> Counts:
    """Return the counts that come with the package."""
    text = (files(__package__) / "reuse_odds.json").read_text("utf-8")
    return {name: (used, every) for name, (used, every) in json.loads(text)["counts"].items()}


IN_VIEW = 0.5  # of a file's telling lines: with fewer, an agent has to look again
LIKELY = 0.5  # chance from which a loss is worth a warning
_NUMBERED = re.compile(r"^\s*\d+[\t:|→ ]\s?")  # how viewers put numbers before lines


@dataclass(frozen=True, slots=True)
class Loss:
    """One file whose content left the context."""

    turn: int  # replies of the agent before the request
    path: str
    tokens: int  # of the lines the agent had seen
    kept: float  # share of them that is still in view
    uses: int  # turns that read or wrote it
    idle_turns: int  # since the last of them
    written: bool  # by the agent itself
    chance: float  # of being read or edited again
    likely: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        verb = "edited" if self.written else "read"
        return (
            f"{self.path} ({self.tokens:,} tokens) left the context; {verb}, used in {self.uses} "
            f"{'turn' if self.uses == 1 else 'turns'}, last {self.idle_turns} ago: "
            f"{self.chance:.0%} of such files are used again"
        )


class Monitor:
    """Watches one conversation. `see` is given the messages of each request, in the shape its server takes them."""

    def __init__(self, likely: float = LIKELY, count: Counter | None = None) -> None:
        self.likely = likely
        self._count = count or estimating_counter()
        self._transcript = Transcript()
        self._view: set[str] = set()  # lines of the request before
        self._reported: dict[str, int] = {}  # path → turn of its last touch when its loss was told

    def see(self, messages: Sequence[object], system: object = "") -> tuple[Loss, ...]:
        """Return what this request no longer shows, the likeliest to be missed first.

        Args:
            messages: the whole context of a request.
            system: what stands beside the messages, as Anthropic-like servers have it.
        """
        before = self._view
        change = self._transcript.take(messages)
        self._view = lines_of([text_of(system), *self._transcript.visible])
        if not change.gone:
            return ()
        found = [loss for loss in self._losses(before) if self._is_news(loss)]
        return tuple(sorted(found, key=lambda loss: (-loss.chance, -loss.tokens, loss.path)))

    def continues_with(self, messages: Sequence[object]) -> bool:
        """Tell whether a context continues this conversation: it shares a message, or a summary names a known file."""
        if self._transcript.overlaps(messages):
            return True
        text = "\n".join(whole_text(message) for message in openai_messages(messages))
        return any(names_file(text, path) for path in known_files(self._trajectory(), sys.maxsize))

    def _losses(self, before: set[str]) -> Iterable[Loss]:
        trajectory = self._trajectory()
        now = len(trajectory.turns)
        for path, (seen, past) in known_files(trajectory, now + 1).items():
            kept = share_kept(seen, self._view)
            if kept < IN_VIEW <= share_kept(seen, before):
                chance = reuse_chance(past)
                tokens = self._count("\n".join(sorted(seen)))
                yield Loss(
                    now, path, tokens, kept, past.uses, past.idle, past.written, chance, likely=chance >= self.likely
                )

    def _trajectory(self) -> Trajectory:
        try:
            prompt, turns = read_messages(self._transcript.messages)
        except InputFileError:  # what is no conversation has no files
            prompt, turns = "", ()
        recording = Recording(run_id="live", task_id="live", format="live", source="", turns=turns, prompt=prompt)
        return interpret(recording, self._count)

    def _is_news(self, loss: Loss) -> bool:
        touched = loss.turn - loss.idle_turns
        if self._reported.get(loss.path) == touched:
            return False
        self._reported[loss.path] = touched
        return True


def known_files(trajectory: Trajectory, cut: int) -> dict[str, tuple[set[str], FileHistory]]:
    """Return, for each file touched before a cut, the lines that the agent has seen of it, and its past."""
    seen: dict[str, set[str]] = {}
    touched: dict[str, list[int]] = {}
    written: set[str] = set()
    for turn in trajectory.turns:
        if turn.number >= cut:
            break
        paths = {read.path for read in turn.reads} | {write.path for write in turn.writes}
        note_lines(turn, paths, seen)
        for path in paths:
            touched.setdefault(path, []).append(turn.number)
        for write in turn.writes:
            (written.discard if write.kind == "delete" else written.add)(write.path)
            if write.kind == "delete":
                touched.pop(write.path, None)
    return {
        path: (seen.get(path, set()), FileHistory(len(turns), cut - 1 - turns[-1], path in written))
        for path, turns in touched.items()
    }


def lines_of(texts: Iterable[str]) -> set[str]:
    """Return the lines of texts, evened out; of numbered ones also what stands behind the number."""
    found: set[str] = set()
    for text in texts:
        for line in text.splitlines():
            found.add(normalized_line(line))
            if _NUMBERED.match(line):
                found.add(normalized_line(_NUMBERED.sub("", line, count=1)))
    return found
