"""Writes the table "estimate against bill" of docs/models.md: ten models on loopback, estimated twice and billed.

python tools/estimates.py [--write]     without --write it exits with 1 if the page is out of date
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the server is that of the tests

from tests.faults.money import HERE, MEMORY, SERVER  # noqa: E402
from tests.lacuna.prompt_reading import read_body  # noqa: E402
from tests.lacuna.servers import Answer, ModelServer, Received, as_json, document, fails  # noqa: E402

from eirkit.lacuna.agents.reference import make_reference  # noqa: E402
from eirkit.lacuna.memories.calls import wait_for  # noqa: E402
from eirkit.lacuna.models.model import ModelOptions  # noqa: E402
from eirkit.lacuna.models.prices import add_up  # noqa: E402
from eirkit.lacuna.runs.budget import Budget, SpendingLimits  # noqa: E402
from eirkit.lacuna.runs.estimate import estimate_plan, read_recorded  # noqa: E402
from eirkit.lacuna.runs.runner import Progress  # noqa: E402
from eirkit.lacuna.runs.suite import Suite, read_suite  # noqa: E402
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep  # noqa: E402

PAGE = ROOT / "docs/models.md"
BEGIN, END = "<!-- estimates: made by tools/estimates.py -->\n", "<!-- end of estimates -->\n"
FIRST = 2  # runs after which the estimate is made again
PRICE = "{ input = 2.00, cached = 0.50, output = 8.00, as_of = 2026-01-01 }"
PRICES = f'[prices]\n"openai/any" = {PRICE}\n"{HERE}:served/any" = {PRICE}\n'
TASKS = {"workload": "stepwise-sum", "n": 10, "m": 5, "h": 3, "seeds": "0:10"}


@dataclass(frozen=True, slots=True)
class Behavior:
    """How a model on loopback answers and counts."""

    name: str
    output: Callable[[str], int] = lambda prompt: 6  # tokens of a reply
    chars_per_token: float = 4.0
    cached: float = 0.0  # share of the prompt
    refused: int = 0  # every so many requests it is busy
    tasks: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of the model


ASKS = {"model": f"{HERE}:served/any"}


def _uneven(prompt: str) -> int:
    return 20 + sum(prompt.encode()) % 200


BEHAVIORS = (
    Behavior("short answers"),
    Behavior("another tokenizer", chars_per_token=2.6),
    Behavior("explains every answer", lambda prompt: 180),
    Behavior("explains, at uneven length", _uneven),
    Behavior("reasons", lambda prompt: 700 + _uneven(prompt)),
    Behavior("most of the prompt cached", cached=0.8),
    Behavior("busy: every third request is refused", refused=3),
    Behavior("managed retention", lambda prompt: 40, tasks={"condition": "lru", "b": 20}),
    Behavior(
        "managed retention, tools",
        lambda prompt: 40,
        tasks={"condition": "lru", "b": 20},
        options={"protocol": "tools"},
    ),
    Behavior("a memory system that asks a model", _uneven, tasks={"memory": MEMORY, "memory_options": {MEMORY: ASKS}}),
)


class Provider:
    """A server that answers as an agent does and keeps its own account of what it bills."""

    def __init__(self, behavior: Behavior) -> None:
        self.behavior = behavior
        self.usd, self.requests = Decimal(0), 0
        self._agent = make_reference("recoverer", ModelOptions())

    def __call__(self, received: Received) -> Answer:
        self.requests += 1
        if self.behavior.refused and self.requests % self.behavior.refused == 0:
            return fails(503, "busy", headers=(("Retry-After", "0.001"),))
        prompt = "".join(str(message["content"]) for message in received.body["messages"])
        prompt += "".join(
            json.dumps(received.body[key]) for key in ("response_format", "tools") if key in received.body
        )
        inputs, output = round(len(prompt) / self.behavior.chars_per_token), self.behavior.output(prompt)
        cached = int(inputs * self.behavior.cached)
        self.usd += (Decimal(2) * (inputs - cached) + Decimal("0.5") * cached + Decimal(8) * output) / 1_000_000
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        usage = {"prompt_tokens": inputs, "completion_tokens": output, **details}
        return as_json(document(self._message(received.body), usage=usage))

    def _message(self, body: Any) -> dict[str, Any]:
        if len(body["messages"]) == 1:
            return {"role": "assistant", "content": "noted"}  # what a memory system asks is no prompt of a session
        reply = wait_for(self._agent.reply(read_body(body)))
        calls = [{"name": one.name, "arguments": json.dumps(dict(one.arguments))} for one in reply.calls]
        listed = [{"id": f"c{n}", "type": "function", "function": call} for n, call in enumerate(calls)]
        return {"role": "assistant", "content": reply.text or None, **({"tool_calls": listed} if listed else {})}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a sweep was estimated to cost before it began and after its first runs, and what it was billed."""

    name: str
    before_usd: float
    early_usd: float
    bill_usd: Decimal

    @property
    def error(self) -> float:
        return self.early_usd / float(self.bill_usd) - 1


class _EnoughError(Exception):
    """The first runs are done."""


def _stop_early(now: Progress) -> None:
    if now.runs == FIRST:
        raise _EnoughError


def compare(behavior: Behavior, folder: Path) -> Comparison:
    """Run a sweep, estimate it before the first call and after the first runs, and ask the server for its bill."""
    (prices := folder / "prices.toml").write_text(PRICES)
    provider, out = Provider(behavior), folder / "out"
    with ModelServer(provider) as server:
        os.environ[SERVER] = server.url
        options = {"base_url": server.url, "connections": 1, "retries": 8, **behavior.options}
        suite = read_suite({"model": "openai/any", **TASKS, **behavior.tasks, "model_options": options})
        funds = SpendingLimits(prices=prices)
        before = _estimate(suite, Budget(funds))
        with suppress(_EnoughError):
            start_sweep(suite, out, funds, _stop_early)
        known = read_recorded(out)
        early = _estimate(suite, Budget(folder=out), known) + float(known.journal.spending.total_usd)
        resume_sweep(out)
    return Comparison(behavior.name, before, early, provider.usd)


def _estimate(suite: Suite, budget: Budget, known: Any = None) -> float:
    found = add_up([one.expected for one in estimate_plan(suite, budget, known)]).cost_usd
    assert found is not None
    return found


def compare_all() -> list[Comparison]:
    found = []
    for behavior in BEHAVIORS:
        with TemporaryDirectory() as folder:
            found.append(compare(behavior, Path(folder)))
    return found


HEAD = "| model | before the first call | after 2 of 10 runs | bill | error after 2 runs |\n|---|---|---|---|---|\n"


def line(one: Comparison) -> str:
    """Return a line of the table."""
    amounts = f"${one.before_usd:.4f} | ${one.early_usd:.4f} | ${one.bill_usd:.4f}"
    return f"| {one.name} | {amounts} | {one.error:+.1%} |\n"


def main(arguments: list[str]) -> int:
    """Write the table, or compare it with the page."""
    text = PAGE.read_text("utf-8")
    start, stop = text.index(BEGIN) + len(BEGIN), text.index(END)
    made = f"{text[:start]}\n{HEAD}{''.join(map(line, compare_all()))}\n{text[stop:]}"
    if arguments == ["--write"]:
        PAGE.write_text(made, "utf-8")
    elif made != text:
        print(f"{PAGE.relative_to(ROOT)} is out of date; run python tools/estimates.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
