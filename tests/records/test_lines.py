"""Record files: round trips, torn tails, damage, and real processes that write at once, die, or run out of room."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.records.lines import RecordWriter, encode, read_records
from tests.processes import PATIENCE_SECONDS, completed, running

SCHEMA = "run/1"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="relies on Linux signals, limits or devices")


def read(path: Path, schema: str = SCHEMA) -> list[dict]:
    return list(read_records(path, schema))


def append_records(path: Path, schema: str, records: list[dict], *, fsync: bool = False) -> None:
    with RecordWriter(path, schema, fsync=fsync) as writer:
        writer.append(*records)


def script(body: str, *arguments: object) -> list[object]:
    """Return the command of a process that has a RecordWriter at hand; `path` is its first argument."""
    head = "import os, signal, sys, time\nfrom pathlib import Path\nfrom eirkit.records.lines import RecordWriter\n"
    return [sys.executable, "-c", f"{head}path = Path(sys.argv[1])\n{body}", *arguments]


# Half of a surrogate pair has no UTF-8, yet logs contain it; two halves side by side are one character in JSON, so the
# generated text has at most one kind.
text = st.text(st.characters(exclude_categories=["Cs"])) | st.text(st.characters(categories=["Cs"]), max_size=1)
scalars = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(scalars | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=8)
records = st.dictionaries(text.filter(lambda key: key != "schema"), values, max_size=4)


@given(st.lists(records, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_round_trip(tmp_path, written):
    path = tmp_path / "property.jsonl"
    path.unlink(missing_ok=True)
    append_records(path, SCHEMA, written)
    assert read(path) == written
    assert path.read_bytes().count(b"\n") == len(written)
    path.read_text("utf-8")  # valid for every reader, not only ours


@given(records, st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_file_cut_anywhere_keeps_its_complete_records(tmp_path, record, data):
    path = tmp_path / "cut.jsonl"
    whole = encode(SCHEMA, {"i": 0}) + encode(SCHEMA, record)
    size = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:size])
    kept = [{"i": 0}, record][: whole[:size].count(b"\n")]
    assert read(path) == kept
    append_records(path, SCHEMA, [{"i": 2}])
    assert read(path) == [*kept, {"i": 2}]


def test_keys_keep_their_order_and_the_schema_comes_first():
    assert encode(SCHEMA, {"b": 1, "a": "–"}) == '{"schema":"run/1","b":1,"a":"–"}\n'.encode()


def test_lone_surrogates_are_escaped_into_valid_utf8():
    assert encode(SCHEMA, {"a": "x\ud800–"}) == b'{"schema":"run/1","a":"x\\ud800\\u2013"}\n'


def test_a_record_cannot_bring_its_own_schema():
    with pytest.raises(ValueError, match="rename that key"):
        encode(SCHEMA, {"schema": "run/2"})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused_before_anything_is_written(tmp_path, value):
    path = tmp_path / "r.jsonl"
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_records(path, SCHEMA, [{"ok": 1}, {"bad": value}])
    assert read(path) == []


def test_creates_the_folders_on_the_way(tmp_path):
    append_records(tmp_path / "a" / "b" / "r.jsonl", SCHEMA, [{}])
    assert read(tmp_path / "a" / "b" / "r.jsonl") == [{}]


def test_a_closed_writer_says_how_to_use_it(tmp_path):
    with pytest.raises(ValueError, match="with statement"):
        RecordWriter(tmp_path / "r.jsonl", SCHEMA).append({})


def test_torn_tail_longer_than_one_block_is_removed(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(encode(SCHEMA, {"i": 1}) + b'{"schema":"run/1","x":"' + b"y" * 200_000)
    append_records(path, SCHEMA, [{"i": 2}])
    assert path.read_bytes() == encode(SCHEMA, {"i": 1}) + encode(SCHEMA, {"i": 2})


@pytest.mark.parametrize("torn", [b"", b"{", b'{"schema":"ru', b'{"schema":"run/1","x":3'])
def test_a_file_that_is_only_a_torn_tail_starts_anew(tmp_path, torn):
    path = tmp_path / "r.jsonl"
    path.write_bytes(torn)
    append_records(path, SCHEMA, [{"i": 1}])
    assert read(path) == [{"i": 1}]


@pytest.mark.parametrize(
    "content", [b"# notes\nlast line without newline", b"x", encode("run/2", {}), encode("run/10", {}), b'{"a":1}\n']
)
def test_appending_to_a_file_of_another_kind_is_refused_and_leaves_it_alone(tmp_path, content):
    path = tmp_path / "notes.md"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match="is not a file of 'run/1' records; write to another file"):
        append_records(path, SCHEMA, [{"i": 1}])
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b'{"schema":"run/1","x":\n', r"r\.jsonl:2: not JSON .*remove the line or restore the file"),
        (b"\n", r":2: not JSON"),
        (b"\xff\xfe\n", r":2: not JSON"),
        (b"\x00" * 40 + b"\n", r":2: not JSON"),
        (b"[" * 100_000 + b"\n", r":2: not JSON"),
        (encode("run/2", {}), r":2: schema 'run/2', expected 'run/1'; use the version that wrote it"),
        (b"[1]\n", r":2: schema None"),
        (b'{"x":1}\n', r":2: schema None"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, damage, message):
    path = tmp_path / "r.jsonl"
    path.write_bytes(encode(SCHEMA, {"i": 1}) + damage + encode(SCHEMA, {"i": 3}))
    reader = read_records(path, SCHEMA)
    assert next(reader) == {"i": 1}
    with pytest.raises(InputFileError, match=message):
        next(reader)


def test_a_line_of_the_limit_is_read_and_one_byte_more_is_refused(tmp_path):
    path = tmp_path / "r.jsonl"
    line = encode(SCHEMA, {"x": "y" * 100})
    path.write_bytes(line)
    assert list(read_records(path, SCHEMA, limit_bytes=len(line))) == [{"x": "y" * 100}]
    with pytest.raises(InputFileError, match=rf":1: line longer than {len(line) - 1} bytes"):
        list(read_records(path, SCHEMA, limit_bytes=len(line) - 1))


@pytest.mark.parametrize("name", ["nothing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, name):
    with pytest.raises(InputFileError, match="check the path"):
        read(tmp_path / name)


@LINUX
def test_fsync_happens_exactly_when_asked_for():
    # The null device accepts every write and refuses fsync, so the system itself says whether it was called.
    append_records(Path("/dev/null"), SCHEMA, [{"i": 1}], fsync=False)
    with pytest.raises(OSError, match="Invalid argument"):
        append_records(Path("/dev/null"), SCHEMA, [{"i": 1}], fsync=True)


def test_fsync_of_a_new_file_in_a_new_folder(tmp_path):
    path = tmp_path / "new" / "r.jsonl"
    append_records(path, SCHEMA, [{"i": 1}], fsync=True)
    assert read(path) == [{"i": 1}]


def test_concurrent_processes_lose_and_mix_nothing(tmp_path):
    path, each, writers = tmp_path / "r.jsonl", 150, 4
    path.write_bytes(b'{"schema":"run/1","torn":')
    body = (
        "who, each = int(sys.argv[2]), int(sys.argv[3])\n"
        "with RecordWriter(path, 'run/1') as writer:\n"
        "    for i in range(each):\n"
        "        writer.append({'who': who, 'i': i, 'pad': 'x' * (i * 997 % 70_000)}, {'who': who, 'i': i})\n"
    )
    with ExitStack() as stack:
        processes = [stack.enter_context(running(script(body, path, who, each))) for who in range(writers)]
        assert [process.wait(PATIENCE_SECONDS) for process in processes] == [0] * writers
    found = read(path)
    for who in range(writers):
        assert [r["i"] for r in found if r["who"] == who] == [i for i in range(each) for _ in range(2)]
    assert all((a["who"], a["i"]) == (b["who"], b["i"]) for a, b in zip(found[::2], found[1::2], strict=True))


def test_threads_share_one_writer(tmp_path):
    path, each, usual = tmp_path / "r.jsonl", 1500, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change over inside an append, not between two
    try:
        with RecordWriter(path, SCHEMA) as writer:

            def work(who: int) -> None:
                for i in range(each):
                    writer.append({"who": who, "i": i})

            threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    found = read(path)
    assert all([r["i"] for r in found if r["who"] == who] == list(range(each)) for who in range(4))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no fork on this system")
def test_a_forked_child_may_go_on_with_its_parents_writer(tmp_path):
    path = tmp_path / "r.jsonl"
    body = (
        "with RecordWriter(path, 'run/1') as writer:\n"
        "    child = os.fork()\n"
        "    for i in range(4000):\n"
        "        writer.append({'child': child == 0, 'i': i})\n"
        "    if child: os.waitpid(child, 0)\n"
    )
    assert completed(script(body, path)).stderr == ""
    found = read(path)
    assert all([r["i"] for r in found if r["child"] is side] == list(range(4000)) for side in (True, False))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_writers_cost_at_most_the_record_they_were_writing(tmp_path):
    path = tmp_path / "r.jsonl"
    body = (
        "with RecordWriter(path, 'run/1', fsync=True) as writer:\n"
        "    for i in range(10**9):\n"
        "        writer.append({'who': sys.argv[2], 'i': i, 'pad': 'x' * 3_000_000})\n"
        "        print(i, flush=True)\n"
    )
    promised = {}
    for who in ("a", "b", "c"):
        with running(script(body, path, who), stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(0.05)  # long enough to be somewhere inside a write, wherever that is
            process.kill()
            printed = process.communicate()[0].split()
        assert process.returncode == -signal.SIGKILL
        promised[who] = int(printed[-1]) if printed else 0
    append_records(path, SCHEMA, [{"who": "end", "i": 0}])
    found = read(path)
    assert found[-1] == {"who": "end", "i": 0}
    for who, last in promised.items():
        indices = [r["i"] for r in found if r["who"] == who]
        assert indices == list(range(len(indices)))
        # What was promised is there; at most one more was on disk before its promise could be printed.
        assert last <= indices[-1] <= last + 1


@LINUX
def test_a_writer_killed_in_the_middle_of_a_line_leaves_a_tail_that_readers_ignore(tmp_path):
    path = tmp_path / "r.jsonl"
    body = (
        "import resource\n"
        "with RecordWriter(path, 'run/1') as writer:\n"
        "    writer.append({'i': 0})\n"
        "    # The system stops the second line at byte 5000 and kills whoever writes on.\n"
        "    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "    writer.append({'i': 1, 'pad': 'x' * 10_000})\n"
    )
    assert completed(script(body, path)).returncode == -signal.SIGXFSZ
    assert path.stat().st_size == 5000
    assert read(path) == [{"i": 0}]
    append_records(path, SCHEMA, [{"i": 2}])
    assert read(path) == [{"i": 0}, {"i": 2}]


@LINUX
def test_a_full_disk_takes_all_of_an_append_back(tmp_path):
    path = tmp_path / "r.jsonl"
    body = (
        "import resource\n"
        "with RecordWriter(path, 'run/1') as writer:\n"
        "    writer.append({'i': 0})\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "    try:\n"
        "        writer.append({'i': 1}, {'i': 2, 'pad': 'x' * 10_000})\n"
        "    except OSError as error:\n"
        "        print(error.strerror)\n"
        "    writer.append({'i': 3})\n"
    )
    done = completed(script(body, path))
    assert (done.stdout, done.stderr) == ("File too large\n", "")
    assert read(path) == [{"i": 0}, {"i": 3}]


def test_other_programs_can_read_the_file(tmp_path):
    path = tmp_path / "r.jsonl"
    append_records(path, SCHEMA, [{"a": "ü\u2028x"}])
    assert [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] == [{"schema": SCHEMA, "a": "ü\u2028x"}]
