"""`bundled/lacuna-tiny` as a model: reached like any other, batched unnoticed, and clear about what it cannot do."""

import asyncio
import importlib.util
import shutil

import pytest
from msgspec.structs import replace

from eirkit.errors import InputFileError, MissingExtraError, UnknownNameError, UsageError
from eirkit.lacuna.agents.bundled import WEIGHTS, make_bundled
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.probe_session import ProbeSession
from eirkit.lacuna.agents.prompt import render, render_compact
from eirkit.lacuna.agents.protocol import Answer, read_answer
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.model import ModelOptions, NumberForm, Request
from eirkit.lacuna.runs.rescue import RescueSetup, rescue
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.tasks.generation import generate, generate_many, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Visible, publish
from eirkit.records.settings import Access
from tests.lacuna.running import drive_all, eirkit, full_information
from tests.runs import manifest

NAME = "bundled/lacuna-tiny"
SPEC = TaskSpec("stepwise-sum", n=20, m=8, seed=1)
WORKLOADS = ("stepwise-sum", "stepwise-max", "running-max", "store-recall", "full-lookup", "stepwise-topk")
KNOWN = ((3, (42,)), (5, (917,)))


def request(renderer=render_compact, records=KNOWN, workload="stepwise-sum") -> Request:
    spec = TaskSpec(workload, n=20, m=8)
    task = publish(generate(spec), prepare(spec))
    step = task.steps[5]
    visible = Visible(task, type(step)(6, "compute", (17,), (3, 5)), False, records)
    return Request(renderer(visible), form=NumberForm(6, 1, 10_000), visible=visible)


def ask(*requests: Request, name: str = NAME) -> list[str]:
    async def all_at_once() -> list[str]:
        model = make_model(name, ModelOptions())
        replies = await asyncio.gather(*map(model.reply, requests))
        await model.close()
        return [reply.text for reply in replies]

    return wait_for(all_at_once())


def test_it_shows_what_it_looked_up_and_then_answers():
    assert ask(request()) == ["0042 | 0917\nANSWER 6 0976"]
    assert ask(request(render)) == ask(request())


def test_what_it_puts_in_the_place_of_a_missing_value_can_be_seen():
    (text,) = ask(request(records=KNOWN[:1]))
    looked_up, answer = text.splitlines()
    first, second = looked_up.split(" | ")
    assert first == "0042"
    assert answer == f"ANSWER 6 {(42 + int(second) + 17) % 10_000:04d}"


def test_the_protocol_reads_its_replies():
    model = make_model(NAME, ModelOptions())
    assert read_answer(wait_for(model.reply(request())), NumberForm(6, 1, 10_000)) == Answer(6, (976,))


def test_many_at_once_get_what_each_would_get_alone():
    asked = [request(records=((3, (value,)), (5, (value * 7 % 10_000,)))) for value in range(0, 10_000, 999)]
    assert ask(*asked) == [ask(one)[0] for one in asked]


def test_whoever_stops_waiting_does_not_disturb_the_others():
    async def leave() -> str:
        model = make_model(NAME, ModelOptions())
        waiting = [asyncio.ensure_future(model.reply(request())) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        return (await waiting[0]).text + (await waiting[2]).text

    assert wait_for(leave()) == 2 * ask(request())[0]


def test_full_information_is_no_trouble():
    tasks = [generate(TaskSpec(workload, n=18, m=8)) for workload in WORKLOADS]
    traces = drive_all(NAME, ModelOptions(), [full_information(task) for task in tasks])
    for task, trace in zip(tasks, traces, strict=True):
        assert [decision.submitted for decision in trace.decisions] == [step.answer for step in task.steps]


def test_runs_do_not_depend_on_how_many_are_under_way():
    tasks = list(generate_many(TaskSpec("stepwise-sum", n=10, m=6), range(3)))
    together = drive_all(NAME, ModelOptions(), [_session(task) for task in tasks])
    alone = [drive_all(NAME, ModelOptions(), [_session(task)])[0] for task in tasks]
    assert list(map(_untimed, together)) == list(map(_untimed, alone))


def _session(task):
    return make_session(Access(h=4), task, prepare(task.spec))


def _untimed(trace):
    return [replace(one, reply=replace(one.reply, latency_seconds=0.0)) for one in trace.exchanges]


def test_a_restored_record_is_used_and_a_sham_believed():
    found = rescue(RescueSetup(TaskSpec("store-recall", n=24, m=8), 4), range(3), [NAME], ModelOptions())
    accuracy = {row.arm: row.accuracy for row in found.rows}
    assert (accuracy["oracle"], accuracy["sham"]) == (1.0, 0.0)


def test_where_a_summary_is_wanted_it_keeps_nothing():
    access = Access("compaction", None, h=4, context_tokens=64)
    spec = TaskSpec("store-recall", n=40, m=8)
    (trace,) = drive_all(NAME, ModelOptions(), [make_session(access, generate(spec), prepare(spec))])
    assert trace.ending == "finished"
    assert "" in {exchange.reply.text for exchange in trace.exchanges}


@pytest.mark.parametrize("condition", ["lru", "floor", "kv", "scratch", "scratch-lru", "paging"])
def test_a_managed_run_comes_to_its_end(condition):
    """It turns the pages and answers from what is shown; it keeps nothing and fetches nothing."""
    access = Access(condition, None, h=4, reads=None if condition == "paging" else 0)
    (trace,) = drive_all(NAME, ModelOptions(), [make_session(access, generate(SPEC), prepare(SPEC))])
    assert trace.ending == "finished"
    assert len(trace.decisions) == SPEC.n
    assert {action.action.split()[0] for action in trace.actions} <= {"NEXT", "ANSWER", "DONE"}


def test_a_probe_is_left_at_once():
    task = generate(TaskSpec("stepwise-sum", n=12, m=4))
    session = ProbeSession(publish(task, prepare(task.spec)), 12, {})
    trace = wait_for(drive(session, make_model(NAME, ModelOptions())))
    assert [exchange.reply.text for exchange in trace.exchanges] == ["DONE"]


def test_a_file_of_ones_own(tmp_path, capsys):
    shutil.copy(WEIGHTS, tmp_path / "mine.safetensors")
    mine = f"bundled:{tmp_path / 'mine.safetensors'}"
    assert ask(request(), name=mine) == ask(request())
    assert ask(request(), name=f"bundled/{tmp_path / 'mine.safetensors'}") == ask(request())
    options = ("--workload", "stepwise-sum", "--n", "6", "--m", "4", "--seeds", "0", "--no-control", "--json")
    assert eirkit("lacuna", "run", *options, "--model", mine, "--out", str(tmp_path / "out")) == 0
    capsys.readouterr()
    (digest,) = manifest(tmp_path / "out").sources.values()
    assert digest == make_model(NAME, ModelOptions()).settings()["weights_sha256"]


def test_a_foreign_file_is_wrong_usage_in_one_line(tmp_path, capsys):
    (tmp_path / "other.safetensors").write_bytes(b"PK\x03\x04 no weights")
    options = ("--workload", "stepwise-sum", "--seeds", "0", "--out", str(tmp_path / "out"))
    assert eirkit("lacuna", "run", *options, "--model", f"bundled:{tmp_path / 'other.safetensors'}") == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "is not a weights file" in said
    with pytest.raises(InputFileError, match="cannot read"):
        preflight(make_model("bundled:nowhere.safetensors", ModelOptions()))


def test_a_gpu_is_asked_for_by_name_and_its_absence_is_one_line():
    with pytest.raises(UsageError, match="write device=cpu or device=gpu"):
        make_model(NAME, ModelOptions(extra={"device": "tpu"}))
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(MissingExtraError, match="gpu"):
            make_model(NAME, ModelOptions(extra={"device": "gpu"})).preflight()


def test_unknown_names_and_settings_are_refused():
    with pytest.raises(UnknownNameError, match="known: <file>"):
        make_bundled("lacuna-huge", ModelOptions())
    with pytest.raises(UnknownNameError, match="setting of bundled models"):
        make_bundled("lacuna-tiny", ModelOptions(extra={"p": 1}))


def test_a_task_beyond_its_words_is_wrong_usage(tmp_path, capsys):
    options = ("--workload", "stepwise-sum", "--n", "6", "--seeds", "0", "--no-control", "--out", str(tmp_path / "out"))
    assert eirkit("lacuna", "run", *options, "--digits", "6", "--model", NAME) == 2
    assert "at most 4 digits, this step has 6; use a smaller task" in capsys.readouterr().err
    own = "eirkit.lacuna.tasks.workloads:StepwiseSum"
    session = full_information(generate(TaskSpec(own, n=4, m=2)))
    assert drive_all(NAME, ModelOptions(), [session])[0].ending == "finished"


def test_an_operator_it_never_learned_is_wrong_usage(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from eirkit.lacuna.tasks.workload import Workload\n\n"
        "class Mine(Workload):\n"
        "    def operate(self, spec, fresh, operands):\n"
        "        return fresh\n"
    )
    task = generate(TaskSpec(f"{tmp_path / 'mine.py'}:Mine", n=4, m=2))
    with pytest.raises(UsageError, match="was trained on sum, max, copy, top, not"):
        drive_all(NAME, ModelOptions(), [full_information(task)])
