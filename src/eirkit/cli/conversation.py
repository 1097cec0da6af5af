"""`eirkit lacuna generate conversation`: a world told in conversations, its questions and the bits they require."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import accumulate
from pathlib import Path
from shlex import quote
from typing import Literal

import msgspec
from msgspec import Struct

from eirkit.cli.new_file import new_records
from eirkit.lacuna.conversation.floor import floor_bits, floor_bytes
from eirkit.lacuna.conversation.language import Language, load_language
from eirkit.lacuna.conversation.published import LabeledEntry, label_world
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.workload import read_preset
from eirkit.lacuna.conversation.world import Dials, World, generate_world, generate_worlds
from eirkit.lacuna.tasks.task import ConversationSpec
from eirkit.report.document import Document, Listing, Section
from eirkit.report.showing import TEXT_WIDTH
from eirkit.report.table import Column, Table, cells_of, counted

SCHEMA = "words/1"


def write_conversations(spec: ConversationSpec, seeds: Sequence[int], out: Path) -> Document:
    """Write the conversation of each seed, and return what is said about it."""
    dials, language = _settings(spec)
    with new_records(out, SCHEMA) as writer:
        for world in generate_worlds(dials, seeds, language.vocabulary):
            writer.append(msgspec.to_builtins(_data(world, label_world(world, language), language)))
    said = f"{counted(len(seeds), 'conversation')} written to {out}."
    data = WrittenWorlds(str(out), len(seeds), (seeds[0], seeds[-1]))
    return Document("lacuna-generate", "Conversations", (said,), data, next=_command(spec, seeds[0]))


def conversation_document(spec: ConversationSpec, seed: int) -> Document:
    """Return the world of one seed, told in dated conversations, with its questions and the bits it requires."""
    dials, language = _settings(spec)
    world = generate_world(dials, seed, language.vocabulary)
    return _document(world, label_world(world, language), language, _command(spec, seed + 1))


def _settings(spec: ConversationSpec) -> tuple[Dials, Language]:
    dials, language = read_preset(spec.preset)
    return dials, load_language(language)


def _command(spec: ConversationSpec, seed: int) -> str:
    return f"eirkit lacuna generate {spec.workload} --preset {quote(spec.preset)} --seed {seed}"


class WrittenWorlds(Struct, frozen=True):
    """A file of worlds."""

    out: str
    worlds: int
    seeds: tuple[int, int]  # first and last


class SpokenTurn(Struct, frozen=True):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str


class SpokenSession(Struct, frozen=True):
    """One conversation."""

    day: str
    messages: list[SpokenTurn]


class AskedQuestion(Struct, frozen=True):
    """A question in words, with its answer, the turns on which the answer rests, and what it asks."""

    day: str
    text: str
    answer: str
    ability: str
    evidence: list[tuple[int, int]]  # session and turn
    turns_since: int | None  # the last of these
    form: str
    attribute: str
    subject: str
    other: str | int | None


class WorldDocument(Struct, frozen=True):
    """A world told in conversations."""

    seed: int
    dials: Dials
    language: str
    sessions: list[SpokenSession]
    asked_on: str
    questions: list[AskedQuestion]
    floor_bits: list[float]  # after each session
    floor_bytes: list[int]


def _data(world: World, dialogue: LabeledEntry, language: Language) -> WorldDocument:
    told = dialogue.sessions
    place = {number: at for at, number in enumerate(n for n, session in enumerate(told) if session.messages)}
    before = [0, *accumulate(len(dialogue.messages) for dialogue in told)]
    asked = [
        AskedQuestion(
            _iso(one.day),
            one.text,
            one.answer,
            one.kind,
            [(place[session], turn) for session, turn in one.turns or ()],
            min((before[one.after] - before[s] - t - 1 for s, t in one.turns or ()), default=None),
            *question,
        )
        for one, (question, _, _) in zip(dialogue.questions, answers(world), strict=True)
    ]
    sessions = [
        SpokenSession(_iso(dialogue.day), [SpokenTurn(*message) for message in dialogue.messages])
        for dialogue in told[:-1]
        if dialogue.messages
    ]
    cuts = [0, *(cut for cut, session in enumerate(told[:-1], 1) if session.messages)]
    return WorldDocument(
        world.seed,
        world.dials,
        language.name,
        sessions,
        _iso(world.sessions[-1].day),
        asked,
        [floor_bits(world, cut) for cut in cuts],
        [floor_bytes(world, cut) for cut in cuts],
    )


def _document(world: World, dialogue: LabeledEntry, language: Language, then: str) -> Document:
    data = _data(world, dialogue, language)
    answer = (
        f"{counted(len(data.sessions), 'session')} and {counted(len(data.questions), 'question')}; after the last "
        f"session {data.floor_bits[-1]:,.1f} bits ({counted(data.floor_bytes[-1], 'byte')}) must survive to answer "
        "them all."
    )
    columns = (
        *((Column("day", "asked on"),) if world.dials.probes else ()),
        Column("text", "question", role="text"),
        Column("answer", "answer", role="text"),
        Column("ability", "ability"),
    )
    rows = tuple(cells_of(question, columns) for question in data.questions)
    pairs = zip(data.floor_bits, data.floor_bytes, strict=True)
    floor = tuple({"session": cut, "bits": bits, "bytes": whole} for cut, (bits, whole) in enumerate(pairs) if cut)
    sizes = Column("session", "session"), Column("bits", "bits", 1), Column("bytes", "bytes")
    needed = Table("floor", "What must survive each session", sizes, floor)
    listings = tuple(
        Listing(f"session-{number}", f"Session {number}, {session.day}", "\n".join(_lines(session.messages)))
        for number, session in enumerate(data.sessions, 1)
    )
    when = "" if world.dials.probes else f" asked on {data.asked_on},"
    asked = Table("questions", f"Questions{when} with their answers", columns, rows)
    sections = (Section("", (), listings), Section("", (), (asked, needed)))
    return Document("lacuna-generate", f"Conversations, seed {world.seed}", (answer,), data, sections, next=then)


def _lines(messages: list[SpokenTurn]) -> Iterator[str]:
    for message in messages:
        yield from textwrap.wrap(f"{message.role}: {message.text}", TEXT_WIDTH - 2, subsequent_indent="  ")


def _iso(day: int) -> str:
    return date.fromordinal(day).isoformat()
