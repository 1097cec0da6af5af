"""Reads and checks sweep suites (TOML, or options of `lacuna run`), and expands their grid into cells with seeds.

Every key of a grid takes one value or a list; a grid is the product of its lists. Keys above the first `[[grid]]` are
defaults for every grid. The hash of the canonical form decides whether a resumed sweep is the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.folders import read_small
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, plan_sha256
from eirkit.lacuna.runs.family import family_of
from eirkit.lacuna.runs.values import (
    Reader,
    read_budget,
    read_count,
    read_flag,
    read_label,
    read_memory_options,
    read_model_options,
    read_name,
    read_prompt_budget,
    read_text,
)
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import AnySpec
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.budgets import condition_budget
from eirkit.records.settings import EXTERNAL, SHOWN_ITSELF
from eirkit.seeds import read_seeds, show_seeds

MOST_RUNS = 100_000_000

# In execution order; the last keys change fastest.
_TASK: dict[str, Reader] = {
    "workload": read_name,
    "n": read_count,
    "m": read_count,
    "lookback": read_count,
    "fan_in": read_count,
    "slots": read_count,
    "digits": read_count,
    "k": read_count,
    "queries": read_name,
    "warm_up": read_count,
    "overwrites": read_count,
    "deletes": read_count,
    "expiry": read_count,
    "users": read_count,
    "rereads": read_count,
    "preset": read_name,
}
_ACCESS: dict[str, Reader] = {
    "condition": read_name,
    "policy": read_name,
    "memory": read_name,
    "panel": read_name,
    "b_oracle": read_budget,
    "b": read_budget,
    "actions": read_count,
    "context_tokens": read_count,
    "summary_prompt": read_text,
    "h": read_count,
    "budget": read_prompt_budget,
}
AXES: dict[str, Reader] = {**_TASK, "model": read_name, **_ACCESS}
_GRID_KEYS = (*AXES, "seeds", "repeats", "model_options", "memory_options")
_SUITE_KEYS = ("name", "texts", "grid", *_GRID_KEYS)
_MODEL_KEYS = tuple(one.name for one in fields(ModelOptions))


@dataclass(frozen=True, slots=True)
class Grid:
    """One product of values over the same seeds."""

    axes: Mapping[str, tuple[Any, ...]]  # only those that were given
    seeds: Sequence[int]
    options: ModelOptions
    memory_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by the name of the system
    repeats: int = 1  # of each task, with another seed of the model

    def cells(self) -> Iterator[Cell]:
        """Yield the cells, without repeats."""
        for values in self._places():
            yield make_cell(values, self.options, self.memory_options)

    def singles(self) -> Iterator[Grid]:
        """Yield a grid of each cell alone, in the order of `cells`."""
        for values in self._places():
            axes = {name: (value,) for name, value in values.items()}
            kept = {name: own for name, own in self.memory_options.items() if (name,) == axes.get("memory")}
            yield replace(self, axes=axes, memory_options=kept)

    def _places(self) -> Iterator[dict[str, Any]]:
        """Yield the values of each cell; what is the same under several budgets has the first of them."""
        names = [name for name in AXES if name in self.axes]
        for values in product(*(self.axes[name] for name in names)):
            place = dict(zip(names, values, strict=True))
            if "budget" not in place or place["budget"] in self._budgets(place.get("condition"), place.get("memory")):
                yield place

    def _budgets(self, condition: str | None, memory: str | None) -> tuple[str, ...]:
        """Return the budgets of the grid that differ under a condition."""
        counted = condition or (None if memory is None else memory if memory in SHOWN_ITSELF else EXTERNAL)
        first: dict[str, str] = {}
        for budget in self.axes["budget"]:
            first.setdefault(condition_budget(counted or "", budget), budget)
        return tuple(first.values())

    def __len__(self) -> int:
        several = ("condition", "memory", "budget") if "budget" in self.axes else ()
        size = prod(len(values) for name, values in self.axes.items() if name not in several)
        if not several:
            return size
        pairs = product(*(self.axes.get(name, (None,)) for name in ("condition", "memory")))
        return size * sum(len(self._budgets(condition, memory)) for condition, memory in pairs)

    def as_json(self) -> dict[str, Any]:
        axes = {name: list(values) for name, values in self.axes.items()}
        options = {name: getattr(self.options, name) for name in _MODEL_KEYS}
        asked = {**options, "extra": dict(options["extra"])}
        kept = {name: dict(settings) for name, settings in self.memory_options.items()}
        often = {"repeats": self.repeats} if self.repeats > 1 else {}
        return {**axes, "seeds": show_seeds(self.seeds), **often, "model_options": asked, "memory_options": kept}


@dataclass(frozen=True, slots=True)
class Suite:
    """Everything that determines the records of a sweep."""

    grids: tuple[Grid, ...]
    name: str = "run"
    texts: bool = True  # keep prompts and replies beside their hashes

    def __len__(self) -> int:
        """The number of runs."""
        return sum(len(grid) * len(grid.seeds) * grid.repeats for grid in self.grids)

    def plan(self) -> Iterator[tuple[Cell, Sequence[int]]]:
        """Yield the cells in execution order, each with its seeds; the repeats of a cell follow it."""
        for grid in self.grids:
            for cell in grid.cells():
                yield cell, grid.seeds
                for number in range(1, grid.repeats):
                    yield cell.repeated(number), grid.seeds

    @property
    def kind(self) -> str:
        return "run"

    @property
    def settings(self) -> dict[str, Any]:
        """The canonical form; `read_suite` is the inverse."""
        return {"name": self.name, "texts": self.texts, "grid": [grid.as_json() for grid in self.grids]}

    def sha256(self) -> str:
        """Return a hash of everything that can change a record, without names and connection limits."""
        return plan_sha256(self)


def join_suites(recorded: Suite, further: Suite) -> Suite:
    """Return a suite with all runs of both, and no others; cells that both have get the seeds of both.

    Raises:
        UsageError: one keeps texts and the other does not, or a cell would have other seeds in some of its repeats.
    """
    if recorded.texts != further.texts:
        raise UsageError(
            "the folder keeps prompts and replies, or does not, unlike what is added; choose another --out"
        )
    wanted = {cell.id: grid for grid in further.grids for cell in grid.cells()}
    grids: list[Grid] = []
    for grid in recorded.grids:
        others = [wanted.pop(cell.id, None) for cell in grid.cells()]
        spans = {id(other): _span(grid, other) for other in others}
        own = [spans[id(other)] for other in others]
        if all(span == own[0] for span in own):
            grids.append(replace(grid, seeds=own[0][0], repeats=own[0][1]))
        else:  # only some of its cells get more
            singles = zip(grid.singles(), own, strict=True)
            grids += [replace(single, seeds=seeds, repeats=repeats) for single, (seeds, repeats) in singles]
    for grid in further.grids:
        new = [single for single, cell in zip(grid.singles(), grid.cells(), strict=True) if cell.id in wanted]
        grids += [grid] if len(new) == len(grid) else new
    joined = Suite(tuple(grids), recorded.name, recorded.texts)
    check_suite(joined)
    return joined


def _span(grid: Grid, other: Grid | None) -> tuple[Sequence[int], int]:
    """Return the seeds and the repeats of a cell that is in both grids; the seeds are a range where they are one."""
    if other is None:
        return grid.seeds, grid.repeats
    whole = sorted({*grid.seeds, *other.seeds})
    if grid.repeats != other.repeats and len(whole) > len((grid if grid.repeats > other.repeats else other).seeds):
        raise UsageError(
            f"the folder has {grid.repeats} repeats of some tasks and {other.repeats} of others would be added; "
            "give the same --repeats, or more of them with all seeds"
        )
    repeats = max(grid.repeats, other.repeats)
    if len(whole) == len(grid.seeds):
        return grid.seeds, repeats
    run = range(whole[0], whole[-1] + 1)
    return run if len(run) == len(whole) else whole, repeats


def make_cell(
    values: Mapping[str, Any], options: ModelOptions, memory_options: Mapping[str, Mapping[str, Any]] | None = None
) -> Cell:
    """Return the cell with these values and defaults for all others."""
    if "workload" not in values or "model" not in values:
        raise UsageError(f"no {'model' if 'workload' in values else 'workload'} is given; every grid needs one")
    workload = find_workload(values["workload"])
    task: AnySpec = workload.specify({name: values[name] for name in _TASK if name in values})
    memory_settings = (memory_options or {}).get(values.get("memory") or "", {})
    return Cell(task, values["model"], family_of(task).access(values, memory_settings), options)


def load_suite(path: Path, given: Mapping[str, Any] | None = None) -> Suite:
    """Read and check a suite; the given keys override those of the file."""
    try:
        document = tomllib.loads(read_small(path))
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise InputFileError(f"{path} is not TOML ({error}); see docs/run-a-sweep.md") from error
    try:
        return read_suite(document, given, path.stem)
    except UsageError as error:
        raise InputFileError(f"{path}: {error}") from error


def read_suite(document: Mapping[str, Any], given: Mapping[str, Any] | None = None, name: str = "run") -> Suite:
    """Return the suite that a document describes, with every cell checked.

    Args:
        given: keys that override those of the document in every grid.
        name: default name of the suite.
    """
    top = {**document, **(given or {})}
    _refuse_unknown(top, _SUITE_KEYS)
    shared, over = ({key: v for key, v in keys.items() if key in _GRID_KEYS} for keys in (document, given or {}))
    listed = document.get("grid", [{}])
    if not isinstance(listed, list) or not listed or not all(isinstance(grid, dict) for grid in listed):
        raise UsageError("`grid` is not a list of tables; write [[grid]] above each")
    for grid in listed:
        _refuse_unknown(grid, _GRID_KEYS)
    grids = tuple(_read_grid(_merge(_merge(shared, grid), over)) for grid in listed)
    suite = Suite(grids, read_label("name", top.get("name", name)), read_flag("texts", top.get("texts", True)))
    check_suite(suite)
    return suite


def _merge(keys: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys with overrides; model options are overridden one by one."""
    merged = {**keys, **over}
    both = [table["model_options"] for table in (keys, over) if "model_options" in table]
    if both:
        wrong = [table for table in both if not isinstance(table, Mapping)]  # refused when it is read
        merged["model_options"] = wrong[0] if wrong else {n: value for table in both for n, value in table.items()}
    return merged


def check_suite(suite: Suite) -> None:
    """Raise UsageError if a cell is invalid or duplicated; models are checked when they are made."""
    if len(suite) > MOST_RUNS:
        raise UsageError(f"{len(suite):,} runs are too many; split the suite below {MOST_RUNS:,}")
    seen: set[str] = set()
    for cell, seeds in suite.plan():
        prepare(cell.task)
        family_of(cell.task).check_access(cell.access)
        cell.task.with_seed(min(seeds)), cell.task.with_seed(max(seeds))
        if cell.id in seen:
            held = "" if cell.access.h is None else f", h = {cell.access.h}"
            where = f"{cell.task.workload}, {cell.model}, {cell.access.condition}{held}"
            raise UsageError(f"the cell ({where}) occurs twice; list each value and each grid once")
        seen.add(cell.id)


def _read_grid(table: Mapping[str, Any]) -> Grid:
    axes = {name: _values(name, table[name]) for name in AXES if name in table}
    memory_options = read_memory_options(table.get("memory_options", {}), axes.get("memory", ()))
    model_options = read_model_options(table.get("model_options", {}))
    repeats = read_count("repeats", table.get("repeats", 1))
    if repeats < 1:
        raise UsageError(f"repeats = {repeats} is no number of runs; give 1 or more")
    return Grid(axes, read_seeds(table.get("seeds", "0:3")), model_options, memory_options, repeats)


def _values(name: str, value: Any) -> tuple[Any, ...]:
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise UsageError(f"{name} is an empty list; give a value or leave it out")
    return tuple(AXES[name](name, item) for item in listed)


def _refuse_unknown(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        if key not in known:
            raise UnknownNameError("key", str(key), known)
