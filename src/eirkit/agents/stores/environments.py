"""Environments for memory systems whose packages are not in this one: made on request, one for each, never by hand.

They lie under `EIRKIT_HOME`, or `~/.cache/eirkit`, and hold a system's packages only; eirkit itself is lent to them by
path. `eirkit doctor --install NAME` makes them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from eirkit.agents.memory import Requirements, find_memory, requirements_of
from eirkit.errors import InfrastructureError, UsageError

_OURS = ("bm25s", "click", "numpy", "rich")  # what importing the package needs


def home() -> Path:
    """Return the folder of environments."""
    return Path(os.environ.get("EIRKIT_HOME") or Path.home() / ".cache" / "eirkit")


def is_importable(needed: Requirements) -> bool:
    """True if everything a system needs can be imported in this environment."""
    return all(find_spec(package) is not None for package in needed.packages)


def python_of(name: str) -> Path | None:
    """Return the Python of a system's own environment, if it was installed."""
    python = _folder(name) / "bin" / "python"
    return python if (_folder(name) / "complete").exists() and python.exists() else None


def reason_not_installed(name: str, needed: Requirements) -> str | None:
    """Return how to get a system that is neither here nor in an environment of its own."""
    if is_importable(needed) or python_of(name) is not None:
        return None
    if not needed.supports(sys.version_info[:2]):
        return (
            f"its packages need Python {needed.python}, and this is {_version()}; install eirkit under another Python"
        )
    return f"its packages are not installed; run eirkit doctor --install {name}"


def reason_without_node_packages(name: str, needed: Requirements) -> str | None:
    """Return how to get the packages of npm that a system needs; None if they are there."""
    if not _lacking_node(node_folder(name), needed):
        return None
    packages = ", ".join(needed.node)
    if shutil.which("npm") is None:
        return f"{packages} is not installed; install Node.js with npm, then run eirkit doctor --install {name}"
    return f"{packages} is not installed; run eirkit doctor --install {name}"


def node_folder(name: str) -> Path:
    """Return the folder that holds `node_modules` for a system: its own environment's, or this one's."""
    return Path(sys.prefix) if python_of(name) is None else _folder(name)


def _lacking_node(folder: Path, needed: Requirements) -> list[str]:
    return [one for one in needed.node if not (folder / "node_modules" / one).exists()]


def install(name: str, say: Callable[[str], None] = lambda line: None) -> Path:
    """Make the environment of a memory system and return its Python; one that is complete is left as it is.

    Raises:
        UsageError: the system needs no packages, or none that this Python can run.
        InfrastructureError: an installation failed; what pip said last is in the message.
    """
    needed = requirements_of(find_memory(name))
    if not needed.packages:
        raise UsageError(f"memory {name!r} needs no packages; use it as it is")
    if (ready := python_of(name)) is not None:
        _install_node(_folder(name), needed, say)  # there may have been no npm then
        return ready
    if not needed.supports(sys.version_info[:2]):
        raise UsageError(f"memory {name!r} needs Python {needed.python}; this is {_version()}, so install eirkit there")
    folder = _folder(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    for arguments in (_OURS, *needed.installs):
        say(f"{name}: pip install {' '.join(arguments)}")
        _run([str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments])
    _install_node(folder, needed, say)
    (folder / "complete").touch()
    return python


def _install_node(folder: Path, needed: Requirements, say: Callable[[str], None]) -> None:
    """Install packages of npm beside the Python ones, if they are not there; without npm they are left out."""
    packages = _lacking_node(folder, needed)
    if packages and shutil.which("npm") is None:
        say(f"npm is not installed, so {', '.join(packages)} was left out; install Node.js and try again")
    elif packages:
        say(f"npm install {' '.join(packages)}")
        _run(["npm", "install", "--silent", "--prefix", str(folder), *packages])


def _version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _folder(name: str) -> Path:
    return home() / "environments" / re.sub(r"[^\w.-]", "_", name)  # a name may be a file's path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else "no word"
        raise InfrastructureError(
            f"{' '.join(command[-3:])} failed ({last}); check the network and the disk, try again"
        )
