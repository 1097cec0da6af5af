"""Makes memory systems from `--memory` and `--set`, and checks their settings."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eirkit.errors import PluginError, StoreError, UnknownNameError, UsageError, describe
from eirkit.lacuna import EXTRACTOR, MODEL
from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.adapter import adapt
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.child_process import ProcessMemory, load, open_process
from eirkit.lacuna.memories.embeddings import find_embedding
from eirkit.lacuna.memories.endpoint import MeteredMemory, ModelEndpoint
from eirkit.lacuna.memories.environments import (
    python_of,
    reason_not_installed,
    reason_without_node_packages,
    refuse_plain_secrets,
    resolve_variables,
)
from eirkit.lacuna.memories.memory import (
    Item,
    MemorySystem,
    MemoryWrapper,
    can_forget,
    find_memory,
    memories,
    missing_verbs,
    passages_of,
    profile_of,
    requirements_of,
    writes_on_recall,
)
from eirkit.lacuna.memories.openai_dialect import USUAL_MAX_TOKENS
from eirkit.lacuna.memories.plan import TIMEOUT, MemoryPlan, ModelMaker
from eirkit.lacuna.memories.questions import ENDPOINT, NOWHERE, settings_of, stand_in
from eirkit.lacuna.memories.times import CALL_SECONDS, START_SECONDS
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import USUAL_TOKENS
from eirkit.records.runs import MemoryProfile
from eirkit.registry import is_only_read, locate

EMBEDDING = "embedding"  # a setting of a system that calls a model
MINILM = "minilm"  # the default embedding
_SPELLED: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


def kind_of(name: str, settings: Mapping[str, Any] | None = None) -> type[MemorySystem]:
    """Return the class of a memory system, or a class with the same facts if its code is not ours.

    Args:
        settings: on which its requirements may depend.

    Raises:
        UsageError: there is no such system, or its code cannot be loaded.
    """
    return probe(name, settings or {}).kind if memories.is_foreign(name) else find_memory(name)


@dataclass(frozen=True, slots=True)
class Probed:
    """What a process of its own found out about a foreign system."""

    kind: type[MemorySystem]
    refusal: str | None  # why it cannot be constructed with the settings


_probed: dict[str, Probed] = {}


def probe(name: str, settings: Mapping[str, Any]) -> Probed:
    """Load a foreign system in a process of its own, and try its constructor; done once for each content of a file."""
    key = json.dumps([name, dict(settings), _version_of(name)], sort_keys=True, default=repr)
    if key not in _probed:
        _probed[key] = wait_for(_probe(name, settings))
    return _probed[key]


async def _probe(name: str, settings: Mapping[str, Any]) -> Probed:
    process = open_process(name, Path(sys.executable), is_own=True)
    try:
        async with asyncio.timeout(START_SECONDS):
            facts = await load(process, name, settings)
            refusal = None
            try:
                await process.ask("try", dict(settings))
            except (PluginError, UsageError) as error:
                refusal = error.reason if isinstance(error, PluginError) else str(error)
            return Probed(stand_in(facts), refusal)
    except TimeoutError:
        raise UsageError(f"memory {name!r} did not load within {START_SECONDS:g} s; correct its file") from None
    except PluginError as error:
        raise UsageError(f"memory {name!r} cannot be loaded ({error.reason}); correct its file") from error
    except StoreError as error:
        raise UsageError(f"memory {name!r} ended its process while it was loaded: {error}") from error
    finally:
        await process.end()


def _version_of(name: str) -> tuple[int, int] | None:
    """Return what changes when the file of a system does."""
    try:
        state = locate(name.rpartition(":")[0]).stat()
    except (OSError, ValueError):
        return None
    return state.st_mtime_ns, state.st_size


def check_plan(plan: MemoryPlan) -> None:
    """Raise UsageError if a memory system is unknown, does not accept its settings, or is to run and cannot."""
    refuse_plain_secrets(plan.name, plan.settings)
    kind = kind_of(plan.name, _own_settings(plan))
    if lacking := missing_verbs(kind):
        raise UsageError(f"memory {plan.name!r} has no method {', '.join(lacking)}; see docs/add-a-memory.md")
    known = sorted({TIMEOUT, *_asked(plan.name, kind), *settings_of(kind)} - {ENDPOINT})
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
            f"add `async def forget(self, label: str) -> None` to {kind.__name__}"
        )
    _try_constructor(plan, kind)
    if not is_only_read() and (why := reason_absent(plan.name, plan.settings)) is not None:
        raise UsageError(f"memory {plan.name!r} cannot run here: {why}")


def _refuse_lacking(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Raise UsageError if a required constructor argument is not given."""
    if sees_truth(plan.name):
        return
    needed = [one.name for one in inspect.signature(kind).parameters.values() if one.default is one.empty]
    own = [name for name in settings_of(kind) if name in needed and name != ENDPOINT and name not in plan.settings]
    if own:
        how = " ".join(f"--set {kind.__name__}.{name}=VALUE" for name in own)
        raise UsageError(f"memory {plan.name!r} requires {', '.join(own)}; give {how}")


def _try_constructor(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Construct the system once to check its settings.

    A system in a separate process would otherwise refuse them in its first run. Constructors only store arguments.
    """
    if sees_truth(plan.name):
        return
    if memories.is_foreign(plan.name):
        if (why := probe(plan.name, _own_settings(plan)).refusal) is not None:
            raise UsageError(f"memory {plan.name!r} cannot be constructed ({why}); correct its settings")
        return
    asked = _asked(plan.name, kind)
    own = {name: value for name, value in plan.settings.items() if name != TIMEOUT and name not in asked}
    _construct(plan.name, kind, own | ({ENDPOINT: NOWHERE} if ENDPOINT in settings_of(kind) else {}))


def _own_settings(plan: MemoryPlan) -> dict[str, Any]:
    return {name: value for name, value in plan.settings.items() if name != TIMEOUT}


def _construct(name: str, kind: type[MemorySystem], settings: Mapping[str, Any]) -> MemorySystem:
    try:
        return kind(**settings)
    except UsageError as error:
        raise UsageError(f"memory {name!r}: {error}") from error
    except (Exception, SystemExit) as error:
        why = describe(error) if isinstance(error, SystemExit) else error
        raise UsageError(f"memory {name!r} cannot be constructed ({why}); correct its settings") from error


def make_memory(
    plan: MemoryPlan, truth: Mapping[str, str] | None = None, make: ModelMaker = make_model
) -> MemorySystem:
    """Return a new memory system; nothing is opened yet.

    Args:
        truth: the true records by label, for systems that may see them (`for_task`).
        make: makes the model of a system that calls one; by default without metering and cap.
    """
    kind = kind_of(plan.name, _own_settings(plan))
    own = resolve_variables(plan.name, _own_settings(plan), os.environ)
    if sees_truth(plan.name) and memories.is_foreign(plan.name):
        made: MemorySystem = _in_process(plan.name, kind, {}, truth or {})
    elif sees_truth(plan.name):
        made = adapt(kind.for_task(truth or {}))  # type: ignore[attr-defined]
    elif ENDPOINT in settings_of(kind):
        made = _thinking(plan, kind, own, make)
    else:
        made = _made(plan.name, kind, own)
    return made if plan.limit is None else LimitedMemory(made, plan.limit)


def _thinking(plan: MemoryPlan, kind: type[MemorySystem], settings: dict[str, Any], make: ModelMaker) -> MemorySystem:
    model, embedding = str(settings.pop(MODEL, EXTRACTOR)), settings.pop(EMBEDDING, MINILM)
    options = plan.options
    if options.max_tokens == USUAL_TOKENS:  # the default is for answers of agents; a system writes more at a time
        options = replace(options, max_tokens=USUAL_MAX_TOKENS)
    endpoint = ModelEndpoint(make(model, options), find_embedding(str(embedding)))
    return MeteredMemory(endpoint, lambda address: _made(plan.name, kind, {**settings, ENDPOINT: address}))


def _made(name: str, kind: type[MemorySystem], settings: Mapping[str, Any]) -> MemorySystem:
    """Return the system; foreign code, and our adapters of vendors' packages, run in separate processes."""
    if requirements_of(kind).packages or memories.is_foreign(name):
        return _in_process(name, kind, settings)
    return adapt(_construct(name, kind, settings))


def _in_process(
    name: str, kind: type[MemorySystem], settings: Mapping[str, Any], truth: Mapping[str, str] | None = None
) -> ProcessMemory:
    needed = requirements_of(kind)
    # A system that declares packages is a vendor's, also in a user's file, and vendors' packages see no keys.
    is_own = memories.is_foreign(name) and not needed.packages
    python = python_of(name) or Path(sys.executable)
    return ProcessMemory(name, settings, python, needed.variables, truth=truth, is_own=is_own)


def reason_absent(name: str, settings: Mapping[str, Any] | None = None) -> str | None:
    """Return why a memory system cannot run here and what to do about it; None if it can."""
    kind = kind_of(name, {key: value for key, value in (settings or {}).items() if key != TIMEOUT})
    needed = requirements_of(kind, settings)
    if (why := reason_not_installed(name, needed)) is not None:
        return why
    if settings is not None and (why := reason_without_node_packages(name, needed)) is not None:
        return why
    embedded = EMBEDDING in _asked(name, kind) and (settings or {}).get(EMBEDDING, MINILM) == MINILM
    return minilm.reason_without_minilm() if embedded or MINILM in needed.weights else None


def model_of(name: str, settings: Mapping[str, Any]) -> str | None:
    """Return the model string of a system that calls a model through our endpoint; None for other systems."""
    return str(settings.get(MODEL, EXTRACTOR)) if MODEL in _asked(name, kind_of(name)) else None


def profile_record(plan: MemoryPlan | None) -> MemoryProfile | None:
    """Return the profile in which a system is used; None if it has no profiles."""
    if plan is None:
        return None
    kind = kind_of(plan.name, _own_settings(plan))
    name = profile_of(kind, plan.settings)
    passages = passages_of(kind, plan.settings)
    if name is None:
        return None
    profile = kind.profiles[name]
    return MemoryProfile(name, profile.on, profile.off, passages, profile.passages_from)


def passages_asked(plan: MemoryPlan) -> int | None:
    """Return how many passages a search asks for; None: all that the system returns."""
    return passages_of(kind_of(plan.name, _own_settings(plan)), plan.settings)


def recall_writes(plan: MemoryPlan) -> bool:
    """True if a recall may change what the system holds."""
    return writes_on_recall(kind_of(plan.name, _own_settings(plan)), plan.settings)


def forgets(plan: MemoryPlan) -> bool:
    """True if a system can remove a record."""
    return can_forget(kind_of(plan.name, _own_settings(plan)))


def sees_truth(name: str) -> bool:
    """True if a system is made for each task from the task's true results."""
    return hasattr(kind_of(name), "for_task")


def _asked(name: str, kind: type[MemorySystem]) -> tuple[str, ...]:
    """Return what a system requests from its endpoint, which the user may choose."""
    declared, taken = requirements_of(kind).endpoint, ENDPOINT in settings_of(kind)
    if taken and not declared:
        raise UsageError(
            f"memory {name!r} takes an {ENDPOINT} but does not declare its use; add requirements = "
            "Requirements(endpoint=('model', 'embedding')), or one of the two"
        )
    if declared and not taken:
        raise UsageError(f"memory {name!r} declares an {ENDPOINT}; add *, {ENDPOINT}: str to its constructor")
    return declared


def _check_types(plan: MemoryPlan, kind: type[MemorySystem]) -> None:
    """Raise UsageError if a setting has another type than its default: the string "false" would count as true."""
    parameters = inspect.signature(kind).parameters
    for name, value in plan.settings.items():
        default = CALL_SECONDS if name == TIMEOUT else parameters[name].default if name in parameters else None
        wanted = next((one for one in (bool, int, float, str) if isinstance(default, one)), None)
        if wanted is not None and type(value) is not wanted and not (wanted is float and type(value) is int):
            raise UsageError(f"{name} of memory {plan.name!r} is {value!r}; give {_SPELLED[wanted]}")


class LimitedMemory(MemoryWrapper):
    """Limits a system to h records, so that systems compare at equal capacity; the oldest write is removed first."""

    def __init__(self, system: MemorySystem, h: int) -> None:
        super().__init__(system)
        self.h = h
        self._order: dict[str, None] = {}  # labels, oldest first

    async def reset(self, scope: str) -> None:
        self._order = {}
        await self.system.reset(scope)

    async def forget(self, label: str) -> None:
        self._order.pop(label, None)
        await self.system.forget(label)

    async def write(self, item: Item) -> None:
        if item.label in self._order:  # a system may otherwise keep both versions
            del self._order[item.label]
            await self.system.forget(item.label)
        if len(self._order) >= self.h:
            oldest = next(iter(self._order))
            del self._order[oldest]
            await self.system.forget(oldest)
        self._order[item.label] = None
        await self.system.write(item)
