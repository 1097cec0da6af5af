"""The token features of the bundled network: a token is a set of features, its embedding is their sum.

A value in the prompt is one token that carries the label of its line, so a record `A_07 = 0042` is one token with four
digits of a label and four of a value. The network writes digits, one token each. Tokens do not encode their position
in the text, but which value, reference and decimal place they are.
"""

from __future__ import annotations

PLACES = 4  # decimal places of a value, and of a label
WIDTH = 4  # values per record
FAN_IN = 4  # references per step
LARGEST_LABEL = 10**PLACES - 1

RECORD, INPUT, REFERENCE, OPERAND, ANSWER, DIGIT = range(6)  # what a token is
OPERATORS = ("sum", "max", "copy", "top")
SUM, MAX, COPY, TOP = range(4)
_OPERATOR = 6
LABEL = _OPERATOR + len(OPERATORS)  # + 10 × place + digit
VALUE = LABEL + 10 * PLACES  # + 10 × place + digit; places that a value does not have are left out
INDEX = VALUE + 10 * PLACES  # + which value of a record
ORDER = INDEX + WIDTH  # + which reference; FAN_IN stands for the answer
WRITTEN = ORDER + FAN_IN + 1  # + digit, of a token that the network wrote
PLACE = WRITTEN + 10  # + decimal place of such a token
DIGITS = PLACE + PLACES  # + digits a value − 1
SLOTS = DIGITS + PLACES  # + values a record − 1
FEATURES = SLOTS + WIDTH
MOST = 10  # most features of a token, which are those of a record


def operator(which: int) -> int:
    """Return the feature of an operator's token."""
    return _OPERATOR + which


def written_places(which: int, digits: int) -> range:
    """Return the decimal places of an answer in the order of writing: a sum begins where its carries do."""
    return range(digits) if which == SUM else range(digits - 1, -1, -1)
