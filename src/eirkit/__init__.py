"""eirkit: how much an agent must remember, whether its memory keeps it, and what recorded runs lost.

These are the names that the README uses; everything else is reached by its full path. Each is imported when it is
first used, so that `import eirkit` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than everything else here
if TYPE_CHECKING:
    from eirkit.eir.bisimulation import count_process as count_process
    from eirkit.eir.contract import ContractCount as ContractCount
    from eirkit.eir.contract import count_contract as count_contract
    from eirkit.eir.demand import ClassCount as ClassCount
    from eirkit.eir.demand import DemandCurve as DemandCurve
    from eirkit.eir.demand import pressure as pressure
    from eirkit.errors import EirkitError as EirkitError
    from eirkit.errors import InfrastructureError as InfrastructureError
    from eirkit.errors import UsageError as UsageError
    from eirkit.lacuna.runs.play import Played as Played
    from eirkit.lacuna.runs.play import play as play
    from eirkit.lacuna.tasks.cones import survey_cones as survey_cones
    from eirkit.lacuna.tasks.generation import demand_of as demand_of
    from eirkit.lacuna.tasks.generation import generate as generate
    from eirkit.lacuna.tasks.policy import Policy as Policy
    from eirkit.lacuna.tasks.policy import policies as policies
    from eirkit.lacuna.tasks.simulation.plain import Outcome as Outcome
    from eirkit.lacuna.tasks.simulation.plain import simulate as simulate
    from eirkit.lacuna.tasks.task import TaskInstance as TaskInstance
    from eirkit.lacuna.tasks.task import TaskSpec as TaskSpec
    from eirkit.lacuna.tasks.workload import Workload as Workload
    from eirkit.lacuna.tasks.workload import workloads as workloads

__version__ = "0.1.0"

_HOMES = {
    "ClassCount": "eirkit.eir.demand",
    "ContractCount": "eirkit.eir.contract",
    "DemandCurve": "eirkit.eir.demand",
    "EirkitError": "eirkit.errors",
    "InfrastructureError": "eirkit.errors",
    "Outcome": "eirkit.lacuna.tasks.simulation.plain",
    "Played": "eirkit.lacuna.runs.play",
    "Policy": "eirkit.lacuna.tasks.policy",
    "TaskInstance": "eirkit.lacuna.tasks.task",
    "TaskSpec": "eirkit.lacuna.tasks.task",
    "UsageError": "eirkit.errors",
    "Workload": "eirkit.lacuna.tasks.workload",
    "count_contract": "eirkit.eir.contract",
    "count_process": "eirkit.eir.bisimulation",
    "demand_of": "eirkit.lacuna.tasks.generation",
    "generate": "eirkit.lacuna.tasks.generation",
    "play": "eirkit.lacuna.runs.play",
    "policies": "eirkit.lacuna.tasks.policy",
    "pressure": "eirkit.eir.demand",
    "simulate": "eirkit.lacuna.tasks.simulation.plain",
    "survey_cones": "eirkit.lacuna.tasks.cones",
    "workloads": "eirkit.lacuna.tasks.workload",
}
__all__ = [
    "ClassCount",
    "ContractCount",
    "DemandCurve",
    "EirkitError",
    "InfrastructureError",
    "Outcome",
    "Played",
    "Policy",
    "TaskInstance",
    "TaskSpec",
    "UsageError",
    "Workload",
    "count_contract",
    "count_process",
    "demand_of",
    "generate",
    "play",
    "policies",
    "pressure",
    "simulate",
    "survey_cones",
    "workloads",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'eirkit' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)  # cached: later lookups do not come here
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
