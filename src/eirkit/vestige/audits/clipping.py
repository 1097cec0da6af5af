"""Finds outputs that the scaffold truncated before the agent saw them, and whether hidden lines were shown later.

It needs the goal files and the old lines that the reference patch changes. That a line was hidden does not mean that
the agent needed to see it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from eirkit.records.analysis import ClippedView, ClippingGroup, HiddenLine, LineOutcome
from eirkit.vestige.demand.gold_patches import OldLines
from eirkit.vestige.trajectory import Call, FileRead, Trajectory, Turn
from eirkit.vestige.viewer_output import ClipMark, cuts

_STATED = re.compile(r"\b(\d[\d,]{0,14}) (?:characters|chars) (?:were )?(?:elided|truncated|omitted|clipped)")
_PRINTED_NUMBER = re.compile(r"(?m)^ *\d{1,9}\t")


def clipped_views(trajectory: Trajectory, goal: Collection[str]) -> tuple[ClippedView, ...]:
    """Return the clipped observations of a run."""
    found = [
        (turn, [(place, call, marks) for place, call in enumerate(turn.recorded.calls) if (marks := cuts(call))])
        for turn in trajectory.turns
        if any(map(cuts, turn.recorded.calls))
    ]
    if not found:  # most runs
        return ()
    last_read = {read.path: turn.number for turn in trajectory.turns for read in turn.reads}
    last_write = {write.path: turn.number for turn in trajectory.turns for write in turn.writes}
    views = []
    for turn, cut in found:
        for place, call, marks in cut:
            # The files that a clipped call showed; where it showed several, by the position of their text.
            alone = len(cut) == 1
            reads = (read for read in turn.reads if read.clipped)
            paths = tuple(dict.fromkeys(read.path for read in reads if alone or (read.content or "\0") in call.output))
            views.append(
                ClippedView(
                    turn=turn.number,
                    call=place + 1,
                    paths=paths,
                    on_goal=any(path in goal for path in paths),
                    later_modified=any(last_write.get(path, 0) >= turn.number for path in paths),
                    later_viewed=any(last_read.get(path, 0) > turn.number for path in paths),
                    shown_characters=len(call.output),
                    hidden_characters=_hidden_characters(call, marks),
                )
            )
    return tuple(views)


def hidden_lines(trajectory: Trajectory, changed: OldLines) -> tuple[HiddenLine, ...]:
    """Return the changed old lines that clipped views hid, one row per line of each file.

    Only views before the first write of the file count; those in the turn of that write come before it.
    """
    if not changed:
        return ()
    views: dict[str, list[tuple[Turn, FileRead]]] = {}
    written: set[str] = set()
    for turn in trajectory.turns:
        for read in turn.reads:
            if read.path in changed and read.path not in written:
                views.setdefault(read.path, []).append((turn, read))
        if turn.writes:
            written.update([write.path for write in turn.writes])
    return tuple(
        line
        for path in sorted(views)
        if any(read.clipped for _, read in views[path])
        for line in _judged(path, changed[path], [(t.number, read, _Shown(read, t)) for t, read in views[path]])
    )


def clipping_group(lines: Iterable[HiddenLine]) -> ClippingGroup:
    """Return a run's group; only the first two are compared, and a run of several kinds is in neither."""
    outcomes = {line.outcome for line in lines}
    if not outcomes:
        return "none"
    if "ambiguous" in outcomes:
        return "ambiguous"
    return "mixed" if len(outcomes) > 1 else outcomes.pop()


def _hidden_characters(call: Call, marks: Iterable[ClipMark]) -> int | None:
    stated = [found for mark in marks if (found := _STATED.search(call.output, mark.start, mark.end))]
    if stated:
        return sum(int(found[1].replace(",", "")) for found in stated)
    if call.full_output is None:
        return None
    return max(0, len(call.full_output) - len(call.output))


def _judged(
    path: str, changed: Mapping[int, str], views: Sequence[tuple[int, FileRead, _Shown]]
) -> Iterator[HiddenLine]:
    wanted = dict(zip(changed, _squeezed(changed.values()), strict=True))
    shown = [view for _, _, view in views]
    unsure = _unsure(wanted, shown)
    for number, text in sorted(wanted.items()):
        visible = [view.shows(number, text) for view in shown]
        places = (
            place
            for place, (_, read, _) in enumerate(views)
            if read.clipped and _covers(read, number) and not visible[place]
        )
        first = next(places, None)
        if first is None:
            continue
        later = (
            turn
            for (turn, read, _), seen in zip(views[first + 1 :], visible[first + 1 :], strict=True)
            if seen and (_covers(read, number) or _picks(read))
        )
        again = next(later, None)
        outcome: LineOutcome = "ambiguous" if text in unsure else "never" if again is None else "recovered"
        yield HiddenLine(
            path, number, views[first][0], outcome, None if text in unsure else again, any(visible[:first])
        )


class _Shown:
    """The lines of one view without differences in white space: by number where the view prints them, else as a text.

    After the cut of a clipped view line numbers are often missing, so there both count. A file whose text cannot be
    separated from the rest of the output may have shown any line that was printed.
    """

    def __init__(self, read: FileRead, turn: Turn) -> None:
        self.numbered = dict(zip(read.lines, _squeezed(read.lines.values()), strict=True)) if read.lines else {}
        content = read.content
        if content is None and read.lines is None:
            content = "\n".join(call.output for call in turn.recorded.calls if not read.clipped or cuts(call))
            content = _PRINTED_NUMBER.sub("", content)
        unnumbered = read.lines is None or read.clipped
        self.plain = tuple(_squeezed((content or "").splitlines())) if unnumbered else ()
        self._texts = frozenset(self.plain)

    def shows(self, number: int, text: str) -> bool:
        return text in self._texts or self.numbered.get(number) == text


def _unsure(wanted: Mapping[int, str], shown: Iterable[_Shown]) -> set[str]:
    """Return the texts that are blank or occur on more than one line, in the old file or in what was seen."""
    places: dict[str, set[int]] = {}
    for number, text in wanted.items():
        places.setdefault(text, set()).add(number)
    unsure = {text for text, numbers in places.items() if not text or len(numbers) > 1}
    for view in shown:
        unsure.update(text for number, text in view.numbered.items() if text in places and number not in places[text])
        seen: set[str] = set()
        for text in view.plain:
            if text in places:
                (unsure if text in seen else seen).add(text)
    return unsure


def _covers(read: FileRead, number: int) -> bool:
    return read.requested is None or read.requested.first <= number <= read.requested.last


def _picks(read: FileRead) -> bool:
    """Return whether a view was a search or a range between patterns, which covers only the lines that it shows."""
    return read.requested is not None and read.requested.first > read.requested.last


def _squeezed(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with one blank between words, and none around them; without a loop in Python."""
    return map(" ".join, map(str.split, lines))
