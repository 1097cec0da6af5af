"""The result type and the test loop shared by all conformance suites."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eirkit.errors import describe

S = TypeVar("S")

# Raises AssertionError if it does not hold; may return a note. Its docstring is its name.
Requirement = Callable[[S], str | None]


@dataclass(frozen=True, slots=True)
class Conformance:
    """Which requirements hold, and why the others do not."""

    held: tuple[str, ...]
    broken: tuple[tuple[str, str], ...] = ()  # requirement and reason
    notes: tuple[str, ...] = ()  # what was tested, and what does not apply


def try_all(subject: S, requirements: Iterable[Requirement[S]], limit: float | None = None) -> Conformance:
    """Test every requirement on a plug-in and return which hold.

    Args:
        limit: seconds after which no further requirement is begun; a note names those that are left.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once. Its notes
            (`__notes__`) say what was tested and what does not apply, as those of a result do.
    """
    held, broken, notes, left = [], [], [], []
    started = time.monotonic()
    for requirement in requirements:
        name = " ".join((requirement.__doc__ or "").split()).rstrip(".")
        if limit is not None and time.monotonic() - started >= limit:
            left.append(name)
            continue
        try:
            said = requirement(subject)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any error of the author's code is a finding
            broken.append((name, describe(error)))
        else:
            held.append(name)
            notes.extend([said] if said else [])
    if left:
        verb = "requirement was" if len(left) == 1 else "requirements were"
        notes.append(f"{len(left)} {verb} not tested, as {limit:g} s were over: {'; '.join(left)}")
    if broken:
        failure = AssertionError("; ".join([*_by_reason(broken), *(notes[-1:] if left else [])]))
        for note in notes:
            failure.add_note(note)
        raise failure
    return Conformance(tuple(held), (), tuple(notes))


def _by_reason(broken: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield each reason once; a reason shared by many requirements comes first."""
    names: dict[str, list[str]] = {}
    for name, reason in broken:
        names.setdefault(reason, []).append(name)
    for reason, failed in sorted(names.items(), key=lambda entry: -len(entry[1])):
        yield f"{failed[0]}: {reason}" if len(failed) == 1 else f"{reason} ({len(failed)} requirements fail for it)"
