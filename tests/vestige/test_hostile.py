"""Logs made to do harm: every one ends in a clear message, nothing outside --out is written, nothing in them is run."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import ReadLimits, Skipped
from eirkit.vestige.trajectory import formats
from tests import warm
from tests.fuzz_formats import damage, fuzz, until_cases
from tests.processes import completed
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.formats.samples import run_paths, sample_files, write_sample

LONGEST = (
    30 * UNITS_IN_A_SECOND
)  # for a hole of ten gigabytes, which takes a thousandth of it when it is given up early
FUZZED = 500  # cases, so that every format has some dozens
SMALL = ReadLimits(document_bytes=1 << 22, line_bytes=1 << 20, nesting=200)
every_format = pytest.mark.parametrize("name", formats.names())
SOUND = b'{"run_id": "r", "goal_files": ["a.py"], "turns": [{"reads": [{"path": "a.py", "tokens": 3}]}]}\n'


def analyze(*paths: Path, out: Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [
        warm.programs() / "eirkit",
        "vestige",
        "analyze",
        *map(str, paths),
        "--out",
        str(out),
        "--json",
        *options,
    ]
    return completed(command)


def zipped(members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def overlapping(copies: int) -> bytes:
    """A small archive whose members all point at the same megabyte of zeros."""
    content = bytearray(zipped({"0.json": b"0" * (1 << 24)}))
    start = content.index(b"PK\x01\x02")
    end = content.index(b"PK\x05\x06")
    entry = bytes(content[start:end])
    entries = b"".join(entry.replace(b"0.json", f"{index % 10}.json".encode()) for index in range(copies))
    tail = bytearray(content[end:])
    tail[8:12] = copies.to_bytes(2, "little") * 2
    tail[12:16] = len(entries).to_bytes(4, "little")
    return bytes(content[:start]) + entries + bytes(tail)


def damaged_schema() -> bytes:
    """A database whose schema cannot be parsed; SQLite quotes a name in its message that is not UTF-8."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE sessions (id)")
        return (
            connection.serialize()
            .replace(b"CREATE TABLE sessions (id)", b"CREATE TABLE sess\x8bons (i,")
            .replace(b"sessionssessions", b"sess\x8bonssess\x8bons")
        )


HOSTILE: dict[str, Callable[[], bytes]] = {
    "deep.json": lambda: b"[" * 1_000_000,
    "deep-closed.jsonl": lambda: b'{"turns":' * 900 + b"1" + b"}" * 900 + b"\n",
    "latin.jsonl": lambda: b'{"run_id": "caf\xe9", "turns": []}\n',
    "null.jsonl": lambda: b'{"run_id": "a\0b", "turns": []}\n',
    "zeros.json": lambda: b"\0" * 100_000,
    "empty.json": lambda: b"",
    "bomb.json.gz": lambda: gzip.compress(b"0" * (1 << 26)),
    "bomb.jsonl.zst": lambda: zstandard.ZstdCompressor().compress(b"\n" * (1 << 26)),
    "bomb.zip": lambda: zipped({f"{index}.json": b" " * (1 << 22) for index in range(20)}),
    "overlapping.zip": lambda: overlapping(1000),
    "torn.zip": lambda: zipped({"a.json": b"[1]" * 1000})[:100],
    "torn.parquet": lambda: b"PAR1" + b"x" * 1000,
    "torn.json.gz": lambda: gzip.compress(b"{}" * 1000)[:20],
    "huge-number.json": lambda: b"9" * 1_000_000,
    "traversal.zip": lambda: zipped({"../../../evil.json": b"{}", "/etc/evil.jsonl": b"{}", "C:\\evil.traj": b"{}"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_named_with_a_reason_and_costs_no_other(name: str, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_bytes(HOSTILE[name]())
    (tmp_path / "logs" / "zz.jsonl").write_bytes(SOUND)
    *skipped, run = read_corpus([tmp_path / "logs"], limits=SMALL)
    assert run.run_id == "r"
    assert skipped
    for item in skipped:
        assert isinstance(item, Skipped)
        assert item.source.startswith(f"logs/{name}")
        assert item.reason
        assert "\n" not in item.reason
        assert len(item.reason) < 500
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["logs", name, "zz.jsonl"])


@pytest.mark.parametrize("name", ["goose", "opencode"])
def test_a_database_with_a_damaged_schema_is_named_and_costs_no_other_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "sessions.db").write_bytes(damaged_schema())
    (tmp_path / "zz.jsonl").write_bytes(SOUND)
    named, run = read_corpus([tmp_path])
    (skipped,) = read_corpus([tmp_path / "sessions.db"], format=name)
    assert not isinstance(run, Skipped)
    assert run.run_id == "r"
    for one in (named, skipped):
        assert isinstance(one, Skipped)
        assert "restore the file" in one.reason


@every_format
@pytest.mark.parametrize("name_of_damage", ["deep.json", "latin.jsonl", "zeros.json", "bomb.json.gz", "torn.zip"])
def test_every_reader_forced_upon_a_hostile_file_ends_in_a_reason(
    name: str, name_of_damage: str, tmp_path: Path
) -> None:
    path = tmp_path / name_of_damage
    path.write_bytes(HOSTILE[name_of_damage]())
    items = list(read_corpus([path], format=name, limits=SMALL))
    assert items
    assert all(isinstance(item, Skipped) and "reader of" not in item.reason for item in items), items[:3]


@every_format
def test_every_format_bears_its_own_logs_with_hostile_bytes_inside(name: str, tmp_path: Path) -> None:
    for path in write_sample(name, tmp_path):
        content = path.read_bytes()
        for hostile in (b"\0", b"\xff\xfe", b"[" * 5000, b'"' + b"x" * (1 << 21)):
            path.write_bytes(content[: len(content) // 2] + hostile + content[len(content) // 2 :])
            items = list(read_corpus([tmp_path], limits=SMALL))
            assert not [item for item in items if isinstance(item, Skipped) and "reader of" in item.reason]
        path.write_bytes(content)


@every_format
def test_ten_gigabytes_on_one_line_are_given_up_early(name: str, tmp_path: Path) -> None:
    (path, *_) = write_sample(name, tmp_path)
    os.truncate(path, 10 << 30)  # a hole: it takes no room on disk
    items: list[object] = []
    assert cost(lambda: items.extend(read_corpus([path], format=name, limits=SMALL))) < LONGEST
    assert any(isinstance(item, Skipped) for item in items)


COMMANDS = frozenset({"command", "cmd", "code", "action", "path", "file_path", "cwd", "instance_id", "task_id"})


def made_hostile(value: Any, text: str, key: str = "") -> Any:
    """Put a text in the place of every command and every path of a log, in calls that are text themselves too."""
    if isinstance(value, dict):
        return {name: made_hostile(each, text, name) for name, each in value.items()}
    if isinstance(value, list):
        return [made_hostile(each, text, key) for each in value]
    if not isinstance(value, str):
        return value
    if key == "arguments":
        return json.dumps({"command": text, "path": text})
    return (
        text if key in COMMANDS else re.sub(r"```\w+\n.*?\n```", lambda _: f"```bash\n{text}\n```", value, flags=re.S)
    )


def test_no_command_in_a_log_is_carried_out_and_no_path_in_it_is_touched(tmp_path: Path) -> None:
    logs, out, canary = tmp_path / "logs", tmp_path / "out", tmp_path / "canary"
    command = f"touch {canary}; echo x > {canary}; python -c \"open('{canary}','w')\"; cat <<E > {canary}\nE"
    for path in [path for name in formats.names() for path in write_sample(name, logs / name)]:
        content = path.read_bytes()
        if path.suffix == ".md":
            path.write_text(made_hostile(content.decode(), command))
        elif not content.startswith((b"PK", b"PAR1", b"\x28\xb5", b"\x1f\x8b", b"SQLite")):
            lines = content.splitlines() if path.suffix == ".jsonl" else [content]
            damaged = [
                json.dumps(made_hostile(json.loads(line), command), separators=(",", ":")).encode() for line in lines
            ]
            path.write_bytes(b"\n".join(damaged) + b"\n")
    before = {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    done = analyze(logs, out=out)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["formats"]) == set(formats.names())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "out"]
    assert {path: path.read_bytes() for path in logs.rglob("*") if path.is_file()} == before


def test_names_that_climb_out_of_the_folder_never_name_a_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    climbing = SOUND.replace(b'"r"', b'"../../evil"').replace(b"}\n", b', "task_id": "../../../etc/passwd"}\n')
    (tmp_path / "logs" / "a.jsonl").write_bytes(climbing)
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "t.patch").write_text("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n")
    done = analyze(tmp_path / "logs", out=tmp_path / "out" / "deep", options=("--gold", str(tmp_path / "gold")))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold", "logs", "out"]
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]


@pytest.mark.parametrize("name", ["deep.json", "null.jsonl", "overlapping.zip"])
def test_the_command_says_in_one_line_what_is_wrong(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name]())
    done = analyze(tmp_path / name, out=tmp_path / "out")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("eirkit: ")
    assert name in lines[0]


def test_a_pipe_as_input_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/stdin")):
        done = analyze(path, out=tmp_path / "out")
        assert (done.returncode, done.stdout) == (2, "")
        assert "save its content as a file and give that" in done.stderr
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "pipe.jsonl")
    (tmp_path / "logs" / "a.jsonl").write_bytes(SOUND)
    done = analyze(tmp_path / "logs", out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert [item["source"] for item in json.loads(done.stdout)["skipped"]] == ["logs/pipe.jsonl"]


def test_a_short_fuzz_run_finds_nothing(tmp_path: Path) -> None:
    found = fuzz(tmp_path, random.Random(2024), until_cases(FUZZED), formats.names())
    assert found.crashes == {}
    assert found.cases.keys() >= set(formats.names())


def test_the_fuzzer_finds_what_breaks(tmp_path: Path) -> None:
    def breaks(folder: Path, name: str, number: int) -> int:
        return number // (0 if name == "plain" else 1)

    found = fuzz(tmp_path / "a", random.Random(0), until_cases(20), ["plain"], tmp_path / "kept", breaks)
    assert [place.split()[0] for place in found.crashes] == ["ZeroDivisionError"]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_the_fuzzer_damages_and_repeats_itself() -> None:
    content = sample_files("plain")[run_paths("plain")[0]]
    once, again = ([damage(content, random.Random(seed), [content]) for seed in range(50)] for _ in range(2))
    assert once == again
    assert sum(damaged != content for damaged in once) > 40
