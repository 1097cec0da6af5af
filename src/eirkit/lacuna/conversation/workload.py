"""Conversations as tasks: a world told in dated dialogues, questions about it, and answers that are texts."""

from __future__ import annotations

import re
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
_NUMBER = re.compile(r"-?\d[\d,]*")
_COUNTED = re.compile(r"(?<![\d,])(-?\d[\d,]*) (?:days?|allerg(?:y|ies)|Tagen?|Allergien?)\b")
_SAID = (
    r"(?:known?|stated?|mention(?:ed)?|specified|given|said|told|provided|recorded|stored|listed|available|clear|sure"
    r"|certain|aware|found|information|tell|say|contain|include|determined?|answer|find|remember|recall"
    r"|in (?:(?:my|the) )?(?:memory|records?|conversations?|notes?|context|passages?))"
)
_UNKNOWN = re.compile(  # usual phrasings, also where a reading left out the apostrophes
    r"\b(?:un(?:known|clear|stated|specified|sure|determined|certain|available)|n/a"
    r"|(?:no|insufficient|not enough)(?: \w+)? (?:information|records?|mention|data|idea|memory|longer known)"
    rf"|(?:none|nothing|no \w+)(?: \w+){{0,2}} (?!known?\b){_SAID}"
    r"|(?:not|never|cannot|(?:is|are|was|were|has|have|do|does|did|ca|could)n['’ ]?t)(?: \w+){0,2}"
    rf" {_SAID})\b",
    re.IGNORECASE,
)


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
        return canonical_answer(self.language, self.questions[t - 1].question, text)

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

    units = Units("world", "question", "answer")
    preset = "small"

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
        worlds, same = tee(generate_worlds(dials, seeds))
        for world, told in zip(worlds, tell_many(same, language), strict=True):
            yield self._task(spec.with_seed(world.seed), world, told, language)

    def _task(
        self, spec: ConversationSpec, world: World, told: tuple[Dialogue, ...], language: Language
    ) -> WorldConversation:
        asked = tuple(_asked(world, told))
        right = tuple(canonical_answer(language, one.question, _shown(language, one)) for one in asked)
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


def _shown(language: Language, asked: AnsweredQuestion) -> str:
    return show_answer(language, asked.question, asked.answer)


def abstains(text: str) -> bool:
    """True if a text says that the answer is unknown."""
    return _UNKNOWN.search(text) is not None


def canonical_answer(language: Language, question: WorldQuestion, text: str) -> str:
    """Return the one form of an answer that is compared: without case, quotes and full stop, lists in order."""
    table = language.table
    plain = text.strip(" \t.\"'`*“”")
    if not plain or plain.casefold() == str(table["unknown"]).casefold():
        return str(table["unknown"]).casefold()
    if question.form == "all":
        parts = re.split(r",|;|\band\b|\n", plain)
        return ", ".join(sorted(part.strip().casefold() for part in parts if part.strip()))
    if question.form == "day":
        try:
            return date.fromordinal(language.day_of(plain, 0)).isoformat()
        except (ValueError, OverflowError):
            return plain.casefold()
    if question.form in ("how_many", "between") or question.attribute == "boxes":
        is_total = question.attribute == "boxes"  # if it has several numbers, the judge looks for totals
        found = (not is_total and _COUNTED.findall(plain)) or _NUMBER.findall(plain)
        numbers = [number.replace(",", "") for number in found]
        if question.form == "how_many" and not numbers and not abstains(plain):
            numbers = [str(number) for number in _numbers_in_words(table, plain.casefold())]
        is_clear = len(set(numbers)) == 1 or (not is_total and _NUMBER.match(plain) is not None)
        return numbers[0] if is_clear else plain.casefold()
    return plain.casefold()


def _numbers_in_words(table: Mapping[str, Any], text: str) -> list[int]:
    """Return the small numbers that a text in lower case has as words; none of something is zero."""
    words = re.findall(r"\w+", text)
    found = [number for number, word in enumerate(table.get("numbers", ())) if word in words]
    is_none = words and words[0] in (str(table["none"]).casefold(), str(table["no"]).casefold())
    return found or [0] * bool(is_none)
