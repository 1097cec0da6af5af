"""Agent-Managed Retention: the action loop, its budgets and limits, every misuse, and agreement with the simulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.agents.conditions import ManagedOptions
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.protocol import Fault, as_call, read_reply
from eirkit.lacuna.agents.telemetry import Exchange, Trace, events_of
from eirkit.lacuna.memories.memory import MemoryResult
from eirkit.lacuna.models.model import Reply, ToolCall
from eirkit.lacuna.tasks.generation import from_graph
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.events import ActionTaken, decode_events, encode_events
from tests.lacuna.agents.test_protocol import arguments, hostile, names
from tests.lacuna.agents.test_session import corrupted
from tests.lacuna.sessions import (
    CONDITIONS,
    PLENTY,
    cache,
    managed,
    play,
    public,
    run_reference,
    script,
    task_of,
)

RECORD = re.compile(r"^A_(\d+) = ([\d ]+)$", re.MULTILINE)
RETAINED = re.compile(r"^RETAINED (\d+)$", re.MULTILINE)

CHAIN = from_graph(TaskSpec("stepwise-sum"), ((), (1,), (2,), (3,), (1, 4), (2, 5)))


def done(played, word):
    return [a for a in played.actions if a.outcome == "done" and a.action.split()[0] == word]


def walk(task, upto: int, value: str = "7") -> list[str]:
    """Return replies that reveal and answer the first steps."""
    width = len(task.steps[0].answer)
    return [f"NEXT\nANSWER {t} {' '.join([value] * width)}" for t in range(1, upto + 1)]


# --- one step after another


def test_a_run_reveals_answers_and_ends():
    session = managed(CHAIN, "fifo", h=2)
    assert session.position == 0
    played = play(session, script(*walk(CHAIN, 6)))
    assert session.ending == "finished"
    assert [d.t for d in played.decisions] == [1, 2, 3, 4, 5, 6]
    assert [d.missing for d in played.decisions] == [(), (), (), (), (1,), (2,)]
    assert [d.submitted for d in played.decisions] == [(7,)] * 6
    assert [a.number for a in played.actions] == list(range(1, 14))
    assert sum(d.actions for d in played.decisions) == 12  # the first NEXT belongs to no step


@pytest.mark.parametrize(("texts", "ending"), [(["DONE"], "done"), (["NEXT\nANSWER 1 7\nDONE"], "done")])
def test_an_agent_may_stop_early(texts, ending):
    session = managed(CHAIN, "fifo")
    played = play(session, script(*texts))
    assert session.ending == ending
    assert len(played.decisions) == "".join(texts).count("NEXT")


def test_a_step_that_is_left_has_its_decision_and_one_that_never_came_has_none():
    session = managed(CHAIN, "fifo")
    played = play(session, script("NEXT\nNEXT\nANSWER 2 5", "NEXT\nDONE"))
    assert [(d.t, d.submitted, d.fault) for d in played.decisions] == [
        (1, None, "unanswered"),
        (2, (5,), None),
        (3, None, "unanswered"),
    ]
    assert session.ending == "done"
    # Step 2 refers to step 1, which was never submitted: that is to be seen from the decisions alone.
    never = {d.t for d in played.decisions if d.submitted is None}
    assert set(played.decisions[1].missing) <= never


def test_a_decision_keeps_why_there_is_no_answer():
    said = ["NEXT\nANSWER 1 x\nNEXT\nANSWER 2 1 2\nNEXT\nANSWER 9 1\nNEXT\nANSWER 4 10000\nDONE"]
    played = play(managed(CHAIN, "fifo"), script(*said))
    assert [d.fault for d in played.decisions] == ["malformed", "wrong-width", "wrong-id", "out-of-range"]
    assert [d.answers for d in played.decisions] == [0, 1, 1, 1]


# --- misuse


MISUSE = [
    (["hello"], "malformed", "fault"),
    (["NEXT\nANSWER one"], "malformed", "fault"),
    (["NEXT\nNEXT: reveal the next step"], "malformed", "fault"),
    (["NEXT\nANSWER 2 5"], "wrong-id", "refused"),
    (["NEXT\nANSWER 1 5 6"], "wrong-width", "refused"),
    (["NEXT\nANSWER 1 10000"], "out-of-range", "refused"),
    (["NEXT\nANSWER 1 5", "ANSWER 1 6"], "second-answer", "refused"),
    (["ANSWER 1 5"], "no-step", "refused"),
    (["READ 1"], "no-step", "refused"),
    (["NEXT\nANSWER 1 5\nNEXT\nREAD 1\nREAD 1\nREAD 1"], "over-budget", "refused"),
    (["NEXT\nNEXT\nREAD 1"], "never-answered", "refused"),
    (["NEXT\nREAD 1"], "not-earlier", "refused"),
    (["NEXT\nREAD 0"], "not-earlier", "refused"),
    (["NEXT\nRECOMPUTE 5"], "not-earlier", "refused"),
    (["NEXT\nNEXT\nNEXT\nNEXT\nNEXT\nRECOMPUTE 4"], "over-budget", "refused"),
    (["NEXT\nWRITE 1"], "not-offered", "refused"),
    (["NEXT\nNOTE A_1 = 5"], "not-offered", "refused"),
    (["NEXT\nSEARCH A_1"], "not-offered", "refused"),
    (["NEXT\n" * 7], "no-more-steps", "refused"),
    (["NEXT\n" * 17], "too-many", "fault"),
    (["NEXT\n" + " " * 70_000], "too-long", "fault"),
    (["NOTE " + "x" * 5_000], "too-long", "fault"),
]


@pytest.mark.parametrize(("texts", "reason", "outcome"), MISUSE)
def test_a_misuse_is_answered_and_noted(texts, reason, outcome):
    session = managed(CHAIN, "fifo", reads=2, recomputations=3)
    played = play(session, script(*texts))
    wrong = next(a for a in played.actions if a.reason == reason)
    assert wrong.outcome == outcome
    assert f"RESULT refused: {wrong.detail}" in played.prompts[len(texts)]
    assert session.ending == "done"


def test_an_unknown_tool_is_a_fault():
    said = iter([Reply("", (ToolCall("open", {"t": 1}), ToolCall("next", {})))])
    played = play(managed(CHAIN, "fifo", protocol="tools"), lambda request: next(said, Reply("DONE")))
    assert [(a.outcome, a.reason) for a in played.actions[:2]] == [("fault", "unknown-action"), ("done", "")]


def test_a_refusal_costs_its_action_and_no_budget():
    session = managed(CHAIN, "fifo", h=1, reads=1)
    played = play(session, script(*walk(CHAIN, 4), "NEXT\nREAD 9\nREAD 1\nREAD 4\nANSWER 5 7"))
    fifth = played.decisions[4]
    assert (fifth.reads, fifth.fetched, fifth.actions) == (1, (1,), 5)


def test_what_stands_behind_done_is_late():
    session = managed(CHAIN, "fifo")
    played = play(session, script("NEXT\nDONE\nANSWER 1 5\nNEXT"))
    assert [(a.number, a.action, a.outcome) for a in played.actions] == [
        (1, "NEXT", "done"),
        (2, "DONE", "done"),
        (0, "ANSWER 1 5", "late"),
        (0, "NEXT", "late"),
    ]
    assert session.submitted == {}
    session.receive(Reply("READ 1"))
    assert [e.outcome for e in session.drain()] == ["late"]


def test_a_reply_that_nobody_asked_for_is_the_drivers_fault():
    session = managed(task_of(), "external")
    with pytest.raises(ValueError, match="call request first"):
        session.receive(Reply("NEXT"))
    with pytest.raises(ValueError, match="call request first"):
        session.receive_memory(MemoryResult())
    session.request()
    session.receive(Reply("NEXT\nSEARCH x"))
    session.request()
    with pytest.raises(ValueError, match="call request first"):
        session.receive(Reply("NEXT"))
    session.receive_memory(MemoryResult())


@pytest.mark.parametrize("bad", [{"actions": 0}, {"reads": -1}, {"recomputations": -1}])
def test_limits_must_make_sense(bad):
    with pytest.raises(SpecError):
        ManagedOptions(**bad)


SOURCE = Path(__file__).parents[3] / "src" / "eirkit" / "lacuna" / "agents"
GUIDE = Path(__file__).parents[3] / "docs" / "session.md"


def test_every_reason_is_documented():
    names = ("protocol", "session", "managed", "current_step", "conditions")
    code = "".join((SOURCE / f"{name}.py").read_text("utf-8") for name in names)
    reasons = {*re.findall(r'(?:RefusedAction|Fault)\(\s*"([a-z-]+)"', code), "late", "unanswered"}
    assert len(reasons) > 15
    guide = GUIDE.read_text("utf-8")
    assert [reason for reason in sorted(reasons) if f"`{reason}`" not in guide] == []


# --- limits


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("text", ["", "NEXT", "READ 1", "NEXT\n" * 16, "SEARCH x", "WRITE 1", "ANSWER 1 7"])
def test_the_limit_of_actions_ends_every_run(condition, text):
    task = task_of(n=64)
    session = managed(task, condition, actions=30, reads=None, recomputations=None)
    played = play(session, lambda request: Reply(text))
    assert session.ending == "action-limit"
    assert max(a.number for a in played.actions) == 30
    assert len(played.requests) <= 30
    assert [d.t for d in played.decisions] == list(range(1, len(played.decisions) + 1))
    counted = [a for a in played.actions if a.number]
    assert [a.number for a in counted] == list(range(1, 31))


replies = st.builds(Reply, hostile) | st.builds(
    Reply, st.just(""), st.lists(st.builds(ToolCall, names, arguments), max_size=6).map(tuple)
)
lines = st.lists(
    st.one_of(
        st.just("NEXT"),
        st.builds("ANSWER {} {}".format, st.integers(1, 8), st.integers(0, 9999)),
        st.builds("{} {}".format, st.sampled_from(["READ", "RECOMPUTE", "WRITE", "DROP"]), st.integers(0, 9)),
        st.builds("NOTE A_{} = {}".format, st.integers(1, 8), st.integers(0, 99)),
        st.builds("SEARCH A_{}".format, st.integers(1, 8)),
    ),
    max_size=6,
).map("\n".join)
budgets = st.none() | st.integers(0, 4)


@given(
    st.lists(replies | lines.map(Reply), max_size=25), st.sampled_from(sorted(CONDITIONS)), budgets, budgets, st.data()
)
@settings(max_examples=200)
def test_nothing_printed_can_crash_stall_or_overrun(said, condition, reads, recomputations, data):
    task = task_of(n=8, m=4, seed=data.draw(st.integers(0, 5)))
    h, limit = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 60))
    if condition == "paging" and reads == 0:
        reads = None
    session = managed(task, condition, h, reads=reads, recomputations=recomputations, actions=limit)
    left = iter(said)
    passages = st.lists(hostile, max_size=8).map(tuple)
    played = play(session, lambda r: next(left, Reply("")), lambda call: MemoryResult(data.draw(passages)))
    assert len(played.requests) <= limit
    assert sum(a.number > 0 for a in played.actions) <= limit
    assert [d.t for d in played.decisions] == list(range(1, len(played.decisions) + 1))
    assert {d.t: d.submitted for d in played.decisions if d.submitted is not None} == session.submitted
    assert reads is None or sum(d.reads for d in played.decisions) <= reads
    assert recomputations is None or sum(d.recomputations for d in played.decisions) <= recomputations
    assert all((d.submitted is None) == (d.fault is not None) for d in played.decisions)
    assert all(set(d.unavailable) <= set(d.missing) <= set(d.required) for d in played.decisions)
    for prompt in played.prompts:
        assert int(RETAINED.search(prompt).group(1)) <= h
        prompt.encode()
    log = [*(Exchange(0, request, Reply("")) for request in played.requests), *played.events]
    assert len(decode_events(encode_events(events_of(Trace(log))), "run")) == len(log)


@given(st.lists(lines, max_size=15), st.sampled_from(sorted(CONDITIONS)))
@example(["ANSWER 1 1\nRECOMPUTE 0\nNOTE A_1 = 0"], "belady")
def test_text_and_tool_calls_make_the_same_session(said, condition):
    task = task_of(n=8, m=4)

    def as_calls(text):
        actions = [action for action in read_reply(Reply(text)) if not isinstance(action, Fault)]
        return Reply("", tuple(map(as_call, actions)))

    runs = []
    for speak, protocol in ((Reply, "text"), (as_calls, "tools")):
        left = iter([text for text in said if text])
        session = managed(task, condition, 2, reads=3, recomputations=3, protocol=protocol)
        runs.append(play(session, lambda r, left=left, speak=speak: speak(next(left, "DONE"))))
    assert runs[0].events == runs[1].events
    assert runs[0].prompts == runs[1].prompts
    assert all(request.tools == () for request in runs[0].requests)


@given(st.lists(lines, max_size=15), st.sampled_from(sorted(CONDITIONS)))
def test_the_truth_never_enters(said, condition):
    task = task_of(n=8, m=4)
    runs = [play(managed(t, condition, 2, reads=3, recomputations=3), script(*said)) for t in (task, corrupted(task))]
    assert runs[0] == runs[1]


@given(st.lists(lines, max_size=15), st.sampled_from(sorted(set(CONDITIONS) - {"scratch", "scratch-lru"})))
def test_without_recomputation_only_submitted_records_are_shown(said, condition):
    task = task_of(n=8, m=4)
    session = managed(task, condition, 2, reads=3)
    played = play(session, script(*said))
    for prompt in played.prompts:
        for t, values in RECORD.findall(prompt):
            assert session.submitted[int(t)] == tuple(map(int, values.split()))


# --- the simulator


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("workload", workloads.names())
def test_missing_records_are_those_of_the_simulator(workload, policy):
    for seed in range(2):
        task = task_of(workload, seed)
        for h in (1, 2, 5):
            off, direct = (
                run_reference("recoverer", ManagedSession(public(task), cache(policy)(task, h), options))
                for options in (ManagedOptions(actions=PLENTY), ManagedOptions(reads=None, actions=PLENTY))
            )
            assert tuple(d.missing for d in off.decisions) == simulate(task, policy, h).missing
            expected = simulate(task, policy, h, recovery="direct")
            assert tuple(d.missing for d in direct.decisions) == expected.missing
            assert [d.reads for d in direct.decisions] == [len(refs) for refs in expected.missing]
            assert all(d.unavailable == () for d in direct.decisions)
            assert all(d.unavailable == d.missing for d in off.decisions)


# --- recovery


def test_what_was_read_stays_in_sight_until_the_step_ends():
    session = managed(CHAIN, "fifo", h=1, reads=None)
    played = play(session, script(*walk(CHAIN, 4), "NEXT\nREAD 1", "READ 4", "ANSWER 5 7", "NEXT", "DONE"))
    after_first, after_second, answered, next_step = played.prompts[5:9]
    # At step 5 (references 1 and 4) record 4 is held. Reading 1 drives it out, and it stays in sight all the same.
    assert "RETAINED 1\nA_1 = 0007\nFETCHED\nA_4 = 0007\n" in after_first
    assert "RETAINED 1\nA_4 = 0007\nFETCHED\nA_1 = 0007\n" in after_second
    assert "RETAINED 1\nA_5 = 0007\nFETCHED\nA_1 = 0007\nA_4 = 0007\nSTEP 5 compute answered" in answered
    assert "FETCHED" not in next_step
    assert [a.evicted for a in played.actions if a.action.startswith("READ")] == [4, 1]


def test_recomputation_costs_what_is_evaluated_and_keeps_what_it_worked_out():
    session = managed(CHAIN, "kv", recomputations=4)
    said = [*walk(CHAIN, 5), "NEXT\nRECOMPUTE 3\nRECOMPUTE 2\nRECOMPUTE 4\nRECOMPUTE 4\nRECOMPUTE 5"]
    played = play(session, script(*said))
    sixth = played.decisions[5]
    # 3 takes 1, 2 and 3; 2 was worked out on the way; 4 takes itself; 5 would take one more than there is.
    assert (sixth.recomputations, sixth.recovery_depth, sixth.fetched) == (4, 3, (2, 3, 4))
    assert [a.reason for a in played.actions if a.action.startswith("RECOMPUTE")] == [*[""] * 4, "over-budget"]
    true = {t: CHAIN.step(t).answer for t in (2, 3, 4)}
    shown = {int(t): tuple(map(int, v.split())) for t, v in RECORD.findall(played.prompts[-1]) if int(t) in true}
    assert shown == true  # from the inputs alone, although every answer submitted was 7


def test_recomputation_starts_from_what_is_in_sight():
    session = managed(CHAIN, "window", h=1, recomputations=None)
    played = play(session, script(*walk(CHAIN, 3), "NEXT\nRECOMPUTE 1\nRECOMPUTE 2\nANSWER 4 7"))
    first, second = done(played, "RECOMPUTE")
    x = {t: CHAIN.step(t).input[0] for t in (1, 2)}
    assert first.detail == f"A_1 = {x[1]:04d}"
    assert second.detail == f"A_2 = {(x[1] + x[2]) % 10_000:04d}"
    assert played.decisions[3].recomputations == 2


def test_a_recomputed_record_is_kept_as_it_was_recomputed_until_it_is_read_again():
    session = managed(CHAIN, "lru", h=3, reads=None, recomputations=None)
    true = f"A_1 = {CHAIN.step(1).answer[0]:04d}"
    walked = walk(CHAIN, 4)
    played = play(session, script(*walked, "NEXT\nRECOMPUTE 1\nANSWER 5 7\nNEXT", "READ 1", "DONE"))
    assert true in played.prompts[5].partition("STEP")[0]
    assert "A_1 = 0007" in played.prompts[6].partition("STEP")[0]
    assert session.submitted[1] == (7,)


def test_a_step_that_was_never_answered_can_be_recomputed_but_not_read():
    session = managed(CHAIN, "lru", h=3, reads=None, recomputations=None)
    played = play(session, script("NEXT\nNEXT\nREAD 1\nRECOMPUTE 1\nANSWER 2 7", "NEXT", "DONE"))
    second = played.decisions[1]
    assert (second.missing, second.unavailable, second.fetched) == ((), (), (1,))
    assert f"A_1 = {CHAIN.step(1).answer[0]:04d}" in played.prompts[1]


UNAVAILABLE = [
    # Step 5 needs 1 and 4 and holds neither; to evaluate 4 takes 1, 2, 3 and 4.
    ((0, 0), (1, 4)),
    ((1, 0), (4,)),
    ((2, 0), ()),
    ((None, 0), ()),
    ((0, 1), (4,)),
    ((0, 3), (4,)),
    ((0, 4), ()),
    ((0, None), ()),
    ((1, 1), ()),
    ((1, 3), ()),
]


@pytest.mark.parametrize(("budget", "unavailable"), UNAVAILABLE)
def test_unavailable_is_what_the_budgets_cannot_bring_together(budget, unavailable):
    session = managed(CHAIN, "kv", reads=budget[0], recomputations=budget[1])
    played = play(session, script(*walk(CHAIN, 4), "NEXT"))
    assert played.decisions[4].missing == (1, 4)
    assert played.decisions[4].unavailable == unavailable


@pytest.mark.parametrize(("budget", "unavailable"), [((0, 1), (2,)), ((0, 2), ()), ((1, 1), ())])
def test_what_can_be_had_alone_may_be_too_much_together(budget, unavailable):
    task = from_graph(TaskSpec("stepwise-sum"), ((), (), (1, 2)))
    session = managed(task, "kv", reads=budget[0], recomputations=budget[1])
    played = play(session, script(*walk(task, 2), "NEXT"))
    assert played.decisions[2].unavailable == unavailable


def test_a_search_for_the_best_recovery_does_not_stall_a_run():
    # Half of the steps are never answered, so that the question what can be had is a search, at every step.
    graph = tuple(tuple(range(max(1, t - 6), t)) for t in range(1, 65))
    task = from_graph(TaskSpec("stepwise-sum"), graph)
    said = ["NEXT" + (f"\nANSWER {t} 7" if t % 2 else "") for t in range(1, 65)]
    session = managed(task, "kv", reads=3, recomputations=9)
    assert len(play(session, script(*said)).decisions) == 64


# --- external memory


def test_records_are_written_as_shown_and_found_ones_are_fetched():
    calls = []

    def memory(call):
        calls.append(call)
        return MemoryResult(("noise", "A_1 = 0007", "A_4 = 9999") if call.verb == "search" else ())

    session = managed(CHAIN, "external", h=1)
    played = play(session, script(*walk(CHAIN, 4), "WRITE 4\nWRITE 1\nNEXT\nSEARCH A_1", "DONE"), memory)
    assert [(call.verb, call.text) for call in calls] == [("write", "A_4 = 0007"), ("search", "A_1")]
    (refused,) = [a for a in played.actions if a.outcome == "refused"]
    assert (refused.action, refused.reason) == ("WRITE 1", "not-at-hand")
    assert "NOTES\nnoise\nA_1 = 0007\nA_4 = 9999\nEND NOTES" in played.prompts[-1]
    assert "RESULT 3 passages found" in played.prompts[-1]
    assert played.decisions[4].fetched == (1,)


@pytest.mark.parametrize(
    ("said", "found", "unavailable"),
    [
        ("NEXT", (), (1,)),  # never written
        ("WRITE 1\nNEXT", (), ()),  # written, and nobody looked
        ("WRITE 1\nNEXT\nSEARCH A_1", ("A_1 = 0007",), ()),
        ("WRITE 1\nNEXT\nSEARCH A_1", (), (1,)),  # written, and the memory has lost it
        ("WRITE 1\nNEXT\nSEARCH A_1", ("A_1 = 0008",), (1,)),  # or garbled it
    ],
)
def test_what_a_memory_system_fails_to_supply_is_unavailable(said, found, unavailable):
    task = from_graph(TaskSpec("stepwise-sum"), ((), (), (1,)))
    session = managed(task, "external", h=1)
    before, _, after = said.rpartition("NEXT")
    texts = ["NEXT\nANSWER 1 7\n" + before, "NEXT\nANSWER 2 7", "NEXT" + after]
    played = play(session, script(*texts), lambda call: MemoryResult(found if call.verb == "search" else ()))
    assert played.decisions[2].missing == (1,)
    assert played.decisions[2].unavailable == unavailable


def test_a_search_needs_a_step_and_its_passages_are_clean():
    session = managed(CHAIN, "external")
    hostile_passages = ("\x00\ud800" + "x" * 10,) * 3
    played = play(session, script("SEARCH x\nNEXT\nSEARCH x", "DONE"), lambda call: MemoryResult(hostile_passages))
    assert played.actions[0].reason == "no-step"
    notes = played.prompts[1].partition("NOTES\n")[2].partition("\nEND NOTES")[0]
    assert [line[-10:] for line in notes.split("\n")] == ["x" * 10] * 3
    assert "\x00" not in notes
    notes.encode()


def test_the_last_action_may_be_a_write():
    session = managed(CHAIN, "external", actions=3)
    calls = []
    play(session, script("NEXT\nANSWER 1 7\nWRITE 1"), lambda call: calls.append(call) or MemoryResult())
    assert len(calls) == 1
    assert session.ending == "action-limit"


# --- injections


def test_injections_are_shown_and_neither_enter_nor_feed_memory():
    task = CHAIN
    session = ManagedSession(
        public(task),
        CONDITIONS["kv"](task, 2),
        inject=lambda step, missing, own: tuple((r, (4321,)) for r in missing),
    )
    played = play(session, script("NEXT\nANSWER 1 7\nNEXT", "WRITE 1", "DONE"))
    assert "RESTORED\nA_1 = 4321" in played.prompts[1]
    assert [a.reason for a in played.actions if a.action == "WRITE 1"] == ["not-at-hand"]
    assert played.decisions[1].restored == ((1, (4321,)),)
    assert played.decisions[1].missing == (1,)


def test_events_say_everything_that_happened():
    played = play(managed(CHAIN, "fifo", h=1), script(*walk(CHAIN, 2)))
    assert played.actions[3] == ActionTaken(4, 2, "ANSWER 2 7", "done", "answer recorded", evicted=1)


def test_records_may_be_wide():
    task = task_of("store-recall", slots=3)
    trace = run_reference("calculator", managed(task, "fifo", h=1))
    assert {len(d.submitted) for d in trace.decisions} == {3}
