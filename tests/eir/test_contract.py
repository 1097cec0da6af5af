"""Contracts in users' files: how they are found, what is missing is said, and `eirkit eir count` end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.eir.contract import Process, check_form, count_contract, load_contract
from eirkit.errors import ContractError, InputFileError, UnknownNameError, UsageError

TIMEZONE = f"{Path(__file__).parents[2] / 'examples' / 'timezone.py'}:timezone"

FILE = """
from dataclasses import dataclass
from types import SimpleNamespace

class bound:
    def histories(self):
        yield from range(6)
    futures = (0, 1)
    def respond(self, history, future):
        return history // 2 if future else 0

class static:
    histories = range(6)
    futures = (0, 1)
    @staticmethod
    def respond(history, future):
        return history // 2 if future else 0

@dataclass
class Sized:
    size: int
    futures = (0, 1)
    @property
    def histories(self):
        return range(self.size)
    def respond(self, history, future):
        return history // 2 if future else 0

instance = Sized(6)
namespace = SimpleNamespace(histories=range(6), futures=(0, 1), respond=lambda h, u: h // 2 if u else 0)

class switch:
    states = ("off", "on")
    horizon = None
    def moves(self, state):
        return ("look", "press")
    def step(self, state, move):
        following = state if move == "look" else {"off": "on", "on": "off"}[state]
        return following, following

class unfinished:
    states = ()
    def step(self, state, move): ...

class mixed(bound):
    states = ()

class endless(switch):
    horizon = -1

class deaf(bound):
    respond = "no"

huge = SimpleNamespace(histories=range(10**12), futures=(0,), respond=lambda h, u: h)
raises = SimpleNamespace(histories=(1,), futures=(1,), respond=lambda h, u: [][1])
lists = SimpleNamespace(histories=(1,), futures=(1,), respond=lambda h, u: [h])
empty = SimpleNamespace(histories=(), futures=(1,), respond=lambda h, u: h)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("name", ["bound", "static", "instance", "namespace"])
def test_classes_instances_and_namespaces_are_contracts(file: Path, name: str) -> None:
    found = load_contract(f"{file}:{name}")
    assert not isinstance(found, Process)
    assert count_contract(found).groups == ((0, 1), (2, 3), (4, 5))


def test_a_process_is_recognized(file: Path) -> None:
    assert isinstance(load_contract(f"{file}:switch"), Process)


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        ("unfinished", ContractError, r"has states, step but no moves, horizon; add what is missing"),
        ("mixed", ContractError, r"mixes both forms; define either histories, futures, respond or states"),
        ("dataclass", ContractError, r"is not a contract; define either histories, futures, respond or states"),
        ("endless", ContractError, r"horizon is -1; give the remaining steps or None"),
        ("deaf", ContractError, r"respond is 'no'; make it a function"),
        ("Sized", ContractError, r"Sized\(\) raised TypeError: .*'size'; fix the contract"),
        ("nothing", UnknownNameError, r"named 'nothing'; .*known: "),
    ],
)
def test_what_is_missing_is_said(file: Path, name: str, kind: type[UsageError], complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        load_contract(f"{file}:{name}")


def test_a_file_that_is_not_there_or_raises(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"absent\.py"):
        load_contract(f"{tmp_path}/absent.py:timezone")
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no luck')")
    with pytest.raises(InputFileError, match="RuntimeError: no luck"):
        load_contract(f"{broken}:timezone")


@pytest.mark.parametrize("horizon", [True, 1.0, "3"])
def test_a_horizon_is_a_number_of_steps(horizon: object) -> None:
    class Odd:
        states = (0,)

        def moves(self, state: int) -> tuple[int, ...]:
            return ()

        def step(self, state: int, move: int) -> tuple[int, int]:
            return 0, 0

    odd = Odd()
    odd.horizon = horizon  # type: ignore[attr-defined]
    with pytest.raises(ContractError, match="give the remaining steps"):
        check_form(odd)


def test_six_timezone_histories_need_two_bits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eir", "count", TIMEZONE, "--json", "--all"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["classes"], document["bits"], document["representation_bits"]) == (4, 2.0, 2)
    assert (document["histories"], document["futures"], document["form"]) == (6, 2, "finite")
    assert document["groups"] == [["h1", "h2"], ["h3"], ["h4"], ["h5", "h6"]]


def test_the_answer_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eir", "count", TIMEZONE, "--all"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "2.000 bits must survive this cut" in told
    assert "histories 6 classes 4: histories of one class need the same answers" in told
    assert "A fixed-length code needs 2 whole bits" in told


def test_a_process_from_a_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eir", "count", f"{file}:switch", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["classes"], document["form"], document["horizon"]) == (2, "process", None)


@pytest.mark.parametrize("name", ["raises", "lists", "empty", "huge", "nothing", "unfinished"])
def test_bad_contracts_end_with_one_line_and_code_two(
    file: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eir", "count", f"{file}:{name}"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert told.err.startswith("eirkit: ")


@pytest.mark.parametrize("arguments", [["no-colon"], ["a.py:b:c.py"], [TIMEZONE, "--limit", "0"], []])
def test_bad_usage_ends_with_one_line_and_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eir", "count", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_limit_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eir", "count", TIMEZONE, "--limit", "11"]) == 2
    assert "12 evaluations, above the limit of 11" in capsys.readouterr().err
    assert run(["eir", "count", TIMEZONE, "--limit", "12"]) == 0
