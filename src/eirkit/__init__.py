"""eirkit: how much an agent must remember, whether its memory keeps it, and what recorded runs lost.

`run` runs agents, `analyze` reads logs, `open` opens what either wrote; `Sweep` and `Analysis` are their results. Names
that are not here are reached by their full path. Each is imported when it is first used, so that `import eirkit` costs
nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than everything else here
if TYPE_CHECKING:
    from eirkit.api.running import open as open
    from eirkit.api.running import run as run
    from eirkit.api.sweep import Run as Run
    from eirkit.api.sweep import Sweep as Sweep
    from eirkit.eir.bisimulation import count_process as count_process
    from eirkit.eir.contract import ContractCount as ContractCount
    from eirkit.eir.contract import count_contract as count_contract
    from eirkit.eir.demand import DemandCurve as DemandCurve
    from eirkit.eir.demand import pressure as pressure
    from eirkit.errors import EirkitError as EirkitError
    from eirkit.errors import InfrastructureError as InfrastructureError
    from eirkit.errors import UsageError as UsageError
    from eirkit.lacuna.memories.memory import MemorySystem as MemorySystem
    from eirkit.lacuna.models.model import Model as Model
    from eirkit.lacuna.runs.play import Played as Played
    from eirkit.lacuna.runs.play import play as play
    from eirkit.lacuna.tasks.cones import survey_cones as survey_cones
    from eirkit.lacuna.tasks.generation import demand_of as demand_of
    from eirkit.lacuna.tasks.generation import generate as generate
    from eirkit.lacuna.tasks.policy import Policy as Policy
    from eirkit.lacuna.tasks.simulation.plain import simulate as simulate
    from eirkit.lacuna.tasks.task import TaskInstance as TaskInstance
    from eirkit.lacuna.tasks.task import TaskSpec as TaskSpec
    from eirkit.lacuna.tasks.workload import Workload as Workload
    from eirkit.records.runs import RunRecord as RunRecord
    from eirkit.records.runs import StepRecord as StepRecord
    from eirkit.records.sweeps import CellRow as CellRow
    from eirkit.vestige.results.analysis import Analysis as Analysis
    from eirkit.vestige.results.analyze import analyze as analyze
    from eirkit.vestige.trajectory import LogFormat as LogFormat

__version__ = "0.1.0"

_HOMES = {
    "Analysis": "eirkit.vestige.results.analysis",
    "CellRow": "eirkit.records.sweeps",
    "ContractCount": "eirkit.eir.contract",
    "DemandCurve": "eirkit.eir.demand",
    "EirkitError": "eirkit.errors",
    "InfrastructureError": "eirkit.errors",
    "LogFormat": "eirkit.vestige.trajectory",
    "MemorySystem": "eirkit.lacuna.memories.memory",
    "Model": "eirkit.lacuna.models.model",
    "Played": "eirkit.lacuna.runs.play",
    "Policy": "eirkit.lacuna.tasks.policy",
    "Run": "eirkit.api.sweep",
    "RunRecord": "eirkit.records.runs",
    "StepRecord": "eirkit.records.runs",
    "Sweep": "eirkit.api.sweep",
    "TaskInstance": "eirkit.lacuna.tasks.task",
    "TaskSpec": "eirkit.lacuna.tasks.task",
    "UsageError": "eirkit.errors",
    "Workload": "eirkit.lacuna.tasks.workload",
    "analyze": "eirkit.vestige.results.analyze",
    "count_contract": "eirkit.eir.contract",
    "count_process": "eirkit.eir.bisimulation",
    "demand_of": "eirkit.lacuna.tasks.generation",
    "generate": "eirkit.lacuna.tasks.generation",
    "open": "eirkit.api.running",
    "play": "eirkit.lacuna.runs.play",
    "pressure": "eirkit.eir.demand",
    "run": "eirkit.api.running",
    "simulate": "eirkit.lacuna.tasks.simulation.plain",
    "survey_cones": "eirkit.lacuna.tasks.cones",
}
__all__ = [
    "Analysis",
    "CellRow",
    "ContractCount",
    "DemandCurve",
    "EirkitError",
    "InfrastructureError",
    "LogFormat",
    "MemorySystem",
    "Model",
    "Played",
    "Policy",
    "Run",
    "RunRecord",
    "StepRecord",
    "Sweep",
    "TaskInstance",
    "TaskSpec",
    "UsageError",
    "Workload",
    "analyze",
    "count_contract",
    "count_process",
    "demand_of",
    "generate",
    "open",
    "play",
    "pressure",
    "run",
    "simulate",
    "survey_cones",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'eirkit' has no attribute {name!r}")
    globals()[name] = getattr(import_module(_HOMES[name]), name)  # cached: later lookups do not come here
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
