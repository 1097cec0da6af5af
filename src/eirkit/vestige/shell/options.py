"""Splits the arguments of a command into options and operands, for commands whose options are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Parsed(NamedTuple):
    """Options with their values, and what is left."""

    operands: list[str]
    flags: set[str]
    values: dict[str, list[str]]

    def has(self, *names: str) -> bool:
        """True if one of the options was given."""
        return not self.flags.isdisjoint(names)

    def first(self, *names: str) -> str | None:
        """Return the first value of the first of these options that was given."""
        for name in names:
            if name in self.values:
                return self.values[name][0]
        return None


def split_options(arguments: Sequence[str], valued: str = "", long_valued: Sequence[str] = ()) -> Parsed:
    """Return options and operands.

    Args:
        arguments: what follows the command's name.
        valued: the one-letter options that take a value.
        long_valued: the long options that take one in the next argument.
    """
    operands: list[str] = []
    flags: set[str] = set()
    values: dict[str, list[str]] = {}
    waiting: str | None = None
    for place, argument in enumerate(arguments):
        if waiting is not None:
            values.setdefault(waiting, []).append(argument)
            waiting = None
        elif not argument.startswith("-") or argument == "-":
            operands.append(argument)
        elif argument == "--":
            operands.extend(arguments[place + 1 :])
            break
        elif argument.startswith("--"):
            name, has_value, value = argument.partition("=")
            flags.add(name)
            if has_value:
                values.setdefault(name, []).append(value)
            elif name in long_valued:
                waiting = name
        elif len(argument) == 2:
            flags.add(argument)
            waiting = argument if argument[1] in valued else None
            if argument[1].isdigit() and waiting is None:
                values.setdefault("-#", []).append(argument[1])
        else:
            waiting = _letters(argument, valued, flags, values)
    return Parsed(operands, flags, values)


def _letters(argument: str, valued: str, flags: set[str], values: dict[str, list[str]]) -> str | None:
    for place, letter in enumerate(argument[1:], 1):
        name = f"-{letter}"
        flags.add(name)
        if letter in valued:
            if argument[place + 1 :]:
                values.setdefault(name, []).append(argument[place + 1 :])
                return None
            return name
        if letter.isdigit():
            values.setdefault("-#", []).append(argument[place:])
            return None
    return None
