"""The live guard inside real agents, offline: what it restores is in the next request, and it leaves no trace."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents_bench.agents import AGENTS, Agent
from tests.agents_bench.install import packages_of
from tests.agents_bench.play import REQUESTS, can_play, play
from tests.processes import completed
from tests.vestige.test_guard_hook import tree

INSTALLED = os.environ.get("EIRKIT_AGENTS", "")
MARK = "a note of eirkit guard"
NAMES = {"claude-code": "claude", "codex": "codex", "codex-classic": "codex"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSTALLED, reason="EIRKIT_AGENTS names no folder with agents; run `make test-agents`"),
]


def played(name: str, folder: Path, guard: str, times: int = 1) -> list[dict[str, Any]]:
    """Play a session with the guard and return the requests."""
    agent = AGENTS[name]
    packages = _packages(agent)
    play(agent, packages, folder, guard, times)
    found: list[dict[str, Any]] = json.loads((folder / REQUESTS).read_text())
    return found


def _packages(agent: Agent) -> Path:
    packages = packages_of(agent, Path(INSTALLED))
    if not (packages / agent.program).exists():
        pytest.skip(f"{agent.packages[0]} is not installed in {INSTALLED}")
    if not can_play():
        pytest.skip("this machine allows no network namespaces")
    return packages


def after_compactions(requests: list[dict[str, Any]]) -> list[str]:
    """Return the first request of the agent after each compaction."""
    found, is_waiting = [], False
    for one in requests:
        if one["kind"] == "step" and is_waiting:
            found.append(json.dumps(one["body"]))
        is_waiting = one["kind"] == "summary" or (is_waiting and one["kind"] != "step")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_next_request_has_what_was_restored(name: str, tmp_path: Path) -> None:
    requests = played(name, tmp_path / name, "guard")
    (request,) = after_compactions(requests)
    assert MARK in request
    assert "- calc.py, lines 1\\u201360: edited" in request
    home = tmp_path / name / "home"
    assert not (home / ".cache/eirkit/guard/guard.log").exists()
    before = tree(home)
    words = [sys.executable, "-m", "eirkit", "guard", "uninstall", NAMES[name]]
    completed(words, check=True, env={"PATH": os.environ["PATH"], "HOME": str(home)})
    gone = {path for path in before if path not in tree(home) and ".cache/eirkit" not in path}
    ours = (".claude/skills", ".codex/hooks.json")
    assert gone
    assert all(path.startswith(ours) for path in gone)
    assert not any(path.startswith(ours) for path in tree(home))


def test_a_trial_draws_all_arms(tmp_path: Path) -> None:
    requests = played("claude-code", tmp_path / "trial", "trial", 3)
    drawn = (tmp_path / "trial/home/.cache/eirkit/guard/draws.jsonl").read_text().splitlines()
    arms = [json.loads(line)["arm"] for line in drawn]
    assert sorted(arms) == ["nothing", "restore", "sham"]
    told = dict(zip(arms, after_compactions(requests), strict=True))
    assert MARK not in told["nothing"].rpartition('"role": "user"')[0] or arms[0] != "nothing"
    assert "calc.py: edited" in told["restore"] or "calc.py, lines" in told["restore"]
    assert "part of the project" in told["sham"]


def test_claude_code_accepts_the_plug_in(tmp_path: Path) -> None:
    agent = AGENTS["claude-code"]
    program = _packages(agent) / agent.program
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"}
    completed([sys.executable, "-m", "eirkit", "guard", "install", "claude"], check=True, env=environment)
    words = [str(program), "plugin", "validate", str(tmp_path / ".claude/skills/eirkit-guard")]
    done = completed(["unshare", "--map-root-user", "--net", *words], env=environment)
    assert done.returncode == 0, done.stdout
    assert "Found 1 problem" not in done.stdout
