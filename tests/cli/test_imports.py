"""What commands that read results import: the types of results and what shows them, nothing that runs agents."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import runs
from tests.processes import completed
from tests.report.folders import command

MOST_MODULES = 63  # of ours, for `report` on three finished runs
RUNS_AGENTS = ("eirkit.lacuna.runs", "eirkit.lacuna.agents", "eirkit.lacuna.models", "eirkit.lacuna.memories")
# How replies and passages are read, which a card of one step does again, and a table of prices; nothing here plays a
# session or calls anybody.
READS_AGAIN = {
    *("eirkit.lacuna.agents", "eirkit.lacuna.memories", "eirkit.lacuna.models"),
    *(f"eirkit.lacuna.agents.{name}" for name in ("conditions", "protocol", "recognition", "telemetry")),
    *("eirkit.lacuna.memories.memory", "eirkit.lacuna.memories.validity"),
    *(f"eirkit.lacuna.models.{name}" for name in ("message", "model", "prices")),
}
# What starts processes, opens connections, drives sessions or pays for calls; the page of one step, which makes its
# prompt again with the session, has none of it either.
EXECUTES = {
    *(f"eirkit.lacuna.runs.{name}" for name in ("attempt", "budget", "journal", "runner", "sweep", "workers")),
    *(f"eirkit.lacuna.memories.{name}" for name in ("child_process", "endpoint", "factory", "host", "in_process")),
    *(f"eirkit.lacuna.models.{name}" for name in ("chat_completion", "chat_server", "ledger", "local", "metered")),
    *("eirkit.lacuna.agents.driver", "eirkit.lacuna.agents.reference", "eirkit.engine"),
}
IMPORTED = "print(json.dumps(sorted(name for name in sys.modules if name.split('.')[0].startswith('eirkit'))))"
COMMAND = f"import io, json, sys; from contextlib import redirect_stdout; from eirkit.cli import run\n\
with redirect_stdout(io.StringIO()): assert run(sys.argv[1:]) == 0\n{IMPORTED}"
VIEWED = f"""import json, sys; from pathlib import Path; from eirkit.cli.view import Viewer, LogFolders
viewer = Viewer(Path(sys.argv[1]), LogFolders(), lambda: 4e9)
for page in (viewer.overview, viewer.runs): page({{"at": ["."]}})
viewer.run({{"at": ["."], "run": [sys.argv[2]]}})
for step in sys.argv[3:]: viewer.step({{"at": ["."], "run": [sys.argv[2]], "t": [step]}})
{IMPORTED}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished runs."""
    out = tmp_path_factory.mktemp("imports") / "out"
    models = "reference/calculator,reference/guesser,reference/sloppy"
    task = ("store-recall", "--m", 8, "--h", 4, "--seeds", 0)
    command("lacuna", "run", *task, "--model", models, "--no-control", "--out", out, "--json")
    return out


def imported(code: str, *words: object) -> set[str]:
    """Return the modules of ours that some code imports in a process of its own."""
    done = completed([sys.executable, "-c", code, *map(str, words)], check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def unwanted(names: set[str]) -> list[str]:
    extensions = [name for name in names if not name.startswith("eirkit.") and name != "eirkit"]
    return sorted([*extensions, *(name for name in names if name.startswith(RUNS_AGENTS))])


def test_a_report_imports_few_modules_and_nothing_that_runs_agents(folder, tmp_path):
    found = imported(COMMAND, "report", folder, "--out", tmp_path / "page.html")
    assert unwanted(found) == []
    assert len(found) <= MOST_MODULES, sorted(found)


def test_a_choice_imports_nothing_that_runs_agents(folder):
    assert unwanted(imported(COMMAND, "choose", folder)) == []


def test_cards_and_the_viewer_import_only_what_reads_replies_again(folder):
    run = runs.records(folder)[0].run
    for words in ((folder,), (folder, run), (folder, run, 60)):
        assert set(unwanted(imported(COMMAND, "show", *words))) <= READS_AGAIN
    assert set(unwanted(imported(VIEWED, folder, run))) <= READS_AGAIN


def test_the_page_of_a_step_imports_nothing_that_executes_anything(folder):
    found = imported(VIEWED, folder, runs.records(folder)[0].run, 60)
    assert "eirkit.lacuna.agents.session" in found  # its prompt is made again
    assert found & EXECUTES == set()


def test_modules_that_execute_exist():
    assert [name for name in EXECUTES if find_spec(name) is None] == []
