"""What an external memory did over the runs of a cell: sums, means and the largest, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from eirkit.cli.lacuna_run import cost_columns, fate_columns, memory_remarks
from eirkit.lacuna.findings.fates import FATES
from eirkit.lacuna.runs.cells import Access, panel_of
from eirkit.lacuna.runs.summary import MemoryTotals


def record(**over: Any) -> dict[str, Any]:
    plain = {
        "writes": 4,
        "searches": 2,
        "write_seconds": 1.0,
        "search_seconds": 3.0,
        "slowest_seconds": 2.0,
        "fates": dict.fromkeys(FATES, 0) | {"used": 2},
        "confused": 0,
        "flooded": 0,
        "records": 4,
        "bytes": 44,
        "model_calls": 4,
        "input_tokens": 100,
        "output_tokens": 10,
        "cost_usd": 0.5,
    }
    return plain | over


def gathered(*records: dict[str, Any] | None) -> MemoryTotals:
    memory = MemoryTotals()
    for one in records:
        memory.add(one)
    return memory


def failure(message: str, kind: str = "memory") -> dict[str, Any]:
    return {"kind": kind, "message": message}


def test_a_cell_without_memory_has_no_row():
    assert gathered(None, None).row([failure("the line is dead", "dropped")]) is None


def test_times_are_per_call_and_what_is_held_is_the_largest():
    other = record(writes=1, write_seconds=1.5, slowest_seconds=1.5, records=9, bytes=20, confused=1)
    row = gathered(record(), other).row([])
    assert row is not None
    assert (row["writes"], row["searches"], row["confused"]) == (5, 4, 1)
    assert row["write_seconds"] == 2.5 / 5
    assert row["search_seconds"] == 6 / 4
    assert (row["slowest_seconds"], row["records"], row["bytes"]) == (2.0, 9, 44)
    assert (row["model_calls"], row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (8, 200, 20, 1.0)
    assert row["fates"]["used"] == 4
    assert row["diagnosis"] == []


def test_what_is_unknown_stays_unknown():
    row = gathered(record(records=None, bytes=None, cost_usd=None), record()).row([])
    assert row is not None
    assert (row["records"], row["bytes"], row["cost_usd"]) == (4, 44, None)
    row = gathered(record(records=None, bytes=None, searches=0)).row([])
    assert row is not None
    assert (row["records"], row["bytes"], row["search_seconds"]) == (None, None, None)


def test_runs_that_the_memory_broke_are_part_of_the_diagnosis_and_others_are_not():
    row = gathered().row([failure("KeyError: x"), failure("KeyError: x"), failure("the line is dead", "dropped")])
    assert row is not None
    assert row["diagnosis"] == ["raises (2 runs lost)"]


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
    assert panel_of(access) == panel


def row_of(panel: str, name: str = "bm25", settings: dict[str, Any] | None = None, **over: Any) -> dict[str, Any]:
    memory = gathered(record(**over)).row([])
    return {
        "panel": panel,
        "scored": 3,
        "attempted": 4,
        "memory": name,
        "memory_settings": settings or {},
        "workload": "w",
        "h": 2,
        "memory_system": memory,
    }


def by_key(columns):
    return {column.key: values for column, values in columns.items()}


def test_the_tables_have_shares_and_milliseconds():
    fates, costs = by_key(fate_columns([row_of("strict")])), by_key(cost_columns([row_of("strict")]))
    assert {len(column) for column in (*fates.values(), *costs.values())} == {1}
    assert fates == {"needed": [2], "used": [1.0]}
    assert (costs["write_ms"], costs["search_ms"]) == ([250.0], [1500.0])
    assert (costs["model_calls"], costs["memory_tokens"]) == ([4], [110])


def test_own_calls_have_no_columns_where_nobody_called():
    columns = cost_columns([row_of("strict", model_calls=0), row_of("native", model_calls=0)])
    assert "model_calls" not in by_key(columns)


def test_remarks_name_the_memory_and_warn_of_the_native_panel():
    lost = dict.fromkeys(FATES, 0) | {"not_stored": 1, "used": 1}
    said, native = memory_remarks([row_of("native", fates=lost)])
    assert said == "memory bm25, w, h = 2: loses what is written (1 of 2 lookups)"
    assert native.endswith("add --panel strict")
    strict, kept, native = memory_remarks([row_of("strict"), row_of("native", fates=lost)])
    assert strict.startswith("bm25 returned every record needed from it (strict panel; w at h = 2)")
    assert kept == "memory bm25, w, h = 2, native: loses what is written (1 of 2 lookups)"
    assert native.endswith("with those held to h"), "the strict panel is there already"


def test_a_system_that_holds_is_told_so_once_for_each_panel():
    rows = [row_of("strict"), row_of("strict") | {"workload": "v"}, row_of("strict") | {"h": 4}]
    assert list(memory_remarks(rows)) == [
        "bm25 returned every record needed from it (strict panel; w, v at h = 2; w at h = 4): 6 of 6"
    ]


def test_what_was_never_asked_for_is_not_put_down_to_the_system():
    unsought = dict.fromkeys(FATES, 0) | {"unwritten": 1, "not_sought": 2, "not_used": 1}
    (said,) = memory_remarks([row_of("strict", fates=unsought)])
    assert said.startswith("bm25 returned every record it was asked for")
    assert said.endswith("1 of 4; 3 were never searched for or never written")
    (said,) = memory_remarks([row_of("strict", fates=dict.fromkeys(FATES, 0))])
    assert said == "bm25 was not tested (strict panel; w at h = 2): no record was needed from it"


def test_a_row_without_a_scored_run_is_no_proof_of_anything():
    assert list(memory_remarks([row_of("strict") | {"scored": 0}])) == []


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
    _held, *remarks = memory_remarks([row_of("strict", name, settings, model_calls=calls)])
    assert len(remarks) == said
    assert all("a script, not a model, and its tokens are an estimate" in remark for remark in remarks)
