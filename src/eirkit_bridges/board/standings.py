"""The entries of submissions that hold, and their ranking among entries that were given the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import fmean

import msgspec

from eirkit.lacuna.findings.intervals import mean_difference, mean_share
from eirkit.lacuna.findings.ranking import Ranking, rank
from eirkit.lacuna.findings.summary import LOST, pool_outcomes
from eirkit.lacuna.tasks.workload import Units, units_of
from eirkit.records.evidence import Interval
from eirkit.records.runs import ANSWER_CAUSES, OUTCOMES, AnswerCause
from eirkit.records.sweeps import CellRow
from eirkit.report.runs.choice import details_of
from eirkit.report.runs.folder import AXES, ScoredRun
from eirkit.report.table import counted
from eirkit_bridges.board.checking import Checked
from eirkit_bridges.board.submission import NULL, REFERENCES, SHAM, Candidate, candidate_of

Place = tuple[tuple[str, int | str], ...]  # names and values of settings
_SHARED_AXES = tuple(name for name in AXES if name not in ("memory", "model"))


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One task in one setting, with the mean accuracy of its runs."""

    task: str
    place: Place
    accuracy: float
    steps: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory system under one model, in one submission."""

    id: str  # also the name of its page
    submission: Checked
    candidate: Candidate
    rows: tuple[CellRow, ...]  # of its cells
    cases: tuple[JudgedCase, ...]  # in an order that entries with the same tasks share
    null: tuple[float, ...]  # accuracy of the references in the same cases
    sham: tuple[float, ...]
    accuracy: Interval
    over_null: Interval
    over_sham: Interval
    figures: Mapping[str, float | None]  # time, size, money, and bits held and needed
    outcomes: Mapping[str, float]  # shares of the records needed from memory; of conversations, of the questions

    @property
    def name(self) -> str:
        return f"{self.submission.name}: {self.candidate.label}"

    @property
    def units(self) -> Units:
        """What its tasks and steps are called."""
        return units_of({row.workload for row in self.rows})

    @property
    def track(self) -> str:
        """What was asked: entries are compared only if it is the same."""
        given = [(case.task, case.place) for case in self.cases]
        return sha256(msgspec.json.encode(given)).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Track:
    """Entries that were given the same tasks in the same settings, from best to worst."""

    id: str
    title: str
    entries: tuple[Entry, ...]
    ranking: Ranking

    @property
    def units(self) -> Units:
        return self.entries[0].units


def entries_of(checked: Checked) -> list[Entry]:
    """Return the entries of a submission that holds."""
    runs = {id(part): part.by_cell() for part in checked.parts}
    grouped: dict[Candidate, list[CellRow]] = {}
    references: dict[tuple[str, str, str, Place], CellRow] = {}
    scored: dict[str, list[ScoredRun]] = {}
    for part in checked.parts:
        for row in part.rows:
            scored[row.cell] = runs[id(part)].get(row.cell, [])
            if row.memory in REFERENCES:
                references[(row.memory, row.model, row.panel, _place(row))] = row
            elif (candidate := candidate_of(row)) is not None:
                grouped.setdefault(candidate, []).append(row)
    found = []
    for candidate, rows in grouped.items():
        own = _cases(rows, scored)
        others = {
            name: _cases([references[(name, row.model, row.panel, _place(row))] for row in rows], scored)
            for name in REFERENCES
        }
        found.append(_entry(checked, candidate, rows, own, others, [run for row in rows for run in scored[row.cell]]))
    return found


def _entry(
    checked: Checked,
    candidate: Candidate,
    rows: Sequence[CellRow],
    own: Sequence[JudgedCase],
    others: Mapping[str, Sequence[JudgedCase]],
    runs: Sequence[ScoredRun],
) -> Entry:
    tasks, values = [case.task for case in own], [case.accuracy for case in own]
    null, sham = (tuple(case.accuracy for case in others[name]) for name in (NULL, SHAM))
    gains = [[a - b for a, b in zip(values, other, strict=True)] for other in (null, sham)]
    files = None if checked.document is None else checked.document.files
    digest = sha256(msgspec.json.encode((files, checked.name, candidate.label), order="sorted")).hexdigest()[:12]
    pooled = pool_outcomes(run.memory.outcomes for run in runs if run.memory is not None)
    return Entry(
        digest,
        checked,
        candidate,
        tuple(rows),
        tuple(own),
        null,
        sham,
        mean_share(values, tasks, sum(case.steps for case in own)),
        mean_difference(gains[0], tasks),
        mean_difference(gains[1], tasks),
        details_of(runs),
        _answer_outcomes(rows) or {outcome: share for outcome in OUTCOMES if (share := pooled.shares.get(outcome))},
    )


def _answer_outcomes(rows: Sequence[CellRow]) -> dict[str, float]:
    """Return why answers about conversations were wrong, as shares of wrong answers; empty for other tasks."""
    answers = [row.conversation for row in rows if row.conversation is not None]
    counts = sum((Counter(answer.causes) for answer in answers), Counter[AnswerCause]())
    return {cause: counts[cause] / counts.total() for cause in ANSWER_CAUSES if counts[cause]}


def _place(row: CellRow) -> Place:
    return tuple((name, AXES[name](row)) for name in _SHARED_AXES)


def _cases(rows: Sequence[CellRow], scored: Mapping[str, Sequence[ScoredRun]]) -> list[JudgedCase]:
    """Return the cases of some rows, sorted so that equal tasks have equal places; repeats of a task are pooled."""
    found: dict[tuple[str, Place], list[ScoredRun]] = {}
    for row in rows:
        for run in scored[row.cell]:
            found.setdefault((f"{run.fingerprint}/{run.seed}", _place(row)), []).append(run)
    return [
        JudgedCase(task, place, fmean(run.score.accuracy for run in runs), sum(run.score.steps for run in runs))
        for (task, place), runs in sorted(found.items(), key=lambda item: (repr(item[0][1]), item[0][0]))
    ]


def tracks_of(entries: Sequence[Entry]) -> list[Track]:
    """Return the entries by what they were asked, ranked; the track with the most entries first."""
    grouped: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.id)):
        grouped.setdefault(entry.track, []).append(entry)
    tracks = []
    for name, members in grouped.items():
        values = {member.id: [case.accuracy for case in member.cases] for member in members}
        ranking = rank(values, [case.task for case in members[0].cases])
        by_id = {member.id: member for member in members}
        ordered = tuple(by_id[standing.name] for standing in ranking.standings)
        tracks.append(Track(name, _title(members[0]), ordered, ranking))
    return sorted(tracks, key=lambda track: (-len(track.entries), track.id))


def _title(entry: Entry) -> str:
    """Return what a track asks, in words: the settings of its cases that are not the usual ones, and how many tasks."""
    told, units = [], entry.units
    for name in ("workload", *(("n", "m", "h") if units == Units() else ()), "preset"):
        values = sorted({dict(case.place)[name] for case in entry.cases}, key=str)
        if values != [""]:
            told.append(
                ", ".join(map(str, values)) if name == "workload" else f"{name} = {', '.join(map(str, values))}"
            )
    return " · ".join([*told, counted(len({case.task for case in entry.cases}), units.task)])


def lost_of(entry: Entry) -> float | None:
    """Return the share of needed records that the memory lost; None if none was needed."""
    return sum(entry.outcomes.get(outcome, 0.0) for outcome in LOST) if set(entry.outcomes) & set(OUTCOMES) else None
