"""What an external memory did over the runs of a cell: sums, means and the largest, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eirkit.cli.lacuna_run import memory_remarks, scripted_remarks
from eirkit.lacuna.findings.summary import MemoryTotals, _CellTotals
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.suite import make_cell
from eirkit.records.runs import OUTCOMES, Failure, MemoryRun, RunUsage
from eirkit.records.settings import Access
from eirkit.records.sweeps import CellRow
from eirkit.report.runs.folder import Coordinates
from eirkit.report.runs.page import memory_tables
from eirkit.report.table import Table

RUN = MemoryRun(
    writes=4,
    searches=2,
    write_seconds=1.0,
    search_seconds=3.0,
    slowest_seconds=2.0,
    outcomes=dict.fromkeys(OUTCOMES, 0) | {"used": 2},
    records=4,
    bytes=44,
    model_calls=4,
    input_tokens=100,
    output_tokens=10,
    cost_usd=0.5,
)


def run(**over: Any) -> MemoryRun:
    return replace(RUN, **over)


def gathered(*runs: MemoryRun) -> MemoryTotals:
    memory = MemoryTotals()
    for own in runs:
        memory.add(own)
    return memory


def failure(message: str, kind: str = "memory") -> Failure:
    where = {"run": "c-0", "cell": "c", "seed": 0, "workload": "w", "model": "m", "condition": "external"}
    return Failure(**where, kind=kind, message=message, steps=0, usage=RunUsage())


def test_a_cell_without_memory_has_no_row():
    assert gathered().row([failure("the line is dead", "dropped")]) is None


def test_times_are_per_call_and_what_is_held_is_the_largest():
    other = run(writes=1, write_seconds=1.5, slowest_seconds=1.5, records=9, bytes=20, confused=1)
    row = gathered(run(), other).row([])
    assert row is not None
    assert (row.writes, row.searches, row.confused) == (5, 4, 1)
    assert row.write_seconds == 2.5 / 5
    assert row.search_seconds == 6 / 4
    assert (row.slowest_seconds, row.records, row.bytes) == (2.0, 9, 44)
    assert (row.model_calls, row.input_tokens, row.output_tokens, row.cost_usd) == (8, 200, 20, 1.0)
    assert row.outcomes["used"] == 4
    assert row.diagnosis == ()


def test_what_is_unknown_stays_unknown():
    row = gathered(run(records=None, bytes=None, cost_usd=None), run()).row([])
    assert row is not None
    assert (row.records, row.bytes, row.cost_usd) == (4, 44, None)
    row = gathered(run(records=None, bytes=None, searches=0)).row([])
    assert row is not None
    assert (row.records, row.bytes, row.search_seconds) == (None, None, None)


def test_runs_that_the_memory_broke_are_part_of_the_diagnosis_and_others_are_not():
    row = gathered().row([failure("KeyError: x"), failure("KeyError: x"), failure("the line is dead", "dropped")])
    assert row is not None
    assert row.diagnosis == ("raises (2 runs lost)",)


@pytest.mark.parametrize(
    ("access", "panel"),
    [
        (Access(), "strict"),
        (Access("lru", None), "strict"),
        (Access("kv", None), "strict"),
        (Access("paging", None), "native"),
        (Access("scratch", None), "native"),
        (Access("external", None, "mem0"), "native"),
        (Access("external", None, "mem0", panel="strict"), "strict"),
    ],
)
def test_only_what_is_held_to_h_records_is_in_the_strict_panel(access, panel):
    assert access.capacity_panel == panel


CELL = make_cell({"workload": "store-recall", "model": "reference/recoverer", "memory": "bm25", "h": 2}, ModelOptions())


def row_of(panel: str, name: str = "bm25", settings: dict[str, Any] | None = None, **over: Any) -> CellRow:
    empty = _CellTotals().row(CELL.setting, 4, 1, {}, None, CELL.id)
    used = {"memory": name, "memory_settings": settings or {}, "memory_system": gathered(run(**over)).row([])}
    return replace(empty, panel=panel, scored=3, attempted=4, workload="w", **used)


def tables_of(*rows: CellRow) -> tuple[Table, Table]:
    return memory_tables([(row, row.memory_system) for row in rows], Coordinates(rows))


def test_the_tables_have_shares_and_milliseconds():
    outcomes, costs = tables_of(row_of("strict"))
    assert [column.key for column in outcomes.columns[1:]] == ["needed", "used"]
    ((found,), (cost,)) = outcomes.rows, costs.rows
    assert (found["needed"], found["used"]) == (2, 1.0)
    assert (cost["write_ms"], cost["search_ms"]) == (250.0, 1500.0)
    assert (cost["model_calls"], cost["memory_tokens"]) == (4, 110)


def test_own_calls_have_no_columns_where_nobody_called():
    _, costs = tables_of(row_of("strict", model_calls=0), row_of("native", model_calls=0))
    assert "model_calls" not in {column.key for column in costs.columns}


def test_remarks_name_the_memory_and_warn_of_the_native_panel():
    lost = dict.fromkeys(OUTCOMES, 0) | {"not_stored": 1, "used": 1}
    said, native = memory_remarks([row_of("native", outcomes=lost)])
    assert said == "memory bm25, w, h = 2: loses what is written (1 of 2 lookups)"
    assert native.endswith("add --panel strict")
    strict, kept, native = memory_remarks([row_of("strict"), row_of("native", outcomes=lost)])
    assert strict.startswith("bm25 retrieved every record needed from it (strict panel; w at h = 2)")
    assert kept == "memory bm25, w, h = 2, native: loses what is written (1 of 2 lookups)"
    assert native.endswith("with those held to h"), "the strict panel is there already"


def test_a_system_that_holds_is_told_so_once_for_each_panel():
    rows = [row_of("strict"), replace(row_of("strict"), workload="v"), replace(row_of("strict"), h=4)]
    assert list(memory_remarks(rows)) == [
        "bm25 retrieved every record needed from it (strict panel; w, v at h = 2; w at h = 4): 6 of 6"
    ]


def test_what_was_never_asked_for_is_not_put_down_to_the_system():
    unsought = dict.fromkeys(OUTCOMES, 0) | {"unwritten": 1, "not_sought": 2, "not_used": 1}
    (said,) = memory_remarks([row_of("strict", outcomes=unsought)])
    assert said.startswith("bm25 retrieved every record it was asked for")
    assert said.endswith("1 of 4; 3 were never searched for or never written")
    (said,) = memory_remarks([row_of("strict", outcomes=dict.fromkeys(OUTCOMES, 0))])
    assert said == "bm25 was not tested (strict panel; w at h = 2): no record was needed from it"


def test_a_row_without_a_scored_run_is_no_proof_of_anything():
    assert list(memory_remarks([replace(row_of("strict"), scored=0)])) == []


@pytest.mark.parametrize(
    ("name", "settings", "calls", "said"),
    [
        ("mem0", {}, 4, 1),
        ("mem0", {"model": "openai/m"}, 4, 0),
        ("mem0", {"profile": "store-only"}, 0, 0),
        ("langmem", {}, 4, 1),
        ("langmem", {}, 0, 0),  # embeddings are not calls of a model
        ("bm25", {}, 4, 0),  # whatever it asked, it asked elsewhere
    ],
)
def test_a_scripts_answers_and_estimates_are_never_passed_off_as_a_models(name, settings, calls, said):
    remarks = list(scripted_remarks([row_of("strict", name, settings, model_calls=calls)]))
    assert len(remarks) == said
    assert all("a script, not a model, and its tokens are an estimate" in remark for remark in remarks)
