"""How the scripted models manage a memory of their own: how they edit a file, and what they save, search and delete.

There is no state: each round follows from the request.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from eirkit.lacuna.conversation.reading import (
    DatedStatement,
    dated_statements,
    people_named,
    plain_sentence,
    show_note,
    show_turn,
)
from eirkit.lacuna.conversation.world import INSTRUCTIONS, USER, Statement
from eirkit.lacuna.models.model import Request, ToolCall
from eirkit.lacuna.scripted.memory_tools import records_by_label
from eirkit.lacuna.scripted.notes import NotedStatement, StatementReader, lines_that_fit, room_of, user_messages
from eirkit.lacuna.scripted.statement_tools import ArchiveUser, replaces
from eirkit.lacuna.scripted.system_requests import day_stated, labels_in, question_in

EDIT, SAVE, SEEK, DELETE = "edit_file", "save_memory", "search_memory", "delete_memory"
OWN_TOOLS = frozenset({EDIT, SAVE})
GONE = ("forget", "retract")  # after which a text is deleted


class OwnTask:
    """A task with such tools: what was said or asked, what a file has, and what searches found so far."""

    def __init__(self, request: Request) -> None:
        said = [message.content for message in request.messages if message.role == "user"]
        self.text, self.results = said[0], said[1:]
        self.rounds = sum(message.role == "assistant" for message in request.messages)
        self.has_file = any(tool.name == EDIT for tool in request.tools)
        shown, _, self.said = self.text.rpartition("\n</file>\n")
        self.lines = shown.partition("<file>\n")[2].splitlines()
        self.question = question_in(self.text)
        self.today = day_stated(request.messages[0].content)

    @property
    def found(self) -> dict[str, str]:
        """The texts that searches found, by id."""
        return {name: text for result in self.results for name, text in _rows(result)}


def _rows(result: str) -> list[tuple[str, str]]:
    try:
        rows: Any = json.loads(result)
    except ValueError:
        return []
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [(str(row.get("id")), str(row.get("text"))) for row in found]


def manage_records(request: Request) -> tuple[ToolCall, ...]:
    """Return the next calls to keep or look up records, the last of a label alone."""
    task = OwnTask(request)
    if task.question is not None:
        return () if task.rounds else tuple(map(_seek, labels_in(task.question)))
    new = records_by_label(task.said)
    if task.has_file:
        old = [line for line in task.lines if new.keys() & records_by_label(line).keys()]
        return () if task.rounds else edits(old, new.values())
    if not task.rounds:
        return tuple(map(_seek, new))
    outdated = [name for name, text in task.found.items() if new.keys() & records_by_label(text).keys()]
    saved = [ToolCall(SAVE, {"text": record}) for record in new.values()]
    return (*map(_delete, outdated), *saved) if task.rounds == 1 else ()


def manage_statements(taker: StatementReader, request: Request) -> tuple[ToolCall, ...] | None:
    """Return the next calls to keep or look up what was said; None if no day is stated."""
    task = OwnTask(request)
    if not task.today:
        return None
    if task.has_file:
        return () if task.rounds else edit_statements(taker, task)
    user = NoteUser(taker, task.today, "", user_messages(task.text), task.results, task.rounds)
    return user.keep() if task.question is None else user.consult(task.question)


def edits(old: Iterable[str], new: Iterable[str]) -> tuple[ToolCall, ...]:
    """Return the edits that remove lines and add others."""
    removed = [ToolCall(EDIT, {"old_text": f"{line}\n", "new_text": ""}) for line in old]
    added = "\n".join(new)
    return (*removed, ToolCall(EDIT, {"old_text": "", "new_text": added})) if added else tuple(removed)


def edit_statements(taker: StatementReader, task: OwnTask) -> tuple[ToolCall, ...]:
    """Return the edits that add what was said, and take out what is to be forgotten or has no room any more."""
    turns = [show_turn(task.today, "user", text) for text in user_messages(task.said)]
    notes = taker.notes(turns, task.lines, task.today)
    gone = {line for one in notes if one.statement.op in GONE for line in task.lines if replaces(taker, one, line)}
    new = [one for one in notes if one.statement.op not in GONE or not any(replaces(taker, one, line) for line in gone)]
    lines = [line for line in task.lines if line not in gone]
    said = [_heard(taker, line, task.today) for line in lines]
    lines += [show_note(task.today, one.text) for one in new]
    said += [DatedStatement(one.statement, task.today, 0) for one in new]
    kept = lines_that_fit(lines, said, room_of(task.text))
    before = len(lines) - len(new)
    crowded_out = [line for number, line in enumerate(lines[:before]) if number not in kept]
    added = [line for number, line in enumerate(lines) if number >= before and number in kept]
    return edits([line for line in task.lines if line in gone or line in crowded_out], added)


def _heard(taker: StatementReader, line: str, today: int) -> DatedStatement:
    """Return what a line of the file says; a line that cannot be read as a fact that nothing replaces."""
    return next(
        iter(dated_statements(taker.language, [line], today)),
        DatedStatement(Statement("set", "event", line, None), 0, 0),
    )


class NoteUser(ArchiveUser):
    """Saves a sentence for each statement; deletes what is to be forgotten, and instructions that are replaced."""

    def seek(self, query: str) -> ToolCall:
        return _seek(query)

    @property
    def found(self) -> dict[str, str]:
        """The texts that searches returned, by id."""
        return {name: text for result in self.results for name, text in _rows(result)}

    @property
    def seen(self) -> list[str]:
        return list(self.found.values())

    def query_of(self, attribute: str, subject: str) -> str:
        return plain_sentence(self.taker.language, Statement("set", attribute, subject, ""))

    def keep(self) -> tuple[ToolCall, ...]:
        """Search for people who are only half named and for what may have to be deleted, then write."""
        turns = [show_turn(self.today, "user", text) for text in self.said]
        if not self.rounds:
            heard = [one.statement for one in dated_statements(self.taker.language, turns, self.today)]
            people = [name for one in heard for name in people_named(one) if " " not in name]
            facts = [self.query_of(one.attribute, one.subject) for one in heard if self._deletes(one)]
            if people or facts:
                return tuple(map(self.seek, dict.fromkeys([*people, *facts])))
        elif self.rounds > 1 or not self.results[-1].startswith("["):
            return ()
        notes = self.taker.notes(turns, self.seen, self.today)
        return tuple(call for one in notes for call in self.changes(one))

    @staticmethod
    def _deletes(said: Statement) -> bool:
        return said.op in GONE or said.subject == USER

    def changes(self, note: NotedStatement) -> Sequence[ToolCall]:
        """Return the calls that keep a statement."""
        deletes = self._deletes(note.statement)
        old = [name for name, text in self.found.items() if deletes and replaces(self.taker, note, text)]
        saved = () if note.statement.op in GONE and old else (note.text,)
        return [*map(_delete, old), *(ToolCall(SAVE, {"text": show_note(self.today, text)}) for text in saved)]

    def consult(self, asked: str) -> tuple[ToolCall, ...]:
        """Search for the question and for standing instructions, then for what the results lead to."""
        calls = super().consult(asked)
        standing = (self.seek(self.query_of(name, USER)) for name in INSTRUCTIONS)
        return calls if self.rounds else (*calls, *standing)


def _seek(query: str) -> ToolCall:
    return ToolCall(SEEK, {"query": query})


def _delete(name: str) -> ToolCall:
    return ToolCall(DELETE, {"id": name})
