"""The claims about speed: work of ours beside the work of a peer, measured in turns in one process.

A claim is a ratio of CPU times and so means the same on any machine. `benchmarks.ledger` measures and checks them.
"""

from __future__ import annotations

import asyncio
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import orjson
import zstandard

from benchmarks import cones, counting, generation, session, simulation, vestige
from eirkit.eir.bisimulation import count_process
from eirkit.eir.windows import count_visible, window_at
from eirkit.event_files import EVENTS
from eirkit.runs.store import RUNS
from eirkit.runs.suite import read_suite
from eirkit.runs.sweep import start_sweep
from eirkit.show.folders import page_for
from eirkit.tasks.cones import measure_cones
from eirkit.tasks.generation import BATCH, generate, generate_batch, graph_of, prepare
from eirkit.tasks.policy import find_policy
from eirkit.tasks.simulation.batch import Batch, count_misses
from eirkit.tasks.simulation.plain import structure_of
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.words.world import PRESETS, generate_worlds
from eirkit.tasks.workload import as_tuples, draw_references

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
MOST_REPEATS = 4  # of the peer's work in a round


def ratio(pair: Pair, rounds: int, good: float = 0.0) -> float:
    """Return the CPU time of our work in units of the peer's, taken in turns.

    It is the best of ours over the best of the peer's, or the median of the rounds if that is lower: other work can hit
    all rounds of one side, or most rounds of both, and hardly does both at once.

    Args:
        good: stop after three rounds or more once both are no larger.
    """
    seconds = _children_seconds if pair.in_children else process_time

    def spent(work: Work) -> float:
        start = seconds()
        work()
        return seconds() - start

    ours, peers = [spent(pair.ours)], [spent(pair.peer)]
    repeats = max(1, min(MOST_REPEATS, int(ours[0] / peers[0])))  # a short one is hit more easily
    while True:
        best = min(ours) / (min(peers) * pair.scale)
        usual = median(one / (peer * pair.scale) for one, peer in zip(ours, peers, strict=True))
        if len(ours) >= rounds or (len(ours) >= FEWEST and max(best, usual) <= good):
            return min(best, usual)
        ours.append(spent(pair.ours))
        peers.append(min(spent(pair.peer) for _ in range(repeats)))


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
    yield Pair(lambda: count_visible(window, 2, 2, 10**4, "numpy"), lambda: np.sort(numbers))


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
        vestige.analyse([path])  # loads the vocabulary of tokens
        yield Pair(lambda: vestige.analyse([path]), lambda: [orjson.loads(line) for line in lines])


@contextmanager
def _recorded() -> Iterator[Pair]:
    runs, gold = vestige.find_recorded("mini-swe-agent-v1"), vestige.find_recorded("swebench-gold")
    if runs is None:
        raise LookupError("the recorded runs are absent; EIRKIT_DATA may name their folder")
    contents = [path.read_bytes() for path in sorted(runs.rglob("*.json"))]
    vestige.analyse([runs], gold)
    yield Pair(lambda: vestige.analyse([runs], gold), lambda: [orjson.loads(content) for content in contents])


@contextmanager
def _report() -> Iterator[Pair]:
    with TemporaryDirectory() as place:
        folder = Path(place) / "out"
        start_sweep(read_suite({**session.GRID, "seeds": "0:30"}), folder)
        page_for(folder)
        events = zstandard.ZstdDecompressor().stream_reader((folder / EVENTS).read_bytes(), read_across_frames=True)
        records = [(folder / RUNS).read_bytes(), events.read()]

        def parse() -> None:
            for content in records:
                for line in content.splitlines():
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
    Claim("worlds", "small worlds of the words workload", "as many draws, standard library", _worlds, 6),
    Claim("simulation", "LRU over the paper's streams", "collections.OrderedDict", _simulation, 0.1),
    Claim("cones", "recovery cones of many graphs", "one plain pass per graph", _cones, 0.1),
    Claim("counter", "one exact Top-k count, m = 16, cut 40", "numpy.sort of 10⁶ integers", _counter),
    Claim("partition", "classes by partition refinement", "the paper's Algorithm 1", _partition, 0.02),
    Claim("reader", "analysis of a generated Claude Code session", ORJSON, _reader),
    Claim("recorded", "analysis of recorded mini-SWE-agent runs", ORJSON, _recorded, 6),
    Claim("report", "the report of a sweep of 180 runs", "orjson.loads of its records", _report),
    Claim("import", "import eirkit", CLICK, _commands("-c", "import eirkit")),
    Claim("help", "eirkit --help", CLICK, _commands("-m", "eirkit", "--help"), 2),
    Claim("compare", "eirkit compare of two small sweeps", CLICK, _commands("-m", "eirkit", "compare", "{a}", "{b}")),
)
