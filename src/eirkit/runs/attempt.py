"""One run from start to records: a cell and a task come in, a finished run or a typed failure goes out.

What a model, a memory, a policy or a workload raises arrives typed; here it becomes the record of a failed run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eirkit.agents.driver import drive
from eirkit.agents.memory import MemoryUsage
from eirkit.agents.memory_calls import usage_of
from eirkit.agents.model import Model
from eirkit.agents.prompt import Renderer, render
from eirkit.agents.serving.scrubber import Scrubber
from eirkit.agents.session import Decision
from eirkit.agents.stores.memory_pool import MemoryPool
from eirkit.agents.telemetry import Exchange, Trace
from eirkit.errors import ModelError, PluginError, SpendCapReached, StoreError, UsageError, describe
from eirkit.findings.behaviour import continuations, measure_behaviour
from eirkit.findings.causes import RunScore, judge, score
from eirkit.findings.fates import count_fates, memory_record
from eirkit.findings.floor import floor_record, holdings
from eirkit.records import encode
from eirkit.runs.cells import Cell, RecoveryProbe
from eirkit.runs.event_lines import event_lines
from eirkit.runs.restoration import Unrecovered
from eirkit.runs.sessions import lost_answer_of, make_session
from eirkit.runs.store import EVENT_SCHEMA, FinishedRun
from eirkit.tasks.generation import graph_of
from eirkit.tasks.policy import Structure
from eirkit.tasks.task import TaskInstance
from eirkit.tasks.workload import Workload


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that the world broke: never a zero, tried again on resume."""

    record: dict[str, Any]  # the fields of failure/1

    @property
    def kind(self) -> str:
        return str(self.record["kind"])


@dataclass(frozen=True, slots=True)
class CellContext:
    """What the runs of one cell share."""

    cell: Cell
    workload: Workload
    structure: Structure
    model: Model
    rules_sha256: str
    texts: bool
    scrub: Scrubber
    coordinates: Mapping[str, Any]  # the cell as every run record repeats it
    lacking: Mapping[int, Unrecovered] = field(default_factory=dict)  # by seed, of a cell that follows another
    renderer: Renderer = render  # found once for all runs: looking up a provider takes as long as many steps


async def attempt(stage: CellContext, task: TaskInstance, memories: MemoryPool) -> FinishedRun | Failure:
    """Run one task to its end and score it."""
    trace = Trace()
    try:
        used = await run_session(stage, task, memories, trace)
        return finished_run(stage, task, trace, used)
    except (SpendCapReached, UsageError):
        raise  # nobody's failure: the user's own limit or input
    except Exception as error:  # noqa: BLE001 - a run that breaks, whoever broke it, is recorded and never a score
        return Failure(_failure_record(stage, task, trace, error))


async def run_session(stage: CellContext, task: TaskInstance, memories: MemoryPool, trace: Trace) -> MemoryUsage | None:
    """Run one task to its end into a trace, and return what its memory system held and took, if it has one.

    Whatever is raised passes through; the trace keeps what there was until then.
    """
    cell, lacking = stage.cell, stage.lacking.get(task.spec.seed)
    session = make_session(cell.access, task, stage.workload, stage.structure, cell.intervention, lacking)
    session.renderer = stage.renderer
    plan = cell.memory_plan
    if plan is None:
        await drive(session, stage.model, trace=trace)
        return None
    async with memories.scope(plan, cell.run_id(task.spec.seed), task) as memory:
        weigh = stage.workload.closed_form  # what is held is compared with what is needed, where that is known
        await drive(session, stage.model, memory, trace, memory_seconds=plan.seconds, weigh=weigh)
        return await usage_of(memory, plan.seconds)


def finished_run(stage: CellContext, task: TaskInstance, trace: Trace, used: MemoryUsage | None = None) -> FinishedRun:
    """Return the records of a run that came to its end.

    Args:
        used: what its memory system held and took, if it had one.
    """
    if isinstance(stage.cell.intervention, RecoveryProbe):
        return _finish_probe(stage, task, trace, stage.cell.intervention)
    decisions, actions, exchanges = trace.decisions, trace.actions, trace.exchanges
    verdicts = judge(task, stage.workload, decisions, actions)
    run = stage.cell.run_id(task.spec.seed)
    lacking = stage.lacking.get(task.spec.seed)
    wrong = [[v.t, v.cause, v.kind] for v in verdicts if v.cause is not None]
    last = encode(EVENT_SCHEMA, {"run": run, "type": "verdicts", "wrong": wrong})
    behaviour = _count(continuations(decisions, exchanges, actions).values())
    if not stage.cell.access.is_controlled:
        behaviour |= asdict(measure_behaviour(graph_of(task), actions, decisions, verdicts))
    record = {
        **_head(stage, task, trace),
        "score": score_record(score(verdicts, decisions, max_turn=trace.ending == "action-limit")),
        "faults": _count(decision.fault for decision in decisions),
        "refusals": _count(action.reason for action in actions),
        "constant": _constant(decisions),
        "behaviour": behaviour,
        "usage": usage_record(trace, exchanges),
    }
    if lacking is not None:
        record["injected"] = [[t, sorted(refs)] for t, refs in sorted(lacking.items())]
    if used is not None:
        consultations = trace.consultations
        lookups = count_fates(decisions, verdicts, consultations)
        limit = None if stage.cell.memory_plan is None else stage.cell.memory_plan.limit
        more = {"limit": limit, "floor": _floor(stage, task, trace, limit)}
        record["memory"] = memory_record(used, consultations, lookups) | more
    return FinishedRun(record, event_lines(trace, run, texts=stage.texts) + last, len(trace.log) + 1)


def _head(stage: CellContext, task: TaskInstance, trace: Trace) -> dict[str, Any]:
    """Return what all run records begin with."""
    return {
        "run": stage.cell.run_id(task.spec.seed),
        "cell": stage.cell.id,
        "seed": task.spec.seed,
        **stage.coordinates,
        "fingerprint": task.fingerprint,
        "rules_sha256": stage.rules_sha256,
        "ending": trace.ending,
    }


def _finish_probe(stage: CellContext, task: TaskInstance, trace: Trace, probe: RecoveryProbe) -> FinishedRun:
    """Return the records of a probe, which answers no step: what was lost in place of a score."""
    moment = asdict(lost_answer_of(stage.cell.access, probe, task))
    record = {**_head(stage, task, trace), "moment": moment, "usage": usage_record(trace, trace.exchanges)}
    return FinishedRun(record, event_lines(trace, record["run"], texts=stage.texts), len(trace.log))


def _floor(stage: CellContext, task: TaskInstance, trace: Trace, limit: int | None) -> dict[str, Any] | None:
    """Return what was needed and held at each cut, where what is needed follows from the parameters alone."""
    if not stage.workload.closed_form:
        return None
    held = holdings(task.spec.n, trace.decisions, trace.consultations, limit)
    curve = stage.workload.demand(task.spec, graph_of(task))
    return floor_record(curve, held, math.log2(stage.workload.alphabet(task.spec)))


def score_record(scored: RunScore) -> dict[str, Any]:
    """Return a score as plain data; `read_score` inverts it."""
    fields = {name: getattr(scored, name) for name in RunScore.__slots__}
    return {**fields, "errors": dict(scored.errors), "kinds": dict(sorted(scored.kinds.items()))}


def usage_record(trace: Trace, exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """Return what the run took: of the model, and of its memory; its cost is unknown where that of a reply is."""
    usages = [exchange.reply.usage for exchange in exchanges]
    costs = [usage.cost_usd for usage in usages]
    return {
        "calls": len(exchanges),
        "cache_hits": sum([usage.from_cache for usage in usages]),
        "input_tokens": sum([usage.input_tokens for usage in usages]),
        "output_tokens": sum([usage.output_tokens for usage in usages]),
        "cached_tokens": sum([usage.cached_tokens for usage in usages]),
        "cost_usd": None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        "latency_seconds": round(math.fsum([exchange.reply.latency_seconds for exchange in exchanges]), 6),
        "memory_calls": len(trace.consultations),
    }


def _count(kinds: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter([kind for kind in kinds if kind]).items()))


def _constant(decisions: Sequence[Decision]) -> list[int] | None:
    """Return the one answer that was given throughout, if there is such a one."""
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
    """Return the message of a failure without what a sweep on the command line would do about it."""
    for remedy in (_ANEW, *_RESUME.values()):
        message = message.removesuffix(remedy)
    return message


def failure_kind(error: Exception) -> str:
    """Return the kind of a failure: that of a model's own error, the side of a plug-in, or the harness."""
    if isinstance(error, ModelError):
        return error.kind
    if isinstance(error, StoreError):
        return "memory"
    return error.side if isinstance(error, PluginError) else "harness"


def _remedy(stage: CellContext, error: Exception) -> str:
    """Return what to do about an error that a plug-in raised; other errors say it themselves."""
    if not isinstance(error, PluginError):
        return ""
    access = stage.cell.access
    names: dict[str, str | None] = {
        "memory": access.memory,
        "model": stage.cell.model,
        "policy": access.policy or access.condition,
        "workload": stage.cell.task.workload,
    }
    if ".py:" in (names.get(error.side) or ""):  # its file is part of the sweep, which an edit would change
        return _ANEW
    return _RESUME.get(error.side, "")


def _failure_record(stage: CellContext, task: TaskInstance, trace: Trace, error: Exception) -> dict[str, Any]:
    return {
        "run": stage.cell.run_id(task.spec.seed),
        "cell": stage.cell.id,
        "seed": task.spec.seed,
        "workload": task.spec.workload,
        "model": stage.cell.model,
        "condition": stage.cell.access.memory or stage.cell.access.condition,
        "kind": failure_kind(error),
        "message": stage.scrub.excerpt(describe(error)) + _remedy(stage, error),
        "steps": len(trace.decisions),
        "usage": usage_record(trace, trace.exchanges),
    }
