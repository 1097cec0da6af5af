"""One sample of Inspect as one run: a sample's state and an access come in; the run's record and its messages go out.

The session decides what is visible and Inspect's model is asked for each reply; the loop, the scoring and the records
are those of `eirkit lacuna run`. Loaded by Inspect alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageTool, ChatMessageUser, get_model
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError

from eirkit.lacuna.conditions import check_access
from eirkit.lacuna.generation import generate
from eirkit.lacuna.model import ModelOptions, Reply, Request
from eirkit.lacuna.models.inspect_ai import InspectModel, as_asked
from eirkit.lacuna.serving.scrubbing import Scrubber
from eirkit.lacuna.session import ActionTaken
from eirkit.lacuna.stores.pool import Memories
from eirkit.lacuna.sweeps.attempt import carry_out, finish
from eirkit.lacuna.sweeps.manifest import Rules
from eirkit.lacuna.sweeps.run_store import FinishedRun
from eirkit.lacuna.sweeps.spread import stage_of
from eirkit.lacuna.sweeps.suite import make_cell
from eirkit.lacuna.task import TaskSpec
from eirkit.lacuna.telemetry import Exchange, Trace

RECORD, EVENTS = "eirkit:run", "eirkit:events"  # in the store of a sample
LIMIT = "limit"  # how a run ended that one of Inspect's own limits cut off


class EvaluatedModel(InspectModel):
    """The model that Inspect evaluates, asked as its own configuration says; its outputs are kept for the sample."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ModelOptions())
        self._scrub = Scrubber.of_environment(os.environ)
        self.outputs: list[Any] = []

    async def reply(self, request: Request) -> Reply:
        start = perf_counter()
        output = await get_model().generate(*as_asked(request))
        self.outputs.append(output)
        read = self._read(output)
        return Reply(read.text, read.calls, read.usage, perf_counter() - start, read.finish)

    async def close(self) -> None:
        """Leave Inspect's model to Inspect."""


async def solve_sample(state: TaskState, access: Mapping[str, Any]) -> TaskState:
    """Run the task of a sample under an access, and leave its record in the sample's store.

    Args:
        access: the keys of a suite that say how earlier results are had.
    """
    spec = TaskSpec(**state.metadata["spec"])
    given = {name: value for name, value in state.metadata["spec"].items() if name != "seed" and value is not None}
    options = access.get("memory_options") or {}
    keys = {name: value for name, value in access.items() if name != "memory_options" and value is not None}
    cell = make_cell({**given, **keys, "model": f"inspect/{state.model}"}, ModelOptions(), options)
    check_access(cell.access)
    model = EvaluatedModel(str(state.model))
    stage = stage_of(cell, model, True, Rules(), Scrubber.of_environment(os.environ))
    task, trace, memories = generate(spec), Trace(), Memories()
    try:
        used = await carry_out(stage, task, memories, trace)
    except LimitExceededError:
        _keep(state, finish(stage, task, trace), LIMIT)
        raise
    finally:
        await memories.close()
    _keep(state, finish(stage, task, trace, used), str(trace.ending))
    state.messages = conversation(trace, model.outputs)
    if model.outputs:
        state.output = model.outputs[-1]
    state.completed = True
    return state


def _keep(state: TaskState, run: FinishedRun, ending: str) -> None:
    state.store.set(RECORD, json.loads(json.dumps({**run.record, "ending": ending})))
    state.store.set(EVENTS, [without_words(json.loads(line)) for line in run.events.splitlines()])


def without_words(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event without what was said, which the events of the model hold already."""
    return {name: value for name, value in event.items() if name not in ("prompt", "reply", "calls")}


def conversation(trace: Trace, outputs: Sequence[Any]) -> list[ChatMessage]:
    """Return what was said, for people: the rules once, then each request and its reply.

    The model saw the rules and one request at a time, never what stands above it here.
    """
    messages: list[ChatMessage] = []
    waiting: list[Any] = []  # tool calls of the last reply
    replies = iter(outputs)
    for entry in trace.log:
        if isinstance(entry, Exchange):
            rules, asked = entry.request.messages[0], entry.request.messages[-1]
            if not messages:
                messages.append(ChatMessageSystem(content=rules.content))
            message = next(replies).message
            messages += [ChatMessageUser(content=asked.content), message]
            waiting = list(message.tool_calls or ())
        elif isinstance(entry, ActionTaken) and waiting:
            call = waiting.pop(0)
            messages.append(ChatMessageTool(content=entry.detail, tool_call_id=call.id, function=call.function))
    return messages
