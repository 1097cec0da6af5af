"""One run driven by an external agent, and the tools through which such an agent acts.

The session, loop, scoring and records are those of `eirkit lacuna run`. Only the model is replaced, by one that waits
for replies from outside, so a bridge cannot show or record anything else.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import msgspec

from eirkit.errors import InfrastructureError, ModelError
from eirkit.lacuna.agents.protocol import LONGEST_REPLY
from eirkit.lacuna.memories.plan import MemoryPool
from eirkit.lacuna.models.model import Reply, Request, ToolCall, Usage
from eirkit.lacuna.runs.attempt import CellContext, attempt
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.view import Visible
from eirkit.records.database import FinishedRun
from eirkit.records.runs import Failure

UNKNOWN_USAGE = Usage(cost_usd=None)  # an external agent pays for its own model
LEFT_TEXT = "(the agent left)"  # recorded as the reply of an agent that disconnected

Outcome = FinishedRun | Failure
Keep = Callable[[Outcome], None]


def leave(*, acts: bool) -> Reply:
    """Return the reply recorded for an agent that disconnected: DONE if it could act, no answer otherwise."""
    return Reply(LEFT_TEXT, (ToolCall("done", {}),) if acts else (), UNKNOWN_USAGE)


class ExternalModel:
    """A model whose replies are submitted by an external agent."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.request: Request | None = None  # the request that has no reply yet
        self._asked = asyncio.Event()
        self._replies: asyncio.Queue[Reply | ModelError] = asyncio.Queue()
        self._since = 0.0

    async def reply(self, request: Request) -> Reply:
        self.request, self._since = request, self.clock()
        self._asked.set()
        said = await self._replies.get()
        if isinstance(said, ModelError):
            raise said
        return said

    def submit(self, reply: Reply) -> None:
        """Submit the reply to the current request; its latency is the time since the request."""
        self.request = None
        self._asked.clear()
        self._replies.put_nowait(msgspec.structs.replace(reply, latency_seconds=self.clock() - self._since))

    def fail(self, error: ModelError) -> None:
        """Abort the run because of the infrastructure, not the agent."""
        self._replies.put_nowait(error)

    async def asked(self) -> None:
        """Wait until there is a request to answer or the run is over."""
        await self._asked.wait()

    def finish(self) -> None:
        """Wake every waiting caller: there will be no further request."""
        self.request = None
        self._asked.set()

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


class Episode:
    """A run in progress. Canceling a waiting call loses nothing: the next call continues from the same state.

    Args:
        stage: the cell and what its runs share; its model is replaced by an `ExternalModel`.
        keep: called once with the outcome, before any caller learns that the run is over.
    """

    def __init__(
        self, stage: CellContext, task: TaskInstance, keep: Keep, clock: Callable[[], float] = perf_counter
    ) -> None:
        self.model = ExternalModel(clock)
        self.stage, self.task, self.keep = replace(stage, model=self.model), task, keep
        self.outcome: Outcome | None = None
        self.replies: list[Reply] = []  # in order
        self._turn = asyncio.Lock()
        self._run: asyncio.Task[None] | None = None

    async def look(self) -> Request | None:
        """Return the current request; None once the run is over."""
        self._begin()
        await self.model.asked()
        if self._run is not None and self._run.done() and self._run.exception() is not None:
            raise InfrastructureError("the run could not be stored; check the server's log") from self._run.exception()
        return self.model.request

    async def act(self, reply: Reply) -> Request | None:
        """Submit one reply and return the next request; None once the run is over, when replies are ignored."""
        async with self._turn:
            if await self.look() is None:
                return None
            self.replies.append(reply)
            self.model.submit(reply)
            return await self.look()

    async def leave(self) -> None:
        """End the run as if the agent had stopped here; unanswered steps count as wrong."""
        acts = not self.stage.cell.access.is_controlled
        while await self.act(leave(acts=acts)) is not None:
            pass

    async def stop(self, why: str) -> None:
        """End the run as an infrastructure failure: it is not scored, and is run again on resume."""
        if await self.look() is not None:
            self.model.fail(ModelError(why, "dropped"))
        if self._run is not None:
            await asyncio.wait({self._run})

    def _begin(self) -> None:
        if self._run is None:
            self._run = asyncio.create_task(self._live())

    async def _live(self) -> None:
        memories = MemoryPool()
        try:
            outcome = await attempt(self.stage, self.task, memories)
            self.keep(outcome)
            self.outcome = outcome
        finally:
            self.model.finish()
            await memories.close()


async def score_of(stage: CellContext, task: TaskInstance, replies: list[Reply]) -> Outcome:
    """Return the outcome of a run whose agent gives these replies and then leaves; nothing is stored."""
    kept: list[Outcome] = []
    episode = Episode(stage, task, kept.append)
    for reply in replies:
        await episode.act(reply)
    await episode.leave()
    return kept[0]


SUMMARY = "summary"  # the action of a note that replaces a full context

_WORDS = {"next_step": "NEXT", "submit_answer": "ANSWER", "read_result": "READ", "recompute": "RECOMPUTE"}
_WORDS |= {"finish": "DONE"}
_NOTING = {"write": "WRITE", "drop": "DROP", "add": "NOTE", "search": "SEARCH"}

_TOOLS = {word: name for name, word in _WORDS.items()} | {word: f"note ({name})" for name, word in _NOTING.items()}
_WORD = re.compile(rf"\b(?:{'|'.join(_TOOLS)})\b")
_REFUSED = "RESULT refused: "
_CALLS = {  # what refusals tell an agent to write → the call that does it
    "write ANSWER t v with numbers, such as ANSWER 7 0042": "call ANSWER with numbers, such as t 7 and values [42]",
    **{f"write {word} t": f"call {word} with t" for word in ("READ", "RECOMPUTE", "WRITE", "DROP")},
    **{f"write {word}": f"call {word}" for word in ("NEXT", "DONE")},
    "DROP one first": "drop one first with note",
    "DROP a line first": "drop a line first with note",
}

_STEP: dict[str, Any] = {"type": "integer", "minimum": 1, "description": "The number of a step."}
_VALUES: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "The answer."}


@dataclass(frozen=True, slots=True)
class ToolListing:
    """One tool as clients see it listed."""

    name: str
    description: str
    schema: Mapping[str, Any]  # JSON schema of its arguments


def tool_listings(commands: Iterable[str]) -> tuple[ToolListing, ...]:
    """Return the tools of a run with these commands; descriptions say which ones are not available."""
    known = set(commands)
    actions = [*(action for action, word in _NOTING.items() if word in known), SUMMARY]
    text = {"type": "string", "maxLength": LONGEST_REPLY}
    schema = _schema(action={"type": "string", "enum": actions}, t=_STEP, text=text)
    return (
        ToolListing("next_step", "Leave the current step, answered or not, and reveal the next.", _schema()),
        ToolListing(
            "submit_answer", "Submit the current step's answer; the first counts.", _schema(t=_STEP, values=_VALUES)
        ),
        ToolListing(
            "read_result", _if("READ" in known, "Get what you submitted for an earlier step."), _schema(t=_STEP)
        ),
        ToolListing("recompute", _if("RECOMPUTE" in known, "Have an earlier step computed again."), _schema(t=_STEP)),
        ToolListing("note", _note_line(known), {**schema, "required": ["action"]}),
        ToolListing("finish", "End the task; nothing can be done after it.", _schema()),
    )


def explain(rules: str) -> str:
    """Return the rules with the names of the tools, for the start of a conversation."""
    return (
        f"{rules}\n\nHere every command is a tool: NEXT is next_step, ANSWER is submit_answer, READ is read_result, "
        "RECOMPUTE is recompute, DONE is finish; WRITE, DROP, NOTE and SEARCH are note with the action write, drop, "
        "add or search. Every result shows everything that is visible to you. Begin with next_step, answer each "
        "step before you reveal the next, and end with finish."
    )


def translate_refusals(shown: str) -> str:
    """Return what a session shows, with refusals that name tools instead of commands."""
    lines = shown.split("\n")
    return "\n".join([_translated(line) if line.startswith(_REFUSED) else line for line in lines])


def _translated(refusal: str) -> str:
    for written, called in _CALLS.items():
        refusal = refusal.replace(written, called)
    return _WORD.sub(lambda found: _TOOLS[found[0]], refusal)


def as_reply(name: str, arguments: Mapping[str, Any], request: Request) -> Reply | None:
    """Return the reply that a tool call stands for; None if a summary must be written first."""
    noting = str(arguments.get("action", "")).lower() if name == "note" else ""
    if isinstance(request.visible, Visible) and request.visible.summary_characters is not None:
        text = arguments.get("text")
        return Reply(text, (), UNKNOWN_USAGE) if noting == SUMMARY and isinstance(text, str) else None
    given = {key: value for key, value in arguments.items() if key != "action"}
    word = _NOTING.get(noting) if name == "note" else _WORDS.get(name)
    return Reply("", (ToolCall(word.lower() if word else f"{name} {noting}".strip(), given),), UNKNOWN_USAGE)


def _if(offered: bool, description: str) -> str:
    return description if offered else f"{description} Not available in this task."


def _note_line(known: set[str]) -> str:
    can = {
        "WRITE": "write keeps the answer of step t",
        "DROP": "drop removes entry t",
        "NOTE": "add writes a line of text",
        "SEARCH": "search finds text",
    }
    listed = [line for word, line in can.items() if word in known]
    summary = f"{SUMMARY} gives the text that replaces a full context"
    return (
        f"Manage your memory: {'; '.join([*listed, summary])}." if listed else f"The only memory action is {summary}."
    )


def _schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
