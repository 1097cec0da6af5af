"""Outcomes from the files that evaluations leave, each shape written out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.errors import InputFileError
from eirkit.vestige.corpus.outcomes import Outcomes, OutcomesBeside, damage_in, holds_outcomes, read_outcomes
from eirkit.vestige.corpus.reader import CorpusReader, read_corpus
from eirkit.vestige.corpus.work_units import plan_work_units
from eirkit.vestige.sources.documents import NAMED, ReadLimits, Skipped, open_document
from eirkit.vestige.trajectory import Recording
from tests.vestige.recorded import recorded

EXPECTED = {"org__x-1": True, "org__x-2": False}
MARKDOWN = """\
# SWE-bench Report
- resolved instances: 1

## Resolved Instances
- [org__x-1](logs/org__x-1.log)

## Unresolved Instances
- [org__x-2](logs/org__x-2.log)

## Error Instances
- [org__x-3](logs/org__x-3.log)
"""
SHAPES = {
    "results.json": json.dumps(
        {"instances": [{"instance_id": name, "resolved": is_} for name, is_ in EXPECTED.items()]}
    ),
    "by-name.json": json.dumps({"instances": {name: {"resolved": is_} for name, is_ in EXPECTED.items()}}),
    "model.run.json": json.dumps(
        {
            "total_instances": 3,
            "resolved_instances": 1,
            "resolved_ids": ["org__x-1"],
            "unresolved_ids": [],
            "empty_patch_ids": ["org__x-2"],
            "error_ids": ["org__x-3"],
        }
    ),
    "report.json": json.dumps({name: {"patch_exists": True, "resolved": is_} for name, is_ in EXPECTED.items()}),
    "flat.json": json.dumps(EXPECTED),
    "rows.json": json.dumps([{"task_id": name, "resolved": is_} for name, is_ in EXPECTED.items()]),
    "output.swebench_eval.md": MARKDOWN,
    "outcomes.csv": "\ufeffinstance_id,resolved\norg__x-1,True\norg__x-2,0\norg__x-3,\n",
    "outcomes.tsv": "instance_id\tresolved\norg__x-1\tyes\norg__x-2\tno\n",
    "outcomes.jsonl": "".join(f"{json.dumps({'run_id': name, 'resolved': is_})}\n" for name, is_ in EXPECTED.items()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_tells_the_same(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SHAPES[name], "utf-8")
    assert read_outcomes(tmp_path / name) == Outcomes(EXPECTED)


def test_a_list_of_what_was_resolved_says_no_of_the_rest(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"no_generation": ["b"], "no_logs": [], "resolved": ["a"]}))
    outcomes = read_outcomes(tmp_path / "results.json")
    assert [outcomes.get(name) for name in "abc"] == [True, False, False]


def test_a_folder_of_reports_is_read_as_a_whole(tmp_path: Path) -> None:
    for task, is_resolved in EXPECTED.items():
        (tmp_path / task).mkdir()
        (tmp_path / task / "report.json").write_text(json.dumps({task: {"resolved": is_resolved}}))
    assert read_outcomes(tmp_path) == Outcomes(EXPECTED)


def test_a_run_is_asked_by_its_own_name_first() -> None:
    outcomes = Outcomes({"run": True, "task": False})
    assert (outcomes.get("run", "task"), outcomes.get("other", "task"), outcomes.get("x")) == (True, False, None)


@pytest.mark.parametrize("name", ["results.json", "report.json", "model.run.json", "output.swebench_eval.md"])
def test_results_are_found_beside_the_runs_and_above_them(tmp_path: Path, name: str) -> None:
    runs = tmp_path / "runs" / "trajs" / "org__x-1"
    runs.mkdir(parents=True)
    for place in (runs, runs.parent, tmp_path / "runs", tmp_path):
        (place / name).write_text(SHAPES[name])
        assert OutcomesBeside(tmp_path / "runs").get(runs, "org__x-1") is True
        (place / name).unlink()
    assert OutcomesBeside(tmp_path / "runs").get(runs, "org__x-1") is None


def test_results_beyond_the_folder_beside_what_was_given_are_not_looked_for(tmp_path: Path) -> None:
    runs = tmp_path / "a" / "b" / "c"
    runs.mkdir(parents=True)
    (tmp_path / "results.json").write_text(SHAPES["results.json"])
    assert OutcomesBeside(runs).get(runs, "org__x-1") is None


def test_the_nearest_results_win_and_contradictions_cancel(tmp_path: Path) -> None:
    near = tmp_path / "near"
    near.mkdir()
    (tmp_path / "results.json").write_text(json.dumps({"org__x-1": False, "org__x-2": True}))
    (near / "report.json").write_text(json.dumps({"org__x-1": {"resolved": True}}))
    beside = OutcomesBeside(tmp_path)
    assert (beside.get(near, "org__x-1"), beside.get(near, "org__x-2")) == (True, True)
    (near / "results.json").write_text(json.dumps({"org__x-1": {"resolved": False}, "org__x-3": {"resolved": False}}))
    beside = OutcomesBeside(near)
    assert beside.get(near, "org__x-3") is False
    assert OutcomesBeside(near / "file").get(near, "org__x-1") is None


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.json", "{}"),
        ("a.json", '{"debug": true, "name": "x"}'),
        ("a.json", "3"),
        ("a.csv", "x,y\n1,2\n"),
        ("a.md", "# nothing"),
        ("a.jsonl", "{}\n[]\n"),
    ],
)
def test_what_holds_no_outcomes_says_so(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputFileError, match="holds no outcomes; give a SWE-bench report"):
        read_outcomes(tmp_path / name)


def test_files_of_results_are_told_from_runs(tmp_path: Path) -> None:
    for name in ("results.json", "report.json", "model.run.json"):
        (tmp_path / name).write_text(SHAPES[name])
        assert holds_outcomes(open_document(tmp_path / name))
    (tmp_path / "run.json").write_text(json.dumps({"messages": [], "info": {}}))
    assert not holds_outcomes(open_document(tmp_path / "run.json"))


@pytest.mark.parametrize(
    "name, file, resolved, known",
    [
        ("mini-swe-agent-v1", "results.json", 179, 246),
        ("mini-swe-agent-v2", "results.json", 29, 53),
        ("openhands-completions", "output.swebench_eval.md", 26, 50),
    ],
)
def test_the_recorded_results_are_read(name: str, file: str, resolved: int, known: int) -> None:
    outcomes = read_outcomes(recorded(name) / file)
    assert (sum(outcomes.known.values()), len(outcomes.known)) == (resolved, known)


TORN = '{"run_id": "a", "resolved": true}\n{"run_id": "b", "resol\n{"run_id": "c", "resolved": false}\n'
RUN = {"run_id": "a", "task_id": "a", "goal_files": ["x"], "turns": [{"reads": [{"path": "x", "tokens": 1}]}]}


@pytest.mark.parametrize("place", ["runs/results.jsonl", "results.jsonl", "elsewhere/given.jsonl"])
def test_a_damaged_line_of_results_is_named_wherever_the_file_lies(tmp_path: Path, place: str) -> None:
    for folder in ("runs", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "runs" / "run.jsonl").write_text(json.dumps(RUN) + "\n")
    (tmp_path / place).write_text(TORN)
    given = tmp_path / place if "given" in place else None
    items = list(read_corpus([tmp_path / "runs"], outcomes=given))
    assert [item.resolved for item in items if isinstance(item, Recording)] == [True]
    (skipped,) = (item for item in items if isinstance(item, Skipped))
    assert skipped.source.endswith(f"{Path(place).name}:2")
    assert "JSON" in skipped.reason
    pieces = plan_work_units(CorpusReader(outcomes=given, format=None, limits=ReadLimits()), [tmp_path / "runs"])
    planned = [item for piece in pieces for item in piece.items if isinstance(item, Skipped)]
    assert planned == ([] if place.startswith("runs/") else [skipped])  # those among the runs are read by workers


def test_results_that_were_given_among_the_runs_are_named_once(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(json.dumps(RUN) + "\n")
    (tmp_path / "results.jsonl").write_text(TORN)
    for paths in ([tmp_path], sorted(tmp_path.iterdir()), [tmp_path, tmp_path / "run.jsonl"]):
        skipped = [item for item in read_corpus(paths) if isinstance(item, Skipped)]
        assert [one.source.rpartition("/")[2] for one in skipped] == ["results.jsonl:2"], paths


def test_of_many_damaged_lines_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"run_id": "a", "resolved": true}\n' + "{torn\n" * (NAMED + 7))
    found = list(damage_in(path))
    assert len(found) == NAMED + 1
    assert found[-1].reason == f"7 more rows are damaged; the first {NAMED} are named"
