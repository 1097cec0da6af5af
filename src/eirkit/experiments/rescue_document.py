"""What a rescue says, as one document: rows, contrasts and each model's effect, with whether it may be claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.experiments.rescue import Contrast, Rescue, Setup
from eirkit.runs.capability import CapabilityCell
from eirkit.runs.claims import GATE


def rescue_document(setup: Setup, seeds: int, found: Rescue, controls: Mapping[str, CapabilityCell]) -> dict[str, Any]:
    """Return the result as one document; there is one effect for each model that may carry claims, never a mean."""
    document = found.as_json()
    for row in (*document["rows"], *document["contrasts"]):
        cell = controls.get(row["model"])
        row |= {"control": None if cell is None else cell.standing(), "claims": cell is not None and cell.passes}
    allowed = may_claim(found, controls)
    condition = {"workload": setup.spec.workload, "m": setup.spec.m, "h": setup.h, "policy": setup.policy}
    return {
        **document,
        "repair_effect": found.repair_effect_of(allowed),
        "repair_effects": [_effect(one) for one in found.repair_effects(allowed)],
        **condition,
        "truth": setup.truth,
        "managed": setup.managed,
        "memory": None if setup.memory is None else setup.memory.name,
        "panel": setup.panel,
        "seeds": seeds,
        "threshold": GATE.threshold,
        "excluded": [[cell.model, cell.workload, cell.reason] for cell in controls.values() if not cell.passes],
    }


def _effect(one: Contrast) -> dict[str, Any]:
    found = one.difference
    return {"model": one.model, "effect": found.estimate, "low": found.low, "high": found.high, "pairs": one.pairs}


def may_claim(found: Rescue, controls: Mapping[str, CapabilityCell]) -> set[str]:
    """Return the models that have not failed the control."""
    return {row.model for row in found.rows if row.model not in controls or controls[row.model].passes}
