"""`eirkit.play`: an agent of one's own is scored as in a sweep, and what its own memory holds counts if declared."""

from __future__ import annotations

import asyncio
import re

import pytest

import eirkit
from eirkit.errors import PluginError, UsageError
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Request
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from tests.lacuna.prompt_reading import read_prompt
from tests.runs import records

SPEC = eirkit.TaskSpec("stepwise-sum", n=24, m=4)


def agent(prompt: str) -> str:
    """Add what is shown and leave out what is not."""
    t, given = re.search(r"STEP (\d+).*\nINPUT (\d+)", prompt).groups()
    needed = re.findall(r"A_\d+", "".join(re.findall(r"REFS (.+)", prompt)))
    shown = dict(re.findall(r"(A_\d+) = (\d+)", prompt))
    return f"ANSWER {int(t)} {(int(given) + sum(int(shown.get(one, 0)) for one in needed)) % 10000}"


class Remembering:
    """The same with a memory of everything that it was ever shown."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    def __call__(self, prompt: str) -> str:
        self.notes.update(re.findall(r"(A_\d+) = (\d+)", prompt))
        return agent(prompt + "".join(f"\n{label} = {value}" for label, value in self.notes.items()))

    def held(self) -> str:
        return ". ".join(f"{label} = {value}" for label, value in self.notes.items())


@pytest.mark.parametrize("h", [1, 2, 4])
def test_an_agent_is_scored_as_the_calculator_of_a_sweep(h, tmp_path):
    suite = read_suite(
        {"workload": "stepwise-sum", "n": 24, "m": 4, "h": h, "model": "reference/calculator", "seeds": "0:3"}
    )
    start_sweep(suite, tmp_path / "out", control=False)
    for record in records(tmp_path / "out"):
        played = eirkit.play(eirkit.generate(SPEC.with_seed(record.seed)), agent, h=h)
        assert (played.score.correct, played.score.errors) == (record.score.correct, record.score.errors)


def test_misses_are_those_of_a_simulation():
    task = eirkit.generate(SPEC)
    simulated = eirkit.simulate(task, "window", 2)
    assert eirkit.play(task, agent, h=2).score.missed == simulated.missed_steps > 0


def test_an_agent_may_be_async_and_may_run_in_a_loop():
    async def slow(prompt: str) -> str:
        await asyncio.sleep(0)
        return agent(prompt)

    task = eirkit.generate(SPEC)

    async def inside() -> float:
        return eirkit.play(task, slow, h=2).accuracy

    assert asyncio.run(inside()) == eirkit.play(task, agent, h=2).accuracy


def test_a_declared_memory_is_not_missing_and_an_undeclared_one_is():
    task = eirkit.generate(SPEC)
    declared = Remembering()
    told = eirkit.play(task, declared, h=2, held=declared.held)
    assert (told.accuracy, told.score.missed) == (1.0, 0)
    silent = eirkit.play(task, Remembering(), h=2)
    assert (silent.accuracy, silent.score.missed) == (1.0, eirkit.simulate(task, "window", 2).missed_steps)


def test_a_memory_that_holds_another_value_does_not_count():
    task = eirkit.generate(SPEC)
    wrong = eirkit.play(task, agent, h=2, held=lambda: "\n".join(f"A_{t} = 0001" for t in range(1, 25)))
    assert wrong.score.missed == eirkit.simulate(task, "window", 2).missed_steps
    assert wrong.causes == eirkit.play(task, agent, h=2).causes


def test_the_memory_of_an_agent_that_forgets_explains_its_errors():
    """It forgets every third answer: exactly the steps that need one of those are missed."""
    task, notes = eirkit.generate(SPEC), {}

    def forgetful(prompt: str) -> str:
        notes.update((a, v) for a, v in re.findall(r"(A_\d+) = (\d+)", prompt) if int(a[2:]) % 3)
        return agent(prompt + "".join(f"\n{a} = {v}" for a, v in notes.items()))

    played = eirkit.play(task, forgetful, h=1, held=lambda: "\n".join(f"{a} = {v}" for a, v in notes.items()))
    needs = {step.t for step in task.steps if any(r % 3 == 0 and r != step.t - 1 for r in step.refs)}
    assert {one.t for one in played.verdicts if one.missed} == needs
    assert needs


def test_what_an_agent_raises_is_raised_and_what_is_no_text_is_refused():
    task = eirkit.generate(SPEC)

    def broken(prompt: str) -> str:
        raise LookupError("no key")

    with pytest.raises(PluginError, match="no key"):
        eirkit.play(task, broken, h=2)
    with pytest.raises((UsageError, PluginError), match="return text"):
        eirkit.play(task, lambda prompt: 42, h=2)
    with pytest.raises(UsageError, match="h >= 1"):
        eirkit.play(task, agent, h=0)


def test_a_reference_agent_can_be_played():
    """The prompt has the rules and the state, and nothing else."""
    reference = make_reference("calculator", ModelOptions())

    async def asked(prompt: str) -> str:
        rules, _, state = prompt.partition("\n\n")
        return (await reference.reply(read_prompt(Request((Message("system", rules), Message("user", state)))))).text

    task = eirkit.generate(SPEC)
    assert eirkit.play(task, asked, h=2).causes == eirkit.play(task, agent, h=2).causes
