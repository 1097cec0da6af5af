"""Conversations as tasks: a world told in dated dialogues, questions about it, and answers that are texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, tee
from typing import Any

from eirkit.errors import SpecError, UnknownNameError, UsageError
from eirkit.lacuna.conversation.dialogues import Dialogue, tell_many
from eirkit.lacuna.conversation.floor import floor_bits
from eirkit.lacuna.conversation.language import Language, load_language, show_answer
from eirkit.lacuna.conversation.reading import DatedStatement, dated_statements, show_turn
from eirkit.lacuna.conversation.truth import Knowledge, answers
from eirkit.lacuna.conversation.world import (
    PRESETS,
    Answer,
    Dials,
    World,
    WorldQuestion,
    generate_worlds,
)
from eirkit.lacuna.tasks.task import ConversationSpec, GeneratedTask
from eirkit.lacuna.tasks.workload import TextWorkload, Units, conversations

_DIALS = tuple(one.name for one in fields(Dials))


@dataclass(frozen=True, slots=True)
class Question:
    """One question as it is put."""

    t: int  # from 1
    text: str
    ability: str
    after: int  # the sessions before it in which something was said
    day: int  # on which it is asked


@dataclass(frozen=True, slots=True)
class AnsweredQuestion(Question):
    """One question of a world, with its answer."""

    question: WorldQuestion
    answer: Answer


@dataclass(frozen=True)
class Conversation(GeneratedTask, ABC):
    """Dialogues, and questions about them, each put after a number of sessions."""

    spec: ConversationSpec
    dialogues: tuple[Dialogue, ...]
    questions: tuple[Question, ...]  # in the order of asking
    answers: tuple[str, ...]  # to them, in the form that is compared

    @cached_property
    def sessions(self) -> tuple[Dialogue, ...]:
        """The sessions in which something is said."""
        return tuple(one for one in self.dialogues if one.messages)

    @cached_property
    def turns(self) -> tuple[str, ...]:
        """Everything that was said, turn by turn, as memories and readers see it."""
        return tuple(
            show_turn(one.day, message.role, message.text) for one in self.sessions for message in one.messages
        )

    def turns_before(self, question: Question) -> int:
        """Return how many turns were spoken before a question."""
        return self._ends[question.after]

    @cached_property
    def _ends(self) -> list[int]:
        return [0, *accumulate(len(one.messages) for one in self.sessions)]

    @abstractmethod
    def canonical(self, t: int, text: str) -> str:
        """Return the form of an answer to question t that is compared."""


@dataclass(frozen=True)
class WorldConversation(Conversation):
    """A world that is told and asked about."""

    questions: tuple[AnsweredQuestion, ...]
    world: World
    language: Language

    @cached_property
    def said(self) -> list[DatedStatement]:
        """What was said, in order, each with the number of its turn."""
        return dated_statements(self.language, self.turns, self.dialogues[-1].day)

    def said_before(self, asked: AnsweredQuestion) -> list[DatedStatement]:
        """Return what was said before a question."""
        return self._before(asked.after)[0]

    def truth_at(self, asked: AnsweredQuestion) -> Knowledge:
        """Return what holds when a question is asked."""
        return self._before(asked.after)[1]

    def _before(self, after: int) -> tuple[list[DatedStatement], Knowledge]:
        if after not in self._known:
            said = [one for one in self.said if one.passage < self._ends[after]]
            knowledge = Knowledge()
            for one in said:
                knowledge.hear(one.statement, one.day)
            self._known[after] = said, knowledge
        return self._known[after]

    @cached_property
    def _known(self) -> dict[int, tuple[list[DatedStatement], Knowledge]]:
        return {}

    def canonical(self, t: int, text: str) -> str:
        return " ".join(text.split()).casefold()

    def floor_bits(self) -> float:
        """The most bits that must survive a session: the last one, unless questions are asked on the way."""
        last = len(self.dialogues) - 1
        return max(floor_bits(self.world, cut) for cut in (range(1, last + 1) if self.world.dials.probes else (last,)))


def read_preset(text: str) -> tuple[Dials, str]:
    """Return the dials and the language of a preset such as `small` or `standard+people=20+level=3`.

    Raises:
        SpecError: there is no such preset or dial.
    """
    name, *changes = text.split("+")
    if name not in PRESETS:
        raise UnknownNameError("preset", name, PRESETS)
    given: dict[str, int] = {}
    language = "english"
    for change in changes:
        dial, _, value = change.partition("=")
        if dial == "language" and value:
            language = value
        elif dial in _DIALS and value.isdigit():
            given[dial] = int(value)
        else:
            raise SpecError(f"{change!r} is not NAME=NUMBER; known: {', '.join(_DIALS)}, language")
    return replace(PRESETS[name], **given), language


@conversations.add("words")
@conversations.add("conversation")
class WorldConversations(TextWorkload):
    """Invented people and places in dated conversations; each step is a question about what was said."""

    units = Units("conversation", "question", "answer")
    preset = "standard"

    def specify(self, values: Mapping[str, Any]) -> ConversationSpec:
        name = "conversation" if values["workload"] == "words" else str(values["workload"])
        if foreign := [key for key in values if key not in ("workload", "preset")]:
            raise UsageError(f"{name} takes no {foreign[0]}; set its dials in the preset, as in small+questions=12")
        preset = str(values.get("preset", self.preset))
        return ConversationSpec(name, preset, most_questions(read_preset(preset)[0]))

    def check(self, spec: ConversationSpec) -> None:
        dials, language = read_preset(spec.preset)
        load_language(language)
        if spec.questions != most_questions(dials):
            raise SpecError(
                f"{spec.questions} questions do not fit the preset {spec.preset}; set its dials questions and probes"
            )

    def tasks(self, spec: ConversationSpec, seeds: Sequence[int]) -> Iterator[WorldConversation]:
        dials, named = read_preset(spec.preset)
        language = load_language(named)
        worlds, same = tee(generate_worlds(dials, seeds, language.vocabulary))
        for world, told in zip(worlds, tell_many(same, language), strict=True):
            yield self._task(spec.with_seed(world.seed), world, told, language)

    def _task(
        self, spec: ConversationSpec, world: World, told: tuple[Dialogue, ...], language: Language
    ) -> WorldConversation:
        asked = tuple(_asked(world, told))
        right = tuple(true_text(language, one.question, one.answer) for one in asked)
        texts = [one.text for one in asked]
        said = "\n".join([*texts, *(message.text for one in told for message in one.messages)])
        return WorldConversation(spec, sha256(said.encode()).hexdigest(), told, asked, right, world, language)


@conversations.add("instructions")
class Instructions(WorldConversations):
    """Conversations in which the user says how every answer is to be given; each answer is checked for it."""

    preset = "instructions"


def most_questions(dials: Dials) -> int:
    """Return how many questions a world has at most, at the end and after its sessions."""
    return dials.questions + dials.probes * dials.sessions


def _asked(world: World, told: Sequence[Dialogue]) -> Iterator[AnsweredQuestion]:
    """Yield the questions of a world with their answers."""
    known, after, t = answers(world), 0, 0
    for one in told:
        after += bool(one.messages)
        for text in one.questions:
            t += 1
            question, answer, ability = next(known)
            yield AnsweredQuestion(t, text, ability, after, one.day, question, answer)


def true_text(language: Language, question: WorldQuestion, answer: Answer) -> str:
    """Return a true answer in the form in which it is stored and compared: in lower case, a date in ISO form."""
    if question.form == "day" and isinstance(answer, int):
        return date.fromordinal(answer).isoformat()
    return show_answer(language, question, answer).casefold()
