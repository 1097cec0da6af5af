"""The commands of agents (`ANSWER t v`, `READ t` …) as lines and as tool calls: their syntax, limits and parser.

A command is a line that starts with its word; Markdown around it, leading zeros and commas do not matter. A word in
capitals is always a command. In other letters it is one only if the rest of the line has exactly the command's form, so
that "Next, I add both" stays prose; NOTE and SEARCH take any text and therefore need capitals. What cannot be parsed
becomes a `Fault`, never an exception, and every pattern takes time linear in the reply.

What a model thinks aloud between tags such as `<think>` is not part of its reply. Of a reply that was cut at the limit
on tokens, or withheld in part, the last line is not read, because its end is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from msgspec import Struct

from eirkit.lacuna.agents.answers import MARK, readings
from eirkit.lacuna.agents.recognition import plain_digits
from eirkit.lacuna.models.model import FILTER, LENGTH, REFUSAL, Reply, Tool, ToolCall, set_aside
from eirkit.lacuna.tasks.task import Payload

LONGEST_REPLY = 65_536  # characters that are parsed; the rest is ignored and reported
MOST_ACTIONS = 16  # actions taken from one reply
LONGEST_TEXT = 4_096  # characters of a note or query
MOST_VALUES = 1_024  # values taken from one tool call; more than any record has


class Answer(Struct, frozen=True, gc=False):
    t: int
    values: Payload
    grouped: Payload | None = None  # the values if commas separate thousands, where that is another reading


@dataclass(frozen=True, slots=True)
class Next:
    pass


@dataclass(frozen=True, slots=True)
class Read:
    t: int


@dataclass(frozen=True, slots=True)
class Recompute:
    t: int


@dataclass(frozen=True, slots=True)
class Write:
    t: int


@dataclass(frozen=True, slots=True)
class Drop:
    t: int  # a step in key–value memory, a line number in scratch text


@dataclass(frozen=True, slots=True)
class Note:
    text: str


@dataclass(frozen=True, slots=True)
class Search:
    query: str


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """A part of a reply that cannot be used; `kind` is a stable code, `detail` is shown to the agent."""

    kind: str  # malformed | wrong-id | wrong-width | out-of-range | unknown-action | too-long | too-many | a SILENCE
    detail: str
    word: str = ""  # the intended command, if known


Action = Answer | Next | Read | Recompute | Write | Drop | Note | Search | Done

# For each command: its word, its action, its arguments, and one line for the prompt and the tool description.
_TARGETED: dict[str, type[Read] | type[Recompute] | type[Write] | type[Drop]] = {
    "READ": Read,
    "RECOMPUTE": Recompute,
    "WRITE": Write,
    "DROP": Drop,
}
_TEXTUAL: dict[str, type[Note] | type[Search]] = {"NOTE": Note, "SEARCH": Search}
_BARE: dict[str, type[Next] | type[Done]] = {"NEXT": Next, "DONE": Done}

USAGE: dict[str, str] = {
    "ANSWER": "ANSWER t v: submit the answer v of step t (several values separated by spaces)",
    "NEXT": "NEXT: reveal the next step",
    "READ": "READ t: get the answer you submitted for step t",
    "RECOMPUTE": "RECOMPUTE t: have step t computed again from its inputs",
    "WRITE": "WRITE t: keep the answer of step t in memory",
    "DROP": "DROP t: remove entry t from memory",
    "NOTE": "NOTE text: add a line to your notes",
    "SEARCH": "SEARCH text: search your memory",
    "DONE": "DONE: end the task",
}

# What follows a repetition here is decided within a few characters, so no input makes these patterns slow. `re.ASCII`
# excludes digits of other alphabets and letters that merely case-fold to ours.
_END = r"(?:\b|_+(?!\w))[*`_]*"  # end of the word: NEXT_STEP is a name, _NEXT_ a command in Markdown emphasis
_LINE = re.compile(
    rf"^[ \t>*`_#\-]*(ANSWER|NEXT|READ|RECOMPUTE|WRITE|DROP|NOTE|SEARCH|DONE){_END}(.*)$",
    re.ASCII | re.IGNORECASE | re.MULTILINE,
)
_ANSWER_LINE = re.compile(rf"^[ \t>*`_#\-]*(ANSWER){_END}(.*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_PLAIN_ANSWER = re.compile(r"ANSWER ([0-9]{1,6}) ([0-9]{1,20}(?: [0-9]{1,20})*)")
# These match what follows the word, with single spaces and without a full stop.
_LABEL = re.compile(r"(?:step ?|t ?= ?|A_)?0*([0-9]{1,6})", re.ASCII | re.IGNORECASE)
_ANSWER = re.compile(
    r"(?:step ?|t ?= ?|A_)?0*([0-9]{1,6})(?: ?[:=] ?| ?, | )(?:v ?= ?)?([0-9\[(][0-9 ,;\[\]()]*)",
    re.ASCII | re.IGNORECASE,
)
_MARKUP = re.compile(r"\\boxed ?\{|[\"'$*`{}\u201c\u201d]|(?<=[0-9])_(?=[0-9]{3})|(?<=[0-9])\.0{1,2}(?![0-9])")
_REMARK = re.compile(r" (?:#|//|because\b|since\b).*", re.IGNORECASE)  # after an answer, on its line
_DECORATION = " \t:*`_"
# Why a reply has no command: kinds of faults that are not about how a command was written.
SILENCE: dict[str, str] = {
    "empty": "the reply is empty; write a command on a line of its own",
    "truncated": "the reply was cut at the limit on tokens; its last line was not read",
    "filtered": "the provider's content filter withheld the reply",
    "refused": "the reply is a refusal",
}
_SILENT = {LENGTH: "truncated", FILTER: "filtered", REFUSAL: "refused"}


def spoken_part(reply: Reply) -> str:
    """Return the part of a reply's text that is read for commands."""
    said = set_aside(reply.text)[0]
    return said[: said.rfind("\n") + 1] if reply.finish in _SILENT else said


def silence(reply: Reply) -> Fault | None:
    """Return why a reply without a usable command has none, if that is not how the command was written."""
    kind = _SILENT.get(reply.finish)
    if kind is None and not reply.calls and not spoken_part(reply).strip():
        kind = "empty"
    return None if kind is None else Fault(kind, SILENCE[kind])


def read_reply(reply: Reply) -> list[Action | Fault]:
    """Return the actions of a reply in order: its tool calls if it made any, else its command lines."""
    found = list(islice(_actions(reply, _LINE, slice(LONGEST_REPLY)), MOST_ACTIONS + 1))
    if len(found) > MOST_ACTIONS:
        found[-1] = Fault("too-many", f"everything after the first {MOST_ACTIONS} actions was ignored")
    if len(reply.text) > LONGEST_REPLY and not reply.calls:
        found.append(Fault("too-long", f"only the first {LONGEST_REPLY} characters were read"))
    if reply.finish in _SILENT and (cut := silence(reply)):
        found.append(cut)
    return found or [silence(reply) or Fault("malformed", "no command found; write one on a line of its own")]


def read_answers(reply: Reply) -> tuple[list[Answer], Fault | None]:
    """Return the answers of a reply and its first fault, for sessions whose only command is ANSWER.

    The end of a long reply is parsed, not its beginning, because a model that thinks aloud answers last.
    """
    if not reply.calls and reply.finish not in _SILENT and (plain := _PLAIN_ANSWER.fullmatch(reply.text)):
        # Fast path: most replies are one plain line, and scripted agents make millions. The general rules agree.
        return [Answer(int(plain.group(1)), tuple(map(int, plain.group(2).split())))], None
    actions = list(_actions(reply, _ANSWER_LINE, slice(-LONGEST_REPLY, None)))
    answers = [action for action in actions if isinstance(action, Answer)]
    faults = (action for action in actions if isinstance(action, Fault))
    return answers, next(faults, None) if answers else silence(reply) or next(faults, None)


def after_answer(reply: Reply, only_answers: bool = True) -> str:
    """Return what the text of a reply says after the last line that is read as an answer; nothing if none is.

    Args:
        only_answers: ANSWER is the session's only command; otherwise lines that are read as others are left out.
    """
    said = spoken_part(reply)[-LONGEST_REPLY:]
    ends = [line.end() for line in _ANSWER_LINE.finditer(said) if isinstance(_from_line("ANSWER", line[2]), Answer)]
    rest = said[ends[-1] :] if ends else ""
    if only_answers:
        return rest
    return _LINE.sub(lambda line: line[0] if isinstance(_command(line), Fault | None) else "", rest)


def _actions(reply: Reply, lines: re.Pattern[str], part: slice) -> Iterator[Action | Fault]:
    if reply.calls:
        cut = reply.finish in _SILENT and "" in reply.calls[-1].arguments  # in the middle of its arguments
        yield from map(_from_call, reply.calls[:-1] if cut else reply.calls)
        return
    for line in lines.finditer(spoken_part(reply)[part]):
        action = _command(line)
        if action is not None:
            yield action


def _command(line: re.Match[str]) -> Action | Fault | None:
    """Return what a line that starts with the word of a command is read as; None if it is prose."""
    word = line[1]
    action = _from_line(word.upper(), line[2])
    return action if word.isupper() or not (isinstance(action, Fault) or word.upper() in _TEXTUAL) else None


def _from_line(word: str, rest: str) -> Action | Fault:
    if word == "ANSWER" and not rest.isascii():
        rest = MARK.sub("", plain_digits(rest))
    rest = " ".join(rest.split()).strip(_DECORATION)
    if word in _TEXTUAL:
        return _textual(word, rest)
    rest = rest.removesuffix(".").strip(_DECORATION)  # a full stop may be inside or outside the Markdown
    if word == "ANSWER":
        return _answer(rest)
    if word in _TARGETED:
        label = _LABEL.fullmatch(rest)
        return _TARGETED[word](int(label.group(1))) if label else Fault("malformed", f"write {word} t", word)
    return Fault("malformed", f"write {word} alone on its line", word) if rest.strip(".!") else _BARE[word]()


def _answer(rest: str) -> Answer | Fault:
    found = _ANSWER.fullmatch(rest) or _ANSWER.fullmatch(_MARKUP.sub("", _REMARK.sub("", rest)))
    values, grouped = readings(found.group(2)) if found else ((), ())
    if found is None or not values:
        return Fault("malformed", "write ANSWER t v with numbers, such as ANSWER 7 0042", "ANSWER")
    return Answer(int(found.group(1)), values, None if grouped == values else grouped)


def _textual(word: str, text: str) -> Action | Fault:
    clean = printable(text)
    if not clean:
        return Fault("malformed", f"{word} needs some text", word)
    if len(clean) > LONGEST_TEXT:
        return Fault("too-long", f"{word} takes at most {LONGEST_TEXT} characters", word)
    return _TEXTUAL[word](clean)


def printable(text: str) -> str:
    """Return the text without control characters and lone surrogates."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def _from_call(call: ToolCall) -> Action | Fault:
    """Parse a tool call by the rules of its line of text, so that the two interfaces agree."""
    word = re.split(r"[.:/]", str(call.name))[-1].upper()  # some models write `functions.answer`
    if word not in USAGE:
        return Fault("unknown-action", f"no action named {str(call.name)[:40]!r}")
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    parts = [_flat(given[name]) for name in _fields(word) if given.get(name) is not None]
    return _from_line(word, " ".join(parts))


def _fields(word: str) -> tuple[str, ...]:
    """Return the names of a tool's arguments, in the order of its line of text."""
    if word == "ANSWER":
        return "t", "values"
    if word in _TARGETED:
        return ("t",)
    return ("text",) if word in _TEXTUAL else ()


def _flat(value: Any) -> str:
    """Return an argument as text; an unusable value becomes a word that no pattern matches."""
    match value:
        case str():
            return value[:LONGEST_REPLY]
        case bool():
            return "?"
        case int():
            return str(value) if abs(value) < 10**20 else "9" * 20
        case float() if value.is_integer():
            return _flat(int(value))
        case [*items] if not any(isinstance(item, (list, tuple)) for item in items):
            return " ".join(_flat(item) for item in items[:MOST_VALUES])
    return "?"


def tools(commands: tuple[str, ...]) -> tuple[Tool, ...]:
    """Return the commands as tool definitions."""
    return tuple(Tool(word.lower(), USAGE[word].partition(": ")[2], _schema(word)) for word in commands)


def _schema(word: str) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "t": {"type": "integer", "minimum": 1},
        "values": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "text": {"type": "string", "maxLength": LONGEST_TEXT},
    }
    fields = {name: kinds[name] for name in _fields(word)}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def as_text(action: Action) -> str:
    """Return the line of text of an action; `read_reply` is the inverse."""
    word = type(action).__name__.upper()
    match action:
        case Answer(t, values):
            return f"{word} {t} {' '.join(map(str, values))}"
        case Read(t) | Recompute(t) | Write(t) | Drop(t):
            return f"{word} {t}"
        case Note(text) | Search(text):
            return f"{word} {text}"
        case _:
            return word


def as_call(action: Action) -> ToolCall:
    """Return the tool call of an action; `read_reply` is the inverse."""
    arguments: dict[str, Any] = {}
    match action:
        case Answer(t, values):
            arguments = {"t": t, "values": list(values)}
        case Read(t) | Recompute(t) | Write(t) | Drop(t):
            arguments = {"t": t}
        case Note(text) | Search(text):
            arguments = {"text": text}
    return ToolCall(type(action).__name__.lower(), arguments)
