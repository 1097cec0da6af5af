"""What a user's own file does wrong is said in one line that names the place."""

from tests.cli.test_main import call

POLICY = """
from eirkit.lacuna.policy import Policy


class Boom(Policy):
    def victim(self, candidates, step):
        raise ValueError("out of ideas")
"""
WORKLOAD = '''
from eirkit.lacuna.workload import Workload


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
