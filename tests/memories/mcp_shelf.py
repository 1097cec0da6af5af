"""A small MCP memory server for tests: a process of its own, over stdio or HTTP, in the words of the `mcp` package.

python tests/memories/mcp_shelf.py FILE          stdio; one store in a file
python tests/memories/mcp_shelf.py --http        HTTP on a free port of loopback, printed first; a store a shelf
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("shelf")
shelves: dict[str, dict[str, str]] = {}
file: Path | None = None


def _save() -> None:
    if file is not None:
        file.write_text(json.dumps(shelves))


@server.tool()
def put(name: str, content: str, shelf: str = "") -> str:
    """Put a text onto a shelf."""
    shelves.setdefault(shelf, {})[name] = content
    _save()
    return "done"


@server.tool()
def look(words: str, most: int, shelf: str = "") -> list[str]:
    """Return the texts with a word in common, the newest first."""
    if words == "boom":
        raise ValueError("no such word")
    wanted = set(words.split())
    found = [text for text in shelves.get(shelf, {}).values() if wanted & set(text.split())]
    return found[::-1][:most]


@server.tool()
def take(name: str, shelf: str = "") -> list[str]:
    """Return the text with this name."""
    kept = shelves.get(shelf, {})
    return [kept[name]] if name in kept else []


@server.tool()
def list_all(shelf: str = "") -> list[str]:
    """Return every text on a shelf."""
    return list(shelves.get(shelf, {}).values())


@server.tool()
def remove(name: str, shelf: str = "") -> str:
    """Take a text off the shelf for good."""
    shelves.get(shelf, {}).pop(name, None)
    _save()
    return "done"


@server.tool()
def sweep(shelf: str) -> str:
    """Empty a shelf."""
    shelves.pop(shelf, None)
    return "done"


@server.tool()
def count() -> str:
    """Return how many shelves there are."""
    return str(len(shelves))


@server.tool()
def end() -> str:
    """End the server as a crash would."""
    os._exit(1)


if __name__ == "__main__":
    logging.disable()
    if sys.argv[1:] == ["--http"]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        print(port, flush=True)
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        file = Path(sys.argv[1])
        server.run("stdio")
