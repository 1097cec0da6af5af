"""Measures what the harness adds to a memory system: the same writes and searches with it and without it.

With the harness: adapter, limits, timeouts and, for systems in a process of their own, the pipe. Without: the library
alone, used as its documentation says. A step is one write and one search. The two ways alternate, at every step or,
where a step takes less than a millisecond, every few steps, so that both run with warm caches; the order changes with
every round. Two times are compared, each against the same target:

CPU: of every process involved; the best of some rounds counts for each step.
wall: the time that the caller waits; the median ratio over pairs of neighboring turns, with its interval. Without the
harness it is measured in the system's own process, so that no pipe is counted.

Calls that the harness makes for its diagnosis (reading a record by key after a search that did not return it, listing
records after a write) are outside the latencies that it reports, and are left out here; the last lines give their cost.

python -m benchmarks.memory_overhead
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime, perf_counter, process_time
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.agents.driver import consult
from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.child_process import ProcessMemory
from eirkit.lacuna.memories.embeddings import Embedding, find_embedding
from eirkit.lacuna.memories.endpoint import ModelEndpoint
from eirkit.lacuna.memories.environments import python_of
from eirkit.lacuna.memories.factory import make_memory
from eirkit.lacuna.memories.in_process import find_words
from eirkit.lacuna.memories.memory import SEARCH_LIMIT, MemoryCall, MemorySystem
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.scripted.extractor import make_scripted

TARGET = 0.05  # of the time that a system takes without the harness
RECORDS, ROUNDS = 64, 24  # a step writes a record and searches for an earlier one
FALLS_SHORT = "FALLS SHORT"
SLOW_RECORDS, SLOW_ROUNDS = 16, 9  # for systems that take a tenth of a second

TEXTS = [f"A_{t:02} = {(t * 7919) % 10_000:04}" for t in range(1, RECORDS + 1)]
WIDTHS = (13, 9, 8, 15, 8, 18)
QUERIES = [f"A_{1 + (t * 31) % t:02}" for t in range(1, RECORDS + 1)]


class Way(Protocol):
    """One way of doing the same work."""

    def cpu_seconds(self) -> float:
        """Return what it has used so far, in this process and in others."""
        ...

    async def begin(self) -> None: ...

    async def step(self, t: int) -> float:
        """Take a step and return its wall seconds."""
        ...


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

    async def step(self, t: int) -> float:
        start = perf_counter()
        await consult(self.memory, t, MemoryCall("write", TEXTS[t], (t + 1,)), {}, perf_counter)
        await consult(self.memory, t, MemoryCall("search", QUERIES[t]), {}, perf_counter)
        return perf_counter() - start


class Bm25Alone(Here):
    """The bm25s library."""

    async def begin(self) -> None:
        self.tokens: list[list[str]] = []

    async def step(self, t: int) -> float:
        from bm25s import BM25

        start = perf_counter()
        self.tokens.append(find_words(TEXTS[t]))
        index = BM25(backend="numpy")
        index.index(self.tokens, show_progress=False)
        scores = index.get_scores(find_words(QUERIES[t]))
        [TEXTS[i] for i in np.argsort(-scores)[:SEARCH_LIMIT]]
        return perf_counter() - start


class VectorsAlone(Here):
    """An embedding and a product of matrices."""

    def __init__(self, embed: Embedding) -> None:
        self.embed = embed

    async def begin(self) -> None:
        self.rows: list[Any] = []

    async def step(self, t: int) -> float:
        start = perf_counter()
        self.rows.append(self.embed([TEXTS[t]])[0])
        likeness = np.stack(self.rows) @ self.embed([QUERIES[t]])[0]
        [TEXTS[i] for i in np.argsort(-likeness)[:SEARCH_LIMIT]]
        return perf_counter() - start


# Runs in the environment of Mem0, which holds nothing else: a step or `begin` in, the seconds it took out.
MEM0 = """
import json, os, sys, tempfile
from time import perf_counter
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
    start = perf_counter()
    if line.strip() == "begin":
        memory.delete_all(user_id="benchmark")
    else:
        text, query = texts[int(line)], queries[int(line)]
        memory.add(text, user_id="benchmark", metadata={"label": text.split()[0]}, infer=False)
        memory.search(query, filters={"user_id": "benchmark"}, top_k=limit)
    print(perf_counter() - start, flush=True)
"""


class Mem0Alone:
    """Mem0 in its own environment, told by a pipe when to take a step."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def cpu_seconds(self) -> float:
        return process_time() + cpu_of(self.process.pid)

    async def begin(self) -> None:
        await self._tell("begin")

    async def step(self, t: int) -> float:
        return await self._tell(str(t))

    async def _tell(self, line: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n".encode())
        if not (said := await self.process.stdout.readline()):
            raise RuntimeError("Mem0 gave up")
        return float(said)


@dataclass(frozen=True, slots=True)
class Compared:
    """What a step takes, alone and through the harness."""

    alone: float  # CPU milliseconds
    through: float
    waited: float  # wall milliseconds alone, the median
    ratio: float  # of wall times, through over alone, the median over pairs
    bounds: tuple[float, float]  # of that median, 95%, by order statistics

    @property
    def added(self) -> float:
        return self.through / self.alone - 1

    @property
    def added_wait(self) -> float:
        return self.ratio - 1


async def compare(alone: Way, through: Way, records: int = RECORDS, rounds: int = ROUNDS, turn: int = 1) -> Compared:
    """Return the mean over steps of the best CPU time of each, and the median ratio of wall times.

    A first round does not count.

    Args:
        turn: steps that one way takes before the other does.
    """
    cpu, wall = np.empty((2, rounds + 1, records)), np.empty((2, rounds + 1, records))
    for number in range(rounds + 1):
        for way in (alone, through):
            await way.begin()
        order = [(0, alone), (1, through)][:: -1 if number % 2 else 1]
        for first in range(0, records, turn):
            for row, way in order:
                for t in range(first, first + turn):
                    start = way.cpu_seconds()
                    wall[row, number, t] = await way.step(t)
                    cpu[row, number, t] = way.cpu_seconds() - start
    return _compared(cpu[:, 1:], wall[:, 1:].reshape(2, rounds, -1, turn).mean(axis=3))


def _compared(cpu: NDArray[np.float64], wall: NDArray[np.float64]) -> Compared:
    """Return the comparison of CPU times by way, round and step, and of wall times by way, round and turn."""
    best = 1000 * cpu.min(axis=1).mean(axis=1)
    ratios = np.sort((wall[1] / wall[0]).ravel())
    # As many of n pairs lie below the median as coins fall heads: n/2, give or take twice its standard deviation.
    apart = math.sqrt(len(ratios))
    low, high = (ratios[round((len(ratios) - 1 + side * apart) / 2)] for side in (-2, 2))
    waited = 1000 * float(np.median(wall[0]))
    return Compared(float(best[0]), float(best[1]), waited, float(np.median(ratios)), (float(low), float(high)))


async def built_in(name: str, alone: Way, records: int = RECORDS, rounds: int = ROUNDS, turn: int = 1) -> Compared:
    """Return the comparison of a system in this process."""
    memory = make_memory(MemoryPlan(name, {}))
    await memory.setup()
    try:
        return await compare(alone, Through(memory), records, rounds, turn)
    finally:
        await memory.teardown()


async def _asking(memory: MemorySystem) -> float:
    """Return the wall milliseconds that it takes to ask what is held, with all records of the benchmark in it."""
    took = []
    for _ in range(SLOW_ROUNDS):
        start = perf_counter()
        await memory.usage()
        took.append(perf_counter() - start)
    return 1000 * float(np.median(took))


async def mem0(python: Path) -> tuple[Compared, float]:
    """Return the comparison of Mem0, with one endpoint for both sides, and what asking it takes."""
    endpoint = ModelEndpoint(make_scripted("extractor", ModelOptions()), find_embedding("minilm"))
    url = await endpoint.start()
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    given = json.dumps([url, TEXTS, QUERIES, SEARCH_LIMIT])
    direct = await asyncio.create_subprocess_exec(
        str(python), "-c", MEM0, given, stdin=pipe, stdout=pipe, stderr=nowhere
    )
    memory = ProcessMemory("mem0", {"endpoint": url}, python)
    try:
        await memory.setup()
        found = await compare(Mem0Alone(direct), Through(memory, _pid(memory)), SLOW_RECORDS, SLOW_ROUNDS)
        return found, await _asking(memory)
    finally:
        await memory.teardown()
        direct.kill()
        await direct.wait()
        await endpoint.stop()


def _pid(memory: ProcessMemory) -> int:
    assert memory._process is not None
    keeper = memory._process.pid
    (host,) = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return int(host)


async def bridge() -> Compared:
    """Return what the bridge itself takes: a key–value memory here and across it."""
    there = ProcessMemory("key-value", {}, Path(sys.executable))
    await there.setup()
    try:
        return await compare(Through(make_memory(MemoryPlan("key-value", {}))), Through(there, _pid(there)))
    finally:
        await there.teardown()


async def measure() -> int:
    """Print the table; 1 if an adapter adds more than it may."""
    rows, asking = {"bm25 (library bm25s)": await built_in("bm25", Bm25Alone())}, None
    if minilm.reason_without_minilm() is None:
        alone = VectorsAlone(find_embedding("minilm"))
        rows["vector-minilm"] = await built_in("vector-minilm", alone, SLOW_RECORDS, SLOW_ROUNDS)
        if (python := python_of("mem0")) is not None:
            rows["mem0, across the bridge"], asking = await mem0(python)
    _show(rows)
    if "mem0, across the bridge" not in rows:
        print("mem0 was left out: eirkit doctor --install mem0, and pip install 'eirkit[embedding]'")
    trigrams = await built_in("vector", VectorsAlone(find_embedding("ngrams")))
    print("Systems that take no time of their own, for which a share says nothing:")
    print(f"vector over trigrams: {1000 * (trigrams.through - trigrams.alone):+.0f} µs a step of a write and a search")
    crossed = await bridge()
    print(f"the bridge: {1000 * (crossed.through - crossed.alone):+.0f} µs a step, which is three crossings")
    if asking is not None:
        print(f"Diagnosis, outside all latencies: asking Mem0 what it holds takes {asking:.1f} ms after a write")
    return int(any(_verdict(found) == FALLS_SHORT for found in rows.values()))


def _verdict(found: Compared) -> str:
    """Return whether both times are within the target; a wait that a busy machine blurs is not judged."""
    if found.added > TARGET or found.bounds[0] - 1 > TARGET:
        return FALLS_SHORT
    return "ok" if found.added_wait <= TARGET else "ok for CPU, too busy a machine to tell for wall"


def _show(rows: Mapping[str, Compared]) -> None:
    heads = ("CPU ms alone", "through", "added", "wall ms alone", "added", "95% interval")
    print(f"{'a step':<25}" + "".join(f"{head:>{width}}" for head, width in zip(heads, WIDTHS, strict=True)))
    for name, found in rows.items():
        low, high = (value - 1 for value in found.bounds)
        figures = (
            f"{found.alone:.3f}",
            f"{found.through:.3f}",
            f"{found.added:+.1%}",
            f"{found.waited:.3f}",
            f"{found.added_wait:+.1%}",
            f"{low:+.1%} … {high:+.1%}",
        )
        line = "".join(f"{figure:>{width}}" for figure, width in zip(figures, WIDTHS, strict=True))
        print(f"{name:<25}{line}  target {TARGET:.0%}: {_verdict(found)}")


def main() -> int:
    return asyncio.run(measure())


if __name__ == "__main__":
    sys.exit(main())
