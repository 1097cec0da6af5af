"""The manifest of a folder (settings, versions, hashes): how it is written, and which changes refuse a resume.

It never contains a key: settings that contain a secret of the environment are refused.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.agents.prompt import Renderer, render, renderer_of
from eirkit.lacuna.memories.memory import OWN_NUMBER, SEARCH_LIMIT
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.models.factory import split_model
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.models.prices import BUILT_IN
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.cells import Cell, CellPlan, RunPlan, plan_sha256
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.runs.suite import Suite
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.view import Budgets, Visible, publish
from eirkit.records.lines import read_document, write_document
from eirkit.registry import is_trusted, locate, refuse_untrusted, relocate

FILE = "manifest.json"
SCHEMA = "manifest/1"
PLAN_SCHEMA = "evidence/1"  # of an experiment other than a sweep
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first file of a sweep's folder."""

    suite: Mapping[str, Any]
    suite_sha256: str
    cells: int
    runs: int
    prompt_sha256: str  # of the system messages and the format of states
    prices_sha256: str
    sources: Mapping[str, str]  # SHA-256 of every file that a `file.py:Name` of the suite names
    rules: Mapping[str, str]  # the system messages of the sweep by their hash; run records name theirs
    eirkit: str
    python: str
    platform: str
    dependencies: Mapping[str, str]
    places: Mapping[str, str]  # relative paths of sources, as seen from the folder
    control: bool | None  # whether the control is run; None: for free models only
    passages: Sequence[Mapping[str, Any]] = ()  # how many each memory is asked for; the kept recordings do not say

    def write(self, folder: Path) -> None:
        write_document(folder / FILE, SCHEMA, asdict(self), sealed=True)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest in a sweep's folder."""
    if not (folder / FILE).is_file():
        raise InputFileError(
            f"{folder} has no {FILE}, so nothing was recorded there; start a new sweep with --out {folder}"
        )
    document = read_document(folder / FILE, SCHEMA)
    known = [one.name for one in fields(Manifest)]
    if missing := sorted(name for name in known if name not in document and name != "passages"):
        raise InputFileError(f"{folder / FILE} lacks {', '.join(missing)}; restore the file")
    return Manifest(**{name: document[name] for name in known if name in document})


def describe(
    suite: Suite,
    prices: Path | None,
    environment: Mapping[str, str],
    folder: Path | None = None,
    control: bool | None = None,
) -> Manifest:
    """Return the manifest of a new sweep in a folder."""
    listed = suite.as_json()
    refuse_secrets("the suite", listed, environment)
    facts = _facts_of(suite, prices)
    return Manifest(
        suite=listed,
        suite_sha256=suite.sha256(),
        cells=sum(len(grid) for grid in suite.grids),
        runs=len(suite),
        **facts,
        places={} if folder is None else places_of(facts["sources"], folder),
        control=control,
    )


def describe_plan(plan: CellPlan, prices: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of another experiment, with its command and settings in place of a suite."""
    refuse_secrets("the command", plan.settings, environment)
    return {
        "command": plan.kind,
        "settings": plan.settings,
        **plan_facts(plan),
        **_facts_of(plan, prices),
    }


def plan_facts(plan: CellPlan) -> dict[str, Any]:
    """Return what a manifest says of a plan's cells; no model is looked up."""
    return {"plan_sha256": plan_sha256(plan), "cells": len(plan.cells), "runs": len(plan)}


def _facts_of(plan: RunPlan, prices: Path | None) -> dict[str, Any]:
    """Return the fields that all manifests share."""
    return {
        **prompt_facts(plan),
        "passages": passages_facts(plan),
        "prices_sha256": prices_sha256(prices),
        "sources": sources_of(name for cell, _ in plan.plan() for name in _names_of(cell)),
        **versions_in_use(),
    }


def passages_facts(plan: RunPlan) -> list[dict[str, Any]]:
    """Return how many passages a search of each memory system asks for (null: all that it returns), and who says so."""
    found = []
    for cell, _ in plan.plan():
        if (used := cell.memory_plan) is not None:
            profile = memory_factory().profile_record(used) or {}
            asked = {
                "passages": memory_factory().passages_asked(used),
                "from": profile.get("passages_from", OWN_NUMBER),
            }
            made = {"memory": used.name, "settings": dict(used.settings), "profile": profile.get("name"), **asked}
            found += [] if made in found else [made]
    return found


def prompt_facts(plan: RunPlan) -> dict[str, Any]:
    """Return what a manifest says of a plan's prompts; models are looked up for their format, which may run code."""
    texts = {sha256(text.encode()).hexdigest(): text for text in SystemMessages().of_plan(plan)}
    digest = sha256("\n".join([*sorted(texts), *dialects_of(plan)]).encode()).hexdigest()
    return {"prompt_sha256": digest, "rules": texts}


def _names_of(cell: Cell) -> tuple[str | None, ...]:
    """Return all values of a cell that may name a plug-in."""
    return cell.task.workload, cell.access.condition, cell.access.policy, cell.access.memory, cell.model


def refuse_secrets(what: str, document: Any, environment: Mapping[str, str]) -> None:
    """Raise UsageError if a document that will be written contains a secret of the environment."""
    if Scrubber.of_environment(environment).value(document) != document:
        raise UsageError(
            f"{what} contains a secret of the environment; remove it, because keys are read from the environment"
        )


@cache
def versions_in_use() -> dict[str, Any]:
    """Return the versions of eirkit, Python, the platform and the dependencies."""
    return {
        "eirkit": version("eirkit"),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "dependencies": dependency_versions(),
    }


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
    return {path: _file_sha256(locate(path)) for path in paths if locate(path).is_file()}


def places_of(sources: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the paths of relatively named files as seen from a folder; absolute paths are left out."""
    seen = {path: os.path.relpath(locate(path).resolve(), folder.resolve()) for path in sources}
    return {path: Path(place).as_posix() for path, place in seen.items() if not Path(path).is_absolute()}


def find_sources(then: Manifest, folder: Path) -> None:
    """Make plug-in files loadable from another working directory, if the records of the sweep are trusted."""
    for path, place in then.places.items() if is_trusted() else ():
        elsewhere, known = folder / place, then.sources.get(path)
        here = Path(path)
        if not (here.is_file() and _file_sha256(here) == known) and elsewhere.is_file():
            relocate(path, elsewhere.resolve())


def _file_sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


class SystemMessages:
    """The system messages of cells; rendering one also checks that the cell can run."""

    def __init__(self) -> None:
        self._task: TaskInstance | None = None  # of the last cell, which neighbouring cells mostly share

    def of(self, cell: Cell, seed: int) -> str:
        """Return the system message of a cell; the seed may be that of any run."""
        spec = cell.task.with_seed(seed)
        if self._task is None or self._task.spec != spec:
            self._task = generate(spec)
        session = make_session(cell.access, self._task, prepare(spec), intervention=cell.intervention)
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
    """Raise UsageError if a resumed sweep would write different records than before."""
    if then.suite_sha256 != now.suite_sha256:
        raise UsageError(
            f"the suite differs from that in {folder} ({then.cells} cells and {then.runs} runs there, {now.cells} and "
            f"{now.runs} here, or other values); use --resume {folder} alone, or choose another --out"
        )
    if then.eirkit != now.eirkit:
        raise UsageError(
            f"{folder} was started with eirkit {then.eirkit}, this is {now.eirkit}; use that version or another --out"
        )
    if changed := sorted(path for path, known in then.sources.items() if now.sources.get(path) != known):
        raise UsageError(f"{changed[0]} has changed since {folder} was started; restore it, or choose another --out")
    if _asked(then) != _asked(now):
        raise UsageError(f"searches in {folder} ask for another number of passages than now; choose another --out")
    if then.prompt_sha256 != now.prompt_sha256:
        raise UsageError(f"the prompts have changed since {folder} was started; choose another --out")


def _asked(manifest: Manifest) -> list[int | None]:
    """Return how many passages searches ask for, where that is another number than in earlier versions."""
    return [one["passages"] for one in manifest.passages if one["passages"] != SEARCH_LIMIT]


SECOND = 1_000_000_000  # nanoseconds


def start_time(path: Path) -> int:
    """Return when the runs at a path began, from its modification time, in nanoseconds since 1970."""
    first = path / FILE
    try:
        return (first if first.is_file() else path).stat().st_mtime_ns // SECOND * SECOND
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
