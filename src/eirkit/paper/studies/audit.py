"""Study of the channel audit: seven channels over 100 instances, and a planted leak in each."""

from __future__ import annotations

from eirkit.experiments.audit import CHANNELS, Audit
from eirkit.experiments.leaks import audit
from eirkit.paper.published import value_of
from eirkit.paper.studies.comparison import exact, listed, sectioned
from eirkit.paper.study import Findings, Setting

INSTANCES = 100
PLANTED_INSTANCES = 5
CHANNEL_ROWS = {
    "payload-width": "Payload width",
    "identifiers": "Identifier set",
    "occupancy": "Occupancy",
    "ordering": "Ordering",
    "serialization": "JSON determinism",
    "message-length": "Message length at saturation",
    "reset-isolation": "Reset isolation",
}
PLACE = "tab:smuggling-audit"
TABLE = {channel: int(value_of(PLACE, row, "Checks")) for channel, row in CHANNEL_ROWS.items()}
CHECKS = (
    "The published instances are not known, so numbers of checks are shown side by side and not judged. Judged are the "
    "findings, and whether a leak planted in a channel is found there."
)


def channel_audit(setting: Setting) -> Findings:
    """Compare the findings of the audit; the sizes of instances are our own."""
    found = audit(INSTANCES)
    planted = {channel: _findings(audit(PLANTED_INSTANCES, channel), channel) for channel in CHANNELS}
    rows = [
        exact(f"{name}: findings", value_of(PLACE, CHANNEL_ROWS[name], "Findings"), findings, digits=0)
        for name, findings in ((row.channel, row.findings) for row in found.rows)
    ]
    caught = sum(findings > 0 for findings in planted.values())
    lines = [
        {
            "channel": row.channel,
            "published checks": TABLE[row.channel],
            "our checks": row.checks,
            "found when planted": planted[row.channel],
        }
        for row in found.rows
    ]
    total = int(value_of(PLACE, "Total", "Checks"))
    totals = {"channel": "total", "published checks": total, "our checks": found.checks}
    relations = (
        f"Ours: once for each of {found.value_slots} displayed value slots, {found.saturated} decisions with h records "
        f"shown, and five times for each of {found.decisions} decisions."
    )
    checks = listed("checks", "Checks, and what a planted leak gives", [*lines, totals])
    rows.append(exact("channels in which a planted leak is found", len(CHANNELS), caught, digits=0))
    sections = {f"Findings, {INSTANCES} instances": rows}
    return Findings(sectioned(sections), (checks,), words=(CHECKS, relations))


def _findings(found: Audit, channel: str) -> int:
    return next(row.findings for row in found.rows if row.channel == channel)
