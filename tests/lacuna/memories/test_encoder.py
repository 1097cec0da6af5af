"""The encoder of the frontier, run as a memory: what it reaches is what was promised."""

from __future__ import annotations

import asyncio
import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import pytest

from eirkit.eir.step_bounds import UniformRecords, WeightedRecords
from eirkit.errors import UsageError
from eirkit.lacuna.memories.encoder import BoundedEncoder
from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.tasks.frontier import frontier_of
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec, read_record
from eirkit.records.runs import RunRecord
from tests.report.folders import command
from tests.runs import records

SIGMAS = 4.0  # of a mean over tasks; the seeds are fixed, so a test that passes once always does


async def kept(values, bits, keep="newest") -> dict[int, int]:
    """Return what the encoder still says about records that were written in order."""
    memory = BoundedEncoder(bits=bits, keep=keep)
    await memory.reset("one")
    for t, value in enumerate(values, 1):
        await memory.write(Item(f"A_{t}", f"A_{t} = {value}"))
    found = await memory.search(" ".join(f"A_{t}" for t in range(1, len(values) + 1)), 99)
    return {t: record[0] for t, record in map(read_record, found)}


@pytest.mark.parametrize("bits", [0.0, 1.0, 2.0, math.log2(10), 4.5, 2 * math.log2(10), 7.0, 3 * math.log2(10)])
@pytest.mark.parametrize("fan_in", [1, 2])
def test_over_all_records_of_three_digits_it_reaches_the_promise_exactly(bits, fan_in):
    """One digit each, all lists, every set of references: what is not held counts as 0, as agents leave it out."""
    right = total = 0
    asked = list(combinations(range(1, 4), fan_in))

    async def tally() -> None:
        nonlocal right, total
        for values in product(range(10), repeat=3):
            held = await kept(values, bits)
            for refs in asked:
                total += 1
                right += sum(held.get(t, 0) for t in refs) % 10 == sum(values[t - 1] for t in refs) % 10

    asyncio.run(tally())
    assert Fraction(right, total) == Fraction(UniformRecords(3, fan_in, 10).kept(bits)).limit_denominator(10**6)


def test_it_has_no_more_states_than_its_bits_allow():
    async def states(bits: float) -> int:
        return len({tuple(sorted((await kept(v, bits)).items())) for v in product(range(10), repeat=3)})

    for bits in (0.0, 1.0, 1.6, 3.0, 3.4, 5.0, 6.7, 8.0):
        assert asyncio.run(states(bits)) <= 2**bits * (1 + 1e-9)


def test_under_a_zipf_law_the_oldest_are_kept():
    law = (6 / 11, 3 / 11, 2 / 11)

    async def share(bits: float) -> float:
        right = 0.0
        for values in product(range(10), repeat=3):
            held = await kept(values, bits, "oldest")
            right += sum(w for t, w in enumerate(law, 1) if held.get(t, 0) == values[t - 1])
        return right / 1000

    for bits in (0.0, 2.0, 3.5, 5.0, 7.0):
        assert asyncio.run(share(bits)) == pytest.approx(WeightedRecords(law, 10).kept(bits), abs=1e-9)


def runs(folder: Path, workload: str, bits: float, seeds: str, *more: object) -> list[RunRecord]:
    how = ("--panel", "strict", "--h", 8, "--m", 8, "--n", 32, "--digits", 1, "--actions", 400, "--seeds", seeds, *more)
    named = ("--memory", "encoder", "--set", f"encoder.bits={bits}", "--model", "reference/recoverer")
    command("lacuna", "run", workload, *named, *how, "--no-control", "--out", folder, "--json")
    return records(folder)


# Wrong answers of Stepwise Sum are written as well, and later sums are wrong with them; the promise is about a memory
# that is told the right answers, so there the answers are compared with the agent's own earlier ones.
JUDGED = {"full-lookup": "consuming_correct", "store-recall": "consuming_correct", "stepwise-sum": "self_consistent"}


@pytest.mark.parametrize("workload", JUDGED)
@pytest.mark.parametrize(
    ("bits", "seeds", "most"),
    [(13.3, 6, 0.08), *(pytest.param(bits, 100, 0.02, marks=pytest.mark.slow) for bits in (5.0, 13.3, 22.0))],
)
def test_in_a_sweep_it_scores_what_it_promises(tmp_path, workload, bits, seeds, most):
    ended = runs(tmp_path / "out", workload, bits, f"0:{seeds}")
    task = generate(TaskSpec(workload, n=32, m=8, digits=1, seed=0))
    promised = frontier_of(task)
    free = 0 if JUDGED[workload] == "consuming_correct" else promised.free
    shares = [(getattr(record.score, JUDGED[workload]) - free) / promised.asking for record in ended]
    mean = math.fsum(shares) / len(shares)
    error = math.sqrt(math.fsum((one - mean) ** 2 for one in shares) / (len(shares) - 1) / len(shares))
    assert abs(mean - promised.point(bits).kept) <= SIGMAS * error
    assert mean <= promised.point(bits).upper + SIGMAS * error
    assert error < most  # else the comparison says little


def test_it_refuses_what_has_no_bits_to_count(tmp_path):
    with pytest.raises(UsageError, match="is no size"):
        BoundedEncoder(bits=-1.0)
    with pytest.raises(UsageError, match="known: newest, oldest"):
        BoundedEncoder(keep="best")
    with pytest.raises(UsageError, match="leave out bits"):
        asyncio.run(BoundedEncoder(bits=9.0).write(Item("x", "[2031-01-06] user: hello")))


def test_its_bytes_are_those_of_its_state(tmp_path):
    (record,) = runs(tmp_path / "out", "full-lookup", 13.3, "0:1")
    assert record.memory.bytes == 2
    assert record.setting.access.memory_settings == {"bits": 13.3}
