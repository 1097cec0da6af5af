"""`eirkit lacuna audit`: checks seven channels of the controlled-retention interface for leaks."""

from __future__ import annotations

import click

from eirkit.cli.command import command, option
from eirkit.cli.output import Show, document_options
from eirkit.experiments.audit import CHANNELS, Audit
from eirkit.experiments.leaks import audit as run_audit
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Cell, Column, Table


@command(example="eirkit lacuna audit --instances 20")
@option("--instances", type=click.IntRange(1, 10_000), default=100, show_default=True, help="Number of tasks to audit.")
@option("--plant", type=click.Choice(CHANNELS), help="Audit an interface that leaks through this channel.")
@document_options
def audit(instances: int, plant: str | None, show: Show) -> int:
    """Check seven channels of the controlled-retention interface for leaks.

    Exits with 1 if there is any finding. --plant shows that a leak would be found.
    """
    found = run_audit(instances, plant)
    show(_document(found, plant))
    return 1 if found.findings else 0


def _document(found: Audit, plant: str | None) -> Document:
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
    data = {**found.as_json(), "plant": plant}
    return Document("lacuna-audit", "Channel audit", (answer,), data, (section,), next=then)
