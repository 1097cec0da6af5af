"""Memory systems that misbehave, one way each: doubles for tests, run in processes of their own.

They import nothing of eirkit, as a user's own system need not.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

LONG_SECONDS = 3_600


class Sound:
    """Keeps records by label; the systems below misbehave over it."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        self.kept = {}

    def write(self, item: Any) -> None:
        self.kept[item.label] = item.text

    def search(self, query: str, limit: int) -> Any:
        return [text for text in self.kept.values() if text.split(" = ")[0] in query.split()][:limit]

    def read(self, label: str) -> str | None:
        return self.kept.get(label)


class HangsInWrite(Sound):
    """Never returns from a write."""

    def write(self, item: Any) -> None:
        time.sleep(LONG_SECONDS)


class BlocksInSearch(Sound):
    """Blocks the event loop in an async method."""

    async def search(self, query: str, limit: int) -> Any:
        time.sleep(LONG_SECONDS)


class Deaf(Sound):
    """Ignores every signal that can be ignored, and never finishes closing."""

    def setup(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def teardown(self) -> None:
        time.sleep(LONG_SECONDS)


class Threads(Sound):
    """Leaves a thread that keeps its interpreter from ending."""

    def setup(self) -> None:
        threading.Thread(target=time.sleep, args=(LONG_SECONDS,), daemon=False).start()


class Forks(Sound):
    """Starts a program that ignores its end."""

    def setup(self) -> None:
        words = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
        subprocess.Popen([sys.executable, "-S", "-c", words])


def become_daemon() -> None:
    """Leave a process behind that has its own session, no parent, and ignores signals."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 256)
            time.sleep(LONG_SECONDS)
        os._exit(0)


class Daemons(Sound):
    """Leaves a daemon for each run."""

    def reset(self, scope: str) -> None:
        become_daemon()
        super().reset(scope)


MOST_COPIES, COPY_SECONDS = 100, 150.0  # alive at once, and in all: a machine must bear it, whatever eirkit does


def _multiply(slots: str, end: float) -> None:
    """Fork whenever a slot is free: a locked file, which the kernel frees when its process ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    turns, mine = 0, -1
    try:
        while time.time() < end:
            time.sleep(0.001)
            slot = os.open(f"{slots}/{random.randrange(MOST_COPIES)}", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(slot)
                continue
            turns += 1
            if os.fork():
                os.close(slot)
                continue
            if mine >= 0:
                os.close(mine)
            mine = slot
            random.seed(os.getpid())
            if turns % 2 and os.fork():
                os._exit(0)  # its child has no parent
            if turns % 3 == 0:
                os.setsid()
    finally:
        os._exit(0)


class Multiplies(Sound):
    """Forks, and so do its children, with sessions of their own and without parents; each replaces those that end."""

    def setup(self) -> None:
        slots = tempfile.mkdtemp()
        for _ in range(3):
            if os.fork() == 0:
                _multiply(slots, time.time() + COPY_SECONDS)


class Hurries(Sound):
    """Leaves processes each of which forks and ends at once, so that none is there when a signal reaches it."""

    def setup(self) -> None:
        end = time.time() + COPY_SECONDS
        for _ in range(2):
            if os.fork() == 0:
                try:
                    while time.time() < end:
                        if os.fork():
                            os._exit(0)
                        os.setsid()
                        time.sleep(0.001)
                finally:
                    os._exit(0)


class Exits(Sound):
    """Ends its process as if all were well."""

    def write(self, item: Any) -> None:
        os._exit(0)


class ExitsAtFirst(Sound):
    """Ends its process in the constructor."""

    def __init__(self) -> None:
        os._exit(0)


class Kills(Sound):
    """Leaves a daemon, then kills the process that watches it."""

    def write(self, item: Any) -> None:
        become_daemon()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(LONG_SECONDS)


class Stops(Sound):
    """Stops its own process, which no ordinary signal wakes."""

    def write(self, item: Any) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)


class Shouts(Sound):
    """Writes to its streams without end."""

    def write(self, item: Any) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.write("Traceback (most recent call last): Event loop is closed\n" * 20_000)
            stream.flush()
        super().write(item)


class Cancels(Sound):
    """Raises what cancels tasks; it has every verb, which versions that it once broke asked for."""

    async def setup(self) -> None: ...

    async def reset(self, scope: str) -> None: ...

    async def write(self, item: Any) -> None: ...

    async def flush(self) -> None: ...

    async def usage(self) -> None: ...

    async def teardown(self) -> None: ...

    async def search(self, query: str, limit: int) -> Any:
        raise asyncio.CancelledError("had enough")


class Interrupts(Sound):
    """Raises what Ctrl-C raises."""

    def search(self, query: str, limit: int) -> Any:
        raise KeyboardInterrupt("pretends")


class Quits(Sound):
    """Raises what ends programs."""

    def search(self, query: str, limit: int) -> Any:
        sys.exit(0)


class Unspeakable(Sound):
    """Raises an error whose text raises one."""

    def search(self, query: str, limit: int) -> Any:
        class Worse(Exception):  # noqa: N818
            def __str__(self) -> str:
                raise RuntimeError("not even its words")

        raise Worse


class Huge(Sound):
    """Returns more than anybody reads."""

    def search(self, query: str, limit: int) -> Any:
        return ["x" * (100 << 20)]


class Wrong(Sound):
    """Returns what is not a list of strings."""

    def search(self, query: str, limit: int) -> Any:
        return {"A_1": object()}


class Echoes(Sound):
    """Returns a secret that it was given, and every variable that it can see."""

    def __init__(self, *, password: str = "") -> None:
        super().__init__()
        self.password = password

    def search(self, query: str, limit: int) -> Any:
        return [f"{self.password} {' '.join(os.environ.values())}", *super().search(query, limit)]


FAULTS = tuple(name for name, one in list(globals().items()) if isinstance(one, type) and Sound in one.__bases__)
