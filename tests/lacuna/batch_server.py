"""A server on loopback that speaks the batch APIs of OpenAI, Anthropic and Google."""

from __future__ import annotations

import json
import sys
import threading
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.lacuna.servers import Received, answers_as


class BatchServer:
    """Keeps files and batches as the providers' documentation says; a batch ends at the second question about it."""

    def __init__(self, refuse: str = "", ends: str = "completed", without: int = 0, busy: int = 0) -> None:
        self.refuse, self.ends, self.without = refuse, ends, without
        self.busy = busy  # questions for a state that get a 503
        self.batches: list[list[dict[str, Any]]] = []  # requests of each
        self.direct, self.asked, self.files = 0, {}, {}
        self.further: list[bytes] = []  # lines that stand before the results
        self.answer = answers_as("calculator")
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body of a reply in one packet

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) == length:  # else the client was killed
                    self.reply(server.post(self.path, self.headers, body))

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

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that was killed
                    raise

        self.http = Quiet(("127.0.0.1", 0), Handler)
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
            return self.lines(lines)
        number = int(parts[-1])
        self.asked[number] = self.asked.get(number, 0) + 1
        if parts[2] == "messages":
            return self.anthropic(number, "ended" if self.asked[number] > 1 else "in_progress")
        if path.startswith("/v1/v1"):
            return self.google(number)
        if self.asked[number] < 2:
            return self.openai(number, "in_progress")
        results = [self.result(one) for one in self.batches[number][self.without :]]
        self.files[f"out-{number}"] = self.lines(results)
        return self.openai(number, self.ends)

    def lines(self, results: list[dict[str, Any]]) -> bytes:
        """Return results as a file, in no order."""
        texts = [json.dumps(one, ensure_ascii=False).encode() for one in reversed(results)]
        return b"\n".join([*self.further, *texts])

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
