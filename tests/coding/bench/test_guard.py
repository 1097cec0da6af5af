"""The live guard inside real agents, offline: what it restores is in the next request, and it leaves no trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eirkit_coding.guard.outcomes import QUIET_SECONDS, measure
from eirkit_coding.guard.trial import ARMS, read_draws
from tests.coding.bench.agents import AGENTS, Agent
from tests.coding.bench.install import packages_of
from tests.coding.bench.play import REQUESTS, can_play, play
from tests.coding.guard.test_hook import tree
from tests.processes import completed

INSTALLED = os.environ.get("EIRKIT_AGENTS", "")
MARK = "a note of eirkit guard"
PUT_BACK = re.compile(r'Called the Read tool with the following input: \{\\"file_path\\":\\"[^"]*/([\w.]+)\\"')
LISTED = re.compile(r"\\n- ([\w.]+)[,:]")
NAMES = {
    "claude-code": "claude",
    "codex": "codex",
    "codex-classic": "codex",
    "gemini-cli": "gemini",
    "opencode": "opencode",
}
OURS = (".claude/skills", ".codex/hooks.json", ".gemini/extensions", ".config/opencode/plugin")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not INSTALLED, reason="EIRKIT_AGENTS names no folder with agents; run `make session NAME=agents`"
    ),
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


def after_compactions(requests: list[dict[str, Any]], late: int = 0) -> list[str]:
    """Return the first request of the agent after each compaction, or a later one."""
    found: list[str] = []
    waiting: int | None = None
    for one in requests:
        if one["kind"] == "summary":
            waiting = late
        elif one["kind"] == "step" and waiting is not None:
            if waiting == 0:
                found.append(json.dumps(one["body"], ensure_ascii=False))
            waiting = waiting - 1 if waiting else None
    return found


def named(name: str) -> str:
    """Return how the note begins to name a file; Claude Code puts calc.py back itself, which its own tool had read."""
    return "- parser.py: read" if name == "claude-code" else "- calc.py, lines 1–60: edited"


def run_eirkit(home: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    return completed([sys.executable, "-m", "eirkit", *words], check=True, env=environment).stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_next_request_has_what_was_restored(name: str, tmp_path: Path) -> None:
    requests = played(name, tmp_path / name, "guard")
    # Gemini CLI has no event after a compaction: what is restored comes with the result of the next call.
    (request,) = after_compactions(requests, late=int(name == "gemini-cli"))
    assert MARK in request
    assert named(name) in request
    assert request.count("- calc.py") == (name != "claude-code")
    home = tmp_path / name / "home"
    assert not (home / ".cache/eirkit/guard/guard.log").exists()
    before = tree(home)
    run_eirkit(home, "guard", "uninstall", NAMES[name])
    gone = {path for path in before if path not in tree(home) and ".cache/eirkit" not in path}
    assert gone
    assert all(path.startswith(OURS) for path in gone)
    assert not any(path.startswith(OURS) for path in tree(home))


def test_the_note_names_no_file_that_was_put_back(tmp_path: Path) -> None:
    agent = AGENTS["claude-code"]
    play(agent, _packages(agent), tmp_path / "long", "guard", session="long")
    requests = json.loads((tmp_path / "long" / REQUESTS).read_text())
    for request, dropped in zip(after_compactions(requests), ("lexer.py", "parser.py", "calc.py"), strict=True):
        back = set(PUT_BACK.findall(request))
        named_files = set(LISTED.findall(request[request.index(MARK) :].partition("Today's date")[0]))
        assert len(back) >= 2
        assert dropped in named_files
        assert not named_files & back


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "opencode"])
def test_a_trial_draws_all_arms(name: str, tmp_path: Path) -> None:
    requests = played(name, tmp_path / "trial", "trial", 3)
    home = tmp_path / "trial/home"
    drawn = [json.loads(line) for line in (home / ".cache/eirkit/guard/draws.jsonl").read_text().splitlines()]
    assert sorted(one["arm"] for one in drawn) == ["nothing", "restore", "sham"]
    assert len({one["session"] for one in drawn}) == 3
    told = dict(zip((one["arm"] for one in drawn), after_compactions(requests, int(name == "gemini-cli")), strict=True))
    assert MARK not in told["nothing"]
    assert named(name) in told["restore"]
    assert "part of the project" in told["sham"]
    assert "edited, used in" not in told["sham"]
    # The sessions ended a moment ago; twelve hours later they count.
    log = home / ".cache/eirkit/guard/draws.jsonl"
    found = json.loads(run_eirkit(home, "guard", "results", "--json"))
    lost = {one["session"] for one in found["lost"]}
    assert (found["drawn"], found["measured"], found["open"]) == (3, 0, 3 - len(lost))
    assert not lost or name == "gemini-cli"  # which may remove a session's file when another begins
    outcomes = measure(read_draws(log.parent), log.parent, time.time() + QUIET_SECONDS + 1).outcomes
    assert len(outcomes) == 3 - len(lost) > 0
    # As scripted, it reads calc.py and edits it; Gemini CLI hears the note with the result of that read.
    is_late = name == "gemini-cli"
    assert {one.turns_to_edit for one in outcomes.values()} == {1 if is_late else 2}
    assert all((one.reread_tokens > 300) != is_late for one in outcomes.values())
    found = json.loads(run_eirkit(home, "guard", "results", "--json"))
    counts = Counter(one["arm"] for one in drawn if one["session"] not in lost)
    assert [(one["arm"], one["measured"]) for one in found["arms"]] == [(arm, counts[arm]) for arm in ARMS]
    assert found["is_over"] is False


def test_claude_code_accepts_the_plug_in(tmp_path: Path) -> None:
    agent = AGENTS["claude-code"]
    program = _packages(agent) / agent.program
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"}
    completed([sys.executable, "-m", "eirkit", "guard", "install", "claude"], check=True, env=environment)
    words = [str(program), "plugin", "validate", str(tmp_path / ".claude/skills/eirkit-guard")]
    done = completed(["unshare", "--map-root-user", "--net", *words], env=environment)
    assert done.returncode == 0, done.stdout
    assert "Found 1 problem" not in done.stdout
    # The same folder as an entry of a marketplace.
    market = tmp_path / "market"
    shutil.copytree(tmp_path / ".claude/skills/eirkit-guard", market / "eirkit-guard")
    entry = {"name": "eirkit-guard", "source": "./eirkit-guard", "description": "Restores what a compaction drops."}
    (market / ".claude-plugin").mkdir()
    listed = {"name": "eirkit", "owner": {"name": "eirkit"}, "plugins": [entry]}
    (market / ".claude-plugin/marketplace.json").write_text(json.dumps(listed))
    for words in (["marketplace", "add", str(market)], ["install", "eirkit-guard@eirkit"]):
        done = completed(["unshare", "--map-root-user", "--net", str(program), "plugin", *words], env=environment)
        assert done.returncode == 0, done.stdout
