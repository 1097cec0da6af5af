"""Replies to step 7 beside a person's reading of each: what a session records is that reading and nothing else.

The value of step 7 is below 10,000. None: the person finds no answer, more than one, or one that the reply itself puts
in doubt, makes depend on something, or takes back. A step is then unanswered, never answered by a guess.
"""

from __future__ import annotations

import pytest

from eirkit.lacuna.agents.answers import read_worded_answer
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from tests.lacuna.running import retention

TASK = generate(TaskSpec("stepwise-sum", n=12, m=4, seed=5))

LAST_ONE_COUNTS = {
    "ANSWER 7 10\nANSWER 7 12": 12,
    "ANSWER 7 10\nANSWER 7 10": 10,
    "ANSWER 7 10\nANSWER: 10": 10,
    "ANSWER 7 10\nAnswer: 4 + 6 = 10": 10,
    "ANSWER 7 10\nAnswer: A_03 + 6 = 10": 10,
    "ANSWER 7 10\nThe answer is the sum of 4 and 6.": 10,
    "ANSWER 7 10\nThe answer is 4 + 6.": 10,
    "ANSWER 7 10\nThe final answer is obtained by adding 4 and 6.": 10,
    "ANSWER: 12\nANSWER 7 12": 12,
    "ANSWER 7 10\nANSWER: 12": None,
    "ANSWER 7 10\nANSWER: 12 or 13": None,
    "ANSWER 7 10\n\n**Answer:** 12": None,
    "ANSWER 7 10\nFinal answer: 12": None,
    "ANSWER 7 10\nThe final answer is 12.": None,
    "ANSWER 7 10\n\\boxed{12}": None,
    'ANSWER 7 10\n{"answer": 12}': None,
    "ANSWER 7 10\nFinal answer: 10": 10,
    "ANSWER 7 10\nThe answer of step 6 is 12.": 10,
    "ANSWER 7 10\nFor step 8 the answer will be 12.": 10,
    "The answer is 10.\nThe answer is 12.": None,
    "ANSWER: 10\nANSWER: 12": None,
    "The answer is 10. The answer is 12.": None,
    "A_07 = 10. A_07 = 12.": None,
}
CHANGED_MIND = {
    "ANSWER 7 10\nWait, no: 12": None,
    "ANSWER 7 10\nwait no, 12": None,
    "ANSWER 7 10\nHmm, no. 12.": None,
    "ANSWER 7 10\nNo, that's wrong, 12.": None,
    "ANSWER 7 10\nNo, 12.": None,
    "ANSWER 7 10, no wait, 12": None,
    "ANSWER 7 10\nor rather 12": None,
    "ANSWER 7 10\nMake that 12.": None,
    "ANSWER 7 10\nEdit: 12": None,
    "ANSWER 7 10\nStrike that. 12": None,
    "ANSWER 7 10\nNon, attendez : 12": None,
    "ANSWER 7 10\nMoment, nein: 12": None,
    "ANSWER 7 10\n不对，应该是 12": None,
    "The answer is 10. Wait, no: 12.": None,
    "Answer: 10\nwait, no: 12": None,
    "The answer is 10. Actually, it should be 12.": None,
    "The sum is 10. Oops, I meant 12.": None,
    "10\nSorry, 12.": None,
    "\\boxed{10} Correction: 12": None,
    "A_07 = 10. Scratch that.": None,
    "Answer: 10\nPlease disregard the above.": None,
    "ANSWER 7 10\nWait, no, that is right: 10.": 10,
    "ANSWER 7 10\nNo doubt about it.": 10,
    "ANSWER 7 10\nNo further steps are needed.": 10,
    "ANSWER 7 10\nNo, I do not need A_03 again.": 10,
    "The answer is 10. No wait is needed.": 10,
    "No, I don't have A_03. The answer is 10.": 10,
    "Answer: 10\nNo, really, 10.": 10,
    "The answer is 10. Let me check: 4 + 6 = 10.": 10,
    "Wait, no, that was step 6. The answer is 10.": 10,
    "I made a mistake at first: 12. The answer is 10.": 10,
    "It is 12. Wait, no: the answer is 10.": 10,
    "Wait, no: 12": None,
}
CONDITIONAL = {
    "If A_1 is 30 the answer is 42": None,
    "If A_1 is 30, the answer is 42.": None,
    "If A_1 = 30 then A_07 = 42": None,
    "Suppose A_1 is 30. Then the answer is 42.": None,
    "Assuming A_1 is 30, the answer is 42.": None,
    "Assume that A_1 is 30; the answer is 42.": None,
    "Provided A_1 is right, the answer is 42.": None,
    "Had A_1 been kept, the answer would be 42.": None,
    "Unless A_1 changed, the answer is 42.": None,
    "When A_1 is 30 the answer is 42, otherwise it is unknown.": None,
    "The answer is 42 if A_1 is right": None,
    "The answer is 42 unless A_1 was replaced": None,
    "The answer is 42, assuming A_1 is right.": None,
    "The answer is 42, provided that A_1 is right.": None,
    "A_07 = 42 if A_1 is right": None,
    "If A_1 is 30, answer: 42": None,
    "If A_1 were 30: \\boxed{42}": None,
    "If A_1 is 30, ANSWER 7 42": None,
    "If A_1 is 30, it is 42.": None,
    "If A_1 is 30, the answer is 42. A_1 is 30, so the answer is 42.": 42,
    "If A_1 is 12, I can add 30. The answer is 42.": 42,
    "Given A_1 = 12 and the input 30, the answer is 42.": 42,
    "Since A_1 is 12, the answer is 42.": 42,
    "The answer is 42. If you need more, ask.": 42,
    "ANSWER 7 42\nIf you need more, ask.": 42,
    "As in the previous step, the answer is 42.": 42,
    "I checked if A_1 is there. It is.\nThe answer is 42.": 42,
    "Wenn A_1 gleich 30 ist, ist die Antwort: 42": None,
    "Si A_1 vaut 30, la réponse est 42.": None,
    "Si A_1 es 30, la respuesta es 42.": None,
    "如果 A_1 是 30，答案是 42": None,
    "もし A_1 が 30 なら、答えは 42 です": None,
    "Если A_1 равно 30, ответ: 42": None,
}
OTHER_LANGUAGES = {
    "La réponse est 42": 42,
    "Donc la réponse est 42.": 42,
    "La réponse est donc 42.": 42,
    "La réponse finale est **42**.": 42,
    "Réponse : 42": 42,
    "La réponse est 1\u202f234.": 1234,
    "Die Antwort lautet 42": 42,
    "Die Antwort ist 42.": 42,
    "Die Antwort auf Schritt 7 lautet 42.": 42,
    "Antwort: 0042": 42,
    "Das Ergebnis ist 42.": 42,
    "答案是 42": 42,
    "答案是42。": 42,
    "答案：４２": 42,
    "最终答案为 42。": 42,
    "答えは42です。": 42,
    "答え：42": 42,
    "정답은 42입니다.": 42,
    "답: 42": 42,
    "La respuesta es 42.": 42,
    "Respuesta: 42": 42,
    "A resposta é 42.": 42,
    "La risposta è 42.": 42,
    "Het antwoord is 42.": 42,
    "Ответ: 42": 42,
    "Ответ — 42.": 42,
    "Odpowiedź: 42": 42,
    "الجواب هو 42": 42,
    "उत्तर: 42": 42,
    "La réponse n'est pas 42": None,
    "La réponse est 42 ou 43.": None,
    "La réponse est peut-être 42.": None,
    "La réponse est 42 ?": None,
    "La réponse de l'étape 6 est 42.": None,
    "La réponse de A_03 est 42.": None,
    "La réponse est 42. La réponse est 43.": None,
    "La réponse est 42,5.": None,
    "La réponse est 42 de plus que A_03.": None,
    "Die Antwort lautet nicht 42.": None,
    "Die Antwort lautet 42 oder 43.": None,
    "Die Antwort ist vielleicht 42.": None,
    "Die Antwort lautet 1.234": None,
    "Die Antwort auf Schritt 6 lautet 42.": None,
    "Die Antwort war 42, jetzt fehlt A_03.": None,
    "Die letzte Antwort ist 42.": None,
    "答案不是 42": None,
    "答案是 42 或 43": None,
    "答案可能是 42": None,
    "第6步的答案是 42": None,
    "答案是 42 吗？": None,
    "答えは42ではありません。": None,
    "정답은 42가 아닙니다.": None,
    "La respuesta no es 42.": None,
    "La respuesta es 42 o 43.": None,
    "Ответ не 42.": None,
    "La réponse est 42. Non, attendez : 43.": None,
}
OTHER_DOUBTS = {
    "Is the answer 42?": None,
    "The answer is 42?": None,
    "The answer is 42 ?": None,
    "The answer cannot be: 42": None,
    "The answer is never: 42": None,
    "The wrong answer is 42.": None,
    "The previous answer is 42.": None,
    "The answer of the previous step is 42.": None,
    "Your example's answer is 42.": None,
    "An example answer: 42": None,
    "The answer is 42 mod A_03.": None,
    "The answer is 42 combined with A_03.": None,
    "The answer is 42, maybe.": None,
    "The answer is 42, which is wrong.": None,
    "The answer is 42 at most.": None,
    "The answer is at least 42.": None,
    "The answer is about 42.": None,
    "The answer is 42%.": None,
    "The answer is 4e2.": None,
    "The answer is 0x2A.": None,
    "The answer is forty-two.": None,
    "The answer has 4 digits.": None,
    "The answer is (a) 42": None,
    "Answer 1 of 2: 42": None,
    "The correct answer is 42, not 43.": 42,
    "The answer is no longer 42.": None,
    "The answer is 42, I think.": 42,
    "The answer is 42 points.": 42,
    "The answer is: 42!": 42,
    "Answer → 42": 42,
    "I had to add A_03 and the input. The answer is 42, and I kept it.": 42,
}
TABLE = {**LAST_ONE_COUNTS, **CHANGED_MIND, **CONDITIONAL, **OTHER_LANGUAGES, **OTHER_DOUBTS}


class At7(ControlledSession):
    """A session that stands at step 7."""

    def recorded(self, text: str) -> int | None:
        self._t = 7
        assert self.request() is not None
        self.receive(Reply(text))
        (decision,) = self.drain()
        return None if decision.submitted is None else decision.submitted[0]


@pytest.fixture(scope="module")
def public():
    return publish(TASK, prepare(TASK.spec))


@pytest.mark.parametrize(("text", "reading"), TABLE.items())
def test_a_session_records_what_a_person_reads(public, text, reading):
    assert At7(public, retention(TASK, 4)).recorded(text) == reading


@pytest.mark.parametrize(
    ("text", "reading"),
    {
        "ANSWER: Harrow": "Harrow",
        "ANSWER: Harrow\nSigned, Mira": "Harrow",
        "ANSWER: Harrow\nANSWER: Mira": "Mira",
        "ANSWER: Harrow\nWait, no: Mira": None,
        "ANSWER: Harrow\nNo wait, Mira.": None,
        "ANSWER: Harrow\nCorrection: Mira": None,
        "ANSWER: Harrow\nScratch that.": None,
        "ANSWER: Harrow\nOn second thought, Mira.": None,
        "ANSWER: Harrow\nWait, no: Mira\nANSWER: Mira": "Mira",
        "Wait, no, that is the old one.\nANSWER: Harrow": "Harrow",
        "ANSWER: Wait, no": "Wait, no",
        "Harrow": None,
    }.items(),
)
def test_an_answer_in_words_that_is_taken_back_is_none(text, reading):
    assert read_worded_answer(text) == reading


def test_the_table_is_large_and_has_both_kinds():
    assert len(TABLE) >= 150
    assert sum(reading is None for reading in TABLE.values()) >= 80
