"""`python -m benchmarks`: finds every benchmark, refuses unknown names, and reports a missed target."""

import json
import sys
from pathlib import Path

import benchmarks
import pytest
from benchmarks import ledger, planted
from benchmarks.__main__ import known
from benchmarks._claims import CLAIMS, Pair, Samples, sample

from tests.processes import completed

FOLDER = Path(benchmarks.__path__[0])


def test_every_file_is_a_benchmark_or_private():
    assert known() == sorted(file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_"))


def test_an_unknown_name_is_one_line_with_the_nearest():
    done = completed([sys.executable, "-m", "benchmarks", "help_tim"], cwd=FOLDER.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no benchmark named 'help_tim'; did you mean 'help_time'? known: ")


def test_a_missed_target_is_reported_after_the_others_ran(tmp_path):
    package = tmp_path / "benchmarks"
    package.mkdir()
    for name in ("__init__", "__main__"):
        (package / f"{name}.py").write_text((FOLDER / f"{name}.py").read_text("utf-8"), "utf-8")
    (package / "a.py").write_text("import sys\n\ndef main():\n    print('slow')\n    return 1\n")
    (package / "b.py").write_text("\ndef main():\n    print('quick')\n")
    (package / "shared.py").write_text("X = 1\n")
    done = completed([sys.executable, "-m", "benchmarks"], cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-5:] == ["", "— a", "slow", "", "— b", "quick"][-5:]
    assert done.stderr == "\nbelow target: a\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", planted.PLANTS)
def test_a_claim_that_takes_twice_as_long_is_caught(name, tmp_path, monkeypatch, capsys):
    claim = next(one for one in CLAIMS if one.name == name)
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "ledger.jsonl")
    honest = ledger.measure(claim, rounds=3)
    ledger.LEDGER.write_text(json.dumps({"commit": "0", "ratios": {name: honest}}) + "\n", "utf-8")
    assert ledger.check([claim]) == 0
    with planted.planted(name) as source:
        monkeypatch.setenv("PYTHONPATH", str(source))
        assert ledger.check([claim]) == 1
    out, err = capsys.readouterr()
    assert "WORSE" in out
    assert f"slower than before: {name}" in err


@pytest.mark.parametrize(
    ("peer", "is_settled"), [([1.0, 1.05], True), ([2.0, 1.0], False), ([1.0], False), ([1.0, 9.0, 1.02], True)]
)
def test_a_ratio_is_settled_where_the_yardsticks_least_was_met_twice(peer, is_settled):
    samples = Samples([3.0, 2.0], peer, 2.0)
    assert samples.is_settled is is_settled
    assert samples.ratio == 1.0


def test_both_sides_are_measured_in_turns_until_the_ratio_is_good():
    calls = []
    pair = Pair(lambda: calls.append("ours"), lambda: calls.append("peer"))
    assert sample(pair, rounds=2).ours
    assert calls[:2] == ["ours", "peer"]
    assert {"ours", "peer"} == set(calls[2:])


def test_the_page_shows_the_ratios_that_are_kept():
    assert ledger.table() in ledger.PAGE.read_text("utf-8")
    assert set(ledger.kept()) <= {claim.name for claim in CLAIMS}
