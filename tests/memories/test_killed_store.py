"""A store whose process is killed in the middle of a run: that run is lost, the sweep goes on, a resumption ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.lacuna.running import eirkit
from tests.memories.mortal_store import MARKER

STORE = f"{Path(__file__).with_name('mortal_store.py')}:Mortal"
SEEDS = 3


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_killed_process_costs_one_run_and_a_resumption_makes_it_good(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(MARKER, str(tmp_path / "killed"))
    out = tmp_path / "out"
    tasks = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", f"0:{SEEDS}", "--no-control")
    how = ("--model", "reference/recoverer", "--memory", STORE, "--out", str(out), "--json")
    assert eirkit("lacuna", "run", *tasks, *how) == 1
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["scored"], row["attempted"], row["accuracy"]) == (SEEDS - 1, SEEDS, 1)
    lost = [line for line in lines(out / "failures.jsonl") if "kind" in line]
    assert [failure["kind"] for failure in lost] == ["memory"]
    assert "ended during write" in lost[0]["message"]

    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert (row["scored"], row["attempted"], row["accuracy"]) == (SEEDS, SEEDS, 1)
