"""`adk`: a memory service of Google's Agent Development Kit (package google-adk); its InMemoryMemoryService by default.

What is said is an event of a session, and sessions are added to the memory; adding a session again replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from eirkit.errors import UnknownNameError
from eirkit.lacuna.memories.adapter import VendorWarnings
from eirkit.lacuna.memories.in_process import usage_of_texts
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    Item,
    MemorySystem,
    MemoryUsage,
    Profile,
    Requirements,
    memories,
)
from eirkit.lacuna.models.message import Message
from eirkit.registry import load_object

APP = "eirkit"
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)  # of records, which have no day


@memories.add("adk")
class AdkMemory(MemorySystem):
    """A memory service of ADK: sessions in, and its search by words.

    Args:
        service: memory, for InMemoryMemoryService, or module:function or file.py:function, which returns a
            BaseMemoryService.
    """

    requirements = Requirements(packages=("google.adk",), installs=(("google-adk>=2.13,<3",),))
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each record or conversation is a session that is added to the memory, and replaced if it is added again; "
            "its search returns the events that share most words with the query",
            "its agent, which would call load_memory, and Vertex AI's services, which need Google's cloud",
            passages=10,
            passages_from="its search takes no number; InMemoryMemoryService returns at most 10, google-adk 2.13.0",
        ),
    }

    @classmethod
    def passages_for(cls, settings: Mapping[str, Any]) -> int | None:
        return super().passages_for(settings) if settings.get("service", "memory") == "memory" else None

    def __init__(self, *, service: str = "memory") -> None:
        if service != "memory" and ":" not in service:
            raise UnknownNameError("service", service, ("memory",))
        self.service = service
        self._warnings = VendorWarnings("google_adk")
        self._service: Any = None
        self._user = ""
        self._scopes = 0

    async def setup(self) -> None:
        self._warnings.listen()
        if self.service == "memory":
            from google.adk.memory import InMemoryMemoryService

            self._service = InMemoryMemoryService()
        else:
            self._service = load_object(self.service)()

    async def reset(self, scope: str) -> None:
        self._scopes += 1
        self._user = f"{scope}-{self._scopes}"

    async def write(self, item: Item) -> None:
        await self._add(item.label, [Message("user", item.text)], EPOCH)

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await self._add(session, messages, datetime.fromisoformat(at).replace(tzinfo=UTC))

    async def _add(self, session: str, messages: Sequence[Message], at: datetime) -> None:
        from google.adk.events import Event
        from google.adk.sessions import Session
        from google.genai import types

        time = at.timestamp()
        events = [
            Event(
                author=message.role,
                timestamp=time,
                content=types.Content(role=message.role, parts=[types.Part(text=message.content)]),
            )
            for message in messages
        ]
        added = Session(id=session, app_name=APP, user_id=self._user, events=events, last_update_time=time)
        await self._service.add_session_to_memory(added)

    async def _found(self, query: str) -> list[Any]:
        found = await self._service.search_memory(app_name=APP, user_id=self._user, query=query)
        return list(found.memories)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [_text(one.content) for one in await self._found(query)][:limit]

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        found = await self._found(question)
        return [f"[{str(one.timestamp)[:10]}] {one.author}: {_text(one.content)}" for one in found][:limit]

    async def read(self, label: str) -> str | None:
        """Return a session's text: from the service's own lists, or by the words of its label."""
        held = self._sessions()
        if held is not None:
            return "\n".join(_text(event.content) for event in held.get(label, ())) or None
        found = [_text(one.content) for one in await self._found(label)]
        return "\n".join(found) or None

    async def forget(self, label: str) -> None:
        for event in (self._sessions() or {}).get(label, ()):
            await self._service.delete_memory(app_name=APP, user_id=self._user, memory_id=event.id)

    async def contents(self) -> Sequence[str] | None:
        held = self._sessions()
        if held is None:
            return None
        days = [(event, datetime.fromtimestamp(event.timestamp, UTC)) for one in held.values() for event in one]
        return [
            _text(event.content) if day == EPOCH else f"[{day:%Y-%m-%d}] {event.author}: {_text(event.content)}"
            for event, day in days
        ]

    def _sessions(self) -> dict[str, list[Any]] | None:
        """Return the events by session, which the service itself does not list; None for another service."""
        held = getattr(self._service, "_session_events", None)
        return None if held is None else dict(held.get((APP, self._user), {}))

    async def usage(self) -> MemoryUsage:
        held = await self.contents()
        return replace(MemoryUsage() if held is None else usage_of_texts(held), warnings=self._warnings.heard)

    async def teardown(self) -> None:
        self._service = None


def _text(content: Any) -> str:
    return " ".join(part.text for part in content.parts if part.text)
