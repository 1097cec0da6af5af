"""Kills sweeps with SIGKILL at random moments and resumes them: nothing may be lost, nothing may be there twice.

One of them asks a server on loopback, writes down every dollar and keeps replies: what was paid for is paid for once.

python -m tests.soak [POINTS [SEED]]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from eirkit.lacuna.models.reply_cache import ReplyCache
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import MANIFEST, SUMMARY
from eirkit.records.sweeps import CONTROL
from tests.lacuna.servers import ModelServer, answers_as

EIRKIT = str(Path(sys.executable).with_name("eirkit"))
CONNECTIONS = 4  # to the server: so many replies may be paid for and lost with a kill
PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'
REPLY_USD = 0.11  # at that price, for the 110 tokens that the server counts
CAP_USD = 10_000.0  # never reached, but held
ROUNDING = 1e-6  # dollars; sums of a few thousand floats
COMMAND_EVERY = 20  # one point in so many kills the command itself; the others a copy of this process, which is quicker

SUITES: dict[str, dict[str, Any]] = {
    "scripted": {
        "model": ["reference/calculator", "reference/sloppy"],
        "workload": ["stepwise-sum", "store-recall"],
        "n": 16, "m": 8, "h": [8, 4, 2], "seeds": "0:20",
    },
    "managed": {
        "model": "reference/recoverer", "workload": "stepwise-sum", "n": 12, "m": 4, "h": 2, "seeds": "0:20",
        "grid": [{"memory": "key-value"}, {"condition": ["lru", "paging"], "b": 20}],
    },
    "overlapping": {
        "model": "tests.lacuna.faulty:Answering/calculator", "workload": "store-recall",
        "n": 16, "m": 8, "h": [4, 2], "seeds": "0:20", "model_options": {"connections": 6},
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subject:
    """A sweep that is killed, and where its money is kept."""

    name: str
    document: dict[str, Any]
    prices: Path | None = None  # None: it costs nothing

    def funds(self, cut: Path) -> SpendingLimits:
        return SpendingLimits() if self.prices is None else SpendingLimits(CAP_USD, self.prices, _cache(cut))

    def arguments(self, cut: Path) -> list[str]:
        """Return the same for the command line."""
        if self.prices is None:
            return []
        return ["--cap-usd", str(CAP_USD), "--prices", str(self.prices), "--cache", str(_cache(cut))]


def _cache(cut: Path) -> Path:
    return cut.with_suffix(".replies")


def _paid(url: str, folder: Path) -> Subject:
    prices = folder / "prices.toml"
    prices.write_text(PRICES)
    options = {"base_url": url, "connections": CONNECTIONS, "max_tokens": 20}
    tasks = {"workload": "store-recall", "n": 12, "m": 6, "h": 3, "seeds": "0:12"}
    return Subject("paid", {"model": "openai/any", **tasks, "model_options": options}, prices)


def soak(points: int, seed: int, folder: Path) -> int:
    """Kill until the number of points is reached; return it, or raise AssertionError at the first fault."""
    rng = random.Random(seed)
    with _server() as url:
        subjects = [*(Subject(name, document) for name, document in SUITES.items()), _paid(url, folder)]
        whole = {subject.name: _whole(subject, folder) for subject in subjects}
        killed = sweeps = 0
        while killed < points:
            subject = rng.choice(subjects)
            cut = folder / f"cut-{sweeps}"
            kills = _kill_until_done(subject, cut, whole[subject.name][1], rng, points - killed)
            _compare(subject, cut, whole[subject.name][0])
            if subject.prices is not None:
                _check_money(cut, kills)
            shutil.rmtree(cut)
            killed, sweeps = killed + kills, sweeps + 1
    print(f"{killed} kills in {sweeps} sweeps: nothing lost, nothing twice")
    return killed


@contextmanager
def _server() -> Iterator[str]:
    """A model behind HTTP in a process of its own, which outlives every kill."""
    command = [sys.executable, "-m", "tests.soak", "--serve"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def _serve() -> int:
    """Answer as the calculator does until whoever asked for it is gone."""
    with ModelServer(answers_as("calculator")) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    return 0


def _whole(subject: Subject, folder: Path) -> tuple[Path, float]:
    """Run a suite without interruption; return its folder and how long it took."""
    out, started = folder / f"whole-{subject.name}", time.monotonic()
    start_sweep(read_suite(subject.document), out, subject.funds(out))
    return out, time.monotonic() - started


def _kill_until_done(subject: Subject, cut: Path, seconds: float, rng: random.Random, most: int) -> int:
    """Start a sweep and kill it again and again, until it survives or was killed often enough; then let it finish."""
    killed = 0
    while killed < most:
        # Most moments fall into the sweep, some before its manifest and some after its end.
        moment = rng.uniform(0, 0.6 * seconds)
        if rng.randrange(COMMAND_EVERY):
            died = _kill_copy(subject, cut, moment)
        else:
            died = _kill_command(subject, cut, moment + 0.3)
        if not died:
            break
        killed += 1
    _go_on(subject, cut)
    return killed


def _go_on(subject: Subject, cut: Path) -> None:
    if (cut / MANIFEST).exists():
        resume_sweep(cut, funds=subject.funds(cut))
    else:
        start_sweep(read_suite(subject.document), cut, subject.funds(cut))


def _check_money(cut: Path, kills: int) -> None:
    """Assert that every kept reply was written down as paid, and that only what was in flight was paid for twice."""
    replies, cache = ReplyCache(_cache(cut)), _cache(cut)
    kept, spent = len(replies), float(read_journal(cut).spending.billed_usd)
    replies.close()
    least, most = kept * REPLY_USD, (kept + CONNECTIONS * kills) * REPLY_USD
    assert least - ROUNDING <= spent <= most + ROUNDING, f"{spent} spent on {kept} replies over {kills} kills"
    for path in cache.parent.glob(f"{cache.name}*"):
        path.unlink()


def _kill_copy(subject: Subject, cut: Path, moment: float) -> bool:
    """Go on in a copy of this process and kill it after a moment; True if it was not finished."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _go_on(subject, cut)
            code = 0
        finally:
            os._exit(code)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the sweep {subject.name} failed by itself"
    return os.WIFSIGNALED(status)


def _kill_command(subject: Subject, cut: Path, moment: float) -> bool:
    """The same with the command as people run it."""
    suite = cut.with_suffix(".json.toml")
    suite.write_text(_as_toml(subject.document))
    where = ["--resume", str(cut)] if (cut / MANIFEST).exists() else [str(suite), "--out", str(cut)]
    places = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]  # of suites' plug-ins
    process = subprocess.Popen(
        [EIRKIT, "lacuna", "run", *where, *subject.arguments(cut), "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
    time.sleep(moment)
    process.kill()
    complaint = process.communicate()[1]
    suite.unlink()
    assert process.returncode in (0, -signal.SIGKILL), complaint
    return process.returncode != 0


def _as_toml(document: dict[str, Any]) -> str:
    """Return a flat document with tables of one level as TOML; JSON spells its values in the same way."""
    tables = {key: value for key, value in document.items() if key in ("grid", "model_options")}
    plain = {"name": "run", **{key: value for key, value in document.items() if key not in tables}}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        for table in value if isinstance(value, list) else [value]:
            lines.append(f"[[{key}]]" if isinstance(value, list) else f"[{key}]")
            lines += [f"{name} = {json.dumps(inner)}" for name, inner in table.items()]
    return "\n".join(lines)


def _compare(subject: Subject, cut: Path, whole: Path) -> None:
    """Assert that a sweep that was killed left what an uninterrupted one leaves."""
    if subject.name == "scripted":
        for file in (MANIFEST, SUMMARY, CONTROL):
            assert (cut / file).read_bytes() == (whole / file).read_bytes(), f"{file} of {cut} differs"
    if subject.prices is None:
        assert _digest(cut) == _digest(whole), f"the digest of {subject.name} differs"
    other = [pair for pair in zip(_records(cut), _records(whole), strict=True) if pair[0] != pair[1]]
    assert not other, f"the records of {subject.name} differ: {other[0]}"


def _digest(folder: Path) -> str:
    with SweepDatabase(folder) as database:
        return database.digest()


def _records(folder: Path) -> list[str]:
    """Return every record but for times and payments, in an order that does not depend on who was first."""
    found = []
    with SweepDatabase(folder) as database:
        for control in (False, True):
            for run in database.records(control=control):
                record = {**msgspec.to_builtins(run), "usage": None}
                events = msgspec.to_builtins(database.events(run.run, control=control))
                found += [json.dumps(_lasting(part)) for part in (record, *events)]
    return sorted(found)


def _lasting(value: Any) -> Any:
    """Return a record without what no two sweeps share: how long things took, and what was paid for again."""
    if not isinstance(value, dict):
        return value
    passing = ("cost_usd", "from_cache")
    return {key: _lasting(item) for key, item in value.items() if not (key.endswith("_seconds") or key in passing)}


def main(arguments: list[str]) -> int:
    """Run the soak; the seed is printed so that a failure can be repeated."""
    if arguments == ["--serve"]:
        return _serve()
    points = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"{points} points, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak(points, seed, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
