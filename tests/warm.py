"""Commands without the start of an interpreter: forks of a process that has imported eirkit, `tests/warm_server.py`.

Hundreds of commands are tried by the suite, and each would spend most of its time on imports. A fork prints, exits and
leaves files as a process of its own does. What it cannot show is whether a command imports all that it needs: a command
that tests that, or how a process is started or interrupted, uses `tests.processes`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests import processes

SERVER = Path(__file__).with_name("warm_server.py")
# A program that hands its arguments, folder, environment and streams to the server and exits as the command does.
# Where a setting of the interpreter would be lost, or a stream is a terminal, the real one takes its place.
CLIENT = """#!{python} -IS
import os, sys
name, real = {name!r}, {real!r}
if os.environ.get("PYTHONWARNINGS") or os.isatty(1) or os.isatty(2) or not {warm}:
    os.execv(real[0], [*real, *sys.argv[1:]])
import json, signal, socket
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({place!r})
passed = [int(word) for word in os.environ.get("EIRKIT_BRIDGE", "").split()]  # to the process of a memory system
request = {{"command": [name, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ), "passed": passed}}
socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2, *passed])
for one in passed:
    os.close(one)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: server.send(str(int(number)).encode()))
code = int(server.recv(16) or 255)
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
sys.exit(code)
"""

# Which arguments of `python` a fork understands.
PYTHON = """(
    sys.argv[1:4:2] == ["-W", "-c"] or "".join(sys.argv[1:2]).endswith(".py")
    or sys.argv[1:2] == ["-m"] and sys.argv[2].split(".")[0] in ("pytest", "eirkit")
)"""

MEMORIES = "EIRKIT_WARM_PYTHON"  # names a `python` that forks of the server start memory systems with


@cache
def programs() -> Path:
    """Return a folder with `eirkit`, `pytest` and `python` as forks; without pidfd_open(2), the real ones."""
    place = Path(tempfile.mkdtemp(prefix="eirkit-warm-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    socket, folder = place / "socket", place / "bin"
    folder.mkdir()
    if hasattr(os, "pidfd_open"):
        environment = os.environ | {"PYTHONUTF8": "1"}
        server = processes.kept([sys.executable, SERVER, socket], env=environment, stdout=subprocess.DEVNULL)
        processes.wait_until(socket.exists, "the warm process has imported eirkit", server)
    for name, real, warm in (
        ("eirkit", [str(Path(sys.executable).with_name("eirkit"))], "True"),
        ("pytest", [sys.executable, "-m", "pytest"], "True"),
        ("python", [sys.executable], PYTHON),
    ):
        how = warm if socket.exists() else "False"
        text = CLIENT.format(python=sys.executable, name=name, real=real, place=str(socket), warm=how)
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    return folder
