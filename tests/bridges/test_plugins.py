"""A distribution that is not ours adds a plug-in of every family, and each is used by its plain name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import completed

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "eirkit-example"
LOG = {"step_log": [{"typed": "cat a.py", "saw": "x = 1"}, {"typed": "sed -i s/1/2/ a.py", "saw": ""}]}
TASK = ("--n", "12", "--m", "4", "--h", "2", "--seeds", "0:2")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution, built and installed into a folder of its own."""
    target = tmp_path_factory.mktemp("plugins") / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    done = completed([*pip, "--no-build-isolation", "--target", str(target), str(EXAMPLE)])
    assert done.returncode == 0, done.stderr
    return target


def call(installed: Path | None, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": str(installed)} if installed else {}
    return completed([sys.executable, "-m", "eirkit", *arguments], cwd=cwd, env={**os.environ, **path, "NO_COLOR": "1"})


def answer(installed: Path, *arguments: str, cwd: Path) -> dict[str, object]:
    done = call(installed, *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


def test_the_workload(installed, tmp_path):
    made = answer(installed, "lacuna", "generate", "stepwise-product", "--n", "6", "--m", "3", cwd=tmp_path)
    answers = {0: 1}
    for step in made["steps"]:
        product = step["input"]
        for reference in step["refs"]:
            product *= answers[reference]
        answers[step["t"]] = product % 10_000
        assert step["answer"] == answers[step["t"]]


def test_the_policy(installed, tmp_path):
    rows = answer(
        installed,
        "lacuna",
        "simulate",
        "stepwise-sum",
        "--policy",
        "fifo,served-first",
        "--seeds",
        "0:20",
        cwd=tmp_path,
    )["rows"]
    assert {row["policy"] for row in rows} == {"fifo", "served-first"}
    assert all(0 <= row["miss_rate"] <= 1 for row in rows)


def test_the_memory_system_with_a_setting(installed, tmp_path):
    run = ("lacuna", "run", "--workload", "store-recall", *TASK, "--model", "reference/recoverer")
    (whole,) = answer(installed, *run, "--memory", "card-index", "--out", "whole", cwd=tmp_path)["rows"]
    assert whole["accuracy"] == 1
    small = ("--memory", "card-index", "--set", "card-index.drawers=1", "--out", "small")
    (cut,) = answer(installed, *run, *small, cwd=tmp_path)["rows"]
    assert cut["accuracy"] < 1


def test_the_model(installed, tmp_path):
    run = ("lacuna", "run", "--workload", "store-recall", *TASK, "--model", "short-sighted/any", "--out", "out")
    (row,) = answer(installed, *run, cwd=tmp_path)["rows"]
    assert row["accuracy"] == 0.5  # it stores what it is given and recalls nothing
    assert row["model"] == "short-sighted/any"


def test_the_format(installed, tmp_path):
    listed = answer(installed, "vestige", "formats", cwd=tmp_path)["formats"]
    assert "step-log" in {row["name"] for row in listed}
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "monday.json").write_text(json.dumps(LOG))
    summary = answer(installed, "vestige", "analyze", "logs", "--out", "out", cwd=tmp_path)
    assert (summary["runs"], summary["skipped"]) == (1, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lacuna", "generate", "stepwise-product"), "no workload named 'stepwise-product'"),
        (("lacuna", "simulate", "stepwise-sum", "--policy", "served-first"), "no policy named 'served-first'"),
    ],
)
def test_without_it_nobody_knows_the_names(arguments, said, tmp_path):
    done = call(None, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_plug_in_that_cannot_be_loaded_is_named_with_its_distribution(installed, tmp_path):
    (tmp_path / "eirkit_example").mkdir()
    (tmp_path / "eirkit_example" / "__init__.py").touch()
    (tmp_path / "eirkit_example" / "workload.py").write_text("import no_such_package")
    both = os.pathsep.join((str(tmp_path), str(installed)))
    done = call(Path(both), "lacuna", "generate", "stepwise-product", cwd=tmp_path)
    assert done.returncode == 2
    assert "workload 'stepwise-product' of eirkit-example" in done.stderr
    assert "no_such_package" in done.stderr
    assert done.stderr.count("\n") == 1
