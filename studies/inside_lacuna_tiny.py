"""Analyses the attention of bundled/lacuna-tiny with present and missing records, and its substitutes for missing ones.

python -m studies.inside_lacuna_tiny [SEEDS]; writes docs/images/inside-*.svg and prints the figures of
docs/findings.md as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from eirkit.lacuna.agents.bundled import WEIGHTS, question_of
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.situation import situation_of
from eirkit.lacuna.findings.statistics import Interval, bootstrap_mean
from eirkit.lacuna.models.model import Reply, Request
from eirkit.lacuna.models.network.decoding import decode_together
from eirkit.lacuna.models.network.layout import Weights, load_weights
from eirkit.lacuna.models.network.network import Attended
from eirkit.lacuna.models.network.question import StepQuestion, WrittenReply
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.tasks.generation import generate_many, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from studies.inside_figures import draw_attention, draw_substitution

SEEDS, H = 40, 8
WORKLOADS = ("stepwise-sum", "store-recall")
IMAGES = Path(__file__).parents[1] / "docs" / "images"

ELSEWHERE = ("operator", "input", "references", "what is written")

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lookup:
    """One reference of one step, and what the network did about it."""

    seed: int
    label: int  # that is referred to
    labels: tuple[int, ...]  # of the records in sight
    values: tuple[int, ...]  # of those records
    written: int  # what the network wrote for the reference
    shares: Shares  # (digits, layers, heads, records): attention while each digit was written
    elsewhere: Shares  # (layers, heads, 4): on what is no record, while the first digit was written; see ELSEWHERE

    @property
    def is_there(self) -> bool:
        return self.label in self.labels

    @property
    def place(self) -> int:
        return self.labels.index(self.label)


def collect(weights: Weights, workload: str, seeds: Sequence[int]) -> list[Lookup]:
    """Run tasks under Controlled Retention and return every lookup, in order of step and seed."""
    spec = TaskSpec(workload)
    tasks = list(generate_many(spec, seeds))
    sessions = [make_session(Access(h=H), task, prepare(spec)) for task in tasks]
    found: list[Lookup] = []
    while (requests := [session.request() for session in sessions])[0] is not None:
        questions = [_read(request) for request in requests]
        for rows in _same_frame(questions):
            looks: list[Attended] = []
            written = decode_together(weights, [questions[row] for row in rows], looks)
            for place, row in enumerate(rows):
                found += _lookups(seeds[row], questions[row], written[place], looks, place)
                _answer(sessions[row], written[place])
    return found


def _read(request: Any) -> StepQuestion:
    if not isinstance(request, Request):
        raise TypeError("Controlled Retention asks its model and nobody else")
    return question_of(situation_of(request))


def _same_frame(questions: Sequence[StepQuestion]) -> Iterator[list[int]]:
    frames: dict[tuple[int, int, int], list[int]] = {}
    for row, question in enumerate(questions):
        frames.setdefault(question.frame, []).append(row)
    yield from frames.values()


def _lookups(
    seed: int, question: StepQuestion, written: WrittenReply, looks: Sequence[Attended], row: int
) -> Iterator[Lookup]:
    records, digits = len(question.records), question.digits
    labels = tuple(label for label, _ in question.records)
    values = tuple(value for _, (value,) in question.records)
    for i, label in enumerate(question.refs):
        passes = looks[i * digits : (i + 1) * digits]  # one a digit
        last = np.array([[layer[row, :, -1] for layer in look.shares] for look in _trimmed(passes)])
        shares = last / last.sum(-1, keepdims=True)
        fresh = len(question.input or ())
        others = np.add.reduceat(shares[0], records + np.array([0, 1, 1 + fresh, 1 + fresh + len(question.refs)]), -1)
        if not fresh:
            others[..., 1] = 0.0  # an empty part would count its neighbor
        among = shares[..., :records]
        yield Lookup(seed, label, labels, values, written.operands[i][0], among, others)


def _trimmed(passes: Sequence[Attended]) -> Iterator[Attended]:
    """Yield the passes with as many keys as the first has: what comes later are digits, never records."""
    keys = passes[0].shares[0].shape[-1]
    for one in passes:
        kept = [layer[..., :keys].copy() for layer in one.shares]
        for layer, whole in zip(kept, one.shares, strict=True):
            layer[..., -1] += whole[..., keys:].sum(-1)  # shares still add up
        yield Attended(kept)


def _answer(session: Session, written: WrittenReply) -> None:
    session.receive(Reply(f"ANSWER {session.position} {' '.join(map(str, written.answer))}"))


Rule = Callable[[Lookup], int]
Head = tuple[int, int]  # layer and number


def rules(heads: Sequence[Head]) -> dict[str, Rule]:
    """Return guesses at what is written for a missing label: from the records in sight, and from attention."""

    def newest(one: Lookup) -> int:
        return one.values[-1]

    def oldest(one: Lookup) -> int:
        return one.values[0]  # the nearest label: what is missing is older than all that is there

    def like_label(one: Lookup) -> int:
        tens = [v for label, v in zip(one.labels, one.values, strict=True) if label // 10 == one.label // 10]
        units = [v for label, v in zip(one.labels, one.values, strict=True) if label % 10 == one.label % 10]
        return (tens or units or one.values)[0]

    def looked_at(one: Lookup) -> int:
        return one.values[int(one.shares[0][heads[0]].argmax())]

    def looked_at_by_both(one: Lookup) -> int:
        return one.values[int(sum(one.shares[0][head] for head in heads).argmax())]

    def voted(one: Lookup) -> int:
        return int("".join(_vote(one, digit, heads) for digit in range(4)))

    return {
        "newest record": newest,
        "oldest record (nearest label)": oldest,
        "same tens digit, else same units digit": like_label,
        "most attention, first lookup head": looked_at,
        "most attention, both lookup heads": looked_at_by_both,
        "each digit by both heads' vote": voted,
    }


def _vote(one: Lookup, digit: int, heads: Sequence[Head]) -> str:
    """Return the digit with the most attention, each record voting for its own at that place."""
    votes = np.zeros(10)
    for value, share in zip(one.values, sum(one.shares[digit][head] for head in heads), strict=True):
        votes[int(f"{value:04d}"[digit])] += share
    return str(int(votes.argmax()))


def lookup_heads(there: Sequence[Lookup]) -> list[Head]:
    """Return the two heads, as layer and number, that look at the referenced record most, where there is one."""
    mean = np.mean([one.shares[0][..., one.place] for one in there], axis=0)
    best = np.argsort(mean, axis=None)[::-1][:2]
    return [(int(place) // mean.shape[1], int(place) % mean.shape[1]) for place in best]


def interval(lookups: Sequence[Lookup], holds: Callable[[Lookup], float]) -> Interval:
    """Return a mean over lookups, resampled by trajectory."""
    return bootstrap_mean([float(holds(one)) for one in lookups], [one.seed for one in lookups])


def account(lookups: Sequence[Lookup]) -> dict[str, Any]:
    """Return all figures of one workload."""
    there = [one for one in lookups if one.is_there]
    absent = [one for one in lookups if not one.is_there and len(one.labels) == H]
    heads = lookup_heads(there)
    head = heads[0]
    digits = range(4)
    figures: Mapping[str, Interval] = {
        "written right, record there": interval(there, lambda one: one.written == one.values[one.place]),
        "share on the record, there": interval(there, lambda one: one.shares[0][head][one.place]),
        "share on all records, there": interval(there, lambda one: one.shares[0][head].sum()),
        "share on all records, absent": interval(absent, lambda one: one.shares[0][head].sum()),
        "largest share on a record, absent": interval(absent, lambda one: one.shares[0][head].max()),
        "copies a record in sight": interval(absent, lambda one: one.written in one.values),
        "every digit stands at its place in some record": interval(
            absent, lambda one: all(any(_digit(v, d) == _digit(one.written, d) for v in one.values) for d in digits)
        ),
    }
    return {
        "there": len(there),
        "absent": len(absent),
        "heads": [[layer + 1, number + 1] for layer, number in heads],
        "figures": {name: structs.asdict(one) for name, one in figures.items()},
        "rules": {
            name: structs.asdict(interval(absent, lambda one, rule=rule: rule(one) == one.written))
            for name, rule in rules(heads).items()
        },
        "digits by vote": structs.asdict(
            interval(absent, lambda one: np.mean([_vote(one, d, heads) == _digit(one.written, d) for d in digits]))
        ),
        "by likeness": _by_likeness(absent, head),
        "elsewhere": dict(
            zip(ELSEWHERE, np.mean([one.elsewhere[head] for one in absent], axis=0).tolist(), strict=True)
        ),
    }


def _digit(value: int, place: int) -> str:
    return f"{value:04d}"[place]


def _by_likeness(absent: Sequence[Lookup], head: Head) -> dict[str, dict[str, Any]]:
    """Return how much attention a record gets and how often it is copied, by what its label shares with the other."""
    kinds: dict[str, list[tuple[float, bool]]] = {"tens digit": [], "units digit": [], "neither": []}
    for one in absent:
        for label, value, share in zip(one.labels, one.values, one.shares[0][head], strict=True):
            tens, units = label // 10 == one.label // 10, label % 10 == one.label % 10
            kind = "tens digit" if tens else "units digit" if units else "neither"
            kinds[kind].append((float(share), value == one.written))
    return {
        kind: {
            "records": len(seen),
            "share": float(np.mean([s for s, _ in seen])),
            "copied": float(np.mean([c for _, c in seen])),
        }
        for kind, seen in kinds.items()
    }


def grid(lookups: Sequence[Lookup]) -> dict[str, Shares]:
    """Return mean shares, layers × heads: on the referenced record, on all records, and on all with it missing."""
    there = [one for one in lookups if one.is_there]
    absent = [one for one in lookups if not one.is_there and len(one.labels) == H]
    return {
        "referenced record": np.mean([one.shares[0][..., one.place] for one in there], axis=0),
        "all records": np.mean([one.shares[0].sum(-1) for one in there], axis=0),
        "all records, referenced one missing": np.mean([one.shares[0].sum(-1) for one in absent], axis=0),
    }


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
    weights = load_weights(WEIGHTS)
    found = {workload: collect(weights, workload, seeds) for workload in WORKLOADS}
    accounts = {workload: account(lookups) for workload, lookups in found.items()}
    IMAGES.mkdir(exist_ok=True)
    draw_attention(grid(found["stepwise-sum"]), IMAGES / "inside-attention.svg")
    draw_substitution(accounts["stepwise-sum"], IMAGES / "inside-substitution.svg")
    print(json.dumps(accounts, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
