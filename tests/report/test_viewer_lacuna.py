"""Lacuna runs in the viewer: what it shows is what the records hold, and prompts are the very ones that were sent."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.causes import Verdict, spread_of
from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Request, prompt_hash
from eirkit.lacuna.tasks.workload import Units
from eirkit.records.database import FinishedRun, SweepDatabase, SweepWriter
from eirkit.records.documents import read_struct
from eirkit.records.events import Decision, ModelExchange, Verdicts
from eirkit.records.evidence import RescueResult
from eirkit.records.runs import Failure, RunRecord, RunUsage
from eirkit.records.settings import ConversationTask, RescueArm
from eirkit.records.sweeps import FailureGroup
from eirkit.report.colors import colored_item
from eirkit.report.document import drawn
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.page import page_of
from eirkit.report.runs.possible import possible_section
from eirkit.report.viewer import reported
from eirkit.report.viewer.documents import FolderProgress, LacunaRun, ShownExchange
from eirkit.report.viewer.folders import failure_groups, find_places, place_at, progress_of
from eirkit.report.viewer.heat import Layout, heat
from eirkit.report.viewer.lacuna_run import LacunaRun as RecordedRun
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.run_table import FolderRuns, setting_value
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


def records(folder: Path) -> list[RunRecord]:
    with SweepDatabase(folder) as database:
        return list(database.records())


def asked_of(run: RecordedRun) -> list[ModelExchange]:
    return [event for event in run.events if isinstance(event, ModelExchange)]


def messages_of(shown: ShownExchange) -> tuple[Message, ...]:
    return tuple(Message(message.role, str(message.text)) for message in shown.messages)


def viewer(root: Path, **more) -> Viewer:
    return Viewer(root, LogFolders(), lambda: LATER, **more)


@pytest.mark.parametrize("name", ["sweep", "managed", "rescue", "probe"])
def test_every_prompt_is_rebuilt_and_has_the_recorded_hash(root, name):
    found = records(root / name)
    assert found
    for record in found[:6]:
        run = RecordedRun(root / name, record, plugins=False)
        exchanges = run.replayed.exchanges
        recorded = asked_of(run)
        assert len(exchanges) == len(recorded) > 0
        for shown, event in zip(exchanges, recorded, strict=True):
            assert shown.exact
            assert prompt_hash(Request(messages_of(shown))) == event.prompt_sha256
            assert shown.reply == event.reply


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
        run = RecordedRun(remembered / panel, record, plugins=False)
        assert run.replayed.exchanges
        for shown, event in zip(run.replayed.exchanges, asked_of(run), strict=True):
            messages = messages_of(shown)
            assert prompt_hash(Request(messages)) == event.prompt_sha256
            # The other way: the text that was recorded, without the rules that every prompt repeats.
            assert "\n".join(m.content for m in messages if m.role != "system") == event.prompt
        assert all(shown.exact for shown in run.replayed.exchanges)
        assert run.replayed.reason == ""
        assert isinstance(record.setting.intervention, RescueArm)
        looks[record.setting.intervention.arm, record.seed] = [
            shown.messages[-1].text for shown in run.replayed.exchanges
        ]
    # Arms differ where the control arm lacked something, which is so of one of these tasks at least.
    assert max(len({tuple(looks[arm, seed]) for arm in ("control", "oracle", "sham")}) for seed in (0, 1)) == 3


def test_no_memory_system_is_needed_to_show_what_one_brought(remembered):
    record = records(remembered / "native")[0]
    access = replace(record.setting.access, memory="gone.py:Gone")
    record = replace(record, setting=replace(record.setting, access=access))
    run = RecordedRun(remembered / "native", record, plugins=False)
    assert run.replayed.exchanges
    assert all(exchange.exact for exchange in run.replayed.exchanges)


def test_a_run_under_a_memory_has_its_name(remembered):
    record = records(remembered / "native")[0]
    document = viewer(remembered).answer("/api/run", {"at": ["native"], "run": [record.run]})
    assert isinstance(document, LacunaRun)
    assert document.label == "control, broken-drops, reference/recoverer, h = 3"
    assert document.units == Units("task", "step", "step")


def test_a_conversation_has_its_preset_and_no_sizes_of_other_tasks(remembered):
    setting = records(remembered / "native")[0].setting
    talk = replace(setting, task=ConversationTask("conversation", "small", 24))
    assert [setting_value(talk, name) for name in ("workload", "preset")] == ["conversation", "small"]
    sizes = ("n", "m", "slots", "lookback", "fan_in", "digits", "k")
    assert [setting_value(talk, name) for name in sizes] == [None] * 7
    assert setting_value(setting, "m") == setting.task.m


def test_what_a_memory_brought_and_nobody_kept_is_said_in_one_line(tmp_path):
    how = ("--memory", "bm25", "--h", 3, "--m", 8, "--n", 12, "--seeds", "0:1", "--no-control", "--no-texts")
    out = tmp_path / "out"
    command(
        "lacuna", "run", "--workload", "stepwise-sum", "--model", "reference/recoverer", *how, "--out", out, "--json"
    )
    asked = {"at": ["."], "run": [records(out)[0].run]}
    steps = [viewer(out).step({**asked, "t": [str(t)]}) for t in (1, 12)]
    assert steps[0].exchanges[0].exact  # before the first prompt nothing was said
    assert not any(exchange.messages for exchange in steps[1].exchanges)
    assert "its memory, bm25, returned, which were not kept" in steps[1].inexact


def test_prompts_in_the_other_dialect_are_rebuilt_too(tmp_path):
    make_rescue(tmp_path / "compact", "--set", "dialect=compact")
    for record in records(tmp_path / "compact"):
        exchanges = RecordedRun(tmp_path / "compact", record, plugins=False).replayed.exchanges
        assert exchanges
        assert all(exchange.exact for exchange in exchanges)


def test_without_texts_controlled_prompts_are_rebuilt_from_what_was_submitted(tmp_path):
    make_sweep(tmp_path / "bare", "--no-texts", seeds="0:1")
    for record in records(tmp_path / "bare"):
        run = RecordedRun(tmp_path / "bare", record, plugins=False)
        assert run.replayed.exchanges
        assert all(exchange.exact and exchange.messages for exchange in run.replayed.exchanges)
        assert all(exchange.reply is None for exchange in run.replayed.exchanges)


def test_a_prompt_that_is_not_the_recorded_one_is_not_called_exact(root, tmp_path):
    record = records(root / "sweep")[0]
    record = replace(record, setting=replace(record.setting, access=replace(record.setting.access, h=1)))
    exchanges = RecordedRun(root / "sweep", record, plugins=False).replayed.exchanges
    assert exchanges[0].exact
    assert not exchanges[-1].exact
    assert exchanges[-1].messages[0].text
    assert "as they were recorded" in RecordedRun(root / "sweep", record, plugins=False).replayed.reason


def test_steps_say_what_the_records_say(root):
    for record in records(root / "sweep"):
        document = viewer(root).run({"at": ["sweep"], "run": [record.run]})
        assert isinstance(document, LacunaRun)
        with SweepDatabase(root / "sweep") as database:
            events = database.events(record.run)
        (wrong,) = [event.wrong for event in events if isinstance(event, Verdicts)]
        found = [(step.t, step.cause, step.why) for step in document.steps if step.cause]
        assert found == [(step.t, step.cause, step.kind) for step in wrong]
        decisions = {event.t: event for event in events if isinstance(event, Decision)}
        for step in document.steps:
            for name in ("required", "retained", "missing", "unavailable"):
                assert getattr(step, name) == getattr(decisions[step.t], name)
            assert step.refs == decisions[step.t].required
        assert record.score is not None
        assert document.score is not None
        assert document.score.correct == record.score.correct


def test_the_rows_of_the_table_are_what_the_records_say(root):
    """The table is read column by column and row by row; each record has the same figures."""
    for name in ("sweep", "managed", "rescue", "probe"):
        runs = FolderRuns(root / name)
        measures = ("accuracy", "informed_accuracy", "miss_rate", "first_miss", "first_error", "step_accuracy")
        rows = runs.cells(("run", "model", "seed", "h", *measures), range(runs.rows))
        found = records(root / name)
        assert [row["run"] for row in rows] == [record.run for record in found]
        for row, record in zip(rows, found, strict=True):
            told = [row[key] for key in ("model", "seed", "h")]
            assert told == [record.setting.model, record.seed, record.setting.access.h]
            assert [row[key] for key in measures] == [getattr(record.score, key, None) for key in measures]
        for key in measures:
            numbers = [None if number != number else number for number in runs.numbers(key).tolist()]
            assert numbers == [row[key] for row in rows]


def test_the_mean_of_an_outcome_counts_runs_without_it(remembered):
    """As in a summary: the share of needed records with an outcome, mean over all runs that needed any."""
    runs = FolderRuns(remembered / "native")
    needing = [record.memory.outcomes for record in records(remembered / "native") if record.memory]
    for outcome in {outcome for outcomes in needing for outcome in outcomes}:
        shares = [outcomes.get(outcome, 0) / sum(outcomes.values()) for outcomes in needing if outcomes]
        assert np.nanmean(runs.numbers(outcome)) == pytest.approx(sum(shares) / len(shares), abs=ROUNDING)


def test_the_heat_map_is_the_summary_where_a_place_is_a_cell(root):
    rows, table = read_summary(root / "sweep").rows, FolderRuns(root / "sweep").table
    for workload in ("stepwise-sum", "stepwise-max"):
        chosen = Query(equal=(("workload", (workload,)),))
        series = heat(table, chosen, Layout("h", ("model",), "accuracy")).chart.series[0]
        found = dict(zip(zip(series.x, series.y, strict=True), series.value, strict=True))
        wanted = {(str(row.h), row.model): row.accuracy for row in rows if row.workload == workload}
        assert found == pytest.approx(wanted, abs=ROUNDING)


def copied(source: Path, folder: Path, runs: int) -> None:
    """Write the first runs of a folder into another, whose writer has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_bytes((source / "manifest.json").read_bytes())
    with SweepDatabase(source) as database, SweepWriter(folder) as writer:
        known = writer.count()
        found = list(database.records())[known:runs]
        writer.add([FinishedRun(record, database.event_lines(record.run)) for record in found], durable=False)


def test_a_folder_that_grows_is_read_again_and_its_database_is_left_alone(root, tmp_path):
    opened = viewer(tmp_path)
    copied(root / "sweep", tmp_path / "sweep", 3)
    asked = {"at": ["sweep"]}
    for runs in (3, 4, 24):
        copied(root / "sweep", tmp_path / "sweep", runs)
        stamps = {opened.changes(asked).stamp for _ in range(2)}
        assert (opened.runs(asked).total, len(stamps)) == (runs, 1)
        # The writer could fold in its log, which a reader that stayed open would have kept it from.
        assert not (tmp_path / "sweep" / "sweep.db-wal").exists()
    assert opened.runs(asked) == viewer(root).runs(asked)


def test_runs_are_shown_while_their_writer_is_open(root, tmp_path):
    copied(root / "sweep", tmp_path / "sweep", 3)
    opened, asked = viewer(tmp_path), {"at": ["sweep"]}
    with SweepDatabase(root / "sweep") as database, SweepWriter(tmp_path / "sweep") as writer:
        for number, record in enumerate(list(database.records())[3:6], 4):
            writer.add([FinishedRun(record, database.event_lines(record.run))], durable=False)
            assert opened.runs(asked).total == number
            assert opened.run({**asked, "run": [record.run]})


def test_arms_stand_side_by_side(root):
    rows = viewer(root).runs({"at": ["rescue"]}).rows
    control = next(row for row in rows if row["arm"] == "control" and row["seed"] == 1)
    document = viewer(root).run({"at": ["rescue"], "run": [control["run"]]})
    assert isinstance(document, LacunaRun)
    arms = {sibling.label: sibling.run for sibling in document.siblings if sibling.different == ("arm",)}
    assert set(arms) == {"oracle", "sham"}
    oracle = viewer(root).run({"at": ["rescue"], "run": [arms["oracle"]]})
    assert isinstance(oracle, LacunaRun)
    assert oracle.score is not None
    assert document.score is not None
    assert oracle.score.accuracy == 1.0 > document.score.accuracy
    missing = [step.t for step in document.steps if step.missing]
    assert missing == [step.t for step in oracle.steps if step.restored]


def test_evidence_is_scored_as_its_own_summary_is(root):
    rows = viewer(root).runs({"at": ["rescue"]}).rows
    result = read_struct(root / "rescue" / "summary.json", "rescue/1", RescueResult)
    for arm, accuracy in {row.arm: row.trajectory_accuracy for row in result.rows}.items():
        own = [row["accuracy"] for row in rows if row["arm"] == arm]
        assert sum(own) / len(own) == pytest.approx(accuracy, abs=ROUNDING)


def test_a_step_has_its_cone_and_its_words(root):
    record = records(root / "sweep")[-1]
    asked = {"at": ["sweep"], "run": [record.run]}
    document = viewer(root).run(asked)
    assert isinstance(document, LacunaRun)
    short = next(step for step in document.steps if step.missing)
    more = viewer(root).step({**asked, "t": [str(short.t)]})
    assert more.cone is not None
    assert more.cone.targets == short.missing
    assert set(more.cone.nodes).isdisjoint(short.retained or ())
    assert more.exchanges[0].t == short.t


def test_a_probe_shows_all_that_was_said_at_its_step(root):
    record = records(root / "probe")[0]
    assert record.lost is not None
    asked = {"at": ["probe"], "run": [record.run], "t": [str(record.lost.at)]}
    more = viewer(root).step(asked)
    assert len(more.exchanges) == record.usage.calls
    assert more.cone is not None
    assert more.cone.targets == (record.lost.target,)
    assert viewer(root).pressure(asked).unknown


def test_pressure_is_what_the_library_counts(root):
    record = records(root / "sweep")[0]
    curve = viewer(root).pressure({"at": ["sweep"], "run": [record.run]}).curve
    assert curve is not None
    # Stepwise Sum, m = 8: after step t ≥ 8, with more than eight steps left, eight records of 10^4 values must survive.
    assert curve.needed_bits[8] == pytest.approx(curve.record_bits * 8, abs=ROUNDING)
    assert curve.capacity_bits == pytest.approx(curve.record_bits * record.setting.access.h, abs=ROUNDING)
    assert curve.needed_bits[-1] == 0
    assert len(curve.pressure) == record.setting.task.n + 1


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
    asked = {"at": ["."], "run": [records(out)[0].run]}
    document = viewer(out).answer("/api/run", asked)
    assert isinstance(document, LacunaRun)
    assert "--plugins" in document.unknown
    assert [step.cause for step in document.steps if step.cause]  # the recorded verdicts are there
    assert viewer(out).step({**asked, "t": ["3"]}).exchanges[0].messages
    assert not (tmp_path / "ran").exists()
    trusted = viewer(out, plugins=True)
    document = trusted.answer("/api/run", asked)
    assert isinstance(document, LacunaRun)
    assert document.unknown == ""
    assert trusted.step({**asked, "t": ["3"]}).exchanges[0].exact
    assert (tmp_path / "ran").exists()


def test_a_run_or_a_step_that_is_not_there_is_one_line(root):
    with pytest.raises(InputFileError, match="no run named 'x'"):
        viewer(root).answer("/api/run", {"at": ["sweep"], "run": ["x"]})
    record = records(root / "sweep")[0]
    with pytest.raises(InputFileError, match="none numbered 99"):
        viewer(root).answer("/api/step", {"at": ["sweep"], "run": [record.run], "t": ["99"]})


def test_a_folder_says_how_far_it_is(root, tmp_path):
    copied(root / "sweep", tmp_path / "half", 3)
    cell = records(root / "sweep")[0].cell
    failure = Failure(
        run=f"{cell}-0", cell=cell, seed=0, workload="stepwise-sum", model="m", condition="controlled", kind="timeout",
        message="too late", steps=0, usage=RunUsage(),
    )  # fmt: skip
    with SweepWriter(tmp_path / "half") as writer:
        writer.fail(failure)  # which succeeded later
        writer.fail(replace(failure, run=f"{cell}-9", seed=9))
    place = place_at(tmp_path, "half")
    runs, now = FolderRuns(place.path), place.path.stat().st_mtime
    assert progress_of(place, runs, now) == FolderProgress(
        kind="sweep", state="running", runs=3, planned_runs=24, planned_cells=12, lost=1, spent_usd=0.0
    )
    group = FailureGroup("stepwise-sum", "m", "controlled", "timeout", "too late", 1, f"{cell}-9")
    assert failure_groups(runs.lost) == (group,)
    assert progress_of(place, runs, LATER).state == "waiting"
    done = progress_of(place_at(root, "sweep"), FolderRuns(root / "sweep"), LATER)
    assert done.state == "complete"


def test_places_are_found_below_and_in_order(root):
    assert [(place.key, place.kind) for place in find_places(root)] == [
        ("managed", "sweep"), ("probe", "evidence"), ("rescue", "evidence"), ("sweep", "sweep"),
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
        # Who uses a wrong answer and is wrong is either among these or named apart.
        assert set(found.besides) == {later for later in wrong if t in graph[later - 1]} - set(found.spoilt)
    for t in set(verdicts) - set(wrong):
        assert spread_of(graph, verdicts, t) == spread_of((), {}, 1)


def test_a_run_of_another_task_over_the_same_graph_is_no_sibling(tmp_path):
    grid = ("--workload", "stepwise-sum", "--model", "reference/calculator", "--m", 4, "--n", 8, "--h", "4,2")
    out = tmp_path / "out"
    command("lacuna", "run", *grid, "--digits", "2,3", "--seeds", "0:1", "--no-control", "--out", out, "--json")
    for record in records(out):
        document = viewer(out).answer("/api/run", {"at": ["."], "run": [record.run]})
        assert isinstance(document, LacunaRun)
        assert [sibling.different for sibling in document.siblings] == [("h",)]


def test_the_picture_of_what_was_possible_is_that_of_the_report(root):
    asked = {"at": ["sweep"]}
    shown = viewer(root).possible(asked)
    section = possible_section(read_sweep(root / "sweep"))
    assert section is not None
    assert shown.words == section.words
    assert shown.figures == (drawn(colored_item(section.items[0])),)
    assert [list(line) for line in shown.tables[0].lines] == section.items[1].lines()
    with pytest.raises(InputFileError, match="no sweep"):
        viewer(root).possible({"at": ["rescue"]})


def test_a_sweep_begins_with_the_answer_of_its_report(root):
    headline = page_of(read_sweep(root / "sweep")).headline
    answers = viewer(root).overview({"at": ["sweep"]}).answers
    assert answers == (f"{headline.number} {headline.caption}.", headline.sentences[0])
    assert viewer(root).overview({"at": ["rescue"]}).answers == ()


def test_a_sweep_too_large_for_a_request_is_left_to_the_report(root, monkeypatch):
    monkeypatch.setattr(reported, "MOST_RUNS", 1)
    shown = viewer(root).possible({"at": ["sweep"]})
    assert shown.figures == ()
    assert "eirkit report" in shown.words[0]
