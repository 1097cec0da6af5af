"""Models that misbehave: what they say, how they say it, and what their servers do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eirkit.testing.selftest.behavior import Check, Observed, PlantedBehavior
from eirkit.testing.selftest.planted import Form, PlantedTurn, Traits
from eirkit.testing.selftest.server import Said

Speech = Callable[[PlantedTurn, list[str]], tuple[Said, Form]]


def _worded(word: Callable[[int, int], str]) -> Speech:
    """Return a speech that words answers in its own way, readable for a person, and commands as they are."""

    def speak(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
        if (found := re.fullmatch(r"ANSWER (\d+) (\d+)", lines[0])) is None:
            return Said("\n".join(lines)), "plain"
        return Said(word(int(found[1]), int(found[2]))), "plain"

    return speak


def _sometimes(share: float, said: Said, form: Form) -> Speech:
    """Return a speech that says this in a share of its turns, and otherwise what is meant."""
    return lambda turn, lines: (said, form) if turn.chance("speech") < share else (Said("\n".join(lines)), "plain")


def _thinks(before: str, *, apart: bool = False) -> Speech:
    """Return a speech with thoughts before or beside what is meant."""
    if apart:
        return lambda turn, lines: (Said("\n".join(lines), reasoning=before), "plain")
    return lambda turn, lines: (Said(f"{before}{chr(10).join(lines)}"), "plain")


def _by_tools(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    """Call all commands of a turn at once, as tools."""
    return Said(None, finish="tool_calls", calls=tuple(map(_as_call, lines))), "plain"


def _by_schema(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    """Put the answer, or all commands of a turn, into an object."""
    calls = list(map(_as_call, lines))
    if "NEXT" in turn.commands:
        return Said(json.dumps({"work": "", "actions": [{"action": name, **given} for name, given in calls]})), "plain"
    return Said(json.dumps({"work": "I add the values.", "values": calls[-1][1]["values"]})), "plain"


def _in_own_words(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    if not lines[0].startswith("ANSWER") or turn.chance("speech") >= 0.1:
        return Said("\n".join(lines)), "plain"
    _, t, value = lines[0].split()
    return Said(f"The answer of step {t} is {value}."), "garbled"


def _as_call(line: str) -> tuple[str, dict[str, object]]:
    word, _, rest = line.partition(" ")
    if word == "ANSWER":
        t, value = rest.split()
        return "answer", {"t": int(t), "values": [int(value)]}
    if word in ("WRITE", "READ", "DROP"):
        return word.lower(), {"t": int(rest)}
    return word.lower(), {"text": rest} if rest else {}


def refusing(status: int, *numbers: int) -> Callable[[int, Mapping[str, Any]], Said | None]:
    """Return a server that refuses some of its requests, by number."""
    said = Said(status=status, error="planted", headers=(("Retry-After", "0"),))
    return lambda number, body: said if number in numbers else None


def _no_system(number: int, body: Mapping[str, Any]) -> Said | None:
    roles = [one["role"] for one in body["messages"]]
    return Said(status=400, error="system role not supported") if "system" in roles else None


def accuracy(least: float, most: float = 1.0) -> Check:
    """Return a check that the accuracy lies in a range, so that a behavior cannot pass by failing altogether."""

    def check(observed: Observed) -> Iterator[str]:
        accuracy = observed.row.accuracy
        if accuracy is None or not least <= accuracy <= most:
            yield f"accuracy is {accuracy}; {least:.2f} to {most:.2f} was planted"

    return check


def says(pattern: str) -> Check:
    """Return a check that the terminal contains a pattern."""

    def check(observed: Observed) -> Iterator[str]:
        if not re.search(pattern, " ".join(observed.text.split()), re.IGNORECASE):
            yield f"the terminal does not say {pattern!r}"

    return check


def silent_on(pattern: str) -> Check:
    """Return a check that neither terminal nor page contains a pattern, whose claim would be false."""

    def check(observed: Observed) -> Iterator[str]:
        for place, text in (("terminal", observed.text), ("page", observed.page)):
            if found := re.search(pattern, " ".join(text.split()), re.IGNORECASE):
                yield f"the {place} says {found[0]!r}, which is false"

    return check


def _taken_back(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    if not lines[0].startswith("ANSWER") or turn.chance("speech") >= 0.1:
        return Said("\n".join(lines)), "plain"
    return Said(f"ANSWER {turn.t} 0001\nNo, that is wrong. The correct answer is 0002."), "garbled"


PERFECT = (accuracy(1.0),)
_LONG = "I add the values. " * 240


def _cut_unsaid(turn: PlantedTurn, lines: list[str]) -> tuple[Said, Form]:
    """Stop at 1,024 tokens, in the middle of the answer, in a share of all turns, and call it a stop."""
    if turn.chance("speech") >= 0.14:
        return Said(lines[0]), "plain"
    return Said(f"{_LONG[: 4 * 1024 - len(lines[0])]}\n{lines[0][:-1]}"), "cut"


def _broken_off(number: int, body: Mapping[str, Any]) -> Said | None:
    return Said("ANSWER 1 0", "error") if number in (3, 20) else None


_THOUGHT = "I add the values.\nNEXT\nDONE\nANSWER 1 0001\nThat was a draft."

BEHAVIORS = (
    PlantedBehavior("perfect", "a model without faults, nothing missing", checks=PERFECT),
    PlantedBehavior(
        "leaves-out", "a model that leaves out what it does not see", options="--h 2", checks=(accuracy(0.1, 0.9),)
    ),
    PlantedBehavior("guesses", "a model that guesses what it does not see", Traits(guess=True), "--h 2"),
    PlantedBehavior("slips", "2% arithmetic slips", Traits(slip=0.02), seeds="0:4", checks=(accuracy(0.3),)),
    PlantedBehavior("many-slips", "20% slips under pressure", Traits(slip=0.2), "--h 2"),
    PlantedBehavior(
        "empty", "10% empty replies, nothing missing", Traits(speak=_sometimes(0.1, Said(""), "silent")), case=2
    ),
    PlantedBehavior("mute", "every reply is empty", Traits(speak=_sometimes(1.0, Said(""), "silent"))),
    PlantedBehavior(
        "cut",
        "14% of replies end at the token limit",
        Traits(speak=_sometimes(0.14, Said("I add the", "length"), "cut")),
        case=3,
    ),
    PlantedBehavior(
        "cut-empty",
        "reasoning takes the whole limit, no text is left",
        Traits(speak=_sometimes(0.14, Said("", "length", reasoning="hm " * 99), "cut")),
        case=3,
    ),
    PlantedBehavior(
        "cut-unsaid", "14% of replies end at the token limit, called a stop", Traits(speak=_cut_unsaid), case=3
    ),
    PlantedBehavior(
        "refuses", "10% refusals", Traits(speak=_sometimes(0.1, Said("I'm sorry, I can't help with that."), "garbled"))
    ),
    PlantedBehavior(
        "refusal-field",
        "refusals in their own field",
        Traits(speak=_sometimes(0.1, Said(None, refusal="I can't help with that."), "silent")),
    ),
    PlantedBehavior(
        "filtered", "10% content filter", Traits(speak=_sometimes(0.1, Said("", "content_filter"), "silent"))
    ),
    PlantedBehavior(
        "prose", "10% prose without an answer", Traits(speak=_sometimes(0.1, Said("Let me see."), "garbled"))
    ),
    PlantedBehavior(
        "think",
        "thoughts in <think> before the answer",
        Traits(speak=_thinks(f"<think>{_THOUGHT}</think>\n")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "think-managed",
        "commands inside <think>, in an action loop",
        Traits(speak=_thinks(f"<think>{_THOUGHT}</think>\n")),
        "--h 4 --condition floor",
        checks=PERFECT,
        case=6,
    ),
    PlantedBehavior(
        "think-end-only",
        "thoughts that end in </think> without a start",
        Traits(speak=_thinks(f"{_THOUGHT}</think>\n")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "think-unclosed",
        "10% thoughts without an end, cut at the limit",
        Traits(speak=_sometimes(0.1, Said(f"<think>{_THOUGHT}", "length"), "cut")),
    ),
    PlantedBehavior(
        "reasoning", "thoughts in reasoning_content", Traits(speak=_thinks(_THOUGHT, apart=True)), checks=PERFECT
    ),
    PlantedBehavior(
        "markdown", "**ANSWER 7 0042**", Traits(speak=_worded(lambda t, v: f"**ANSWER {t} {v:04d}**")), checks=PERFECT
    ),
    PlantedBehavior(
        "fenced",
        "the answer in a code block",
        Traits(speak=_worded(lambda t, v: f"```\nANSWER {t} {v:04d}\n```")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "takes-back",
        "10% answers that are taken back for another value",
        Traits(speak=_taken_back),
    ),
    PlantedBehavior(
        "quotes", 'ANSWER 7 "0042"', Traits(speak=_worded(lambda t, v: f'ANSWER {t} "{v:04d}"')), checks=PERFECT
    ),
    PlantedBehavior(
        "drafts",
        "a draft, then the answer",
        Traits(speak=_worded(lambda t, v: f"ANSWER {t} 0001\nANSWER {t} {v:04d}")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "padded",
        "blank lines and tabs around the answer",
        Traits(speak=_worded(lambda t, v: f"\n\n\tANSWER {t}  {v:04d}  \n\n")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "own-words",
        "10% answers in words of its own, The answer of step 7 is 0042.",
        Traits(speak=_in_own_words),
        checks=(accuracy(0.1, 0.99), says("unreadable")),
    ),
    PlantedBehavior(
        "tools",
        "parallel tool calls",
        Traits(speak=_by_tools),
        "--h 4 --condition floor --protocol tools",
        checks=PERFECT,
    ),
    PlantedBehavior(
        "schema",
        '{"work": "…", "values": [42]}, as the schema demands',
        Traits(speak=_by_schema),
        "--h 4 --protocol schema",
        checks=PERFECT,
    ),
    PlantedBehavior(
        "schema-actions",
        "actions in an object, as the schema demands",
        Traits(speak=_by_schema),
        "--h 4 --condition floor --protocol schema",
        checks=PERFECT,
    ),
    PlantedBehavior(
        "drips",
        "replies that drip byte by byte",
        Traits(speak=lambda turn, lines: (Said(lines[0], drip_bytes=7), "plain")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "broken-off",
        "the server breaks off some replies, and says so as the finish reason",
        Traits(serve=_broken_off),
        checks=PERFECT,
    ),
    PlantedBehavior("storm", "storms of 429", Traits(serve=refusing(429, 3, 4, 5, 30, 31)), checks=PERFECT),
    PlantedBehavior("failing", "some requests get a 500", Traits(serve=refusing(500, 2, 20)), checks=PERFECT),
    PlantedBehavior("no-system", "a server without a system role", Traits(serve=_no_system), checks=PERFECT),
    PlantedBehavior(
        "no-usage",
        "a server that reports no tokens",
        Traits(speak=lambda turn, lines: (Said(lines[0], usage=False), "plain")),
        checks=PERFECT,
    ),
    PlantedBehavior(
        "cheat",
        "an endpoint that remembers everything",
        Traits(cheat=True),
        "--h 2",
        seeds="0:4",
        checks=(says("leak|remember|cannot be"),),
        case=4,
    ),
)
