"""The guard's proxy before a real server on loopback: replies pass unchanged, losses are told, strangers refused."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from eirkit.errors import UsageError
from eirkit_coding.guard.proxy import (
    LARGEST_BODY,
    LOST_HEADER,
    MOST_CONVERSATIONS,
    Conversations,
    GuardProxy,
    ModelRequest,
)
from tests.coding.guard.test_monitor import NOTES, SYSTEM, TASK, anthropic_call, conversation, openai_call
from tests.processes import PATIENCE_SECONDS, wait_until
from tests.processes import running as process_running

EVENTS = [f"data: {number}\n\n".encode() for number in range(5)]


class Upstream(BaseHTTPRequestHandler):
    """Answers with what it was sent; /v1/stream in pieces."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/stream"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in EVENTS:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.write(b"0\r\n\r\n")
            return
        seen = {"path": self.path, "key": self.headers.get("Authorization"), "body": json.loads(body)}
        payload = json.dumps(seen).encode()
        self.send_response(201)
        self.send_header("X-From", "upstream")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        pass


class Patient(ThreadingHTTPServer):
    request_queue_size = 128


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def guarded(upstream: str):
    told = []
    proxy = GuardProxy(upstream, lambda losses: told.append(losses), grace_seconds=PATIENCE_SECONDS)
    thread = threading.Thread(target=proxy.serve, daemon=True)
    thread.start()
    try:
        yield proxy, told
    finally:
        proxy.stop()
        thread.join()


@pytest.fixture
def guard():
    server = Patient(("127.0.0.1", 0), Upstream)
    with running(server), guarded(f"http://127.0.0.1:{server.server_address[1]}/v1") as made:
        yield made


def post(proxy: GuardProxy, body: object, path: str = "/chat/completions", **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(proxy.address).port, timeout=PATIENCE_SECONDS)
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, payload, headers)
    response = connection.getresponse()
    answer = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return answer


def test_requests_and_replies_pass_unchanged(guard):
    proxy, told = guard
    body = {"messages": [TASK], "n": 1.5}
    status, headers, reply = post(proxy, body, Authorization="Bearer secret")
    assert (status, headers["X-From"]) == (201, "upstream")
    assert json.loads(reply) == {"path": "/v1/chat/completions", "key": "Bearer secret", "body": body}
    assert told == []


def test_an_agent_may_name_the_version_itself(guard):
    proxy, _ = guard
    _, _, reply = post(proxy, {"messages": [TASK]}, "/v1/chat/completions")
    assert json.loads(reply)["path"] == "/v1/chat/completions"


def test_a_stream_arrives_whole(guard):
    proxy, _ = guard
    status, headers, reply = post(proxy, {"messages": [TASK], "stream": True}, "/stream")
    assert (status, headers["Content-Type"], reply) == (200, "text/event-stream", b"".join(EVENTS))


def test_a_loss_is_told_and_stands_in_the_reply_s_header(guard):
    proxy, told = guard
    messages = [*conversation(openai_call), *openai_call(9, "cat /repo/hot.py", "hot line of code\n" * 3)]
    messages += [message for n in range(10, 14) for message in openai_call(n, "cat /repo/hot.py", "hot line of code\n")]
    post(proxy, {"messages": messages})
    _, headers, _ = post(proxy, {"messages": [SYSTEM, TASK, {"role": "user", "content": "parser.py was read"}]})
    (losses,) = told
    likely = [loss.path for loss in losses if loss.likely]
    assert [path.rpartition("/")[2] for path in likely] == ["hot.py", "parser.py"]  # notes.txt was read but once
    assert json.loads(headers[LOST_HEADER]) == likely


def test_conversations_of_other_agents_are_kept_apart(guard):
    proxy, told = guard
    post(proxy, {"messages": conversation(openai_call)})
    other = {"role": "system", "content": "You are another agent."}
    post(proxy, {"messages": [other, {"role": "user", "content": "Look at parser.py."}]})
    post(proxy, {"messages": [SYSTEM, {"role": "user", "content": "A new question about Norway."}]})
    assert told == []


def billed(suffix: str, opening: str) -> list[dict]:
    """Return a system prompt of Claude Code, whose first block is a header of its own."""
    header = f"x-anthropic-billing-header: cc_version=2.1.326.{suffix}; cc_entrypoint=cli;"
    return [{"type": "text", "text": header}, {"type": "text", "text": opening}]


@pytest.mark.parametrize("is_text", [False, True])
def test_a_conversation_is_known_although_its_billing_header_changes(guard, is_text):
    proxy, told = guard
    before, after, foreign = billed("a1f", "You mend."), billed("77c", "You mend."), billed("a1f", "You explore.")
    if is_text:
        before, after, foreign = ("\n".join(block["text"] for block in one) for one in (before, after, foreign))
    _, *messages = conversation(anthropic_call)
    summary = {"role": "user", "content": "This session is being continued: parser.py was read."}
    reminder = {"role": "system", "content": "The following tools are available now: Monitor, WebFetch"}
    post(proxy, {"system": before, "messages": messages}, "/messages")
    post(proxy, {"system": foreign, "messages": [summary]}, "/messages")
    assert told == [], "another agent"
    post(proxy, {"system": after, "messages": [summary, reminder]}, "/messages")
    (losses,) = told
    assert {loss.path.rpartition("/")[2] for loss in losses} == {"parser.py", "notes.txt"}


@pytest.mark.parametrize("told_by", ["header", "tools"])
def test_what_a_sub_agent_reads_is_no_loss_of_its_parent(guard, told_by):
    proxy, told = guard
    own, header = billed("a1f", "You mend."), told_by == "header"
    theirs = billed("b2c; cc_is_subagent=true" if header else "a1f", "You mend.")
    tools = [{"name": "Read"}, {"name": "Agent"}]
    _, *messages = conversation(anthropic_call)
    asked = [{"role": "user", "content": "Look into parser.py and notes.txt."}, *anthropic_call(7, "cat b.py", NOTES)]
    for end in (2, len(messages)):
        post(proxy, {"system": own, "messages": messages[:end], "tools": tools}, "/messages")
        body = {"system": theirs, "messages": asked, "tools": tools if header else tools[:1]}
        post(proxy, body, "/messages")
        post(proxy, {**body, "messages": [asked[0]]}, "/messages")
    assert [loss.path for losses in told for loss in losses] == ["b.py"]  # which left the sub-agent's own context


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 3}', b'{"messages": [null, 3, {}]}', b"[" * 9999])
def test_what_holds_no_conversation_loses_nothing(body):
    told = []
    proxy = GuardProxy("http://127.0.0.1:9", told.append)
    try:
        assert proxy.watch(body) == ()
    finally:
        proxy._server.server_close()
    assert told == []


@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
def test_foreign_hosts_and_pages_are_refused(guard, header):
    proxy, _ = guard
    status, _, reply = post(proxy, {"messages": [TASK]}, **header)
    assert status == 403
    assert b"only programs on this machine" in reply


def test_a_page_of_this_machine_may_ask(guard):
    proxy, _ = guard
    assert post(proxy, {"messages": [TASK]}, Origin="http://localhost:3000")[0] == 201


def raw(proxy: GuardProxy, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", urlsplit(proxy.address).port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_a_body_in_chunks_is_refused_and_not_read_as_a_request(guard):
    proxy, _ = guard
    head = b"POST /chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = raw(proxy, head + b"2\r\n{}\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 411")
    assert answer.count(b"HTTP/1.1") == 1


def test_half_a_body_is_not_handed_on(guard):
    proxy, _ = guard
    assert raw(proxy, b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{}") == b""


def test_a_body_without_a_sane_length_is_refused(guard):
    proxy, _ = guard
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(proxy.address).port, timeout=PATIENCE_SECONDS)
    connection.putrequest("POST", "/chat/completions")
    connection.putheader("Content-Length", str(LARGEST_BODY + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_silent_server_behind_is_said_in_one_line():
    with guarded("http://127.0.0.1:9/v1") as (proxy, _):
        status, _, reply = post(proxy, {"messages": [TASK]})
    assert status == 502
    assert json.loads(reply)["error"]["message"].endswith("check --base-url")


def test_many_at_once_are_all_answered(guard):
    proxy, _ = guard
    with ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda n: post(proxy, {"messages": [TASK], "n": n}), range(100)))
    assert [json.loads(reply)["body"]["n"] for _, _, reply in found] == list(range(100))


def test_the_number_of_conversations_is_bounded():
    conversations = Conversations()
    for number in range(MOST_CONVERSATIONS + 5):
        conversations.see(ModelRequest([{"role": "user", "content": f"question {number}"}]))
    assert len(conversations) == MOST_CONVERSATIONS


@pytest.mark.parametrize("address", ["ftp://somewhere", "http://", "http://host:99999/v1", "http://[half"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="is not the address of a server; give one such as"):
        GuardProxy(address, print)


def test_a_port_that_is_taken_is_said(guard):
    proxy, _ = guard
    with pytest.raises(UsageError, match="is in use; choose another"):
        GuardProxy("http://127.0.0.1:9", print, port=urlsplit(proxy.address).port)


class Uneven(BaseHTTPRequestHandler):
    """Breaks off its reply: of an announced length, in the middle of a piece, or between two."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        if self.path.endswith("/length"):
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half an answer")
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"3e8\r\nhalf" if self.path.endswith("/piece") else b"4\r\nhalf\r\n")
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("path", ["/length", "/piece", "/pieces"])
def test_a_reply_that_breaks_off_arrives_as_one(path):
    server = Patient(("127.0.0.1", 0), Uneven)
    with running(server), guarded(f"http://127.0.0.1:{server.server_address[1]}/v1") as (proxy, _):
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(proxy.address).port, timeout=PATIENCE_SECONDS)
        connection.request("POST", path, b"{}")
        response = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead) as broken:
            response.read()
        assert broken.value.partial.startswith(b"half")
        connection.close()


def test_an_analysis_that_hangs_delays_neither_its_agent_nor_others():
    """What is told about one conversation blocks; its own requests and those of others are answered all the same."""
    server = Patient(("127.0.0.1", 0), Upstream)
    told, hanging = threading.Event(), threading.Event()

    def tell(_):
        told.set()
        hanging.wait(PATIENCE_SECONDS)

    with running(server):
        proxy = GuardProxy(f"http://127.0.0.1:{server.server_address[1]}/v1", tell)
        thread = threading.Thread(target=proxy.serve, daemon=True)
        thread.start()
        messages = [
            message for n in range(9) for message in openai_call(n, "cat /repo/hot.py", "hot line of code\n" * 3)
        ]
        post(proxy, {"messages": [SYSTEM, TASK, *messages]})
        after = {"messages": [SYSTEM, TASK, {"role": "user", "content": "hot.py was read"}]}
        assert post(proxy, after)[0] == 201
        assert told.wait(PATIENCE_SECONDS)
        assert not hanging.is_set(), "the reply came while what was lost is still being told"
        assert post(proxy, after)[0] == 201, "the same conversation goes on"
        with ThreadPoolExecutor(20) as pool:
            others = [{"messages": [{"role": "system", "content": f"agent {n}"}, TASK]} for n in range(40)]
            assert {status for status, _, _ in pool.map(lambda body: post(proxy, body), others)} == {201}
        hanging.set()
        proxy.stop()
        thread.join()


AGENTS = 100


def test_a_hundred_agents_at_once_each_keep_their_own_conversation():
    server = Patient(("127.0.0.1", 0), Upstream)
    with running(server), guarded(f"http://127.0.0.1:{server.server_address[1]}/v1") as (proxy, told):

        def agent(number: int) -> list[str]:
            opening = {"role": "system", "content": f"agent {number}"}
            path = f"/repo/file{number}.py"
            calls = [one for n in range(6) for one in openai_call(n, f"cat {path}", f"line of {number}\n" * 3)]
            for body in ([opening, TASK, *calls], [opening, TASK, {"role": "user", "content": f"{path} was read"}]):
                status, headers, reply = post(proxy, {"messages": body})
                assert (status, json.loads(reply)["body"]["messages"]) == (201, body)
            return json.loads(headers.get(LOST_HEADER, "[]"))

        with ThreadPoolExecutor(AGENTS) as pool:
            lost = list(pool.map(agent, range(AGENTS)))
    assert [[path.rpartition("/")[2] for path in paths] for paths in lost] == [
        [f"file{number}.py"] for number in range(AGENTS)
    ]
    assert len(told) == AGENTS


def test_a_password_in_the_address_is_used_and_never_printed():
    server = Patient(("127.0.0.1", 0), Upstream)
    with running(server):
        upstream = f"http://agent:hunter2@127.0.0.1:{server.server_address[1]}/v1?key=s3cret"
        command = [sys.executable, "-m", "eirkit", "vestige", "guard", "--base-url", upstream, "--json"]
        with process_running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            first = json.loads(process.stdout.readline())
            with guarded(upstream) as (proxy, _):
                _, _, reply = post(proxy, {"messages": [TASK]})
            process.send_signal(signal.SIGINT)
            out, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    assert json.loads(reply)["key"] == "Basic " + b64encode(b"agent:hunter2").decode()
    assert first["upstream"] == f"http://127.0.0.1:{server.server_address[1]}/v1"
    assert not {"hunter2", "s3cret"} & {word for word in ("hunter2", "s3cret") if word in f"{first}{out}{complaints}"}
    with pytest.raises(UsageError) as refused:
        GuardProxy("ftp://agent:hunter2@host", print)
    assert "hunter2" not in str(refused.value)


def heavy_conversation() -> list[dict]:
    """Return requests whose analysis takes seconds, however quick the machine: megabytes of lines of a search."""
    text = "".join(f"a{number}.py:{number}:x = {number}\n" for number in range(60_000))
    calls = [one for n in range(4) for one in openai_call(n, "grep -rn x .", text[n * 300_000 :])]
    return [
        {"messages": [SYSTEM, TASK, *kept]} for kept in (calls, [*calls[:2], {"role": "user", "content": "Go on."}])
    ]


def processor_seconds(pid: int) -> float:
    """Return the processor time that a living process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def seconds_to_end(bodies: list[dict]) -> float | None:
    """Start the command, send requests, interrupt it while it analyses the last, and return what its end takes.

    In processor time, which other programs do not lengthen; None if the analysis was over before the interrupt.
    """
    import resource  # not on Windows

    server = Patient(("127.0.0.1", 0), Upstream)
    command = [sys.executable, "-m", "eirkit", "vestige", "guard", "--base-url"]
    command += [f"http://127.0.0.1:{server.server_address[1]}/v1", "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        running(server),
        process_running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        port = urlsplit(json.loads(process.stdout.readline())["address"]).port
        tasks = Path(f"/proc/{process.pid}/task")
        idle = len(list(tasks.iterdir()))
        for body in bodies:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
            connection.request("POST", "/chat/completions", json.dumps(body).encode())
            assert connection.getresponse().read()
            connection.close()
            # One more thread is there once the reply was passed on: that of the analysis.
            wait_until(lambda: len(list(tasks.iterdir())) <= idle + 1, "the reply was passed on", process)
        is_under_way = len(list(tasks.iterdir())) == idle + bool(bodies)
        used = processor_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        out, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (process.returncode, "Traceback" in complaints) == (130, False), complaints
    assert not out
    whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return whole - used if is_under_way else None


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the threads of a process in /proc")
def test_an_interrupt_ends_the_guard_within_a_second_while_it_reads_a_slow_output():
    """Within a second of what it takes on this machine to end a guard that is idle, which is little."""
    idle = seconds_to_end([])
    assert idle is not None
    busy = (seconds_to_end(heavy_conversation()) for _ in range(3))
    assert any(took is not None and took < idle + 1.0 for took in busy)
