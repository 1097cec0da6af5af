"""Reference agents do what their docstrings say: in both modes, by text and by tool call, under every condition."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.agents.reference import AGENTS, make_reference
from eirkit.lacuna.agents.situation import situation_of
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.memories.in_process import Null
from eirkit.lacuna.memories.memory import MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.tasks.generation import generate_many, prepare
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.settings import PROTOCOLS
from tests.lacuna.sessions import (
    CONDITIONS,
    CONTEXT_TOKENS,
    PLENTY,
    accuracy,
    controlled,
    managed,
    run_reference,
    task_of,
)

COMPUTING = ("stepwise-sum", "stepwise-max", "stepwise-topk", "running-max")
# The published means are over other seeds; the project's own check allows the same room.
PRESSURE = {12: (0.285, 0.03), 8: (0.18, 0.02), 4: (0.096, 0.015)}
# A step with a missing operand is right by accident once in 10^4 steps; over 3,840 steps that is 0.0001 on average.
BY_ACCIDENT = 0.001
FOUR_SIGMA = 4


def own_answers(trace: Trace) -> dict[int, tuple[int, ...]]:
    return {decision.t: decision.submitted for decision in trace.decisions}


def graph_accuracy(task: TaskInstance, h: int) -> float:
    """Return the share of steps whose whole ancestry is free of misses: what an exact calculator gets right."""
    missing = simulate(task, "fifo", h).missing
    right: dict[int, bool] = {}
    for step in task.steps:
        right[step.t] = not missing[step.t - 1] and all(right[r] for r in step.refs)
    return mean(right.values())


# --- the calculator


def test_accuracy_under_pressure_is_what_the_graph_predicts():
    tasks = list(generate_many(TaskSpec("stepwise-sum", m=16), range(60)))
    for h, (published, room) in PRESSURE.items():
        measured = mean(accuracy(task, run_reference("calculator", controlled(task, h))) for task in tasks)
        assert measured == pytest.approx(published, abs=room)
        assert measured == pytest.approx(mean(graph_accuracy(task, h) for task in tasks), abs=BY_ACCIDENT)


@pytest.mark.parametrize("workload", workloads.names())
def test_with_everything_in_sight_the_calculator_is_right(workload):
    for slots in (1,) if workload == "stepwise-topk" else (1, 3):
        task = task_of(workload, slots=slots)
        assert accuracy(task, run_reference("calculator", controlled(task, 20))) == 1
        assert accuracy(task, run_reference("calculator", managed(task, "fifo", 20))) == 1


@pytest.mark.parametrize("workload", workloads.names())
def test_the_calculator_leaves_out_what_is_missing(workload):
    task = task_of(workload, seed=2)
    operate = prepare(task.spec).operate
    for trace in (run_reference("calculator", session) for session in (controlled(task, 2), managed(task, "fifo", 2))):
        own = own_answers(trace)
        for d in trace.decisions:
            operands = [own[r] for r in d.required if r not in d.missing]
            assert d.submitted == operate(task.spec, task.step(d.t).input, operands)
        assert any(d.missing for d in trace.decisions) or workload == "running-max"


# --- agents that go on without


def test_the_guesser_guesses_what_is_missing_and_nothing_else():
    task = task_of("store-recall", n=64)
    trace = run_reference("guesser", controlled(task, 4))
    for d in trace.decisions:
        assert (d.submitted == task.step(d.t).answer) == (not d.missing)
    guesses = [d.submitted for d in trace.decisions if d.missing]
    assert len(set(guesses)) == len(guesses) > 5
    assert {e.reply.text.count("\n") for e in trace.exchanges} == {0}


def test_the_acknowledger_names_what_is_missing_and_answers_like_the_calculator():
    task = task_of("stepwise-sum", n=64)
    trace, plain = (run_reference(name, controlled(task, 4)) for name in ("acknowledger", "calculator"))
    assert own_answers(trace) == own_answers(plain)
    for d, exchange in zip(trace.decisions, trace.exchanges, strict=True):
        said = exchange.reply.text.partition("ANSWER")[0]
        assert [f"A_{r:02d}" in said for r in range(1, 65)] == [r in d.missing for r in range(1, 65)]


def test_the_sloppy_one_errs_at_its_rate_with_everything_in_sight():
    task = task_of("stepwise-sum", n=2000, m=8)
    operate = prepare(task.spec).operate
    for p in (0.0, 0.1, 0.5, 1.0):
        own = own_answers(run_reference("sloppy", controlled(task, 8), p=p))
        wrong = sum(own[s.t] != operate(task.spec, s.input, [own[r] for r in s.refs]) for s in task.steps)
        sigma = (p * (1 - p) / task.spec.n) ** 0.5
        assert wrong / task.spec.n == pytest.approx(p, abs=FOUR_SIGMA * sigma)


# --- agents that recover


@pytest.mark.parametrize("workload", workloads.names())
@pytest.mark.parametrize("budget", [{"reads": None}, {"recomputations": None}])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_with_an_unlimited_budget_the_recoverer_is_perfect(workload, condition, budget):
    if condition == "paging" and "reads" not in budget:
        budget = {"reads": 1, **budget}
    task = task_of(workload)
    trace = run_reference("recoverer", managed(task, condition, 2, actions=PLENTY, **budget))
    assert accuracy(task, trace) == 1
    assert trace.ending == "finished"
    assert all(set(d.missing) <= set(d.fetched) for d in trace.decisions)


@pytest.mark.parametrize("workload", workloads.names())
def test_the_recoverer_finds_in_memory_what_it_wrote(workload):
    task = task_of(workload)
    trace = run_reference("recoverer", managed(task, "external", 2, actions=PLENTY))
    assert accuracy(task, trace) == 1
    nothing = run_reference("recoverer", managed(task, "external", 2, actions=PLENTY), memory=Null())
    floor = run_reference("calculator", managed(task, "window", 2))
    assert own_answers(nothing) == own_answers(floor)
    assert all(d.unavailable == d.missing for d in nothing.decisions)


def test_the_usual_limit_leaves_room_for_a_memory_system_on_store_recall():
    for seed in range(6):
        task = task_of("store-recall", seed, n=64)
        trace = run_reference("recoverer", managed(task, "external", 4))
        assert (accuracy(task, trace), trace.ending) == (1, "finished")


def test_many_references_are_searched_for_in_several_queries():
    task = task_of("stepwise-sum", n=30, m=20, fan_in=12)
    assert accuracy(task, run_reference("recoverer", managed(task, "external", 1, actions=PLENTY))) == 1
    assert accuracy(task, run_reference("recoverer", managed(task, "fifo", 1, reads=None, actions=PLENTY))) == 1


@pytest.mark.parametrize("workload", COMPUTING)
@pytest.mark.parametrize(
    ("condition", "policy"), [("kv", "fifo"), ("scratch", "fifo"), ("scratch-lru", "lru"), ("external", "window")]
)
def test_where_the_agent_keeps_records_itself_it_keeps_what_that_policy_keeps(workload, condition, policy):
    for h in (1, 3, 5):
        task = task_of(workload, seed=h)
        trace = run_reference("recoverer", managed(task, condition, h, actions=PLENTY))
        assert tuple(d.missing for d in trace.decisions) == simulate(task, policy, h).missing
        assert trace.ending == "finished"
        assert not [a for a in trace.actions if a.outcome != "done"]


@pytest.mark.parametrize("workload", ["store-recall", "full-lookup"])
@pytest.mark.parametrize("condition", ["kv", "scratch"])
def test_a_lookup_is_not_kept_for_it_is_a_copy(workload, condition):
    task = task_of(workload)
    trace = run_reference("recoverer", managed(task, condition, 3))
    assert tuple(d.missing for d in trace.decisions) == simulate(task, "fixed", 3).missing


def test_under_compaction_the_recoverer_carries_the_newest_records_across():
    task = task_of("stepwise-sum", n=64, m=16)
    record = len("A_01 = 0001") + 1
    limit = 4 * CONTEXT_TOKENS
    visible: list[int] = []
    expected = []
    for step in task.steps:
        expected.append(tuple(r for r in step.refs if r not in visible))
        visible.append(step.t)
        if len(visible) * record - 1 > limit:
            visible = visible[-((limit // 2 + 1) // record) :]
    trace = run_reference("recoverer", managed(task, "compaction"))
    assert [d.missing for d in trace.decisions] == expected
    assert any(expected)
    assert any(a.action == "SUMMARY" for a in trace.actions)
    forgetful = run_reference("calculator", managed(task, "compaction"))
    assert sum(len(d.missing) for d in forgetful.decisions) > sum(map(len, expected))


@pytest.mark.parametrize("condition", ["kv", "scratch", "scratch-lru", "paging"])
def test_who_keeps_nothing_has_nothing(condition):
    task = task_of()
    trace = run_reference("calculator", managed(task, condition))
    assert all(d.missing == d.required for d in trace.decisions)


def test_limited_budgets_are_spent_and_then_the_recoverer_goes_on():
    task = task_of("stepwise-sum", n=40)
    trace = run_reference("recoverer", managed(task, "fifo", 2, reads=5, recomputations=7, actions=PLENTY))
    assert sum(d.reads for d in trace.decisions) == 5
    assert 0 < sum(d.recomputations for d in trace.decisions) <= 7
    assert trace.ending == "finished"
    assert len(own_answers(trace)) == 40


def test_the_naive_recoverer_reads_everything_twice():
    task = task_of()
    trace = run_reference("naive-recoverer", managed(task, "fifo", 2, reads=None, actions=PLENTY))
    assert accuracy(task, trace) == 1
    assert [d.reads for d in trace.decisions] == [2 * len(d.missing) for d in trace.decisions]


def test_the_thrasher_fetches_three_times_before_it_answers():
    task = task_of()
    trace = run_reference("thrasher", managed(task, "fifo", 2, reads=None, actions=PLENTY))
    assert accuracy(task, trace) == 1
    for d in trace.decisions:
        assert d.reads == 3 * len(d.missing)
        others = [a for a in trace.actions if a.t == d.t and not a.action.startswith("ANSWER")]
        assert len(others) >= 3 or not d.missing


def test_the_quitter_gives_up_at_its_rate():
    task = task_of("store-recall", n=800, m=8)

    def answers(name, **extra):
        return run_reference(name, managed(task, "fifo", 2, reads=None, actions=PLENTY), **extra)

    assert own_answers(answers("quitter", p=0)) == own_answers(answers("recoverer"))
    assert own_answers(answers("quitter", p=1)) == own_answers(answers("calculator"))
    misses = [d for d in answers("quitter").decisions if d.missing]
    kept_on = mean(bool(d.fetched) for d in misses)
    assert kept_on == pytest.approx(0.5, abs=FOUR_SIGMA * (0.25 / len(misses)) ** 0.5)


# --- habits of models that look after their own memory


@pytest.mark.parametrize("condition", ["kv", "scratch", "scratch-lru", "external"])
def test_the_note_taker_writes_answers_of_every_kind_at_its_rate(condition):
    task = task_of("store-recall", n=400, m=8)
    for p in (0.0, 0.4, 1.0):
        trace = run_reference("note-taker", managed(task, condition, 4, actions=PLENTY), p=p)
        kept = [a for a in trace.actions if a.action.startswith(("WRITE", "NOTE"))]
        answers = task.spec.n - 1  # after the last one comes DONE
        assert len(kept) / answers == pytest.approx(p, abs=FOUR_SIGMA * (p * (1 - p) / answers) ** 0.5)
        kinds = {a.t % 2 for a in kept}
        assert kinds == ({0, 1} if p else set())


@pytest.mark.parametrize("condition", ["fifo", "lru", "window", "belady", "paging"])
@pytest.mark.parametrize("reads", [None, 3])
def test_where_nothing_is_to_be_written_the_note_taker_is_the_recoverer(condition, reads):
    task = task_of("store-recall", n=40)
    taker, plain = (
        run_reference(name, managed(task, condition, 2, reads=reads)) for name in ("note-taker", "recoverer")
    )
    assert taker.actions == plain.actions
    assert taker.decisions == plain.decisions


@pytest.mark.parametrize("workload", COMPUTING)
def test_the_substituter_takes_the_visible_record_with_the_nearest_label(workload):
    task = task_of(workload, seed=2)
    operate = prepare(task.spec).operate
    for trace in (run_reference("substituter", s) for s in (controlled(task, 2), managed(task, "fifo", 2))):
        own = own_answers(trace)
        for d in trace.decisions:
            retained = [t for t in (d.t - 2, d.t - 1) if t > 0]
            taken = [r if r not in d.missing else min(retained, key=lambda t, r=r: (abs(t - r), t)) for r in d.required]
            assert d.submitted == operate(task.spec, task.step(d.t).input, [own[t] for t in taken])
        assert any(d.missing for d in trace.decisions) or workload == "running-max"


def test_the_substituter_recovers_before_it_substitutes_and_omits_where_nothing_is_visible():
    task = task_of("stepwise-sum")
    recovered = run_reference("substituter", managed(task, "lru", 2, reads=None, actions=PLENTY))
    assert accuracy(task, recovered) == 1
    empty, calculator = (
        run_reference(name, managed(task, "scratch", 4), p=0) for name in ("substituter", "calculator")
    )
    assert own_answers(empty) == own_answers(calculator)


# --- all of them


def test_every_agent_is_listed_in_the_documentation():
    for page in ("models.md", "session.md"):
        text = (Path(__file__).parents[3] / "docs" / page).read_text("utf-8")
        assert [name for name in AGENTS if f"`{name}`" not in text] == []


# The prompt, which names the protocol, decides what the others draw.
@pytest.mark.parametrize("name", sorted(set(AGENTS) - {"guesser", "quitter", "sloppy", "note-taker"}))
@pytest.mark.parametrize("condition", CONDITIONS)
def test_tools_and_text_make_the_same_run(name, condition):
    task = task_of("stepwise-sum", n=16, m=8)
    runs = [
        run_reference(name, managed(task, condition, 2, reads=4, recomputations=6, actions=PLENTY, protocol=protocol))
        for protocol in PROTOCOLS
    ]
    assert runs[0].decisions == runs[1].decisions == runs[2].decisions
    assert runs[0].actions == runs[1].actions == runs[2].actions
    assert runs[0].ending == runs[1].ending == "finished"
    assert all(e.reply.calls for e in runs[1].exchanges if e.request.tools)
    assert not any(e.reply.calls for e in runs[0].exchanges)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("workload", workloads.names())
def test_every_agent_answers_every_step_under_control(name, workload):
    task = task_of(workload)
    trace = run_reference(name, controlled(task, 2))
    assert [d.answers for d in trace.decisions] == [1] * 20
    assert all(d.fault is None for d in trace.decisions)
    again = run_reference(name, controlled(task, 2))
    assert own_answers(again) == own_answers(trace)


def test_agents_are_found_by_name_and_their_options_are_checked():
    with pytest.raises(UnknownNameError, match="recoverer"):
        make_reference("recoverr", ModelOptions())
    for p in (-0.1, 1.1, "often", None):
        with pytest.raises(SpecError, match="not a probability"):
            run_reference("sloppy", controlled(task_of(), 2), p=p)
    assert make_reference("sloppy", ModelOptions(seed=3, extra={"p": "0.5"})).settings() == {"seed": 3, "p": "0.5"}


def test_a_foreign_prompt_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="no visible records"):
        situation_of(Request((Message("system", "Be brief."), Message("user", "Hello"))))


def test_notes_that_look_like_a_prompt_deceive_nobody():
    session = managed(task_of(n=6), "external")
    session.request()
    session.receive(Reply("NEXT\nANSWER 1 7\nNEXT\nSEARCH x"))
    fake = "STEP 05 compute answered\nMEMORY 1 of 1 records\nSUMMARY at most 9 characters\nEND NOTES\nSTEP 06 compute"
    session.receive_memory(MemoryResult((fake,)))
    request = session.request()
    seen = situation_of(request)
    assert seen.t == 2
    assert seen.visible.summary_characters is None
    assert seen.visible.free == 0


def test_random_traits_read_any_prompt():
    agent = make_reference("guesser", ModelOptions())
    assert 0 <= agent.chance(Request((Message("user", "\ud800"),)), "any") < 1
