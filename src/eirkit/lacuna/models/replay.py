"""`replay/<run folder or events file>`: repeats the replies of a recorded run without its model.

Replies are looked up by the prompt alone. A prompt that occurs several times gets its replies in the recorded order,
and then the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, ModelError
from eirkit.folders import files_below
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, Usage, models, prompt_hash
from eirkit.records.event_blocks import read_lines
from eirkit.records.lines import decode, encode

SCHEMA = "event/1"
_HEAD = encode(SCHEMA, {})[:-2]  # start of every line of such a file


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
            self._recorded = read_exchanges(self.source)
        found = self._recorded.get(prompt_hash(request))
        if found is None:
            raise ModelError(
                f"{self.source} has no reply to this prompt; replay the run with its original settings",
                "unrecorded",
            )
        reply = found.next()
        return replace(reply, usage=replace(reply.usage, cost_usd=0.0))

    async def close(self) -> None:
        self._recorded = None

    def settings(self) -> Mapping[str, Any]:
        return {"provider": "replay", "model": self.source.name}

    def preflight(self) -> None:
        next(event_files(self.source))


@models.add("replay")
def make_replay(name: str, options: ModelOptions) -> Replay:
    """Return the model of a run; its files are read on the first request."""
    refuse_settings("replay", options)
    return Replay(Path(name))


def event_files(source: Path) -> Iterator[Path]:
    """Yield the event files of a run folder, or the given file."""
    if source.is_file():
        yield source
        return
    found = False
    for path in sorted(path for path in files_below(source) if path.name.endswith(".jsonl.zst")):
        if next(read_lines(path), b"").startswith(_HEAD):
            found = True
            yield path
    if not found:
        raise InputFileError(f"{source} has no recorded events; give the folder of a run or its events file")


def read_exchanges(source: Path) -> dict[str, _Recorded]:
    """Return the recorded replies by the hash of their prompt."""
    recorded: dict[str, _Recorded] = {}
    for path in event_files(source):
        for number, line in enumerate(read_lines(path), 1):
            record = decode(line, SCHEMA, path, number)
            if record.get("type") == "exchange":
                entry = recorded.setdefault(str(record.get("prompt_sha256")), _Recorded([]))
                entry.replies.append(_reply(record, path))
    return recorded


def _reply(record: Mapping[str, Any], path: Path) -> Reply:
    if "reply" not in record:
        raise InputFileError(f"{path} was recorded without texts; record the run with texts to replay it")
    try:
        calls = tuple(ToolCall(call["name"], call["arguments"]) for call in record.get("calls", ()))
        reasoning_tokens = record.get("reasoning_tokens", 0)
        usage = Usage(
            record["input_tokens"], record["output_tokens"], record["cached_tokens"], reasoning_tokens=reasoning_tokens
        )
        told = {name: record[name] for name in ("finish", "reasoning", "max_tokens") if name in record}
        carried = tuple(dict(item) for item in record.get("carried", ()))
        return Reply(record["reply"], calls, usage, record["latency_seconds"], carried=carried, **told)
    except (KeyError, TypeError, ValueError) as error:
        raise InputFileError(f"{path} contains a damaged exchange ({error}); restore the file") from error
