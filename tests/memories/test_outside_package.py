"""A copy of `eirkit_memories`, renamed, built and installed as somebody else's package, works through entry points."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.memories.test_mcp import STDIO
from tests.processes import completed

ROOT = Path(__file__).parents[2]
OURS, COPY = "eirkit_memories", "outside_memories"

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "outside-memories"
version = "1.0"
dependencies = ["eirkit"]

[project.entry-points."eirkit.memories"]
{entries}

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""


def copy_of_the_adapters(folder: Path) -> list[str]:
    """Write the copy with a project of its own, and return the names of its memories."""
    package = folder / COPY
    package.mkdir(parents=True)
    entries = {}
    for path in sorted((ROOT / "src" / OURS).glob("*.py")):
        text = path.read_text("utf-8").replace(OURS, COPY)
        # A name that is built in cannot be taken, and an entry point registers by itself.
        for name, kind in re.findall(r'^@memories\.add\("([\w-]+)"\)\nclass (\w+)', text, re.M):
            entries[f"outside-{name}"] = f"{COPY}.{path.stem}:{kind}"
        (package / path.name).write_text(re.sub(r"^@memories\.add\(.*\)\n", "", text, flags=re.M), "utf-8")
    lines = "\n".join(f'{name} = "{target}"' for name, target in entries.items())
    (folder / "pyproject.toml").write_text(PROJECT.format(entries=lines, package=COPY), "utf-8")
    return list(entries)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("outside")
    names = copy_of_the_adapters(folder / "project")
    place = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    completed([*pip, "--no-deps", "--no-build-isolation", "--target", place, folder / "project"], check=True)
    return place, names


def eirkit(place: Path, *words: object, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(place)}
    return completed([sys.executable, "-m", "eirkit", *map(str, words)], env=environment, cwd=cwd, check=True).stdout


def test_every_adapter_of_the_copy_is_found(installed: tuple[Path, list[str]], tmp_path: Path) -> None:
    place, names = installed
    assert len(names) >= 14
    listed = {row["name"]: row for row in json.loads(eirkit(place, "doctor", "--json", cwd=tmp_path))["memories"]}
    assert set(names) <= listed.keys()
    # Nothing but packages is missing: an adapter that cannot be imported would say so.
    broken = [name for name in names if "cannot be loaded" in listed[name]["reason"]]
    assert broken == []


@pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed; pip install 'mcp>=2.3,<3'")
def test_an_agent_remembers_with_a_memory_of_the_copy(installed: tuple[Path, list[str]], tmp_path: Path) -> None:
    place, _ = installed
    task = ["store-recall", "--n", 16, "--m", 8, "--h", 2, "--model", "reference/recoverer", "--seeds", "0:2"]
    settings = {"preset": "", "profile": "store-only", "server": json.dumps(STDIO)}
    given = [word for name, value in settings.items() for word in ("--set", f"outside-mcp.{name}={value}")]
    done = eirkit(place, "lacuna", "run", *task, "--memory", "outside-mcp", *given, "--json", cwd=tmp_path)
    (row,) = json.loads(done)["rows"]
    assert (row["scored"], row["accuracy"]) == (2, 1.0)
