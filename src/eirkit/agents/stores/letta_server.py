"""Runs Letta's server with its own PostgreSQL: `python -m eirkit.agents.stores.letta_server --port 8283`.

It prints one line of JSON with its URL and password once it is ready, and stops with its database on Ctrl-C or SIGTERM.
All data is in a temporary folder that is removed; nothing outside this machine is contacted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import socket
import sys
import threading
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from eirkit.agents.stores.child_environment import inherited_variables
from eirkit.agents.stores.environments import python_of
from eirkit.agents.stores.postgres import Postgres
from eirkit.agents.stores.temporary_directory import StoreDirectory
from eirkit.errors import StoreError

PORT = 8283  # Letta's default
PASSWORD = "LETTA_SERVER_PASSWORD"  # Letta's variable for the password of clients
WITH_PARENT = "--with-parent"
NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing answers there
_SOURCE = Path(__file__).parents[3]


def main(arguments: list[str]) -> int:
    """Run the server until it is stopped; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m eirkit.agents.stores.letta_server", description=__doc__)
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
    command = [str(python), "-m", "eirkit.agents.stores.letta_server", *arguments]
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
