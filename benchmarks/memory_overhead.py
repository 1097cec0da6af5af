"""What an adapter adds to a memory system: the same writes and searches through the harness and without it.

Through: adapter, bounds, timeouts and, where the system has a process of its own, the bridge. Without: the library
alone, as its documentation says. What counts is the CPU time of every process that has a part in it; both ways take
turns at every single step, and the best of some rounds counts for each step, so that a busy machine does not decide. A
search that does not find what it sought makes the harness ask the store by key; that is diagnosis, and left out.

python -m benchmarks.memory_overhead
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime, perf_counter, process_time
from typing import Any, Protocol

import numpy as np

from eirkit.lacuna.consulting import consult
from eirkit.lacuna.memories.texts import words
from eirkit.lacuna.memory import SEARCH_LIMIT, MemoryCall, MemorySystem
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.models.scripted import make_scripted
from eirkit.lacuna.stores import minilm
from eirkit.lacuna.stores.bridge import Bridged
from eirkit.lacuna.stores.embeddings import Embedding, find_embedding
from eirkit.lacuna.stores.endpoint import Endpoint
from eirkit.lacuna.stores.environments import python_of
from eirkit.lacuna.stores.making import MemoryPlan, make_memory

TARGET = 0.05  # of the time that a system takes without the harness
RECORDS, ROUNDS = 64, 9  # a step writes a record and searches for an earlier one
SLOW_RECORDS, SLOW_ROUNDS = 16, 5  # for systems that take a tenth of a second

TEXTS = [f"A_{t:02} = {(t * 7919) % 10_000:04}" for t in range(1, RECORDS + 1)]
QUERIES = [f"A_{1 + (t * 31) % t:02}" for t in range(1, RECORDS + 1)]


class Way(Protocol):
    """One way of doing the same work."""

    def cpu_seconds(self) -> float:
        """Return what it has used so far, in this process and in others."""
        ...

    async def begin(self) -> None: ...

    async def step(self, t: int) -> None: ...


def cpu_of(pid: int | None) -> float:
    """Return the CPU seconds of another process; Linux numbers its clocks so."""
    return 0.0 if pid is None else clock_gettime((~pid << 3) | 2)


class Here:
    """Work in this process."""

    def cpu_seconds(self) -> float:
        return process_time()


class Through(Here):
    """By way of the harness.

    Args:
        pid: of the process in which the memory system runs, if it is not this one.
    """

    def __init__(self, memory: MemorySystem, pid: int | None = None) -> None:
        self.memory, self.pid = memory, pid

    def cpu_seconds(self) -> float:
        return process_time() + cpu_of(self.pid)

    async def begin(self) -> None:
        await self.memory.reset("benchmark")

    async def step(self, t: int) -> None:
        await consult(self.memory, t, MemoryCall("write", TEXTS[t], (t + 1,)), {}, perf_counter)
        await consult(self.memory, t, MemoryCall("search", QUERIES[t]), {}, perf_counter)


class Bm25Alone(Here):
    """The bm25s library."""

    async def begin(self) -> None:
        self.tokens: list[list[str]] = []

    async def step(self, t: int) -> None:
        from bm25s import BM25

        self.tokens.append(words(TEXTS[t]))
        index = BM25(backend="numpy")
        index.index(self.tokens, show_progress=False)
        scores = index.get_scores(words(QUERIES[t]))
        [TEXTS[i] for i in np.argsort(-scores)[:SEARCH_LIMIT]]


class VectorsAlone(Here):
    """An embedding and a product of matrices."""

    def __init__(self, embed: Embedding) -> None:
        self.embed = embed

    async def begin(self) -> None:
        self.rows: list[Any] = []

    async def step(self, t: int) -> None:
        self.rows.append(self.embed([TEXTS[t]])[0])
        likeness = np.stack(self.rows) @ self.embed([QUERIES[t]])[0]
        [TEXTS[i] for i in np.argsort(-likeness)[:SEARCH_LIMIT]]


# Runs in the environment of Mem0, which holds nothing else: a step or `begin` in, a line out once it is done.
MEM0 = """
import json, os, sys, tempfile
url, texts, queries, limit = json.loads(sys.argv[1])
folder = tempfile.mkdtemp()
os.environ.update({"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "none"})
from mem0 import Memory
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": {"model": "eirkit", "openai_base_url": url}},
    "embedder": {"provider": "openai", "config": {"model": "eirkit", "openai_base_url": url, "embedding_dims": 384}},
    "vector_store": {"provider": "qdrant", "config": {
        "collection_name": "eirkit", "path": folder + "/store", "embedding_model_dims": 384}},
    "history_db_path": folder + "/history.db"})
for line in sys.stdin:
    if line.strip() == "begin":
        memory.delete_all(user_id="benchmark")
    else:
        text, query = texts[int(line)], queries[int(line)]
        memory.add(text, user_id="benchmark", metadata={"label": text.split()[0]}, infer=False)
        memory.search(query, filters={"user_id": "benchmark"}, top_k=limit)
    print("done", flush=True)
"""


class Mem0Alone:
    """Mem0 in its own environment, told by a pipe when to take a step."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def cpu_seconds(self) -> float:
        return process_time() + cpu_of(self.process.pid)

    async def begin(self) -> None:
        await self._tell("begin")

    async def step(self, t: int) -> None:
        await self._tell(str(t))

    async def _tell(self, line: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n".encode())
        if await self.process.stdout.readline() != b"done\n":
            raise RuntimeError("Mem0 gave up")


@dataclass(frozen=True, slots=True)
class Compared:
    """CPU milliseconds of a step, alone and through the harness."""

    alone: float
    through: float

    @property
    def added(self) -> float:
        return self.through / self.alone - 1


async def compare(alone: Way, through: Way, records: int = RECORDS, rounds: int = ROUNDS) -> Compared:
    """Return the mean over steps of the best time of each, after a round that does not count."""
    best = np.full((2, records), np.inf)
    for number in range(rounds + 1):
        for way in (alone, through):
            await way.begin()
        for t in range(records):
            for row, way in enumerate((alone, through)):
                start = way.cpu_seconds()
                await way.step(t)
                took = way.cpu_seconds() - start
                best[row, t] = min(best[row, t], took) if number else np.inf
    return Compared(*(float(mean) for mean in best.mean(axis=1) * 1000))


async def built_in(name: str, alone: Way, records: int = RECORDS, rounds: int = ROUNDS) -> Compared:
    """Return the comparison of a system in this process."""
    memory = make_memory(MemoryPlan(name, {}))
    await memory.setup()
    try:
        return await compare(alone, Through(memory), records, rounds)
    finally:
        await memory.teardown()


async def mem0(python: Path) -> Compared:
    """Return the comparison of Mem0: on each side a process of its own, and one endpoint for both."""
    endpoint = Endpoint(make_scripted("extractor", ModelOptions()), find_embedding("minilm"))
    url = await endpoint.start()
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    given = json.dumps([url, TEXTS, QUERIES, SEARCH_LIMIT])
    direct = await asyncio.create_subprocess_exec(
        str(python), "-c", MEM0, given, stdin=pipe, stdout=pipe, stderr=nowhere
    )
    memory = Bridged("mem0", {"endpoint": url}, python)
    try:
        await memory.setup()
        return await compare(Mem0Alone(direct), Through(memory, _pid(memory)), SLOW_RECORDS, SLOW_ROUNDS)
    finally:
        await memory.teardown()
        direct.kill()
        await direct.wait()
        await endpoint.stop()


def _pid(memory: Bridged) -> int:
    assert memory._child is not None
    return memory._child.pid


async def bridge() -> Compared:
    """Return what the bridge itself takes: a key–value memory here and across it."""
    there = Bridged("key-value", {}, Path(sys.executable))
    await there.setup()
    try:
        return await compare(Through(make_memory(MemoryPlan("key-value", {}))), Through(there, _pid(there)))
    finally:
        await there.teardown()


async def measure() -> int:
    """Print the table; 1 if an adapter adds more than it may."""
    rows = {"bm25 (library bm25s)": await built_in("bm25", Bm25Alone())}
    if minilm.absent() is None:
        alone = VectorsAlone(find_embedding("minilm"))
        rows["vector-minilm"] = await built_in("vector-minilm", alone, SLOW_RECORDS, SLOW_ROUNDS)
        if (python := python_of("mem0")) is not None:
            rows["mem0, across the bridge"] = await mem0(python)
    print(f"{'CPU milliseconds a step':<26}{'alone':>9}{'through':>9}{'added':>8}")
    for name, found in rows.items():
        verdict = "ok" if found.added <= TARGET else "FALLS SHORT"
        print(f"{name:<26}{found.alone:>9.3f}{found.through:>9.3f}{found.added:>+8.1%}  target {TARGET:.0%}: {verdict}")
    if "mem0, across the bridge" not in rows:
        print("mem0 was left out: eirkit doctor --install mem0, and pip install 'eirkit[embedding]'")
    trigrams = await built_in("vector", VectorsAlone(find_embedding("ngrams")))
    print("Systems that take no time of their own, for which a share says nothing:")
    print(f"vector over trigrams: {1000 * (trigrams.through - trigrams.alone):+.0f} µs a step of a write and a search")
    crossed = await bridge()
    print(f"the bridge: {1000 * (crossed.through - crossed.alone):+.0f} µs a step, which is three crossings")
    return int(any(found.added > TARGET for found in rows.values()))


def main() -> int:
    return asyncio.run(measure())


if __name__ == "__main__":
    sys.exit(main())
