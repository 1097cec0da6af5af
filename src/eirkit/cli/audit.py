"""`eirkit lacuna audit`: does the interface carry anything besides what it is meant to carry?"""

from __future__ import annotations

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option, table
from eirkit.experiments.audit import CHANNELS, Audit
from eirkit.experiments.leaks import audit as run_audit


@click.command()
@click.option("--instances", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Tasks to audit.")
@click.option("--plant", type=click.Choice(CHANNELS), help="Audit an interface that leaks here, to see it found.")
@json_option
def audit(instances: int, plant: str | None, as_json: bool) -> int:
    """Check seven channels of the controlled-retention interface; a finding is a leak, and exit code 1."""
    found = run_audit(instances, plant)
    emit({**found.as_json(), "plant": plant}, as_json, lambda console: _render(console, found, plant))
    return 1 if found.findings else 0


def _render(console: Console, found: Audit, plant: str | None) -> None:
    leak = f", with a leak planted in {plant}" if plant else ""
    rows = [(row.channel, row.checks, row.findings, row.examples[0] if row.examples else "") for row in found.rows]
    rows.append(("total", found.checks, found.findings, ""))
    title = f"Controlled retention, {found.instances} instances{leak}"
    console.print(table(title, ("channel", "checks", "findings", "first finding"), rows))
    console.print(
        f"{found.decisions} decisions, {found.saturated} of them with h records shown, {found.value_slots} value slots:"
        " payload width is checked once a slot, message length once a saturated decision, the rest once a decision."
    )
