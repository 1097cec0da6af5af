"""`eirkit lacuna capability`, `probe` and `audit`: controls of models and of the task interface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

import click
from msgspec import structs

from eirkit.cli.agent_options import model_options, seeds_option, with_preset, workload_options
from eirkit.cli.command import Show, command, document_options, option
from eirkit.cli.options import IntegerList, preset_option, workload_command
from eirkit.cli.runner_options import CommandResult, RunnerOptions, losses, recorded_words, runner_options
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.audit import CHANNELS, Audit
from eirkit.lacuna.runs.capability import (
    THRESHOLD,
    WINDOWS,
    CapabilityExperiment,
    Control,
)
from eirkit.lacuna.runs.leaks import audit as run_audit
from eirkit.lacuna.runs.probe import ProbeExperiment
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import CapabilityCell, CapabilityResult, ProbeResult, ProbeRow, ProbeSetup
from eirkit.report.document import Document, Section
from eirkit.report.runs.evidence import PAIR, PAIRS, capability_tables, probe_table
from eirkit.report.table import Cell, Column, Table, counted

UNDECIDED = 3  # exit code: no cell failed, and some did not show whether they pass
ALL = "stepwise-sum,store-recall,running-max,stepwise-max,stepwise-topk,full-lookup"


@workload_command(
    example="eirkit lacuna capability store-recall --model reference/calculator --windows 8", resumed=recorded_words
)
@workload_options(ALL)
@preset_option
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
    help="Accuracy given right inputs that a cell must reach.",
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
    preset: str | None,
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

    Two gates are tested: accuracy given right inputs against the threshold, which decides, and the paper's, accuracy
    end to end against 0.75. A cell below the threshold supports no claims about lost information. Exits with 1 if there
    is such a cell, and with 3 if there is none but a cell is undecided, which more seeds may change.
    """
    control = Control(seeds, windows, threshold, calculator)
    chosen = tuple(with_preset(spec, preset) for spec in specs)
    for spec in chosen:
        control.tasks(spec)  # what cannot be run at all is wrong usage, not a verdict about a model

    question = CapabilityExperiment(chosen, model_names, model_options, control)

    def measure(results: Results) -> CommandResult:
        cells = question.measure(results)
        failed = any(cell.failures or cell.verdict == "fails" for cell in cells)
        code = 1 if failed else 0 if all(cell.passes for cell in cells) else UNDECIDED
        return CommandResult(_document(cells, question.result(cells)), code)

    return runner.run(question.plan(), measure, show)


def _document(cells: Sequence[CapabilityCell], data: CapabilityResult) -> Document:
    passed = [cell for cell in cells if cell.passes]
    said = f"{len(passed)} of {counted(len(cells), PAIR, PAIRS)} may support claims about lost information"
    undecided = [cell for cell in cells if cell.gates[0].command]
    said += f"; {len(undecided)} undecided." if undecided else "."
    sections = [Section("", (), capability_tables(cells))]
    if failures := losses(cell.failures for cell in cells):
        sections.append(Section("", failures))
    first = next(iter([*passed, *undecided, *cells]))
    verb = "rescue" if passed else "run"
    then = f"eirkit lacuna {verb} {quote(first.workload)} --model {quote(first.model)}"
    if first in undecided:
        then = first.gates[0].command
    return Document("lacuna-capability", "Accuracy with nothing missing", (said,), data, tuple(sections), next=then)


@workload_command(
    example="eirkit lacuna probe stepwise-sum --h 4 --model reference/recoverer",
    context_settings={"default_map": {"m": 8}},
    resumed=recorded_words,
)
@workload_options("stepwise-sum,stepwise-max,stepwise-topk", pooled=True)
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
    probes = ProbeSetup(policy, h, tuple(fan_ins or ProbeSetup().fan_ins), from_step)
    question = ProbeExperiment(specs, seeds, model_names, model_options, probes)

    def measure(results: Results) -> CommandResult:
        rows, found = question.measure(results)
        lost = any(row.probes < row.attempted for row in rows)
        then = f"eirkit lacuna rescue {quote(specs[0].workload)} --model {quote(model_names[0])}"
        return CommandResult(_probe_document(rows, question.result(rows, found), then), 1 if lost else 0)

    return runner.run(question.plan(), measure, show)


def _probe_document(rows: Sequence[ProbeRow], data: ProbeResult, then: str) -> Document:
    sections = [Section("", (), (probe_table(data),))]
    if failures := losses(row.failures for row in rows):
        sections.append(Section("", failures))
    return Document("lacuna-probe", "Recovery probes", tuple(_answers(rows)), data, tuple(sections), next=then)


def _answers(rows: Sequence[ProbeRow]) -> Iterator[str]:
    for model in dict.fromkeys(row.model for row in rows):
        of = [row for row in rows if row.model == model]
        probes = sum(row.probes for row in of)
        yield f"{model} rebuilt {sum(row.successful for row in of):,} of {counted(probes, 'lost result')}."


@command(example="eirkit lacuna audit --instances 20")
@option("--instances", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Number of tasks to audit.")
@option("--plant", type=click.Choice(CHANNELS), help="Audit an interface that leaks through this channel.")
@document_options
def audit(instances: int, plant: str | None, show: Show) -> int:
    """Check seven channels of the controlled-retention interface for leaks.

    Exits with 1 if there is any finding. --plant shows that a leak would be found.
    """
    found = run_audit(instances, plant)
    show(_audit_document(found, plant))
    return 1 if found.findings else 0


def _audit_document(found: Audit, plant: str | None) -> Document:
    rows: list[dict[str, Cell]] = [
        {"channel": row.channel, "checks": row.checks, "findings": row.findings, "first": "; ".join(row.examples[:1])}
        for row in found.rows
    ]
    rows.append({"channel": "total", "checks": found.checks, "findings": found.findings, "first": ""})
    columns = (
        Column("channel", "channel"),
        Column("checks", "checks"),
        Column("findings", "findings"),
        Column("first", "first finding", role="text"),
    )
    leak = f", with a leak planted in {plant}" if plant else ""
    title = f"Controlled retention, {counted(found.instances, 'instance')}{leak}"
    note = (
        f"{found.decisions:,} decisions, {found.saturated:,} of them with h records shown, {found.value_slots:,} value "
        "slots: payload width is checked once for each slot, message length once for each decision with h records "
        "shown, everything else once for each decision."
    )
    shown = columns if found.findings else columns[:-1]
    section = Section("", (), (Table("channels", title, shown, tuple(rows), note),))
    leaks = "No leak was found" if not found.findings else f"{counted(found.findings, 'check')} found a leak"
    answer = f"{leaks} in {found.checks:,} checks of {counted(len(found.rows), 'channel')}."
    then = "eirkit lacuna audit --plant ordering" if plant is None else "eirkit lacuna audit"
    return Document(
        "lacuna-audit", "Channel audit", (answer,), structs.replace(found, plant=plant), (section,), next=then
    )
