"""Real agents play a scripted session offline; VESTIGE's reads, writes and kept context equal the truth, case by case.

`make session NAME=agents` installs the agents and runs this; `EIRKIT_AGENTS` is the folder with their packages.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.coding.bench.agents import AGENTS
from tests.coding.bench.compare import compare
from tests.coding.bench.install import packages_of
from tests.coding.bench.play import REQUESTS, TRANSCRIPT, can_play, play

INSTALLED = os.environ.get("EIRKIT_AGENTS", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not INSTALLED, reason="EIRKIT_AGENTS names no folder with agents; run `make session NAME=agents`"
    ),
]


@pytest.mark.parametrize("name", AGENTS)
def test_a_log_tells_what_happened(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    packages = packages_of(agent, Path(INSTALLED))
    if not (packages / agent.program).exists():
        pytest.skip(f"{agent.packages[0]} is not installed in {INSTALLED}")
    if not can_play():
        pytest.skip("this machine allows no network namespaces")
    play(agent, packages, tmp_path / name)
    steps = [one for one in json.loads((tmp_path / name / REQUESTS).read_text()) if one["kind"] == "step"]
    told = (tmp_path / name / TRANSCRIPT).read_text("utf-8", "replace")[-2_000:]
    assert len(steps) >= len(agent.replies(tmp_path)), f"the agent ended too early: {told}"
    found = compare(agent, tmp_path / name)
    print(found.row())
    assert found.format == agent.format
    assert found.calls[0] == found.calls[1]
    assert found.reads == found.expected_reads
    assert found.writes == found.expected_writes
    if agent.is_opaque or not agent.compacts:
        assert found.kept is None
    else:
        assert found.kept == found.expected_kept
