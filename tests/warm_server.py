"""A process that has imported eirkit and forks itself for every command: `python tests/warm_server.py SOCKET`.

A request is one message with the descriptors of stdin, stdout and stderr: the arguments, folder and environment of a
command. The command runs in a fork, at the head of a session of its own, and ends as any interpreter ends; the answer
is its exit status. It is killed if the one who asked leaves, and the server ends with the one who started it.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

LONGEST = 1 << 20  # bytes of a request
STREAMS = 5  # at most: stdin, stdout, stderr, and the two connections of a memory system
BIN = str(Path(sys.executable).parent)
ABOVE = 200  # any descriptor that a command may be given


def main(place: str) -> None:
    """Import what commands import, and answer until stdin is closed; in a fork, be the command."""
    for name in _modules():
        with suppress(ImportError):  # of a package that is not installed
            import_module(name)
    gc.freeze()  # or the collector of each fork would touch, and so copy, all of it
    end = os.dup(0)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"{place}.new")
    listening.listen(64)
    Path(f"{place}.new").rename(place)  # who sees it can connect
    waiting = selectors.PollSelector()  # not epoll, which forks would share
    waiting.register(end, selectors.EVENT_READ)
    waiting.register(listening, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fd == end:
                sys.exit()
            if key.fileobj is not listening:
                _conclude(waiting, *key.data)
                continue
            asking, _ = listening.accept()
            message, streams, *_ = socket.recv_fds(asking, LONGEST, STREAMS)
            if not (command := os.fork()):
                return _carry_out(json.loads(message), streams)
            for stream in streams:
                os.close(stream)
            ended = os.pidfd_open(command)
            for source in (ended, asking):
                waiting.register(source, selectors.EVENT_READ, (command, ended, asking))


def _conclude(waiting: selectors.BaseSelector, command: int, ended: int, asking: socket.socket) -> None:
    """Answer for a command that has ended, pass a signal on to it, or end one that nobody waits for."""
    if asking.fileno() < 0:
        return  # both happened at once
    with suppress(BlockingIOError):
        if number := asking.recv(16, socket.MSG_DONTWAIT):
            os.kill(command, int(number))  # it is there, if only as a zombie, until we have waited for it
            return
    pid, status = os.waitpid(command, os.WNOHANG)
    if not pid:
        os.killpg(command, signal.SIGKILL)
        os.waitpid(command, 0)
    else:
        with suppress(OSError):
            asking.send(str(os.waitstatus_to_exitcode(status)).encode())
    for source in (ended, asking):
        waiting.unregister(source)
    os.close(ended)
    asking.close()


def _carry_out(request: dict[str, Any], streams: list[int]) -> None:
    """Run a command and end: as the interpreter does, which however takes all modules apart, and so copies them."""
    code: object = None
    try:
        _become(request, streams)
    except SystemExit as ended:
        if ended.code is not None and not isinstance(ended.code, int):
            raise  # the interpreter prints it
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the interpreter has its own words and code for that
        sys.exit(code)
    os._exit(int(code or 0) & 0xFF)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Run a command here, as the interpreter would if it had been started for it."""
    os.setsid()
    moved = [fcntl.fcntl(stream, fcntl.F_DUPFD, ABOVE) for stream in streams]
    for stream in streams:
        os.close(stream)
    for number, stream in zip((0, 1, 2, *request["passed"]), moved, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    # The old ones believe that they write to what the server's stream was.
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.executable = os.environ.get("EIRKIT_WARM_PYTHON", sys.executable)
    program, *arguments = request["command"]
    if program == "eirkit":
        sys.argv = ["eirkit", *arguments]
        sys.path[0] = BIN
        import_module("eirkit.cli").main()
        return
    sys.path[0] = ""
    if program == "pytest" or arguments[:2] == ["-m", "pytest"]:
        for name in [name for name in sys.modules if name.partition(".")[0] == "anyio"]:
            del sys.modules[name]  # it has a plug-in, so pytest wants to import it itself and would warn
    if program == "pytest":
        sys.argv = ["pytest", *arguments]
        sys.exit(import_module("pytest").main(arguments))
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        del arguments[:2]
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")


def _modules() -> Iterator[str]:
    """Return the modules of all commands."""
    from eirkit.cli import ROOT, LazyGroup

    def below(group: LazyGroup) -> Iterator[str]:
        for entry in group.table.values():
            if isinstance(entry, LazyGroup):
                yield from below(entry)
            else:
                yield entry[0].partition(":")[0]

    yield from below(ROOT)
    yield from ALSO


# What commands import when they run. The threads that these start (OpenBLAS, jemalloc) know how to be forked.
ALSO = (
    *("_pytest.junitxml", "bm25s", "orjson", "pyarrow", "pyarrow.parquet", "rich.console", "splintr", "tqdm", "yaml"),
    *("eirkit_bridges.mcp_server", "mcp.server.lowlevel", "mcp.server.stdio"),
    *("starlette.applications", "uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.protocols.http.auto"),
)

if __name__ == "__main__":
    main(sys.argv[1])
