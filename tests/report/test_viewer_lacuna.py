"""Lacuna runs in the viewer: what it shows is what the records hold, and prompts are the very ones that were sent."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.causes import Verdict, spread_of
from eirkit.lacuna.models.model import Message, Request, prompt_hash
from eirkit.lacuna.runs import store
from eirkit.lacuna.runs.store import RUNS, read_events, scan_runs
from eirkit.records.lines import read_document
from eirkit.report.colours import coloured_item
from eirkit.report.document import drawn_json
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.possible import possible_section
from eirkit.report.viewer import reported, run_index
from eirkit.report.viewer.folders import cell_rows, find_places, place_at, progress_of
from eirkit.report.viewer.heat import Layout, heat
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.prompts import SpokenRun
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.run_index import RunIndex, row_of
from eirkit.report.viewer.tables import Query
from tests.report.folders import command, make_managed, make_probe, make_remembered, make_rescue, make_sweep

LATER = 4_000_000_000.0  # seconds; long after anything was written
ROUNDING = 1e-9  # of means over a few runs, summed in another order


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lacuna")
    make_sweep(folder / "sweep")
    make_managed(folder / "managed")
    make_rescue(folder / "rescue")
    make_probe(folder / "probe")
    return folder


def records(folder: Path) -> list[dict]:
    return [record for record, _ in scan_runs(folder / RUNS)]


def viewer(root: Path, **more) -> Viewer:
    return Viewer(root, LogFolders(), lambda: LATER, **more)


@pytest.mark.parametrize("name", ["sweep", "managed", "rescue", "probe"])
def test_every_prompt_is_rebuilt_and_has_the_recorded_hash(root, name):
    found = records(root / name)
    assert found
    for record in found[:6]:
        run = SpokenRun(root / name, record, plugins=False)
        exchanges = run.exchanges
        recorded = [event for event in run.events if event["type"] == "exchange"]
        assert len(exchanges) == len(recorded) > 0
        for shown, event in zip(exchanges, recorded, strict=True):
            assert shown["exact"]
            messages = tuple(Message(message["role"], message["text"]) for message in shown["messages"])
            assert prompt_hash(Request(messages)) == event["prompt_sha256"]
            assert shown["reply"] == event["reply"]


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return rescues under a memory: beside the last records, and in their place with a limit of actions."""
    folder = tmp_path_factory.mktemp("remembered")
    make_remembered(folder / "native", "broken-drops")
    make_remembered(folder / "strict", "bm25", "--panel", "strict", "--actions", 60)
    return folder


@pytest.mark.parametrize("panel", ["native", "strict"])
def test_a_rescue_is_rebuilt_with_what_its_memory_brought(remembered, panel):
    looks = {}
    for record in records(remembered / panel):
        run = SpokenRun(remembered / panel, record, plugins=False)
        recorded = [event for event in run.events if event["type"] == "exchange"]
        assert recorded
        for shown, event in zip(run.exchanges, recorded, strict=True):
            messages = tuple(Message(message["role"], message["text"]) for message in shown["messages"])
            assert prompt_hash(Request(messages)) == event["prompt_sha256"]
            # The other way: the text that was recorded, without the rules that every prompt repeats.
            assert "\n".join(m.content for m in messages if m.role != "system") == event["prompt"]
        assert all(shown["exact"] for shown in run.exchanges)
        assert run.replayed.reason == ""
        looks[record["intervention"]["arm"], record["seed"]] = [
            shown["messages"][-1]["text"] for shown in run.exchanges
        ]
    # Arms differ where the control arm lacked something, which is so of one of these tasks at least.
    assert max(len({tuple(looks[arm, seed]) for arm in ("control", "oracle", "sham")}) for seed in (0, 1)) == 3


def test_no_memory_system_is_needed_to_show_what_one_brought(remembered):
    record = records(remembered / "native")[0]
    record = {**record, "access": {**record["access"], "memory": "gone.py:Gone"}}
    run = SpokenRun(remembered / "native", record, plugins=False)
    assert run.exchanges
    assert all(exchange["exact"] for exchange in run.exchanges)


def test_a_run_under_a_memory_has_its_name(remembered):
    record = records(remembered / "native")[0]
    document = viewer(remembered).answer("/api/run", {"at": ["native"], "run": [record["run"]]})
    assert document["words"] == "control, broken-drops, reference/recoverer, h = 3"
    assert document["units"] == {"task": "task", "step": "step", "outcome": "step"}


def test_a_run_in_words_has_its_preset_and_no_sizes_of_other_tasks(remembered):
    record = records(remembered / "native")[0]
    task = {**record["task"], "workload": "words", "preset": "small"}
    row = row_of({**record, "task": task, "words": {"fates": {}}}, None)
    assert (row["workload"], row["preset"]) == ("words", "small")
    assert [row.get(name) for name in ("n", "m", "slots", "lookback", "fan_in", "digits", "k")] == [None] * 7
    assert row_of(record, None)["m"] == record["task"]["m"]


def test_what_a_memory_brought_and_nobody_kept_is_said_in_one_line(tmp_path):
    how = ("--memory", "bm25", "--h", 3, "--m", 8, "--n", 12, "--seeds", "0:1", "--no-control", "--no-texts")
    out = tmp_path / "out"
    command(
        "lacuna", "run", "--workload", "stepwise-sum", "--model", "reference/recoverer", *how, "--out", out, "--json"
    )
    asked = {"at": ["."], "run": [records(out)[0]["run"]]}
    steps = [viewer(out).answer("/api/step", {**asked, "t": [str(t)]}) for t in (1, 12)]
    assert steps[0]["exchanges"][0]["exact"]  # before the first prompt nothing was said
    assert not any(one["messages"] for one in steps[1]["exchanges"])
    assert "its memory, bm25, returned, which were not kept" in steps[1]["inexact"]


def test_prompts_in_the_other_dialect_are_rebuilt_too(tmp_path):
    make_rescue(tmp_path / "compact", "--dialect", "compact")
    for record in records(tmp_path / "compact"):
        exchanges = SpokenRun(tmp_path / "compact", record, plugins=False).exchanges
        assert exchanges
        assert all(exchange["exact"] for exchange in exchanges)


def test_without_texts_controlled_prompts_are_rebuilt_from_what_was_submitted(tmp_path):
    make_sweep(tmp_path / "bare", "--no-texts", seeds="0:1")
    for record in records(tmp_path / "bare"):
        run = SpokenRun(tmp_path / "bare", record, plugins=False)
        assert run.exchanges
        assert all(exchange["exact"] and exchange["messages"] for exchange in run.exchanges)
        assert all(exchange["reply"] is None for exchange in run.exchanges)


def test_a_prompt_that_is_not_the_recorded_one_is_not_called_exact(root, tmp_path):
    record = dict(records(root / "sweep")[0])
    record["access"] = {**record["access"], "h": 1}
    exchanges = SpokenRun(root / "sweep", record, plugins=False).exchanges
    assert exchanges[0]["exact"]
    assert not exchanges[-1]["exact"]
    assert exchanges[-1]["messages"][0]["text"]
    assert "as they were recorded" in SpokenRun(root / "sweep", record, plugins=False).replayed.reason


def test_steps_say_what_the_records_say(root):
    for record in records(root / "sweep"):
        document = viewer(root).answer("/api/run", {"at": ["sweep"], "run": [record["run"]]})
        events = read_events(root / "sweep", record["events"])
        (verdicts,) = [event["wrong"] for event in events if event["type"] == "verdicts"]
        assert [[s["t"], s["cause"], s["why"]] for s in document["steps"] if s["cause"]] == verdicts
        decisions = {event["t"]: event for event in events if event["type"] == "decision"}
        for step in document["steps"]:
            for name in ("required", "retained", "missing", "unavailable"):
                assert list(step[name]) == decisions[step["t"]][name]
            assert step["refs"] == tuple(decisions[step["t"]]["required"])
        assert document["score"]["correct"] == record["score"]["correct"]


def test_the_table_and_the_cells_are_those_of_the_summary(root):
    index = RunIndex(root / "sweep")
    index.refresh()
    summary = {row["cell"]: row for row in read_document(root / "sweep" / "summary.json", "summary/1")["rows"]}
    rows = cell_rows(index)
    assert {row["cell"] for row in rows} == set(summary)
    for row in rows:
        for name in ("accuracy", "miss_rate", "errors", "scored", "step_accuracy"):
            assert row[name] == summary[row["cell"]][name]


def test_the_heat_map_is_the_summary_where_a_place_is_a_cell(root):
    index = RunIndex(root / "sweep")
    index.refresh()
    summary = read_document(root / "sweep" / "summary.json", "summary/1")["rows"]
    for workload in ("stepwise-sum", "stepwise-max"):
        chosen = Query(equal=(("workload", (workload,)),))
        series = heat(index.table(), chosen, Layout("h", ("model",), "accuracy"))["chart"]["series"][0]
        found = dict(zip(zip(series["x"], series["y"], strict=True), series["value"], strict=True))
        wanted = {(str(r["h"]), r["model"]): r["accuracy"] for r in summary if r["workload"] == workload}
        assert found == pytest.approx(wanted, abs=ROUNDING)


def test_an_index_that_grows_is_the_index_of_the_whole(root, tmp_path):
    whole = (root / "sweep" / RUNS).read_bytes()
    (tmp_path / RUNS).write_bytes(b"")
    index = RunIndex(tmp_path)
    for end in (0, 10, 2000, 2001, len(whole) // 2, len(whole) - 1, len(whole)):
        (tmp_path / RUNS).write_bytes(whole[:end])
        index.refresh()
        assert len(index) == whole[:end].count(b"\n")
    straight = RunIndex(root / "sweep")
    straight.refresh()
    assert index.complete
    assert index.table().page(Query(), 0, 500) == straight.table().page(Query(), 0, 500)
    (tmp_path / RUNS).write_bytes(whole[:2001])  # a dead writer's last runs were removed
    index.refresh()
    assert len(index) == whole[:2001].count(b"\n")


def test_a_line_longer_than_any_record_hides_no_other(root, tmp_path, monkeypatch):
    """It is passed over in pieces and counted; commands that need every record refuse it with its number."""
    lines = (root / "sweep" / RUNS).read_bytes().splitlines(keepends=True)
    longest = 2 * max(map(len, lines))
    monkeypatch.setattr(run_index, "LARGEST_LINE", longest)
    monkeypatch.setattr(store, "LARGEST_RECORD", longest)
    (tmp_path / RUNS).write_bytes(b"".join([*lines[:2], b"x" * 5 * longest + b"\n", *lines[2:]]))
    index = RunIndex(tmp_path)
    while not index.complete:
        index.refresh()
    assert (len(index), index.skipped) == (len(lines), 1)
    with pytest.raises(InputFileError, match=rf"{RUNS}:3: longer than {longest:,} bytes; restore the file"):
        records(tmp_path)


def test_reading_is_done_in_slices(root):
    index = RunIndex(root / "sweep")
    index.refresh(seconds=0)
    assert 0 < len(index) < len(records(root / "sweep"))
    assert 0 < index.read_share < 1
    while not index.complete:
        index.refresh(seconds=0)
    assert len(index) == len(records(root / "sweep"))


def test_arms_stand_side_by_side(root):
    rows = viewer(root).answer("/api/runs", {"at": ["rescue"]})["rows"]
    control = next(row for row in rows if row["arm"] == "control" and row["seed"] == 1)
    document = viewer(root).answer("/api/run", {"at": ["rescue"], "run": [control["run"]]})
    arms = {one["words"]: one["run"] for one in document["siblings"] if one["different"] == ["arm"]}
    assert set(arms) == {"oracle", "sham"}
    oracle = viewer(root).answer("/api/run", {"at": ["rescue"], "run": [arms["oracle"]]})
    assert oracle["score"]["accuracy"] == 1.0 > document["score"]["accuracy"]
    missing = [step["t"] for step in document["steps"] if step["missing"]]
    assert missing == [step["t"] for step in oracle["steps"] if step["restored"]]


def test_evidence_is_scored_as_its_own_summary_is(root):
    rows = viewer(root).answer("/api/runs", {"at": ["rescue"]})["rows"]
    told = {r["arm"]: r["trajectory_accuracy"] for r in read_document(root / "rescue/summary.json", "rescue/1")["rows"]}
    for arm, accuracy in told.items():
        own = [row["accuracy"] for row in rows if row["arm"] == arm]
        assert sum(own) / len(own) == pytest.approx(accuracy, abs=ROUNDING)


def test_a_step_has_its_cone_and_its_words(root):
    record = records(root / "sweep")[-1]
    asked = {"at": ["sweep"], "run": [record["run"]]}
    steps = viewer(root).answer("/api/run", asked)["steps"]
    short = next(step for step in steps if step["missing"])
    more = viewer(root).answer("/api/step", {**asked, "t": [str(short["t"])]})
    assert more["cone"]["targets"] == list(short["missing"])
    assert set(more["cone"]["nodes"]).isdisjoint(short["retained"])
    assert more["exchanges"][0]["t"] == short["t"]


def test_a_probe_shows_all_that_was_said_at_its_step(root):
    record = records(root / "probe")[0]
    asked = {"at": ["probe"], "run": [record["run"]], "t": [str(record["moment"]["at"])]}
    more = viewer(root).answer("/api/step", asked)
    assert len(more["exchanges"]) == record["usage"]["calls"]
    assert more["cone"]["targets"] == [record["moment"]["target"]]
    assert viewer(root).answer("/api/pressure", asked)["unknown"]


def test_pressure_is_what_the_library_counts(root):
    record = records(root / "sweep")[0]
    lines = viewer(root).answer("/api/pressure", {"at": ["sweep"], "run": [record["run"]]})
    # Stepwise Sum, m = 8: after step t ≥ 8, with more than eight steps left, eight records of 10^4 values must survive.
    assert lines["needed_bits"][8] == pytest.approx(lines["record_bits"] * 8, abs=ROUNDING)
    assert lines["capacity_bits"] == pytest.approx(lines["record_bits"] * record["access"]["h"], abs=ROUNDING)
    assert lines["needed_bits"][-1] == 0
    assert len(lines["pressure"]) == record["task"]["n"] + 1


PLUGIN = '''
from pathlib import Path
from eirkit.lacuna.tasks.policies import Fifo

Path(__file__).with_name("ran").touch()


class Mine(Fifo):
    """A policy of somebody's."""
'''


def test_code_beside_a_run_is_run_only_if_allowed(tmp_path):
    source = tmp_path / "mine.py"
    source.write_text(PLUGIN)
    one = ("--workload", "stepwise-sum", "--model", "reference/calculator", "--n", 12, "--m", 4, "--h", 2)
    out = tmp_path / "out"
    command(
        "lacuna", "run", *one, "--policy", f"{source}:Mine", "--seeds", "0:1", "--no-control", "--out", out, "--json"
    )
    (tmp_path / "ran").unlink()
    source.write_text(PLUGIN + "\n")  # as if it were new: what was imported stays imported
    asked = {"at": ["."], "run": [records(out)[0]["run"]]}
    document = viewer(out).answer("/api/run", asked)
    assert "--plugins" in document["unknown"]
    assert [step["cause"] for step in document["steps"] if step.get("cause")]  # the recorded verdicts are there
    assert viewer(out).answer("/api/step", {**asked, "t": ["3"]})["exchanges"][0]["messages"]
    assert not (tmp_path / "ran").exists()
    assert viewer(out, plugins=True).answer("/api/run", asked)["unknown"] == ""
    assert viewer(out, plugins=True).answer("/api/step", {**asked, "t": ["3"]})["exchanges"][0]["exact"]
    assert (tmp_path / "ran").exists()


def test_a_run_or_a_step_that_is_not_there_is_one_line(root):
    with pytest.raises(InputFileError, match="no run named 'x'"):
        viewer(root).answer("/api/run", {"at": ["sweep"], "run": ["x"]})
    record = records(root / "sweep")[0]
    with pytest.raises(InputFileError, match="none numbered 99"):
        viewer(root).answer("/api/step", {"at": ["sweep"], "run": [record["run"]], "t": ["99"]})


def test_a_folder_says_how_far_it_is(root, tmp_path):
    make_sweep(tmp_path / "half", seeds="0:1")
    runs = (tmp_path / "half" / RUNS).read_bytes().splitlines(keepends=True)
    (tmp_path / "half" / RUNS).write_bytes(b"".join(runs[:3]))
    (tmp_path / "half" / "summary.json").unlink()
    lost = {"schema": "failure/1", "run": "x-0", "cell": "x", "kind": "timeout", "message": "too late", "model": "m"}
    (tmp_path / "half" / "failures.jsonl").write_text(json.dumps(lost) + "\n")
    place = place_at(tmp_path, "half")
    index = RunIndex(place.path)
    index.refresh()
    now = place.path.stat().st_mtime
    assert progress_of(place, index, now).as_json() == {
        "kind": "sweep", "state": "running", "runs": 3, "planned_runs": 12, "planned_cells": 12, "lost": 1,
        "spent_usd": 0.0, "read_share": 1.0, "skipped": 0,
    }  # fmt: skip
    assert progress_of(place, index, LATER).state == "waiting"
    done = RunIndex(root / "sweep")
    done.refresh()
    assert progress_of(place_at(root, "sweep"), done, LATER).state == "complete"


def test_places_are_found_below_and_in_order(root):
    assert [(place.key, place.kind) for place in find_places(root)] == [
        ("managed", "sweep"), ("managed/control", "evidence"), ("probe", "evidence"), ("rescue", "evidence"),
        ("sweep", "sweep"),
    ]  # fmt: skip


def verdict(t: int, cause: str | None) -> Verdict:
    return Verdict(t, True, True, False, True, cause is None, True, cause, None)  # type: ignore[arg-type]


def references(t: int) -> st.SearchStrategy[tuple[int, ...]]:
    earlier = st.sets(st.integers(1, t - 1), max_size=2) if t > 1 else st.just(set[int]())
    return earlier.map(lambda chosen: tuple(sorted(chosen)))


def drawn_runs(n: int) -> st.SearchStrategy[tuple[tuple[tuple[int, ...], ...], list[str | None]]]:
    causes = st.sampled_from([None, "cascade", "state_supply", "computation"])
    return st.tuples(st.tuples(*map(references, range(1, n + 1))), st.lists(causes, min_size=n, max_size=n))


@given(st.integers(1, 7).flatmap(drawn_runs))
def test_a_fault_spreads_along_every_chain_of_cascades_and_no_other(drawn):
    graph, causes = drawn
    verdicts = {t: verdict(t, cause) for t, cause in enumerate(causes, 1)}

    def chains(t: int) -> list[tuple[int, ...]]:
        """All ways back from a step through wrong answers, each to where it began."""
        before = [r for r in graph[t - 1] if causes[r - 1] is not None] if causes[t - 1] == "cascade" else []
        return [(*chain, t) for r in before for chain in chains(r)] or [(t,)]

    wrong = [t for t, cause in enumerate(causes, 1) if cause is not None]
    for t in wrong:
        found = spread_of(graph, verdicts, t)
        assert set(found.origins) == {chain[0] for chain in chains(t)}
        assert set(found.path) == {edge for chain in chains(t) for edge in pairwise(chain)}
        assert set(found.spoilt) == {
            later for later in wrong if later != t and any(t in chain for chain in chains(later))
        }
    for t in set(verdicts) - set(wrong):
        assert spread_of(graph, verdicts, t) == spread_of((), {}, 1)


def test_a_run_of_another_task_over_the_same_graph_is_no_sibling(tmp_path):
    grid = ("--workload", "stepwise-sum", "--model", "reference/calculator", "--m", 4, "--n", 8, "--h", "4,2")
    out = tmp_path / "out"
    command("lacuna", "run", *grid, "--digits", "2,3", "--seeds", "0:1", "--no-control", "--out", out, "--json")
    for record in records(out):
        document = viewer(out).answer("/api/run", {"at": ["."], "run": [record["run"]]})
        assert [one["different"] for one in document["siblings"]] == [["h"]]


def test_the_picture_of_what_was_possible_is_that_of_the_report(root):
    asked = {"at": ["sweep"]}
    shown = viewer(root).answer("/api/possible", asked)
    section = possible_section(read_sweep(root / "sweep"))
    assert section is not None
    assert shown["words"] == list(section.words)
    assert shown["figure"] == drawn_json(coloured_item(section.items[0]))
    assert {cell["cell"] for cell in shown["cells"]} == {row["cell"] for row in section.items[1].rows}
    with pytest.raises(InputFileError, match="no sweep"):
        viewer(root).answer("/api/possible", {"at": ["rescue"]})


def test_a_sweep_too_large_for_a_request_is_left_to_the_report(root, monkeypatch):
    monkeypatch.setattr(reported, "MOST_RUNS", 1)
    shown = viewer(root).answer("/api/possible", {"at": ["sweep"]})
    assert shown["figure"] is None
    assert "eirkit report" in shown["words"][0]
