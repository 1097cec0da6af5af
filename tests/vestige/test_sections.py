"""Large documents read in sections: the bytes and the words of one that is read whole, and every record found."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from eirkit.engine.interface import PieceLimits
from eirkit.engine.processes import Processes
from eirkit.vestige.corpus import reader, work_units
from eirkit.vestige.corpus.parts import CorpusPart
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts, with_document_notes
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.corpus.work_units import halves_of, name_of, stored_ranges
from eirkit.vestige.sources.documents import NAMED, LineRange, MemberRange, ReadLimits, RowRange, Skipped, open_section
from tests.vestige.test_parts import OPTIONS, plain_run, silent, tables

RUNS = 120


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "PIECE_BYTES", 3_000)


def message_row(number: int, turns: int = 6) -> dict[str, object]:
    command = f"cat src/m{number % 7}.py"
    asked = {"role": "assistant", "content": f"look\n\n```bash\n{command}\n```"}
    shown = {"role": "user", "content": f"<returncode>0</returncode>\n<output>\nx = {number}\n</output>"}
    messages = [{"role": "system", "content": "work"}, {"role": "user", "content": f"task {number}"}]
    return {"instance_id": f"t{number}", "resolved": bool(number % 2), "messages": messages + [asked, shown] * turns}


def row_file(path: Path, rows: list[dict[str, object]], group: int = 10) -> Path:
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=group)
    return path


def archive(path: Path, members: dict[str, str]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as stream:
        for name, text in members.items():
            stream.writestr(name, text)
    return path


def inspect_log(samples: int) -> dict[str, str]:
    header = {"version": 2, "status": "success", "eval": {"eval_id": "e", "run_id": "r", "model": "m/x", "task": "t"}}
    members = {"header.json": json.dumps(header)}
    for number in range(samples):
        messages = [{"role": "user", "content": "go " * 50}, {"role": "assistant", "content": f"done {number}"}]
        sample = {"id": f"s{number:03}", "epoch": 1, "messages": messages, "scores": {"a": {"value": "C"}}}
        members[f"samples/s{number:03}_epoch_1.json"] = json.dumps(sample)
    return members


def in_both_ways(tmp_path: Path, logs: Path) -> tuple[dict[str, object], dict[str, object]]:
    here = analyze_here(Corpus((logs,)), tmp_path / "here", OPTIONS, progress=silent)
    parts = analyze_in_parts(Corpus((logs,)), tmp_path / "parts", OPTIONS, Processes(2))
    assert tables(tmp_path / "here") == tables(tmp_path / "parts")
    return here, parts


def sections(logs: Path) -> list[object]:
    reader = CorpusReader(outcomes=None, format=None, limits=ReadLimits())
    return [
        place.section for piece in work_units.plan_work_units(reader, [logs]) for place in piece.places if place.section
    ]


def test_row_groups_go_to_several_workers(tmp_path):
    rows = [message_row(number) for number in range(RUNS)]
    logs = row_file(tmp_path / "logs" / "runs.parquet", rows).parent
    assert len(sections(logs)) > 3
    here, parts = in_both_ways(tmp_path, logs)
    assert here == parts
    assert here.runs == RUNS


def test_members_of_an_archive_go_to_several_workers(tmp_path):
    members = {f"run-{number}.jsonl": plain_run(number, 30) + "\n" for number in range(RUNS)}
    found = {"resolved": [f"r{number}" for number in range(5)]}
    members |= {"torn.jsonl": '{"run_id": "torn", "turns": [\n', "results.json": json.dumps(found)}
    logs = archive(tmp_path / "logs" / "runs.zip", members).parent
    assert len(sections(logs)) > 3
    here, parts = in_both_ways(tmp_path, logs)
    assert here == parts
    assert (here.runs, len(here.skipped)) == (RUNS, 1)


def test_samples_of_an_inspect_log_keep_their_header(tmp_path):
    logs = archive(tmp_path / "logs" / "log.eval", inspect_log(RUNS)).parent
    assert len(sections(logs)) > 3
    assert all(isinstance(one, MemberRange) and one.prefix == "samples/" for one in sections(logs))
    here, parts = in_both_ways(tmp_path, logs)
    assert here == parts
    assert here.runs == RUNS


@pytest.mark.parametrize("damaged", [5, 130, 2_000])
def test_what_is_damaged_is_named_in_the_same_order_and_as_often(tmp_path, damaged, monkeypatch):
    monkeypatch.setattr(reader, "GIVEN_UP", 1_500)
    logs = tmp_path / "logs"
    logs.mkdir()
    good = [plain_run(number, 30) for number in range(20)]
    (logs / "b.jsonl").write_text("\n".join([good[0], *["{torn" for _ in range(damaged)], *good[1:]]) + "\n")
    (logs / "c.jsonl").write_text("\n".join(["{torn" for _ in range(damaged)]) + "\n" + "\n".join(good) + "\n")
    (logs / "a.json").symlink_to(tmp_path / "elsewhere.json")
    (logs / "d.json").write_text("{not json")
    assert sum(isinstance(one, LineRange) for one in sections(logs)) > 3
    here, parts = in_both_ways(tmp_path, logs)
    assert here.skipped == parts.skipped
    assert here == parts


def part(runs: int, skipped: int, leading: int) -> CorpusPart:
    named = tuple(Skipped(f"s:{number}", "torn") for number in range(min(skipped, NAMED)))
    return CorpusPart("key", runs, named, tally=reader.DocumentTally(runs, skipped, leading))


def test_runs_behind_a_hopeless_beginning_are_left_as_if_it_was_read_whole():
    piece = work_units.WorkUnit((work_units.DocumentRange(Path("r"), Path("r/a"), "a", LineRange(0, 1, 0), "plain"),))
    found = with_document_notes(
        [(piece, part(0, 6_000, 6_000)), (piece, part(3, 5_000, 4_000)), (piece, part(9, 0, 0))]
    )
    assert [one.runs for one in found] == [0, 0]
    reasons = [one.reason for one in found[0].skipped + found[1].skipped]
    assert reasons == ["torn"] * NAMED + ["the first 10,000 parts are damaged; the rest was left unread"]
    found = with_document_notes([(piece, part(1, 6_000, 0)), (piece, part(3, 5_000, 4_000))])
    assert [one.runs for one in found] == [1, 3]
    assert found[-1].skipped[-1].reason == "10,900 more parts are damaged; the first 100 are named"


def test_a_row_that_hogs_costs_itself_and_is_named(tmp_path):
    rows = [message_row(number, 60_000 if number == 33 else 6) for number in range(60)]
    logs = row_file(tmp_path / "logs" / "runs.parquet", rows).parent
    engine = Processes(2, PieceLimits(memory_bytes=560 << 20))
    found = analyze_in_parts(Corpus((logs,)), tmp_path / "out", OPTIONS, engine)
    assert found.runs == 59
    (skipped,) = found.skipped
    assert skipped.source.endswith("runs.parquet:34")


def test_a_section_is_halved_down_to_one_thing(tmp_path):
    path = row_file(tmp_path / "a.parquet", [message_row(number) for number in range(9)])
    document = open_section(path, RowRange(3, 6), ReadLimits(), "a.parquet")
    assert [number for number, _ in document.rows()] == [4, 5, 6]
    assert halves_of(document, RowRange(3, 6)) == [RowRange(3, 4), RowRange(4, 6)]
    assert halves_of(document, RowRange(3, 4)) == []
    assert name_of(document, RowRange(3, 4)) == "a.parquet:4"
    packed = archive(tmp_path / "a.zip", {f"{name}.json": name for name in "abc"})
    member = open_section(packed, MemberRange(1, 2), ReadLimits(), "a.zip")
    assert name_of(member, MemberRange(1, 2)) == "a.zip:b.json"
    assert [one.source for one in member.members()] == ["a.zip:b.json"]
    assert halves_of(member, MemberRange(0, 3)) == [MemberRange(0, 1), MemberRange(1, 3)]


def test_what_is_stored_of_a_section_tells_it_from_others(tmp_path):
    def content(path: Path, section: RowRange | MemberRange) -> list[bytes]:
        document = open_section(path, section, ReadLimits(), path.name)
        stored = path.read_bytes()
        return [stored[start:stop] for start, stop in stored_ranges(document, section)]

    first = row_file(tmp_path / "a.parquet", [message_row(number) for number in range(30)])
    changed = [message_row(number) for number in range(29)] + [message_row(99)]
    second = row_file(tmp_path / "b.parquet", changed)
    assert content(first, RowRange(0, 10))[:-1] == content(second, RowRange(0, 10))[:-1]
    assert content(first, RowRange(20, 30))[:-1] != content(second, RowRange(20, 30))[:-1]
    packed = archive(tmp_path / "a.zip", {"x.json": "1", "y.json": "2"})
    assert b"x.json" in content(packed, MemberRange(0, 1))[0]
    assert len(content(packed, MemberRange(0, 1))) == 2  # the member, and the list of all
