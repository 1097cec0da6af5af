"""Reads OpenHands completions: `llm_completions/<task>/` with one file per request, each with the whole history.

The last file of a task's folder is its run, with the response appended; the others are prefixes of it and are not read.
The usage is therefore that of the last response only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from eirkit.errors import InputFileError
from eirkit.logs.formats.messages import message_usage, read_conversation, usage_of
from eirkit.logs.formats.openhands import OpenHandsCalls, repository_root
from eirkit.logs.formats.run_builder import items_of, mapping_of, read_one_run, string_of
from eirkit.logs.sources.documents import LogDocument, Skipped, open_document
from eirkit.logs.trajectory import LoggedUsage, Recording, formats

_FIRST_KEY = re.compile(rb'\s*\{\s*"messages"\s*:\s*\[\s*\{')
_TIME = re.compile(r"-(\d{9,12}(?:\.\d{1,9})?)\.json\b")
_KEYS = (b'"response":', b'"choices":')


@formats.add("openhands-completions")
class OpenHandsCompletions:
    """Files of `llm_completions/<task>/` of OpenHands."""

    def recognises(self, document: LogDocument) -> bool:
        """Return whether messages are followed by a response, or the file's name has a request's time."""
        return is_completion(document)

    def claims(self, folder: Path, names: Sequence[str]) -> Collection[str]:
        """Return all completions of a task but the last, which repeats them."""
        timed = {name: float(found[1]) for name in names if (found := _TIME.search(name))}
        if len(timed) < 2:
            return ()
        last = max(timed, key=lambda name: (timed[name], name))
        try:
            is_ours = is_completion(open_document(folder / last))
        except InputFileError:
            return ()
        return timed.keys() - {last} if is_ours else ()

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run up to this completion."""
        return read_one_run(document, _recording)


def is_completion(document: LogDocument) -> bool:
    """Return whether the document is a request with its response, as OpenHands stores them."""
    head = document.head
    if _FIRST_KEY.match(head) is None:
        return False
    # The response follows the messages, usually beyond the part that was read; then the name decides.
    return all(key in head for key in _KEYS) or (b"\n" not in head.strip() and _TIME.search(document.name) is not None)


def _recording(content: Mapping[str, Any], document: LogDocument) -> Recording:
    # For models without tool calls a second pair holds the same exchange with them.
    pair = ("fncall_messages", "fncall_response") if "fncall_messages" in content else ("messages", "response")
    messages, response = content.get(pair[0]), mapping_of(content.get(pair[1]))
    if not isinstance(messages, list):
        raise InputFileError("has no list of messages; restore the file")
    choices = items_of(response.get("choices"))
    last = mapping_of(choices[0].get("message")) if choices else {}

    def usage(message: Mapping[str, Any]) -> LoggedUsage | None:
        return usage_of(response.get("usage")) if message is last else message_usage(message)

    said = read_conversation([*messages, last] if last else messages, make_call=OpenHandsCalls(), usage=usage)
    task = _task(document)
    return Recording(
        run_id=task,
        task_id=task,
        format="openhands-completions",
        source=document.source,
        turns=said.turns,
        model=string_of(response.get("model")),
        prompt=said.prompt,
        root=repository_root(said.prompt),
    )


def _task(document: LogDocument) -> str:
    if document.parent is not None:
        return document.parent.resolve().name or document.name
    folders = PurePosixPath(document.source.rpartition(":")[2]).parts[:-1]
    return folders[-1] if folders else document.name or "run"
