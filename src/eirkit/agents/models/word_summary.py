"""How `scripted/reader` sums up conversations: dated sentences, as many as fit, and what the prompt asks for first.

It takes a prompt at its word: one that speaks of instructions gets the user's standing instructions first, one that
speaks of facts and not of instructions gets none of them, and any other gets them as whatever else was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from eirkit.agents.conversing import PASSAGE, PASSAGE_END
from eirkit.agents.models.word_notes import StatementReader
from eirkit.tasks.words.reading import Heard, hear_passages, plain_sentence, show_note
from eirkit.tasks.words.world import ATTRIBUTES, USER

_ROOM = re.compile(r"at most (\d+) characters")


def sum_up(reader: StatementReader, shown: str) -> str:
    """Return the summary that a request asks for."""
    said, _, prompt = shown.partition(f"{PASSAGE}\n")[2].rpartition(f"\n{PASSAGE_END}")
    heard = _as_noted(reader, hear_passages(reader.language, [said], 0))
    lines = [show_note(one.day, plain_sentence(reader.language, one.statement)) for one in heard]
    asks_for_instructions = re.search(r"\binstructions?\b", prompt, re.IGNORECASE) is not None
    facts_alone = not asks_for_instructions and re.search(r"\bfacts?\b", prompt, re.IGNORECASE) is not None
    ranked = _by_rank(heard, instructions_first=asks_for_instructions)
    wanted = [number for number in ranked if not (facts_alone and heard[number].statement.subject == USER)]
    chosen = _fitting(wanted, lines, room_of(shown))
    return "\n".join(line for number, line in enumerate(lines) if number in chosen)


def lines_that_fit(lines: Sequence[str], heard: Sequence[Heard], room: int) -> set[int]:
    """Return the numbers of the lines that fit into a room: instructions and what still holds first, then the newest.

    Args:
        heard: what each line says, one statement a line.
    """
    return _fitting(_by_rank(heard, instructions_first=True), lines, room)


def _fitting(ranked: Iterable[int], lines: Sequence[str], room: int) -> set[int]:
    chosen = set[int]()
    for number in ranked:
        if len(lines[number]) + 1 <= room:
            room -= len(lines[number]) + 1
            chosen.add(number)
    return chosen


def room_of(request: str) -> int:
    """Return the characters that a summary may have; as many as the request if it does not say."""
    stated = _ROOM.findall(request)
    return int(stated[-1]) if stated else len(request)


def _as_noted(reader: StatementReader, heard: Sequence[Heard]) -> list[Heard]:
    """Return what was heard as the reader notes it, which its dials may spoil."""
    people = list(dict.fromkeys(one.statement.subject for one in heard if " " in one.statement.subject))
    return [one._replace(statement=said) for one in heard for said in reader.spoiled(one, people)]


def _by_rank(heard: Sequence[Heard], *, instructions_first: bool) -> Iterable[int]:
    """Yield what was heard in the order in which it is worth its place: what still holds first, then the newest."""
    last: dict[tuple[str, str], int] = {}
    for number, one in enumerate(heard):
        if ATTRIBUTES[one.statement.attribute] not in ("set", "count"):
            last[one.statement.attribute, one.statement.subject] = number

    def rank(number: int) -> tuple[bool, bool, int]:
        said = heard[number].statement
        holds = last.get((said.attribute, said.subject), number) == number
        return not (instructions_first and said.subject == USER and holds), not holds, -number

    return sorted(range(len(heard)), key=rank)
