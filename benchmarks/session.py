"""Measures sweeps of reference agents: steps per second on one core, and memory.

The peers are the same loop without telemetry, a loop without text, and Inspect's model path.

python -m benchmarks.session
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from tests.lacuna.prompt_reading import read_prompt

from benchmarks.generation import plain_task
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.tasks.generation import generate_many, kept_batches, prepare
from eirkit.lacuna.tasks.simulation.plain import structure_of

TARGET_STEPS = 20_000  # a second
TARGET_BYTES_A_CELL = 32_768  # a row of the result and what leads to it, not the runs behind it
ROUNDS = 5  # the best counts: other work on the machine only ever slows a run down
FEW_CELLS, MANY_CELLS = 50, 2_050

GRID = {"workload": "stepwise-sum", "model": "reference/calculator", "h": [12, 8, 4], "seeds": "0:60"}


def best(steps: int, work: Callable[[], object]) -> float:
    """Return steps a second of CPU time in the best of some rounds."""
    seconds = []
    for _ in range(ROUNDS):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return steps / min(seconds)


def sweep(suite: Suite) -> None:
    kept_batches.cache_clear()  # as in a process of its own
    with TemporaryDirectory() as folder:
        start_sweep(suite, Path(folder) / "out")


async def converse(suite: Suite) -> None:
    """The sessions alone: prompts, agents and parsing, nothing recorded or scored."""
    for cell, seeds in suite.plan():
        model, workload, structure = (
            make_reference("calculator", cell.options),
            prepare(cell.task),
            structure_of(cell.task),
        )
        for task in generate_many(cell.task, seeds):
            await drive(make_session(cell.access, task, workload, structure), model)


def compute(suite: Suite) -> None:
    """The same without text, session or policy: a loop over numbers, as one would write it in an afternoon.

    It is all standard library, so that nothing of ours can make the yardstick longer or shorter.
    """
    for cell, seeds in suite.plan():
        spec, h = cell.task, cell.access.h
        for seed in seeds:
            kept: dict[int, int] = {}
            for t, (fresh, refs, _) in enumerate(plain_task(spec.n, spec.m, spec.fan_in, spec.q, seed), 1):
                kept[t] = (fresh + sum(kept[r] for r in refs if r in kept)) % spec.q
                kept.pop(t - h, None)


async def through_inspect(suite: Suite) -> None:
    """The sessions alone, but every reply goes through Inspect's model interface."""
    model = inspect_model()

    class Asked:
        async def reply(self, request: Request) -> Reply:
            from inspect_ai.model import ChatMessageSystem, ChatMessageUser

            system, user = (message.content for message in request.messages)
            found = await model.generate([ChatMessageSystem(content=system), ChatMessageUser(content=user)])
            return Reply(found.completion)

        async def close(self) -> None: ...

        def settings(self) -> dict[str, Any]:
            return {}

    for cell, seeds in suite.plan():
        workload = prepare(cell.task)
        for task in generate_many(cell.task, seeds):
            await drive(make_session(cell.access, task, workload), Asked())


def inspect_model() -> Any:
    """Return the calculator as a model of Inspect's; its own mock model wants to download a vocabulary."""
    from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi

    agent = make_reference("calculator", ModelOptions())

    class Calculator(ModelAPI):
        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            asked = tuple(Message("system" if m.role == "system" else "user", m.text) for m in input)
            return ModelOutput.from_content("calculator", (await agent.reply(read_prompt(Request(asked)))).text)

    modelapi("eirkit_calculator")(Calculator)
    return get_model("eirkit_calculator/any", config=GenerateConfig(), memoize=False)


def speeds() -> bool:
    """Print the table of speeds; True if the target is met."""
    suite = read_suite(GRID)
    steps = len(suite) * 64
    rows = {
        "a sweep: sessions, causes, telemetry, disk": best(steps, lambda: sweep(suite)),
        "the sessions alone": best(steps, lambda: asyncio.run(converse(suite))),
        "a loop over numbers": best(steps, lambda: compute(suite)),
    }
    if find_spec("inspect_ai") is None:
        print("inspect-ai is not installed; its model path is left out (session inspect has an environment with it)")
    else:
        few = read_suite({**GRID, "h": 8, "seeds": "0:5"})
        rows["the sessions through Inspect's models"] = best(5 * 64, lambda: asyncio.run(through_inspect(few)))
    print(f"{'steps a second of CPU time, 64-step tasks, h = 12, 8, 4':58}{'':>10}{'CPU, loop = 1':>16}")
    for name, rate in rows.items():
        print(f"  {name:56}{rate:>10,.0f}{rows['a loop over numbers'] / rate:>16,.0f}")
    reached = rows["a sweep: sessions, causes, telemetry, disk"]
    print(f"  target {TARGET_STEPS:,}: {'ok' if reached >= TARGET_STEPS else 'FALLS SHORT'}")
    return reached >= TARGET_STEPS


def peak_bytes(cells: int) -> int:
    """Return the most memory that a sweep of so many cells takes in a process of its own."""
    code = f"from benchmarks.session import sweep_cells; sweep_cells({cells})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def sweep_cells(cells: int) -> None:
    """Run a sweep of so many cells of one short run each and print this process's peak."""
    # Budgets of actions tell cells apart and change nothing else.
    sweep(
        read_suite(
            {**GRID, "condition": "lru", "n": 4, "m": 2, "h": 2, "actions": list(range(60, 60 + cells)), "seeds": 0}
        )
    )
    print(peak_of_this_process())


def peak_of_this_process() -> int:
    """Return bytes; on Linux from /proc, because getrusage remembers what the parent had when it forked."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def remembering() -> bool:
    """Print how memory grows with the number of cells; True if the target is met."""
    few, many = peak_bytes(FEW_CELLS), peak_bytes(MANY_CELLS)
    growth = (many - few) / (MANY_CELLS - FEW_CELLS)
    print("peak memory of a sweep")
    for cells, peak in ((FEW_CELLS, few), (MANY_CELLS, many)):
        print(f"  {f'MB with {cells:,} cells':56}{peak / 1e6:>10.1f}")
    print(f"  {'kB a cell':56}{growth / 1e3:>10.1f}")
    print(f"  target {TARGET_BYTES_A_CELL / 1e3:.0f} kB: {'ok' if growth <= TARGET_BYTES_A_CELL else 'FALLS SHORT'}")
    return growth <= TARGET_BYTES_A_CELL


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    return int(not all([speeds(), remembering()]))


if __name__ == "__main__":
    sys.exit(main())
