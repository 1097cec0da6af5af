"""`reference/<name>`: scripted agents with one known trait each, whose measurements are known in advance.

They read the same prompts and use the same commands as any model. Random traits draw from a stream named by the prompt,
so that a reply depends on the prompt alone. Tools are called if they are offered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.agents.prompt_reader import (
    ManagedState,
    ProbePrompt,
    Reader,
    StepPrompt,
    read_managed_state,
    read_probe,
    read_records,
    read_summary_limit,
)
from eirkit.lacuna.agents.protocol import MOST_ACTIONS, Fault, as_call, read_reply
from eirkit.lacuna.memories.memory import SEARCH_LIMIT
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, models
from eirkit.lacuna.tasks.task import Payload, show_label, show_record


def answer_line(prompt: StepPrompt, values: Payload) -> str:
    return f"ANSWER {prompt.t} {values[0] if len(values) == 1 else ' '.join(map(str, values))}"


def _lines(actions: list[str]) -> str:
    return "\n".join(actions[:MOST_ACTIONS])


def _as_calls(text: str) -> tuple[ToolCall, ...]:
    return tuple(as_call(action) for action in read_reply(Reply(text)) if not isinstance(action, Fault))


class Reference:
    """The exact calculator: applies the rule to the inputs that it sees and silently leaves out missing ones."""

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

    def act(self, prompt: StepPrompt, request: Request) -> str:
        """Return the reply: in managed runs reveal, recover and answer in turn."""
        commands = prompt.rules.commands
        if "CALCULATE" in commands:
            return self.calculate(prompt)
        if "NEXT" not in commands:
            return self.answer(prompt, request)
        if (limit := read_summary_limit(request)) is not None:
            return self.summarise(prompt, limit)
        if prompt.t == prompt.rules.spec.n and prompt.answered:
            return "DONE"
        if prompt.t == 0 or prompt.answered:
            return (self.keep(prompt, request) if prompt.answered else "") + "NEXT"
        recovery = self.recover(prompt, request) if prompt.missing else ""
        return recovery or self.answer(prompt, request)

    def probe(self, prompt: ProbePrompt, request: Request) -> str:
        """Return the next reads of a recovery probe; by default end it immediately."""
        return "DONE"

    def calculate(self, prompt: StepPrompt) -> str:
        """Return the calculator's result as the answer, or ask it for one."""
        if prompt.result is not None:
            return answer_line(prompt, prompt.result)
        return "CALCULATE " + " ".join(str(r) for r in prompt.refs if r in prompt.values)

    def answer(self, prompt: StepPrompt, request: Request) -> str:
        return answer_line(prompt, prompt.operate(prompt.values))

    def recover(self, prompt: StepPrompt, request: Request) -> str:
        """Return actions that may recover missing values; "" to continue without them."""
        return ""

    def keep(self, prompt: StepPrompt, request: Request) -> str:
        """Return actions that store the last answer, each with a line break."""
        return ""

    def summarise(self, prompt: StepPrompt, characters: int) -> str:
        """Return the summary when the context is full; empty by default."""
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
            raise SpecError(f"p = {given} is not a probability; choose 0 … 1")
        return p


class Guesser(Reference):
    """Replaces each missing value with a random one and continues without saying so."""

    def answer(self, prompt: StepPrompt, request: Request) -> str:
        rules = prompt.rules
        guesses = {
            r: tuple(int(self.chance(request, f"guess {r} {i}") * rules.spec.q) for i in range(rules.width))
            for r in prompt.missing
        }
        return answer_line(prompt, prompt.operate(prompt.values | guesses))


class Acknowledger(Reference):
    """Names the missing records, then answers without them."""

    def answer(self, prompt: StepPrompt, request: Request) -> str:
        said = "".join(f"{show_label(prompt.rules.spec, r)} is not available to me.\n" for r in prompt.missing)
        return said + super().answer(prompt, request)


class Recoverer(Reference):
    """Stores answers and recovers every missing value that it can, by search, by reading or by recomputing."""

    def keep(self, prompt: StepPrompt, request: Request) -> str:
        """Store the answer unless it copies a record."""
        return "" if prompt.asks else self.store(prompt, read_managed_state(request))

    def store(self, prompt: StepPrompt, state: ManagedState) -> str:
        """Return actions that store the answer, dropping the oldest entry if memory is full."""
        commands, record = prompt.rules.commands, show_record(prompt.rules.spec, prompt.t, prompt.values[prompt.t])
        if "SEARCH" in commands:
            return f"WRITE {prompt.t}\n"
        if "WRITE" in commands:
            return (f"DROP {state.kept[0]}\n" if state.room < 1 else "") + f"WRITE {prompt.t}\n"
        if "NOTE" in commands:
            return ("DROP 1\n" if "DROP" in commands and state.room <= len(record) else "") + f"NOTE {record}\n"
        return ""

    def recover(self, prompt: StepPrompt, request: Request) -> str:
        state, commands = read_managed_state(request), prompt.rules.commands
        if state.refused:
            return ""  # everything possible has been tried
        if "SEARCH" in commands and not state.searched:
            labels = [show_label(prompt.rules.spec, r) for r in prompt.missing]
            parts = range(0, len(labels), SEARCH_LIMIT)
            return _lines([f"SEARCH {' '.join(labels[i : i + SEARCH_LIMIT])}" for i in parts])
        read = prompt.missing[: state.reads] if "READ" in commands else ()
        rest = [r for r in prompt.missing if r not in read] if state.recomputations != 0 else []
        return _lines([*(f"READ {r}" for r in read), *(f"RECOMPUTE {r}" for r in rest)])

    def summarise(self, prompt: StepPrompt, characters: int) -> str:
        """Keep the newest records that fit."""
        records = [show_record(prompt.rules.spec, t, prompt.values[t]) for t in sorted(prompt.values, reverse=True)]
        fitting = (characters + 1) // (len(records[0]) + 1) if records else 0
        return "\n".join(reversed(records[:fitting]))

    def probe(self, prompt: ProbePrompt, request: Request) -> str:
        """Read each step of the cone once, all that are known to be needed together."""
        needed = {prompt.target, *(r for t in prompt.nodes for r in prompt.needs(t))} - prompt.nodes.keys()
        return "DONE" if prompt.done else "\n".join(f"READ {t}" for t in sorted(needed, reverse=True)[:MOST_ACTIONS])


class NaiveRecoverer(Recoverer):
    """Recovers one value per reply and repeats the same reads."""

    def probe(self, prompt: ProbePrompt, request: Request) -> str:
        """Walk every path again, as recursion without memoisation does; the position follows from the read count."""
        path = [prompt.target]
        for _ in range(prompt.reads):
            path.extend(reversed(prompt.needs(path.pop())))
        return "DONE" if prompt.done else f"READ {path[-1]}"

    def recover(self, prompt: StepPrompt, request: Request) -> str:
        lines = super().recover(prompt, request).splitlines()
        return "\n".join(lines[:1] * 2)


class Quitter(Recoverer):
    """Gives up each recovery with probability p (default 0.5)."""

    def recover(self, prompt: StepPrompt, request: Request) -> str:
        return "" if self.gives_up(request) else super().recover(prompt, request)

    def probe(self, prompt: ProbePrompt, request: Request) -> str:
        return "DONE" if self.gives_up(request) else super().probe(prompt, request)

    def gives_up(self, request: Request) -> bool:
        return self.chance(request, "quit") < self.rate(0.5)


class Sloppy(Reference):
    """Makes an arithmetic error with probability p (default 0.1), even if it sees every input."""

    def answer(self, prompt: StepPrompt, request: Request) -> str:
        values = prompt.operate(prompt.values)
        if self.chance(request, "slip") < self.rate(0.1):
            values = tuple((value + 1) % prompt.rules.spec.q for value in values)
        return answer_line(prompt, values)


class Thrasher(Recoverer):
    """Fetches missing values three times before it answers."""

    def recover(self, prompt: StepPrompt, request: Request) -> str:
        return _lines(super().recover(prompt, request).splitlines() * 3)

    def probe(self, prompt: ProbePrompt, request: Request) -> str:
        first = super().probe(prompt, request).partition("\n")[0]
        return "\n".join([first] * 3)


class NoteTaker(Recoverer):
    """Stores each answer with probability p (default 0.4): incomplete write-through.

    It matters only for memories that the agent fills itself, and every note costs an action. RQ3, "Behavior and
    mechanism", has the rates: 1.0 (Claude Opus 4.6, Scratch), 0.4 (GPT-4.1 Mini, Scratch–LRU) and near 0.0 (Claude
    Haiku 4.5, model-driven).
    """

    writes = 0.4  # default of p

    def keep(self, prompt: StepPrompt, request: Request) -> str:
        written = self.chance(request, "write") < self.rate(self.writes)
        return self.store(prompt, read_managed_state(request)) if written else ""


class Substituter(NoteTaker):
    """Uses another record in place of one that it cannot obtain: the visible one with the nearest label.

    "Mechanistic evidence" names it, "the agent proceeds using an invalid substitute", without saying which; the nearest
    label is the rule here, the older of two. It stores every answer unless p is given.
    """

    writes = 1.0

    def answer(self, prompt: StepPrompt, request: Request) -> str:
        if not prompt.missing:
            return super().answer(prompt, request)
        visible = read_records(request.messages[-1].content)
        visible.pop(prompt.t, None)
        taken = {r: _nearest(r, visible) for r in prompt.missing} if visible else {}
        return answer_line(prompt, prompt.operate(prompt.values | taken))


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
