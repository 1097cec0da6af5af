"""Batch APIs of OpenAI, Anthropic and Google, spoken by a loopback server to the SDKs; the last two need theirs."""

from __future__ import annotations

import asyncio
import json
import threading
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

from eirkit.agents.model import Message, ModelOptions, Request
from eirkit.agents.serving.metered import make_metered
from eirkit.agents.serving.model_factory import make_model
from eirkit.cli import run as command_line
from eirkit.errors import ModelError, UsageError
from eirkit.runs.store import RUNS, scan_runs
from tests.lacuna.servers import Received, answers_as

PRICES = '[prices]\n"openai/any" = { input = 100, output = 400, as_of = 2026-01-01 }\n'


class BatchServer:
    """Keeps files and batches as the providers' documentation says; a batch ends at the second question about it."""

    def __init__(self, refuse: str = "", ends: str = "completed", without: int = 0, busy: int = 0) -> None:
        self.refuse, self.ends, self.without = refuse, ends, without
        self.busy = busy  # questions for a state that get a 503
        self.batches: list[list[dict[str, Any]]] = []  # requests of each
        self.direct, self.asked, self.files = 0, {}, {}
        self.answer = answers_as("calculator")
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.reply(server.post(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"]))))

            def do_GET(self) -> None:
                if server.busy:
                    server.busy -= 1
                    self.reply({"error": {"message": "busy", "code": 503}}, 503)
                else:
                    self.reply(server.get(self.path))

            def reply(self, document: Any, status: int = 200) -> None:
                text = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def __enter__(self) -> BatchServer:
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def post(self, path: str, headers: Any, body: bytes) -> Any:
        if path == "/v1/files":
            head = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
            parts = {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                for part in BytesParser().parsebytes(head + body).get_payload()
            }
            assert parts["purpose"] == b"batch"
            self.files[name := f"file-{len(self.files)}"] = parts["file"]
            return {"id": name, "object": "file", "bytes": len(body), "created_at": 1, "filename": "batch.jsonl"} | {
                "purpose": "batch",
                "status": "processed",
            }
        asked = json.loads(body)
        if path == "/v1/batches":
            assert asked["completion_window"] == "24h"
            lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
            assert {line["url"] for line in lines} == {asked["endpoint"]}
            self.batches.append(lines)
            return self.openai(len(self.batches) - 1, "validating", asked["endpoint"])
        if path == "/v1/messages/batches":
            self.batches.append(asked["requests"])
            return self.anthropic(len(self.batches) - 1, "in_progress")
        if path.endswith("/models/any:batchGenerateContent"):
            self.batches.append(asked["batch"]["inputConfig"]["requests"]["requests"])
            return {"name": f"batches/{len(self.batches) - 1}", "metadata": {"state": "BATCH_STATE_PENDING"}}
        self.direct += 1
        return self.completion(asked)

    def get(self, path: str) -> Any:
        parts = path.split("/")
        if parts[2] == "files":
            return self.files[parts[3]]
        if path.endswith("/results"):
            lines = [
                {"custom_id": one["custom_id"], "result": {"type": "succeeded", "message": self.message(one["params"])}}
                for one in self.batches[int(parts[4])]
            ]
            return "\n".join(map(json.dumps, reversed(lines))).encode()
        number = int(parts[-1])
        self.asked[number] = self.asked.get(number, 0) + 1
        if parts[2] == "messages":
            return self.anthropic(number, "ended" if self.asked[number] > 1 else "in_progress")
        if path.startswith("/v1/v1"):
            return self.google(number)
        if self.asked[number] < 2:
            return self.openai(number, "in_progress")
        results = [self.result(one) for one in self.batches[number][self.without :]]
        self.files[f"out-{number}"] = "\n".join(map(json.dumps, reversed(results))).encode()  # in no order
        return self.openai(number, self.ends)

    def openai(self, number: int, status: str, endpoint: str = "/v1/chat/completions") -> dict[str, Any]:
        found = {"id": str(number), "object": "batch", "endpoint": endpoint, "input_file_id": "x", "created_at": 1}
        found |= {"completion_window": "24h", "status": status}
        if status == "failed":
            return found | {"errors": {"object": "list", "data": [{"message": "no such model", "code": "x"}]}}
        return found | ({"output_file_id": f"out-{number}"} if status == self.ends else {})

    def anthropic(self, number: int, status: str) -> dict[str, Any]:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        times = {"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z"}
        return {
            "id": str(number),
            "type": "message_batch",
            "processing_status": status,
            "request_counts": counts,
        } | times

    def google(self, number: int) -> dict[str, Any]:
        if self.asked[number] < 2:
            return {"name": f"batches/{number}", "metadata": {"state": "BATCH_STATE_RUNNING"}}
        if self.ends != "completed":
            return {"name": f"batches/{number}", "metadata": {"state": f"BATCH_STATE_{self.ends.upper()}"}}
        listed = list(map(self.generated, self.batches[number][self.without :]))
        state = {"state": "BATCH_STATE_SUCCEEDED", "output": {"inlinedResponses": {"inlinedResponses": listed}}}
        return {"name": f"batches/{number}", "metadata": state, "done": True}

    def generated(self, one: dict[str, Any]) -> dict[str, Any]:
        asked, config = one["request"], one["request"]["generationConfig"]
        if self.refuse and self.refuse in config:
            return {"metadata": one["metadata"], "error": {"code": 3, "message": f"{self.refuse} is not supported"}}
        parts = [asked["systemInstruction"], *asked["contents"]] if "systemInstruction" in asked else asked["contents"]
        roles = ["system", *["user"] * len(asked["contents"])][-len(parts) :]
        texts = [{"role": role, "content": part["parts"][0]["text"]} for role, part in zip(roles, parts, strict=True)]
        text = self.completion({"messages": texts})["choices"][0]["message"]["content"]
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 8, "thoughtsTokenCount": 2, "totalTokenCount": 110}
        found = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
        return {"metadata": one["metadata"], "response": {"candidates": [found], "usageMetadata": usage}}

    def result(self, one: dict[str, Any]) -> dict[str, Any]:
        if self.refuse and self.refuse in one["body"]:
            error = {"message": f"Unsupported parameter: '{self.refuse}'", "param": self.refuse, "code": "unsupported"}
            response = {"status_code": 400, "request_id": "x", "body": {"error": error}}
        else:
            response = {"status_code": 200, "request_id": "x", "body": self.completion(one["body"])}
        return {"id": "x", "custom_id": one["custom_id"], "response": response, "error": None}

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        return json.loads(self.answer(Received("", {}, body)).body)

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": "system", "content": body["system"]}, *body["messages"]]
        text = self.completion({"messages": messages})["choices"][0]["message"]["content"]
        usage = {"input_tokens": 100, "output_tokens": 10}
        return {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"} | {
            "content": [{"type": "text", "text": text}],
            "usage": usage,
        }


def sweep(server: BatchServer, tmp_path: Any, *more: str, model: str = "openai/any") -> list[dict[str, Any]]:
    (prices := tmp_path / "prices.toml").write_text(PRICES.replace("openai/any", model))
    task = ["stepwise-sum", "--n", "6", "--m", "4", "--h", "2", "--seeds", "0:5", "--model", model]
    words = ["lacuna", "run", *task, "--base-url", server.url, "--prices", str(prices), "--connections", "2"]
    folder = tmp_path / f"out-{len(more)}"
    assert command_line([*words, "--out", str(folder), "--json", *more]) == 0
    return [dict(record) for record, _ in scan_runs(folder / RUNS)]


def test_a_batch_holds_the_next_step_of_every_run_and_costs_half(tmp_path):
    with BatchServer() as server:
        batched = sweep(server, tmp_path, "--set", "batch=0.05")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
        plain = sweep(server, tmp_path)
        assert server.direct == 30
    assert {one["seed"]: one["score"] for one in batched} == {one["seed"]: one["score"] for one in plain}
    full = 6 * (100 * 100 + 10 * 400) / 1e6  # dollars a run
    assert [one["usage"]["cost_usd"] for one in plain] == pytest.approx([full] * 5)
    assert [one["usage"]["cost_usd"] for one in batched] == pytest.approx([full / 2] * 5)


@pytest.mark.skipif(find_spec("anthropic") is None, reason="needs the anthropic SDK; `make test-native`")
def test_message_batches_are_read_like_messages(tmp_path):
    with BatchServer() as server:
        found = sweep(server, tmp_path, "--set", "batch=0.05", "--set", "api=messages", model="anthropic/any")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
    assert {one["score"]["answered"] for one in found} == {6}
    assert [one["usage"]["cost_usd"] for one in found] == pytest.approx([6 * 14_000 / 2e6] * 5)


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


needs_google = pytest.mark.skipif(not is_installed("google.genai"), reason="needs Google's SDK; `make test-native`")


@needs_google
def test_jobs_of_google_are_read_like_its_responses(tmp_path):
    body = '{"generationConfig": {"thinkingConfig": {"thinkingBudget": 64}}}'
    with BatchServer() as server:
        chosen = ("--set", "batch=0.05", "--set", "api=gemini", "--set", f"body={body}")
        found = sweep(server, tmp_path, *chosen, model="google/any")
        assert (server.direct, [len(one) for one in server.batches]) == (0, [5] * 6)
    sent = server.batches[0][0]["request"]
    assert sent["model"] == "models/any"
    assert list(sent["generationConfig"]["thinkingConfig"].values()) == [64]  # the SDK has its own spelling of names
    assert {one["score"]["answered"] for one in found} == {6}
    assert [one["usage"]["cost_usd"] for one in found] == pytest.approx([6 * 14_000 / 2e6] * 5)
    assert {one["usage"]["reasoning_tokens"] for one in found} == {12}


@needs_google
def test_jobs_of_google_are_split_by_size_and_adapt_to_refusals(monkeypatch):
    monkeypatch.setattr("eirkit.agents.serving.batches._LARGEST_INLINE", 1)
    with BatchServer(refuse="seed", busy=1) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server, "google/any", times=2, api="gemini") == "ok ok"
    assert sorted("seed" in one["request"]["generationConfig"] for (one,) in server.batches) == [False] * 2 + [True] * 2


@needs_google
@pytest.mark.parametrize(("ends", "without", "kind"), [("failed", 0, "rejected"), ("completed", 1, "server")])
def test_what_google_does_not_answer_is_a_failure_with_its_kind(ends, without, kind):
    with BatchServer(ends=ends, without=without) as server, pytest.raises(ModelError) as failure:
        ask(server, "google/any", api="gemini")
    assert failure.value.kind == kind


def test_a_busy_server_does_not_lose_a_batch():
    with BatchServer(busy=3) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server) == "ok"
    assert len(server.batches) == 1


def ask(server: BatchServer, name: str = "openai/any", times: int = 1, **more: Any) -> str:
    options = ModelOptions(base_url=server.url, retries=0, extra={"batch": 0.02, **more})
    model = make_metered(name, options)
    prompt = "WORKLOAD stepwise-sum n=2 q=10\nRETAINED 0\nSTEP 01 add\nINPUT 3"

    async def once() -> str:
        try:
            replies = (model.reply(Request((Message("user", prompt),))) for _ in range(times))
            return " ".join([one.text for one in await asyncio.gather(*replies)])
        finally:
            await model.close()

    return asyncio.run(once())


def test_a_parameter_that_a_batch_refuses_is_left_out_of_the_next():
    with BatchServer(refuse="temperature") as server:
        server.answer = answers_as("calculator")
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        assert ask(server) == "ok"
    assert [["temperature" in one["body"] for one in batch] for batch in server.batches] == [[True], [False]]


PLAIN = json.dumps(
    {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]}
)


@pytest.mark.parametrize(("ends", "without", "kind"), [("failed", 0, "rejected"), ("expired", 1, "server")])
def test_what_a_batch_does_not_answer_is_a_failure_with_its_kind(ends, without, kind):
    with BatchServer(ends=ends, without=without) as server:
        server.completion = lambda body: json.loads(PLAIN)  # type: ignore[method-assign]
        with pytest.raises(ModelError) as failure:
            ask(server)
    assert failure.value.kind == kind


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("google/any", {"batch": True}),
        ("anthropic/any", {"batch": True}),
        ("openai/any", {"batch": "yes"}),
        ("openai/any", {"batch": -1}),
    ],
)
def test_batches_are_refused_where_there_are_none(model, extra):
    with pytest.raises(UsageError, match="batch"):
        make_model(model, ModelOptions(extra=extra))
