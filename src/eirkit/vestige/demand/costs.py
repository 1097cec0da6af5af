"""Counts the tokens of every file state, and how much of each read had been shown before.

A state costs the tokens of the largest content observed of it, or of all its lines seen if these are more.
docs/vestige-demand.md defines what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from math import ceil
from operator import eq

from eirkit.vestige.demand.graph import ActionGraph
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import FileRead, FileWrite, Turn
from eirkit.vestige.viewer_output import around

_SHIFTS = (1, -1, 2, -2, 3, -3)  # lines that another program, such as sudo, printed before a file
_NEARLY_ALL = 0.75  # of the lines of a view


@dataclass(frozen=True, slots=True)
class ObservedCosts:
    """What a run was shown."""

    costs: Sequence[int]  # tokens by state
    read_tokens: Sequence[Sequence[int]]  # by turn and read
    repeated: Sequence[Sequence[float]]  # by turn and read: the share of it that was shown before at this version


def read_tokens(read: FileRead, count: Counter) -> int:
    """Return the tokens that a read showed to the agent; 0 if the log does not show the text."""
    if read.tokens is not None:
        return read.tokens
    if read.content is not None:
        return count(read.content)
    return count("\n".join(read.lines.values())) if read.lines else 0


def observe(graph: ActionGraph, turns: Sequence[Turn], count: Counter) -> ObservedCosts:
    """Return the costs of all states and reads of a run, in one pass."""
    observed = _Observed(len(graph.paths), count)
    current: dict[str, int] = {}
    tokens: list[Sequence[int]] = [()] * len(turns)
    repeated: list[Sequence[float]] = [()] * len(turns)
    for place, turn in enumerate(turns):
        if turn.reads:
            consumed = graph.reads[place]
            tokens[place] = sizes = [read_tokens(read, count) for read in turn.reads]
            repeated[place] = list(map(observed.see, consumed, turn.reads, sizes))
            current.update((graph.paths[state], state) for state in consumed)
        for write, state in zip(turn.writes, graph.writes[place], strict=True):
            observed.write(state, current.get(write.path), write)
            current[write.path] = state
        if turn.writes:
            for read in turn.reads:
                if read.rewritten:
                    observed.note(current[read.path], read)
    return ObservedCosts([observed.cost(state) for state in range(len(graph.paths))], tokens, repeated)


def _is_unnumbered(content: str | None, lines: Mapping[int, str]) -> bool:
    """Return whether a view is the file's own text: its line numbers are known but not printed."""
    first = next(iter(lines.values()))
    return content is not None and content.startswith(first) and content[len(first) : len(first) + 1] in ("\n", "")


def _share_of(some: list[str], lines: Mapping[int, str]) -> float:
    """Return the share that some lines of a view are of its text.

    It is one of characters: in recorded runs a share of tokens gave the same total within 2%, and had a fifteenth more
    tokens counted.
    """
    if len(some) in (0, len(lines)):
        return float(bool(some))
    return sum(map(len, some)) / max(1, sum(map(len, lines.values())))


def _shown_before(lines: Mapping[int, str], shown: Mapping[int, str]) -> list[str]:
    """Return the lines that were shown before with the same text: under their numbers, or all a little shifted."""
    # A line with another text was changed by something that the log does not show, such as another branch.
    return _equal_lines(lines, shown, lines) or _shown_shifted(lines, shown)


def _equal_lines(lines: Mapping[int, str], shown: Mapping[int, str], numbers: Iterable[int]) -> list[str]:
    """Return the lines that were shown with the same text, each under its number among some; without a loop here."""
    return list(compress(lines.values(), map(eq, map(shown.get, numbers), lines.values())))


def _shown_shifted(lines: Mapping[int, str], shown: Mapping[int, str]) -> list[str]:
    """Return the lines that were shown before with numbers a little higher or lower, as after a line of a prompt.

    Similar code elsewhere in the file is not the same lines: the shift is small, and nearly all lines must be equal.
    """
    fewest = max(2, ceil(_NEARLY_ALL * len(lines)))
    first = list(islice(lines.items(), len(lines) - fewest + 1))  # one of so many is among the equal lines
    for by in _SHIFTS:
        if any(shown.get(place + by) == line for place, line in first):
            same = _equal_lines(lines, shown, map(by.__add__, lines))
            if len(same) >= fewest:
                return same
    return []


class _Observed:
    """What has been observed of every state so far."""

    def __init__(self, states: int, count: Counter) -> None:
        self._count = count
        self._observed: list[int | None] = [None] * states  # tokens of the largest content
        self._derived = [0] * states  # of edited states: tokens derived from the version before and the edits
        self._lines: dict[int, dict[int, str]] = {}  # lines seen by number, where that is known
        self._noted: dict[int, dict[int, str]] = {}  # lines that the turn which wrote the state showed
        self._united: dict[int, int] = {}  # tokens of those lines
        self._texts: dict[int, set[str | int]] = {}  # texts seen that have no numbers, or their tokens if not recorded

    def see(self, state: int, read: FileRead, tokens: int) -> float:
        """Record a read; return the share of it that is known to have been shown before."""
        if read.lines:
            # The first view of the whole file is measured by its lines, unless the scaffold cut it.
            seen = read.clipped or state in self._lines
            if read.tokens is not None or (seen and _is_unnumbered(read.content, read.lines)):
                self._observe(state, self._uncut_tokens(read) if read.clipped else tokens)
            again = self._see_lines(state, read, read.lines)
            return 0.0 if read.rewritten else again
        if read.tokens is not None or read.content is not None:
            self._observe(state, self._uncut_tokens(read) if read.clipped else tokens)
        return float(not read.rewritten and self._is_known_text(state, read, tokens))

    def note(self, state: int, read: FileRead) -> None:
        """Record that the turn which wrote a state showed it: another view of it shows the same again."""
        if read.lines:
            self._noted.setdefault(state, {}).update(read.lines)
        else:
            self._is_known_text(state, read, read.tokens or 0)

    def _is_known_text(self, state: int, read: FileRead, tokens: int) -> bool:
        """Record a text without line numbers; return whether the very same was shown before."""
        if read.undivided:
            return False  # which part of the output is this file is not known
        shown = read.content if read.content is not None else tokens
        known = self._texts.setdefault(state, set())
        is_known = shown in known
        known.add(shown)
        return is_known

    def _see_lines(self, state: int, read: FileRead, lines: Mapping[int, str]) -> float:
        """Count the lines that no earlier view of the state showed; return the share that others are of the text."""
        known, noted = self._lines.get(state), self._noted.get(state)
        shown = {**noted, **(known or {})} if noted else known
        again = _share_of(_shown_before(lines, shown), lines) if shown else 0.0
        if known is None:
            self._lines[state] = dict(lines)
            new, text = len(lines), "\n".join(lines.values())
        else:
            fresh = lines.keys() - known.keys()
            known.update(lines)
            new, text = len(fresh), "\n".join([line for number, line in lines.items() if number in fresh])
        if new and read.tokens is None:
            whole = read.content
            # A view without printed numbers is the text itself, and was counted with its turn.
            if whole is not None and len(text) <= len(whole) <= len(text) + 1 and whole.startswith(text):
                text = whole
            self._united[state] = self._united.get(state, 0) + self._count(text)
        return again

    def _uncut_tokens(self, read: FileRead) -> int:
        """Return the tokens of a clipped view without the scaffold's truncation notices, piece by piece."""
        if read.content is None or read.tokens is not None:
            return read_tokens(read, self._count)
        return sum(map(self._count, around(read.content)))

    def write(self, state: int, before: int | None, write: FileWrite) -> None:
        """Record a write that made a new state from the previous one."""
        if write.tokens is not None:
            self._observe(state, write.tokens)
        elif write.content is not None:
            self._observe(state, self._count(write.content))
        elif write.kind == "delete":
            self._derive(state, 0)
        elif write.kind == "edit" and not (before == state and write.added is None and write.removed is None):
            change = self._count(write.added or "") - self._count(write.removed or "")
            self._derive(state, (0 if before is None else self.cost(before)) + change)

    def cost(self, state: int) -> int:
        observed, united = self._observed[state], self._united.get(state)
        if observed is None and united is None:
            return self._derived[state]
        return max(observed or 0, united or 0)

    def _derive(self, state: int, tokens: int) -> None:
        # Several writes of one turn make one version: content shown by an earlier one is not final.
        self._observed[state], self._derived[state] = None, max(0, tokens)

    def _observe(self, state: int, tokens: int) -> None:
        self._observed[state] = max(tokens, self._observed[state] or 0)
