"""Who may carry claims about lost information: whoever answers well enough where nothing is missing, and nobody else.

Commands and studies that speak of lost information ask here first.
"""

from __future__ import annotations

from collections.abc import Iterable

from eirkit.agents.model import Batching, ModelOptions
from eirkit.agents.serving.model_factory import make_model
from eirkit.runs.budget import is_scripted
from eirkit.runs.capability import CapabilityCell, Control, assess
from eirkit.runs.trial import Bench
from eirkit.tasks.task import TaskSpec

GATE = Control(calculator=False)
NOT_RUN = "no capability control was run"


def gate(model: str, spec: TaskSpec, options: ModelOptions, bench: Bench | None = None) -> CapabilityCell:
    """Return what a model reaches at full information on a workload; `passes` says whether claims may be made."""
    (cell,) = assess([model], [spec], GATE, options, bench)
    return cell


def gate_all(
    models: Iterable[str], spec: TaskSpec, options: ModelOptions, control: bool | None, bench: Bench
) -> dict[str, CapabilityCell]:
    """Return the controls of the models that are to have one."""
    return {model: gate(model, spec, options, bench) for model in models if wants_control(model, options, control)}


def wants_control(model: str, options: ModelOptions, control: bool | None) -> bool:
    """True if a control is to be run: always, never, or, unless told, for agents to whom it is no expense."""
    if control is not None:
        return control
    made = make_model(model, options)
    return is_scripted(made) or isinstance(made, Batching)
