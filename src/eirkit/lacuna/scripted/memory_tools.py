"""How the scripted models use the tools of a memory: those that keep records, and Anthropic's memory tool with files.

There is no state: each round follows from the request and the results of the rounds before. A record with another
value replaces the earlier one where the tools can do that. Of files, each label or subject has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from eirkit.lacuna.conversation.reading import dated_statements, keys_of, learn, people_in, read_turn, show_turn
from eirkit.lacuna.conversation.world import WorldQuestion
from eirkit.lacuna.models.model import Request, ToolCall
from eirkit.lacuna.scripted.notes import StatementReader, user_messages
from eirkit.lacuna.scripted.statement_tools import (
    ARCHIVE,
    GRAPH_TOOLS,
    INSERT,
    SEEK,
    UPDATE,
    USER_NODE,
    WRITES,
    GraphUser,
    named_in,
    read_documents,
    read_nodes,
)
from eirkit.lacuna.scripted.system_requests import day_stated, labels_in, question_in, records_in

FILES = "memory"  # the name of the tool
ROOT = "/memories"


def records_by_label(text: str) -> dict[str, str]:
    """Return the records of a text by label; the last one of a label counts."""
    return {label: f"{label} = {values}" for label, values in records_in(text)}


def use_record_tools(request: Request) -> tuple[ToolCall, ...] | None:
    """Return the next calls, none if the task is done; None if the tools are not known."""
    names = {tool.name for tool in request.tools}
    if INSERT in names:
        return _manage(request)
    said = [message.content for message in request.messages if message.role == "user"]
    worked = [message.content for message in request.messages if message.role == "assistant"]
    task, results = said[0] if said else "", said[1:]
    asked = question_in(task)
    if ARCHIVE in names:
        if any(f'"{name}"' in text for text in worked for name in (*WRITES, SEEK)):
            return ()
        return (ToolCall(SEEK, {"query": asked}),) if asked is not None else _archive(task)
    if not names >= GRAPH_TOOLS:
        return None
    if asked is not None:
        labels = labels_in(asked)
        return () if worked else tuple(ToolCall("search_nodes", {"query": label}) for label in labels)
    new = records_by_label(task)
    if not worked:
        return tuple(ToolCall("search_nodes", {"query": label}) for label in new)
    return _observe(new, read_nodes(results)) if len(worked) == 1 else ()


def _manage(request: Request) -> tuple[ToolCall, ...]:
    """Return what LangMem should insert and update, given a message and the documents that it found."""
    said, known = read_documents(request)
    held = {label: name for name, text in known.items() for label in records_by_label(text)}
    calls: list[ToolCall] = []
    for label, record in records_by_label("\n".join(said)).items():
        if label not in held:
            calls.append(ToolCall(INSERT, {"content": record}))
        elif known[held[label]] != record:
            patch = {"op": "replace", "path": "/content", "value": record}
            calls.append(ToolCall(UPDATE, {"json_doc_id": held[label], "planned_edits": record, "patches": [patch]}))
    return tuple(calls)


def _archive(task: str) -> tuple[ToolCall, ...]:
    """Return what an agent of Letta should archive, where nothing can be changed."""
    found = records_by_label(task)
    return tuple(ToolCall(ARCHIVE, {"content": record, "tags": [label]}) for label, record in found.items())


def _observe(new: dict[str, str], graph: dict[str, list[str]]) -> tuple[ToolCall, ...]:
    """Return the calls that make every record the only observation of its node."""
    made = [(label, record) for label, record in new.items() if label not in graph]
    other = [(label, record, graph[label]) for label, record in new.items() if label in graph]
    old = [
        {"entityName": label, "observations": gone}
        for label, record, known in other
        if (gone := [text for text in known if text != record])
    ]
    more = [{"entityName": label, "contents": [record]} for label, record, known in other if record not in known]
    entities = [{"name": label, "entityType": "record", "observations": [record]} for label, record in made]
    calls = (
        ("delete_observations", {"deletions": old}),
        ("create_entities", {"entities": entities}),
        ("add_observations", {"observations": more}),
    )
    return tuple(ToolCall(name, given) for name, given in calls if any(given.values()))


class FileTask:
    """A task with the tool: what was asked, what is listed, and what was viewed so far."""

    def __init__(self, request: Request) -> None:
        said = [message.content for message in request.messages if message.role == "user"]
        self.task, results = said[0], "\n".join(said[1:])
        self.rounds = sum(message.role == "assistant" for message in request.messages)
        paths = [line.partition(f"\t{ROOT}/")[2] for line in results.splitlines()]
        self.listed = list(dict.fromkeys(path.removesuffix(".md") for path in paths if path.endswith(".md")))
        self.files: dict[str, list[str]] = {}
        for shown in f"\n{results}".split(f"\nHere's the content of {ROOT}/")[1:]:
            name, _, text = shown.partition(".md with line numbers:\n")
            lines = [line.partition("\t")[2] for line in text.splitlines() if line.partition("\t")[0].strip().isdigit()]
            self.files[name] = [line for line in lines if line]
        self.question = question_in(self.task)

    def view(self, names: Iterable[str]) -> tuple[ToolCall, ...]:
        """Return the calls that view the listed files with these names that were not viewed yet."""
        chosen = [one for one in dict.fromkeys(names) if one in self.listed and one not in self.files]
        return tuple(ToolCall(FILES, {"command": "view", "path": f"{ROOT}/{name}.md"}) for name in chosen)


VIEW_ALL = (ToolCall(FILES, {"command": "view", "path": ROOT}),)


def keep_records(request: Request) -> tuple[ToolCall, ...]:
    """Return the next calls to keep or look up records, one file a label."""
    task = FileTask(request)
    if not task.rounds:
        return VIEW_ALL
    new = records_by_label(task.task)
    if task.question is not None:
        return task.view(labels_in(task.question)) if task.rounds == 1 else ()
    if task.rounds == 1 and (known := task.view(new)):
        return known
    if task.rounds > 2 or (task.rounds == 2 and not task.files):
        return ()
    made = [
        {"command": "create", "path": f"{ROOT}/{label}.md", "file_text": f"{record}\n"}
        for label, record in new.items()
        if label not in task.listed
    ]
    changed = [
        {"command": "str_replace", "path": f"{ROOT}/{label}.md", "old_str": task.files[label][0], "new_str": record}
        for label, record in new.items()
        if task.files.get(label) and task.files[label][0] != record
    ]
    return tuple(ToolCall(FILES, one) for one in (*made, *changed))


def keep_statements(taker: StatementReader, request: Request) -> tuple[ToolCall, ...] | None:
    """Return the next calls to keep or look up what was said, one file a subject; None if no day is stated."""
    today = day_stated(request.messages[0].content)
    if not today:
        return None
    task = FileTask(request)
    if not task.rounds:
        return VIEW_ALL
    user = FileUser(taker, today, task)
    return user.keep_files() if task.question is None else user.look_up(task.question)


class FileUser(GraphUser):
    """Keeps statements as dated lines in the file of the subject that they are about."""

    def __init__(self, taker: StatementReader, today: int, task: FileTask) -> None:
        super().__init__(taker, today, {_name(file): lines for file, lines in task.files.items()})
        self.task = task

    def keep_files(self) -> tuple[ToolCall, ...]:
        """View every file that may be about what is mentioned, then write."""
        turns = [show_turn(self.today, "user", text) for text in user_messages(self.task.task)]
        heard = [one.statement for one in dated_statements(self.taker.language, turns, self.today)]
        names = [name for one in heard for name in named_in(one)]
        if self.task.rounds == 1 and (known := self.task.view(self._alike(names))):
            return known
        if self.task.rounds > 2 or (self.task.rounds == 2 and not self.task.files):
            return ()
        return self._write(turns)

    def _write(self, turns: Sequence[str]) -> tuple[ToolCall, ...]:
        day = f"[{date.fromordinal(self.today).isoformat()}]"
        added: dict[str, list[str]] = {}
        calls: list[dict[str, Any]] = []
        for one in self.taker.notes(turns, self.seen, self.today):
            node = one.statement.subject or USER_NODE
            if one.statement.op in ("forget", "retract") and (stated := self.about(one.statement)):
                calls += [
                    {"command": "str_replace", "path": _path(node), "old_str": old, "new_str": ""} for old in stated
                ]
            else:
                added.setdefault(node, []).append(f"{day} {one.text}")
        for node, lines in added.items():
            if node in self.graph:
                text, at = "\n".join(lines), {"insert_line": 0}
                calls.append({"command": "insert", "path": _path(node), "insert_text": text, **at})
            else:
                calls.append({"command": "create", "path": _path(node), "file_text": "\n".join([*lines, ""])})
        return tuple(ToolCall(FILES, one) for one in calls)

    def look_up(self, asked: str) -> tuple[ToolCall, ...]:
        """View the files of the user and of what the question names, then of what those lead to."""
        read = read_turn(self.taker.language, asked, self.today)
        question = next(one for one in read if isinstance(one, WorldQuestion))
        heard = dated_statements(self.taker.language, self.seen, self.today, people_in(question))
        wanted = [subject for _, subject in keys_of(question, learn(heard))]
        return self.task.view(self._alike([USER_NODE, *wanted])) if self.task.rounds < 3 else ()

    def _alike(self, names: Iterable[str]) -> list[str]:
        """Return the listed files whose names contain one of these names."""
        files = [_file(name or USER_NODE) for name in names]
        return [one for one in self.task.listed if any(file in one for file in files)]


def _file(subject: str) -> str:
    return subject.replace(" ", "_")


def _name(file: str) -> str:
    return file.replace("_", " ") if file != USER_NODE else file


def _path(subject: str) -> str:
    return f"{ROOT}/{_file(subject)}.md"
