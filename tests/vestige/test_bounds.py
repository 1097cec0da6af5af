"""No record of a log takes long, whatever it holds, and one beyond its limit is skipped alone."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time

import pytest

from eirkit.errors import InputFileError
from eirkit.limits import LOOK_SECONDS, check_time, time_limit
from eirkit.vestige.corpus import analysis, reader
from eirkit.vestige.corpus.analysis import AnalyzedRun, measured
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Recording
from tests.fuzz_slow import OPTIONS, SLOWEST_CPU_SECONDS, SlowCase, cpu_seconds, drawn, units
from tests.timing import UNITS_IN_A_SECOND, cost

# An interrupt that arrives in a callback of the garbage collector, as Hypothesis has one, is lost there and sent again.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

_DIGITS = "1 2 3 4 5 6 7 8 9 10"
LOOPS = " ".join(f"for {name} in {_DIGITS}; do" for name in "abc") + " echo x"
SLOW = {
    "lines of a search": SlowCase(1, "grep -rn x .", "", "a{n}.py:{n}:x\n", 0.99),
    "context of a search": SlowCase(1, "grep -rn -A9 x .", "", "a{n}.py-{n}-x\n", 0.99),
    "files of a diff": SlowCase(1, "git diff", "", "+++ b/a{n}.py\n", 0.99),
    "globs of many calls": SlowCase(1000, "cat *.py */*.js", "", "d{n}/f{n}.js\n", 0.9),
    "globs that all differ": SlowCase(5000, "cat d1*/*{0}*", "{n}", "d{n}/f{n}.js\n", 0.9),
    "words of one command": SlowCase(1, "cat {0}", "a{n}.py ", "x\n", 0.01),
    "bad syntax, never the same": SlowCase(300, "{0}", "|-){n}", "x\n", 0.01),
    "bad syntax in short commands": SlowCase(8000, "{0}", "{n})[=", "x\n", 0.01),
    "bad syntax on an interpreter's input": SlowCase(300, "bash <<'E'\n{0}\nE", "0[0] let {n}", "x\n", 0.01),
    "loops in loops": SlowCase(3000, f"{LOOPS} > {{0}}$a$b$c; done; done; done", "f{n}", "x\n", 0.7),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_megabyte_made_to_be_slow_takes_seconds_at_most(name: str) -> None:
    assert cost(lambda: cpu_seconds(SLOW[name])) < SLOWEST_CPU_SECONDS * UNITS_IN_A_SECOND


def test_the_search_for_slow_logs_tries_different_ones() -> None:
    """`make session NAME=fuzz` searches for longer; here a few are drawn and measured, and none is slow."""
    rng, known = random.Random(7), units()
    cases = {drawn(rng, known) for _ in range(4)}
    assert len(cases) == 4
    assert max(cost(lambda case=case: cpu_seconds(case)) for case in cases) < SLOWEST_CPU_SECONDS * UNITS_IN_A_SECOND


def log(path: Path, calls: int) -> Path:
    turns = [{"reads": [{"path": f"a{n}.py", "tokens": 3}], "writes": [{"path": f"b{n}.py"}]} for n in range(calls)]
    path.write_text(json.dumps({"run_id": path.stem, "goal_files": ["b0.py"], "turns": turns}) + "\n", "utf-8")
    return path


def shell_log(path: Path, calls: int) -> Path:
    messages = SlowCase(calls, "cat a.py; grep -rn x .", "", "a{n}.py:{n}:x\n", 0.9).messages()
    path.write_text(json.dumps({"run_id": path.stem, "messages": messages}) + "\n", "utf-8")
    return path


def test_a_run_beyond_its_limit_is_named_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [log(tmp_path / "a.jsonl", 2), shell_log(tmp_path / "b.jsonl", 300), log(tmp_path / "c.jsonl", 2)]

    def found() -> list[AnalyzedRun | Skipped]:
        return list(measured(read_corpus(paths), OPTIONS, estimating_counter(), None))

    start = thread_time()
    assert all(isinstance(one, AnalyzedRun) for one in found())
    monkeypatch.setattr(analysis, "RECORD_SECONDS", (thread_time() - start) / 3)
    first, slow, last = found()
    assert isinstance(first, AnalyzedRun)
    assert isinstance(last, AnalyzedRun)
    assert isinstance(slow, Skipped)
    assert "b.jsonl" in slow.source
    assert "of processor time; leave it out or shorten it" in slow.reason


def test_a_limit_holds_in_its_thread_alone_and_an_outer_one_holds_inside() -> None:
    passed = []
    with time_limit(0, "this"):
        thread = threading.Thread(target=lambda: passed.append(check_time()))
        thread.start()
        thread.join()
        with pytest.raises(InputFileError, match="this takes more than 0 s"), time_limit(1000, "that"):
            check_time()
    check_time()
    assert passed == [None]


def endless() -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:  # noqa: BLE001 - as a reader of damaged logs may
            continue


def after_an_inner_limit(work: Callable[[], None]) -> None:
    with time_limit(1000, "inner"):
        pass
    work()


def test_what_never_comes_to_a_check_is_interrupted_and_nothing_after_it() -> None:
    """Neither handlers of errors nor an end inside the limit keep the interrupt, and none arrives later."""

    with pytest.raises(InputFileError, match=r"that takes more than 0.05 s"), time_limit(0.05, "that"):
        endless()
    start = thread_time()
    while thread_time() - start < 3 * LOOK_SECONDS:
        sum(range(1000))
    with pytest.raises(InputFileError, match=r"outer takes more than"), time_limit(0.05, "outer"):
        after_an_inner_limit(endless)


def test_a_thread_is_interrupted_by_its_own_clock_alone() -> None:
    """One that waits is not late, whatever others do meanwhile."""
    begun, late = threading.Event(), []

    def wait() -> None:
        with time_limit(0.2, "waiting"):
            begun.wait()
            late.append(False)

    thread = threading.Thread(target=wait)
    thread.start()
    with pytest.raises(InputFileError, match="working takes more than"), time_limit(0.3, "working"):
        endless()
    begun.set()
    thread.join()
    assert late == [False]


class Endless:
    """A format whose reader never finishes one of its records."""

    def recognizes(self, document: LogDocument) -> int:
        return 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        yield Skipped(f"{document.source}:1", "no run; leave it out")
        while True:
            sum(range(1000))


def test_a_reader_that_never_finishes_is_given_up_and_the_next_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "RECORD_SECONDS", 0.1)
    paths = [log(tmp_path / name, 2) for name in ("a.jsonl", "b.jsonl")]
    first, late, second, again = read_corpus(paths, format=f"{__name__}:Endless")
    assert [one.reason for one in (late, again)] == [
        "reading one run takes more than 0.1 s of processor time; leave it out or shorten it"
    ] * 2
    assert (first.source, second.source) == ("a.jsonl:1", "b.jsonl:1")
