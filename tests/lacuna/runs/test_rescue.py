"""The three arms: what is injected, that the sham matches the oracle in length alone, and what agents make of it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.agents.session import inject_nothing
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import ARMS, CellPlan, Restoration, Sham
from eirkit.lacuna.runs.rescue import RescueSetup, rescue
from eirkit.lacuna.runs.runner import Runner
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from tests.lacuna.running import agent, controlled, eirkit, task_of
from tests.lacuna.strategies import specs
from tests.runs import records

STORE_RECALL = RescueSetup(TaskSpec("store-recall", m=8), 4)
OPTIONS = ModelOptions()


def rows(found):
    return {(row.model, row.arm): row for row in found.rows}


@settings(max_examples=60)
@given(specs("stepwise-sum") | specs("stepwise-topk") | specs("store-recall"), st.data())
def test_the_sham_has_the_oracles_labels_and_length_and_never_its_values(spec, data):
    task = generate(spec)
    public = publish(task, prepare(spec))
    step = public.steps[data.draw(st.integers(1, spec.n - 1))]
    truth = data.draw(st.sampled_from(["true", "submitted"]))
    submitted = {t: task.step(t).answer for t in range(1, step.t) if data.draw(st.booleans())}
    oracle = Restoration(task, truth)(step, step.refs, submitted)
    sham = Sham(task, truth)(step, step.refs, submitted)
    assert [r for r, _ in sham] == [r for r, _ in oracle]
    for (r, right), (_, wrong) in zip(oracle, sham, strict=True):
        assert right == task.step(r).answer
        assert wrong != right
        assert len(wrong) == len(right)
        assert all(0 <= value < spec.q for value in wrong)


def test_the_sham_is_an_earlier_answer_of_the_task_that_differs_from_the_operand():
    task = task_of("stepwise-sum", n=40, m=8)
    public = publish(task, prepare(task.spec))
    for step in public.steps[4:]:
        earlier = {task.step(t).answer for t in range(1, step.t)}
        for r, value in Sham(task)(step, step.refs, {}):
            assert value in earlier
            assert value != task.step(r).answer


def test_the_submitted_truth_is_the_agents_own_even_where_it_is_wrong():
    task = task_of("stepwise-sum", n=8, m=4)
    step = publish(task, prepare(task.spec)).steps[4]
    submitted = dict.fromkeys(step.refs, (7,))
    assert Restoration(task, "submitted")(step, step.refs, submitted) == tuple((r, (7,)) for r in step.refs)
    assert Restoration(task, "submitted")(step, step.refs, {}) == ()


def test_prompts_of_oracle_and_sham_have_equal_length_and_the_control_lacks_the_injection_alone():
    task = task_of("store-recall", m=8)
    lengths, missed = [], []
    for inject in (inject_nothing, Restoration(task), Sham(task)):
        trace = controlled(task, agent("calculator"), 4, inject)
        lengths.append([len(exchange.request.messages[-1].content) for exchange in trace.exchanges])
        missed = [bool(decision.missing) for decision in trace.decisions]
    for step, (control, oracle, sham) in enumerate(zip(*lengths, strict=True)):
        assert oracle == sham == control + missed[step] * len("RESTORED\nA_05 = 1234\n")


def test_injections_neither_enter_nor_touch_retention():
    task = task_of("stepwise-sum", m=8)
    held = [
        [decision.retained for decision in controlled(task, agent("calculator"), 4, inject).decisions]
        for inject in (inject_nothing, Restoration(task), Sham(task))
    ]
    assert all(first == second for first, second in pairwise(held))


def test_restoration_repairs_and_the_sham_does_not():
    found = rescue(STORE_RECALL, range(12), ["reference/guesser", "reference/calculator"], OPTIONS)
    by_arm = rows(found)
    for model in ("reference/guesser", "reference/calculator"):
        control, oracle, sham = (by_arm[model, arm] for arm in ARMS)
        assert (oracle.accuracy, sham.accuracy, oracle.trajectory_accuracy) == (1.0, 0.0, 1.0)
        assert control.accuracy <= 0.02  # a lucky guess is one in 10^4, an omitted operand right where it is 0000
        assert control.steps == oracle.steps == sham.steps > 100
    # Two models are two effects; one number is there for one of them alone.
    assert found.repair_effect is None
    assert [one.difference.estimate for one in found.repair_effects(["reference/guesser"])] == [1.0]
    assert found.repair_effect_of(["reference/guesser"]) == 1.0
    first = found.contrasts[0]
    assert (first.arms, first.pairs, first.trajectories) == (("oracle", "sham"), 151, 12)
    # All twelve trajectories gain: two of 2^12 sign patterns are as extreme.
    assert (first.mcnemar_p, first.permutation_p) == (2 / 2**151, 2 / 2**12)
    # Exact over 151 pairs that all gain: 97.5% bounds on the gains and on the losses, (1.25%)^(1/151) apart from 1.
    bound = 0.0125 ** (1 / 151)
    assert (first.difference.low, first.difference.high) == pytest.approx((2 * bound - 1, 1.0))


def test_all_missing_operands_of_stepwise_maximum_are_restored():
    found = rows(rescue(RescueSetup(TaskSpec("stepwise-max", m=8), 4), range(6), ["reference/calculator"], OPTIONS))
    control, oracle, sham = (found["reference/calculator", arm] for arm in ARMS)
    assert oracle.trajectory_accuracy == 1.0 > max(control.trajectory_accuracy, sham.trajectory_accuracy)


def test_lru_at_sufficient_capacity_is_rescued_by_what_the_agent_submitted():
    setup = RescueSetup(TaskSpec("stepwise-sum", m=16), 16, "lru", "submitted", managed=True)
    found = rows(rescue(setup, range(4), ["reference/calculator"], OPTIONS))
    control, oracle, sham = (found["reference/calculator", arm] for arm in ARMS)
    assert oracle.trajectory_accuracy == 1.0
    assert max(control.trajectory_accuracy, sham.trajectory_accuracy) < 0.6
    # The misses are a matter of the graph and the policy, not of the arm.
    assert control.missed_steps == oracle.missed_steps == sham.missed_steps > 0


def test_the_truth_that_was_submitted_does_not_repair_an_earlier_error():
    spec = TaskSpec("store-recall", m=8)
    agents = ["reference/sloppy"]
    true = rescue(RescueSetup(spec, 4), range(4), agents, OPTIONS)
    own = rescue(RescueSetup(spec, 4, truth="submitted"), range(4), agents, OPTIONS)
    pick = ("reference/sloppy", "oracle")
    assert rows(true)[pick].accuracy > rows(own)[pick].accuracy
    assert rows(own)[pick].self_consistent_accuracy >= rows(own)[pick].trajectory_accuracy


def test_where_nothing_is_missing_there_is_nothing_to_compare():
    found = rescue(RescueSetup(TaskSpec("store-recall", m=8), 8), range(2), ["reference/calculator"], OPTIONS)
    assert [row.accuracy for row in found.rows] == [None] * 3
    assert (found.contrasts, found.repair_effect) == ((), None)


def test_a_server_that_is_not_there_is_a_failure_and_no_zero():
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", retries=0)
    found = rescue(RescueSetup(TaskSpec("store-recall", n=4, m=2), 1), range(1), ["openai/nobody"], options)
    assert [(row.scored, row.attempted, row.accuracy) for row in found.rows] == [(0, 1, None)] * 3
    assert len(found.failures) == 3


def test_the_arms_need_seeds():
    with pytest.raises(SpecError, match="no seeds"):
        rescue(STORE_RECALL, [], ["reference/guesser"], OPTIONS)


def under(name, *, h=4, workload="store-recall", limit=None, **how):
    spec = TaskSpec(workload, n=32, m=8)
    return RescueSetup(spec, h, "window", managed=True, memory=MemoryPlan(name, {}, limit), **how)


@pytest.mark.parametrize(("name", "fate"), [("broken-drops", "not_stored"), ("broken-labels", "swapped_value")])
def test_what_a_memory_left_lacking_is_repaired_by_restoring_it(name, fate):
    found = rows(rescue(under(name), range(4), ["reference/recoverer"], OPTIONS))
    control, oracle, sham = (found["reference/recoverer", arm] for arm in ARMS)
    assert (control.accuracy, oracle.accuracy, sham.accuracy) == (0.0, 1.0, 0.0)
    assert control.steps == oracle.steps == sham.steps == control.outcomes[fate] > 0
    assert control.steps <= 4 * control.missed_steps


def test_the_steps_that_count_are_those_of_the_control_arm_counted_from_its_events():
    # A second way: what was missing and not fetched, from the traces themselves.
    setup, seeds = under("broken-drops"), range(3)
    tasks = [generate(setup.spec.with_seed(seed)) for seed in seeds]
    control = setup.cell("control", "reference/recoverer", OPTIONS)
    with Runner() as runner:
        results = runner.complete(CellPlan("rescue", ((control, seeds),)))
        traces = [results.trace(control, seed) for seed in seeds]
    lacking = [one for trace in traces for one in trace.decisions if set(one.missing) - set(one.fetched)]
    found = rows(rescue(setup, seeds, ["reference/recoverer"], OPTIONS))
    assert found["reference/recoverer", "oracle"].steps == len(lacking) > 0
    assert all(one.submitted != tasks[0].step(one.t).answer for one in traces[0].decisions if one in lacking)


def test_a_memory_that_brings_everything_leaves_nothing_to_repair():
    found = rescue(under("key-value"), range(2), ["reference/recoverer"], OPTIONS)
    assert [row.accuracy for row in found.rows] == [None] * 3
    assert found.contrasts == ()
    assert found.rows[0].outcomes["used"] > 0
    assert [row.trajectory_accuracy for row in found.rows] == [1.0] * 3  # nothing is injected where it is not lacking


def test_only_what_the_control_arms_memory_did_not_bring_is_injected():
    setup, seed = under("broken-drops"), 1
    plan = CellPlan("rescue", tuple(setup.cells(["reference/recoverer"], OPTIONS, [seed])))
    (control, _), *arms = plan.cells
    with Runner() as runner:
        results = runner.complete(plan)
        lacking = {
            one.t: frozenset(one.missing) - frozenset(one.fetched) for one in results.trace(control, seed).decisions
        }
        lacking = {t: refs for t, refs in lacking.items() if refs}
        for arm, _ in arms:
            decisions = results.trace(arm, seed).decisions
            assert {one.t: frozenset(r for r, _ in one.restored) for one in decisions if one.restored} == lacking
            injected = results.record(arm, seed).injected
            assert injected == tuple((t, tuple(sorted(refs))) for t, refs in sorted(lacking.items())) != ()
        assert results.record(control, seed).injected is None


def test_an_arm_whose_control_run_was_lost_is_not_run():
    found = rescue(under("broken-raises"), range(1), ["reference/recoverer"], OPTIONS)
    assert [line.partition(": ")[2][:8] for line in found.failures] == ["memory f", "not run:", "not run:"]


def test_a_strict_panel_holds_the_memory_to_h_records():
    free, held = (
        rows(rescue(under("key-value", h=2, limit=limit), range(2), ["reference/recoverer"], OPTIONS))
        for limit in (None, 2)
    )
    place = ("reference/recoverer", "control")
    assert free[place].steps == 0 < held[place].steps
    assert held["reference/recoverer", "oracle"].accuracy == 1.0


def test_a_memory_that_breaks_is_a_failure_and_no_zero():
    found = rescue(under("broken-raises"), range(2), ["reference/recoverer"], OPTIONS)
    assert [(row.scored, row.attempted) for row in found.rows if row.arm == "control"] == [(0, 2)]
    assert any("memory failed" in failure for failure in found.failures)


def test_an_agent_that_never_writes_is_told_from_a_store_that_loses():
    found = rescue(under("key-value"), range(2), ["reference/guesser"], OPTIONS)
    control = found.rows[0]
    assert control.outcomes["unwritten"] == sum(control.outcomes.values()) > 0
    assert control.steps > 0


def test_the_command_with_a_memory(capsys, tmp_path):
    line = [
        "lacuna",
        "rescue",
        "--m",
        "8",
        "--h",
        "4",
        "--n",
        "32",
        "--seeds",
        "0:12",
        "--model",
        "reference/recoverer",
    ]
    with_memory = [*line, "--memory", "broken-drops", "--out", str(tmp_path / "rescue")]
    assert eirkit(*with_memory) == 0
    shown = capsys.readouterr().out
    told = " ".join(shown.split())
    assert "steps where broken-drops did not retrieve an input, restoring it changes accuracy by +100.0 points" in told
    assert "Control arm: what became of records needed from memory" in shown
    assert eirkit(*with_memory, "--json") == 0, "trials are read back with their consultations"
    document = json.loads(capsys.readouterr().out)
    assert (document["memory"], document["panel"], document["repair_effect"]) == ("broken-drops", "native", 1.0)
    assert [one["model"] for one in document["repair_effects"]] == ["reference/recoverer"]
    assert eirkit(*line, "--memory", "key-value", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["calls"] > 0
    assert eirkit(*line, "--memory", "vector", "--set", "Vector.embedding=ngrams") == 0
    assert "vector retrieved everything that was missing" in capsys.readouterr().out


PROFILED = """
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Profile

class Drawer(KeyValue):
    profiles = {"as-documented": Profile("everything", ""), "store-only": Profile("the drawer", "its lock: no key")}

    def __init__(self, profile="as-documented"):
        super().__init__()
        self.profile = profile

    async def write(self, item):
        if self.profile == "as-documented":
            await super().write(item)
"""


def test_the_profile_of_a_memory_is_named_and_shown(capsys, tmp_path):
    (tmp_path / "drawer.py").write_text(PROFILED)
    chosen = ("--memory", f"{tmp_path / 'drawer.py'}:Drawer", "--set", "Drawer.profile=store-only")
    size = ("store-recall", "--m", "4", "--n", "8", "--h", "2", "--seeds", "0", "--model", "reference/recoverer")
    assert eirkit("lacuna", "rescue", *size, *chosen, "--out", str(tmp_path / "out")) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Drawer (store-only) did not retrieve an input" in shown
    assert "Drawer (store-only): on: the drawer; off: its lock: no key" in shown
    assert shown.endswith(f"next: eirkit report {tmp_path / 'out'}")
    shown = {
        (record.setting.intervention, record.memory and record.memory.profile) for record in records(tmp_path / "out")
    }
    assert {(arm is None, profile and profile.name) for arm, profile in shown} == {(True, None), (False, "store-only")}


def test_the_command(capsys):
    line = ["lacuna", "rescue", "--workload", "store-recall", "--m", "8", "--h", "4", "--seeds", "0:3"]
    assert eirkit(*line, "--model", "reference/guesser", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in document["rows"]] == ["control", "oracle", "sham"]
    assert document["repair_effect"] == 1.0
    assert eirkit(*line, "--model", "reference/guesser,reference/calculator") == 0
    assert "Paired by seed and step" in capsys.readouterr().out
    assert eirkit(*line, "--h", "8", "--model", "reference/guesser") == 0
    assert "lower --h" in capsys.readouterr().out
    assert eirkit(*line, "--h", "8", "--model", "reference/sloppy", "--set", "p=1") == 0
    shown = " ".join(capsys.readouterr().out.split())  # wrong for another reason, which a lower h would not show
    assert "and yet only 0% of steps were right" in shown
    assert "lower --h" not in shown


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--model", "reference/delphi"], "known:"),
        (["--model", "reference/guesser", "--policy", "lro"], "did you mean"),
        (["--model", "reference/guesser", "--seed", "3"], "--seeds 3"),
        (["--model", "reference/guesser", "--set", "p"], "--set p=0.2"),
        (["--model", "reference/guesser", "--workload", "store-recall,full-lookup"], "one workload"),
        ([], "--model"),
        (["--model", "reference/guesser", "--memory", "bm26"], "did you mean"),
        (["--model", "reference/guesser", "--memory", "bm25,vector"], "one memory at a time"),
        (["--model", "reference/guesser", "--memory", "bm25", "--policy", "lru"], "leave out --policy"),
        (["--model", "reference/guesser", "--panel", "strict"], "add --memory"),
        (["--model", "reference/guesser", "--memory", "bm25", "--set", "bm26.k=1"], "bm25"),
    ],
)
def test_wrong_usage_is_one_line_with_a_remedy(capsys, arguments, remedy):
    assert eirkit("lacuna", "rescue", *arguments) == 2
    said = capsys.readouterr().err
    assert remedy in said
    assert said.count("\n") == 1
