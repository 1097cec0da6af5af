"""Score tables: distances fall into buckets in order, files are checked, and the learned policy learned something."""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.tasks.policies import BUCKETS, EXACT, KINDS, MOST_USES, SHAPES, Learned, Scored, Tables, bucket
from eirkit.lacuna.tasks.policy import Outlook, Record, find_policy
from eirkit.lacuna.tasks.simulation.batch import count_misses
from eirkit.lacuna.tasks.simulation.plain import replay, structure_of
from eirkit.lacuna.tasks.simulation.table import batches
from eirkit.lacuna.tasks.task import TaskSpec

SEEDS = range(300)
STANDARD_ERRORS = 3.0  # a difference of means over 300 paired tasks that chance exceeds once in 370 looks


def test_buckets_are_exact_at_first_and_never_fall():
    found = [bucket(distance) for distance in range(2000)]
    assert found[:EXACT] == list(range(EXACT))
    assert all(b - a in (0, 1) for a, b in pairwise(found))
    assert found[-1] == BUCKETS - 1


def test_a_bucket_beyond_the_exact_ones_is_a_quarter_of_an_octave():
    edges = [distance for distance in range(1, 256) if bucket(distance) != bucket(distance - 1)]
    assert [e for e in edges if e >= EXACT] == [16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224]


@given(
    kind=st.integers(0, len(KINDS) - 1),
    present=st.integers(0, len(KINDS) - 1),
    left=st.integers(-300, 300),
    idle=st.integers(0, 300),
    uses=st.integers(1, 40),
)
def test_a_score_is_the_sum_of_one_entry_of_each_table(kind, present, left, idle, uses):
    tables = Learned.tables
    seen = min(uses, MOST_USES) - 1
    by_hand = (
        tables.left.reshape(len(KINDS), len(KINDS), BUCKETS)[kind, present, bucket(max(0, left))]
        + tables.idle.reshape(len(KINDS), MOST_USES, BUCKETS)[present, seen, bucket(idle)]
        + tables.uses.reshape(len(KINDS), len(KINDS), MOST_USES)[kind, present, seen]
    )
    assert tables.score(kind, present, left, idle, uses) == by_hand


def test_equal_scores_go_by_who_entered_first():
    class Flat(Scored):
        tables = Tables(**{name: np.zeros(shape, np.int64) for name, shape in SHAPES.items()})

    policy = Flat((0, 0, 0), (3, 3, 3))
    candidates = [Record(2, 5, 5, 1), Record(1, 4, 9, 3), Record(3, 10, 10, 1)]
    assert policy.victim(candidates, 3) == 1


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"left": 1}', "[" * 10_000, "\x00", json.dumps({name: [[0.5]] for name in SHAPES})],
    ids=["empty", "list", "nothing in it", "no table", "deep", "binary", "fractions"],
)
def test_a_file_that_holds_no_tables_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "tables.json").write_text(text, "utf-8")
    with pytest.raises(SpecError, match=r"tables\.json does not hold score tables; give a file") as refused:
        Tables.read(tmp_path / "tables.json")
    assert "\n" not in str(refused.value)


def tables_document() -> dict[str, list[list[int]]]:
    return {name: getattr(Learned.tables, name).tolist() for name in SHAPES}


def test_tables_of_another_shape_or_size_are_refused(tmp_path):
    document = tables_document()
    for name, table in {"left": document["left"][1:], "uses": [[1 << 40] * MOST_USES] * len(document["uses"])}.items():
        (tmp_path / "tables.json").write_text(json.dumps({**document, name: table}), "utf-8")
        with pytest.raises(SpecError, match=f"`{name}` must be"):
            Tables.read(tmp_path / "tables.json")


def test_the_shipped_tables_survive_a_round_trip(tmp_path):
    (tmp_path / "tables.json").write_text(json.dumps(tables_document()), "utf-8")
    again = Tables.read(tmp_path / "tables.json")
    assert all(np.array_equal(getattr(again, name), getattr(Learned.tables, name)) for name in SHAPES)
    shipped = json.loads((files("eirkit.lacuna.tasks") / "learned.json").read_text("utf-8"))
    assert shipped["kinds"] == list(KINDS)


class Changed(Learned):
    """Scores in a way of its own, so that the kernels must leave it alone."""

    def score(self, record: Record, step: int, now: int) -> int:
        return -super().score(record, step, now)


def test_a_policy_with_scores_of_its_own_is_asked():
    (batch,) = batches(TaskSpec("full-lookup", queries="zipf-shuffled"), range(5))
    found = count_misses(batch, Changed, [6], recovery="direct").references[:, 0]
    outlooks: list[Outlook] = [batch.outlook(row) for row in range(5)]
    assert found.tolist() == [
        replay(outlook, Changed.for_task(outlook), 6, recovery="direct").missed_references for outlook in outlooks
    ]
    assert found.tolist() != count_misses(batch, Learned, [6], recovery="direct").references[:, 0].tolist()


def missed(spec: TaskSpec, policy: str, h: int, recovery: str) -> np.ndarray:
    return np.concatenate(
        [count_misses(b, find_policy(policy), [h], recovery=recovery).references[:, 0] for b in batches(spec, SEEDS)]
    )


def margin(spec: TaskSpec, rival: str, h: int, recovery: str = "direct") -> float:
    """Return by how many standard errors of the paired difference the rival misses more."""
    apart = missed(spec, rival, h, recovery) - missed(spec, "learned", h, recovery)
    return float(apart.mean() / (apart.std(ddof=1) / len(apart) ** 0.5)) if apart.any() else 0.0


@pytest.mark.parametrize("rival", ["fifo", "lru", "theory"])
@pytest.mark.parametrize("h", [4, 8])
def test_it_beats_what_cannot_count_uses_where_some_labels_are_popular(rival, h):
    assert margin(TaskSpec("full-lookup", queries="zipf-shuffled"), rival, h) > STANDARD_ERRORS


def test_it_beats_what_does_not_know_that_a_recall_is_never_asked_for():
    for rival in ("fifo", "lru", "lfu"):
        assert margin(TaskSpec("store-recall"), rival, 8, "off") > STANDARD_ERRORS


@pytest.mark.parametrize("workload", ["stepwise-sum", "stepwise-max", "stepwise-topk", "full-lookup"])
@pytest.mark.parametrize("h", [4, 8, 12])
def test_where_nothing_can_be_learned_it_is_not_better(workload, h):
    assert margin(TaskSpec(workload), "theory", h) < STANDARD_ERRORS


def test_it_never_beats_hindsight():
    for spec in (TaskSpec("stepwise-sum"), TaskSpec("full-lookup", queries="zipf-shuffled")):
        assert (missed(spec, "learned", 8, "direct") >= missed(spec, "belady", 8, "direct")).all()


def test_structure_is_all_it_is_told():
    structure = structure_of(TaskSpec("stepwise-sum", n=6, m=3))
    told = [Learned.for_task(Outlook(structure, seed, future)) for seed, future in ((1, ((),) * 6), (2, ((1,),) * 6))]
    assert told[0].kinds == told[1].kinds
    assert told[0].last_use == told[1].last_use
