"""Greedy writing, many steps at a time: questions come in, what the network wrote goes out.

Each pass takes in what is certain and a guess at what follows, and keeps the digits up to the first that the network
would have written otherwise. A token sees only what is there and stands before it, so what was guessed wrong, what
stands beside a step, and in how many passes it was written change nothing in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from eirkit.lacuna.bundled import features as f
from eirkit.lacuna.bundled.drafting import draft, nothing
from eirkit.lacuna.bundled.layout import Weights
from eirkit.lacuna.bundled.network import Attended, Past, forward
from eirkit.lacuna.bundled.question import (
    Question,
    Token,
    Written,
    check,
    prompt_tokens,
    start_token,
    tokens_after,
    written,
)

TOGETHER = 64  # runs that are under way at a time
TOKENS = 600  # of a pass, about: more leave the processor's cache

Draft = Callable[[Question, Sequence[int]], list[int]]
Ahead = tuple[list[Token], list[int]]  # the tokens of a pass, and those among them after which a digit is wanted


class Reply:
    """One reply while it is written."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.digits: list[int] = []
        self.fresh = [*prompt_tokens(question), start_token(question, 0)]  # what is certain and was not taken in yet
        self.guess: list[int] = []

    def ahead(self, guess: list[int]) -> Ahead:
        """Return what the next pass takes in: what is certain, and a guess."""
        done = len(self.digits)
        self.guess = guess[: self.question.length - done - 1]  # nothing is asked of the last digit
        tokens, wanted = list(self.fresh), [len(self.fresh) - 1]
        for number, digit in enumerate(self.guess, done):
            tokens += tokens_after(self.question, number, digit)
            wanted.append(len(tokens) - 1)
        return tokens, wanted

    def judge(self, chosen: Sequence[int]) -> int:
        """Take what the network chose at each place, as far as it stands; return at how many places it does."""
        right = 0
        while right < len(self.guess) and self.guess[right] == chosen[right]:
            right += 1
        self.digits += chosen[: right + 1]
        if not self.is_whole:
            self.fresh = tokens_after(self.question, len(self.digits) - 1, self.digits[-1])
        return right + 1

    @property
    def is_whole(self) -> bool:
        return len(self.digits) == self.question.length


def write(weights: Weights, questions: Sequence[Question], guess: Draft = draft) -> list[Written]:
    """Return what the network writes for each question; equal ones are written once."""
    found: dict[Question, Written] = {}
    for some in _groups(questions):
        found.update(zip(some, write_together(weights, some, guess=guess), strict=True))
    return [found[question] for question in questions]


def _groups(questions: Sequence[Question]) -> Iterator[list[Question]]:
    """Yield different questions in groups of similar length, each a pass of not too many tokens."""
    some: list[Question] = []
    for question in sorted(set(questions), key=lambda question: question.size):
        check(question)
        if (len(some) + 1) * question.size > TOKENS and some:
            yield some
            some = []
        some.append(question)
    if some:
        yield some


def write_together(
    weights: Weights, questions: Sequence[Question], looks: list[Attended] | None = None, guess: Draft = draft
) -> list[Written]:
    """Return what is written for questions that share their passes.

    Args:
        looks: takes where each token looked, an entry for each pass; then every digit has its own. The questions are of
            one frame.
    """
    # The products are small: threads would wait for one another longer than they work.
    with _libraries().limit(limits=1, user_api="blas"):
        replies = [Reply(question) for question in questions]
        _write(weights, replies, guess if looks is None else nothing, looks)
    return [written(reply.question, reply.digits) for reply in replies]


@cache
def _libraries() -> ThreadpoolController:
    """Return what can tell the libraries of this process how many threads to use; looking for them takes a while."""
    return ThreadpoolController()


def _write(weights: Weights, replies: Sequence[Reply], guess: Draft, looks: list[Attended] | None) -> None:
    past = Past(len(replies), weights, max((reply.question.size for reply in replies), default=0))
    while replies:
        ahead = [reply.ahead(guess(reply.question, reply.digits)) for reply in replies]
        if looks is not None:
            looks.append(Attended([]))
        chosen = _choose(weights, ahead, past, None if looks is None else looks[-1])
        for row, (reply, (tokens, wanted)) in enumerate(zip(replies, ahead, strict=True)):
            stands = reply.judge([next(chosen) for _ in wanted])
            past.lengths[row] -= len(tokens) - 1 - wanted[stands - 1]  # the others were guessed wrong
        left = [row for row, reply in enumerate(replies) if not reply.is_whole]
        if len(left) < len(replies):
            replies = [replies[row] for row in left]
            past.keep(left)


def _choose(weights: Weights, ahead: Sequence[Ahead], past: Past, look: Attended | None) -> Iterator[int]:
    """Return the digit that the network would write at each place that is wanted; of equal scores the smaller."""
    shape = len(ahead), max(len(tokens) for tokens, _ in ahead)
    features = np.full((*shape, f.MOST), f.FEATURES, np.int64)
    last = np.zeros(shape, np.bool_)
    for row, (tokens, wanted) in enumerate(ahead):
        last[row, wanted] = True
        for place, token in enumerate(tokens):
            features[row, place, : len(token)] = token
    scores = forward(weights, features, features[:, :, 0] < f.FEATURES, past, look, last)
    return iter(scores.argmax(1).tolist())
