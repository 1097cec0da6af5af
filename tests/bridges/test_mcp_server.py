"""The MCP server with the real client: tools, budgets, secrets, strangers, garbage, disconnects and crowds."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.database import SweepDatabase
from eirkit.records.events import ActionTaken, ModelExchange
from eirkit_bridges.mcp_server import LARGEST_REQUEST, HttpAccess, RequestLines
from tests import warm
from tests.bridges.driving import SEED, needs_mcp, options_of, serving, stored_events, stored_runs, suite_of, telemetry
from tests.lacuna.running import eirkit
from tests.processes import PATIENCE_SECONDS, completed, running

TOKEN = "0123456789abcdef"
SHORT = ("--workload", "store-recall", "--n", "3", "--m", "4", "--h", "2")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """A server with more tasks than anybody asks for."""
    folder = tmp_path_factory.mktemp("server")
    with serving([*SHORT, "--instances", "300", "--out", str(folder / "out")], folder / "log") as (address, _):
        yield address, folder / "out"


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


@asynccontextmanager
async def stdio(*arguments: str) -> Any:
    from mcp import Client, StdioServerParameters

    server = StdioServerParameters(
        command=str(warm.programs() / "eirkit"), args=["mcp", "serve", *arguments], env=dict(os.environ)
    )
    async with Client(server) as client:
        yield client


async def take_task(client: Any, n: int) -> None:
    """Answer every step of a Store–Recall task as its text allows, keeping everything in mind."""
    mind: dict[str, int] = {}
    for t in range(1, n + 1):
        shown = text_of(await client.call_tool("next_step", {}))
        lines = dict(line.split(" ", 1) for line in shown.splitlines() if " " in line)
        value = int(lines["INPUT"]) if "\nINPUT " in shown else mind[lines["REFS"]]
        mind[f"A_{t:0{len(str(n))}d}"] = value
        await client.call_tool("submit_answer", {"t": t, "values": [value]})
    assert "The task is over" in text_of(await client.call_tool("finish", {}))


@needs_mcp
def test_an_agent_that_forgets_nothing_gets_everything_right_over_stdio(tmp_path):
    async def act() -> None:
        async with stdio(
            "--workload", "store-recall", "--n", "12", "--h", "4", "--out", str(tmp_path / "out")
        ) as client:
            assert "RULE" in client.instructions
            await take_task(client, 12)
            assert "The task is over" in text_of(await client.call_tool("next_step", {}))

    asyncio.run(act())
    (run,) = stored_runs(tmp_path / "out")
    assert run.score is not None
    assert (run.ending, run.score.correct, run.setting.model) == ("finished", 12, "agent/visitor")


@needs_mcp
def test_budgets_are_the_servers(tmp_path):
    async def act() -> list[str]:
        options = options_of(suite_of(b_oracle=1, b=0, actions=9), tmp_path / "out")
        async with stdio(*options) as client:
            calls = [("next_step", {}), ("submit_answer", {"t": 1, "values": [7]}), ("next_step", {})]
            calls += [("read_result", {"t": 1})] * 2 + [("recompute", {"t": 1}), ("note", {"action": "write", "t": 1})]
            calls += [("next_step", {}), ("next_step", {}), ("next_step", {})]
            return [text_of(await client.call_tool(name, arguments)) for name, arguments in calls]

    shown = asyncio.run(act())
    assert "RESULT A_01 = 0007" in shown[3]
    assert "refused: no reads are left" in shown[4]
    assert "refused: recompute is not available here" in shown[5]
    assert "RESULT step 1 is kept" in shown[6]
    assert "LEFT actions=1 " in shown[7]
    assert shown[8] == shown[9] == "The task is over. Further calls have no effect."
    (run,) = stored_runs(tmp_path / "out")
    assert run.ending == "action-limit"


@needs_mcp
def test_neither_seed_nor_anything_to_come_can_be_reached(tmp_path):
    from mcp.shared.exceptions import MCPError

    spec = {"digits": 9, "n": 6, "m": 4, "workload": "stepwise-sum"}
    task = generate(TaskSpec(seed=SEED, **spec))
    heard: list[str] = []

    async def ask(work: Any) -> None:
        try:
            heard.append((await work).model_dump_json())
        except MCPError as error:
            heard.append(f"{error} {error.error.model_dump_json()}")

    async def act() -> None:
        options = options_of(suite_of(**spec, condition="kv", h=2), tmp_path / "out")
        async with stdio(*options) as client:
            heard.append(client.instructions)
            await ask(client.list_tools())
            await ask(client.list_resources())
            await ask(client.list_prompts())
            await ask(client.read_resource("file:///etc/hostname"))
            await ask(client.get_prompt("seed"))
            for name, arguments in [
                ("next_step", {}),
                ("seed", {"seed": True}),
                ("read_result", {"t": 1}),
                ("recompute", {"t": 1}),
                ("note", {"action": "search", "text": "answer"}),
                ("submit_answer", {"t": 1, "values": [{"$ref": "#"}]}),
                ("note", {"action": {"x": 1}, "t": -1}),
            ]:
                await ask(client.call_tool(name, arguments))

    asyncio.run(act())
    said = "\n".join(heard)
    (first, *later) = task.steps
    assert str(first.input[0]) in said  # the step that was revealed
    hidden = [step.input[0] for step in later if step.input] + [step.answer[0] for step in later]
    assert [value for value in hidden if str(value) in said] == []
    assert str(SEED) not in said
    assert task.fingerprint[:12] not in said
    assert str(tmp_path) not in said
    assert "Traceback" not in said


@needs_mcp
@pytest.mark.parametrize("crowd", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_many_clients_at_once_lose_no_event(crowded, crowd):
    from mcp import Client

    address, folder = crowded

    async def one() -> None:
        async with Client(address) as client:
            await take_task(client, 3)

    async def all_at_once() -> None:
        async with asyncio.timeout(4 * PATIENCE_SECONDS):
            await asyncio.gather(*(one() for _ in range(crowd)))

    before = len(stored_runs(folder))
    asyncio.run(all_at_once())
    new = stored_runs(folder)[before:]
    assert len({run.seed for run in new}) == len(new) == crowd
    for run in new:
        events = stored_events(folder, run)
        assert run.score is not None
        assert run.score.correct == 3
        actions = [event.action.split()[0] for event in events if isinstance(event, ActionTaken)]
        assert actions == ["NEXT", "ANSWER"] * 3 + ["DONE"]
        assert sum(isinstance(event, ModelExchange) for event in events) == 7


def raw(address: str, data: bytes, *, wait: bool = True) -> bytes:
    """Send bytes and return what comes back; without waiting, hang up at once."""
    where = urlsplit(address)
    with socket.create_connection((where.hostname, where.port), timeout=PATIENCE_SECONDS) as stream:
        stream.sendall(data)
        parts = []
        while wait and (part := stream.recv(65_536)):
            parts.append(part)
        return b"".join(parts)


def post(address: str, body: bytes, **headers: str) -> bytes:
    """Return an HTTP request as bytes; a header that is given replaces the usual one."""
    usual = {"Host": urlsplit(address).netloc, "Content-Type": "application/json", "Connection": "close"}
    usual |= {"Accept": "application/json, text/event-stream", "Content-Length": str(len(body))}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in (usual | given).items())
    return f"POST {urlsplit(address).path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def message(method: str, number: int = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


HELLO = message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "raw", "version": "1"})


def session_of(response: bytes) -> str:
    lines = response.decode().lower().split("\r\n")
    return next(line.partition(": ")[2] for line in lines if line.startswith("mcp-session-id"))


GARBAGE = {
    "noise": lambda address: b"\x16\x03\x01" + bytes(range(256)) * 16,
    "no JSON": lambda address: post(address, b"{" * 1000),
    "deep JSON": lambda address: post(address, b"[" * 100_000 + b"]" * 100_000),
    "a batch": lambda address: post(address, b"[" + HELLO + b"]"),
    "no UTF-8": lambda address: post(address, b"\xff\xfe\x00"),
    "an unknown session": lambda address: post(address, HELLO, mcp_session_id="x" * 100),
    "a number of many digits": lambda address: post(address, b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b"}"),
    "an unknown method": lambda address: post(address, message("eirkit/seed")),
}


@needs_mcp
@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_refused_and_does_no_harm(crowded, kind):
    address, _ = crowded
    response = raw(address, GARBAGE[kind](address))
    assert not response or 400 <= int(response.split()[1]) < 500
    assert b"Traceback" not in response
    assert session_of(raw(address, post(address, HELLO)))


REFUSED = [
    ({"Host": "evil.example"}, b" 421 "),
    ({"Origin": "https://evil.example"}, b" 403 "),
    ({"Content_Length": str(LARGEST_REQUEST + 1)}, b" 413 "),
    ({"MCP_Protocol_Version": "2026-07-28"}, b'"supported": ["2024-11-05"'),
]


@needs_mcp
@pytest.mark.parametrize(("headers", "sign"), REFUSED)
def test_a_request_from_elsewhere_or_too_large_is_refused(crowded, headers, sign):
    address, _ = crowded
    assert sign in raw(address, post(address, HELLO, **headers))


@needs_mcp
def test_half_a_request_does_no_harm(crowded):
    address, _ = crowded
    raw(address, post(address, HELLO)[:-20], wait=False)
    assert session_of(raw(address, post(address, HELLO)))


@needs_mcp
def test_a_body_that_is_longer_than_it_says_is_cut_off(crowded):
    address, _ = crowded
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    head = post(address, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    assert b" 413 " in raw(address, head + chunk * (LARGEST_REQUEST // 0x10000 + 2) + b"0\r\n\r\n")


@needs_mcp
def test_a_client_that_hangs_up_in_the_middle_of_a_call_has_made_it_once(crowded):
    address, folder = crowded
    before = {run.run for run in stored_runs(folder)}
    session = session_of(raw(address, post(address, HELLO)))
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    raw(address, post(address, ready, mcp_session_id=session))

    def call(number: int, tool: str) -> bytes:
        return post(address, message("tools/call", number, name=tool, arguments={"t": 1}), mcp_session_id=session)

    for number in range(2, 5):
        raw(address, call(number, "next_step"), wait=False)
    last = b""
    for number in range(5, 200):  # until all three have arrived
        last = raw(address, call(number, "read_result"))
        if b"STEP 3" in last:
            break
    assert b"STEP 3" in last
    end = post(address, b"", mcp_session_id=session).replace(b"POST", b"DELETE", 1)
    assert b" 200 " in raw(address, end)
    (run,) = (run for run in stored_runs(folder) if run.run not in before)
    actions = [event.action for event in stored_events(folder, run) if isinstance(event, ActionTaken)]
    assert actions.count("NEXT") == 3
    assert run.ending == "done"
    assert b" 404 " in raw(address, post(address, message("tools/list", 9), mcp_session_id=session))


@needs_mcp
def test_a_token_is_demanded_in_the_header_or_in_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("EIRKIT_MCP_TOKEN", TOKEN)
    options = [*SHORT, "--host", "0.0.0.0", "--name", "tasks.example"]
    with serving([*options, "--out", str(tmp_path / "out")], tmp_path / "log") as (shown, _):
        address = shown.replace("0.0.0.0", "127.0.0.1")
        assert b" 401 " in raw(address, post(address, HELLO))
        assert b" 401 " in raw(address, post(address, HELLO, Authorization="Bearer 0123456789abcdeX"))
        assert session_of(raw(address, post(address, HELLO, Authorization=f"Bearer {TOKEN}")))
        assert session_of(raw(address, post(address.replace("/mcp", f"/{TOKEN}/mcp"), HELLO, Host="tasks.example:80")))
        assert TOKEN not in (tmp_path / "log").read_text()


@needs_mcp
def test_silence_ends_a_run_and_a_stop_breaks_it_off(tmp_path):
    from mcp import Client

    async def silent(address: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), Client(address) as client:
            await client.call_tool("next_step", {})
            while not stored_runs(tmp_path / "out"):
                await asyncio.sleep(0.1)

    async def stopped(address: str, process: subprocess.Popen[bytes]) -> None:
        async with Client(address) as client:
            await client.call_tool("next_step", {})
            process.terminate()
            assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) == 0

    options = [*SHORT, "--instances", "2", "--idle-minutes", "0.05", "--out", str(tmp_path / "out")]
    with serving(options, tmp_path / "log") as (address, _):
        asyncio.run(silent(address))
    (run,) = stored_runs(tmp_path / "out")
    assert run.ending == "done"
    with serving(["--resume", str(tmp_path / "out")], tmp_path / "log") as (address, process):
        asyncio.run(stopped(address, process))
    with SweepDatabase(tmp_path / "out") as database:
        (failure,) = database.failures()
    assert "the server was stopped" in failure.message
    assert len(stored_runs(tmp_path / "out")) == 1
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["planned"] == 2


@needs_mcp
def test_whoever_started_the_server_may_end_it_in_any_way(tmp_path):
    arguments = [sys.executable, "-m", "eirkit", "mcp", "serve", *SHORT]
    garbage = b"\xff\x00 noise\n" + b"{" * LARGEST_REQUEST + b"}" * LARGEST_REQUEST + b"\n[]\n\n"
    hello = HELLO + b"\n" + json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n"
    call = message("tools/call", 2, name="next_step", arguments={}) + b"\n"
    with running([*arguments, "--out", str(tmp_path / "a")], stdin=-1, stdout=-1, stderr=-1) as process:
        process.stdin.write(garbage + hello + call)
        process.stdin.flush()
        while b"STEP 1" not in process.stdout.readline():
            pass
        process.stdin.close()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert stored_runs(tmp_path / "a")[0].ending == "done"
    with running([*arguments, "--out", str(tmp_path / "b")], stdin=-1, stdout=-1, stderr=-1) as process:
        process.stdin.write(hello + call)
        process.stdin.flush()
        while b"STEP 1" not in process.stdout.readline():
            pass
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    assert stored_runs(tmp_path / "b")[0].ending == "done"
    done = completed([*arguments, "--out", str(tmp_path / "c")], stdin=subprocess.DEVNULL, text=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert stored_runs(tmp_path / "c") == []  # nobody acted, so there was no run


def test_a_line_that_is_too_long_becomes_an_empty_one():
    read, write = os.pipe()
    os.write(write, b"one\n" + b"x" * 50 + b"\ntwo\nth" + b"r" * 20 + b"ee")
    os.close(write)

    async def lines() -> list[str]:
        return [line async for line in RequestLines(read, largest=10)]

    assert asyncio.run(lines()) == ["one", "", "two"]
    os.close(read)


@pytest.mark.parametrize(
    ("door", "words"),
    [
        ({"host": "0.0.0.0"}, "can be reached from other machines; set EIRKIT_MCP_TOKEN"),
        ({"host": "example.org"}, "can be reached from other machines"),
        ({"host": "::"}, "can be reached from other machines"),
        ({"token": "short"}, "16 or more letters or digits"),
        ({"token": "../../../../../../etc"}, "16 or more letters or digits"),
    ],
)
def test_a_door_that_would_be_open_to_strangers_is_not_built(door, words):
    with pytest.raises(UsageError, match=words):
        HttpAccess(**door)


@needs_mcp
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no task is given"),
        (("--workload", "store-recall", "--h", "2,4"), "2 combinations"),
        (("--workload", "store-recall", "--condition", "controlled"), "eirkit export harbor"),
        (("--workload", "store-recall", "--json"), "use --json and --format with --host"),
        (("--workload", "store-recall", "--host", "0.0.0.0"), "set EIRKIT_MCP_TOKEN"),
        (("--resume", "x", "--h", "2"), "--resume continues with the recorded options"),
    ],
)
def test_wrong_usage_is_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    assert eirkit("mcp", "serve", *arguments) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_script_of_the_same_calls_leaves_the_same_records_twice(tmp_path):
    """Telemetry is compared over drivers elsewhere; here the comparison itself is checked to see a difference."""
    from tests.bridges.driving import record_script

    record_script(suite_of(), tmp_path / "a", calls=True)
    record_script(suite_of(h=3), tmp_path / "b", calls=True)
    assert telemetry(tmp_path / "a") != telemetry(tmp_path / "b")
