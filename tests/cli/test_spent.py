"""What rescue, probe and capability say about money, beside the bill of the server; and the exit code of a gate."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from eirkit.cli import run as command_line
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.page import spending_section
from tests.lacuna.servers import ModelServer, answers_as

PRICES = '[prices]\n"openai/any" = { input = 100, output = 100, cached = 100, as_of = 2026-01-01 }\n'
COMMANDS = {
    "rescue": ["rescue", "store-recall", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0"],
    "probe": ["probe", "stepwise-sum", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0", "--fan-in", "2"],
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
            assert f"spent: ${bill:.4f}; the cap is $9.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("agent", "seeds", "code", "said"),
    [
        (
            "reference/calculator",
            "0:20",
            0,
            "1 of 1 pair of model and workload may support claims about lost information.",
        ),
        (
            "reference/calculator",
            "0",
            3,
            "0 of 1 pair of model and workload may support claims about lost information; 1 undecided",
        ),
        ("reference/sloppy", "0:20", 1, "0 of 1 pair of model and workload may support claims about lost information."),
    ],
)
def test_an_undecided_gate_has_an_exit_code_of_its_own(agent, seeds, code, said, capsys):
    words = ["lacuna", "capability", "store-recall", "--n", "8", "--windows", "4", "--no-calculator"]
    words += ["--set", "p=0.5"] if agent == "reference/sloppy" else []
    assert command_line([*words, "--seeds", seeds, "--model", agent]) == code
    assert said in " ".join(capsys.readouterr().out.split())


def test_tokens_that_a_server_does_not_state_are_unknown_and_cost_the_most(tmp_path, capsys):
    """One of two replies has no numbers: its tokens are not 0, and the cap counts the most that it may have cost."""
    (prices := tmp_path / "prices.toml").write_text(PRICES)
    answer = answers_as("recoverer")

    def silent(received):
        given = answer(received)
        if len(server.received) % 2:
            found = json.loads(given.body)
            found["usage"]["prompt_tokens"] = "100"
            given = replace(given, body=json.dumps(found).encode())
        return given

    with ModelServer(silent) as server:
        words = ["lacuna", "run", "store-recall", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0", "--no-control"]
        words += ["--model", "openai/any", "--base-url", server.url, "--prices", str(prices), "--set", "connections=1"]
        command_line([*words, "--out", str(tmp_path / "out"), "--json"])
        told = json.loads(capsys.readouterr().out)
        calls = len(server.received)
    (row,) = told["rows"]
    known = calls - row["unreported_calls"]
    assert 0 < row["unreported_calls"] < calls
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (100 * known, 10 * known, None)
    spent = Decimal(str(told["spending"]["spent_usd"]))
    assert spent > Decimal(110 * 100) * calls / 1_000_000, "more than if every reply had stated its tokens"
    section = spending_section(read_sweep(tmp_path / "out"))
    (line,) = section.items[0].rows
    assert (line["input_tokens"], line["output_tokens"], line["cost_usd"]) == (None, None, None)
    assert section.words[-1].startswith(f"Of {row['unreported_calls']} calls the server stated no numbers of tokens")
