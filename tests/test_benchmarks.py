"""`python -m benchmarks`: finds every benchmark, refuses unknown names, and reports a missed target."""

import sys
from pathlib import Path

import benchmarks
from benchmarks.__main__ import known

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
