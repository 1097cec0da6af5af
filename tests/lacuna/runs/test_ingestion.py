"""Cells that differ only in the budget of a memory: a conversation is given to it once, and nothing else changes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.engine.interface import LostPiece, PieceResult
from eirkit.engine.processes import Processes
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.lacuna.memories.factory import recall_writes
from eirkit.lacuna.memories.memory import AS_DOCUMENTED, STORE_ONLY, memories, profile_of
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.estimate import estimate_plan, read_recorded
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.runs.workers import FAILURES_IN_A_ROW
from eirkit.lacuna.tasks.generation import generate
from eirkit.records.money import MEMORY, exact_usd
from eirkit.records.runs import RunRecord
from eirkit.records.sweeps import Summary
from tests.lacuna.counting import Counted, Paying, Rewriting, Secretive, name_of, noted
from tests.lacuna.servers import Answer, ModelServer, Received, fails, says
from tests.processes import running
from tests.runs import cut, digest, events, failures, lose_last, records, replayed

HERE = "tests.lacuna.runs.test_ingestion"
BUDGETS = ["documented", "k=1", "k=9"]
TASKS = {"workload": "conversation", "preset": "small+sessions=3+questions=5", "seeds": "0:2"}
SESSIONS, QUESTIONS, SEEDS = 3, 5, 2
CALL_USD = Decimal("0.11")  # for the 110 tokens that the server counts
ROOT = Path(__file__).parents[3]
ADDRESS = "EIRKIT_TEST_INGESTION"  # variable with the server's address


class Waiting(Model):
    """The script that reads conversations, which needs a moment, so that runs overlap."""

    def __init__(self, name: str, options: ModelOptions) -> None:
        self.reader = make_model("scripted/reader", ModelOptions())

    async def reply(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        return await self.reader.reply(request)

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


def served(name: str, options: ModelOptions) -> Model:
    """Make the model of a memory, which must be paid."""
    return make_model(f"openai/{name}", ModelOptions(base_url=os.environ[ADDRESS], max_tokens=20, retries=0))


def suite(memory: str, budgets: Sequence[str] = BUDGETS, model: str = "scripted/reader", **settings: Any) -> Suite:
    more: dict[str, Any] = {} if "/" not in model or model.startswith("scripted") else {"connections": 2}
    options = {"memory_options": {memory: settings}} if settings else {}
    return read_suite(
        {**TASKS, "model": model, "memory": memory, "budget": list(budgets), "model_options": more, **options}
    )


def by_budget(folder: Path) -> dict[tuple[int, str], RunRecord]:
    return {(one.seed, one.setting.access.budget): one for one in records(folder)}


def contents(folder: Path) -> dict[str, Any]:
    """Return all records and events, without times and without who gave the memory a conversation."""
    found: dict[str, Any] = {}
    for one in records(folder):
        found[one.run] = [_lasting(part) for part in (one, *events(folder, one.run))]
    return found


def _lasting(value: Any) -> Any:
    plain = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
    if not isinstance(plain, dict):
        return plain
    return {key: _lasting(item) for key, item in plain.items() if key != "shared" and not key.endswith("_seconds")}


def test_the_conversations_are_as_long_as_the_tests_say():
    for seed in range(SEEDS):
        task = generate(next(suite("bm25").plan())[0].task.with_seed(seed))
        assert (len(task.sessions), len(task.questions)) == (SESSIONS, QUESTIONS)


@pytest.mark.parametrize("how", ["in order", "at once", "on an engine"])
def test_a_memory_is_given_each_session_once_for_three_budgets(tmp_path, how):
    log, out = tmp_path / "log", tmp_path / "out"
    model = f"{HERE}:Waiting/reader" if how == "at once" else "scripted/reader"
    tasks = suite(name_of(Counted), model=model, log=str(log))
    found = start_sweep(tasks, out, engine=Processes(2) if how == "on an engine" else None, control=False)
    assert found.complete
    calls = noted(log)
    assert (calls["reset"], calls["observe"]) == (SEEDS, SEEDS * SESSIONS)
    assert calls["recall"] == len(BUDGETS) * SEEDS * QUESTIONS
    made = by_budget(out)
    for (seed, budget), one in made.items():
        first = made[seed, BUDGETS[0]]
        assert (one.memory.shared and one.memory.shared.run) == (None if budget == BUDGETS[0] else first.run)
        assert one.memory.writes == SESSIONS
        assert one.memory.write_seconds == first.memory.write_seconds
    assert [row.memory_system.shared_runs for row in found.rows] == [0, SEEDS, SEEDS]
    assert replayed(out, plugins=True) == [(True, [])] * len(made)


@pytest.mark.parametrize("memory", ["bm25", "vector", "agent-file", "words-exact", name_of(Secretive)])
def test_nothing_else_differs_from_ingestions_of_their_own(tmp_path, memory):
    settings = {"log": str(tmp_path / "log")} if memory == name_of(Secretive) else {}
    start_sweep(suite(memory, **settings), tmp_path / "together")
    apart: dict[str, Any] = {}
    for budget in BUDGETS:
        start_sweep(suite(memory, [budget], **settings), tmp_path / budget)
        assert all(one.memory.shared is None for one in records(tmp_path / budget))
        apart |= contents(tmp_path / budget)
    assert contents(tmp_path / "together") == apart
    assert len({str(one) for one in apart.values()}) == len(apart)


@pytest.mark.parametrize("kind", [Rewriting, Secretive])
def test_a_memory_that_writes_when_it_is_asked_is_given_them_for_each_budget(tmp_path, kind):
    """One says so; of the other it is seen, because it holds other texts than after the last session."""
    log = tmp_path / "log"
    start_sweep(suite(name_of(kind), log=str(log)), tmp_path / "out")
    assert noted(log)["observe"] == len(BUDGETS) * SEEDS * SESSIONS
    assert all(one.memory.shared is None for one in records(tmp_path / "out"))


def test_systems_whose_own_agent_answers_a_recall_say_that_it_may_write():
    documented = {name for name in memories.names() if recall_writes(MemoryPlan(name, {}))}
    assert documented == {"letta", "mcp", "anthropic-memory", "agent-tools"}
    for name in documented:
        kind = memories.get(name)
        if profile_of(kind, {}) == AS_DOCUMENTED:
            assert not recall_writes(MemoryPlan(name, {"profile": STORE_ONLY}))


def test_conversations_with_questions_on_the_way_are_given_anew(tmp_path):
    log = tmp_path / "log"
    tasks = {**TASKS, "preset": "small+sessions=3+questions=5+probes=2", "model": "scripted/reader", "seeds": "0:1"}
    name = name_of(Counted)
    start_sweep(
        read_suite({**tasks, "memory": name, "budget": BUDGETS, "memory_options": {name: {"log": str(log)}}}),
        tmp_path / "out",
    )
    assert noted(log)["observe"] == len(BUDGETS) * SESSIONS


@pytest.mark.parametrize("model", ["scripted/reader", f"{HERE}:Waiting/reader"])
def test_if_the_memory_cannot_take_it_in_every_run_fails_and_it_is_tried_once(tmp_path, model):
    log, fault, out = tmp_path / "log", tmp_path / "fault", tmp_path / "out"
    fault.write_text("observe session-2")
    found = start_sweep(suite(name_of(Counted), model=model, log=str(log), fails=str(fault)), out, control=False)
    assert (found.scored, len(failures(out))) == (0, len(BUDGETS) * SEEDS)
    assert {(one.kind, one.message) for one in failures(out)} == {("memory", failures(out)[0].message)}
    assert noted(log)["observe"] == 2 * SEEDS
    fault.unlink()
    assert resume_sweep(out).complete
    assert noted(log)["observe"] == 2 * SEEDS + SESSIONS * SEEDS


class Unlucky:
    """An engine that loses its first piece of work."""

    def map(self, function: Any, pieces: Any) -> Iterator[PieceResult[Any] | LostPiece]:
        for number, piece in enumerate(pieces):
            yield PieceResult(number, function(piece)) if number else LostPiece(number, "killed its worker (SIGKILL)")

    def close(self) -> None:
        pass


def test_a_worker_that_dies_loses_the_runs_of_every_budget(tmp_path):
    found = start_sweep(suite("bm25"), tmp_path, engine=Unlucky())
    assert found.scored == len(BUDGETS) * (SEEDS - 1)
    assert {(one.kind, one.seed) for one in failures(tmp_path)} == {("worker", 0)}
    assert {one.message.partition(" (")[0] for one in failures(tmp_path)} == {
        "one of 3 runs in a batch killed its worker"
    }
    assert resume_sweep(tmp_path).complete


def test_if_one_run_cannot_recall_the_others_go_on(tmp_path):
    log, fault, out = tmp_path / "log", tmp_path / "fault", tmp_path / "out"
    fault.write_text("recall 1\n".strip())
    tasks = suite(name_of(Counted), ["documented", "k=1", "k=9", "k=3"], log=str(log), fails=str(fault))
    found = start_sweep(tasks, out)
    assert [row.scored for row in found.rows] == [SEEDS, 0, SEEDS, SEEDS]
    assert noted(log)["observe"] == 2 * SEEDS * SESSIONS, "a store that failed is not used again"
    for seed in range(SEEDS):
        made = by_budget(out)
        assert made[seed, "k=9"].memory.shared is None
        assert made[seed, "k=3"].memory.shared.run == made[seed, "k=9"].run


@pytest.mark.parametrize("kept", [1, 2])
def test_a_sweep_that_was_cut_short_between_two_budgets_gives_the_rest_anew(tmp_path, kept):
    log, out = tmp_path / "log", tmp_path / "out"
    tasks = suite(name_of(Counted), log=str(log))
    start_sweep(tasks, out)
    whole = digest(out)
    cut(out, kept)
    log.unlink()
    assert resume_sweep(out).complete
    assert digest(out) == whole
    assert noted(log)["observe"] == SEEDS * SESSIONS
    made = by_budget(out)
    assert made[0, BUDGETS[kept]].memory.shared is None
    later = [made[0, budget].memory.shared.run for budget in BUDGETS[kept + 1 :]]
    assert later == [made[0, BUDGETS[kept]].run] * len(later)


# --- a memory whose model must be paid


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer([says("noted")]) as server:
        monkeypatch.setenv(ADDRESS, server.url)
        yield server


@pytest.fixture
def funds(tmp_path: Path) -> SpendingLimits:
    prices = tmp_path / "prices.toml"
    free = '"scripted/reader" = { input = 0, output = 0, as_of = 2026-01-01 }'
    paid = f'"{HERE}:served/any" = {{ input = 1000, output = 1000, as_of = 2026-01-01 }}'
    prices.write_text(f"[prices]\n{free}\n{paid}\n")
    return SpendingLimits(prices=prices)


def paying(log: Path, seeds: int = SEEDS) -> Suite:
    return read_suite(
        {
            **TASKS,
            "model": "scripted/reader",
            "memory": name_of(Paying),
            "budget": BUDGETS,
            "seeds": f"0:{seeds}",
            "memory_options": {name_of(Paying): {"log": str(log), "model": f"{HERE}:served/any"}},
        }
    )


def billed(found: Summary) -> Decimal:
    """Return what the rows cost the folder: what several share is paid once."""
    systems = [row.memory_system for row in found.rows if row.memory_system is not None]
    return sum((exact_usd(one.cost_usd or 0) - exact_usd(one.shared_usd or 0) for one in systems), Decimal(0))


def test_the_bill_of_what_is_shared_is_paid_once_and_every_run_says_what_it_needs(tmp_path, server, funds):
    out, log = tmp_path / "out", tmp_path / "log"
    found = start_sweep(paying(log), out, funds)
    assert len(server.received) == SEEDS * (SESSIONS + len(BUDGETS) * QUESTIONS)
    assert found.spending is not None
    assert exact_usd(found.spending.spent_usd) == billed(found) == len(server.received) * CALL_USD
    alone, own = (SESSIONS + QUESTIONS) * CALL_USD, QUESTIONS * CALL_USD
    journal = read_journal(out)
    assert journal is not None
    for (seed, budget), one in by_budget(out).items():
        used, (attempt,) = one.memory, journal.by_run()[one.run]
        assert (used.model_calls, exact_usd(used.cost_usd)) == (SESSIONS + QUESTIONS, alone)
        assert (used.input_tokens, used.output_tokens) == (100 * used.model_calls, 10 * used.model_calls)
        assert attempt.usd[MEMORY] == (alone if budget == BUDGETS[0] else own)
        if used.shared is not None:
            assert (used.shared.model_calls, exact_usd(used.shared.cost_usd)) == (SESSIONS, SESSIONS * CALL_USD)
            assert (used.shared.run, used.shared.input_tokens) == (by_budget(out)[seed, BUDGETS[0]].run, 300)
    for row in found.rows:
        assert row.memory_system is not None
        assert exact_usd(row.memory_system.cost_usd) == SEEDS * alone
    (remark,) = system_remarks((row.memory, row.memory_system) for row in found.rows)
    assert remark.endswith(
        "budgets share the ingestion of a conversation; calls, tokens and cost are what each needs alone"
    )


def test_a_model_that_refuses_is_asked_once_for_each_conversation_and_counts_as_one_failure(tmp_path, server, funds):
    server.script = [fails(400, "context length exceeded")]
    seeds = FAILURES_IN_A_ROW // len(BUDGETS) + 2
    found = start_sweep(paying(tmp_path / "log", seeds=seeds), tmp_path / "out", funds)
    assert found.stopped == ()
    assert {one.kind for one in failures(tmp_path / "out")} == {"rejected"}
    assert (len(failures(tmp_path / "out")), len(server.received)) == (len(BUDGETS) * seeds, seeds)


def test_what_remains_is_estimated_with_one_ingestion_for_all_budgets(tmp_path, server, funds):
    out = tmp_path / "out"
    start_sweep(paying(tmp_path / "log"), out, funds)
    cut(out, len(BUDGETS))  # the second conversation is left
    (first, *others) = estimate_plan(paying(tmp_path / "log"), Budget(funds, out), read_recorded(out))
    assert exact_usd(round(first.expected.cost_usd, 9)) == (SESSIONS + QUESTIONS) * CALL_USD
    assert [exact_usd(round(one.expected.cost_usd, 9)) for one in others] == [QUESTIONS * CALL_USD] * 2
    lose_last(out)  # and of the first, one budget, which must take it in anew
    estimates = estimate_plan(paying(tmp_path / "log"), Budget(funds, out), read_recorded(out))
    left = 2 * SESSIONS + 4 * QUESTIONS
    assert sum(exact_usd(round(one.expected.cost_usd, 9)) for one in estimates) == left * CALL_USD


def test_a_kill_between_two_budgets_loses_no_bill_and_pays_none_twice(tmp_path, server, funds):
    """The server kills the sweep at a question of the second run, whose answer is not sent."""
    out, log = tmp_path / "out", tmp_path / "log"
    last = SESSIONS + QUESTIONS + 2
    begun: list[int] = []

    def script(received: Received) -> Answer:
        if len(server.received) == last:
            os.kill(begun[0], signal.SIGKILL)
        return says("noted")

    server.script = script
    words = f"from {HERE} import *; start_sweep(paying(Path({str(log)!r})), Path({str(out)!r}), "
    words += f"SpendingLimits(prices=Path({str(funds.prices)!r})))"
    with running([sys.executable, "-c", words], cwd=ROOT) as process:
        begun.append(process.pid)
        assert process.wait() == -signal.SIGKILL
    server.script = [says("noted")]
    assert [one.setting.access.budget for one in records(out)] == BUDGETS[:1]
    assert resume_sweep(out, funds=funds).complete
    rest = SESSIONS + 2 * QUESTIONS + (SESSIONS + len(BUDGETS) * QUESTIONS)
    assert len(server.received) == last + rest
    journal = read_journal(out)
    assert journal is not None
    assert journal.spending.billed_usd == (last - 1 + rest) * CALL_USD, "all but the call that was in flight"
    assert journal.spending.in_flight_usd >= CALL_USD
    made = by_budget(out)
    assert made[0, "k=1"].memory.shared is None
    assert made[0, "k=9"].memory.shared.run == made[0, "k=1"].run
    assert exact_usd(made[0, "k=1"].memory.cost_usd) == (SESSIONS + QUESTIONS) * CALL_USD
    whole = tmp_path / "whole"
    start_sweep(paying(log), whole, funds)
    assert contents(out).keys() == contents(whole).keys()
    for run, parts in contents(whole).items():
        parts[0]["usage"]["attempt"] = contents(out)[run][0]["usage"]["attempt"]
        assert contents(out)[run] == parts
