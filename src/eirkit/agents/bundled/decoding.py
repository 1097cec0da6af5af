"""Guesses at what the network will write next: a question and the digits so far come in, further digits go out.

A guess is worth its tokens in one pass instead of many, and nothing else: the network judges every digit of it, and
the first that it would not have written ends it. A wrong guess costs time and changes no reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from hashlib import blake2b

import numpy as np
from threadpoolctl import ThreadpoolController

from eirkit.agents.bundled import features as f
from eirkit.agents.bundled.layout import Weights
from eirkit.agents.bundled.network import Attended, KeyValueCache, forward
from eirkit.agents.bundled.question import (
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
from eirkit.tasks.task import Payload


def draft(question: StepQuestion, so_far: Sequence[int]) -> list[int]:
    """Return what probably follows: records looked up, then the operator on them; up to where there is no telling."""
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
    """Guess nothing, so that every digit has a pass of its own."""
    return []


def _guess(question: StepQuestion, line: int, begun: Sequence[int], operands: list[Payload]) -> Payload | None:
    if line == len(question.refs):
        return _result(question, operands)
    held = dict(question.records)
    if (label := question.refs[line]) in held:
        return held[label]
    # What stands in for a missing value is most often a resident one, oftenest one with a like label.
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


TOGETHER = 64  # runs that are under way at a time
TOKENS = 600  # of a pass, about: more leave the processor's cache

Draft = Callable[[StepQuestion, Sequence[int]], list[int]]
Ahead = tuple[list[Token], list[int]]  # the tokens of a pass, and those among them after which a digit is wanted


class PartialReply:
    """One reply while it is written."""

    def __init__(self, question: StepQuestion) -> None:
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


def decode(weights: Weights, questions: Sequence[StepQuestion], guess: Draft = draft) -> list[WrittenReply]:
    """Return what the network writes for each question; equal ones are written once."""
    found: dict[StepQuestion, WrittenReply] = {}
    for some in _groups(questions):
        found.update(zip(some, decode_together(weights, some, guess=guess), strict=True))
    return [found[question] for question in questions]


def _groups(questions: Sequence[StepQuestion]) -> Iterator[list[StepQuestion]]:
    """Yield different questions in groups of similar length, each a pass of not too many tokens."""
    some: list[StepQuestion] = []
    for question in sorted(set(questions), key=lambda question: question.size):
        check(question)
        if (len(some) + 1) * question.size > TOKENS and some:
            yield some
            some = []
        some.append(question)
    if some:
        yield some


def decode_together(
    weights: Weights, questions: Sequence[StepQuestion], looks: list[Attended] | None = None, guess: Draft = draft
) -> list[WrittenReply]:
    """Return what is written for questions that share their passes.

    Args:
        looks: takes where each token looked, an entry for each pass; then every digit has its own. The questions are of
            one frame.
    """
    # The products are small: threads would wait for one another longer than they work.
    with _libraries().limit(limits=1, user_api="blas"):
        replies = [PartialReply(question) for question in questions]
        _write(weights, replies, guess if looks is None else draft_nothing, looks)
    return [written(reply.question, reply.digits) for reply in replies]


@cache
def _libraries() -> ThreadpoolController:
    """Return what can tell the libraries of this process how many threads to use; looking for them takes a while."""
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
            past.lengths[row] -= len(tokens) - 1 - wanted[stands - 1]  # the others were guessed wrong
        left = [row for row, reply in enumerate(replies) if not reply.is_whole]
        if len(left) < len(replies):
            replies = [replies[row] for row in left]
            past.keep(left)


def _choose(weights: Weights, ahead: Sequence[Ahead], past: KeyValueCache, look: Attended | None) -> Iterator[int]:
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


MOST = 400_000  # steps, about 200 MB; what comes after them is written each time

Memory = dict[bytes, WrittenReply]

_memory: ContextVar[Memory | None] = ContextVar("what the network wrote", default=None)


@contextmanager
def cached_replies(memory: Memory) -> Iterator[None]:
    """Take steps from this memory, and put new ones into it, as long as the block lasts."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def decode_cached(weights: Weights, questions: Sequence[StepQuestion]) -> list[WrittenReply]:
    """Return what the network writes; inside `remembering`, what it wrote for the same question before."""
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
    """Return a digest: a question itself takes ten times as much room."""
    return blake2b(f"{weights.sha256} {question!r}".encode(), digest_size=16).digest()
