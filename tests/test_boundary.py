"""Whose fault a failure is: for every side, whatever a plug-in raises arrives typed, where it was called."""

from __future__ import annotations

import ast
import asyncio
import pickle
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import ModelError, PluginError, SpendCapReached, StoreError, UsageError
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.memories.calls import call_with_timeout
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.tasks.policy import Policy, Record
from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.workloads import StepwiseSum
from eirkit.registry import call
from tests.bad_memories import go_wrong
from tests.runs import records

SOURCE = Path(__file__).parents[1] / "src"
HERE = __name__
BAD = "tests.bad_memories"
HOW = ("plain", "library", "chained", "exits", "cancels", "interrupts", "panics", "infrastructure")


SAID = {
    "plain": "ZeroDivisionError: by nothing",
    "library": "JSONDecodeError: ",
    "chained": "LookupError: no record",
    "exits": "SystemExit: 3",
    "cancels": "CancelledError: had enough",
    "interrupts": "KeyboardInterrupt: pretended",
    "panics": "Panic: index out of bounds",
    "infrastructure": "the server is on fire",
}


class BadModel:
    """Answers as a reference agent does until the third step."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.how, self.agent = name, make_reference("recoverer", ModelOptions())

    async def reply(self, request: Request) -> Reply:
        if "STEP 03" in request.messages[-1].content:
            go_wrong(self.how)
        return await self.agent.reply(request)

    async def close(self) -> None:
        pass

    def settings(self) -> dict[str, Any]:
        return {}


def bad_policy(how: str) -> type[Policy]:
    class BadPolicy(Policy):
        """Breaks at the first choice."""

        def victim(self, candidates: Sequence[Record], step: int) -> int:
            go_wrong(how)
            return candidates[0].id

    return BadPolicy


def bad_workload(how: str) -> type[StepwiseSum]:
    class BadWorkload(StepwiseSum):
        """Breaks when an agent's answer is taken in."""

        def canonical(self, values: Payload) -> Payload:
            go_wrong(how)
            return values

    return BadWorkload


class BadOperator(StepwiseSum):
    """Breaks when anybody but the generator applies it: a reference agent, inside its own reply."""

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        raise ArithmeticError("in the operator")


def __getattr__(name: str) -> object:
    """Make policies and workloads by name, such as `policy_plain`, for suites that find them by reference."""
    side, _, how = name.partition("_")
    makers = {"policy": bad_policy, "workload": bad_workload}
    if side not in makers or how not in HOW:
        raise AttributeError(name)
    return makers[side](how)


SIDES = {
    "model": lambda how: {"model": f"{HERE}:BadModel/{how}"},
    "memory": lambda how: {"memory": f"{BAD}:BadMemory", "memory_options": {"BadMemory": {"how": how}}},
    "memory, later": lambda how: {"memory": f"{BAD}:LateBadMemory", "memory_options": {"LateBadMemory": {"how": how}}},
    "memory, blocking": lambda how: {
        "memory": f"{BAD}:BlockingBadMemory",
        "memory_options": {"BlockingBadMemory": {"how": how}},
    },
    "policy": lambda how: {"policy": f"{HERE}:policy_{how}", "model": "reference/calculator"},
    "workload": lambda how: {"workload": f"{HERE}:workload_{how}", "model": "reference/calculator"},
}


def failures_of(change: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    sound = {"n": 12, "m": 4, "h": 2, "model": "reference/recoverer", "workload": "stepwise-sum", "seeds": "0:2"}
    summary = start_sweep(read_suite({**sound, **change}), folder, control=False)
    return [(group.kind, group.message) for group in summary.failures]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("side", SIDES)
def test_a_sweep_puts_a_failure_down_to_the_side_that_raised_it(side, how, tmp_path):
    ((kind, message),) = failures_of(SIDES[side](how), tmp_path)
    assert kind == side.partition(",")[0]
    assert SAID[how] in message
    if how != "infrastructure":
        assert "(raised by " in message
        assert message.endswith("then resume")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_an_interrupt_is_the_plug_ins_own_where_no_signal_can_raise_one(handler, tmp_path):
    before = signal.signal(signal.SIGINT, handler)
    try:
        ((kind, message),) = failures_of(SIDES["model"]("interrupts"), tmp_path)
        with pytest.raises(PluginError, match="policy verb raised KeyboardInterrupt"):
            call("policy", raising(KeyboardInterrupt()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert kind == "model"
    assert SAID["interrupts"] in message


def test_an_operator_that_breaks_inside_a_models_reply_is_the_workloads_fault(tmp_path):
    change = {"workload": f"{HERE}:BadOperator", "model": "reference/calculator"}
    ((kind, message),) = failures_of(change, tmp_path)
    assert kind == "workload"
    assert message.startswith("ArithmeticError: in the operator (raised by operate)")


def test_a_memory_that_asks_a_model_which_fails_reports_the_models_failure(tmp_path):
    change = {
        "memory": "tests.lacuna.asking:Asking",
        "memory_options": {"Asking": {"model": f"{HERE}:BadModel/plain", "embedding": "ngrams", "bears": True}},
    }
    ((kind, message),) = failures_of(change, tmp_path)
    assert kind == "model"
    assert "raised by reply" in message


class Closing(BadModel):
    """Cannot be closed."""

    async def close(self) -> None:
        raise OSError("still busy")


def test_a_model_that_cannot_be_closed_is_named_after_its_runs_are_kept(tmp_path):
    with pytest.raises(PluginError, match=r"model Closing raised OSError: still busy \(in close"):
        failures_of({"model": f"{HERE}:Closing/none"}, tmp_path)
    assert len(records(tmp_path)) == 2


# --- what passes -------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Any:
    def verb() -> None:
        raise error

    return verb


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        UsageError("wrong; correct it"),
        SpendCapReached("enough; raise the cap"),
        ModelError("busy; wait", "rate-limit"),
        PluginError("workload", "Mine", "operate", "ValueError: odd"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_typed_or_nobodys_passes_unchanged(error):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a script started the tests with &
    try:
        with pytest.raises(type(error)) as caught:
            call("policy", raising(error))
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value is error


def test_a_store_error_is_the_memorys_and_nobody_elses():
    with pytest.raises(StoreError):
        call("memory", raising(StoreError("late; wait")))
    with pytest.raises(PluginError, match="policy verb raised late; wait"):
        call("policy", raising(StoreError("late; wait")))


def test_a_cancellation_from_outside_is_no_failure_of_the_plug_in():
    async def run() -> None:
        started = asyncio.Event()

        async def search() -> None:
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(call_with_timeout(60.0, "search", search))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_the_error_carries_side_name_call_and_cause_and_survives_a_process():
    with pytest.raises(PluginError) as caught:
        bad_policy("chained")().victim((Record(1, 0, 0, 1),), 1)
    error = caught.value
    assert (error.side, error.name, error.call, error.place) == ("policy", "BadPolicy", "victim", None)
    assert isinstance(error.__cause__, LookupError)
    assert isinstance(error.__cause__.__cause__, OSError)
    assert str(error) == ("policy BadPolicy raised LookupError: no record (in victim); correct it and run again")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.side, again.reason) == (str(error), "policy", "LookupError: no record")


@pytest.mark.check
def test_no_code_looks_at_tracebacks_but_to_name_a_line_of_a_users_file():
    looking = {
        (path.relative_to(SOURCE).as_posix(), function.name)
        for path in SOURCE.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in ("__traceback__", "tb_frame", "tb_next", "__notes__")
    }
    assert looking == {("eirkit/registry.py", "place_in_user_file")}
