"""The published channel audit beside ours: seven channels over 100 instances, and a leak planted in each.

python -m studies.channel_audit [--json]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from eirkit.cli.output import WholeConsole, table
from eirkit.lacuna.evidence.audit import CHANNELS, Audit
from eirkit.lacuna.evidence.leaks import audit

INSTANCES = 100
PLANTED_INSTANCES = 5
# Channel → checks; no findings in any.
TABLE = {
    "payload-width": 7777,
    "identifiers": 1752,
    "occupancy": 1752,
    "ordering": 1752,
    "serialization": 1752,
    "message-length": 1531,
    "reset-isolation": 1752,
}


def study() -> dict[str, Any]:
    """Return the comparison as one document.

    The verdict is about findings: none here, and some wherever a leak is planted. The published instances are not
    known, so the numbers of checks stand beside each other and are not judged.
    """
    found = audit(INSTANCES)
    planted = {channel: _findings(audit(PLANTED_INSTANCES, channel), channel) for channel in CHANNELS}
    rows = [
        {
            "label": f"{row.channel}: findings",
            "published": 0,
            "ours": row.findings,
            "low": row.findings,
            "high": row.findings,
            "verdict": "inside" if row.findings == 0 and planted[row.channel] else "outside",
            "published_checks": TABLE[row.channel],
            "checks": row.checks,
            "planted_found": planted[row.channel],
        }
        for row in found.rows
    ]
    return {
        "id": "channel-audit",
        "title": f"Controlled-retention interface audit, {INSTANCES} instances",
        "kind": "offline",
        "verdict": "inside" if all(row["verdict"] == "inside" for row in rows) else "outside",
        "rows": rows,
        "checks": {"published": sum(TABLE.values()), "ours": found.checks},
        "relations": {"value_slots": found.value_slots, "decisions": found.decisions, "saturated": found.saturated},
    }


def _findings(found: Audit, channel: str) -> int:
    return next(row.findings for row in found.rows if row.channel == channel)


def main(arguments: list[str]) -> None:
    made = study()
    if "--json" in arguments:
        print(json.dumps(made, ensure_ascii=False))
        return
    names = ("label", "published", "ours", "published_checks", "checks", "planted_found", "verdict")
    columns = ("figure", "published", "ours", "published checks", "our checks", "found when planted", "verdict")
    console = WholeConsole(width=120)
    console.print(table(made["title"], columns, [[row[name] for name in names] for row in made["rows"]]))
    checks, relations = made["checks"], made["relations"]
    console.print(
        f"published {checks['published']} checks, ours {checks['ours']}: once for each of {relations['value_slots']} "
        f"displayed value slots, {relations['saturated']} decisions with h records shown, and five times for each of "
        f"{relations['decisions']} decisions; no findings published, none here"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
