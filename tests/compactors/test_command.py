"""`eirkit vestige compact` and the page of its folder, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run
from tests.compactors.planted_sessions import write_sessions

WIDTH = 80


@pytest.fixture
def logs(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return write_sessions(tmp_path / "logs", ["ada", "ben", "cleo", "dora", "emil", "fay"])


def called(capsys, *words: str) -> str:
    capsys.readouterr()
    code = run(["vestige", "compact", *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_the_answer_comes_first_and_the_tables_fit(logs, capsys):
    words = ("logs", "--budget", "600,1200", "--at", "every:5", "--out", "out")
    first, *lines = called(capsys, *words).splitlines()
    assert first.startswith("At 1,200 tokens ")
    assert [line for line in lines if len(line) > WIDTH] == []
    assert lines[-1] == "next: eirkit report out"
    found = json.loads(called(capsys, *words, "--json"))
    assert found["compactors"] == ["oracle", "random", "keep-last", "head-and-tail", "clear-tool-results"]
    assert {row["least_regret"] for row in found["rows"] if row["compactor"] == "oracle"} == {0.0}
    assert found["example"] is None or found["example"]["lines"]
    assert run(["report", "out"]) == 0
    page = Path("out/report.html").read_text()
    assert "Needed tokens kept, over tokens used" in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--budget", "many"), "--budget many is no list of tokens; give for example 4000,8000"),
        (("--budget", "9", "--at", "noon"), "'noon' names no cuts; give real, every:TURNS or tokens:TOKENS"),
        (("--budget", "9", "--compactor", "keep-lst"), "no compactor named 'keep-lst'"),
        (("--budget", "9", "--compactor-set", "null.x=1"), "names no compactor that is tried; write NAME.KEY=VALUE"),
        (("--budget", "9", "--compactor-set", "random.sed=1"), "has no setting 'sed'; it has: seed"),
    ],
)
def test_a_wrong_word_is_answered_in_one_line(logs, capsys, words, said):
    assert run(["vestige", "compact", "logs", "--at", "every:5", *words, "--out", "out"]) == 2
    assert said in capsys.readouterr().err
