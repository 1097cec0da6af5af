"""`eirkit export harbor`: tasks as folders for Harbor."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.bridges.external_runs import plan_visits
from eirkit.bridges.harbor import MODEL, REQUIREMENT, ExportedTask, export_harbor
from eirkit.cli.bench_options import PATH
from eirkit.cli.output import emit, json_option
from eirkit.cli.run_options import axis_options, given_keys, hide_model_options
from eirkit.errors import UsageError
from eirkit.runs.cells import CONTROLLED
from eirkit.runs.suite import Suite

SEED_BITS = 63
MODES = ("managed", "controlled")


@click.command()
@click.argument("suite", type=PATH, required=False)
@axis_options
@click.option("--mode", type=click.Choice(MODES), help="Managed unless the condition is controlled.")
@click.option("--episodes", type=click.IntRange(1, 10_000), help="So many random seeds in place of --seeds.")
@click.option("--install", default=REQUIREMENT, show_default=True, help="What the service's image gets: or a wheel.")
@click.option("--out", type=PATH, required=True, help="A new or empty folder.")
@json_option
def harbor(
    suite: Path | None,
    mode: str | None,
    episodes: int | None,
    install: str,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Write one task folder for each run of a SUITE.toml, of options, or of a suite with options over it.

    In managed mode a service beside the agent's container holds the task; in controlled mode every step is a session of
    its own. The reward is correct / scored.
    """
    exported = export_harbor(_wanted(suite, mode, episodes, given_keys(options)), out, secrets.token_bytes, install)
    tasks = [
        {"folder": str(one.folder), "name": one.name, "mode": one.mode, "seed": one.seed, "run": one.run}
        for one in exported
    ]
    emit({"out": str(out), "tasks": tasks}, as_json, lambda console: _render(console, out, exported))


hide_model_options(harbor)


def _wanted(path: Path | None, mode: str | None, episodes: int | None, given: dict[str, Any]) -> Suite:
    if path is None and "workload" not in given:
        raise UsageError("nothing to export; give a SUITE.toml, or --workload")
    if episodes is not None and "seeds" in given:
        raise UsageError("--episodes draws seeds at random and --seeds names them; give one of the two")
    keys = {"model": [MODEL], **given}
    if episodes is not None:
        keys["seeds"] = [secrets.randbits(SEED_BITS) for _ in range(episodes)]
    if path is None and mode == "controlled":
        keys.setdefault("condition", [CONTROLLED])
    suite = plan_visits(keys, path)
    modes = {MODES[cell.access.is_controlled] for cell, _ in suite.plan()}
    if mode is not None and modes != {mode}:
        raise UsageError(f"--mode {mode} does not fit the condition; leave it out, or choose a fitting condition")
    return suite


def _render(console: Console, out: Path, exported: Sequence[ExportedTask]) -> None:
    for one in exported[:20]:
        console.print(f"{one.folder.name}  {one.mode}", markup=False, highlight=False)
    if len(exported) > 20:
        console.print(f"and {len(exported) - 20:,} more", markup=False, highlight=False)
    console.print(f"{len(exported):,} tasks in {out}; run them with harbor run -p {out}", markup=False, highlight=False)
