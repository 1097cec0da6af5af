"""Reads conversations back by their grammar: the inverse of telling them."""

from __future__ import annotations

from collections.abc import Iterable

from eirkit.lacuna.conversation.dialogues import Dialogue
from eirkit.lacuna.conversation.language import Language, Listener, read
from eirkit.lacuna.conversation.world import Statement, WorldQuestion, WorldSession


def read_back(told: Iterable[Dialogue], language: Language) -> tuple[WorldSession, ...]:
    """Return the statements and questions of conversations: the inverse of `tell`."""
    listener, found = Listener(), []
    for day, messages, questions in told:
        said: list[Statement] = []
        apart: list[Statement] = []
        for message in messages:
            into = apart if message.text.startswith(language.table["here_is"]) else said
            if message.role == "user":
                into += [one for one in read(language, message.text, day, listener) if isinstance(one, Statement)]
        # Questions have full names and introduce nobody.
        asked = [one for text in questions for one in read(language, text, day, Listener())]
        questions_read = tuple(one for one in asked if isinstance(one, WorldQuestion))
        found.append(WorldSession(day, tuple(said), questions_read, tuple(apart)))
    return tuple(found)
