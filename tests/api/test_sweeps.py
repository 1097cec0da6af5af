"""`eirkit.run`, `eirkit.open` and `Sweep`: what a notebook does, on real folders with reference agents."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

import eirkit
from eirkit.api.running import name_of
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.memories.memory import memories
from eirkit.records import CellRow, RunRecord
from tests.processes import completed

TASK = {"m": 8, "h": 4, "seeds": range(3)}
# A memory as one types it into a notebook: its module has no file.
CELL = '''
from eirkit import MemorySystem


class Kept(MemorySystem):
    """Keeps every text."""

    def reset(self, scope):
        self.texts = {}

    def write(self, item):
        self.texts[item.label] = item.text

    def search(self, query, limit):
        return [text for label, text in self.texts.items() if label in query.split()][:limit]

    def read(self, label):
        return self.texts.get(label)
'''


def in_notebook() -> type:
    """Return the class of a cell, in a module that cannot be imported again."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(CELL, "<cell>", "exec"), names)
    kind = names["Kept"]
    assert isinstance(kind, type)
    return kind


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> eirkit.Sweep:
    out = tmp_path_factory.mktemp("sweeps") / "first"
    return eirkit.run("store-recall", model="reference/guesser", h=[4, 8], m=8, seeds=range(4), out=out, control=False)


def test_rows_are_typed_and_equal_those_of_the_command(sweep: eirkit.Sweep, tmp_path: Path):
    words = "store-recall --model reference/guesser --h 4,8 --m 8 --seeds 0:4 --no-control --json"
    done = completed([sys.executable, "-m", "eirkit", "lacuna", "run", *words.split(), "--out", str(tmp_path / "o")])
    printed = json.loads(done.stdout)["rows"]
    assert [type(row) for row in sweep.rows] == [CellRow, CellRow]
    assert [(row.h, row.accuracy, row.errors) for row in sweep.rows] == [
        (row["h"], row["accuracy"], row["errors"]) for row in printed
    ]
    assert eirkit.open(tmp_path / "o").digest() == sweep.digest()


def test_runs_are_read_one_by_one_and_know_their_steps(sweep: eirkit.Sweep):
    assert len(sweep.runs) == 8
    run = sweep.runs[3]
    assert isinstance(run.record, RunRecord)
    assert run.accuracy == run.record.score.accuracy
    wrong = [step for step in run.steps if not step.correct]
    assert len(run.steps) == run.record.setting.task.n
    assert len(wrong) == sum(run.record.score.errors.values())
    assert {step.cause for step in wrong} == {cause for cause, count in run.record.score.errors.items() if count}
    assert sweep.runs[-1].id == sweep.runs[7].id
    assert [one.id for one in sweep.runs[2:4]] == [sweep.runs[2].id, sweep.runs[3].id]
    assert sweep.runs.of(run.id).record == run.record
    with pytest.raises(IndexError):
        sweep.runs[8]
    with pytest.raises(InputFileError):
        sweep.runs.of("nobody-1")


def test_more_seeds_and_memories_are_added_to_a_folder(tmp_path: Path):
    first = eirkit.run("store-recall", model="reference/recoverer", memory="bm25", out=tmp_path / "s", **TASK)
    before = {run.id: run.record for run in first.runs}
    again = eirkit.run(
        "store-recall",
        model="reference/recoverer",
        memory=["bm25", "text"],
        m=8,
        h=4,
        seeds=range(5),
        out=tmp_path / "s",
    )
    assert [(row.memory, row.scored) for row in again.rows] == [("bm25", 5), ("text", 5)]
    assert all(again.runs.of(run).record == record for run, record in before.items())
    whole = eirkit.run("store-recall", model="reference/recoverer", memory=["bm25", "text"], m=8, h=4, seeds=range(5))
    assert whole.digest() == again.digest()


def test_a_class_without_a_file_is_recorded_by_its_source_and_must_be_given_again(tmp_path: Path):
    kind = in_notebook()
    out = tmp_path / "mine"
    found = eirkit.run("store-recall", model="reference/recoverer", memory=kind, out=out, **TASK)
    (row,) = found.rows
    assert row.memory.startswith("Kept@")
    assert row.scored == 3
    assert row.accuracy > 0.9
    words = ["lacuna", "run", "--resume", str(out), "--seeds", "0:4"]
    done = completed([sys.executable, "-m", "eirkit", *words])
    assert done.returncode == 2
    assert "Kept was defined in a notebook or script; give the class again" in done.stderr
    more = eirkit.run("store-recall", model="reference/recoverer", memory=in_notebook(), out=out, m=8, h=4, seeds="0:4")
    assert [row.scored for row in more.rows] == [4]


def test_a_class_of_an_installed_module_is_named_by_it():
    kind = memories.get("bm25")
    assert name_of(kind, memories) == "bm25"
    with pytest.raises(UsageError):
        name_of(3, memories)


def test_without_a_folder_everything_is_gone_with_the_result():
    found = eirkit.run("stepwise-sum", model="reference/calculator", n=8, h=4, m=4, seeds=1)
    folder = found.folder
    assert folder.is_dir()
    del found
    gc.collect()
    assert not folder.exists()


def test_the_ranking_is_that_of_the_command(tmp_path: Path):
    out = tmp_path / "two"
    eirkit.run("store-recall", model="reference/recoverer", memory=["null", "bm25"], out=out, **TASK)
    choice = eirkit.open(out).choose()
    printed = json.loads(completed([sys.executable, "-m", "eirkit", "choose", str(out), "--json"]).stdout)
    assert choice.by == printed["by"] == "memory"
    assert choice.ranking.leaders == tuple(printed["leaders"])
    assert choice.ranking.leaders[0] == "bm25"


def test_tables_for_notebooks(sweep: eirkit.Sweep):
    table = sweep.to_arrow()
    assert table.column("h").to_pylist() == [4, 8]
    assert table.column("accuracy").to_pylist() == [row.accuracy for row in sweep.rows]
    runs = sweep.to_arrow(runs=True)
    assert runs.num_rows == 8
    assert runs.column("accuracy").to_pylist() == [run.accuracy for run in sweep.runs]
    console = Console(record=True, width=100)
    console.print(sweep)
    assert "reference/guesser" in console.export_text()
    assert "<td>reference/guesser</td>" in sweep._repr_html_()


def test_what_is_no_result_is_said_in_one_line(tmp_path: Path):
    with pytest.raises(InputFileError, match="holds no results; give a folder of"):
        eirkit.open(tmp_path)
    with pytest.raises(UsageError, match="no model is given"):
        eirkit.run("store-recall")
