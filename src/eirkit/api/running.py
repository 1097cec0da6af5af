"""`eirkit.run` and `eirkit.open`: sweeps from Python, with plug-ins given as names or as classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from types import CodeType
from typing import Any

from eirkit.api.sweep import Sweep
from eirkit.engine.interface import Engine
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.memories.memory import memories
from eirkit.lacuna.models.model import models
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.runner import Observer, ignore_progress
from eirkit.lacuna.runs.suite import Suite, load_suite, read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.documents import MANIFEST
from eirkit.registry import Registry
from eirkit.vestige.results.analysis import Analysis
from eirkit.vestige.tables import is_analysis

_FAMILIES: dict[str, Registry[Any]] = {
    "workload": workloads,
    "policy": policies,
    "memory": memories,
    "model": models,
}


def run(
    workload: str | Path | type | Sequence[str | type],
    *,
    model: Any = None,
    memory: Any = None,
    seeds: int | str | Iterable[int] | None = None,
    out: str | Path | None = None,
    control: bool | None = None,
    cap_usd: float | None = None,
    prices: Path | None = None,
    cache: Path | None = None,
    engine: Engine | None = None,
    observe: Observer = ignore_progress,
    **settings: Any,
) -> Sweep:
    """Run agents on generated tasks and return the results.

    Values may be lists, which make a grid. Plug-ins are given by name, as `path/file.py:Name`, or as classes; a class
    that is defined in a notebook runs in this process, is recorded by the digest of its source, and must be given again
    to go on with its folder.

    Args:
        workload: what is asked, such as `store-recall`; or the path of a SUITE.toml, whose values the others replace.
        model: who answers, such as `reference/recoverer` or `openai/gpt-5`.
        memory: what keeps earlier results; without it, only the last h records stay visible.
        seeds: which tasks: a number, `"0:12"`, or an iterable of numbers.
        out: the folder; one that holds a sweep is added to. By default a temporary one, removed with the result.
        control: whether the model's capability is tested first; None for free models only.
        cap_usd: what may be spent at most, over all calls of the folder.
        engine: runs free models; by default they run in this process.
        settings: the other keys of a suite: n, m, h, policy, condition, panel, texts, model_options, memory_options, …

    Raises:
        UsageError: a value is wrong, or the folder holds something that the runs could not be compared with.
    """
    given = {**settings, "model": model, "memory": memory, "seeds": seeds}
    if not _is_suite(workload):
        given["workload"] = workload
    suite = _suite(workload, {key: _values(key, value) for key, value in given.items() if value is not None})
    limits = SpendingLimits(cap_usd, prices, cache)
    folder = Path(mkdtemp(prefix="eirkit-sweep-")) if out is None else Path(out)
    if (folder / MANIFEST).is_file():
        resume_sweep(folder, suite, limits, observe, control, engine)
    else:
        start_sweep(suite, folder, limits, observe, control, engine)
    return Sweep(folder, temporary=out is None)


def open(folder: str | Path) -> Sweep | Analysis:
    """Open the folder of a sweep, of another experiment, or of an analysis of logs.

    Raises:
        InputFileError: it is none of these.
    """
    path = Path(folder).expanduser()
    if is_analysis(path):
        return Analysis(path)
    if (path / MANIFEST).is_file():
        return Sweep(path)
    raise InputFileError(f"{folder} holds no results; give a folder of `lacuna run --out` or `vestige analyze --out`")


def _is_suite(workload: object) -> bool:
    return isinstance(workload, Path) or (isinstance(workload, str) and workload.endswith(".toml"))


def _suite(workload: object, given: dict[str, Any]) -> Suite:
    if _is_suite(workload):
        return load_suite(Path(str(workload)), given)
    if "model" not in given:
        raise UsageError("no model is given; add model=, such as model='reference/recoverer'")
    return read_suite(given)


def _values(key: str, value: Any) -> Any:
    """Return a value of a suite: lists as lists, and classes by the name under which they are found."""
    if key == "seeds":
        return value if isinstance(value, (int, str, range)) else list(value)
    if isinstance(value, (list, tuple, range)):
        return [_values(key, part) for part in value]
    if key in _FAMILIES and not isinstance(value, str):
        return name_of(value, _FAMILIES[key])
    return value


def name_of(plugin: Any, registry: Registry[Any]) -> str:
    """Return the name by which a class is found: its own, `module:Name`, or one with the digest of its source."""
    if not callable(plugin):
        raise UsageError(f"{plugin!r} is no {registry.family}; give its name, or a class")
    if (known := registry.name_of(plugin)) is not None:
        return known
    module, name = str(plugin.__module__), str(plugin.__qualname__)
    home = sys.modules.get(module)
    if module != "__main__" and name.isidentifier() and getattr(home, name, None) is plugin:
        return f"{module}:{name}"
    lent = f"{plugin.__name__}@{sha256(_source(plugin).encode()).hexdigest()[:12]}"
    registry.lend(lent, plugin)
    return lent


def _source(plugin: Any) -> str:
    try:
        return inspect.getsource(plugin)
    except (OSError, TypeError):  # typed into a prompt that keeps no text
        return repr(
            [(name, _compiled(part.__code__)) for name, part in vars(plugin).items() if hasattr(part, "__code__")]
        )


def _compiled(code: CodeType) -> tuple[object, ...]:
    """Return what a function does, the same for the same source."""
    inner = [_compiled(part) if isinstance(part, CodeType) else part for part in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, inner
