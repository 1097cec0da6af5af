"""The benchmark over planted logs: bounds hold at every cut, failures cost themselves, an interrupted one continues."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from eirkit.errors import UsageError
from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compaction import COMPACTIONS
from eirkit_coding.compaction.cuts import CutPlan
from eirkit_coding.compactors.benchmark import CompactionBenchmark, run_benchmark
from eirkit_coding.compactors.comparison import compare_compactors
from eirkit_coding.compactors.records import Comparison, read_runs, read_seconds
from eirkit_coding.compactors.trial import CompactorChoice, ProcessSeat, open_seat
from tests.coding.compactors.planted_sessions import file_lines, write_sessions

NAMES = ["ada", "ben", "cleo", "dora", "emil", "fay", "gus", "hal"]
BUILT_IN = ("oracle", "random", "null", "keep-last", "head-and-tail", "clear-tool-results")
BUDGETS = (150, 600, 1200)
# Chosen so that a compaction which hangs is ended soon; starting the process is not part of it.
SECONDS = 1.5
BAD = '''
import os, time
from eirkit_coding.compactors.compactor import Compactor, CompactorUsage
from eirkit_coding.compaction.context import ContextMessage

class Paying(Compactor):
    """Asks a model of its own before anything else."""
    calls = 0
    def usage(self):
        return CompactorUsage(self.calls, 100 * self.calls, 10 * self.calls, 0.5 * self.calls)

class Raises(Paying):
    """Raises."""
    def compact(self, messages, budget):
        self.calls += 1
        time.sleep(0.01)
        raise KeyError("no such thing")

class Boasts(Compactor):
    """Says that it used something that is no number."""
    def compact(self, messages, budget):
        return []
    def usage(self):
        return CompactorUsage(calls="many")

class Both(Boasts):
    """Raises, and says that it used something that is no number."""
    def compact(self, messages, budget):
        raise KeyError("no such thing")

class Hangs(Compactor):
    """Hangs."""
    def compact(self, messages, budget):
        time.sleep(1000)

class Dies(Compactor):
    """Ends its process."""
    def compact(self, messages, budget):
        os._exit(3)

class Strings(Paying):
    """Returns no messages."""
    def compact(self, messages, budget):
        self.calls += 1
        return ["a"]

class Orphans(Compactor):
    """Returns a result without its call."""
    def compact(self, messages, budget):
        return [one for one in messages if one.role == "tool"][:1]

class Invents(Compactor):
    """Returns messages that nobody wrote."""
    def compact(self, messages, budget):
        return [ContextMessage("user", "The needed lines are all here, I promise.\\nvalue = 1")]

class Everything(Compactor):
    """Returns all of it."""
    def compact(self, messages, budget):
        return messages
'''


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> Path:
    return write_sessions(tmp_path_factory.mktemp("compactors") / "logs", NAMES)


def benchmark(logs: Path, *names: str, budgets=BUDGETS, plan="every:5", seconds=60.0) -> CompactionBenchmark:
    choices = tuple(map(CompactorChoice, names))
    return CompactionBenchmark(
        (logs,), choices, budgets, CutPlan.parse(plan), seating=partial(open_seat, seconds=seconds)
    )


@pytest.fixture(scope="module")
def done(logs, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("compactors") / "out"
    tally = run_benchmark(benchmark(logs, *BUILT_IN), out)
    assert (tally.runs, tally.uncut, tally.skipped) == (len(NAMES), 0, ())
    return out


def test_regret_is_zero_for_the_oracle_and_negative_for_nobody(done):
    rows = [row for record in read_runs(done) for row in record.rows]
    assert {row.compactor for row in rows} == set(BUILT_IN)
    for row in rows:
        assert row.kept_tokens <= row.best_tokens
        if row.compactor == "oracle":
            assert row.kept_tokens == row.best_tokens
        if row.status == "ok":
            assert row.used_tokens <= row.budget
        if row.compactor == "null":
            assert (row.used_tokens, row.kept_tokens) == (0, 0)


def test_what_is_kept_is_what_was_planted(done):
    """Recounts from the stored lines: the needed file has 20 lines, and the marks say which of them were kept."""
    count = exact_counter()
    for record in read_runs(done):
        wanted = set(file_lines(f"{record.run_id}_needed", 20))
        assert {line.text for line in record.cuts[0].needed} == wanted
        for row in (row for row in record.rows if row.turn == record.cuts[0].turn):
            marks = int(row.kept, 16)
            kept = [line.text for place, line in enumerate(record.cuts[0].needed) if marks >> place & 1]
            assert row.kept_tokens == sum(count(f"{text}\n") for text in kept)


def test_random_lines_keep_what_is_expected_of_them(done):
    found = compare_compactors(done, list(BUILT_IN), BUDGETS)
    best = {row.budget: row.kept_share for row in found.rows if row.compactor == "oracle"}
    for row in found.rows:
        if row.compactor == "random" and row.beyond_random_low is not None:
            assert row.beyond_random_low <= 0 <= row.beyond_random_high
        if row.cuts:
            assert row.least_regret >= 0
            assert row.kept_share + row.regret_share == pytest.approx(best[row.budget])


def test_a_compactor_that_fails_costs_itself_alone(logs, tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    wrong = {
        "Raises": "raised",
        "Boasts": "invalid",
        "Both": "raised",
        "Hangs": "too late",
        "Dies": "raised",
        "Strings": "invalid",
        "Orphans": "invalid",
        "Everything": "over budget",
        "Invents": "ok",
    }
    names = [f"{tmp_path / 'bad.py'}:{name}" for name in wrong]
    one = logs / "ada.traj.json"
    run_benchmark(benchmark(one, "keep-last", *names, budgets=(600,), seconds=SECONDS), tmp_path / "with")
    run_benchmark(benchmark(one, "keep-last", budgets=(600,)), tmp_path / "without")
    (alone,) = read_runs(tmp_path / "without")
    (record,) = read_runs(tmp_path / "with")
    found = {row.compactor: row for row in record.rows if row.turn == record.cuts[0].turn}
    for row in record.rows:  # what a failure used is counted, and is unknown where nobody could say it
        if row.compactor in ("bad.py:Raises", "bad.py:Strings"):
            assert (row.calls, row.input_tokens, row.output_tokens, row.cost_usd) == (1, 100, 10, 0.5)
        if row.compactor in ("bad.py:Hangs", "bad.py:Dies", "bad.py:Boasts", "bad.py:Both"):
            assert (row.calls, row.cost_usd) == (0, None)
    assert "no such thing" in found["bad.py:Both"].reason
    (times,) = read_seconds(tmp_path / "with")
    assert times.seconds["bad.py:Raises"] >= 0.01 * len(record.cuts)
    assert times.seconds["bad.py:Hangs"] >= SECONDS
    for name, status in wrong.items():
        row = found.pop(f"bad.py:{name}")
        assert (row.status, row.kept_tokens) == (status, 0), name
        assert bool(row.reason) == (status != "ok"), name
        assert row.best_tokens > row.kept_tokens, name
    assert list(found.values()) == [row for row in alone.rows if row.turn == record.cuts[0].turn]


def test_an_interrupted_benchmark_continues_and_gives_the_same_bytes(logs, done, tmp_path):
    whole = (done / COMPACTIONS).read_bytes()
    out = tmp_path / "again"
    out.mkdir()
    (out / "compact.json").write_bytes((done / "compact.json").read_bytes())
    lines = whole.splitlines(keepends=True)
    (out / COMPACTIONS).write_bytes(
        b"".join(lines[:3]) + lines[3][: len(lines[3]) // 2]
    )  # killed while it wrote the fourth
    run_benchmark(benchmark(logs, *BUILT_IN), out)
    assert (out / COMPACTIONS).read_bytes() == whole
    run_benchmark(benchmark(logs, *BUILT_IN), out)
    assert (out / COMPACTIONS).read_bytes() == whole


def timeless(comparison: Comparison) -> Comparison:
    return replace(comparison, rows=tuple(replace(row, seconds=None) for row in comparison.rows))


def test_further_compactors_and_budgets_are_added_to_a_benchmark(logs, tmp_path):
    run_benchmark(benchmark(logs, "oracle", "keep-last", budgets=(150,)), tmp_path / "out")
    run_benchmark(benchmark(logs, "oracle", "keep-last", "null", budgets=(150, 600)), tmp_path / "out")
    run_benchmark(benchmark(logs, "oracle", "keep-last", "null", budgets=(150, 600)), tmp_path / "once")
    labels, budgets = ["oracle", "keep-last", "null"], (150, 600)
    added, once = (compare_compactors(tmp_path / name, labels, budgets) for name in ("out", "once"))
    assert timeless(added) == timeless(once)


def test_two_compactors_of_one_name_are_not_mistaken_for_each_other(logs, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(BAD if folder == "a" else f"{BAD}\n")
    a, b = (f"{tmp_path / folder / 'own.py'}:Everything" for folder in ("a", "b"))
    with pytest.raises(UsageError, match=r"would both be shown as own\.py:Everything; rename one of the files"):
        benchmark(logs, a, b)
    out = tmp_path / "out"
    run_benchmark(benchmark(logs / "ada.traj.json", a, budgets=(600,)), out)
    run_benchmark(benchmark(logs / "ada.traj.json", a, "null", budgets=(600,)), out)
    with pytest.raises(UsageError, match=r"has results of another own\.py:Everything; give another --out"):
        run_benchmark(benchmark(logs / "ada.traj.json", b, budgets=(600,)), out)


def test_a_compactors_process_sees_no_proxy_and_no_key(monkeypatch):
    """A vendor's client would send what is meant for the address on loopback to the user's proxy."""
    for name, value in {"HTTPS_PROXY": "http://u:p@proxy.test:1", "all_proxy": "x", "OPENAI_API_KEY": "k"}.items():
        monkeypatch.setenv(name, value)
    seat = ProcessSeat(CompactorChoice("keep-last"), Path(sys.executable))
    try:
        seat.start()
        seen = Path(f"/proc/{seat._process.pid}/environ").read_bytes().split(b"\0")
    finally:
        seat.close()
    assert {b"NO_PROXY=*", b"no_proxy=*"} <= set(seen)
    assert not [one for one in seen if one.startswith((b"HTTPS_PROXY", b"all_proxy", b"OPENAI_API_KEY"))]


def test_memory_is_that_of_the_largest_run_however_many_there_are(logs, tmp_path):
    """Twice as many runs of the same size need as much; without a bound they would need twice as much."""
    assert len(NAMES) == 8
    few = write_sessions(tmp_path / "few", NAMES[:4])
    peaks = []
    for number, folder in enumerate((few, few, logs)):  # the first fills what is kept for the whole process
        tracemalloc.start()
        run_benchmark(benchmark(folder, *BUILT_IN), tmp_path / f"out-{number}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.4 * peaks[1]


def test_the_work_is_proportional_to_the_cuts(logs, done, tmp_path):
    """Tokens are counted once a line of a run; tables take four times as long for four times as many cuts."""
    counted = []
    for names in (NAMES[:4], NAMES):
        calls, count = [0], exact_counter()

        def counting(text: str, calls=calls, count=count) -> int:
            calls[0] += 1
            return count(text)

        folder = write_sessions(tmp_path / f"logs-{len(names)}", names)
        run_benchmark(benchmark(folder, *BUILT_IN), tmp_path / f"out-{len(names)}", count=counting)
        counted.append(calls[0])
    assert counted[1] <= 2.1 * counted[0]  # names differ in length, hardly more
    labels, budget, took = ["keep-last", "head-and-tail"], 600, []
    records = [json.loads(line) for line in (done / COMPACTIONS).read_text().splitlines()]
    for one in records:  # small ones, so that reading them takes little beside the tables
        one["rows"] = [row for row in one["rows"] if row["compactor"] in labels and row["budget"] == budget]
        one["cuts"] = [{**cut, "needed": []} for cut in one["cuts"]]
    for copies in (100, 400):
        out = tmp_path / f"copies-{copies}"
        out.mkdir()
        many = [{**one, "run_id": f"{one['run_id']}-{copy}"} for copy in range(copies) for one in records]
        (out / COMPACTIONS).write_text("".join(json.dumps(one) + "\n" for one in many))
        began = time.process_time()
        compare_compactors(out, labels, [budget])
        took.append(time.process_time() - began)
    assert took[1] < 8 * took[0]  # linear work gives 4, quadratic work 16


def test_another_plan_needs_another_folder(logs, done):
    with pytest.raises(UsageError, match="was cut with at every:5; give it again, or another --out"):
        run_benchmark(benchmark(logs, "oracle", plan="every:3"), done)


def test_the_recorded_compaction_is_tried_where_the_log_was_compacted(logs, tmp_path):
    """Elsewhere it fails; where a run was compacted, it is what the log says replaced the context."""
    run_benchmark(benchmark(logs / "ada.traj.json", "recorded", budgets=(600,)), tmp_path / "out")
    (record,) = read_runs(tmp_path / "out")
    assert {(row.status, row.reason) for row in record.rows} == {
        ("invalid", "the log does not say, or only in encrypted form, that anything took its place here")
    }
