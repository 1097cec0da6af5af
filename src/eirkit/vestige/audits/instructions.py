"""Follows what the user ruled and what was still to do across compactions: kept word for word, in substance, or gone.

A rule is a sentence in the user's own words that says itself that it holds beyond the present turn; pasted and quoted
text holds none, and what is not certain is not listed. Open to-dos come from the agent's own list. A rule that forbids
touching files or running commands can be seen to be broken: where that happens after a compaction dropped it, the row
links both. Conditional rules ("unless …") are never called broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from eirkit.records.analysis import InstructionFate, InstructionKind, Survival
from eirkit.vestige.lines import normalized_line
from eirkit.vestige.trajectory import Call, RecordedTurn, Trajectory, Turn

MOST = 50  # instructions of one run that are followed; the first ones
_SHORTEST, _LONGEST = 8, 300  # characters of a sentence that can be an instruction
_IN_SUBSTANCE = 0.6  # share of an instruction's telling words that one passage must have
_LONGEST_PROMPT = 20_000  # characters of a prompt that may take a rule back
_PASSAGE = 3  # sentences of a passage
_NEGATES = re.compile(
    r"\b(?:avoid|cannot|forb[ai]d\w{0,5}|never|no|nor|not|off[ -]limits|prohibit\w{0,3}|read-only|refrain|unchanged|"
    r"untouched|without)\b|n['’]t\b|\bleave\b.{1,80}\balone\b",
    re.IGNORECASE,
)
_NEGATED = ""  # among the words of a passage: it says what not to do
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
# "Never" and "always" begin an order; "it never returns" and "do not set it" tell, or are said for one occasion.
_ORDERS = re.compile(
    r"\A(?:[-*] |\d{1,2}[.)] )?(?:(?:also|and|but|no|ok|okay|please|remember|so|then|yes)[,:]? )*"
    r"(?:never(?! mind)|always|(?:do not|don['’]t) ever) [a-z`]",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"\b(?:from now on|going forward|at all times|for the rest of (?:this|the|our) (?:session|conversation|chat)|"
    r"(?:every ?time|whenever) you|(?:until|unless) I (?:say|ask|tell|approve|confirm))\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\A(?:can|could|would|will|do(?! not)|does|did|is|are|why|what|how|where|who|which)\b|\?\W{0,3}\Z", re.IGNORECASE
)
_LOGGED = re.compile(r"\A\S{1,200}:\d{1,7}:")  # a line of a compiler or a test
_QUOTES = ("<", "|", ">", "+", "//", "    ")  # how lines begin that are no prose of the user's
_LONGEST_OWN = (
    2_000  # characters of a prompt; a longer one holds pasted text, and which of it the user wrote is unknown
)
_CONDITION = re.compile(r"\b(?:unless|except|without|until|before|if|when|yet|again|too|just)\b", re.IGNORECASE)
_TOUCHES = re.compile(
    r"\b(?:touch|edit|modify|change|delete|remove|write|rewrite|rename|alter|overwrite|reformat)\b", re.IGNORECASE
)
_QUOTED = re.compile(r"`([^`\n]{2,80})`")
_PATH = re.compile(r"[\w.@~*-]{0,80}(?:/[\w.@*-]{1,80}){1,12}/?|\b[\w*-]{1,80}\.[A-Za-z]\w{0,7}\b")
_COMMANDS = {
    "commit": "git commit",
    "push": "git push",
    "rebase": "git rebase",
    "amend": "--amend",
    "force-push": "git push --force",
}
_LETTERS = re.compile(r"\w+")
_WORD = re.compile(r"[\w./@-]{3,}")
_USUAL = """
all also always and any are been could don't for from have into just like make must need never not only please should
sure that the them then there they this use using want was what when which while will with would you your
"""
_COMMON = frozenset(_USUAL.split())
_ENDINGS = ("ing", "ed", "s")  # that a paraphrase may change
# A prompt that takes a rule back, or that allows something: "don't forget" and "you may not" do neither. And words of
# such a prompt that do not say which rule.
_TAKES_BACK = (
    r"(?<!\bcan )(?<!\bmay )no longer|never ?mind|drop (?:the|that|my) rule"
    r"|(?<!\bnot )(?<!n['’]t )(?<!\bnever )(?:forget|ignore|disregard)"
)
_WITHDRAWS = re.compile(
    rf"\b(?:({_TAKES_BACK})|you (?:may|can|are allowed)(?! (?:not|never|no longer)\b|not\b|['’]t)"
    r"|(?:may|can|allowed|fine|ok|okay) now|go ahead|feel free)\b",
    re.IGNORECASE,
)
_ALLOWING = """
about after ahead allow anymore can disregard drop feel fine forget free ignore instruction longer may mind nevermind
now okay rule said
"""
_WITHDRAWING = frozenset(_ALLOWING.split())
_AT_ROOT = "\0"  # before the name of a file: the one in the repository's own folder
_CLOSED = frozenset({"completed", "done", "cancelled", "deleted"})
_TASK = re.compile(r"Task #(\d{1,6}) created")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, as it was given."""

    kind: InstructionKind
    text: str
    turn: int
    files: tuple[str, ...] = ()  # that a rule forbids to touch
    commands: tuple[str, ...] = ()  # that it forbids to run
    id: str = ""  # of a to-do that was written alone


def instruction_fates(trajectory: Trajectory) -> tuple[InstructionFate, ...]:
    """Return what became of every instruction at every break; nothing for runs without breaks."""
    turns = trajectory.turns
    if not any(turn.recorded.broken for turn in turns):
        return ()
    known: dict[str, Instruction] = {}
    todos: list[Instruction] = []
    found: list[InstructionFate] = []
    for turn in turns:
        if turn.recorded.broken is not None and (known or todos):
            found += _at_break(turn, turns, (*known.values(), *todos))
            known = {text: one for text, one in known.items() if _survives(found, turn.number, text)}
            todos = [todo for todo in todos if _survives(found, turn.number, todo.text)]
        asked = turn.recorded.asked or (trajectory.recording.prompt if turn.number == 1 else "")
        if known and _WITHDRAWS.search(asked):
            known = {text: one for text, one in known.items() if not _withdrawn(one, asked)}
        for one in instructions_in(asked, turn.number):
            if len(known) < MOST:
                known.setdefault(one.text, one)
        todos = todos_after(turn, todos)
    return tuple(found)


def _survives(found: Sequence[InstructionFate], cut: int, text: str) -> bool:
    return any(one.cut == cut and one.text == text and one.survival != "gone" for one in found)


def instructions_in(asked: str, turn: int) -> Iterator[Instruction]:
    """Yield what a prompt rules beyond the present turn, sentence by sentence, word for word."""
    if len(asked) > _LONGEST_OWN:
        return
    is_code = False
    for line in asked.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif line.startswith("#"):
            return  # below a heading stands a document
        elif not is_code and not line.startswith(_QUOTES):
            for sentence in map(str.strip, _SENTENCE.split(line)):
                if _is_rule(sentence):
                    yield Instruction("rule", sentence, turn, *_forbidden(sentence))


def _is_rule(sentence: str) -> bool:
    if not _SHORTEST <= len(sentence) <= _LONGEST or _ASKS.search(sentence) or _LOGGED.match(sentence):
        return False
    return bool(_ORDERS.search(sentence) or _LASTS.search(sentence))


def _withdrawn(one: Instruction, asked: str) -> bool:
    """Return whether a prompt takes a rule back: a sentence that allows something names it, or is about the same."""
    words = _telling(one.text)
    things = (*one.files, *(word for word, command in _COMMANDS.items() if command in one.commands))
    for sentence in _SENTENCE.split(asked[:_LONGEST_PROMPT]):
        if found := _WITHDRAWS.search(sentence):
            about = _telling(sentence) - _WITHDRAWING
            least = max(1 if found[1] else 2, _IN_SUBSTANCE * len(about))  # one word may be there by chance
            if any(thing in sentence for thing in things) or len(about & words) >= least:
                return True
    return False


def _forbidden(sentence: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files and the commands that a sentence forbids without a condition."""
    if _CONDITION.search(sentence) or not _NEGATES.search(sentence):
        return (), ()
    quoted = [text.strip() for text in _QUOTED.findall(sentence)]
    commands = [text for text in quoted if " " in text]
    text = sentence.lower()
    named = {*_LETTERS.findall(text), "force-push" if "force-push" in text else ""}
    commands += [command for word, command in _COMMANDS.items() if word in named]
    files = [text.rstrip("/.") for text in (*quoted, *_PATH.findall(sentence)) if " " not in text]
    return (tuple(dict.fromkeys(filter(None, files))) if _TOUCHES.search(sentence) else ()), tuple(commands)


def todos_after(turn: Turn, before: list[Instruction]) -> list[Instruction]:
    """Return the open items of the agent's to-do list after a turn: written as a whole, or item by item."""
    for call in turn.recorded.calls:
        items = _list_of(call)
        if items is not None:
            before = [Instruction("todo", text, turn.number) for text, is_open in items if is_open][:MOST]
        elif call.tool == "TaskCreate" and (made := _TASK.search(call.output)) is not None:
            text = str(call.arguments.get("subject") or call.arguments.get("description") or "")[:_LONGEST]
            before = [*before, Instruction("todo", text, turn.number, id=made[1])][:MOST] if text else before
        elif call.tool == "TaskUpdate" and call.arguments.get("status") in _CLOSED:
            done = str(call.arguments.get("taskId"))
            before = [one for one in before if one.id != done]
    return before


def _list_of(call: Call) -> list[tuple[str, bool]] | None:
    """Return the texts of a to-do list and whether each is open; None if the call writes none."""
    listed = call.arguments.get("todos", call.arguments.get("plan"))
    if not isinstance(listed, list) or call.failed:
        return None
    items = [item for item in listed if isinstance(item, dict)]
    texts = [str(item.get("content") or item.get("step") or item.get("title") or "")[:_LONGEST] for item in items]
    return [(text, item.get("status") not in _CLOSED) for text, item in zip(texts, items, strict=True) if text]


def _at_break(turn: Turn, turns: Sequence[Turn], given: Sequence[Instruction]) -> Iterator[InstructionFate]:
    text = _stayed_text(turn.recorded, turns)
    kept = turn.recorded.kept
    is_known = turn.recorded.broken == "clear" or (bool(text.strip()) and not (kept is not None and kept.is_opaque))
    survivals = survivals_in(text, given)
    for one, survival in zip(given, survivals, strict=True):
        if survival == "gone" and not is_known:
            survival = "unknown"
        broken = broken_by(one, turn.number, turns) if survival == "gone" else None
        yield InstructionFate(turn.number, one.kind, one.text, one.turn, survival, *(broken or (None, "")))


def survivals_in(text: str, given: Sequence[Instruction]) -> list[Survival]:
    """Return how a text keeps each of some instructions: word for word, in substance, or not at all."""
    squeezed, passages = normalized_line(text), list[frozenset[str]]()
    found: list[Survival] = []
    for one in given:
        if normalized_line(one.text) in squeezed:
            found.append("verbatim")
            continue
        passages = passages or _passages(text)
        found.append("substance" if _in_substance(one, passages) else "gone")
    return found


def _stayed_text(recorded: RecordedTurn, turns: Sequence[Turn]) -> str:
    kept = recorded.kept
    if kept is None:
        return recorded.carried
    asked = [turns[number - 1].recorded.asked for number in kept.turns if 0 < number <= len(turns)]
    return "\n".join([recorded.carried, *kept.texts, *asked])


def _passages(text: str) -> list[frozenset[str]]:
    """Return the telling words of every few consecutive sentences."""
    parts = [(sentence, found) for sentence in _SENTENCE.split(text) if (found := _telling(sentence))]
    words = [found | {_NEGATED} if _NEGATES.search(sentence) else found for sentence, found in parts]
    return [frozenset().union(*words[place : place + _PASSAGE]) for place in range(len(words))]


def _telling(text: str) -> frozenset[str]:
    found = (word.strip("./-").lower() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in found if len(word) > 2 and word not in _COMMON)


def _stem(word: str) -> str:
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) > len(end) + 2), "")
    return word.removesuffix(ending) if word.isalpha() else word


def _in_substance(one: Instruction, passages: Sequence[frozenset[str]]) -> bool:
    """Return whether a passage has most of the telling words, or forbids what is done with the same files.

    "Edit it" does not keep "never edit it": of a sentence that forbids, the passage has to forbid something.
    """
    wanted, files = _telling(one.text), frozenset[str]()
    if _NEGATES.search(one.text):
        passages = [words for words in passages if _NEGATED in words]
        files = _telling(" ".join(one.files))
    return bool(wanted) and any(
        len(wanted & words) >= _IN_SUBSTANCE * len(wanted) or (files and files <= words) for words in passages
    )


def broken_by(rule: Instruction, cut: int, turns: Sequence[Turn]) -> tuple[int, str] | None:
    """Return the first turn from a cut on that did what a rule forbids; none after the user named the thing again."""
    if not rule.files and not rule.commands:
        return None
    files = [meant for file in rule.files for meant in _meant(file, turns[: cut - 1])]
    for turn in turns[cut - 1 :]:
        asked = turn.recorded.asked.lower()
        if any(thing.lower() in asked for thing in (*rule.files, *(word for word in _COMMANDS if word in asked))):
            return None
        if turn.recorded.rejected:
            continue
        for write in turn.writes:
            if any(_is_within(write.path, file) for file in files):
                return turn.number, write.path
        for call in turn.recorded.calls:
            command = call.arguments.get("command", call.arguments.get("cmd"))
            if isinstance(command, str) and any(_runs(command, forbidden) for forbidden in rule.commands):
                return turn.number, normalized_line(command)[:_LONGEST]
    return None


def _meant(named: str, turns: Sequence[Turn]) -> Sequence[str]:
    """Return the paths that a rule means: by a bare name the only such file met so far, else the one at the root."""
    if "/" in named or "*" in named or "." not in named.strip("."):
        return (named,)
    met = {read.path for turn in turns for read in turn.reads} | {write.path for turn in turns for write in turn.writes}
    own = {path for path in met if path.rpartition("/")[2] == named}
    return (own.pop(),) if len(own) == 1 else (_AT_ROOT + named,)


def _is_within(path: str, named: str) -> bool:
    """Return whether a path is the named file, or lies in the named folder."""
    if named.startswith(_AT_ROOT):
        return path == named.removeprefix(_AT_ROOT)
    whole, wanted = f"/{path.lstrip('/')}", f"/{named.lstrip('/~.')}"
    return whole.endswith(wanted) or f"{wanted}/" in whole or ("*" in named and fnmatch(whole, f"*{wanted}"))


def _runs(command: str, forbidden: str) -> bool:
    """Return whether one of the commands of a line is the forbidden one, with whatever options."""
    words = forbidden.split()
    parts = (part.split() for part in re.split(r"&&|\|\||[;|\n]", command))
    return any(part[: len(words)] == words or (len(words) == 1 and words[0] in part) for part in parts)
