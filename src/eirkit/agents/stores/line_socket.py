"""Lines over a connected socket, for both ends of the connection to the process of a memory system."""

from __future__ import annotations

import asyncio
import socket

LONGEST_LINE = 1 << 26  # bytes
_PART = 1 << 18


class LineSocket:
    """A connected socket that carries lines; it belongs to no event loop, so that one loop can follow another."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._received = bytearray()

    async def send(self, line: bytes) -> None:
        """Send a line; it must not contain a newline."""
        await asyncio.get_running_loop().sock_sendall(self.connection, line + b"\n")

    async def receive(self) -> bytes:
        """Return the next line, without its newline; b"" when the connection has ended.

        Raises:
            ValueError: the line is too long.
        """
        loop, seen = asyncio.get_running_loop(), 0
        while (end := self._received.find(b"\n", seen)) < 0:
            seen = len(self._received)
            if seen > LONGEST_LINE:
                raise ValueError(f"more than {LONGEST_LINE >> 20} MiB in one line")
            part = await loop.sock_recv(self.connection, _PART)
            if not part:
                return b""
            self._received += part
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def close(self) -> None:
        self.connection.close()
