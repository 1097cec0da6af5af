"""`mcp`: any MCP memory server over stdio or HTTP; its tools and their arguments are configured by settings.

The preset `server-memory` is the reference server `@modelcontextprotocol/server-memory`; other servers are described by
settings of the same names. Templates are JSON whose strings may contain {label}, {text}, {query}, {limit} and {scope}.
As documented, a model is given the server's tools; as a mere store, records are written and sought by templates.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, ClassVar

from eirkit.errors import StoreError, UnknownNameError, UsageError
from eirkit.lacuna.memories.child_process import inherited_variables
from eirkit.lacuna.memories.in_process import find_labels, mentions
from eirkit.lacuna.memories.keeper import children, kill_children
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    SEARCH_LIMIT,
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
from eirkit.lacuna.memories.tool_agent import ToolAgent, nodes_of
from eirkit.lacuna.models.message import Message
from eirkit_memories.mcp_client import McpClient

STORE = "store"  # name of the file that {store} stands for
NODE_MODULES = "{node_modules}"


@dataclass(frozen=True, slots=True)
class Server:
    """How one kind of server is started and used; a tool is a name and a template of its arguments."""

    command: tuple[str, ...] = ()  # for stdio: a new process for each scope; {store} stands for a file of its own
    url: str = ""  # for HTTP: one server for all scopes, so its templates need {scope}
    variables: Mapping[str, str] | None = None  # environment variables; {store} as above
    write: tuple[str, Mapping[str, Any]] = ("write", {"label": "{label}", "text": "{text}"})
    search: tuple[str, Mapping[str, Any]] = ("search", {"query": "{query}", "limit": "{limit}"})
    read: tuple[str, Mapping[str, Any]] | None = ("read", {"label": "{label}"})
    forget: tuple[str, Mapping[str, Any]] | None = None
    clear: tuple[str, Mapping[str, Any]] | None = None  # deletes a finished scope, for HTTP
    everything: tuple[str, Mapping[str, Any]] | None = None  # returns all records, so that the server can be counted
    by_label: bool = False  # search once for each label in a query, for servers that match names and not questions
    passages: str = ""  # the key whose texts are the passages; "" takes each text of the result


TOOLS = ("write", "search", "read", "forget", "clear", "everything")
_SPELLED = {
    "url": "an address such as http://127.0.0.1:8000/mcp",
    "variables": "a table of variables",
    "by_label": "true or false",
    "passages": "the name of a key",
}

PRESETS = {
    "server-memory": Server(
        command=("node", f"{NODE_MODULES}/@modelcontextprotocol/server-memory/dist/index.js"),
        variables={"MEMORY_FILE_PATH": "{store}"},
        write=(
            "create_entities",
            {"entities": [{"name": "{label}", "entityType": "record", "observations": ["{text}"]}]},
        ),
        search=("search_nodes", {"query": "{query}"}),
        read=("open_nodes", {"names": ["{label}"]}),
        forget=("delete_entities", {"entityNames": ["{label}"]}),
        everything=("read_graph", {}),
        by_label=True,
        passages="observations",
    ),
}


@memories.add("mcp")
class Mcp(MemorySystem):
    """A memory server that speaks MCP.

    Args:
        preset: server-memory, a package of npm, or "" to describe a server by the fields of `Server`.
        server: fields over those of the preset, such as {"command": ["my-server", "--file", "{store}"]}.
        endpoint: base URL of an OpenAI-compatible server for the model that uses the tools.
        profile: as-documented or store-only; by default the former for the preset, the latter for a described server.
    """

    requirements = Requirements(
        packages=("mcp",),
        installs=(("mcp>=2.3,<3",),),
        node=("@modelcontextprotocol/server-memory@2026.8.31",),
        endpoint=("model",),
    )
    _servers: ClassVar[set[int]] = set()  # of all memories of this process
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "a model with the server's tools keeps what it finds worth keeping, and looks it up",
            "nothing",
            passages=None,
            passages_from="all that the model looked up; server-memory 2026.8.31 returns every match",
            recall_writes=True,
        ),
        STORE_ONLY: Profile(
            "each message is a node, and the question is the search; a record written again is deleted first",
            "the model: the reference server finds only what contains the whole query, so labels are sought one by one",
            passages=None,
            passages_from="search_nodes of server-memory 2026.8.31 returns every match; a server that you describe is "
            "asked for eirkit's own number",
        ),
    }

    def __init__(
        self,
        *,
        preset: str = "server-memory",
        server: Mapping[str, Any] | None = None,
        endpoint: str = "",
        profile: str = "",
    ) -> None:
        self.preset, self.server, self.endpoint = preset, server, endpoint
        self.profile = check_profile(Mcp, str(self.profile_for({"preset": preset, "profile": profile})))
        self._described = describe(preset, server or {})
        self._directory = StoreDirectory("mcp")
        self._client: McpClient | None = None
        self._before: frozenset[int] = frozenset()  # children of this process that are not the server's
        self._own: frozenset[int] = frozenset()  # the server
        self._written: set[str] = set()
        self._scope = ""

    @classmethod
    def requirements_for(cls, settings: Mapping[str, Any]) -> Requirements:
        """Return the requirements, without Node if the settings do not start a server from npm."""
        described = describe(settings.get("preset", "server-memory"), settings.get("server") or {})
        uses_node = not described.url and any(NODE_MODULES in part for part in described.command)
        return cls.requirements if uses_node else replace(cls.requirements, node=())

    @classmethod
    def profile_for(cls, settings: Mapping[str, Any]) -> str | None:
        """Return the profile: a server that is described by how to write to it is a store, unless said otherwise."""
        return str(
            settings.get("profile") or (AS_DOCUMENTED if settings.get("preset", "server-memory") else STORE_ONLY)
        )

    @classmethod
    def passages_for(cls, settings: Mapping[str, Any]) -> int | None:
        described = not settings.get("preset", "server-memory") and cls.profile_for(settings) == STORE_ONLY
        return SEARCH_LIMIT if described else super().passages_for(settings)

    @property
    def client(self) -> McpClient:
        if self._client is None:
            raise UsageError("the MCP server is not running; call reset first")
        return self._client

    async def setup(self) -> None:
        folder = self._directory.create()
        if self._described.url:
            await self._connect(folder)

    async def reset(self, scope: str) -> None:
        await self._clear()
        self._written, self._scope = (
            set(),
            f"{scope}-{secrets.token_hex(4)}",
        )  # unique, even if another run uses the same scope
        if not self._described.url:
            await self._disconnect()
            for before in self._directory.path.glob("[!.]*"):
                shutil.rmtree(before, ignore_errors=True)
            await self._connect(Path(tempfile.mkdtemp(dir=self._directory.path)))  # a new server on a new file

    async def _clear(self) -> None:
        if self._described.url and self._described.clear is not None and self._scope and self._client is not None:
            await self._call(self._described.clear)

    async def write(self, item: Item) -> None:
        if self.profile == AS_DOCUMENTED:
            await self.observe([Message("user", item.text)], item.label, "")
            return
        if item.label in self._written and self._described.forget is not None:
            await self._call(self._described.forget, label=item.label)
        await self._call(self._described.write, label=item.label, text=item.text)
        self._written.add(item.label)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self.profile == AS_DOCUMENTED:
            return await self.recall(query, "", limit)
        asked = find_labels(query) if self._described.by_label else []
        found = [await self._call(self._described.search, query=one, limit=limit) for one in asked or [query]]
        # Interleave the results by rank, so that no label is crowded out by the similar results of another.
        merged = dict.fromkeys(text for text in chain.from_iterable(zip_longest(*found)) if text is not None)
        return list(merged)[:limit]

    async def read(self, label: str) -> str | None:
        if self.profile == AS_DOCUMENTED:
            return mentions(await self.contents() or (), label)
        if self._described.read is None:
            return None
        return "\n".join(await self._call(self._described.read, label=label)) or None

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
        else:
            await (await self._agent()).keep(messages, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        return (await (await self._agent()).consult(question, at))[:limit]

    async def _agent(self) -> ToolAgent:
        return ToolAgent(self.endpoint, await self.client.tools(), self.client.call)

    async def contents(self) -> Sequence[str] | None:
        tool = self._described.everything
        if tool is None:
            return None
        name, template = tool
        texts = await self.client.call(name, _fill(template, {"scope": self._scope}))
        return [node for text in texts for node in nodes_of(text)]

    async def forget(self, label: str) -> None:
        if self._described.forget is None:
            raise UsageError("this MCP server has no tool to remove a record; configure one as `forget`")
        about = [label]
        if self.profile == AS_DOCUMENTED:  # the model named what it kept
            about = [text.partition(" (")[0] for text in await self.contents() or () if label in find_labels(text)]
        for name in about:
            await self._call(self._described.forget, label=name)
        self._written.discard(label)

    async def usage(self) -> MemoryUsage:
        """Return what the server reports to hold; unknown without a tool for that."""
        tool = self._described.everything
        records = None if tool is None else len(await self._call(tool))
        return MemoryUsage(records=records, bytes=None if self._described.url else size_of(self._directory.path))

    async def teardown(self) -> None:
        with suppress(StoreError):  # the server may have died already
            await self._clear()
        await self._disconnect()
        self._directory.remove()
        self._scope = ""

    async def _connect(self, folder: Path) -> None:
        # The folder of the npm packages of this environment.
        places = {"store": str(folder / STORE), "node_modules": str(Path(sys.prefix) / "node_modules")}
        command = [_fill(part, places) for part in self._described.command]
        if missing := [part for part in command if places["node_modules"] in part and not Path(part).exists()]:
            name = Path(missing[0]).relative_to(places["node_modules"])
            raise StoreError(f"{name} is not installed; run eirkit doctor --install mcp, with npm on the path")
        variables = {name: _fill(value, places) for name, value in (self._described.variables or {}).items()}
        self._before, self._own = frozenset(children()), frozenset()
        self._client = McpClient(command, {**inherited_variables(os.environ), **variables}, self._described.url)
        await self._client.open()
        self._own = frozenset(children()) - self._before
        Mcp._servers |= self._own

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            Mcp._servers -= self._own
            # A server may ignore signals, fork or become a daemon; those of other memories go on.
            kill_children(spared=self._before | Mcp._servers)

    async def _call(self, tool: tuple[str, Mapping[str, Any]], **values: Any) -> list[str]:
        name, template = tool
        texts = await self.client.call(name, _fill(template, {**values, "scope": self._scope}))
        return list(_passages(texts, self._described.passages))


def describe(preset: str, over: Mapping[str, Any]) -> Server:
    """Return a preset with some fields replaced; raises UsageError if they do not describe a server."""
    if not isinstance(over, Mapping):
        raise UsageError(f'server is {over!r}, not a table; give one such as {{"url": "http://127.0.0.1:8000/mcp", …}}')
    if preset and preset not in PRESETS:
        raise UnknownNameError("MCP preset", preset, PRESETS)
    known = [one.name for one in fields(Server)]
    for name in over:
        if name not in known:
            raise UnknownNameError("field of an MCP server", name, known)
    given = {name: _field(name, value) for name, value in over.items()}
    described = replace(PRESETS[preset] if preset else Server(), **given)
    if not described.command and not described.url:
        raise UsageError('an MCP server needs a command or a url; give server={"command": [...]} or a preset')
    if described.url and not all("{scope}" in json.dumps(tool) for tool in (described.write, described.search)):
        raise UsageError(
            "an MCP server at a url is shared by all runs; put {scope} into its templates, or start it by command"
        )
    return described


def _field(name: str, value: Any) -> Any:
    """Return one field of a server from its JSON or TOML value; raises UsageError if it is invalid."""
    if name == "command":
        if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
            raise UsageError('command is not a list of strings; give one such as ["my-server", "--file", "{store}"]')
        return tuple(value)
    if name in TOOLS and value is not None:
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
        if not isinstance(pair[0], str) or not isinstance(pair[1], Mapping):
            raise UsageError(f'{name} is not a tool with arguments; give a pair such as ["{name}", {{"text": "…"}}]')
        return tuple(value)
    wanted = {"url": str, "variables": Mapping, "by_label": bool, "passages": str}.get(name)
    if wanted is not None and not isinstance(value, wanted):
        raise UsageError(f"{name} is {value!r}; give {_SPELLED[name]}")
    return value


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders filled; a string that is one placeholder keeps the value's type."""
    if isinstance(template, str):
        whole = values.get(template[1:-1]) if template[:1] == "{" and template[-1:] == "}" else None
        if whole is not None:
            return whole
        for name, value in values.items():
            template = template.replace("{" + name + "}", str(value))
        return template
    if isinstance(template, Mapping):
        return {name: _fill(value, values) for name, value in template.items()}
    return [_fill(value, values) for value in template] if isinstance(template, list | tuple) else template


def _passages(texts: Sequence[str], key: str) -> Iterator[str]:
    """Yield the passages in the result of a tool."""
    for text in texts:
        if not key:
            yield text
            continue
        try:
            left = [json.loads(text)]
        except (ValueError, RecursionError):
            continue
        while left:  # iterative, because a server may nest arbitrarily deep
            value = left.pop(0)
            if isinstance(value, dict):
                found = value.get(key)
                yield from ([str(one) for one in found] if isinstance(found, list) else [])
                left.extend(one for name, one in value.items() if name != key)
            elif isinstance(value, list):
                left.extend(value)
