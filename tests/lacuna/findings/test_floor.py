"""The gap above the EIR floor: what was held, by hand and by doing what a store does, against what was needed."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.eir.demand import ClassCount, DemandCurve
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.findings.floor import (
    Cut,
    Floor,
    Holdings,
    cuts_of,
    floor_of,
    floor_record,
    held_records,
    holdings,
)
from eirkit.lacuna.findings.summary import pool_floors
from eirkit.lacuna.memories.factory import LimitedMemory
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, MemoryCall
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.events import Decision, MemoryExchange
from tests.lacuna.running import eirkit
from tests.runs import events, records

ROUNDING = 1e-9  # a logarithm taken of a product, and a product of logarithms


def written(*steps: int) -> list[Consultation]:
    return [Consultation(step, MemoryCall("write", f"A_{step} = 1", (step,)), (), 0.0) for step in steps]


def lost(t: int, step: int, *, held: bool = False) -> Consultation:
    return Consultation(t, MemoryCall("search", "?", (step,)), (), 0.0, 0, (step,), (step,) if held else ())


def arrived(t: int, *retained: int) -> Decision:
    return Decision(t, (), retained, (), (), (), (1,), None)


def test_what_is_written_is_held_from_its_step_on():
    assert held_records(4, [], written(1, 3)) == (0, 1, 1, 2, 2)


def test_what_is_in_sight_is_held_too_and_counts_once():
    """After step 2 the store has 1; step 3 arrives with 1 and 2 in sight: two records in all."""
    decisions = [arrived(1), arrived(2, 1), arrived(3, 1, 2)]
    assert held_records(3, decisions, written(1)) == (0, 1, 2, 1)


def test_a_store_is_held_to_its_limit():
    assert held_records(5, [], written(1, 2, 3, 4, 5), limit=2) == (0, 1, 2, 2, 2, 2)


def test_what_the_store_turns_out_not_to_have_is_not_held():
    found = [*written(1, 2), lost(3, 1), lost(3, 2, held=True)]
    assert held_records(4, [], found) == (0, 1, 2, 1, 1)


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 4))
def test_the_count_is_that_of_a_store_under_the_same_limit(steps, limit):
    """Another way to the number: a real store, limited as in the strict panel, is asked after every write."""
    store = LimitedMemory(KeyValue(), limit)

    async def records() -> list[int]:
        counts = []
        for step in steps:
            await store.write(Item(f"A_{step}", f"A_{step} = 1"))
            counts.append((await store.usage()).records or 0)
        return counts

    at = [Consultation(t, MemoryCall("write", "", (step,)), (), 0.0) for t, step in enumerate(steps, 1)]
    assert list(held_records(len(steps), [], at, limit))[1:] == asyncio.run(records())


def said(t: int, step: int, records: int | None, size: int | None = None) -> Consultation:
    return Consultation(t, MemoryCall("write", "", (step,)), (), 0.0, records=records, bytes=size)


def test_what_the_system_says_counts_where_it_can_tell():
    """It keeps one of three and says so. After step 2 both 1 and 2 are in sight; 3, in sight after steps 3 and 4, was
    never written and comes on top; in the end nothing is in sight."""
    writes = [said(1, 1, 1, 10), said(2, 2, 1, 12), said(4, 4, 1, 11)]
    decisions = [arrived(1), arrived(2, 1), arrived(3, 1, 2), arrived(4, 2, 3), arrived(5, 3, 4)]
    assert holdings(5, decisions, writes) == Holdings((0, 1, 2, 2, 2, 1), (None, 10, 12, 12, 11, 11), "system")


def test_what_was_written_counts_where_it_cannot():
    writes = [said(1, 1, None, 10), said(2, 2, 1)]
    assert holdings(2, [], writes) == Holdings((0, 1, 2), (None, 10, None), "writes")
    assert holdings(1, [], []) == Holdings((0, 0), (None, None), "writes")


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(1, 4))
def test_an_honest_system_and_the_harness_count_the_same(steps, limit):
    """Two ways to one number: a limited store's own account, and what is known of its writes."""
    store = LimitedMemory(KeyValue(), limit)

    async def written_down() -> list[Consultation]:
        found = []
        for t, step in enumerate(steps, 1):
            await store.write(Item(f"A_{step}", f"A_{step} = 1"))
            used = await store.usage()
            found.append(said(t, step, used.records, used.bytes))
        return found

    consultations = asyncio.run(written_down())
    assert holdings(len(steps), [], consultations, limit).records == held_records(len(steps), [], consultations, limit)


CURVE = DemandCurve(
    (ClassCount.exactly(1), ClassCount.exactly(100), None, ClassCount(4, 16), ClassCount.exactly(1)), ""
)


def test_gaps_by_hand():
    """Records of 4 bits: after step 1 one is held, 4 bits, and log2(100) are needed; of bounds the lower one counts."""
    cuts = cuts_of(CURVE, (0, 1, 2, 3, 3), 4.0)
    assert [cut.t for cut in cuts] == [0, 1, 3, 4]
    assert cuts[1].needed_bits == pytest.approx(6.643856, abs=1e-6)  # as many digits as are written here
    assert cuts[1].held_bits < cuts[1].needed_bits
    assert cuts[2].held_bits > cuts[2].needed_bits
    assert cuts[2] == Cut(3, 2.0, 3, 12.0)
    assert floor_of(cuts) == Floor(cuts[1].needed_bits, 12.0, 1)


def test_nothing_needed_has_no_ratio():
    assert Floor(0.0, 12.0, 0).ratio is None
    assert Floor(4.0, 12.0, 0).ratio == 3.0
    assert floor_of(()) == Floor(0.0, 0.0, 0)
    assert pool_floors([]) is None


def test_runs_are_pooled_by_their_peaks():
    first = floor_record(CURVE, Holdings((0, 1, 2, 3, 3), (None, 10, 20, 30, 30), "system"), 4.0)
    second = floor_record(CURVE, Holdings((0, 2, 2, 1, 1), (None,) * 5, "writes"), 4.0)
    pooled = pool_floors([first, second])
    assert pooled is not None
    assert (pooled.held_bits, pooled.short_cuts) == (12.0, 1 / 10)
    assert pooled.ratio == 12.0 / first.needed_bits
    assert (pooled.counted, pooled.held_bytes) == ("writes", 30)


GRID = {"workload": "store-recall", "model": "reference/recoverer", "n": 16, "m": 8, "h": 2, "seeds": "0:2"}


def test_a_sweep_says_what_was_needed_and_held(tmp_path, capsys):
    """Ten thousand values a record: key–value holds all eight STOREs, the task needs half of its window, ⌈8/2⌉."""
    suite = read_suite(GRID | {"memory": "key-value", "panel": ["strict", "native"]})
    strict, native = (row.memory_system for row in start_sweep(suite, tmp_path / "out").rows)
    bits = 13.287712379549449  # log2(10^4)
    assert native.floor.needed_bits == pytest.approx(4 * bits, abs=ROUNDING)
    assert strict.floor.held_bits == pytest.approx(2 * bits, abs=ROUNDING)
    assert strict.floor.ratio == pytest.approx(0.5, abs=ROUNDING)
    assert strict.floor.short_cuts > 0 == native.floor.short_cuts
    assert (strict.floor.counted, native.floor.held_bytes) == ("system", native.bytes)
    assert eirkit("eir", "curve", "store-recall", "--n", "16", "--m", "8", "--json") == 0
    curve = json.loads(capsys.readouterr().out)
    assert native.floor.needed_bits == pytest.approx(curve["peak_bits"], abs=ROUNDING)


def test_what_was_held_is_what_the_events_say(tmp_path):
    folder = tmp_path / "out"
    start_sweep(read_suite(GRID | {"memory": "key-value"}), folder)
    for record in records(folder):
        own = events(folder, record.run)
        writes = [event for event in own if isinstance(event, MemoryExchange) and event.verb == "write"]
        stores = {int(event.text.split()[0][2:]): event.t for event in writes}
        seen = {event.t - 1: set(event.retained) for event in own if isinstance(event, Decision)}
        held = [len({s for s, at in stores.items() if at <= t} | seen.get(t, set())) for t in range(17)]
        assert list(record.memory.floor.held_records) == held


@pytest.mark.parametrize("memory", ["broken-drops", "null"])
def test_a_system_that_drops_records_holds_less_than_it_was_given_at_every_cut(tmp_path, memory):
    folder = tmp_path / "out"
    start_sweep(read_suite(GRID | {"memory": [memory, "key-value"]}), folder)
    floors = [record.memory.floor for record in records(folder)]
    assert {floor.counted for floor in floors} == {"system"}
    for lossy, whole in zip(floors[:2], floors[2:], strict=True):
        pairs = list(zip(lossy.held_records, whole.held_records, strict=True))
        assert all(less <= more for less, more in pairs)
        assert pairs[-1][0] < pairs[-1][1]


def test_a_workload_without_a_closed_form_has_no_floor_in_the_summary(tmp_path):
    suite = read_suite(GRID | {"workload": "stepwise-max", "memory": "key-value"})
    (row,) = start_sweep(suite, tmp_path / "out").rows
    assert row.memory_system.floor is None
