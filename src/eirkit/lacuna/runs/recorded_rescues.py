"""The rescue experiment as one plan, and the results of recorded rescues, controls and probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.arms import RescueSetup
from eirkit.lacuna.runs.capability import GATE, CapabilityCell, CapabilityExperiment, measure_gates, models_to_control
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.probe import ProbeExperiment
from eirkit.lacuna.runs.rescue import Contrast, Rescue, measure_rescue
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.runs.values import read_seeds, show_seeds


@dataclass(frozen=True, slots=True)
class RescueExperiment:
    """One rescue: the setup of its arms, the models, and whether their capability is controlled first."""

    setup: RescueSetup
    seeds: Sequence[int]
    models: Sequence[str]
    options: ModelOptions
    control: bool | None = None  # None: for free models only

    def plan(self) -> CellPlan:
        """Return the controls, then the arms."""
        gates = GATE.plan(self._controlled(), [self.setup.spec], self.options)
        arms = self.setup.cells(self.models, self.options, self.seeds)
        settings = {
            **self.setup.as_json(),
            "seeds": show_seeds(self.seeds),
            "models": list(self.models),
            "options": self.options.asked(),
            "control": self.control,
        }
        return CellPlan("rescue", (*gates, *arms), settings)

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> RescueExperiment:
        """Return the rescue that the settings of a plan describe."""
        options = ModelOptions(**settings["options"])
        return cls(
            RescueSetup.read(settings), read_seeds(settings["seeds"]), settings["models"], options, settings["control"]
        )

    def answer(self, results: Results) -> dict[str, Any]:
        """Return the result of the runs so far."""
        return self.document(*self.measure(results))

    def measure(self, results: Results) -> tuple[Rescue, dict[str, CapabilityCell]]:
        """Return the comparison of the arms and the controls by model."""
        controls = measure_gates(self._controlled(), self.setup.spec, self.options, results)
        return measure_rescue(self.setup, self.seeds, self.models, self.options, results), controls

    def document(self, found: Rescue, controls: Mapping[str, CapabilityCell]) -> dict[str, Any]:
        return rescue_document(self.setup, len(self.seeds), found, controls)

    def _controlled(self) -> list[str]:
        return models_to_control(self.models, self.options, self.control)


def rescue_document(
    setup: RescueSetup, seeds: int, found: Rescue, controls: Mapping[str, CapabilityCell]
) -> dict[str, Any]:
    """Return the result as one document, with one effect per model that supports claims, never a mean."""
    document = found.as_json()
    for row in (*document["rows"], *document["contrasts"]):
        cell = controls.get(row["model"])
        row |= {"control": None if cell is None else cell.standing(), "claims": cell is not None and cell.passes}
    allowed = may_claim(found, controls)
    condition = {"workload": setup.spec.workload, "m": setup.spec.m, "h": setup.h, "policy": setup.policy}
    return {
        **document,
        "repair_effect": found.repair_effect_of(allowed),
        "repair_effects": [_effect(one, found) for one in found.repair_effects(allowed)],
        **condition,
        "truth": setup.truth,
        "managed": setup.managed,
        "memory": None if setup.memory is None else setup.memory.name,
        "panel": setup.panel,
        "seeds": seeds,
        "threshold": GATE.threshold,
        "excluded": [[cell.model, cell.workload, cell.reason] for cell in controls.values() if not cell.passes],
    }


def _effect(one: Contrast, found: Rescue) -> dict[str, Any]:
    """Return the effect of one model: over a sham, over nothing, and whether both show a repair."""
    over, control = one.difference, found.contrast(one.model, ("oracle", "control"))
    beyond = None if control is None else control.difference
    return {
        "model": one.model,
        "effect": over.estimate,
        "low": over.low,
        "high": over.high,
        "over_control": None
        if beyond is None
        else {name: getattr(beyond, name) for name in ("estimate", "low", "high")},
        "repairs": found.repairs(one.model),
        "pairs": one.pairs,
    }


def may_claim(found: Rescue, controls: Mapping[str, CapabilityCell]) -> set[str]:
    """Return the models that did not fail the control."""
    return {row.model for row in found.rows if row.model not in controls or controls[row.model].passes}


class Experiment(Protocol):
    """An experiment whose result follows from its runs."""

    def answer(self, results: Results) -> dict[str, Any]: ...


READERS: Mapping[str, Callable[[Mapping[str, Any]], Experiment]] = {
    "rescue": RescueExperiment.read,
    "capability": CapabilityExperiment.read,
    "probe": ProbeExperiment.read,
}


def result_so_far(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of an experiment from the runs that have ended; nothing is run and nothing written.

    Raises:
        UsageError: a model or plug-in of the settings is not available.
    """
    return READERS[manifest["command"]](manifest["settings"]).answer(Results(folder))
