"""The Ray engine, on a local cluster that it starts or on an existing one.

Pieces are sent in batches. Ray does not report which piece killed a worker, so such a batch is halved and sent again
until the piece is alone and reported as lost. An alarm signal in the worker enforces the time limit.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from eirkit.engine.interface import LostPiece, PieceLimits, PieceResult, reason_of, reason_of_death
from eirkit.errors import InfrastructureError, MissingExtraError
from eirkit.limits import limit_memory

_SOURCE = Path(__file__).parents[2]  # added to the path of workers that do not have eirkit installed

_Numbered = tuple[int, Any]


class RayTasks:
    """An engine that keeps a few batches of Ray tasks in flight: on a local cluster, or on the one at RAY_ADDRESS.

    Args:
        workers: size of the local cluster.
        batch: pieces of a task, which costs Ray about a millisecond.
        in_flight: batches in flight per worker.
    """

    def __init__(
        self,
        workers: int | None = None,
        bounds: PieceLimits | None = None,
        batch: int = 1,
        in_flight: int = 3,
    ) -> None:
        self.workers, self.bounds = workers, bounds or PieceLimits()
        self.batch, self.in_flight = batch, in_flight
        self._ray: Any = None

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        ray = self._connect()
        task = ray.remote(num_cpus=1, max_retries=0)(_perform_all)
        source = enumerate(pieces)
        again: list[list[_Numbered]] = []  # halves of batches that killed a worker
        under_way: dict[Any, list[_Numbered]] = {}
        most = self.in_flight * max(1, int(ray.cluster_resources().get("CPU", 1)))
        while True:
            while len(under_way) < most and (batch := again.pop() if again else list(islice(source, self.batch))):
                under_way[task.remote(function, batch, self.bounds)] = batch
            if not under_way:
                return
            (ready,), _ = ray.wait(list(under_way), num_returns=1)
            batch = under_way.pop(ready)
            try:
                yield from ray.get(ready)
            except ray.exceptions.RayError as error:
                if len(batch) == 1:
                    how = f"killed its worker ({type(error).__name__})"
                    yield LostPiece(batch[0][0], reason_of_death(how, self.bounds), is_death=True)
                else:
                    again.extend((batch[: len(batch) // 2], batch[len(batch) // 2 :]))

    def close(self) -> None:
        ray, self._ray = self._ray, None
        if ray is not None:
            ray.shutdown()

    def _connect(self) -> Any:
        if self._ray is None:
            try:
                import ray
            except ImportError as error:
                raise MissingExtraError("the Ray engine", "ray") from error
            address = os.environ.get("RAY_ADDRESS")  # as in Ray itself
            try:
                ray.init(
                    address=address,
                    num_cpus=None if address else self.workers,
                    include_dashboard=None if address else False,
                    _node_ip_address=None if address else "127.0.0.1",  # not reachable from other machines
                    configure_logging=False,
                    log_to_driver=False,
                    runtime_env={"env_vars": {"PYTHONPATH": str(_SOURCE)}},
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InfrastructureError(f"cannot reach Ray ({error}); check RAY_ADDRESS or leave it out") from error
            self._ray = ray
        return self._ray


def _perform_all(
    function: Callable[[Any], Any], batch: list[_Numbered], bounds: PieceLimits
) -> list[PieceResult[Any] | LostPiece]:
    """Process a batch inside a Ray worker."""
    limit_memory(bounds.memory_bytes)
    return [_perform(function, number, piece, bounds) for number, piece in batch]


def _perform(
    function: Callable[[Any], Any], number: int, piece: Any, bounds: PieceLimits
) -> PieceResult[Any] | LostPiece:
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, bounds.seconds or 0)
    try:
        return PieceResult(number, function(piece))
    except _LateError:
        return LostPiece(number, f"took more than {bounds.seconds:g} s; raise the limit or leave it out")
    except Exception as error:  # noqa: BLE001 - reported as the reason why this piece is lost
        return LostPiece(number, reason_of(error, bounds))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _LateError(BaseException):
    """The time limit of a piece is exceeded; not an Exception, so that the piece does not catch it by accident."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise _LateError
