"""What releases publish: the versions that files name, the entry for the MCP registry, the action and its example."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tools.release import faults, server_json

import eirkit
from tests.processes import completed

ROOT = Path(__file__).parents[1]
GATE = ROOT / "examples" / "memory-gate"


def test_a_release_needs_its_version_in_every_file():
    named = [fault.split(" ")[0] for fault in faults(eirkit.__version__)]
    assert named in ([], ["CHANGELOG.md"])  # the changelog's heading is written on the day of the release
    assert len(faults("99.0.0")) == 4


def test_the_registry_entry_starts_the_server():
    (package,) = server_json("somebody")["packages"]
    assert package["version"] == eirkit.__version__
    words = [word for part in package["packageArguments"] for word in (part.get("name"), part["value"]) if word]
    assert completed([sys.executable, "-m", "eirkit", *words, "--help"], check=True).stdout.startswith(
        "Usage: eirkit mcp serve"
    )


def steps_of_action() -> list[str]:
    """Return the shell scripts of the action, without a YAML parser."""
    text = (ROOT / "action.yml").read_text("utf-8")
    return [re.sub(r"(?m)^ {8}", "", block) for block in re.findall(r"run: \|\n((?: {8}.*\n)+)", text)]


@pytest.mark.slow
def test_the_action_fails_a_memory_that_got_worse(tmp_path):
    shutil.copytree(GATE, tmp_path / "gate")
    script = steps_of_action()[1].replace("python -m", f"{sys.executable} -m")
    inputs = {
        "MEMORY": "notebook.py:Notebook",
        "BASELINE": "baseline.json",
        "RECORD": "now.json",
        "ARGUMENTS": "-k store",
    }

    def play():
        words = ["env", *(f"{name}={value}" for name, value in inputs.items()), "bash", "-ec", script]
        return completed(words, cwd=tmp_path / "gate")

    assert play().returncode == 0
    now, then = (json.loads((tmp_path / "gate" / f"{name}.json").read_text("utf-8")) for name in ("now", "baseline"))
    assert now == then
    source = tmp_path / "gate" / "notebook.py"
    source.write_text(
        source.read_text("utf-8").replace("= item.text", '= item.text if "3" not in item.label else "gone"')
    )
    worse = play()
    assert worse.returncode == 1
    assert "accuracy dropped" in worse.stdout
