"""Lists which memories, models, formats and engines can be used here and what is missing (`eirkit doctor`).

Nothing is opened, contacted or installed. Packages are located without importing them where adapters allow it.
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

# An example name, for providers that do not accept arbitrary names.
_SAMPLES = {
    "bundled": "lacuna-tiny",
    "reference": "calculator",
    "scripted": "extractor",
    "local": "smollm2",
    "inspect": "mockllm/model",
}
_MODELS = {
    "bundled": "bundled/lacuna-tiny: a small trained agent whose weights ship with the package",
    "reference": "scripted agents with known behaviour, such as reference/recoverer; no model is called",
    "replay": "replay/DIR: the replies of a recorded run",
    "scripted": "scripted/extractor: answers the model calls of memory systems without a model",
}  # for providers whose factory is a function, where no class docstring describes the model
_READING = ("orjson", "pyarrow", "splintr", "tree_sitter", "tree_sitter_bash", "zstandard")


@dataclass(frozen=True, slots=True)
class Availability:
    """One plug-in or engine and whether it can be used here."""

    name: str
    usable: bool
    reason: str  # what is missing and how to install it; a description if nothing is
    requirements: Mapping[str, Any] | None = None  # of a memory system, met or not


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
    except Exception as error:  # noqa: BLE001 - one broken third-party plug-in must not hide the others
        return Availability(
            name, False, f"its own check failed ({type(error).__name__}: {error}); report it to its author"
        )


def _memory(name: str) -> Availability:
    kind = memories.get(name)
    needed = requirements_of(kind)
    declared = {field: value for field, value in asdict(needed).items() if value}
    if (why := reason_absent(name)) is not None:
        return Availability(name, False, why, declared)
    lacks = reason_without_node_packages(name, needed)  # with default settings
    more = f"; with default settings it needs an npm package: {lacks}" if lacks else ""
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
        ("numba", "fast", "compiled counting and simulation"),
        ("cupy", "gpu", "the bundled network on a GPU"),
        ("duckdb", "query", "`eirkit vestige query`: SQL over analysed runs"),
    )
    found = [Availability("numpy", True, "counting and simulation; always installed")]
    for package, extra, what in extras:
        usable = find_spec(package) is not None
        found.append(Availability(package, usable, what if usable else install_command(extra)))
    return found


def _purpose(plugin: object) -> str:
    """Return the first sentence of a plug-in's docstring."""
    return " ".join((getattr(plugin, "__doc__", None) or "").split("\n\n")[0].split()).rstrip(".")
