"""`eirkit lacuna probe`: does a model find its way to a lost result, and with how many reads?"""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource
from rich.console import Console

from eirkit.agents.model import ModelOptions
from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.bench_options import CommandResult, ResumableCommand, RunnerOptions, runner_options
from eirkit.cli.memory_table import heading, meanings
from eirkit.cli.options import IntegerList, NamingOption
from eirkit.cli.output import json_option, legend, show_losses, table
from eirkit.experiments.evidence_measures import PROBE_MEASURES
from eirkit.experiments.probe import FAN_INS, ProbePlan, ProbeQuestion, ProbeRow
from eirkit.runs.results import Results
from eirkit.tasks.policy import policies
from eirkit.tasks.task import TaskSpec


@click.command(cls=ResumableCommand, context_settings={"default_map": {"m": 8}})
@workload_options("stepwise-sum,stepwise-max,stepwise-topk")
@click.option("--fan-ins", type=IntegerList(1), help="Several, pooled; 2,4 unless --fan-in or this is given.")
@click.option("--h", type=click.IntRange(1), default=8, show_default=True, help="Records held.")
@click.option(
    "--policy",
    cls=NamingOption,
    known=policies.names,
    default="lru",
    show_default=True,
    help="Which records are held when the loss occurs.",
)
@click.option("--from-step", type=click.IntRange(1), help="The loss is the first one from here; half the task.")
@seeds_option()
@model_options()
@runner_options()
@json_option
def probe(
    specs: tuple[TaskSpec, ...],
    fan_ins: list[int] | None,
    h: int,
    policy: str,
    from_step: int | None,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    runner: RunnerOptions,
    as_json: bool,
) -> int:
    """Give each model one lost result to rebuild: it chooses what to read, the harness computes."""
    probes = ProbePlan(policy, h, tuple(fan_ins or _default_fan_ins(specs[0])), from_step)
    question = ProbeQuestion(specs, seeds, model_names, model_options, probes)

    def measure(results: Results) -> CommandResult:
        rows, found = question.measure(results)
        lost = any(row.probes < row.attempted for row in rows)
        return CommandResult(question.document(rows, found), lambda console: _render(console, rows), 1 if lost else 0)

    return runner.run(question.plan(), measure, as_json)


def _default_fan_ins(spec: TaskSpec) -> tuple[int, ...]:
    given = click.get_current_context().get_parameter_source("fan_in") is ParameterSource.COMMANDLINE
    return (spec.fan_in,) if given else FAN_INS


def _render(console: Console, rows: Sequence[ProbeRow]) -> None:
    columns = ("workload", "model", *map(heading, PROBE_MEASURES))
    lines = [
        (
            row.workload,
            row.model,
            f"{row.probes}/{row.attempted}",
            row.successful,
            row.early_stops,
            row.at_limit,
            row.read_overhead,
            row.redundant,
            row.off_cone,
            row.minimum,
        )
        for row in rows
    ]
    console.print(table(PROBE_MEASURES.title, columns, lines))
    legend(console, **meanings(PROBE_MEASURES))
    show_losses(console, [row.failures for row in rows])
