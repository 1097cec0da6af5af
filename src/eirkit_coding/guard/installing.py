"""Writes the hooks of the guard into the settings of coding agents, and removes them (`guard install`, `uninstall`).

Claude Code and Gemini CLI load a folder of ours, opencode a file; Codex has one file of hooks for everybody, into which
ours are written. What was there before is kept byte for byte and comes back when the guard is removed.
"""

from __future__ import annotations

import json
import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import distribution, version
from importlib.resources import files
from pathlib import Path
from shlex import join
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, to_builtins

from eirkit.errors import InfrastructureError, InputFileError
from eirkit.folders import replace_file
from eirkit_coding.guard.hook import write_own
from eirkit_coding.guard.trial import json_line

NAME = "eirkit-guard"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class GuardedAgent:
    """How the guard is installed into one agent."""

    name: str
    title: str
    place: Callable[[Path, Mapping[str, str]], Path]  # the folder or file, from the home folder and the environment
    content: Callable[[Path], Mapping[str, bytes]]  # what is written there, by path below it; "" for a file
    note: str  # what a user must do or know


def _command(agent: str, event: str) -> str:
    """Return the command of a hook; it names this Python, so that it works whatever the agent's path is.

    It runs in the folder of a project, whose files must not be imported: hence -P.
    """
    return join([sys.executable, "-P", "-m", "eirkit_coding.guard.hook", agent, event])


class HookCommand(Struct, frozen=True, kw_only=True):
    """One command of a hook, as agents' settings have it."""

    type: Literal["command"] = "command"
    name: str | UnsetType = UNSET
    command: str
    timeout: int  # in seconds; Gemini CLI takes milliseconds


class HookGroup(Struct, frozen=True, kw_only=True):
    """The commands for an event."""

    matcher: str | UnsetType = UNSET
    hooks: tuple[HookCommand, ...]


def _hooks(agent: str) -> dict[str, tuple[HookGroup, ...]]:
    return {
        event: (
            HookGroup(matcher=matcher, hooks=(HookCommand(command=_command(agent, event), timeout=_TIMEOUT_SECONDS),)),
        )
        for event, matcher in (("PreCompact", "*"), ("SessionStart", "compact"))
    }


def _readme(name: str, title: str) -> bytes:
    text = (files("eirkit_coding.guard") / "plugin" / "README.md").read_text("utf-8")
    return text.replace("AGENT_TITLE", title).replace("AGENT_NAME", name).encode()


def _license() -> bytes:
    text = distribution("eirkit").read_text("licenses/LICENSE") or "Apache License, Version 2.0\n"
    return text.encode()


def _json(value: object) -> bytes:
    return (json.dumps(to_builtins(value), indent=2, ensure_ascii=False) + "\n").encode()


def _claude(_place: Path) -> dict[str, bytes]:
    manifest = {
        "name": NAME,
        "version": version("eirkit"),
        "description": "Restores what a compaction drops: needed files with line ranges, instructions and to-dos.",
        "author": {"name": "eirkit"},
        "license": "Apache-2.0",
        "keywords": ["compaction", "context", "memory"],
    }
    hooks = {"description": "Stores what is in use before a compaction and says afterwards what may be gone."}
    return {
        ".claude-plugin/plugin.json": _json(manifest),
        "hooks/hooks.json": _json({**hooks, "hooks": _hooks("claude")}),
        "README.md": _readme("claude", "Claude Code"),
        "LICENSE": _license(),
    }


def _gemini(_place: Path) -> dict[str, bytes]:
    """Return an extension; Gemini CLI has no event after a compaction, so every event that can say something looks."""
    manifest = {"name": NAME, "version": version("eirkit"), "description": "Restores what a compaction drops."}

    hooks = {
        event: [
            HookGroup(
                hooks=(HookCommand(name=NAME, command=_command("gemini", event), timeout=_TIMEOUT_SECONDS * 1000),)
            )
        ]
        for event in ("BeforeAgent", "AfterTool")
    }
    return {
        "gemini-extension.json": _json(manifest),
        "hooks/hooks.json": _json({"hooks": hooks}),
        "README.md": _readme("gemini", "Gemini CLI"),
        "LICENSE": _license(),
    }


def _opencode(_place: Path) -> dict[str, bytes]:
    words = json.dumps([sys.executable, "-P", "-m", "eirkit_coding.guard.hook", "opencode"])
    source = (files("eirkit_coding.guard") / "plugin" / "opencode.js").read_text("utf-8")
    return {"": source.replace('"COMMAND"', words, 1).encode()}


def _codex(place: Path) -> dict[str, bytes]:
    """Return the file of hooks with ours after the user's."""
    if not place.is_file():
        return {"": _json({"hooks": _hooks("codex")})}
    try:
        settings = convert(json.loads(place.read_text("utf-8")), dict[str, Any])
        hooks = convert(settings.get("hooks", {}), dict[str, list[Any]])
    except (ValueError, ValidationError) as error:
        raise InputFileError(f"{place} is not a file of hooks ({error}); repair it first") from error
    both = {event: [*hooks.get(event, []), *own] for event, own in _hooks("codex").items()}
    return {"": _json({**settings, "hooks": {**hooks, **both}})}


AGENTS: Mapping[str, GuardedAgent] = {
    agent.name: agent
    for agent in (
        GuardedAgent(
            "claude",
            "Claude Code",
            lambda home, environment: Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "skills" / NAME,
            _claude,
            "It is loaded by the next session.",
        ),
        GuardedAgent(
            "codex",
            "Codex",
            lambda home, environment: Path(environment.get("CODEX_HOME") or home / ".codex") / "hooks.json",
            _codex,
            "Codex runs a hook only after you have trusted it: type /hooks in the next session.",
        ),
        GuardedAgent(
            "gemini",
            "Gemini CLI",
            lambda home, environment: (
                Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini" / "extensions" / NAME
            ),
            _gemini,
            "It is loaded by the next session.",
        ),
        GuardedAgent(
            "opencode",
            "opencode",
            lambda home, environment: (
                Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "opencode" / "plugin" / f"{NAME}.js"
            ),
            _opencode,
            "It is loaded by the next session.",
        ),
    )
}


class InstallRecord(Struct, frozen=True):
    """What was written into an agent's settings, and what was there before."""

    place: str
    before: str | None  # the content of the file, in base 64
    made: tuple[str, ...]  # folders, the innermost first
    files: tuple[str, ...]  # by path below the place
    written: str  # digest of what was written


@dataclass(frozen=True, slots=True)
class Installation:
    """The state of the guard in one agent."""

    agent: GuardedAgent
    place: Path
    is_installed: bool
    is_changed: bool  # what is there is not what was written


class Installer:
    """Installs and removes the guard; its own records are in the guard's folder."""

    def __init__(self, home: Path, environment: Mapping[str, str], folder: Path) -> None:
        self.home, self.environment, self.folder = home, environment, folder

    def status(self, name: str) -> Installation:
        """Return whether the guard is installed, and unchanged."""
        agent = AGENTS[name]
        place, record = agent.place(self.home, self.environment), self._record(name)
        if record is None or not place.exists():
            return Installation(agent, place, is_installed=False, is_changed=False)
        return Installation(agent, place, is_installed=True, is_changed=_digest(_found(place)) != record.written)

    def install(self, name: str) -> Installation:
        """Install the guard; again, it is written as it should be now, and the user's own part stays."""
        if self._record(name) is not None:
            self.uninstall(name)
        agent = AGENTS[name]
        place = agent.place(self.home, self.environment)
        if place.is_dir():
            raise InputFileError(f"{place} exists and is not the guard's; move it away first")
        before = b64encode(place.read_bytes()).decode() if place.is_file() else None
        content = agent.content(place)
        made = tuple(str(parent) for parent in place.parents if not parent.exists())
        record = InstallRecord(str(place), before, made, tuple(sorted(content)), _digest(content))
        try:  # the record first: whatever happens later, what was there before is known
            write_own(self._record_file(name), json_line(record))
            for inside, data in content.items():
                _replace(place / inside if inside else place, data)
        except OSError as error:
            with suppress(OSError, InputFileError):
                self.uninstall(name)
            raise InfrastructureError(f"{place} cannot be written ({error.strerror}); check its permissions") from error
        return self.status(name)

    def uninstall(self, name: str) -> Installation:
        """Remove the guard; what was there before comes back byte for byte, unless the user has changed it since."""
        record = self._record(name)
        if record is not None:
            place = Path(record.place)
            if record.files != ("",):
                _remove_own(place, record.files)
            elif place.is_file():
                self._give_back(name, place, record)
            for folder in record.made:
                if Path(folder).is_dir() and not any(Path(folder).iterdir()):
                    Path(folder).rmdir()
            self._record_file(name).unlink(missing_ok=True)
        return self.status(name)

    def _give_back(self, name: str, place: Path, record: InstallRecord) -> None:
        before = None if record.before is None else b64decode(record.before)
        if place.read_bytes() == before:  # an installation that was cut short
            return
        if _digest(_found(place)) == record.written:
            if before is None:
                place.unlink()
            else:
                _replace(place, before)
            return
        try:  # changed since: take out ours alone
            settings = convert(json.loads(place.read_text("utf-8")), dict[str, Any])
            hooks = convert(settings.get("hooks"), dict[str, list[Any]])
            ours = f"eirkit_coding.guard.hook {name}"
            left = {event: [own for own in groups if ours not in json.dumps(own)] for event, groups in hooks.items()}
            _replace(place, _json({**settings, "hooks": {event: groups for event, groups in left.items() if groups}}))
        except (ValueError, ValidationError) as error:
            raise InputFileError(f"{place} was changed and is no file of hooks; remove the guard by hand") from error

    def _record_file(self, name: str) -> Path:
        return self.folder / "installed" / f"{name}.json"

    def _record(self, name: str) -> InstallRecord | None:
        try:
            return convert(json.loads(self._record_file(name).read_bytes()), InstallRecord)
        except (OSError, ValueError, ValidationError):
            return None


def _replace(path: Path, data: bytes) -> None:
    """Write a file that may be the user's: on a full disk the old one stays, a link stays one, and so does its mode."""
    path = path.resolve()
    mode = path.stat().st_mode if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
    if mode is not None:
        path.chmod(mode)


def _remove_own(place: Path, files: Sequence[str]) -> None:
    """Remove what was written into a folder; what somebody else put there stays."""
    if place.is_symlink():
        raise InputFileError(f"{place} was replaced by a link; remove it by hand, and uninstall again")
    for inside in files:
        (place / inside).unlink(missing_ok=True)
    for folder in [*sorted((place / inside).parent for inside in files if "/" in inside), place]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _found(place: Path) -> dict[str, bytes]:
    """Return the content of a file, or of every file in a folder by its path there."""
    if not place.is_dir():
        return {"": place.read_bytes()}
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _digest(content: Mapping[str, bytes]) -> str:
    digest = sha256()
    for name, data in sorted(content.items()):
        digest.update(os.fsencode(name) + b"\0" + sha256(data).digest())
    return digest.hexdigest()
