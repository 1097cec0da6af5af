"""Reads sessions that were appended to one JSON lines document, as `cat` and `>>` do it, as a run each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

from eirkit.vestige.formats.run_builder import RunBuilder, take_lines
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import Recording


class SessionReader(Protocol):
    """Reads one session of a JSON lines document."""

    builder: RunBuilder

    def session_of(self, line: Mapping[str, Any]) -> str:
        """Return the name of the session that a line starts, or belongs to; empty for a line that names none."""
        ...

    def take(self, line: Mapping[str, Any]) -> None:
        """Process one line."""
        ...

    def recording(self, document: LogDocument, place: str = "") -> Recording | Skipped:
        """Return the run; `place` is its position in a document of several."""
        ...


Session = TypeVar("Session", bound=SessionReader)


def read_sessions(document: LogDocument, begin: Callable[[], Session]) -> Iterator[Recording | Skipped]:
    """Yield a run for each session of a JSON lines document: sessions are often appended to one file.

    What precedes the first readable name is a session, too, if the agent replied in it.
    """
    name, current = "", begin()
    sessions = {name: current}

    def take(line: Mapping[str, Any]) -> None:
        nonlocal name, current
        named = current.session_of(line)
        if named and named != name:
            unnamed = sessions.pop("") if not name and not current.builder.turn_count else None
            name, current = named, sessions.setdefault(named, unnamed or begin())
        current.take(line)

    yield from take_lines(document, take)
    found = {key: one for key, one in sessions.items() if one.builder.turn_count} or {name: current}
    yield from (one.recording(document, key if place else "") for place, (key, one) in enumerate(found.items()))
