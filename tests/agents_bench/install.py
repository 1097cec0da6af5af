"""Installs the agents of the bench with npm: `python -m tests.agents_bench.install FOLDER [AGENT…]`.

A package that cannot be had is named, and the rest is installed; the bench then runs with what is there.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.agents_bench.agents import AGENTS, Agent
from tests.processes import completed


def packages_of(agent: Agent, folder: Path) -> Path:
    """Return where the packages of an agent are installed; agents with the same packages share them."""
    return folder / agent.packages[0].replace("/", "-").lstrip("@")


def install(folder: Path, names: Sequence[str]) -> list[str]:
    """Install agents that are not there yet and return the names of those that could not be installed."""
    missing = []
    for name in names:
        agent = AGENTS[name]
        home = packages_of(agent, folder)
        if not (home / agent.program).exists() and shutil.which("npm"):
            home.mkdir(parents=True, exist_ok=True)
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)]
            done = completed(["npm", "install", *options, *agent.packages])
            if done.returncode:
                print(done.stderr.strip()[-500:], file=sys.stderr)
        if not (home / agent.program).exists():
            missing.append(name)
            print(f"{name}: {' '.join(agent.packages)} cannot be installed here; the bench leaves it out")
    return missing


if __name__ == "__main__":
    install(Path(sys.argv[1]).resolve(), sys.argv[2:] or list(AGENTS))
