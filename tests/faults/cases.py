"""Every way in which trust was once broken, tried on any version of eirkit through its command line alone.

python -m tests.faults.cases [PYTHON] [NAME …]     PYTHON: an interpreter that has the version to try

Prints for each case whether it holds, or what happened.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow
import pyarrow.parquet

from tests.faults.custody import GONE_SECONDS, MARK, SECRET, UNWANTED, left_after
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as
from tests.processes import completed, running
from tests.timing import slowness

HERE = Path(__file__).parent
PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'
CALL_USD = Decimal("0.11")  # at that price, for the 110 tokens that the server counts
CPU_SECONDS = 30  # for a log of some kilobytes, of which the start of the program takes about two
PATIENCE_SECONDS = 600.0  # on a busy machine; what hangs has its own limit of processor time, or is given less
STEERING = "\x1b]52;c;ZXZpbA==\x07 \u202egnp.exe\u202c"
STEERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HANGING_SECONDS = 180.0  # for a sweep whose memory may hang: nine calls of at most eight seconds
FOREVER = 600.0
SOON_SECONDS = 10.0  # on a quiet machine, for what once took minutes


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int | None  # None: it had to be killed
    said: str
    left: tuple[str, ...]  # processes of it that were alive 5 s later
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Bench:
    """A folder, and the version that is tried."""

    folder: Path
    python: str

    def words(self, *words: object) -> list[str]:
        return [self.python, "-m", "eirkit", *map(str, words)]

    def call(self, *words: object, seconds: float = PATIENCE_SECONDS, cwd: Path | None = None) -> Ended:
        """Run a command to its end; whatever of it is alive later is named and killed."""
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        environment = {**os.environ, MARK: mark, "ECHOED_SECRET": SECRET, "TMPDIR": str(self.folder)}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (
            (self.folder / "said").open("wb") as said,
            running(
                self.words(*words),
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=cwd,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
            ) as process,
        ):
            try:
                code: int | None = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
                process.kill()
                process.wait()
            left = left_after(mark, GONE_SECONDS)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Ended(code, (self.folder / "said").read_text("utf-8", "replace"), tuple(left.values()), cpu)


Case = Callable[[Bench], str]  # returns what happened, or nothing if it holds


# --- 1: money ---------------------------------------------------------------------------------------------------------


def paid(bench: Bench, server: ModelServer, cap: str, connections: int = 2) -> list[object]:
    (bench.folder / "prices.toml").write_text(PRICES)
    words: list[object] = ["lacuna", "run", "store-recall", "--n", 12, "--m", 6, "--h", 3, "--seeds", "0:6"]
    words += [
        "--model",
        "openai/any",
        "--base-url",
        server.url,
        "--set",
        "max_tokens=20",
        "--set",
        f"connections={connections}",
    ]
    return [*words, "--prices", bench.folder / "prices.toml", "--cap-usd", cap, "--out", bench.folder / "out"]


def above(server: ModelServer, cap: str, call_usd: Decimal = CALL_USD) -> str:
    billed = len(server.received) * call_usd
    return f"the server billed ${billed} of ${cap}" if billed > Decimal(cap) else ""


def resumed(bench: Bench, more: Sequence[object] = ()) -> str:
    with ModelServer(answers_as("calculator")) as server:
        bench.call(*paid(bench, server, "4.5"))
        bench.call("lacuna", "run", "--resume", bench.folder / "out", *more)
        return above(server, "4.5")


def resumed_with_prices(bench: Bench) -> str:
    return resumed(bench, ["--prices", bench.folder / "prices.toml"])


def bills_above_maximum(bench: Bench) -> str:
    """A provider bills ten times what a call may cost: that can happen once, and not again after the cap is raised."""
    good = answers_as("calculator")
    usage = {"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10_000}

    def dear(received: Received) -> Answer:
        answer = good(received)
        return replace(answer, body=json.dumps({**json.loads(answer.body), "usage": usage}).encode())

    with ModelServer(dear) as server:
        bench.call(*paid(bench, server, "50", connections=20))
        cap = 10 * len(server.received) + 35
        more = ["--prices", bench.folder / "prices.toml", "--cap-usd", cap]
        bench.call("lacuna", "run", "--resume", bench.folder / "out", *more)
        billed = 10 * len(server.received)
    return f"the server billed ${billed} of ${cap}" if billed > cap else ""


def killed_in_flight(bench: Bench) -> str:
    seen: list[None] = []
    at_once: list[bool] = []
    good, usage = answers_as("calculator"), {"prompt_tokens": 490, "completion_tokens": 10, "total_tokens": 500}

    def answer(received: Received) -> Answer:
        seen.append(None)
        body = {**json.loads(good(received).body), "usage": usage}
        return Answer(json.dumps(body).encode(), delay_seconds=0.0 if len(seen) <= 12 or at_once else FOREVER)

    with ModelServer(answer) as server:
        with running(bench.words(*paid(bench, server, "40", connections=6)), stdout=subprocess.DEVNULL) as command:
            end = time.monotonic() + PATIENCE_SECONDS
            while len(server.received) < 18 and time.monotonic() < end:
                time.sleep(0.01)
            command.send_signal(signal.SIGKILL)
        at_once.append(True)
        bench.call(
            "lacuna", "run", "--resume", bench.folder / "out", "--cap-usd", 12, "--prices", bench.folder / "prices.toml"
        )
        return above(server, "12", Decimal("0.5"))


# --- 2: logs that stall -----------------------------------------------------------------------------------------------


def openai_call(number: int, command: str, output: str) -> list[dict[str, object]]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    answer = {"role": "tool", "tool_call_id": f"c{number}", "content": output}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}, answer]


def stalls(command: str, output: str, bench: Bench) -> str:
    opening = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Fix it."}]
    log = {
        "run_id": "one",
        "messages": [*opening, *openai_call(0, command, output), *openai_call(1, "cat a.py", "a\n")],
    }
    (bench.folder / "log.jsonl").write_text(json.dumps(log) + "\n")
    return slow(bench.call("vestige", "analyze", bench.folder / "log.jsonl", "--out", bench.folder / "out"))


def edit_blocks(bench: Bench) -> str:
    edit = {"path": "a.py", "diff": "<<<<<<< SEARCH\n" * 15_000}
    function = {"name": "replace_in_file", "arguments": json.dumps(edit)}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c0", "type": "function", "function": function}]}
    log = {"run_id": "one", "messages": [{"role": "user", "content": "Fix it."}, call]}
    (bench.folder / "log.jsonl").write_text(json.dumps(log) + "\n")
    return slow(bench.call("vestige", "analyze", bench.folder / "log.jsonl", "--out", bench.folder / "out"))


def slow(done: Ended) -> str:
    if done.code is None or done.code < 0 or done.cpu_seconds > CPU_SECONDS / 2:
        return f"{'ended' if done.code == 0 else 'not done'} after {done.cpu_seconds:.0f} s of processor time"
    return "" if done.code == 0 else f"exit {done.code}: {done.said[-200:]}"


def parquet_dictionary(bench: Bench) -> str:
    text = json.dumps([{"role": "user", "content": "a" * 1000}] * 20_000)
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 500, pyarrow.int32()), pyarrow.array([text]))
    table = pyarrow.table({"messages": column, "instance_id": [f"run-{number}" for number in range(500)]})
    pyarrow.parquet.write_table(table, bench.folder / "log.parquet", compression="zstd")
    done = bench.call("vestige", "analyze", bench.folder / "log.parquet", "--out", bench.folder / "out")
    return "" if done.code in (0, 1, 2) and done.cpu_seconds < CPU_SECONDS / 2 else slow(done)


STALLING = {
    "git diff": ("git diff", "diff -" + "a" * 60_000),
    "unzip": ("unzip a.zip", " inflating: a" + " " * 200_000 + "\0"),
    "awk": ("awk 'NR>=1" + " " * 200_000 + "x' a.py", "a\n"),
    "sed script": ("sed -n '" + "\n" * 3900 + "w ;' a.py", "a\n"),
    "6 MB of grep": ("grep -rn x .", "".join(f"a{number}.py:{number}:x\n" for number in range(330_000))),
}


# --- 3: the guard -----------------------------------------------------------------------------------------------------


class Upstream(BaseHTTPRequestHandler):
    """Answers with a few bytes, of which the path /half gets half."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"12345" if self.path.endswith("half") else b"1234567890")
        self.close_connection = self.path.endswith("half")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def guard(bench: Bench, user: str = "") -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """Yield the process of a guard, its port, and its first line."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    upstream = f"http://{user}127.0.0.1:{server.server_address[1]}/v1"
    words = bench.words("vestige", "guard", "--base-url", upstream, "--json")
    with running(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        yield process, urlsplit(json.loads(first)["address"]).port or 0, first
    server.shutdown()
    server.server_close()


def post(port: int, messages: Sequence[object], path: str = "/chat/completions", seconds: float = 60.0) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    connection.request("POST", path, json.dumps({"messages": messages}).encode())
    try:
        return connection.getresponse().read()
    finally:
        connection.close()


def stalling_request() -> list[list[object]]:
    """Return two requests, of which the analysis of the second once took minutes."""
    opening: list[object] = [{"role": "system", "content": "An agent."}, {"role": "user", "content": "Fix it."}]
    calls = [*openai_call(0, *STALLING["unzip"]), *openai_call(1, *STALLING["git diff"]), *openai_call(2, "ls", "a.py")]
    return [[*opening, *calls], [*opening, *calls[:4], {"role": "user", "content": "Go on."}]]


def frozen_agents(bench: Bench) -> str:
    with guard(bench) as (_, port, _first):
        for messages in stalling_request():
            threading.Thread(target=suppressed, args=(post, port, messages), daemon=True).start()
            time.sleep(2)
        another = [{"role": "system", "content": "Another."}, {"role": "user", "content": "Hello."}]
        try:
            post(port, another, seconds=SOON_SECONDS * slowness())
        except TimeoutError:
            return f"another agent's request was not answered within {SOON_SECONDS:g} s of a quiet machine"
    return ""


def suppressed(work: Callable[..., object], *arguments: object) -> None:
    with suppress(OSError, http.client.HTTPException):
        work(*arguments)


def dead_interrupt(bench: Bench) -> str:
    with guard(bench) as (process, port, _first):
        for messages in stalling_request():
            threading.Thread(target=suppressed, args=(post, port, messages), daemon=True).start()
            time.sleep(2)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(SOON_SECONDS * slowness())
        except subprocess.TimeoutExpired:
            return f"alive {SOON_SECONDS:g} s, of a quiet machine, after Ctrl-C"
    return ""


def truncated_reply(bench: Bench) -> str:
    with guard(bench) as (_, port, _first):
        try:
            found = post(port, [{"role": "user", "content": "Hello."}], "/half")
        except http.client.IncompleteRead:
            return ""
    return f"{len(found)} of 10 bytes arrived as a whole reply"


def printed_password(bench: Bench) -> str:
    with guard(bench, "agent:hunter2@") as (_, _port, first):
        return f"printed {first.strip()}" if "hunter2" in first else ""


# --- 4 and 5: terminal and private files ------------------------------------------------------------------------------


def steering_run(bench: Bench) -> str:
    turns = [{"reads": [{"path": "a.py", "tokens": 3}], "writes": [{"path": "a.py"}]}]
    log = "".join(json.dumps({"run_id": name, "turns": turns}) + "\n" for name in (f"a{STEERING}", f"b{STEERING}"))
    (bench.folder / "log.jsonl").write_text(log)
    bench.call("vestige", "analyze", bench.folder / "log.jsonl", "--out", bench.folder / "out")
    done = bench.call("vestige", "show", bench.folder / "out", "missing")
    found = STEERS.search(done.said) or STEERS.search(
        bench.call("vestige", "show", bench.folder / "out", STEERING).said
    )
    return f"{found[0]!r} reached the terminal" if found else ""


def steering_plug_in(bench: Bench) -> str:
    (bench.folder / "mine.py").write_text(f"print({STEERING!r})\nraise ValueError({STEERING!r})\n")
    found = STEERS.search(bench.call("eir", "count", f"{bench.folder}/mine.py:Plain").said)
    return f"{found[0]!r} reached the terminal" if found else ""


def readable_seeds(bench: Bench) -> str:
    out = bench.folder / "visits"
    before = os.umask(0o022)
    try:
        bench.call("mcp", "serve", "store-recall", "--n", 3, "--m", 4, "--h", 2, "--out", out)
    finally:
        os.umask(before)
    found = [path for path in (out, *out.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o77]
    return ", ".join(f"{path.name} {stat.S_IMODE(path.stat().st_mode):o}" for path in found[:3])


# --- 6 and 7: processes, ends, secrets, records -----------------------------------------------------------------------


def hostile(name: str, bench: Bench, limit: int = 2) -> str:
    if name == "mcp":
        server = {"command": [bench.python, str(HERE / "hostile_server.py"), "{store}"]}
        memory: list[object] = ["--memory", "mcp", "--set", "mcp.preset="]
        memory += ["--set", f"mcp.server={json.dumps(server)}", "--set", "mcp.timeout_seconds=8"]
    else:
        memory = ["--memory", f"{HERE / 'hostile.py'}:{name}", "--set", f"{name}.timeout_seconds={limit}"]
        memory += ["--set", "Echoes.password=${ECHOED_SECRET}"] if name == "Echoes" else []
    tasks = ["--workload", "store-recall", "--n", 16, "--m", 8, "--h", 2, "--seeds", "0:3", "--no-control"]
    done = bench.call(
        "lacuna",
        "run",
        *tasks,
        *memory,
        "--model",
        "reference/recoverer",
        "--out",
        bench.folder / "out",
        seconds=HANGING_SECONDS,
    )
    found = [f"alive: {one[:60]}" for one in done.left[:1]]
    found += [f"printed {words!r}" for words in UNWANTED if words in done.said]
    found += ["had to be killed"] if done.code is None else []
    found += [f"was not tried: {done.said.strip()[-120:]}"] if done.code == 2 else []
    lines = bench.folder / "lines"
    if (bench.folder / "out" / "manifest.json").exists():
        bench.call("export", "jsonl", bench.folder / "out", "--out", lines)
    records = lines / "runs.jsonl"
    scored = len(records.read_bytes().splitlines()) if records.exists() else 0
    found += [f"exit 0 with {scored} of 3 runs"] if done.code == 0 and scored < 3 else []
    files = [path.read_bytes() for place in ("out", "lines") for path in (bench.folder / place).glob("*")]
    plain = any(SECRET.encode() in content or SECRET.encode() in unpacked(content) for content in files)
    return "; ".join([*found, *(["the secret is in a file of the sweep"] if plain else [])])


def unpacked(content: bytes) -> bytes:
    """Return the content of frames of zstd; nothing for anything else."""
    if not content.startswith(b"\x28\xb5\x2f\xfd"):
        return b""
    import zstandard

    with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as stream:
        return bytes(stream.read())


def link_loop(bench: Bench) -> str:
    folder = bench.folder / "logs"
    folder.mkdir()
    (folder / "round").symlink_to("round")
    (folder / "a.jsonl").write_text('{"run_id": "a", "turns": []}\n')
    return traceback_of(bench.call("vestige", "analyze", folder, "--out", bench.folder / "out"))


def deep_folders(bench: Bench) -> str:
    here = Path.cwd()
    (bench.folder / "logs").mkdir()
    try:
        os.chdir(bench.folder / "logs")
        for _ in range(1_500):
            Path("d").mkdir()
            os.chdir("d")
        Path("a.jsonl").write_text('{"run_id": "a", "turns": []}\n')
    finally:
        os.chdir(here)
    found = traceback_of(bench.call("vestige", "analyze", bench.folder / "logs", "--out", bench.folder / "out"))
    completed(["rm", "-rf", bench.folder / "logs"], check=True)
    return found


def traceback_of(done: Ended) -> str:
    return f"a traceback: {done.said.strip().splitlines()[-1][:80]}" if "Traceback" in done.said else ""


def changed(name: str, change: Callable[[bytes], bytes], bench: Bench) -> str:
    tasks = ["store-recall", "--n", 6, "--m", 4, "--h", 2, "--seeds", "0:4", "--no-control"]
    bench.call("lacuna", "run", *tasks, "--model", "reference/calculator", "--out", bench.folder / "out")
    path = bench.folder / "out" / name
    before = path.read_bytes()
    path.write_bytes(change(before))
    assert path.read_bytes() != before
    done = bench.call("lacuna", "run", "--resume", bench.folder / "out")
    return "resumed as if nothing had changed" if done.code == 0 else ""


def other_score(content: bytes) -> bytes:
    return re.sub(rb'"correct":\s*(\d+)', lambda found: b'"correct":%d' % max(0, int(found[1]) - 1), content, count=1)


def other_bit(content: bytes) -> bytes:
    place = content.index(b"ANSWER")
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


CASES: dict[str, Case] = {
    "1 cap after a plain --resume": resumed,
    "1 cap after --resume with --prices": resumed_with_prices,
    "1 cap with 20 connections and dear bills": bills_above_maximum,
    "1 calls in flight at a kill": killed_in_flight,
    **{f"2 {name}": partial(stalls, *words) for name, words in STALLING.items()},
    "2 blocks of edits": edit_blocks,
    "2 Parquet dictionary": parquet_dictionary,
    "3 other agents while an output is slow": frozen_agents,
    "3 Ctrl-C while an output is slow": dead_interrupt,
    "3 truncated reply of the server": truncated_reply,
    "3 password in --base-url": printed_password,
    "4 run ids in error lines": steering_run,
    "4 what a plug-in prints and raises": steering_plug_in,
    "5 seeds of MCP visits": readable_seeds,
    "6 MCP memory that hangs, forks and ignores signals": partial(hostile, "mcp"),
    "6 memory that starts a deaf program": partial(hostile, "Forks"),
    "6 memory that becomes a daemon": partial(hostile, "Daemons"),
    "7 blocking call": partial(hostile, "BlocksInSearch"),
    "7 os._exit(0)": partial(hostile, "Exits"),
    "7 CancelledError": partial(hostile, "Cancels"),
    "7 echoed secret": partial(hostile, "Echoes"),
    "7 link that leads to itself": link_loop,
    "7 folder 1,500 levels deep": deep_folders,
    "7 changed score in sweep.db": partial(changed, "sweep.db", other_score),
    "7 changed bit in the prompt of a manifest": partial(changed, "manifest.json", other_bit),
}


def main(arguments: Sequence[str]) -> int:
    """Try the cases and print a line for each."""
    python, *names = arguments or [sys.executable]
    broken = 0
    for name, case in CASES.items():
        if names and not any(one in name for one in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = case(Bench(Path(folder), python))
        broken += bool(found)
        print(f"{name:<50} {found or 'holds'}", flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
