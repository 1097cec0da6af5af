"""Measures how often `eirkit choose` states a false order, and how often it finds a true difference.

python -m studies.choose_power [DRAWS] [SEED] [--json | --markdown]; else it also writes studies/choose_power.csv.

Accuracies are drawn from the spread of the runs in studies/board (nine memory systems, 12 worlds of 24 questions each,
whose accuracies are not correlated over worlds). `pooled`: each candidate has in each world the mean and one of the 108
deviations of a system from its own mean. `own`: each has the deviations of one system, quiet or noisy, and worlds are
drawn whole, so that correlations are kept. `ceiling`: 24 questions, each answered correctly with probability 0.98.

Faulty candidates fail wholly on 1 to 3% of the worlds, each at a rate of its own, and are better in all others, so that
all means are equal. The present procedure stands beside Bonferroni's t of all pairs, and beside a test that deals the
names of candidates anew in each world and takes the largest difference.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.findings.intervals import student
from eirkit.lacuna.findings.ranking import LOOKS, rank, tasks_to_separate
from eirkit.report.table import Cell, Column, Table
from studies.printing import show

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]  # worlds, candidates → accuracies, a row for each candidate

BOARD = Path(__file__).parent / "board"
TABLE = Path(__file__).with_suffix(".csv")
DRAWS, SEED = 1_000, 1
CANDIDATES, WORLDS = (2, 5, 10, 18), (6, 12, 24, 48)
MEAN, CEILING, QUESTIONS = 0.9, 0.98, 24
METHODS = ("with the best", "all pairs", "names dealt")
SHOWN = (("10", "24", "6"), ("18", "12", "10"))  # candidates, worlds and points in the documentation
FAULTS = (0.01, 0.03)  # shares of worlds
DEALS, DEALT_DRAWS = 99, 200  # of names; in as many draws, since they take longest


def residuals() -> Floats:
    """Return the deviations of nine stored systems from their means, a row for each, corrected for that mean."""
    rows = []
    for path in sorted(BOARD.glob("*/runs.jsonl")):
        runs = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        rows.append([run["score"]["correct"] / run["score"]["steps"] for run in sorted(runs, key=lambda r: r["seed"])])
    found = np.array(rows)
    worlds = found.shape[1]
    return np.asarray((found - found.mean(axis=1, keepdims=True)) * np.sqrt(worlds / (worlds - 1)))


STORED = residuals()


def pooled(drawn: np.random.Generator, worlds: int, candidates: int) -> Floats:
    return np.asarray(MEAN + drawn.choice(STORED.ravel(), (candidates, worlds)))


def own(drawn: np.random.Generator, worlds: int, candidates: int) -> Floats:
    fields = [STORED[:, drawn.integers(STORED.shape[1], size=worlds)] for _ in range(-(-candidates // len(STORED)))]
    return np.asarray(MEAN + drawn.permutation(np.concatenate(fields))[:candidates])


def ceiling(drawn: np.random.Generator, worlds: int, candidates: int) -> Floats:
    return np.asarray(drawn.binomial(QUESTIONS, CEILING, (candidates, worlds)) / QUESTIONS)


SPREADS: dict[str, Draw] = {"pooled": pooled, "own": own, "ceiling": ceiling}


def with_faults(
    drawn: np.random.Generator, given: Floats, faulty: int, rates_of: tuple[float, float] = FAULTS
) -> Floats:
    """Return accuracies in which some candidates rarely fail wholly, and are as much better in all other worlds."""
    rates = drawn.uniform(*rates_of, (faulty, 1))
    found = given.copy()
    found[:faulty] += given.mean() * rates / (1 - rates)
    found[:faulty][drawn.random((faulty, given.shape[1])) < rates] = 0
    return found


def compared(given: Floats, outside: float = LOOKS[0]) -> NDArray[np.bool_]:
    """Return whom `choose` calls worse than the best."""
    ranking = rank({str(name): row.tolist() for name, row in enumerate(given)}, range(given.shape[1]), outside=outside)
    places = {standing.name: standing.place == "worse" for standing in ranking.standings}
    return np.array([places[str(name)] for name in range(len(given))])


def all_pairs(given: Floats) -> NDArray[np.bool_]:
    """Return who is worse than somebody by Student's t at Bonferroni's level for all pairs."""
    count, worlds = given.shape
    gaps = given[:, None] - given[None, :]
    errors = gaps.std(axis=2, ddof=1) / np.sqrt(worlds)
    quantile = student(worlds - 1, 1 - 0.05 / (count * (count - 1) / 2))
    means = gaps.mean(axis=2)
    # What is the same in every world had the interval of these worlds and one more without a difference.
    errors = np.where(errors < 1e-12, np.abs(means) / worlds, errors)
    return np.asarray((means > quantile * errors + 1e-12).any(axis=0))


def dealt(drawn: np.random.Generator, given: Floats) -> NDArray[np.bool_]:
    """Return who is worse than somebody by more than the largest difference after the names were dealt anew."""
    deals = drawn.permuted(np.broadcast_to(given, (DEALS, *given.shape)), axis=1).mean(axis=2)
    largest = np.sort(np.ptp(deals, axis=1))[int(0.95 * (DEALS + 1)) - 1]
    means = given.mean(axis=1)
    return np.asarray(means < means.max() - largest - 1e-12)


def twice(drawn: np.random.Generator, draw: Draw, worlds: int, candidates: int, faulty: int) -> bool:
    """Return whether a false order is stated at either of two looks at equal candidates.

    The second is at the leaders alone, on the first worlds and on as many more as would separate the first two.
    """
    given = with_faults(drawn, draw(drawn, 10 * worlds, candidates), faulty)
    first = rank({str(name): row[:worlds].tolist() for name, row in enumerate(given)}, range(worlds), outside=LOOKS[0])
    if len(first.leaders) < candidates or first.lead is None or first.spread is None:
        return True
    aim = max(first.lead, first.margin)
    more = tasks_to_separate(aim, first.spread, len(first.leaders), outside=LOOKS[1]) or 10 * worlds
    return bool(compared(given[:, : min(max(more, worlds + 6), 10 * worlds)], LOOKS[1]).any())


def levels(draws: int, seed: int, spreads: Iterable[str] = SPREADS) -> Iterator[dict[str, Cell]]:
    """Yield how often any order is stated among candidates whose means are equal."""
    for spread in spreads:
        for candidates in CANDIDATES:
            for worlds in WORLDS:
                half, most = candidates // 2, (FAULTS[1], FAULTS[1])
                cases = {case_of(faults, candidates): (faults, FAULTS) for faults in (0, 1, half)}
                for case, (faults, rates) in {**cases, "half are faulty on 3%": (half, most)}.items():
                    drawn = np.random.default_rng([seed, candidates, worlds, faults])
                    draw = SPREADS[spread]
                    fields = [with_faults(drawn, draw(drawn, worlds, candidates), faults, rates) for _ in range(draws)]
                    few = fields[:DEALT_DRAWS]
                    yield {
                        "spread": spread,
                        "candidates": candidates,
                        "worlds": worlds,
                        "case": case,
                        "draws": draws,
                        "with the best": share(compared(field).any() for field in fields),
                        "all pairs": share(all_pairs(field).any() for field in fields),
                        "names dealt": share(dealt(drawn, field).any() for field in few),
                    }


def case_of(faults: int, candidates: int) -> str:
    return "equal" if not faults else "half are faulty" if faults == candidates // 2 else "one is faulty"


def looks(draws: int, seed: int) -> Iterator[dict[str, Cell]]:
    """Yield how often any order is stated at two looks among candidates whose means are equal."""
    for candidates in (2, 10):
        for faults in (0, candidates // 2):
            drawn = np.random.default_rng([seed, candidates, faults])
            yield {
                "spread": "pooled",
                "candidates": candidates,
                "worlds": 12,
                "case": f"two looks, {case_of(faults, candidates)}",
                "draws": draws,
                "with the best": share(twice(drawn, pooled, 12, candidates, faults) for _ in range(draws)),
            }


def powers(draws: int, seed: int, spreads: Iterable[str] = SPREADS) -> Iterator[dict[str, Cell]]:
    """Yield which share of those that are so many points worse than the best are called so."""
    for spread in spreads:
        for candidates, worlds in ((2, 24), (10, 24), (18, 12), (18, 24)):
            for points in (6, 10):
                for best in dict.fromkeys((1, candidates // 2, candidates - 1)):
                    drawn = np.random.default_rng([seed, candidates, worlds, points, best])
                    fields = [SPREADS[spread](drawn, worlds, candidates) for _ in range(draws)]
                    for field in fields:
                        field[best:] -= points / 100
                    few = fields[:DEALT_DRAWS]
                    yield {
                        "spread": spread,
                        "candidates": candidates,
                        "worlds": worlds,
                        "case": f"{best} ahead of {candidates - best} by {points} points",
                        "draws": draws,
                        "with the best": share(worse for field in fields for worse in compared(field)[best:]),
                        "all pairs": share(worse for field in fields for worse in all_pairs(field)[best:]),
                        "names dealt": share(worse for field in few for worse in dealt(drawn, field)[best:]),
                    }


def share(found: Iterable[bool | np.bool_]) -> float:
    values = [bool(one) for one in found]
    return round(sum(values) / len(values), 3)


def tables(draws: int, seed: int) -> tuple[Table, ...]:
    """Return false orders and power."""
    columns = tuple(Column(name, name) for name in ("spread", "candidates", "worlds", "case", "draws"))
    methods = tuple(Column(name, name, 3) for name in METHODS)
    return (
        Table("levels", "False orders", (*columns, *methods), (*levels(draws, seed), *looks(draws, seed))),
        Table("powers", "Power", (*columns, *methods), tuple(powers(draws, seed))),
    )


def summary() -> tuple[Table, ...]:
    """Return the kept table as it stands in docs/choose.md: the worst of the three spreads, and power where pooled."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines: list[dict[str, Cell]] = []
    for count in map(str, CANDIDATES):
        line: dict[str, Cell] = {"candidates": count}
        for worlds in map(str, WORLDS):
            own = [row for row in rows if (row["candidates"], row["worlds"]) == (count, worlds)]
            kinds = ([row for row in own if row["case"] == case] for case in ("equal", "half are faulty"))
            line[worlds] = " / ".join(percent(max(kind, key=lambda row: row[METHODS[0]])[METHODS[0]]) for kind in kinds)
        lines.append(line)
    whom = Column("candidates", "candidates")
    false = Table("levels", "", (whom, *(Column(f"{n}", f"{n} worlds", figures=True) for n in WORLDS)), tuple(lines))
    shown = [
        {**row, **{method: percent(row[method]) for method in METHODS}}
        for row in rows
        for count, worlds, points in SHOWN
        if (row["spread"], row["candidates"], row["worlds"]) == ("pooled", count, worlds)
        and row["case"].endswith(f" by {points} points")
    ]
    columns = (whom, Column("worlds", "worlds"), Column("case", "who is better"))
    return false, Table("powers", "", (*columns, *(Column(m, m, figures=True) for m in METHODS)), tuple(shown))


def percent(share: str) -> str:
    return f"{100 * float(share):.1f}%"


def main(arguments: Sequence[str]) -> None:
    numbers = [int(word) for word in arguments if word.isdecimal()]
    draws, seed = (*numbers, *(DRAWS, SEED)[len(numbers) :])[:2]
    found = tables(draws, seed)
    if not any(word.startswith("--") for word in arguments):
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [column.key for column in found[0].columns], lineterminator="\n")
            writer.writeheader()
            writer.writerows(row for table in found for row in table.rows)
    show(found, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
