"""Reads the answer in a reply that is no command: JSON, `\\boxed{}`, a sentence, `ANSWER: words`; or one taken back.

A reply counts only if it states one value of the current step. Two different values, a value of another step, a range,
an expression, a condition or a change of mind are no answer: the step stays unanswered rather than being answered by a
guess. The kinds of statements are tried from the most to the least explicit, and the first that occurs decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eirkit.lacuna.agents.recognition import plain_digits
from eirkit.lacuna.tasks.task import Payload

# The answer in words to a question about a conversation.
_WORDED = re.compile(r"^[ \t>*`_#\-]*ANSWER\b[ \t*_`]*:?[ \t*_`]*(.*)$", re.IGNORECASE | re.MULTILINE)
# A line below it that begins by taking it back; other lines may be what a standing instruction demands.
_WORDED_BACK = re.compile(
    r"^[ \t>*`_#\-]*(?:wait,? no|no,? wait|scratch that|correction|oops|on second thoughts?)\b",
    re.IGNORECASE | re.MULTILINE,
)
LONGEST_ANSWER = 65_536  # characters that are read, from the end
_FAR = 400  # characters back to which a sentence or its condition may begin; bounds the time of a long reply
_STEP = r"schritt|étape|etapa|paso|passo|stap|шаг\w?|步骤|ステップ|단계"
_OWN, _OTHER = "\ue000", "\ue001"  # stand for labels, so that their digits are not taken for values
_LABEL = re.compile(
    rf"(?:\b(?:A_?\{{?|step[ _]?#?)|(?:{_STEP}) ?|第 ?)0*([0-9]{{1,6}})\}}?(?![0-9])", re.ASCII | re.IGNORECASE
)
_FENCE = re.compile(r"```[a-z]*\n?|\\[\[\]()]|\\(?:text(?:bf)?|math(?:bf|rm))\b|[*`$]", re.ASCII | re.IGNORECASE)
_TAG = re.compile(r"<(/?)(?:final_?)?answer>", re.ASCII | re.IGNORECASE)
_DECODER = json.JSONDecoder()
_MOST_OBJECTS = 200  # of one reply
_BOXED = re.compile(r"\\boxed ?\{([^{}]*)\}")
_OWN_RECORD = re.compile(rf"{_OWN}[ \t\"']*(?:=|:|is\b|->|\u2192)(?=([^\n]{{0,999}}))")
# The command after other words on its line.
_IN_LINE = re.compile(
    r"^([^\n]*?)\bANSWER[ \t]+(?:step ?|t ?= ?|A_)?0*([0-9]{1,6})[ \t:=,]+([0-9\[(][^\n]*)", re.ASCII | re.MULTILINE
)
_STATED = re.compile(
    rf"\b(?:answer|result|solution)s?\b([^\n.0-9{_OTHER}]{{0,60}}?)(?:\bis\b|\bare\b|:|=|->|\u2192)(?=([^\n]{{0,999}}))",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"\b(?:(?:sum|total|max|maximum|largest|it|this|that)\s+(?:is|equals|=|comes to)|(?:i|we)\s+(?:get|got|find|obtain)"
    r"|gives|yields|makes|equals)\s*+(?::\s*+)?+([0-9][0-9,_']*+)(?=[.!\s]*+\Z|[.!;]\s)",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:(?:that|this|it)(?: is|['\u2019]s| was)(?: wrong| incorrect| not right| a mistake)"
    r"|(?:that|this|it) should (?:be|have been)|i (?:was wrong|made an? (?:mistake|error)|meant)|or rather|make that"
    r"|my mistake|correction|corrected|edit(?=:)|oops|on second thoughts?|wait,? no|no,? wait)\b",
    re.IGNORECASE,
)
# A request to ignore the answer, and nothing else: "I can ignore that record 3 was dropped" and "ignore this line" are
# about something else.
_WITHDRAWS = re.compile(
    r"\b(?:scratch|strike) that\b|\banswer(?: above)? (?:is|was) (?:withdrawn|retracted)\b"
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
_FINAL = r"(?:final|correct(?:ed)?|right|actual|new|revised)"
_ENDS_IN = re.compile(
    rf"\b(?:{_FINAL} (?:answer|result|value|sum) ?|(?:so|thus|hence|therefore),? it )"
    r"(?:is\b|should be\b|:|=)(?=([^\n]{0,999}))",
    re.IGNORECASE,
)
# Another answer on a line of its own, after the one that counts.
_WHOLE_LINE = re.compile(
    rf"^[ \t>#\-]*(?:the )?(?:{_FINAL} )?answer ?(?:is\b|:|=)([^\n]*)", re.IGNORECASE | re.MULTILINE
)
_EITHER = re.compile(r"\s*[0-9][0-9,]*+ or [0-9]")
_IF = re.compile(rf"\b(?:if|unless|suppos(?:e|ing)|assuming|provided (?:that\b|[{_OWN}{_OTHER}]))", re.IGNORECASE)
_SUPPOSES = re.compile(r"\W*(?:(?:let us|let's|please) )?(?:suppose|assume|imagine)\b", re.IGNORECASE)
_NOT_THIS = re.compile(
    r"\b(?:wrong|incorrect|intermediate|partial|previous|earlier|last|old|example(?:'s)?|sample)\s*\Z", re.IGNORECASE
)
# What comes before the answer of another step: "Step 6: the", "For A_6, the", "A_6's".
_HEADED = re.compile(
    rf"(?:^[\s>#-]*|\b(?:for|of|at|in) ){_OTHER}\s*[:,–—-](?:[^\W\d]|\s){{0,20}}\Z|{_OTHER}['’]s(?: \w+)?\s*\Z",
    re.IGNORECASE,
)
# The record of another step beside the answer: "42 because A_3 = 4" states 42, and "A_3 + A_5 = 42" is no such record.
_BESIDE = re.compile(rf"([^\s+*×−=(-])\s*{_OTHER}\s*(?:=|is\b)\s*[0-9][0-9,]*+(?!\s*[+*×−=-])")
_OF_BEFORE = re.compile(r"\b(?:previous|earlier|last|first) (?:step|one|answer)\b", re.IGNORECASE)
_COMPARED = re.compile(r"[0-9] (?:more|less|fewer|larger|smaller|greater|higher|lower) than\b", re.IGNORECASE)
_EXAMPLE = re.compile(r"\b(?:example|for instance|e\.g\b|such as)", re.IGNORECASE)
# What in the words after a value makes it no answer, up to those that give a reason for it.
_REASON = re.compile(r"\b(?:because|since|as|using|from|via|after|given|by)\b", re.IGNORECASE)
_UNDONE = re.compile(
    r"\b(?:if|unless|assuming|provided|or|otherwise|maybe|perhaps|possibly|probably|wrong|incorrect"
    rf"|at (?:most|least))\b|\?|^[^,;(]*{_OTHER}",
    re.IGNORECASE,
)
_CONTRAST = re.compile(r", (?:and )?not [0-9][0-9,]*+$")
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
# In other languages than English (`La réponse est 42`, `答案是 42`) only the plainest sentence is read: a word for the
# answer, at most a few words, a word for "is", the value, and the end of the sentence.
_NOUN = (
    r"(?:\b(?:r[ée]ponse|r[ée]sultat|antwort|ergebnis|l[öo]sung|respuesta|resultado|resposta|risposta|risultato"
    r"|antwoord|svaret?|odpowied[źz]|wynik|cevap|ответ|результат|відповідь|jawaban)\b"
    r"|答案|结果|結果|答え|回答|정답|답|الجواب|الإجابة|उत्तर)"
)
_IS = r"(?:\b(?:est|ist|lautet|es|é|è|is|er|är|to|adalah|هو|هي)\b|[:=—是为為は은는])"
_SO = r"(?:(?:donc|also|somit|daher|entonces|pues|quindi|portanto|dus) )?"
_STATED_ELSEWHERE = re.compile(
    rf"{_NOUN}([^\n.。!?;:=0-9{_OTHER}]{{0,30}}?){_IS}[ \t]*{_SO}([0-9][0-9,]*+)"
    r"(?:です|である|だ|입니다|이다| है)?(?=[ \t]*(?:[.!。।](?![0-9])|\(|\n|\Z))",
    re.IGNORECASE,
)
_DOUBT_ELSEWHERE = re.compile(
    r"\b(?:pas|nicht|kein\w*|no|não|nao|non|niet|inte|ikke|nie|не|"  # not
    r"si|wenn|falls|sofern|angenommen|se|caso|als|indien|если|jeśli|eğer|suppos\w*|"  # if
    r"ou|oder|of|или|albo|"  # or
    r"peut-être|vielleicht|möglicherweise|quizás?|tal vez|talvez|forse|misschien|возможно|может|"  # perhaps
    r"précédente?|derni[eè]re?|letzte\w*|vor(?:her)?ig\w*|anterior|[uú]ltim[ao]|precedente|прошл\w*|предыдущ\w*|"
    r"falsch\w*|mauvaise?|incorrect[ao]?e?|errad[ao]|errat[ao]|sbagliat[ao]|vorläufig\w*|interm[ée]di\w*|parcial|partiel\w*|"
    r"exemple|beispiel\w*|ejemplo|exemplo|esempio|пример\w*)\b"
    r"|[不没若错非]|如果|假设|假如|可能|也许|或|上一|前|中间|例|もし|なら|れば|ない|たぶん|만약|아니|아마|이전|إذا|ليس|यदि|अगर|नहीं",
    re.IGNORECASE,
)
_HEADED_ELSEWHERE = re.compile(rf"[\s>#-]*{_OTHER}\s*[:,：，-]")
# How a sentence begins that takes an answer back, up to the value in its place.
_REPLACES = re.compile(
    r"(?:^|[.!?;,。]\s*+)(?:(?:(?:no|non|nein|nee|não|нет)\b(?= ?[,.:;!-])|不对|不對|错了|いや|違い|아니)"
    r"[ ,.:;!-]*+(?:[^\W\d]++[ ,:'’-]*+){0,4}"
    r"|(?:actually|wait|sorry|i mean)\b,? (?:no,? )?(?:(?:it|that)(?: is|['’]s) |the answer is )?)"
    r"([0-9][0-9,]*+)(?=\s*+(?:[.!。](?![0-9])|\Z)|[^\S\n]*+\n)",
    re.IGNORECASE | re.MULTILINE,
)


def find_answer(text: str, t: int, width: int, q: int) -> Payload | None:
    """Return the values that a reply states for step t; None if it states none, or not one alone, or takes it back.

    Args:
        width: the number of values of an answer.
        q: every value of an answer is below it.
    """
    text = text[-LONGEST_ANSWER:]
    values = _find_stated(text, t, width)
    if values is None or (again := _again(text)) is None or _find_stated(text[: again.start()], t, width) is None:
        return values
    return None if is_taken_back(text[again.start() :], t, values, q) else values


def _again(text: str) -> re.Match[str] | None:
    """Return where a text first speaks of an answer before it."""
    found = [one for pattern in (_TAKES_BACK, _WITHDRAWS, _THINKS_AGAIN, _REPLACES) if (one := pattern.search(text))]
    return min(found, key=lambda one: one.start(), default=None)


def _find_stated(text: str, t: int, width: int) -> Payload | None:
    plain, masked = _prepared(text, t)
    kinds: tuple[Callable[[], Iterator[Payload | None]], ...] = (
        lambda: _in_json(plain, t, width),
        lambda: _in_box(plain, width),
        lambda: _in_line(plain, t, width),
        lambda: _stated(_OWN_RECORD, masked, width),
        lambda: _stated(_STATED, masked, width),
        lambda: (values_in(digits, width) for digits in _stated_elsewhere(masked)),
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

    def has_others(said: str) -> bool:
        return not any({t, *values}.issuperset(one for one in numbers if one < q) for numbers in readings(said))

    if _TAKES_BACK.search(plain) and has_others(_LABEL.sub("", plain)):
        return True
    if any(has_others(one) for one in _REPLACES.findall(masked)):
        return True
    own = "\n".join([line for line in masked.split("\n") if _OTHER not in line])  # what is said of no other step
    kinds = [_in_line(plain, t, width), _in_json(plain, t, width), _in_box(own, width)]
    if _OTHER not in masked:
        kinds.append(_stated(_WHOLE_LINE, masked, width))
        if any(_EITHER.match(one) and has_others(one) for one in _WHOLE_LINE.findall(masked)):
            return True
    if _THINKS_AGAIN.search(plain):
        kinds += [_stated(_OWN_RECORD, masked, width), _stated(_ENDS_IN, _without_others(masked), width)]
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
    return "\n".join([one for one in _sentences(masked) if _OTHER not in one])


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
        words = _BESIDE.sub(r"\1", _CONTRAST.sub("", _SENTENCE.split(found.groups()[-1])[0]))
        rest = words.replace(_OWN, "").replace(_OTHER, "")
        if _COMPARED.search(rest) or _is_doubted(masked, found):
            continue
        if _UNDONE.search(_REASON.split(words.rpartition("=")[2].lstrip(f"{_OWN}{_OTHER} :*"))[0]):
            continue
        value = values_in(rest, width) or values_in(rest.rpartition("=")[2], width)
        if value is not None:
            yield value


def _is_doubted(masked: str, found: re.Match[str]) -> bool:
    """True if the words before a value make it depend on something, deny it, or say it of another answer."""
    if len(found.groups()) > 1:
        between, before = found.group(1), _sentences(masked[max(0, found.start() - _FAR) : found.start()])[-1]
        if _DOUBT.search(between) or _OF_BEFORE.search(between) or (_OWN not in between and _HEADED.search(before)):
            return True
    just_before = masked[max(0, found.start() - 20) : found.start()]
    return _is_supposed(masked, found.end()) or _NOT_THIS.search(just_before) is not None


def _is_supposed(text: str, end: int) -> bool:
    """True if what follows depends on a condition in its sentence, or on what the sentence before supposes."""
    *earlier, last = _sentences(text[max(0, end - _FAR) : end])
    return _IF.search(last) is not None or any(_SUPPOSES.match(one) for one in earlier[-1:])


def _in_line(plain: str, t: int, width: int) -> Iterator[Payload | None]:
    """Yield the values of commands that follow other words; None for one in doubt or of another step."""
    for before, label, rest in _IN_LINE.findall(plain):
        first, last = _SENTENCE.split(rest)[0], _sentences(before)[-1]
        doubt = _DOUBT.search(last.rpartition(": ")[2]) or _DOUBT.search(first) or _EXAMPLE.search(last)
        yield None if int(label) != t or doubt else values_in(first, width)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<!e\.g)[.!?;]\s|\n", text)


def _in_box(plain: str, width: int) -> Iterator[Payload | None]:
    boxes = (box for box in _BOXED.finditer(plain) if not _is_supposed(plain, box.start()))
    return (values_in(box.group(1), width) for box in boxes)


def _alone(masked: str, width: int) -> Iterator[Payload | None]:
    bare = masked.strip().removeprefix(_OWN)
    if re.fullmatch(r"[\s0-9,;_'\"“”.\[\]()=:]*(?:\band\b[\s0-9]*)?", bare) and _NUMBER.search(bare):
        yield values_in(bare, width)


def _in_a_sentence(masked: str, width: int) -> Iterator[Payload | None]:
    """Yield the only number of a text, if it is the outcome of a sentence without doubt."""
    if width == 1 and len(set(_numbers(_THOUSANDS.sub("1", masked)))) == 1 and not _DOUBT.search(masked):
        yield from (values_in(found, width) for found in _FOUND.findall(masked))


def read_worded_answer(reply: str) -> str | None:
    """Return what follows the last `ANSWER:` in a reply about a conversation; None if what follows takes it back."""
    *_, last = [None, *_WORDED.finditer(reply)]
    if last is None or _WORDED_BACK.search(reply, last.end()):
        return None
    return last[1].strip() or None


def without_marker(reply: str) -> str:
    """Return a reply without the words that mark its answer, so that it begins and ends with what was said."""
    return _WORDED.sub(lambda found: found[1], reply).strip()


def _stated_elsewhere(masked: str) -> Iterator[str]:
    """Yield the digits of each value that a text states in another language."""
    for found in _STATED_ELSEWHERE.finditer(masked):
        far = max(0, found.start() - _FAR)
        start = max(masked.rfind(end, far, found.start()) for end in ("\n", ". ", "。", "!", "?")) + 1
        said = masked[max(start, far) : found.start(2)]
        before = said[: found.start() - max(start, far)]
        is_headed = _HEADED_ELSEWHERE.match(before) is not None
        if not _DOUBT_ELSEWHERE.search(said) and not is_headed and _OTHER not in before[-4:]:
            yield found.group(2)
