"""Reads the answer in a reply that is no command: JSON, `\\boxed{}`, a sentence, `ANSWER: words`; or one taken back.

A reply counts only if it states one value of the current step. Two different values, a value of another step, a range
or an expression are no answer: the step stays unanswered rather than being answered by a guess. The kinds of
statements are tried from the most to the least explicit, and the first that occurs decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eirkit.agents.wording import plain_digits
from eirkit.tasks.task import Payload

# The answer in words to a question about a conversation.
_WORDED = re.compile(r"^[ \t>*`_#\-]*ANSWER\b[ \t*_`]*:?[ \t*_`]*(.*)$", re.IGNORECASE | re.MULTILINE)
LONGEST_ANSWER = 65_536  # characters that are read, from the end
_OWN, _OTHER = "\ue000", "\ue001"  # stand for labels, so that their digits are not taken for values
_LABEL = re.compile(r"\b(?:A_?\{?|step[ _]?#?)0*([0-9]{1,6})\}?(?![0-9])", re.ASCII | re.IGNORECASE)
_FENCE = re.compile(r"```[a-z]*\n?|\\[\[\]()]|\\(?:text(?:bf)?|math(?:bf|rm))\b|[*`$]", re.ASCII | re.IGNORECASE)
_TAG = re.compile(r"<(/?)(?:final_?)?answer>", re.ASCII | re.IGNORECASE)
_DECODER = json.JSONDecoder()
_MOST_OBJECTS = 200  # of one reply
_BOXED = re.compile(r"\\boxed ?\{([^{}]*)\}")
_OWN_RECORD = re.compile(rf"{_OWN}[ \t\"']*(?:=|:|is\b|->|\u2192)([^\n]*)")
# The command after other words on its line.
_IN_LINE = re.compile(
    r"^([^\n]*?)\bANSWER[ \t]+(?:step ?|t ?= ?|A_)?0*([0-9]{1,6})[ \t:=,]+([0-9\[(][^\n]*)", re.ASCII | re.MULTILINE
)
_STATED = re.compile(
    rf"\b(?:answer|result|solution)s?\b([^\n.0-9{_OTHER}]{{0,60}}?)(?:\bis\b|\bare\b|:|=|->|\u2192)([^\n]*)",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"\b(?:(?:sum|total|max|maximum|largest|it|this|that)\s+(?:is|equals|=|comes to)|(?:i|we)\s+(?:get|got|find|obtain)"
    r"|gives|yields|makes|equals)\s*+(?::\s*+)?+([0-9][0-9,_']*+)(?=[.!\s]*+\Z|[.!;]\s)",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:(?:that|this|it)(?: is|['\u2019]s| was)(?: wrong| incorrect| not right| a mistake)"
    r"|(?:that|this|it) should (?:be|have been)|i (?:was wrong|made an? (?:mistake|error)|meant)"
    r"|my mistake|correction|corrected|oops|on second thoughts?|wait,? no|no,? wait)\b",
    re.IGNORECASE,
)
# A request to ignore the answer, and nothing else: "I can ignore that record 3 was dropped" and "ignore this line" are
# about something else.
_WITHDRAWS = re.compile(
    r"\bscratch that\b|\banswer(?: above)? (?:is|was) (?:withdrawn|retracted)\b"
    r"|\bi (?:withdraw|retract) (?:my|the|that|this)(?: above| last| previous)? answer\b"
    r"|(?:^|[^\w\s] ?|\bplease )(?:disregard|ignore|withdraw|retract) (?:that|this|it|the above"
    r"|(?:that|this|my|the above)(?: last| previous)? answer|the (?:last|previous) answer|the answer above)"
    r"(?= ?(?:[.,;:!)\n\u2014-]|and\b|\Z))",
    re.IGNORECASE | re.MULTILINE,
)
# Words that a check of the answer has as well, so that they take it back only before another answer.
_THINKS_AGAIN = re.compile(
    r"\b(?:actually|wait|hmm|sorry|instead|let me|misread|miscounted|re-?(?:check|calculat|comput)\w*)\b", re.IGNORECASE
)
# How a check of the answer ends in another one; "the previous result was: 4" and "adding both gives 8" are steps of it.
_ENDS_IN = re.compile(
    r"\b(?:(?:final|correct(?:ed)?|right|actual|new|revised) (?:answer|result|value|sum) ?"
    r"|(?:so|thus|hence|therefore),? it )(?:is\b|should be\b|:|=)([^\n]*)",
    re.IGNORECASE,
)
_WHOLE_LINE = re.compile(r"^[ \t>#\-]*(?:the )?answer ?(?:is\b|:|=)([^\n]*)", re.IGNORECASE | re.MULTILINE)
_SUPPOSED = re.compile(r"\b(?:if|suppos(?:e|ing))\b", re.IGNORECASE)
_UNREAL = re.compile(r"\b(?:would|were)\b", re.IGNORECASE)
_COMPARED = re.compile(r"[0-9] (?:more|less|fewer|larger|smaller|greater|higher|lower) than\b", re.IGNORECASE)
_EXAMPLE = re.compile(r"\b(?:example|for instance|e\.g\b|such as)", re.IGNORECASE)
_DOUBT = re.compile(r"\b(?:not|cannot|unable|unknown|missing|unsure|maybe|perhaps|if|or|either)\b|n't\b", re.IGNORECASE)
# A value is followed by nothing, by a remark in parentheses, or by words that contain no further number.
_VALUES = re.compile(
    r"([0-9](?:[0-9 \t,;_']|\band\b)*?)[\s,;]*"
    r"(?:\([^()]*\)?|[\s(,;](?!or\b|to\b|plus\b|minus\b|times\b|x\b)[^0-9+\-/]*)?"
)
_SENTENCE = re.compile(r"(?<=[0-9\])\"'])[.;!](?:\s|\Z)")
_THOUSANDS = re.compile(r"(?<![0-9])(?<![0-9],)[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])")
# Marks between thousands that separate nothing else.
MARK = re.compile(r"(?<=[0-9])[_'\u2019\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_NUMBER = re.compile(r"[0-9]+")
_STEP_KEYS = ("t", "step", "id", "label")
_VALUE_KEYS = ("answer", "final_answer", "value", "values", "v", "result")


def find_answer(text: str, t: int, width: int) -> Payload | None:
    """Return the values that a reply states for step t; None if it states none, or not one alone.

    Args:
        width: the number of values of an answer.
    """
    plain, masked = _prepared(text, t)
    kinds: tuple[Callable[[], Iterator[Payload | None]], ...] = (
        lambda: _in_json(plain, t, width),
        lambda: _in_box(plain, width),
        lambda: _in_line(plain, t, width),
        lambda: _stated(_OWN_RECORD, masked, width),
        lambda: _stated(_STATED, masked, width),
        lambda: _alone(masked, width),
        lambda: _in_a_sentence(masked, width),
    )
    for kind in kinds:
        if found := set(kind()):
            return found.pop() if len(found) == 1 else None
    return None


def is_taken_back(rest: str, t: int, values: Payload, q: int) -> bool:
    """True if what follows the answer of step t withdraws it, or calls it wrong and gives another value below q."""
    if not rest.strip():
        return False
    if _WITHDRAWS.search(rest[-LONGEST_ANSWER:]):
        return True
    width, (plain, masked) = len(values), _prepared(rest, t)
    if _TAKES_BACK.search(plain):
        numbers = readings(_LABEL.sub("", plain))
        if not any({t, *values}.issuperset(one for one in reading if one < q) for reading in numbers):
            return True
    kinds = [_in_line(plain, t, width)]
    if _THINKS_AGAIN.search(plain):
        own = "\n".join([line for line in masked.split("\n") if _OTHER not in line])  # what is said of no other step
        kinds += [_in_json(plain, t, width), _in_box(own, width)]
        kinds += [_stated(_OWN_RECORD, masked, width), _stated(_ENDS_IN, _without_others(masked), width)]
        if _OTHER not in masked:
            kinds.append(_stated(_WHOLE_LINE, masked, width))
    # The last one of a kind is what the reply arrives at.
    last = [found[-1] for kind in kinds if (found := [one for one in kind if one is not None and max(one) < q])]
    return any(one != values for one in last)


def _prepared(text: str, t: int) -> tuple[str, str]:
    """Return a text without markup, and the same with its labels replaced."""

    def mask(label: re.Match[str]) -> str:
        return _OWN if int(label.group(1)) == t else _OTHER

    text = _TAG.sub(lambda tag: "\n" if tag.group(1) else "\nfinal answer: ", plain_digits(text[-LONGEST_ANSWER:]))
    plain = _FENCE.sub("", MARK.sub("", text))
    return plain, _LABEL.sub(mask, plain)


def _without_others(masked: str) -> str:
    """Return the sentences of a text that name no other step."""
    return "\n".join([one for one in re.split(r"[.!?;]\s|\n", masked) if _OTHER not in one])


def readings(digits: str) -> tuple[Payload, Payload]:
    """Return the numbers in a text: each comma separates two, and commas before three digits separate thousands."""
    grouped = _THOUSANDS.sub(lambda number: number.group().replace(",", ""), digits)
    return _numbers(digits), _numbers(grouped)


def _numbers(digits: str) -> Payload:
    # The first 20 digits of a longer number are out of range as well, and bound the time of the conversion.
    return tuple([int(one if len(one) <= 20 else one.lstrip("0")[:20] or "0") for one in _NUMBER.findall(digits)])


def values_in(text: str, width: int) -> Payload | None:
    """Return the values if a text is nothing but an answer of this width."""
    clean = re.sub(r"(?<=[0-9])\.0{1,2}(?![0-9])", "", MARK.sub("", text)).strip(" \t\n\"'“”.:;!()[]{}=")
    found = _VALUES.fullmatch(clean)
    return None if found is None else next((one for one in readings(found.group(1)) if len(one) == width), None)


def _in_json(text: str, t: int, width: int) -> Iterator[Payload | None]:
    """Yield the values of each JSON object in a text; what is inside an object is a part of it."""
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            document, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield from _in_object(document, t, width)
        at = text.find("{", end)


def _in_object(document: Mapping[str, Any], t: int, width: int) -> Iterator[Payload | None]:
    keys = {str(key).lower(): value for key, value in document.items()}
    steps = [str(keys[name]) for name in _STEP_KEYS if name in keys]
    if any((digits := _NUMBER.search(step)) is None or int(digits.group()[:9]) != t for step in steps):
        yield None  # of another step
        return
    own = [value for key, value in keys.items() if (label := _LABEL.fullmatch(key)) and int(label.group(1)) == t]
    for value in [*(keys[name] for name in _VALUE_KEYS if name in keys), *own]:
        if isinstance(value, Mapping):
            yield from _in_object(value, t, width)
        else:
            yield values_in(value if isinstance(value, str) else json.dumps(value), width)


def _stated(pattern: re.Pattern[str], masked: str, width: int) -> Iterator[Payload | None]:
    """Yield the values after what introduces them; `= 12 + 30 = 42` states 42, and a formula without a value none."""
    for found in pattern.finditer(masked):
        rest = _SENTENCE.split(found.groups()[-1])[0].replace(_OWN, "").replace(_OTHER, "")
        line = masked.rfind("\n", 0, found.start()) + 1
        before = _last_sentence(masked[line : found.start(found.lastindex or 0)])
        if _COMPARED.search(rest) or (_SUPPOSED.search(before) and _UNREAL.search(before)):
            continue
        value = values_in(rest, width) or values_in(rest.rpartition("=")[2], width)
        if value is not None:
            yield value


def _in_line(plain: str, t: int, width: int) -> Iterator[Payload | None]:
    """Yield the values of commands that follow other words; None for one in doubt or of another step."""
    for before, label, rest in _IN_LINE.findall(plain):
        first, last = _SENTENCE.split(rest)[0], _last_sentence(before)
        doubt = _DOUBT.search(last.rpartition(": ")[2]) or _DOUBT.search(first) or _EXAMPLE.search(last)
        yield None if int(label) != t or doubt else values_in(first, width)


def _last_sentence(text: str) -> str:
    return re.split(r"(?<!e\.g)[.!?;]\s", text)[-1]


def _in_box(plain: str, width: int) -> Iterator[Payload | None]:
    return (values_in(boxed, width) for boxed in _BOXED.findall(plain))


def _alone(masked: str, width: int) -> Iterator[Payload | None]:
    bare = masked.strip().removeprefix(_OWN)
    if re.fullmatch(r"[\s0-9,;_'\"“”.\[\]()=:]*(?:\band\b[\s0-9]*)?", bare) and _NUMBER.search(bare):
        yield values_in(bare, width)


def _in_a_sentence(masked: str, width: int) -> Iterator[Payload | None]:
    """Yield the only number of a text, if it is the outcome of a sentence without doubt."""
    if width == 1 and len(set(_numbers(_THOUSANDS.sub("1", masked)))) == 1 and not _DOUBT.search(masked):
        yield from (values_in(found, width) for found in _FOUND.findall(masked))


def read_worded_answer(reply: str) -> str | None:
    """Return what follows `ANSWER:` in a reply about a conversation, the last if there are several, else None."""
    found = _WORDED.findall(reply)
    return found[-1].strip() if found and found[-1].strip() else None


def without_marker(reply: str) -> str:
    """Return a reply without the words that mark its answer, so that it begins and ends with what was said."""
    return _WORDED.sub(lambda found: found[1], reply).strip()
