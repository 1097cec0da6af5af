"""Speculative decoding: drafts the digits that the network probably writes and verifies many in one forward pass.

The network verifies every drafted digit and discards the draft from the first one that it would not have written. A
wrong draft costs time and does not change the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b

import numpy as np
from threadpoolctl import ThreadpoolController

from eirkit.lacuna.models.network import layout as f
from eirkit.lacuna.models.network.layout import Weights
from eirkit.lacuna.models.network.network import Attended, KeyValueCache, forward
from eirkit.lacuna.models.network.question import (
    StepQuestion,
    Token,
    WrittenReply,
    check,
    digits_of,
    prompt_tokens,
    start_token,
    tokens_after,
    values_of,
    written,
)
from eirkit.lacuna.tasks.task import Payload


def draft(question: StepQuestion, so_far: Sequence[int]) -> list[int]:
    """Return the probable next digits: the values of records, then the operator on them, as far as predictable."""
    digits = list(so_far)
    operands: list[Payload] = []
    for line in range(len(question.refs) + 1):
        begun = digits[line * question.line :]
        if len(begun) < question.line:
            values = _guess(question, line, begun, operands)
            if values is None:
                break
            digits += digits_of(question, line, values)[len(begun) :]
        operands.append(values_of(question, line, digits[line * question.line :]))
    return digits[len(so_far) :]


def draft_nothing(question: StepQuestion, so_far: Sequence[int]) -> list[int]:
    """Draft nothing, so that every digit takes its own forward pass."""
    return []


def _guess(question: StepQuestion, line: int, begun: Sequence[int], operands: list[Payload]) -> Payload | None:
    if line == len(question.refs):
        return _result(question, operands)
    held = dict(question.records)
    if (label := question.refs[line]) in held:
        return held[label]
    # In place of a missing value the network mostly writes a resident one, most often one with a similar label.
    begins = [(t, values) for t, values in held.items() if digits_of(question, line, values)[: len(begun)] == begun]
    return max(begins, key=lambda record: _likeness(record[0], label))[1] if begun and begins else None


def _likeness(label: int, other: int) -> int:
    """Return at how many decimal places two labels agree."""
    return sum(label // 10**place % 10 == other // 10**place % 10 for place in range(f.PLACES))


def _result(question: StepQuestion, operands: list[Payload]) -> Payload | None:
    rows = [question.input, *operands] if question.input is not None else operands
    if not rows:
        return None
    match question.operator:
        case f.SUM:
            return tuple(sum(column) % 10**question.digits for column in zip(*rows, strict=True))
        case f.MAX:
            return tuple(max(column) for column in zip(*rows, strict=True))
        case f.COPY:
            return rows[0]
        case _:
            return tuple(sorted((value for row in rows for value in row), reverse=True)[: question.width])


TOGETHER = 64  # concurrent runs
TOKENS = 600  # per pass, approximately: more do not fit the processor's cache
ON_GPU = 64  # times as many of both on a GPU, which is faster the more it is given

Draft = Callable[[StepQuestion, Sequence[int]], list[int]]
Ahead = tuple[list[Token], list[int]]  # the tokens of a pass, and the positions after which a digit is predicted


class PartialReply:
    """One reply while it is written."""

    def __init__(self, question: StepQuestion) -> None:
        self.question = question
        self.digits: list[int] = []
        self.fresh = [
            *prompt_tokens(question),
            start_token(question, 0),
        ]  # verified tokens that are not in the cache yet
        self.guess: list[int] = []

    def ahead(self, guess: list[int]) -> Ahead:
        """Return the tokens of the next pass: the verified ones and a draft."""
        done = len(self.digits)
        self.guess = guess[: self.question.length - done - 1]  # nothing is predicted after the last digit
        tokens, wanted = list(self.fresh), [len(self.fresh) - 1]
        for number, digit in enumerate(self.guess, done):
            tokens += tokens_after(self.question, number, digit)
            wanted.append(len(tokens) - 1)
        return tokens, wanted

    def judge(self, chosen: Sequence[int]) -> int:
        """Accept the digits that the network chose, up to the first that differs from the draft; return how many."""
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


def decode(weights: Weights, questions: Sequence[StepQuestion], guess: Draft = draft) -> list[WrittenReply]:
    """Return the reply to each question; equal questions are decoded once."""
    found: dict[StepQuestion, WrittenReply] = {}
    for some in _groups(questions, TOKENS if weights.arrays is np else TOKENS * ON_GPU):
        found.update(zip(some, decode_together(weights, some, guess=guess), strict=True))
    return [found[question] for question in questions]


def _groups(questions: Sequence[StepQuestion], tokens: int) -> Iterator[list[StepQuestion]]:
    """Yield distinct questions in groups of similar length whose passes have about so many tokens."""
    some: list[StepQuestion] = []
    for question in sorted(set(questions), key=lambda question: question.size):
        check(question)
        if (len(some) + 1) * question.size > tokens and some:
            yield some
            some = []
        some.append(question)
    if some:
        yield some


def decode_together(
    weights: Weights, questions: Sequence[StepQuestion], looks: list[Attended] | None = None, guess: Draft = draft
) -> list[WrittenReply]:
    """Return the replies to questions that share their forward passes.

    Args:
        looks: collects the attention of each pass; there is then one pass per digit, and the questions must share a
            frame.
    """
    # The products are small: threads would spend more time waiting than working.
    with _libraries().limit(limits=1, user_api="blas"):
        replies = [PartialReply(question) for question in questions]
        _write(weights, replies, guess if looks is None else draft_nothing, looks)
    return [written(reply.question, reply.digits) for reply in replies]


@cache
def _libraries() -> ThreadpoolController:
    """Return the controller of the thread pools in this process; finding them is slow, so it is cached."""
    return ThreadpoolController()


def _write(weights: Weights, replies: Sequence[PartialReply], guess: Draft, looks: list[Attended] | None) -> None:
    past = KeyValueCache(len(replies), weights, max((reply.question.size for reply in replies), default=0))
    while replies:
        ahead = [reply.ahead(guess(reply.question, reply.digits)) for reply in replies]
        if looks is not None:
            looks.append(Attended([]))
        chosen = _choose(weights, ahead, past, None if looks is None else looks[-1])
        for row, (reply, (tokens, wanted)) in enumerate(zip(replies, ahead, strict=True)):
            stands = reply.judge([next(chosen) for _ in wanted])
            past.lengths[row] -= len(tokens) - 1 - wanted[stands - 1]  # drop the tokens of the rejected draft
        left = [row for row, reply in enumerate(replies) if not reply.is_whole]
        if len(left) < len(replies):
            replies = [replies[row] for row in left]
            past.keep(left)


def _choose(weights: Weights, ahead: Sequence[Ahead], past: KeyValueCache, look: Attended | None) -> Iterator[int]:
    """Yield the predicted digit at each requested position; the smaller one if scores are equal."""
    shape = len(ahead), max(len(tokens) for tokens, _ in ahead)
    features = np.full((*shape, f.MOST), f.FEATURES, np.int64)
    last = np.zeros(shape, np.bool_)
    for row, (tokens, wanted) in enumerate(ahead):
        last[row, wanted] = True
        for place, token in enumerate(tokens):
            features[row, place, : len(token)] = token
    scores = forward(weights, features, features[:, :, 0] < f.FEATURES, past, look, last)
    return iter(scores.argmax(1).tolist())


MOST = 400_000  # cached replies, about 200 MB; later ones are decoded every time

Memory = dict[bytes, WrittenReply]

_memory: ContextVar[Memory | None] = ContextVar("what the network wrote", default=None)


@contextmanager
def cached_replies(memory: Memory) -> Iterator[None]:
    """Use and fill this cache of replies inside the block."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def decode_cached(weights: Weights, questions: Sequence[StepQuestion]) -> list[WrittenReply]:
    """Return the replies; inside `cached_replies`, a question is decoded once."""
    memory = _memory.get()
    if memory is None:
        return decode(weights, questions)
    keys = [_key(weights, question) for question in questions]
    fresh = {key: question for key, question in zip(keys, questions, strict=True) if key not in memory}
    made = dict(zip(fresh, decode(weights, list(fresh.values())), strict=True))
    if len(memory) + len(made) <= MOST:
        memory.update(made)
    return [made[key] if key in made else memory[key] for key in keys]


def _key(weights: Weights, question: StepQuestion) -> bytes:
    """Return a digest; the question itself would take ten times as much memory."""
    return blake2b(f"{weights.sha256} {question!r}".encode(), digest_size=16).digest()
