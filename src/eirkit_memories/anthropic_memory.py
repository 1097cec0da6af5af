"""`anthropic-memory`: the commands of Anthropic's memory tool (package anthropic) over its files on disk.

The tool has view, create, str_replace, insert, delete and rename, and no search: as documented, a model that is given
the tool decides what to write and what to view.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.in_process import find_labels, find_words, mentions
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    STORE_ONLY,
    Item,
    MemorySystem,
    MemoryUsage,
    Profile,
    Requirements,
    check_profile,
    memories,
)
from eirkit.lacuna.memories.temporary_directory import StoreDirectory, size_of
from eirkit.lacuna.memories.tool_agent import ToolAgent
from eirkit.lacuna.models.message import Message
from eirkit.registry import load_object

ROOT = "/memories"
LOCAL = "local"
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
# What the API tells the model about the tool memory_20250818.
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "memory",
        "description": f"Files below {ROOT}: commands view, create, str_replace, insert, delete and rename.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {"enum": ["view", "create", "str_replace", "insert", "delete", "rename"], **_TEXT},
                **dict.fromkeys(
                    ("path", "file_text", "old_str", "new_str", "insert_text", "old_path", "new_path"), _TEXT
                ),
                "insert_line": _NUMBER,
                "view_range": {"type": "array", "items": _NUMBER},
            },
            "required": ["command"],
        },
    },
}
_FILE = re.compile(r"\AHere's the content of (\S+) with line numbers:\n", re.MULTILINE)
_LINE = re.compile(r"^ *\d+\t", re.MULTILINE)


@memories.add("anthropic-memory")
class AnthropicMemory(MemorySystem):
    """Anthropic's memory tool over files, used by a model or as a mere store.

    Args:
        endpoint: base URL of an OpenAI-compatible server for the model that uses the tool.
        profile: as-documented or store-only.
        tool: local, for BetaLocalFilesystemMemoryTool, or module:function or file.py:function, which is given a folder
            and returns a BetaAbstractMemoryTool.
    """

    requirements = Requirements(packages=("anthropic",), installs=(("anthropic>=2.8,<3",),), endpoint=("model",))
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "a model with the tool keeps what it finds worth keeping in files, and views them",
            "Anthropic's API, in which the tool is called: the model is asked through the endpoint",
            passages=None,
            passages_from="all that the model viewed; the tool has no search and no default, anthropic 2.10.0",
            recall_writes=True,
        ),
        STORE_ONLY: Profile(
            "each message is a file, created, viewed and deleted by its commands; the files that share most words with "
            "the question are viewed",
            "the model; the choice of files is eirkit's, because the tool has no search",
        ),
    }

    def __init__(self, *, endpoint: str, profile: str = AS_DOCUMENTED, tool: str = LOCAL) -> None:
        self.endpoint, self.tool = endpoint, tool
        self.profile = check_profile(AnthropicMemory, profile)
        self._thread = WorkerThread("anthropic-memory")
        self._warnings = VendorWarnings("anthropic")
        self._directory = StoreDirectory("anthropic-memory")
        self._tool: Any = None
        self._files: dict[str, str] = {}  # path → text, of a mere store, to choose what to view
        self._scopes = 0

    async def setup(self) -> None:
        self._directory.create()
        self._warnings.listen()

    async def reset(self, scope: str) -> None:
        self._scopes += 1
        self._files = {}
        self._tool = await self._thread.run(self._open)

    def _open(self) -> Any:
        folder = str(self._folder())
        if self.tool != LOCAL:
            return load_object(self.tool)(folder)
        from anthropic.tools import BetaLocalFilesystemMemoryTool

        return BetaLocalFilesystemMemoryTool(folder)

    def _folder(self) -> Path:
        return self._directory.path / f"scope-{self._scopes}"

    async def _command(self, command: str, **given: Any) -> str:
        return str(await self._thread.run(self._tool.call, {"command": command, **given}))

    async def _use(self, name: str, arguments: dict[str, Any]) -> list[str]:
        """Return the result of a command of the model; an error is a result too, which the model may correct."""
        try:
            return [str(await self._thread.run(self._tool.call, arguments))]
        except Exception as error:  # noqa: BLE001 - whatever the model called
            return [f"Error: {error}"]

    def _agent(self) -> ToolAgent:
        return ToolAgent(self.endpoint, [TOOL], self._use)

    async def write(self, item: Item) -> None:
        if self.profile == AS_DOCUMENTED:
            await self.observe([Message("user", item.text)], item.label, "")
            return
        path = f"{ROOT}/{item.label}.txt"
        if path in self._files:
            await self._command("delete", path=path)
        await self._command("create", path=path, file_text=item.text)
        self._files[path] = item.text

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
        else:
            await self._agent().keep(messages, at)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self.profile == AS_DOCUMENTED:
            return await self.recall(query, "", limit)
        words = set(find_words(query))
        shared = Counter({path: len(words & set(find_words(text))) for path, text in self._files.items()})
        chosen = [path for path, count in shared.most_common(limit) if count]
        return [viewed(await self._command("view", path=path)) for path in chosen]

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        read = await self._agent().consult(question, at)
        return [viewed(text) for text in read if _FILE.match(text)][:limit]

    async def read(self, label: str) -> str | None:
        return mentions(await self.contents(), label)

    async def contents(self) -> Sequence[str]:
        files = sorted(path for path in self._folder().rglob("*") if path.is_file())
        return [path.read_text().rstrip("\n") for path in files]

    async def forget(self, label: str) -> None:
        if self.profile == STORE_ONLY:
            path = f"{ROOT}/{label}.txt"
            if self._files.pop(path, None) is not None:
                await self._command("delete", path=path)
            return
        root = self._folder() / ROOT.strip("/")
        for file in [one for one in root.rglob("*") if one.is_file()]:
            for line in file.read_text().splitlines():
                if label in find_labels(line):
                    where = f"{ROOT}/{file.relative_to(root)}"
                    await self._command("str_replace", path=where, old_str=line, new_str="")

    async def usage(self) -> MemoryUsage:
        held = [text for text in await self.contents() if text.strip()]
        return MemoryUsage(len(held), size_of(self._folder()), warnings=self._warnings.heard)

    async def teardown(self) -> None:
        self._tool = None
        self._thread.stop()
        self._directory.remove()


def viewed(result: str) -> str:
    """Return the content of a file from the result of view, without its line numbers."""
    return _LINE.sub("", _FILE.sub("", result)).rstrip("\n")
