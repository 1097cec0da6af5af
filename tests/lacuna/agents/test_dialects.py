"""The compact dialect: the same facts in fewer words, read alike by our agents, and part of what a sweep keeps."""

import json

import pytest

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.agents.prompt import COMPACT, DIALECTS, FULL, render, render_compact, renderer_of
from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Budgets, Visible, publish
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.events import ModelExchange
from eirkit.records.settings import Access
from tests.lacuna.running import drive_all, eirkit
from tests.runs import events, manifest

SPEC = TaskSpec("stepwise-sum", n=12, m=4, seed=3)
MANAGED = ("lru", "kv", "scratch", "scratch-lru", "floor")


def visible(workload="stepwise-sum", **more) -> Visible:
    spec = TaskSpec(workload, n=12, m=4, seed=3)
    task = publish(generate(spec), prepare(spec))
    values = (42,) * task.width
    return Visible(task, task.steps[7], False, ((5, values), (7, values)), **more)


def test_a_step_is_a_line_like_its_records():
    system, state = render_compact(visible())
    assert system.content == "WORKLOAD stepwise-sum n=12 q=10000 width=1 k=2\nANSWER t v"
    fresh, refs = visible().step.input, visible().step.refs
    step = f"A_08 = sum {fresh[0]:04d} " + " ".join(f"A_{r:02d}" for r in refs)
    assert state == Message("user", f"A_05 = 0042\nA_07 = 0042\n{step}")


@pytest.mark.parametrize(
    ("workload", "word"),
    [("stepwise-topk", "top"), ("running-max", "max"), ("store-recall", "copy"), ("full-lookup", "copy")],
)
def test_every_operator_has_its_word(workload, word):
    assert f"\nA_08 = {word} " in render_compact(visible(workload))[1].content


def test_restored_records_stand_with_the_others():
    lines = render_compact(visible(restored=((3, (7,)),)))[1].content.splitlines()
    assert lines[:3] == ["A_05 = 0042", "A_07 = 0042", "A_03 = 0007"]


def test_whoever_looks_after_a_memory_is_told_of_it():
    shown = visible(budgets=Budgets(9, 1, None), notes="mine", room="1 of 4 records used", outcomes=("kept",))
    text = render_compact(shown)[1].content
    for line in ("RETAINED 2", "NOTES", "mine", "END NOTES", "MEMORY 1 of 4 records used", "RESULT kept"):
        assert line in text.splitlines()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("workload", workloads.names())
def test_agents_do_the_same_in_both_dialects(agent, workload):
    """Agents whose draws are named by the prompt draw others; all the rest is equal."""
    draws = agent in ("guesser", "note-taker", "quitter", "sloppy")
    spec, told = TaskSpec(workload, n=20, m=6, seed=5), []
    for condition in ("controlled", *MANAGED):
        access = Access(condition, "window" if condition == "controlled" else None, h=3)
        for dialect in DIALECTS:
            session = make_session(access, generate(spec), prepare(spec))
            options = ModelOptions(dialect=dialect, extra={"p": 1.0} if draws and agent != "guesser" else {})
            (trace,) = drive_all(f"reference/{agent}", options, [session])
            told.append([exchange.reply.text for exchange in trace.exchanges])
    if agent != "guesser":
        assert told[::2] == told[1::2]
    assert all(told)


def test_the_dialect_is_the_users_then_the_models():
    assert renderer_of("reference/calculator", ModelOptions()) is render
    assert renderer_of("reference/calculator", ModelOptions(dialect=COMPACT)) is render_compact
    assert renderer_of("bundled/lacuna-tiny", ModelOptions()) is render_compact
    assert renderer_of("bundled/lacuna-tiny", ModelOptions(dialect=FULL)) is render
    with pytest.raises(UnknownNameError, match="no dialect named 'terse'"):
        renderer_of("reference/calculator", ModelOptions(dialect="terse"))


def suite(**options):
    grid = {"workload": "stepwise-sum", "n": 8, "m": 4, "h": 2, "seeds": [0], "model": "reference/calculator"}
    return read_suite({**grid, "model_options": options})


def test_a_sweep_keeps_its_dialect(tmp_path):
    """It is part of the manifest, of what runs are called, and of the prompts that are kept."""
    plain, short = suite(), suite(dialect="compact")
    assert plain.sha256() == suite(dialect=None).sha256() != short.sha256()
    folders = tmp_path / "plain", tmp_path / "short"
    rows = [start_sweep(one, folder, control=False).rows for one, folder in zip((plain, short), folders, strict=True)]
    assert rows[0][0].accuracy == rows[1][0].accuracy
    then, now = map(manifest, folders)
    assert then.prompt_sha256 != now.prompt_sha256
    assert now.settings["grid"][0]["model_options"]["dialect"] == "compact"
    assert list(now.rules.values()) == ["WORKLOAD stepwise-sum n=8 q=10000 width=1 k=2\nANSWER t v"]
    assert any("A_8 = sum" in (event.prompt or "") for event in events(folders[1]) if isinstance(event, ModelExchange))


def test_an_unknown_dialect_is_refused():
    with pytest.raises(UsageError, match="one of full, compact"):
        suite(dialect="terse")


def test_the_option_is_on_every_command_that_asks_models(capsys):
    options = ("--workload", "stepwise-sum", "--n", "8", "--m", "4", "--seeds", "0:2", "--json")
    for command in (("rescue", "--h", "2"), ("capability", "--windows", "4", "--threshold", "0.5")):
        for dialect in DIALECTS:
            code = eirkit(
                "lacuna", *command, *options, "--model", "reference/calculator", "--set", f"dialect={dialect}"
            )
            assert code == 0, capsys.readouterr().err
        full, compact = map(json.loads, capsys.readouterr().out.strip().splitlines())
        assert full["rows"] == compact["rows"]
