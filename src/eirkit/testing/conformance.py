"""What every conformance suite returns, and how its requirements are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eirkit.errors import describe

S = TypeVar("S")

# Raises AssertionError where it does not hold; may return what was tried, for the record. Its docstring is its name.
Requirement = Callable[[S], str | None]


@dataclass(frozen=True, slots=True)
class Conformance:
    """Which requirements were tried, and what was wrong with those that do not hold."""

    held: tuple[str, ...]
    broken: tuple[tuple[str, str], ...] = ()  # requirement and reason
    notes: tuple[str, ...] = ()  # what was tried, and what does not apply


def try_all(subject: S, requirements: Iterable[Requirement[S]]) -> Conformance:
    """Try every requirement on a plug-in and return what held.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
    """
    held, broken, notes = [], [], []
    for requirement in requirements:
        name = " ".join((requirement.__doc__ or "").split()).rstrip(".")
        try:
            said = requirement(subject)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the author's code raises is the finding
            broken.append((name, describe(error)))
        else:
            held.append(name)
            notes.extend([said] if said else [])
    if broken:
        raise AssertionError("; ".join(_by_reason(broken)))
    return Conformance(tuple(held), (), tuple(notes))


def _by_reason(broken: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield each reason once; one that many requirements fail for is a mistake of its own and comes first."""
    names: dict[str, list[str]] = {}
    for name, reason in broken:
        names.setdefault(reason, []).append(name)
    for reason, failed in sorted(names.items(), key=lambda entry: -len(entry[1])):
        yield f"{failed[0]}: {reason}" if len(failed) == 1 else f"{reason} ({len(failed)} requirements fail for it)"
