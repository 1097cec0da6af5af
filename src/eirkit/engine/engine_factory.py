"""Makes an engine from its name: `local` for processes on this machine, `ray` for a Ray cluster."""

from __future__ import annotations

from eirkit.engine.interface import Engine, PieceLimits
from eirkit.engine.processes import Processes
from eirkit.engine.ray_tasks import RayTasks
from eirkit.errors import UnknownNameError, UsageError

ENGINES = ("local", "ray")


def make_engine(
    name: str,
    *,
    workers: int | None = None,
    address: str | None = None,
    bounds: PieceLimits | None = None,
    batch: int = 1,
) -> Engine:
    """Return an engine; nothing is started yet.

    Args:
        workers: number of local workers; one per core by default.
        address: address of an existing Ray cluster.
        batch: pieces sent to a worker at a time.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "ray":
        return RayTasks(address, workers, bounds, batch)
    if address is not None:
        raise UsageError("--address needs --engine ray; add it or leave --address out")
    return Processes(workers, bounds, batch)
