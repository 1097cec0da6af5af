"""`eirkit lacuna rescue`: does restoring the missing result repair the answer, and does a sham of equal length not?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click
from rich.console import Console

from eirkit.agents.managed import ACTION_LIMIT
from eirkit.agents.model import ModelOptions
from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.bench_options import CommandResult, ResumableCommand, RunnerOptions, control_option, runner_options
from eirkit.cli.memory_options import Chosen, memory_options
from eirkit.cli.memory_table import heading, meanings
from eirkit.cli.options import NamingOption
from eirkit.cli.output import json_option, legend, show_losses, table
from eirkit.errors import UsageError
from eirkit.experiments.evidence_measures import ARM_MEASURES
from eirkit.experiments.rescue import Contrast, Rescue, Setup
from eirkit.experiments.rescue_document import RescueQuestion, may_claim
from eirkit.findings.fates import FATE_MEASURES, FATES, MEMORY_MEASURES
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.runs.capability import CapabilityCell
from eirkit.runs.cells import Truth
from eirkit.runs.claims import NOT_RUN
from eirkit.runs.results import Results
from eirkit.tasks.policy import policies
from eirkit.tasks.task import TaskSpec


@click.command(cls=ResumableCommand, context_settings={"default_map": {"m": 8}})
@workload_options("store-recall")
@click.option("--h", type=click.IntRange(1), default=4, show_default=True, help="Records held.")
@click.option(
    "--policy",
    cls=NamingOption,
    known=policies.names,
    help="Which records are held.  [default: fifo; with --memory the last h stay in sight]",
)
@click.option("--managed", is_flag=True, help="In the action loop instead of Controlled Retention.")
@memory_options
@click.option("--actions", type=click.IntRange(1), default=ACTION_LIMIT, show_default=True, help="A managed run.")
@click.option(
    "--truth",
    type=click.Choice(["true", "submitted"]),
    default="true",
    show_default=True,
    help="What the oracle restores: the true result, or what the agent submitted.",
)
@control_option
@seeds_option()
@model_options()
@runner_options()
@json_option
def rescue(
    specs: tuple[TaskSpec, ...],
    h: int,
    policy: str | None,
    managed: bool,
    memory: Chosen | None,
    actions: int,
    truth: Truth,
    control: bool | None,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    runner: RunnerOptions,
    as_json: bool,
) -> int:
    """Run three arms over the same tasks: nothing, the missing result, or a sham of equal length at every miss.

    With --memory the agent has that system behind it in all of them, and the steps that count are those at which the
    memory did not bring what was missing: were they wrong for want of it?
    """
    if len(specs) != 1:
        raise UsageError("one workload at a time; run the command again for another")
    setup = _setup(specs[0], h, policy, truth, managed, memory, actions)

    question = RescueQuestion(setup, seeds, model_names, model_options, control)

    def measure(results: Results) -> CommandResult:
        found, controls = question.measure(results)
        document = question.document(found, controls)
        lost = found.failures or any(cell.failures for cell in controls.values())
        return CommandResult(document, lambda console: _render(console, setup, found, controls), 1 if lost else 0)

    return runner.run(question.plan(), measure, as_json)


def _setup(
    spec: TaskSpec, h: int, policy: str | None, truth: Truth, managed: bool, memory: Chosen | None, actions: int
) -> Setup:
    """Return the condition of all arms, checked."""
    if memory is not None and (policy, managed) != (None, False):
        raise UsageError("with a memory the last h records stay in sight, in the action loop; drop --policy, --managed")
    if memory is None:
        setup = Setup(spec, h, policy or "fifo", truth, managed, actions=actions)
    else:
        setup = Setup(spec, h, "window", truth, True, memory.plan(h), actions)
    setup.check()
    return setup


def _render(console: Console, setup: Setup, found: Rescue, controls: Mapping[str, CapabilityCell]) -> None:
    allowed = may_claim(found, controls)
    for sentence in _effects(setup, found.repair_effects(allowed)):
        console.print(sentence, style="bold", markup=False, highlight=False)
    spec = setup.spec
    kept = setup.policy if setup.memory is None else f"{setup.memory.name}, {setup.panel} panel"
    which = "a miss" if setup.memory is None else "a record that the memory did not return in the control arm"
    title = f"{spec.workload}, m = {spec.m}, h = {setup.h}, {kept}: accuracy at steps with {which}"
    more = (ARM_MEASURES["trajectory_accuracy"], RUN_MEASURES["self_consistent_accuracy"], RUN_MEASURES["scored"])
    columns = ("model", "arm", "steps", "accuracy", *map(heading, more))
    rows = [
        (
            row.model,
            row.arm,
            row.steps,
            row.accuracy,
            row.trajectory_accuracy,
            row.self_consistent_accuracy,
            f"{row.scored}/{row.attempted}",
        )
        for row in found.rows
    ]
    console.print(table(title, columns, rows))
    legend(console, **meanings(ARM_MEASURES))
    if not found.contrasts and not found.failures:
        console.print(_nothing(setup), markup=False, highlight=False)
    _render_fates(console, found)
    _render_contrasts(console, found, allowed)
    for line in _remarks(found, controls):
        console.print(line, markup=False, highlight=False)
    lost = Counter(failure.partition(": ")[2] for failure in found.failures)
    show_losses(console, [lost, *(cell.failures for cell in controls.values())])


def _effects(setup: Setup, effects: Sequence[Contrast]) -> Iterator[str]:
    """Yield what restoring did, a sentence for each model: cells of different models are not one number."""
    lacking = "miss something" if setup.memory is None else f"{setup.memory.name} left lacking"
    for one in effects:
        found = one.difference
        yield (
            f"{one.model}: at {one.pairs} steps that {lacking}, restoring it gives {100 * found.estimate:+.1f} points "
            f"over a sham (95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f})"
        )


def _nothing(setup: Setup) -> str:
    if setup.memory is None:
        return "Nothing was missing in any arm, so there is nothing to repair; lower --h."
    return (
        f"{setup.memory.name} brought everything that was missing in the control arm, so there is nothing to repair; "
        "lower --h, or hold it to h records with --panel strict."
    )


def _render_fates(console: Console, found: Rescue) -> None:
    """Show what became of records needed from memory in the control arm."""
    fates = {row.model: row.fates for row in found.rows if row.arm == "control" and row.fates is not None}
    shown = [fate for fate in FATES if any(counts[fate] for counts in fates.values())]
    needed = {model: sum(counts.values()) for model, counts in fates.items()}
    rows = [
        (model, needed[model], *(counts[fate] / needed[model] if needed[model] else None for fate in shown))
        for model, counts in fates.items()
    ]
    if rows:
        columns = ("model", heading(MEMORY_MEASURES["needed"]), *(heading(FATE_MEASURES[fate]) for fate in shown))
        console.print(table(f"Control arm: {FATE_MEASURES.title.lower()}", columns, rows))
        legend(console, **meanings(FATE_MEASURES[fate] for fate in shown))


def _render_contrasts(console: Console, found: Rescue, allowed: set[str]) -> None:
    paired = [
        (
            c.model,
            " − ".join(c.arms),
            c.pairs,
            f"{c.difference.estimate:+.3f}",
            f"{c.difference.low:+.3f} … {c.difference.high:+.3f}",
            f"{c.mcnemar_p:.2g}",
            f"{c.permutation_p:.2g}",
        )
        for c in found.contrasts
        if c.model in allowed
    ]
    columns = ("model", "arms", "pairs", "difference", "95% interval", "McNemar p", "permutation p")
    if paired:
        console.print(table("Paired by seed and step, resampled by trajectory", columns, paired))


def _remarks(found: Rescue, controls: Mapping[str, CapabilityCell]) -> Iterator[str]:
    for cell in controls.values():
        if not cell.passes:
            yield f"excluded: {cell.model}, {cell.workload}: {cell.reason.removeprefix('excluded: ')}"
    if open_to_doubt := [model for model in dict.fromkeys(row.model for row in found.rows) if model not in controls]:
        yield f"{NOT_RUN} of {', '.join(open_to_doubt)}: differences are descriptive; add --control"
