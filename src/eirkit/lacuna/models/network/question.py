"""Encodes a step as tokens of the bundled network and decodes its digits into values.

The layout of a reply is fixed and the network writes its digits: the value of each reference in order, then the
answer. Digits are numbered through the whole reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from msgspec import Struct

from eirkit.errors import UsageError
from eirkit.lacuna.models.network import layout as f
from eirkit.lacuna.models.network.network import LONGEST
from eirkit.lacuna.tasks.task import Payload

Token = tuple[int, ...]


class StepQuestion(Struct, frozen=True, gc=False):
    """One step as the network reads it."""

    operator: int
    digits: int
    width: int  # values per record
    records: tuple[tuple[int, Payload], ...]
    input: Payload | None
    refs: tuple[int, ...]

    @property
    def frame(self) -> tuple[int, int, int]:
        """Numbers of lines, values and digits; replies with the same frame have the same layout."""
        return self.width, self.digits, len(self.refs)

    @property
    def line(self) -> int:
        """Number of digits of a line."""
        return self.width * self.digits

    @property
    def length(self) -> int:
        """Number of digits of the reply."""
        return (len(self.refs) + 1) * self.line

    @property
    def size(self) -> int:
        """Number of tokens of the step and its reply."""
        prompt = len(self.records) * self.width + 1 + self.width + len(self.refs)
        return prompt + len(self.refs) + 1 + self.length

    def places(self, line: int) -> range:
        """Return the decimal places of a line's values in the order of writing."""
        return f.written_places(self.operator if line == len(self.refs) else f.COPY, self.digits)


@dataclass(frozen=True, slots=True)
class WrittenReply:
    """A decoded reply of the network."""

    operands: tuple[Payload, ...]  # the value written for each reference, present or not
    answer: Payload


def check(question: StepQuestion) -> None:
    """Raise UsageError if a step is too large for the network."""
    limits = (
        ("digits", question.digits, f.PLACES),
        ("values per record", question.width, f.WIDTH),
        ("references", len(question.refs), f.FAN_IN),
        ("as label", max((label for label, _ in question.records), default=0), f.LARGEST_LABEL),
        ("as label", max(question.refs, default=0), f.LARGEST_LABEL),
        ("tokens", question.size, LONGEST),
    )
    for what, found, most in limits:
        if found > most:
            raise UsageError(
                f"the bundled network reads at most {most} {what}, this step has {found}; use a smaller task"
            )


def prompt_tokens(question: StepQuestion) -> list[Token]:
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


def start_token(question: StepQuestion, line: int) -> Token:
    """Return the token before a line, which names the reference or announces the answer."""
    if line == len(question.refs):
        return (f.ANSWER, f.ORDER + f.FAN_IN)
    return (f.OPERAND, *_label(question.refs[line]), f.ORDER + line)


def tokens_after(question: StepQuestion, number: int, digit: int) -> list[Token]:
    """Return the token of a written digit and, at the end of a line, the token before the next line."""
    line, turn = divmod(number, question.line)
    index, place = divmod(turn, question.digits)
    answers = line == len(question.refs)
    label = () if answers else _label(question.refs[line])
    order, at = f.FAN_IN if answers else line, question.places(line)[place]
    token = (f.DIGIT, *label, f.ORDER + order, f.WRITTEN + digit, f.PLACE + at, f.INDEX + index)
    return [token, start_token(question, line + 1)] if turn + 1 == question.line and not answers else [token]


def digits_of(question: StepQuestion, line: int, values: Payload) -> list[int]:
    """Return the digits of a line in the order of writing."""
    return [value // 10**place % 10 for value in values for place in question.places(line)]


def values_of(question: StepQuestion, line: int, digits: Sequence[int]) -> Payload:
    """Return the values from the digits of a line."""
    powers = [10**place for place in question.places(line)]
    starts = range(0, question.line, question.digits)
    return tuple(sum(digits[start + i] * power for i, power in enumerate(powers)) for start in starts)


def written(question: StepQuestion, digits: Sequence[int]) -> WrittenReply:
    """Return the values of a complete reply."""
    size = question.line
    lines = [values_of(question, line, digits[line * size :][:size]) for line in range(len(question.refs) + 1)]
    return WrittenReply(tuple(lines[:-1]), lines[-1])


@lru_cache(maxsize=1 << 14)
def _label(label: int) -> Token:
    return tuple(f.LABEL + 10 * place + label // 10**place % 10 for place in range(f.PLACES))


@lru_cache(maxsize=1 << 16)
def _value(value: int, digits: int) -> Token:
    return tuple(f.VALUE + 10 * place + value // 10**place % 10 for place in range(digits))
