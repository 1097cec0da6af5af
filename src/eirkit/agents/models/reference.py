"""Reference agents: scripted models that read the prompt and answer through the same parser as everyone else.

Each has one trait, so that what a harness measures on it is known beforehand. Random traits draw from a stream named by
the prompt, so that a reply depends on what is seen and on nothing else. Where tools are offered, they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from eirkit.agents.memory import SEARCH_LIMIT
from eirkit.agents.model import ModelOptions, Reply, Request, ToolCall, models
from eirkit.agents.models.prompt_reader import (
    ManagedState,
    ProbePrompt,
    Reader,
    StepPrompt,
    read_managed_state,
    read_probe,
    read_records,
    read_summary_limit,
)
from eirkit.agents.protocol import MOST_ACTIONS, Fault, as_call, read_reply
from eirkit.agents.serving.model_factory import refuse_settings
from eirkit.errors import SpecError, UnknownNameError
from eirkit.tasks.task import Payload, show_label, show_record


def answer_line(sight: StepPrompt, values: Payload) -> str:
    return f"ANSWER {sight.t} {' '.join(map(str, values))}"


def _lines(actions: list[str]) -> str:
    return "\n".join(actions[:MOST_ACTIONS])


def _as_calls(text: str) -> tuple[ToolCall, ...]:
    return tuple(as_call(action) for action in read_reply(Reply(text)) if not isinstance(action, Fault))


class Reference:
    """The exact calculator: applies the rule to what it sees, leaves out what it does not, and says nothing."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options
        self._reader = Reader()

    async def reply(self, request: Request) -> Reply:
        probe = read_probe(request)
        if probe is not None:
            return Reply(self.probe(probe, request))
        text = self.act(self._reader.read(request), request)
        return Reply(text, _as_calls(text)) if request.tools else Reply(text)

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {"seed": self.options.seed, **self.options.extra}

    def act(self, sight: StepPrompt, request: Request) -> str:
        """Return the reply: in managed runs reveal, recover and answer in turn."""
        commands = sight.rules.commands
        if "CALCULATE" in commands:
            return self.calculate(sight)
        if "NEXT" not in commands:
            return self.answer(sight, request)
        if (limit := read_summary_limit(request)) is not None:
            return self.summarise(sight, limit)
        if sight.t == sight.rules.spec.n and sight.answered:
            return "DONE"
        if sight.t == 0 or sight.answered:
            return (self.keep(sight, request) if sight.answered else "") + "NEXT"
        recovery = self.recover(sight, request) if sight.missing else ""
        return recovery or self.answer(sight, request)

    def probe(self, sight: ProbePrompt, request: Request) -> str:
        """Return the next reads of a recovery probe; whoever never recovers ends it at once."""
        return "DONE"

    def calculate(self, sight: StepPrompt) -> str:
        """Return the calculator's result as the answer, or ask it for one."""
        if sight.result is not None:
            return answer_line(sight, sight.result)
        return "CALCULATE " + " ".join(str(r) for r in sight.refs if r in sight.values)

    def answer(self, sight: StepPrompt, request: Request) -> str:
        return answer_line(sight, sight.operate(sight.values))

    def recover(self, sight: StepPrompt, request: Request) -> str:
        """Return actions that may bring a missing value, or nothing to go on without."""
        return ""

    def keep(self, sight: StepPrompt, request: Request) -> str:
        """Return actions that store the answer just given, each line ended."""
        return ""

    def summarise(self, sight: StepPrompt, characters: int) -> str:
        """Return what is to be kept when the context is full; whoever keeps nothing says nothing."""
        return ""

    def chance(self, request: Request, purpose: str) -> float:
        """Return a number in [0, 1) that depends on the seed, the purpose and the prompt alone."""
        text = "\x1f".join((str(self.options.seed), purpose, *(m.content for m in request.messages)))
        return int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()[:7], "big") / (1 << 56)

    def rate(self, default: float) -> float:
        """Return the option `p`, the probability of the agent's trait."""
        given = self.options.extra.get("p", default)
        try:
            p = float(given)
        except (TypeError, ValueError):
            p = -1.0
        if not 0 <= p <= 1:
            raise SpecError(f"p = {given} is no probability; choose 0 … 1")
        return p


class Guesser(Reference):
    """Puts a random value in place of each missing one, injected ones being visible, and continues in silence."""

    def answer(self, sight: StepPrompt, request: Request) -> str:
        rules = sight.rules
        guesses = {
            r: tuple(int(self.chance(request, f"guess {r} {i}") * rules.spec.q) for i in range(rules.width))
            for r in sight.missing
        }
        return answer_line(sight, sight.operate(sight.values | guesses))


class Acknowledger(Reference):
    """Says which record is missing, then answers without it."""

    def answer(self, sight: StepPrompt, request: Request) -> str:
        said = "".join(f"{show_label(sight.rules.spec, r)} is not available to me.\n" for r in sight.missing)
        return said + super().answer(sight, request)


class Recoverer(Reference):
    """Keeps what may be asked for again and gets every missing value it can: by search, by reading, by recomputing."""

    def keep(self, sight: StepPrompt, request: Request) -> str:
        """Store the answer unless it is a copy of a record."""
        return "" if sight.asks else self.store(sight, read_managed_state(request))

    def store(self, sight: StepPrompt, means: ManagedState) -> str:
        """Return actions that store the answer under its label; where room is short, the oldest goes."""
        commands, record = sight.rules.commands, show_record(sight.rules.spec, sight.t, sight.values[sight.t])
        if "SEARCH" in commands:
            return f"WRITE {sight.t}\n"
        if "WRITE" in commands:
            return (f"DROP {means.kept[0]}\n" if means.room < 1 else "") + f"WRITE {sight.t}\n"
        if "NOTE" in commands:
            return ("DROP 1\n" if "DROP" in commands and means.room <= len(record) else "") + f"NOTE {record}\n"
        return ""

    def recover(self, sight: StepPrompt, request: Request) -> str:
        means, commands = read_managed_state(request), sight.rules.commands
        if means.refused:
            return ""  # what could be done was done
        if "SEARCH" in commands and not means.searched:
            labels = [show_label(sight.rules.spec, r) for r in sight.missing]
            parts = range(0, len(labels), SEARCH_LIMIT)
            return _lines([f"SEARCH {' '.join(labels[i : i + SEARCH_LIMIT])}" for i in parts])
        read = sight.missing[: means.reads] if "READ" in commands else ()
        rest = [r for r in sight.missing if r not in read] if means.recomputations != 0 else []
        return _lines([*(f"READ {r}" for r in read), *(f"RECOMPUTE {r}" for r in rest)])

    def summarise(self, sight: StepPrompt, characters: int) -> str:
        """Keep the newest records that fit."""
        records = [show_record(sight.rules.spec, t, sight.values[t]) for t in sorted(sight.values, reverse=True)]
        fitting = (characters + 1) // (len(records[0]) + 1) if records else 0
        return "\n".join(reversed(records[:fitting]))

    def probe(self, sight: ProbePrompt, request: Request) -> str:
        """Read each step of the cone once, all that are known to be needed together."""
        needed = {sight.target, *(r for t in sight.nodes for r in sight.needs(t))} - sight.nodes.keys()
        return "DONE" if sight.done else "\n".join(f"READ {t}" for t in sorted(needed, reverse=True)[:MOST_ACTIONS])


class NaiveRecoverer(Recoverer):
    """Recovers one value per reply and forgets that it asked: the same reads again and again."""

    def probe(self, sight: ProbePrompt, request: Request) -> str:
        """Walk every path anew, as recursion without a memory does; its place follows from the number of reads."""
        path = [sight.target]
        for _ in range(sight.reads):
            path.extend(reversed(sight.needs(path.pop())))
        return "DONE" if sight.done else f"READ {path[-1]}"

    def recover(self, sight: StepPrompt, request: Request) -> str:
        lines = super().recover(sight, request).splitlines()
        return "\n".join(lines[:1] * 2)


class Quitter(Recoverer):
    """Gives up recovering with probability p (0.5 unless given) each time it should."""

    def recover(self, sight: StepPrompt, request: Request) -> str:
        return "" if self.gives_up(request) else super().recover(sight, request)

    def probe(self, sight: ProbePrompt, request: Request) -> str:
        return "DONE" if self.gives_up(request) else super().probe(sight, request)

    def gives_up(self, request: Request) -> bool:
        return self.chance(request, "quit") < self.rate(0.5)


class Sloppy(Reference):
    """Errs in arithmetic with probability p (0.1 unless given), although it sees everything."""

    def answer(self, sight: StepPrompt, request: Request) -> str:
        values = sight.operate(sight.values)
        if self.chance(request, "slip") < self.rate(0.1):
            values = tuple((value + 1) % sight.rules.spec.q for value in values)
        return answer_line(sight, values)


class Thrasher(Recoverer):
    """Fetches what is missing three times over before it answers."""

    def recover(self, sight: StepPrompt, request: Request) -> str:
        return _lines(super().recover(sight, request).splitlines() * 3)

    def probe(self, sight: ProbePrompt, request: Request) -> str:
        first = super().probe(sight, request).partition("\n")[0]
        return "\n".join([first] * 3)


class NoteTaker(Recoverer):
    """Writes each answer down, whatever it is, with probability p (0.4 unless given): incomplete write-through.

    Only a memory that the agent must fill itself suffers from it, and every note costs an action. RQ3, "Behavior and
    mechanism", has the rates: 1.0 (Claude Opus 4.6, Scratch), 0.4 (GPT-4.1 Mini, Scratch–LRU) and near 0.0 (Claude
    Haiku 4.5, model-driven).
    """

    writes = 0.4  # unless p is given

    def keep(self, sight: StepPrompt, request: Request) -> str:
        written = self.chance(request, "write") < self.rate(self.writes)
        return self.store(sight, read_managed_state(request)) if written else ""


class Substituter(NoteTaker):
    """Goes on with another record in the place of one that it cannot get: the visible one with the nearest label.

    "Mechanistic evidence" names it, "the agent proceeds using an invalid substitute", without saying which; the nearest
    label is the rule here, the older of two. It writes everything down unless p is given.
    """

    writes = 1.0

    def answer(self, sight: StepPrompt, request: Request) -> str:
        if not sight.missing:
            return super().answer(sight, request)
        visible = read_records(request.messages[-1].content)
        visible.pop(sight.t, None)
        taken = {r: _nearest(r, visible) for r in sight.missing} if visible else {}
        return answer_line(sight, sight.operate(sight.values | taken))


def _nearest(r: int, visible: dict[int, Payload]) -> Payload:
    return visible[min(visible, key=lambda t: (abs(t - r), t))]


AGENTS: dict[str, Callable[[ModelOptions], Reference]] = {
    "calculator": Reference,
    "guesser": Guesser,
    "acknowledger": Acknowledger,
    "recoverer": Recoverer,
    "naive-recoverer": NaiveRecoverer,
    "quitter": Quitter,
    "sloppy": Sloppy,
    "thrasher": Thrasher,
    "note-taker": NoteTaker,
    "substituter": Substituter,
}


@models.add("reference")
def make_reference(name: str, options: ModelOptions) -> Reference:
    """Return the reference agent with this name."""
    if name not in AGENTS:
        raise UnknownNameError("reference agent", name, AGENTS)
    refuse_settings("reference", options, ("p",))
    return AGENTS[name](options)
