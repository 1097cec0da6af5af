"""Reads trajectories of Trae agent: one object with the replies of the model and the steps of the agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.vestige.formats.messages import arguments_of, shell_name, usage_of
from eirkit.vestige.formats.run_builder import RunBuilder, items_of, mapping_of, read_one_run, string_of
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, Recording, formats

_KEYS = frozenset({b"max_steps", b"provider", b"llm_interactions"})


@formats.add("trae-agent")
class TraeAgent:
    """Trajectory files of Trae agent."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether an object begins with a task, its provider and the replies of a model."""
        is_object = document.head.lstrip().startswith(b"{")
        return MARKED if is_object and _KEYS.issubset(document.quoted) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the task's one run."""
        yield from read_one_run(document, _recording)


def _recording(content: Mapping[str, Any], document: LogDocument) -> Recording | Skipped:
    builder = RunBuilder()
    builder.request(string_of(content.get("task")))
    replies = [mapping_of(interaction.get("response")) for interaction in items_of(content.get("llm_interactions"))]
    for number, step in enumerate(items_of(content.get("agent_steps"))):
        response = mapping_of(step.get("llm_response"))
        if not response:
            continue
        builder.begin()
        builder.say(string_of(response.get("content")))
        # Only the record of the request has the counts of cached tokens.
        full = replies[number].get("usage") if number < len(replies) else None
        builder.use(usage_of(full or response.get("usage")))
        for call in items_of(step.get("tool_calls")):
            arguments = arguments_of(call.get("arguments"))
            builder.ask(_id(call), shell_name(string_of(call.get("name")), arguments), arguments)
        for result in items_of(step.get("tool_results")):
            failed = result.get("success") is False
            builder.answer(
                _id(result), string_of(result.get("result")) or string_of(result.get("error")), failed=failed
            )
    success = content.get("success")
    return builder.recording(
        document,
        "trae-agent",
        "",
        model=string_of(content.get("model")),
        root=string_of(content.get("project_path")),
        details={"says_success": success} if isinstance(success, bool) else {},
    )


def _id(call: Mapping[str, Any]) -> str:
    return string_of(call.get("call_id")) or string_of(call.get("id"))
