"""Memories that misbehave: how they word, rank, lose and change what they were given."""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar
from urllib.request import Request, urlopen

from eirkit.errors import UsageError
from eirkit.lacuna.memories.memory import Item, Requirements
from eirkit.testing.selftest.behavior import FATES_COMPARED, Check, Observed, PlantedBehavior
from eirkit.testing.selftest.models import PERFECT, accuracy, says, silent_on
from eirkit.testing.selftest.planted import Lookup, Traits

OTHER_DIGITS = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")
Stored = dict[str, str]
_RECORD = re.compile(r"A_0*(\d+) = (\d+)")


def _reword(form: Callable[[str, str], str]) -> Callable[[str], str]:
    """Return a function that says a record in other words; `form` takes its label and value."""

    def change(text: str) -> str:
        found = _RECORD.fullmatch(text)
        return form(f"A_{found[1]}", found[2]) if found else text

    return change


def _other_digit(label: str, value: str) -> str:
    return f"{label} = {(int(value[0]) + 1) % 10}{value[1:]}"


# How a record is stored.
_STORES: dict[str, Callable[[str], str | None]] = {
    "sentence": _reword(lambda label, value: f"The answer of {label} is {value}."),
    "is": _reword(lambda label, value: f"{label} is {value}"),
    "bold": _reword(lambda label, value: f"**{label}** = {value}"),
    "arrow": _reword(lambda label, value: f"{label} → {value}"),
    "json": _reword(lambda label, value: json.dumps({"label": label, "value": value})),
    "reversed": _reword(lambda label, value: f"{value} is the answer of {label}"),
    "bare": _reword(lambda label, value: f"{label} = {int(value)}"),
    "table": _reword(lambda label, value: f"| {label} | {value} |"),
    "thousands": _reword(lambda label, value: f"{label}: {int(value):,}"),
    "other-digits": _reword(lambda label, value: f"{label} = {value.translate(OTHER_DIGITS)}"),
    "spaced": _reword(lambda label, value: f"{label} = {int(value):,}".replace(",", " ")),
    "units": _reword(lambda label, value: f"{label} = {value}pts"),
    "changed": _reword(lambda label, value: f"{label} changed from 0001 to {value}"),
    "ranked": _reword(lambda label, value: f"{label} (importance 5): {value}"),
    "encoded": lambda text: b64encode(text.encode()).decode(),
    "truncating": lambda text: text[:-2],
    "digit": _reword(_other_digit),
    "constant": _reword(lambda label, value: f"{label} = 0007"),
    "dropping": lambda text: None if int(_RECORD.fullmatch(text)[1]) % 3 == 0 else text,  # type: ignore[index]
    "deaf": lambda text: None,
}


class PlantedMemory:
    """Keeps records by label and misbehaves in the way that `how` names."""

    stores: ClassVar[dict[str, Stored]] = {}  # what each run's store holds, by scope
    returned: ClassVar[int] = 0

    def __init__(self, how: str = "") -> None:
        self.how = how
        self.kept: Stored = {}
        self.former: Stored = {}
        self.searches = 0

    def reset(self, scope: str) -> None:
        self.former = {**self.kept, **self.former}
        self.kept = PlantedMemory.stores[scope] = {}

    def write(self, item: Item) -> None:
        change = _STORES.get(self.how)
        kept = item.text if change is None else change(item.text)
        if kept is not None:
            self.kept[item.label] = kept

    def search(self, query: str, limit: int) -> Sequence[str]:
        self.searches += 1
        wanted = [f"A_{number}" for number in re.findall(r"A_0*(\d+)", query)]
        found = [self.kept[label] for label in wanted if label in self.kept]
        return self._ranked(found, wanted)[:limit]

    def read(self, label: str) -> str | None:
        return self.kept.get(label)

    def forget(self, label: str) -> None:
        self.kept.pop(label, None)

    def _ranked(self, found: list[str], wanted: list[str]) -> list[str]:
        match self.how:
            case "best-first":
                return [text for one in found for text in (one, _reword(_other_digit)(one))]
            case "worst-first":
                return [text for one in found for text in (_reword(_other_digit)(one), one)]
            case "stale":
                return [self.former.get(label, self.kept.get(label, "")) for label in wanted]
            case "neighbor":
                return [text for label, text in self.kept.items() if f"A_{int(label[2:]) + 1}" in wanted]
            case "mislabels":  # the value of another record under the label that was asked for
                values = [text.partition("= ")[2] for text in self.kept.values()]
                return [f"{label} = {values[0]}" for label in wanted if label in self.kept]
            case "newest":
                return list(reversed(self.kept.values()))
            case "forgetful-search":
                return [] if self.searches % 2 else found
            case "flooding":
                return [one + " " + "x" * 200_000 for one in found]
            case "slow":
                time.sleep(0.02)
            case "hanging" if self.searches == 3:
                time.sleep(1.0)
            case "raising" if self.searches == 3:
                raise RuntimeError("planted")
        return found


class ModeledMemory(PlantedMemory):
    """Asks the model that it was given about every record that it stores."""

    requirements: ClassVar[Requirements] = Requirements(endpoint=("model",))

    def __init__(self, endpoint: str, how: str = "") -> None:
        super().__init__(how)
        self.endpoint = endpoint

    def write(self, item: Item) -> None:
        super().write(item)
        body = json.dumps({"model": "x", "messages": [{"role": "user", "content": f"Extract: {item.text}"}]})
        request = Request(f"{self.endpoint}/chat/completions", body.encode(), {"Content-Type": "application/json"})
        if not request.full_url.startswith("http://127.0.0.1:"):
            raise UsageError(f"{request.full_url} is not on loopback; the self-test calls nothing else")
        with urlopen(request, timeout=10) as reply:
            json.load(reply)


def fates(observed: Observed) -> Iterator[str]:
    """Yield fates that are counted more often than they happened."""
    true: list[frozenset[Lookup]] = []
    for record, _, run in observed.pairs():
        true += run.lookups(PlantedMemory.stores.get(record.run, {}))
    memory = observed.row.memory_system
    told = {} if memory is None else memory.outcomes
    if sum(told.values()) != len(true):
        yield f"{sum(told.values())} records are counted as needed from memory; {len(true)} were"
    for fate, count in told.items():
        most = sum(fate in one for one in true) if fate in FATES_COMPARED else len(true)
        if count > most:
            yield f"{count} records are counted as {fate}; at most {most} can be"


def own_calls(observed: Observed) -> Iterator[str]:
    """Yield disagreements about the calls of a memory's own model, which must arrive at the run's own server."""
    memory = observed.row.memory_system
    told = None if memory is None else memory.model_calls
    if observed.agent.other == 0 or told != observed.agent.other:
        yield f"the memory reports {told} calls of its model; the server was asked {observed.agent.other} times"


_HERE = "eirkit.testing.selftest.memories"
MEMORY = f"--memory {_HERE}:PlantedMemory --set PlantedMemory"


def _memory(
    how: str, about: str, *checks: Check, case: int | None = None, traits: Traits | None = None
) -> PlantedBehavior:
    chosen = f"--h 2 {MEMORY}.how={how}"
    return PlantedBehavior(f"memory-{how}", about, traits or Traits(), chosen, checks=(fates, *checks), case=case)


BEHAVIORS = (
    _memory("plain", "a memory without faults", *PERFECT),
    _memory("sentence", "The answer of A_01 is 3555.", *PERFECT, case=1),
    _memory("is", "A_7 is 42", *PERFECT),
    _memory("bold", "**A_7** = 42", *PERFECT),
    _memory("arrow", "A_7 → 42", *PERFECT),
    _memory("json", '{"label": "A_7", "value": "0042"}', *PERFECT),
    _memory("reversed", "0042 is the answer of A_7", *PERFECT),
    _memory("bare", "A_7 = 42, without zeros", *PERFECT),
    _memory("table", "| A_7 | 0042 |", *PERFECT),
    _memory("thousands", "A_7: 1,234", *PERFECT),
    _memory("other-digits", "A_7 = \u0660\u0660\u0664\u0662, digits of another script", *PERFECT),
    _memory("spaced", "A_7 = 1 234", *PERFECT),
    _memory("units", "A_7 = 0042pts", *PERFECT),
    _memory("changed", "A_7 changed from 0001 to 0042", *PERFECT),
    _memory("ranked", "A_7 (importance 5): 0042", *PERFECT),
    _memory("encoded", "a form that the agent alone can read", *PERFECT, says("contradiction")),
    _memory("truncating", "cuts the last two digits of each value", silent_on("returns another label's value"), case=8),
    _memory("digit", "changes one digit", silent_on("returns another label's value"), case=8),
    _memory("constant", "returns one value for every label", silent_on("returns another label's value"), case=8),
    _memory("dropping", "loses every third record"),
    _memory("neighbor", "returns the record before the one that was asked for"),
    _memory("mislabels", "returns the value of another label"),
    _memory("newest", "returns the newest records, whatever was asked"),
    _memory("stale", "returns what an earlier run wrote"),
    _memory("deaf", "stores nothing"),
    _memory("forgetful-search", "finds nothing in every second search"),
    _memory("best-first", "the right value first, a wrong one second", *PERFECT),
    _memory("worst-first", "a wrong value first, the right one second", accuracy(0.0, 0.9)),
    _memory("flooding", "returns far more than can be read"),
    _memory("slow", "takes 20 ms for a search", *PERFECT),
    _memory("unused", "the agent never searches", traits=Traits(searches=False)),
    _memory("unwritten", "the agent never writes", traits=Traits(writes=False)),
    _memory("slips", "the agent slips in 10% of its answers", traits=Traits(slip=0.1)),
    PlantedBehavior(
        "memory-raising",
        "raises once in a run",
        options=f"--h 2 {MEMORY}.how=raising",
        checks=(says("raises"),),
        steps=False,
    ),
    PlantedBehavior(
        "memory-hanging",
        "hangs once in a run",
        options=(f"--h 2 {MEMORY}.how=hanging --set PlantedMemory.timeout_seconds=0.2"),
        checks=(says("answers late|did not finish"),),
        steps=False,
    ),
    PlantedBehavior(
        "memory-model",
        "a memory that asks the model of the run",
        options=f"--h 2 --memory {_HERE}:ModeledMemory --set ModeledMemory.model=run",
        checks=(fates, own_calls, *PERFECT),
        case=7,
    ),
)
