"""`replay/<run folder or exported events>`: repeats the replies of a recorded run without its model.

Replies are looked up by the prompt alone. A prompt that occurs several times gets its replies in the recorded order,
and then the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from eirkit.errors import InputFileError, ModelError
from eirkit.folders import files_below
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, Usage, models, prompt_hash
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.events import ModelExchange
from eirkit.records.export import EVENTS, read_exchanges
from eirkit.records.settings import TEXT


@dataclass(slots=True)
class _Recorded:
    replies: list[Reply]
    given: int = 0

    def next(self) -> Reply:
        self.given += 1
        return self.replies[min(self.given, len(self.replies)) - 1]


class Replay:
    """The model of a recorded run."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self._recorded: dict[str, _Recorded] | None = None

    async def reply(self, request: Request) -> Reply:
        if self._recorded is None:
            self._recorded = read_replies(self.source)
        found = self._recorded.get(prompt_hash(request))
        if found is None:
            raise ModelError(
                f"{self.source} has no reply to this prompt; replay the run with its original settings",
                "unrecorded",
            )
        reply = found.next()
        return replace(reply, usage=replace(reply.usage, cost_usd=0.0, from_cache=False))

    async def close(self) -> None:
        self._recorded = None

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "replay", "model": self.source.name}

    def preflight(self) -> None:
        recordings_in(self.source)


@models.add("replay")
def make_replay(name: str, options: ModelOptions) -> Replay:
    """Return the model of a run; its files are read on the first request."""
    refuse_settings("replay", options)
    return Replay(Path(name))


def _recorded_protocol(name: str, options: ModelOptions) -> tuple[str, ...]:
    """Return the protocol in which the replies were recorded, which is in databases alone."""
    with suppress(InputFileError):  # the first request says what is missing
        for path in recordings_in(Path(name)):
            if path.name == DATABASE:
                with SweepDatabase(path.parent) as database:
                    for record in database.records():
                        return (record.setting.settings.protocol or TEXT,)
    return (TEXT,)


make_replay.protocols = _recorded_protocol  # type: ignore[attr-defined]


def recordings_in(source: Path) -> list[Path]:
    """Return the databases and exported events below a folder, or the given file."""
    paths = [source] if source.is_file() else sorted(files_below(source))
    found = [path for path in paths if path.name in (DATABASE, EVENTS)]
    if not found:
        raise InputFileError(f"{source} has no recorded events; give the folder of a run or its {EVENTS}")
    return found


def read_replies(source: Path) -> dict[str, _Recorded]:
    """Return the recorded replies by the hash of their prompt."""
    recorded: dict[str, _Recorded] = {}
    for path in recordings_in(source):
        for exchange in read_exchanges(path) if path.name == EVENTS else _stored(path.parent):
            if exchange.reply is None:
                raise InputFileError(f"{path} was recorded without texts; record the run with texts to replay it")
            recorded.setdefault(exchange.prompt_sha256, _Recorded([])).replies.append(recorded_reply(exchange))
    return recorded


def _stored(folder: Path) -> Iterator[ModelExchange]:
    with SweepDatabase(folder) as database:
        for control in (False, True):
            for record in database.records(control=control):
                events = database.events(record.run, control=control)
                yield from (event for event in events if isinstance(event, ModelExchange))


def recorded_reply(event: ModelExchange) -> Reply:
    """Return the reply of an exchange whose texts were kept."""
    return Reply(
        event.reply or "",
        tuple(ToolCall(call.name, call.arguments) for call in event.calls),
        Usage(**{name: getattr(event, name) for name in Usage.__struct_fields__}),
        event.latency_seconds,
        event.finish,
        event.reasoning,
        event.max_tokens,
        carried=event.carried,
    )
