"""Reads tau-bench results: a list of runs with task, trial, reward and the messages between agent, user and tools.

The state of a run consists of database entities rather than files. The task's instruction and reference actions are
kept in the details, to count the entities that the task itself names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.errors import InputFileError
from eirkit.logs.formats.messages import read_conversation, sequence_of
from eirkit.logs.formats.run_builder import items_of, mapping_of, number_of, skipped, string_of
from eirkit.logs.sources.documents import LogDocument, Skipped
from eirkit.logs.trajectory import Recording, formats

_KEYS = (b'"task_id"', b'"reward"', b'"traj"', b'"info"')
_DOMAINS = ("airline", "retail", "telecom", "banking")
_PROMPT_CHARACTERS = 200  # characters of the policy that are searched for the domain


@formats.add("tau-bench")
class TauBench:
    """Result files of tau-bench."""

    def recognises(self, document: LogDocument) -> bool:
        """Return whether the document is a list whose first run has a task, a reward and a trajectory."""
        head = document.head.lstrip()
        return head.startswith(b"[") and all(key in head for key in _KEYS)

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
    domain = _domain(document, conversation.prompt)
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


def _domain(document: LogDocument, prompt: str) -> str:
    places = (prompt[:_PROMPT_CHARACTERS].lower(), document.name.lower())
    return next((domain for place in places for domain in _DOMAINS if domain in place), "tau")


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
