"""Where the coding agents of this machine keep their logs, which of these changed, and the facts stored about them.

Facts are kept between two looks, so that only logs that changed are read again: in one SQLite file below the user's own
folder, which nobody else may read, as it holds names of files and sentences of prompts. Without it, or if it is
damaged, everything is read again and nothing is lost.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import msgspec

from eirkit.engine.interface import LostPiece, make_engine
from eirkit.errors import UsageError
from eirkit.folders import files_below, files_for_owner_only
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.sources.documents import ReadLimits, Skipped, StoredDocument
from eirkit_coding.week.facts import LogFacts, LogPlace, read_log
from eirkit_coding.week.responses import METERS

LAYOUT = 10  # of the stored facts; another number makes all of them obsolete
PARALLEL_BYTES = 16 << 20  # of new logs, from which starting workers saves more than it costs
_FAST = 1  # the level of compression


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """The facts of some logs, and how much of them was new."""

    logs: tuple[LogFacts, ...]
    new_logs: int
    new_bytes: int
    newest: float | None  # when the last of all logs was written to, those that were not read included


@dataclass(frozen=True, slots=True)
class _Log:
    place: LogPlace
    state: str  # changes whenever the log does
    size: int
    written: float


def collect(places: Iterable[LogPlace], since: float, store: Path) -> FoundFacts:
    """Return the facts of the logs that were written to since a time, reading only what the store does not have."""
    every = list(_stored(places))
    # What was written before cannot tell of a later time.
    logs = sorted((log for log in every if log.written >= since), key=lambda log: str(log.place.path))
    kept = _read_store(store, logs)
    found = {log.state: _decoded(kept[log.state]) for log in logs if log.state in kept}
    new = [log for log in logs if found.get(log.state) is None]
    made = _read_logs(new)
    if made:
        _write_store(store, [(log, made[log.state]) for log in new if log.state in made])
    everything = {**{state: facts for state, facts in found.items() if facts is not None}, **made}
    return FoundFacts(
        tuple(everything[log.state] for log in logs if log.state in everything),
        len(new),
        sum(log.size for log in new),
        max((log.written for log in every), default=None),
    )


def _stored(places: Iterable[LogPlace]) -> Iterator[_Log]:
    """Yield the logs that are there, each with when it was last written to."""
    own = f"{LAYOUT}:{version('eirkit')}"
    for place in places:
        sizes, latest, total = [], 0.0, 0
        for path in (place.path, place.path.with_name(f"{place.path.name}-wal")):  # a database's latest rows
            with suppress(OSError):
                known = path.stat()
                sizes.append((known.st_size, known.st_mtime_ns))
                latest, total = max(latest, known.st_mtime), total + known.st_size
        if sizes:
            yield _Log(place, f"{own}:{place.agent}:{_key(place)}:{sizes}", total, latest)


def _key(place: LogPlace) -> str:
    """Return the path of a log as text that a database takes, whatever the bytes of its name are."""
    return os.fsencode(place.path).decode("utf-8", "backslashreplace")


def _read_logs(logs: Sequence[_Log]) -> dict[str, LogFacts]:
    """Return the facts of logs by their state; the largest are read first, so that no worker is left with one."""
    ordered = sorted(logs, key=lambda log: (-log.size, log.state))
    if len(ordered) < 2 or sum(log.size for log in ordered) < PARALLEL_BYTES:
        return {log.state: read_log(log.place) for log in ordered}
    made: dict[str, LogFacts] = {}
    with closing(make_engine("local", workers=min(len(ordered), os.cpu_count() or 1))) as engine:
        for outcome in engine.map(read_log, (log.place for log in ordered)):
            log = ordered[outcome.number]
            if isinstance(outcome, LostPiece):
                lost = Skipped(log.place.path.name, outcome.reason)
                made[log.state] = LogFacts(log.place.agent, skipped=(lost,))
            else:
                made[log.state] = outcome.value
    return made


def _read_store(path: Path, logs: Iterable[_Log]) -> dict[str, bytes]:
    """Return what is stored of some logs, by the state that they had."""
    found: dict[str, bytes] = {}
    if not path.is_file():
        return found
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=5)) as connection:
        for log in logs:
            query = "SELECT state, facts FROM logs WHERE path = ?"
            found.update(connection.execute(query, (_key(log.place),)))
    return found


def _write_store(path: Path, made: Sequence[tuple[_Log, LogFacts]]) -> None:
    """Store facts; a log has one row, whose older state is replaced. A store that cannot be written is left out."""
    rows = []
    for log, facts in made:
        with suppress(UnicodeEncodeError):  # text that is no Unicode: such a log is read again every time
            rows.append((_key(log.place), log.state, zlib.compress(msgspec.json.encode(facts), _FAST)))
    for is_retried in (False, True):
        try:
            with files_for_owner_only():
                path.parent.mkdir(parents=True, exist_ok=True)
                with closing(sqlite3.connect(path, timeout=5)) as connection, connection:
                    connection.execute(
                        "CREATE TABLE IF NOT EXISTS logs (path TEXT PRIMARY KEY, state TEXT, facts BLOB)"
                    )
                    connection.executemany("INSERT OR REPLACE INTO logs VALUES (?, ?, ?)", rows)
            return
        except sqlite3.OperationalError:  # locked, or no room
            return
        except sqlite3.DatabaseError:
            if is_retried:
                return
            with suppress(OSError):
                path.unlink(missing_ok=True)
        except OSError:
            return


def _decoded(stored: bytes) -> LogFacts | None:
    """Return stored facts; None if they are damaged."""
    try:
        return msgspec.json.decode(zlib.decompress(stored), type=LogFacts)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True)
class AgentHome:
    """The folder of one agent's logs."""

    agent: str  # the name of its format
    folder: Path
    begins: str  # of the names of logs
    ends: tuple[str, ...]

    def logs(self) -> Iterator[LogPlace]:
        """Yield its logs."""
        for path in files_below(self.folder):
            if path.name.startswith(self.begins) and path.name.endswith(self.ends):
                yield LogPlace(path, self.folder, self.agent)


def agent_homes(home: Path, environment: Mapping[str, str]) -> list[AgentHome]:
    """Return the folders of logs below a home folder, or where the environment says; not all of them need exist."""
    lines = (".jsonl",)
    claude = _folders(environment, "CLAUDE_CONFIG_DIR", home / ".claude", home / ".config" / "claude")
    (codex, *_) = _folders(environment, "CODEX_HOME", home / ".codex")
    (data, *_) = _folders(environment, "XDG_DATA_HOME", home / ".local" / "share")
    return [
        *(AgentHome("claude-code", folder / "projects", "", lines) for folder in claude),
        AgentHome("codex", codex / "sessions", "rollout-", lines),
        AgentHome("codex", codex / "archived_sessions", "rollout-", lines),
        AgentHome("gemini-cli", home / ".gemini" / "tmp", "session-", (".json", *lines)),
        AgentHome("opencode", data / "opencode", "opencode", (".db",)),
    ]


def _folders(environment: Mapping[str, str], name: str, *usual: Path) -> list[Path]:
    given = environment.get(name, "")
    return [Path(given)] if given else list(usual)


def logs_at(paths: Iterable[Path]) -> Iterator[LogPlace | str]:
    """Yield the logs at some paths whose responses are counted, and the names of others' formats.

    Raises:
        UsageError: a path does not exist.
    """
    reader = CorpusReader(outcomes=None, format=None, limits=ReadLimits())
    for root in paths:
        if not root.exists():
            raise UsageError(f"{root} does not exist; give a folder of logs, or use `eirkit week` without one")
        for document in reader.documents(root):
            if not isinstance(document, StoredDocument) or not isinstance(document.path, Path):
                continue
            name = reader.format_of(document, root)
            if name is not None and name in METERS:
                yield LogPlace(document.path, root, name)
            elif name is not None:
                yield name
