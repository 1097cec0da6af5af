"""The example in the help of every command is run as it stands there, in a folder that has what it names."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.records.database import SweepDatabase
from tests.cli.test_documents import EXAMPLES, commands
from tests.processes import completed

# Of commands that serve, install, take long, or need an extra or a coding agent: where they are tried.
ELSEWHERE = {
    "demo": "tests/cli/test_demo.py",
    "doctor": "tests/memories/test_mem0.py",
    "export inspect": "tests/bridges/test_inspect.py",
    "view": "tests/report/test_viewer_cli.py",
    "mcp serve": "tests/bridges/test_mcp_server.py",
    "guard watch": "tests/coding/guard/test_proxy.py",
    **dict.fromkeys(
        ("guard install", "guard uninstall", "guard status", "guard hook"), "tests/coding/guard/test_hook.py"
    ),
    "guard results": "tests/coding/guard/test_trial.py",
}
SWEEP = "store-recall --n 12 --m 4 --seeds 0:6 --model reference/recoverer --memory bm25,text"
FOLDERS = (
    f"lacuna run {SWEEP} --h 2 --out out/run-1",
    f"lacuna run {SWEEP} --h 3 --out out/run-2",
    "submit out/run-1 --name Examples --out submissions/mine",
    "vestige analyze examples/two_runs.jsonl --out out/analysis",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("examples")
    (made / "examples").symlink_to(EXAMPLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for line in FOLDERS:
            assert run(shlex.split(line)) == 0, line
    return made


def examples() -> dict[str, str]:
    """Return the example of every command that is tried here, by the command's name."""
    return {name: command.example for name, command in commands().items() if name not in ELSEWHERE}


def test_every_command_has_an_example_of_itself():
    for name, command in commands().items():
        assert f"eirkit {name}" in command.example, name


@pytest.mark.parametrize("name", examples())
def test_the_example_of_a_command_runs(name, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    example = examples()[name]
    if name == "completion":
        shell = f'PATH="{Path(sys.executable).parent}:$PATH"; {example} && complete -p eirkit'
        assert "eirkit" in completed(["bash", "-c", shell]).stdout
        return
    with SweepDatabase(folder / "out" / "run-1") as database:
        known = {"RUN_ID": next(database.records()).run, "LOGS": "examples/compacted_session.jsonl"}
    words = [known.get(word, word) for word in shlex.split(example)[1:]]
    words = [str(path) for word in words for path in (sorted(Path().glob(word)) if "*" in word else [word])]
    assert run(words) == 0, capsys.readouterr().err
