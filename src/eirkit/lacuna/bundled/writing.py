"""Greedy writing, many steps at a time: questions come in, the digits that the network wrote go out as values.

The frame is given, the digits are the network's own: for each reference, in order, the value it has looked up; then
the answer. Steps of one frame are written together; what stands beside a step changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from eirkit.errors import UsageError
from eirkit.facts import fact
from eirkit.lacuna.bundled import features as f
from eirkit.lacuna.bundled.layout import Weights
from eirkit.lacuna.bundled.network import LONGEST, Attended, Past, forward
from eirkit.lacuna.task import Payload

TOGETHER = 64  # steps; more gain little and take memory

Token = tuple[int, ...]


@fact
class Question:
    """One step as the network reads it."""

    operator: int
    digits: int
    width: int  # values a record
    records: tuple[tuple[int, Payload], ...]
    input: Payload | None
    refs: tuple[int, ...]

    @property
    def frame(self) -> tuple[int, int, int]:
        """What steps must share to be written together."""
        return self.width, self.digits, len(self.refs)


@dataclass(frozen=True, slots=True)
class Written:
    """What the network wrote."""

    operands: tuple[Payload, ...]  # what it looked up for each reference, there or not
    answer: Payload


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the frame: a reference or the answer."""

    order: int  # which reference; FAN_IN for the answer
    starts: list[Token]  # by row
    labels: list[Token]  # what every token of the line carries, by row
    places: list[tuple[int, ...]]  # in the order of writing, by row


def check(question: Question) -> None:
    """Raise UsageError where the network has no words for a step."""
    limits = (
        ("digits", question.digits, f.PLACES),
        ("values a record", question.width, f.WIDTH),
        ("references", len(question.refs), f.FAN_IN),
        ("as label", max((label for label, _ in question.records), default=0), f.LARGEST_LABEL),
        ("as label", max(question.refs, default=0), f.LARGEST_LABEL),
        ("tokens", _size(question), LONGEST),
    )
    for what, found, most in limits:
        if found > most:
            raise UsageError(
                f"the bundled network reads at most {most} {what}, this step has {found}; use a smaller task"
            )


def write(weights: Weights, questions: Sequence[Question]) -> list[Written]:
    """Return what the network writes for each question."""
    found: dict[int, Written] = {}
    for rows in _groups(questions):
        written = write_together(weights, [questions[row] for row in rows])
        found.update(zip(rows, written, strict=True))
    return [found[row] for row in range(len(questions))]


@cache
def _libraries() -> ThreadpoolController:
    """Return what can tell the libraries of this process how many threads to use; looking for them takes a while."""
    return ThreadpoolController()


def _groups(questions: Sequence[Question]) -> Iterator[list[int]]:
    """Yield rows of one frame, those of similar length together."""
    frames: dict[tuple[int, int, int], list[int]] = {}
    for row, question in enumerate(questions):
        check(question)
        frames.setdefault(question.frame, []).append(row)
    for rows in frames.values():
        rows.sort(key=lambda row: len(questions[row].records))
        for start in range(0, len(rows), TOGETHER):
            yield rows[start : start + TOGETHER]


def write_together(
    weights: Weights, questions: Sequence[Question], looks: list[Attended] | None = None
) -> list[Written]:
    """Return what is written for questions of one frame.

    Args:
        looks: takes where each token looked, an entry for each forward pass.
    """
    # The products are small: threads would wait for one another longer than they work.
    with _libraries().limit(limits=1, user_api="blas"):
        values = _write(weights, questions, looks)
    return [_written([array[row] for array in values]) for row in range(len(questions))]


def _write(weights: Weights, questions: Sequence[Question], looks: list[Attended] | None) -> list[NDArray[np.int64]]:
    """Return the values of each line of the frame, (questions, width)."""
    width, digits, refs = questions[0].frame
    prompts = [prompt_tokens(question) for question in questions]
    longest = max(map(len, prompts))
    past = Past(len(questions), weights, longest + (refs + 1) * (1 + width * digits))
    fed = [[()] * (longest - len(prompt)) + prompt for prompt in prompts]
    lines = [_operand_line(questions, i) for i in range(refs)] + [_answer_line(questions)]
    values: list[NDArray[np.int64]] = []
    for line in lines:
        fed = [[*tokens, start] for tokens, start in zip(fed, line.starts, strict=True)]
        values.append(np.zeros((len(questions), width), np.int64))
        for slot in range(width * digits):
            look = None if looks is None else Attended([])
            scores = _feed(weights, fed, past, look)
            if look is not None and looks is not None:
                looks.append(look)
            index, turn = divmod(slot, digits)
            chosen = scores.argmax(1)  # of equal scores the smaller digit
            place = np.array([places[turn] for places in line.places])
            values[-1][:, index] += chosen * 10**place
            fed = [
                [_digit(line.order, label, int(digit), int(at), index)]
                for label, digit, at in zip(line.labels, chosen, place, strict=True)
            ]
    return values


def _written(values: list[NDArray[np.int64]]) -> Written:
    *operands, answer = (tuple(map(int, one)) for one in values)
    return Written(tuple(operands), answer)


def _feed(weights: Weights, fed: list[list[Token]], past: Past, look: Attended | None) -> NDArray[np.float32]:
    features = np.full((len(fed), len(fed[0]), f.MOST), f.FEATURES, np.int64)
    for row, tokens in enumerate(fed):
        for place, token in enumerate(tokens):
            features[row, place, : len(token)] = token
    return forward(weights, features, features[:, :, 0] < f.FEATURES, past, look)


def prompt_tokens(question: Question) -> list[Token]:
    """Return the tokens of a step: its records, the operator, its input and its references."""
    digits = question.digits
    records = [
        (f.RECORD, *_label(label), *_value(value, digits), f.INDEX + index)
        for label, values in question.records
        for index, value in enumerate(values)
    ]
    operator = (f.operator(question.operator), f.DIGITS + digits - 1, f.SLOTS + question.width - 1)
    inputs = [(f.INPUT, *_value(value, digits), f.INDEX + i) for i, value in enumerate(question.input or ())]
    references = [(f.REFERENCE, *_label(label), f.ORDER + i) for i, label in enumerate(question.refs)]
    return [*records, operator, *inputs, *references]


def _operand_line(questions: Sequence[Question], i: int) -> Line:
    labels = [_label(question.refs[i]) for question in questions]
    starts = [(f.OPERAND, *label, f.ORDER + i) for label in labels]
    falling = tuple(range(questions[0].digits - 1, -1, -1))
    return Line(i, starts, labels, [falling] * len(questions))


def _answer_line(questions: Sequence[Question]) -> Line:
    places = [tuple(f.written_places(question.operator, question.digits)) for question in questions]
    start = (f.ANSWER, f.ORDER + f.FAN_IN)
    return Line(f.FAN_IN, [start] * len(questions), [()] * len(questions), places)


def _digit(order: int, label: Token, digit: int, place: int, index: int) -> Token:
    return (f.DIGIT, *label, f.ORDER + order, f.WRITTEN + digit, f.PLACE + place, f.INDEX + index)


def _size(question: Question) -> int:
    prompt = len(question.records) * question.width + 1 + question.width + len(question.refs)
    return prompt + (len(question.refs) + 1) * (1 + question.width * question.digits)


@lru_cache(maxsize=1 << 14)
def _label(label: int) -> Token:
    return tuple(f.LABEL + 10 * place + label // 10**place % 10 for place in range(f.PLACES))


@lru_cache(maxsize=1 << 16)
def _value(value: int, digits: int) -> Token:
    return tuple(f.VALUE + 10 * place + value // 10**place % 10 for place in range(digits))
