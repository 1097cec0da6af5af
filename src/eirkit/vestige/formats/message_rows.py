"""Reads data sets with one run per row of OpenAI-style messages: SWE-rebench, CoderForge, SWE-Gym, SWE-smith, nebius.

Rows come from JSON lines, a JSON list or Parquet; the messages are a list or its JSON text, under `trajectory`,
`messages` or `conversations`. The scaffold is inferred from the form of replies and results. Other columns, such as
tools and licenses, are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats import mini_swe_agent
from eirkit.vestige.formats.messages import content_of, read_conversation, sequence_of, text_of
from eirkit.vestige.formats.openhands import OpenHandsCalls, is_completion, repository_root
from eirkit.vestige.formats.run_builder import number_of, skipped, string_of
from eirkit.vestige.formats.swe_agent import history_prompt, history_steps, steps_to_turns
from eirkit.vestige.sources.documents import HEAD_BYTES, LogDocument, Skipped
from eirkit.vestige.trajectory import SHAPE, RecordedTurn, Recording, formats

Row = Mapping[str, Any]

_MESSAGES = ("trajectory", "messages", "conversations")
_RUN_NAMES = ("trajectory_id", "traj_id", "run_id", "instance_id", "task_id", "id")
_TASK_NAMES = ("instance_id", "task_id", "problem_id", "image")
_OUTCOMES = ("resolved", "target", "success")
_PATCHES = ("model_patch", "generated_patch", "git_patch", "output_patch")
# First keys of such rows; other files with messages begin with other keys.
_FIRST_COLUMN = re.compile(
    rb'\s*+\[?\s*+\{\s*+"(?:trajectory(?:_id)?|traj_id|run_id|instance_id|task_id|problem_id|id|uuid|messages|conversations|tools|repo|'
    rb'dataset|source|split|license|image|docker_image|model|model_name|resolved|reward|target|success|exit_status|finish_reason)"\s*:'
)
# A list of messages, or its JSON text, in which each quote is escaped.
_ROLES = re.compile(
    rb'"(?:trajectory|messages|conversations)"\s*:\s*(?:"\s*)?\[\s*\{\s*\\?"(?:role|content|text|from|agent|mask|cutoff_date|name|tool_call)\\?"\s*:'
)
_PARQUET = b"PAR1"
_LOOKED_AT = 6  # replies that are examined to infer the scaffold


@formats.add("message-rows")
class MessageRows:
    """Rows of OpenAI-style messages, in JSON lines or Parquet."""

    run_per_line = True  # in JSON lines, one run per line
    run_per_row = True  # in Parquet, one run per row

    def recognizes(self, document: LogDocument) -> int:
        """Return whether rows have a list of messages and the name of a run or a task."""
        head = document.head
        if head.startswith(_PARQUET):
            return SHAPE if _is_row(_first_row(document)) else 0
        if _FIRST_COLUMN.match(head) is None or _ROLES.search(head) is None or is_completion(document):
            return 0
        # Where the messages come first and are long, the names are beyond the part that was read.
        is_cut = len(head) >= HEAD_BYTES or b"\n" in head.strip()
        return SHAPE if is_cut or any(f'"{name}":'.encode() in head for name in _RUN_NAMES) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each row."""
        try:
            for number, row in _rows(document):
                yield _run(row, document, number)
        except InputFileError as error:
            yield skipped(document, error)


def _first_row(document: LogDocument) -> object:
    try:
        return next(iter(document.rows()), (0, None))[1]
    except InputFileError:
        return None


def _is_row(row: object) -> bool:
    if not isinstance(row, dict) or not any(name in row for name in _RUN_NAMES):
        return False
    return any(isinstance(row.get(name), list | str) for name in _MESSAGES)


def _rows(document: LogDocument) -> Iterator[tuple[int, object]]:
    head = document.head
    if head.startswith(_PARQUET):
        yield from document.rows()
    elif head.lstrip().startswith(b"["):
        content = document.json()
        yield from enumerate(content if isinstance(content, list) else [content], 1)
    else:
        yield from document.lines()


def _run(row: object, document: LogDocument, number: int) -> Recording | Skipped:
    if isinstance(row, Exception):
        return skipped(document, row, str(number))
    try:
        if not isinstance(row, dict):
            raise InputFileError("is not a JSON object; remove the row")
        return _recording(row, f"{document.source}:{number}", number)
    except InputFileError as error:
        return skipped(document, error, str(number))


def _recording(row: Row, source: str, number: int) -> Recording:
    messages = next((found for name in _MESSAGES if (found := sequence_of(row.get(name)))), ())
    if not messages:
        raise InputFileError(f"has no list of messages under {', '.join(_MESSAGES)}; rename the column")
    prompt, turns = read_messages(messages)
    task = _first_text(row, _TASK_NAMES)
    run = _first_text(row, _RUN_NAMES) or f"row-{number}"
    reward = number_of(row.get("reward"))
    return Recording(
        run_id=run,
        task_id=task or run,
        format="message-rows",
        source=source,
        turns=turns,
        model=_first_text(row, ("model", "model_name")),
        resolved=_resolved(row, reward),
        reward=reward,
        prompt=prompt,
        submission=_first_text(row, (*_PATCHES, "patch") if "traj_id" in row else _PATCHES) or None,
        root=repository_root(prompt),
        exit_status=_first_text(row, ("exit_status", "finish_reason")),
    )


def read_messages(messages: Sequence[Any]) -> tuple[str, tuple[RecordedTurn, ...]]:
    """Return the prompt and the turns of messages from any of the known scaffolds."""
    scaffold = _scaffold(messages)
    if scaffold == "mini-swe-agent":
        return mini_swe_agent.read_turns(messages)
    if scaffold == "swe-agent":
        return history_prompt(messages), steps_to_turns(history_steps(messages))
    said = read_conversation(messages, make_call=OpenHandsCalls())
    return said.prompt, said.turns


def _scaffold(messages: Sequence[Any]) -> str:
    replies = 0
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        text = text_of(content_of(message)) if isinstance(message, dict) else ""
        if replies and role == "user" and text.startswith("<returncode>"):
            return "mini-swe-agent"
        if role not in ("assistant", "ai"):
            continue
        if message.get("tool_calls") or "<function=" in text:
            return "openhands"
        if role == "ai" or isinstance(message.get("action"), str):
            return "swe-agent"
        replies += 1
        if replies > _LOOKED_AT:
            break
    return "swe-agent" if replies and any(_is_prompted(message) for message in messages) else "openhands"


def _is_prompted(message: object) -> bool:
    """Return whether an observation ends in the shell's prompt, as SWE-agent shows it."""
    return isinstance(message, dict) and text_of(content_of(message))[-20:].rstrip().endswith(("bash-$", "\n$"))


def _first_text(row: Row, names: Sequence[str]) -> str:
    return next((text for name in names if (text := string_of(row.get(name)))), "")


def _resolved(row: Row, reward: float | None) -> bool | None:
    for name in _OUTCOMES:
        value = number_of(row.get(name))
        if value in (0.0, 1.0):
            return value == 1.0
    return reward == 1.0 if reward in (0.0, 1.0) else None
