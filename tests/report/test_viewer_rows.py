"""Tables behind pages: filters, orders, facets and means against a slow reading of the same rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import UsageError
from eirkit.report.viewer.heat import Layout, heat, layout_of
from eirkit.report.viewer.tables import (
    ArrowColumns,
    Field,
    ListColumns,
    Query,
    RowTable,
    SharedValue,
    alike,
    label,
    telling,
)

FIELDS = (
    Field("name", "name", "text"),
    Field("kind", "kind", "text", facet=True),
    Field("size", "size"),
    Field("ok", "ok", "flag", facet=True),
)
ROUNDING = 1e-12  # of a mean of a few numbers, summed in another order

rows = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text("abAB", max_size=3),
            "kind": st.sampled_from(["x", "y", "z", None, ""]),
            "size": st.none() | st.integers(-5, 5) | st.floats(-2, 2),
            "ok": st.none() | st.booleans(),
        }
    ),
    max_size=12,
)


BY_KIND = Layout("kind", ("ok",), "size")


def table_of(listed: list[dict[str, Any]]) -> RowTable:
    columns = {one.key: [row[one.key] for row in listed] for one in FIELDS}
    return RowTable(FIELDS, ListColumns(columns, len(listed)))


def arrow_table_of(listed: list[dict[str, Any]]) -> RowTable:
    """The same rows as an analysis has them."""
    pyarrow = pytest.importorskip("pyarrow")
    types = {"name": pyarrow.string(), "kind": pyarrow.string(), "size": pyarrow.float64(), "ok": pyarrow.bool_()}
    columns = {key: pyarrow.array([row[key] for row in listed], kind) for key, kind in types.items()}
    return RowTable(FIELDS, ArrowColumns(pyarrow.table(columns)))


def as_floats(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "size": None if row["size"] is None else float(row["size"])} for row in listed]


def slow(listed: list[dict[str, Any]], query: Query) -> list[int]:
    """Choose rows one by one."""
    found = []
    for place, row in enumerate(listed):
        fits = all(label(row[key]) in labels for key, labels in query.equal)
        fits &= all(row[key] is not None and row[key] >= least for key, least in query.least)
        fits &= all(row[key] is not None and row[key] <= most for key, most in query.most)
        texts = [str(row["name"] or ""), str(row["kind"] or "")]
        fits &= not query.words or any(query.words.lower() in text.lower() for text in texts)
        if fits:
            found.append(place)
    return found


@given(rows, st.sampled_from(["", "a", "X"]), st.none() | st.integers(-3, 3), st.sets(st.sampled_from(["x", "y", "–"])))
def test_filters_choose_what_a_slow_reading_does(listed, words, bound, kinds):
    equal = (("kind", tuple(sorted(kinds))),) if kinds else ()
    bounds = (("size", float(bound)),) if bound is not None else ()
    for query in (Query(equal, bounds, (), words), Query(equal, (), bounds, words)):
        assert list(table_of(listed).choose(query)) == slow(listed, query)


@given(rows, st.sampled_from(["name", "kind", "size", "ok"]), st.booleans())
def test_an_order_is_one_and_what_is_not_known_comes_last(listed, key, descending):
    found = [listed[place][key] for place in table_of(listed).choose(Query(sort=key, descending=descending))]
    present = [cell for cell in found if cell not in (None, "")]
    assert all(cell in (None, "") for cell in found[len(present) :])
    keys = [str(cell) if key in ("name", "kind") else cell for cell in present]
    assert keys == sorted(keys, reverse=descending)
    assert sorted(map(repr, found)) == sorted(repr(row[key]) for row in listed)


@given(rows, st.integers(0, 15), st.integers(0, 6))
def test_pages_put_together_are_the_whole(listed, offset, limit):
    table = table_of(listed)
    page = table.page(Query(), offset, limit)
    assert [row["name"] for row in page.rows] == [row["name"] for row in listed][offset : offset + limit]
    assert page.matched == page.total == len(listed)


@given(rows)
def test_a_facet_counts_what_choosing_it_would_leave(listed):
    table = table_of(listed)
    query = Query(equal=(("ok", ("yes",)),))
    for facet in table.facets(query):
        others = () if facet.key == "ok" else query.equal
        for value in facet.values:
            chosen = table.choose(Query(equal=(*others, (facet.key, (value.label,)))))
            assert len(chosen) == value.rows


@given(rows)
def test_a_cell_of_the_heat_map_is_the_mean_of_its_runs(listed):
    found = heat(table_of(listed), Query(), BY_KIND)
    series = found.chart.series[0]
    for chosen, value, runs in zip(found.filters, series.value, found.runs, strict=True):
        own = [row["size"] for row in listed if {key: label(row[key]) for key in ("kind", "ok")} == chosen]
        known = [size for size in own if size is not None]
        assert runs == len(own)
        if known:
            assert value == pytest.approx(math.fsum(known) / len(known), abs=ROUNDING)
        else:
            assert value is None


def test_columns_that_say_nothing_are_left_out_and_what_all_share_is_said_once():
    columns: dict[str, list[Any]] = {"name": ["a", "b"], "kind": ["x", "x"], "size": [None, None], "ok": [True, None]}
    listed = ListColumns(columns, 2)
    known = telling(FIELDS, listed, ("name",))
    assert [(one.key, one.shown) for one in known] == [("name", True), ("kind", False), ("ok", True)]
    assert alike(RowTable(known, listed)) == (SharedValue("kind", "x"),)


@given(rows, st.sampled_from(["name", "kind", "size", "ok", ""]), st.booleans(), st.sampled_from(["", "a", "y"]))
def test_lists_and_arrow_tables_answer_alike(listed, key, descending, words):
    floats = as_floats(listed)
    query = Query(words=words, sort=key, descending=descending, least=(("size", -1.0),) if descending else ())
    plain, arrow = table_of(floats), arrow_table_of(floats)
    assert plain.page(query, 0, 100) == arrow.page(query, 0, 100)
    assert plain.facets(query) == arrow.facets(query)
    assert heat(plain, query, BY_KIND) == heat(arrow, query, BY_KIND)


def test_an_unknown_column_is_named_with_those_there_are():
    with pytest.raises(UsageError, match="no column named 'color'; known: name, kind, size, ok"):
        table_of([]).choose(Query(sort="color"))
    with pytest.raises(UsageError, match="is no figure"):
        heat(table_of([]), Query(), Layout("kind", ("ok",), "name"))


SETTINGS = (
    Field("model", "model", "text", facet=True, part="setting"),
    Field("memory", "memory", "text", facet=True, part="setting"),
    Field("profile", "profile", "text", facet=True, part="setting"),  # follows from the memory
    Field("h", "h", facet=True, part="setting"),
    Field("seed", "seed", part="replicate"),
    Field("accuracy", "accuracy", "share"),
)


def settings_table(runs: list[tuple[str, str | None, int, int, float]]) -> RowTable:
    """Runs as (model, memory, h, seed, accuracy)."""
    keys = ("model", "memory", "h", "seed", "accuracy")
    columns: dict[str, list[Any]] = {key: [run[place] for run in runs] for place, key in enumerate(keys)}
    columns["profile"] = [memory and f"{memory} as documented" for memory in columns["memory"]]
    return RowTable(SETTINGS, ListColumns(columns, len(runs)))


def test_a_cell_pools_neither_memories_nor_models_unless_somebody_asks_for_it_and_then_it_says_so():
    runs = [
        (model, memory, h, seed, value)
        for model in ("a", "b")
        for memory, value in (("good", 0.686), (None, 0.1))
        for h in (2, 4)
        for seed in (0, 1, 2)
    ]
    table = settings_table(runs)
    usual = layout_of(table, Query(), {})
    assert usual == Layout("h", ("model", "memory"), "accuracy")
    found = heat(table, Query(), usual)
    assert set(found.over) == {"3 runs over 3 seeds"}
    assert found.mixed == ()
    assert found.y == ("a · good", "a · no memory", "b · good", "b · no memory")
    assert {round(value, 9) for value in found.chart.series[0].value} == {0.686, 0.1}
    for place, filters in enumerate(found.filters):
        chosen = table.choose(Query(equal=tuple((key, (name,)) for key, name in filters.items())))
        assert len(chosen) == found.runs[place]
    pooled = heat(table, Query(), Layout("h", ("model",), "accuracy"))
    assert {round(value, 9) for value in pooled.chart.series[0].value} == {0.393}  # which describes neither
    assert set(pooled.over) == {"6 runs over memory good and –, 3 seeds"}
    assert pooled.mixed == ("memory",)


@given(st.lists(st.tuples(*[st.sampled_from("ab")] * 2, *[st.integers(0, 2)] * 2, st.floats(0, 1)), max_size=20))
def test_the_usual_layout_is_complete_and_has_no_column_too_many(runs):
    table = settings_table(runs)
    layout = layout_of(table, Query(), {})
    assert layout is not None
    settings = {(model, memory, h) for model, memory, h, _, _ in runs}
    assert len(heat(table, Query(), layout).runs) == len(settings)


def test_columns_that_an_address_asks_for_in_vain_are_not_used():
    table = settings_table([("a", "x", 2, 0, 0.5), ("b", "x", 4, 0, 0.5)])
    assert layout_of(table, Query(), {"x": "color", "y": "seed,model", "value": "size"}) == Layout(
        "h", ("model",), "accuracy"
    )
