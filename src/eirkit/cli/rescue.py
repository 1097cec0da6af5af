"""`eirkit lacuna rescue`: does restoring the missing result repair the answer, and does a sham of equal length not?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click
from rich.console import Console

from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.bench_options import Errand, Finding, control_option, errand_options
from eirkit.cli.options import NamingOption
from eirkit.cli.output import json_option, legend, show_losses, table
from eirkit.errors import UsageError
from eirkit.lacuna.evidence.capability import Cell
from eirkit.lacuna.evidence.claims import NOT_RUN, gate_all
from eirkit.lacuna.evidence.rescue import Rescue, Setup, Truth
from eirkit.lacuna.evidence.rescue import rescue as run_rescue
from eirkit.lacuna.evidence.rescue_document import may_claim, rescue_document
from eirkit.lacuna.evidence.trial import Bench
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.policy import find_policy, policies
from eirkit.lacuna.sweeps.suite_values import show_seeds
from eirkit.lacuna.task import TaskSpec


@click.command(context_settings={"default_map": {"m": 8}})
@workload_options("store-recall")
@click.option("--h", type=click.IntRange(1), default=4, show_default=True, help="Records held.")
@click.option(
    "--policy",
    cls=NamingOption,
    known=policies.names,
    default="fifo",
    show_default=True,
    help="Which records are held.",
)
@click.option("--managed", is_flag=True, help="In the action loop instead of Controlled Retention.")
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
@errand_options
@json_option
def rescue(
    specs: tuple[TaskSpec, ...],
    h: int,
    policy: str,
    managed: bool,
    truth: Truth,
    control: bool | None,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    errand: Errand,
    as_json: bool,
) -> int:
    """Run three arms over the same tasks: nothing, the missing result, or a sham of equal length at every miss."""
    if len(specs) != 1:
        raise UsageError("one workload at a time; run the command again for another")
    find_policy(policy)
    setup = Setup(specs[0], h, policy, truth, managed)

    def work(bench: Bench) -> Finding:
        controls = gate_all(model_names, setup.spec, model_options, control, bench)
        found = run_rescue(setup, seeds, model_names, model_options, bench)
        document = rescue_document(setup, len(seeds), found, controls)
        lost = found.failures or any(cell.failures for cell in controls.values())
        return Finding(document, lambda console: _render(console, setup, found, controls), 1 if lost else 0)

    settings = {
        **setup.as_json(),
        "seeds": show_seeds(seeds),
        "models": list(model_names),
        "options": model_options.asked(),
    }
    return errand.run("rescue", settings, (*model_names, specs[0].workload, policy), work, as_json)


def _render(console: Console, setup: Setup, found: Rescue, controls: Mapping[str, Cell]) -> None:
    spec = setup.spec
    title = f"{spec.workload}, m = {spec.m}, h = {setup.h}, {setup.policy}: accuracy at steps with a missing input"
    columns = ("model", "arm", "missed steps", "accuracy", "whole trajectory", "self-consistent", "scored")
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
    legend(
        console,
        control="nothing is injected",
        oracle="what is missing",
        sham="another value under the same label, as long",
    )
    if not found.contrasts and not found.failures:
        console.print("Nothing was missing in any arm, so there is nothing to repair; lower --h.")
    _render_contrasts(console, found, may_claim(found, controls))
    for line in _remarks(found, controls):
        console.print(line, markup=False, highlight=False)
    lost = Counter(failure.partition(": ")[2] for failure in found.failures)
    show_losses(console, [lost, *(cell.failures for cell in controls.values())])


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


def _remarks(found: Rescue, controls: Mapping[str, Cell]) -> Iterator[str]:
    for cell in controls.values():
        if not cell.passes:
            yield f"excluded: {cell.model}, {cell.workload}: {cell.reason.removeprefix('excluded: ')}"
    if open_to_doubt := [model for model in dict.fromkeys(row.model for row in found.rows) if model not in controls]:
        yield f"{NOT_RUN} of {', '.join(open_to_doubt)}: differences are descriptive; add --control"
