"""What every format owes its users, checked for all of the registry: each knows its own logs and no other's, and no
input whatever makes it raise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from eirkit.errors import EirkitError, InputFileError
from eirkit.logs.sources.documents import Document, Skipped, open_document
from eirkit.logs.trajectory import Call, Format, RecordedTurn, Recording, formats
from tests.vestige.formats.samples import run_paths, sample_files, write_sample

NAMES = formats.names()
every_format = pytest.mark.parametrize("name", NAMES)
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def reader(name: str) -> Format:
    return formats.get(name)()


def recognising(document: Document) -> list[str]:
    return [name for name in NAMES if reader(name).recognises(document)]


def has_beginning(document: Document) -> bool:
    """False for a torn compressed file: no format is asked about it."""
    try:
        return document.head is not None
    except InputFileError:
        return False


def read(name: str, path: Path) -> list[Recording | Skipped]:
    """Read a file as the corpus does: what our own errors say is said of the file."""
    document = open_document(path)
    try:
        return list(reader(name).read(document))
    except EirkitError as error:
        return [Skipped(document.source, str(error))]


def check(items: list[Recording | Skipped], name: str) -> None:
    """Check the shape of whatever a reader yields."""
    for item in items:
        assert isinstance(item, Recording | Skipped)
        assert item.source
        if isinstance(item, Skipped):
            assert item.reason
            continue
        assert item.run_id
        assert item.task_id
        assert item.format == name
        assert all(isinstance(turn, RecordedTurn) for turn in item.turns)
        for call in (call for turn in item.turns for call in turn.calls):
            assert isinstance(call, Call)
            assert isinstance(call.tool, str)
            assert isinstance(call.output, str)
            assert call.exit_code is None or isinstance(call.exit_code, int)


@every_format
def test_a_format_says_what_it_reads(name):
    assert (formats.get(name).__doc__ or "").strip()


@every_format
def test_its_logs_are_recognised_by_it_alone(name, tmp_path):
    paths = write_sample(name, tmp_path)
    assert paths
    for path in paths:
        assert recognising(open_document(path)) == [name], path


@every_format
def test_its_logs_hold_runs_and_nothing_is_skipped(name, tmp_path):
    for path in write_sample(name, tmp_path):
        items = read(name, path)
        check(items, name)
        assert items
        assert [item for item in items if isinstance(item, Skipped)] == []


@every_format
def test_reading_twice_gives_the_same(name, tmp_path):
    for path in write_sample(name, tmp_path):
        assert read(name, path) == read(name, path)


@every_format
@pytest.mark.parametrize("where", [0.1, 0.5, 0.9, 0.999])
def test_a_torn_file_is_skipped_with_a_reason_or_read_in_part(name, where, tmp_path):
    for path in write_sample(name, tmp_path):
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * where)])
        recognising(open_document(path))
        check(read(name, path), name)


@every_format
@quick
@given(content=st.binary(max_size=200))
@example(content=b"")
@example(content=b"{")
@example(content=b"[" * 1000)
@example(content=b'{"messages": [null, {"role": ["a"], "tool_calls": {"x": 1}}]}')
def test_no_bytes_make_it_raise(name, content, tmp_path):
    path = tmp_path / "log.json"
    path.write_bytes(content)
    if has_beginning(open_document(path)):
        assert reader(name).recognises(open_document(path)) in (True, False)
    check(read(name, path), name)


@every_format
@quick
@given(value=values)
def test_no_json_makes_it_raise(name, value, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(value, ensure_ascii=True))
    reader(name).recognises(open_document(path))
    check(read(name, path), name)


def _places(value: object, found: list[tuple[object, object]]) -> list[tuple[object, object]]:
    """List every (container, key) inside a JSON value."""
    waiting = [value]
    while waiting:
        container = waiting.pop()
        keys = (
            list(container)
            if isinstance(container, dict)
            else range(len(container))
            if isinstance(container, list)
            else ()
        )
        for key in keys:
            found.append((container, key))
            waiting.append(container[key])
    return found


@every_format
@quick
@given(data=st.data())
def test_a_log_with_one_value_replaced_makes_it_no_worse_than_skipped(name, data, tmp_path):
    paths = [path for path in run_paths(name) if path.endswith((".json", ".jsonl", ".traj"))]
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    lines = [json.loads(line) for line in sample_files(name)[path].splitlines() if line.strip()]
    container, key = data.draw(st.sampled_from(_places(lines, [])))
    container[key] = data.draw(values)
    write_sample(name, tmp_path)
    (tmp_path / path).write_text("\n".join(map(json.dumps, lines)))
    recognising(open_document(tmp_path / path))
    check(read(name, tmp_path / path), name)
