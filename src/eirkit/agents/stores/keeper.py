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
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from eirkit.agents.memory_times import GRACE_SECONDS, KILL_SECONDS

HOST = "eirkit.agents.stores.host"  # the module that calls a memory system; compactors have another
SOCKETS = "EIRKIT_BRIDGE"  # environment variable with the descriptors of the two connections to eirkit
NOW = b"now"  # sent to the keeper of a system that hangs
LOOK_SECONDS = 0.01
SAID_LINES = 20
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_ON_LINUX = sys.platform == "linux"
LONGEST_LINE = 1 << 26  # bytes
_PART = 1 << 18


def adopt_orphans() -> None:
    """Make this process the parent of whatever its descendants leave behind; Linux only."""
    if _ON_LINUX:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Return the children of this process, ended ones included; none on systems that do not tell."""
    here, found = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name of a program, in parentheses, may contain anything.
            if int(entry.read_bytes().rpartition(b")")[2].split()[1]) == here:
                found.append(int(entry.parent.name))
    return found


def kill_children(spared: Container[int] = (), seconds: float = KILL_SECONDS) -> int:
    """Kill the children, and those that become ours because their parents were killed; return how many are left.

    Only children are killed: the number of one cannot belong to another process before we have waited for it.
    """
    end = time.monotonic() + seconds
    while left := [pid for pid in children() if pid not in spared]:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > end:
            return len(left)
        time.sleep(LOOK_SECONDS if any(map(_is_alive, left)) else 0)
    return 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


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
        report = {"status": self.status, "left": left_over, "said": list(self._said)}
        with suppress(OSError):  # eirkit may be gone
            self.life.sendall(json.dumps(report).encode() + b"\n")

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
