"""From the name of a memory system to one that runs can use: found, checked, given its settings and its limits."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.agents.memory import MemorySystem, can_forget, find_memory, missing_verbs, requirements_of
from eirkit.agents.memory_calls import MEMORY_SECONDS
from eirkit.agents.model import Model, ModelOptions
from eirkit.agents.serving.model_factory import make_model
from eirkit.agents.stores import minilm
from eirkit.agents.stores.child_process import ProcessMemory
from eirkit.agents.stores.embeddings import find_embedding
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.agents.stores.environments import python_of, reason_not_installed, reason_without_node_packages
from eirkit.agents.stores.keys import refuse_plain_secrets, resolve_variables
from eirkit.agents.stores.limited import LimitedMemory
from eirkit.agents.stores.memory_adapter import adapt
from eirkit.agents.stores.metered_memory import MeteredMemory
from eirkit.errors import UnknownNameError, UsageError, describe

ModelMaker = Callable[[str], Model]
EXTRACTOR = "scripted/extractor"  # answers memory systems where no language model is given

MODEL, EMBEDDING = "model", "embedding"  # what answers a system that asks a language model itself
MINILM = "minilm"  # the embedding unless another is given
RUN_MODEL = "run"  # as MODEL: the model of the run
_SPELT: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
TIMEOUT = "timeout_seconds"  # a setting of the harness, not of the system
NOWHERE = "http://127.0.0.1:9"  # the port that throws everything away, where an address is not used
ENDPOINT = "endpoint"  # the argument through which such a system gets the address of an OpenAI-compatible server


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Which memory system, with which settings, held to how many records (None: its own way)."""

    name: str
    settings: Mapping[str, Any]
    limit: int | None = None

    @property
    def seconds(self) -> float:
        return float(self.settings.get(TIMEOUT, MEMORY_SECONDS))


def check_plan(plan: MemoryPlan) -> None:
    """Raise UsageError where a memory system is unknown, cannot run here, or does not take what it is given."""
    kind = find_memory(plan.name)
    refuse_plain_secrets(plan.name, plan.settings)
    if lacking := missing_verbs(kind):
        raise UsageError(
            f"memory {plan.name!r} has no {', '.join(lacking)}; see docs/add-a-memory.md for the verbs it needs"
        )
    known = sorted({TIMEOUT, *_asked(plan.name, kind), *_settings_of(kind)} - {ENDPOINT})
    for name in plan.settings:
        if name not in known:
            raise UnknownNameError(f"setting of memory {plan.name!r}", name, known)
    _check_types(plan, kind)
    _refuse_lacking(plan, kind)
    if plan.seconds <= 0:
        raise UsageError(f"{TIMEOUT} of memory {plan.name!r} is {plan.seconds:g}; give more than 0 seconds")
    if plan.limit is not None and not can_forget(kind):
        raise UsageError(
            f"memory {plan.name!r} cannot remove a record, so it has no strict panel; leave out --panel strict, or "
            f"give {kind.__name__} an `async def forget(self, label: str) -> None` that removes what the label has"
        )
    _try_constructor(plan, kind)
    if (why := reason_absent(plan.name, plan.settings)) is not None:
        raise UsageError(f"memory {plan.name!r} cannot run here: {why}")


def _refuse_lacking(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Raise UsageError where the constructor needs what was not given."""
    if sees_truth(plan.name):
        return
    needed = [one.name for one in inspect.signature(kind).parameters.values() if one.default is one.empty]
    own = [name for name in _settings_of(kind) if name in needed and name != ENDPOINT and name not in plan.settings]
    if own:
        how = " ".join(f"--memory-set {kind.__name__}.{name}=VALUE" for name in own)
        raise UsageError(f"memory {plan.name!r} is made with {', '.join(own)}; give {how}")


def _try_constructor(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Make the system once and throw it away: constructors only keep what they are given, and refuse what they cannot.

    A system with a process of its own would refuse there, as late as in its first run.
    """
    if sees_truth(plan.name):
        return
    asked = _asked(plan.name, kind)
    own = {name: value for name, value in plan.settings.items() if name != TIMEOUT and name not in asked}
    _construct(plan.name, kind, own | ({ENDPOINT: NOWHERE} if ENDPOINT in _settings_of(kind) else {}))


def _construct(name: str, kind: type[MemorySystem], settings: Mapping[str, Any]) -> MemorySystem:
    try:
        return kind(**settings)
    except UsageError as error:
        raise UsageError(f"memory {name!r}: {error}") from error
    except (Exception, SystemExit) as error:
        why = describe(error) if isinstance(error, SystemExit) else error
        raise UsageError(f"memory {name!r} cannot be made ({why}); correct its settings") from error


def make_free_model(string: str) -> Model:
    """Return a model that is neither metered nor capped."""
    return make_model(string, ModelOptions())


def make_memory(
    plan: MemoryPlan, truth: Mapping[str, str] | None = None, make: ModelMaker = make_free_model
) -> MemorySystem:
    """Return a new memory system; nothing is opened yet.

    Args:
        truth: the true records by label, for the one system that may see them (`for_task`).
        make: makes the model of a system that asks one itself, from its string.
    """
    kind = find_memory(plan.name)
    own = {name: value for name, value in plan.settings.items() if name != TIMEOUT}
    own = resolve_variables(plan.name, own, os.environ)
    if sees_truth(plan.name):
        made = adapt(kind.for_task(truth or {}))  # type: ignore[attr-defined]
    elif ENDPOINT in _settings_of(kind):
        made = _thinking(plan.name, kind, own, make)
    else:
        made = _made(plan.name, kind, own)
    return made if plan.limit is None else LimitedMemory(made, plan.limit)


def _thinking(name: str, kind: type[MemorySystem], settings: dict[str, Any], make: ModelMaker) -> MemorySystem:
    model, embedding = settings.pop(MODEL, EXTRACTOR), settings.pop(EMBEDDING, MINILM)
    endpoint = ModelEndpoint(make(str(model)), find_embedding(str(embedding)))
    return MeteredMemory(endpoint, lambda address: _made(name, kind, {**settings, ENDPOINT: address}))


def _made(name: str, kind: type[MemorySystem], settings: Mapping[str, Any]) -> MemorySystem:
    """Return the system itself; one that needs packages runs in a process of its own, whichever environment has them.

    A vendor's package reads the environment, starts threads and makes folders when it is imported: not in our process.
    """
    needed = requirements_of(kind)
    if needed.packages:
        return ProcessMemory(name, settings, python_of(name) or Path(sys.executable), needed.variables)
    return adapt(_construct(name, kind, settings))


def reason_absent(name: str, settings: Mapping[str, Any] | None = None) -> str | None:
    """Return why a memory system cannot run here and what to do about it; None if it can."""
    kind = find_memory(name)
    needed = requirements_of(kind, settings)
    if (why := reason_not_installed(name, needed)) is not None:
        return why
    if settings is not None and (why := reason_without_node_packages(name, needed)) is not None:
        return why
    embedded = EMBEDDING in _asked(name, kind) and (settings or {}).get(EMBEDDING, MINILM) == MINILM
    return minilm.reason_without_minilm() if embedded or MINILM in needed.weights else None


def model_of(name: str, settings: Mapping[str, Any]) -> str | None:
    """Return the string of the model that answers what a system asks; None if it asks none through us."""
    return str(settings.get(MODEL, EXTRACTOR)) if MODEL in _asked(name, find_memory(name)) else None


def sees_truth(name: str) -> bool:
    """True if a system is made anew for every task, from the task's true results."""
    return hasattr(find_memory(name), "for_task")


def _asked(name: str, kind: type[MemorySystem]) -> tuple[str, ...]:
    """Return what a system asks its endpoint for, which is what the user may choose."""
    declared, taken = requirements_of(kind).endpoint, ENDPOINT in _settings_of(kind)
    if taken and not declared:
        raise UsageError(
            f"memory {name!r} takes an {ENDPOINT} and does not say what for; add requirements = "
            "Requirements(endpoint=('model', 'embedding')), or one of the two"
        )
    if declared and not taken:
        raise UsageError(f"memory {name!r} requires an {ENDPOINT}; let its constructor take *, {ENDPOINT}: str")
    return declared


def _check_types(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Raise UsageError where a setting is of another type than its default: the text "false" would count as true."""
    parameters = inspect.signature(kind).parameters
    for name, value in plan.settings.items():
        default = MEMORY_SECONDS if name == TIMEOUT else parameters[name].default if name in parameters else None
        wanted = next((one for one in (bool, int, float, str) if isinstance(default, one)), None)
        if wanted is not None and type(value) is not wanted and not (wanted is float and type(value) is int):
            raise UsageError(f"{name} of memory {plan.name!r} is {value!r}; give {_SPELT[wanted]}")


def _settings_of(kind: type[MemorySystem]) -> list[str]:
    parameters = inspect.signature(kind).parameters.values()
    return [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
