"""The plain format: everything in it is read, and whatever does not fit is named by its field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.formats.plain import Plain
from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import FileRead, FileWrite, RecordedTurn, Recording, Touches

RUN = {
    "run_id": "r1",
    "task_id": "t1",
    "model": "m",
    "resolved": True,
    "goal_files": ["a.py"],
    "turns": [
        {"reads": [{"path": "a.py", "tokens": 10}, {"path": "b.py"}], "tokens": 30},
        {"writes": [{"path": "a.py", "tokens": 12}]},
        {},
    ],
}


def read(folder: Path, *lines: Any) -> list[Recording | Skipped]:
    path = folder / "runs.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    document = open_document(path)
    assert Plain().recognizes(document)
    return list(Plain().read(document))


def test_a_run_is_read_as_written(tmp_path: Path) -> None:
    assert read(tmp_path, RUN) == [
        Recording(
            run_id="r1",
            task_id="t1",
            format="plain",
            source="runs.jsonl:1",
            turns=(
                RecordedTurn(touches=Touches((FileRead("a.py", 10), FileRead("b.py"))), tokens=30),
                RecordedTurn(touches=Touches((), (FileWrite("a.py", tokens=12),))),
                RecordedTurn(touches=Touches()),
            ),
            model="m",
            resolved=True,
            goal_files=("a.py",),
        )
    ]


def test_an_empty_list_of_goal_files_is_not_an_absent_one(tmp_path: Path) -> None:
    runs = read(tmp_path, {**RUN, "goal_files": []}, {"run_id": "r2", "turns": []})
    assert [(run.goal_files, run.task_id, run.resolved) for run in runs] == [((), "t1", True), (None, "r2", None)]


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"run_id": 7}, "run_id is not a string"),
        ({"run_id": ""}, "run_id is missing"),
        ({"model": ["m"]}, "model is not a string"),
        ({"resolved": "yes"}, "resolved is neither true, false nor null"),
        ({"goal_files": "a.py"}, "goal_files is not a list of strings"),
        ({"goal_files": [1]}, "goal_files is not a list of strings"),
        ({"turns": {}}, "turns is not a list"),
        ({"turns": [{}, 3]}, r"turns[1] is not an object"),
        ({"turns": [{"reads": 3}]}, "turns[0].reads is not a list"),
        ({"turns": [{"reads": ["a.py"]}]}, "turns[0].reads[0] is not an object"),
        ({"turns": [{"writes": [{"path": "a"}, {"tokens": 1}]}]}, "turns[0].writes[1].path is not a string"),
        ({"turns": [{"reads": [{"path": "a", "tokens": -1}]}]}, "turns[0].reads[0].tokens is not a whole number"),
        ({"turns": [{"tokens": True}]}, "turns[0].tokens is not a whole number"),
    ],
)
def test_what_does_not_fit_is_named_and_costs_no_other_run(tmp_path: Path, change: Any, reason: str) -> None:
    first, bad, last = read(tmp_path, RUN, {**RUN, **change}, {**RUN, "run_id": "r3"})
    assert (first.run_id, last.run_id) == ("r1", "r3")
    assert bad.source == "runs.jsonl:2"
    assert bad.reason.startswith(reason)
    assert ";" in bad.reason


def test_a_torn_line_is_named(tmp_path: Path) -> None:
    torn = json.dumps(RUN)[:-20]
    first, second, third = read(tmp_path, torn, RUN, "[1]")
    assert (first.source, first.reason.partition(" (")[0]) == ("runs.jsonl:1", "not JSON")
    assert second.run_id == "r1"
    assert third.reason.startswith("the line is not an object")


def test_a_run_longer_than_the_head_is_recognized(tmp_path: Path) -> None:
    turn = {"reads": [{"path": "a/long/path.py", "tokens": 10}]}
    (run,) = read(tmp_path, {"turns": [turn] * 10_000, "run_id": "late"})
    assert (run.run_id, len(run.turns)) == ("late", 10_000)


@pytest.mark.parametrize("text", ["", "{}", '{"turns": 3}', '{"text": "\\"turns\\" \\"run_id\\""}', "[[", "a,b\n1,2\n"])
def test_other_files_are_not_recognized(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert not Plain().recognizes(open_document(tmp_path / "a.json"))


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("plain") / "a.jsonl"
    path.write_bytes(b'{"run_id": "a", "turns": ' + content)
    document = open_document(path)
    Plain().recognizes(document)
    assert len(list(Plain().read(document))) >= 1
