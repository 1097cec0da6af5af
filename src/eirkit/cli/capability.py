"""`eirkit lacuna capability`: measures which models can do which tasks when nothing is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import click

from eirkit.agents.model import ModelOptions
from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.command import option
from eirkit.cli.options import IntegerList, workload_command
from eirkit.cli.output import Show, document_options
from eirkit.cli.runner_options import CommandResult, RunnerOptions, losses, recorded_words, runner_options
from eirkit.findings.measures import CAUSE_MEASURES, RUN_MEASURES
from eirkit.runs.capability import THRESHOLD, WINDOWS, CapabilityCell, CapabilityExperiment, Control
from eirkit.runs.results import Results
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table
from eirkit.tasks.task import TaskSpec

ALL = "stepwise-sum,store-recall,running-max,stepwise-max,stepwise-topk,full-lookup"


@workload_command(
    example="eirkit lacuna capability store-recall --model reference/calculator --windows 8", resumed=recorded_words
)
@workload_options(ALL)
@option(
    "--windows",
    type=IntegerList(1),
    default=",".join(map(str, WINDOWS)),
    show_default=True,
    group="Task",
    help="Values of m = h = lookback; full-lookup always has 16 labels.",
)
@option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=THRESHOLD,
    show_default=True,
    group="Evidence",
    help="Accuracy that a cell must reach.",
)
@option(
    "--calculator/--no-calculator",
    default=True,
    show_default=True,
    group="Evidence",
    help="Also run each cell with a calculator.",
)
@seeds_option()
@model_options()
@runner_options()
@document_options
def capability(
    specs: tuple[TaskSpec, ...],
    windows: list[int],
    threshold: float,
    calculator: bool,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    runner: RunnerOptions,
    show: Show,
) -> int:
    """Run each model with nothing missing, to find out which tasks it can do at all.

    A cell below the threshold supports no claims about lost information. Exits with 1 if there is such a cell.
    """
    control = Control(seeds, windows, threshold, calculator)
    for spec in specs:
        control.tasks(spec)  # what cannot be run at all is wrong usage, not a verdict about a model

    question = CapabilityExperiment(specs, model_names, model_options, control)

    def measure(results: Results) -> CommandResult:
        cells = question.measure(results)
        failed = any(cell.failures or not cell.passes for cell in cells)
        return CommandResult(_document(cells, question.document(cells)), 1 if failed else 0)

    return runner.run(question.plan(), measure, show)


def _document(cells: Sequence[CapabilityCell], data: Mapping[str, Any]) -> Document:
    passed = [cell for cell in cells if cell.passes]
    said = f"{len(passed)} of {counted(len(cells), 'cell')} may support claims about lost information."
    sections = [Section("", (), tuple(_tables(cells)))]
    if failures := losses(cell.failures for cell in cells):
        sections.append(Section("", failures))
    first = passed[0] if passed else cells[0]
    verb = "rescue" if passed else "run"
    then = f"eirkit lacuna {verb} {quote(first.workload)} --model {quote(first.model)}"
    return Document("lacuna-capability", "Accuracy with nothing missing", (said,), data, tuple(sections), next=then)


def _tables(cells: Sequence[CapabilityCell]) -> Iterator[Table]:
    names = (Column("model", "model", role="name"), Column("workload", "workload", role="name"))
    causes = [one for one in CAUSE_MEASURES if any(cell.errors[one.id] for cell in cells)]
    columns = (
        *names,
        Column.of(RUN_MEASURES["accuracy"]),
        Column("accuracy_sd", "± sd", priority=2),
        *(Column.of(one, priority=1) for one in causes),
        Column("calculator_accuracy", "with calculator", percent=True),
        Column("scored_text", RUN_MEASURES["scored"].label, figures=True, raw="scored"),
    )
    rows = [
        {
            **{name: getattr(cell, name) for name in ("model", "workload", "accuracy", "accuracy_sd", "scored")},
            **{one.id: cell.errors[one.id] / cell.steps if cell.steps else None for one in causes},
            "calculator_accuracy": cell.calculator_accuracy,
            "scored_text": f"{cell.scored}/{cell.attempted}",
        }
        for cell in cells
    ]
    yield Table("cells", "Every needed answer is shown; recovery is off", columns, tuple(rows))
    for id, title, chosen in (
        ("eligible", "May support claims about lost information", [cell for cell in cells if cell.passes]),
        ("excluded", "Excluded", [cell for cell in cells if not cell.passes]),
    ):
        if chosen:
            why = Column("why", "why", role="text")
            listed = [
                {"model": cell.model, "workload": cell.workload, "why": cell.reason.partition(": ")[2]}
                for cell in chosen
            ]
            yield Table(id, title, (*names, why), tuple(listed))
