"""Kills `eirkit reproduce` with four models on loopback at random points, and compares its spending with the estimate.

python -m tests.paper.kills [KILLS] [STUDY ...]     prints what was tried and what held

Four models of known skill stand for the published ones on a server of their own, which bills what it counts. At the end
no run is lost or stored twice, every figure is compared with its own models, the archive is verified, and finished runs
cost what the estimate said before the first call, within 20%. STUDY may be --all.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

from eirkit.agents.model import Message, ModelOptions, Request
from eirkit.agents.models.reference import make_reference
from eirkit.paper.published import published_models
from eirkit.runs.journal import read_journal
from eirkit.runs.store import RUNS, scan_runs
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
PRICE = "{ input = 1.0, output = 4.0, as_of = 2026-01-01 }"
CHARACTERS = 4  # a token, as the server counts
STUDIES = ("rescue", "stepwise-maximum-rescue", "recovery-probes", "recovery-probes-by-workload", "read-traces")
CLOSE = 0.2  # of the estimate


def serve() -> int:
    """Answer as the model that is asked for would, until whoever started it is gone."""
    agents = {name: make_reference(agent, ModelOptions(extra=extra)) for name, (agent, extra) in SKILLS.items()}

    def answer(received: Received) -> Answer:
        messages = received.body["messages"]
        asked = Request(tuple(Message(one["role"], one["content"]) for one in messages))
        text = now(agents[received.body["model"]], asked)
        counted = sum(len(str(one["content"])) for one in messages) // CHARACTERS
        usage = {"prompt_tokens": counted, "completion_tokens": -(-len(text) // CHARACTERS)}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": received.body["model"]}
        return Answer(json.dumps({**head, "choices": [choice], "usage": usage}).encode())

    with ModelServer(answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    return 0


@contextmanager
def serving() -> Iterator[str]:
    with running([sys.executable, "-m", HERE, "--serve"], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


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


def check_models(document: dict[str, Any]) -> int:
    """Check that every row has the models behind its figure; return how many were judged."""
    judged = 0
    for study in document["studies"]:
        for row in study["rows"]:
            if not row["figure"] or row["ours"] is None:
                continue
            names = [published_models().find(model) for model in row["ours_by"].split(", ")]
            assert ", ".join(map(str, names)) == row["published_by"] or "not name" in row["published_by"], row
            judged += row["verdict"] in ("agrees", "differs", "too wide to tell")
    return judged


def main(kills: int = 20, studies: Sequence[str] = STUDIES, seed: int = 0) -> int:
    rng, environment = random.Random(seed), {**os.environ, "OPENAI_API_KEY": "loopback"}
    with tempfile.TemporaryDirectory(prefix="eirkit-kills-") as name, serving() as url:
        folder = Path(name)
        chosen = list(studies)
        estimate = printed(command(url, folder, chosen, "--dry-run"), environment)
        print(f"estimate: {estimate['runs']} runs, {estimate['calls']} calls, ${estimate['cost_usd']:.4f}")
        runs, done = folder / "out" / "runs" / RUNS, 0
        for number in range(kills):
            with running(command(url, folder, chosen), stdout=DEVNULL, stderr=DEVNULL, env=environment) as process:
                until = time.monotonic() + 60
                step = rng.randint(1, max(1, estimate["runs"] // (kills + 1)))
                while process.poll() is None and time.monotonic() < until and count(runs) < done + step:
                    time.sleep(0.01)
                time.sleep(rng.random() * 0.2)
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
            done = count(runs)
            print(f"kill {number + 1}: {done} of {estimate['runs']} runs")
        found = printed(command(url, folder, chosen), environment)
        stored = Counter(record["run"] for record, _ in scan_runs(runs))
        assert len(stored) == estimate["runs"], f"{len(stored)} runs of {estimate['runs']}"
        assert max(stored.values()) == 1, "a run is stored twice"
        journal = read_journal(folder / "out" / "runs")
        assert journal is not None
        spent, paid = float(journal.spending.total_usd), sum(r["usage"]["cost_usd"] for r, _ in scan_runs(runs))
        ratio = paid / estimate["cost_usd"]
        print(f"spent: ${spent:.4f}, of which finished runs ${paid:.4f}: {ratio:.2f} of the estimate")
        assert abs(ratio - 1) <= CLOSE, f"finished runs cost {ratio:.2f} of the estimate"
        print(f"judged: {check_models(found)} rows, each with its own models")
        words = [sys.executable, "-m", "eirkit", "reproduce", "--verify", str(folder / "out"), "--json"]
        checked = printed(words, environment)
        print(f"verified: {checked['runs']} runs, {checked['replayed']} played again, {checked['rows']} figures")
        assert not checked["problems"], checked["problems"][:3]
    print("held")
    return 0


def count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        sys.exit(serve())
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or STUDIES))
