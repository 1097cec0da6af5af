"""Tries a user's own model and memory on two small sweeps before money is spent on large ones.

The sweeps are ordinary ones, with nothing missing and with almost everything missing; what holds is read from their
records. Nothing here judges how good a model or a memory is, only whether eirkit can measure it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from eirkit.lacuna.models.prices import Estimate, add_up
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.estimate import estimate_plan
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Decision, Event, ModelExchange, Verdicts
from eirkit.records.settings import TEXT
from eirkit.records.sweeps import Summary

SMALL = {"workload": "stepwise-sum", "n": 12, "m": 4}  # the task of every sweep here
SEEN, UNSEEN = 4, 1  # records in context: all that a step may need, and almost none
SEARCHER = "reference/recoverer"  # uses a memory as well as it can be used
_ENDED = ("", "stop", "end_turn", "tool_calls", "completed", "STOP")  # finish reasons of replies that are whole


@dataclass(frozen=True, slots=True)
class EndpointProperty:
    """One property of a model or a memory, and what was seen."""

    name: str
    holds: bool | None  # None: it is said, and neither good nor bad
    detail: str


def plans_for(given: Mapping[str, Any]) -> dict[str, Suite]:
    """Return the sweeps that a model, a memory or both are tried on; keys are those of a suite."""
    asked = {name: given[name] for name in ("model", "model_options") if name in given}
    found = {}
    if asked:
        found["model"] = read_suite({**SMALL, **asked, "h": [SEEN, UNSEEN], "seeds": "0:2"})
        found["again"] = read_suite({**SMALL, **asked, "h": SEEN, "seeds": "0"})
    if "memory" in given:
        settings = given.get("memory_options", {})
        uses_run = any(one.get("model") == "run" for one in settings.values())
        agent = asked if uses_run else {"model": SEARCHER}
        more = {"memory": given["memory"], "memory_options": settings}
        found["memory"] = read_suite({**SMALL, "n": 24, **agent, **more, "h": UNSEEN, "seeds": "0:2"})
    return found


def expected_cost(plans: Mapping[str, Suite], funds: SpendingLimits) -> Estimate:
    """Return an estimate of all sweeps; nothing is called."""
    return add_up([one.expected for plan in plans.values() for one in estimate_plan(plan, Budget(funds))])


def try_endpoint(plans: Mapping[str, Suite], folder: Path, funds: SpendingLimits) -> list[EndpointProperty]:
    """Run the sweeps, all of them under one cap, and return what was seen."""
    found: list[EndpointProperty] = []
    events: dict[str, dict[int, list[Event]]] = {}
    for name, plan in plans.items():
        summary = start_sweep(plan, folder / name, funds, control=False)
        found += [EndpointProperty("runs end", False, f"{one.kind}: {one.message}") for one in summary.failures]
        found += [EndpointProperty("runs end", False, line) for line in summary.stopped]
        events[name] = _events(folder / name)
        if funds.cap_usd is not None:
            spent = sum(row.cost_usd or 0.0 for row in summary.rows)
            funds = replace(funds, cap_usd=max(0.0, float(funds.cap_usd) - spent))
        if name == "memory":
            found += _memory(summary)
        if summary.stopped:
            break  # at the cap; further sweeps could not keep to it
    if events.get("model"):
        protocol = next(plans["model"].plan())[0].protocol
        found += _model(events["model"], events.get("again", {}), protocol)
    return found


def _events(folder: Path) -> dict[int, list[Event]]:
    """Return the events of finished runs by the number of records in context."""
    found: dict[int, list[Event]] = {}
    with SweepDatabase(folder) as database:
        for record in database.records():
            found.setdefault(record.setting.access.capacity, []).extend(database.events(record.run))
    return found


def _model(
    events: Mapping[int, Sequence[Event]], again: Mapping[int, Sequence[Event]], protocol: str
) -> Iterator[EndpointProperty]:
    everything = [event for listed in events.values() for event in listed]
    exchanges = [event for event in everything if isinstance(event, ModelExchange)]
    yield _read([event for event in everything if isinstance(event, Decision)], protocol)
    yield _whole(exchanges)
    yield _counted(exchanges)
    yield _blind(events.get(UNSEEN, ()))
    yield _able(events.get(SEEN, ()))
    yield _repeats(events.get(SEEN, ()), again.get(SEEN, ()))
    waits = [exchange.latency_seconds for exchange in exchanges]
    yield EndpointProperty("latency", None, f"median {median(waits):.2f} s, longest {max(waits):.2f} s")


def _read(decisions: Sequence[Decision], protocol: str) -> EndpointProperty:
    faults = Counter(decision.fault for decision in decisions if decision.fault)
    words = "".join(f", {count} {fault}" for fault, count in faults.items())
    if faults["malformed"] and protocol != TEXT:
        words += f"; if its server takes no notice of --protocol {protocol}, use text"
    read = len(decisions) - sum(faults.values())
    return EndpointProperty("answers can be read", not faults, f"{read} of {len(decisions)} replies{words}")


def _whole(exchanges: Sequence[ModelExchange]) -> EndpointProperty:
    ends = Counter(exchange.finish or "not reported" for exchange in exchanges)
    words = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    return EndpointProperty("replies are whole", not set(ends) - {*_ENDED, "not reported"}, words)


def _counted(exchanges: Sequence[ModelExchange]) -> EndpointProperty:
    silent = sum(exchange.input_tokens == 0 for exchange in exchanges)
    tokens = sum(exchange.input_tokens + exchange.output_tokens for exchange in exchanges)
    reasoned = sum(exchange.reasoning_tokens for exchange in exchanges)
    words = f"{tokens:,} tokens{f', {reasoned:,} of them reasoning' if reasoned else ''}"
    if silent and all(exchange.cost_usd == 0 for exchange in exchanges):
        return EndpointProperty("tokens are reported", None, "no counts; the model is free")
    return EndpointProperty("tokens are reported", not silent, f"{silent} replies without a count" if silent else words)


def _blind(events: Sequence[Event]) -> EndpointProperty:
    """A right answer at a step whose inputs were never shown has one chance in the number of values."""
    numbered = list(_by_run(events))
    missed = {(run, event.t) for run, event in numbered if isinstance(event, Decision) and event.unavailable}
    wrong = {(run, step.t) for run, event in numbered if isinstance(event, Verdicts) for step in event.wrong}
    right = len(missed - wrong)
    return EndpointProperty(
        "it knows only what it is shown",
        not right if missed else None,
        f"right at {right} of {len(missed)} steps without input",
    )


def _able(events: Sequence[Event]) -> EndpointProperty:
    steps = sum(isinstance(event, Decision) for event in events)
    wrong = sum(len(event.wrong) for event in events if isinstance(event, Verdicts))
    return EndpointProperty("it can do the task", None, f"{steps - wrong} of {steps} steps right with nothing missing")


def _repeats(first: Sequence[Event], second: Sequence[Event]) -> EndpointProperty:
    now, then = ([event.reply for event in events if isinstance(event, ModelExchange)] for events in (first, second))
    same = sum(a == b for a, b in zip(now, then, strict=False))
    return EndpointProperty(
        "the same prompt, the same reply", None, f"{same} of {min(len(now), len(then))} replies in a second run"
    )


def _by_run(events: Sequence[Event]) -> Iterator[tuple[int, Event]]:
    """Yield events with the number of their run; the verdicts end each."""
    run = 0
    for event in events:
        yield run, event
        run += isinstance(event, Verdicts)


def _memory(summary: Summary) -> Iterator[EndpointProperty]:
    for row in summary.rows:
        system = row.memory_system
        if system is None or not row.scored:
            continue
        outcomes = {outcome: count for outcome, count in system.outcomes.items() if count}
        words = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes.items())
        yield EndpointProperty("it returns what was written", set(outcomes) <= {"used"}, f"of records needed: {words}")
        yield from (EndpointProperty("diagnosis", False, line) for line in system.diagnosis)
        yield EndpointProperty("search latency", None, f"mean {1000 * (system.search_seconds or 0.0):.1f} ms")
        if system.model_calls:
            yield EndpointProperty("its own model", None, f"{system.model_calls} calls")
