"""`eirkit lacuna capability`: which cells may carry claims about lost information, and which may not."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console

from eirkit.agents.model import ModelOptions
from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.bench_options import CommandResult, ResumableCommand, RunnerOptions, runner_options
from eirkit.cli.memory_table import heading, meanings
from eirkit.cli.options import IntegerList
from eirkit.cli.output import json_option, legend, show_losses, table
from eirkit.findings.causes import CAUSE_MEASURES
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.runs.capability import THRESHOLD, WINDOWS, CapabilityCell, CapabilityQuestion, Control
from eirkit.runs.results import Results
from eirkit.tasks.task import TaskSpec

ALL = "stepwise-sum,store-recall,running-max,stepwise-max,stepwise-topk,full-lookup"


@click.command(cls=ResumableCommand)
@workload_options(ALL)
@click.option(
    "--windows",
    type=IntegerList(1),
    default=",".join(map(str, WINDOWS)),
    show_default=True,
    help="m = h = lookback; Full Lookup always has 16 labels.",
)
@click.option("--threshold", type=click.FloatRange(0, 1), default=THRESHOLD, show_default=True)
@click.option("--calculator/--no-calculator", default=True, show_default=True, help="Also with a calculator at hand.")
@seeds_option()
@model_options()
@runner_options()
@json_option
def capability(
    specs: tuple[TaskSpec, ...],
    windows: list[int],
    threshold: float,
    calculator: bool,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    runner: RunnerOptions,
    as_json: bool,
) -> int:
    """Run each model where nothing is missing; cells below the threshold carry no claims about lost information.

    Exits with 1 if a cell is below the threshold.
    """
    control = Control(seeds, windows, threshold, calculator)
    for spec in specs:
        control.tasks(spec)  # what cannot be run at all is wrong usage here, and no verdict about a model

    question = CapabilityQuestion(specs, model_names, model_options, control)

    def measure(results: Results) -> CommandResult:
        cells = question.measure(results)
        failed = any(cell.failures or not cell.passes for cell in cells)
        return CommandResult(question.document(cells), lambda console: _render(console, cells), 1 if failed else 0)

    return runner.run(question.plan(), measure, as_json)


def _render(console: Console, cells: Sequence[CapabilityCell]) -> None:
    causes = [one for one in CAUSE_MEASURES if one.id != "state_supply"]  # nothing is missing here
    columns = (
        "model",
        "workload",
        "accuracy",
        "± sd",
        *map(heading, causes),
        "with calculator",
        RUN_MEASURES["scored"].label,
    )
    rows = [
        (
            cell.model,
            cell.workload,
            cell.accuracy,
            cell.accuracy_sd,
            *(cell.errors[one.id] / cell.steps if cell.steps else None for one in causes),
            cell.calculator_accuracy,
            f"{cell.scored}/{cell.attempted}",
        )
        for cell in cells
    ]
    console.print(table("Full information, recovery off: every eligible answer is shown", columns, rows))
    legend(console, **meanings(causes))
    for title, chosen in (
        ("May carry claims about lost information", [cell for cell in cells if cell.passes]),
        ("Excluded", [cell for cell in cells if not cell.passes]),
    ):
        if chosen:
            listed = [(cell.model, cell.workload, cell.reason.partition(": ")[2]) for cell in chosen]
            console.print(table(title, ("model", "workload", "why"), listed))
    show_losses(console, [cell.failures for cell in cells])
