"""`agent-file` and `agent-tools`: memories that a model manages, by editing a file or by saving and searching texts.

There is no vendor's code in them. The model is asked through the endpoint; `model=run` makes it the one that answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eirkit.errors import StoreError, UnknownNameError, UsageError
from eirkit.lacuna.memories.in_process import find_labels, mentions, usage_of_texts
from eirkit.lacuna.memories.memory import (
    SEARCH_LIMIT,
    Item,
    MemorySystem,
    MemoryUsage,
    Requirements,
    memories,
)
from eirkit.lacuna.memories.temporary_directory import StoreDirectory
from eirkit.lacuna.memories.tool_agent import ToolAgent
from eirkit.lacuna.models.message import Message

MOST_CHARACTERS = 10_000  # of a file, all of which is shown
SHORT_RECORD = 16  # characters of a record such as A_0007 = 0042, with the end of its line
STORES = ("bm25", "vector", "vector-minilm", "text")  # what saved texts are searched by
EDIT = "Below is your memory, a text file, and a conversation. Keep what the user says in the file, by edit_file."
_TEXT = {"type": "string"}


def describe_tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    """Return a tool whose arguments are texts, as chat completions describe it."""
    parameters = {"type": "object", "properties": dict.fromkeys(arguments, _TEXT), "required": list(arguments)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


EDIT_TOOL = describe_tool(
    "edit_file",
    "Puts new_text in the place of old_text, which must occur once; without old_text, at the end of the file.",
    *("old_text", "new_text"),
)
NOTE_TOOLS = (
    describe_tool("save_memory", "Saves a text.", "text"),
    describe_tool("search_memory", "Returns the saved texts that fit a query best, each with its id.", "query"),
    describe_tool("delete_memory", "Deletes a saved text.", "id"),
)


class AgentManaged(MemorySystem):
    """What a model manages by tools: records and searches of other workloads become conversations."""

    requirements = Requirements(endpoint=("model",))

    async def write(self, item: Item) -> None:
        await self.observe([Message("user", item.text)], item.label, "")

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self.recall(query, "", limit)

    async def read(self, label: str) -> str | None:
        return mentions(await self.contents() or (), label)

    async def usage(self) -> MemoryUsage:
        return usage_of_texts(await self.contents() or ())


@memories.add("agent-file")
class AgentFile(AgentManaged):
    """A text file that a model edits after each session, and all of which is shown with each question.

    Args:
        endpoint: base URL of an OpenAI-compatible server for the model that edits the file.
        characters: that the file may have at most; an edit that exceeds them is refused.
    """

    def __init__(self, *, endpoint: str, characters: int = MOST_CHARACTERS) -> None:
        if not 1 <= characters <= MOST_CHARACTERS:
            raise UsageError(f"characters is {characters}; a file of 1 to {MOST_CHARACTERS} can be shown")
        self.endpoint, self.characters = endpoint, characters
        self._directory = StoreDirectory("agent-file")

    @property
    def most_records(self) -> int:
        """How many short records fit into the file."""
        return self.characters // SHORT_RECORD

    async def setup(self) -> None:
        self._directory.create()

    @property
    def _file(self) -> Path:
        return self._directory.path / "memory.md"

    async def reset(self, scope: str) -> None:
        self._keep([])

    def _lines(self) -> list[str]:
        return self._file.read_text("utf-8", "surrogatepass").splitlines()

    def _keep(self, lines: Sequence[str]) -> None:
        self._file.write_text("".join(f"{line}\n" for line in lines), "utf-8", "surrogatepass")

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        said = "\n".join(f"{one.role}: {one.content}" for one in messages)
        limit = f"The file may have at most {self.characters} characters."
        shown = "\n".join(["<file>", *self._lines(), "</file>"])
        await ToolAgent(self.endpoint, [EDIT_TOOL], self._edit).work(f"{EDIT} {limit}\n\n{shown}\n\n{said}", at)

    async def _edit(self, name: str, arguments: dict[str, Any]) -> list[str]:
        """Carry out an edit of the model; what cannot be done is its to correct."""
        old, new = str(arguments.get("old_text", "")), str(arguments.get("new_text", ""))
        if not old and not new:
            raise StoreError("there is no text; give new_text")
        text = "".join(f"{line}\n" for line in self._lines())
        if old and text.count(old) != 1:
            raise StoreError(f"old_text occurs {text.count(old)} times in the file; give a text that occurs once")
        changed = text.replace(old, new) if old else text + new
        lines = [line for line in changed.splitlines() if line.strip()]
        if (size := sum(len(line) + 1 for line in lines)) > self.characters:
            raise StoreError(f"the file would have {size} characters, of at most {self.characters}; shorten it first")
        self._keep(lines)
        return [f"The file has {size} of {self.characters} characters."]

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return [text] if (text := "\n".join(self._lines())) else []

    async def contents(self) -> Sequence[str]:
        return self._lines()

    async def forget(self, label: str) -> None:
        self._keep([line for line in self._lines() if label not in find_labels(line)])

    async def teardown(self) -> None:
        self._directory.remove()


@memories.add("agent-tools")
class AgentTools(AgentManaged):
    """Texts that a model saves, searches and deletes by tools, as it sees fit.

    Args:
        endpoint: base URL of an OpenAI-compatible server for the model that uses the tools.
        store: what searches are answered by: bm25, vector, vector-minilm or text.
    """

    recall_writes = True  # the model that looks something up has all the tools

    def __init__(self, *, endpoint: str, store: str = "bm25") -> None:
        if store not in STORES:
            raise UnknownNameError("store of agent-tools", store, STORES)
        self.endpoint, self.store = endpoint, store
        self._texts: dict[str, str] = {}  # by id
        self._saved = 0
        self._index: MemorySystem = memories.get(store)()

    async def reset(self, scope: str) -> None:
        self._texts, self._saved = {}, 0
        await self._index.reset(scope)

    def _agent(self) -> ToolAgent:
        return ToolAgent(self.endpoint, NOTE_TOOLS, self._call)

    async def _call(self, name: str, arguments: dict[str, Any]) -> list[str]:
        """Carry out a call of the model; what cannot be done is its to correct."""
        if name == "save_memory":
            return [await self._save(str(arguments.get("text", "")))]
        if name == "delete_memory":
            return [await self._delete(str(arguments.get("id", "")))]
        found = await self._index.search(str(arguments.get("query", "")), SEARCH_LIMIT)
        ids = {text: name for name, text in self._texts.items()}
        return [json.dumps([{"id": ids[text], "text": text} for text in found], ensure_ascii=False)]

    async def _save(self, text: str) -> str:
        if not text.strip():
            raise StoreError("there is no text; give one")
        self._saved += 1
        name = str(self._saved)
        self._texts[name] = text
        await self._index.write(Item(name, text))
        return f"Saved as {name}."

    async def _delete(self, name: str) -> str:
        if self._texts.pop(name, None) is None:
            raise StoreError(f"nothing is saved as {name!r}; search for its id")
        await self._index.forget(name)
        return "Deleted."

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await self._agent().keep(messages, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        """Return what the searches of the model found, a passage for each search, every text once."""
        seen: set[str] = set()
        passages = []
        for result in await self._agent().consult(question, at):
            found = [text for text in texts_of(result) if text not in seen]
            seen.update(found)
            passages.append("\n".join(found))
        return [one for one in passages if one][:limit]

    async def contents(self) -> Sequence[str]:
        return list(self._texts.values())

    async def forget(self, label: str) -> None:
        for name in [name for name, text in self._texts.items() if label in find_labels(text)]:
            await self._delete(name)

    async def teardown(self) -> None:
        self._texts = {}
        await self._index.teardown()


def texts_of(result: str) -> list[str]:
    """Return the texts in the result of a search; none of another result."""
    try:
        rows = json.loads(result)
    except ValueError:
        return []
    return [str(row["text"]) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
