"""Reads figures.csv, models.toml and cohorts.toml: every published number that can be compared, and its rounding.

`figures.csv` has one line a figure with its ±, interval, p-value and n where they are printed, the models behind it,
and the cells and the measure that compute it. `models.toml` maps names of models to the published ones. `cohorts.toml`
says where each cohort is published, how it lies below --data and how many runs to expect.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Self

NOT_COMPARED = "not compared: "
_PERCENT = 0.01
SLACK = 0.01  # of the runs: a reader may normalize a few more or fewer than the published one


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One printed figure; shares are fractions, whatever the paper prints."""

    place: str  # the label of its table, figure or section
    row: str
    column: str
    value: float
    rounding: float  # half a unit of the last printed digit
    printed: str  # as the paper has it
    sd: float | None  # the ± of the table: a population standard deviation over runs
    low: float | None  # of the printed 95% interval
    high: float | None
    p: float | None
    n: int | None  # runs, probes or other units behind it
    unit: str
    models: str  # a published model, or a pool of them; empty if it is not about models
    study: str
    cells: str  # of suites; empty if it is computed by the study itself
    measure: str
    same_as: str  # the id of the figure that it repeats
    note: str

    @property
    def id(self) -> str:
        return f"{self.place}|{self.row}|{self.column}"

    @property
    def number(self) -> Printed:
        """The value, which knows its figure."""
        return Printed(self.value, self.id)

    @property
    def label(self) -> str:
        return ": ".join(filter(None, (self.row, self.column)))

    @property
    def numbers(self) -> int:
        """How many numbers are printed: the figure itself, its ±, the ends of its interval, its p-value."""
        return 1 + sum(value is not None for value in (self.sd, self.low, self.high, self.p))

    @property
    def reason(self) -> str:
        """Why it is not compared; empty if it is."""
        if self.same_as:
            return f"the same figure as {self.same_as.replace('|', ', ')}"
        return self.note.removeprefix(NOT_COMPARED) if self.note.startswith(NOT_COMPARED) else ""


class Printed(float):
    """A number that the paper prints, with the id of its figure; what is computed from it is a plain number."""

    figure: str

    def __new__(cls, value: float, figure: str) -> Self:
        number = super().__new__(cls, value)
        number.figure = figure
        return number

    def __reduce__(self) -> tuple[type[Printed], tuple[float, str]]:
        return Printed, (float(self), self.figure)


@cache
def published_figures() -> tuple[PublishedFigure, ...]:
    """Return all figures in the order of the file."""
    text = (files("eirkit_paper") / "figures.csv").read_text("utf-8")
    return tuple(_figure(line) for line in csv.DictReader(text.splitlines()))


@cache
def figures_by_id() -> Mapping[str, PublishedFigure]:
    return {figure.id: figure for figure in published_figures()}


def figures_of(study: str) -> tuple[PublishedFigure, ...]:
    """Return the figures that a study compares or explains."""
    return tuple(figure for figure in published_figures() if figure.study == study)


def value_of(place: str, row: str, column: str) -> float:
    """Return one published value, which knows its figure."""
    return figures_by_id()[f"{place}|{row}|{column}"].number


def digits_of(place: str, row: str, column: str) -> int:
    """Return how many digits a value is printed with behind the point; before it where negative."""
    return round(-math.log10(2 * figures_by_id()[f"{place}|{row}|{column}"].rounding))


def values_of(place: str, row: str, *columns: str) -> tuple[float, ...]:
    """Return several published values of a row."""
    return tuple(value_of(place, row, column) for column in columns)


def _figure(line: Mapping[str, str]) -> PublishedFigure:
    scale = _PERCENT if "%" in line["value"] or line["unit"] == "percentage points" else 1.0
    value = _number(line["value"], scale)
    if value is None:
        raise ValueError(f"{line['place']}: a figure without a value")
    return PublishedFigure(
        place=line["place"],
        row=line["row"],
        column=line["column"],
        value=value,
        rounding=half_digit(line["value"]) * scale,
        printed=line["printed"] or line["value"],
        sd=_number(line["sd"], scale),
        low=_number(line["low"], scale),
        high=_number(line["high"], scale),
        p=_number(line["p"]),
        n=int(line["n"]) if line["n"] else None,
        unit="difference" if line["unit"] == "percentage points" else line["unit"],
        models=line["models"],
        study=line["study"],
        cells=line["cells"],
        measure=line["measure"],
        same_as=line["same_as"],
        note=line["note"],
    )


def _number(text: str, scale: float = 1.0) -> float | None:
    """Return a number as it is printed times a scale, rounded where the product would show binary digits."""
    return round(float(text.rstrip("%")) * scale, 12) if text else None


def half_digit(text: str) -> float:
    """Return half a unit of the last printed digit: 0.0005 of 0.113, 500 of 4.4e4."""
    mantissa, _, power = text.rstrip("%").lstrip("+-").partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(power or 0) - digits)


@dataclass(frozen=True, slots=True)
class PublishedModels:
    """The models of the paper, names by which they are known, and the pools that figures are taken over."""

    names: Mapping[str, tuple[str, ...]]  # published name → patterns of model names
    pools: Mapping[str, tuple[str, ...]]

    def find(self, model: str) -> str | None:
        """Return the published model that a name such as `openai/gpt-4.1-mini-2025-04-14` stands for."""
        wanted = model.lower()
        found = {
            name for name, patterns in self.names.items() if any(fnmatchcase(wanted, pattern) for pattern in patterns)
        }
        return found.pop() if len(found) == 1 else None

    def members(self, models: str) -> tuple[str, ...]:
        """Return the published models behind a figure; none if the paper does not name them."""
        return self.pools.get(models, (models,) if models in self.names else ())

    def matching(self, models: str, given: Iterable[str]) -> dict[str, list[str]]:
        """Return which of the given models stand for each published model behind a figure."""
        by_name: dict[str, list[str]] = {name: [] for name in self.members(models)}
        for model in given:
            if (name := self.find(model)) in by_name:
                by_name[str(name)].append(model)
        return by_name


@cache
def published_models() -> PublishedModels:
    document = tomllib.loads((files("eirkit_paper") / "models.toml").read_text("utf-8"))
    names = {name: tuple(patterns) for name, patterns in document["models"].items()}
    return PublishedModels(names, {name: tuple(pool) for name, pool in document["pools"].items()})


@dataclass(frozen=True, slots=True)
class PaperCohort:
    """One published collection of runs."""

    folder: str
    figure: str  # the id of the published number of its runs
    gold: bool  # it has reference patches
    source: str
    layout: str

    @property
    def runs(self) -> int:
        return int(figures_by_id()[self.figure].value)

    def is_met(self, runs: int) -> bool:
        """True if an analysis has as many runs as the paper's."""
        return abs(runs - self.runs) <= SLACK * self.runs

    def differs(self, runs: int) -> str:
        """Return why figures of an analysis are not judged."""
        return f"{runs:,} runs in --data, {self.runs:,} in the paper: {self.source}"

    @property
    def command(self) -> str:
        gold = " --gold GOLD" if self.gold else ""
        return f"eirkit vestige analyze RUNS{gold} --demand paper --out DATA/{self.folder}"


@cache
def paper_cohorts() -> Mapping[str, PaperCohort]:
    document = tomllib.loads((files("eirkit_paper") / "cohorts.toml").read_text("utf-8"))
    return {name: PaperCohort(name, **fields) for name, fields in document.items()}
