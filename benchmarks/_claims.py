"""The claims about speed: work of ours beside the work of a peer, measured in turns in one process.

A claim is a ratio of CPU times and so means the same on any machine. `benchmarks.ledger` measures and checks them.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import msgspec
import numpy as np
import orjson

from benchmarks import cones, counting, generation, session, simulation, vestige
from eirkit.eir.bisimulation import count_process
from eirkit.eir.windows import count_visible, window_at
from eirkit.lacuna.conversation.world import PRESETS, generate_worlds
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.tasks.cones import measure_cones
from eirkit.lacuna.tasks.generation import BATCH, generate, generate_batch, graph_of, prepare
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.simulation.batch import Batch, count_misses
from eirkit.lacuna.tasks.simulation.plain import structure_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import as_tuples, draw_references
from eirkit.records.database import SweepDatabase
from eirkit.report.folders import page_for

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pieces of work; `scale` is how many times more the peer's would be if it did as much as ours."""

    ours: Work
    peer: Work
    scale: float = 1.0
    in_children: bool = False  # the work is done by processes that it starts


@dataclass(frozen=True, slots=True)
class Claim:
    """A ratio that must not grow."""

    name: str
    ours: str
    peer: str
    pair: Callable[[], Iterator[Pair]]  # a context, made by `contextmanager`
    target: float | None = None  # what it should be at most


FEWEST = 3  # rounds
NEAR = 1.1  # times the least: another measurement within it, and the least is no stroke of luck
SHORT_SECONDS = 0.1  # a shorter work is repeated in its turn, since more of it is spent in other work's caches
MOST_REPEATS = 8
LONG_SECONDS = 4.0  # of CPU time in all: no side is given more, once it has been measured twice


@dataclass(slots=True)
class Samples:
    """What both sides took, in seconds of CPU time; `scale` as in Pair."""

    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    scale: float = 1.0

    @property
    def ratio(self) -> float:
        """The least of ours in units of the least of the peer's.

        Other work on the machine only ever adds to a measurement, so each side's least tends to what it takes alone. A
        mean or a median keeps what was added, and adds more to the side that needs the caches more.
        """
        return min(self.ours) / (min(self.peer) * self.scale)

    @property
    def is_settled(self) -> bool:
        """Whether the least of the peer's was met twice: one that is too high would flatter us."""
        return _is_met_twice(self.peer)


def sample(pair: Pair, rounds: int, good: float = 0.0) -> Samples:
    """Measure both sides in turns.

    Args:
        good: stop as soon as the ratio is settled and no larger, after three rounds or more.
    """
    found = Samples(scale=pair.scale)
    seconds = _children_seconds if pair.in_children else process_time
    for number in range(1, rounds + 1):
        for work, taken in ((pair.ours, found.ours), (pair.peer, found.peer)):
            _take_turn(work, taken, seconds)
        if number >= FEWEST and found.is_settled and found.ratio <= good:
            break
    return found


def _take_turn(work: Work, taken: list[float], seconds: Callable[[], float]) -> None:
    if len(taken) > 1 and sum(taken) > LONG_SECONDS and _is_met_twice(taken):
        return
    for _ in range(min(MOST_REPEATS, 1 + int(SHORT_SECONDS / max(taken[-1], 1e-4))) if taken else 1):
        gc.collect()  # what earlier work has left is not ours to clear away
        start = seconds()
        work()
        taken.append(seconds() - start)


def _is_met_twice(taken: list[float]) -> bool:
    least = sorted(taken)[:2]
    return len(least) > 1 and least[1] <= NEAR * least[0]


def _children_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@contextmanager
def _sweep() -> Iterator[Pair]:
    suite = read_suite({**session.GRID, "seeds": "0:60"})
    session.sweep(read_suite({**session.GRID, "seeds": "0:2"}))  # imports
    yield Pair(lambda: session.sweep(suite), lambda: session.compute(suite))


@contextmanager
def _sessions() -> Iterator[Pair]:
    suite = read_suite({**session.GRID, "seeds": "0:30"})
    yield Pair(lambda: asyncio.run(session.converse(suite)), lambda: session.compute(suite))


@contextmanager
def _generation() -> Iterator[Pair]:
    spec = TaskSpec("stepwise-sum")
    few = 100

    def plain() -> None:
        for seed in range(few):
            generation.plain_task(spec.n, spec.m, spec.fan_in, spec.q, seed)

    yield Pair(lambda: generate_batch(spec, range(BATCH)), plain, BATCH / few)


@contextmanager
def _worlds() -> Iterator[Pair]:
    seeds = range(400)

    def plain() -> None:
        for seed in seeds:
            draw = random.Random(seed).randrange
            for bound in range(1, 201):  # about as many as a world draws
                draw(bound)

    yield Pair(lambda: list(generate_worlds(PRESETS["small"], seeds)), plain)


@contextmanager
def _simulation() -> Iterator[Pair]:
    spec, seeds = TaskSpec("stepwise-sum"), np.arange(2_000, dtype=np.uint64)
    references, structure = prepare(spec).references(spec, seeds), structure_of(spec)
    requests = Batch.of(structure, seeds, references).streams.requests[: simulation.SAMPLE].tolist()
    kind = find_policy("lru")

    def ours() -> None:
        count_misses(Batch.of(structure, seeds, references), kind, simulation.GRID)

    ours()  # compiles, if a compiler is installed
    scale = len(seeds) / simulation.SAMPLE * len(simulation.GRID)
    yield Pair(ours, lambda: simulation.ordered_dictionary(requests, "lru", 8), scale)


@contextmanager
def _cones() -> Iterator[Pair]:
    references = draw_references(np.arange(5_000), 64, 8, 2)
    graphs = [as_tuples(drawn) for drawn in references[:200]]
    yield Pair(lambda: measure_cones(references), lambda: [cones.plain_pass(graph) for graph in graphs], 25)


@contextmanager
def _counter() -> Iterator[Pair]:
    window = window_at(graph_of(generate(TaskSpec("stepwise-topk"))), 16, 40)
    numbers = np.random.default_rng(0).integers(0, 1 << 62, 1_000_000)
    count_visible(window, 2, 2, 10**4, "numpy")
    # The stable sort is the same everywhere; the default one is many times faster where there is AVX-512.
    yield Pair(lambda: count_visible(window, 2, 2, 10**4, "numpy"), lambda: np.sort(numbers, kind="stable"))


@contextmanager
def _partition() -> Iterator[Pair]:
    case = counting.CASES[0]
    contract = counting.unrolled(case.process)
    yield Pair(lambda: count_process(case.process), lambda: counting.algorithm_one(contract))


@contextmanager
def _reader() -> Iterator[Pair]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_text("".join(vestige.session_lines(4_000)))
        lines = path.read_bytes().splitlines()
        vestige.analyze([path])  # loads the vocabulary of tokens
        yield Pair(lambda: vestige.analyze([path]), lambda: [orjson.loads(line) for line in lines])


@contextmanager
def _recorded() -> Iterator[Pair]:
    runs, gold = vestige.find_recorded("mini-swe-agent-v1"), vestige.find_recorded("swebench-gold")
    if runs is None:
        raise LookupError("the recorded runs are absent; EIRKIT_DATA may name their folder")
    contents = [path.read_bytes() for path in sorted(runs.rglob("*.json"))]
    vestige.analyze([runs], gold)
    yield Pair(lambda: vestige.analyze([runs], gold), lambda: [orjson.loads(content) for content in contents])


@contextmanager
def _report() -> Iterator[Pair]:
    with TemporaryDirectory() as place:
        folder = Path(place) / "out"
        start_sweep(read_suite({**session.GRID, "seeds": "0:30"}), folder)
        page_for(folder)
        with SweepDatabase(folder) as database:
            records = list(database.records())
            lines = [msgspec.json.encode(record) for record in records]
            for record in records:
                lines += database.event_lines(record.run).splitlines()

        def parse() -> None:
            for line in lines:
                orjson.loads(line)

        yield Pair(lambda: page_for(folder), parse)


def _commands(*arguments: str) -> Callable[[], Iterator[Pair]]:
    """Return a claim about starting: a command beside an interpreter that imports click."""

    @contextmanager
    def pair() -> Iterator[Pair]:
        with TemporaryDirectory() as place:
            if "{a}" in arguments:
                for name in "ab":
                    grid = {**session.GRID, "n": 8, "m": 4, "h": 2 if name == "a" else 3, "seeds": "0:4"}
                    start_sweep(read_suite(grid), Path(place) / name)
            ours = [part.format(a=f"{place}/a", b=f"{place}/b") for part in arguments]
            yield Pair(lambda: _start(*ours), lambda: _start("-c", "import click"), in_children=True)

    return pair


def _start(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)


CLICK = "python -c 'import click'"
ORJSON = "orjson.loads of the same bytes, documents kept"
CLAIMS = (
    Claim("sweep", "a sweep of reference agents: sessions, causes, records", "a plain loop over numbers", _sweep, 12),
    Claim("sessions", "the sessions of such a sweep alone", "a plain loop over numbers", _sessions),
    Claim("generation", "tasks generated in batches", "a plain loop, standard library", _generation, 1),
    Claim("worlds", "small worlds of the workload `conversation`", "as many draws, standard library", _worlds, 6),
    Claim("simulation", "LRU over the paper's streams", "collections.OrderedDict", _simulation, 0.1),
    Claim("cones", "recovery cones of many graphs", "one plain pass per graph", _cones, 0.1),
    Claim("counter", "one exact Top-k count, m = 16, cut 40", "stable numpy.sort of 10⁶ integers", _counter),
    Claim("partition", "classes by partition refinement", "the paper's Algorithm 1", _partition, 0.02),
    Claim("reader", "analysis of a generated Claude Code session", ORJSON, _reader),
    Claim("recorded", "analysis of recorded mini-SWE-agent runs", ORJSON, _recorded, 6),
    Claim("report", "the report of a sweep of 180 runs", "orjson.loads of its records", _report),
    Claim("import", "import eirkit", CLICK, _commands("-c", "import eirkit")),
    Claim("help", "eirkit --help", CLICK, _commands("-m", "eirkit", "--help"), 2),
    Claim("compare", "eirkit compare of two small sweeps", CLICK, _commands("-m", "eirkit", "compare", "{a}", "{b}")),
)
