"""Comparisons with the best: their level and power, by hand and by brute force."""

from __future__ import annotations

import math
import random
import time
import tracemalloc
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev, variance

import numpy as np
import pytest
from studies import choose_power

from eirkit.lacuna.findings.intervals import student
from eirkit.lacuna.findings.ranking import (
    LOOKS,
    OUTSIDE,
    POWER,
    RAREST,
    rank,
    tasks_to_separate,
    unseen,
)

DRAWS = 300
ERRORS = 3  # standard errors of a share of so many draws
SECONDS, BYTES = 5, 300e6  # a second on an idle machine
# Quantiles of Student's t, two-sided, from a published table: (level, degrees of freedom) → t.
TABLE = {(0.05, 19): 2.093, (0.01, 24): 2.797}


def at_most(share: float, draws: int = DRAWS) -> float:
    return share + ERRORS * math.sqrt(share * (1 - share) / draws)


def at_least(share: float, draws: int = DRAWS) -> float:
    return share - ERRORS * math.sqrt(share * (1 - share) / draws)


def drawn(random_: random.Random, means: dict[str, float], tasks: int, cells: int = 1) -> tuple[dict, list]:
    """Values of candidates that share the difficulty of each task, in several cells of each task."""
    values = {name: [] for name in means}
    labels = []
    for task in range(tasks):
        hard = random_.gauss(0, 0.2)
        for _ in range(cells):
            labels.append(task)
            for name, mean in means.items():
                values[name].append(mean + hard + random_.gauss(0, 0.1))
    return values, labels


def tail(ratio: float, freedom: float) -> float:
    """The probability that Student's t exceeds a ratio, from its density by Simpson's rule."""
    steps = 400
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    at = np.linspace(0, abs(ratio), steps + 1)
    density = scale * (1 + at * at / freedom) ** (-(freedom + 1) / 2)
    within = abs(ratio) / steps / 3 * (density[0] + density[-1] + 4 * density[1::2].sum() + 2 * density[2:-1:2].sum())
    return 0.5 - math.copysign(within, ratio)


def worse(ranking) -> set[str]:
    return {one.name for one in ranking.standings if one.place == "worse"}


@pytest.mark.parametrize("spread", ["pooled", "own", "ceiling"])
@pytest.mark.parametrize("candidates", [2, 10])
@pytest.mark.parametrize(("faulty", "share"), [(False, 0.05), (True, 0.08)])
def test_equal_candidates_are_rarely_put_in_an_order(spread, candidates, faulty, share):
    """The short form of studies/choose_power.py: also where half of them fail rarely, and then on a whole world."""
    random_, draw = np.random.default_rng([5, candidates]), choose_power.SPREADS[spread]
    fields = (draw(random_, 12, candidates) for _ in range(DRAWS))
    wrong = sum(
        choose_power.compared(choose_power.with_faults(random_, field, faulty * candidates // 2)).any()
        for field in fields
    )
    assert wrong / DRAWS <= at_most(share)


def test_six_points_are_found_among_ten_candidates_on_24_worlds():
    rows = choose_power.powers(100, 3, ["pooled"])
    power = {row["case"]: row["with the best"] for row in rows if (row["candidates"], row["worlds"]) == (10, 24)}
    assert power["1 ahead of 9 by 6 points"] >= at_least(0.6, 100)
    assert power["5 ahead of 5 by 6 points"] >= at_least(0.8, 100)
    assert power["1 ahead of 9 by 10 points"] >= at_least(0.95, 100)


def test_equal_candidates_are_rarely_put_in_an_order_at_two_looks():
    rows = [row["with the best"] for row in choose_power.looks(DRAWS, 4)]
    assert max(rows[::2]) <= at_most(0.05)
    assert max(rows[1::2]) <= at_most(0.08)
    assert sum(LOOKS) == pytest.approx(OUTSIDE)


def test_the_distances_from_the_best_hold_at_once():
    random_ = random.Random(21)
    means = {"a": 0.7, "b": 0.6, "c": 0.6, "d": 0.2}
    held = 0
    for _ in range(DRAWS):
        found = rank(*drawn(random_, means, 15, 2))
        held += all(
            one.low <= max(means.values()) - means[one.name] <= one.high and (one.place == "worse") <= (one.name != "a")
            for one in found.standings
        )
    assert held / DRAWS >= at_least(0.95)


def test_of_two_candidates_the_interval_is_the_paired_one():
    random_ = random.Random(3)
    values = {name: [random_.random() for _ in range(20)] for name in "ab"}
    found = rank(values, range(20), share=False)
    first, second = found.standings
    apart = [x - y for x, y in zip(values[first.name], values[second.name], strict=True)]
    half = TABLE[0.05, 19] * stdev(apart) / math.sqrt(20)
    assert second.behind == pytest.approx(fmean(apart))
    assert (second.low, second.high) == (
        pytest.approx(max(0, fmean(apart) - half), abs=1e-4),  # the table has three decimals
        pytest.approx(fmean(apart) + half, abs=1e-4),
    )
    assert found.spread == pytest.approx(stdev(apart))


def test_each_variance_is_the_mean_of_its_own_and_that_of_all_pairs():
    random_ = random.Random(4)
    values = {name: [random_.gauss(mean, 1) for _ in range(12)] for name, mean in (("a", 1.5), ("b", 1), ("c", 0))}
    found = rank(values, range(12), share=False)
    own = {
        frozenset(pair): variance([x - y for x, y in zip(*(values[name] for name in pair), strict=True)]) / 12
        for pair in combinations("abc", 2)
    }
    error = math.sqrt((own[frozenset("ac")] + fmean(own.values())) / 2)
    half = student(11 * 4 * 2 / 5, 1 - 2 * 0.05 / 6) * error  # 8/5 of the degrees of freedom, six one-sided tests
    best, last = found.standings[0], found.standings[-1]
    assert (best.name, last.name) == ("a", "c")
    assert last.low == pytest.approx(max(0.0, last.behind - half))
    assert last.high == pytest.approx(last.behind + half)


def test_who_is_worse_is_the_closed_test():
    """Every set of candidates that may all be best is tested at Bonferroni's level; y is worse if all with y fall."""
    random_ = random.Random(6)
    seen = set()
    for _ in range(60):
        names = "abcd"
        means = {name: random_.choice((0, 0.8)) for name in names}
        values = {name: [random_.gauss(mean, 0.5) for _ in range(10)] for name, mean in means.items()}
        pairs = list(combinations(names, 2))
        own = {p: variance([x - y for x, y in zip(values[p[0]], values[p[1]], strict=True)]) / 10 for p in pairs}
        pooled, freedom = fmean(own.values()), 9 * 4 * 3 / 6
        chance = dict.fromkeys(names, 1.0)
        for one, other in pairs:
            error = math.sqrt((own[one, other] + pooled) / 2)
            gap = fmean(values[one]) - fmean(values[other])
            chance[other] = min(chance[other], tail(gap / error, freedom))
            chance[one] = min(chance[one], tail(-gap / error, freedom))
        sets = [set(of) for size in range(1, 5) for of in combinations(names, size)]
        fallen = [of for of in sets if min(chance[name] for name in of) * len(of) * 3 <= 0.05]
        expected = {name for name in names if all(of in fallen for of in sets if name in of)}
        assert worse(rank(values, range(10), share=False)) == expected
        seen.add(len(expected))
    assert len(seen) > 2


def test_a_share_allows_for_a_fault_that_was_not_seen():
    values = {"a": [0.9, 0.94] * 100, "b": [0.85, 0.89] * 100}
    spread = rank(values, range(200), share=False)["b"]
    assert spread.low == pytest.approx(0.05, abs=1e-3), "what hardly varies has a narrow interval"
    assert unseen(200) == pytest.approx(1 - 0.05 ** (1 / 200))
    for tasks, rate in ((50, RAREST), (200, unseen(200))):
        found = rank({name: of[:tasks] for name, of in values.items()}, range(tasks))["b"]
        assert found.low == pytest.approx(max(0.0, 0.05 - rate * 0.92), abs=1.5e-3)  # 0.92: what a lost task costs


def test_what_never_varies_has_an_interval_too():
    found = rank({"slow": [5.0] * 8, "fast": [1.0] * 8, "quick": [1.0] * 8}, range(8), less_is_better=True, share=False)
    assert [one.name for one in found.standings] == ["fast", "quick", "slow"]
    assert (found.leaders, found["quick"].equal, found["slow"].equal) == (("fast", "quick"), True, False)
    assert found["slow"].low < 4 < found["slow"].high
    certain = rank({"a": [1.0] * 20, "b": [0.0] * 20}, range(20))["b"]
    assert certain.place == "worse"
    assert 0 < certain.low < 1, "an interval without width would claim that no task can differ"


def test_five_tasks_order_nobody():
    found = rank({"a": [1.0] * 5, "b": [0.0] * 5}, range(5))
    assert {one.place for one in found.standings} == {"not ranked"}
    assert found.leaders == ("a", "b")
    assert found["b"].low is None


@pytest.mark.parametrize(("questions", "chance"), [(1, 0.5), (1, 0.9), (3, 0.98)])
def test_one_question_a_task_gives_no_order_too_often(questions, chance):
    """With few questions two candidates often differ by the same amount in several tasks."""
    random_ = np.random.default_rng(8)
    shares = [random_.binomial(questions, chance, (5, 6)) / questions for _ in range(DRAWS)]
    wrong = sum(bool(worse(rank(dict(zip("abcde", of, strict=True)), range(6)))) for of in shares)
    assert wrong / DRAWS <= at_most(0.05)


@pytest.mark.parametrize("lead", [0.03, 0.1])
def test_the_wanted_tasks_show_a_difference_with_the_stated_probability(lead):
    random_ = np.random.default_rng(5)
    spread = 0.1 * math.sqrt(2)
    tasks = tasks_to_separate(lead, spread, 2)
    shown = 0
    for _ in range(DRAWS):
        a, b = random_.normal(0.95, 0.1, (2, tasks))
        shown += "b" in worse(rank({"a": a + lead, "b": b}, range(tasks)))
    assert shown / DRAWS == pytest.approx(POWER, abs=ERRORS * math.sqrt(0.16 / DRAWS) + 0.02)  # 0.02: t for normal
    assert tasks_to_separate(1e-6, spread, 2) is None


def test_strata_count_alike_and_their_variances_are_added():
    random_ = random.Random(7)
    tasks = [f"x{i}" for i in range(8)] + [f"y{i}" for i in range(20)]
    strata = ["x"] * 8 + ["y"] * 20
    values = {name: [random_.gauss(1.5 * (name == "a"), 1) for _ in tasks] for name in "ab"}
    found = rank(values, tasks, strata=strata, share=False)
    apart = [x - y for x, y in zip(values["a"], values["b"], strict=True)]
    means, errors = (fmean(apart[:8]), fmean(apart[8:])), (variance(apart[:8]) / 8, variance(apart[8:]) / 20)
    half = student(26, 0.95) * math.sqrt(sum(errors)) / 2
    assert found["b"].behind == pytest.approx(fmean(means))
    assert (found["b"].low, found["b"].high) == (
        pytest.approx(fmean(means) - half),
        pytest.approx(fmean(means) + half),
    )


def test_a_task_in_two_strata_is_one_task():
    random_ = random.Random(8)
    values = {name: [random_.gauss(1.5 * (name == "a"), 1) for _ in range(20)] for name in "ab"}
    tasks, strata = [*range(10)] * 2, ["x"] * 10 + ["y"] * 10
    both = rank(values, tasks, strata=strata, share=False)
    meant = {name: [(of[i] + of[i + 10]) / 2 for i in range(10)] for name, of in values.items()}
    once = rank(meant, range(10), share=False)
    assert (both["b"].low, both["b"].high) == (pytest.approx(once["b"].low), pytest.approx(once["b"].high))


def test_weights_are_repeated_cases():
    random_ = random.Random(9)
    tasks, counts = list(range(9)), [random_.randint(1, 5) for _ in range(9)]
    values = {name: [random_.random() for _ in tasks] for name in "abc"}
    repeated = {name: [v for v, n in zip(of, counts, strict=True) for _ in range(n)] for name, of in values.items()}
    once = rank(values, tasks, weights=counts).standings
    again = rank(repeated, [task for task, n in zip(tasks, counts, strict=True) for _ in range(n)]).standings
    for one, other in zip(once, again, strict=True):
        assert (one.name, one.place) == (other.name, other.place)
        assert (one.behind, one.low, one.high) == pytest.approx((other.behind, other.low, other.high))


def test_50_000_tasks_take_little_time_and_memory():
    random_ = np.random.default_rng(3)
    values = {str(name): random_.random(50_000).tolist() for name in range(18)}
    tasks = [f"task/{place}" for place in range(50_000)]
    start = time.perf_counter()
    rank(values, tasks)
    assert time.perf_counter() - start < SECONDS
    tracemalloc.start()
    try:
        rank(values, tasks)
        assert tracemalloc.get_traced_memory()[1] < BYTES
    finally:
        tracemalloc.stop()


def test_who_is_within_the_margin_is_said_only_where_tasks_suffice():
    random_ = np.random.default_rng(2)
    few, many = (dict(zip("ab", random_.normal(0.9, 0.03, (2, tasks)), strict=True)) for tasks in (40, 400))
    assert not rank(few, range(40)).is_settled
    found = rank(many, range(400))
    assert found.is_settled
    assert found.leaders in {("a", "b"), ("b", "a")}
    assert not rank(many, range(400), margin=0.005).is_settled
    same = {"a": [0.9] * 100, "b": [0.9] * 100}
    assert not rank(same, range(100)).is_settled, "a fault on 2% of the tasks goes unseen in 100 too often"
    assert rank({name: of * 2 for name, of in same.items()}, range(200)).is_settled


def test_the_documentation_shows_the_kept_table():
    text = (Path(__file__).parents[3] / "docs/choose.md").read_text("utf-8")
    for table in choose_power.summary():
        assert table.markdown() in text
