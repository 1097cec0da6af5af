"""Who may carry claims about lost information: whoever answers well enough where nothing is missing, and nobody else.

Commands and studies that speak of lost information ask here first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eirkit.agents.model import Batching, ModelOptions
from eirkit.agents.serving.model_factory import make_model
from eirkit.runs.budget import is_scripted
from eirkit.runs.capability import CapabilityCell, Control, assess, measure_capability
from eirkit.runs.results import Results
from eirkit.runs.runner import Runner
from eirkit.tasks.task import TaskSpec

GATE = Control(calculator=False)
NOT_RUN = "no capability control was run"


def assess_gate(model: str, spec: TaskSpec, options: ModelOptions, runner: Runner | None = None) -> CapabilityCell:
    """Return what a model reaches at full information on a workload; `passes` says whether claims may be made."""
    (cell,) = assess([model], [spec], GATE, options, runner)
    return cell


def measure_gates(
    models: Iterable[str], spec: TaskSpec, options: ModelOptions, results: Results
) -> dict[str, CapabilityCell]:
    """Return the controls of some models from what was recorded."""
    return {cell.model: cell for cell in measure_capability(models, [spec], GATE, options, results)}


def models_to_control(models: Sequence[str], options: ModelOptions, control: bool | None) -> list[str]:
    """Return the models that are to have a control."""
    return [model for model in models if wants_control(model, options, control)]


def wants_control(model: str, options: ModelOptions, control: bool | None) -> bool:
    """True if a control is to be run: always, never, or, unless told, for agents to whom it is no expense."""
    if control is not None:
        return control
    made = make_model(model, options)
    return is_scripted(made) or isinstance(made, Batching)
