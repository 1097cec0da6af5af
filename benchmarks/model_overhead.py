"""Measures the CPU time per step that the harness adds to a model call, against the bare SDK and Inspect.

python -m benchmarks.model_overhead
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.telemetry import events_of
from eirkit.lacuna.models.chat_completion import request_body
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import ModelOptions, Request
from eirkit.lacuna.models.reply_cache import ReplyCache
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.events import encode_events
from eirkit.records.settings import Access

CALLS, WARM_UP, ROUNDS = 300, 20, 3
TARGET_MS = 2.0  # CPU milliseconds that the harness may add to a step
REQUEST = Request((Message("system", "rules " * 100), Message("user", "record " * 50)), max_tokens=64)
SPEC = TaskSpec("store-recall", n=CALLS, m=8)

# The server runs in a process of its own, so that its time is not ours.
SERVER = """
import asyncio, json
body = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ANSWER 3 0042"}}],
    "usage": {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308}}).encode()
reply = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
async def converse(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\\r\\n")[0]))
            writer.write(reply)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


async def milliseconds(once: Callable[[], Awaitable[object]], calls: int = CALLS) -> float:
    """Return CPU time a call: the best of some rounds."""
    for _ in range(WARM_UP):
        await once()
    rounds = []
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(calls):
            await once()
        rounds.append((process_time() - start) / calls * 1000)
    return min(rounds)


async def bare(url: str) -> float:
    """Return the time of the SDK alone, used as its documentation says."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        body: dict[str, Any] = request_body("m", REQUEST, "max_tokens") | {"temperature": 0.0}
        return await milliseconds(lambda: client.chat.completions.create(**body))


async def ours(url: str, name: str, wrap: Callable[[Metered], Callable[[], Awaitable[object]]], **parts: Any) -> float:
    """Return the time of a metered model, asked as `wrap` says."""
    options = ModelOptions(base_url=url)
    model = Metered(make_model(name, options), name, options, **parts)
    try:
        return await milliseconds(wrap(model))
    finally:
        await model.close()


def plainly(model: Metered) -> Callable[[], Awaitable[object]]:
    return lambda: model.reply(REQUEST)


def never_twice(model: Metered) -> Callable[[], Awaitable[object]]:
    """Ask something new each time, so that every reply goes into the cache."""
    count = iter(range(10**9))
    return lambda: model.reply(replace(REQUEST, messages=(*REQUEST.messages, Message("user", str(next(count))))))


async def steps(url: str) -> float:
    """Return the time of a step of a whole run: session, prompt, model, parser, events and their encoding."""
    options, workload = ModelOptions(base_url=url), prepare(SPEC)
    model = Metered(make_model("openai/m", options), "openai/m", options)

    async def run() -> None:
        trace = await drive(make_session(Access(h=4), generate(SPEC), workload), model)
        encode_events(events_of(trace))

    try:
        await run()
        rounds = []
        for _ in range(ROUNDS):
            start = process_time()
            await run()
            rounds.append((process_time() - start) / SPEC.n * 1000)
        return min(rounds)
    finally:
        await model.close()


async def measure(url: str, folder: Path) -> int:
    """Print the table; 1 if the harness adds more than it may."""
    rows = {"the SDK alone": await bare(url)}
    rows["metered model"] = await ours(url, "openai/m", plainly)
    rows["… with a cache that misses"] = await ours(url, "openai/m", never_twice, cache=ReplyCache(folder / "a"))
    rows["… with a cache that hits"] = await ours(url, "openai/m", plainly, cache=ReplyCache(folder / "b"))
    rows["a step of a whole run"] = await steps(url)
    if find_spec("inspect_ai") is not None:
        rows["metered model through Inspect"] = await ours(url, "inspect/openai-api/loopback/m", plainly)
    alone = rows["the SDK alone"]
    print(f"CPU milliseconds a call, best of {ROUNDS} rounds of {CALLS}, one after the other")
    for name, value in rows.items():
        print(f"{name:<32}{value:>8.3f}{value - alone:>+9.3f}")
    added = rows["a step of a whole run"] - alone
    holds = added <= TARGET_MS
    print(f"the harness adds {added:+.3f} ms to a step, target {TARGET_MS}: {'ok' if holds else 'FALLS SHORT'}")
    return int(not holds)


def main() -> int:
    """Start the server and measure."""
    if find_spec("openai") is None:
        print("the extra `openai` is not installed: pip install 'eirkit[openai]'", file=sys.stderr)
        return 1
    os.environ.setdefault("LOOPBACK_API_KEY", "none")  # Inspect wants one
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{json.loads(server.stdout.readline())}/v1"
        with TemporaryDirectory() as folder:
            return asyncio.run(measure(url, Path(folder)))
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
