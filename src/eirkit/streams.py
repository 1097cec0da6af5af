"""The name and the standard streams of a command: opened where the caller closed them, and kept for its document."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

COMMAND = "EIRKIT_COMMAND"  # environment variable that names the running command to the processes of its plug-ins


def open_closed_streams() -> None:
    """Open streams that the caller closed (`>&-`) on the null device; a file of results could take their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            stream = os.fdopen(number, "w" if number else "r", closefd=False, errors="replace")
            setattr(sys, name, stream)


class PrintsOnStderr:
    """Sends what is printed to stderr, and what libraries and programs write to the descriptor of stdout itself."""

    _before: tuple[TextIO, int | None] | None = None  # the stream and its descriptor, while this is on

    def __enter__(self) -> None:
        kept = None
        with suppress(OSError, ValueError):  # the stream of a test or a notebook has no descriptor
            number, other = sys.stdout.fileno(), sys.stderr.fileno()
            sys.stdout.flush()
            kept = os.dup(number)
            os.dup2(other, number)
        self._before = sys.stdout, kept
        sys.stdout = sys.stderr

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            sys.stdout, kept = self._before
            self._before = None
            if kept is not None:
                os.dup2(kept, sys.stdout.fileno())
                os.close(kept)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Give stdout back for a while."""
        is_on = self._before is not None
        self.__exit__()
        yield
        if is_on:
            self.__enter__()
