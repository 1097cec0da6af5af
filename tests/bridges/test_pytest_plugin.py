"""`pytest --eirkit-memory …`: a memory system's conformance and regression, in a pytest of its own."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.errors import InputFileError, UsageError
from eirkit.records.settings import ELSEWHERE, Access
from eirkit.seeds import below, words
from eirkit_bridges.memory_suite import RegressionCase, compare, least_pairs, pair_up, read_cases, write_cases
from tests import warm
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as, says
from tests.processes import PATIENCE_SECONDS
from tests.testing.contracts import faulty_memories

pytest_plugins = ["pytester"]

MEMORY = (Path(__file__).parents[2] / "examples" / "notebook_memory.py").read_text("utf-8")
LOSSY = MEMORY.replace(
    "self.lines[item.label] = item.text", 'self.lines[item.label] = "gone" if item.label in LOST else item.text'
).replace("class Notebook", 'LOST = ("A_1", "A_3", "A_5", "A_7")\n\n\nclass Notebook')
SIZED = MEMORY.replace(
    "def __init__(self) -> None:", "def __init__(self, size: int = 64) -> None:\n        self.size = size"
).replace(
    "self.lines[item.label] = item.text",
    "self.lines = dict([*self.lines.items(), (item.label, item.text)][-self.size :])",
)
PLAIN = MEMORY.replace("class Notebook", "class Plain").replace("from __future__ import annotations", "")
THINKING = """
import asyncio
import json
import urllib.request

{plain}
from eirkit.lacuna.memories.memory import Requirements


class Notebook(Plain):
    requirements = Requirements(endpoint=("model",))

    def __init__(self, *, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint

    async def write(self, item):
        await asyncio.to_thread(self.think, item.text)
        await super().write(item)

    def think(self, text):
        asked = json.dumps({"model": "any", "max_tokens": 20, "messages": [{"role": "user", "content": text}]})
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.endpoint}/chat/completions", asked.encode(), headers)
        with urllib.request.urlopen(request) as reply:
            reply.read()
"""
MODEL = """
from eirkit.errors import ModelError
from eirkit.lacuna.agents.reference import make_reference


class Shaky:
    def __init__(self, name, options):
        self.agent, self.name = make_reference("recoverer", options), name

    async def reply(self, request):
        if self.name == "down" or "seed-less" in request.messages[0].content:
            raise ModelError("the model is out", "rejected")
        return await self.agent.reply(request)

    async def close(self):
        pass

    def settings(self):
        return {}
"""
SYSTEM = ("--eirkit-memory", "mine.py:Notebook", "--eirkit-records", "64", "-p", "no:cacheprovider")


@pytest.fixture
def here(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a memory system; of all plug-ins ours alone is loaded, since the others' imports take a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "eirkit_pytest")
    monkeypatch.setenv(warm.MEMORIES, str(warm.programs() / "python"))
    (pytester.path / "mine.py").write_text(MEMORY)
    return pytester


def run(here: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run a pytest that has been imported before; the first test runs one as users start it."""
    return here.run(warm.programs() / "pytest", *arguments, timeout=PATIENCE_SECONDS)


def test_a_good_system_passes_and_is_recorded(here):
    options = ("--eirkit-record", "base.json", "--junitxml", "junit.xml", "-v")
    done = here.runpytest_subprocess(*SYSTEM, *options, timeout=PATIENCE_SECONDS)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*conformance PASSED*", "*store-recall PASSED*", "*1.000 [[]0.735, 1.000]; 12 seeds"])
    (case,) = read_cases(here.path / "base.json").values()
    assert (case.memory, case.workload, set(case.runs)) == ("mine.py:Notebook", "store-recall", set(range(12)))
    cases = ElementTree.parse(here.path / "junit.xml").getroot().iter("testcase")
    kept = {one.get("name"): {p.get("name"): p.get("value") for p in one.iter("property")} for one in cases}
    assert kept["conformance"]["eirkit_requirements"] == "18"
    assert (kept["store-recall"]["eirkit_accuracy"], kept["store-recall"]["eirkit_seeds"]) == ("1.0", "12")


def test_a_significant_drop_fails_and_nothing_else_does(here):
    base = ("--eirkit-workload", "store-recall", "-k", "store-recall")
    run(here, *SYSTEM, *base, "--eirkit-record", "base.json").assert_outcomes(passed=1, deselected=1)
    run(here, *SYSTEM, *base, "--eirkit-baseline", "base.json").assert_outcomes(passed=1, deselected=1)
    (here.path / "mine.py").write_text(LOSSY)
    done = run(here, *SYSTEM, *base, "--eirkit-baseline", "base.json", "--eirkit-record", "now.json")
    done.assert_outcomes(failed=1, deselected=1)
    done.stdout.fnmatch_lines(["accuracy dropped: 1.000 → 0.*p = 0.0005; wrong steps: *missing input*"])
    # Deciding again needs no run: the memory system is not even there.
    (here.path / "mine.py").unlink()
    decided = run(here, "--eirkit-recorded", "now.json", "--eirkit-baseline", "base.json", "-p", "no:cacheprovider")
    decided.assert_outcomes(failed=1)
    assert run(here, "--eirkit-recorded", "base.json", "--eirkit-baseline", "base.json").ret == 0


@pytest.mark.slow  # a pytest of its own, or several
def test_recording_decides_nothing_about_numbers(here):
    (here.path / "mine.py").write_text(LOSSY)
    done = run(here, *SYSTEM, "-k", "store-recall", "--eirkit-record", "base.json")
    done.assert_outcomes(passed=1, deselected=1)
    assert min(read_cases(here.path / "base.json")["mine.py:Notebook store-recall"].runs.values()) < 1


@pytest.mark.slow  # a pytest of its own, or several
def test_a_threshold_is_missed_only_beyond_doubt(here):
    (here.path / "mine.py").write_text(LOSSY)
    chosen = (*SYSTEM, "-k", "store-recall")
    done = run(here, *chosen, "--eirkit-at-least", "0.99")
    done.assert_outcomes(failed=1, deselected=1)
    done.stdout.fnmatch_lines(["accuracy is below 0.99: mine.py:Notebook, store-recall: 0.*"])
    run(here, *chosen, "--eirkit-at-least", "0.2").assert_outcomes(passed=1, deselected=1)


def test_a_system_that_keeps_no_contract_or_breaks_is_told_so(here):
    (here.path / "mine.py").write_text(MEMORY.replace("        self.lines = {}", "        pass", 2))
    done = run(here, *SYSTEM, "-k", "conformance")
    done.assert_outcomes(failed=1, deselected=1)
    (here.path / "mine.py").write_text(MEMORY.replace("words = query.split()", "raise OSError('disk on fire')"))
    done = run(here, *SYSTEM, "-k", "store-recall")
    done.assert_outcomes(failed=1, deselected=1)
    done.stdout.fnmatch_lines(
        ["*at seed 0: OSError: disk on fire (raised by search); correct it and run the test again"]
    )


@pytest.mark.slow  # some twenty processes for each
def test_each_of_fifteen_broken_memories_is_named_by_its_fault(here):
    """As by `check_memory`, but in processes of their own, with what pytest prints."""
    (here.path / "faulty.py").write_text(Path(faulty_memories.__file__).read_text("utf-8"))
    kinds = [kind.__name__ for kind in faulty_memories.BROKEN]
    named = [part for kind in kinds for part in ("--eirkit-memory", f"faulty.py:{kind}")]
    done = run(here, *named, *SYSTEM[2:], "-k", "conformance")
    done.assert_outcomes(failed=15, deselected=15)
    told = re.split(r"\n_+ eirkit\[faulty\.py:(\w+)\]::conformance _+\n", done.stdout.str())
    said = dict(zip(told[1::2], told[2::2], strict=True))
    assert list(said) == kinds
    for kind, pattern in faulty_memories.BROKEN.items():
        assert re.search(pattern, said[kind.__name__]), f"{kind.__name__}: {said[kind.__name__]}"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("words = query.split()", "return None", "search returned None; return a list of strings*"),
        (
            "write(self, item: Item)",
            "write(self, label, text)",
            "write cannot be called *write it as `async def write*",
        ),
    ],
)
def test_a_beginners_mistake_fails_and_says_what_to_write(here, old, new, said):
    assert old in MEMORY
    (here.path / "mine.py").write_text(MEMORY.replace(old, new))
    done = run(here, *SYSTEM)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines([f"the memory system's {said}", f"the memory system failed at seed 0: *{said}"])


def test_a_setting_is_spelled_as_for_lacuna_run(here):
    (here.path / "mine.py").write_text(SIZED)
    run(
        here, *SYSTEM, "-k", "store-recall", "--eirkit-memory-set", "Notebook.size=64", "--eirkit-at-least", "1"
    ).assert_outcomes(passed=1, deselected=1)
    run(here, *SYSTEM, "-k", "store-recall", "--eirkit-memory-set", "size=1", "--eirkit-at-least", "1").assert_outcomes(
        failed=1, deselected=1
    )


def test_no_model_is_called_anywhere_but_at_the_given_server(here):
    """Neither the agent's model nor that of the memory, in the runs or in the check of the contract."""
    (here.path / "mine.py").write_text(THINKING.replace("{plain}", PLAIN))
    (here.path / "prices.toml").write_text('[prices]\n"openai/any" = { input = 1, output = 1, as_of = 2026-01-01 }\n')
    plain = answers_as("recoverer")

    def answer(received: Received) -> Answer:
        return plain(received) if len(received.body["messages"]) > 1 else says("noted")

    with ModelServer(answer) as server:
        model = ("--eirkit-model", "openai/any", "--eirkit-base-url", server.url, "--eirkit-prices", "prices.toml")
        tasks = (
            "--eirkit-seeds",
            "0:2",
            "--eirkit-n",
            "6",
            "--eirkit-m",
            "3",
            "--eirkit-h",
            "1",
            "--eirkit-cap-usd",
            "9",
        )
        run(here, *SYSTEM, *model, *tasks, "--eirkit-memory-set", "Notebook.model=openai/any").assert_outcomes(passed=2)
        asked = [len(received.body["messages"]) > 1 for received in server.received]
    assert asked.count(True) >= 2 * 6  # by the agent
    assert asked.count(False) > 2 * 6  # by the memory: for each record of both runs, and in the check of the contract


def test_a_model_that_is_out_skips_and_does_not_fail(here):
    (here.path / "shaky.py").write_text(MODEL)
    done = run(here, *SYSTEM, "-k", "store-recall", "--eirkit-model", "shaky.py:Shaky/down", "-rs")
    done.assert_outcomes(skipped=1, deselected=1)
    done.stdout.fnmatch_lines(["*no run was scored: the model is out*"])


@pytest.mark.slow  # a pytest of its own, or several
def test_workers_report_home(here, monkeypatch):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    chosen = ("--eirkit-workload", "store-recall,stepwise-sum", "--eirkit-record", "base.json", "-n", "2")
    run(here, *SYSTEM, *chosen).assert_outcomes(passed=3)
    assert {case.workload for case in read_cases(here.path / "base.json").values()} == {"store-recall", "stepwise-sum"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--eirkit-baseline", "missing.json"), "*cannot read missing.json*"),
        (
            ("--eirkit-baseline", "base.json", "--eirkit-seeds", "0:4"),
            "*4 seeds are too few for a verdict at this level; give --eirkit-seeds at least 6*",
        ),
        (("--eirkit-alpha", "7"), "*--eirkit-alpha is 7; give a level between 0 and 1*"),
        (("--eirkit-at-least", "2"), "--eirkit-at-least 2 is not an accuracy; give a value between 0 and 1"),
        (("--eirkit-workload", "store-recal"), "no workload named 'store-recal'; did you mean 'store-recall'?*"),
        (("--eirkit-memory", "mine.py:Notebok"), "no memory in mine.py named 'Notebok'; did you mean 'Notebook'?*"),
        (
            ("--eirkit-record", "mine.py/base.json"),
            "cannot write mine.py/base.json: *; choose another path for --eirkit-record",
        ),
        (("--eirkit-record", "."), "cannot write .: it is a folder; choose another path for --eirkit-record"),
        (("--eirkit-memory-set", "size"), "--eirkit-memory-set 'size' is not a setting; write MEMORY.NAME=VALUE*"),
        (("--eirkit-memory-set", "Notebook.size=3"), "no setting of memory 'mine.py:Notebook' named 'size'*"),
        (("--eirkit-memory-set", "Other.size=3"), "no memory of this grid named 'Other'*"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(here, options, said):
    done = run(here, *SYSTEM, *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_nothing_runs_in_the_place_of_what_was_recorded(here):
    (here.path / "mine.py").write_text("raise SystemExit('this must not be loaded')")
    write_cases(here.path / "base.json", {"a": case(dict.fromkeys(range(12), 1.0))})
    write_cases(here.path / "none.json", {})
    for file, said in (
        ("base.json", "base.json has no runs of mine.py:Notebook, only of m; record them, or leave out*"),
        ("none.json", "none.json holds no runs; record them with --eirkit-record"),
    ):
        done = run(here, *SYSTEM, "--eirkit-recorded", file, "--eirkit-baseline", "base.json")
        assert done.ret == pytest.ExitCode.USAGE_ERROR
        done.stderr.fnmatch_lines([f"ERROR: {said}"])
    known = ("--eirkit-memory", "m", "--eirkit-recorded", "base.json", "--eirkit-baseline", "base.json")
    run(here, *known, "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_too_few_pairs_for_any_verdict_are_refused():
    few = dict.fromkeys(range(5), 1.0)
    with pytest.raises(UsageError, match="5 seeds have runs both now and in the baseline, and 6 are needed"):
        compare(few, few, 0.05)


FIXTURES = """
import pytest

from eirkit.lacuna.findings.causes import judge, score
from eirkit.lacuna.models.model import Reply


@pytest.mark.lacuna("stepwise-sum", n=8, m=4, h=4, seed=3)
def test_an_agent_of_ones_own(lacuna_task, lacuna_session):
    decisions = []
    while (request := lacuna_session.request()) is not None:
        t = lacuna_session.position
        (answer,) = lacuna_task.step(t).answer
        lacuna_session.receive(Reply(f"ANSWER {t} {answer}"))
        decisions += lacuna_session.drain()
    verdicts = judge(lacuna_task, lacuna_session.task.workload, decisions)
    assert score(verdicts, decisions).accuracy == 1
    assert lacuna_task.spec.seed == 3


def test_defaults(lacuna_task):
    assert (lacuna_task.spec.workload, lacuna_task.spec.n) == ("stepwise-sum", 64)


@pytest.mark.lacuna("store-recall", hh=3)
def test_a_wrong_word(lacuna_task):
    pass


@pytest.mark.lacuna("store-recall", h=[4, 8], m=8)
def test_two_tasks(lacuna_task):
    pass


@pytest.mark.lacuna("store-recall", seeds="0:3")
def test_three_seeds(lacuna_task):
    pass
"""
UNUSED = """
import sys


def test_nothing_heavy_is_loaded():
    assert "eirkit_pytest" in sys.modules
    assert not [name for name in ("eirkit", "numpy", "click", "rich") if name in sys.modules]
"""


def test_fixtures_give_a_task_and_a_session(pytester):
    pytester.makepyfile(FIXTURES)
    done = run(pytester, "--strict-markers")
    done.assert_outcomes(passed=2, errors=3)
    done.stdout.fnmatch_lines(["*no key named 'hh'; did you mean 'h'?*"])
    done.stdout.fnmatch_lines(["*the marker lacuna describes one task, not 2; give one value of h"])
    done.stdout.fnmatch_lines(["*the marker lacuna describes one task; give one seed, such as seed=3"])


def test_it_costs_nothing_where_nobody_asks(pytester):
    pytester.makepyfile(UNUSED)
    cold = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:xdist", timeout=PATIENCE_SECONDS)
    cold.assert_outcomes(passed=1)


def case(runs: dict[int, float], h: int = 4) -> RegressionCase:
    setting = replace(ELSEWHERE, task=replace(ELSEWHERE.task, n=12), access=Access(h=h))
    return RegressionCase("m", "w", setting, runs, {}, {})


shares = st.integers(0, 8).map(lambda eighths: eighths / 8)


@settings(max_examples=40)
@given(st.lists(st.tuples(shares, shares), min_size=6, max_size=9))
def test_the_verdict_is_that_of_every_way_to_flip_the_signs(pairs):
    now, then = (dict(enumerate(column)) for column in zip(*pairs, strict=True))
    change = compare(now, then, 0.05)
    eighths = [round(8 * (a - b)) for a, b in pairs]  # exact integers
    flipped = [
        abs(sum(s * d for s, d in zip(signs, eighths, strict=True))) for signs in product((1, -1), repeat=len(pairs))
    ]
    p = sum(total >= abs(sum(eighths)) for total in flipped) / len(flipped)
    assert change.p == p
    assert change.dropped == (sum(eighths) < 0 and p < 0.05)
    assert compare(then, now, 0.05).p == p
    assert not (change.dropped and compare(then, now, 0.05).dropped)


def test_noise_alone_raises_no_more_alarms_than_allowed():
    # 200 suites of 12 seeds in which nothing changed but the model's luck. A drop is one side of a two-sided test.
    trials, alpha = 200, 0.05
    drawn = below(words([7], trials * 24, "alarms"), 33).reshape(trials, 2, 12) / 32
    alarms = sum(compare(dict(enumerate(a)), dict(enumerate(b)), alpha).dropped for a, b in drawn.tolist())
    # Binomial(200, 0.025) exceeds 12 with a probability of about 0.0016.
    assert alarms <= 12


@pytest.mark.parametrize(("alpha", "needed"), [(0.05, 6), (0.025, 7), (0.5, 3), (1e-9, 17)])
def test_how_many_seeds_a_verdict_takes(alpha, needed):
    assert least_pairs(alpha) == needed


def test_a_baseline_recorded_otherwise_is_refused(tmp_path):
    now, path = case({0: 1.0}, h=4), tmp_path / "base.json"
    with pytest.raises(UsageError, match="has no runs of m on w; record them with --eirkit-record"):
        pair_up(now, {}, path)
    with pytest.raises(UsageError, match="recorded with a different h; record it again"):
        pair_up(now, {now.key: case({0: 1.0}, h=5)}, path)


def test_a_record_reads_back_and_a_damaged_one_is_named(tmp_path):
    path, kept = tmp_path / "deep" / "base.json", case({3: 0.5, 1: 1.0}, h=4)
    write_cases(path, {kept.key: kept})
    assert read_cases(path) == {kept.key: kept}
    document = json.loads(path.read_text())
    del document["cases"][0]["runs"]
    path.write_text(json.dumps(document))
    with pytest.raises(InputFileError, match="Object missing required field `runs`"):
        read_cases(path)
