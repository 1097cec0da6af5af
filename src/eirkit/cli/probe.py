"""`eirkit lacuna probe`: whether a model can rebuild a lost result, and with how many reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import click
from click.core import ParameterSource

from eirkit.agents.model import ModelOptions
from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.command import option
from eirkit.cli.options import IntegerList, workload_command
from eirkit.cli.output import Show, document_options
from eirkit.cli.runner_options import CommandResult, RunnerOptions, losses, recorded_words, runner_options
from eirkit.experiments.probe import FAN_INS, ProbeExperiment, ProbePlan, ProbeRow
from eirkit.findings.measures import PROBE_MEASURES
from eirkit.runs.results import Results
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table
from eirkit.tasks.policy import policies
from eirkit.tasks.task import TaskSpec

# Where a terminal is narrow, the least telling columns go first.
PROBE_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "probes": {"figures": True},
    "minimum": {"priority": 1},
    "redundant": {"priority": 2},
    "off_cone": {"priority": 3},
}


@workload_command(
    example="eirkit lacuna probe stepwise-sum --h 4 --model reference/recoverer",
    context_settings={"default_map": {"m": 8}},
    resumed=recorded_words,
)
@workload_options("stepwise-sum,stepwise-max,stepwise-topk")
@option("--fan-ins", type=IntegerList(1), group="Task", help="Fan-ins to pool.  [default: --fan-in if given, else 2,4]")
@option("--h", type=click.IntRange(1), default=8, show_default=True, group="Memory", help="Records that are kept.")
@option(
    "--policy",
    known=policies.names,
    default="lru",
    show_default=True,
    group="Memory",
    help="Which records are kept until the loss.",
)
@option(
    "--from-step",
    type=click.IntRange(1),
    group="Evidence",
    help="Probe the first loss at or after this step.  [default: half of the task]",
)
@seeds_option()
@model_options()
@runner_options()
@document_options
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
    show: Show,
) -> int:
    """Ask each model to rebuild one lost result: it chooses what to read, and eirkit computes.

    --m is 8 unless given.
    """
    probes = ProbePlan(policy, h, tuple(fan_ins or _default_fan_ins(specs[0])), from_step)
    question = ProbeExperiment(specs, seeds, model_names, model_options, probes)

    def measure(results: Results) -> CommandResult:
        rows, found = question.measure(results)
        lost = any(row.probes < row.attempted for row in rows)
        then = f"eirkit lacuna rescue {quote(specs[0].workload)} --model {quote(model_names[0])}"
        return CommandResult(_document(rows, question.document(rows, found), then), 1 if lost else 0)

    return runner.run(question.plan(), measure, show)


def _default_fan_ins(spec: TaskSpec) -> tuple[int, ...]:
    given = click.get_current_context().get_parameter_source("fan_in") is ParameterSource.COMMANDLINE
    return (spec.fan_in,) if given else FAN_INS


def _document(rows: Sequence[ProbeRow], data: Mapping[str, Any], then: str) -> Document:
    columns = (
        Column("workload", "workload", role="name"),
        Column("model", "model", role="name"),
        *(Column.of(one, **PROBE_COLUMNS.get(one.id, {})) for one in PROBE_MEASURES),
    )
    shown = [
        {**{column.key: getattr(row, column.key) for column in columns}, "probes": f"{row.probes}/{row.attempted}"}
        for row in rows
    ]
    sections = [Section("", (), (Table("probes", PROBE_MEASURES.title, columns, tuple(shown)),))]
    if failures := losses(row.failures for row in rows):
        sections.append(Section("", failures))
    return Document("lacuna-probe", "Recovery probes", tuple(_answers(rows)), data, tuple(sections), next=then)


def _answers(rows: Sequence[ProbeRow]) -> Iterator[str]:
    for model in dict.fromkeys(row.model for row in rows):
        of = [row for row in rows if row.model == model]
        probes = sum(row.probes for row in of)
        yield f"{model} rebuilt {sum(row.successful for row in of):,} of {counted(probes, 'lost result')}."
