"""`python -m benchmarks`: finds every benchmark, refuses unknown names, and reports a missed target."""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import benchmarks
import pytest
from benchmarks import ledger
from benchmarks.__main__ import known
from benchmarks._claims import CLAIMS, Pair

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


def _slowed(works: Pair, times: int) -> Pair:
    """Do our side's work several times over: the same as if it had become so many times slower."""
    return replace(works, ours=lambda: [works.ours() for _ in range(times)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sessions", "reader", "counter"])
def test_a_claim_that_takes_twice_as_long_is_caught(name, tmp_path, monkeypatch, capsys):
    claim = next(one for one in CLAIMS if one.name == name)

    @contextmanager
    def twice():
        with claim.pair() as works:
            yield _slowed(works, 2)

    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "ledger.jsonl")
    honest = min(ledger.measure(claim, rounds=3) for _ in range(2))
    ledger.LEDGER.write_text(json.dumps({"commit": "0", "ratios": {name: honest}}) + "\n", "utf-8")
    assert ledger.check([claim]) == 0
    assert ledger.check([replace(claim, pair=twice)]) == 1
    out, err = capsys.readouterr()
    assert "WORSE" in out
    assert f"slower than before: {name}" in err


def test_the_page_shows_the_ratios_that_are_kept():
    assert ledger.table() in ledger.PAGE.read_text("utf-8")
    assert set(ledger.kept()) <= {claim.name for claim in CLAIMS}
