"""`eirkit lacuna rescue`: tests whether restoring a missing result repairs the answer, and a sham does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from eirkit.cli.agent_options import Chosen, memory_options, model_options, seeds_option, with_preset, workload_options
from eirkit.cli.command import Show, document_options, option
from eirkit.cli.options import preset_option, workload_command
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
from eirkit.lacuna.runs.capability import NO_CONTROL, THRESHOLD
from eirkit.lacuna.runs.recorded_rescues import RescueExperiment, not_excluded
from eirkit.lacuna.runs.rescue import Rescue, RescueSetup
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.task import AnySpec, TaskSpec
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.evidence import CapabilityCell, Contrast, RescueResult
from eirkit.records.settings import ACTION_LIMIT, Truth
from eirkit.report.document import Document, Section
from eirkit.report.runs.evidence import rescue_tables
from eirkit.report.table import counted, points


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
        document = _document(setup, found, controls, question.result(found, controls))
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
        setup = RescueSetup(spec, held, "window", truth, True, memory.plan(h), actions)
    setup.check()
    return setup


def _document(
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
    for one in effects:
        where = f"{one.model}: at {counted(one.pairs, step)} {missing}"
        told = f"{_difference(one)} over a sham"
        if (control := found.contrast(one.model, ("oracle", "control"))) is not None:
            told += f" and {_difference(control)} over nothing"
        if found.repairs(one.model):
            yield f"{where}, restoring it changes accuracy by {told}."
        else:
            yield f"{where}, no repair is shown: with it restored accuracy differs by {told}."
        if (doubt := found.validity[one.model].sentence) is not None:
            yield f"{one.model}: {doubt}."


def _difference(one: Contrast) -> str:
    found = one.difference
    return f"{points(found.estimate)} points (95% interval {points(found.low)} to {points(found.high)})"


def _nothing(setup: RescueSetup, found: Rescue) -> str:
    if setup.memory is None:
        right = min((one.trajectory_accuracy for one in found.rows if one.trajectory_accuracy is not None), default=1.0)
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
