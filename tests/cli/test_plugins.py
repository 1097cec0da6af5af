"""What a user's own file does wrong is said in one line that names the place."""

import json
import re

import pytest

from eirkit.cli import run
from tests import runs
from tests.cli.test_main import call

POLICY = """
from eirkit.lacuna.tasks.policy import Policy


class Boom(Policy):
    def victim(self, candidates, step):
        raise ValueError("out of ideas")
"""
WORKLOAD = '''
from eirkit.lacuna.tasks.workload import Workload


class Broken(Workload):
    """Breaks."""

    def operate(self, spec, fresh, operands):
        return 1 / 0
'''


def test_a_policy_that_raises_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.py").write_text(POLICY)
    done = call(
        "lacuna", "simulate", "stepwise-sum", "--policy", f"{tmp_path}/mine.py:Boom", "--h", "4", "--seeds", "0:2"
    )
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("eirkit: ")]
    assert "mine.py:7 raised ValueError: out of ideas" in line
    assert "Traceback" not in done.stderr


def test_a_workload_that_raises_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.py").write_text(WORKLOAD)
    done = call("lacuna", "generate", f"{tmp_path}/mine.py:Broken")
    assert done.returncode == 2
    assert "mine.py:9 raised ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_sweep_is_not_resumed_with_a_workload_that_has_changed(tmp_path):
    source = tmp_path / "mine.py"
    source.write_text(WORKLOAD.replace("1 / 0", "fresh"))
    folder = tmp_path / "out"
    sweep = ("--workload", f"{source}:Broken", "--h", "4", "--seeds", "0:2", "--model", "reference/calculator")
    assert call("lacuna", "run", *sweep, "--out", folder).returncode == 0
    source.write_text(WORKLOAD.replace("1 / 0", "tuple(reversed(fresh))"))
    done = call("lacuna", "run", "--resume", folder)
    assert done.returncode == 2
    assert "mine.py has changed since" in done.stderr


def test_a_workload_with_moods_is_refused_in_one_line(tmp_path):
    source = WORKLOAD.replace("1 / 0", "(random.randrange(1000),)")
    (tmp_path / "mine.py").write_text(f"import random\n{source}")
    for command in (
        ("lacuna", "generate", f"{tmp_path}/mine.py:Broken"),
        ("lacuna", "run", "--workload", f"{tmp_path}/mine.py:Broken", "--model", "reference/calculator", "--out", "x"),
    ):
        done = call(*command)
        assert done.returncode == 2
        assert done.stderr.startswith("eirkit: ")
        assert done.stderr.count("\n") == 1
        assert "gives different answers for the same seed; make them depend on the arguments alone" in done.stderr


WRONG = {
    "Workload, operate": ["None", "7", "(1, 2)", "(1.5,)", "('1',)", "(10**30,)", "{'a': 1}"],
    "Workload, references": ["None", "[[[1]]]", "numpy.ones(3)", "numpy.ones((1, 3, 1), int)"],
    "Workload, operate_batch": ["None", "[[1]]", "numpy.ones((1, 1))"],
    "Policy, victim": ["None", "[1]", "{}", "numpy.ones(2)"],
}
RETURNING = """
import numpy
from eirkit.lacuna.tasks.{where} import {kind}


class Mine({kind}):
    def operate(self, spec, fresh, operands):
        return fresh

    def {verb}(self, *_):
        return {value}
"""


@pytest.mark.parametrize(("kind", "verb", "value"), [(*k.split(", "), v) for k, some in WRONG.items() for v in some])
def test_a_plug_in_that_returns_something_else_is_refused_in_one_line(kind, verb, value, tmp_path, capsys):
    where = kind.lower()
    (tmp_path / "mine.py").write_text(RETURNING.format(kind=kind, where=where, verb=verb, value=value))
    named = (
        ("--policy", f"{tmp_path}/mine.py:Mine", "stepwise-sum") if where == "policy" else (f"{tmp_path}/mine.py:Mine",)
    )
    command = ("simulate", "--h", "1", "--seeds", "0:1") if where == "policy" else ("generate",)
    assert run(["lacuna", *command, *named, "--n", "3", "--fan-in", "1", "--m", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"mine.py:Mine (answered|returned|refers)|policy Mine chose", line), line
    assert "; re" in line


LOUD = """
import os, subprocess
os.write(1, b"to the descriptor")
subprocess.run(["echo", "from a program"])
class Boom(Exception):
    def __str__(self):
        raise ValueError
"""


def test_what_reaches_the_descriptor_does_not_end_up_in_the_document(tmp_path):
    (tmp_path / "mine.py").write_text(LOUD + WORKLOAD.replace("1 / 0", "fresh"))
    done = call("lacuna", "generate", f"{tmp_path}/mine.py:Broken", "--n", 3, "--json")
    assert len(json.loads(done.stdout)["steps"]) == 3
    assert "to the descriptor" in done.stderr
    assert "from a program" in done.stderr


@pytest.mark.parametrize("raised", ["Boom()", "RuntimeError('x' * 100_000)", "SystemExit(0)"])
def test_an_error_of_a_plug_in_is_a_short_line(tmp_path, raised):
    (tmp_path / "mine.py").write_text(LOUD + WORKLOAD.replace("return 1 / 0", f"raise {raised}"))
    done = call("lacuna", "generate", f"{tmp_path}/mine.py:Broken", "--n", 3, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr) < 1000
    assert done.stderr.endswith("(in operate of the workload Broken); fix the file and run again\n")


@pytest.mark.parametrize("body", ["raise SystemExit(0)", "return [7]", "raise Boom()"])
def test_a_format_that_leaves_or_gives_something_else_is_named(tmp_path, body):
    methods = f"    def recognizes(self, document):\n        return 3\n    def read(self, document):\n        {body}\n"
    (tmp_path / "mine.py").write_text(f"{LOUD}class Mine:\n{methods}")
    (tmp_path / "log.jsonl").write_text("{}\n")
    log = ("--log-format", f"{tmp_path}/mine.py:Mine", tmp_path / "log.jsonl")
    done = call("vestige", "analyze", *log, "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "mine.py:Mine failed (" in done.stderr.splitlines()[-1]


def test_what_a_plug_in_prints_does_not_end_up_in_the_document(tmp_path):
    source = WORKLOAD.replace("return 1 / 0", 'print("computing")\n        return fresh')
    (tmp_path / "mine.py").write_text(f'print("loading")\n{source}')
    done = call("lacuna", "generate", f"{tmp_path}/mine.py:Broken", "--n", 3, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["steps"]) == 3
    assert "loading\n" in done.stderr
    assert "computing\n" in done.stderr


def test_a_sweep_with_relative_plug_ins_is_resumed_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "here" / "plug").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "plug" / "mine.py").write_text(WORKLOAD.replace("1 / 0", "fresh"))
    sweep = ("--workload", "plug/mine.py:Broken", "--h", "4", "--seeds", "0:2", "--model", "reference/calculator")
    done = call("lacuna", "run", *sweep, "--out", "../out", "--json", cwd=tmp_path / "here")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["places"] == {"plug/mine.py": "../here/plug/mine.py"}
    assert str(tmp_path) not in json.dumps(manifest), "no path of this machine"
    runs.cut(tmp_path / "out", 1)
    again = call("lacuna", "run", "--resume", tmp_path / "out", "--json", cwd=tmp_path / "there")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["rows"] == json.loads(done.stdout)["rows"]
    # A namesake in the other folder is not mistaken for it.
    (tmp_path / "there" / "plug").mkdir()
    (tmp_path / "there" / "plug" / "mine.py").write_text(WORKLOAD)
    assert call("lacuna", "run", "--resume", tmp_path / "out", cwd=tmp_path / "there").returncode == 0
    (tmp_path / "here" / "plug" / "mine.py").write_text(WORKLOAD.replace("1 / 0", "tuple(reversed(fresh))"))
    gone = call("lacuna", "run", "--resume", tmp_path / "out", cwd=tmp_path / "there")
    assert gone.returncode == 2
    assert "plug/mine.py has changed since" in gone.stderr


def test_a_setting_that_no_model_has_is_refused(tmp_path):
    sweep = ("--workload", "stepwise-sum", "--seeds", "0", "--out", tmp_path / "out", "--set", "probability=0.2")
    done = call("lacuna", "run", *sweep, "--model", "reference/sloppy")
    assert done.returncode == 2
    assert done.stderr == "eirkit: no setting of reference models named 'probability'; known: p\n"
    done = call("lacuna", "rescue", "--model", "reference/sloppy", "--set", "q=1")
    assert done.returncode == 2
    assert "no setting of reference models named 'q'" in done.stderr
