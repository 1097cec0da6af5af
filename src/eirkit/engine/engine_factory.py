"""From the name of an engine to one that runs: `local` for processes of this machine, `ray` for Ray."""

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
        workers: on this machine; its cores unless given.
        address: of a Ray cluster that exists.
        batch: pieces that are sent to a worker at a time.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if name == "ray":
        return RayTasks(address, workers, bounds, batch)
    if address is not None:
        raise UsageError("an address goes with Ray; add --engine ray or leave it out")
    return Processes(workers, bounds, batch)
