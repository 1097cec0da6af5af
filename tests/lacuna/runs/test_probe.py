"""Recovery probes: the fewest reads are those of the cone, and agents of known manners read as they must."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.probe_session import ProbeSession, find_lost_answer, probe_session
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.probe import ProbeExperiment, run_probes, score_probe
from eirkit.lacuna.tasks.cones import cone_of
from eirkit.lacuna.tasks.generation import from_graph, graph_of, prepare
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from eirkit.records.evidence import ProbeSetup
from eirkit.records.runs import LostAnswer
from tests.lacuna.running import Scripted, agent, eirkit, task_of
from tests.lacuna.strategies import graphs

# 6 needs 5 and 4; 5 needs 3 and 2; 4 needs 3; 3 needs 1; 2 needs 1.
DIAMOND = ((), (1,), (1,), (3,), (2, 3), (4, 5))


def diamond():
    return from_graph(TaskSpec("stepwise-sum", seed=3), DIAMOND)


def probe(task, lost, model):
    session = probe_session(task, lost)
    trace = asyncio.run(drive(session, model))
    return session, trace, score_probe(task, lost, trace)


def test_a_probe_by_hand():
    task, lost = diamond(), LostAnswer(at=6, target=5, resident=(3,))
    session, trace, score = probe(task, lost, Scripted(["READ 5", "READ 2\nREAD 2", "READ 4\nREAD 1\nDONE"]))
    # The cone of 5 cut at 3 is 5, 2 and 1; 2 was read twice, and 4 was not needed.
    assert (score.minimum, score.order, score.redundant, score.off_cone) == (3, (5, 2, 2, 4, 1), 1, 1)
    assert (score.success, score.early_stop, score.overhead) == (True, False, 5 / 3)
    assert session.known[5] == task.step(5).answer
    assert trace.ending == "done"


def test_what_the_prompt_shows():
    task = diamond()
    _, trace, _ = probe(task, LostAnswer(6, 5, (3,)), Scripted(["READ 5", "READ 3", "READ 2\nREAD 1", "DONE"]))
    first, second, third, last = (exchange.request.messages[-1].content for exchange in trace.exchanges)
    assert first == "TARGET A_5 unknown\nRESIDENT A_3\nREADS 0"
    value = task.step(5).input[0]
    assert second.split("\n")[2:] == [
        "READS 1",
        f"NODE A_5 input {value:04d} refs A_2 A_3 unknown",
        "RESULT A_5 is read",
    ]
    assert third.endswith("RESULT A_3 is resident; it was known already")
    assert last.startswith(f"TARGET A_5 = {task.step(5).answer[0]:04d}\n")
    assert "NODE A_1 input" in last
    assert "refs none known" in last


def test_stopping_early_is_no_success_and_reaching_the_limit_is_neither():
    task, lost = diamond(), LostAnswer(6, 5, ())
    _, _, stopped = probe(task, lost, Scripted(["READ 5", "DONE"]))
    assert (stopped.success, stopped.early_stop) == (False, True)
    _, trace, lost = probe(task, lost, Scripted([]))
    assert (lost.success, lost.early_stop, trace.ending, lost.order) == (False, False, "action-limit", ())


def test_nothing_that_is_said_breaks_a_probe():
    replies = ["READ 99", "READ 0", "ANSWER 5 1", "NEXT", "READ x", "\x00", "READ 5 READ 2", "DONE\nREAD 5"]
    _, trace, score = probe(diamond(), LostAnswer(6, 5, ()), Scripted(replies))
    assert (score.order, score.early_stop) == ((), True)
    assert trace.actions[-1].action == "DONE"


@settings(max_examples=80)
@given(graphs(12), st.data())
def test_the_recoverer_reads_exactly_the_cone_on_any_graph(graph, data):
    task = from_graph(TaskSpec("stepwise-max", seed=1), graph)
    target = data.draw(st.integers(1, len(graph)))
    resident = tuple(sorted(data.draw(st.sets(st.integers(1, len(graph)))) - {target}))
    session, _, score = probe(task, LostAnswer(len(graph), target, resident), agent("recoverer"))
    assert sorted(score.order) == list(cone_of(graph, target, resident).nodes)
    assert (score.success, score.overhead, score.off_cone) == (True, 1.0, 0)
    assert session.known[target] == task.step(target).answer


@settings(max_examples=40)
@given(graphs(9), st.data())
def test_success_is_that_the_harness_could_compute_the_target(graph, data):
    task = from_graph(TaskSpec("stepwise-sum", seed=1), graph)
    target = data.draw(st.integers(1, len(graph)))
    reads = data.draw(st.lists(st.integers(1, len(graph)), max_size=14))
    session, _, score = probe(
        task, LostAnswer(len(graph), target, ()), Scripted([*(f"READ {t}" for t in reads), "DONE"])
    )
    assert score.success == (target in session.known)
    assert len(score.order) == len(reads)


def test_the_naive_recoverer_walks_every_path_again():
    # Depth first from 6: 6 4 3 1 and 5 2, whose reference is known by now, and so is the target.
    _, _, score = probe(diamond(), LostAnswer(6, 6, ()), agent("naive-recoverer"))
    assert (score.order, score.redundant) == ((6, 4, 3, 1, 5, 2), 0)
    # 4 and 5 share 2: its whole path is walked again before 3 is reached.
    shared = from_graph(TaskSpec("stepwise-sum", seed=3), ((), (1,), (), (2,), (2, 3), (4, 5)))
    _, _, score = probe(shared, LostAnswer(6, 6, ()), agent("naive-recoverer"))
    assert (score.order, score.redundant) == ((6, 4, 2, 1, 5, 2, 1, 3), 2)


def test_naive_reads_exceed_the_cone_where_ancestors_are_shared():
    specs, model = [TaskSpec("stepwise-sum", m=8)], "reference/naive-recoverer"
    rows, _ = run_probes(ProbeExperiment(specs, range(4), [model], ModelOptions()))
    assert rows[0].redundant > 0
    assert rows[0].off_cone == 0
    assert rows[0].early_stops == 0


def test_the_manners_of_reference_agents_show_in_the_rows():
    names = [f"reference/{name}" for name in ("recoverer", "quitter", "calculator", "thrasher")]
    options = ModelOptions(extra={"p": 0.2})
    rows, probes = run_probes(ProbeExperiment([TaskSpec("stepwise-sum", m=8)], range(6), names, options))
    recoverer, quitter, calculator, thrasher = rows
    assert (recoverer.successful, recoverer.read_overhead) == (12, 1.0)
    assert quitter.early_stops > 0
    assert quitter.read_overhead in (1.0, None)
    assert (calculator.early_stops, calculator.read_overhead) == (12, None)
    assert thrasher.read_overhead == 3.0
    assert len(probes) == 4 * 12
    assert all(row.probes == row.successful + row.early_stops + row.at_limit for row in rows)


def test_reads_follow_the_cone_and_not_the_pressure():
    spec, reads = TaskSpec("stepwise-sum", m=8), {}
    for h in (2, 4, 8):
        _, probes = run_probes(
            ProbeExperiment([spec], range(4), ["reference/recoverer"], ModelOptions(), ProbeSetup(h=h))
        )
        reads |= {(h, found.seed, found.fan_in): (len(found.order), found.minimum) for found in probes}
    assert all(made == fewest for made, fewest in reads.values())


def test_a_moment_is_a_real_miss_of_the_simulated_policy():
    for seed in range(5):
        task = task_of("stepwise-sum", m=8, seed=seed)
        lost = find_lost_answer(task, "lru", 8, 32)
        assert lost is not None
        assert lost.target in simulate(task, "lru", 8).missing[lost.at - 1]
        assert lost.target not in lost.resident
        assert len(lost.resident) == 8
        assert max(lost.resident) < lost.at
    assert find_lost_answer(task, "fifo", 8) is None


def test_a_task_that_loses_nothing_has_no_probe():
    with pytest.raises(SpecError, match="lower --h"):
        run_probes(
            ProbeExperiment(
                [TaskSpec("stepwise-sum", m=4)], [0], ["reference/recoverer"], ModelOptions(), ProbeSetup("fifo", 4)
            )
        )


def test_the_limit_is_an_argument():
    task = diamond()
    session = ProbeSession(publish(task, prepare(task.spec)), 5, {}, limit=2)
    trace = asyncio.run(drive(session, Scripted(["READ 5\nREAD 2\nREAD 1"])))
    assert (trace.ending, len(trace.actions)) == ("action-limit", 2)
    assert graph_of(task) == DIAMOND


def test_the_command(capsys):
    line = ["lacuna", "probe", "--workload", "stepwise-sum", "--seeds", "0:2", "--model", "reference/recoverer"]
    assert eirkit(*line, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["probes"], row["read_overhead"], row["early_stops"]) for row in document["rows"]] == [(4, 1.0, 0)]
    assert {found["fan_in"] for found in document["probes"]} == {2, 4}
    assert eirkit(*line, "--fan-in", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["plan"]["fan_ins"] == [1]
    assert eirkit(*line) == 0
    assert "Recovery probes" in capsys.readouterr().out
