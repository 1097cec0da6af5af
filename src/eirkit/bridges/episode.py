"""One run whose agent comes by itself: replies come in one at a time, what is visible next goes out.

The run is a run like any other: the same session, loop, scoring and records. Only the model is a seat that waits for
what somebody says from outside, so no bridge can show or record anything else than `eirkit lacuna run` does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from eirkit.agents.model import Reply, Request, ToolCall, Usage
from eirkit.agents.models.prompt_reader import read_summary_limit
from eirkit.agents.protocol import LONGEST_REPLY
from eirkit.agents.stores.pool import Memories
from eirkit.errors import InfrastructureError, ModelError
from eirkit.runs.attempt import Failure, Stage, attempt
from eirkit.runs.store import FinishedRun
from eirkit.tasks.task import TaskInstance

UNKNOWN = Usage(cost_usd=None)  # what an agent from outside spends is its own affair
LEFT = "(the agent left)"  # the text of the reply that stands for an agent's silent departure

Outcome = FinishedRun | Failure
Keep = Callable[[Outcome], None]


def leave(*, acts: bool) -> Reply:
    """Return what is put down for an agent that went away: DONE where it acts, silence where it only answers."""
    return Reply(LEFT, (ToolCall("done", {}),) if acts else (), UNKNOWN)


class Seat:
    """A model whose replies are handed in from outside."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.request: Request | None = None  # what it was asked and has not answered yet
        self._asked = asyncio.Event()
        self._said: asyncio.Queue[Reply | ModelError] = asyncio.Queue()
        self._since = 0.0

    async def reply(self, request: Request) -> Reply:
        self.request, self._since = request, self.clock()
        self._asked.set()
        said = await self._said.get()
        if isinstance(said, ModelError):
            raise said
        return said

    def say(self, reply: Reply) -> None:
        """Hand in the reply to the current request; the time since it was asked is the reply's latency."""
        self.request = None
        self._asked.clear()
        self._said.put_nowait(replace(reply, latency_seconds=self.clock() - self._since))

    def give_up(self, error: ModelError) -> None:
        """Break the run off: the world failed, not the agent."""
        self._said.put_nowait(error)

    async def asked(self) -> None:
        """Return once there is something to reply to, or the run is over."""
        await self._asked.wait()

    def rise(self) -> None:
        """Let go whoever waits: nothing more will be asked."""
        self.request = None
        self._asked.set()

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


class Episode:
    """A run in progress. Whoever is cancelled while waiting loses nothing: the next caller finds the run as it is.

    Args:
        stage: the cell and what its runs share; its model is replaced by a seat.
        keep: is told the outcome once, before anybody learns that the run is over.
    """

    def __init__(self, stage: Stage, task: TaskInstance, keep: Keep, clock: Callable[[], float] = perf_counter) -> None:
        self.seat = Seat(clock)
        self.stage, self.task, self.keep = replace(stage, model=self.seat), task, keep
        self.outcome: Outcome | None = None
        self.replies: list[Reply] = []  # in order
        self._turn = asyncio.Lock()
        self._run: asyncio.Task[None] | None = None

    async def look(self) -> Request | None:
        """Return what the agent may see now; None once the run is over."""
        self._begin()
        await self.seat.asked()
        if self._run is not None and self._run.done() and self._run.exception() is not None:
            raise InfrastructureError("the run could not be kept; see the server's messages") from self._run.exception()
        return self.seat.request

    async def act(self, reply: Reply) -> Request | None:
        """Take in one reply and return what the agent may see next; after the end nothing is taken in."""
        async with self._turn:
            if await self.look() is None:
                return None
            self.replies.append(reply)
            self.seat.say(reply)
            return await self.look()

    async def leave(self) -> None:
        """End the run as its agent would have by stopping here; what was not answered is wrong."""
        acts = not self.stage.cell.access.is_controlled
        while await self.act(leave(acts=acts)) is not None:
            pass

    async def stop(self, why: str) -> None:
        """End the run as a failure of the world: it is not scored, and tried again on resume."""
        if await self.look() is not None:
            self.seat.give_up(ModelError(why, "dropped"))
        if self._run is not None:
            await asyncio.wait({self._run})

    def _begin(self) -> None:
        if self._run is None:
            self._run = asyncio.create_task(self._live())

    async def _live(self) -> None:
        memories = Memories()
        try:
            outcome = await attempt(self.stage, self.task, memories)
            self.keep(outcome)
            self.outcome = outcome
        finally:
            self.seat.rise()
            await memories.close()


async def score_of(stage: Stage, task: TaskInstance, replies: list[Reply]) -> Outcome:
    """Return what a run comes to whose agent says this and then leaves; nothing is kept."""
    kept: list[Outcome] = []
    episode = Episode(stage, task, kept.append)
    for reply in replies:
        await episode.act(reply)
    await episode.leave()
    return kept[0]


SUMMARY = "summary"  # of a note that replaces a context which is full

_WORDS = {"next_step": "NEXT", "submit_answer": "ANSWER", "read_result": "READ", "recompute": "RECOMPUTE"}
_WORDS |= {"finish": "DONE"}
_NOTING = {"write": "WRITE", "drop": "DROP", "add": "NOTE", "search": "SEARCH"}

_TOOLS = {word: name for name, word in _WORDS.items()} | {word: f"note ({name})" for name, word in _NOTING.items()}
_WORD = re.compile(rf"\b(?:{'|'.join(_TOOLS)})\b")
_REFUSED = "RESULT refused: "
_CALLS = {  # what refusals tell an agent to write, and what it is to call instead
    "write ANSWER t v with numbers, such as ANSWER 7 0042": "call ANSWER with numbers, such as t 7 and values [42]",
    **{f"write {word} t": f"call {word} with t" for word in ("READ", "RECOMPUTE", "WRITE", "DROP")},
    **{f"write {word}": f"call {word}" for word in ("NEXT", "DONE")},
    "DROP one first": "drop one first with note",
    "DROP a line first": "drop a line first with note",
}

_STEP: dict[str, Any] = {"type": "integer", "minimum": 1, "description": "The number of a step."}
_VALUES: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "The answer."}


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool as it is listed."""

    name: str
    description: str
    schema: Mapping[str, Any]  # JSON schema of its arguments


def offers(commands: Iterable[str]) -> tuple[Offer, ...]:
    """Return the tools of a run that offers these commands; what it lacks is said in the description."""
    known = set(commands)
    return (
        Offer("next_step", "Leave the current step, answered or not, and reveal the next.", _schema()),
        Offer("submit_answer", "Submit the current step's answer; the first counts.", _schema(t=_STEP, values=_VALUES)),
        Offer("read_result", _if("READ" in known, "Get what you submitted for an earlier step."), _schema(t=_STEP)),
        Offer("recompute", _if("RECOMPUTE" in known, "Have an earlier step computed again."), _schema(t=_STEP)),
        Offer("note", _note_line(known), _note_schema(known)),
        Offer("finish", "End the task; nothing can be done after it.", _schema()),
    )


def explain(rules: str) -> str:
    """Return what an agent with tools must know before anything else."""
    return (
        f"{rules}\n\nHere every command is a tool: NEXT is next_step, ANSWER is submit_answer, READ is read_result, "
        "RECOMPUTE is recompute, DONE is finish; WRITE, DROP, NOTE and SEARCH are note with the action write, drop, "
        "add or search. Every result shows all that the task keeps in sight for you. Begin with next_step, answer each "
        "step before you reveal the next, and end with finish."
    )


def in_tools(shown: str) -> str:
    """Return what a session shows, with its refusals in the names of tools where they say what to write."""
    lines = shown.split("\n")
    return "\n".join([_translated(line) if line.startswith(_REFUSED) else line for line in lines])


def _translated(refusal: str) -> str:
    for written, called in _CALLS.items():
        refusal = refusal.replace(written, called)
    return _WORD.sub(lambda found: _TOOLS[found[0]], refusal)


def as_reply(name: str, arguments: Mapping[str, Any], request: Request) -> Reply | None:
    """Return the reply that a call of a tool stands for; None if a summary must be written before anything else."""
    noting = str(arguments.get("action", "")).lower() if name == "note" else ""
    if read_summary_limit(request) is not None:
        text = arguments.get("text")
        return Reply(text, (), UNKNOWN) if noting == SUMMARY and isinstance(text, str) else None
    given = {key: value for key, value in arguments.items() if key != "action"}
    word = _NOTING.get(noting) if name == "note" else _WORDS.get(name)
    return Reply("", (ToolCall(word.lower() if word else f"{name} {noting}".strip(), given),), UNKNOWN)


def _if(offered: bool, description: str) -> str:
    return description if offered else f"{description} Not available in this task."


def _note_line(known: set[str]) -> str:
    can = {
        "WRITE": "write keeps the answer of step t",
        "DROP": "drop removes entry t",
        "NOTE": "add puts down a line of text",
        "SEARCH": "search looks text up",
    }
    listed = [line for word, line in can.items() if word in known]
    summary = f"{SUMMARY} gives the text that replaces a context which is full"
    return f"Look after your memory: {'; '.join([*listed, summary])}." if listed else f"No memory but this: {summary}."


def _note_schema(known: set[str]) -> dict[str, Any]:
    actions = [*(action for action, word in _NOTING.items() if word in known), SUMMARY]
    text = {"type": "string", "maxLength": LONGEST_REPLY}
    schema = _schema(action={"type": "string", "enum": actions}, t=_STEP, text=text)
    return {**schema, "required": ["action"]}


def _schema(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
