"""The runs of a folder as a table: settings once for each cell, measures from the database as they are asked for.

The database is open only while something is read, so that its writer can fold in its log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.measures import (
    ARM_MEASURES,
    CAUSE_MEASURES,
    KIND_MEASURES,
    OUTCOME_MEASURES,
    RUN_MEASURES,
    SPENDING_MEASURES,
)
from eirkit.records.budgets import BUDGETED
from eirkit.records.database import SHOWN, SweepDatabase, ways_to_fail
from eirkit.records.money import spending_of
from eirkit.records.runs import ANSWER_CAUSES, SYMPTOMS, Failure, RunRecord
from eirkit.records.settings import (
    DIALS,
    CalculatorAid,
    ConversationTask,
    RecoveryProbe,
    RescueArm,
    Setting,
    intervention_kind,
)
from eirkit.report.table import Cell
from eirkit.report.viewer.tables import (
    Coded,
    Field,
    KeptColumns,
    Places,
    RowTable,
    code_labels,
    code_values,
    label,
    number,
    telling,
)

FAILURE = "failure"
# What a task is made from; n, m and the rest mean nothing for a conversation, nor the preset for others.
OF_TASK = ("workload", "preset", "n", "m", "lookback", "fan_in", "slots", "digits", "k", "queries", "warm_up", *DIALS)
ACCESS = (
    "arm",
    "model",
    "condition",
    "policy",
    "memory",
    "profile",
    "h",
    "budget",
)  # in which runs of the same task differ
TEXTS = ("failure", "ending", "profile")
ANSWERS = frozenset((*SYMPTOMS, *ANSWER_CAUSES))
ALWAYS = ("run", "seed")
MOST_SIBLINGS = 60


def _setting(
    key: str, title: str, meaning: str = "", *, text: bool = False, shown: bool = True, order: tuple[str, ...] = ()
) -> Field:
    return Field(
        key, title, "text" if text else "number", meaning, facet=True, shown=shown, part="setting", order=order
    )


_ARMS = f"Of a rescue: {', '.join(measure.label for measure in ARM_MEASURES)}"
_PROFILE = "How the memory system was used: as its vendor documents, or as a store"
_FAILED = "How most needed records, answers or steps of the run failed"
FIELDS: tuple[Field, ...] = (
    Field("run", "run", "text"),
    _setting("workload", "workload", text=True),
    _setting("model", "model", text=True),
    _setting("condition", "setting", "How earlier answers were had", text=True),
    _setting("policy", "policy", "Which records were held", text=True),
    _setting("memory", "memory", "The external memory system", text=True),
    _setting("profile", "profile", _PROFILE, text=True),
    _setting("arm", "arm", _ARMS, text=True, order=("control", "sham", "oracle")),
    _setting("n", "n", "Steps of the task"),
    _setting("m", "m", "Dependency window"),
    _setting("fan_in", "fan-in", "References a step", shown=False),
    _setting("lookback", "lookback", "How far back a reference may reach", shown=False),
    _setting("slots", "slots", "Values a record", shown=False),
    _setting("digits", "digits", "Decimal digits a value", shown=False),
    _setting("k", "k", "Values a frontier, in Stepwise Top-k", shown=False),
    _setting("queries", "queries", "How labels are drawn, in Full Lookup", text=True, shown=False),
    _setting("warm_up", "warm-up", "Leading steps that are not scored", shown=False),
    _setting("overwrites", "overwrites", "Overwrites in 100 steps, in Record Store", shown=False),
    _setting("deletes", "deletes", "Deletes in 100 steps, in Record Store", shown=False),
    _setting("expiry", "expiry", "Steps for which a record holds, in Record Store", shown=False),
    _setting("users", "users", "Users of the memory at a time, in Record Store", shown=False),
    _setting("rereads", "rereads", "Queries in a row about one record, in Record Store", shown=False),
    _setting("preset", "preset", "Size of the conversations", text=True, shown=False),
    Field.of(RUN_MEASURES["h"], facet=True, part="setting"),
    _setting("budget", "budget", "What the memory might put into a prompt", text=True),
    Field("seed", "seed", part="replicate"),
    Field("repeat", "repeat", meaning="Which repeat of the task", facet=True, part="replicate"),
    Field.of(RUN_MEASURES["accuracy"]),
    Field.of(RUN_MEASURES["informed_accuracy"]),
    Field(FAILURE, "main failure", "text", _FAILED, facet=True),
    Field.of(RUN_MEASURES["step_accuracy"], shown=False),
    *(Field.of(RUN_MEASURES[key]) for key in ("miss_rate", "first_miss", "first_error")),
    *map(Field.of, CAUSE_MEASURES),
    *map(Field.of, (*OUTCOME_MEASURES, *SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES)),
    Field("ending", "ending", "text", facet=True),
    *(Field.of(SPENDING_MEASURES[key], shown=False) for key in ("calls", "cost_usd")),
)
_WAYS_TO_FAIL = (*KIND_MEASURES, *OUTCOME_MEASURES, *SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES)
_WAYS = {measure.id: measure.label for measure in _WAYS_TO_FAIL}
OFTEN_ZERO = tuple(measure.id for measure in (*OUTCOME_MEASURES, *SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES))


class Sibling(Struct, frozen=True):
    """A run of the same task and seed, and the settings in which it differs."""

    run: str
    different: tuple[str, ...]
    label: str


class FolderRuns(KeptColumns):
    """The runs that a folder has at one moment; it is `Columns` of their table.

    Raises:
        InputFileError: the folder's database is missing, damaged or somebody else's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with SweepDatabase(folder) as database:
            columns = database.columns(("id", "cell", "seed", *TEXTS))
            settings, failures = database.settings(), database.failures()
            is_told = any(isinstance(setting.task, ConversationTask) for setting in settings.values())
            asked = [name for name in SHOWN if name not in TEXTS and (name not in ANSWERS or is_told)]
            self._occurring = database.occurring(asked)
            self.spending = spending_of(database)
        ids, cells, seeds, *texts = columns
        self.ids: Places = np.array(ids, dtype=np.int64)
        self.seeds = np.array(seeds, dtype=np.uint64)
        super().__init__(len(ids))
        self._texts = dict(zip(TEXTS, texts, strict=True))
        self._cells, self._names = code_values(tuple(map(str, cells)))
        self._settings = [settings[name] for name in self._names]
        last = {failure.run: failure for failure in failures}
        self.lost: list[Failure] = [failure for run, failure in last.items() if self._find(run) is None]

    @cached_property
    def table(self) -> RowTable:
        return RowTable(telling(FIELDS, self, ALWAYS, OFTEN_ZERO), self)

    @cached_property
    def ways(self) -> list[dict[str, int]]:
        """How often each run failed in each way, which is in its record alone."""
        with SweepDatabase(self.folder) as database:
            return [ways_to_fail(record) for record in islice(database.records(), self.rows)]

    @property
    def spent_usd(self) -> float | None:
        """What the folder was billed, or the known costs of runs that others paid for; None without either."""
        if self.spending is not None:
            return self.spending.billed_usd
        if not self.rows:
            return None
        return float(np.nansum(self.numbers("cost_usd"))) if self._occurring.get("cost_usd") else 0.0

    def name(self, place: int) -> str:
        """Return the name of a run."""
        return f"{self._names[self._cells[place]]}-{self.seeds[place]}"

    def place(self, run: str) -> int:
        """Return the row number of a run."""
        place = self._find(run)
        if place is None:
            raise InputFileError(f"no run named {run!r} here; go back to the table and choose one")
        return place

    def record(self, run: str) -> RunRecord:
        """Return the record of a run."""
        with SweepDatabase(self.folder) as database:
            record = database.record(run)
        if record is None:
            raise InputFileError(f"no run named {run!r} here; go back to the table and choose one")
        return record

    def setting(self, key: str, place: int) -> Cell:
        """Return one of the settings of a run."""
        if key == "profile":
            return self.cells((key,), (place,))[0][key]
        return setting_value(self._settings[self._cells[place]], key)

    def siblings(self, run: str) -> list[Sibling]:
        """Return runs of the same task and seed with the settings in which they differ, the most similar first."""
        own = self.place(run)
        task = self._settings[self._cells[own]].task
        same_task = np.array([setting.task == task for setting in self._settings], dtype=bool)[self._cells]
        places = np.flatnonzero(same_task & (self.seeds == self.seeds[own]))
        profiles = [row["profile"] for row in self.cells(("profile",), places.tolist())]
        settings = {
            place: [profile if key == "profile" else self.setting(key, place) for key in ACCESS]
            for place, profile in zip(places.tolist(), profiles, strict=True)
        }
        found = []
        for place, values in settings.items():
            if place != own:
                pairs = zip(ACCESS, values, settings[own], strict=True)
                different = [(key, value) for key, value, other in pairs if value != other]
                words = [f"h = {value}" if key == "h" else label(value) for key, value in different]
                keys = tuple(key for key, _ in different)
                found.append(Sibling(self.name(place), keys, ", ".join(words) or "again"))
        return sorted(found, key=lambda sibling: len(sibling.different))[:MOST_SIBLINGS]

    def occurs(self, key: str, *, zero: bool) -> bool:
        if key in SHOWN:
            return key in self._occurring and (zero or self._occurring[key])
        return bool(self.rows)

    def _code(self, key: str) -> Coded:
        if key == "run":
            return code_labels(self.name(place) for place in range(self.rows))
        if key == "seed":
            distinct, codes = np.unique(self.seeds, return_inverse=True)
            return Coded(codes, tuple(str(seed) for seed in distinct))
        if key not in SHOWN:
            of_cells = code_labels(label(setting_value(setting, key)) for setting in self._settings)
            return Coded(of_cells.codes[self._cells], of_cells.labels)
        codes, known = code_values(self._texts[key] if key in TEXTS else self._column(key))
        own = code_labels(label(_shown(key, value)) for value in known)
        return Coded(own.codes[codes], own.labels)

    def _number(self, key: str) -> NDArray[np.float64]:
        if key == "seed":
            return self.seeds.astype(np.float64)
        if key in TEXTS:
            return np.full(self.rows, np.nan)
        if key in SHOWN:
            return np.array(self._column(key), dtype=np.float64)  # None becomes NaN
        by_cell = [number(setting_value(setting, key)) for setting in self._settings]
        return np.array(by_cell, dtype=np.float64)[self._cells]

    def cells(self, keys: Sequence[str], places: Sequence[int]) -> list[dict[str, Cell]]:
        measures = [key for key in keys if key in SHOWN]
        values: list[tuple[float | int | str | None, ...]] = [()] * len(places)
        if measures:
            with SweepDatabase(self.folder) as database:
                values = database.values(measures, [int(self.ids[place]) for place in places])
        rows = []
        for place, found in zip(places, values, strict=True):
            measured = {key: _shown(key, value) for key, value in zip(measures, found, strict=True)}
            rows.append({key: measured[key] if key in measured else self._plain(key, place) for key in keys})
        return rows

    def _plain(self, key: str, place: int) -> Cell:
        if key == "run":
            return self.name(place)
        return int(self.seeds[place]) if key == "seed" else setting_value(self._settings[self._cells[place]], key)

    def _column(self, key: str) -> tuple[float | int | str | None, ...]:
        with SweepDatabase(self.folder) as database:
            found = database.column(key)
        if len(found) < self.rows:
            raise InputFileError(f"{self.folder} was begun anew; reload the page")
        return found[: self.rows]

    def _find(self, run: str) -> int | None:
        cell, _, seed = run.rpartition("-")
        if cell not in self._names or not (seed.isascii() and seed.isdigit()) or int(seed) >= 1 << 64:
            return None
        found = np.flatnonzero((self._cells == self._names.index(cell)) & (self.seeds == np.uint64(int(seed))))
        return int(found[0]) if len(found) else None


def _shown(key: str, value: Cell) -> Cell:
    """Return a value as tables show it: a way to fail by its label."""
    return _WAYS.get(value, value) if key == FAILURE and isinstance(value, str) else value


def setting_value(setting: Setting, key: str) -> Cell:
    """Return the value of one of the columns of settings."""
    return getattr(setting.task, key, None) if key in OF_TASK else _VALUES[key](setting)


def _condition(setting: Setting) -> str | None:
    aided = isinstance(setting.intervention, (RecoveryProbe, CalculatorAid))
    return intervention_kind(setting.intervention) if aided else setting.access.condition


_VALUES: dict[str, Callable[[Setting], Cell]] = {
    "model": lambda setting: setting.model,
    "condition": _condition,
    "policy": lambda setting: setting.access.policy,
    "memory": lambda setting: setting.access.memory,
    "h": lambda setting: setting.access.h,
    "budget": lambda setting: setting.access.budget if setting.access.condition in BUDGETED else None,
    "arm": lambda setting: setting.intervention.arm if isinstance(setting.intervention, RescueArm) else None,
    "repeat": lambda setting: None if setting.repeat is None else setting.repeat.number,
}


def short_label(record: RunRecord) -> str:
    """Return a short label that distinguishes a run from its siblings."""
    setting, memory = record.setting, record.memory
    done, access = setting.intervention, setting.access
    arm = done.arm if isinstance(done, RescueArm) else intervention_kind(done)
    profile = None if memory is None or memory.profile is None else memory.profile.name
    parts = [arm, access.memory or access.policy, profile, setting.model]
    held = [] if access.h is None else [f"h = {access.h}"]
    return ", ".join([*(part for part in parts if part), *held])
