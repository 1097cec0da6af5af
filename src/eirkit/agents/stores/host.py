"""The child side of `child_process`: `python -m eirkit.agents.stores.host NAME` serves one memory system.

It connects to the parent's port, sends the token, and executes calls until the connection closes. It does not listen.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from eirkit.agents.memory import Item, MemorySystem, find_memory
from eirkit.agents.stores.child_process import ADDRESS, LONGEST_LINE
from eirkit.agents.stores.memory_adapter import adapt


async def serve(memory: MemorySystem, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Execute calls until the parent disconnects."""
    while line := await reader.readline():
        verb, *arguments = json.loads(line)
        try:
            answer = ["done", await _perform(memory, verb, arguments)]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reported to the parent
            answer = ["error", f"{type(error).__name__}: {error}"[:2_000]]
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()


async def _perform(memory: Any, verb: str, arguments: list[Any]) -> Any:
    if verb == "write":
        return await memory.write(Item(*arguments))
    if verb == "search":
        return list(await memory.search(*arguments))
    if verb == "usage":
        used = await memory.usage()
        return None if used is None else asdict(used)
    if verb in ("setup", "reset", "flush", "read", "forget", "teardown"):
        return await getattr(memory, verb)(*arguments)
    raise ValueError(f"unknown method {verb!r}")


async def main(name: str) -> None:
    """Connect to the parent and serve it."""
    port, token, settings = os.environ.pop(ADDRESS).split(maxsplit=2)
    memory = adapt(find_memory(name)(**json.loads(settings)))
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=LONGEST_LINE)
    writer.write(token.encode() + b"\n")
    try:
        await serve(memory, reader, writer)
    finally:
        await memory.teardown()  # also if the parent was killed


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
