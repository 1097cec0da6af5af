"""No record of a log takes long, whatever it holds, and one beyond its limit is skipped alone."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from time import thread_time

import pytest

from eirkit.errors import InputFileError
from eirkit.logs.corpus import analysis
from eirkit.logs.corpus.analysis import Analysis, measured
from eirkit.logs.corpus.reader import read_corpus
from eirkit.logs.sources.documents import Skipped
from eirkit.logs.time_limits import check_time, time_limit
from eirkit.logs.tokens import estimating_counter
from tests.fuzz_slow import OPTIONS, SLOWEST_CPU_SECONDS, SlowCase, cpu_seconds, drawn, units
from tests.timing import UNITS_IN_A_SECOND, cost

SLOW = {
    "lines of a search": SlowCase(1, "grep -rn x .", "", "a{n}.py:{n}:x\n", 0.99),
    "context of a search": SlowCase(1, "grep -rn -A9 x .", "", "a{n}.py-{n}-x\n", 0.99),
    "files of a diff": SlowCase(1, "git diff", "", "+++ b/a{n}.py\n", 0.99),
    "globs of many calls": SlowCase(1000, "cat *.py */*.js", "", "d{n}/f{n}.js\n", 0.9),
    "words of one command": SlowCase(1, "cat {0}", "a{n}.py ", "x\n", 0.01),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_megabyte_made_to_be_slow_takes_seconds_at_most(name: str) -> None:
    assert cost(lambda: cpu_seconds(SLOW[name])) < SLOWEST_CPU_SECONDS * UNITS_IN_A_SECOND


def test_the_search_for_slow_logs_tries_different_ones() -> None:
    """`make fuzz` searches for longer; here a few are drawn and measured, and none is slow."""
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

    def found() -> list[Analysis | Skipped]:
        return list(measured(read_corpus(paths), OPTIONS, estimating_counter(), None))

    start = thread_time()
    assert all(isinstance(one, Analysis) for one in found())
    monkeypatch.setattr(analysis, "RECORD_SECONDS", (thread_time() - start) / 3)
    first, slow, last = found()
    assert isinstance(first, Analysis)
    assert isinstance(last, Analysis)
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
