"""The prompts and the kept context of Claude Code sessions: `api-request` lines, attachments and preserved messages.

A request is logged as a list of hashes, of which the beginning is that of an earlier request, and messages that the
transcript does not have are logged under their hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import count_of, items_of, mapping_of, string_of
from eirkit.vestige.trajectory import FileRead, KeptContext

Entry = Mapping[str, Any]


@dataclass(slots=True)
class ClaudePrompts:
    """What a session file says about prompts, besides the messages themselves."""

    attaches: bool = False  # attachments are logged, so that a file that was put back is in the log
    _messages: dict[str, Any] = field(default_factory=dict)  # by hash
    _requests: dict[str, tuple[str, int, list[str]]] = field(default_factory=dict)  # base, how much of it, the rest

    def take(self, entry: Entry) -> None:
        """Take note of a line that is no part of the transcript."""
        kind = entry.get("type")
        if kind == "attachment":
            self.attaches = True
        elif kind == "api-request-blob":
            self._messages[string_of(entry.get("hash"))] = entry.get("message")
        elif kind == "api-request":
            tail = entry.get("tail")
            rest = [string_of(one) for one in tail] if isinstance(tail, list) else []
            known = string_of(entry.get("base")), count_of(entry.get("keep")), rest
            self._requests[string_of(entry.get("id"))] = known

    def sent(self, reply: Entry) -> KeptContext | None:
        """Return the whole prompt that a reply answers; None if any message of it is not in the log."""
        hashes = self._hashes(string_of(reply.get("requestRef")))
        if not hashes or any(one not in self._messages for one in hashes):
            return None
        texts = tuple(filter(None, (message_text(mapping_of(self._messages[one])) for one in hashes)))
        return KeptContext("prompt", texts, is_complete=True)

    def _hashes(self, request: str) -> list[str]:
        parts: list[list[str]] = []
        wanted: int | None = None
        while request in self._requests and len(parts) < len(self._requests):
            base, keep, tail = self._requests[request]
            parts.append(tail if wanted is None else tail[: max(0, wanted - keep)])
            wanted = keep if wanted is None else min(wanted, keep)
            if not keep:
                break
            request = base
        return [one for part in reversed(parts) for one in part]

    def kept(self, boundary: Entry, entries: Mapping[str, Entry]) -> KeptContext:
        """Return what the record of a compaction says was kept; `entries` are the lines by uuid."""
        stated = mapping_of(boundary.get("compactMetadata"))
        preserved = mapping_of(stated.get("preservedMessages"))
        uuids = preserved.get("uuids")
        named = [string_of(uuid) for uuid in uuids] if isinstance(uuids, list) else _segment(stated, entries)
        texts = tuple(
            filter(None, (message_text(mapping_of(entries[uuid].get("message"))) for uuid in named if uuid in entries))
        )
        return KeptContext(
            "preserved" if self.attaches or texts else "size",
            texts,
            is_complete=self.attaches,
            tokens_before=count_of(stated.get("preTokens")) or None,
            tokens_after=count_of(stated.get("postTokens")) or None,
        )


def _segment(stated: Entry, entries: Mapping[str, Entry]) -> list[str]:
    """Return the lines of a preserved segment, from its tail up to its head."""
    segment = mapping_of(stated.get("preservedSegment"))
    head, uuid = string_of(segment.get("headUuid")), string_of(segment.get("tailUuid"))
    found: list[str] = []
    while uuid in entries and len(found) < len(entries):
        found.append(uuid)
        uuid = "" if uuid == head else string_of(entries[uuid].get("parentUuid"))
    return found[::-1]


def attached_file(entry: Entry) -> FileRead | None:
    """Return the file that an attachment shows to the model; None for any other attachment."""
    attachment = mapping_of(entry.get("attachment"))
    file = mapping_of(mapping_of(attachment.get("content")).get("file"))
    path = string_of(file.get("filePath")) or string_of(attachment.get("filename"))
    content = file.get("content")
    if attachment.get("type") != "file" or not path or not isinstance(content, str):
        return None
    stated, whole = (file.get(name) for name in ("numLines", "totalLines"))
    is_part = attachment.get("truncated") is True or (type(stated) is int and type(whole) is int and stated < whole)
    return FileRead(path, content=content, clipped=is_part)


def message_text(message: Entry) -> str:
    """Return the text of a message with its calls and results, as far as it can be searched for."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, _block_texts(items_of(content))))


def _block_texts(blocks: Iterable[Entry]) -> Iterable[str]:
    for block in blocks:
        yield text_of([block])
        yield text_of(block.get("content"))
        yield from (value for value in mapping_of(block.get("input")).values() if isinstance(value, str))
