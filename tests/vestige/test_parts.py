"""Analyses in parts: the same bytes whoever did the work, and nothing lost or done twice after any kind of death."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from eirkit.engine.interface import PieceLimits
from eirkit.engine.processes import Processes
from eirkit.errors import InputFileError, UsageError
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus import work_units
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.parts import PARTS
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts, is_small
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.sources.documents import ReadLimits
from tests.processes import completed, running, wait_until

OPTIONS = AnalysisOptions(read_windows(None))
EIRKIT = [sys.executable, "-m", "eirkit"]


def plain_run(number: int, size: int = 3) -> str:
    rng = random.Random(number)
    turns = [
        {
            "reads": [{"path": f"f{rng.randrange(5)}.py", "tokens": rng.randrange(1, 900)}],
            "writes": [{"path": "g.py", "tokens": 50}] if rng.random() < 0.4 else [],
            "tokens": 1000,
        }
        for _ in range(size)
    ]
    run = {"run_id": f"r{number}", "task_id": f"t{number % 7}", "model": "m", "resolved": bool(number % 2)}
    return json.dumps({**run, "goal_files": ["g.py"], "turns": turns})


def write_corpus(folder: Path, runs: int = 200, files: int = 3) -> Path:
    folder.mkdir()
    for number in range(files):
        lines = [plain_run(n) for n in range(number, runs, files)]
        (folder / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def tables(out: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(out.glob("*.parquet"))}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut even small corpora into many pieces."""
    monkeypatch.setattr(work_units, "PIECE_BYTES", 10_000)


def silent(source: str, runs: int, skipped: int) -> None:
    pass


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("workers", [1, 3])
def test_the_bytes_do_not_tell_who_did_the_work(tmp_path, workers):
    corpus = Corpus((write_corpus(tmp_path / "logs"),))
    here = analyze_here(corpus, tmp_path / "here", OPTIONS, progress=silent)
    parts = analyze_in_parts(corpus, tmp_path / "parts", OPTIONS, Processes(workers))
    assert tables(tmp_path / "here") == tables(tmp_path / "parts")
    assert here == parts


@pytest.mark.usefixtures("small_pieces")
def test_pieces_hold_every_line_once(tmp_path):
    folder = write_corpus(tmp_path / "logs", runs=300)
    reader = CorpusReader(outcomes=None, format=None, limits=ReadLimits())
    pieces = list(work_units.plan_work_units(reader, [folder]))
    assert len(pieces) > 5
    spans = [place for piece in pieces for place in piece.places]
    for path in folder.iterdir():
        mine = [place.section for place in spans if place.path == path]
        if None in mine:
            continue
        found = [(span.start, span.stop, span.lines_before) for span in mine]
        content = path.read_bytes()
        assert found[0][0] == 0
        assert found[-1][1] == len(content)
        assert all(a[1] == b[0] for a, b in pairwise(found))
        assert all(content[:start].count(b"\n") == lines for start, _, lines in found)


@pytest.mark.usefixtures("small_pieces")
def test_two_runs_of_one_name_keep_apart_across_parts(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_text("\n".join(plain_run(n, 20) for n in range(40)) + "\n")
    corpus = Corpus((folder,))
    analyze_here(corpus, tmp_path / "here", OPTIONS, progress=silent)
    found = analyze_in_parts(corpus, tmp_path / "parts", OPTIONS, Processes(2))
    assert found.runs == 80
    assert tables(tmp_path / "here") == tables(tmp_path / "parts")


@pytest.mark.usefixtures("small_pieces")
def test_a_record_that_hogs_costs_itself_and_is_named(tmp_path):
    folder = write_corpus(tmp_path / "logs", runs=60, files=1)
    path = folder / "part-0.jsonl"
    lines = path.read_text().splitlines()
    heavy = json.loads(lines[30])
    heavy["turns"] = heavy["turns"] * 250_000
    lines[30] = json.dumps(heavy)
    path.write_text("\n".join(lines) + "\n")
    engine = Processes(2, PieceLimits(memory_bytes=600 << 20))
    found = analyze_in_parts(Corpus((folder,)), tmp_path / "out", OPTIONS, engine)
    assert found.runs == 59
    (skipped,) = found.skipped
    assert skipped.source.endswith("part-0.jsonl:31")
    assert "600 MiB of memory" in skipped.reason


def complete_parts(out: Path) -> set[str]:
    return {path.name for path in (out / PARTS).glob("*") if "." not in path.name}


@pytest.mark.usefixtures("small_pieces")
def test_only_what_has_changed_is_measured_again(tmp_path):
    logs, out = write_corpus(tmp_path / "logs"), tmp_path / "out"
    parts = out / PARTS

    def made() -> dict[str, int]:
        return {part.name: part.stat().st_ino for part in parts.iterdir()}

    first = analyze_in_parts(Corpus((logs,)), out, OPTIONS, Processes(2))
    before, bytes_before = made(), tables(out)
    assert analyze_in_parts(Corpus((logs,)), out, OPTIONS, Processes(2)) == first
    assert (made(), tables(out)) == (before, bytes_before)
    with (logs / "part-2.jsonl").open("a") as stream:
        stream.write(plain_run(1_000) + "\n")
    assert analyze_in_parts(Corpus((logs,)), out, OPTIONS, Processes(2)).runs == first.runs + 1
    # The last section of the file that grew is new, and what it was made of before is gone.
    assert len(before.items() & made().items()) == len(before) - 1
    analyze_in_parts(Corpus((logs,)), out, AnalysisOptions(read_windows(None), rule="paper"), Processes(2))
    assert not before.keys() & made().keys()


def test_a_killed_analysis_goes_on_to_the_same_tables(tmp_path):
    folder = write_corpus(tmp_path / "logs", runs=640, files=5 * work_units.PIECE_DOCUMENTS)
    command = [*EIRKIT, "vestige", "analyze", str(folder), "--workers", "2", "--json"]
    completed([*command, "--out", tmp_path / "whole"], check=True)
    out = tmp_path / "cut"
    for _ in range(2):
        before = complete_parts(out)
        with running([*command, "--out", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
            wait_until(lambda: complete_parts(out) - before, "another part is complete", started)  # noqa: B023
    completed([*command, "--out", out], check=True)
    assert tables(out) == tables(tmp_path / "whole")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("damage", ["torn table", "no document", "torn document"])
def test_a_damaged_part_is_made_again(tmp_path, damage):
    corpus = Corpus((write_corpus(tmp_path / "logs"),))
    analyze_here(corpus, tmp_path / "here", OPTIONS, progress=silent)

    class InterruptedHereError(Exception):
        pass

    def interrupt(source: str, runs: int, skipped: int) -> None:
        if runs > 100:
            raise InterruptedHereError

    with pytest.raises(InterruptedHereError):
        analyze_in_parts(corpus, tmp_path / "out", OPTIONS, Processes(1), progress=interrupt)
    parts = sorted(path for path in (tmp_path / "out" / PARTS).iterdir() if "." not in path.name)
    assert parts
    torn = parts[0] / ("cuts.parquet" if damage == "torn table" else "analysis.json")
    torn.write_bytes(torn.read_bytes()[:-20])
    if damage == "no document":  # a kill while parts are removed leaves some of their files
        torn.unlink()
    analyze_in_parts(corpus, tmp_path / "out", OPTIONS, Processes(1))
    assert tables(tmp_path / "out") == tables(tmp_path / "here")


def test_a_full_disk_ends_the_analysis_and_says_so(tmp_path):
    folder = write_corpus(tmp_path / "logs", runs=1_000)
    command = " ".join([*EIRKIT, "vestige", "analyze", str(folder), "--workers", "2", "--out", str(tmp_path / "out")])
    done = completed(["bash", "-c", f"ulimit -f 8; {command}"])
    assert done.returncode == 1
    assert "make room" in done.stderr
    assert "Traceback" not in done.stderr
    completed(command.split(), check=True)


def test_strict_refuses_and_nothing_is_an_error(tmp_path):
    folder = write_corpus(tmp_path / "logs")
    with (folder / "part-0.jsonl").open("a") as stream:
        stream.write('{"run_id": "torn", "turns": [\n')
    with pytest.raises(InputFileError, match="--strict"):
        analyze_in_parts(Corpus((folder,)), tmp_path / "out", OPTIONS, Processes(2), strict=True)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputFileError, match="no runs found"):
        analyze_in_parts(Corpus((empty,)), tmp_path / "none", OPTIONS, Processes(1))


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_tables_of_other_logs_are_not_replaced(tmp_path, in_parts):
    def analyze(logs: Path) -> dict[str, object]:
        corpus, out = Corpus((logs,)), tmp_path / "out"
        if in_parts:
            return analyze_in_parts(corpus, out, OPTIONS, Processes(1))
        return analyze_here(corpus, out, OPTIONS, progress=silent)

    mine, other = write_corpus(tmp_path / "mine", runs=9), write_corpus(tmp_path / "other", runs=12)
    assert analyze(mine).runs == 9
    before = tables(tmp_path / "out")
    with pytest.raises(UsageError, match=r"holds the analysis of other logs \(mine\); choose another --out, or remove"):
        analyze(other)
    assert tables(tmp_path / "out") == before
    (mine / "more.jsonl").write_text(plain_run(100) + "\n")
    assert analyze(mine).runs == 10, "a corpus that has grown is the same"


def test_an_analysis_among_logs_hides_none_of_them(tmp_path):
    logs = write_corpus(tmp_path / "logs", runs=9)
    analyze_here(Corpus((logs,)), tmp_path / "out", OPTIONS, progress=silent)
    for name in ("runs.parquet", "analysis.json"):
        (logs / name).write_bytes((tmp_path / "out" / name).read_bytes())
    found = analyze_here(Corpus((logs,)), tmp_path / "again", OPTIONS, progress=silent)
    assert (found.runs, found.skipped) == (9, ())
    (logs / "analysis.json").write_text('{"author": "somebody else"}')
    found = analyze_here(Corpus((logs,)), tmp_path / "foreign", OPTIONS, progress=silent)
    assert found.runs == 9
    assert [one.source for one in found.skipped] == ["logs/analysis.json", "logs/runs.parquet"]


def test_a_small_corpus_is_known_as_one(tmp_path):
    corpus = Corpus((write_corpus(tmp_path / "logs"),))
    assert is_small(corpus, 1 << 30)
    assert not is_small(corpus, 1000)
    (packed := tmp_path / "logs.zip").write_bytes(b"x" * 1000)
    assert is_small(Corpus((packed,)), 8000)
    assert not is_small(Corpus((packed,)), 7999), "it may grow"


FULL = (
    "import resource, sys; from eirkit.cli import run; "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); sys.exit(run(sys.argv[2:]))"
)  # no file can be larger: a write fails as on a full disk


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("size", [400, 900, 1_500, 3_000, 6_000])
def test_a_full_disk_is_one_line_and_leaves_no_unfinished_table(tmp_path, size):
    logs, out = write_corpus(tmp_path / "logs"), tmp_path / "out"
    done = completed([sys.executable, "-c", FULL, size, "vestige", "analyze", logs, "--out", out])
    assert done.returncode == 1
    assert done.stderr.splitlines() == [done.stderr.rstrip("\n")]
    assert "File too large; free some space or try again" in done.stderr
    assert list(out.glob(".*.unfinished")) == []
