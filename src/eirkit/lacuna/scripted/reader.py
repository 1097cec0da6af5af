"""`scripted/reader`: reads conversations by the inverse of their grammar; `scripted/quoter`: quotes all it is shown.

The reader has no knowledge of its own, so that a wrong answer is the memory's fault; its dials give it one known fault
each. In the place of a memory system's own model it says what to keep, by `notes` and `statement_tools`. The answers of
the quoter tell what a memory returned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

from eirkit.errors import ModelError, SpecError
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.conversation.language import Language, load_language, show_answer
from eirkit.lacuna.conversation.reading import (
    DatedStatement,
    dated_statements,
    keys_of,
    learn,
    people_in,
    read_turn,
    without_last,
)
from eirkit.lacuna.conversation.session import PASSAGE, PASSAGE_END, SUMMARY_RULES
from eirkit.lacuna.conversation.world import INSTRUCTIONS, USER, Answer, WorldQuestion
from eirkit.lacuna.memories.openai_dialect import JSON_WORDS, SCHEMA_WORDS
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage
from eirkit.lacuna.scripted.memory_tools import FILES, keep_statements
from eirkit.lacuna.scripted.notes import StatementReader, answer_system, room_of, sum_up
from eirkit.lacuna.scripted.own_tools import OWN_TOOLS, manage_statements
from eirkit.lacuna.scripted.statement_tools import use_tools
from eirkit.lacuna.scripted.system_requests import day_stated, question_in
from eirkit.records.runs import CHARACTERS_PER_TOKEN

DIALS = (
    *("misses", "confuses", "keeps_old", "keeps_mistakes", "returns_withdrawn", "obeys_documents", "invents"),
    *("ignores_instructions", "keeps_old_instructions"),
)
_REAL_MODEL = "give it a real model with --set NAME.model=PROVIDER/MODEL"


class Prompt(NamedTuple):
    """What the reader is shown for one question."""

    today: int
    passages: tuple[str, ...]
    question: WorldQuestion


class ConversationReader(Reference):
    """Answers questions by the truth of what it reads; a dial is the share of answers that it spoils in its own way.

    misses: a fact that is there is not seen, and the answer is unknown. confuses: the answer is another's. keeps_old: a
    change is not taken into account. keeps_mistakes: that something was a mistake is not. returns_withdrawn: a
    withdrawal is not. obeys_documents: what a document demands is taken for an instruction of the user. invents: what
    is unknown gets a made-up answer. ignores_instructions: a standing instruction is not followed.
    keeps_old_instructions: an earlier one is.
    """

    def __init__(self, options: ModelOptions, language: str = "english") -> None:
        super().__init__(options)
        self.language = load_language(language)
        self.dials = {name: float(options.extra.get(name, 0.0)) for name in DIALS}

    async def reply(self, request: Request) -> Reply:
        last = request.messages[-1].content
        if request.tools:
            return self.use_tools(request)
        if last.startswith(SUMMARY_RULES):
            text = sum_up(StatementReader(self.language, self.dials), last)
        else:
            text = self.note(request) if last.startswith((JSON_WORDS, SCHEMA_WORDS)) else self.respond(last)
        seen = sum(len(message.content) for message in request.messages)
        return Reply(text, usage=Usage(_tokens(seen), _tokens(len(text))))

    def use_tools(self, request: Request) -> Reply:
        """Return the next calls to the tools of a memory.

        Raises:
            ModelError: the tools are none that the script knows.
        """
        taker = StatementReader(self.language, self.dials)
        names = {tool.name for tool in request.tools}
        use = manage_statements if names & OWN_TOOLS else keep_statements if FILES in names else use_tools
        calls = use(taker, request)
        if calls is None:
            raise ModelError(
                f"scripted/reader does not know these tools of the memory system; {_REAL_MODEL}", "rejected"
            )
        seen = sum(len(message.content) for message in request.messages)
        said = sum(len(json.dumps(dict(call.arguments))) for call in calls)
        return Reply("" if calls else "Done.", calls, Usage(_tokens(seen), _tokens(said)))

    def note(self, request: Request) -> str:
        """Return the JSON that a memory system asks for.

        Raises:
            ModelError: the request is none that the script knows.
        """
        said = [message.content for message in request.messages if message.role == "user"]
        taker = StatementReader(self.language, self.dials)
        answer = answer_system(taker, request.messages[-1].content, said[-1] if said else "")
        if answer is None:
            raise ModelError(
                f"scripted/reader does not recognize this request of the memory system; {_REAL_MODEL}", "rejected"
            )
        return json.dumps(answer)

    def respond(self, shown: str) -> str:
        """Return the reply to a prompt.

        Raises:
            ModelError: the prompt is not one of a conversation.
        """
        prompt = read_prompt(self.language, shown)
        if prompt is None:
            raise ModelError(
                "scripted/reader does not recognize this request; it answers questions about conversations",
                "rejected",
            )
        heard = dated_statements(self.language, prompt.passages, prompt.today, people_in(prompt.question))
        said = show_answer(self.language, prompt.question, self.conclude(prompt, heard))
        demanded = {name: self.demanded(name, prompt, heard) for name in INSTRUCTIONS}
        lines = (demanded["opening"], f"ANSWER: {said}", demanded["address"], demanded["signature"])
        return "\n".join(line for line in lines if line is not None)

    def demanded(self, instruction: str, prompt: Prompt, heard: Sequence[DatedStatement]) -> str | None:
        """Return the word that a standing instruction demands of the reply, unless a dial spoils it."""
        if self.is_drawn("ignores_instructions", prompt):
            return None
        if self.is_drawn("keeps_old_instructions", prompt):
            known = learn([one for one in heard if one.statement.op != "forget"])
            told = known.versions.get((instruction, USER), [])[-2:]
            return str(told[0][1]) if told else None
        if self.is_drawn("obeys_documents", prompt):
            heard = obeyed(heard)
        value = learn(heard).current(instruction, USER)
        return None if value is None else str(value)

    def is_drawn(self, name: str, prompt: Prompt) -> bool:
        """True for a share of the questions as large as the dial, always the same ones."""
        return bool(self.dials[name]) and drawn(name, prompt) < self.dials[name]

    def conclude(self, prompt: Prompt, heard: Sequence[DatedStatement]) -> Answer:
        """Return the answer that follows from what was heard, unless a dial spoils it."""
        answer = learn(heard).answer(prompt.question)
        for name, spoil in FAULTS.items():
            if self.is_drawn(name, prompt):
                spoiled = spoil(prompt.question, heard, answer)
                if spoiled != answer:
                    return spoiled
        return answer


def read_prompt(language: Language, shown: str) -> Prompt | None:
    """Return the parts of a prompt; None if it is none of a conversation."""
    day, asked = day_stated(shown), question_in(shown)
    if not day or asked is None:
        return None
    found = [one for one in read_turn(language, asked, day) if isinstance(one, WorldQuestion)]
    return Prompt(day, shown_passages(shown), found[0]) if found else None


def shown_passages(prompt: str) -> tuple[str, ...]:
    """Return the passages in a prompt."""
    parts = (part.partition(f"\n{PASSAGE_END}") for part in f"\n{prompt}\n".split(f"\n{PASSAGE}\n")[1:])
    return tuple(text for text, closed, rest in parts if closed and rest[:1] in ("", "\n"))


def drawn(name: str, prompt: Prompt) -> float:
    """Return a number from 0 to 1 that the fault and the prompt determine."""
    return int.from_bytes(sha256(f"{name} {prompt!r}".encode()).digest()[:8], "big") / 2**64


def _confuse(question: WorldQuestion, heard: Sequence[DatedStatement], answer: Answer) -> Answer:
    """Return the answer to the same question about another, unless it was once right of the one asked about."""
    if question.form not in ("now", "day", "all") or answer is None:
        return answer
    knowledge, own = learn(heard), set(old_answers(question, heard))
    subjects = dict.fromkeys(one.statement.subject for one in heard if one.statement.attribute == question.attribute)
    for subject in subjects:
        other = knowledge.answer(question._replace(subject=subject))
        if other not in (answer, None, ()) and other not in own:
            return other
    return answer


def old_answers(question: WorldQuestion, heard: Sequence[DatedStatement]) -> list[Answer]:
    """Return the answers that were right before the last changes, the newest first."""
    found = []
    for key in keys_of(question, learn(heard)):
        found += [learn(before).answer(question) for before in without_last(heard, key)]
    return list(dict.fromkeys(found))


def _keep_old(question: WorldQuestion, heard: Sequence[DatedStatement], answer: Answer) -> Answer:
    if question.form not in ("now", "hop", "follows") or answer is None:
        return answer
    false = {one.statement.value for one in heard if one.statement.op == "retract"}
    return next((old for old in old_answers(question, heard) if old not in (answer, None, *false)), answer)


def obeyed(heard: Sequence[DatedStatement]) -> list[DatedStatement]:
    """Return what was heard with the demands of documents as instructions of the user, the last of all."""
    said = [one for one in heard if one.statement.op != "plant"]
    planted = [one for one in heard if one.statement.op == "plant"]
    return [*said, *(one._replace(statement=one.statement._replace(op="set")) for one in planted)]


def _return_withdrawn(question: WorldQuestion, heard: Sequence[DatedStatement], answer: Answer) -> Answer:
    if answer is not None:
        return answer
    knowledge = learn(heard)
    withdrawn = [key for key in keys_of(question, knowledge) if key in knowledge.withdrawn]
    old = (learn(before).answer(question) for key in withdrawn for before in without_last(heard, key))
    return next((one for one in old if one is not None), answer)


FAULTS: Mapping[str, Callable[[WorldQuestion, Sequence[DatedStatement], Answer], Answer]] = {
    "keeps_old": _keep_old,
    "confuses": _confuse,
    "misses": lambda question, heard, answer: None,
    "returns_withdrawn": _return_withdrawn,
    "keeps_mistakes": lambda question, heard, answer: learn(
        [one for one in heard if one.statement.op != "retract"]
    ).answer(question),
    "obeys_documents": lambda question, heard, answer: (
        learn(obeyed(heard)).answer(question) if question.subject == USER else answer
    ),
    "invents": lambda question, heard, answer: "Timbuktu" if answer is None else answer,
}


def make_reader(options: ModelOptions, given: str = "") -> ConversationReader:
    """Return the reader with its dials.

    Args:
        given: settings as part of its name, `misses=0.2+language=german`; then they alone hold, so that the model of a
            memory system and the one that answers can have different dials.

    Raises:
        SpecError: a dial is not a number from 0 to 1.
    """
    settings = given.split("+") if given else [f"{name}={value}" for name, value in options.extra.items()]
    options = replace(
        options, extra={name: _number_or_text(value) for name, _, value in (text.partition("=") for text in settings)}
    )
    refuse_settings("scripted", options, (*DIALS, "language"))
    for name in DIALS:
        value: Any = options.extra.get(name, 0.0)
        if not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise SpecError(f"{name} = {value!r} is no share; give a number from 0 to 1")
    return ConversationReader(options, str(options.extra.get("language", "english")))


def _number_or_text(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


class Quoter(Reference):
    """Quotes what was shown as its answer; as a summary it gives the end of what it is to sum up.

    Args:
        longest: characters of an answer; None for as many as are shown.
    """

    def __init__(self, options: ModelOptions, longest: int | None = None) -> None:
        super().__init__(options)
        self.longest = longest

    async def reply(self, request: Request) -> Reply:
        last = request.messages[-1].content
        shown = shown_passages(last)
        if last.startswith(SUMMARY_RULES):
            text = shown[0][-room_of(last) :] if shown else ""
        else:
            text = f"ANSWER: {' '.join(' '.join(shown).split())[: self.longest] or 'unknown'}"
        read = sum(len(message.content) for message in request.messages)
        return Reply(text, usage=Usage(read // CHARACTERS_PER_TOKEN, len(text) // CHARACTERS_PER_TOKEN))


def make_quoter(options: ModelOptions) -> Quoter:
    """Return the quoter; it takes no settings."""
    refuse_settings("scripted", options, ())
    return Quoter(options)
