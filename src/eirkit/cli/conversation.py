"""`eirkit lacuna words`: a world told in conversations, its questions with their answers, and the bits it requires."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import date
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import click
import msgspec
from msgspec import Struct

from eirkit.cli.command import OUTPUT, ParamType, Show, command, document_options, option
from eirkit.cli.tasks import new_records
from eirkit.errors import UsageError
from eirkit.lacuna.conversation.floor import floor_bits, floor_bytes
from eirkit.lacuna.conversation.language import Language, load_language
from eirkit.lacuna.conversation.published import LabelledEntry, label_world
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.world import PRESETS, Dials, World, generate_world, generate_worlds
from eirkit.report.document import Document, Listing, Section
from eirkit.report.showing import TEXT_WIDTH
from eirkit.report.table import Column, Table, counted

SCHEMA = "words/1"
NAMES = tuple(one.name for one in fields(Dials))


class DialList(ParamType):
    """Dials as NAME=NUMBER, separated by commas."""

    name = "dials"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        found: dict[str, int] = {}
        for part in filter(None, str(value).split(",")):
            name, _, number = part.partition("=")
            if name not in NAMES or not number.isdigit():
                self.fail(f"{part!r} is not NAME=NUMBER; known: {', '.join(NAMES)}", param, ctx)
            found[name] = int(number)
        return found


@command(example="eirkit lacuna words --preset small --seed 1")
@option(
    "--preset",
    type=click.Choice(tuple(PRESETS)),
    default="small",
    show_default=True,
    group="Task",
    help="Size of the conversations.",
)
@option(
    "--set",
    "dials",
    type=DialList(),
    default="",
    group="Task",
    metavar="NAME=N,…",
    help=f"Values that differ from the preset: {', '.join(NAMES)}.",
)
@option("--seed", type=click.IntRange(0), default=0, show_default=True, group="Task", help="Seed of the conversations.")
@option("--language", default="english", show_default=True, group="Task", help="A built-in language, or a file.toml.")
@option(
    "--count",
    type=click.IntRange(1, 10_000_000),
    help="Write the conversations of this many tasks, with seeds from --seed upwards.",
)
@option("--out", type=click.Path(path_type=Path), group=OUTPUT, metavar="FILE", help="With --count: the file to write.")
@document_options
def words(
    preset: str, dials: dict[str, int], seed: int, language: str, count: int | None, out: Path | None, show: Show
) -> None:
    """Print an invented world told in dated conversations, its questions with their answers, and the bits it requires.

    Facts are said, changed and withdrawn over several sessions, about people who may share a first name. Every value
    is a phrase or number that occurs for one fact alone, so whether a memory kept it is a search for a string.
    """
    chosen, spoken = replace(PRESETS[preset], **dials), load_language(language)
    if (count is None) != (out is None):
        raise UsageError("--count and --out belong together; for many give --count N --out FILE.jsonl")
    if count is not None and out is not None:
        with new_records(out, SCHEMA) as writer:
            for world in generate_worlds(chosen, range(seed, seed + count), spoken.vocabulary):
                writer.append(msgspec.to_builtins(_data(world, label_world(world, spoken), spoken)))
        said = f"{counted(count, 'task')} written to {out}."
        data = WrittenWorlds(str(out), count, (seed, seed + count - 1))
        show(Document("lacuna-words", "Worlds in words", (said,), data, next=f"eirkit lacuna words --seed {seed}"))
        return
    world = generate_world(chosen, seed, spoken.vocabulary)
    then = f"eirkit lacuna words --preset {preset} --seed {seed + 1}"
    show(_document(world, label_world(world, spoken), spoken, then))


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


def _data(world: World, dialogue: LabelledEntry, language: Language) -> WorldDocument:
    told = dialogue.sessions
    place = {number: at for at, number in enumerate(n for n, one in enumerate(told) if one.messages)}
    before = [0, *accumulate(len(one.messages) for one in told)]
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
        SpokenSession(_iso(one.day), [SpokenTurn(*message) for message in one.messages])
        for one in told[:-1]
        if one.messages
    ]
    cuts = [0, *(cut for cut, one in enumerate(told[:-1], 1) if one.messages)]
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


def _document(world: World, dialogue: LabelledEntry, language: Language, then: str) -> Document:
    data = _data(world, dialogue, language)
    answer = (
        f"{counted(len(data.sessions), 'session')} and {counted(len(data.questions), 'question')}; after the last "
        f"session {data.floor_bits[-1]:,.1f} bits ({counted(data.floor_bytes[-1], 'byte')}) must survive to answer "
        "them all."
    )
    rows = tuple(
        {"day": one.day, "text": one.text, "answer": one.answer, "ability": one.ability} for one in data.questions
    )
    columns = (
        *((Column("day", "asked on"),) if world.dials.probes else ()),
        Column("text", "question", role="text"),
        Column("answer", "answer", role="text"),
        Column("ability", "ability"),
    )
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
    return Document("lacuna-words", f"Conversations, seed {world.seed}", (answer,), data, sections, next=then)


def _lines(messages: list[SpokenTurn]) -> Iterator[str]:
    for message in messages:
        yield from textwrap.wrap(f"{message.role}: {message.text}", TEXT_WIDTH - 2, subsequent_indent="  ")


def _iso(day: int) -> str:
    return date.fromordinal(day).isoformat()
