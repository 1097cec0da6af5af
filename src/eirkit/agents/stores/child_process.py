"""A memory system in a process of its own, behind the same interface: for packages that cannot live in this one.

The child calls back to a port on loopback and shows a token that only it was given. Each verb is one line of JSON there
and one back, in order. Where the child is gone, the verb under way and all after it raise StoreError.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eirkit.agents.memory import Item, MemorySystem, MemoryUsage
from eirkit.agents.stores.child_environment import inherited_variables
from eirkit.errors import StoreError

ADDRESS = "EIRKIT_BRIDGE"  # the variable that tells the child where to call, what to show, and its settings
LONGEST_LINE = 1 << 26  # bytes
START_SECONDS = 120.0  # importing a vendor's packages can take half a minute on a busy machine
_SOURCE = Path(__file__).parents[3]  # what holds the package eirkit, for a Python that does not have it installed


class ProcessMemory(MemorySystem):
    """The memory system `name`, run by another Python.

    Args:
        variables: of the environment, which its process needs beside what every process gets.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], python: Path, variables: Sequence[str] = ()) -> None:
        self.name, self.settings, self.python, self.variables = name, settings, python, variables
        self._child: asyncio.subprocess.Process | None = None
        self._server: asyncio.Server | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._said: deque[str] = deque(maxlen=20)  # the last lines of its error output
        self._listening: asyncio.Task[None] | None = None

    async def setup(self) -> None:
        try:
            await self._start()
            await self._ask("setup")
        except BaseException:
            await self.teardown()
            raise

    async def reset(self, scope: str) -> None:
        await self._ask("reset", scope)

    async def write(self, item: Item) -> None:
        await self._ask("write", item.label, item.text)

    async def flush(self) -> None:
        await self._ask("flush")

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [str(text) for text in await self._ask("search", query, limit)]

    async def read(self, label: str) -> str | None:
        found = await self._ask("read", label)
        return None if found is None else str(found)

    async def forget(self, label: str) -> None:
        await self._ask("forget", label)

    async def usage(self) -> MemoryUsage | None:
        used = await self._ask("usage")
        return None if used is None else MemoryUsage(**used)

    async def teardown(self) -> None:
        child, self._child = self._child, None
        if child is not None and child.returncode is None:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(10):
                    await self._ask("teardown")
        if self._writer is not None:
            self._writer.close()
        if self._server is not None:
            self._server.close()
        self._reader = self._writer = self._server = None
        if child is not None:
            await _end(child)
        if self._listening is not None:
            self._listening.cancel()

    async def _start(self) -> None:
        token, calling = secrets.token_hex(16), asyncio.get_running_loop().create_future()

        async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            shown = (await reader.readline()).decode("utf-8", "replace").strip()
            if calling.done() or not secrets.compare_digest(shown, token):
                writer.close()
            else:
                calling.set_result((reader, writer))

        self._server = await asyncio.start_server(welcome, "127.0.0.1", 0, limit=LONGEST_LINE)
        port = self._server.sockets[0].getsockname()[1]
        self._child = await asyncio.create_subprocess_exec(
            str(self.python),
            "-m",
            "eirkit.agents.stores.host",
            self.name,
            env=self._environment(f"{port} {token}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that what the child starts ends with it
        )
        self._listening = asyncio.create_task(self._listen(self._child))
        await asyncio.wait(
            {calling, self._listening}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )  # it stops talking when it ends
        if not calling.done():
            raise StoreError(f"the process of memory {self.name!r} did not start ({self._last_word()}); see doctor")
        self._reader, self._writer = calling.result()

    def _environment(self, address: str) -> dict[str, str]:
        """Return the child's variables; settings go there, since everybody on a machine may read its command lines."""
        own = {ADDRESS: f"{address} {json.dumps(dict(self.settings))}", "PYTHONPATH": str(_SOURCE)}
        return {**inherited_variables(os.environ, self.variables), **own}

    async def _listen(self, child: asyncio.subprocess.Process) -> None:
        """Take in what the child says, so that it never waits for a reader, and keep the end of it."""
        while child.stderr is not None and (part := await child.stderr.read(1 << 16)):
            self._said.extend(part[-4_000:].decode("utf-8", "replace").splitlines())

    def _last_word(self) -> str:
        return next((line.strip()[:300] for line in reversed(self._said) if line.strip()), "it said nothing")

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        if self._writer is None or self._reader is None:
            raise StoreError(f"the process of memory {self.name!r} is not running; set it up first")
        try:
            self._writer.write(json.dumps([verb, *arguments]).encode() + b"\n")
            await self._writer.drain()
            line = await self._reader.readline()
        except (OSError, ValueError) as error:  # ValueError: a line longer than the limit
            raise StoreError(f"the process of memory {self.name!r} is gone ({error}); see its own log") from error
        if not line.endswith(b"\n"):
            raise StoreError(
                f"the process of memory {self.name!r} ended during {verb} ({self._last_word()}); resume when it is well"
            )
        kind, answer = json.loads(line)
        if kind == "error":
            raise StoreError(f"memory {self.name!r}: {answer} (raised by {verb}); put it right, then resume")
        return answer


async def _end(child: asyncio.subprocess.Process) -> None:
    """End the child and whatever it started."""
    for how, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, how)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await child.wait()
                break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)  # whoever of its group is slower than itself
