"""Every command at 80 columns and in every form: what `show` promises, checked on real output."""

import csv
import io
import json
import shlex
import shutil
from pathlib import Path

import click
import pytest

from eirkit.cli import ROOT, LazyGroup, run
from eirkit.cli.command import GroupedCommand
from eirkit.report.showing import FORMS
from tests.report.reading_pages import faults

WIDTH = 80
EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = {
    "run": "lacuna run store-recall --n 24 --m 8 --h 4 --model reference/recoverer --memory bm25 --out out/run",
    "second": "lacuna run store-recall --n 24 --m 8 --h 4 --model reference/recoverer --memory null --out out/second",
    "analysis": "vestige analyze examples/two_runs.jsonl --out out/analysis",
    "submitted": "submit out/run --out out/submitted",
}
# One command line for each command, in a folder that holds `examples` and the folders above.
LINES = {
    "eir curve": "stepwise-sum --h 8",
    "eir count": "examples/timezone.py:timezone --all",
    "eir frontier": "examples/timezone.py:timezone --capacity 1 --all",
    "lacuna generate": "stepwise-topk --n 20 --slots 1",
    "lacuna simulate": "full-lookup --seeds 0:5 --all",
    "lacuna cones": "--seeds 0:5 --all",
    "lacuna run": "stepwise-sum,store-recall --n 12 --m 4 --h 4,2 --model reference/calculator,reference/sloppy",
    "lacuna rescue": "store-recall --n 24 --seeds 0:2 --model reference/recoverer --memory broken-drops",
    "lacuna capability": "store-recall --n 16 --windows 4 --seeds 0:1 --model reference/calculator,reference/guesser",
    "lacuna probe": "stepwise-sum --h 4 --seeds 0:1 --model reference/recoverer",
    "lacuna audit": "--instances 2 --plant ordering",
    "vestige analyze": "examples/two_runs.jsonl --out out/again",
    "vestige cohort": "out/analysis",
    "vestige formats": "",
    "vestige query": 'out/analysis "SELECT * FROM runs"',
    "reproduce": "--list",
    "compare": "out/second out/run",
    "choose": "out/run out/second",
    "report": "out/run",
    "submit": "out/run --out out/submission",
    "board": "out/submitted --out out/board",
    "watch": "out/run --once",
    "doctor": "",
    "export harbor": "store-recall --n 12 --m 4 --h 2 --seeds 0:2 --out out/harbor",
    "export otel": "out/run --out out/traces.jsonl",
}
ELSEWHERE = {
    "demo": "tests/cli/test_demo.py",
    "export jsonl": "tests/records/test_export.py",  # wants a new folder each time
    "export inspect": "tests/bridges/test_inspect.py",  # needs an extra
    "view": "tests/report/test_viewer_cli.py",  # serves until it is stopped, as the next two do
    "mcp serve": "tests/bridges/test_mcp_server.py",
    "guard watch": "tests/coding/guard/test_proxy.py",
    "show": "tests/cli/test_show.py",
    "vestige compact": "tests/coding/compactors/test_command.py",
    "week": "tests/coding/week/test_week.py",
    **dict.fromkeys(("guard install", "guard uninstall", "guard status"), "tests/coding/guard/test_hook.py"),
    "guard hook": "tests/coding/guard/test_hook.py",
    "guard results": "tests/coding/guard/test_trial.py",
    "selftest": "tests/testing/selftest/test_selftest.py",  # takes a minute
    "completion": "tests/cli/test_main.py",  # its text is a script, which a shell evaluates
}


def commands(group: LazyGroup = ROOT, path: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, entry in group.table.items():
        here = f"{path} {name}".strip()
        if isinstance(entry, LazyGroup):
            found |= commands(entry, here)
        else:
            found[here] = group.get_command(click.Context(group), name)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("documents")
    (made / "examples").symlink_to(EXAMPLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for line in FOLDERS.values():
            assert run(shlex.split(line)) == 0
    return made


@pytest.fixture
def shown(folder, monkeypatch, capsys):
    """Return what a command prints on stdout, run where the folders are."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(name: str, *more: str) -> str:
        capsys.readouterr()
        for made in ("harbor", "submission", "board"):
            shutil.rmtree(f"out/{made}", ignore_errors=True)
        code = run([*name.split(), *shlex.split(LINES[name]), *more])
        said = capsys.readouterr()
        assert code in (0, 1, 3), said.err  # 3: undecided
        return said.out

    return call


def test_every_command_is_tried():
    assert {*LINES, *ELSEWHERE} == set(commands())


@pytest.mark.parametrize("name", LINES)
def test_text_fits_80_columns_starts_with_the_answer_and_ends_with_a_command(name, shown):
    *lines, last = shown(name).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert lines[0].strip()
    assert "─" not in "".join(lines[:2]), "the answer comes before any table"
    label, program, *words = shlex.split(last)  # never wrapped, so that it can be copied
    assert (label, program) in (("next:", "eirkit"), ("next:", "harbor"))
    assert program == "harbor" or any(words[: len(path.split())] == path.split() for path in commands())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", LINES)
def test_every_form_is_rendered(name, form, shown):
    text = shown(name, "--format", form)
    assert text.endswith("\n")
    if form == "json":
        assert isinstance(json.loads(text), dict)
    elif form == "csv":
        assert len(list(csv.reader(io.StringIO(text)))) > 1
    elif form == "markdown":
        assert text.startswith("# ")
    elif form == "latex":
        assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") > 0
    elif form == "html":
        # The page of a board leads to the other pages of its site.
        assert [fault for fault in faults(text) if name != "board" or "entries/" not in fault] == []


def test_json_is_short_for_format_json_and_contradictions_are_refused(shown, capsys):
    assert shown("vestige formats", "--json") == shown("vestige formats", "--format", "json")
    assert run(["vestige", "formats", "--json", "--format", "csv"]) == 2
    assert "contradict" in capsys.readouterr().err


def test_a_wider_terminal_shows_more_columns(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    narrow = shown("lacuna capability")
    monkeypatch.setenv("COLUMNS", "140")
    assert "not shown at this width" in narrow
    assert "not shown at this width" not in shown("lacuna capability")


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_is_grouped_and_its_example_is_a_command_that_parses(name):
    command = commands()[name]
    assert isinstance(command, GroupedCommand)
    words = shlex.split(command.example)
    if words[0] == "eval":
        return
    assert words[: 1 + len(name.split())] == ["eirkit", *name.split()]
    command.make_context(name, words[1 + len(name.split()) :])
    assert len(f"  {command.example}") <= WIDTH
    assert "Output:" in command.get_help(click.Context(command, info_name=name))


@pytest.mark.parametrize("name", ["eir curve", "eir count", "lacuna generate", "lacuna rescue", "lacuna audit"])
def test_examples_work(name, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(shlex.split(commands()[name].example)[1:]) == 0


SPELLINGS = [
    ("eir curve", "--n 8"),
    ("lacuna generate", "--n 8"),
    ("lacuna simulate", "--n 12 --seeds 0:2"),
    ("lacuna rescue", "--n 12 --seeds 0:1 --model reference/calculator"),
    ("lacuna capability", "--n 8 --windows 4 --seeds 0:1 --threshold 0.5 --model reference/calculator"),
    ("lacuna probe", "--seeds 0:1 --model reference/recoverer"),
    ("lacuna run", "--n 8 --seeds 0:1 --model reference/calculator --dry-run"),
]


@pytest.mark.parametrize(("name", "more"), SPELLINGS)
def test_a_workload_is_an_argument_or_an_option(name, more, capsys):
    said = []
    for workload in (["stepwise-sum"], ["--workload", "stepwise-sum"]):
        assert run([*name.split(), *workload, *more.split(), "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    both = ["stepwise-sum", "--workload", "store-recall"]
    assert run([*name.split(), *both, *more.split()]) == 2
    assert "two workloads are given" in capsys.readouterr().err


HINTS = [
    ("run store-recall", "did you mean `eirkit lacuna run`?"),
    ("simulate", "did you mean `eirkit lacuna simulate`?"),
    ("analyze logs", "did you mean `eirkit vestige analyze`?"),
    ("analyze logs", "did you mean `eirkit vestige analyze`?"),
    ("curve stepwise-sum", "did you mean `eirkit eir curve`?"),
    ("reprot out", "did you mean `eirkit report`?"),
    ("lacuna run store-recall -h 4 --model reference/calculator", "-h is short for --help; write --h 4"),
    ("eir curve stepwise-sum -h8", "-h is short for --help; write --h 8"),
    ("lacuna run store-recall --model gpt-4o --out x", "did you mean 'openai/gpt-4o'?"),
    ("lacuna run store-recall --model claude-3 --out x", "did you mean 'anthropic/claude-3'?"),
    ("lacuna run store-recall --model mystery --out x", "known: agent, anthropic, bundled, google,"),
]


@pytest.mark.parametrize(("line", "hint"), HINTS)
def test_near_misses_are_answered_with_what_was_meant(line, hint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert hint in said.err
    assert said.err.count("\n") == 1


HOSTILE = "evil\x1b]0;title\x07\x9b31m\u202egnp.exe\x1b[2J"


def test_control_characters_of_logs_reach_no_stream(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    turn = {"reads": [{"path": f"{HOSTILE}.py", "tokens": 5}], "writes": [{"path": "b.py", "tokens": 5}], "tokens": 9}
    log = {"run_id": HOSTILE, "task_id": "t", "model": HOSTILE, "resolved": True, "turns": [turn, turn]}
    Path("log.jsonl").write_text(json.dumps(log) + "\n")
    assert run(["vestige", "analyze", "log.jsonl", "--out", "out"]) == 0
    for form in FORMS:
        assert run(["vestige", "show", "out", HOSTILE, "--format", form]) == 0
    assert run(["vestige", "show", "out", f"{HOSTILE}!"]) == 2
    said = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said.out + said.err)
