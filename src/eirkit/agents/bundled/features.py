"""What the bundled network's tokens are made of. A token is a set of features; its embedding is their sum.

Every value that is written is one token and carries the label of its line, so that a record `A_07 = 0042` is one token
with four digits of a label and four of a value. What the network writes are digits, one token each. Nothing says where
in the text a token stands, but which value, reference and decimal place it is.
"""

from __future__ import annotations

PLACES = 4  # decimal places of a value, and of a label
WIDTH = 4  # values a record
FAN_IN = 4  # references a step
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
MOST = 10  # features a token has at most: a record's


def operator(which: int) -> int:
    """Return the feature of an operator's token."""
    return _OPERATOR + which


def written_places(which: int, digits: int) -> range:
    """Return the decimal places of an answer in the order of writing: a sum begins where its carries do."""
    return range(digits) if which == SUM else range(digits - 1, -1, -1)
