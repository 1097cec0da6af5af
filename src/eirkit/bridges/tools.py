"""The tools of a task, as agents from outside are offered them: a tool and its arguments come in, a reply goes out.

Six names for everybody; `note` stands for whatever a condition's memory can do. What a run does not allow is listed all
the same and says so, and what an agent does wrong is left to the session, which has a response to every misuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.bridges.episode import UNKNOWN
from eirkit.lacuna.model import Reply, Request, ToolCall
from eirkit.lacuna.models.reading import read_summary_limit
from eirkit.lacuna.protocol import LONGEST_REPLY

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
