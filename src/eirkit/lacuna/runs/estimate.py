"""Estimates the tokens and cost of a plan (`--dry-run`) by running a reference agent in place of the model.

No model is called. What a reference agent writes is the first assumption about output. Once a folder has paid calls,
they replace it: their tokens for each character of a prompt, their output, and how many of them a run took.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import Struct

from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.prompt import renderer_of
from eirkit.lacuna.agents.protocol import ask_again
from eirkit.lacuna.agents.telemetry import Exchange, Trace
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.memory import memories
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import ActionForm, Request, prompt_chars
from eirkit.lacuna.models.prices import CHARS_PER_TOKEN, MILLION, Estimate, Price, add_up, estimate
from eirkit.lacuna.runs.budget import Budget, asks_paid_model
from eirkit.lacuna.runs.cells import Cell, RunPlan, unrecovered_in
from eirkit.lacuna.runs.family import Unrecovered, family_of
from eirkit.lacuna.runs.ingestion import cells_that_share
from eirkit.lacuna.tasks.generation import generate
from eirkit.records.budgets import BUDGETED
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.money import MEMORY, NOTHING, Journal, ModelCalls, exact_usd, journal_of
from eirkit.records.settings import UNLIMITED, CalculatorAid, RescueArm, TaskColumns, pressure_of

SLACK = Decimal("1.1")  # by which a run may cost more than expected, and is begun
DEARER_TIMES = 4  # by which a run may cost more than the dearest before it


class ModelAssumption(Struct, frozen=True):
    """What is assumed of the calls of a model that are to come, or what its paid calls say of them."""

    model: str
    calls: int  # seen
    tokens_per_char: float  # of prompts
    cached_share: float  # of their tokens
    output_tokens: float  # a call
    calls_ratio: float  # of finished runs, for each call of the reference agent


class ModelEstimate(Struct, frozen=True):
    """The estimate for all runs of one model."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None


class EstimateRow(Struct, frozen=True, kw_only=True):
    """The estimate for one cell, as it is printed."""

    cell: str
    workload: str
    preset: str
    model: str
    condition: str
    policy: str | None
    memory: str | None
    memory_settings: dict[str, Any]
    panel: str
    budget: str | None
    n: int | None  # None and below: conversations have none
    m: int | None
    lookback: int | None
    fan_in: int | None
    h: int | None
    b_oracle: int | str
    b: int | str
    pressure: float | None
    seeds: int
    repeats: int
    runs: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    most_usd: float | None


@dataclass(frozen=True, slots=True)
class RecordedRuns:
    """What a folder says about the runs and payments so far."""

    journal: Journal = field(default_factory=Journal)
    attempts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # of finished runs, by cell and seed
    calls: Mapping[str, int] = field(default_factory=dict)  # that finished runs took, by run; cached replies too
    shared: Container[str] = ()  # finished runs that went on with what another had given the memory

    def paid_calls(self, cell: Cell, seed: int) -> int:
        """Return how many calls of a finished run were paid for, also before it was cut short and continued."""
        run = cell.run_id(seed)
        return min(self.calls[run], sum(attempt.agent.calls for attempt in self.journal.by_run().get(run, ())))


def read_recorded(folder: Path, *, control: bool = False) -> RecordedRuns:
    """Return the payments of a folder, and its finished runs, or those of its control."""
    attempts: dict[str, dict[int, int]] = {}
    calls: dict[str, int] = {}
    sharing: set[str] = set()
    if not (folder / DATABASE).exists():
        return RecordedRuns()
    with SweepDatabase(folder) as database:
        for record in database.records(control=control):
            attempts.setdefault(record.cell, {})[record.seed] = record.usage.attempt
            calls[record.run] = record.usage.calls
            if record.memory is not None and record.memory.shared is not None:
                sharing.add(record.run)
        return RecordedRuns(journal_of(database) or Journal(), attempts, calls, sharing)


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """The estimate for all runs of one cell and its repeats."""

    cell: Cell
    seeds: int  # with a run left
    runs: int  # left
    expected: Estimate
    calibration: ModelAssumption | None = None
    is_partial: bool = False  # without what the model of its memory system costs, which is unknown
    repeats: int = 1

    def row(self) -> EstimateRow:
        """Return it as it is printed."""
        cell, access, task = self.cell, self.cell.access, self.cell.task
        columns = TaskColumns.of(task.parameters())
        return EstimateRow(
            cell=cell.id,
            workload=task.workload,
            preset=columns.preset,
            model=cell.model,
            condition=access.condition,
            policy=access.policy,
            memory=access.memory,
            memory_settings=access.memory_settings,
            panel=access.capacity_panel,
            budget=access.budget if access.condition in BUDGETED else None,
            n=columns.n,
            m=columns.m,
            lookback=columns.lookback,
            fan_in=columns.fan_in,
            h=access.h,
            b_oracle=UNLIMITED if access.reads is None else access.reads,
            b=UNLIMITED if access.recomputations is None else access.recomputations,
            pressure=pressure_of(task.parameters(), access),
            seeds=self.seeds,
            repeats=self.repeats,
            runs=self.runs,
            calls=self.expected.calls,
            input_tokens=self.expected.input_tokens,
            output_tokens=self.expected.output_tokens,
            cost_usd=self.expected.cost_usd,
            most_usd=self.expected.most_usd,
        )


@dataclass(frozen=True, slots=True)
class MemoryCosts:
    """What the model of a memory system has cost in a finished run, on average."""

    run_usd: Decimal = NOTHING  # that gave it the conversation
    sharing_usd: Decimal = NOTHING  # that went on with what another had given it; nothing before there is one


@dataclass(frozen=True, slots=True)
class _Trial:
    """The runs of a cell with the reference agent."""

    cell: Cell
    left: Sequence[int]  # seeds
    done: Mapping[int, int]  # attempts of finished runs, by seed
    runs: int
    calls: int
    prompt_chars: int
    reply_chars: int
    more_calls: int  # that follow if no reply has an answer
    more_chars: int  # of their prompts
    sharing: int = 0  # of the seeds left, those whose run goes on with what another gives the memory

    def expected(self, price: Price | None) -> Estimate:
        """Return the estimate if the model writes as the reference agent does."""
        times = len(self.left) / self.runs
        calls, prompts, replies = (round(n * times) for n in (self.calls, self.prompt_chars, self.reply_chars))
        again = ceil(self.more_calls * times), ceil(self.more_chars * times)
        return estimate(calls, prompts, replies, self.cell.options.max_tokens, price, again)

    def calibrated(self, price: Price | None, seen: ModelAssumption, memory: MemoryCosts) -> Estimate:
        """Return the estimate if the calls to come are as those that were paid for."""
        plain, times = self.expected(price), seen.calls_ratio * len(self.left) / self.runs
        calls, inputs = ceil(self.calls * times), ceil(self.prompt_chars * times * seen.tokens_per_char)
        outputs, cached = ceil(calls * seen.output_tokens), round(inputs * seen.cached_share)
        if price is None:
            return Estimate(calls, inputs, outputs, None, None)
        cost = (inputs - cached) * price.input + cached * price.cached + outputs * price.output
        memory_usd = memory.run_usd * (len(self.left) - self.sharing) + memory.sharing_usd * self.sharing
        usd = float(cost / MILLION + memory_usd)
        return Estimate(calls, inputs, outputs, usd, None if plain.most_usd is None else max(plain.most_usd, usd))


def estimate_plan(
    plan: RunPlan, budget: Budget, recorded: RecordedRuns | None = None, *, every_seed: bool = False
) -> list[CellEstimate]:
    """Return an estimate for the runs of each cell that have not finished; no model is called, nothing is written.

    Args:
        recorded: what was paid for so far.
        every_seed: simulate every run instead of the first of each cell.
    """
    known = recorded or RecordedRuns()
    for cell in {(cell.model, repr(cell.options)): cell for cell, _ in plan.plan()}.values():
        make_model(cell.model, cell.options)
    trials: list[_Trial] = []
    unrecovered_by_run: dict[str, Unrecovered] = {}  # of control arms that other arms depend on
    for cell, seeds in plan.plan():
        done = known.attempts.get(cell.id, {})
        left = [seed for seed in seeds if seed not in done] if done else seeds
        if cell.repeat:  # costs what the cell before it does
            trials.append(replace(trials[-1], cell=cell, left=left, done=done))
            continue
        tried = seeds if every_seed else seeds[:1]
        exchanges = []
        for seed in tried:
            missing = None if cell.follows is None else unrecovered_by_run.get(cell.follows.run_id(seed))
            trace = wait_for(_try(cell, seed, missing))
            unrecovered_by_run[cell.run_id(seed)] = unrecovered_in(trace.decisions)
            exchanges += trace.exchanges
        trials.append(_trial(cell, left, done, len(tried), exchanges))
    trials = _with_sharing(trials, plan)
    found: dict[str, list[CellEstimate]] = {}
    for trial in trials:
        found.setdefault(trial.cell.first.id, []).append(_cell_estimate(trial, trials, known, budget))
    return [
        replace(
            parts[0],
            seeds=max(one.seeds for one in parts),
            runs=sum(one.runs for one in parts),
            expected=add_up([one.expected for one in parts]),
            repeats=len(parts),
        )
        for parts in found.values()
    ]


def _with_sharing(trials: Sequence[_Trial], plan: RunPlan) -> list[_Trial]:
    """Return the trials with how many of their runs need not give the memory a conversation."""
    alike = cells_that_share(plan.plan())
    begun: dict[str, set[int]] = {}  # seeds of which a run is left that does, by the first of the cells that share
    found = []
    for trial in trials:
        cell = trial.cell
        group = alike.get(cell.id, ())
        if trial.left and group and family_of(cell.task).ingests_first(generate(cell.task.with_seed(trial.left[0]))):
            seeds = begun.setdefault(group[0][0].id, set())
            trial = replace(trial, sharing=len(seeds.intersection(trial.left)))
            seeds.update(trial.left)
        found.append(trial)
    return found


def _trial(
    cell: Cell, left: Sequence[int], done: Mapping[int, int], runs: int, exchanges: Sequence[Exchange]
) -> _Trial:
    """Return what runs of the reference agent asked and answered."""
    again = _asked_again(cell, exchanges)
    return _Trial(
        cell=cell,
        left=left,
        done=done,
        runs=runs,
        calls=len(exchanges),
        prompt_chars=sum(prompt_chars(exchange.request) for exchange in exchanges),
        reply_chars=sum(len(exchange.reply.text) for exchange in exchanges),
        more_calls=len(again),
        more_chars=sum(map(prompt_chars, again)),
    )


def _cell_estimate(trial: _Trial, trials: Sequence[_Trial], known: RecordedRuns, budget: Budget) -> CellEstimate:
    cell, runs = trial.cell, len(trial.left)
    price, paid = budget.price_of(cell.model, cell.options), known.journal.models.get(cell.model)
    memory = _memory_costs([one for one in trials if one.cell.access.memory == cell.access.memory], known)
    is_partial = memory is None and asks_paid_model(cell)
    if paid is None or not paid.calls or not paid.chars:
        expected = trial.expected(price)
        if memory is not None and memory.run_usd and expected.cost_usd is not None:
            assumed = _assumed(cell.model, trial.reply_chars / CHARS_PER_TOKEN, trial.calls)
            expected = trial.calibrated(price, assumed, memory)
        return CellEstimate(cell, runs, runs, expected, is_partial=is_partial)
    seen = _calibration(cell.model, paid, [one for one in trials if one.cell.model == cell.model], known)
    expected = trial.calibrated(price, seen, memory or MemoryCosts())
    return CellEstimate(cell, runs, runs, expected, seen, is_partial)


def _calibration(model: str, paid: ModelCalls, trials: Sequence[_Trial], known: RecordedRuns) -> ModelAssumption:
    """Return what the calls of a model say; until a run has finished, runs are as long as those of the stand-in."""
    attempts = known.journal.attempts
    finished = [(trial, seed) for trial in trials for seed, n in trial.done.items() if n in attempts]
    calls = sum(known.paid_calls(trial.cell, seed) for trial, seed in finished)
    expected = sum(trial.calls / trial.runs for trial, _ in finished)
    return ModelAssumption(
        model=model,
        calls=paid.calls,
        tokens_per_char=paid.input_tokens / paid.chars,
        cached_share=paid.cached_tokens / max(1, paid.input_tokens),
        output_tokens=paid.output_tokens / paid.calls,
        calls_ratio=calls / expected if expected else 1.0,
    )


def _assumed(model: str, output_tokens: float, calls: int) -> ModelAssumption:
    """Return what is assumed before the first call: a rule of thumb, and the output of the reference agent."""
    return ModelAssumption(model, 0, 1 / CHARS_PER_TOKEN, 0.0, output_tokens / max(1, calls), calls_ratio=1.0)


def _memory_costs(trials: Sequence[_Trial], known: RecordedRuns) -> MemoryCosts | None:
    """Return what the model of a memory system has cost in finished runs, on average; None before there is one."""
    attempts = known.journal.attempts
    alone: list[Decimal] = []
    sharing: list[Decimal] = []
    for trial in trials:
        for seed, number in trial.done.items():
            if trial.cell.run_id(seed) in known.shared:
                sharing.append(attempts[number].usd.get(MEMORY, NOTHING) if number in attempts else NOTHING)
            elif number in attempts:
                alone.append(attempts[number].usd.get(MEMORY, NOTHING))
    if not alone:
        return None
    return MemoryCosts(sum(alone, NOTHING) / len(alone), sum(sharing, NOTHING) / max(1, len(sharing)))


class NextCaps(Struct, frozen=True):
    """Caps in dollars, in all, with which a sweep goes on that its cap has stopped."""

    one_usd: Decimal  # any of the runs left can finish
    rest_usd: Decimal  # all of them, if they cost as much as those so far


def caps_of_rest(estimates: Sequence[CellEstimate], known: RecordedRuns) -> NextCaps | None:
    """Return what pays for one of the runs left and for all; None if what one may cost is unknown.

    To finish for certain, a run needs its maximum, or some times what is expected by the calls so far if that is less,
    with as many calls for each reply as there were so far. That of a memory system with a model of its own has no
    maximum, so it is taken to need some times the dearest so far. All of them need the dearest of their cell each, or
    what is expected where none has finished, and the most that the last calls may cost.
    """
    journal = known.journal
    spending, by_cell = journal.spending, journal.by_cell()
    if spending.unanswered and not spending.replies:
        return None
    of_attempt = {n: sum(billed.usd.values(), billed.uncertain_usd) for n, billed in journal.attempts.items()}
    dearest = max(of_attempt.values(), default=NOTHING)
    needs, rest, last = [NOTHING], NOTHING, NOTHING
    for planned in estimates:
        most = planned.expected.most_usd
        if not planned.runs:
            continue
        finished = set(known.attempts.get(planned.cell.id, {}).values())
        own = [of_attempt[n] for n in by_cell.get(planned.cell.id, ()) if n in finished]
        expected = exact_usd(planned.expected.cost_usd or 0) / planned.runs
        if asks_paid_model(planned.cell):
            needs.append(DEARER_TIMES * dearest)
            rest += planned.runs * SLACK * max(own, default=dearest)
        elif most is None:
            return None
        else:
            most_of_run = exact_usd(most) / planned.runs
            most_of_call = most_of_run / max(1, planned.expected.calls // planned.runs)
            need = most_of_run + most_of_call
            if planned.calibration is not None and planned.expected.cost_usd is not None:
                need = min(need, DEARER_TIMES * expected + 2 * most_of_call)
            needs.append(need * spending.calls_per_reply)
            last = max(last, 2 * most_of_call)
            rest += planned.runs * SLACK * max(own, default=expected) * spending.calls_per_reply
    if not any(needs):
        return None
    most_needed = max(needs)
    return NextCaps(spending.total_usd + most_needed, spending.total_usd + max(most_needed, rest + last))


def assumptions(estimates: Sequence[CellEstimate]) -> list[ModelAssumption]:
    """Return what the estimate of each model that costs money assumes."""
    found: dict[str, ModelAssumption] = {}
    for one in estimates:
        if one.expected.cost_usd != 0 and one.cell.model not in found:
            assumed = _assumed(one.cell.model, one.expected.output_tokens, one.expected.calls)
            found[one.cell.model] = one.calibration or assumed
    return list(found.values())


def by_model(estimates: Sequence[CellEstimate]) -> list[ModelEstimate]:
    """Return the sums of each model."""
    parts: dict[str, list[Estimate]] = {}
    for one in estimates:
        parts.setdefault(one.cell.model, []).append(one.expected)
    return [ModelEstimate(model, **asdict(add_up(own))) for model, own in parts.items()]


def estimate_run(cell: Cell, seed: int, unrecovered: Unrecovered | None, price: Price | None) -> Estimate:
    """Return an estimate for one run.

    Args:
        unrecovered: what its control arm did not recover, for a cell that depends on the runs of another.
    """
    return _trial(cell, [seed], {}, 1, wait_for(_try(cell, seed, unrecovered)).exchanges).expected(price)


def _asked_again(cell: Cell, exchanges: Sequence[Exchange]) -> list[Request]:
    """Return the requests that follow if no reply has an answer: each is asked for twice.

    In agent-managed runs and probes a fault costs an action instead.
    """
    if not cell.options.reask or not isinstance(cell.intervention, CalculatorAid | RescueArm | None):
        return []
    asked = [one.request for one in exchanges if one.request.form is not None]
    if any(isinstance(one.form, ActionForm) for one in asked) and not isinstance(cell.intervention, CalculatorAid):
        return []
    return [ask_again(one, one.form, cell.protocol) for one in asked if one.form is not None]


async def _try(cell: Cell, seed: int, unrecovered: Unrecovered | None) -> Trace:
    """Simulate one run with an agent that recovers what it can, without the memory system of the cell."""
    spec = cell.task.with_seed(seed)
    task, family = generate(spec), family_of(spec)
    session = family.session(cell.access, task, cell.intervention, unrecovered)
    session.renderer = renderer_of(cell.model, cell.options)
    session.protocol = cell.protocol
    memory = memories.get("null")() if cell.access.memory is not None else None
    return await drive(session, family.stand_in(task), memory)
