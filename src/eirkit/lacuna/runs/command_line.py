"""Rebuilds, from a manifest, the command line and the suite file that reproduce a folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import NATIVE
from eirkit.lacuna.runs.manifest import Manifest
from eirkit.lacuna.runs.suite import AXES
from eirkit.lacuna.runs.values import DEFAULT, read_seeds, show_seeds
from eirkit.lacuna.tasks.task import TaskSpec, without_seed

_OPTIONS = {"seed": "--model-seed"}  # every other model option is named as it is
_FLAGS = ("tool_calls",)


def sweep_command(manifest: Manifest, out: str) -> str:
    """Return the command that repeats a sweep; a suite of several grids is read from suite.toml."""
    grids = manifest.suite["grid"]
    words = ["eirkit", "lacuna", "run"]
    words += list(_grid_words(grids[0])) if len(grids) == 1 else ["suite.toml"]
    if not manifest.suite["texts"] and len(grids) == 1:
        words.append("--no-texts")
    if manifest.control is not None:
        words.append("--control" if manifest.control else "--no-control")
    return shlex.join([*words, "--out", out])


def _grid_words(grid: Mapping[str, Any]) -> Iterator[str]:
    for name in (*AXES, "seeds", "repeats"):
        if name not in grid:
            continue
        option, values = f"--{name.replace('_', '-')}", grid[name]
        if name in _FLAGS:
            if values == [True]:
                yield option
        elif name == "summary_prompt":
            yield from (word for value in values for word in (option, str(value)))
        else:
            yield from (option, ",".join(map(str, values)) if isinstance(values, list) else str(values))
    yield from model_words(grid["model_options"])
    for memory, settings in grid["memory_options"].items():
        for key, value in settings.items():
            yield from ("--memory-set", f"{memory}.{key}={_setting(value)}")


def model_words(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the model options that differ from the defaults."""
    usual = asdict(ModelOptions())
    for name, value in options.items():
        if name == "extra":
            for key, setting in value.items():
                yield from ("--set", f"{key}={_setting(setting)}")
        elif value is True:
            yield f"--{name}"
        elif value != usual.get(name) and value is not None:
            yield from (_OPTIONS.get(name, f"--{name.replace('_', '-')}"), str(value))


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def evidence_command(manifest: Mapping[str, Any], out: str | None = None) -> str:
    """Return the command that reproduces an evidence folder; without `out`, only the command and its settings."""
    settings = manifest["settings"]
    tasks = settings["tasks"] if "tasks" in settings else [settings["task"]]
    words = ["eirkit", "lacuna", manifest["command"], "--workload", ",".join(task["workload"] for task in tasks)]
    words += _task_words(tasks[0])
    stored = bool(settings.get("memory"))  # then what is in sight follows from the memory
    for name in ("h", *(() if stored else ("policy",)), "truth", "threshold", "actions"):
        if name in settings:
            words += [f"--{name}", str(settings[name])]
    if stored:
        words += _memory_words(settings)
    elif settings.get("managed"):
        words.append("--managed")
    if "windows" in settings:
        words += ["--windows", ",".join(map(str, settings["windows"]))]
        words.append("--calculator" if settings["calculator"] else "--no-calculator")
    words += _plan_words(settings.get("plan", {}))
    words += ["--seeds", seeds_text(read_seeds(settings["seeds"])), "--model", ",".join(settings["models"])]
    if settings.get("control") is not None:
        words.append("--control" if settings["control"] else "--no-control")
    return shlex.join([*words, *model_words(settings["options"]), *(["--out", out] if out else [])])


def _task_words(task: Mapping[str, Any]) -> list[str]:
    usual = TaskSpec(task["workload"]).as_json()
    usual["m"] = None  # commands have defaults of their own
    words = []
    for name, value in task.items():
        if name not in ("workload", "seed") and value != usual.get(name) and (name, value) != ("lookback", task["m"]):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def _plan_words(plan: Mapping[str, Any]) -> list[str]:
    """Return the options of a probe's plan."""
    words = []
    for name, value in plan.items():
        if value is not None:
            shown = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            words += [f"--{name.replace('_', '-')}", shown]
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
    row: Mapping[str, Any], task: TaskSpec | None, options: Mapping[str, Any], seeds: Sequence[int], out: Path
) -> str:
    """Return the rescue command for a cell, with the same task, policy or memory, capacity and model.

    Args:
        task: the task of the cell; if None, it is taken from the row.
        options: the model options.
    """
    told = without_seed(task or _told_task(row))
    words = ["eirkit", "lacuna", "rescue", "--workload", row["workload"], *_task_words(told), "--h", str(row["h"])]
    words += ["--policy", row["policy"]] if row["policy"] else []
    words += _memory_words(row) if row["memory"] else []
    words += ["--model", row["model"], *model_words(options), "--seeds", seeds_text(seeds), "--out", str(out)]
    return shlex.join(words)


def _memory_words(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command-line options of the memory system in a row or in settings."""
    yield from ("--memory", told["memory"])
    if told["panel"] != NATIVE:
        yield from ("--panel", told["panel"])
    name = told["memory"].rpartition(":")[2]  # of a file.py:Name the class is enough
    for key, value in told["memory_settings"].items():
        yield from ("--memory-set", f"{name}.{key}={_setting(value)}")


def _told_task(row: Mapping[str, Any]) -> TaskSpec:
    return TaskSpec(row["workload"], *(row[name] for name in ("n", "m", "lookback", "fan_in")))


def rescue_condition(settings: Mapping[str, Any]) -> str:
    """Return in words what a rescue was measured on; task settings with default values are left out."""
    words = _task_words({"n": "", **settings["task"]})
    told = [f"{name.removeprefix('--')} = {value}" for name, value in zip(words[::2], words[1::2], strict=True)]
    kept = settings.get("memory") or settings["policy"]
    where = [settings["task"]["workload"], *told, f"h = {settings['h']}", kept]
    loop = ["the action loop"] if settings["managed"] and not settings.get("memory") else []
    return ", ".join([*where, *loop, " and ".join(settings["models"])])


def seeds_text(seeds: Sequence[int]) -> str:
    """Return seeds in the form that --seeds takes."""
    shown = show_seeds(seeds) if seeds else "0:3"
    return shown if isinstance(shown, str) else ",".join(map(str, shown))
