"""Rebuilds, from a manifest or a row, the command line and the suite file that reproduce a folder or go on with it.

Suites are read and written as the documents that they are in TOML and in manifests.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import SETTINGS, CapabilitySettings, EvidenceSettings, RescueSettings
from eirkit.records.settings import ACTION_LIMIT, DOCUMENTED, NATIVE, AnyTask, Task
from eirkit.records.sweeps import CellRow, Manifest, Spending
from eirkit.seeds import read_seeds, seeds_text

# The axes of a grid, and the usual options of a model, which are not mentioned; a test compares both with their source.
SUITE_AXES = (
    *Task.__struct_fields__,
    "preset",
    "model",
    *("condition", "policy", "memory", "panel", "b_oracle", "b", "actions"),
    *("context_tokens", "summary_prompt", "h", "budget"),
)
USUAL_OPTIONS: Mapping[str, object] = {
    "base_url": None,
    "temperature": 0.0,
    "max_tokens": 1024,
    "timeout_seconds": 60.0,
    "retries": 4,
    "connections": 8,
    "seed": 0,
    "dialect": None,
    "protocol": None,
    "reask": True,
}
DEFAULT = "default"  # a temperature of None in a suite
_MERGED = ("memory", "memory_options", "seeds")  # what grids may differ in and still be run as one


def sweep_command(manifest: Manifest, out: str, spending: Spending | None = None) -> str:
    """Return the command that repeats a sweep; a suite of several grids is read from suite.toml.

    Args:
        spending: of the folder, whose cap the command has too.
    """
    grids = manifest.settings["grid"]
    words = ["eirkit", "lacuna", "run"]
    words += list(_grid_words(grids[0])) if len(grids) == 1 else ["suite.toml"]
    if not manifest.settings["texts"] and len(grids) == 1:
        words.append("--no-texts")
    if manifest.control is not None:
        words.append("--control" if manifest.control else "--no-control")
    return shlex.join([*words, *_money_words(manifest, spending), "--out", out])


def _money_words(manifest: Manifest, spending: Spending | None) -> Iterator[str]:
    """Yield the price file and the cap of a sweep, which another run of its model needs as well."""
    if manifest.prices is not None:
        yield from ("--prices", manifest.prices)
    if spending is not None and spending.cap_usd is not None:
        yield from ("--cap-usd", f"{spending.cap_usd:f}".rstrip("0").rstrip("."))


def _grid_words(grid: Mapping[str, Any]) -> Iterator[str]:
    for name in (*SUITE_AXES, "seeds", "repeats"):
        if name not in grid:
            continue
        option, values = f"--{name.replace('_', '-')}", grid[name]
        if name == "summary_prompt":
            yield from (word for value in values for word in (option, str(value)))
        else:
            yield from (option, ",".join(map(str, values)) if isinstance(values, list) else str(values))
    yield from model_words(grid["model_options"])
    for memory, settings in grid["memory_options"].items():
        for key, value in settings.items():
            yield from ("--set", f"{memory}.{key}={_setting(value)}")


def model_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the model options that differ from the defaults."""
    for name, value in options.items():
        if name == "extra":
            for key, setting in value.items():
                yield from ("--set", f"{key}={_setting(setting)}")
        elif name == "base_url" and value is not None:
            yield from ("--base-url", str(value))
        elif name == "protocol" and value is not None:
            yield from ("--protocol", str(value))
        elif value != USUAL_OPTIONS.get(name) and value is not None:
            yield from ("--set", f"{name}={_setting(value)}")


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def evidence_command(settings: EvidenceSettings, out: str | None = None) -> str:
    """Return the command that reproduces an evidence folder; without `out`, only the command and its settings."""
    command = next(name for name, kind in SETTINGS.items() if isinstance(settings, kind))
    tasks = (settings.task,) if isinstance(settings, RescueSettings) else settings.tasks
    words = ["eirkit", "lacuna", command, "--workload", ",".join(task.workload for task in tasks)]
    words += _task_words(tasks[0])
    if isinstance(settings, RescueSettings):
        words += [] if settings.h is None else ["--h", str(settings.h)]
        words += [] if settings.memory else ["--policy", settings.policy]  # else the memory decides what is in sight
        words += ["--truth", settings.truth]
        words += [] if settings.actions == ACTION_LIMIT else ["--actions", str(settings.actions)]
        if settings.memory:
            words += _memory_words(settings.memory, settings.panel, settings.budget, settings.memory_settings)
        elif settings.managed:
            words.append("--managed")
    elif isinstance(settings, CapabilitySettings):
        words += ["--threshold", str(settings.threshold), "--windows", ",".join(map(str, settings.windows))]
        words.append("--calculator" if settings.calculator else "--no-calculator")
    else:
        plan = settings.plan
        words += ["--policy", plan.policy, "--h", str(plan.h), "--fan-in", ",".join(map(str, plan.fan_ins))]
        words += [] if plan.from_step is None else ["--from-step", str(plan.from_step)]
    words += ["--seeds", seeds_text(read_seeds(settings.seeds)), "--model", ",".join(settings.models)]
    if isinstance(settings, RescueSettings) and settings.control is not None:
        words.append("--control" if settings.control else "--no-control")
    options = model_words(structs.asdict(settings.options))
    return shlex.join([*words, *options, *(["--out", out] if out else [])])


def _task_words(task: AnyTask) -> list[str]:
    if not isinstance(task, Task):
        return ["--preset", task.preset]
    usual = TaskSpec(task.workload).parameters()
    words = []
    for name in Task.__struct_fields__[1:]:
        value = getattr(task, name)
        # Commands have defaults of their own for m, and the lookback is m unless it is given.
        if (name == "m" or value != getattr(usual, name)) and (name, value) != ("lookback", task.m):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def suite_text(suite: Mapping[str, Any]) -> str:
    """Return a suite as TOML that `eirkit lacuna run` reads."""
    lines = [f"name = {_toml(suite['name'])}", f"texts = {_toml(suite['texts'])}"]
    for grid in suite["grid"]:
        lines += ["", "[[grid]]"]
        lines += [f"{name} = {_toml(value)}" for name, value in grid.items() if not isinstance(value, Mapping)]
        lines += [f"{name} = {_toml(_told(value))}" for name, value in grid.items() if isinstance(value, Mapping)]
    return "\n".join(lines) + "\n"


def _told(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table without None, which TOML lacks; a temperature of None becomes the word for the default."""
    open_temperature = {"temperature": DEFAULT} if "temperature" in table and table["temperature"] is None else {}
    return {**{name: value for name, value in table.items() if value is not None}, **open_temperature}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(part)}" for key, part in value.items() if part is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    # A JSON string is a valid TOML string, except that TOML also requires DEL to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def rescue_command(
    row: CellRow, manifest: Manifest, seeds: Sequence[int], out: Path, spending: Spending | None = None
) -> str:
    """Return the rescue command for a cell of a sweep, with the same task, policy or memory, capacity and model.

    Args:
        spending: of the sweep, whose cap the command has too.
    """
    options = [grid["model_options"] for grid in manifest.settings["grid"]]
    shared = options[0] if all(given == options[0] for given in options) else {}
    words = ["eirkit", "lacuna", "rescue", "--workload", row.workload, *_task_words(row.task)]
    words += [] if row.h is None else ["--h", str(row.h)]
    words += ["--policy", row.policy] if row.policy else []
    words += _memory_words(row.memory, row.panel, row.budget or DOCUMENTED, row.memory_settings) if row.memory else []
    words += ["--model", row.model, *model_words(shared), "--seeds", seeds_text(seeds)]
    words += [*_money_words(manifest, spending), "--out", str(out)]
    return shlex.join(words)


def selftest_command(model: str, manifest: Manifest) -> str:
    """Return the command that tries a model of a sweep with a few short tasks, with the same options."""
    grid = next(grid for grid in manifest.settings["grid"] if model in grid["model"])
    return shlex.join(["eirkit", "selftest", "--model", model, *model_words(grid["model_options"])])


def _memory_words(memory: str, panel: str | None, budget: str, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command-line options of a memory."""
    yield from ("--memory", memory)
    if panel is not None and panel != NATIVE:
        yield from ("--panel", panel)
    if budget != DOCUMENTED:
        yield from ("--budget", budget)
    name = memory.rpartition(":")[2]  # of a file.py:Name the class is enough
    for key, value in settings.items():
        yield from ("--set", f"{name}.{key}={_setting(value)}")


def rescue_condition(settings: RescueSettings) -> str:
    """Return in words what a rescue was measured on; task settings with default values are left out."""
    words = _task_words(settings.task)
    told = [f"{name.removeprefix('--')} = {value}" for name, value in zip(words[::2], words[1::2], strict=True)]
    held = [] if settings.h is None else [f"h = {settings.h}"]
    where = [settings.task.workload, *told, *held, settings.memory or settings.policy]
    loop = ["the action loop"] if settings.managed and not settings.memory else []
    return ", ".join([*where, *loop, " and ".join(settings.models)])


def merged_grid(manifests: Sequence[Manifest]) -> dict[str, Any] | None:
    """Return one grid with the memories of all sweeps; None if they differ in more than that."""
    grids = [grid for manifest in manifests for grid in manifest.settings["grid"]]
    first = grids[0]
    if len(grids) == 1:
        return dict(first)
    others = {str({name: value for name, value in grid.items() if name not in _MERGED}) for grid in grids}
    how = {(manifest.settings["texts"], manifest.control) for manifest in manifests}
    if len(grids) != len(manifests) or len(others) > 1 or len(how) > 1 or not all("memory" in grid for grid in grids):
        return None
    options: dict[str, Any] = {}
    for grid in grids:
        for name in grid["memory"]:
            settings = grid["memory_options"].get(name, {})
            if options.setdefault(name, settings) != settings:
                return None
    given = {name: settings for name, settings in options.items() if settings}
    return {**first, "memory": list(options), "memory_options": given}


def restricted_grid(grid: Mapping[str, Any], rows: Sequence[CellRow]) -> dict[str, Any]:
    """Return a grid without the values that none of the rows has."""
    kept = dict(grid)
    for name in SUITE_AXES:
        own = {(row.memory or row.condition) if name == "memory" else getattr(row, name, None) for row in rows}
        if isinstance(grid.get(name), list) and None not in own:
            kept[name] = [value for value in grid[name] if value in own] or grid[name]
    named = kept.get("memory", ())
    kept["memory_options"] = {name: settings for name, settings in grid["memory_options"].items() if name in named}
    return kept
