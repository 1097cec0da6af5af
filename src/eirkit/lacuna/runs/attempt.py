"""Executes and scores one run and builds its records; which error counts as which kind of failed run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from eirkit.errors import ModelError, PluginError, SpendCapReached, StoreError, UsageError, describe
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.telemetry import Exchange, Trace, events_of
from eirkit.lacuna.findings.behavior import continuations
from eirkit.lacuna.findings.causes import score
from eirkit.lacuna.findings.fates import memory_record
from eirkit.lacuna.memories.budgets import PromptBudget
from eirkit.lacuna.memories.calls import usage_of
from eirkit.lacuna.memories.memory import MemorySystem, MemoryUsage
from eirkit.lacuna.memories.plan import MemoryPlan, MemoryPool, memory_factory
from eirkit.lacuna.models.model import LENGTH, NO_USAGE, Model
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.family import TaskFamily, Unrecovered
from eirkit.lacuna.runs.ingestion import Ingestion
from eirkit.lacuna.runs.sessions import lost_answer_of
from eirkit.lacuna.tasks.task import GeneratedTask, TaskInstance
from eirkit.records.database import FinishedRun
from eirkit.records.events import Answer, Decision, Verdicts, WrongStep, encode_events
from eirkit.records.money import exact_sum
from eirkit.records.runs import Failure, MemoryRun, RunRecord, RunUsage, SharedIngestion
from eirkit.records.settings import RecoveryProbe


@dataclass(frozen=True, slots=True)
class CellContext:
    """What all runs of one cell share."""

    cell: Cell
    family: TaskFamily[Any, Any]
    model: Model
    rules_sha256: str
    texts: bool
    scrub: Scrubber
    unrecovered: Mapping[int, Unrecovered] = field(default_factory=dict)  # by seed, if it depends on another cell
    renderer: Renderer = render  # looked up once per cell, because the lookup takes as long as many steps


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What a run used of its memory system, and the part of it for which another run asked."""

    usage: MemoryUsage
    shared: SharedIngestion | None = None


async def attempt(
    context: CellContext, task: GeneratedTask, memories: MemoryPool, ingestion: Ingestion | None = None
) -> FinishedRun | Failure:
    """Run one task to its end and score it.

    Args:
        ingestion: of the conversation, for several runs of which this is one.
    """
    trace = Trace()
    try:
        used = await run_session(context, task, memories, trace, ingestion)
        return finished_run(context, task, trace, used)
    except (SpendCapReached, UsageError):
        raise  # the user's own limit or input, not a failure of the run
    except Exception as error:  # noqa: BLE001 - any other error is recorded as a failed run, never as a score
        return _failure(context, task, trace, error)


async def run_session(
    context: CellContext,
    task: GeneratedTask,
    memories: MemoryPool,
    trace: Trace,
    ingestion: Ingestion | None = None,
) -> MemoryUse | None:
    """Run one task to its end into a trace, and return the usage of its memory system, if it has one.

    Errors are raised unchanged; the trace keeps the events so far.

    Args:
        ingestion: of the conversation, for several runs of which this is one.
    """
    session, plan = session_of(context, task), context.cell.memory_plan
    if plan is None:
        await drive(session, context.model, trace=trace)
        return None
    run = context.cell.run_id(task.spec.seed)
    if ingestion is None:
        async with memories.scope(plan, run, task) as memory:
            return MemoryUse(await _ask(context, session, memory, plan, trace))
    if ingestion.error is not None:
        raise ingestion.error
    try:
        if memories.holds(plan, ingestion.run):
            async with memories.scope(plan, run, task, goes_on=True) as memory:
                if await ingestion.is_intact(memory, plan.seconds):
                    ingestion.take_over(session, trace)
                    begun, shared = await usage_of(memory, plan.seconds), ingestion.shared
                    ended = await _ask(context, session, memory, plan, trace)
                    return MemoryUse(ingestion.usage_since(begun, ended), shared)
        ingestion.run = ""
        async with memories.scope(plan, run, task) as memory:
            await ingestion.take_in(session, memory, trace, run, plan.seconds)
            return MemoryUse(await _ask(context, session, memory, plan, trace))
    except SpendCapReached:
        raise
    except Exception as error:
        if not ingestion.run:
            ingestion.error = error
        raise


async def _ask(
    context: CellContext, session: Session, memory: MemorySystem, plan: MemoryPlan, trace: Trace
) -> MemoryUsage:
    """Run a session to its end with a memory, and return the usage of the memory."""
    weigh = context.family.weighs_holdings
    budget = PromptBudget.of(context.cell.access.budget, memory_factory().passages_asked(plan))
    await drive(session, context.model, memory, trace, memory_seconds=plan.seconds, weigh=weigh, budget=budget)
    return await usage_of(memory, plan.seconds)


def session_of(context: CellContext, task: GeneratedTask) -> Session:
    """Return the session of one run."""
    cell, unrecovered = context.cell, context.unrecovered.get(task.spec.seed)
    session = context.family.session(cell.access, task, cell.intervention, unrecovered)
    session.renderer = context.renderer
    session.protocol, session.reask = cell.protocol, cell.options.reask
    return session


def finished_run(context: CellContext, task: GeneratedTask, trace: Trace, used: MemoryUse | None = None) -> FinishedRun:
    """Return the records of a run that has ended.

    Args:
        used: the usage of its memory system, if it has one.
    """
    if isinstance(context.cell.intervention, RecoveryProbe) and isinstance(task, TaskInstance):
        return _finish_probe(context, task, trace, context.cell.intervention)
    decisions, actions, exchanges = trace.decisions, trace.actions, trace.exchanges
    judged = context.family.judge(context.cell.access, task, trace)
    verdicts = judged.verdicts
    behavior = {**_count(continuations(decisions, exchanges, actions).values()), **judged.behavior}
    unrecovered = context.unrecovered.get(task.spec.seed)
    memory: MemoryRun | None = None
    if used is not None:
        consultations, plan = trace.consultations, context.cell.memory_plan
        limit = None if plan is None else plan.limit
        memory = structs.replace(
            memory_record(used.usage, consultations, judged.lookups),
            limit=limit,
            floor=context.family.floor(task, trace, limit),
            profile=memory_factory().profile_record(plan),
            shared=used.shared,
        )
    record = structs.replace(
        _begun(context, task, trace),
        score=score(verdicts, decisions, max_turn=trace.ending == "action-limit"),
        faults=_count(decision.fault for decision in decisions),
        refusals=_count(action.reason for action in actions),
        constant=_constant(decisions),
        behavior=behavior,
        injected=None
        if unrecovered is None
        else tuple((t, tuple(sorted(refs))) for t, refs in sorted(unrecovered.items())),
        memory=memory,
        conversation=judged.conversation,
    )
    wrong = tuple(WrongStep(v.t, v.cause, v.kind) for v in verdicts if v.cause is not None)
    return FinishedRun(record, encode_events([*events_of(trace, texts=context.texts), Verdicts(wrong)]))


def _begun(context: CellContext, task: GeneratedTask, trace: Trace) -> RunRecord:
    """Return a record with what all runs have."""
    return RunRecord(
        run=context.cell.run_id(task.spec.seed),
        cell=context.cell.id,
        seed=task.spec.seed,
        fingerprint=task.fingerprint,
        rules_sha256=context.rules_sha256,
        ending=trace.ending,
        usage=usage_of_run(trace, trace.exchanges),
        setting=context.cell.setting,
    )


def _finish_probe(context: CellContext, task: TaskInstance, trace: Trace, probe: RecoveryProbe) -> FinishedRun:
    """Return the records of a probe, which have the lost answer in place of a score."""
    lost = lost_answer_of(context.cell.access, probe, task)
    record = structs.replace(_begun(context, task, trace), lost=lost)
    return FinishedRun(record, encode_events(events_of(trace, texts=context.texts)))


def usage_of_run(trace: Trace, exchanges: Sequence[Exchange]) -> RunUsage:
    """Return the usage of the model and the memory; the cost is unknown if that of any reply is."""
    replies = [exchange.reply for exchange in exchanges]
    usages = [reply.usage for reply in replies if reply.usage is not NO_USAGE]  # nothing adds nothing
    return RunUsage(
        calls=len(exchanges),
        cache_hits=sum([usage.from_cache for usage in usages]),
        input_tokens=sum([usage.input_tokens for usage in usages]),
        output_tokens=sum([usage.output_tokens for usage in usages]),
        cached_tokens=sum([usage.cached_tokens for usage in usages]),
        unreported_calls=sum([not usage.is_reported for usage in usages if usage != NO_USAGE]),
        reasoning_tokens=sum([usage.reasoning_tokens for usage in usages]),
        reasked=sum([entry.action == "REASK" for entry in trace.actions]),
        truncated_replies=sum([reply.finish == LENGTH for reply in replies]),
        max_tokens=max([reply.max_tokens for reply in replies], default=0),
        cost_usd=exact_sum([usage.cost_usd for usage in usages]),
        latency_seconds=round(math.fsum([reply.latency_seconds for reply in replies]), 6),
        memory_calls=len(trace.consultations),
    )


def _count(kinds: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter([kind for kind in kinds if kind]).items()))


def _constant(decisions: Sequence[Decision]) -> Answer | None:
    """Return the answer if all steps have the same one."""
    given = {decision.submitted for decision in decisions}
    (only,) = given if len(given) == 1 else (None,)
    return only if len(decisions) > 1 else None


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


def _failure(context: CellContext, task: GeneratedTask, trace: Trace, error: Exception) -> Failure:
    return Failure(
        run=context.cell.run_id(task.spec.seed),
        cell=context.cell.id,
        seed=task.spec.seed,
        workload=task.spec.workload,
        model=context.cell.model,
        condition=context.cell.access.memory or context.cell.access.condition,
        kind=failure_kind(error),
        message=context.scrub.excerpt(describe(error)) + _remedy(context, error),
        steps=len(trace.decisions),
        usage=usage_of_run(trace, trace.exchanges),
    )
