"""The session of a conversation: the rules and prompts a model reads, and what is shown, cut or given to a memory.

Each question is a request of its own, so that no answer leans on another. The reply is one line with the answer, and
below it whatever a standing instruction of the user demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from msgspec.structs import replace

from eirkit.lacuna.agents.conditions import COMPACTION, MEMORY, TRUNCATED, WHOLE
from eirkit.lacuna.agents.protocol import Fault, ask, ask_again, read_text_answer
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.conversation.dialogues import Dialogue
from eirkit.lacuna.conversation.reading import show_turn
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request, ServerCompaction, TextForm, set_aside
from eirkit.records.events import Decision
from eirkit.records.settings import SCHEMA, TEXT, TOOLS

RULES = """\
You answer questions about conversations between a user and an assistant.
Go by what is shown below and by nothing else. Later statements replace earlier ones.
If what is shown does not tell, or the user asked to forget it, answer: unknown
A list has commas between its items, and an empty one is: none
A date is written like 8 January 2031, and a number in digits.
"""
_STANDING = "nothing but the bare\nanswer and what standing instructions demand that the user gave for every answer."
HOW_TO_REPLY = {
    TEXT: """\
Reply with one line: ANSWER: and the bare answer. Standing instructions that the user gave for every answer hold for
your whole reply: what they demand goes on lines above or below that one.""",
    SCHEMA: f'Reply with a JSON object: {{"work": "…", "answer": "…"}}. The answer is what the user reads: {_STANDING}',
    TOOLS: f"Reply by calling the tool answer. The answer is what the user reads: {_STANDING}",
}
SUMMARY_RULES = """\
You sum up conversations between a user and an assistant. Your summary takes their place: later questions are answered
from it, and what it leaves out is lost. Put the day in front of what was said on it, as in [2031-01-06]."""
_SPACE = "Write at most {characters} characters."
SUMMARY_PROMPTS = {
    "plain": f"Summarize what is shown above. {_SPACE}",
    "facts": f"List the facts that were stated above. {_SPACE}",
    "instructions": "Begin with every standing instruction of the user that is in force, word for word. Then "
    f"summarize the rest of what is shown above. {_SPACE}",
}
PASSAGE, PASSAGE_END = "<passage>", "</passage>"
TOLD = "That is all for now; questions will follow. Reply with: OK"
SO_FAR, ALSO = "The conversations so far:\n\n", "\n\nAlso known:\n\n"

Addition = Callable[[int], str | None]  # from a question's number to a sentence that is shown with it


class PublicQuestion(NamedTuple):
    """One question, put after a number of sessions."""

    text: str
    after: int
    day: int


@dataclass(frozen=True, slots=True)
class PublicConversation:
    """What a session may know of a conversation: everything but the answers."""

    dialogues: tuple[Dialogue, ...]  # sessions in which something is said
    questions: tuple[PublicQuestion, ...]
    canonical: Callable[[int, str], str]  # the form of an answer that is compared, for question t


@dataclass(frozen=True, slots=True)
class ConversationView:
    """How much of a conversation is in view.

    Args:
        characters: that are in view when the conversation is truncated, the last ones; under compaction, the most.
        summary_prompt: under compaction, what the model is asked for; {characters} stands for the room.
        server: under compaction by the server, when it compacts, and what it is told about it.
    """

    condition: str = WHOLE
    characters: int = 0
    summary_prompt: str = SUMMARY_PROMPTS["plain"]
    server: ServerCompaction | None = None


def add_nothing(t: int) -> str | None:
    """Show nothing beside what the condition shows."""
    return None


class ConversationSession(Session):
    """Puts every question of a conversation under one condition.

    Args:
        add: what an intervention shows with a question.
    """

    def __init__(self, conversation: PublicConversation, view: ConversationView, add: Addition = add_nothing) -> None:
        super().__init__()
        self.conversation, self.view, self.add = conversation, view, add
        self._heard = 0  # sessions that were told to the end
        self._t = 1
        self._passages: tuple[str, ...] | None = None  # that the memory returned for the current question
        self._turns: list[Message] = []  # of the session that is being told, the next one last
        self._said: list[Message] = []  # turns in view; under compaction after a summary, which is then the first
        self._summary_due = False
        self._server_due = False  # turns were told that the server had no occasion to compact yet
        self._carried: tuple[Mapping[str, Any], ...] = ()  # what the server compacted, which nobody can read
        if not conversation.questions:
            self.ending = "finished"

    @property
    def fixed_rules(self) -> str:
        return RULES + HOW_TO_REPLY[self.protocol]

    @property
    def position(self) -> int:
        return self._t if not self._is_telling and not self._server_due else 0

    @property
    def _is_telling(self) -> bool:
        return self.ending is None and self._heard < self.conversation.questions[self._t - 1].after

    def request(self) -> Request | MemoryCall | None:
        if self.ending is not None:
            return None
        if self._is_telling and self.view.condition == MEMORY:
            return self._observation(self._heard)
        while self._is_telling:
            self._hear()
            if self._summary_due:
                prompt = self.view.summary_prompt.replace("{characters}", str(self._room))
                return Request((Message("user", f"{SUMMARY_RULES}\n\n{self._shown_context()}\n\n{prompt}"),))
        if self._server_due:
            messages = (Message("system", self.fixed_rules), *self._said, Message("user", TOLD))
            return Request(messages, compaction=self.view.server, carried=self._carried)
        question = self.conversation.questions[self._t - 1]
        if self.view.condition == MEMORY and self._passages is None:
            return MemoryCall("recall", question.text, at=_iso(question.day))
        added = self.add(self._t)
        extra = "" if added is None else f"{ALSO}{PASSAGE}\n{added}\n{PASSAGE_END}"
        if self.view.server is not None:
            asked = f"Today is {_iso(question.day)}.{extra}\n\nQuestion: {question.text}"
            messages = (Message("system", self.fixed_rules), *self._said, Message("user", asked))
            request = ask(messages, TextForm(), self.protocol)
            compaction = replace(self.view.server, pause=False)
            request = replace(request, compaction=compaction, carried=self._carried)
        else:
            shown = self._recalled() if self.view.condition == MEMORY else self._shown_context()
            text = f"Today is {_iso(question.day)}.\n\n{shown}{extra}\n\nQuestion: {question.text}"
            messages = (Message("system", self.fixed_rules), Message("user", text))
            request = ask(messages, TextForm(), self.protocol)
        return ask_again(request, TextForm(), self.protocol) if self._asked_again else request

    def _observation(self, number: int) -> MemoryCall:
        told = self.conversation.dialogues[number]
        messages = tuple(Message(message.role, message.text) for message in told.messages)
        text = "\n".join(f"{message.role}: {message.content}" for message in messages)
        return MemoryCall("observe", text, messages=messages, session=f"session-{number + 1}", at=_iso(told.day))

    def _hear(self) -> None:
        """Take in the next session, under compaction up to the turn at which a summary is due."""
        if not self._turns:
            told = self.conversation.dialogues[self._heard]
            shown = ((one.role, show_turn(told.day, one.role, one.text)) for one in reversed(told.messages))
            self._turns = [Message(role, text) for role, text in shown]
            self._server_due = self.view.server is not None
        while self._turns and not self._summary_due:
            self._said.append(self._turns.pop())
            if self.view.condition == COMPACTION:
                self._summary_due = sum(len(one.content) + 1 for one in self._said) - 1 > self.view.characters
        if not self._turns and not self._summary_due:
            self._heard += 1

    @property
    def _room(self) -> int:
        """Characters of a summary: at most half of what is in view, so that there is room to go on."""
        return self.view.characters // 2

    def _shown_context(self) -> str:
        said = "\n".join(one.content for one in self._said)
        if self.view.condition == TRUNCATED:
            said = said[-self.view.characters :] if self.view.characters else ""
        return f"{SO_FAR}{PASSAGE}\n{said}\n{PASSAGE_END}"

    def _recalled(self) -> str:
        shown = "\n".join(f"{PASSAGE}\n{text}\n{PASSAGE_END}" for text in self._passages or ())
        return f"What your memory returned:\n\n{shown or 'nothing'}"

    def receive_memory(self, result: MemoryResult) -> None:
        if self._is_telling:
            self._heard += 1
        else:
            self._passages = result.passages

    def receive(self, reply: Reply) -> None:
        if self._summary_due:
            summary = set_aside(reply.text)[0].strip()[: self._room]
            self._said = [Message("user", summary)] if summary else []
            self._summary_due = False
            if not self._turns:
                self._heard += 1
            return
        if self._server_due:
            self._server_due = False
            if reply.carried:
                self._carried, self._said = reply.carried, []
            return
        answer = read_text_answer(reply, self.protocol)
        fault = answer.kind if isinstance(answer, Fault) else None
        if isinstance(answer, Fault) and self._asks_again(answer):
            return
        self._asked_again = False
        submitted = None if isinstance(answer, Fault) else self.conversation.canonical(self._t, answer)
        self._events.append(Decision(self._t, (), (), (), (), (), submitted, fault))
        self._passages = None
        if self._t < len(self.conversation.questions):
            self._t += 1
        else:
            self.ending = "finished"


def shown_context(request: str) -> str:
    """Return what of the conversations a request shows, apart from what an intervention added."""
    _, _, shown = request.partition(f"{SO_FAR}{PASSAGE}\n")
    shown = shown.rpartition("\n\nQuestion: ")[0]
    return shown.partition(f"\n{PASSAGE_END}{ALSO}")[0].removesuffix(f"\n{PASSAGE_END}")


def transcript(dialogues: Sequence[Dialogue]) -> str:
    """Return everything that was said, one turn below the other."""
    return "\n".join(show_turn(one.day, message.role, message.text) for one in dialogues for message in one.messages)


def _iso(day: int) -> str:
    return date.fromordinal(day).isoformat()
