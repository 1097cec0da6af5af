"""How the scripted models use Anthropic's memory tool: which commands they give to keep things and to look them up.

Each label or subject has a file of its own. There is no state: each round follows from the results of those before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from eirkit.agents.model import Request, ToolCall
from eirkit.agents.models.record_tools import records_by_label
from eirkit.agents.models.word_notes import StatementReader, user_messages
from eirkit.agents.models.word_tools import USER_NODE, GraphUser, named_in
from eirkit.tasks.words.reading import hear_passages, keys_of, learn, people_in, read_turn, show_turn
from eirkit.tasks.words.world import WorldQuestion

FILES = "memory"  # the name of the tool
ROOT = "/memories"
_TODAY = re.compile(r"Today is (\d{4}-\d\d-\d\d)\.")
_QUESTION = re.compile(r"^Question: (.*)\Z", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"\bA_\d{1,6}\b")
_LISTED = re.compile(rf"\t{ROOT}/(\S+)\.md$", re.MULTILINE)
_VIEWED = re.compile(rf"^Here's the content of {ROOT}/(\S+)\.md with line numbers:\n", re.MULTILINE)
_LINE = re.compile(r"^ *\d+\t", re.MULTILINE)


class FileTask:
    """A task with the tool: what was asked, what is listed, and what was viewed so far."""

    def __init__(self, request: Request) -> None:
        said = [message.content for message in request.messages if message.role == "user"]
        self.task, results = said[0], "\n".join(said[1:])
        self.rounds = sum(message.role == "assistant" for message in request.messages)
        self.listed = list(dict.fromkeys(_LISTED.findall(results)))
        parts = _VIEWED.split(results)
        self.files = {
            name: [line for line in _LINE.sub("", text).splitlines() if line]
            for name, text in zip(parts[1::2], parts[2::2], strict=True)
        }
        asked = _QUESTION.search(self.task)
        self.question = None if asked is None else asked[1].strip()

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
        return task.view(_LABEL.findall(task.question)) if task.rounds == 1 else ()
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
    stated = _TODAY.search(request.messages[0].content)
    if stated is None:
        return None
    task = FileTask(request)
    if not task.rounds:
        return VIEW_ALL
    user = FileUser(taker, date.fromisoformat(stated[1]).toordinal(), task)
    return user.keep_files() if task.question is None else user.look_up(task.question)


class FileUser(GraphUser):
    """Keeps statements as dated lines in the file of the subject that they are about."""

    def __init__(self, taker: StatementReader, today: int, task: FileTask) -> None:
        super().__init__(taker, today, {_name(file): lines for file, lines in task.files.items()})
        self.task = task

    def keep_files(self) -> tuple[ToolCall, ...]:
        """View every file that may be about what is mentioned, then write."""
        turns = [show_turn(self.today, "user", text) for text in user_messages(self.task.task)]
        heard = [one.statement for one in hear_passages(self.taker.language, turns, self.today)]
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
            if one.statement.op == "forget" and (stated := self.about(one.statement)):
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
        heard = hear_passages(self.taker.language, self.seen, self.today, people_in(question))
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
