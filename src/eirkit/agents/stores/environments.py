"""Creates a virtual environment for each memory system that needs packages (`eirkit doctor --install NAME`).

Environments are stored under `EIRKIT_HOME` or `~/.cache/eirkit` and contain a system's packages only; eirkit itself is
added through the path.
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

_OURS = ("bm25s", "click", "numpy", "rich")  # packages that importing eirkit needs


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
    """Return why a system's packages are not available and how to install them; None if they are."""
    if is_importable(needed) or python_of(name) is not None:
        return None
    if not needed.supports(sys.version_info[:2]):
        return f"its packages need Python {needed.python}, and this is {_version()}; install eirkit with another Python"
    return f"its packages are not installed; run eirkit doctor --install {name}"


def reason_without_node_packages(name: str, needed: Requirements) -> str | None:
    """Return which npm packages a system lacks and how to install them; None if there are none."""
    if not _lacking_node(node_folder(name), needed):
        return None
    packages = ", ".join(needed.node)
    if shutil.which("npm") is None:
        return f"{packages} is not installed; install Node.js with npm, then run eirkit doctor --install {name}"
    return f"{packages} is not installed; run eirkit doctor --install {name}"


def node_folder(name: str) -> Path:
    """Return the folder with `node_modules` for a system: its own environment, or this one."""
    return Path(sys.prefix) if python_of(name) is None else _folder(name)


def _lacking_node(folder: Path, needed: Requirements) -> list[str]:
    return [one for one in needed.node if not (folder / "node_modules" / one).exists()]


def install(name: str, say: Callable[[str], None] = lambda line: None) -> Path:
    """Create the environment of a memory system and return its Python; a complete one is not changed.

    Raises:
        UsageError: the system needs no packages, or this version of Python is not supported.
        InfrastructureError: an installation failed; the message contains the last output of pip.
    """
    needed = requirements_of(find_memory(name))
    if not needed.packages:
        raise UsageError(f"memory {name!r} needs no packages; use it as it is")
    if (ready := python_of(name)) is not None:
        _install_node(_folder(name), needed, say)  # npm may have been missing before
        return ready
    if not needed.supports(sys.version_info[:2]):
        raise UsageError(
            f"memory {name!r} needs Python {needed.python}; this is {_version()}; install eirkit with that version"
        )
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
    """Install the missing npm packages; without npm they are skipped."""
    packages = _lacking_node(folder, needed)
    if packages and shutil.which("npm") is None:
        say(f"npm is not installed, so {', '.join(packages)} was skipped; install Node.js and try again")
    elif packages:
        say(f"npm install {' '.join(packages)}")
        _run(["npm", "install", "--silent", "--prefix", str(folder), *packages])


def _version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _folder(name: str) -> Path:
    return home() / "environments" / re.sub(r"[^\w.-]", "_", name)  # a name may be a file path


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else "no output"
        raise InfrastructureError(
            f"{' '.join(command[-3:])} failed ({last}); check the network and the disk, then try again"
        )
