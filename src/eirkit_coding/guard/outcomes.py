"""Measures what a session did after each compaction of a trial: tokens read again, turns to the next edit, failures.

What counts are the turns after a compaction, up to the session's next break and at most fifty, whatever was said to the
agent then. Once these turns are over, their figures are kept, because agents delete old logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from eirkit.errors import EirkitError
from eirkit.limits import RECORD_SECONDS, time_limit
from eirkit.vestige.actions.touches import command_of, interpret
from eirkit.vestige.audits.anomalies import edit_not_applied
from eirkit.vestige.audits.instructions import Instruction, broken_by, instructions_in
from eirkit.vestige.demand.costs import read_tokens
from eirkit.vestige.sources.documents import open_document
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Recording, Trajectory, Turn, formats
from eirkit_coding.guard.hook import FORMATS, write_own
from eirkit_coding.guard.trial import DrawnCompaction, json_line

MOST_TURNS = 50  # after a compaction that count
QUIET_SECONDS = 12 * 3600.0  # after which a session is taken to have ended
KEPT = "outcomes.jsonl"
_Key = tuple[int, str, str, int]


class CompactionOutcome(Struct, frozen=True, kw_only=True):
    """What happened in the turns after one compaction."""

    reread_tokens: int
    tokens_to_edit: int
    turns_to_edit: int
    failed_edits: int
    broken_rules: int
    turns: int  # that counted
    is_edited: bool  # whether one of them edited a file of the project


class KeptOutcome(CompactionOutcome, frozen=True, kw_only=True):
    """An outcome that is final, as it is stored."""

    key: _Key


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes of a trial, and why some are missing."""

    outcomes: Mapping[DrawnCompaction, CompactionOutcome]
    open: tuple[DrawnCompaction, ...]  # whose session may still go on
    lost: tuple[tuple[DrawnCompaction, str], ...]  # with the reason


def measure(draws: Sequence[DrawnCompaction], folder: Path, now: float) -> Measured:
    """Return the outcomes of all draws; those that are final are kept in the guard's folder."""
    kept = _load(folder / KEPT)
    found = {draw: kept[key] for draw in draws if (key := _key(draw)) in kept}
    new, open_, lost = (
        dict[DrawnCompaction, CompactionOutcome](),
        list[DrawnCompaction](),
        list[tuple[DrawnCompaction, str]](),
    )
    waiting = sorted((draw for draw in draws if draw not in found), key=_session)
    for (agent, session, transcript), group in groupby(waiting, key=_session):
        own = list(group)
        try:
            run = _run(agent, session, Path(transcript), own[0].project)
        except (EirkitError, OSError, ValueError, KeyError) as error:
            lost += [(draw, " ".join(str(error).split())) for draw in own]
            continue
        times = [draw.at for draw in draws if _session(draw) == (agent, session, transcript)]
        for draw in own:
            outcome = after(run, draw.at, min((at for at in times if at > draw.at), default=None), now)
            if outcome is None:
                open_.append(draw)
            else:
                new[draw] = outcome
    if new:
        with suppress(OSError):  # what cannot be kept is measured again
            kept_outcomes = (KeptOutcome(key=_key(draw), **asdict(outcome)) for draw, outcome in new.items())
            path = folder / KEPT
            before = path.read_bytes() if path.is_file() else b""
            write_own(path, b"".join([before, *map(json_line, kept_outcomes)]))
    return Measured({**found, **new}, tuple(open_), tuple(lost))


def _session(draw: DrawnCompaction) -> tuple[str, str, str]:
    return draw.agent, draw.session, draw.transcript


def _key(draw: DrawnCompaction) -> _Key:
    return draw.seed, draw.agent, draw.session, draw.ordinal


def _load(path: Path) -> dict[_Key, CompactionOutcome]:
    found: dict[_Key, CompactionOutcome] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return found
    for line in lines:
        with suppress(ValueError, ValidationError):  # a damaged line is measured again
            value = json.loads(line)
            found[convert(value, KeptOutcome).key] = convert(value, CompactionOutcome)
    return found


def _run(agent: str, session: str, transcript: Path, project: str) -> Trajectory:
    """Return a session as its log has it now, without the runs of sub-agents."""
    document = open_document(transcript)
    with time_limit(RECORD_SECONDS, "the session"):
        runs = [run for run in formats.get(FORMATS[agent])().read(document) if isinstance(run, Recording)]
        own = [run for run in runs if "parent_run" not in run.details]
        named = [run for run in own if run.run_id == session] or own
        if not named:
            raise ValueError("the log has no run; it may have been emptied")
        longest = max(named, key=lambda run: len(run.turns))
        return interpret(longest if longest.root else replace(longest, root=project or None), estimating_counter())


def after(run: Trajectory, at: float, until: float | None, now: float) -> CompactionOutcome | None:
    """Return what happened after a compaction; None if that is not over.

    Args:
        at: when the compaction was.
        until: when the next one was, if there was one.
        now: the present.
    """
    times = list(_times(run))
    first = next((place for place, time in enumerate(times) if time > at), len(times))
    ends = (
        place
        for place, turn in enumerate(run.turns)
        if place > first and (turn.recorded.broken or (until is not None and times[place] > until))
    )
    last = min(next(ends, len(times)), first + MOST_TURNS)
    is_over = last < len(times) or until is not None or last - first == MOST_TURNS
    if not is_over and now - max([at, *times[first:last]]) < QUIET_SECONDS:
        return None
    return _outcome(run, first, last)


def _times(run: Trajectory) -> Iterator[float]:
    known = 0.0
    for turn in run.turns:
        known = turn.recorded.at if turn.recorded.at is not None else known
        yield known


def _outcome(run: Trajectory, first: int, last: int) -> CompactionOutcome:
    before, turns = run.turns[:first], run.turns[first:last]
    edited = next((place for place, turn in enumerate(turns, 1) if _edits(turn, run.root)), None)
    way = turns[:edited]
    rules = _rules(run, before)
    calls = [call for turn in turns for call in turn.recorded.calls]
    return CompactionOutcome(
        reread_tokens=_read_again(before, turns),
        tokens_to_edit=sum(turn.tokens for turn in way),
        turns_to_edit=len(way),
        failed_edits=sum(edit_not_applied(command_of(call), call.output) for call in calls),
        broken_rules=sum(broken_by(rule, first + 1, run.turns[:last]) is not None for rule in rules),
        turns=len(turns),
        is_edited=edited is not None,
    )


def _edits(turn: Turn, root: str | None) -> bool:
    """Return whether a turn wrote a file of the project; such files have relative paths if its folder is known."""
    return any(write.kind != "delete" and not (root and write.path.startswith("/")) for write in turn.writes)


def _read_again(before: Sequence[Turn], turns: Sequence[Turn]) -> int:
    """Return the tokens of files that were shown or written before, as long as they have not been written anew."""
    count = estimating_counter()
    known = {read.path for turn in before for read in turn.reads}
    known |= {write.path for turn in before for write in turn.writes}
    total = 0
    for turn in turns:
        total += sum(read_tokens(read, count) for read in turn.reads if read.path in known and not read.rewritten)
        known -= {write.path for write in turn.writes}
    return total


def _rules(run: Trajectory, before: Sequence[Turn]) -> list[Instruction]:
    found: dict[str, Instruction] = {}
    for turn in before:
        asked = turn.recorded.asked or (run.recording.prompt if turn.number == 1 else "")
        for rule in instructions_in(asked, turn.number):
            found.setdefault(rule.text, rule)
    return list(found.values())
