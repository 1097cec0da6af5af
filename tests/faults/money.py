"""Kills, stops and starves sweeps that pay a server on loopback, and compares their databases with its own count.

python -m tests.faults.money [KILLS] [SEED]     prints what was tried and what held

After every kill nothing may be spent beyond the cap; at the end no run is lost or stored twice, every bill of the
server is in the database, either exactly or as a call in flight at a kill, and the rows add up to it. Beside half of
the sweeps that are killed somebody reads all the time.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from typing import Any

import msgspec
import openai

from eirkit.errors import EirkitError, InputFileError
from eirkit.lacuna.findings.summary import SUMMARY_SCHEMA
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Model, ModelOptions, Request, TextForm
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.rescue import RescueSetup
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import open_plan, resume_sweep, start_sweep
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.documents import MANIFEST, SUMMARY, read_struct
from eirkit.records.money import Journal, exact_usd
from eirkit.records.sweeps import Summary
from tests.lacuna.batch_server import BatchServer
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as, now
from tests.processes import completed, running, wait_until

HERE = "tests.faults.money"
PRICE = "{ input = 1000, output = 1000, as_of = 2026-01-01 }"
PRICES = f'[prices]\n"openai/any" = {PRICE}\n"{HERE}:served/any" = {PRICE}\n'
USD_PER_UNIT = Decimal("0.0005")  # of the server's account: half a token, which is what a token of a batch costs
CONNECTIONS = 4
NOBODY = 65534  # the user to whom a folder of root's is read-only
SERVER = "EIRKIT_FAULTS_SERVER"  # variable with its address
ANSWERS = answers_as("recoverer")
READER = make_reader(ModelOptions())

SEEDS = range(4)
TASKS = {"workload": "store-recall", "n": 6, "m": 3, "h": 1, "seeds": list(SEEDS), "model": "openai/any"}
TALK = {"workload": "conversation", "preset": "small+sessions=2+questions=3", "budget": ["documented", "k=1", "k=9"]}
TALK |= {"seeds": list(SEEDS), "model": "openai/any"}
MEMORY = "tests.faults.thinking:Thinking"
THINKING = {"memory": MEMORY, "memory_options": {MEMORY: {"model": f"{HERE}:served/any"}}}
SUBJECTS: dict[str, dict[str, Any]] = {
    "paid": TASKS,
    "controlled": TASKS,
    "memory": {**TASKS, **THINKING},
    "budgets": {**TALK, **THINKING},
    "batch": TASKS,
    "rescue": TASKS,
}
LIFTED = Decimal("Infinity")


# --- the server, in a process of its own ------------------------------------------------------------------------------


def bill(body: Mapping[str, Any]) -> int:
    """Return the tokens that a request costs: by its content, and never more than it declares."""
    text = "".join(str(message["content"]) for message in body["messages"])
    return 20 + sum(text.encode()) % 60


def answered(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to a request, as a reference agent gives it, with the tokens that it costs."""
    if "Question: " in str(body["messages"][-1]["content"]):
        asked = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        said = now(READER, Request(asked, form=TextForm())).text
        reply = {"choices": [{"message": {"role": "assistant", "content": said}}]}
    elif len(body["messages"]) > 1:  # of a task of numbers
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
    """A sweep or a rescue that pays."""

    name: str
    url: str
    batches: str
    prices: Path

    def options(self) -> dict[str, Any]:
        given: dict[str, Any] = {"base_url": self.url, "connections": CONNECTIONS, "max_tokens": 20}
        given |= {"protocol": "text"} if self.name == "budgets" else {}
        return {**given, "base_url": self.batches, "extra": {"batch": 0.05}} if self.name == "batch" else given

    def start(self, out: Path, cap: Decimal | None) -> bool:
        """Begin; True if everything is done."""
        funds = SpendingLimits(cap, self.prices)
        if self.name == "rescue":
            return self.rescue(out, funds)
        suite = read_suite({**SUBJECTS[self.name], "model_options": self.options()})
        return start_sweep(suite, out, funds, control=True if self.name == "controlled" else None).complete

    def resume(self, out: Path, cap: Decimal | None = None) -> bool:
        """Go on with the cap that the folder has, unless another one is given; True if everything is done."""
        funds = SpendingLimits(cap)
        return self.rescue(out, funds) if self.name == "rescue" else resume_sweep(out, funds=funds).complete

    def rescue(self, out: Path, funds: SpendingLimits) -> bool:
        setup = RescueSetup(TaskSpec("store-recall", n=6, m=3), 1)
        plan = CellPlan("rescue", tuple(setup.cells(["openai/any"], ModelOptions(**self.options()), SEEDS)))
        with open_plan(plan, out, Budget(funds, out)) as runner:
            return not runner.run(plan).stopped

    def go_on(self, out: Path, cap: Decimal | None) -> bool:
        return self.resume(out) if (out / MANIFEST).exists() else self.start(out, cap)


Work = Callable[[], bool]  # True if everything is done


def begin(work: Work, said: Path, before: Callable[[], object] = lambda: None) -> int:
    """Work in a copy of this process, which is quicker than an interpreter; return its process id."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            with said.open("wb") as stream:
                os.dup2(stream.fileno(), 1)
                os.dup2(stream.fileno(), 2)
            before()
            code = int(not work())
        except EirkitError as error:
            print(error)
            code = error.exit_code
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            with suppress(OSError):  # its output may be limited, too
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


def perform(work: Work, said: Path, before: Callable[[], object] = lambda: None) -> int:
    return end(begin(work, said, before))


def watch(out: Path, over: Path) -> bool:
    """Read a folder again and again, as a viewer does, until a file says that it is over; what was there stays."""
    known: dict[str, bytes] = {}
    growing = 0
    while not over.exists():
        begun = (out / MANIFEST).exists()  # else the database may not be there yet
        with nullcontext() if begun else suppress(InputFileError), SweepDatabase(out) as database:
            for _ in range(3):  # while it grows
                found = {record.run: msgspec.json.encode(record) for record in database.records()}
                assert found.items() >= known.items(), "a run vanished or changed"
                for run in found.keys() - known.keys():
                    assert database.events(run), "a run without events"
                growing += len(found) > len(known)
                known = found
                time.sleep(0.01)
        if begun:
            read_journal(out)
    print(growing)
    return True


# --- what must hold ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Account:
    """The money in a database, read without eirkit."""

    ended: Counter[Decimal] = field(default_factory=Counter)  # bills
    in_flight: list[Decimal] = field(default_factory=list)  # reserved for calls without an end
    unconfirmed: list[Decimal] = field(default_factory=list)  # the most for calls that a full disk cut short


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a database without eirkit.

    Who holds it open sees what others see. A kill after a commit was written, and before it was noted in the index of
    the log, leaves a commit that nobody was told of: it is there for whoever comes when nobody reads, and not else.
    Where the index must be made anew, which no reader may do, a copy is read.
    """
    with tempfile.TemporaryDirectory() as name:
        connection = sqlite3.connect(f"file:{folder / DATABASE}?mode=ro", uri=True)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
            for path in (folder / DATABASE, folder / f"{DATABASE}-wal"):
                if path.exists():
                    shutil.copyfile(path, Path(name) / path.name)
            connection = sqlite3.connect(Path(name) / DATABASE)
        try:
            yield connection
        finally:
            connection.close()


def account_of(connection: sqlite3.Connection) -> Account:
    found = Account()
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "a damaged database"
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    query = "SELECT reserved_usd, billed_usd, unconfirmed_usd FROM calls"
    rows = connection.execute(query).fetchall() if tables != (0,) else []
    for reserved, billed, unconfirmed in rows:
        if billed is None:
            found.in_flight.append(Decimal(reserved))
        elif Decimal(unconfirmed):
            assert not Decimal(billed), "a call is billed, or may have been"
            found.unconfirmed.append(Decimal(unconfirmed))
        else:
            found.ended[Decimal(billed)] += 1
    return found


def total(bills: Counter[Decimal]) -> Decimal:
    return sum((usd * times for usd, times in bills.items()), Decimal(0))


def check_ledger(folder: Path, server: Counter[Decimal], cap: Decimal | None) -> int:
    """Assert that the database has every bill of the server, and that the cap holds by the server's own count.

    Returns the number of calls in flight.
    """
    assert cap is None or total(server) <= cap, f"the server billed {total(server)} of {cap}"
    if not (folder / MANIFEST).exists():  # nothing can be read yet, and nothing was asked
        assert not server, f"{total(server)} were billed before the manifest was written"
        return 0
    with opened(folder) as connection:
        account, known = account_of(connection), read_journal(folder) or Journal()
    ended, open_calls = account.ended, sorted([*account.in_flight, *account.unconfirmed], reverse=True)
    assert ended <= server, f"the database has what the server has not: {ended - server}"
    lost = sorted((server - ended).elements(), reverse=True)
    assert len(lost) <= len(open_calls), f"{len(lost)} bills are not in the database, {len(open_calls)} were in flight"
    assert all(usd <= most for usd, most in zip(lost, open_calls, strict=False)), "a call cost more than its hold"
    spent = known.spending
    assert spent.billed_usd == total(ended), f"{spent.billed_usd} billed, {total(ended)} in the calls"
    for name, amounts in (("in_flight_usd", account.in_flight), ("unconfirmed_usd", account.unconfirmed)):
        found, sums = getattr(spent, name), sum(amounts, Decimal(0))
        assert found == sums, f"{name} is {found}, {sums} in the calls"
    assert cap is None or spent.total_usd <= cap, f"{spent.total_usd} spent of {cap}"
    return len(account.in_flight)


def check_rows(subject: Subject, folder: Path) -> None:
    """Assert that the rows of a sweep add up to its paid calls."""
    if subject.name == "rescue":
        return
    summary = read_struct(folder / SUMMARY, SUMMARY_SCHEMA, Summary)
    assert summary.spending is not None
    sums = [exact_usd(summary.spending.control_usd)]
    for row in summary.rows:
        sums += [exact_usd(row.cost_usd or 0), exact_usd(row.unconfirmed_usd)]
        if row.memory_system is not None:
            sums += [exact_usd(row.memory_system.cost_usd or 0), -exact_usd(row.memory_system.shared_usd or 0)]
    known = read_journal(folder)
    assert known is not None
    assert sum(sums) == known.spending.total_usd, f"the rows have {sum(sums)} of {known.spending.total_usd}"


def records(folder: Path) -> list[str]:
    """Return every record but for times and payments, in an order that does not depend on who was first."""
    found = []
    with SweepDatabase(folder) as database:
        for control in (False, True):
            runs = list(database.records(control=control))
            assert len({run.run for run in runs}) == len(runs), "a run is there twice"
            for run in runs:
                record = {**msgspec.to_builtins(run), "usage": None}
                events = msgspec.to_builtins(database.events(run.run, control=control))
                for event in events:
                    event.pop("max_tokens", None)  # the last call that a cap pays for may declare fewer: docs/models.md
                found += [json.dumps(_lasting(part)) for part in (record, *events)]
    return sorted(found)


def _lasting(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    # A kill changes who gave a memory the conversation.
    return {key: _lasting(item) for key, item in value.items() if key != "shared" and not key.endswith("_seconds")}


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
    # Records, cost and seconds of uninterrupted ones, by name.
    whole: dict[str, tuple[list[str], Decimal, float]] = field(default_factory=dict)
    sweeps: int = 0
    in_flight: int = 0  # kills that left calls in flight
    growing: int = 0  # times that somebody who read meanwhile found more runs

    def subject(self) -> Subject:
        return self.named(self.rng.choice(list(SUBJECTS)))

    def named(self, name: str) -> Subject:
        return Subject(name, self.url, self.batches, self.folder / "prices.toml")

    def prepare(self) -> None:
        """Run everything once without a fault."""
        (self.folder / "prices.toml").write_text(PRICES)
        for name in SUBJECTS:
            one, out, before = self.named(name), self.folder / name, time.monotonic()
            first = bills_of(self.url)
            code = perform(partial(one.start, out, None), self.folder / "said")
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
        began = (out / MANIFEST).exists()
        code = perform(partial(one.resume if began else one.start, out, LIFTED), self.folder / "said")
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
        child = begin(partial(one.start, out, cap), self.folder / "said")
        wait_until((out / MANIFEST).exists, "the manifest is there")
        return child

    def kill(self, most: int) -> None:
        """Kill a command at random moments until it ends by itself, or often enough."""
        with self.sweep() as (one, out, cap, before):
            known = 0
            with self.reader(out) if self.rng.random() < 0.5 else nullcontext():
                for _ in range(most):
                    child = begin(partial(one.go_on, out, cap), self.folder / "said")
                    time.sleep(self.rng.uniform(0, 0.7 * self.whole[one.name][2]))
                    os.killpg(child, signal.SIGKILL) if _is_leader(child) else os.kill(child, signal.SIGKILL)
                    code = end(child)
                    if code != -signal.SIGKILL:
                        assert code in (0, 1), (self.folder / "said").read_text()
                        break
                    self.tried["kill -9"] += 1
                    lost = check_ledger(out, bills_of(self.url) - before, cap)
                    self.in_flight, known = self.in_flight + (lost > known), lost

    @contextmanager
    def reader(self, out: Path) -> Iterator[None]:
        """Somebody who reads the folder meanwhile."""
        over = self.folder / "over"
        over.unlink(missing_ok=True)
        out.mkdir(exist_ok=True)
        child = begin(partial(watch, out, over), self.folder / "read")
        try:
            yield
        finally:
            over.touch()
            self.tried["somebody reads meanwhile"] += 1
            assert end(child) == 0, (self.folder / "read").read_text()
            self.growing += int((self.folder / "read").read_text())

    def start_twice(self) -> None:
        """Start the same in the same folder twice at once."""
        with self.sweep() as (one, out, cap, before):
            self.tried["two starts at once"] += 1
            both = [begin(partial(one.start, out, cap), self.folder / name) for name in ("said", "other")]
            codes = sorted(map(end, both))
            # A rescue that is started again where one has ended goes on with it.
            is_after = one.name == "rescue" and codes in ([0, 0], [0, 1], [1, 1])
            assert is_after or codes in ([0, 2], [1, 2]), f"{codes}: {(self.folder / 'other').read_text()}"
            check_ledger(out, bills_of(self.url) - before, cap)

    def stop(self) -> None:
        """Stop a command, let another one try to resume its folder, and let it go on."""
        with self.sweep() as (one, out, cap, before):
            child = self.begun(one, out, cap)
            self.tried["SIGSTOP, and a resume meanwhile"] += 1
            os.kill(child, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0, 0.3))
            has_ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            code = perform(partial(one.resume, out), self.folder / "other")
            os.kill(child, signal.SIGCONT)
            said = (self.folder / "other").read_text()
            # Stopped while it folds in its log, it lets nobody read.
            refused = (2, "another process is writing"), (1, "keeps it locked; end that program")
            assert has_ended or any(code == number and words in said for number, words in refused), f"{code}: {said}"
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
            both = [begin(partial(one.resume, out), self.folder / name) for name in ("said", "other")]
            codes = sorted(map(end, both))
            assert codes in ([0, 0], [0, 1], [1, 1], [0, 2], [1, 2]), codes
            check_ledger(out, bills_of(self.url) - before, cap)

    def fill(self) -> None:
        """Leave no room on the disk: no file may grow beyond so many bytes."""
        with self.sweep() as (one, out, cap, before):
            self.tried["full disk"] += 1
            limit = self.rng.choice((self.rng.randint(0, 12_000), self.rng.randint(0, 200_000)))
            code = perform(
                partial(one.start, out, cap),
                self.folder / "said",
                lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
            )
            assert code in (0, 1, 2), f"{code}: {(self.folder / 'said').read_text()}"
            check_ledger(out, bills_of(self.url) - before, cap)

    def protect(self) -> None:
        """Resume in a folder that is read-only: nothing may be asked, and the message says what to do."""
        with self.sweep() as (one, out, _, before):
            self.tried["read-only folder"] += 1
            perform(partial(one.start, out, Decimal(1)), self.folder / "said")
            asked = bills_of(self.url)
            modes = {path: path.stat().st_mode for path in [out, *out.rglob("*")]}
            for path, mode in modes.items():
                path.chmod(mode & ~0o222)
            code = perform(partial(one.resume, out, Decimal(100)), self.folder / "said", _as_nobody)
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
            words = [sys.executable, "-m", HERE, "--resume", one.name, self.url, self.batches, one.prices, out]
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
    if arguments[:1] == ["--resume"]:
        _, name, url, batches, prices, out = arguments
        return int(not Subject(name, url, batches, Path(prices)).resume(Path(out)))
    kills = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"{kills} kills, seed {seed}", flush=True)
    for module in (
        "lacuna.models.hosted",
        "lacuna.runs.conversations",
        "lacuna.tasks.policies",
        "lacuna.tasks.workloads",
    ):
        import_module(f"eirkit.{module}")  # once, before this process is copied
    openai.AsyncOpenAI(api_key="none")  # imports more when it is made
    with tempfile.TemporaryDirectory() as name, serving() as (url, batches):
        folder = Path(name)
        folder.chmod(0o755)
        bench = Bench(folder, url, batches, random.Random(seed), Counter(), Counter())
        bench.prepare()
        others = [bench.stop, bench.resume_twice, bench.start_twice, bench.fill, bench.protect]
        if faketime() is None:
            print("clock set back: not tried, since libfaketime is not installed")
        else:
            others.append(bench.set_back)
        for fault in others * max(1, kills // 40):
            bench.attempt(fault)
        while bench.tried["kill -9"] < kills:
            bench.attempt(lambda: bench.kill(min(12, kills - bench.tried["kill -9"])))
            print(f"{bench.tried['kill -9']} kills, {bench.held['kill -9']} held", flush=True)
        bills = bills_of(url)
    print(f"{'fault':<34} tried  held")
    for fault, times in bench.tried.items():
        print(f"{fault:<34} {times:>5} {bench.held[fault]:>5}")
    print(f"{bench.sweeps} sweeps and rescues, {bills.total():,} calls, ${total(bills):,.3f} by the server's own count")
    print(f"{bench.in_flight} kills left calls in flight; readers saw a folder grow {bench.growing} times")
    return 0 if bench.held == bench.tried else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
