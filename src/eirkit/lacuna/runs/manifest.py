"""The manifest of a folder (settings, versions, hashes): how it is written, and which changes refuse a resume.

It never contains a key: settings that contain a secret of the environment are refused.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import msgspec

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.agents.prompt import Renderer, render, renderer_of
from eirkit.lacuna.memories.memory import OWN_NUMBER
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.models.factory import split_model
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.models.prices import BUILT_IN
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.cells import Cell, RunPlan, plan_sha256
from eirkit.lacuna.runs.family import family_of
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import GeneratedTask, TaskSpec
from eirkit.lacuna.tasks.view import Budgets, Visible, publish
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, read_struct, write_struct
from eirkit.records.sweeps import Manifest, Passages
from eirkit.registry import file_sha256, locate, refuse_untrusted

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write the first file of a folder of runs."""
    write_struct(folder / MANIFEST, RUNS_SCHEMA, manifest)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in a folder of runs."""
    if not (folder / MANIFEST).is_file():
        raise InputFileError(
            f"{folder} has no {MANIFEST}, so nothing was recorded there; start anew with --out {folder}"
        )
    return read_struct(folder / MANIFEST, RUNS_SCHEMA, Manifest)


def describe(
    plan: RunPlan,
    prices: Path | None,
    environment: Mapping[str, str],
    folder: Path | None = None,
) -> Manifest:
    """Return the manifest of a new sweep or another experiment in a folder."""
    settings = msgspec.json.decode(msgspec.json.encode(plan.settings), type=dict[str, Any])  # as they will be read
    refuse_secrets("the suite" if plan.kind == "run" else "the command", settings, environment)
    texts = system_messages(plan)
    sources = sources_of(
        name
        for cell, _ in plan.plan()
        for name in (cell.task.workload, cell.access.condition, cell.access.policy, cell.access.memory, cell.model)
    )
    return Manifest(
        command=plan.kind,
        settings=settings,
        plan_sha256=plan_sha256(plan),
        cells=sum(not cell.repeat for cell, _ in plan.plan()),
        runs=len(plan),
        # Models are looked up for their format, which may run code.
        prompt_sha256=sha256("\n".join([*sorted(texts), *dialects_of(plan)]).encode()).hexdigest(),
        prices_sha256=prices_sha256(prices),
        sources=sources,
        rules=texts,
        eirkit=version("eirkit"),
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        dependencies=dict(dependency_versions()),
        places={} if folder is None else places_of(sources, folder),
        passages=tuple(passages_of_plan(plan)),
        prices=None if prices is None else str(prices),
    )


def system_messages(plan: RunPlan) -> dict[str, str]:
    """Return the system messages of a plan by their hash."""
    return {sha256(text.encode()).hexdigest(): text for text in SystemMessages().of_plan(plan)}


def passages_of_plan(plan: RunPlan) -> list[Passages]:
    """Return how many passages a search of each memory system asks for, and who says so."""
    found: list[Passages] = []
    for cell, _ in plan.plan():
        if (used := cell.memory_plan) is not None:
            profile = memory_factory().profile_record(used)
            made = Passages(
                used.name,
                dict(used.settings),
                None if profile is None else profile.name,
                memory_factory().passages_asked(used),
                OWN_NUMBER if profile is None else profile.passages_from,
            )
            found += [] if made in found else [made]
    return found


def refuse_secrets(what: str, document: Any, environment: Mapping[str, str]) -> None:
    """Raise UsageError if a document that will be written contains a secret of the environment."""
    if Scrubber.of_environment(environment).value(document) != document:
        raise UsageError(
            f"{what} contains a secret of the environment; remove it, because keys are read from the environment"
        )


def prices_sha256(prices: Path | None) -> str:
    """Return the hash of the prices that apply."""
    return sha256(b"".join(path.read_bytes() for path in (BUILT_IN, prices) if path)).hexdigest()


def sources_of(names: Iterable[str | None]) -> dict[str, str]:
    """Return the hash of every file of code or weights that the names refer to, to detect changes."""
    given = {name for name in names if name is not None}
    code = {name.partition(".py:")[0] + ".py" for name in given if ".py:" in name}
    paths = sorted(code | {split_model(name)[1] for name in given if name.endswith(".safetensors")})
    for path in paths:
        refuse_untrusted(path, "a file")
    return {path: file_sha256(locate(path)) for path in paths if locate(path).is_file()}


def places_of(sources: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the paths of relatively named files as seen from a folder; absolute paths are left out."""
    seen = {path: os.path.relpath(locate(path).resolve(), folder.resolve()) for path in sources}
    return {path: Path(place).as_posix() for path, place in seen.items() if not Path(path).is_absolute()}


class SystemMessages:
    """The system messages of cells; rendering one also checks that the cell can run."""

    def __init__(self) -> None:
        self._task: GeneratedTask | None = None  # of the last cell, which neighboring cells mostly share

    def of(self, cell: Cell, seed: int) -> str:
        """Return the system message of a cell; the seed may be that of any run."""
        spec = cell.task.with_seed(seed)
        if self._task is None or self._task.spec != spec:
            self._task = generate(spec)
        session = family_of(spec).session(cell.access, self._task, cell.intervention, None)
        session.protocol = cell.protocol
        if session.fixed_rules:
            return session.fixed_rules
        session.renderer = renderer_of(cell.model, cell.options)
        first = session.request()
        return first.messages[0].content if isinstance(first, Request) else ""

    def of_plan(self, plan: RunPlan) -> list[str]:
        """Return the distinct messages of a plan, in order."""
        return list(dict.fromkeys(self.of(cell, seeds[0]) for cell, seeds in plan.plan()))


def dialects_of(plan: RunPlan) -> list[str]:
    """Return an example state in every prompt format of a plan, in order."""
    return [dialect(one) for one in dict.fromkeys(renderer_of(cell.model, cell.options) for cell, _ in plan.plan())]


def dialect(renderer: Renderer = render) -> str:
    """Return an example state with all parts that a state can have."""
    spec = TaskSpec("store-recall", n=12, m=4)
    task = publish(generate(spec), prepare(spec))
    record, budgets = ((1, (7,)),), Budgets(1, 2, None)
    return renderer(Visible(task, task.steps[3], True, record, record, record, "a note", budgets=budgets))[-1].content


@cache
def dependency_versions() -> Mapping[str, str]:
    """Return the versions of all installed packages that eirkit names as dependencies, the optional ones included."""
    names = {match.group() for line in requires("eirkit") or () if (match := _NAME.match(line))}
    found = {}
    for name in sorted(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def refuse_drift(then: Manifest, now: Manifest, folder: Path) -> None:
    """Raise UsageError if runs that are added to a folder could not be compared with those that are there.

    Args:
        now: the manifest that the folder's own settings would have today.
    """
    if then.eirkit != now.eirkit:
        raise UsageError(
            f"{folder} was started with eirkit {then.eirkit}, this is {now.eirkit}; use that version or another --out"
        )
    if changed := sorted(path for path, known in then.sources.items() if now.sources.get(path) != known):
        raise UsageError(f"{changed[0]} has changed since {folder} was started; restore it, or choose another --out")
    if [asked.passages for asked in then.passages] != [asked.passages for asked in now.passages]:
        raise UsageError(f"searches in {folder} ask for another number of passages than now; choose another --out")
    if then.prompt_sha256 != now.prompt_sha256:
        raise UsageError(f"the prompts have changed since {folder} was started; choose another --out")


SECOND = 1_000_000_000  # nanoseconds


def start_time(path: Path) -> int:
    """Return when the runs at a path began, from its modification time, in nanoseconds since 1970."""
    first = path / MANIFEST
    try:
        return (first if first.is_file() else path).stat().st_mtime_ns // SECOND * SECOND
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
