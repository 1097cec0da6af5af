"""The parent of the processes of a memory system: ends all of them when the system or eirkit ends.

The keeper runs no foreign code. On Linux, whatever the system starts and abandons becomes its child, also daemons with
a session of their own. When the host ends, or eirkit closes the connection or dies, it kills them until none is left,
and then says so. On other systems it kills the process group of the host.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from eirkit.lacuna.memories.times import GRACE_SECONDS, KILL_SECONDS

HOST = "eirkit.lacuna.memories.host"  # the module that calls a memory system; compactors have another
SOCKETS = "EIRKIT_BRIDGE"  # environment variable with the descriptors of the two connections to eirkit
NOW = b"now"  # sent to the keeper of a system that hangs
LOOK_SECONDS = 0.01
_STOP_SECONDS = 0.5  # for processes to stop that were told to
ENDED = frozenset("ZX")  # states of processes that have ended and were not waited for
_STILL = ENDED | frozenset("Tt")
SAID_LINES = 20
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_ON_LINUX = sys.platform == "linux"
LONGEST_LINE = 1 << 26  # bytes
_PART = 1 << 18


def adopt_orphans() -> None:
    """Make this process the parent of whatever its descendants leave behind; Linux only."""
    if _ON_LINUX:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class ProcessId(NamedTuple):
    """A process as Linux describes it; its number can be given to another one, its start cannot."""

    pid: int
    started: str  # in ticks since the machine was started


class KeeperReport(NamedTuple):
    """What a keeper sends when all has ended."""

    status: int | None  # of the host
    left: list[int]  # processes that could not be ended
    said: list[str]  # the last lines of output


def _facts(pid: int) -> tuple[ProcessId, int, str] | None:
    """Return a process, its parent and its state; None if there is none, or on systems that do not tell."""
    try:
        # The name of a program, in parentheses, may contain anything.
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return ProcessId(pid, words[19].decode()), int(words[1]), words[0].decode()
    except (OSError, ValueError, IndexError):
        return None


def state_of(pid: int) -> dict[ProcessId, str]:
    """Return a process with its state; nothing if there is none."""
    facts = _facts(pid)
    return {} if facts is None else {facts[0]: facts[2]}


def all_processes() -> Iterator[int]:
    """Yield the numbers of all processes; none on systems that do not tell."""
    with suppress(OSError):
        yield from (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())


def children() -> list[int]:
    """Return the children of this process, ended ones included; none on systems that do not tell."""
    here = os.getpid()
    return [facts[0].pid for pid in all_processes() if (facts := _facts(pid)) is not None and facts[1] == here]


def descendants(roots: Iterable[int], spared: Container[int] = ()) -> dict[ProcessId, str]:
    """Return what descends from some processes, and the state of each; nothing of the spared ones."""
    below: dict[int, list[tuple[ProcessId, str]]] = {}
    for pid in all_processes():
        if (facts := _facts(pid)) is not None:
            below.setdefault(facts[1], []).append((facts[0], facts[2]))
    found: dict[ProcessId, str] = {}
    waiting = list(roots)
    while waiting:
        for process, state in below.get(waiting.pop(), ()):
            if process.pid not in spared and process not in found:
                found[process] = state
                waiting.append(process.pid)
    return found


def send(process: ProcessId, number: int) -> None:
    """Send a signal to a process, unless its number belongs to another one by now."""
    with suppress(OSError), ExitStack() as opened:
        descriptor = None
        with suppress(OSError, AttributeError):  # older systems have none
            descriptor = os.pidfd_open(process.pid)  # from here on, it cannot lead to another process
            opened.callback(os.close, descriptor)
        facts = _facts(process.pid)
        if facts is None or facts[0] != process:
            return
        if descriptor is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)


def end_all(find: Callable[[], dict[ProcessId, str]], seconds: float = KILL_SECONDS) -> list[int]:
    """Stop what is found until nothing is new, so that nothing can fork any more, and kill it; return what is left.

    Args:
        find: returns the processes that must end, and the state of each.
        seconds: after which it gives up.
    """
    end = time.monotonic() + seconds
    while found := find():
        stopped: set[ProcessId] = set()
        since = time.monotonic()
        while (now := time.monotonic()) < end:
            if new := [process for process in found if process not in stopped]:
                for process in new:
                    send(process, signal.SIGSTOP)
                stopped.update(new)
                since = now
            elif _STILL.issuperset(found.values()) or now > since + _STOP_SECONDS:
                break
            found = find()
        for process in found:
            send(process, signal.SIGKILL)
        for process in found:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
        if time.monotonic() > end:
            return sorted(process.pid for process, state in find().items() if state not in ENDED)
        time.sleep(LOOK_SECONDS)
    return []


def kill_children(spared: Container[int] = ()) -> list[int]:
    """Kill what descends from this process, without the spared and their own; return what is left."""
    here = os.getpid()
    return end_all(lambda: descendants((here,), spared), KILL_SECONDS)


class LineSocket:
    """A connected socket that carries lines; it belongs to no event loop, so that one loop can follow another."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._received = bytearray()

    async def send(self, line: bytes) -> None:
        """Send a line; it must not contain a newline."""
        await asyncio.get_running_loop().sock_sendall(self.connection, line + b"\n")

    async def receive(self) -> bytes:
        """Return the next line, without its newline; b"" when the connection has ended.

        Raises:
            ValueError: the line is too long.
        """
        loop, seen = asyncio.get_running_loop(), 0
        while (end := self._received.find(b"\n", seen)) < 0:
            seen = len(self._received)
            if seen > LONGEST_LINE:
                raise ValueError(f"more than {LONGEST_LINE >> 20} MiB in one line")
            part = await loop.sock_recv(self.connection, _PART)
            if not part:
                return b""
            self._received += part
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def close(self) -> None:
        self.connection.close()


class Keeper:
    """The loop of the keeper.

    Args:
        host: the process of the system.
        life: the connection to eirkit; its end is the order to end.
        errors: the error output of the system.
    """

    def __init__(self, host: int, life: socket.socket, errors: int) -> None:
        self.host, self.life, self.errors = host, life, errors
        self.status: int | None = None  # of the host, once it has ended
        self._said: deque[str] = deque(maxlen=SAID_LINES)
        self._wakes, self._woken = os.pipe()
        for end in (self._wakes, self._woken, errors):
            os.set_blocking(end, False)

    def run(self) -> None:
        """Wait until the host or eirkit ends, end everything, and report."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        while self.status is None and not self._look(None):
            self._reap()
        end = time.monotonic() + (0 if self._is_urgent() else GRACE_SECONDS)
        while self.status is None and (left := end - time.monotonic()) > 0:
            self._look(left, wait_for_order=False)
            self._reap()
        if not _ON_LINUX:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.host, signal.SIGKILL)
        left_over = kill_children()
        self._hear()
        report = KeeperReport(self.status, left_over, list(self._said))
        with suppress(OSError):  # eirkit may be gone
            self.life.sendall(json.dumps(report._asdict()).encode() + b"\n")

    def _look(self, seconds: float | None, *, wait_for_order: bool = True) -> bool:
        """Wait for something to happen; return True if it is the order to end."""
        watched: list[int | socket.socket] = [
            self._wakes,
            *([] if self.errors < 0 else [self.errors]),
            *([self.life] if wait_for_order else []),
        ]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wakes in ready:
            with suppress(BlockingIOError):
                if any(number != signal.SIGCHLD for number in os.read(self._wakes, 256)):
                    return True
        self._hear()
        return self.life in ready  # the end of the connection, or the word not to wait for the system

    def _is_urgent(self) -> bool:
        """True if eirkit has said that the system is not worth waiting for, because it hangs."""
        with suppress(OSError):
            return self.life.recv(len(NOW), socket.MSG_DONTWAIT) == NOW
        return False

    def _hear(self) -> None:
        """Read the error output, so that the system never waits for us, and keep its last lines."""
        with suppress(BlockingIOError):
            part = os.read(self.errors, 1 << 16) if self.errors >= 0 else b""
            self._said.extend(part[-4_000:].decode("utf-8", "replace").splitlines())
            self.errors = self.errors if part else -1

    def _reap(self) -> None:
        """Wait for children that have ended, adopted ones included."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self.host:
                    self.status = os.waitstatus_to_exitcode(found[1])


def _become_host(keeper: int, life: int, errors: int) -> None:
    os.setsid()  # a process group of its own: a system that signals its group does not reach the keeper
    if _ON_LINUX:
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(1)
    os.close(life)
    os.dup2(errors, sys.stderr.fileno())
    os.close(errors)
    host = sys.argv[2] if len(sys.argv) > 2 else HOST
    runpy.run_module(host, run_name="__main__", alter_sys=True)


def main() -> None:
    """Start the host and keep it."""
    calls, life = os.environ[SOCKETS].split()
    adopt_orphans()
    reading, writing = os.pipe()
    keeper = os.getpid()
    host = os.fork()
    if host == 0:
        os.close(reading)
        _become_host(keeper, int(life), writing)
        return
    os.close(writing)
    os.close(int(calls))
    Keeper(host, socket.socket(fileno=int(life)), reading).run()


if __name__ == "__main__":
    main()
