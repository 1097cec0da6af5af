"""Workloads told in words: each task is a world in dated conversations, and its steps are questions about it.

An answer is a text. `spell` gives it the form of any other answer, a tuple of numbers, so that runs are stored, scored,
compared and resumed like those of the other workloads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import Any

from eirkit.errors import SpecError, UnknownNameError, UsageError
from eirkit.tasks.task import Payload, Step, TaskInstance, TaskSpec
from eirkit.tasks.words.conversation import Told, tell
from eirkit.tasks.words.floor import floor_bits
from eirkit.tasks.words.language import Language, load_language, show_answer
from eirkit.tasks.words.reading import Heard, hear_passages, show_turn
from eirkit.tasks.words.truth import Knowledge, answers
from eirkit.tasks.words.world import PRESETS, Ability, Answer, Dials, World, WorldQuestion, generate_worlds
from eirkit.tasks.workload import Telling, conversations

PRESET = "small"
_DIALS = tuple(one.name for one in fields(Dials))
_NUMBER = re.compile(r"-?\d[\d,]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a world as it is put."""

    t: int  # from 1
    text: str
    question: WorldQuestion
    answer: Answer
    ability: Ability


@dataclass(frozen=True)
class ToldWorld(TaskInstance):
    """A world that is told and then asked about."""

    world: World
    language: Language
    told: tuple[Told, ...]
    asked: tuple[Asked, ...]

    @cached_property
    def sessions(self) -> tuple[Told, ...]:
        """The sessions in which something is said."""
        return tuple(one for one in self.told if one.messages)

    @property
    def today(self) -> int:
        """The day on which the questions are asked."""
        return self.told[-1].day

    @cached_property
    def turns(self) -> tuple[str, ...]:
        """Everything that was said, turn by turn, as memories and readers see it."""
        return tuple(
            show_turn(one.day, message.role, message.text) for one in self.sessions for message in one.messages
        )

    @cached_property
    def said(self) -> list[Heard]:
        """What was said, in order, each with the number of its turn."""
        return hear_passages(self.language, self.turns, self.today)

    @cached_property
    def truth(self) -> Knowledge:
        """What holds when the questions are asked."""
        knowledge = Knowledge()
        for one in self.said:
            knowledge.hear(one.statement, one.day)
        return knowledge

    def floor_bits(self) -> float:
        """The bits that must survive the last session."""
        return floor_bits(self.world, len(self.told) - 1)


def spell(text: str) -> Payload:
    """Return a text as numbers; `unspell` inverts it."""
    return tuple(text.encode())


def unspell(values: Payload) -> str:
    return bytes(values).decode()


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
            raise SpecError(f"{change!r} is no dial with its number; known: {', '.join(_DIALS)}, language")
    return replace(PRESETS[name], **given), language


@conversations.add("words")
class Words(Telling):
    """Invented people and places in dated conversations; each step is a question about what was said."""

    def specify(self, values: Mapping[str, Any]) -> TaskSpec:
        if foreign := [name for name in values if name not in ("workload", "preset")]:
            raise UsageError(f"words takes no {foreign[0]}; set its dials in the preset, as in small+questions=12")
        preset = str(values.get("preset", PRESET))
        size = read_preset(preset)[0].questions
        return TaskSpec(str(values["workload"]), n=size, m=size, preset=preset)

    def check(self, spec: TaskSpec) -> None:
        dials, language = read_preset(spec.preset)
        load_language(language)
        if dials.probes:
            raise SpecError("questions between sessions are not run yet; set probes=0")
        if spec.n != dials.questions:
            raise SpecError(f"n = {spec.n} does not fit the preset {spec.preset}; set its dial questions")

    def tasks(self, spec: TaskSpec, seeds: Sequence[int]) -> Iterator[TaskInstance]:
        dials, named = read_preset(spec.preset)
        language = load_language(named)
        for world in generate_worlds(dials, seeds):
            yield self._task(spec.with_seed(world.seed), world, language)

    def _task(self, spec: TaskSpec, world: World, language: Language) -> ToldWorld:
        told = tell(world, language)
        texts = [text for one in told for text in one.questions]
        asked = tuple(
            Asked(t, text, question, answer, ability)
            for t, (text, (question, answer, ability)) in enumerate(zip(texts, answers(world), strict=True), 1)
        )
        steps = tuple(
            Step(one.t, "query", None, (), spell(canonical_answer(language, one.question, _shown(language, one))), True)
            for one in asked
        )
        said = "\n".join([*texts, *(message.text for one in told for message in one.messages)])
        return ToldWorld(spec, steps, sha256(said.encode()).hexdigest(), world, language, told, asked)


def _shown(language: Language, asked: Asked) -> str:
    return show_answer(language, asked.question, asked.answer)


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
        found = _NUMBER.match(plain)
        return found[0].replace(",", "") if found else plain.casefold()
    return plain.casefold()
