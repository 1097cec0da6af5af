"""`eirkit eir` for workloads and contracts of one's own: counted, stated or certified, and under pressure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.eir.demand import stepwise_sum

MINE = '''
from eirkit.eir.demand import stepwise_sum
from eirkit.lacuna.tasks.workload import Workload, curve_of


class Silent(Workload):
    """Adds, and states no formula."""

    def operate(self, spec, fresh, operands):
        return tuple(sum(column) % spec.q for column in zip(fresh, *operands))


class Right(Silent):
    def demand(self, spec, graph, cuts=None):
        return curve_of(spec, cuts, lambda t: stepwise_sum(spec.q, spec.n, spec.reach, spec.fan_in, t), "a sum")


class Wrong(Silent):
    def demand(self, spec, graph, cuts=None):
        return curve_of(spec, cuts, lambda t: spec.q if 0 < t < spec.n else 1, "a guess")
'''
SMALL = ("--n", "5", "--m", "3", "--digits", "1")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert run(["eir", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_small_workload_without_a_formula_is_counted(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "curve", f"{mine}:Silent", *SMALL)
    assert found["certified"]
    assert not found["stated"]
    assert [round(2**bits) for bits in found["bits"]] == [stepwise_sum(10, 5, 3, 2, t) for t in range(6)]
    assert run(["eir", "curve", f"{mine}:Silent"]) == 2
    assert "use a smaller --m" in capsys.readouterr().err


def test_a_formula_from_outside_is_stated_until_it_is_certified(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("Right", "Wrong"):
        found = shown(capsys, "curve", f"{mine}:{name}")
        assert (found["certified"], found["stated"]) == (False, True)
    found = shown(capsys, "curve", f"{mine}:Right", "--certify")
    assert (found["certified"], found["stated"]) == (True, False)
    assert "values = 2, 3; n = 2, 3, 4, 5" in found["method"]
    assert run(["eir", "curve", f"{mine}:Wrong", "--certify"]) == 2
    assert "the formula is wrong: after step" in capsys.readouterr().err


def test_pressure_of_a_contract(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "count", "examples/timezone.py:timezone", "--capacity", "1.6")
    assert found["pressure"] == {"capacity_bits": 1.6, "peak": pytest.approx(1.25)}


def test_a_frontier_has_the_keys_that_scripts_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, "frontier", "examples/timezone.py:timezone", "--capacity", "1", "--all")
    assert found["capacity"]["lower"] == pytest.approx(5 / 6)
    assert found["exact"]
    assert len(found["encoder"]["codes"]) == 6
    task = shown(capsys, "frontier", "full-lookup", "--capacity", "100")
    assert task["capacity"]["kept"] <= task["capacity"]["exists"] <= task["capacity"]["upper"]
    assert len(task["rows"]) == 17
    assert run(["eir", "frontier", "full-lookup", "--all"]) == 2
    assert "--capacity" in capsys.readouterr().err
    for bits, words in (("1", "With 1 bit the best"), ("2", "With 2 bits the best")):
        run(["eir", "frontier", "examples/timezone.py:timezone", "--capacity", bits])
        assert words in capsys.readouterr().out
