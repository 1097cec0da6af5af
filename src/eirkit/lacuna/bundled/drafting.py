"""Guesses at what the network will write next: a question and the digits so far come in, further digits go out.

A guess is worth its tokens in one pass instead of many, and nothing else: the network judges every digit of it, and
the first that it would not have written ends it. A wrong guess costs time and changes no reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.lacuna.bundled import features as f
from eirkit.lacuna.bundled.question import Question, digits_of, values_of
from eirkit.lacuna.task import Payload


def draft(question: Question, so_far: Sequence[int]) -> list[int]:
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


def nothing(question: Question, so_far: Sequence[int]) -> list[int]:
    """Guess nothing, so that every digit has a pass of its own."""
    return []


def _guess(question: Question, line: int, begun: Sequence[int], operands: list[Payload]) -> Payload | None:
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


def _result(question: Question, operands: list[Payload]) -> Payload | None:
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
