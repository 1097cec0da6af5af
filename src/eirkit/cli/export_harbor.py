"""`eirkit export harbor`: writes tasks as Harbor task folders."""

from __future__ import annotations

import secrets
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eirkit.bridges.external_runs import plan_external_runs
from eirkit.bridges.harbor import MODEL, REQUIREMENT, export_harbor
from eirkit.cli.command import OUTPUT, option
from eirkit.cli.options import workload_command
from eirkit.cli.output import Show, document_options
from eirkit.cli.run_options import axis_options, given_keys, hide_model_options, suite_argument
from eirkit.cli.runner_options import PATH
from eirkit.errors import UsageError
from eirkit.runs.cells import CONTROLLED
from eirkit.runs.suite import Suite
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table

SEED_BITS = 63
MODES = ("managed", "controlled")
LISTED = 20  # tasks; --json has all


@workload_command(example="eirkit export harbor store-recall --m 8 --h 4 --seeds 0:2 --out out/harbor")
@suite_argument
@axis_options
@option("--mode", type=click.Choice(MODES), help="Loop of the agent.  [default: managed, unless --condition says so]")
@option("--episodes", type=click.IntRange(1, 10_000), help="Number of random seeds to use in place of --seeds.")
@option(
    "--install", default=REQUIREMENT, show_default=True, help="What to install in the image: a requirement or wheel."
)
@option("--out", type=PATH, required=True, metavar="DIR", group=OUTPUT, help="A new or empty folder.")
@document_options
def harbor(
    suite: Path | None, mode: str | None, episodes: int | None, install: str, out: Path, show: Show, **options: Any
) -> None:
    """Write one Harbor task folder for each run of a WORKLOAD, of a SUITE.toml, or of a suite with options over it.

    In managed mode a service beside the agent's container holds the task; in controlled mode every step is a session of
    its own. The reward is correct / scored.
    """
    exported = export_harbor(_wanted(suite, mode, episodes, given_keys(options)), out, secrets.token_bytes, install)
    tasks = [
        {"folder": str(one.folder), "name": one.name, "mode": one.mode, "seed": one.seed, "run": one.run}
        for one in exported
    ]
    columns = (Column("folder", "folder", role="name"), Column("mode", "mode"))
    rows = tuple({"folder": one.folder.name, "mode": one.mode} for one in exported[:LISTED])
    note = f"and {len(exported) - LISTED:,} more" if len(exported) > LISTED else ""
    section = Section("", (), (Table("tasks", f"Tasks in {out}", columns, rows, note),))
    said = f"{counted(len(exported), 'task')} in {out}."
    then = f"harbor run -p {quote(str(out))}"
    data = {"out": str(out), "tasks": tasks}
    show(Document("export-harbor", "Export to Harbor", (said,), data, (section,), next=then))


hide_model_options(harbor)


def _wanted(path: Path | None, mode: str | None, episodes: int | None, given: dict[str, Any]) -> Suite:
    if path is None and "workload" not in given:
        raise UsageError("nothing to export; give a WORKLOAD or a SUITE.toml")
    if episodes is not None and "seeds" in given:
        raise UsageError("--episodes draws seeds at random and --seeds names them; give one of the two")
    keys = {"model": [MODEL], **given}
    if episodes is not None:
        keys["seeds"] = [secrets.randbits(SEED_BITS) for _ in range(episodes)]
    if path is None and mode == "controlled":
        keys.setdefault("condition", [CONTROLLED])
    suite = plan_external_runs(keys, path)
    modes = {MODES[cell.access.is_controlled] for cell, _ in suite.plan()}
    if mode is not None and modes != {mode}:
        raise UsageError(f"--mode {mode} does not fit the condition; leave it out, or choose a fitting condition")
    return suite
