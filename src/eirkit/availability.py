"""What can be used on this machine: every registered memory, model, format and engine, with what is missing for it.

Nothing is opened, asked or installed; packages are looked for, not imported, as far as their adapters allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from eirkit.agents.memory import memories, requirements_of
from eirkit.agents.model import ModelOptions, models
from eirkit.agents.serving.model_factory import preflight
from eirkit.agents.stores.environments import reason_without_node_packages
from eirkit.agents.stores.memory_factory import reason_absent
from eirkit.errors import EirkitError
from eirkit.extras import install_command
from eirkit.logs.trajectory import formats

# A name that a provider knows, for those that do not take any.
_SAMPLES = {
    "bundled": "lacuna-tiny",
    "reference": "calculator",
    "scripted": "extractor",
    "local": "smollm2",
    "inspect": "mockllm/model",
}
_MODELS = {
    "bundled": "bundled/lacuna-tiny: a small learned agent, whose weights come with the package",
    "reference": "agents with exact habits, such as reference/recoverer; no model is asked",
    "replay": "replay/DIR: the replies of a run that was recorded",
    "scripted": "scripted/extractor: answers what memory systems ask of a model, without one",
}  # of providers whose factory is a function, which says what it returns
_READING = ("orjson", "pyarrow", "splintr", "tree_sitter", "tree_sitter_bash", "zstandard")


@dataclass(frozen=True, slots=True)
class Availability:
    """One thing and whether it can be used here."""

    name: str
    usable: bool
    reason: str  # what is missing and how to get it; what it is where nothing is missing
    requirements: Mapping[str, Any] | None = None  # of a memory system, whether they are met or not


def list_availability() -> dict[str, list[dict[str, Any]]]:
    """Return the findings of each family, as `eirkit doctor --json` prints them."""
    families: dict[str, list[Availability]] = {
        "memories": [_try(_memory, name) for name in memories.names()],
        "models": [_try(_model, name) for name in models.names()],
        "formats": [_try(_format, name) for name in formats.names()],
        "engines": _engines(),
    }
    return {family: [asdict(one) for one in found] for family, found in families.items()}


def _try(look: Callable[[str], Availability], name: str) -> Availability:
    try:
        return look(name)
    except EirkitError as error:
        return Availability(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - a stranger's plug-in must not hide all others
        return Availability(
            name, False, f"its own check failed ({type(error).__name__}: {error}); report it to its author"
        )


def _memory(name: str) -> Availability:
    kind = memories.get(name)
    needed = requirements_of(kind)
    declared = {field: value for field, value in asdict(needed).items() if value}
    if (why := reason_absent(name)) is not None:
        return Availability(name, False, why, declared)
    lacks = reason_without_node_packages(name, needed)  # unless settings say otherwise
    more = f"; as it comes it needs a package of npm: {lacks}" if lacks else ""
    return Availability(name, True, _purpose(kind) + more, declared)


def _model(name: str) -> Availability:
    factory = models.get(name)
    what = _MODELS.get(name) or _purpose(factory)
    if name == "replay":
        return Availability(name, True, what)
    preflight(factory(_SAMPLES.get(name, "any"), ModelOptions()))
    return Availability(name, True, what)


def _format(name: str) -> Availability:
    kind = formats.get(name)
    lacking = [package for package in _READING if find_spec(package) is None]
    why = f"{lacking[0]} is not installed; {install_command('vestige')}" if lacking else None
    return Availability(name, why is None, why or _purpose(kind))


def _engines() -> list[Availability]:
    extras = (
        ("numba", "fast", "counts and simulates in compiled loops"),
        ("torch", "gpu", "counts on a GPU"),
        ("duckdb", "query", "answers `eirkit vestige query`: SQL over analysed runs"),
    )
    found = [Availability("numpy", True, "counts and simulates; always there")]
    for package, extra, what in extras:
        usable = find_spec(package) is not None
        found.append(Availability(package, usable, what if usable else install_command(extra)))
    return found


def _purpose(plugin: object) -> str:
    """Return the first sentence of a plug-in's docstring."""
    return " ".join((getattr(plugin, "__doc__", None) or "").split("\n\n")[0].split()).rstrip(".")
