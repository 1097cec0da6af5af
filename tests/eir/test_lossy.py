"""Lossy EIR against every encoder and decoder of small contracts, and against values known by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from examples.ledger import last_entry, ledger
from examples.timezone import timezone

from eirkit.eir.contract import FiniteContract, count_contract, count_signatures
from eirkit.eir.lossy import EQUAL, Frontier, StateInterval, capacities
from eirkit.errors import ContractError, UsageError

RANDOM_CONTRACTS = 2_000
NOTHING = 0  # atoms solved exactly: none, so that bounds and constructed encoders are tested


@dataclass
class Drawn:
    """A random contract with random laws, as a table of responses."""

    rows: list[list[int]]
    likely: list[float]
    asked: list[float]

    @property
    def histories(self) -> range:
        return range(len(self.rows))

    @property
    def futures(self) -> range:
        return range(len(self.rows[0]))

    def respond(self, history: int, future: int) -> int:
        return self.rows[history][future]

    def history_weight(self, history: int) -> float:
        return self.likely[history]

    def future_weight(self, future: int) -> float:
        return self.asked[future]


@dataclass
class Shelf:
    """Full Lookup after its last store: m records of q values, one of which is asked for."""

    m: int
    q: int
    histories: list[tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.histories = list(product(range(self.q), repeat=self.m))

    @property
    def futures(self) -> range:
        return range(self.m)

    def respond(self, history: tuple[int, ...], future: int) -> int:
        return history[future]


def draw(seed: int) -> Drawn:
    rng = random.Random(seed)
    histories, futures, answers = rng.randint(1, 5), rng.randint(1, 3), rng.randint(1, 3)
    rows = [[rng.randrange(answers) for _ in range(futures)] for _ in range(histories)]
    uniform = rng.random() < 0.3
    likely = [1.0 if uniform else rng.choice([0.0, 1.0, 2.0, rng.random()]) for _ in range(histories)]
    asked = [1.0 if uniform else rng.choice([0.0, 1.0, rng.random()]) for _ in range(futures)]
    likely[0] += 0.5
    asked[0] += 0.5
    return Drawn(rows, likely, asked)


def best_of_all(contract: Drawn, states: int) -> tuple[float, float]:
    """Return the best share of right responses and of runs that are right throughout, over every encoder.

    Given a code and a future, the best decoder gives the likeliest right answer; for whole runs, the likeliest row.
    """
    p = [w / math.fsum(contract.likely) for w in contract.likely]
    mu = [w / math.fsum(contract.asked) for w in contract.asked]
    best = whole = 0.0
    for codes in product(range(states), repeat=len(p)):
        share = runs = 0.0
        for code in set(codes):
            members = [x for x, c in enumerate(codes) if c == code]
            for u, chance in enumerate(mu):
                right = {contract.rows[x][u] for x in members}
                share += chance * max(math.fsum(p[x] for x in members if contract.rows[x][u] == r) for r in right)
            rows = {tuple(contract.rows[x]) for x in members}
            runs += max(math.fsum(p[x] for x in members if tuple(contract.rows[x]) == row) for row in rows)
        best, whole = max(best, share), max(whole, runs)
    return best, whole


def score(contract: FiniteContract, frontier: Frontier, states: int) -> float:
    """Return what an encoder earns, by asking the contract itself."""
    encoder, table = frontier.encoder(states), frontier.table
    assert len(set(encoder.codes)) <= encoder.states <= states
    mu = getattr(contract, "future_weight", lambda future: 1.0)
    futures: Any = contract.futures
    total = math.fsum(map(mu, futures))
    return math.fsum(
        p * mu(u) / total
        for x, p, code in zip(table.histories, table.weights, encoder.codes, strict=True)
        for u in futures
        if mu(u) and encoder.decode(code, u) == contract.respond(x, u)
    )


def violations(seeds: range) -> Iterator[tuple[object, ...]]:
    """Yield where a frontier or an encoder differs from the best of all encoders, or a bound does not enclose it."""
    for seed in seeds:
        contract = draw(seed)
        exact, bounded = Frontier(contract), Frontier(contract, exact_atoms=NOTHING)
        for states in range(1, min(4, len(contract.rows)) + 1):
            best, whole = best_of_all(contract, states)
            point, interval = exact.point(states), bounded.point(states)
            if not point.exact or (point.lower, point.run) != pytest.approx((best, whole), abs=EQUAL):
                yield "exact", seed, states, point, best, whole
            if not interval.lower - EQUAL <= best <= interval.upper + EQUAL:
                yield "interval", seed, states, interval, best
            for frontier in (exact, bounded):
                promised, earned = frontier.point(states).lower, score(contract, frontier, states)
                if earned != pytest.approx(promised, abs=EQUAL):
                    yield "encoder", seed, states, earned, promised


def test_no_encoder_of_a_random_contract_leaves_the_bounds() -> None:
    assert list(violations(range(200))) == []


@pytest.mark.slow
def test_no_encoder_of_many_random_contracts_leaves_the_bounds() -> None:
    assert list(violations(range(200, 200 + RANDOM_CONTRACTS))) == []


@pytest.mark.parametrize("error", [0.0, 0.05, 0.2, 0.5])
def test_the_states_for_an_error_enclose_the_least_of_all_encoders(error: float) -> None:
    for seed in range(150):
        contract = draw(seed)
        grid = range(1, len(contract.rows) + 1)
        least, whole = (next(k for k in grid if best_of_all(contract, k)[kind] >= 1 - error - EQUAL) for kind in (0, 1))
        exact, bounded = Frontier(contract), Frontier(contract, exact_atoms=NOTHING).states_for(error)
        assert exact.states_for(error).lower == exact.states_for(error).upper == least, seed
        assert bounded.lower <= least <= bounded.upper, seed
        assert exact.states_for_run(error) == StateInterval(whole, whole), seed


@dataclass
class Told(Drawn):
    """A random contract in which part of the history is supplied beside the memory."""

    told: list[int]

    def given(self, history: int) -> int:
        return self.told[history]


def test_what_is_given_need_not_be_remembered() -> None:
    for seed in range(150):
        drawn = draw(seed)
        rng = random.Random(-seed)
        told = Told(drawn.rows, drawn.likely, drawn.asked, [rng.randrange(2) for _ in drawn.rows])
        parts = [[x for x, value in enumerate(told.told) if value == z] for z in (0, 1)]
        rows = [{tuple(drawn.rows[x]) for x in part} for part in parts]
        assert count_contract(told).classes == count_signatures(told) == max(map(len, rows))
        total = math.fsum(drawn.likely)
        exact, bounded = Frontier(told), Frontier(told, exact_atoms=NOTHING)
        for states in range(1, 4):
            # Whoever answers sees what is given, so each value is a contract of its own with all the states.
            best = whole = 0.0
            for part in parts:
                mass = math.fsum(drawn.likely[x] for x in part)
                if mass:
                    alone = Drawn([drawn.rows[x] for x in part], [drawn.likely[x] for x in part], drawn.asked)
                    share, run = best_of_all(alone, states)
                    best, whole = best + share * mass / total, whole + run * mass / total
            assert exact.point(states).lower == pytest.approx(best, abs=EQUAL), seed
            assert exact.point(states).run == pytest.approx(whole, abs=EQUAL), seed
            interval = bounded.point(states)
            assert interval.lower - EQUAL <= best <= interval.upper + EQUAL, seed


def test_one_bit_of_the_timezone_bug_is_right_five_times_in_six() -> None:
    # One bit keeps the file, which is always right; "aware" or "naive" is then right for 4 of 6 histories: 5/6.
    for exact_atoms in (14, NOTHING):
        frontier = Frontier(timezone(), exact_atoms=exact_atoms)
        found = [frontier.point(1 << bits) for bits in (0, 1, 2)]
        assert [p.lower for p in found] == pytest.approx([1 / 2, 5 / 6, 1])
        assert [p.upper for p in found] == pytest.approx([1 / 2, 5 / 6, 1])
        assert [p.run for p in found] == pytest.approx([1 / 3, 2 / 3, 1])


def test_full_lookup_of_three_bits() -> None:
    for exact_atoms in (14, NOTHING):
        frontier = Frontier(Shelf(3, 2), exact_atoms=exact_atoms)
        found = [frontier.point(1 << bits) for bits in range(4)]
        assert [p.lower for p in found] == pytest.approx([0.5, 0.75, 5 / 6, 1])
        assert [p.upper for p in found] == pytest.approx([0.5, 0.75, 5 / 6, 1])


def test_a_larger_shelf_has_a_certified_interval() -> None:
    frontier = Frontier(Shelf(3, 3))
    assert not frontier.solved
    for states in capacities(frontier.atoms):
        point = frontier.point(states)
        assert score(Shelf(3, 3), frontier, states) == pytest.approx(point.lower)
        assert 0 <= point.upper - point.lower < 0.06
    assert frontier.point(27).exact
    assert frontier.point(9).lower >= 7 / 9 - EQUAL  # two of three records, and a guess at the third


def test_a_process_is_asked_every_sequence_of_its_moves() -> None:
    frontier = Frontier(last_entry())
    assert frontier.atoms == frontier.count.classes == 32
    assert len(frontier.table.starts) == 3  # the fresh amount is known, so only the three pairs are questions
    assert frontier.point(1).lower == pytest.approx(0.25)
    # Eight states know one pair for certain and halve another ... or better; sums of pairs are uniform over 4 values.
    assert frontier.point(4).lower >= (1 + 2 / 4) / 3 - EQUAL


def test_what_has_no_expected_share_is_refused() -> None:
    with pytest.raises(ContractError, match="set its horizon"):
        Frontier(ledger())
    with pytest.raises(UsageError, match="no share"):
        Frontier(timezone()).states_for(1.0)
    for weights in ([0.0, 0.0], [1.0, -1.0], [1.0, math.nan]):
        with pytest.raises(ContractError, match="weight"):
            Frontier(Drawn([[0], [1]], weights, [1.0]))
