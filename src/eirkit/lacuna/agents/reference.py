"""`reference/<name>`: scripted agents with one known trait each, whose measurements are known in advance.

They see the same as any model, as objects instead of a prompt, and use the same commands in the same protocols. Random
traits draw from a stream named by the prompt, so that a reply depends on the prompt alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.agents.protocol import MOST_ACTIONS, comply
from eirkit.lacuna.agents.situation import Situation, everything_known, situation_of
from eirkit.lacuna.memories.memory import SEARCH_LIMIT
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, models
from eirkit.lacuna.tasks.standing import UNTIL
from eirkit.lacuna.tasks.task import Payload, show_label, show_record
from eirkit.lacuna.tasks.view import Budgets, ProbeView


def answer_line(seen: Situation, values: Payload) -> str:
    return f"ANSWER {seen.t} {values[0] if len(values) == 1 else ' '.join(map(str, values))}"


def _lines(actions: list[str]) -> str:
    return "\n".join(actions[:MOST_ACTIONS])


class Reference:
    """The exact calculator: applies the rule to the inputs that it sees and silently leaves out missing ones."""

    def __init__(self, options: ModelOptions) -> None:
        self.options = options

    async def reply(self, request: Request) -> Reply:
        visible = request.visible
        if isinstance(visible, ProbeView):
            text = self.probe(visible, request)
        else:
            text = self.act(situation_of(request), request)
        return comply(Reply(text), request)

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {"seed": self.options.seed, **self.options.extra}

    def act(self, seen: Situation, request: Request) -> str:
        """Return the reply: in managed runs reveal, recover and answer in turn."""
        commands = seen.commands
        if "CALCULATE" in commands:
            return self.calculate(seen)
        if "NEXT" not in commands:
            return self.answer(seen, request)
        if (limit := seen.visible.summary_characters) is not None:
            return self.summarize(seen, limit)
        if seen.t == seen.spec.n and seen.visible.answered:
            return "DONE"
        if seen.t == 0 or seen.visible.answered:
            return (self.keep(seen, request) if seen.visible.answered else "") + "NEXT"
        recovery = self.recover(seen, request) if seen.missing else ""
        return recovery or self.answer(seen, request)

    def probe(self, probe: ProbeView, request: Request) -> str:
        """Return the next reads of a recovery probe; by default end it immediately."""
        return "DONE"

    def calculate(self, seen: Situation) -> str:
        """Return the calculator's result as the answer, or ask it for one."""
        if seen.visible.result is not None:
            return answer_line(seen, seen.visible.result)
        return "CALCULATE " + " ".join(str(r) for r in seen.refs if r in seen.values)

    def answer(self, seen: Situation, request: Request) -> str:
        return answer_line(seen, seen.operate(seen.values))

    def recover(self, seen: Situation, request: Request) -> str:
        """Return actions that may recover missing values; "" to continue without them."""
        return ""

    def keep(self, seen: Situation, request: Request) -> str:
        """Return actions that store the last answer, each with a line break."""
        return ""

    def summarize(self, seen: Situation, characters: int) -> str:
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

    def answer(self, seen: Situation, request: Request) -> str:
        width, q = seen.visible.task.width, seen.spec.q
        guesses = {
            r: tuple(int(self.chance(request, f"guess {r} {i}") * q) for i in range(width)) for r in seen.missing
        }
        return answer_line(seen, seen.operate(seen.values | guesses))


class Acknowledger(Reference):
    """Names the missing records, then answers without them."""

    def answer(self, seen: Situation, request: Request) -> str:
        said = "".join(f"{show_label(seen.spec, r)} is not available to me.\n" for r in seen.missing)
        return said + super().answer(seen, request)


class Recoverer(Reference):
    """Stores answers and recovers every missing value that it can, by search, by reading or by recomputing."""

    def keep(self, seen: Situation, request: Request) -> str:
        """Store the answer unless it copies a record, and delete what was withdrawn."""
        step = seen.visible.step
        if step is not None and step.kind == "delete":
            return f"FORGET {seen.label}\n" if "FORGET" in seen.commands else self.store(seen)
        return "" if seen.input is None else self.store(seen)

    def store(self, seen: Situation) -> str:
        """Return actions that store the answer, dropping the oldest entry if memory is full."""
        visible, commands = seen.visible, seen.commands
        record = show_record(seen.spec, seen.label, seen.values[seen.label])
        if visible.task.workload.changes and seen.spec.expiry and seen.input is not None:
            record += f"{UNTIL}{seen.t + seen.spec.expiry}"
        if "SEARCH" in commands:
            return f"WRITE {seen.label}\n"
        if "WRITE" in commands:
            held = {t for t, _ in visible.records}
            full = visible.free < 1 and seen.label not in held
            return (f"DROP {visible.records[0][0]}\n" if full else "") + f"WRITE {seen.label}\n"
        if "NOTE" in commands:
            return ("DROP 1\n" if "DROP" in commands and visible.free <= len(record) else "") + f"NOTE {record}\n"
        return ""

    def recover(self, seen: Situation, request: Request) -> str:
        outcomes, commands = seen.visible.outcomes, seen.commands
        left = seen.visible.budgets or Budgets(None, 0, 0)
        if outcomes and outcomes[-1].startswith("refused"):
            return ""  # everything possible has been tried
        if "SEARCH" in commands and not any(outcome.endswith("passages found") for outcome in outcomes):
            labels = [show_label(seen.spec, r) for r in seen.missing]
            parts = range(0, len(labels), SEARCH_LIMIT)
            return _lines([f"SEARCH {' '.join(labels[i : i + SEARCH_LIMIT])}" for i in parts])
        read = seen.missing[: left.reads] if "READ" in commands else ()
        rest = [r for r in seen.missing if r not in read] if left.recomputations != 0 else []
        return _lines([*(f"READ {r}" for r in read), *(f"RECOMPUTE {r}" for r in rest)])

    def summarize(self, seen: Situation, characters: int) -> str:
        """Keep the newest records that fit."""
        known = everything_known(seen)
        records = [show_record(seen.spec, t, known[t]) for t in sorted(known, reverse=True)]
        fitting = (characters + 1) // (len(records[0]) + 1) if records else 0
        return "\n".join(reversed(records[:fitting]))

    def probe(self, probe: ProbeView, request: Request) -> str:
        """Read each step of the cone once, all that are known to be needed together."""
        needed = {probe.target, *(r for t in probe.nodes for r in probe.needs(t))} - probe.nodes.keys()
        return (
            "DONE"
            if probe.target in probe.known
            else "\n".join(f"READ {t}" for t in sorted(needed, reverse=True)[:MOST_ACTIONS])
        )


class NaiveRecoverer(Recoverer):
    """Recovers one value per reply and repeats the same reads."""

    def probe(self, probe: ProbeView, request: Request) -> str:
        """Walk every path again, as recursion without memoization does; the position follows from the read count."""
        path = [probe.target]
        for _ in range(probe.reads):
            path.extend(reversed(probe.needs(path.pop())))
        return "DONE" if probe.target in probe.known else f"READ {path[-1]}"

    def recover(self, seen: Situation, request: Request) -> str:
        lines = super().recover(seen, request).splitlines()
        return "\n".join(lines[:1] * 2)


class Quitter(Recoverer):
    """Gives up each recovery with probability p (default 0.5)."""

    def recover(self, seen: Situation, request: Request) -> str:
        return "" if self.gives_up(request) else super().recover(seen, request)

    def probe(self, probe: ProbeView, request: Request) -> str:
        return "DONE" if self.gives_up(request) else super().probe(probe, request)

    def gives_up(self, request: Request) -> bool:
        return self.chance(request, "quit") < self.rate(0.5)


class Sloppy(Reference):
    """Makes an arithmetic error with probability p (default 0.1), even if it sees every input."""

    def answer(self, seen: Situation, request: Request) -> str:
        values = seen.operate(seen.values)
        if self.chance(request, "slip") < self.rate(0.1):
            values = tuple((value + 1) % seen.spec.q for value in values)
        return answer_line(seen, values)


class Thrasher(Recoverer):
    """Fetches missing values three times before it answers."""

    def recover(self, seen: Situation, request: Request) -> str:
        return _lines(super().recover(seen, request).splitlines() * 3)

    def probe(self, probe: ProbeView, request: Request) -> str:
        first = super().probe(probe, request).partition("\n")[0]
        return "\n".join([first] * 3)


class NoteTaker(Recoverer):
    """Stores each answer with probability p (default 0.4): incomplete write-through.

    It matters only for memories that the agent fills itself, and every note costs an action. RQ3, "Behavior and
    mechanism", has the rates: 1.0 (Claude Opus 4.6, Scratch), 0.4 (GPT-4.1 Mini, Scratch–LRU) and near 0.0 (Claude
    Haiku 4.5, model-driven).
    """

    writes = 0.4  # default of p

    def keep(self, seen: Situation, request: Request) -> str:
        written = self.chance(request, "write") < self.rate(self.writes)
        return self.store(seen) if written else ""


class Substituter(NoteTaker):
    """Uses another record in place of one that it cannot obtain: the visible one with the nearest label.

    "Mechanistic evidence" names it, "the agent proceeds using an invalid substitute", without saying which; the nearest
    label is the rule here, the older of two. It stores every answer unless p is given.
    """

    writes = 1.0

    def answer(self, seen: Situation, request: Request) -> str:
        if not seen.missing:
            return super().answer(seen, request)
        visible = everything_known(seen)
        visible.pop(seen.t, None)
        nearest = {r: min(visible, key=lambda t: (abs(t - r), t)) for r in seen.missing} if visible else {}
        taken = {r: visible[t] for r, t in nearest.items()}
        return answer_line(seen, seen.operate(seen.values | taken))


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
