"""Adding to a folder: what was there stays, what is missing is run, and all is as if it had been planned at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.errors import UsageError
from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.runs.manifest import read_manifest, write_manifest
from eirkit.lacuna.runs.suite import Suite, join_suites, read_suite
from eirkit.lacuna.runs.sweep import recorded_suite, resume_sweep, start_sweep
from eirkit.records.sweeps import CellRow, Summary
from tests.runs import digest, lose_last, manifest, records

GRID = {"workload": "stepwise-sum", "model": "reference/calculator", "n": 12, "m": 4, "h": 2, "seeds": "0:3"}
RECALL = {**GRID, "workload": "store-recall", "model": "reference/recoverer", "memory": "key-value"}


def by_cell(summary: Summary) -> dict[str, CellRow]:
    """Return the rows without how long anything took."""
    found = {}
    for row in summary.rows:
        used = row.memory_system
        plain = None if used is None else replace(used, write_seconds=None, search_seconds=None, slowest_seconds=0.0)
        found[row.cell] = replace(row, memory_system=plain)
    return found


# What is recorded, what is added, and what is the same as both.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "further seeds": (GRID, {**GRID, "seeds": "3:6"}, {**GRID, "seeds": "0:6"}),
    "seeds that are there in part": (GRID, {**GRID, "seeds": "1:5"}, {**GRID, "seeds": "0:5"}),
    "seeds with a gap": (GRID, {**GRID, "seeds": [7, 12]}, {**GRID, "seeds": [0, 1, 2, 7, 12]}),
    "a further setting": (GRID, {**GRID, "h": [4, 2]}, {**GRID, "h": [2, 4]}),
    "a further model": (
        GRID,
        {**GRID, "model": "reference/sloppy"},
        {**GRID, "model": [GRID["model"], "reference/sloppy"]},
    ),
    "a further memory": (RECALL, {**RECALL, "memory": "bm25"}, {**RECALL, "memory": ["key-value", "bm25"]}),
    "another task": (
        GRID,
        {**GRID, "workload": "store-recall"},
        {**GRID, "workload": ["stepwise-sum", "store-recall"]},
    ),
    "more seeds of one cell": (
        {**GRID, "h": [4, 2]},
        {**GRID, "seeds": "0:5"},
        {"grid": [{**GRID, "h": 4}, {**GRID, "seeds": "0:5"}]},
    ),
    "grids that overlap": (
        {**GRID, "h": [4, 2]},
        {"grid": [{**GRID, "h": [4, 3], "seeds": "2:5"}, {**GRID, "workload": "stepwise-max", "h": [3, 2]}]},
        {
            "grid": [
                {**GRID, "h": 4, "seeds": "0:5"},
                {**GRID, "h": 2},
                {**GRID, "h": 3, "seeds": "2:5"},
                {**GRID, "workload": "stepwise-max", "h": [3, 2]},
            ]
        },
    ),
    "repeats": (
        {**GRID, "model": "reference/sloppy"},
        {**GRID, "model": "reference/sloppy", "repeats": 3},
        {**GRID, "model": "reference/sloppy", "repeats": 3},
    ),
    "seeds of what is repeated": (
        {**GRID, "model": "reference/sloppy", "repeats": 2},
        {**GRID, "model": "reference/sloppy", "repeats": 2, "seeds": "0:5"},
        {**GRID, "model": "reference/sloppy", "repeats": 2, "seeds": "0:5"},
    ),
    "a memory with settings of its own": (
        {**RECALL, "memory": ["text", "vector"], "memory_options": {"vector": {"embedding": "ngrams"}}},
        {**RECALL, "memory": "text", "seeds": "0:4"},
        {
            "grid": [
                {**RECALL, "memory": "text", "seeds": "0:4"},
                {**RECALL, "memory": "vector", "memory_options": {"vector": {"embedding": "ngrams"}}},
            ]
        },
    ),
}


@pytest.mark.parametrize(("first", "further", "whole"), CASES.values(), ids=CASES)
def test_runs_and_rows_are_those_of_a_sweep_that_had_everything_from_the_start(first, further, whole, tmp_path):
    start_sweep(read_suite(first), tmp_path / "parts")
    before = {record.run: record for record in records(tmp_path / "parts")}
    added = resume_sweep(tmp_path / "parts", read_suite(further))
    at_once = start_sweep(read_suite(whole), tmp_path / "whole")
    assert (added.complete, added.planned) == (True, at_once.planned)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert by_cell(added) == by_cell(at_once)
    assert read_summary(tmp_path / "parts") == added
    after = {record.run: record for record in records(tmp_path / "parts")}
    assert before.items() <= after.items(), "what was there is not run again"
    assert manifest(tmp_path / "parts").runs == at_once.planned


@pytest.mark.parametrize(("first", "further", "whole"), CASES.values(), ids=CASES)
def test_what_was_added_is_in_the_manifest_and_goes_on_without_the_suite(first, further, whole, tmp_path):
    start_sweep(read_suite(first), tmp_path)
    resume_sweep(tmp_path, read_suite(further))
    ended = digest(tmp_path)
    lose_last(tmp_path)
    lose_last(tmp_path)
    assert resume_sweep(tmp_path).complete
    assert digest(tmp_path) == ended
    planned = {(cell.id, seed) for cell, seeds in recorded_suite(tmp_path).plan() for seed in seeds}
    assert planned == {(cell.id, seed) for cell, seeds in read_suite(whole).plan() for seed in seeds}


def test_nothing_to_add_changes_nothing(tmp_path):
    suite = read_suite({**GRID, "h": [4, 2]})
    found = start_sweep(suite, tmp_path)
    written = (tmp_path / "manifest.json").read_bytes()
    for part in (suite, read_suite(GRID), read_suite({**GRID, "seeds": "1:2"})):
        assert resume_sweep(tmp_path, part) == found
    assert (tmp_path / "manifest.json").read_bytes() == written


def test_a_model_that_is_added_gets_its_control_and_the_others_keep_theirs(tmp_path):
    first = start_sweep(read_suite(GRID), tmp_path)
    controls = records(tmp_path, control=True)
    both = resume_sweep(tmp_path, read_suite({**GRID, "model": "reference/sloppy"}))
    assert both.rows[0] == first.rows[0]
    assert both.rows[1].control is not None
    assert records(tmp_path, control=True)[: len(controls)] == controls
    assert len(records(tmp_path, control=True)) == 2 * len(controls)


def test_a_sweep_without_texts_takes_only_what_keeps_none(tmp_path):
    start_sweep(read_suite({**GRID, "texts": False}), tmp_path / "parts")
    with pytest.raises(UsageError, match="keeps prompts and replies, or does not, unlike what is added"):
        resume_sweep(tmp_path / "parts", read_suite({**GRID, "seeds": "0:5"}))
    assert resume_sweep(tmp_path / "parts", read_suite({**GRID, "seeds": "0:5", "texts": False})).complete
    start_sweep(read_suite({**GRID, "seeds": "0:5", "texts": False}), tmp_path / "whole")
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


MEMORY = """
from eirkit.lacuna.memories.in_process import KeyValue

class Mine(KeyValue):
    '''My own.'''
"""


def own(folder: Path, **more: Any) -> Suite:
    (folder / "mine.py").write_text(MEMORY)
    return read_suite({**RECALL, "memory": f"{folder / 'mine.py'}:Mine", **more})


def test_a_plug_in_that_has_changed_is_refused_before_anything_is_written(tmp_path):
    out = tmp_path / "out"
    start_sweep(own(tmp_path), out)
    before = digest(out), (out / "manifest.json").read_bytes()
    further = own(tmp_path, seeds="0:5")
    (tmp_path / "mine.py").write_text(MEMORY.replace("My own.", "Another."))
    with pytest.raises(UsageError, match=r"mine\.py has changed since .* was started; restore it"):
        resume_sweep(out, further)
    assert (digest(out), (out / "manifest.json").read_bytes()) == before
    (tmp_path / "mine.py").write_text(MEMORY)
    assert resume_sweep(out, further).complete


def test_a_plug_in_may_be_added(tmp_path):
    out = tmp_path / "out"
    start_sweep(read_suite(RECALL), out)
    assert resume_sweep(out, own(tmp_path)).complete
    assert [Path(path).name for path in manifest(out).sources] == ["mine.py"]
    (tmp_path / "mine.py").write_text(MEMORY.replace("My own.", "Another."))
    with pytest.raises(UsageError, match=r"mine\.py has changed"):
        resume_sweep(out)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"eirkit": "0.0.1"}, "was started with eirkit 0.0.1, this is "),
        ({"prompt_sha256": "0" * 64}, "the prompts have changed since"),
    ],
)
def test_what_could_not_be_compared_is_refused(tmp_path, change, reason):
    start_sweep(read_suite(GRID), tmp_path)
    write_manifest(replace(read_manifest(tmp_path), **change), tmp_path)
    with pytest.raises(UsageError, match=reason):
        resume_sweep(tmp_path, read_suite({**GRID, "seeds": "0:5"}))
    assert len(records(tmp_path)) == 3


@pytest.mark.parametrize(
    "further", [{"repeats": 2, "seeds": "0:2"}, {"repeats": 2, "seeds": "3:5"}, {"repeats": 4, "seeds": "1:9"}]
)
def test_repeats_of_some_seeds_only_are_refused(further):
    recorded = read_suite({**GRID, "repeats": 3 if further["seeds"] == "3:5" else 1})
    with pytest.raises(UsageError, match="give the same --repeats, or more of them with all seeds"):
        join_suites(recorded, read_suite({**GRID, **further}))


SEEDS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True)
GRIDS = st.fixed_dictionaries(
    {"h": st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True), "seeds": SEEDS},
    optional={"policy": st.lists(st.sampled_from(["fifo", "lru"]), min_size=1, max_size=2, unique=True)},
)


@given(GRIDS, GRIDS)
def test_both_suites_and_nothing_else_are_in_the_joined_one(first, second):
    suites = [read_suite({**GRID, **given}) for given in (first, second)]
    joined = join_suites(*suites)
    runs = [{(cell.id, seed) for cell, seeds in suite.plan() for seed in seeds} for suite in (*suites, joined)]
    assert runs[2] == runs[0] | runs[1]
    assert len(joined) == len(runs[2])
    assert read_suite(joined.settings).sha256() == joined.sha256(), "it can be read from a manifest"
    assert join_suites(joined, suites[1]).sha256() == joined.sha256()
