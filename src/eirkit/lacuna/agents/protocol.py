"""How a model answers: the commands of agents and the protocols in which they and answers are asked for and read.

- `schema`: the reply is a JSON object under a schema: `work`, then `values`, `answer` or `actions`.
- `tools`: the reply calls tools.
- `text`: an answer is the last line of the reply, `ANSWER t v`; commands are lines that begin with their word.
- `completion`: the reply is the values alone, as a base model goes on with a line (`agents/completion.py`).

Nothing else is read from a reply: what is not in the asked form becomes a `Fault`, never a guess or an exception.
Emphasis, backticks and quotes around a line or its words do not matter. What a model thinks aloud between tags such as
`<think>` is not part of its reply. Of a reply that was cut at the limit on tokens, or withheld in part, the last line
is not read, because its end is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import (
    FILTER,
    LENGTH,
    REFUSAL,
    ActionForm,
    Form,
    Model,
    ModelWrapper,
    NumberForm,
    Reply,
    Request,
    TextForm,
    Tool,
    ToolCall,
    set_aside,
)
from eirkit.lacuna.tasks.task import Payload
from eirkit.records.settings import COMPLETION, SCHEMA, TEXT, TOOLS

if TYPE_CHECKING:  # whoever reads recorded replies needs no tasks
    from eirkit.lacuna.tasks.view import ProbeView, Visible

LONGEST_REPLY = 65_536  # characters that are read
MOST_ACTIONS = 16  # actions taken from one reply
LONGEST_TEXT = 4_096  # characters of a note or query
MOST_VALUES = 1_024  # values taken from one answer; more than any record has
_TOO_LARGE = 10**20  # stands for every larger number, and is out of every range


class Answer(Struct, frozen=True, gc=False):
    t: int
    values: Payload


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
class Forget:
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
class Calculate:
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Fault:
    """A part of a reply that cannot be used; `kind` is a stable code, `detail` is shown to the agent."""

    kind: str  # malformed | wrong-id | wrong-width | out-of-range | unknown-action | too-long | too-many | a SILENCE
    detail: str
    word: str = ""  # the intended command, if known


Action = Answer | Next | Read | Recompute | Write | Forget | Drop | Note | Search | Calculate | Done

# For each command: its word, its action, its arguments, and one line for the prompt and the tool description.
_TARGETED: dict[str, type[Read] | type[Recompute] | type[Write] | type[Forget] | type[Drop]] = {
    "READ": Read,
    "RECOMPUTE": Recompute,
    "WRITE": Write,
    "FORGET": Forget,
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
    "FORGET": "FORGET t: delete the record of step t from memory",
    "DROP": "DROP t: remove entry t from memory",
    "NOTE": "NOTE text: add a line to your notes",
    "SEARCH": "SEARCH text: search your memory",
    "CALCULATE": (
        "CALCULATE t t: apply the rule to this step's input and the answers of the steps named, see it, then answer"
    ),
    "DONE": "DONE: end the task",
}
# Why a reply has no command: kinds of faults that are not about how a command was written.
SILENCE: dict[str, str] = {
    "empty": "the reply is empty; write a command on a line of its own",
    "truncated": "the reply was cut at the limit on tokens; its last line was not read",
    "filtered": "the provider's content filter withheld the reply",
    "refused": "the reply is a refusal",
}
# After these a model is asked again; after the others it would say the same.
ASKED_AGAIN = ("malformed", "wrong-id", "wrong-width", "out-of-range", "unknown-action", "empty")
_SILENT = {LENGTH: "truncated", FILTER: "filtered", REFUSAL: "refused"}
_BEFORE = " \t>#-*+"  # quotes, headings and bullets before a line
_AROUND = "*`_\"'\u201c\u201d"  # emphasis, backticks and quotes around a word


# --- what is asked for


def fields_of(word: str) -> tuple[str, ...]:
    """Return the names of the arguments of a command, in the order of its line of text."""
    if word == "ANSWER":
        return "t", "values"
    if word == "CALCULATE":
        return ("steps",)
    if word in _TARGETED:
        return ("t",)
    return ("text",) if word in _TEXTUAL else ()


def ask(
    messages: tuple[Message, ...], form: Form, protocol: str = TEXT, visible: Visible | ProbeView | None = None
) -> Request:
    """Return the request for a reply of a form under a protocol."""
    if protocol == SCHEMA:
        return Request(messages, schema=schema_of(form), form=form, visible=visible)
    if protocol == TOOLS:
        return Request(messages, tools_of(form), form=form, visible=visible)
    return Request(messages, form=form, visible=visible)


def schema_of(form: Form) -> Mapping[str, Any]:
    """Return the JSON schema of a reply: a field for the work, so that a model may think, before what is read."""
    width, q = (0, 0) if isinstance(form, TextForm) else (form.width, form.q)
    return _schema(form.commands if isinstance(form, ActionForm) else (), width, q)


@lru_cache(maxsize=256)  # the same for every step of a run
def _schema(commands: tuple[str, ...], width: int, q: int) -> dict[str, Any]:
    work = {"type": "string", "description": "Your working, which is not read."}
    if commands:
        one = [
            _object({"action": {"type": "string", "enum": [word.lower()]}} | _arguments(word, width, q))
            for word in commands
        ]
        listed = {"type": "array", "minItems": 1, "maxItems": MOST_ACTIONS, "items": {"anyOf": one}}
        return _object({"work": work, "actions": listed})
    if width:
        return _object({"work": work, "values": _values(width, q)})
    return _object({"work": work, "answer": {"type": "string", "description": "What you say to the user."}})


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def _values(width: int, q: int) -> dict[str, Any]:
    items = {"type": "integer", "minimum": 0, "maximum": q - 1}
    return {"type": "array", "items": items, "minItems": width, "maxItems": width}


def _arguments(word: str, width: int, q: int) -> dict[str, Any]:
    step = {"type": "integer", "minimum": 1}
    kinds: dict[str, dict[str, Any]] = {
        "t": step,
        "values": _values(width, q),
        "steps": {"type": "array", "items": step},
        "text": {"type": "string", "maxLength": LONGEST_TEXT},
    }
    return {name: kinds[name] for name in fields_of(word)}


def tools_of(form: Form) -> tuple[Tool, ...]:
    """Return the tools with which a reply of this form is given."""
    if not isinstance(form, ActionForm):
        return (Tool("answer", "submit the answer", schema_of(form)),)
    return tuple(
        Tool(word.lower(), USAGE[word].partition(": ")[2], _object(_arguments(word, form.width, form.q)))
        for word in form.commands
    )


def how_to_reply(commands: tuple[str, ...], width: int, protocol: str) -> list[str]:
    """Return the lines of the rules that say how to reply."""
    only_answers = commands == ("ANSWER",)
    if protocol == TEXT:
        head = "Reply with " + ("one line:" if only_answers else "commands, each on a line of its own:")
        return [head, *(USAGE[word] for word in commands)]
    if only_answers:
        form = NumberForm(0, width, 0)
        return [
            f"Reply with a JSON object: {show_form(form, SCHEMA)}"
            if protocol == SCHEMA
            else "Reply by calling the tool answer."
        ]
    described = [f"{word.lower()}({', '.join(fields_of(word))}): {USAGE[word].partition(': ')[2]}" for word in commands]
    if protocol == TOOLS:
        return ["Reply by calling tools, which bear the names of these commands:", *(USAGE[word] for word in commands)]
    return [
        'Reply with a JSON object: {"work": "…", "actions": […]}. The actions are carried out in order:',
        *described,
    ]


def show_form(form: Form, protocol: str) -> str:
    """Return the form of a reply as it is quoted to a model."""
    if isinstance(form, ActionForm):
        return "a command on a line of its own" if protocol == TEXT else '{"work": "…", "actions": […]}'
    values = " ".join("v" * form.width) if isinstance(form, NumberForm) else ""
    if protocol == TEXT:
        return f"ANSWER {form.t} {values}" if isinstance(form, NumberForm) else "ANSWER: your answer"
    if protocol == COMPLETION:
        return values
    answer = f'"values": [{values.replace(" ", ", ")}]' if isinstance(form, NumberForm) else '"answer": "…"'
    return f'{{"work": "…", {answer}}}'


def ask_again(request: Request, form: Form, protocol: str) -> Request:
    """Return a request with the expected form quoted at its end, for a model whose reply had no answer."""
    how = {TEXT: "The last line of your reply must be", TOOLS: "Call the tool answer with"}.get(protocol, "Reply with")
    *before, last = request.messages
    text = f"{last.content}\nNo answer was found in your last reply. {how}: {show_form(form, protocol)}"
    return replace(request, messages=(*before, Message(last.role, text)))


# --- what is read


def spoken_part(reply: Reply) -> str:
    """Return the part of a reply's text that is read."""
    said = set_aside(reply.text)[0]
    return said[: said.rfind("\n") + 1] if reply.finish in _SILENT else said


def silence(reply: Reply) -> Fault | None:
    """Return why a reply without a usable command has none, if that is not how the command was written."""
    kind = _SILENT.get(reply.finish)
    if kind is None and not reply.calls and not spoken_part(reply).strip():
        kind = "empty"
    return None if kind is None else Fault(kind, SILENCE[kind])


def read_reply(reply: Reply, protocol: str = TEXT) -> list[Action | Fault]:
    """Return the actions of a reply in order; of several answers to one step the last counts."""
    if protocol == COMPLETION:
        protocol = TEXT  # what an agent does beside its answers is written by rule
    if reply.calls:
        calls = list(reply.calls)
        if reply.finish in _SILENT and "" in _given(calls[-1]):
            calls.pop()  # cut in the middle of its arguments
        found = [_from_call(call.name, call.arguments) for call in calls]
    elif protocol == SCHEMA:
        listed = _document(reply).get("actions")
        found = [
            _from_call(one.get("action"), one) if isinstance(one, Mapping) else _malformed(protocol)
            for one in (listed if isinstance(listed, list) else ())
        ]
    else:
        found = _from_lines(spoken_part(reply)[:LONGEST_REPLY]) if protocol == TEXT else []
    last = {action.t: action for action in found if isinstance(action, Answer)}
    found = [one for one in found if not isinstance(one, Answer) or one is last[one.t]]
    if len(found) > MOST_ACTIONS:
        found[MOST_ACTIONS:] = [Fault("too-many", f"everything after the first {MOST_ACTIONS} actions was ignored")]
    if len(reply.text) > LONGEST_REPLY and protocol == TEXT and not reply.calls:
        found.append(Fault("too-long", f"only the first {LONGEST_REPLY} characters were read"))
    if reply.finish in _SILENT and (protocol == TEXT or not found) and (cut := silence(reply)):
        found.append(cut)
    return found or [silence(reply) or _malformed(protocol)]


def _malformed(protocol: str) -> Fault:
    hint = {SCHEMA: "reply with the JSON object", TOOLS: "call a tool"}.get(protocol, "write one on a line of its own")
    return Fault("malformed", f"no command found; {hint}")


def read_answer(reply: Reply, form: NumberForm, protocol: str = TEXT) -> Answer | Fault:
    """Return the answer of a reply to a request whose only answer is a step's values."""
    if reply.calls:
        name, given = _tool_word(reply.calls[-1].name), _given(reply.calls[-1])
        if name == "ANSWER":
            found = _answer(_arguments_of(name, {"t": form.t, **given}))
            return found if isinstance(found, Answer) else silence(reply) or found
    elif protocol == SCHEMA:
        found = _answer(_arguments_of("ANSWER", {"t": form.t, "values": _document(reply).get("values")}))
        if isinstance(found, Answer):
            return found
    elif protocol == COMPLETION:
        found = _answer([form.t, *_numbers(["", *reply.text.split()])[1:]])
        if isinstance(found, Answer):
            return found
    elif protocol == TEXT:
        # Scripted agents reply with one plain line, and make millions of them.
        is_line = reply.text.startswith("ANSWER ") and "\n" not in reply.text and reply.finish not in _SILENT
        found = _answer(_numbers(reply.text.split()[1:])) if is_line else _last_line(reply)
        if isinstance(found, Answer):
            return found
        return silence(reply) or found
    return silence(reply) or Fault("malformed", f"the reply has not the form {show_form(form, protocol)}", "ANSWER")


def _last_line(reply: Reply) -> Answer | Fault:
    line = next((line for line in reversed(_lines(spoken_part(reply)[-LONGEST_REPLY:])) if line), [])
    return (
        _answer(_numbers(line[1:]))
        if line[:1] == ["ANSWER"]
        else Fault("malformed", "no ANSWER line at the end", "ANSWER")
    )


def _lines(text: str) -> list[list[str]]:
    """Return the words of each line, without what decorates them; a line of decoration alone has none."""
    return [
        [bare for word in line.lstrip(_BEFORE).split() if (bare := word.strip(_AROUND))] for line in text.split("\n")
    ]


def _from_lines(text: str) -> list[Action | Fault]:
    """Return the commands of a text, one on each line; an answer that prose follows is none, it may be taken back."""
    found: list[Action | Fault] = []
    follows_answer = False
    for line in text.split("\n"):
        first, rest = [*line.lstrip(_BEFORE).split(None, 1), "", ""][:2]
        word = first.strip(_AROUND).rstrip(".!").strip(_AROUND)
        name = word.rstrip(":")
        if name in _TEXTUAL:
            found.append(_textual(name, " ".join(rest.split()).strip(" *`_")))
        elif name in USAGE:
            (words,) = _lines(rest if name == word else f": {rest}")  # a colon is part of no other command
            found.append(_from_words(name, words))
        elif word and follows_answer:
            found[-1] = Fault("malformed", "what follows the answer is no command; write ANSWER last", "ANSWER")
        follows_answer = bool(found) and isinstance(found[-1], Answer)
    return found


def _from_words(word: str, words: list[str]) -> Action | Fault:
    """Return the command that a word and the words after it on its line make."""
    if word not in _BARE:
        return _from_numbers(word, _numbers(words))
    return Fault("malformed", f"write {word} alone on its line", word) if "".join(words).strip(".!") else _BARE[word]()


def _numbers(words: list[str]) -> list[int]:
    """Return the numbers that words are, the first perhaps as a label; -1 for each that is none."""
    if words:
        words = [words[0].removeprefix("A_"), *words[1:]]
        words[-1] = words[-1].rstrip(".").strip(_AROUND)
    return [-1 if (number := _number(word)) is None else number for word in words]


def _from_numbers(word: str, numbers: list[int]) -> Action | Fault:
    """Return the command with these arguments; what is no number is below 0."""
    if word == "ANSWER":
        return _answer(numbers)
    is_clean = min(numbers, default=0) >= 0
    if word == "CALCULATE" and is_clean:
        return Calculate(tuple(numbers[:MOST_VALUES]))
    if word in _TARGETED and len(numbers) == 1 and is_clean:
        return _TARGETED[word](numbers[0])
    return Fault("malformed", f"write {word} t", word)


def _answer(numbers: list[int]) -> Answer | Fault:
    if len(numbers) > 1 and min(numbers) >= 0:
        return Answer(numbers[0], tuple(numbers[1 : MOST_VALUES + 1]))
    return Fault("malformed", "write ANSWER t v with numbers, such as ANSWER 7 0042", "ANSWER")


def _number(word: Any) -> int | None:
    """Return a whole number that is not negative, from a text or from JSON; None for anything else."""
    match word:
        case str() if word.isascii() and word.isdigit():
            return min(int(word.lstrip("0")[:21] or "0"), _TOO_LARGE)
        case bool():
            return None
        case int() if word >= 0:
            return min(word, _TOO_LARGE)
        case float() if word >= 0 and word.is_integer():
            return min(int(word), _TOO_LARGE)
    return None


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


def _given(call: ToolCall) -> Mapping[str, Any]:
    """Return the arguments of a call; a plug-in may return anything in their place."""
    return call.arguments if isinstance(call.arguments, Mapping) else {}


def _tool_word(name: Any) -> str:
    """Return the word of a tool; some models write `functions.answer`."""
    return str(name).replace(":", ".").replace("/", ".").rpartition(".")[2].upper()


def _from_call(name: Any, given: Any) -> Action | Fault:
    """Return the action of a tool call, or of an object in a list of actions."""
    word = _tool_word(name)
    if word not in USAGE:
        return Fault("unknown-action", f"no action named {str(name)[:40]!r}")
    if word in _BARE:
        return _BARE[word]()
    if word in _TEXTUAL:
        text = given.get("text") if isinstance(given, Mapping) else None
        return _textual(word, " ".join(text.split()) if isinstance(text, str) else "")
    return _from_numbers(word, _arguments_of(word, given))


def _arguments_of(word: str, given: Any) -> list[int]:
    """Return the arguments of a call as numbers, in the order of its line of text; -1 for what is none."""
    numbers: list[int] = []
    for field in fields_of(word):
        value = given.get(field) if isinstance(given, Mapping) else None
        items = value if isinstance(value, list | tuple) else value.split() if isinstance(value, str) else [value]
        numbers += [-1 if (number := _number(item)) is None else number for item in items[: MOST_VALUES + 1]]
    return numbers


def _document(reply: Reply) -> Mapping[str, Any]:
    """Return the JSON object that a reply is, in a fence or not; an empty one if it is none."""
    text = set_aside(reply.text)[0].strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[:-3].partition("\n")[2]
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def read_text_answer(reply: Reply, protocol: str = TEXT) -> str | Fault:
    """Return the text that a reply answers: a field, or the last line `ANSWER: text`.

    Below it at most two lines of two words may stand, as standing instructions of the user may demand.
    """
    text: Any = None
    if reply.calls:
        text = _given(reply.calls[-1]).get("answer")
    elif protocol == SCHEMA:
        text = _document(reply).get("answer")
    elif protocol == TEXT:
        below: list[int] = []  # words of each line
        for line in reversed(spoken_part(reply)[-LONGEST_REPLY:].split("\n")):
            if (answer := _worded(line)) is not None:
                text = answer if len(below) <= 2 and max(below, default=0) <= 2 else None
                break
            below += [len(line.split())] if line.strip() else []
    found = printable(text).strip() if isinstance(text, str) else ""
    return (
        found or silence(reply) or Fault("malformed", f"the reply has not the form {show_form(TextForm(), protocol)}")
    )


def _worded(line: str) -> str | None:
    """Return what follows `ANSWER:` on a line; None if it does not begin so."""
    head, colon, rest = line.partition(":")
    return rest.strip(f" \t{_AROUND}") if colon and head.strip(f"{_BEFORE}{_AROUND}") == "ANSWER" else None


def said_to_user(reply: Reply) -> str:
    """Return what a reply about a conversation says to the user: without thoughts and the words of the form."""
    if reply.calls:
        return str(_given(reply.calls[-1]).get("answer", ""))
    if "answer" in (document := _document(reply)):
        return str(document["answer"])
    lines = set_aside(reply.text)[0].split("\n")
    return "\n".join([line if (answer := _worded(line)) is None else answer for line in lines]).strip()


# --- what scripted agents write


def as_text(action: Action) -> str:
    """Return the line of text of an action; `read_reply` is the inverse."""
    word = type(action).__name__.upper()
    match action:
        case Answer(t, values):
            return f"{word} {t} {' '.join(map(str, values))}"
        case Calculate(steps):
            return " ".join([word, *map(str, steps)])
        case Read(t) | Recompute(t) | Write(t) | Forget(t) | Drop(t):
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
        case Calculate(steps):
            arguments = {"steps": list(steps)}
        case Read(t) | Recompute(t) | Write(t) | Forget(t) | Drop(t):
            arguments = {"t": t}
        case Note(text) | Search(text):
            arguments = {"text": text}
    return ToolCall(type(action).__name__.lower(), arguments)


def comply(reply: Reply, request: Request) -> Reply:
    """Return a reply in text, as scripted agents write it, in the form that its request asks for."""
    form = request.form
    if form is None or (request.schema is None and not request.tools):
        return reply
    if isinstance(form, TextForm):
        answer = read_text_answer(reply)
        return _structured(
            reply, request, {} if isinstance(answer, Fault) else {"work": "", "answer": said_to_user(reply)}
        )
    calls = [as_call(action) for action in read_reply(reply) if not isinstance(action, Fault)]
    if isinstance(form, ActionForm):
        if request.tools:
            return replace(reply, calls=tuple(calls))
        actions = [{"action": call.name, **call.arguments} for call in calls]
        return _structured(reply, request, {"work": "", "actions": actions} if actions else {})
    given = [call.arguments["values"] for call in calls if call.name == "answer"]
    work = "\n".join([line for line in reply.text.split("\n") if not line.startswith("ANSWER ")])
    return _structured(reply, request, {"work": work, "values": given[-1]} if given else {})


class InForm(ModelWrapper):
    """A script that writes text, whose replies are given in the form that each request asks for."""

    def __init__(self, model: Model) -> None:
        self.model = model

    async def reply(self, request: Request) -> Reply:
        return comply(await self.model.reply(replace(request, tools=(), schema=None)), request)

    async def close(self) -> None:
        await self.model.close()

    def settings(self) -> Mapping[str, Any]:
        return self.model.settings()


def _structured(reply: Reply, request: Request, document: Mapping[str, Any]) -> Reply:
    if not document:
        return reply
    if request.tools:
        return replace(reply, calls=(ToolCall("answer", document),))
    return replace(reply, text=json.dumps(document))
