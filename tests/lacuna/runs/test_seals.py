"""Checksums over run records and manifests: what was changed is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from eirkit.cli import run as run_command_line
from eirkit.errors import InputFileError
from eirkit.lacuna.runs.manifest import FILE, read_manifest
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.runs.store import RUNS, decode_run
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import recorded_suite, resume_sweep, start_sweep
from eirkit.report.viewer.run_index import RunIndex

SEEDS = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tasks = {"workload": "store-recall", "n": 6, "m": 4, "h": 2, "seeds": f"0:{SEEDS}"}
    start_sweep(read_suite({"model": "reference/calculator", **tasks}), tmp_path / "out", control=False)
    return tmp_path / "out"


def test_a_changed_score_is_refused_with_its_line(folder, capfd):
    path = folder / RUNS
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = re.sub(rb'"correct":(\d)', lambda found: b'"correct":%d' % (int(found[1]) - 1), lines[2])
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputFileError, match=rf"{RUNS}:3: changed since it was written, as its checksum shows"):
        resume_sweep(folder)
    for command in (["report", folder], ["lacuna", "run", "--resume", folder]):
        assert run_command_line([str(word) for word in command]) == 2
        assert f"{RUNS}:3: changed" in capfd.readouterr().err
    index = RunIndex(folder)
    index.refresh()
    assert (len(index), index.skipped) == (SEEDS - 1, 1)


def test_an_analysis_of_a_sweep_refuses_a_changed_record_with_its_line(folder, tmp_path, capfd):
    """`vestige analyze` reads the same records without the code that wrote them."""
    path = folder / RUNS
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = re.sub(rb'"correct":(\d)', lambda found: b'"correct":%d' % (int(found[1]) - 1), lines[2])
    lines[3] = lines[3].replace(b'"crc32"', b'"crc33"')
    path.write_bytes(b"".join(lines))
    assert run_command_line(["vestige", "analyze", str(folder), "--out", str(tmp_path / "a"), "--json"]) == 0
    summary = json.loads(capfd.readouterr().out)
    reasons = {one["source"].rpartition(":")[2]: one["reason"] for one in summary["skipped"]}
    assert summary["runs"] == SEEDS - 2, summary
    assert reasons["3"].startswith("changed since it was written, as its checksum shows")
    assert reasons["4"].startswith("the checksum is missing or damaged")


def test_a_reader_that_goes_on_later_names_the_right_line(folder):
    path = folder / RUNS
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    (cell, _), results = next(iter(recorded_suite(folder).plan())), Results(folder)
    assert results.record(cell, 3) is None
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"seed":2', b'"seed":7', 1), lines[3]]))
    with pytest.raises(InputFileError, match=rf"{RUNS}:3: changed"):
        results.record(cell, 3)


def test_no_flipped_bit_changes_what_a_line_says(folder):
    line = (folder / RUNS).read_bytes().splitlines(keepends=True)[0]
    record, refused = decode_run(line, folder / RUNS, 1), 0
    for place in range(len(line) - 1):
        for bit in range(8):
            changed = bytes([*line[:place], line[place] ^ 1 << bit, *line[place + 1 :]])
            try:
                found = decode_run(changed, folder / RUNS, 1)
            except InputFileError:
                refused += 1
            else:
                assert {k: v for k, v in found.items() if k in record} == record
    assert refused > 0.99 * 8 * (len(line) - 1)


def test_no_flipped_bit_changes_what_a_manifest_says(folder):
    path = folder / FILE
    whole, manifest = path.read_bytes(), read_manifest(folder)
    (text,) = manifest.rules.values()
    start = whole.index(json.dumps(text, ensure_ascii=False).encode()[1:40])
    for place in [*range(start, start + 40), *range(0, len(whole), 97), *range(len(whole) - 40, len(whole))]:
        path.write_bytes(bytes([*whole[:place], whole[place] ^ 1, *whole[place + 1 :]]))
        try:
            found = read_manifest(folder)
        except InputFileError:
            continue
        assert found == manifest, f"byte {place}"
    path.write_bytes(whole.replace(text[:20].encode(), text[:19].encode() + b"#"))
    with pytest.raises(InputFileError, match=rf"{FILE}: changed since it was written, as its checksum shows; restore"):
        resume_sweep(folder)


def test_a_record_without_a_checksum_is_refused(folder):
    path = folder / RUNS
    path.write_bytes(re.sub(rb',"crc32":\d+}\n', b"}\n", path.read_bytes()))
    with pytest.raises(InputFileError, match=rf"{RUNS}:1: the checksum is missing or damaged; restore the file"):
        resume_sweep(folder)
