"""Accuracy over the bits held: what each cell really held, what was possible, and what is said to be unknown."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from msgspec import structs

from eirkit.errors import UsageError
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.runs import RunFloor
from eirkit.report.runs.accuracy import pressure_section
from eirkit.report.runs.demand import curve_of
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.page import page_of
from eirkit.report.runs.possible import (
    OUTSIDE,
    TOLD,
    held_by_store,
    possible_chart,
    possible_in,
    possible_section,
    sentences,
)
from tests import runs
from tests.report.folders import command

RECORD = math.log2(10**4)
LIAR = """
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import MemoryUsage

class Liar(KeyValue):
    async def usage(self):
        return MemoryUsage(1, 10)

class Silent(KeyValue):
    async def usage(self):
        return MemoryUsage(None, None)
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    at = tmp_path_factory.mktemp("possible")
    (at / "liar.py").write_text(LIAR)
    small = ("--n", 24, "--m", 8, "--no-control", "--json")
    kept = ("lacuna", "run", "full-lookup", "--model", "reference/recoverer", "--h", 1, "--seeds", "0:6", *small)
    memories = f"key-value,{at}/liar.py:Liar,{at}/liar.py:Silent"
    command(*kept, "--memory", memories, "--out", at / "memories")
    command(*kept, "--memory", "encoder", "--set", "encoder.bits=40", "--out", at / "encoder")
    sums = ("lacuna", "run", "stepwise-sum", "--model", "reference/calculator", "--seeds", "0:6", "--h", "3,6", *small)
    command(*sums, "--policy", "lru,belady", "--out", at / "policies")
    reads = ("lacuna", "run", "stepwise-sum", "--model", "reference/recoverer", "--seeds", "0:4", "--h", 3, *small)
    command(*reads, "--condition", "lru,scratch", "--b-oracle", 20, "--out", at / "reads")
    return {path.name: path for path in at.iterdir() if path.is_dir()}


def placed(folder: Path) -> dict[str, object]:
    (task,), unknown = possible_in(read_sweep(folder, plugins=True))
    assert unknown == []
    return {cell.label.rpartition(":")[2]: cell for cell in task.cells}


def test_a_memory_that_reports_what_it_holds_is_judged_by_that(folders):
    cell = placed(folders["memories"])["key-value"]
    assert cell.held.bits == pytest.approx(8 * RECORD)
    assert sum(record.score.consuming for record in runs.records(folders["memories"])) == 3 * 6 * 16
    assert (cell.accuracy.estimate, cell.at.upper, cell.share) == (1.0, 1.0, (1.0, 1.0))


def test_what_a_memory_does_not_report_is_unknown_and_not_guessed(folders):
    cell = placed(folders["memories"])["Silent"]
    assert (cell.held.bits, cell.at, cell.share) == (None, None, None)
    section = possible_section(read_sweep(folders["memories"], plugins=True))
    assert any("is not judged: how many records are stored is not reported" in words for words in section.words)
    lines = {line["cell"].rpartition(":")[2]: line for line in section.items[-1].rows}
    assert (lines["Silent"]["bits_at_most"], lines["Silent"]["share"]) == (None, None)
    assert not any("Silent" in series.name for series in section.items[0].panels[0].series)


def test_a_memory_that_is_better_than_possible_holds_more_than_it_says(folders):
    sweep = read_sweep(folders["memories"], plugins=True)
    (task,), _ = possible_in(sweep)
    liar = next(cell for cell in task.cells if cell.label.endswith("Liar"))
    assert liar.held.bits <= 2 * RECORD
    assert liar.impossible
    assert liar not in task.judged
    assert any("stores more than it says" in one for one in sentences([task]))


def test_bytes_count_where_they_are_fewer_than_the_records_would_take(folders):
    cell = placed(folders["encoder"])
    (only,) = cell.values()
    assert only.held.bits == pytest.approx(4 * RECORD)  # three in the store, and the one in sight
    floor = RunFloor("system", (0, 3, 3), (None, 2, 5), RECORD, 0.0, 0.0, 0)
    assert held_by_store([floor], 0, [0, 3, 3], RECORD).bits == pytest.approx(3 * RECORD)  # 40 bits would be more
    assert held_by_store([structs.replace(floor, held_bytes=(0, 2, 3))], 0, [0, 3, 3], RECORD).bits == 24
    assert held_by_store([floor], 2, [0, 3, 3], RECORD).bits == pytest.approx(3 * RECORD)  # there are no more
    assert held_by_store([floor, None], 0, [0, 3, 3], RECORD).bits is None


def test_records_in_context_are_what_a_policy_held_and_belady_is_not_judged(folders):
    (task,), _ = possible_in(read_sweep(folders["policies"]))
    found = {cell.label: cell for cell in task.cells}
    lru = found["controlled lru · h = 6"]
    assert lru.held.bits == pytest.approx(6 * RECORD)
    assert lru.share[0] == pytest.approx(lru.accuracy.estimate / lru.at.upper)
    assert lru.share[1] == 1.0  # answers build on answers, so nobody is known to reach `kept` uncorrected
    assert found["controlled belady · h = 6"].share is None
    section = possible_section(read_sweep(folders["policies"]))
    assert TOLD in section.words
    assert any("the references are known in advance" in words for words in section.words)


def test_who_fetches_from_outside_or_keeps_text_is_not_judged(folders):
    cells = placed(folders["reads"])
    assert cells["lru"].why == OUTSIDE
    assert cells["scratch"].held.bits is None
    assert all(cell.share is None for cell in cells.values())


def test_the_picture_is_on_the_page_and_in_choose(folders, capsys):
    page = page_of(read_sweep(folders["memories"], plugins=True))
    (section,) = [one for one in page.sections if one.title == "What was possible"]
    assert section.items[0].id == "possible"
    capsys.readouterr()
    command("choose", folders["memories"], folders["encoder"], "--plugins", "--json")
    document = json.loads(capsys.readouterr().out)
    shares = {one["cell"].rpartition(":")[2]: one["share_at_least"] for one in document["possible"]}
    assert shares["key-value"] == 1.0
    assert shares["Silent"] is None
    assert 0 < next(value for name, value in shares.items() if name.startswith("encoder")) <= 1


def test_the_frontier_of_the_chart_lies_above_what_keeping_records_reaches(folders):
    for name in ("policies", "memories"):
        (task,), _ = possible_in(read_sweep(folders[name], plugins=True))
        upper, kept, floor, *_ = possible_chart(task).series
        assert all(low <= high + 1e-12 for low, high in zip(kept.y, upper.y, strict=True))
        assert list(upper.y) == sorted(upper.y)
        assert floor.x[0] == pytest.approx(8 * RECORD)


def test_a_page_does_not_wait_for_a_count_that_takes_minutes(tmp_path):
    """Stepwise Top-k with 64 values in a window took over 150 s; the section then says that pressure is m/h."""
    with pytest.raises(UsageError, match="a window of 64 values takes long to count; `eirkit eir curve stepwise-topk"):
        curve_of(TaskSpec("stepwise-topk", n=256, m=32))
    wide = ("lacuna", "run", "stepwise-max", "--n", 64, "--m", 32, "--h", "8,16", "--seeds", "0:2")
    command(*wide, "--model", "reference/calculator", "--no-control", "--out", tmp_path / "wide", "--json")
    section = pressure_section(read_sweep(tmp_path / "wide"))
    assert "so pressure is m/h here" in section.words[0]
    assert section.items[0].x.title.startswith("m/h")


def test_the_section_on_pressure_says_that_it_is_by_eir(folders):
    section = pressure_section(read_sweep(folders["policies"]))
    assert section.words[0] == "Pressure is EIR over capacity, at its peak, here."
