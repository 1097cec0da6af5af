"""Graph, slice and demand: the case worked by hand, agreement with the slow reference, and each rule alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.vestige.demand.costs import observe
from eirkit.vestige.demand.graph import build, slice_to
from eirkit.vestige.demand.live_states import Demand, demand, live_at
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import FileRead, FileWrite
from tests.vestige import reference
from tests.vestige.runs import BY_HAND, of_turns, trajectory, turn

PATHS = ["a", "b", "c", "d"]
accesses = st.lists(st.tuples(st.sampled_from(PATHS), st.integers(0, 50)), max_size=3)
traces = st.lists(st.tuples(accesses, accesses | st.just([])), max_size=9)


def graph_of(turns):
    accesses = (([p for p, _ in reads], [p for p, _ in writes]) for reads, writes in turns)
    return build(accesses, (["edit"] * len(writes) for _, writes in turns))


def measured(turns, goal, visibility="seen", *, edit_aware=False) -> Demand:
    graph = graph_of(turns)
    costs = observe(graph, trajectory(turns).turns, estimating_counter()).costs
    return demand(graph, slice_to(graph, goal, edit_aware=edit_aware), costs, visibility)


def test_the_case_worked_by_hand():
    found = measured(BY_HAND, {"g.py"})
    # c.py led to d.py, which nothing read again; from turn 4 on only the new g.py is needed, by turn 7.
    assert found.costs == [0, 100, 100 + 50, 100 + 50 + 200, 210, 210, 210]
    assert found.live == [0, 1, 2, 3, 1, 1, 1]
    assert (found.peak, found.peak_cut) == (350, 4)


def test_the_environment_holds_what_the_agent_has_not_seen_yet():
    found = measured(BY_HAND, {"g.py"}, "environment")
    assert found.costs == [350, 350, 350, 350, 210, 210, 210]
    assert (found.peak, found.peak_cut) == (350, 1)


@settings(max_examples=500)
@given(traces, st.sets(st.sampled_from(PATHS), max_size=2), st.sampled_from(["seen", "environment"]), st.booleans())
def test_random_traces_agree_with_the_reference(turns, goal, visibility, edit_aware):
    found = measured(turns, goal, visibility, edit_aware=edit_aware)
    assert found.costs == reference.demand_by_cut(turns, goal, visibility, edit_aware)
    assert found.peak == max(found.costs, default=0)


@given(traces, st.sets(st.sampled_from(PATHS), max_size=2), st.booleans())
def test_the_slice_agrees_with_the_reference(turns, goal, edit_aware):
    graph = graph_of(turns)
    found = slice_to(graph, goal, edit_aware=edit_aware)
    pairs = reference.sliced(turns, goal, edit_aware)
    for state, last in enumerate(found.last_used):
        named = graph.paths[state], graph.versions[state]
        assert last == max((action[1] for s, action in pairs if s == named), default=0)
    actions = {("write", place + 1, "") for place, needed in enumerate(found.needed_writes) if needed}
    for place, needed in enumerate(found.needed_reads):
        read = zip(graph.reads[place], needed, strict=True)
        actions |= {("read", place + 1, graph.paths[state]) for state, kept in read if kept}
    assert actions == reference.actions_in_slice(turns, goal, edit_aware)


@given(traces)
def test_no_goal_means_no_demand_and_all_goals_mean_every_use(turns):
    assert set(measured(turns, set()).costs) <= {0}
    graph = graph_of(turns)
    assert slice_to(graph, None).last_used == slice_to(graph, set(PATHS)).last_used


@given(traces, st.sets(st.sampled_from(PATHS), max_size=2))
def test_live_states_are_one_version_a_file_and_add_up(turns, goal):
    graph = graph_of(turns)
    needed = slice_to(graph, goal)
    costs = observe(graph, trajectory(turns).turns, estimating_counter()).costs
    for visibility in ("seen", "environment"):
        found = demand(graph, needed, costs, visibility)
        for cut in range(1, len(turns) + 1):
            live = live_at(graph, needed, cut, visibility)
            assert len({graph.paths[state] for state in live}) == len(live) == found.live[cut - 1]
            assert sum(costs[state] for state in live) == found.costs[cut - 1]


def test_reads_come_before_writes_inside_a_turn():
    graph = build([(["a"], ["a"])])
    assert (graph.versions, graph.reads, graph.writes) == ([0, 1], [[0]], [[1]])


def test_all_writes_of_a_turn_are_one_action():
    # b is no goal, but it was written together with g, so what both depended on leads to g.
    graph = build([(["a"], []), ([], ["b", "g"]), (["b"], [])])
    assert slice_to(graph, {"g"}).last_used[graph.paths.index("a")] == 2


def test_reads_of_one_turn_are_actions_of_their_own():
    graph = build([(["a", "g"], [])])
    found = slice_to(graph, {"g"})
    assert found.needed_reads == [[False, True]]
    assert found.sinks == 1


def test_an_edit_alone_does_not_consume_what_it_edits():
    graph = build([([], ["g"]), ([], ["g"])])
    assert slice_to(graph, {"g"}).last_used == [0, 0]


def test_a_read_is_carried_by_the_next_write_only():
    graph = build([(["a"], []), ([], ["x"]), ([], ["g"])])
    assert slice_to(graph, {"g"}).last_used[0] == 0


def test_a_chain_of_files_is_followed_back():
    graph = build([(["a"], ["b"]), (["b"], ["c"]), (["c"], ["g"])])
    assert slice_to(graph, {"g"}).last_used == [1, 2, 3, 0]


COST_CASES = [
    ("the largest of several reads", [turn(1, [FileRead("a", content="x" * 40),
                                              FileRead("a", content="x" * 80)])], [20]),
    ("the union of numbered lines", [turn(1, [FileRead("a", lines={1: "a" * 8, 2: "b" * 8})]),
                                     turn(2, [FileRead("a", lines={2: "b" * 8, 3: "c" * 7})])], [28 // 4]),
    ("a given figure over a counted one", [turn(1, [FileRead("a", tokens=7, content="x" * 400)])], [7]),
    ("a whole new file", [turn(1, [], [FileWrite("a", kind="whole", content="x" * 40)])], [10]),
    ("an edit never read again", [turn(1, [FileRead("a", content="x" * 400)]),
                                  turn(2, [], [FileWrite("a", removed="x" * 40, added="x" * 80)])], [100, 110]),
    ("an edit that was read again", [turn(1, [FileRead("a", content="x" * 400)]),
                                     turn(2, [], [FileWrite("a", removed="x" * 40, added="x" * 80)]),
                                     turn(3, [FileRead("a", content="x" * 20)])], [100, 5]),
    ("two edits of one turn", [turn(1, [FileRead("a", content="x" * 400)]),
                               turn(2, [], [FileWrite("a", added="x" * 40),
                                            FileWrite("a", added="x" * 40)])], [100, 120]),
    ("an edit of a text written in the same turn", [turn(1, [], [FileWrite("a", kind="whole", content="x" * 40),
                                                                 FileWrite("a", removed="x" * 20, added="")])], [5]),
    ("an edit of something never seen", [turn(1, [], [FileWrite("a", removed="x" * 40, added="x" * 4)])], [0]),
    ("an edit whose text is unknown", [turn(1, [FileRead("a", content="x" * 40)]),
                                       turn(2, [], [FileWrite("a")])], [10, 10]),
    ("a file that was removed", [turn(1, [FileRead("a", content="x" * 40)]),
                                 turn(2, [], [FileWrite("a", kind="delete")])], [10, 0]),
    ("a read that shows nothing", [turn(1, [FileRead("a")])], [0]),
    ("an edit after numbered lines", [turn(1, [FileRead("a", lines={1: "x" * 40})]),
                                      turn(2, [], [FileWrite("a", added="x" * 4)])], [10, 11]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "turns", "costs"), COST_CASES, ids=[case[0] for case in COST_CASES])
def test_a_state_costs_its_largest_observed_content(name, turns, costs):
    graph = build(([r.path for r in one.reads], [w.path for w in one.writes]) for one in turns)
    assert observe(graph, of_turns(turns).turns, estimating_counter()).costs == costs
