"""eirkit: how much an agent must remember, whether its memory keeps it, and what recorded runs lost.

These are the names that the README uses; everything else is reached by its full path.
"""

from eirkit.eir.bisimulation import count_process
from eirkit.eir.contract import ContractCount
from eirkit.eir.demand import ClassCount, DemandCurve, pressure
from eirkit.eir.enumeration import count_contract
from eirkit.errors import EirkitError, InfrastructureError, UsageError
from eirkit.lacuna.cone_survey import survey_cones
from eirkit.lacuna.generation import demand_of, generate
from eirkit.lacuna.policy import Policy, policies
from eirkit.lacuna.simulation.plain import Outcome, simulate
from eirkit.lacuna.task import TaskInstance, TaskSpec
from eirkit.lacuna.workload import Workload, workloads

__version__ = "0.1.0"

__all__ = [
    "ClassCount",
    "ContractCount",
    "DemandCurve",
    "EirkitError",
    "InfrastructureError",
    "Outcome",
    "Policy",
    "TaskInstance",
    "TaskSpec",
    "UsageError",
    "Workload",
    "count_contract",
    "count_process",
    "demand_of",
    "generate",
    "policies",
    "pressure",
    "simulate",
    "survey_cones",
    "workloads",
]
