"""Keys among the settings of memory systems: never recorded, never repeated in a message, filled in when needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.memories.environments import refuse_plain_secrets, resolve_variables
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Requirements
from tests.lacuna.running import eirkit

SECRET = "sk-0123456789abcdef"
KEYED = f"{__name__}:Keyed"
PACKAGED = f"{__name__}:Packaged"


class Keyed(KeyValue):
    """Finds nothing without its key, and complains of it in words that repeat it."""

    def __init__(self, *, api_key: str = "", url: str = "", body: Any = None) -> None:
        super().__init__()
        self.api_key, self.url, self.body = api_key, url, body

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self.api_key != SECRET:
            raise PermissionError(f"{self.api_key} opens nothing")
        return await super().search(query, limit)


class Packaged(Keyed):
    """The same in a process of its own."""

    requirements = Requirements(packages=("json",))


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": SECRET},
        {"token": "hunter22"},
        {"password": "0042"},
        {"url": f"http://me:{SECRET}@127.0.0.1:1/"},
        {"url": f"https://{SECRET}@127.0.0.1/"},
        {"url": f"http://127.0.0.1/mcp?api_key={SECRET}"},
        {"server": {"variables": {"API_TOKEN": SECRET}}},
        {"server": {"headers": {"Authorization": f"Bearer {SECRET}"}}},
        {"server": {"command": ["serve", "--api-key", SECRET]}},
        {"server": {"command": ["serve", f"--token={SECRET}"]}},
        {"server": {"command": ["serve", f"http://me:{SECRET}@127.0.0.1/"]}},
    ],
)
def test_a_secret_in_clear_is_refused_and_not_repeated(settings):
    with pytest.raises(UsageError, match="contains a secret, and settings are recorded") as refused:
        refuse_plain_secrets("mine", settings)
    assert SECRET not in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"embedding": "minilm", "threshold": 0.5, "infer": True, "tokens": 512},
        {"url": "http://127.0.0.1:8283", "store": "faiss"},
        {"url": "postgresql://letta@127.0.0.1/letta"},
        {"api_key": "none", "token": ""},
        {"api_key": "${MINE_API_KEY}", "url": "http://me:${MINE_PASSWORD}@127.0.0.1/"},
        {
            "server": {
                "write": ["put", {"key": "{label}", "value": "{text}"}],
                "command": ["serve", "--file", "{store}"],
            }
        },
        {"server": {"write": ["put", {"key": "run-{scope}-{label}"}]}},
        {"server": {"command": ["serve", "--token-file", "/etc/mine"]}},
        {"url": "http://[not an address"},
    ],
)
def test_what_is_no_secret_is_left_alone(settings):
    refuse_plain_secrets("mine", settings)
    variables = {"MINE_API_KEY": "one", "MINE_PASSWORD": "two"}
    assert resolve_variables("mine", settings, variables).keys() == settings.keys()


def test_a_variable_whose_name_hides_that_it_is_a_secret_is_refused():
    with pytest.raises(UsageError, match="refers to MINE; choose a name with KEY"):
        refuse_plain_secrets("mine", {"api_key": "${MINE}"})


def test_variables_are_filled_in_wherever_they_stand():
    settings = {"url": "http://me:${A_KEY}@host", "server": {"variables": {"T": "${A_KEY}"}, "command": ["x", 1]}}
    assert resolve_variables("mine", settings, {"A_KEY": "s"}) == {
        "url": "http://me:s@host",
        "server": {"variables": {"T": "s"}, "command": ["x", 1]},
    }
    with pytest.raises(UsageError, match="A_KEY is not set, and memory 'mine' refers to it; export it"):
        resolve_variables("mine", settings, {})


TASKS = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", "0:2", "--no-control")
RUN = ("lacuna", "run", *TASKS, "--model", "reference/recoverer")


def everything_in(folder: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("memory", [KEYED, PACKAGED])
def test_a_key_by_its_variable_is_used_and_stands_in_no_file(tmp_path, monkeypatch, capsys, memory):
    monkeypatch.setenv("MINE_API_KEY", SECRET)
    out = tmp_path / "out"
    setting = f"{memory}.api_key=${{MINE_API_KEY}}"
    assert eirkit(*RUN, "--memory", memory, "--set", setting, "--out", str(out), "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["rows"][0]["accuracy"] == 1
    assert SECRET not in printed.out + printed.err + everything_in(out)
    assert "${MINE_API_KEY}" in (out / "manifest.json").read_text()


def test_a_message_that_repeats_the_key_is_written_down_without_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINE_API_KEY", "sk-of-another-0123456789")
    out = tmp_path / "out"
    setting = f"{PACKAGED}.api_key=${{MINE_API_KEY}}"
    assert eirkit(*RUN, "--memory", PACKAGED, "--set", setting, "--out", str(out)) == 1
    printed = capsys.readouterr()
    told = printed.out + printed.err + everything_in(out)
    assert "opens nothing" in told
    assert "sk-of-another" not in told


def test_a_key_in_clear_ends_the_command_before_anything_is_written(tmp_path, capsys):
    out = tmp_path / "out"
    assert eirkit(*RUN, "--memory", KEYED, "--set", f"{KEYED}.api_key={SECRET}", "--out", str(out)) == 2
    error = capsys.readouterr().err
    assert "give '${MY_KEY}' instead" in error
    assert SECRET not in error
    assert not out.exists()


def test_a_resumed_sweep_wants_the_same_variable(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINE_API_KEY", "sk-of-another-0123456789")
    out = tmp_path / "out"
    setting = f"{KEYED}.api_key=${{MINE_API_KEY}}"
    assert eirkit(*RUN, "--memory", KEYED, "--set", setting, "--out", str(out), "--json") == 1
    monkeypatch.delenv("MINE_API_KEY")
    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 2
    assert "MINE_API_KEY is not set" in capsys.readouterr().err
    monkeypatch.setenv("MINE_API_KEY", SECRET)
    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
