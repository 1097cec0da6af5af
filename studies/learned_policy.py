"""Trains the `learned` retention policy: integer tables that imitate Belady on streams seen by the policy itself.

python -m studies.learned_policy OUT.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.policies import BUCKETS, KINDS, MOST_USES, SHAPES, Scored, Tables, bucket
from eirkit.lacuna.tasks.policy import Hindsight, Outlook, Record
from eirkit.lacuna.tasks.simulation.plain import Recovery, outlook_of, replay
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.seeds import words

ROUNDS = 4  # of playing with the tables so far and learning from what Belady would have done there
TASKS = 48  # a stream and round
FIRST_SEED = 1 << 40  # far from the seeds that experiments use
STEPS, RATE = 600, 0.1  # of gradient descent, slower and slower
TINY = 1e-300  # where a chance is no number above zero any more
RIDGE, ROUGHNESS = 1e-6, 1e-3  # pull what was never seen to its neighbors, and all to zero
UNIT = 256  # integers a nat

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of task to learn from; all of them count the same."""

    spec: TaskSpec
    recovery: Recovery


def streams() -> list[Stream]:
    """Return what the tables learn from: every kind of reference, several windows, with and without recovery."""
    steps = [TaskSpec("stepwise-sum", m=m, fan_in=fan) for m in (4, 8, 16, 32) for fan in (1, 2, 3)]
    recalls = [TaskSpec("store-recall", m=m) for m in (8, 16, 32)]
    lookups = [
        TaskSpec("full-lookup", m=m, queries=queries) for m in (8, 16, 32) for queries in ("uniform", "zipf-shuffled")
    ]
    ways: tuple[Recovery, ...] = ("off", "direct")
    return [Stream(spec, way) for spec in (*steps, *recalls, *lookups) for way in ways]


@dataclass(frozen=True, slots=True)
class Choices:
    """Decisions, the candidates of one behind those of another: where each stands in the tables, and who may leave."""

    left: NDArray[np.int64]  # flat positions
    idle: NDArray[np.int64]
    uses: NDArray[np.int64]
    best: NDArray[np.bool_]  # Belady's victim, or one that is needed as late
    starts: NDArray[np.int64]  # of each decision
    lengths: NDArray[np.int64]
    weight: Floats  # of each decision


class Pupil(Scored):
    """Plays with the tables so far and writes down what it saw, and what Belady would have dropped."""

    def __init__(self, known: Scored, tables: Tables, teacher: Hindsight) -> None:
        super().__init__(known.kinds, known.last_use)
        self.tables, self.teacher = tables, teacher
        self.seen: list[list[tuple[int, int, int, int]]] = []

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        now = candidates[-1].inserted
        self.seen.append([self._row(record, step, now) for record in candidates])
        return super().victim(candidates, step)

    def _row(self, record: Record, step: int, now: int) -> tuple[int, int, int, int]:
        present, uses = self.kinds[step - 1], min(record.uses, MOST_USES) - 1
        pair = self.kinds[record.id - 1] * len(KINDS) + present
        return (
            pair * BUCKETS + bucket(max(0, self.last_use[record.id - 1] - step)),
            (present * MOST_USES + uses) * BUCKETS + bucket(now - record.touched),
            pair * MOST_USES + uses,
            self.teacher.next_use(record.id, step),
        )


def play(stream: Stream, tables: Tables, seeds: Sequence[int]) -> Iterator[list[tuple[int, int, int, int]]]:
    """Yield the decisions of some tasks under drawn capacities."""
    for seed in seeds:
        task = generate(stream.spec.with_seed(seed))
        outlook: Outlook = outlook_of(task)
        pupil = Pupil(Scored.for_task(outlook), tables, Hindsight(outlook.future))
        h = 1 + int(words([seed], 1, "capacity")[0, 0] % np.uint64(stream.spec.m - 1))
        replay(outlook, pupil, h, recovery=stream.recovery)
        yield from pupil.seen


def gather(decisions: list[list[list[tuple[int, int, int, int]]]]) -> Choices:
    """Return the decisions in which the choice matters as arrays; those of every stream weigh the same together."""
    kept = [[one for one in stream if len({row[3] for row in one}) > 1] for stream in decisions]
    flat = np.array([row for stream in kept for decision in stream for row in decision], np.int64)
    lengths = np.array([len(decision) for stream in kept for decision in stream])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    latest = np.repeat(np.maximum.reduceat(flat[:, 3], starts), lengths)
    weight = np.concatenate([np.full(len(stream), 1 / max(1, len(stream))) for stream in kept])
    left, idle, uses = (np.ascontiguousarray(flat[:, column]) for column in range(3))
    return Choices(left, idle, uses, flat[:, 3] == latest, starts, lengths, weight / weight.sum())


def loss_and_gradient(scores: dict[str, Floats], choices: Choices) -> tuple[float, dict[str, Floats]]:
    """Return how unlikely Belady's choices are if the lowest score most likely leaves, and where that falls fastest."""
    places = {"left": choices.left, "idle": choices.idle, "uses": choices.uses}
    worth = sum(scores[name].ravel()[at] for name, at in places.items())
    chance = np.exp(np.repeat(np.minimum.reduceat(worth, choices.starts), choices.lengths) - worth)
    chance /= np.repeat(np.add.reduceat(chance, choices.starts), choices.lengths)
    right = np.maximum(np.add.reduceat(chance * choices.best, choices.starts), TINY)
    pull = chance * (choices.best * np.repeat(1 / right, choices.lengths) - 1)
    pull *= np.repeat(choices.weight, choices.lengths)
    gradient = {
        name: np.bincount(at, pull, scores[name].size).reshape(scores[name].shape) for name, at in places.items()
    }
    return float(-(choices.weight * np.log(right)).sum()), gradient


def smooth(scores: dict[str, Floats]) -> dict[str, Floats]:
    """Return the gradient of what keeps the tables smooth along distances, and small."""
    found = {name: 2 * RIDGE * table for name, table in scores.items()}
    for name in ("left", "idle"):
        steps = np.diff(scores[name], axis=1)
        found[name][:, 1:] += 2 * ROUGHNESS * steps
        found[name][:, :-1] -= 2 * ROUGHNESS * steps
    return found


def fit(scores: dict[str, Floats], choices: Choices) -> tuple[dict[str, Floats], float]:
    """Return better scores, by Adam's rule on all decisions at once, and the loss they reach."""
    scores = {name: table.copy() for name, table in scores.items()}
    mean = {name: np.zeros_like(table) for name, table in scores.items()}
    square = {name: np.zeros_like(table) for name, table in scores.items()}
    loss = 0.0
    for step in range(1, STEPS + 1):
        loss, gradient = loss_and_gradient(scores, choices)
        flatten = smooth(scores)
        for name in scores:
            slope = gradient[name] + flatten[name]
            mean[name] += 0.1 * (slope - mean[name])
            square[name] += 0.01 * (slope**2 - square[name])
            pace = np.sqrt(square[name] / (1 - 0.99**step)) + 1e-10
            scores[name] -= RATE * (1 - step / (STEPS + 1)) * mean[name] / (1 - 0.9**step) / pace
    return scores, loss


def as_tables(scores: dict[str, Floats]) -> Tables:
    """Return the scores as integers: sums of them are the same everywhere."""
    return Tables(**{name: np.rint(table * UNIT).astype(np.int64) for name, table in scores.items()})


def train() -> tuple[Tables, list[dict[str, Any]]]:
    """Return the tables and a log: after each round, on how many decisions and how well Belady was imitated."""
    scores = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    known = streams()
    decisions: list[list[list[tuple[int, int, int, int]]]] = [[] for _ in known]
    log = []
    for turn in range(ROUNDS):
        tables = as_tables(scores)
        for stream, collected in zip(known, decisions, strict=True):
            first = FIRST_SEED + turn * TASKS
            collected.extend(play(stream, tables, range(first, first + TASKS)))
        scores, loss = fit(scores, gather(decisions))
        log.append({"round": turn + 1, "decisions": sum(map(len, decisions)), "loss_nats": round(loss, 4)})
        print(json.dumps(log[-1]), file=sys.stderr)
    return as_tables(scores), log


def main(out: str) -> None:
    tables, log = train()
    document = {"kinds": list(KINDS), **{name: getattr(tables, name).tolist() for name in SHAPES}, "training": log}
    Path(out).write_text(json.dumps(document) + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
