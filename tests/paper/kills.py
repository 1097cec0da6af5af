"""Kills `eirkit reproduce` with four models on loopback at random points, and compares its spending with the estimate.

python -m tests.paper.kills [KILLS] [STUDY ...]     prints what was tried and what held

Four models of known skill stand for the published ones on a server of their own, which bills what it counts. At the end
no run is lost or stored twice, no call was made twice but those that a kill met in flight, every figure is compared
and judged with its own models, and the archive is verified. The server's bill is what the estimate said before the
first call, within 20%, and lies between what the ledger has as billed and that with the most that calls in flight may
cost.

STUDY may be --all. The folder lies in memory where the system has such a place: every call waits for the disk.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, NamedTuple

from eirkit.errors import InputFileError
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.journal import read_journal
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit_paper.model_runs import NO_VALUE, UNFINISHED, UNNAMED
from eirkit_paper.published import published_models
from eirkit_paper.verdicts import AGREES, DIFFERS, TOO_WIDE
from tests.lacuna.prompt_reading import read_body
from tests.lacuna.servers import Answer, ModelServer, Received, now
from tests.processes import running

HERE = "tests.paper.kills"
SKILLS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt-5.6": ("recoverer", {}),
    "claude-opus-4-6": ("substituter", {}),
    "claude-haiku-4-5": ("guesser", {}),
    "gpt-4.1-mini": ("sloppy", {"p": 0.2}),
}
MODELS = [f"openai/{name}" for name in SKILLS]
INPUT, OUTPUT = 1.0, 4.0  # dollars a million tokens
PRICE = f"{{ input = {INPUT}, output = {OUTPUT}, as_of = 2026-01-01 }}"
CHARACTERS = 4  # a token, as the server counts
STUDIES = ("rescue", "stepwise-maximum-rescue", "recovery-probes", "recovery-probes-by-workload", "read-traces")
CLOSE = 0.2  # of the estimate
PAUSE = 1.0  # seconds at most from a point to its kill, so that kills meet every part of a run
IN_MEMORY = Path("/dev/shm")


def serve() -> int:
    """Answer as the model that is asked for would, until whoever started it is gone."""
    billed: Counter[str] = Counter()
    agents = {name: make_reference(agent, ModelOptions(extra=extra)) for name, (agent, extra) in SKILLS.items()}

    def answer(received: Received) -> Answer:
        messages = received.body["messages"]
        text = now(agents[received.body["model"]], read_body(received.body)).text
        counted = sum(len(str(one["content"])) for one in messages) // CHARACTERS
        usage = {"prompt_tokens": counted, "completion_tokens": -(-len(text) // CHARACTERS)}
        billed.update({"calls": 1, **usage})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": received.body["model"]}
        return Answer(json.dumps({**head, "choices": [choice], "usage": usage}).encode())

    with ModelServer(answer) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            print(json.dumps(billed), flush=True)
    return 0


class Bill(NamedTuple):
    """What a server counted by itself."""

    calls: int
    usd: float


@contextmanager
def serving() -> Iterator[tuple[str, Callable[[], Bill]]]:
    """Yield the address of the server, and a function that asks it for its bill."""
    with running([sys.executable, "-m", HERE, "--serve"], stdin=PIPE, stdout=PIPE, text=True) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def bill() -> Bill:
            print(file=asked, flush=True)
            found = Counter(json.loads(told.readline()))
            usd = (found["prompt_tokens"] * INPUT + found["completion_tokens"] * OUTPUT) / 1e6
            return Bill(found["calls"], usd)

        yield told.readline().strip(), bill


def printed(words: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
    """Return the document that a command prints, however long it takes."""
    with running(words, stdout=PIPE, stderr=DEVNULL, env=environment) as process:
        found: dict[str, Any] = json.loads(process.communicate()[0])
    return found


def command(url: str, folder: Path, studies: Sequence[str], *more: str) -> list[str]:
    prices = folder / "prices.toml"
    prices.write_text("[prices]\n" + "".join(f'"{model}" = {PRICE}\n' for model in MODELS), "utf-8")
    models = [word for model in MODELS for word in ("--model", model)]
    words = ["reproduce", *studies, *models, "--base-url", url, "--prices", str(prices), "--cap-usd", "1000"]
    return [sys.executable, "-m", "eirkit", *words, "--out", str(folder / "out"), "--json", *more]


def check_models(document: dict[str, Any]) -> Counter[str]:
    """Check that every row of models is judged against the figure of the same models; return how many of each kind."""
    found: Counter[str] = Counter()
    rows = [row for study in document["studies"] for row in study["rows"] if row["figure"] and row["ours_by"]]
    for row in rows:
        if row["why"] == UNNAMED:
            found["of models that the paper does not name"] += 1
            continue
        names = [published_models().find(model) for model in row["ours_by"].split(", ")]
        assert ", ".join(map(str, names)) == row["published_by"], row
        if row["ours"] is None:
            assert row["why"] == NO_VALUE, row
            found["without a value in these runs"] += 1
            continue
        assert row["verdict"] in (AGREES, DIFFERS, TOO_WIDE), row
        found["pooled" if len(names) > 1 else "of one model"] += 1
    return found


def main(kills: int = 20, studies: Sequence[str] = STUDIES, seed: int = 0) -> int:
    environment = {**os.environ, "OPENAI_API_KEY": "loopback"}
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="eirkit-kills-", dir=place) as name, serving() as (url, bill):
        folder, chosen = Path(name), list(studies)
        estimate = printed(command(url, folder, chosen, "--dry-run"), environment)
        print(f"estimate: {estimate['runs']} runs, {estimate['calls']} calls, ${estimate['cost_usd']:.4f}", flush=True)
        assert not bill().calls
        kill(kills, command(url, folder, chosen), folder, estimate["runs"], random.Random(seed), environment)
        found = printed(command(url, folder, chosen), environment)
        check_spending(folder, estimate, bill(), kills)
        judged = ", ".join(f"{number} {kind}" for kind, number in check_models(found).items())
        print(f"rows, each with its own models: {judged}", flush=True)
        words = [sys.executable, "-m", "eirkit", "reproduce", "--verify", str(folder / "out"), "--json"]
        checked = printed(words, environment)
        print(f"verified: {checked['runs']} runs, {checked['replayed']} played again, {checked['rows']} figures")
        assert not checked["problems"], checked["problems"][:3]
    print("held")
    return 0


def kill(
    times: int, words: Sequence[str], folder: Path, runs: int, rng: random.Random, environment: dict[str, str]
) -> None:
    """Start a command and kill it, so many times, each when a random number of its runs is stored.

    All points come before the last run, of which the number is known, so the command cannot have ended.
    """
    place = folder / "out" / "runs"
    for number, point in enumerate(sorted(rng.randrange(runs) for _ in range(times))):
        with running(words, stdout=DEVNULL, stderr=DEVNULL, env=environment) as process:
            while process.poll() is None and stored_runs(place) < point:
                time.sleep(0.02)
            time.sleep(rng.random() * PAUSE)  # two points may be the same
            assert process.poll() is None, "it ended before it was killed"
            process.send_signal(signal.SIGKILL)
            process.wait()
        print(f"kill {number + 1}: {stored_runs(place)} of {runs} runs", flush=True)


def stored_runs(folder: Path) -> int:
    """Return how many runs a folder has so far."""
    if not (folder / DATABASE).exists():
        return 0
    try:
        with SweepDatabase(folder) as database:
            return database.last()
    except InputFileError:
        return 0  # its tables are not written yet


def check_spending(folder: Path, estimate: dict[str, Any], bill: Bill, kills: int) -> None:
    """Check that every run is there once, what was asked for, and what was spent."""
    with SweepDatabase(folder / "out" / "runs") as database:
        records = list(database.records())
    stored = Counter(record.run for record in records)
    assert len(stored) == estimate["runs"], f"{len(stored)} runs of {estimate['runs']}"
    assert max(stored.values()) == 1, "a run is stored twice"
    needed = sum(record.usage.calls for record in records)
    print(f"asked: {bill.calls} calls by the server's own count, {needed} of them needed", flush=True)
    journal = read_journal(folder / "out" / "runs")
    assert journal is not None
    ended = sum(attempt.agent.calls for attempt in journal.attempts.values())
    in_flight = journal.calls - ended
    print(f"ledger: {journal.calls} calls, {in_flight} of them in flight at a kill", flush=True)
    assert needed <= ended <= needed + kills, "a finished call was made twice"  # one may end at the moment of a kill
    assert ended <= bill.calls <= ended + in_flight, "calls were made that are not in the ledger"
    least, most, ratio = journal.spending.billed_usd, journal.spending.total_usd, bill.usd / estimate["cost_usd"]
    print(
        f"billed: ${bill.usd:.4f}, {ratio:.3f} of the estimate; by the ledger ${least:.4f} to ${most:.4f}", flush=True
    )
    assert abs(ratio - 1) <= CLOSE, f"{ratio:.3f} of the estimate was spent"
    assert float(least) <= bill.usd + 1e-9
    assert bill.usd <= float(most) + 1e-9
    assert not (folder / "out" / "runs" / UNFINISHED).exists()


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        sys.exit(serve())
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or STUDIES))
