"""The default engine: starts, limits and replaces worker processes on this machine, and handles interrupts.

A worker announces each piece before it starts it. When a worker dies, the parent therefore knows which piece was
running: it reports that piece as lost and gives the rest of the batch to another worker. Workers that exceed the time
limit of a piece are killed. Workers exit when their parent is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from eirkit.engine.interface import LostPiece, PieceLimits, PieceResult, reason_of, reason_of_death
from eirkit.errors import InfrastructureError, UsageError
from eirkit.limits import limit_memory, memory_left

ORPHANED = 1  # exit code
_LONGEST_FOLDER = 70  # of temporary files, in bytes; 108 for the path of a socket, less its own names in it
_SHORT_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_CAN_MASK = hasattr(signal, "pthread_sigmask")


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Block interrupts in processes started here until they call `end_with_parent`; deliver ours at the end."""
    if not _CAN_MASK:
        yield
        return
    resource_tracker.ensure_running()  # starting it inside the block would unblock the signal
    with _postponed_interrupt():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _postponed_interrupt() -> Iterator[None]:
    """Postpone an interrupt to the end of the block.

    A signal mask applies to one thread. If a library has started others, one of them receives the signal and Python
    still raises KeyboardInterrupt here, possibly between starting a worker and sending it its function.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives KeyboardInterrupt
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def end_with_parent() -> None:
    """Ignore interrupts in this worker and exit as soon as its parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _CAN_MASK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="fate", daemon=True).start()


def _end_after(parent: BaseProcess) -> None:
    parent.join()
    os._exit(ORPHANED)  # no clean-up: the running piece may never return, and its value is not needed


MOST_STILLBORN = 4  # consecutive workers that die at start before we give up
WATCH_SECONDS = 0.2  # how often time limits are checked, and memory is looked at

_Numbered = tuple[int, Any]


@dataclass(slots=True)
class _Worker:
    """One process and its pieces."""

    process: BaseProcess
    pipe: Connection
    waiting: deque[_Numbered] = field(default_factory=deque)  # sent and not started
    current: _Numbered | None = None
    since: float = 0.0  # when the current piece was started
    least_left: int | None = None  # bytes to its memory limit, at the least that was seen with the current piece


class Processes:
    """A pool of worker processes.

    Args:
        workers: number of processes; one per core by default.
        batch: pieces sent to a worker at a time.
    """

    def __init__(self, workers: int | None = None, bounds: PieceLimits | None = None, batch: int = 1) -> None:
        self.workers = workers or available_cores()
        self.bounds, self.batch = bounds or PieceLimits(), batch
        self._crew: list[_Worker] = []
        self._stillborn = 0  # consecutive workers that died before they started a piece
        self._looked = 0.0  # when the memory of workers was last looked at

    def map(self, function: Callable[[Any], Any], pieces: Iterable[Any]) -> Iterator[PieceResult[Any] | LostPiece]:
        source = enumerate(pieces)
        returned: deque[_Numbered] = deque()  # left over from workers that died
        try:
            self._crew = [_start(function, self.bounds) for _ in range(self.workers)]
            for worker in self._crew:
                self._supply(worker, source, returned)
            while any(worker.current or worker.waiting for worker in self._crew):
                yield from self._round(function, source, returned)
        finally:
            self.close()

    def close(self) -> None:
        crew, self._crew = self._crew, []
        for worker in crew:
            worker.pipe.close()  # a worker exits when its pipe is closed
        end = time.monotonic() + 1
        for worker in crew:
            worker.process.join(max(0.0, end - time.monotonic()))
        for worker in crew:
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()

    def _round(
        self, function: Callable[[Any], Any], source: Iterator[_Numbered], returned: deque[_Numbered]
    ) -> Iterator[PieceResult[Any] | LostPiece]:
        ready = wait([worker.pipe for worker in self._crew], WATCH_SECONDS)
        self._look_at_memory()
        for position, worker in enumerate(self._crew):
            if worker.pipe in ready:
                try:
                    yield from _take(worker)
                except (EOFError, OSError):
                    yield from self._replace(position, function, returned, _death(worker, self.bounds))
            if self._is_late(worker):
                worker.process.kill()
                worker.process.join()
                late = f"took more than {self.bounds.seconds:g} s; raise the limit or leave it out"
                yield from self._replace(position, function, returned, late, is_death=False)
        for worker in self._crew:
            self._supply(worker, source, returned)

    def _look_at_memory(self) -> None:
        """Note what workers have left: nobody can ask one that has died."""
        if self.bounds.memory_bytes is None or time.monotonic() - self._looked < WATCH_SECONDS:
            return
        self._looked = time.monotonic()
        for worker in self._crew:
            left = memory_left(worker.process.pid) if worker.current is not None else None
            if left is not None:
                worker.least_left = left if worker.least_left is None else min(left, worker.least_left)

    def _is_late(self, worker: _Worker) -> bool:
        limit = self.bounds.seconds
        return worker.current is not None and limit is not None and time.monotonic() - worker.since > limit

    def _replace(
        self,
        position: int,
        function: Callable[[Any], Any],
        returned: deque[_Numbered],
        reason: str,
        is_death: bool = True,
    ) -> Iterator[LostPiece]:
        """Replace a dead worker; only the piece that it had started is lost."""
        gone = self._crew[position]
        yield from _leftovers(gone)
        gone.pipe.close()
        if gone.current is not None:
            self._stillborn = 0
            yield LostPiece(gone.current[0], reason, is_death)
        else:
            self._stillborn += 1
            if self._stillborn >= MOST_STILLBORN:
                raise InfrastructureError(f"workers cannot start: each {reason}; in a script, call this under __main__")
        returned.extend(gone.waiting)
        self._crew[position] = _start(function, self.bounds)

    def _supply(self, worker: _Worker, source: Iterator[_Numbered], returned: deque[_Numbered]) -> None:
        if worker.current is not None or worker.waiting:
            return
        while len(worker.waiting) < self.batch:
            piece = returned.popleft() if returned else next(source, None)
            if piece is None:
                break
            worker.waiting.append(piece)
        if worker.waiting:
            with suppress(OSError):  # it died meanwhile; the next round notices
                worker.pipe.send(list(worker.waiting))


def _take(worker: _Worker) -> Iterator[PieceResult[Any] | LostPiece]:
    """Receive one message from a worker."""
    kind, number, value = worker.pipe.recv()
    if kind == "begin":
        worker.current, worker.since, worker.least_left = worker.waiting.popleft(), time.monotonic(), None
        return
    worker.current = None
    yield PieceResult(number, value) if kind == "done" else LostPiece(number, value)


def _leftovers(worker: _Worker) -> Iterator[Any]:
    """Receive the remaining messages of a worker that died."""
    try:
        while worker.pipe.poll():
            yield from _take(worker)
    except (EOFError, OSError):
        return


def _death(worker: _Worker, bounds: PieceLimits) -> str:
    worker.process.join(5)
    code = worker.process.exitcode
    how = f"ended its worker (exit code {code})"
    if code is not None and code < 0:
        how = f"killed its worker ({signal.Signals(-code).name})"
    if bounds.memory_bytes is None or worker.least_left is None:
        return reason_of_death(how, bounds)
    return reason_of_death(how, bounds, max(0, bounds.memory_bytes - worker.least_left))


def _start(function: Callable[[Any], Any], bounds: PieceLimits) -> _Worker:
    context = _context(function)
    here, there = context.Pipe()
    settings = ProcessSettings.of_this()
    process = context.Process(target=_work, args=(there, bounds, settings), daemon=True)
    with deferred_interrupts(), _short_temporary_folder():
        process.start()
    there.close()
    with suppress(OSError):  # it died already; the next round notices
        here.send(function)
    return _Worker(process, here)


def _context(function: Callable[[Any], Any]) -> ForkServerContext | SpawnContext:
    """Return how workers are started: as forks of a process that has imported the function, not of this one.

    Forking a process with threads may deadlock, and a new interpreter imports the function's module for half a second.
    Libraries of macOS do not allow forks, so workers are new interpreters there.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    if function.__module__ != "__main__":  # workers import that by themselves
        context.set_forkserver_preload([function.__module__])
    return context


@contextmanager
def _short_temporary_folder() -> Iterator[None]:
    """Let the process that forks have its socket in a folder whose path is short enough for one.

    It is started with the first worker; multiprocessing then keeps the folder for all others.
    """
    usual = tempfile.gettempdir()
    if sys.platform != "linux" or len(os.fsencode(usual)) <= _LONGEST_FOLDER:
        yield
        return
    tempfile.tempdir = next(filter(_is_writable, _SHORT_FOLDERS), usual)
    try:
        yield
    except OSError as error:
        raise UsageError(f"workers cannot be started ({error}); set TMPDIR to a folder with a shorter path") from error
    finally:
        tempfile.tempdir = usual


def _is_writable(folder: str) -> bool:
    return Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What a worker takes over from its parent; the process that forks has it of the time when it was started."""

    variables: Mapping[str, str]
    umask: int

    @classmethod
    def of_this(cls) -> ProcessSettings:
        return cls(dict(os.environ), _umask())

    def apply(self) -> None:
        os.environ.clear()
        os.environ.update(self.variables)
        os.umask(self.umask)


def _umask() -> int:
    """Return the umask; without changing it where the system tells it, since other threads may create files."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _work(pipe: Connection, bounds: PieceLimits, settings: ProcessSettings) -> None:
    """Process batches until the pipe is closed."""
    end_with_parent()
    settings.apply()
    with suppress(EOFError, OSError):  # the parent closed the pipe or died
        function = (
            pipe.recv()
        )  # imports its module, which takes seconds on a busy machine, so the parent is watched before
        limit_memory(bounds.memory_bytes)
        while True:
            for number, piece in pipe.recv():
                pipe.send(("begin", number, None))
                pipe.send(_perform(function, number, piece, bounds))


def _perform(function: Callable[[Any], Any], number: int, piece: Any, bounds: PieceLimits) -> tuple[str, int, Any]:
    try:
        return "done", number, function(piece)
    except Exception as error:  # noqa: BLE001 - reported as the reason why this piece is lost
        return "lost", number, reason_of(error, bounds)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
