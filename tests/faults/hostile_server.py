"""An MCP memory server that ignores its end: leaves daemons, hears no signal, and hangs in a search.

python tests/faults/hostile_server.py FILE
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from pathlib import Path

from mcp.server import MCPServer

sys.path.insert(0, str(Path(__file__).parent))
from hostile import LONG_SECONDS, become_daemon

server = MCPServer("hostile")


@server.tool()
def write(label: str, text: str) -> str:
    """Accept a record and leave a daemon behind."""
    become_daemon()
    return "done"


@server.tool()
def search(query: str, limit: int) -> list[str]:
    """Never return."""
    time.sleep(LONG_SECONDS)
    return []


@server.tool()
def read(label: str) -> list[str]:
    """Find nothing."""
    return []


if __name__ == "__main__":
    logging.disable()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        server.run("stdio")
    finally:
        time.sleep(LONG_SECONDS)  # also once its input is closed
