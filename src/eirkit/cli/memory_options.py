"""Which memory system stands behind an agent, and with which settings, as commands take it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import click

from eirkit.agents.stores.memory_factory import MemoryPlan
from eirkit.cli.agent_options import read_setting
from eirkit.errors import UsageError
from eirkit.runs.cells import NATIVE, STRICT
from eirkit.runs.values import read_memory_options

Command = TypeVar("Command", bound=Callable[..., Any])

memory_set_option = click.option(
    "--memory-set",
    multiple=True,
    metavar="MEMORY.NAME=VALUE",
    help="A setting of a memory system, such as vector.embedding=minilm.",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """One memory system as it was asked for."""

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

    options = (
        click.option("--memory", metavar="NAME", help="An external memory system; `eirkit doctor` lists them."),
        memory_set_option,
        click.option(
            "--panel",
            type=click.Choice([NATIVE, STRICT]),
            help="With --memory: strict holds it to h records, with nothing else in sight.  [default: native]",
        ),
    )
    decorated: Any = with_memory
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _chosen(memory: str | None, settings: Sequence[str], panel: str | None) -> Chosen | None:
    if memory is None:
        if settings or panel:
            raise UsageError("--memory-set and --panel go with a memory system; add --memory NAME")
        return None
    if "," in memory:
        raise UsageError("one memory at a time; run the command again for another")
    given = read_memory_options(read_memory_settings(settings), (memory,))
    return Chosen(memory, given.get(memory, {}), panel or NATIVE)


def read_memory_settings(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return settings by memory, as they name it: what stands before the last dot of a name."""
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
