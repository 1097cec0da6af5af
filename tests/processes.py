"""Starting processes in tests: each ends with the test that started it, however the test and its machine behave.

A suite that a shell starts in the background ignores SIGINT, and so do its children unless they are told otherwise:
whoever interrupts one of them waits for ever. Everything started here hears signals as in a terminal.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any

import pytest

from eirkit.engine.processes import deferred_interrupts

PATIENCE_SECONDS = 300.0  # a hundred times what anything here takes on a quiet machine: only what hangs gets there
LOOK_SECONDS = 0.02
_HEARD = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_SET_CHILD_SUBREAPER = 36  # of prctl(2)
KEPT: set[int] = set()  # processes that end with this one


@contextmanager
def running(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a command at the head of a process group of its own; at the end kill what is left of the group.

    `options` are those of `subprocess.Popen`.
    """
    with _signals_heard():
        process = subprocess.Popen([str(word) for word in command], start_new_session=True, **options)
    with process:
        try:
            yield process
        finally:
            kill_group(process)


def kept(command: Sequence[object], **options: Any) -> subprocess.Popen[Any]:
    """Start a server that modules of tests share: it must end when its stdin is closed, as it is with this process."""
    with _signals_heard():
        server = subprocess.Popen(
            [str(word) for word in command], start_new_session=True, stdin=subprocess.PIPE, **options
        )
    KEPT.add(server.pid)

    def end() -> None:
        server.stdin.close()
        server.wait(PATIENCE_SECONDS)

    atexit.register(end)
    return server


def completed(
    command: Sequence[object], *, check: bool = False, input: Any = None, text: bool = True, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Return what a command printed once it has ended, as `subprocess.run` does; what it started ends with it.

    Output that is not sent elsewhere is captured.
    """
    streams = {"stdin": subprocess.PIPE} if input is not None else {}
    streams |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, text=text, **{**streams, **options}) as process:
        output, complaint = process.communicate(input, PATIENCE_SECONDS)
    done = subprocess.CompletedProcess(process.args, process.returncode, output, complaint)
    assert not check or done.returncode == 0, f"{command} ended with {done.returncode}: {complaint}"
    return done


def shown_in_terminal(command: Sequence[object], stream: str, **options: Any) -> bytes:
    """Return what a command that succeeds writes to a real pseudo-terminal, which is its "stdout" or "stderr"."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    shown = b""
    with running(command, **{stream: follower}, **options) as process:
        os.close(follower)
        while select.select([leader], [], [], PATIENCE_SECONDS)[0]:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # Linux reports the closed other end as an error
                break
            if not chunk:
                break
            shown += chunk
        os.close(leader)
        assert process.wait(PATIENCE_SECONDS) == 0
    return shown


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a process of `running` with everything it started, by a signal that nothing can ignore."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def wait_until(is_so: Callable[[], object], what: str, process: subprocess.Popen[Any] | None = None) -> None:
    """Wait for a condition; fail where it takes longer than anything but a hang, or its process ends before."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        has_ended = process is not None and process.poll() is not None
        assert not has_ended or is_so(), f"the process ended before {what}"
        assert time.monotonic() < end, f"waited {PATIENCE_SECONDS:g} s for {what}"
        time.sleep(LOOK_SECONDS)


@contextmanager
def _signals_heard() -> Iterator[None]:
    """Start processes that do not inherit ignored signals: a handler, unlike an ignored signal, ends with exec(2).

    The handler does nothing, so that this process goes on ignoring them. (`preexec_fn` would do the same in the child,
    but is not safe where there are threads.)
    """
    ignored = [number for number in _HEARD if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


# --- what is left over ------------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """Make this process the parent of whatever its descendants leave behind, so that `leftovers` finds it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def leftovers(seconds: float) -> dict[int, str]:
    """Return the command lines of the children that are alive, after giving those that are about to end some time."""
    end = time.monotonic() + seconds
    while (alive := _living_children()) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return alive


def kill_tree(pid: int) -> None:
    """Kill a process and all of its descendants."""
    below = _children(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    for child in below:
        kill_tree(child)


def _living_children() -> dict[int, str]:
    """Return this process's children that have not ended, and bury those that have."""
    # The tracker of shared memory is the interpreter's own: it starts once and ends with us.
    own = (resource_tracker._resource_tracker._pid, parent_of_workers())
    alive = {}
    for pid in _children(os.getpid()):
        if pid in own or pid in KEPT:
            continue
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                alive[pid] = _command_line(pid)
    return alive


def parent_of_workers() -> int | None:
    """Return the process that forks workers for this one, once there is one; it ends with us."""
    return forkserver._forkserver._forkserver_pid  # there is no public name


def start_parent_of_workers() -> None:
    """Start the process that forks workers, with the modules of every command that has them."""
    forkserver.set_forkserver_preload(
        ["eirkit.vestige.corpus.parts", "eirkit_paper.studies.catalog", "eirkit.lacuna.runs.workers"]
    )
    with deferred_interrupts():
        forkserver.ensure_running()


def _children(pid: int) -> list[int]:
    """Return the children of a process, whichever of its threads started them; none on systems that do not tell."""
    found = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in tasks.read_text().split()]
    return found


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "?"
