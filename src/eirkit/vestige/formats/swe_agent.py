"""Reads SWE-agent trajectories (`.traj`) in all variants: thought and action, function calling, and a bare history.

The steps come from `trajectory[]`, or from `history` in a file without one. The prompt that newer files repeat at every
step is not read. Usage is known per run only and is part of the details.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import content_of, text_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, skipped, string_of, whole_document
from eirkit.vestige.formats.swe_agent_actions import SweAgentState, call_of, fenced_action, path_or_none, split_state
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, RecordedTurn, Recording, formats

_STEPS = re.compile(rb'"trajectory"\s*:\s*\[\s*\{\s*"(?:action|observation|response|thought|state|query|messages)"\s*:')
_HISTORY = re.compile(rb'\s*\{\s*"history"\s*:\s*\[\s*\{\s*"(?:role|message_type|content|agent)"\s*:')
_BEGINNING = re.compile(rb'\s*\{\s*"(?:environment|trajectory|attempts|history)"\s*:')


@dataclass(frozen=True, slots=True)
class SweAgentStep:
    """One step, in a form common to all variants."""

    text: str
    action: str
    observation: str
    before: SweAgentState
    after: SweAgentState


@formats.add("swe-agent")
class SweAgent:
    """Files `*.traj` of SWE-agent."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the object has actions and observations, or a history of this scaffold's agents."""
        head = document.head
        if _BEGINNING.match(head) is None:
            return 0
        is_run = _STEPS.search(head) is not None or (_HISTORY.match(head) is not None and b'"agent":' in head)
        return MARKED if is_run else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the file's run; in a file that holds only attempts, each of them."""
        content = whole_document(document)
        if isinstance(content, Skipped):
            yield content
            return
        attempts = items_of(content.get("attempts")) if "trajectory" not in content else []
        for number, attempt in enumerate(attempts, 1):
            yield _run(attempt, document, f"#{number}")
        if not attempts:
            yield _run(content, document, "")


def _run(content: Mapping[str, Any], document: LogDocument, attempt: str) -> Recording | Skipped:
    try:
        return _recording(content, document, attempt)
    except InputFileError as error:
        return skipped(document, error, attempt)


def _recording(content: Mapping[str, Any], document: LogDocument, attempt: str) -> Recording:
    steps, history = content.get("trajectory"), content.get("history")
    if isinstance(steps, list):
        read = [_step(step, number, steps) for number, step in enumerate(steps, 1)]
    elif isinstance(history, list):
        read = history_steps(history)
    else:
        raise InputFileError("has neither a trajectory nor a history; restore the file")
    info, config = mapping_of(content.get("info")), _config(content)
    task = string_of(mapping_of(config.get("problem_statement")).get("id"))
    task = task or document.name.removesuffix(".json").removesuffix(".traj") or "run"
    stats = mapping_of(info.get("model_stats"))
    given = string_of(info.get("submission"))
    if not given and read and read[-1].action.strip() == "submit" and "diff --git" in read[-1].observation:
        given = read[-1].observation
    return Recording(
        run_id=task + attempt,
        task_id=task,
        format="swe-agent",
        source=document.source + attempt,
        turns=steps_to_turns(read),
        model=string_of(mapping_of(mapping_of(config.get("agent")).get("model")).get("name")),
        prompt=history_prompt(history),
        submission=given.replace("\r\n", "\n").lstrip("\n") or None,
        root=_root(config, read),
        exit_status=string_of(info.get("exit_status")),
        details={"model_stats": stats} if stats else {},
    )


def _step(step: object, number: int, steps: Sequence[object]) -> SweAgentStep:
    if not isinstance(step, dict):
        raise InputFileError(f"step {number} is not a JSON object; repair it or leave the run out")
    # Version 1 records the state after an action and the action's duration; version 0 the state before.
    is_after = "execution_time" in step
    place = _state(step)
    previous = _state(steps[number - 2]) if is_after and number > 1 else SweAgentState()
    thought = string_of(step.get("thought")) or string_of(step.get("response"))
    observation = string_of(step.get("observation"))
    action = string_of(step.get("action"))
    if is_after:
        return SweAgentStep(thought, action, observation, previous, place)
    return SweAgentStep(thought, action, observation, place, SweAgentState())


def _state(step: object) -> SweAgentState:
    state = mapping_of(step).get("state")
    if isinstance(state, str):
        try:
            state = json.loads(state)
        except (ValueError, RecursionError):
            return SweAgentState()
    known = mapping_of(state)
    return path_or_none(known.get("working_dir"), known.get("open_file"))


def history_steps(history: Sequence[object]) -> list[SweAgentStep]:
    """Return the steps in a history; a reply without an `action` has it in its last fenced block."""
    steps: list[SweAgentStep] = []
    reply: Mapping[str, Any] | None = None
    place = SweAgentState()
    for message in [*history, {"role": "assistant"}]:
        if not isinstance(message, dict):
            raise InputFileError("a message is not a JSON object; repair it or leave the run out")
        if message.get("is_demo"):
            continue
        if message.get("role") in ("assistant", "ai"):
            if reply is not None:
                steps.append(_history_step(reply, "", place, place))
            reply = message
        elif reply is not None:
            before = place
            observation, place = split_state(text_of(content_of(message)))
            steps.append(_history_step(reply, observation.removeprefix("OBSERVATION:\n"), before, place))
            reply = None
        else:
            _, place = split_state(text_of(content_of(message)))
    return steps


def _history_step(
    reply: Mapping[str, Any], observation: str, before: SweAgentState, after: SweAgentState
) -> SweAgentStep:
    action = reply.get("action")
    if isinstance(action, str):
        return SweAgentStep(string_of(reply.get("thought")), action, observation, before, after)
    prose, action = fenced_action(text_of(content_of(reply)))
    return SweAgentStep(prose, action, observation, before, after)


def steps_to_turns(steps: Sequence[SweAgentStep]) -> tuple[RecordedTurn, ...]:
    """Return one turn per step; what the final `submit` returns is the submission and was not seen."""
    turns = []
    for number, step in enumerate(steps, 1):
        is_end = number == len(steps) and step.action.strip() == "submit"
        call = call_of(step.action, "" if is_end else step.observation, step.before, step.after)
        turns.append(RecordedTurn(calls=() if call is None else (call,), text=step.text))
    return tuple(turns)


def _config(content: Mapping[str, Any]) -> Mapping[str, Any]:
    config = content.get("replay_config")
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            return {}
    return mapping_of(config)


def history_prompt(history: object) -> str:
    """Return what a history says before its first reply, demonstrations included."""
    said = []
    for message in items_of(history):
        if message.get("role") in ("assistant", "ai") and not message.get("is_demo"):
            break
        said.append(text_of(content_of(message)) or string_of(message.get("system_prompt")))
    return "\n\n".join(filter(None, said))


def _root(config: Mapping[str, Any], steps: Sequence[SweAgentStep]) -> str | None:
    name = string_of(mapping_of(mapping_of(config.get("env")).get("repo")).get("repo_name"))
    if name:
        return f"/{name.lstrip('/')}"
    return next((place.folder for step in steps for place in (step.before, step.after) if place.folder), None)
