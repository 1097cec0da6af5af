"""The session of a conversation: what was said is shown, cut, or given to a memory system; then questions are asked.

Each question is a request of its own, so that no answer leans on another. The reply is one line with the answer, and
below it whatever a standing instruction of the user demands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from eirkit.agents.memory import MemoryCall, MemoryResult
from eirkit.agents.model import LENGTH, Message, Reply, Request
from eirkit.agents.session import Decision, Session
from eirkit.tasks.conversations import spell
from eirkit.tasks.task import Payload
from eirkit.tasks.view import PublicTask
from eirkit.tasks.words.conversation import Told
from eirkit.tasks.words.reading import show_turn

CHARACTERS_PER_TOKEN = 4  # stated rather than measured, as in the compaction condition
WHOLE, TRUNCATED, MEMORY = "whole", "truncated", "external"
RULES = """\
You answer questions about conversations between a user and an assistant.
Go by what is shown below and by nothing else. Later statements replace earlier ones.
If what is shown does not tell, or the user asked to forget it, answer: unknown
A list has commas between its items, and an empty one is: none
A date is written like 8 January 2031, and a number in digits.
Reply with one line: ANSWER: and the bare answer. If the user gave a standing instruction for every answer, follow it
on the lines below."""
_ANSWER = re.compile(r"^[ \t>*`_#\-]*ANSWER\b[ \t*_`]*:?[ \t*_`]*(.*)$", re.IGNORECASE | re.MULTILINE)
PASSAGE, PASSAGE_END = "<passage>", "</passage>"

Addition = Callable[[int], str | None]  # from a question's number to a sentence that is shown with it


@dataclass(frozen=True, slots=True)
class PublicTalk:
    """What a session may know of a conversation: everything but the answers."""

    task: PublicTask
    told: tuple[Told, ...]  # sessions in which something is said
    today: int
    questions: tuple[str, ...]
    canonical: Callable[[int, str], str]  # the form of an answer that is compared, for question t


def add_nothing(t: int) -> str | None:
    """Show nothing beside what the condition shows."""
    return None


class ConversationSession(Session):
    """Puts every question of a conversation under one condition.

    Args:
        condition: whole, truncated or external.
        characters: of the conversation that are shown when it is truncated, the last ones.
        add: what an intervention shows with a question.
    """

    def __init__(self, talk: PublicTalk, condition: str, characters: int = 0, add: Addition = add_nothing) -> None:
        super().__init__(talk.task)
        self.talk, self.condition, self.characters, self.add = talk, condition, characters, add
        self._observed = 0 if condition == MEMORY else len(talk.told)
        self._t = 1
        self._passages: tuple[str, ...] | None = None  # that the memory returned for the current question
        self._context = "" if condition == MEMORY else self._shown_context()

    @property
    def position(self) -> int:
        return self._t if self._observed == len(self.talk.told) else 0

    def request(self) -> Request | MemoryCall | None:
        if self.ending is not None:
            return None
        if self._observed < len(self.talk.told):
            return self._observation(self._observed)
        question, at = self.talk.questions[self._t - 1], _iso(self.talk.today)
        if self.condition == MEMORY and self._passages is None:
            return MemoryCall("recall", question, at=at)
        added = self.add(self._t)
        extra = "" if added is None else f"\n\nAlso known:\n\n{PASSAGE}\n{added}\n{PASSAGE_END}"
        text = f"Today is {at}.\n\n{self._context or self._recalled()}{extra}\n\nQuestion: {question}"
        return Request((Message("system", RULES), Message("user", text)))

    def _observation(self, number: int) -> MemoryCall:
        told = self.talk.told[number]
        messages = tuple(Message(message.role, message.text) for message in told.messages)
        text = "\n".join(f"{message.role}: {message.content}" for message in messages)
        return MemoryCall("observe", text, messages=messages, session=f"session-{number + 1}", at=_iso(told.day))

    def _shown_context(self) -> str:
        said = transcript(self.talk.told)
        if self.condition == TRUNCATED:
            said = said[-self.characters :] if self.characters else ""
        return f"The conversations so far:\n\n{PASSAGE}\n{said}\n{PASSAGE_END}"

    def _recalled(self) -> str:
        shown = "\n".join(f"{PASSAGE}\n{text}\n{PASSAGE_END}" for text in self._passages or ())
        return f"What your memory returned:\n\n{shown or 'nothing'}"

    def receive_memory(self, result: MemoryResult) -> None:
        if self._observed < len(self.talk.told):
            self._observed += 1
        else:
            self._passages = result.passages

    def receive(self, reply: Reply) -> None:
        text = read_answer(reply.text)
        submitted: Payload | None = None if text is None else spell(self.talk.canonical(self._t, text))
        fault = None if text is not None else "truncated" if reply.finish == LENGTH else "malformed"
        if text is None and not reply.text.strip():
            fault = "empty"
        self._events.append(Decision(self._t, (), (), (), (), (), submitted, fault))
        self._passages = None
        if self._t < len(self.talk.questions):
            self._t += 1
        else:
            self.ending = "finished"


def transcript(told: Sequence[Told]) -> str:
    """Return everything that was said, one turn below the other."""
    return "\n".join(show_turn(one.day, message.role, message.text) for one in told for message in one.messages)


def read_answer(reply: str) -> str | None:
    """Return the answer that a reply states, the last if there are several; None if there is none."""
    found = _ANSWER.findall(reply)
    return found[-1].strip() if found and found[-1].strip() else None


def words_below(reply: str) -> str:
    """Return what a reply says below its answer."""
    found = list(_ANSWER.finditer(reply))
    return reply[found[-1].end() :].strip() if found else ""


def _iso(day: int) -> str:
    return date.fromordinal(day).isoformat()
