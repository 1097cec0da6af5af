"""Kills, stops and starves commands that pay a server on loopback, and compares their ledgers with its own count.

python -m tests.faults.money [KILLS] [SEED]     prints what was tried and what held

After every kill nothing may be spent beyond the cap; at the end no run is lost or stored twice, every bill of the
server is in the ledger, either exactly or as a call in flight at a kill, and the rows add up to the ledger.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from typing import Any

import openai

from eirkit.cli import run as run_command_line
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import Model, ModelOptions
from eirkit.lacuna.runs.journal import LEDGER, Journal, read_journal
from eirkit.lacuna.runs.store import RUNS, read_events, scan_runs
from eirkit.records.event_blocks import EVENTS
from tests.lacuna.batch_server import BatchServer
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as
from tests.processes import completed, running, wait_until

HERE = "tests.faults.money"
PRICE = "{ input = 1000, output = 1000, as_of = 2026-01-01 }"
PRICES = f'[prices]\n"openai/any" = {PRICE}\n"{HERE}:served/any" = {PRICE}\n'
USD_PER_UNIT = Decimal("0.0005")  # of the server's account: half a token, which is what a token of a batch costs
CONNECTIONS = 4
NOBODY = 65534  # the user to whom a folder of root's is read-only
SERVER = "EIRKIT_FAULTS_SERVER"  # variable with its address
ANSWERS = answers_as("recoverer")

TASKS = ["--n", 6, "--m", 3, "--h", 1, "--seeds", "0:4"]
MEMORY = "tests.faults.thinking:Thinking"
THINKING = [f"--memory={MEMORY}", f"--memory-set={MEMORY}.model={HERE}:served/any"]
SUBJECTS: dict[str, list[object]] = {
    "paid": ["run", "store-recall", *TASKS, "--model", "openai/any"],
    "controlled": ["run", "store-recall", *TASKS, "--model", "openai/any", "--control"],
    "memory": ["run", "store-recall", *TASKS, "--model", "openai/any", *THINKING],
    "batch": ["run", "store-recall", *TASKS, "--model", "openai/any", "--set", "batch=0.05"],
    "rescue": ["rescue", "--workload", "store-recall", *TASKS, "--model", "openai/any", "--no-control"],
}


# --- the server, in a process of its own ------------------------------------------------------------------------------


def bill(body: Mapping[str, Any]) -> int:
    """Return the tokens that a request costs: by its content, and never more than it declares."""
    text = "".join(str(message["content"]) for message in body["messages"])
    return 20 + sum(text.encode()) % 60


def answered(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to a request, as a reference agent gives it, with the tokens that it costs."""
    if len(body["messages"]) > 1:
        reply = json.loads(ANSWERS(Received("", {}, body)).body)
    else:  # what a memory asks is no prompt of a session
        reply = {"choices": [{"message": {"role": "assistant", "content": "noted"}}]}
    return {**reply, "usage": {"prompt_tokens": bill(body) - 5, "completion_tokens": 5}}


class PaidBatches(BatchServer):
    """Bills a batch when it arrives, whether or not anybody asks for its results."""

    def __init__(self, bills: list[int]) -> None:
        super().__init__()
        self.bills = bills

    def post(self, path: str, headers: Any, body: bytes) -> Any:
        found = super().post(path, headers, body)
        if path == "/v1/batches":
            self.bills += [bill(one["body"]) for one in self.batches[-1]]
        return found

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        return answered(body)


def serve() -> int:
    """Answer, keep every bill, and tell them on request, until whoever asked is gone."""
    bills: list[int] = []

    def answer(received: Received) -> Answer:
        if received.body is None:
            return Answer(json.dumps(bills).encode())
        bills.append(2 * bill(received.body))
        return Answer(json.dumps(answered(received.body)).encode())

    with ModelServer(answer) as server, PaidBatches(bills) as batches:
        print(server.url, batches.url, flush=True)
        sys.stdin.read()
    return 0


@contextmanager
def serving() -> Iterator[tuple[str, str]]:
    """Yield the addresses of the server: for single requests and for batches."""
    with running([sys.executable, "-m", HERE, "--serve"], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        url, batches = process.stdout.readline().split()
        os.environ[SERVER] = url
        yield url, batches


def bills_of(url: str) -> Counter[Decimal]:
    """Return every bill of the server so far, once no request is under way any more."""
    seen: list[int] = [-1]
    while True:
        with urllib.request.urlopen(f"{url}/bills") as reply:
            now = json.load(reply)
        if now == seen:
            return Counter(units * USD_PER_UNIT for units in now)
        seen = now
        time.sleep(0.05)


def served(name: str, options: ModelOptions) -> Model:
    """Make the model of a memory system, at the same server."""
    return make_model(f"openai/{name}", replace(options, base_url=os.environ[SERVER], max_tokens=20))


# --- commands in copies of this process -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subject:
    """A command that pays."""

    name: str
    url: str
    batches: str
    prices: Path

    def start(self, out: Path, cap: Decimal | None) -> list[str]:
        url = self.batches if self.name == "batch" else self.url
        model = ["--base-url", url, "--connections", CONNECTIONS, "--max-tokens", 20, "--prices", self.prices]
        capped = [] if cap is None else ["--cap-usd", cap]
        return [str(word) for word in ["lacuna", *SUBJECTS[self.name], *model, *capped, "--out", out, "--json"]]

    def resume(self, out: Path, *more: object) -> list[str]:
        return [str(word) for word in ["lacuna", SUBJECTS[self.name][0], "--resume", out, *more, "--json"]]

    def go_on(self, out: Path, cap: Decimal | None) -> list[str]:
        return self.resume(out) if (out / "manifest.json").exists() else self.start(out, cap)


def begin(words: Sequence[str], said: Path, before: Callable[[], object] = lambda: None) -> int:
    """Run a command in a copy of this process, which is quicker than an interpreter; return its process id."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            with said.open("wb") as stream:
                os.dup2(stream.fileno(), 1)
                os.dup2(stream.fileno(), 2)
            before()
            code = run_command_line(list(words))
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return child


def end(child: int) -> int:
    """Return the exit code of a command, or minus the signal that ended it; nothing of it is left."""
    status = os.waitpid(child, 0)[1]
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def perform(words: Sequence[str], said: Path, before: Callable[[], object] = lambda: None) -> int:
    return end(begin(words, said, before))


# --- what must hold ---------------------------------------------------------------------------------------------------


def held_and_ended(folder: Path) -> tuple[Counter[Decimal], list[Decimal]]:
    """Return the bills in the ledger, and the holds of calls whose end is not there; read without eirkit."""
    holds: dict[int, Decimal] = {}
    ended: Counter[Decimal] = Counter()
    text = (folder / LEDGER).read_bytes() if (folder / LEDGER).exists() else b""
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        entry = json.loads(line)
        if entry["type"] == "hold":
            assert entry["call"] not in holds, "a number was given twice"
            holds[entry["call"]] = Decimal(entry["usd"])
        elif entry["type"] == "end":
            del holds[entry["call"]]
            assert not entry.get("unconfirmed_usd"), "the server never fails"
            ended[Decimal(entry["usd"])] += 1
    return ended, sorted(holds.values(), reverse=True)


def total(bills: Counter[Decimal]) -> Decimal:
    return sum((usd * times for usd, times in bills.items()), Decimal(0))


def check_ledger(folder: Path, server: Counter[Decimal], cap: Decimal | None) -> None:
    """Assert that the ledger has every bill of the server, and that the cap holds by the server's own count."""
    ended, in_flight = held_and_ended(folder)
    assert cap is None or total(server) <= cap, f"the server billed {total(server)} of {cap}"
    assert ended <= server, f"the ledger has what the server has not: {ended - server}"
    lost = sorted((server - ended).elements(), reverse=True)
    assert len(lost) <= len(in_flight), f"{len(lost)} bills are not in the ledger, {len(in_flight)} were in flight"
    assert all(usd <= most for usd, most in zip(lost, in_flight, strict=False)), "a call cost more than its hold"
    known = read_journal(folder) or Journal()
    assert known.spending.billed_usd == total(ended)
    assert known.spending.in_flight_usd == sum(in_flight, Decimal(0))
    assert cap is None or known.spending.total_usd <= cap


def check_rows(subject: Subject, folder: Path) -> None:
    """Assert that the rows of a sweep add up to its ledger."""
    if subject.name == "rescue":
        return
    summary = json.loads((folder / "summary.json").read_text())
    sums = [Decimal(str(summary["spending"]["control_usd"]))]
    for row in summary["rows"]:
        sums += [Decimal(str(row["cost_usd"])), Decimal(str(row["unconfirmed_usd"]))]
        sums += [Decimal(str(row["memory_system"]["cost_usd"]))] if row["memory_system"] else []
    known = read_journal(folder)
    assert known is not None
    assert sum(sums) == known.spending.total_usd, f"the rows have {sum(sums)} of {known.spending.total_usd}"


def records(folder: Path) -> list[str]:
    """Return every record but for places, times and payments, in an order that does not depend on who was first."""
    runs = [record for record, _ in scan_runs(folder / RUNS)]
    assert len({run["run"] for run in runs}) == len(runs), "a run is there twice"
    assert sum(run["events"]["bytes"] for run in runs) == (folder / EVENTS).stat().st_size, "bytes of nobody"
    events = [dict(event) for run in runs for event in read_events(folder, run["events"])]
    for event in events:
        event.pop("max_tokens", None)  # the last call that a cap pays for may declare fewer: docs/models.md
    plain = [{key: value for key, value in run.items() if key not in ("events", "usage")} for run in runs]
    return sorted(json.dumps(_lasting(record)) for record in [*plain, *events])


def _lasting(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _lasting(item) for key, item in value.items() if not key.endswith("_seconds")}


# --- the faults -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Bench:
    """Where faults are tried; counts what was tried and what held."""

    folder: Path
    url: str
    batches: str
    rng: random.Random
    tried: Counter[str]
    held: Counter[str]
    whole: dict[str, tuple[list[str], Decimal, float]]  # records, cost and seconds of an uninterrupted command
    sweeps: int = 0
    in_flight: int = 0  # kills that left calls in flight

    def subject(self) -> Subject:
        return self.named(self.rng.choice(list(SUBJECTS)))

    def named(self, name: str) -> Subject:
        return Subject(name, self.url, self.batches, self.folder / "prices.toml")

    def prepare(self) -> None:
        """Run every command once without a fault."""
        (self.folder / "prices.toml").write_text(PRICES)
        for name in SUBJECTS:
            one, out, before = self.named(name), self.folder / name, time.monotonic()
            first = bills_of(self.url)
            code = perform(one.start(out, None), self.folder / "said")
            assert code == 0, (self.folder / "said").read_text()
            own = bills_of(self.url) - first
            check_ledger(out, own, None)
            check_rows(one, out)
            self.whole[name] = (records(out), total(own), time.monotonic() - before)

    @contextmanager
    def sweep(self) -> Iterator[tuple[Subject, Path, Decimal | None, Counter[Decimal]]]:
        """Yield a command, a new folder, a cap and the bills so far; afterwards finish it and check everything."""
        one, self.sweeps = self.subject(), self.sweeps + 1
        out = self.folder / f"cut-{self.sweeps}"
        cost = self.whole[one.name][1]
        cap = None if self.rng.random() < 0.3 else (cost * self.rng.randint(2, 14) / 10).quantize(Decimal("0.01"))
        before = bills_of(self.url)
        yield one, out, cap, before
        began = (out / "manifest.json").exists()
        words = one.resume(out, "--cap-usd", "none") if began else one.start(out, None)
        code = perform(words, self.folder / "said")
        assert code == 0, (self.folder / "said").read_text()
        check_ledger(out, bills_of(self.url) - before, None)
        check_rows(one, out)
        found, whole = Counter(records(out)), Counter(self.whole[one.name][0])
        differs = f"{sorted(found - whole)[:2]} in place of {sorted(whole - found)[:2]}"
        assert found == whole, f"the records of {one.name} differ: {differs}"
        shutil.rmtree(out)

    def attempt(self, fault: Callable[[], None]) -> None:
        """Try a fault and count it as held unless something that must hold does not."""
        before = Counter(self.tried)
        try:
            fault()
        except AssertionError as error:
            print(f"{error}", flush=True)
        else:
            self.held += self.tried - before

    def begun(self, one: Subject, out: Path, cap: Decimal | None) -> int:
        """Start a command and return its process once its manifest is there."""
        child = begin(one.start(out, cap), self.folder / "said")
        wait_until((out / "manifest.json").exists, "the manifest is there")
        return child

    def kill(self, most: int) -> None:
        """Kill a command at random moments until it ends by itself, or often enough."""
        with self.sweep() as (one, out, cap, before):
            known = 0
            for _ in range(most):
                child = begin(one.go_on(out, cap), self.folder / "said")
                time.sleep(self.rng.uniform(0, 0.7 * self.whole[one.name][2]))
                os.killpg(child, signal.SIGKILL) if _is_leader(child) else os.kill(child, signal.SIGKILL)
                code = end(child)
                if code != -signal.SIGKILL:
                    assert code in (0, 1), (self.folder / "said").read_text()
                    break
                self.tried["kill -9"] += 1
                check_ledger(out, bills_of(self.url) - before, cap)
                lost = len(held_and_ended(out)[1])
                self.in_flight, known = self.in_flight + (lost > known), lost

    def stop(self) -> None:
        """Stop a command, let another one try to resume its folder, and let it go on."""
        with self.sweep() as (one, out, cap, before):
            child = self.begun(one, out, cap)
            self.tried["SIGSTOP, and a resume meanwhile"] += 1
            os.kill(child, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0, 0.3))
            code = perform(one.resume(out), self.folder / "other")
            os.kill(child, signal.SIGCONT)
            said = (self.folder / "other").read_text()
            assert (code, "another process is writing" in said) == (2, True), f"{code}: {said}"
            assert end(child) in (0, 1), (self.folder / "said").read_text()
            check_ledger(out, bills_of(self.url) - before, cap)

    def resume_twice(self) -> None:
        """Kill a command and resume it twice at once."""
        with self.sweep() as (one, out, cap, before):
            child = self.begun(one, out, cap)
            self.tried["two resumes at once"] += 1
            time.sleep(self.rng.uniform(0, 0.3 * self.whole[one.name][2]))
            os.kill(child, signal.SIGKILL)
            end(child)
            both = [begin(one.resume(out), self.folder / name) for name in ("said", "other")]
            codes = sorted(end(one) for one in both)
            assert codes in ([0, 0], [0, 1], [1, 1], [0, 2], [1, 2]), codes
            check_ledger(out, bills_of(self.url) - before, cap)

    def fill(self) -> None:
        """Leave no room on the disk: no file may grow beyond so many bytes."""
        with self.sweep() as (one, out, cap, before):
            self.tried["full disk"] += 1
            limit = self.rng.randint(0, 12_000)
            words = one.start(out, cap)
            code = perform(
                words, self.folder / "said", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            )
            assert code in (0, 1, 2), f"{code}: {(self.folder / 'said').read_text()}"
            check_ledger(out, bills_of(self.url) - before, cap)

    def protect(self) -> None:
        """Resume in a folder that is read-only: nothing may be asked, and the message says what to do."""
        with self.sweep() as (one, out, _, before):
            self.tried["read-only folder"] += 1
            perform(one.start(out, Decimal(1)), self.folder / "said")
            asked = bills_of(self.url)
            modes = {path: path.stat().st_mode for path in [out, *out.rglob("*")]}
            for path, mode in modes.items():
                path.chmod(mode & ~0o222)
            code = perform(one.resume(out, "--cap-usd", 100), self.folder / "said", _as_nobody)
            for path, mode in modes.items():
                path.chmod(mode)
            said = (self.folder / "said").read_text()
            assert (code in (1, 2), "Traceback" in said) == (True, False), f"{code}: {said}"
            assert bills_of(self.url) == asked, "a call was made that could not be recorded"
            check_ledger(out, asked - before, None)

    def set_back(self) -> None:
        """Kill a command and resume it two days earlier."""
        with self.sweep() as (one, out, cap, before):
            self.tried["clock set back"] += 1
            child = self.begun(one, out, cap)
            time.sleep(self.rng.uniform(0, 0.3 * self.whole[one.name][2]))
            os.kill(child, signal.SIGKILL)
            end(child)
            clock = {"LD_PRELOAD": str(faketime()), "FAKETIME": "-2d", "DONT_FAKE_MONOTONIC": "1"}
            words = [sys.executable, "-m", "eirkit", *one.resume(out)]
            done = completed(words, cwd=Path(__file__).parents[2], env={**os.environ, **clock})
            assert done.returncode in (0, 1), done.stderr
            check_ledger(out, bills_of(self.url) - before, cap)


def faketime() -> Path | None:
    """Return the library that sets the clock of a process, if its package is installed."""
    found = find_spec("libfaketime")
    if found is None or found.origin is None:
        return None
    return next(Path(found.origin).parent.rglob("libfaketime.so.1"), None)


def _as_nobody() -> None:
    if os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _is_leader(child: int) -> bool:
    try:
        return os.getpgid(child) == child
    except ProcessLookupError:
        return False


def main(arguments: list[str]) -> int:
    """Try all faults and print the figures; the seed is printed so that a failure can be repeated."""
    if arguments == ["--serve"]:
        return serve()
    kills = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"{kills} kills, seed {seed}", flush=True)
    for module in (
        "cli.lacuna_run",
        "cli.rescue",
        "lacuna.models.hosted",
        "lacuna.tasks.policies",
        "lacuna.tasks.workloads",
    ):
        import_module(f"eirkit.{module}")  # once, before this process is copied
    openai.AsyncOpenAI(api_key="none")  # imports more when it is made
    with tempfile.TemporaryDirectory() as name, serving() as (url, batches):
        folder = Path(name)
        folder.chmod(0o755)
        bench = Bench(folder, url, batches, random.Random(seed), Counter(), Counter(), {})
        bench.prepare()
        others = [bench.stop, bench.resume_twice, bench.fill, bench.protect]
        if faketime() is None:
            print("clock set back: not tried, since libfaketime is not installed")
        else:
            others.append(bench.set_back)
        for fault in others * max(1, kills // 40):
            bench.attempt(fault)
        while bench.tried["kill -9"] < kills:
            bench.attempt(lambda: bench.kill(min(12, kills - bench.tried["kill -9"])))
        bills = bills_of(url)
    print(f"{'fault':<34} tried  held")
    for fault, times in bench.tried.items():
        print(f"{fault:<34} {times:>5} {bench.held[fault]:>5}")
    print(f"{bench.sweeps} commands, {bills.total():,} calls, ${total(bills):,.3f} by the server's own count")
    print(f"{bench.in_flight} kills left calls in flight")
    return 0 if bench.held == bench.tried else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
