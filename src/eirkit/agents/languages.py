"""Answers that a reply states in another language than English: `La réponse est 42`, `答案是 42`.

Only the plainest sentence is read: a word for the answer, at most a few words, a word for "is", the value, and the end
of the sentence. A word of doubt, negation or condition, or one for an earlier answer, anywhere before the value in its
sentence makes it no answer, and so does any alternative after it, because nothing may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STEP = r"schritt|étape|etapa|paso|passo|stap|шаг\w?|步骤|ステップ|단계"
_FAR = 400  # characters back to which a sentence may begin; bounds the time of a reply of many sentences
_NOUN = (
    r"(?:\b(?:r[ée]ponse|r[ée]sultat|antwort|ergebnis|l[öo]sung|respuesta|resultado|resposta|risposta|risultato"
    r"|antwoord|svaret?|odpowied[źz]|wynik|cevap|ответ|результат|відповідь|jawaban)\b"
    r"|答案|结果|結果|答え|回答|정답|답|الجواب|الإجابة|उत्तर)"
)
_IS = r"(?:\b(?:est|ist|lautet|es|é|è|is|er|är|to|adalah|هو|هي)\b|[:=—是为為は은는])"
_SO = r"(?:(?:donc|also|somit|daher|entonces|pues|quindi|portanto|dus) )?"
_STATED = re.compile(
    rf"{_NOUN}([^\n.。!?;:=0-9\ue001]{{0,30}}?){_IS}[ \t]*{_SO}([0-9][0-9,]*+)"
    r"(?:です|である|だ|입니다|이다| है)?(?=[ \t]*(?:[.!。।](?![0-9])|\(|\n|\Z))",
    re.IGNORECASE,
)
_DOUBT = re.compile(
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
# How a sentence begins that takes an answer back, up to the value in its place.
REPLACES = re.compile(
    r"(?:^|[.!?;,。]\s*+)(?:(?:(?:no|non|nein|nee|não|нет)\b(?= ?[,.:;!-])|不对|不對|错了|いや|違い|아니)"
    r"[ ,.:;!-]*+(?:[^\W\d]++[ ,:'’-]*+){0,4}"
    r"|(?:actually|wait|sorry|i mean)\b,? (?:no,? )?(?:(?:it|that)(?: is|['’]s) |the answer is )?)"
    r"([0-9][0-9,]*+)(?=\s*+(?:[.!。](?![0-9])|\Z)|[^\S\n]*+\n)",
    re.IGNORECASE | re.MULTILINE,
)


def stated_elsewhere(masked: str, other: str) -> Iterator[str]:
    """Yield the digits of each value that a text states in another language.

    Args:
        other: stands in the text for the label of another step.
    """
    for found in _STATED.finditer(masked):
        far = max(0, found.start() - _FAR)
        start = max(masked.rfind(end, far, found.start()) for end in ("\n", ". ", "。", "!", "?")) + 1
        said = masked[max(start, far) : found.start(2)]
        before = said[: found.start() - max(start, far)]
        is_headed = re.match(rf"[\s>#-]*{other}\s*[:,：，-]", before) is not None
        if not _DOUBT.search(said) and not is_headed and other not in before[-4:]:
            yield found.group(2)
