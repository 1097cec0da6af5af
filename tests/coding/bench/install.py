"""Installs the agents of the bench with npm or pip: `python -m tests.coding.bench.install FOLDER [AGENT…]`.

A package that cannot be had is named, and the rest is installed; the bench then runs with what is there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.coding.bench.agents import AGENTS, Agent
from tests.processes import completed

_DONE = "installed"  # a file that says that pip is done


def packages_of(agent: Agent, folder: Path) -> Path:
    """Return where the packages of an agent are installed; agents with the same packages share them."""
    # mini-SWE-agent takes a path with an equals sign for a setting.
    return folder / agent.packages[0].replace("/", "-").replace("==", "-").lstrip("@")


def install(folder: Path, names: Sequence[str]) -> list[str]:
    """Install agents that are not there yet and return the names of those that could not be installed."""
    missing = []
    for name in names:
        agent = AGENTS[name]
        home = packages_of(agent, folder)
        commands = [] if _is_there(agent, home) else _commands(agent, home)
        if commands and shutil.which(commands[0][0]):
            home.mkdir(parents=True, exist_ok=True)
            for words in commands:
                try:
                    done = completed(words)
                except subprocess.TimeoutExpired as late:
                    print(f"{words[0]} took more than {late.timeout:g} s; run it again", file=sys.stderr)
                    break
                if done.returncode:
                    print(done.stderr.strip()[-500:], file=sys.stderr)
                    break
            else:
                (home / _DONE).touch()
        if not _is_there(agent, home):
            missing.append(name)
            print(f"{name}: {' '.join(agent.packages)} cannot be installed here; the bench leaves it out")
    return missing


def _is_there(agent: Agent, home: Path) -> bool:
    # An environment has an interpreter before its packages.
    return (home / agent.program).exists() and (not agent.python or (home / _DONE).exists())


def _commands(agent: Agent, home: Path) -> list[list[str]]:
    if agent.python:
        pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", *agent.packages]
        return [[agent.python, "-m", "venv", str(home)], pip]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)]
    return [["npm", "install", *options, *agent.packages]]


if __name__ == "__main__":
    install(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(AGENTS))
