"""Why each wrong step was wrong: every cause and kind by hand, and agents whose faults are known beforehand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.lacuna.agents.conditions import ManagedOptions
from eirkit.lacuna.agents.telemetry import events_of, trace_of
from eirkit.lacuna.findings.causes import judge, score
from eirkit.lacuna.findings.statistics import deviation, mean, pool
from eirkit.lacuna.tasks.generation import from_graph, generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec, show_record
from eirkit.records.events import ActionTaken, Decision, decode_events, encode_events
from tests.lacuna.running import Scripted, agent, controlled, managed, task_of
from tests.lacuna.strategies import specs

SUM = prepare(TaskSpec("stepwise-sum"))
# Step 2 refers to 1, step 3 to 1 and 2, step 4 to 3.
GRAPH = ((), (1,), (1, 2), (3,))


def small_task():
    return from_graph(TaskSpec("stepwise-sum", n=4, digits=4, seed=5), GRAPH)


def decision(task, t, submitted, **fields):
    values = None if submitted is None else (submitted % task.spec.q,)
    base = {"retained": (), "missing": (), "unavailable": (), "restored": (), "fault": None}
    return Decision(t=t, required=task.step(t).refs, submitted=values, **{**base, **fields})


def verdict_at(task, t, decisions, actions=()):
    return judge(task, SUM, decisions, actions)[t - 1]


def right(task, t, **fields):
    return decision(task, t, task.step(t).answer[0], **fields)


def test_a_right_answer_has_no_cause_even_where_something_was_missing():
    task = small_task()
    found = verdict_at(task, 2, [right(task, 1), right(task, 2, missing=(1,), unavailable=(1,))])
    assert (found.correct, found.missed, found.cause, found.kind) == (True, True, None, None)


SILENCE = [  # fault, an input was lost, cause, kind
    ("malformed", True, "malformed", "protocol"),
    ("malformed", False, "malformed", "protocol"),
    ("out-of-range", False, "malformed", "protocol"),
    ("truncated", True, "truncated", "truncated_reply"),
    ("truncated", False, "truncated", "truncated_reply"),
    ("unanswered", True, "not_answered", "unanswered"),
    ("unanswered", False, "not_answered", "unanswered"),
    ("declined", True, "state_supply", "declined"),
    ("declined", False, "not_answered", "unanswered"),
]


@pytest.mark.parametrize(("fault", "lost", "cause", "kind"), SILENCE)
def test_a_step_without_an_answer_has_a_cause_of_its_own(fault, lost, cause, kind):
    task = small_task()
    gone = (1,) if lost else ()
    silent = decision(task, 3, None, missing=gone, unavailable=gone, fault=fault)
    found = verdict_at(task, 3, [right(task, 1), right(task, 2), silent])
    assert (found.cause, found.kind, found.blind) == (cause, kind, False)


def test_an_unavailable_input_is_state_supply():
    task = small_task()
    found = verdict_at(task, 3, [right(task, 1), right(task, 2), decision(task, 3, 17, missing=(1,), unavailable=(1,))])
    assert (found.cause, found.kind, found.blind, found.unexplained) == ("state_supply", "missing", True, False)


def test_what_was_never_answered_is_carried_over_and_not_lost():
    task = small_task()
    silent = decision(task, 1, None, fault="malformed")
    found = judge(task, SUM, [silent, decision(task, 2, 3)])
    assert (found[0].cause, found[0].kind) == ("malformed", "protocol")
    assert (found[1].cause, found[1].kind, found[1].missed) == ("cascade", "never_submitted", False)


def test_a_wrong_value_of_the_memory_that_was_used_is_not_the_agents_error():
    task = small_task()
    # A_2 = input + A_1: the memory said 5 for A_1, and the answer follows from it, though reads were left.
    used = decision(task, 2, 5 + task.step(2).input[0], missing=(1,), stated=((1, (5,)),))
    found = verdict_at(task, 2, [right(task, 1), used])
    assert (found.cause, found.kind) == ("state_supply", "misinformed")
    other = decision(task, 2, 6 + task.step(2).input[0], missing=(1,), stated=((1, (5,)),))
    assert verdict_at(task, 2, [right(task, 1), other]).kind == "not_fetched"


def test_where_an_input_may_have_been_at_hand_nothing_is_claimed():
    task = small_task()
    unsure = decision(task, 2, 3, uncertain=(1,))
    found = verdict_at(task, 2, [right(task, 1), unsure])
    assert (found.cause, found.kind, found.unsure, found.informed) == ("undetermined", "uncertain", True, False)
    scored = score(judge(task, SUM, [right(task, 1), unsure]), [right(task, 1), unsure])
    assert (scored.missed, scored.unsure, scored.consuming_all, scored.miss_rate) == (0, 1, 3, 0.0)


def test_a_right_answer_without_its_input_is_unexplained_unless_visible_values_give_it():
    task = small_task()
    lucky = decision(task, 2, task.step(2).answer[0], missing=(1,), unavailable=(1,))
    found = verdict_at(task, 2, [right(task, 1), lucky])
    assert (found.blind, found.unexplained, found.correct) == (True, True, True)
    top = task_of("running-max", n=24, m=4, seed=5)
    rising = [step.t for step in top.steps[1:] if step.answer == step.input]
    assert rising  # the input is the largest, so that the lost answer is not needed
    step = top.step(rising[0])
    alone = Decision(step.t, step.refs, (), step.refs, step.refs, (), step.answer, None)
    found = judge(top, prepare(top.spec), [*(right(top, t) for t in range(1, step.t)), alone])[step.t - 1]
    assert (found.blind, found.unexplained) == (True, False)


def test_correct_inputs_make_it_computation():
    task = small_task()
    found = verdict_at(task, 2, [right(task, 1), decision(task, 2, task.step(2).answer[0] + 1)])
    assert (found.cause, found.kind, found.self_consistent) == ("computation", "correct_inputs", False)


def test_the_operator_on_the_agents_own_wrong_answer_is_a_cascade():
    task = small_task()
    wrong = task.step(1).answer[0] + 1
    # A_2 = input + A_1 modulo q: the error of one is handed on as one.
    follows = decision(task, 2, task.step(2).answer[0] + 1)
    found = verdict_at(task, 2, [decision(task, 1, wrong), follows])
    assert (found.cause, found.kind, found.self_consistent) == ("cascade", "propagated", True)
    beside_it = decision(task, 2, task.step(2).answer[0] + 2)
    found = verdict_at(task, 2, [decision(task, 1, wrong), beside_it])
    assert (found.cause, found.kind, found.self_consistent) == ("computation", "on_corrupted", False)


def test_what_was_obtainable_and_not_fetched_is_computation():
    task = small_task()
    left = decision(task, 2, task.step(2).input[0], missing=(1,))
    assert verdict_at(task, 2, [right(task, 1), left]).kind == "not_fetched"
    fetched = decision(task, 2, task.step(2).input[0], missing=(1,), fetched=(1,))
    assert verdict_at(task, 2, [right(task, 1), fetched]).kind == "correct_inputs"


def test_steps_that_were_left_or_never_revealed_are_wrong_and_have_a_kind():
    task = small_task()
    found = judge(task, SUM, [right(task, 1), decision(task, 2, None, fault="unanswered")])
    assert [(v.cause, v.kind) for v in found[1:]] == [
        ("not_answered", "unanswered"),
        ("not_answered", "unreached"),
        ("not_answered", "unreached"),
    ]


def test_what_an_oracle_restores_is_available_and_what_a_sham_brings_is_not():
    task = small_task()
    true = task.step(1).answer
    for value, expected in ((true, ("computation", "correct_inputs")), ((true[0] ^ 1,), ("state_supply", "missing"))):
        missed = decision(task, 2, task.step(2).answer[0] + 1, missing=(1,), unavailable=(1,), restored=((1, value),))
        found = verdict_at(task, 2, [right(task, 1), missed])
        assert (found.cause, found.kind) == expected


def test_an_error_that_follows_from_a_recomputed_value_is_a_cascade():
    task = small_task()
    # The agent erred at step 1 by one; a recomputation of step 2 in sight of it errs by one as well, and step 4 is
    # answered from what that made of step 3.
    wrong_first = decision(task, 1, task.step(1).answer[0] + 1)
    third = (task.step(3).answer[0] + 5) % task.spec.q
    action = ActionTaken(1, 4, "RECOMPUTE 3", "done", show_record(task.spec, 3, (third,)))
    last = decision(task, 4, third + task.step(4).input[0], missing=(3,), fetched=(3,))
    decisions = [wrong_first, right(task, 2), right(task, 3), last]
    assert verdict_at(task, 4, decisions, [action]).cause == "cascade"
    assert verdict_at(task, 4, decisions).kind == "correct_inputs"


def test_scores_by_hand():
    task = small_task()
    decisions = [
        right(task, 1),
        decision(task, 2, task.step(2).answer[0] + 1, missing=(1,), unavailable=(1,)),
        decision(task, 3, task.step(3).answer[0] + 1),
        decision(task, 4, None, fault="malformed"),
    ]
    verdicts = judge(task, SUM, decisions)
    found = score(verdicts, decisions)
    assert (found.accuracy, found.step_accuracy, found.answered_fraction) == (1 / 4, 0.0, 3 / 4)
    assert found.self_consistent_accuracy == 2 / 4  # steps 1 and 3
    assert (found.first_miss, found.first_error, found.aligned, found.final_correct) == (2, 2, True, False)
    assert {cause: n for cause, n in found.errors.items() if n} == {"state_supply": 1, "cascade": 1, "malformed": 1}
    assert (found.informed, found.informed_correct, found.blind, found.unexplained) == (0, 0, 1, 0)
    assert found.accuracy + sum(found.error_shares.values()) == 1
    assert found.kinds == Counter(missing=1, propagated=1, protocol=1)
    assert (found.missed, found.missed_references, found.miss_rate) == (1, 1, 1 / 3)


def test_only_scored_steps_count_and_alignment_looks_at_all():
    task = from_graph(TaskSpec("stepwise-sum", n=4, warm_up=2, seed=5), GRAPH)
    decisions = [right(task, 1), decision(task, 2, 3, missing=(1,), unavailable=(1,)), right(task, 3), right(task, 4)]
    found = score(judge(task, SUM, decisions), decisions)
    assert (found.steps, found.accuracy, found.first_error, found.aligned) == (2, 1.0, 2, True)
    assert sum(found.errors.values()) == 0


def test_an_error_free_run_with_a_miss_is_unaligned_and_one_without_has_no_alignment():
    task = small_task()
    lucky = [right(task, t, missing=(1,) if t == 2 else ()) for t in (1, 2, 3, 4)]
    assert score(judge(task, SUM, lucky), lucky).aligned is False
    calm = [right(task, t) for t in (1, 2, 3, 4)]
    assert score(judge(task, SUM, calm), calm).aligned is None


@pytest.mark.parametrize("h", [12, 8, 4])
def test_the_calculators_errors_are_never_computation(h):
    scores = []
    for seed in range(20):
        task = task_of("stepwise-sum", m=16, seed=seed)
        decisions = controlled(task, agent("calculator"), h).decisions
        verdicts = judge(task, SUM, decisions)
        scores.append(score(verdicts, decisions))
        # A step that misses an operand is wrong unless the omitted operands cancel, which these seeds do not show.
        assert {v.t for v in verdicts if v.cause == "state_supply"} == {v.t for v in verdicts if v.missed}
    pooled = pool(scores)
    assert pooled.errors["computation"] == 0 < min(pooled.errors["cascade"], pooled.errors["state_supply"])
    assert pooled.first_error_at_first_miss == 1.0


def test_with_everything_in_sight_errors_are_computation_or_cascade():
    task = task_of("stepwise-max", m=8)
    decisions = controlled(task, agent("sloppy", p=0.3), 8).decisions
    found = score(judge(task, prepare(task.spec), decisions), decisions)
    assert found.errors["state_supply"] == 0 < found.errors["computation"]


def test_budgets_that_are_not_used_make_it_computation_and_budgets_that_are_short_make_it_supply():
    task = task_of("stepwise-sum", n=24, m=8)
    spendthrift = managed(task, agent("calculator"), 4, ManagedOptions(reads=None))
    found = score(judge(task, SUM, spendthrift.decisions, spendthrift.actions), spendthrift.decisions)
    assert found.errors["state_supply"] == 0 < found.kinds["not_fetched"]
    poor = managed(task, agent("recoverer"), 4, ManagedOptions(reads=2))
    found = score(judge(task, SUM, poor.decisions, poor.actions), poor.decisions)
    assert found.kinds.get("not_fetched", 0) == 0 < found.errors["state_supply"]


def test_a_run_that_ends_early_is_scored_from_what_there_is():
    task = task_of("stepwise-sum", n=24, m=8)
    cut = managed(task, agent("calculator"), 8, ManagedOptions(actions=9))
    found = score(judge(task, SUM, cut.decisions), cut.decisions, max_turn=cut.ending == "action-limit")
    # NEXT and ANSWER take two actions a step: four steps are answered and the fifth is revealed.
    assert (found.correct, found.max_turn, found.kinds["unanswered"], found.kinds["unreached"]) == (4, True, 1, 19)


@settings(max_examples=60)
@given(specs("stepwise-sum", 12) | specs("store-recall", 12) | specs("stepwise-topk", 12), st.data())
def test_every_wrong_step_has_exactly_one_cause(spec, data):
    task, workload = generate(spec), prepare(spec)
    q, width = spec.q, workload.width(spec)
    replies = [
        data.draw(
            st.sampled_from(["", "ANSWER x", f"ANSWER {t} " + " ".join(str(value) for value in task.step(t).answer)])
            | st.integers(0, min(3, q - 1)).map(lambda v, t=t: f"ANSWER {t} " + " ".join([str(v)] * width))
        )
        for t in range(1, spec.n + 1)
    ]
    trace = controlled(task, Scripted(replies), data.draw(st.integers(1, 6)))
    verdicts = judge(task, workload, trace.decisions)
    for found, made in zip(verdicts, trace.decisions, strict=True):
        assert (found.cause is None) == found.correct == (made.submitted == task.step(found.t).answer)
        lost = not found.correct and found.answered and bool(made.missing)
        assert (found.cause == "state_supply") == lost
        assert (found.cause in ("not_answered", "malformed")) == (not found.answered)
        if found.cause == "cascade" and found.kind == "propagated":
            assert found.self_consistent
    scored = score(verdicts, trace.decisions)
    assert scored.correct + sum(scored.errors.values()) == scored.steps
    assert sum(scored.kinds.values()) == sum(scored.errors.values())
    # What was written to a file and read back is judged the same.
    assert (
        judge(task, workload, trace_of(decode_events(encode_events(events_of(trace)), "run"), None).decisions)
        == verdicts
    )


def test_pooling_by_hand():
    task = small_task()
    perfect = [right(task, t) for t in (1, 2, 3, 4)]
    half = [*perfect[:2], decision(task, 3, 0, missing=(1,), unavailable=(1,)), decision(task, 4, None, fault="no")]
    pooled = pool([score(judge(task, SUM, run), run) for run in (perfect, half)])
    assert (pooled.scored, pooled.accuracy, pooled.accuracy_sd) == (2, 0.75, 0.25)
    assert (pooled.first_error_at_first_miss, pooled.final_accuracy, pooled.missed_steps) == (1.0, 0.5, 0.5)
    assert pool([]).accuracy is None


def test_means_and_deviations_of_nothing_are_nothing():
    assert (mean([]), deviation([]), mean([None, 1.0])) == (None, None, 1.0)
