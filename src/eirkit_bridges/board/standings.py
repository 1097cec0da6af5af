"""The entries of submissions that hold, and their ranking among entries that were given the same tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import fmean
from typing import Any

from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.findings.fates import FATES, LOST, pool_fates
from eirkit.lacuna.findings.intervals import mean_difference, mean_share
from eirkit.lacuna.findings.ranking import Ranking, rank
from eirkit.lacuna.findings.statistics import Interval
from eirkit.lacuna.models.model import canonical
from eirkit.lacuna.tasks.workload import Units, units_of
from eirkit.report.runs.choice import details_of
from eirkit.report.runs.comparison import AXES
from eirkit.report.runs.folder import RunFacts, SweepFolder
from eirkit.report.table import counted
from eirkit_bridges.board.checking import Checked
from eirkit_bridges.board.submission import NULL, REFERENCES, SHAM, Candidate, candidate_of

Row = Mapping[str, Any]
_SHARED_AXES = tuple(name for name in AXES if name not in ("memory", "model"))


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One task in one setting, with the mean accuracy of its runs."""

    task: str
    place: tuple[tuple[str, Any], ...]
    accuracy: float
    steps: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory system under one model, in one submission."""

    id: str  # also the name of its page
    submission: Checked
    candidate: Candidate
    rows: tuple[Row, ...]  # of its cells
    cases: tuple[JudgedCase, ...]  # in an order that entries with the same tasks share
    null: tuple[float, ...]  # accuracy of the references in the same cases
    sham: tuple[float, ...]
    accuracy: Interval
    over_null: Interval
    over_sham: Interval
    figures: Mapping[str, float | None]  # time, size, money, and bits held and needed
    fates: Mapping[str, float]  # shares of the records needed from memory; in words, of the questions: why they failed

    @property
    def name(self) -> str:
        return f"{self.submission.name}: {self.candidate.label}"

    @property
    def units(self) -> Units:
        """What its tasks and steps are called."""
        return units_of({str(row["workload"]) for row in self.rows})

    @property
    def track(self) -> str:
        """What was asked: entries are compared only if it is the same."""
        given = [[case.task, *map(list, case.place)] for case in self.cases]
        return sha256(canonical({"cases": given})).hexdigest()[:12]


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
    grouped: dict[Candidate, list[tuple[SweepFolder, Row]]] = {}
    references: dict[tuple[Any, ...], Row] = {}
    facts: dict[str, list[RunFacts]] = {}
    for part in checked.parts:
        for row in part.rows:
            facts[row["cell"]] = runs[id(part)].get(row["cell"], [])
            if row["memory"] in REFERENCES:
                references[(row["memory"], row["model"], row["panel"], _place(row))] = row
            elif (candidate := candidate_of(row)) is not None:
                grouped.setdefault(candidate, []).append((part, row))
    found = []
    for candidate, placed in grouped.items():
        rows = [row for _, row in placed]
        own = _cases(rows, facts)
        others = {
            name: _cases([references[(name, row["model"], row["panel"], _place(row))] for row in rows], facts)
            for name in REFERENCES
        }
        found.append(_entry(checked, candidate, rows, own, others, [run for row in rows for run in facts[row["cell"]]]))
    return found


def _entry(
    checked: Checked,
    candidate: Candidate,
    rows: Sequence[Row],
    own: Sequence[JudgedCase],
    others: Mapping[str, Sequence[JudgedCase]],
    runs: Sequence[RunFacts],
) -> Entry:
    tasks, values = [case.task for case in own], [case.accuracy for case in own]
    null, sham = (tuple(case.accuracy for case in others[name]) for name in (NULL, SHAM))
    gains = [[a - b for a, b in zip(values, other, strict=True)] for other in (null, sham)]
    named = {"files": checked.document["files"], "name": checked.name, "label": candidate.label}
    digest = sha256(canonical(named)).hexdigest()[:12]
    fates = pool_fates(run.memory["fates"] for run in runs if run.memory is not None)
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
        _word_fates(rows) or {fate: share for fate in FATES if (share := fates.shares.get(fate))},
    )


def _word_fates(rows: Sequence[Row]) -> dict[str, float]:
    """Return why answers in words were wrong, as shares of the questions; empty for other tasks."""
    told = [row["words"] for row in rows if "words" in row]
    asked = sum(one["abilities"][0]["asked"] for one in told)
    counts = {fate.id: sum(one["fates"].get(fate.id, 0) for one in told) for fate in WORD_FATES}
    return {fate: count / asked for fate, count in counts.items() if count}


def _place(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, AXES[name](row)) for name in _SHARED_AXES)


def _cases(rows: Sequence[Row], facts: Mapping[str, Sequence[RunFacts]]) -> list[JudgedCase]:
    """Return the cases of some rows, sorted so that equal tasks have equal places; repeats of a task are pooled."""
    found: dict[tuple[str, tuple[tuple[str, Any], ...]], list[RunFacts]] = {}
    for row in rows:
        for run in facts[row["cell"]]:
            found.setdefault((f"{run.fingerprint}/{run.seed}", _place(row)), []).append(run)
    return [
        JudgedCase(task, place, fmean(run.score.accuracy for run in runs), sum(run.score.steps for run in runs))
        for (task, place), runs in sorted(found.items(), key=lambda item: (repr(item[0][1]), item[0][0]))
    ]


def tracks_of(entries: Sequence[Entry]) -> list[Track]:
    """Return the entries by what they were asked, ranked; the track with the most entries first."""
    grouped: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: (one.name, one.id)):
        grouped.setdefault(entry.track, []).append(entry)
    tracks = []
    for name, members in grouped.items():
        values = {one.id: [case.accuracy for case in one.cases] for one in members}
        ranking = rank(values, [case.task for case in members[0].cases])
        by_id = {one.id: one for one in members}
        ordered = tuple(by_id[standing.name] for standing in ranking.standings)
        tracks.append(Track(name, _title(members[0]), ordered, ranking))
    return sorted(tracks, key=lambda one: (-len(one.entries), one.id))


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
    return sum(entry.fates.get(fate, 0.0) for fate in LOST) if set(entry.fates) & set(FATES) else None
