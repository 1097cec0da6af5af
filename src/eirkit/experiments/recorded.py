"""Computes the result of a recorded rescue, control or probe from its folder, finished or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from eirkit.experiments.probe import ProbeExperiment
from eirkit.experiments.rescue_document import RescueExperiment
from eirkit.runs.capability import CapabilityExperiment
from eirkit.runs.results import Results


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
