"""A cohort, the plan of its tests fixed in advance, and the result of one test or the reason why there is none."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct, convert, structs
from numpy.typing import NDArray

from eirkit.errors import InputFileError, UnknownNameError
from eirkit.folders import read_small
from eirkit.records.analysis import CohortTest, Excluded, FindingDetails
from eirkit.seeds import name_key
from eirkit.vestige.cohorts.run_columns import Codes, Floats, Mask, RereadCells, RunColumns
from eirkit.vestige.inference.design import Columns
from eirkit.vestige.inference.results import Fit, Term, join_notes

Resampled = Literal["tasks", "runs"]
UNKNOWN = "unknown outcome"
MOST_MODELS = 60  # models with an indicator of their own
OTHER_MODELS = "other models"  # the indicator that rarer models share


class Settings(Struct, frozen=True):
    """Seed and numbers of resamples and draws."""

    seed: Annotated[int, Meta(ge=0)] = 0
    resamples: Annotated[int, Meta(ge=20)] = 1000  # for the fair-clock gaps
    mediation_resamples: Annotated[int, Meta(ge=20)] = 200
    draws: Annotated[int, Meta(ge=200)] = 1000  # per chain, of four
    resampled: Resampled = "tasks"  # "runs" resamples runs within tasks


@dataclass(frozen=True, slots=True)
class Cohort:
    """Runs of one unit, the reread cells of these runs, and other runs from which difficulty may be estimated."""

    name: str
    runs: RunColumns
    cells: RereadCells
    elsewhere: RunColumns
    settings: Settings

    def rng(self, name: str) -> np.random.Generator:
        """Return a generator specific to the cohort and the analysis, so that they do not influence each other."""
        return np.random.default_rng([self.settings.seed, name_key("cohort", self.name, name)])

    @property
    def in_tokens(self) -> bool:
        return bool(len(self.runs)) and self.runs.unit[0] == "tokens"

    def judged(self) -> tuple[RunColumns, tuple[Excluded, ...]]:
        """Return the runs with a known outcome, and how many have none."""
        return known(self.runs, ~np.isnan(self.runs.failed), UNKNOWN)


def known(
    runs: RunColumns, mask: Mask, reason: str, before: tuple[Excluded, ...] = ()
) -> tuple[RunColumns, tuple[Excluded, ...]]:
    """Return the runs where a mask holds, and all rows left out so far."""
    lost = int((~mask).sum())
    return runs.at(mask), (*before, Excluded(reason, lost)) if lost else before


def log2_1p(values: Floats) -> Floats:
    """Return log2(1 + x), on which one unit is a doubling of large values."""
    scaled: Floats = np.log2(1 + values)
    return scaled


def model_columns(models: NDArray[np.object_]) -> Columns:
    """Return an indicator for each model but the most frequent; the rarest share one if there are too many."""
    names, inverse, counts = np.unique(models.astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[1:]
    own, rest = order[:MOST_MODELS], order[MOST_MODELS:]
    columns = {f"model {names[place]}": (inverse == place).astype(np.float64) for place in sorted(own)}
    return {**columns, OTHER_MODELS: np.isin(inverse, rest).astype(np.float64)} if len(rest) else columns


def model_note(models: NDArray[np.object_]) -> str:
    """Return how many models share an indicator, if any do."""
    rest = len(np.unique(models.astype(str))) - 1 - MOST_MODELS
    if rest <= 0:
        return ""
    return f"the rarest {rest:,} of {rest + MOST_MODELS + 1:,} models share one indicator"


def at_tasks(values: Floats, tasks: Codes) -> Floats:
    """Return for each run the mean of a column over the runs of its task."""
    _, inverse, counts = np.unique(tasks, return_inverse=True, return_counts=True)
    means: Floats = (np.bincount(inverse, values) / counts)[inverse]
    return means


_KEYS = {
    "mediation_resamples": "mediation-resamples",
    "resampled": "resample",
    "base_lines": "base-lines",
}  # in suite files


class _PlannedCohort(Settings, frozen=True, forbid_unknown_fields=True, rename=_KEYS.get):
    """The table [cohort] of a suite file."""

    planned: tuple[str, ...] = ()
    recorded: object = ""  # a text or a date
    base_lines: str = ""
    disjoint: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """The tests fixed in advance, and their settings."""

    planned: tuple[str, ...] = ()
    recorded: str = ""  # date, as given in the file
    digest: str = ""  # SHA-256 of the file
    settings: Settings = field(default_factory=Settings)
    base_lines: Path | None = None  # source lines of each task's gold files
    disjoint: tuple[Path, ...] = ()  # analyses of other runs, from which only the difficulty of tasks is estimated


def read_plan(path: Path, tests: Collection[str]) -> AnalysisPlan:
    """Return the plan in a suite file; paths in it are relative to its folder.

    Raises:
        InputFileError: the file is not a suite of cohort tests.
        UnknownNameError: it plans a test that does not exist.
    """
    try:
        content = read_small(path)
        given = convert(tomllib.loads(content)["cohort"], _PlannedCohort)
    except (OSError, UnicodeError, KeyError, TypeError, ValueError) as error:
        cause = " ".join(str(error).split())
        raise InputFileError(
            f"{path} is not a suite of cohort tests ({cause}); give TOML with [cohort] planned"
        ) from error
    for name in given.planned:
        if name not in tests:
            raise UnknownNameError("cohort test", name, tests)
    settings = convert(given, Settings, from_attributes=True)
    digest = sha256(content.encode()).hexdigest()
    base_lines = path.parent / given.base_lines if given.base_lines else None
    disjoint = tuple(path.parent / folder for folder in given.disjoint)
    return AnalysisPlan(given.planned, str(given.recorded), digest, settings, base_lines, disjoint)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm-corrected p values over all planned tests; a test without a p value still counts."""
    stated = [1.0 if p is None else p for p in p_values]
    order = sorted(range(len(stated)), key=stated.__getitem__)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        p = p_values[place]
        if p is not None:
            largest = max(largest, min(1.0, p * (len(p_values) - rank)))
            corrected[place] = largest
    return corrected


CLUSTERED = "95% Wald, errors clustered by task"
BY_RUN = "95% Wald, errors clustered by run"

LARGEST_RATIO = 1e6  # a larger ratio, or one below its inverse, comes only from separation
NO_DETAILS = FindingDetails()
UNBOUNDED = "too few informative runs: the interval is unbounded"


@dataclass(frozen=True, slots=True)
class Question:
    """What a test asks, fixed before any number is computed."""

    name: str  # identifier in suite files and JSON
    scale: str  # scale of the estimate
    shows: str
    does_not_show: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a test; a number that does not exist is None and the note says why."""

    question: Question
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int  # rows used; these are runs unless the scale says otherwise
    interval: str = ""  # method of the interval
    excluded: tuple[Excluded, ...] = ()
    note: str = ""
    details: FindingDetails = NO_DETAILS

    def on(self, cohort: str) -> CohortTest:
        """Return the finding as a result on a cohort, without NaN."""
        return CohortTest(
            cohort=cohort,
            name=self.question.name,
            estimate=finite(self.estimate),
            low=finite(self.low),
            high=finite(self.high),
            p=finite(self.p),
            n=self.n,
            scale=self.question.scale,
            interval=self.interval if finite(self.low) is not None else "",
            excluded=tuple(part for part in self.excluded if part.rows),
            shows=self.question.shows,
            does_not_show=self.question.does_not_show,
            note=self.note or ("" if finite(self.estimate) is not None else "no estimate exists on these runs"),
            details=self.details,
        )


def finite(value: float | None) -> float | None:
    """Return a finite number, or None for NaN and infinity, which JSON cannot represent."""
    return float(value) if value is not None and isfinite(value) else None


def finding_of_term(
    question: Question,
    term: Term,
    fit_n: int,
    interval: str,
    *,
    ratio: bool = True,
    excluded: tuple[Excluded, ...] = (),
    note: str = "",
    details: FindingDetails = NO_DETAILS,
) -> Finding:
    """Return a finding from one term of a regression, by default as a ratio."""
    shown = term.ratio() if ratio else term
    own = "" if term.note in note else term.note
    if not ratio or _is_bounded(shown):
        numbers = shown.estimate, shown.low, shown.high, shown.p
        return Finding(question, *numbers, fit_n, interval, excluded, join_notes([own, note]), details)
    estimate = shown.estimate if _is_writable(shown.estimate) else None
    notes = join_notes([own, note, UNBOUNDED])
    return Finding(question, estimate, None, None, None, fit_n, interval, excluded, notes, details)


def _is_bounded(ratio: Term) -> bool:
    if ratio.standard_error is None:
        return ratio.estimate is None or _is_writable(ratio.estimate)
    return all(map(_is_writable, (ratio.estimate, ratio.low, ratio.high)))


def _is_writable(ratio: float | None) -> bool:
    return ratio is not None and 1 / LARGEST_RATIO < ratio < LARGEST_RATIO


def finding_of_fit(
    question: Question,
    fit: Fit,
    name: str,
    interval: str,
    excluded: tuple[Excluded, ...] = (),
    details: FindingDetails = NO_DETAILS,
) -> Finding:
    """Return a finding from one named term of a fit, including the rows that the fit left out."""
    return finding_of_term(
        question,
        fit.term(name),
        fit.n,
        interval,
        excluded=(*excluded, *fit.excluded),
        note=fit.note,
        details=structs.replace(details, clusters=fit.clusters),
    )


def with_note(found: Finding, note: str) -> Finding:
    """Return a finding with a further note appended."""
    return replace(found, note=join_notes([found.note, note]))


def no_finding(question: Question, note: str, n: int = 0, excluded: tuple[Excluded, ...] = ()) -> Finding:
    """Return a finding without numbers, and the reason."""
    return Finding(question, None, None, None, None, n, excluded=excluded, note=note)
