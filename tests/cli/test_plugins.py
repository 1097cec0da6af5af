"""What a user's own file does wrong is said in one line that names the place."""

import json

from tests.cli.test_main import call

POLICY = """
from eirkit.tasks.policy import Policy


class Boom(Policy):
    def victim(self, candidates, step):
        raise ValueError("out of ideas")
"""
WORKLOAD = '''
from eirkit.tasks.workload import Workload


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
    runs = tmp_path / "out" / "runs.jsonl"
    runs.write_bytes(runs.read_bytes().splitlines(keepends=True)[0])
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
