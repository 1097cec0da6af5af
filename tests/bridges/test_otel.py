"""Runs as traces: what is exported reads back as the same run, and is what OpenTelemetry's own code understands."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run as run_command_line
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import Recording, Trajectory, formats
from eirkit_bridges.otel import SECOND, otlp_line
from eirkit_bridges.otel_export import recording_trace
from tests.bridges.driving import telemetry
from tests.vestige.formats.samples import write_sample

START = "2026-01-31T12:00:00Z"
SUM, RECOVERER = "--workload stepwise-sum", "--model reference/recoverer"
SWEEPS = {
    "controlled": f"{SUM} --h 2,4 --model reference/calculator",
    "memory": f"--workload store-recall --h 2 {RECOVERER} --memory key-value",
    "recovery": f"{SUM} --h 2 --condition lru --b 6 {RECOVERER}",
    "tools": f"{SUM} --h 2 --condition kv --protocol tools {RECOVERER}",
    "schema": f"{SUM} --h 2 --condition kv --protocol schema {RECOVERER}",
    "summaries": f"{SUM} --condition compaction --context-tokens 64 {RECOVERER}",
    "wrong": f"{SUM} --h 2 --model reference/guesser",
}


def sweep(folder: Path, name: str) -> Path:
    task = ("--n", "12", "--m", "4", "--seeds", "0:2", "--out", str(folder / "sweep"))
    assert run_command_line(["lacuna", "run", *SWEEPS[name].split(), *task]) == 0
    return folder / "sweep"


def export(folder: Path, out: Path, *options: str) -> Path:
    assert run_command_line(["export", "otel", str(folder), "--out", str(out), "--since", START, *options]) == 0
    return out


def runs(path: Path) -> list[Recording]:
    found = list(read_corpus([path]))
    assert not [item for item in found if isinstance(item, Skipped)]
    return found


def measured(recording: Recording) -> Trajectory:
    return interpret(recording, len)


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_reads_back_from_its_traces_as_from_its_own_records(name, tmp_path):
    folder = sweep(tmp_path, name)
    native, traced = runs(folder), runs(export(folder, tmp_path / "traces.jsonl"))
    assert len(native) == len(traced) > 0
    for own, other in zip(native, traced, strict=True):
        assert own.turns == other.turns
        assert [turn.tokens for turn in measured(own).turns] == [turn.tokens for turn in measured(other).turns]
        alike = replace(own, format="otlp", source=other.source, prompt=other.prompt, details=other.details)
        assert other == alike


def test_a_conversation_is_told_with_what_the_memory_stored_and_found(tmp_path):
    told = [
        "--workload",
        "words",
        "--preset",
        "small",
        "--memory",
        "bm25",
        "--model",
        "scripted/reader",
        "--seeds",
        "0",
    ]
    assert run_command_line(["lacuna", "run", *told, "--no-control", "--out", str(tmp_path / "sweep")]) == 0
    found = spans(export(tmp_path / "sweep", tmp_path / "traces.jsonl"))
    stored, sought = ([one for one in found if one["name"] == name] for name in ("upsert_memory", "search_memory"))
    records = [event["text"] for event in telemetry(tmp_path / "sweep") if event.get("verb") == "observe"]
    assert [json.loads(attributes(one)["gen_ai.memory.records"])[0]["content"] for one in stored] == records
    assert all(attributes(one)["gen_ai.memory.query.text"] for one in sought)
    assert len(sought) > len(stored) > 0


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}


def spans(path: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, path.read_text().splitlines())
    return [span for line in lines for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def test_every_operation_is_told_once_and_within_its_parent(tmp_path):
    folder = sweep(tmp_path, "memory")
    told = spans(export(folder, tmp_path / "traces.jsonl"))
    events = [event for event in telemetry(folder) if "type" in event]
    kinds = Counter(event["type"] for event in events)
    verbs = Counter(event["verb"] for event in events if event["type"] == "memory")
    names = Counter(attributes(span).get("gen_ai.operation.name", span["name"]) for span in told)
    assert names["invoke_agent"] == 2
    assert names["turn"] == kinds["decision"]
    assert names["chat"] == kinds["exchange"]
    assert names["execute_tool"] == kinds["action"]
    assert names["search_memory"] == verbs["search"] > 0
    assert names["upsert_memory"] == verbs["write"] > 0
    by_id = {span["spanId"]: span for span in told}
    assert len(by_id) == len(told)
    for span in told:
        assert int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"])
        if "parentSpanId" in span:
            above = by_id[span["parentSpanId"]]
            assert above["traceId"] == span["traceId"]
            assert int(above["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(above["endTimeUnixNano"])
        if attributes(span).get("gen_ai.operation.name") == "search_memory":
            assert by_id[span["parentSpanId"]]["name"] == "execute_tool search"


def test_exporting_twice_gives_the_same_bytes_and_no_text_where_none_is_wanted(tmp_path):
    folder = sweep(tmp_path, "memory")
    first, again = export(folder, tmp_path / "a.jsonl"), export(folder, tmp_path / "b.jsonl")
    assert first.read_bytes() == again.read_bytes()
    bare = export(folder, tmp_path / "c.jsonl", "--no-texts")
    assert [span["spanId"] for span in spans(bare)] == [span["spanId"] for span in spans(first)]
    kept = {name for span in spans(bare) for name in attributes(span)}
    assert not [name for name in kept if name.endswith((".messages", "instructions", ".result", ".records", ".text"))]


@pytest.mark.parametrize("name", sorted(set(formats.names())))
def test_a_recorded_run_of_any_format_reads_back_from_its_trace(name, tmp_path):
    for path in write_sample(name, tmp_path):
        for run in formats.get(name)().read(open_document(path)):
            (tmp_path / "trace.otlp").write_bytes(otlp_line(recording_trace(run, SECOND)))
            (again,) = formats.get("otlp")().read(open_document(tmp_path / "trace.otlp"))
            assert again.turns == run.turns
            alike = replace(run, format="otlp", source=again.source, details=again.details)
            assert again == alike


def as_protobuf(line: str) -> Any:
    """Parse a line by OpenTelemetry's own definitions: OTLP/JSON is theirs, save that ids are hexadecimal."""
    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    document = json.loads(line)
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(document, TracesData())


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A collector on loopback that keeps what it is sent."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    received: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def by_key(span: Any) -> dict[str, Any]:
    return {pair.key: pair.value for pair in span.attributes}


def test_the_file_and_the_sdk_say_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = sweep(tmp_path, "memory")
    with collector() as (url, received):
        export(folder, tmp_path / "traces.jsonl", "--out", url)
    written = [as_protobuf(line) for line in (tmp_path / "traces.jsonl").read_text().splitlines()]
    assert len(written) == len(received) == 2
    for ours, theirs in zip(written, received, strict=True):
        own = ours.resource_spans[0].scope_spans[0].spans
        other = theirs.resource_spans[0].scope_spans[0].spans
        assert len(own) == len(other)
        for one, two in zip(own, other, strict=True):
            fields = ("trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano")
            assert [getattr(one, name) for name in fields] == [getattr(two, name) for name in fields]
            assert one.end_time_unix_nano == two.end_time_unix_nano
            assert by_key(one) == by_key(two)
            assert one.status == two.status
            assert [event.name for event in one.events] == [event.name for event in two.events]


def test_a_collector_that_refuses_is_a_failure_of_the_world(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = sweep(tmp_path, "wrong")
    with collector(status=400) as (url, _):
        assert run_command_line(["export", "otel", str(folder), "--out", url]) == 1
    assert "did not accept a trace" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Missing option '--out'"),
        (("--out", "x.jsonl", "--since", "noon"), "write it like 2026-01-31T12:00:00Z"),
        (("--out", "x.jsonl", "--since", "1960-01-01"), "before 1970"),
    ],
)
def test_wrong_usage_is_told_in_one_line(options, said, tmp_path, capsys):
    assert run_command_line(["export", "otel", str(tmp_path), *options]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_without_runs_leaves_no_file(tmp_path, capsys):
    (tmp_path / "notes.json").write_text('{"a": 1}')
    assert run_command_line(["export", "otel", str(tmp_path), "--out", str(tmp_path / "out.jsonl")]) == 2
    assert "holds no finished run" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.json"]
