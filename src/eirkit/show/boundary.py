"""The last thing that text passes on its way to a terminal: nothing in it may steer the terminal but our own marks.

Run ids, file names, errors of plug-ins and replies of servers are foreign. Documents and messages are cleaned where
they are made; here everything else that reaches stdout or stderr is, tracebacks and what plug-ins print included.
"""

from __future__ import annotations

import re
from typing import Any, TextIO

from eirkit.steering import clean

# What we and the progress bar print: colours, moves of the cursor, and a return to the start of a line that is erased.
_OURS = re.compile(r"(\x1b\[\??[\d;]{0,16}[A-HJKmhl]|\r(?=\n|\x1b\[2K))")

_LINE_END = re.compile(r"(\r(?=\n))")


class CleanStream:
    """A text stream that writes no character which steers a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text; where the stream is no terminal, not even our own marks belong in it."""
        parts = (_OURS if self._stream.isatty() else _LINE_END).split(text)
        self._stream.write("".join(part if place % 2 else clean(part) for place, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
