"""Exports a suite as Harbor tasks, one task folder for each run.

A managed condition becomes one session with a service beside the agent's container; Controlled Retention becomes a
fresh session for each step. Seeds and answers are in the build context of the service and in the folder of the oracle
solution, never in the agent's image. docs/connect.md describes the folders and the remaining attack surface.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from eirkit import __version__
from eirkit.errors import UsageError
from eirkit.folders import close_to_others
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.suite import Grid, Suite
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskInstance, number_spec
from eirkit.records.settings import TEXT
from eirkit_bridges.sidecar import FOLDER, PLAN, PORT, REWARD, SERVICE, SidecarPlan

MODEL = "agent/harbor"
REQUIREMENT = f"eirkit[mcp]=={__version__}"
SCHEMA_VERSION = "1.4"
KEY_BYTES = 16
MOST_TASKS = 10_000
MOST_STEPS = 999  # of a controlled task: each is a folder and a session of the agent
AGENT_SECONDS = 3600.0
STEP_SECONDS = 600.0
VERIFIER_SECONDS = 120.0

SETTLE = "python -m eirkit_bridges.sidecar settle"
HAND_IN = (
    "curl -sS --max-time 30 --noproxy '*' --data-binary @\"${EIRKIT_TASK:-/task}/answer.txt\" "
    '"$EIRKIT_EPISODE_URL/answer"'
)

Draw = Callable[[int], bytes]  # returns that many unpredictable bytes


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """One task folder."""

    folder: Path
    name: str
    mode: str  # managed | controlled
    seed: int
    run: str  # id of its run


@dataclass(frozen=True, slots=True)
class _Task:
    """The data from which the files of one task folder are written."""

    name: str
    cell: Cell
    instance: TaskInstance
    rules: str
    plan: SidecarPlan
    url: str

    @property
    def steps(self) -> list[str]:
        return [f"step-{t:03d}" for t in range(1, len(self.plan.keys) + 1)]


def export_harbor(suite: Suite, out: Path, draw: Draw, install: str = REQUIREMENT) -> list[ExportedTask]:
    """Write the task folders and return them.

    Args:
        draw: source of tokens; they must be unpredictable, not reproducible.
        install: requirement that installs eirkit in the image of the service, or the path of a wheel.

    Raises:
        UsageError: the folder is in use, or a task cannot be exported; nothing has been written.
    """
    _check(suite, out, install)
    # The suite with answers as text, which arrive over HTTP; a session that is over cannot be asked again.
    suite = replace(
        suite,
        grids=tuple(replace(grid, options=replace(grid.options, protocol=TEXT, reask=False)) for grid in suite.grids),
    )
    exported = []
    close_to_others(out)  # not the files in it: other users inside the containers must be able to read some
    for number, (cell, seed) in enumerate(((cell, seed) for cell, seeds in suite.plan() for seed in seeds), 1):
        task = _prepare(cell, seed, number, suite, draw)
        folder = out / task.name
        _write(folder, task, install)
        mode = "controlled" if task.plan.keys else "managed"
        exported.append(ExportedTask(folder, f"eirkit/{task.name}", mode, seed, cell.run_id(seed)))
    return exported


def _check(suite: Suite, out: Path, install: str) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty folder; choose another --out")
    if len(suite) > MOST_TASKS:
        raise UsageError(
            f"{len(suite):,} tasks are too many folders; split the suite into parts of at most {MOST_TASKS:,}"
        )
    if any(grid.repeats > 1 for grid in suite.grids):
        raise UsageError("Harbor repeats tasks itself; leave out repeats and give it a number of attempts")
    if install.endswith(".whl") and not Path(install).is_file():
        raise UsageError(f"there is no wheel {install}; build one, or give a requirement such as {REQUIREMENT}")
    for cell, _ in suite.plan():
        named = (cell.task.workload, cell.access.policy, cell.access.memory)
        if local := [name for name in named if name is not None and ".py:" in name]:
            raise UsageError(f"{local[0]} is a local file; move it into a package and name that with --install")
        steps = number_spec(cell.task, "Harbor").n
        if cell.access.is_controlled and steps > MOST_STEPS:
            raise UsageError(f"{steps} steps are too many sessions for one task; choose n <= {MOST_STEPS}")


def _prepare(cell: Cell, seed: int, number: int, suite: Suite, draw: Draw) -> _Task:
    spec = number_spec(cell.task, "Harbor")
    steps = spec.n if cell.access.is_controlled else 0
    token, admin, *keys = (draw(KEY_BYTES).hex() for _ in range(2 + steps))
    # The name does not reveal the seed: an agent may learn the name of its task.
    condition = cell.access.memory or cell.access.condition
    name = f"{_slug(cell.task.workload)}-{_slug(condition)}-h{cell.access.h}-{number:04d}"
    plan = SidecarPlan(_single(suite, cell, seed).settings, token, admin, tuple(keys))
    instance = generate(spec.with_seed(seed))
    return _Task(
        name, cell, instance, SystemMessages().of(cell, instance.spec.seed), plan, f"http://{SERVICE}:{PORT}/{token}"
    )


def _single(suite: Suite, cell: Cell, seed: int) -> Suite:
    """Return the suite of one run."""
    for grid in suite.grids:
        for values in _combinations(grid):
            if next(values.cells()).id == cell.id:
                return replace(suite, grids=(replace(values, seeds=[seed]),), name="harbor")
    raise ValueError(f"cell {cell.id} is not in this suite")


def _combinations(grid: Grid) -> Iterator[Grid]:
    """Yield a grid of one cell for each cell of a grid, in the same order."""
    singles: list[dict[str, tuple[Any, ...]]] = [{}]
    for name, values in grid.axes.items():
        singles = [{**single, name: (value,)} for single in singles for value in values]
    return (replace(grid, axes=single) for single in singles)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "task"


def _write(folder: Path, task: _Task, install: str) -> None:
    controlled = bool(task.plan.keys)
    environment, tests, solution = folder / "environment", folder / "tests", folder / "solution"
    _put(folder / "task.toml", task_toml(task.name, task.cell, task.url, task.steps))
    _put(folder / "instruction.md", _instruction(task))
    _put(environment / "Dockerfile", _text("main.Dockerfile"))
    _put(environment / ".dockerignore", f"{SERVICE}\n")
    _put(environment / "docker-compose.yaml", _text("docker-compose.yaml", TOKEN=task.plan.token))
    _put_episode(environment / SERVICE, task, install)
    _put(tests / "test.sh", _text("test.sh"))
    _put(tests / "Dockerfile", _text("verifier.Dockerfile"))
    _put(solution / "solve.sh", _text("solve_controlled.sh" if controlled else "solve_managed.sh"))
    answers = (" ".join(map(str, step.answer)) for step in task.instance.steps)
    _put(solution / "answers.txt", "".join(f"{answer}\n" for answer in answers))
    for step, key in zip(task.steps, task.plan.keys, strict=True):
        _put(folder / "steps" / step / "instruction.md", _instruction(task))
        _put(folder / "steps" / step / "workdir" / "setup.sh", _text("setup.sh", KEY=key))


def _put_episode(folder: Path, task: _Task, install: str) -> None:
    wheel = Path(install) if install.endswith(".whl") else None
    _put(folder / "Dockerfile", _text("episode.Dockerfile"))
    _put(folder / "requirements.txt", f"./{wheel.name}[mcp]\n" if wheel else f"{install}\n")
    plan = {"suite": task.plan.suite, "token": task.plan.token, "admin": task.plan.admin, "keys": task.plan.keys}
    _put(folder / PLAN, json.dumps(plan))
    (folder / PLAN).chmod(0o600)  # the image gives it to the service's user alone
    if wheel is not None:
        shutil.copyfile(wheel, folder / wheel.name)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="\n")
    if path.suffix == ".sh":
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _text(name: str, **given: str) -> str:
    text = (files("eirkit_bridges") / "harbor_files" / name).read_text("utf-8")
    for key, value in given.items():
        text = text.replace(f"@{key}@", value)
    return text


def _instruction(task: _Task) -> str:
    name = "instruction_controlled.md" if task.plan.keys else "instruction_managed.md"
    return _text(name, URL=task.url, RULES=task.rules, STEPS=str(task.instance.spec.n))


def task_toml(name: str, cell: Cell, url: str, steps: Sequence[str]) -> str:
    """Return the text of task.toml; nothing in it depends on the seed."""
    spec = number_spec(cell.task, "Harbor")
    what = f"{spec.workload}, {spec.n} steps, {cell.access.condition}, h = {cell.access.h}"
    tables = [
        _table(
            "task", name=f"eirkit/{name}", version="1", description=f"LACUNA: {what}", keywords=["memory", "lacuna"]
        ),
        _table("metadata", workload=spec.workload, n=spec.n, m=spec.m, h=cell.access.h),
        _table("agent", timeout_sec=AGENT_SECONDS) if not steps else _table("agent", user="agent"),
        # The score is collected from the service and read in a separate container that the agent cannot reach.
        _table("verifier", timeout_sec=VERIFIER_SECONDS, environment_mode="separate"),
        *_collecting(steps),
        _table("environment", build_timeout_sec=1200.0, cpus=1, memory_mb=2048),
    ]
    if not steps:
        server = {"name": "lacuna", "transport": "streamable-http", "url": f"{url}/mcp"}
        tables.append(_table("[environment.mcp_servers]", **server))
    return "\n".join([_top(steps), *tables, *_stepping(steps)])


def _top(steps: Sequence[str]) -> str:
    lines = [f"schema_version = {_toml(SCHEMA_VERSION)}"]
    if steps:
        lines.append('multi_step_reward_strategy = "final"')
    kept = [f"{FOLDER}/{REWARD}", *([] if steps else [f"{FOLDER}/out"])]
    lines.append(f"artifacts = [{', '.join(_artifact(source) for source in kept)}]")
    return "\n".join(lines) + "\n"


def _artifact(source: str) -> str:
    return f"{{ source = {_toml(source)}, service = {_toml(SERVICE)} }}"


def _collecting(steps: Sequence[str]) -> Iterator[str]:
    if steps:
        yield _table("[verifier.collect]", command=HAND_IN, service="main", timeout_sec=60.0)
    yield _table("[verifier.collect]", command=SETTLE, service=SERVICE, timeout_sec=60.0)


def _stepping(steps: Sequence[str]) -> Iterator[str]:
    for step in steps:
        # Files that name the seed leave the service only after the last step.
        last = f"artifacts = [{_artifact(f'{FOLDER}/out')}]\n" if step == steps[-1] else ""
        yield f"[[steps]]\nname = {_toml(step)}\n{last}agent = {{ timeout_sec = {STEP_SECONDS} }}\n"


def _table(name: str, /, **values: Any) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: Any) -> str:
    """Return a string, number or list of strings as TOML, which shares their syntax with JSON."""
    return json.dumps(value, ensure_ascii=False)
