"""Executes and scores one run and builds its records; which error counts as which kind of failed run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eirkit.errors import ModelError, PluginError, SpendCapReached, StoreError, UsageError, describe
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.session import ActionTaken, ControlledSession, Decision, Session
from eirkit.lacuna.agents.telemetry import Exchange, Trace, event_lines
from eirkit.lacuna.findings.behaviour import continuations, measure_behaviour
from eirkit.lacuna.findings.causes import RunScore, judge, score
from eirkit.lacuna.findings.fates import FateCounts, count_fates, memory_record
from eirkit.lacuna.findings.floor import floor_record, holdings
from eirkit.lacuna.memories.calls import usage_of
from eirkit.lacuna.memories.memory import MemoryUsage
from eirkit.lacuna.memories.plan import MemoryPool, memory_factory
from eirkit.lacuna.models.ledger import exact_sum
from eirkit.lacuna.models.model import LENGTH, NO_USAGE, Model
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.cells import Cell, RecoveryProbe, Unrecovered, conversation_runs
from eirkit.lacuna.runs.sessions import lost_answer_of, make_session
from eirkit.lacuna.runs.store import EVENT_SCHEMA, FinishedRun
from eirkit.lacuna.tasks.generation import graph_of
from eirkit.lacuna.tasks.policy import Structure
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.workload import Telling, Workload
from eirkit.records.lines import encode


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed for external reasons; never scored, and repeated on resume."""

    record: dict[str, Any]  # the fields of failure/1

    @property
    def kind(self) -> str:
        return str(self.record["kind"])


@dataclass(frozen=True, slots=True)
class CellContext:
    """What all runs of one cell share."""

    cell: Cell
    workload: Workload
    structure: Structure
    model: Model
    rules_sha256: str
    texts: bool
    scrub: Scrubber
    coordinates: Mapping[str, Any]  # the cell as it appears in every run record
    unrecovered: Mapping[int, Unrecovered] = field(
        default_factory=dict
    )  # by seed, for a cell that depends on the runs of another
    renderer: Renderer = render  # looked up once per cell, because the lookup takes as long as many steps


async def attempt(context: CellContext, task: TaskInstance, memories: MemoryPool) -> FinishedRun | Failure:
    """Run one task to its end and score it."""
    trace = Trace()
    try:
        used = await run_session(context, task, memories, trace)
        return finished_run(context, task, trace, used)
    except (SpendCapReached, UsageError):
        raise  # the user's own limit or input, not a failure of the run
    except Exception as error:  # noqa: BLE001 - any other error is recorded as a failed run, never as a score
        return Failure(_failure_record(context, task, trace, error))


async def run_session(
    context: CellContext, task: TaskInstance, memories: MemoryPool, trace: Trace
) -> MemoryUsage | None:
    """Run one task to its end into a trace, and return the usage of its memory system, if it has one.

    Errors are raised unchanged; the trace keeps the events so far.
    """
    session, plan = session_of(context, task), context.cell.memory_plan
    if plan is None:
        await drive(session, context.model, trace=trace)
        return None
    async with memories.scope(plan, context.cell.run_id(task.spec.seed), task) as memory:
        weigh = context.workload.closed_form  # the floor compares holdings with EIR, if EIR has a closed form
        asked = memory_factory().passages_asked(plan)
        await drive(session, context.model, memory, trace, memory_seconds=plan.seconds, weigh=weigh, passages=asked)
        return await usage_of(memory, plan.seconds)


def session_of(context: CellContext, task: TaskInstance) -> Session:
    """Return the session of one run."""
    cell, unrecovered = context.cell, context.unrecovered.get(task.spec.seed)
    session = make_session(cell.access, task, context.workload, context.structure, cell.intervention, unrecovered)
    session.renderer = context.renderer
    if isinstance(session, ControlledSession):
        session.reask = cell.options.reask
    return session


def finished_run(
    context: CellContext, task: TaskInstance, trace: Trace, used: MemoryUsage | None = None
) -> FinishedRun:
    """Return the records of a run that has ended.

    Args:
        used: the usage of its memory system, if it has one.
    """
    if isinstance(context.cell.intervention, RecoveryProbe):
        return _finish_probe(context, task, trace, context.cell.intervention)
    decisions, actions, exchanges = trace.decisions, trace.actions, trace.exchanges
    words: dict[str, Any] | None = None
    if isinstance(context.workload, Telling):
        verdicts, words = conversation_runs().judge_told(context.cell.access, task, trace)
    else:
        verdicts = judge(task, context.workload, decisions, actions)
    run = context.cell.run_id(task.spec.seed)
    unrecovered = context.unrecovered.get(task.spec.seed)
    wrong = [[v.t, v.cause, v.kind] for v in verdicts if v.cause is not None]
    last = encode(EVENT_SCHEMA, {"run": run, "type": "verdicts", "wrong": wrong})
    behaviour = _count(continuations(decisions, exchanges, actions).values())
    if not context.cell.access.is_controlled and words is None:
        behaviour |= asdict(measure_behaviour(graph_of(task), actions, decisions, verdicts))
    record = {
        **_head(context, task, trace),
        "score": score_record(score(verdicts, decisions, max_turn=trace.ending == "action-limit")),
        "faults": _count(decision.fault for decision in decisions),
        "refusals": _count(action.reason for action in actions),
        "constant": _constant(decisions),
        "behaviour": behaviour,
        "usage": usage_record(trace, exchanges),
    }
    if unrecovered is not None:
        record["injected"] = [[t, sorted(refs)] for t, refs in sorted(unrecovered.items())]
    if used is not None:
        consultations = trace.consultations
        lookups = FateCounts({}, 0, 0) if words else count_fates(decisions, verdicts, consultations)
        limit = None if context.cell.memory_plan is None else context.cell.memory_plan.limit
        more = {"limit": limit, "floor": _floor(context, task, trace, limit)}
        profile = memory_factory().profile_record(context.cell.memory_plan)
        more |= {} if profile is None else {"profile": profile}
        record["memory"] = memory_record(used, consultations, lookups) | more
    if words is not None:
        record["words"] = words
    return FinishedRun(record, event_lines(trace, run, texts=context.texts) + last, len(trace.log) + 1)


def _head(context: CellContext, task: TaskInstance, trace: Trace) -> dict[str, Any]:
    """Return the fields that all run records start with."""
    return {
        "run": context.cell.run_id(task.spec.seed),
        "cell": context.cell.id,
        "seed": task.spec.seed,
        **context.coordinates,
        "fingerprint": task.fingerprint,
        "rules_sha256": context.rules_sha256,
        "ending": trace.ending,
    }


def _finish_probe(context: CellContext, task: TaskInstance, trace: Trace, probe: RecoveryProbe) -> FinishedRun:
    """Return the records of a probe, which have the lost answer in place of a score."""
    lost = asdict(lost_answer_of(context.cell.access, probe, task))
    record = {**_head(context, task, trace), "moment": lost, "usage": usage_record(trace, trace.exchanges)}
    return FinishedRun(record, event_lines(trace, record["run"], texts=context.texts), len(trace.log))


def _floor(context: CellContext, task: TaskInstance, trace: Trace, limit: int | None) -> dict[str, Any] | None:
    """Return what was needed and held at each cut, if EIR has a closed form."""
    if not context.workload.closed_form:
        return None
    held = holdings(task.spec.n, trace.decisions, trace.consultations, limit)
    curve = context.workload.demand(task.spec, graph_of(task))
    return floor_record(curve, held, math.log2(context.workload.alphabet(task.spec)))


def score_record(scored: RunScore) -> dict[str, Any]:
    """Return a score as plain data; `read_score` inverts it."""
    fields = {name: getattr(scored, name) for name in RunScore.__slots__}
    return {**fields, "errors": dict(scored.errors), "kinds": dict(sorted(scored.kinds.items()))}


def usage_record(trace: Trace, exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return the usage of the model and the memory; the cost is unknown if that of any reply is."""
    replies = [exchange.reply for exchange in exchanges]
    usages = [reply.usage for reply in replies if reply.usage is not NO_USAGE]  # nothing adds nothing
    unreported = sum([not usage.is_reported for usage in usages if usage != NO_USAGE])
    return {
        "calls": len(exchanges),
        "cache_hits": sum([usage.from_cache for usage in usages]),
        "input_tokens": sum([usage.input_tokens for usage in usages]),
        "output_tokens": sum([usage.output_tokens for usage in usages]),
        "cached_tokens": sum([usage.cached_tokens for usage in usages]),
        **({"unreported_calls": unreported} if unreported else {}),
        "reasoning_tokens": sum([usage.reasoning_tokens for usage in usages]),
        "reasked": sum([entry.action == "REASK" for entry in trace.log if isinstance(entry, ActionTaken)]),
        "truncated_replies": sum([reply.finish == LENGTH for reply in replies]),
        "max_tokens": max([reply.max_tokens for reply in replies], default=0),
        "cost_usd": exact_sum([usage.cost_usd for usage in usages]),
        "latency_seconds": round(math.fsum([reply.latency_seconds for reply in replies]), 6),
        "memory_calls": len(trace.consultations),
    }


def _count(kinds: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter([kind for kind in kinds if kind]).items()))


def _constant(decisions: Sequence[Decision]) -> list[int] | None:
    """Return the answer if all steps have the same one."""
    given = {decision.submitted for decision in decisions}
    (only,) = given if len(given) == 1 else (None,)
    return None if only is None or len(decisions) < 2 else list(only)


_ANEW = "; correct it and start anew with another --out"
_RESUME = {
    "memory": "; correct the memory system, then resume",
    "model": "; correct the model, then resume",
    "policy": "; correct the policy, then resume",
    "workload": "; correct the workload, then resume",
}


def cause_of(message: str) -> str:
    """Return the message of a failure without the remedy that applies to sweeps only."""
    for remedy in (_ANEW, *_RESUME.values()):
        message = message.removesuffix(remedy)
    return message


def failure_kind(error: Exception) -> str:
    """Return the kind of a failure: the kind of a ModelError, the family of a plug-in, or `harness`."""
    if isinstance(error, ModelError):
        return error.kind
    if isinstance(error, StoreError):
        return "memory"
    return error.side if isinstance(error, PluginError) else "harness"


def _remedy(context: CellContext, error: Exception) -> str:
    """Return the remedy for an error of a plug-in; other errors contain theirs."""
    if not isinstance(error, PluginError):
        return ""
    access = context.cell.access
    names: dict[str, str | None] = {
        "memory": access.memory,
        "model": context.cell.model,
        "policy": access.policy or access.condition,
        "workload": context.cell.task.workload,
    }
    if ".py:" in (
        names.get(error.side) or ""
    ):  # the file is part of the sweep, so a sweep with an edited file cannot be resumed
        return _ANEW
    return _RESUME.get(error.side, "")


def _failure_record(context: CellContext, task: TaskInstance, trace: Trace, error: Exception) -> dict[str, Any]:
    return {
        "run": context.cell.run_id(task.spec.seed),
        "cell": context.cell.id,
        "seed": task.spec.seed,
        "workload": task.spec.workload,
        "model": context.cell.model,
        "condition": context.cell.access.memory or context.cell.access.condition,
        "kind": failure_kind(error),
        "message": context.scrub.excerpt(describe(error)) + _remedy(context, error),
        "steps": len(trace.decisions),
        "usage": usage_record(trace, trace.exchanges),
    }
