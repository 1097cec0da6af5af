"""Runs a memory system in a separate process that sees no keys, behind the same interface.

Vendors' packages read any variable that they know, so they might use or send a key of the user without notice. Proxy
settings are withheld too: a store is on this machine or at the address in its settings.

The child connects to a port on loopback and authenticates with a token. Each call is one line of JSON in each
direction, in order. If the child dies, the current call and all later ones raise StoreError.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from eirkit.agents.memory import Item, MemorySystem, MemoryUsage
from eirkit.errors import StoreError

_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "EIRKIT_HOME"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)
_LOCALE = "LC_"
_DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}  # some systems find proxies outside the environment


def inherited_variables(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that a store's process may see.

    Args:
        more: variables that the system declares, such as the password of its server.
    """
    wanted = {*_KEPT, *more}
    kept = {name: value for name, value in environment.items() if name in wanted or name.startswith(_LOCALE)}
    return {**kept, **_DIRECT}


ADDRESS = "EIRKIT_BRIDGE"  # environment variable with the port, the token and the settings of the child
LONGEST_LINE = 1 << 26  # bytes
START_SECONDS = 120.0  # importing a vendor's packages can take half a minute on a busy machine
_SOURCE = Path(__file__).parents[3]  # added to the path of a Python that does not have eirkit installed


class ProcessMemory(MemorySystem):
    """The memory system `name`, run by another Python.

    Args:
        variables: further environment variables that its process may see.
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
            start_new_session=True,  # a process group, so that its own children end with it
        )
        self._listening = asyncio.create_task(self._listen(self._child))
        await asyncio.wait(
            {calling, self._listening}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )  # reads until the child exits
        if not calling.done():
            raise StoreError(
                f"the process of memory {self.name!r} did not start ({self._last_word()}); run eirkit doctor"
            )
        self._reader, self._writer = calling.result()

    def _environment(self, address: str) -> dict[str, str]:
        """Return the child's environment; settings are passed here because command lines are visible to all users."""
        own = {ADDRESS: f"{address} {json.dumps(dict(self.settings))}", "PYTHONPATH": str(_SOURCE)}
        return {**inherited_variables(os.environ, self.variables), **own}

    async def _listen(self, child: asyncio.subprocess.Process) -> None:
        """Read the child's error output, so that it never blocks, and keep the last lines."""
        while child.stderr is not None and (part := await child.stderr.read(1 << 16)):
            self._said.extend(part[-4_000:].decode("utf-8", "replace").splitlines())

    def _last_word(self) -> str:
        return next((line.strip()[:300] for line in reversed(self._said) if line.strip()), "no output")

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        if self._writer is None or self._reader is None:
            raise StoreError(f"the process of memory {self.name!r} is not running; call setup first")
        try:
            self._writer.write(json.dumps([verb, *arguments]).encode() + b"\n")
            await self._writer.drain()
            line = await self._reader.readline()
        except (OSError, ValueError) as error:  # ValueError: a line longer than the limit
            raise StoreError(f"the process of memory {self.name!r} is not reachable ({error}); see its log") from error
        if not line.endswith(b"\n"):
            raise StoreError(
                f"the process of memory {self.name!r} died during {verb} ({self._last_word()}); fix it and resume"
            )
        kind, answer = json.loads(line)
        if kind == "error":
            raise StoreError(f"memory {self.name!r}: {answer} (raised by {verb}); fix it and resume")
        return answer


async def _end(child: asyncio.subprocess.Process) -> None:
    """End the child and its children."""
    for how, seconds in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, how)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await child.wait()
                break
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)  # processes of its group that outlived it
