"""An agent's own logs in a Harbor trial: `episodes/episode-N` with a request, a response and what its tools returned.

The folder of a trial comes in; one run without its outcome goes out, and each file that cannot be read. A request with
fewer messages than the one before it shows that the context was compacted; `compactions` holds the summaries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.anthropic_blocks import take_reply, take_results
from eirkit.vestige.formats.building import RunBuilder, is_own_file, items_of, mapping_of, string_of
from eirkit.vestige.formats.messages import text_of, usage_of
from eirkit.vestige.source import Document, Skipped, open_document
from eirkit.vestige.trajectory import Recording

_EPISODE = re.compile(r"episode-([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")


def _episode_folders(trial: Path) -> list[Path]:
    """Return the folders of a trial's episodes in the order of their numbers."""
    folder = trial / "agent" / "episodes"
    found = [path for path in _listed(folder) if _EPISODE.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.partition("-")[2]))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def take_episodes(document: Document, trial: Path) -> Iterator[Recording | Skipped]:
    """Yield the run that the episodes tell, after whatever of them cannot be read."""
    source = document.source.removesuffix(document.name)
    compactions = _compactions(trial, source)
    yield from (value for value in compactions if isinstance(value, Skipped))
    summaries = [_summary(mapping_of(value)) for value in compactions]
    builder, model, length = RunBuilder(), "", 0
    for folder in _episode_folders(trial):
        files = {
            name: _value(folder / f"{name}.json", source, trial) for name in ("request", "response", "tool-results")
        }
        yield from (value for value in files.values() if isinstance(value, Skipped))
        request, response = mapping_of(files["request"]), _message(mapping_of(files["response"]))
        messages = items_of(request.get("messages"))
        for message in messages[-2:]:  # answers that no file of their own holds
            take_results(builder, message.get("content"), {})
        if not response:
            continue
        if 0 < len(messages) < length:
            builder.break_off("compaction")
            builder.carry(summaries.pop(0) if summaries else _first_word(messages))
        _take_prompt(builder, request, messages)
        length = len(messages) or length
        model = model or string_of(response.get("model")) or string_of(request.get("model"))
        builder.begin()
        take_reply(builder, response.get("content"))
        builder.use(usage_of(response.get("usage")))
        take_results(builder, _blocks(files["tool-results"]), {})
    if builder.turn_count:
        yield _recording(document, builder, model)


def _recording(document: Document, builder: RunBuilder, model: str) -> Recording:
    return Recording(
        run_id=document.source,
        task_id="",
        format="harbor",
        source=document.source,
        turns=builder.turns(),
        model=model,
        prompt=builder.prompt,
    )


def _value(path: Path, source: str, trial: Path) -> object:
    """Return what a file holds, None where there is none, or why it cannot be read."""
    if not is_own_file(path, trial):
        return None
    label = f"{source}{path.relative_to(trial).as_posix()}"
    try:
        return open_document(path, source=label).json()
    except InputFileError as error:
        return Skipped(label, str(error).removeprefix(f"{label}: "))


def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the model's message, which stands alone or in an object around it."""
    around = next((response[key] for key in ("response", "message") if isinstance(response.get(key), dict)), response)
    return response if "content" in response else mapping_of(around)


def _take_prompt(builder: RunBuilder, request: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> None:
    if not builder.turn_count:
        builder.hear(text_of(request.get("system")))
        for message in messages:
            builder.hear(text_of(message.get("content")))


def _blocks(results: object) -> object:
    """Return the results as a list, whether they stand alone or in an object or message."""
    if isinstance(results, dict):
        return next((results[key] for key in ("content", "results", "tool_results") if key in results), [results])
    return results


def _first_word(messages: list[Mapping[str, Any]]) -> str:
    """Return what the first message of a compacted request says: the summary stands there."""
    return text_of(messages[0].get("content")) if messages else ""


def _compactions(trial: Path, source: str) -> list[object]:
    paths = [path for path in _listed(trial / "agent" / "compactions") if path.suffix == ".json"]
    return [_value(path, source, trial) for path in sorted(paths, key=_order)]


def _order(path: Path) -> tuple[int, str]:
    found = _NUMBER.search(path.name)
    return int(found.group()) if found else 0, path.name


def _summary(compaction: Mapping[str, Any]) -> str:
    response = mapping_of(compaction.get("response"))
    places = (compaction.get("summary"), compaction.get("content"), response.get("content"), compaction.get("text"))
    return next(filter(None, map(text_of, places)), "")
