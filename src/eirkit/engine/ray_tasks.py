"""The same map as Ray tasks, on a cluster of this machine's own or on one that exists.

Pieces travel in batches. Ray does not say which piece killed a worker, so a batch that did is halved and sent again
until the piece is alone; only then is it given up. Time is bounded by an alarm in the worker, which stops Python code.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from eirkit.engine.interface import LostPiece, PieceLimits, PieceResult, limit_memory, reason_of
from eirkit.errors import InfrastructureError, MissingExtraError

BATCH = 48  # pieces a task: a task costs Ray about a millisecond
_SOURCE = Path(__file__).parents[2]  # what holds the package, for workers that do not have it installed

_Numbered = tuple[int, Any]


class RayTasks:
    """Ray tasks with a few batches in flight.

    Args:
        address: of an existing cluster; None for one of our own on this machine, which ends with `close`.
        workers: of our own cluster.
        in_flight: batches under way at a time, for each worker.
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        bounds: PieceLimits | None = None,
        batch: int = BATCH,
        in_flight: int = 3,
    ) -> None:
        self.address, self.workers, self.bounds = address, workers, bounds or PieceLimits()
        self.batch, self.in_flight = batch, in_flight
        self._ray: Any = None

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        ray = self._connect()
        task = ray.remote(num_cpus=1, max_retries=0)(_perform_all)
        source = enumerate(pieces)
        again: list[list[_Numbered]] = []  # halves of batches that killed their worker
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
                    reason = f"killed its worker ({type(error).__name__}); leave it out or look into it"
                    yield LostPiece(batch[0][0], reason, is_death=True)
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
            try:
                ray.init(
                    address=self.address,
                    num_cpus=None if self.address else self.workers,
                    include_dashboard=None if self.address else False,
                    _node_ip_address=None if self.address else "127.0.0.1",  # nobody else is to reach it
                    configure_logging=False,
                    log_to_driver=False,
                    runtime_env={"env_vars": {"PYTHONPATH": str(_SOURCE)}},
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InfrastructureError(f"cannot reach Ray ({error}); check --address or leave it out") from error
            self._ray = ray
        return self._ray


def _perform_all(
    function: Callable[[Any], Any], batch: list[_Numbered], bounds: PieceLimits
) -> list[PieceResult[Any] | LostPiece]:
    """Carry out a batch inside a Ray worker."""
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
        return LostPiece(number, f"took more than {bounds.seconds:g} s; give it more time or leave it out")
    except Exception as error:  # noqa: BLE001 - a piece that raises costs itself; whoever asked is told why
        return LostPiece(number, reason_of(error, bounds))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _LateError(BaseException):
    """The time of a piece is over; no Exception, so that the piece cannot catch it by accident."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise _LateError
