"""What rescue, probe and capability say about money, beside the bill of the server; and the exit code of a gate."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from eirkit.cli import run as command_line
from tests.lacuna.servers import ModelServer, answers_as

PRICES = '[prices]\n"openai/any" = { input = 100, output = 100, cached = 100, as_of = 2026-01-01 }\n'
COMMANDS = {
    "rescue": ["rescue", "store-recall", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0"],
    "probe": ["probe", "stepwise-sum", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0", "--fan-ins", "2"],
    "capability": ["capability", "store-recall", "--n", "8", "--windows", "4", "--seeds", "0", "--no-calculator"],
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
@pytest.mark.parametrize("kept", [True, False])
def test_a_command_says_what_the_server_bills(name, kept, tmp_path, capsys):
    (prices := tmp_path / "prices.toml").write_text(PRICES)
    with ModelServer(answers_as("recoverer")) as server:
        words = ["lacuna", *COMMANDS[name], "--model", "openai/any", "--base-url", server.url, "--prices", str(prices)]
        words += ["--out", str(tmp_path / "out")] if kept else []
        command_line([*words, "--json"])
        bill = Decimal(110 * 100) * len(server.received) / 1_000_000  # 100 tokens in and 10 out for every call
        told = json.loads(capsys.readouterr().out)
        assert told["spending"]["spent_usd"] == float(bill) > 0
        if kept:  # nothing is left to do, and the folder remembers
            command_line([*words, "--cap-usd", "9"])
            assert f"spent: ${bill:.4f} of $9.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("agent", "seeds", "code", "said"),
    [
        ("reference/calculator", "0:20", 0, "1 of 1 cell may support claims about lost information."),
        ("reference/calculator", "0", 3, "0 of 1 cell may support claims about lost information; 1 undecided"),
        ("reference/sloppy", "0:20", 1, "0 of 1 cell may support claims about lost information."),
    ],
)
def test_an_undecided_gate_has_an_exit_code_of_its_own(agent, seeds, code, said, capsys):
    words = ["lacuna", "capability", "store-recall", "--n", "8", "--windows", "4", "--no-calculator"]
    words += ["--set", "p=0.5"] if agent == "reference/sloppy" else []
    assert command_line([*words, "--seeds", seeds, "--model", agent]) == code
    assert said in " ".join(capsys.readouterr().out.split())
