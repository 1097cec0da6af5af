"""What an agent did with its memory: every count by hand, and agents whose traits are known beforehand."""

from __future__ import annotations

import pytest

from eirkit.lacuna.agents.conditions import KeyValueStore, ManagedOptions, Scratch
from eirkit.lacuna.findings.behavior import continuations, measure_behavior, mentioned, retrievals_of, valley
from eirkit.lacuna.findings.causes import judge
from eirkit.lacuna.tasks.generation import graph_of, prepare
from eirkit.records.events import ActionTaken, Decision
from tests.lacuna.running import Scripted, agent, controlled, managed, task_of

# Steps 5 and 6 refer to early ones; step 4 needs 1 and 2.
GRAPH = ((), (), (), (1, 2), (3,), (1, 3))


def did(*texts, t=0):
    """Return actions from lines such as `READ 1 >2`: carried out, and record 2 left for it. NEXT moves on."""
    actions = []
    for number, text in enumerate(texts, 1):
        line, _, evicted = text.partition(" >")
        refused = line.startswith("!")
        word = line.lstrip("!")
        outcome = "refused" if refused else "done"
        actions.append(ActionTaken(number, t, word, outcome, "", int(evicted) if evicted else None))
        t += word == "NEXT"
    return actions


def counted(*texts, t=0):
    return measure_behavior(GRAPH, did(*texts, t=t), ())


def test_retrievals_are_reads_recomputations_and_labels_searched_for():
    done = did("READ 3", "RECOMPUTE 4", "SEARCH A_07 and A_12", "NOTE A_01 = 3", "!READ 5")
    assert [retrievals_of(action) for action in done] == [(3,), (4,), (7, 12), (), ()]


def test_just_in_time_redundant_and_prefetch_by_hand():
    # At step 4 (references 1, 2): 1 twice, and 3, which step 5 needs; at step 5 also 2, which nobody needs any more.
    found = counted("READ 1", "READ 1", "READ 3", "ANSWER 4 0", "NEXT", "READ 2", "ANSWER 5 0", t=4)
    assert (found.retrievals, found.just_in_time, found.redundant) == (4, 2, 1)
    assert (found.read_ahead, found.prefetched) == (2, 1)
    assert (found.just_in_time_rate, found.redundant_rate) == (0.5, 0.25)
    nothing = counted("NEXT", "ANSWER 1 0")
    assert (nothing.just_in_time_rate, nothing.write_through_rate) == (None, None)


def test_a_prefetch_counts_within_four_steps_and_not_beyond():
    graph = ((), (), (), (), (), (1,), ())
    for step, hits in ((1, 0), (2, 1), (5, 1), (6, 0)):
        found = measure_behavior(graph, did("READ 1", t=step), ())
        assert found.prefetched == hits, step


def test_regret_is_what_was_fetched_ahead_evicted_and_then_needed():
    # 3 is read at step 4, leaves when 4 is answered, and step 5 needs it.
    assert counted("READ 3", "ANSWER 4 0 >3", "NEXT", "READ 3", "ANSWER 5 0", t=4).regret == 1
    # It stayed: no regret. It left but nobody needed it: no regret.
    assert counted("READ 3", "ANSWER 4 0 >1", "NEXT", "ANSWER 5 0", t=4).regret == 0
    assert counted("READ 2", "ANSWER 5 0 >2", "NEXT", "ANSWER 6 0", t=5).regret == 0
    # A current reference that leaves again is still in sight until the step ends.
    assert counted("READ 1", "READ 2 >1", "ANSWER 4 0", t=4).regret == 0


def test_thrash_episodes_are_runs_of_three_without_an_answer():
    assert counted("NEXT", "READ 1", "ANSWER 1 0").thrash_episodes == 0
    assert counted("NEXT", "READ 1", "READ 2", "ANSWER 4 0", "NEXT", "ANSWER 5 0").thrash_episodes == 1
    # A refused answer is no answer, and the run after the last answer counts.
    assert counted("NEXT", "!ANSWER 1 x", "READ 1", "ANSWER 1 0", "NEXT", "READ 1", "DONE").thrash_episodes == 2


def test_thrash_cycles_are_returns_without_progress():
    assert counted("READ 1", "READ 2 >1", "READ 1", "ANSWER 4 0", t=4).thrash_cycles == 1
    assert counted("READ 1", "READ 2 >1", "ANSWER 4 0", "READ 1", t=4).thrash_cycles == 0
    assert counted("READ 1", "READ 2", "READ 1", "ANSWER 4 0", t=4).thrash_cycles == 0
    assert counted("READ 1 >1", "READ 1 >1", "READ 1 >1", t=4).thrash_cycles == 2


def test_write_through_counts_correct_answers_stored_before_the_next_step():
    task = task_of("stepwise-sum", n=4, m=2)
    replies = []
    for step in task.steps:
        answer = step.answer[0] + (step.t == 3)  # step 3 is wrong
        keep = {1: "WRITE 1", 2: "", 3: "WRITE 3", 4: "WRITE 3"}[step.t]
        replies += ["NEXT", f"ANSWER {step.t} {answer % task.spec.q}", *([keep] if keep else [])]
    trace = managed(task, Scripted([*replies, "DONE"]), 4, condition=KeyValueStore(4))
    verdicts = judge(task, prepare(task.spec), trace.decisions)
    found = measure_behavior(graph_of(task), trace.actions, trace.decisions, verdicts)
    assert (found.correct, found.written, found.write_through_rate) == (3, 1, 1 / 3)


def test_a_note_with_the_answer_is_written_through_and_one_without_is_not():
    task = task_of("stepwise-sum", n=2, m=2)
    one, two = (step.answer[0] for step in task.steps)
    replies = ["NEXT", f"ANSWER 1 {one}", f"NOTE A_1 = {one:04d}", "NEXT", f"ANSWER 2 {two}", "NOTE all well", "DONE"]
    trace = managed(task, Scripted(replies), 4, condition=Scratch(task.spec, 1, 4))
    found = measure_behavior(
        graph_of(task), trace.actions, trace.decisions, judge(task, prepare(task.spec), trace.decisions)
    )
    assert (found.correct, found.written) == (2, 1)


@pytest.mark.parametrize(("name", "just_in_time", "is_redundant"), [("recoverer", 1.0, False), ("thrasher", 1.0, True)])
def test_the_traits_of_reference_agents_show(name, just_in_time, is_redundant):
    task = task_of("stepwise-sum", n=24, m=8)
    trace = managed(task, agent(name), 4, ManagedOptions(reads=None, actions=400))
    found = measure_behavior(graph_of(task), trace.actions, trace.decisions)
    assert found.just_in_time_rate == just_in_time
    assert (found.redundant > 0) == is_redundant
    assert found.retrievals == sum(decision.reads for decision in trace.decisions) > 0


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("ANSWER 7 3090", set()),
        ("A_1 is gone.\nANSWER 7 3090", {1}),
        ("Note that A_01 and A_{5} are lost, A12 too.\nANSWER 7 0", {1, 5, 12}),
        ("SEARCH A_1\nREAD A_2\nNOTE A_3 = 4", set()),
        ("", set()),
    ],
)
def test_labels_are_mentioned_outside_commands_only(text, labels):
    assert mentioned(text) == labels


def kinds(trace):
    return continuations(trace.decisions, trace.exchanges, trace.actions)


def test_the_three_behaviors_of_reference_agents():
    task = task_of("stepwise-sum", n=24, m=8)
    assert set(kinds(controlled(task, agent("calculator"), 4)).values()) == {"silent"}
    assert set(kinds(controlled(task, agent("acknowledger"), 4)).values()) == {"acknowledged"}
    left = kinds(controlled(task, Scripted([f"ANSWER {t} 0" for t in range(1, 16)]), 4))
    assert {kind for t, kind in left.items() if t > 15} == {"abandoned"}
    recovered = managed(task, agent("recoverer"), 4, ManagedOptions(reads=None, actions=400))
    assert set(kinds(recovered).values()) == {"recovered"}
    missed = {decision.t for decision in recovered.decisions if decision.missing}
    assert kinds(recovered).keys() == missed


def test_a_recovery_that_begins_and_does_not_end_is_stopped():
    partly = Decision(4, (1, 2), (), (1, 2), (), (), (0,), None, fetched=(1,))
    refused = Decision(5, (3,), (), (3,), (3,), (), (0,), None)
    actions = [ActionTaken(1, 5, "READ 3", "refused", "no reads are left")]
    assert continuations([partly, refused], [], actions) == {4: "stopped", 5: "stopped"}


def test_valleys_by_hand():
    found = valley({2: 0.2, 4: 0.1, 8: 0.6, 16: 0.95}, {2: 0.1, 4: 0.5, 8: 0.7, 16: 1.0})
    assert (found.depth, found.h) == (pytest.approx(-0.4), 4)
    # 0.1 at h = 4 lies below both neighbors, by 0.1 below the worse of them.
    assert (found.dip, found.dip_h) == (pytest.approx(-0.1), 4)
    rising = valley({2: 0.2, 4: 0.4, 8: 0.6}, {2: 0.1, 4: 0.1})
    assert (rising.depth, rising.dip, rising.dip_h) == (pytest.approx(0.1), 0.0, None)
