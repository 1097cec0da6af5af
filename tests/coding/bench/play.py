"""Plays a session with an agent: `python -m tests.coding.bench.play AGENT PACKAGES FOLDER [GUARD TIMES SESSION]`.

GUARD is `guard` or `trial`, where the live guard is installed first, or `none`; TIMES is how many sessions are
played, one after the other; SESSION is which one.

It starts itself again in a network namespace in which only loopback exists, so that an agent reaches the scripted
server and nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.coding.bench.agents import AGENTS, Agent, Place
from tests.coding.bench.server import Script, serve
from tests.coding.bench.session import SESSIONS, Phase, make_project, write_files
from tests.processes import completed, running

SECONDS = 900  # for one process of an agent, which takes some seconds on a quiet machine
REQUESTS, TRANSCRIPT = "requests.json", "transcript.txt"
_INSIDE = "--inside"
_SET_FLAGS, _UP, _RUNNING = 0x8914, 0x1, 0x40  # SIOCSIFFLAGS, IFF_UP, IFF_RUNNING


def play(
    agent: Agent, packages: Path, folder: Path, guard: str = "none", times: int = 1, session: str = "short"
) -> None:
    """Play the session of an agent in a new folder, in a network namespace."""
    given = [agent.name, str(packages), str(folder), guard, str(times), session]
    words = [sys.executable, "-m", "tests.coding.bench.play", *given, _INSIDE]
    # A process namespace, too: what an agent leaves running, such as a daemon, ends with the session.
    completed(
        ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", *words], check=True
    )


def can_play() -> bool:
    """Return whether this machine allows network namespaces."""
    if shutil.which("unshare") is None:
        return False
    return completed(["unshare", "--map-root-user", "--net", "true"]).returncode == 0


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        fcntl.ioctl(made, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP | _RUNNING))


def _install_guard(agent: Agent, place: Place, guard: str) -> None:
    name = agent.name.partition("-")[0]
    words = [sys.executable, "-m", "eirkit", "guard", "install", name, *(["--trial"] if guard == "trial" else [])]
    completed(words, check=True, env={"PATH": os.environ["PATH"], "HOME": str(place.home)})


def _play_inside(agent: Agent, packages: Path, folder: Path, guard: str, times: int, phases: Sequence[Phase]) -> None:
    _raise_loopback()
    project = folder / "project"
    make_project(project)
    script = Script(agent.replies(project, phases), agent.fewest_tools, agent.summary_usage)
    server = serve(script)
    place = Place(packages, folder / "home", project, f"http://127.0.0.1:{server.server_address[1]}")
    place.home.mkdir()
    agent.settle(place)
    if guard != "none":
        _install_guard(agent, place, guard)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place.home),
        "TMPDIR": str(folder),
        "CI": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # two edits within a second would leave stale bytecode
        **agent.environment(place),
    }
    start = [str(packages / agent.runtime)] if agent.runtime else []
    with (folder / TRANSCRIPT).open("wb") as transcript:
        for words in agent.processes(place, phases) * times:
            if words == agent.commands(place)[0]:
                write_files(project)
                script.given = 0
            command = [*start, packages / agent.program, *words]
            streams = {"stdin": subprocess.DEVNULL, "stdout": transcript, "stderr": subprocess.STDOUT}
            with running(command, cwd=project, env=environment, **streams) as process:
                process.wait(SECONDS)
    server.shutdown()
    (folder / REQUESTS).write_text(json.dumps(script.requests))


if __name__ == "__main__":
    _name, _packages, _folder, *_more = [word for word in sys.argv[1:] if word != _INSIDE]
    _guard, _times = (_more[0], int(_more[1])) if _more else ("none", 1)
    _session = _more[2] if len(_more) > 2 else "short"
    if _INSIDE in sys.argv:
        _place = Path(_packages).resolve(), Path(_folder).resolve()
        _play_inside(AGENTS[_name], *_place, _guard, _times, SESSIONS[_session])
    else:
        play(AGENTS[_name], Path(_packages), Path(_folder), _guard, _times, _session)
