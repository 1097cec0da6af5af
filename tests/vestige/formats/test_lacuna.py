"""The folders of `eirkit lacuna run`, made by the command itself, as trajectories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run as run_command_line
from eirkit.records.event_blocks import EVENTS, read_lines
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import Recording


def sweep(folder: Path, *options: str) -> Path:
    arguments = ["lacuna", "run", "--n", "12", "--m", "4", "--seeds", "0", "--out", str(folder / "sweep"), *options]
    assert run_command_line(arguments) == 0
    return folder / "sweep"


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = "--workload", "stepwise-sum", "--h", "2,4", "--model", "reference/calculator"
    return sweep(tmp_path_factory.mktemp("controlled"), *options)


def runs(folder: Path) -> list[Recording]:
    found = list(read_corpus([folder]))
    assert not [item for item in found if isinstance(item, Skipped)]
    return found


def test_every_run_is_read_and_nothing_else(controlled: Path) -> None:
    found = runs(controlled)
    records = [json.loads(line) for line in (controlled / "runs.jsonl").read_text().splitlines()]
    assert [run.run_id for run in found] == [record["run"] for record in records]
    assert [run.resolved for run in found] == [record["score"]["correct"] == 12 for record in records]
    assert {(run.format, run.model, run.exit_status) for run in found} == {
        ("lacuna", "reference/calculator", "finished")
    }


def test_a_step_reads_what_it_required_and_had_and_writes_its_answer(controlled: Path) -> None:
    # Written against the prompts, which the reader does not look at: what they show and the step refers to was read.
    events = [json.loads(line) for line in read_lines(controlled / EVENTS)]
    for run in runs(controlled):
        prompts = [event["prompt"] for event in events if event["run"] == run.run_id and event["type"] == "exchange"]
        assert len(prompts) == len(run.turns) == 12
        for step, (prompt, turn) in enumerate(zip(prompts, run.turns, strict=True), 1):
            records, _, rest = prompt.partition("STEP")
            shown = {line.split(" = ")[0] for line in records.splitlines() if " = " in line}
            required = set(rest.partition("REFS ")[2].split("\n")[0].split())
            expected = sorted(f"A_{int(name[2:])}" for name in shown & required)
            assert sorted(read.path for read in turn.touches.reads) == expected
            assert [write.path for write in turn.touches.writes] == [f"A_{step}"]


def test_what_was_fetched_from_a_memory_is_read(tmp_path: Path) -> None:
    options = "--workload", "store-recall", "--h", "2", "--model", "reference/recoverer", "--memory", "key-value"
    (run,) = runs(sweep(tmp_path, *options))
    recalled = {turn.touches.writes[0].path: [read.path for read in turn.touches.reads] for turn in run.turns}
    assert sum(map(len, recalled.values())) == 6  # of twelve steps every second one recalls
    assert run.goal_files == tuple(f"A_{t}" for t in range(1, 13))


def test_a_folder_without_its_events_is_named(controlled: Path, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes((controlled / "runs.jsonl").read_bytes())
    reasons = [item.reason for item in read_corpus([tmp_path]) if isinstance(item, Skipped)]
    assert reasons == ["events.jsonl.zst: cannot be read (no such file or directory); check its permissions"] * 2
    (tmp_path / EVENTS).write_bytes((controlled / EVENTS).read_bytes()[:-500])
    first, second = read_corpus([tmp_path])
    assert isinstance(first, Recording)
    assert isinstance(second, Skipped)


@pytest.mark.parametrize(
    "damage", [{"events": {"offset": -5, "bytes": 1 << 60, "count": 2}}, {"task": 3}, {"score": {}}]
)
def test_a_damaged_record_costs_no_other(controlled: Path, tmp_path: Path, damage: dict[str, object]) -> None:
    lines = (controlled / "runs.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), **damage}, separators=(",", ":"))
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / EVENTS).write_bytes((controlled / EVENTS).read_bytes())
    first, second = read_corpus([tmp_path])
    assert isinstance(first, Skipped)
    assert isinstance(second, Recording)
