"""The paper's experiments as suites: a TOML file each with the paper's own parameters, read into cells of the runner.

A table of cells has a name with placeholders and values; lists of values are multiplied out. Every published figure of
models names the cells and the measure that compute it (`figures.csv`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from eirkit.lacuna.agents.probe_session import find_lost_answer
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, Planned
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import (
    ACTION_LIMIT,
    EXTERNAL,
    NATIVE,
    Access,
    CalculatorAid,
    Intervention,
    RecoveryProbe,
    RescueArm,
)
from eirkit_paper.published import PublishedFigure, published_models

_TASK = ("workload", "n", "m", "fan_in", "warm_up", "queries")
_UNLIMITED = "unlimited"
DIFFERENCE, POOL = " − ", " + "


@dataclass(frozen=True, slots=True)
class SuiteCell:
    """One condition of an experiment, for any model."""

    suite: str
    name: str
    task: TaskSpec
    access: Access
    intervention: Intervention | None

    @property
    def id(self) -> str:
        return f"{self.suite}:{self.name}"

    def cell(self, model: str, options: ModelOptions) -> Cell:
        return Cell(self.task, model, self.access, options, self.intervention)

    def seeds(self, given: Sequence[int]) -> Sequence[int]:
        """Return the seeds that have such a run; a probe needs an answer that was lost."""
        if not isinstance(self.intervention, RecoveryProbe):
            return given
        policy, h, first = self.access.policy or "lru", self.access.capacity, self.intervention.from_step
        tasks = ((seed, generate(self.task.with_seed(seed))) for seed in given)
        return [seed for seed, task in tasks if find_lost_answer(task, policy, h, first) is not None]


@dataclass(frozen=True, slots=True)
class PaperSuite:
    """One experiment of the paper."""

    id: str
    title: str
    place: str
    note: str  # what the paper does not say and this package chose
    cells: tuple[SuiteCell, ...]


@cache
def paper_suites() -> Mapping[str, PaperSuite]:
    """Return all suites by name."""
    folder = files("eirkit_paper") / "suites"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    return {path.name[:-5]: _suite(path.name[:-5], tomllib.loads(path.read_text("utf-8"))) for path in paths}


def _suite(name: str, document: Mapping[str, Any]) -> PaperSuite:
    cells = tuple(cell for table in document["cells"] for cell in _cells(name, table))
    return PaperSuite(name, document["title"], document["place"], document.get("note", ""), cells)


def _cells(suite: str, table: Mapping[str, Any]) -> Iterator[SuiteCell]:
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items() if key != "name"}
    for values in product(*lists.values()):
        given = dict(zip(lists, values, strict=True))
        if given["h"] == "m":
            given["h"] = given["m"]
        task = TaskSpec(**{key: given[key] for key in _TASK if key in given})
        yield SuiteCell(suite, table["name"].format(**given), task, _access(given), _intervention(given, task))


def _access(given: Mapping[str, Any]) -> Access:
    reads = None if given.get("reads") == _UNLIMITED else given.get("reads", 0)
    actions = given.get("actions", ACTION_LIMIT)
    if memory := given.get("memory"):
        return Access(EXTERNAL, None, memory, {}, given.get("panel", NATIVE), h=given["h"], actions=actions)
    if condition := given.get("condition"):
        return Access(condition, None, h=given["h"], reads=reads, actions=actions)
    return Access(policy=given["policy"], h=given["h"], reads=reads)


def _intervention(given: Mapping[str, Any], task: TaskSpec) -> Intervention | None:
    if arm := given.get("arm"):
        return RescueArm(arm, given.get("truth", "true"))
    if given.get("probe"):
        return RecoveryProbe(task.n // 2)
    return CalculatorAid() if given.get("calculator") else None


@cache
def cells_named(expression: str) -> tuple[tuple[SuiteCell, ...], ...]:
    """Return the cells behind a figure: one group, or two of which the second is subtracted."""
    return tuple(tuple(_matching(part)) for part in expression.split(DIFFERENCE))


def _matching(names: str) -> Iterator[SuiteCell]:
    for name in names.split(POOL):
        suite, _, pattern = name.partition(":")
        found = [cell for cell in paper_suites()[suite].cells if _fits(cell.name, pattern)]
        if not found:
            raise ValueError(f"no cell is named {name}")
        yield from found


def _fits(name: str, pattern: str) -> bool:
    """True if a name has the pattern; `*` stands for one word, so that it leaves out cells with a further one."""
    return fnmatchcase(name, pattern) and (pattern == "*" or name.count(" ") == pattern.count(" "))


@dataclass(frozen=True, slots=True)
class PaperPlan:
    """Which models run which cells."""

    models: Sequence[str]
    options: ModelOptions
    memories: Sequence[str] = ()  # installed systems that are to be run

    def cells(self, figures: Iterable[PublishedFigure], seeds: Sequence[int]) -> list[Planned]:
        """Return the runs that some figures need, each once.

        A model of the paper runs the cells of its own figures and pools; any other model runs them all.
        """
        known, planned = published_models(), dict[str, Planned]()
        for figure in figures:
            if not figure.cells or figure.reason:
                continue
            wanted = [model for model in self.models if self._runs(figure, known.find(model))]
            for one in (cell for group in cells_named(figure.cells) for cell in group):
                if one.access.memory is not None and one.access.memory not in self.memories:
                    continue
                for model in wanted:
                    cell = one.cell(model, self.options)
                    planned.setdefault(cell.id, (cell, one.seeds(seeds)))
        return list(planned.values())

    def _runs(self, figure: PublishedFigure, name: str | None) -> bool:
        members = published_models().members(figure.models)
        return name is None or not members or name in members
