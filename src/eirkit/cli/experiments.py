"""`eirkit lacuna rescue`, `capability`, `probe` and `audit`: interventions, and controls of models and interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import click
from msgspec import structs

from eirkit.cli.agent_options import Chosen, memory_options, model_options, seeds_option, with_preset, workload_options
from eirkit.cli.command import Show, command, document_options, option
from eirkit.cli.options import IntegerList, preset_option, workload_command
from eirkit.cli.runner_options import (
    CommandResult,
    RunnerOptions,
    control_option,
    losses,
    recorded_words,
    runner_options,
)
from eirkit.errors import UsageError
from eirkit.lacuna.findings.validity import papers_verdict
from eirkit.lacuna.memories.factory import profile_record
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.audit import CHANNELS, Audit
from eirkit.lacuna.runs.capability import NO_CONTROL, THRESHOLD, WINDOWS, CapabilityExperiment, Control
from eirkit.lacuna.runs.leaks import audit as run_audit
from eirkit.lacuna.runs.probe import ProbeExperiment
from eirkit.lacuna.runs.recorded_rescues import RescueExperiment, not_excluded
from eirkit.lacuna.runs.rescue import Rescue, RescueSetup
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.task import AnySpec, TaskSpec
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.evidence import (
    CapabilityCell,
    CapabilityResult,
    Contrast,
    ProbeResult,
    ProbeRow,
    ProbeSetup,
    RescueResult,
)
from eirkit.records.settings import ACTION_LIMIT, Truth
from eirkit.report.document import Document, Section
from eirkit.report.runs.evidence import PAIR, PAIRS, capability_tables, probe_table, rescue_tables
from eirkit.report.table import Cell, Column, Table, counted, points

UNDECIDED = 3  # exit code: no cell failed, and some did not show whether they pass
ALL = "stepwise-sum,store-recall,running-max,stepwise-max,stepwise-topk,full-lookup"


@workload_command(
    example="eirkit lacuna rescue store-recall --h 4 --model reference/calculator",
    told=True,
    context_settings={"default_map": {"m": 8}},
    resumed=recorded_words,
)
@workload_options("store-recall")
@option("--h", type=click.IntRange(1), default=4, show_default=True, group="Memory", help="Records that stay visible.")
@option(
    "--policy",
    known=policies.names,
    group="Memory",
    help="Which records are kept.  [default: fifo; with --memory the last h]",
)
@preset_option
@option(
    "--managed",
    is_flag=True,
    common=False,
    group="Agent",
    help="Let the agent act in a loop instead.",
)
@memory_options
@option(
    "--actions",
    common=False,
    type=click.IntRange(1),
    default=ACTION_LIMIT,
    show_default=True,
    group="Agent",
    help="Most actions in a managed run.",
)
@option(
    "--truth",
    common=False,
    type=click.Choice(["true", "submitted"]),
    default="true",
    show_default=True,
    group="Evidence",
    help="What the oracle arm restores: the true result, or what the agent submitted.",
)
@control_option
@seeds_option()
@model_options()
@runner_options()
@document_options
def rescue(
    specs: tuple[TaskSpec, ...],
    h: int,
    policy: str | None,
    preset: str | None,
    managed: bool,
    memory: Chosen | None,
    actions: int,
    truth: Truth,
    control: bool | None,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    runner: RunnerOptions,
    show: Show,
) -> int:
    """Test whether a missing result causes wrong answers: at every miss restore nothing, the result, or a sham.

    The sham is another value of the same length. In conversations, sentences are restored, and a fourth arm
    shows earlier statements of the same facts. With --memory the agent has that system in all arms, and what counts
    is where the memory did not retrieve what was missing.
    """
    if len(specs) != 1:
        raise UsageError("rescue takes one workload; run the command again for another")
    setup = _setup(with_preset(specs[0], preset), h, policy, truth, managed, memory, actions)
    question = RescueExperiment(setup, seeds, model_names, model_options, control)

    def measure(results: Results) -> CommandResult:
        found, controls = question.measure(results)
        lost = found.failures or any(cell.failures for cell in controls.values())
        document = _rescue_document(setup, found, controls, question.result(found, controls))
        return CommandResult(document, 1 if lost else 0)

    return runner.run(question.plan(), measure, show)


def _setup(
    spec: AnySpec, h: int, policy: str | None, truth: Truth, managed: bool, memory: Chosen | None, actions: int
) -> RescueSetup:
    """Return the condition of all arms, checked."""
    held = h if isinstance(spec, TaskSpec) else None
    if memory is not None and (policy, managed) != (None, False):
        raise UsageError(
            "with --memory the last h records stay visible, in an action loop; leave out --policy and --managed"
        )
    if memory is None:
        setup = RescueSetup(spec, held, policy or "fifo", truth, managed, actions=actions)
    else:
        setup = RescueSetup(spec, held, "window", truth, True, memory.plan(h), actions, memory.budget)
    setup.check()
    return setup


def _rescue_document(
    setup: RescueSetup, found: Rescue, controls: Mapping[str, CapabilityCell], data: RescueResult
) -> Document:
    allowed = not_excluded(found, controls)
    answer = list(_effects(setup, found, found.repair_effects(allowed)))
    if not found.contrasts and not found.failures:
        answer = [_nothing(setup, found)]
    failures = Counter(failure.partition(": ")[2] for failure in found.failures)
    words = (
        *found.systems,
        *_remarks(found, controls),
        *losses([failures, *(cell.failures for cell in controls.values())]),
    )
    shown = tuple(Section("", (), (table,)) for table in rescue_tables(data))
    sections = (*shown, Section("", words)) if words else shown
    said = tuple(answer) or ("No model may support a claim about lost information here; see below.",)
    return Document("lacuna-rescue", "Does restoring a lost result repair the answer?", said, data, sections)


def _title(memory: MemoryPlan) -> str:
    """Return the name of a memory system, with its profile."""
    used = profile_record(memory)
    return memory.name if used is None else f"{memory.name} ({used.name})"


def _effects(setup: RescueSetup, found: Rescue, effects: Sequence[Contrast]) -> Iterator[str]:
    """Yield what restoring did, a sentence for each model: cells of different models are not one number."""
    missing = "with a miss" if setup.memory is None else f"where {_title(setup.memory)} did not retrieve an input"
    if setup.h is None:
        missing = "that what was shown did not answer"
    step = units_of([setup.spec.workload]).step
    for effect in effects:
        where = f"{effect.model}: at {counted(effect.pairs, step)} {missing}"
        told = f"{_difference(effect)} over a sham"
        if (control := found.contrast(effect.model, ("oracle", "control"))) is not None:
            told += f" and {_difference(control)} over nothing"
        if found.repairs(effect.model):
            yield f"{where}, restoring it changes accuracy by {told}."
        else:
            yield f"{where}, no repair is shown: with it restored accuracy differs by {told}."
        if (doubt := found.validity[effect.model].sentence) is not None:
            yield f"{effect.model}: {doubt}."


def _difference(one: Contrast) -> str:
    found = one.difference
    return f"{points(found.estimate)} points (95% interval {points(found.low)} to {points(found.high)})"


def _nothing(setup: RescueSetup, found: Rescue) -> str:
    if setup.memory is None:
        right = min((row.trajectory_accuracy for row in found.rows if row.trajectory_accuracy is not None), default=1.0)
        if right < THRESHOLD:  # then a lower h would not show more: what is never answered cannot be missing
            why = "`eirkit lacuna run` with the same options says why"
            return (
                f"No answer that was given was missing in any arm, and yet only {right:.0%} of steps were right; {why}."
            )
        return "Nothing was missing in any arm, so there is nothing to repair; lower --h."
    remedy = "use a larger --preset" if setup.h is None else "lower --h, or limit it to h records with --panel strict"
    return (
        f"{_title(setup.memory)} retrieved everything that was missing in the control arm, so there is nothing to "
        f"repair; {remedy}."
    )


def _remarks(found: Rescue, controls: Mapping[str, CapabilityCell]) -> Iterator[str]:
    for cell in controls.values():
        if not cell.passes:
            verdict, _, why = cell.reason.partition(": ")
            yield f"{verdict}: {cell.model}, {cell.workload}: {why}"
        if cell.gates[1].verdict != "passes":
            yield f"{cell.model}, {cell.workload}: {papers_verdict(cell.gates[1])}"
    if open_to_doubt := [model for model in dict.fromkeys(row.model for row in found.rows) if model not in controls]:
        yield f"{NO_CONTROL} of {', '.join(open_to_doubt)}: differences are descriptive; add --control"


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
        return CommandResult(_capability_document(cells, question.result(cells)), code)

    return runner.run(question.plan(), measure, show)


def _capability_document(cells: Sequence[CapabilityCell], data: CapabilityResult) -> Document:
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
        return CommandResult(_probe_document(question.result(rows, found), then), 1 if lost else 0)

    return runner.run(question.plan(), measure, show)


def _probe_document(data: ProbeResult, then: str) -> Document:
    sections = [Section("", (), (probe_table(data),))]
    if failures := losses(row.failures for row in data.rows):
        sections.append(Section("", failures))
    by_model: dict[str, list[ProbeRow]] = {}
    for row in data.rows:
        by_model.setdefault(row.model, []).append(row)
    answer = tuple(
        f"{model} rebuilt {sum(row.successful for row in rows):,} of "
        f"{counted(sum(row.probes for row in rows), 'lost result')}."
        for model, rows in by_model.items()
    )
    return Document("lacuna-probe", "Recovery probes", answer, data, tuple(sections), next=then)


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
