"""Parses and checks single values of a suite: names, counts, budgets, model and memory options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.agents.prompt import DIALECTS
from eirkit.lacuna.memories.memory import memory_aliases
from eirkit.lacuna.models.model import ModelOptions, canonical
from eirkit.records.budgets import check_budget
from eirkit.records.settings import PROTOCOLS

Reader = Callable[[str, Any], Any]

UNLIMITED, DEFAULT = "unlimited", "default"
LONGEST_TEXT = 4_096  # characters


def read_name(key: str, value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str) or not value.strip():
        raise SpecError(f"{key} = {value!r} is not a name; write it in quotes")
    return value


def read_label(key: str, value: Any) -> str:
    """Return a string that can be part of a folder name."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        raise SpecError(f"{key} = {value!r} cannot name a folder; use letters, digits, dots and dashes")
    return value


def read_count(key: str, value: Any) -> int:
    """Return a whole number; its range is checked by the task or the condition."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(f"{key} = {value!r} is not a whole number; write a number without quotes")
    return value


def read_text(key: str, value: Any) -> str:
    """Return a text for an agent."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
        raise SpecError(f"{key} must be a quoted text of 1 … {LONGEST_TEXT} characters; correct it")
    return value


def read_flag(key: str, value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise SpecError(f"{key} = {value!r} is neither true nor false; choose one")
    return value


def read_budget(key: str, value: Any) -> int | str:
    """Return a number of retrievals or recomputations, or `unlimited`."""
    text = str(value).strip().lower()
    if text == UNLIMITED:
        return UNLIMITED
    if isinstance(value, bool) or not text.isdecimal():
        raise SpecError(f"{key} = {value!r} is not a budget; give a number or {UNLIMITED!r}")
    return int(text)


def read_prompt_budget(key: str, value: Any) -> str:
    """Return how much of what a memory returns is put into a prompt."""
    return check_budget(str(value))


def read_model_options(given: Any) -> ModelOptions:
    """Return model options; `temperature = "default"` uses the provider's default."""
    if not isinstance(given, Mapping):
        raise SpecError("model_options is not a table; write [model_options] or { temperature = 0.0 }")
    options: dict[str, Any] = {}
    for key, value in given.items():
        if key not in _MODEL_OPTIONS:
            raise UnknownNameError("model option", str(key), _MODEL_OPTIONS)
        fits, wanted = _MODEL_OPTIONS[key]
        if not fits(value):
            raise SpecError(f"{key} = {value!r} is invalid; give {wanted}")
        options[key] = None if key == "temperature" and value == DEFAULT else value
    return ModelOptions(**options)


def read_memory_options(given: Any, named: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each memory system, which are checked with the cell.

    A system may be named as in the grid, by its class, or by its registered name.
    """
    if not isinstance(given, Mapping) or not all(_is_table(settings) for settings in given.values()):
        raise SpecError(
            "memory_options is not a table of tables; write [memory_options.NAME] above the settings of one"
        )
    found: dict[str, dict[str, Any]] = {}
    for name, settings in given.items():
        meant = [name] if name in named else [one for one in named if name in memory_aliases(one)]
        if len(meant) != 1:
            raise UnknownNameError("memory of this grid", str(name), named)
        found.setdefault(meant[0], {}).update(settings)
    return found


def _is_whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _is_number(value: Any, least: float = 0.0) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value < float("inf")


def _is_table(value: Any) -> bool:
    try:
        return isinstance(value, Mapping) and bool(canonical(value))
    except (TypeError, ValueError):
        return False


_MODEL_OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "base_url": (lambda value: value is None or isinstance(value, str), "the address of a server in quotes"),
    "temperature": (lambda value: value in (None, DEFAULT) or _is_number(value), 'a number from 0 or "default"'),
    "max_tokens": (_is_whole(1), "a whole number from 1"),
    "timeout_seconds": (lambda value: _is_number(value) and value > 0, "seconds above 0"),
    "retries": (_is_whole(0), "a whole number from 0"),
    "connections": (_is_whole(1), "a whole number from 1"),
    "seed": (_is_whole(0), "a whole number from 0"),
    "dialect": (lambda value: value is None or value in DIALECTS, f"one of {', '.join(DIALECTS)}"),
    "protocol": (lambda value: value is None or value in PROTOCOLS, f"one of {', '.join(PROTOCOLS)}"),
    "reask": (lambda value: isinstance(value, bool), "true or false"),
    "extra": (_is_table, "a table of settings that JSON can hold"),
}
