"""One run to rows, a corpus to a summary: figures by hand, other units, runs that cannot be measured."""

import pickle
from dataclasses import replace

import pytest

from eirkit.errors import InputFileError
from eirkit.records.analysis import TABLES, OutcomeCounts, RunRow, SkippedInput
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, analyze, measure
from eirkit.vestige.corpus.pipeline import analyze_corpus
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.tables import column_names, read_rows
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, RecordedTurn, Recording, Touches
from tests.vestige.reference import Turns
from tests.vestige.runs import BY_HAND, of_turns, trajectory, turn

OPTIONS = AnalysisOptions(read_windows())
COUNT = estimating_counter()


def recording(turns: Turns, **fields: object) -> Recording:
    made = tuple(
        RecordedTurn(
            touches=Touches(
                tuple(FileRead(p, tokens=n) for p, n in reads), tuple(FileWrite(p, tokens=n) for p, n in writes)
            ),
            tokens=100,
        )
        for reads, writes in turns
    )
    return Recording(**{"run_id": "r1", "task_id": "t1", "format": "plain", "source": "x", "turns": made, **fields})


def by_hand(**options: object):
    run = trajectory(BY_HAND, goal_files=("g.py",))
    return analyze(run, None, AnalysisOptions(read_windows(), **options), COUNT)


def test_the_run_worked_by_hand():
    found = by_hand()
    run = found.run
    assert (run.peak_demand_tokens, run.peak_cut, run.goal_source, run.goal_accessed) == (350, 4, "log", True)
    assert (run.peak_seen_tokens, run.peak_environment_tokens) == (350, 350)
    assert (run.turns, run.reads, run.writes, run.read_tokens) == (7, 5, 2, 100 + 50 + 200 + 30 + 210)
    assert (run.dead_reads, run.dead_read_tokens) == (1, 30)  # c.py
    assert (run.necessary_actions, run.actions) == (4 + 1, 5 + 2)  # reads and write actions
    # With every use counted, c.py too was needed: by the write of d.py.
    assert found.tables["cuts"]["later_used"] == [0, 100, 150, 350, 210, 240, 210]


def test_states_files_and_actions_of_the_run_worked_by_hand():
    tables = by_hand().columns()
    states = tables["states"]
    g = [i for i, path in enumerate(states["path"]) if path == "g.py"]
    assert [[states[name][i] for i in g] for name in ("version", "made_at", "first_seen", "last_used", "tokens")] == [
        [0, 1], [0, 4], [3, 4], [4, 7], [200, 210],
    ]  # fmt: skip
    files = tables["files"]
    at = files["path"].index("g.py")
    assert [files[name][at] for name in ("goal", "live_from", "live_until", "live_cuts", "reuses")] == [
        True,
        4,
        7,
        4,
        0,
    ]
    actions = tables["actions"]
    dead = [i for i, necessary in enumerate(actions["necessary"]) if not necessary]
    assert [(actions["turn"][i], actions["kind"][i], actions["path"][i]) for i in dead] == [
        (5, "read", "c.py"),
        (6, "write", "d.py"),
    ]


def test_visibility_is_a_choice_and_both_are_reported():
    run = by_hand(visibility="environment").run
    assert (run.peak_demand_tokens, run.peak_cut, run.peak_seen_tokens) == (350, 1, 350)


def test_every_table_has_the_columns_that_its_rows_declare():
    tables = by_hand().columns()
    assert set(tables) | {"entities"} == set(TABLES)
    for name, columns in tables.items():
        assert set(columns) == set(column_names(TABLES[name]))
        assert len({len(values) for values in columns.values()}) == 1


def test_an_analysis_travels_between_processes():
    found = by_hand()
    assert pickle.loads(pickle.dumps(found)) == found
    assert pickle.loads(pickle.dumps(OPTIONS)) == OPTIONS


def test_shown_again_is_what_was_seen_of_the_same_version():
    run = of_turns(
        [
            turn(1, [FileRead("a", content="1 x\n2 y", lines={1: "x" * 8, 2: "y" * 8})]),
            turn(
                2, [FileRead("a", content="2 y\n3 z", lines={2: "y" * 8, 3: "z" * 8}), FileRead("b", content="b" * 40)]
            ),
            turn(3, [FileRead("b", content="b" * 40), FileRead("b", content="c" * 40)], [FileWrite("a")]),
            turn(4, [FileRead("a", content="2 y\n3 z", lines={2: "y" * 8, 3: "z" * 8})]),
        ]
    )
    found = analyze(run, None, OPTIONS, COUNT)
    # Of the second view of a, 2 tokens, one line of two; all of b's second reading, 10 tokens; a's new version is new.
    assert dict(zip(found.columns()["files"]["path"], found.columns()["files"]["repeat_tokens"], strict=True)) == {
        "a": 1,
        "b": 10,
    }


def repeats(*turns) -> list[int]:
    return [one or 0 for one in analyze(of_turns(list(turns)), None, OPTIONS, COUNT).tables["actions"]["repeat_tokens"]]


def test_lines_with_another_text_are_not_shown_again():
    # Another branch was checked out between the views: the same numbers, other lines.
    before = FileRead("a", content="x" * 8 + "\n" + "y" * 8, lines={1: "x" * 8, 2: "y" * 8})
    after = FileRead("a", content="n" * 8 + "\n" + "y" * 8, lines={1: "n" * 8, 2: "y" * 8})
    assert repeats(turn(1, [before]), turn(2, [after]), turn(3, [after])) == [0, 2, 5]


def test_files_printed_together_are_not_known_to_be_shown_again():
    part = FileRead("a", tokens=10, undivided=True)
    assert repeats(turn(1, [part]), turn(2, [part])) == [0, 0]


def test_what_a_turn_shows_of_a_file_that_it_wrote_is_the_new_version():
    seen = FileRead("a", content="x" * 8, lines={1: "x" * 8})
    changed = turn(2, [FileRead("a", content="x" * 8, lines={1: "x" * 8}, rewritten=True)], [FileWrite("a")])
    assert repeats(turn(1, [seen]), changed, turn(3, [seen])) == [0, 0, 0, 2]
    text = FileRead("a", content="x" * 8)
    changed = turn(2, [FileRead("a", content="x" * 8, rewritten=True)], [FileWrite("a")])
    assert repeats(turn(1, [text]), changed, turn(3, [text])) == [0, 0, 0, 2]


def test_a_break_says_what_was_still_needed():
    broken = RecordedTurn(broken="compaction", carried="")
    read, write = FileRead("a", content="a" * 399 + "\n"), FileWrite("g", content="g" * 40)
    turns = [turn(1, [read]), turn(2), turn(3, [], [write])]
    turns[1] = type(turns[1])(2, (), (), 10, broken)
    found = analyze(of_turns(turns), None, OPTIONS, COUNT)
    assert (found.columns()["breaks"]["cut"], found.columns()["breaks"]["live_tokens"]) == ([2], [100])
    assert found.tables["dropped"]["path"] == ["a"]


def test_entities_are_counted_apart():
    calls = [
        RecordedTurn(calls=(Call("get_order_details", {"order_id": f"#W{n}"}, "{}"),))
        for n in (1000001, 1000002, 1000001)
    ]
    found = measure(Recording("r", "t", "tau-bench", "x", tuple(calls), domain="entities"), None, OPTIONS, COUNT)
    assert (found.run.unit, found.run.later_used_peak, found.run.later_used_peak_cut) == ("entities", 1, 2)
    assert (found.run.peak_demand_tokens, found.run.goal_source, found.run.read_tokens) == (None, None, None)
    assert set(found.tables["cuts"]["demand_tokens"]) == {None}


def corpus(tmp_path, items, **more):
    return analyze_corpus(items, tmp_path / "out", OPTIONS, COUNT, **more)


def test_a_summary_counts_runs_without_coverage_as_0_and_says_so(tmp_path):
    covered = recording(BY_HAND, goal_files=("g.py",), resolved=True)
    blind = recording(BY_HAND, run_id="r2", goal_files=("never.py",), resolved=False)
    found = corpus(tmp_path, [covered, Skipped("torn:2", "why"), blind])
    assert (found.runs, found.goal_access, found.covered_runs) == (2, 0.5, 1)
    assert (found.mean_peak_tokens, found.mean_peak_covered_tokens) == (175, 350)
    assert (found.dead_read_tokens, found.dead_read_covered_tokens) == (30 + 590, 30)
    assert found.dead_read_share == 30 / 590  # what a run without coverage read was not shown to be in vain
    assert found.skipped == (SkippedInput("torn:2", "why"),)
    assert found.outcomes == OutcomeCounts(1, 1, 0)
    assert [row.peak_cut for row in read_rows(tmp_path / "out", RunRow)] == [4, None]


def test_quantiles_leave_out_the_shortest_runs(tmp_path):
    short = [([("a", 9)], []), ([("a", 9)], [])]
    runs = [recording([*short, ([("a", n)], [])], run_id=f"r{n}") for n in (10, 20, 40)]
    found = corpus(tmp_path, [recording(short, run_id="r0"), *runs])
    assert found.later_used["tokens"].runs == 3
    assert found.later_used["tokens"].peak_p50 == 20
    assert found.later_used["tokens"].peak_p90 == pytest.approx(20 + 20 * 0.8)


def test_short_conversations_over_entities_are_not_left_out(tmp_path):
    # The rule of three tool turns is one for runs of a shell. Of n orders named and named again, n are held between.
    def conversation(orders):
        named = [f"#W{1000000 + n}" for n in range(orders)]
        turns = [RecordedTurn(calls=tuple(Call("get_order_details", {"order_id": one}, "{}") for one in named))] * 2
        return Recording(f"r{orders}", "t", "tau-bench", "x", tuple(turns), domain="entities")

    found = corpus(tmp_path, [conversation(orders) for orders in (1, 2, 5)])
    assert {row.tool_turns for row in read_rows(tmp_path / "out", RunRow)} == {2}
    assert (found.later_used["entities"].runs, found.later_used["entities"].peak_p50) == (3, 2)


def test_the_largest_runs_are_ranked_inside_their_unit(tmp_path):
    # Twelve runs of hundreds of tokens do not push one that held a single order off the list.
    files = [recording([([("a", n)], [])] * 3, run_id=f"r{n}") for n in range(100, 1300, 100)]
    calls = [RecordedTurn(calls=(Call("get_order_details", {"order_id": "#W1000001"}, "{}"),))] * 2
    found = corpus(tmp_path, [Recording("e", "t", "tau-bench", "x", tuple(calls), domain="entities"), *files])
    assert [(row.run_id, row.unit) for row in found.largest] == [
        *((f"r{n}", "tokens") for n in range(1200, 200, -100)),
        ("e", "entities"),
    ]


def test_strict_refuses_what_is_skipped(tmp_path):
    with pytest.raises(InputFileError, match="torn:2: why, or leave out --strict"):
        corpus(tmp_path, [recording(BY_HAND), Skipped("torn:2", "why")], strict=True)
    assert not (tmp_path / "out").exists()


def test_nothing_to_read_is_an_error(tmp_path):
    with pytest.raises(InputFileError, match="no runs found; give files"):
        corpus(tmp_path, [])
    with pytest.raises(InputFileError, match="no run could be read: 1 skipped, the first one is x: why"):
        corpus(tmp_path, [Skipped("x", "why")])


def test_a_run_that_cannot_be_measured_costs_itself(tmp_path):
    vast = recording([([("a", 1 << 60)], [])], run_id="vast", source="vast:1")
    odd = replace(recording([], run_id="odd", source="odd:1"), turns=(None,))
    found = corpus(tmp_path, [vast, odd, recording(BY_HAND)])
    assert found.runs == 1
    assert [one.source for one in found.skipped] == ["vast:1", "odd:1"]
    assert "correct the counts" in found.skipped[0].reason
    assert "could not be measured" in found.skipped[1].reason


def test_an_analysis_beside_its_logs_is_no_log(tmp_path):
    log = '{"run_id": "r", "turns": [{"reads": [{"path": "a", "tokens": 1}]}]}'
    (tmp_path / "one.jsonl").write_text(log)
    for _ in range(2):
        found = analyze_corpus(read_corpus([tmp_path]), tmp_path / "out", OPTIONS, COUNT, strict=True)
        assert (found.runs, found.skipped) == (1, ())


def test_equal_corpora_give_equal_folders(tmp_path):
    items = [recording(BY_HAND, run_id=f"r{n}", goal_files=("g.py",)) for n in range(5)]
    for name in ("a", "b"):
        analyze_corpus(items, tmp_path / name, OPTIONS, COUNT)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(names) == len(TABLES) + 1
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
