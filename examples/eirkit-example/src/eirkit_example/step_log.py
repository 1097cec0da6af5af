"""Step logs: one JSON object with a list of commands and their outputs."""

from __future__ import annotations

from collections.abc import Iterator

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import Call, RecordedTurn, Recording


class StepLog:
    """Logs of an agent that keeps what it typed and what it saw."""

    def recognizes(self, document: LogDocument) -> bool:
        """True for an object that begins with the list of steps."""
        return document.head.startswith(b'{"step_log":')

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the one run of a file."""
        try:
            steps = [(str(step["typed"]), str(step["saw"])) for step in document.json()["step_log"]]
        except InputFileError as error:
            yield Skipped(document.source, str(error))
        except (KeyError, TypeError):
            yield Skipped(document.source, "has a step without `typed` or `saw`; repair it or leave the run out")
        else:
            turns = tuple(RecordedTurn(calls=(Call("bash", {"command": typed}, saw),)) for typed, saw in steps)
            yield Recording(document.name, document.name, "step-log", document.source, turns)
