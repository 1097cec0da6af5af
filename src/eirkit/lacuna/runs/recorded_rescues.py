"""The rescue experiment as one plan, and the results of recorded rescues, controls and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import structs

from eirkit.lacuna.models.factory import common_protocol
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.capability import GATE, CapabilityExperiment, judged_as, measure_gates, models_to_control
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.probe import ProbeExperiment
from eirkit.lacuna.runs.rescue import Rescue, RescueSetup, measure_rescue
from eirkit.lacuna.runs.runner import Results
from eirkit.records.database import SweepDatabase
from eirkit.records.evidence import (
    SETTINGS,
    ArmRow,
    CapabilityCell,
    CapabilitySettings,
    Contrast,
    Estimate,
    EvidenceResult,
    RepairEffect,
    RescueResult,
    RescueSettings,
)
from eirkit.records.settings import TaskColumns
from eirkit.records.sweeps import Manifest
from eirkit.seeds import read_seeds, show_seeds

Judged = TypeVar("Judged", ArmRow, Contrast)


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
        return CellPlan("rescue", (*gates, *arms), msgspec.to_builtins(self.settings()))

    def settings(self) -> RescueSettings:
        """Return what determines the runs."""
        setup = self.setup
        return RescueSettings(
            task=setup.spec.parameters(),
            h=setup.h,
            policy=setup.policy,
            truth=setup.truth,
            managed=setup.managed,
            seeds=show_seeds(self.seeds),
            models=tuple(self.models),
            options=self.options.asked(common_protocol(self.models, self.options)),
            control=self.control,
            memory=None if setup.memory is None else setup.memory.name,
            memory_settings={} if setup.memory is None else dict(setup.memory.settings),
            panel=setup.panel,
            actions=setup.actions,
            budget=setup.budget,
        )

    @classmethod
    def of(cls, settings: RescueSettings) -> RescueExperiment:
        """Return the rescue that the settings of a plan describe."""
        options = ModelOptions.of(settings.options)
        return cls(RescueSetup.of(settings), read_seeds(settings.seeds), settings.models, options, settings.control)

    def answer(self, results: Results) -> RescueResult:
        """Return the result of the runs so far."""
        return self.result(*self.measure(results))

    def measure(self, results: Results) -> tuple[Rescue, dict[str, CapabilityCell]]:
        """Return the comparison of the arms and the controls by model."""
        controls = measure_gates(self._controlled(), self.setup.spec, self.options, results)
        return measure_rescue(self.setup, self.seeds, self.models, self.options, results), controls

    def result(self, found: Rescue, controls: Mapping[str, CapabilityCell]) -> RescueResult:
        return rescue_result(self.setup, len(self.seeds), found, controls)

    def _controlled(self) -> list[str]:
        return models_to_control(self.models, self.options, self.control)


def rescue_result(
    setup: RescueSetup, seeds: int, found: Rescue, controls: Mapping[str, CapabilityCell]
) -> RescueResult:
    """Return the result as one document, with one effect per model that is not excluded, never a mean."""
    allowed = not_excluded(found, controls)

    def judged(row: Judged) -> Judged:
        cell = controls.get(row.model)
        standing = None if cell is None else cell.standing()
        return structs.replace(row, control=standing, claims=cell is not None and cell.passes)

    return RescueResult(
        rows=tuple(judged(row) for row in found.rows),
        repair_effect=found.repair_effect_of(allowed),
        contrasts=tuple(judged(contrast) for contrast in found.contrasts),
        failures=found.failures,
        validity=dict(found.validity),
        systems=found.systems,
        repair_effects=tuple(_effect(contrast, found) for contrast in found.repair_effects(allowed)),
        workload=setup.spec.workload,
        m=TaskColumns.of(setup.spec.parameters()).m,
        h=setup.h,
        policy=setup.policy,
        truth=setup.truth,
        managed=setup.managed,
        memory=None if setup.memory is None else setup.memory.name,
        panel=setup.panel,
        seeds=seeds,
        threshold=GATE.threshold,
        excluded=judged_as("fails", controls.values()),
        undecided=judged_as("undecided", controls.values()),
    )


def _effect(contrast: Contrast, found: Rescue) -> RepairEffect:
    """Return the effect of one model: over a sham, over nothing, and whether both show a repair."""
    over, control = contrast.difference, found.contrast(contrast.model, ("oracle", "control"))
    beyond = None if control is None else control.difference
    return RepairEffect(
        model=contrast.model,
        effect=over.estimate,
        low=over.low,
        high=over.high,
        over_control=None if beyond is None else Estimate(beyond.estimate, beyond.low, beyond.high),
        repairs=found.repairs(contrast.model),
        pairs=contrast.pairs,
    )


def not_excluded(found: Rescue, controls: Mapping[str, CapabilityCell]) -> set[str]:
    """Return the models that did not fail the control."""
    failed = {model for model, cell in controls.items() if cell.verdict == "fails"}
    return {row.model for row in found.rows} - failed


def experiment_of(manifest: Manifest) -> RescueExperiment | CapabilityExperiment | ProbeExperiment:
    """Return the experiment that a manifest describes."""
    settings = msgspec.convert(manifest.settings, SETTINGS[manifest.command])
    if isinstance(settings, RescueSettings):
        return RescueExperiment.of(settings)
    return (
        CapabilityExperiment.of(settings) if isinstance(settings, CapabilitySettings) else ProbeExperiment.of(settings)
    )


def result_so_far(folder: Path, manifest: Manifest) -> EvidenceResult:
    """Return the result of an experiment from the runs that have ended; nothing is run and nothing written.

    Raises:
        UsageError: a model or plug-in of the settings is not available.
    """
    with SweepDatabase(folder) as database:
        return experiment_of(manifest).answer(Results(database))
