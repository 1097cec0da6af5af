"""Suites: what people write becomes exactly the cells they mean, and nothing unclear is run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from eirkit.errors import InputFileError, SpecError, UnknownNameError, UsageError
from eirkit.lacuna.runs.suite import AXES, Suite, load_suite, read_suite
from eirkit.records.settings import Access
from eirkit.seeds import read_seeds, show_seeds

PLAIN = {"workload": "stepwise-sum", "model": "reference/calculator"}


def cells(document):
    return [cell for cell, _ in read_suite(document).plan()]


def test_two_keys_are_a_suite_and_the_rest_has_defaults():
    ((cell, seeds),) = read_suite(PLAIN).plan()
    assert cell.access == Access("controlled", "window", None, h=16, reads=0, recomputations=0, actions=200)
    assert (cell.task.n, cell.task.m, list(seeds)) == (64, 16, [0, 1, 2])


def test_a_grid_is_the_product_of_its_lists_and_h_changes_fastest():
    found = cells({**PLAIN, "workload": ["stepwise-sum", "store-recall"], "m": [8, 16], "h": [4, 2]})
    assert [(c.task.workload, c.task.m, c.access.h) for c in found] == [
        ("stepwise-sum", 8, 4), ("stepwise-sum", 8, 2), ("stepwise-sum", 16, 4), ("stepwise-sum", 16, 2),
        ("store-recall", 8, 4), ("store-recall", 8, 2), ("store-recall", 16, 4), ("store-recall", 16, 2),
    ]  # fmt: skip


def test_keys_above_the_grids_hold_where_a_grid_does_not_say_otherwise():
    document = {**PLAIN, "h": 4, "seeds": "0:2", "grid": [{"condition": "lru"}, {"h": [8, 2], "seeds": 7}]}
    found = [(c.access.condition, c.access.h, list(seeds)) for c, seeds in read_suite(document).plan()]
    assert found == [("lru", 4, [0, 1]), ("controlled", 8, [7]), ("controlled", 2, [7])]


def test_h_is_the_window_where_it_is_not_given():
    assert [c.access.h for c in cells({**PLAIN, "m": [8, 12]})] == [8, 12]


@pytest.mark.parametrize(
    ("given", "reads", "recomputations"),
    [
        ({"condition": "paging"}, None, 0),  # forced paging meters its reads and does not limit them
        ({"condition": "lru"}, 0, 0),
        ({"condition": "lru", "b_oracle": 5, "b": "unlimited"}, 5, None),
        ({"memory": "key-value"}, 0, 0),
        ({"memory": "key-value", "b_oracle": "unlimited"}, None, 0),
    ],
)
def test_budgets_are_what_the_condition_implies_unless_they_are_given(given, reads, recomputations):
    (cell,) = cells({**PLAIN, **given})
    assert (cell.access.reads, cell.access.recomputations) == (reads, recomputations)


def test_a_memory_makes_the_run_agent_managed():
    (cell,) = cells({**PLAIN, "memory": "key-value"})
    assert (cell.access.condition, cell.access.memory, cell.access.policy) == ("external", "key-value", None)


REFUSED = [
    ({}, "no workload is given; every grid needs one"),
    ({"workload": "stepwise-sum"}, "no model is given"),
    ({**PLAIN, "workload": "stepwise-smu"}, "did you mean 'stepwise-sum'"),
    ({**PLAIN, "seds": 3}, "no key named 'seds'; did you mean 'seeds'"),
    ({**PLAIN, "grid": [{"polcy": "lru"}]}, "no key named 'polcy'; did you mean 'policy'"),
    ({**PLAIN, "grid": [{"texts": False}]}, "no key named 'texts'"),
    ({**PLAIN, "grid": {"h": 4}}, r"write \[\[grid\]\] above each"),
    ({**PLAIN, "grid": []}, r"write \[\[grid\]\] above each"),
    ({**PLAIN, "h": []}, "h is an empty list"),
    ({**PLAIN, "h": "4"}, "h = '4' is not a whole number"),
    ({**PLAIN, "h": True}, "h = True is not a whole number"),
    ({**PLAIN, "h": 0}, "h = 0 is too small"),
    ({**PLAIN, "h": [4, 4]}, "occurs twice; list each value"),
    ({**PLAIN, "grid": [{}, {}]}, "occurs twice; list each value and each grid once"),
    ({**PLAIN, "n": 0}, "n = 0 is out of range"),
    ({**PLAIN, "seeds": "3:3"}, "seeds = '3:3' must name"),
    ({**PLAIN, "seeds": [1, 1]}, "different seeds"),
    ({**PLAIN, "seeds": "0:99999999999"}, "must name"),
    ({**PLAIN, "condition": "lur"}, "no condition named 'lur'; did you mean 'lru'"),
    ({**PLAIN, "policy": "lur"}, "no policy named 'lur'; did you mean 'lru'"),
    ({**PLAIN, "memory": "key-valu"}, "no memory named 'key-valu'; did you mean 'key-value'"),
    ({**PLAIN, "condition": "lru", "policy": "fifo"}, "a policy needs condition"),
    ({**PLAIN, "condition": "lru", "memory": "null"}, "use a second"),
    ({**PLAIN, "condition": "external"}, "needs a memory system"),
    ({**PLAIN, "condition": "floor", "b_oracle": 3}, "condition 'floor' has no recovery"),
    ({**PLAIN, "b_oracle": 3}, "Controlled Retention has no recovery"),
    ({**PLAIN, "b_oracle": "lots"}, "is not a budget; give a number or 'unlimited'"),
    ({**PLAIN, "b_oracle": -1}, "is not a budget"),
    ({**PLAIN, "condition": "lru", "actions": 0}, "at least 1 action"),
    ({**PLAIN, "condition": "lru", "context_tokens": 99}, "apply to the compaction condition"),
    ({**PLAIN, "model_options": {"temprature": 1}}, "no model option named 'temprature'; did you mean 'temperature'"),
    ({**PLAIN, "model_options": {"retries": -1}}, "retries = -1 is invalid; give a whole number from 0"),
    ({**PLAIN, "model_options": {"timeout_seconds": float("nan")}}, "timeout_seconds = nan is invalid"),
    ({**PLAIN, "model_options": 3}, "model_options is not a table"),
    ({**PLAIN, "model_options": 3, "grid": [{"model_options": {}}]}, "model_options is not a table"),
    ({**PLAIN, "texts": "no"}, "texts = 'no' is neither true nor false"),
    ({**PLAIN, "name": "../up"}, "cannot name a folder"),
    ({**PLAIN, "n": list(range(20, 1020)), "m": list(range(1, 12)), "seeds": "0:9999999"}, "runs are too many"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "message"), REFUSED, ids=lambda item: "" if isinstance(item, dict) else item)
def test_what_is_unclear_is_refused_before_anything_runs(document, message):
    with pytest.raises(UsageError, match=message):
        read_suite(document)


@pytest.mark.parametrize(("value", "seeds"), [(3, [3]), ("0,4,9", [0, 4, 9]), ("2:5", [2, 3, 4]), ([7, 1], [7, 1])])
def test_seeds_are_written_in_four_ways(value, seeds):
    assert list(read_seeds(value)) == seeds


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8, unique=True))
def test_seeds_survive_being_shown(seeds):
    assert list(read_seeds(show_seeds(seeds))) == seeds


def one_or_more(values):
    return values | st.lists(values, min_size=1, max_size=2, unique=True)


GRIDS = st.fixed_dictionaries(
    {"workload": one_or_more(st.sampled_from(["stepwise-sum", "store-recall", "running-max"]))},
    optional={
        "model": one_or_more(st.sampled_from(["reference/calculator", "reference/sloppy", "openai/any"])),
        "m": one_or_more(st.integers(1, 9)),
        "n": one_or_more(st.integers(10, 20)),
        "h": one_or_more(st.integers(1, 9)),
        "condition": one_or_more(st.sampled_from(["lru", "scratch", "kv", "paging"])),
        "b": one_or_more(st.sampled_from([0, 3, "unlimited"])),
        "seeds": st.sampled_from([4, "0:3", [5, 2]]),
        "model_options": st.fixed_dictionaries({}, optional={"temperature": st.sampled_from([0.0, "default", 1])}),
    },
)


@st.composite
def documents(draw):
    document = {**PLAIN, "condition": "lru", **draw(GRIDS)}
    if draw(st.booleans()):
        document["grid"] = [{"h": 99}, {"h": 98, **draw(GRIDS)}]
    return document


@given(documents())
def test_the_canonical_form_says_the_same_and_survives_a_file(document):
    try:
        suite = read_suite(document)
    except UsageError:
        return  # two grids may draw the same cell
    again = read_suite(json.loads(json.dumps(suite.settings)))
    assert [(cell.id, list(seeds)) for cell, seeds in again.plan()] == [(c.id, list(s)) for c, s in suite.plan()]
    assert again.sha256() == suite.sha256()
    assert again.settings == suite.settings
    assert len(suite) == sum(len(seeds) for _, seeds in suite.plan())


BASE = {**PLAIN, "condition": "lru", "h": [4, 2], "seeds": "0:4"}
CHANGES = [
    {"h": [4, 3]}, {"h": [2, 4]}, {"seeds": "0:5"}, {"seeds": "1:5"}, {"m": 8}, {"n": 65}, {"digits": 3}, {"b": 1},
    {"b_oracle": "unlimited"}, {"condition": "lfu"}, {"model": "reference/guesser"}, {"texts": False}, {"actions": 100},
    {"model_options": {"protocol": "schema"}}, {"model_options": {"temperature": 1.0}}, {"model_options": {"seed": 1}},
    {"model_options": {"extra": {"p": "0.2"}}}, {"model_options": {"base_url": "http://127.0.0.1:1/v1"}},
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_whatever_changes_a_record_changes_the_hash(change):
    assert read_suite({**BASE, **change}).sha256() != read_suite(BASE).sha256()


@pytest.mark.parametrize(
    "same",
    [
        {"name": "other"},
        {"n": 64, "m": 16, "actions": 200},  # the defaults, spelled out
        {"seeds": [0, 1, 2, 3]},
        {"model_options": {"connections": 1, "retries": 0, "timeout_seconds": 5.0}},
    ],
    ids=repr,
)
def test_what_changes_no_record_does_not(same):
    assert read_suite({**BASE, **same}).sha256() == read_suite(BASE).sha256()


def test_cells_have_ids_of_their_own():
    plain = cells(PLAIN)[0]
    others = [
        replace(plain, model="reference/guesser"),
        replace(plain, task=replace(plain.task, m=8)),
        replace(plain, access=structs.replace(plain.access, h=4)),
        replace(plain, options=replace(plain.options, seed=1)),
    ]
    assert len({plain.id, *(cell.id for cell in others)}) == 5
    assert replace(plain, options=replace(plain.options, connections=1)).id == plain.id


def test_a_file_is_read_with_options_over_it(tmp_path):
    path = tmp_path / "pressure.toml"
    path.write_text(
        'workload = "stepwise-sum"\nmodel = "reference/calculator"\nm = 8\n[model_options]\ntemperature = 1.0\n'
        '[[grid]]\nh = [8, 4]\n[[grid]]\ncondition = "lru"\nh = 2\nmodel_options = { retries = 1 }\n'
    )
    suite = load_suite(path, {"h": 3, "model_options": {"connections": 2}})
    assert suite.name == "pressure"
    assert [(c.access.condition, c.access.h) for c, _ in suite.plan()] == [("controlled", 3), ("lru", 3)]
    assert [(c.options.temperature, c.options.retries, c.options.connections) for c, _ in suite.plan()] == [
        (1.0, 4, 2),
        (1.0, 1, 2),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h = [", r"suite.toml is not TOML .*; see docs/run-a-sweep.md"),
        ("hh = 4", r"suite.toml: no key named 'hh'; did you mean 'h'\? known: "),
        ("grid = 3", r"suite.toml: `grid` is not a list"),
    ],
)
def test_a_file_with_a_fault_is_named(tmp_path, text, message):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    with pytest.raises(InputFileError, match=message):
        load_suite(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputFileError, match=r"cannot read .*none.toml: No such file"):
        load_suite(tmp_path / "none.toml")


def test_nothing_given_changes_nothing():
    document = {**PLAIN, "grid": [{"h": 4}, {"h": 2}]}
    assert read_suite(document, {}).settings == read_suite(document).settings


def test_errors_keep_their_kind():
    with pytest.raises(UnknownNameError):
        read_suite({**PLAIN, "seds": 3})
    with pytest.raises(SpecError):
        read_suite({**PLAIN, "h": "x"})


def test_a_large_grid_is_not_held_in_memory():
    # A hundred thousand cells are planned one by one; asking for the first must not make the others.
    suite = Suite(read_suite({**PLAIN, "n": 64, "h": [1]}).grids)
    grid = replace(suite.grids[0], axes={**suite.grids[0].axes, "h": tuple(range(1, 100_001))})
    assert len(Suite((grid,))) == 300_000
    assert next(Suite((grid,)).plan())[0].access.h == 1


def test_every_axis_can_be_given():
    assert set(AXES) >= {"workload", "model", "condition", "policy", "memory", "h", "m", "n", "b", "b_oracle"}
