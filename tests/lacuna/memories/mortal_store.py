"""A memory system that runs in a process of its own and ends it once, in the middle of a run: a double for tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, Requirements

MARKER = "MORTAL_STORE_MARKER"  # the variable that names a file; while it is not there, the process is killed
FATAL_WRITE = 5


class Mortal(KeyValue):
    """Keeps records by label; its process is killed at the fifth write of its first life."""

    # It needs packages, so it runs in a process of its own, which gets no other variables of the user's.
    requirements = Requirements(packages=("json",), variables=(MARKER,))

    def __init__(self) -> None:
        super().__init__()
        self._writes = 0

    async def write(self, item: Item) -> None:
        self._writes += 1
        marker = Path(os.environ[MARKER])
        if self._writes == FATAL_WRITE and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        await super().write(item)
