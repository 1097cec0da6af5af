"""The options that choose a memory system and its settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.agents.stores.memory_factory import MemoryPlan
from eirkit.cli.agent_options import read_setting
from eirkit.cli.command import option, options
from eirkit.errors import UsageError
from eirkit.runs.cells import NATIVE, STRICT
from eirkit.runs.values import read_memory_options

Command = TypeVar("Command", bound=Callable[..., Any])

memory_set_option = option(
    "--memory-set",
    multiple=True,
    metavar="MEMORY.NAME=VALUE",
    group="Memory",
    help="A setting of a memory system: vector.embedding=minilm. Can be repeated.",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A memory system and its settings, as given on the command line."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: str = NATIVE

    def plan(self, h: int) -> MemoryPlan:
        return MemoryPlan(self.name, self.settings, h if self.panel == STRICT else None)


def memory_options(command: Command) -> Command:
    """Add --memory, --memory-set and --panel; the command receives `memory`, which is None unless one was named."""

    @wraps(command)
    def with_memory(memory: str | None, memory_set: Sequence[str], panel: str | None, **given: Any) -> Any:
        return command(memory=_chosen(memory, memory_set, panel), **given)

    return options(  # type: ignore[no-any-return]
        option(
            "--memory",
            metavar="NAME",
            group="Memory",
            help="A memory system; `eirkit doctor` lists them.  [default: none]",
        ),
        memory_set_option,
        option(
            "--panel",
            type=click.Choice([NATIVE, STRICT]),
            group="Memory",
            help="strict: the memory may hold h records and the agent sees no others.  [default: native]",
        ),
    )(with_memory)


def _chosen(memory: str | None, settings: Sequence[str], panel: str | None) -> Chosen | None:
    if memory is None:
        if settings or panel:
            raise UsageError("--memory-set and --panel need a memory system; add --memory NAME")
        return None
    if "," in memory:
        raise UsageError("one memory at a time; run the command again for another")
    given = read_memory_options(read_memory_settings(settings), (memory,))
    return Chosen(memory, given.get(memory, {}), panel or NATIVE)


def read_memory_settings(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return settings by memory, whose name stands before the last dot."""
    found: dict[str, dict[str, Any]] = {}
    for setting in settings:
        name, value = read_setting(setting, "--memory-set", "vector.embedding=minilm")
        memory, dot, key = name.rpartition(".")
        if not dot:
            raise UsageError(f"{setting!r} names no memory; write MEMORY.NAME=VALUE, such as vector.embedding=minilm")
        found.setdefault(memory, {})[key] = _typed(value)
    return found


def _typed(value: Any) -> Any:
    """Return a number, true, false, null or a list where a text is one in JSON; any other text as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
