"""Where the coding agents of this machine keep their logs, and which of these changed since a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from eirkit.errors import UsageError
from eirkit.folders import files_below
from eirkit.logs.corpus.reader import CorpusReader
from eirkit.logs.sources.documents import ReadLimits, StoredDocument
from eirkit.logs.week.facts import LogPlace
from eirkit.logs.week.responses import METERS


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
