"""What is asked about a memory system before it runs (settings, methods, requirements), told by its own process.

Foreign code is never imported into our own process: an import may hang, exit, or start threads that do. `stand_in`
makes a class with the same facts, for everything that asks a class about its methods, settings and requirements.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.memories.memory import (
    OPTIONAL,
    REQUIRED,
    MemorySystem,
    Profile,
    Requirements,
    can_forget,
    missing_verbs,
    passages_of,
    profile_of,
    requirements_of,
    writes_on_recall,
)

ENDPOINT = "endpoint"  # constructor argument for the base URL of an OpenAI-compatible server
NOWHERE = "http://127.0.0.1:9"  # the discard port, where an address is required but not used
_SAMPLES: dict[str, Any] = {"bool": False, "int": 0, "float": 0.0, "str": "", "other": None}  # of each type of default
_REQUIRED = "required"


def settings_of(kind: type) -> list[str]:
    """Return the names of the constructor arguments that are settings."""
    parameters = inspect.signature(kind).parameters.values()
    return [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """The facts about a class; its process sends them as JSON."""

    name: str
    about: str | None
    lacking: tuple[str, ...]  # required methods
    own: tuple[str, ...]  # optional methods
    forgets: bool
    delay_seconds: float | None
    most_records: float | None
    parameters: tuple[tuple[str, str], ...]  # settings, and the type of their defaults
    declared: Requirements
    needed: Requirements  # with these settings
    sees_truth: bool
    profile: str | None
    passages: int | None
    recall_writes: bool
    profiles: Mapping[str, Profile]


def facts_of(kind: type[MemorySystem], settings: Mapping[str, Any]) -> SystemFacts:
    """Return the facts about a class.

    Raises:
        UsageError: it does not declare its requirements properly.
    """
    parameters = inspect.signature(kind).parameters
    profile = profile_of(kind, settings)
    return SystemFacts(
        name=kind.__name__,
        about=kind.__doc__,
        lacking=tuple(missing_verbs(kind)),
        own=tuple(own_verbs(kind)),
        forgets=can_forget(kind),
        delay_seconds=_declared(kind, "delay_seconds"),
        most_records=_declared(kind, "most_records"),
        parameters=tuple((name, _sample_of(parameters[name].default)) for name in settings_of(kind)),
        declared=requirements_of(kind),
        needed=requirements_of(kind, settings),
        sees_truth=hasattr(kind, "for_task"),
        profile=profile,
        passages=passages_of(kind, settings),
        recall_writes=writes_on_recall(kind, settings),
        profiles={} if profile is None else dict(kind.profiles),
    )


def _declared(kind: type, name: str) -> float | None:
    """Return a number that a class declares for the conformance suite; None if it does not."""
    value = getattr(kind, name, None)
    if value is None or isinstance(value, property):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"{name} of {kind.__name__} is {value!r}; give a number from 0")
    return value


def own_verbs(kind: type) -> list[str]:
    """Return the optional methods that a class defines; the others do nothing and need not be called."""
    return [verb for verb in OPTIONAL if getattr(kind, verb, None) not in (None, getattr(MemorySystem, verb))]


def _sample_of(default: object) -> str:
    if default is inspect.Parameter.empty:
        return _REQUIRED
    # A bool is an int, so the order matters.
    return next((one.__name__ for one in (bool, int, float, str) if isinstance(default, one)), "other")


def stand_in(facts: SystemFacts) -> type[MemorySystem]:
    """Return a class with these facts; it cannot be used as a memory system."""
    given = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_SAMPLES.get(sample, inspect.Parameter.empty))
        for name, sample in facts.parameters
    ]
    namespace: dict[str, Any] = {verb: _unusable for verb in REQUIRED if verb not in facts.lacking}
    namespace |= {"forget": _unusable} if facts.forgets else {}
    namespace |= {"for_task": _unusable} if facts.sees_truth else {}
    namespace |= {"requirements": facts.declared, "__doc__": facts.about}
    namespace |= {"profiles": facts.profiles, "profile_for": classmethod(lambda cls, settings: facts.profile)}
    namespace |= {"passages_for": classmethod(lambda cls, settings: facts.passages)}
    namespace |= {"recall_writes": facts.recall_writes}
    namespace |= {"requirements_for": classmethod(lambda cls, settings: facts.needed)}
    namespace |= {"__signature__": inspect.Signature(given)}  # which inspect reads
    made: type[MemorySystem] = type(facts.name, (MemorySystem,), namespace)
    return made


async def _unusable(*_: object) -> None:
    raise UsageError("a memory system of another process cannot be called here; make it with make_memory")
