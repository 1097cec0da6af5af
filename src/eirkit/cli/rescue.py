"""`eirkit lacuna rescue`: does restoring the missing result repair the answer, and does a sham of equal length not?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console

from eirkit.cli.agent_options import model_options, seeds_option, workload_options
from eirkit.cli.output import emit, json_option, show_losses, table
from eirkit.errors import UsageError
from eirkit.lacuna.evidence.rescue import Rescue, Setup, Truth
from eirkit.lacuna.evidence.rescue import rescue as run_rescue
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.policy import find_policy
from eirkit.lacuna.task import TaskSpec


@click.command(context_settings={"default_map": {"m": 8}})
@workload_options("store-recall")
@click.option("--h", type=click.IntRange(1), default=4, show_default=True, help="Records held.")
@click.option("--policy", default="fifo", show_default=True, help="Which records are held.")
@click.option("--managed", is_flag=True, help="In the action loop instead of Controlled Retention.")
@click.option(
    "--truth",
    type=click.Choice(["true", "submitted"]),
    default="true",
    show_default=True,
    help="What the oracle restores: the true result, or what the agent submitted.",
)
@seeds_option()
@model_options()
@json_option
def rescue(
    specs: tuple[TaskSpec, ...],
    h: int,
    policy: str,
    managed: bool,
    truth: Truth,
    seeds: Sequence[int],
    model_names: tuple[str, ...],
    model_options: ModelOptions,
    as_json: bool,
) -> int:
    """Run three arms over the same tasks: nothing, the missing result, or a sham of equal length at every miss."""
    if len(specs) != 1:
        raise UsageError("one workload at a time; run the command again for another")
    find_policy(policy)
    setup = Setup(specs[0], h, policy, truth, managed)
    found = run_rescue(setup, seeds, model_names, model_options)
    condition = {"workload": specs[0].workload, "m": specs[0].m, "h": h, "policy": policy, "truth": truth}
    document: dict[str, Any] = {**found.as_json(), **condition, "managed": managed, "seeds": len(seeds)}
    emit(document, as_json, lambda console: _render(console, setup, found))
    return 1 if found.failures else 0


def _render(console: Console, setup: Setup, found: Rescue) -> None:
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
    if not found.contrasts and not found.failures:
        console.print("Nothing was missing in any arm, so there is nothing to repair; lower --h.")
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
    ]
    columns = ("model", "arms", "pairs", "difference", "95% interval", "McNemar p", "permutation p")
    if paired:
        console.print(table("Paired by seed and step, resampled by trajectory", columns, paired))
    show_losses(console, [Counter(failure.partition(": ")[2] for failure in found.failures)])
