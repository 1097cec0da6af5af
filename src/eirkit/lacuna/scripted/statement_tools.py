"""How `scripted/reader` uses the tools of a memory: which calls it makes to keep a conversation and to consult it.

It has no state: each round follows from the task and from the results of the calls before.
"""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Sequence
from datetime import date
from typing import Any

from eirkit.lacuna.conversation.language import subject_slot
from eirkit.lacuna.conversation.reading import (
    dated_statements,
    keys_of,
    learn,
    people_in,
    people_named,
    read_turn,
    show_turn,
)
from eirkit.lacuna.conversation.world import ATTRIBUTES, Statement, WorldQuestion
from eirkit.lacuna.models.model import Request, ToolCall
from eirkit.lacuna.scripted.notes import NotedStatement, StatementReader, user_messages
from eirkit.lacuna.scripted.system_requests import day_stated, question_in

GRAPH_TOOLS = frozenset({"search_nodes", "open_nodes", "create_entities", "add_observations", "delete_observations"})
USER_NODE = "default_user"
INSERT, UPDATE, DELETE = "Memory", "PatchDoc", "RemoveDoc"  # tools of LangMem's store manager
ARCHIVE, SEEK = "archival_memory_insert", "archival_memory_search"  # tools of an agent of Letta
WRITES = (ARCHIVE, BLOCK := "memory_insert", CHANGE := "memory_replace")
_TYPES = {"p": "person", "t": "team", "l": "place", "j": "project", "": "user"}


def use_tools(taker: StatementReader, request: Request) -> tuple[ToolCall, ...] | None:
    """Return the next calls, none if the task is done; None if the tools are not known."""
    names = {tool.name for tool in request.tools}
    if INSERT in names:
        return manage_documents(taker, request)
    if ARCHIVE in names:
        return ArchiveUser.of(taker, request).next_calls()
    if not names >= GRAPH_TOOLS:
        return None
    today = day_stated(request.messages[0].content)
    if not today:
        return None
    task, *results = [message.content for message in request.messages if message.role == "user"]
    rounds = sum(message.role == "assistant" for message in request.messages)
    user = GraphUser(taker, today, read_nodes(results))
    asked = question_in(task)
    if asked is not None:
        return user.consult(asked, rounds)
    return user.keep(user_messages(task), rounds)


def manage_documents(taker: StatementReader, request: Request) -> tuple[ToolCall, ...]:
    """Return what LangMem should insert, update and delete, given a session and the documents that it found."""
    said, known = read_documents(request)
    today = day_stated(request.messages[-1].content)
    may_delete = any(tool.name == DELETE for tool in request.tools)  # otherwise the withdrawal replaces the document
    calls: list[ToolCall] = []
    for one in taker.notes(said, list(known.values()), today):
        old = [name for name, text in known.items() if replaces(taker, one, text)]
        if one.statement.op in ("forget", "retract") and old and may_delete:
            calls += [ToolCall(DELETE, {"json_doc_id": name}) for name in old]
        elif old:
            patch = {"op": "replace", "path": "/content", "value": one.text}
            calls.append(ToolCall(UPDATE, {"json_doc_id": old[0], "planned_edits": one.text, "patches": [patch]}))
            known.pop(old[0])
        else:
            calls.append(ToolCall(INSERT, {"content": one.text}))
    return tuple(calls)


def read_documents(request: Request) -> tuple[list[str], dict[str, str]]:
    """Return what the user says in a request of LangMem, and the documents that it shows, by id."""
    said: list[list[str]] = []
    is_user = False
    for line in request.messages[-1].content.splitlines():
        if line.startswith("===") and line.strip("= ").endswith(" Message"):
            is_user = line.strip("= ") == "Human Message"
            said += [[]] if is_user else []
        elif is_user:
            said[-1].append(line)
    closed = request.messages[0].content.split("\n</instance>")[:-1]
    opened = (part.partition("<instance id=")[2].partition(' schema_type="Memory">\n') for part in closed)
    known = {name: _content(text) for name, found, text in opened if found}
    return ["\n".join(lines).strip() for lines in said], known


def replaces(taker: StatementReader, note: NotedStatement, text: str) -> bool:
    """True if a note makes a document out of date: another value of the same fact, or its withdrawal."""
    op, attribute, subject, value = note.statement
    if ATTRIBUTES[attribute] in ("set", "count") and op != "replace":
        return False
    heard = dated_statements(taker.language, [text], 0, [subject])
    return any(
        (one.statement.attribute, one.statement.subject) == (attribute, subject)
        and (op != "retract" or one.statement.value == value)
        for one in heard
    )


def _content(text: str) -> str:
    """Return the content of a document as it is printed, as a Python dictionary or as JSON."""
    try:
        found = literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return str(found.get("content", "")) if isinstance(found, dict) else text


class GraphUser:
    """Keeps statements as dated observations of the node they are about.

    Args:
        graph: the observations of each node that was read so far.
    """

    def __init__(self, taker: StatementReader, today: int, graph: dict[str, list[str]]) -> None:
        self.taker, self.today, self.graph = taker, today, graph

    @property
    def seen(self) -> list[str]:
        return [text for texts in self.graph.values() for text in texts]

    def keep(self, said: Sequence[str], rounds: int) -> tuple[ToolCall, ...]:
        """Look up every name that is mentioned, then write."""
        turns = [show_turn(self.today, "user", text) for text in said]
        if rounds == 0:
            heard = [one.statement for one in dated_statements(self.taker.language, turns, self.today)]
            names = dict.fromkeys(name for one in heard for name in named_in(one))
            return tuple(_search(name) for name in names)
        return () if rounds > 1 else self.write(self.taker.notes(turns, self.seen, self.today))

    def write(self, notes: Sequence[NotedStatement]) -> tuple[ToolCall, ...]:
        """Return calls that create nodes, add observations, and delete what the user wants forgotten."""
        added: dict[str, list[str]] = {}
        types: dict[str, str] = {}
        gone: dict[str, list[str]] = {}
        for one in notes:
            node = one.statement.subject or USER_NODE
            if one.statement.op in ("forget", "retract") and (stated := self.about(one.statement)):
                gone.setdefault(node, []).extend(stated)
            else:
                types.setdefault(node, _TYPES[subject_slot(one.statement.attribute)])
                added.setdefault(node, []).append(f"[{date.fromordinal(self.today).isoformat()}] {one.text}")
        new = [
            {"name": node, "entityType": types[node], "observations": texts}
            for node, texts in added.items()
            if node not in self.graph
        ]
        more = [{"entityName": node, "contents": texts} for node, texts in added.items() if node in self.graph]
        old = [{"entityName": node, "observations": texts} for node, texts in gone.items() if texts]
        calls = (
            ("delete_observations", {"deletions": old}),
            ("create_entities", {"entities": new}),
            ("add_observations", {"observations": more}),
        )
        return tuple(ToolCall(name, given) for name, given in calls if any(given.values()))

    def about(self, statement: Statement) -> list[str]:
        """Return the observations that state the same fact as a statement."""
        found = []
        for text in self.graph.get(statement.subject or USER_NODE, ()):
            heard = dated_statements(self.taker.language, [text], self.today, [statement.subject])
            wanted = statement[1:] if statement.op == "retract" else statement[1:3]
            if any(one.statement[1 : 1 + len(wanted)] == wanted for one in heard):
                found.append(text)
        return found

    def consult(self, asked: str, rounds: int) -> tuple[ToolCall, ...]:
        """Look up the user and what the question names, then what that leads to."""
        question = next(
            one for one in read_turn(self.taker.language, asked, self.today) if isinstance(one, WorldQuestion)
        )
        heard = dated_statements(self.taker.language, self.seen, self.today, people_in(question))
        wanted = dict.fromkeys(subject for _, subject in keys_of(question, learn(heard)))
        if rounds == 0:
            return (ToolCall("open_nodes", {"names": [USER_NODE]}), *map(_search, wanted))
        return tuple(_search(name) for name in wanted if name not in self.graph) if rounds == 1 else ()


def _search(name: str) -> ToolCall:
    return ToolCall("search_nodes", {"query": name or USER_NODE})


def named_in(statement: Statement) -> list[str]:
    """Return the nodes that a statement names."""
    named = [statement.subject or USER_NODE]
    return [*named, str(statement.value)] if statement.attribute == "lead" else named


def read_nodes(results: Sequence[str]) -> dict[str, list[str]]:
    """Return the observations of each node in the results of calls."""
    found: dict[str, list[str]] = {}
    for text in results:
        try:
            read: Any = json.loads(text)
        except ValueError:
            continue
        entities = read.get("entities") if isinstance(read, dict) else None
        for one in entities if isinstance(entities, list) else ():
            found[str(one["name"])] = [str(observation) for observation in one["observations"]]
    return found


class ArchiveUser:
    """Keeps facts in archival memory, where nothing can be changed, and standing instructions in the block `human`.

    Args:
        block: the block about the user.
        said: what the user says now.
        results: what searches have returned since then.
        rounds: how often it has searched since then.
    """

    def __init__(
        self,
        taker: StatementReader,
        today: int,
        block: str,
        said: Sequence[str],
        results: Sequence[str],
        rounds: int,
    ) -> None:
        self.taker, self.today, self.block = taker, today, block
        self.said, self.results, self.rounds = said, results, rounds

    @classmethod
    def of(cls, taker: StatementReader, request: Request) -> ArchiveUser:
        """Return the user of the tools that a request is addressed to; a day is stated before each conversation."""
        first = request.messages[0].content
        starts = (at for at, one in enumerate(request.messages) if one.content.startswith("Today is "))
        start = max(starts, default=0)
        _, _, opened = first.partition("<human>")[2].partition("<value>\n")
        block, closed, _ = opened.partition("</value>")
        said: list[str] = []
        results: list[str] = []
        rounds = 0
        for one in request.messages[start + 1 :]:
            if one.role == "user":
                (results if rounds else said).append(one.content)
            elif any(f'"{name}"' in one.content for name in WRITES):
                return cls(taker, 0, "", (), (), 0)  # it has written, and is done
            else:
                rounds += f'"{SEEK}"' in one.content
        stated = request.messages[start].content
        today = day_stated(stated) if stated.startswith("Today is ") else 0
        return cls(taker, today, block.removesuffix("\n") if closed else "", said, results, rounds)

    def next_calls(self) -> tuple[ToolCall, ...]:
        """Return the next calls; none if the work is done."""
        asked = question_in(self.said[-1]) if self.said else None
        return self.consult(asked) if asked is not None else self.keep()

    def seek(self, query: str) -> ToolCall:
        """Return the call that searches."""
        return ToolCall(SEEK, {"query": query})

    @property
    def seen(self) -> list[str]:
        """The texts that searches returned."""
        return [text for result in self.results for text in _found(result)]

    def keep(self) -> tuple[ToolCall, ...]:
        """Search for people who are only half named, then write."""
        turns = [show_turn(self.today, "user", text) for text in self.said]
        heard = [one.statement for one in dated_statements(self.taker.language, turns, self.today)]
        people = [name for one in heard for name in people_named(one) if " " not in name]
        if people and not self.rounds:
            return tuple(map(self.seek, dict.fromkeys(people)))
        return tuple(map(self.write, self.taker.notes(turns, self.seen, self.today)))

    def write(self, note: NotedStatement) -> ToolCall:
        """Return the call that keeps a statement."""
        line = f"[{date.fromordinal(self.today).isoformat()}] {note.text}"
        if note.statement.subject:
            return ToolCall(ARCHIVE, {"content": line, "tags": [note.statement.subject]})
        old = [one for one in self.block.splitlines() if replaces(self.taker, note, one)]
        if not old:
            return ToolCall(BLOCK, {"label": "human", "new_string": line})
        new = "" if note.statement.op == "forget" else line
        return ToolCall(CHANGE, {"label": "human", "old_string": old[0], "new_string": new})

    def consult(self, asked: str) -> tuple[ToolCall, ...]:
        """Search for the question, then for what the results lead to."""
        if not self.rounds:
            return (self.seek(asked),)
        if self.rounds > 1:
            return ()
        question = next(
            one for one in read_turn(self.taker.language, asked, self.today) if isinstance(one, WorldQuestion)
        )
        heard = dated_statements(self.taker.language, self.seen, self.today, people_in(question))
        further = [key for key in keys_of(question, learn(heard)) if key[1] not in (question.subject, question.other)]
        sought = {one.statement[1:3] for one in heard}
        return tuple(self.seek(self.query_of(*key)) for key in further if key not in sought)

    def query_of(self, attribute: str, subject: str) -> str:
        """Return what to search for to learn a fact."""
        return f"{attribute} {subject}"


def _found(result: str) -> list[str]:
    """Return the texts in the result of a search, a list that is printed inside a JSON object."""
    try:
        rows = literal_eval(json.loads(result)["message"])
    except (ValueError, SyntaxError, KeyError, TypeError):
        return []
    return [str(one["content"]) for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []
