"""The table of memory conditions by name (`--condition`), and which session and budgets each run gets.

`controlled` is Controlled Retention under any policy. All others are agent-managed: the paper's conditions, the name of
any policy (a key–value cache with that policy), and `external`, which needs a memory system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from eirkit.errors import SpecError, UnknownNameError, UsageError
from eirkit.lacuna.agents import MANAGED, PROBE
from eirkit.lacuna.agents.conditions import (
    SUMMARY_PROMPT,
    Cache,
    Compaction,
    Condition,
    External,
    ExternalOnly,
    KeyValueStore,
    ManagedOptions,
    Paging,
    Scratch,
    ScratchLru,
)
from eirkit.lacuna.agents.session import CalculatorSession, ControlledSession, Session, TaskSession
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.runs.cells import injector, plan_of
from eirkit.lacuna.runs.family import Unrecovered
from eirkit.lacuna.tasks.generation import needs_of
from eirkit.lacuna.tasks.policy import Outlook, Retention, Structure, find_policy, policies
from eirkit.lacuna.tasks.simulation.plain import structure_of
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.view import PublicTask, publish
from eirkit.lacuna.tasks.workload import Workload
from eirkit.records.runs import LostAnswer
from eirkit.records.settings import (
    CONTROLLED,
    EXTERNAL,
    NATIVE,
    STRICT,
    Access,
    CalculatorAid,
    Intervention,
    RecoveryProbe,
    RescueArm,
)

CONTEXT_TOKENS = 128  # default of the compaction condition

Maker = Callable[[Access, PublicTask, Outlook], Condition]


@dataclass(frozen=True, slots=True)
class ManagedCondition:
    """One agent-managed condition."""

    make: Maker
    reads: int | None = 0  # default of B_oracle; None: no limit
    recovery: bool = True  # False: the budgets must stay 0


def _cache(policy: str) -> Maker:
    return lambda access, public, outlook: Cache(_retention(policy, access, outlook))


def _external(access: Access, public: PublicTask, outlook: Outlook) -> Condition:
    made = ExternalOnly() if access.panel == STRICT else External(_retention("window", access, outlook))
    plan = plan_of(access)
    if "delete" in public.workload.kinds(public.spec) and plan is not None and memory_factory().forgets(plan):
        made.allow_forgetting()
    return made


def _compaction(access: Access, public: PublicTask, outlook: Outlook) -> Condition:
    return Compaction(public.spec, access.context_tokens or CONTEXT_TOKENS)


CONDITIONS: dict[str, ManagedCondition] = {
    "floor": ManagedCondition(_cache("window"), recovery=False),
    "kv": ManagedCondition(lambda access, public, outlook: KeyValueStore(access.capacity)),
    "scratch": ManagedCondition(lambda access, public, outlook: Scratch(public.spec, public.width, access.capacity)),
    "scratch-lru": ManagedCondition(
        lambda access, public, outlook: ScratchLru(public.spec, public.width, access.capacity)
    ),
    "paging": ManagedCondition(lambda access, public, outlook: Paging(), reads=None),
    "compaction": ManagedCondition(_compaction),
    EXTERNAL: ManagedCondition(_external),
}


def condition_names() -> list[str]:
    """Return the names of all conditions, including policies."""
    return sorted({CONTROLLED, *CONDITIONS, *policies.names()})


def find_condition(name: str) -> ManagedCondition:
    """Return the agent-managed condition with this name."""
    if name in CONDITIONS:
        return CONDITIONS[name]
    if ":" not in name and name not in policies:
        raise UnknownNameError("condition", name, condition_names())
    find_policy(name)
    return ManagedCondition(_cache(name))


def default_reads(condition: str) -> int | None:
    """Return the default budget of direct retrievals."""
    return 0 if condition == CONTROLLED else find_condition(condition).reads


def check_access(access: Access) -> None:
    """Raise UsageError if the parts of an access contradict each other or name something unknown."""
    if access.capacity < 1:
        raise SpecError(f"h = {access.h} is too small to hold a record; use h >= 1")
    if access.is_controlled:
        _check_controlled(access)
        return
    named = find_condition(access.condition)
    if access.policy is not None:
        raise UsageError(
            f"a policy needs condition 'controlled'; use condition {access.policy!r} for the agent-managed one"
        )
    if (access.memory is None) == (access.condition == EXTERNAL):
        raise UsageError(
            f"condition {EXTERNAL!r} needs a memory system, and no other condition takes one; use a second [[grid]]"
        )
    _check_memory(access)
    if named.reads is None and access.reads == 0:
        raise UsageError(f"condition {access.condition!r} shows only what is read; allow reads (b_oracle)")
    if not named.recovery and (access.reads, access.recomputations) != (0, 0):
        raise UsageError(f"condition {access.condition!r} has no recovery; leave its budgets at 0")
    if access.condition != "compaction" and (access.context_tokens, access.summary_prompt) != (None, None):
        raise UsageError("context_tokens and summary_prompt apply to the compaction condition only; leave them out")
    _options(access)


def _check_memory(access: Access) -> None:
    if access.panel not in (NATIVE, STRICT):
        raise UnknownNameError("panel", access.panel, (NATIVE, STRICT))
    if (plan := plan_of(access)) is not None:
        memory_factory().check_plan(plan)
    elif access.panel == STRICT or access.memory_settings:
        raise UsageError("a panel and memory settings need a memory system; give memory or leave them out")


def _check_controlled(access: Access) -> None:
    find_policy(access.policy or "")
    _check_memory(access)
    if (access.memory, access.context_tokens, access.summary_prompt) != (None, None, None):
        raise UsageError("Controlled Retention has no memory system and no context limit; choose another condition")
    if (access.reads, access.recomputations) != (0, 0):
        raise UsageError("Controlled Retention has no recovery; choose an agent-managed condition such as 'lru'")


def make_session(
    access: Access,
    task: TaskInstance,
    workload: Workload,
    structure: Structure | None = None,
    intervention: Intervention | None = None,
    unrecovered: Unrecovered | None = None,
) -> Session:
    """Return the session of one run on a task of numbers.

    Args:
        structure: the structure of the workload, to avoid computing it for every session of a cell.
        unrecovered: what the arm of a rescue restores; by default everything that is missing.
    """
    if isinstance(intervention, RecoveryProbe):
        probed: Session = import_module(PROBE).probe_session(task, lost_answer_of(access, intervention, task))
        return probed
    outlook = Outlook(structure or structure_of(task.spec), task.spec.seed, needs_of(task))
    public = publish(task, workload)
    if access.is_controlled:
        kind = CalculatorSession if isinstance(intervention, CalculatorAid) else ControlledSession
        session: TaskSession = kind(public, _retention(access.policy or "", access, outlook))
    else:
        condition = find_condition(access.condition).make(access, public, outlook)
        session = import_module(MANAGED).ManagedSession(public, condition, _options(access))
    if isinstance(intervention, RescueArm):
        session.inject = injector(intervention, task, unrecovered)
    return session


def lost_answer_of(access: Access, probe: RecoveryProbe, task: TaskInstance) -> LostAnswer:
    """Return the lost answer that a probe rebuilds."""
    lost: LostAnswer | None = import_module(PROBE).find_lost_answer(
        task, access.policy or "", access.capacity, probe.from_step
    )
    if lost is None:
        raise SpecError(f"seed {task.spec.seed} loses nothing from step {probe.from_step} on; choose a lower h")
    return lost


def _options(access: Access) -> ManagedOptions:
    prompt = access.summary_prompt or SUMMARY_PROMPT
    return ManagedOptions(access.reads, access.recomputations, access.actions, prompt)


def _retention(policy: str, access: Access, outlook: Outlook) -> Retention:
    return Retention(find_policy(policy).for_task(outlook), access.capacity)
