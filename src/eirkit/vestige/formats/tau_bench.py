"""Reads tau-bench and tau2-bench results.

The state of a run consists of database entities rather than files. The task's instruction and reference actions are
kept in the details, to count the entities that the task itself names.

The state of a run consists of database entities. In some domains the user has tools too; these calls are not the
agent's and are left out of the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import read_conversation, sequence_of, shell_name
from eirkit.vestige.formats.run_builder import items_of, mapping_of, number_of, skipped, string_of, whole_document
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, Call, Recording, formats

_KEYS = (b'"task_id"', b'"reward"', b'"traj"', b'"info"')
_DOMAINS = ("airline", "retail", "telecom", "banking")
_PROMPT_CHARACTERS = 200  # characters of the policy that are searched for the domain


@formats.add("tau-bench")
class TauBench:
    """Result files of tau-bench."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the document is a list whose first run has a task, a reward and a trajectory."""
        head = document.head.lstrip()
        return MARKED if head.startswith(b"[") and all(key in head for key in _KEYS) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the runs in the order of the file."""
        try:
            runs = document.json()
        except InputFileError as error:
            yield skipped(document, error)
            return
        for number, run in enumerate(sequence_of(runs), 1):
            try:
                yield _recording(document, mapping_of(run), str(number))
            except InputFileError as error:
                yield skipped(document, error, str(number))


def _recording(document: LogDocument, run: Mapping[str, Any], place: str) -> Recording:
    messages, info = run.get("traj"), mapping_of(run.get("info"))
    if not isinstance(messages, list) or not messages:
        cause = string_of(info.get("error")).partition("\n")[0] or "it has no messages"
        raise InputFileError(f"the run never took place ({cause[:200]}); run it again or leave it out")
    conversation = read_conversation(messages)
    places = (conversation.prompt[:_PROMPT_CHARACTERS].lower(), document.name.lower())
    domain = next((domain for place in places for domain in _DOMAINS if domain in place), "tau")
    task, trial = string_of(run.get("task_id")), string_of(run.get("trial")) or "0"
    reward = number_of(run.get("reward"))
    stem = document.name.removesuffix(".json")
    return Recording(
        run_id=f"{stem}/{domain}-{task}/{trial}",
        task_id=f"{domain}-{task}",
        format="tau-bench",
        source=f"{document.source}:{place}",
        turns=conversation.turns,
        reward=reward,
        resolved=None if reward is None else reward >= 1,
        prompt=conversation.prompt,
        domain="entities",
        details=_details(domain, mapping_of(info.get("task"))),
    )


def _details(domain: str, task: Mapping[str, Any]) -> Mapping[str, Any]:
    if not task:
        return {"domain": domain}
    actions = [
        {"name": string_of(action.get("name")), "arguments": mapping_of(action.get("kwargs", action.get("arguments")))}
        for action in items_of(task.get("actions"))
    ]
    return {
        "domain": domain,
        "user": string_of(task.get("user_id")),
        "instruction": string_of(task.get("instruction")),
        "actions": actions,
        "outputs": [string_of(output) for output in sequence_of(task.get("outputs"))],
    }


_TAU2_KEYS = (b"num_trials", b"user_info", b"agent_info")
_SIMULATED_KEYS = (b"simulations", b"reward_info", b"task_id")


@formats.add("tau2-bench")
class Tau2Bench:
    """Result files of tau2-bench."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the object's info has trials, user and agent, or it begins with its simulations."""
        is_object = document.head.lstrip().startswith(b"{")
        is_ours = any(all(key in document.quoted for key in keys) for keys in (_TAU2_KEYS, _SIMULATED_KEYS))
        return MARKED if is_object and is_ours else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the simulations in the order of the file."""
        results = whole_document(document)
        if isinstance(results, Skipped):
            yield results
            return
        simulations = results.get("simulations")
        if not isinstance(simulations, list):
            yield skipped(document, "has no list of simulations; restore the file")
            return
        tasks = {string_of(task.get("id")): task for task in items_of(results.get("tasks"))}
        for number, simulation in enumerate(simulations, 1):
            try:
                yield _tau2_recording(document, results, mapping_of(simulation), tasks, number)
            except InputFileError as error:
                yield skipped(document, error, str(number))


def _tau2_recording(
    document: LogDocument,
    results: Mapping[str, Any],
    simulation: Mapping[str, Any],
    tasks: Mapping[str, Mapping[str, Any]],
    number: int,
) -> Recording:
    messages = simulation.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InputFileError("the simulation has no messages; run it again or leave it out")
    conversation = read_conversation(_agents_side(messages), make_call=_call)
    info = mapping_of(results.get("info"))
    world = mapping_of(info.get("environment_info"))
    domain = string_of(world.get("domain_name")) or "tau2"
    task, trial = string_of(simulation.get("task_id")), string_of(simulation.get("trial")) or "0"
    reward = number_of(mapping_of(simulation.get("reward_info")).get("reward"))
    stem = document.name.removesuffix(".json")
    return Recording(
        run_id=f"{stem}/{domain}-{task}/{trial}",
        task_id=f"{domain}-{task}",
        format="tau2-bench",
        source=f"{document.source}:{number}",
        turns=conversation.turns,
        model=string_of(mapping_of(info.get("agent_info")).get("llm")),
        reward=reward,
        resolved=None if reward is None else reward >= 1,
        prompt=string_of(world.get("policy")) or conversation.prompt,
        exit_status=string_of(simulation.get("termination_reason")),
        domain="entities",
        details=_tau2_details(domain, string_of(simulation.get("id")), mapping_of(tasks.get(task))),
    )


def _agents_side(messages: list[Any]) -> Iterator[object]:
    """Yield the messages of the agent's side, with each tool result under the id of its call."""
    for message in messages:
        if not isinstance(message, dict):
            yield message
        elif message.get("role") == "tool":
            for answer in items_of(message.get("tool_messages")) or [message]:
                if answer.get("requestor") != "user":
                    yield {**answer, "role": "tool", "tool_call_id": answer.get("id")}
        elif message.get("role") != "user" or not message.get("tool_calls"):
            yield message


def _call(tool: str, arguments: Mapping[str, Any], output: str, answer: Mapping[str, Any]) -> Call:
    failed = answer.get("error") is True or output.startswith("Error:")
    return Call(shell_name(tool, arguments), arguments, output, failed=failed)


def _tau2_details(domain: str, simulation: str, task: Mapping[str, Any]) -> Mapping[str, Any]:
    criteria = mapping_of(task.get("evaluation_criteria"))
    actions = [
        {"name": string_of(action.get("name")), "arguments": mapping_of(action.get("arguments"))}
        for action in items_of(criteria.get("actions"))
        if action.get("requestor") != "user"
    ]
    told = {"domain": domain, "simulation": simulation, "instruction": _instruction(task)}
    return {**told, "actions": actions} if task else told  # a task missing from the file names no entities


def _instruction(task: Mapping[str, Any]) -> str:
    told = mapping_of(task.get("user_scenario")).get("instructions")
    if isinstance(told, dict):
        return "\n".join(value for value in told.values() if isinstance(value, str))
    return string_of(told)
