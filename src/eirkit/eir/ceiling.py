"""Certified upper bounds on the share of right responses that any memory of K states can reach.

Two dual certificates, each checked against every decoder: the covering bound, and the rate–distortion function by
Blahut and Arimoto. Any multipliers make them true, so rounding or an early stop can only loosen them. The proofs are in
docs/design/lossy-eir.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eirkit.eir.scores import Floats, ScoreTable

DECODER_CELLS = 1_200_000  # atoms × decoders enumerated together
LEVELS = 33
SLOPES = tuple(2.0**i for i in range(-1, 9))  # nats per unit of accuracy
ROUNDS = 60
SLACK = 1e-12  # added to every bound, above the rounding of sums of at most CELLS terms below 1


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The least of many lines in K, and of many in ln K, for each group of questions; their sum bounds accuracy."""

    groups: tuple[tuple[Floats, Floats], ...]  # (intercept, slope) by K, and (intercept, slope) by ln K

    def __call__(self, states: int) -> float:
        """Return the bound for a memory of this many states."""
        total = math.fsum(
            min(float((by_k @ (1, states)).min()), float((by_log @ (1, math.log(states))).min()))
            for by_k, by_log in self.groups
        )
        return min(1.0, total + SLACK)


def ceiling(table: ScoreTable, states: tuple[int, ...], reached: Floats) -> Ceiling:
    """Return the bound, sharpest at the given numbers of states.

    Args:
        reached: what encoders with these states earn by each question, shape (states, questions); the search for
            multipliers aims at it.
    """
    groups = tuple(_groups(table))
    return Ceiling(tuple(_bound(table, group, states, reached[:, group].sum(axis=1)) for group in groups))


def _groups(table: ScoreTable) -> Iterator[list[int]]:
    """Yield questions in groups whose decoders can be enumerated; bounds of groups add up to a bound."""
    sizes = _sizes(table)
    group: list[int] = []
    decoders = 1
    for question in np.argsort(sizes, kind="stable").tolist():
        if group and len(table.gains) * decoders * sizes[question] > DECODER_CELLS:
            yield group
            group, decoders = [], 1
        group.append(question)
        decoders *= sizes[question]
    yield group


def _sizes(table: ScoreTable) -> list[int]:
    return list(map(int, np.diff(np.append(table.starts, table.gains.shape[1]))))


def _bound(table: ScoreTable, group: list[int], states: tuple[int, ...], aims: Floats) -> tuple[Floats, Floats]:
    sizes = _sizes(table)
    constant = np.array([[_most(table, group), 0.0]])
    if len(group) == 1 and len(table.gains) * sizes[group[0]] > DECODER_CELLS:
        return np.concatenate((constant, _answer_lines(table, group[0], states))), constant
    scores = np.zeros((len(table.gains), 1))
    for question in group:
        first = table.starts[question]
        block = table.gains[:, first : first + sizes[question]]
        scores = (scores[:, :, None] + block[:, None, :]).reshape(len(scores), -1)
    by_k = np.concatenate((constant, _covering_lines(scores, states, aims)))
    return by_k, np.concatenate((constant, _information_lines(scores, table.masses)))


def _most(table: ScoreTable, group: list[int]) -> float:
    """Return what perfect knowledge of the atom earns in a group of questions."""
    return float(np.maximum.reduceat(table.gains, table.starts, axis=1)[:, group].sum())


def _answer_lines(table: ScoreTable, question: int, states: tuple[int, ...]) -> Floats:
    """Return lines for one question: K states name at most K answers, the K likeliest at best.

    Their probability is Σ (v − level)⁺ + K · level at the K-th largest level, and at most that at any other level.
    """
    first, size = table.starts[question], _sizes(table)[question]
    likely = np.sort(table.gains[:, first : first + size].sum(axis=0))[::-1]
    lines = []
    for k in states:
        level = likely[min(k, size) - 1]
        lines.append((np.maximum(likely - level, 0).sum(), level))
    return np.array(lines)


def _covering_lines(scores: Floats, states: tuple[int, ...], aims: Floats) -> Floats:
    """Return lines Σα + K · max_y Σ_x (score − α)⁺ for many multipliers α.

    K decoders earn Σ_x max_k score(x, y_k) ≤ Σ_x α_x + Σ_k Σ_x (score(x, y_k) − α_x)⁺. First the same share of the
    best score for every atom, which is the best choice for symmetric contracts, then subgradient steps.
    """
    best = scores.max(axis=1)
    shares = np.unique(np.round(scores[best > 0] / best[best > 0, None], 9))
    starts = [best * level for level in shares[np.linspace(0, len(shares) - 1, LEVELS).astype(int)]]
    levels = [(float(alpha.sum()), _excess(scores, alpha)[0]) for alpha in starts]
    lines = list(levels)
    for k, aim in zip(states, aims.tolist(), strict=True):
        alpha = starts[min(range(LEVELS), key=lambda i: levels[i][0] + k * levels[i][1])]
        for _ in range(ROUNDS):
            excess, decoder = _excess(scores, alpha)
            lines.append((float(alpha.sum()), excess))
            slope = 1 - k * (scores[:, decoder] > alpha)
            gap = lines[-1][0] + k * excess - aim
            if gap <= SLACK or not slope.any():
                break
            alpha = np.clip(alpha - gap / float(slope @ slope) * slope, 0, best)
    return np.array(lines)


def _excess(scores: Floats, alpha: Floats) -> tuple[float, int]:
    sums = np.maximum(scores - alpha[:, None], 0).sum(axis=0)
    decoder = int(sums.argmax())
    return float(sums[decoder]), decoder


def _information_lines(scores: Floats, masses: Floats) -> Floats:
    """Return lines in ln K: accuracy ≤ (ln K − Σ p ln λ + ln max_y Σ_x p λ e^{s·d}) / s for each slope s.

    ln K is at least the information that the code has about the atom, which is at least the rate–distortion function;
    λ from Blahut and Arimoto's iteration makes the bound tight.
    """
    met = masses > 0
    p = masses[met]
    shares = scores[met] / p[:, None]
    top = shares.max(axis=1)
    lines = []
    for slope in SLOPES:
        kernel = np.exp(slope * (shares - top[:, None]))
        q = np.full(kernel.shape[1], 1 / kernel.shape[1])
        for _ in range(ROUNDS):
            normal = np.maximum(kernel @ q, 1e-300)
            ratio = (p / normal) @ kernel
            q *= ratio
        normal = np.maximum(kernel @ q, 1e-300)
        excess = math.log(float(((p / normal) @ kernel).max()))
        lines.append(((float(p @ np.log(normal)) + excess) / slope + float(p @ top), 1 / slope))
    return np.array(lines)
