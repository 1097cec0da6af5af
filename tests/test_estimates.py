"""Estimates against the bills of ten models on loopback: the table of docs/models.md, recomputed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import estimates

from eirkit.cli import run as run_command_line
from tests.lacuna.servers import ModelServer, answers_as

WITHIN = 0.2  # of the bill, after the first runs


@pytest.mark.parametrize("behavior", estimates.BEHAVIORS, ids=lambda one: one.name)
def test_the_table_is_what_the_servers_bill(behavior, tmp_path):
    found = estimates.compare(behavior, tmp_path)
    assert abs(found.error) <= WITHIN
    assert estimates.line(found) in estimates.PAGE.read_text("utf-8"), "run python tools/estimates.py --write"


def test_a_dry_run_says_what_it_assumes_and_what_it_has_seen(tmp_path, capfd):
    (tmp_path / "prices.toml").write_text(estimates.PRICES)
    with ModelServer(answers_as("calculator")) as server:
        model = ["--model", "openai/any", "--base-url", server.url, "--prices", tmp_path / "prices.toml"]
        words = ["lacuna", "run", "store-recall", "--n", 8, "--seeds", "0:10", "--set", "connections=1", *model]

        def dry(*arguments: object) -> tuple[dict, str]:
            capfd.readouterr()
            for how in (["--json"], []):
                assert run_command_line([str(word) for word in [*arguments, "--dry-run", *how]]) == 0
            data, _, shown = capfd.readouterr().out.partition("\n")
            return json.loads(data), " ".join(shown.split())

        data, shown = dry(*words)
        (assumed,) = data["assumptions"]
        assert f"assumes {assumed['output_tokens']:.0f} output tokens a call, as a reference agent writes" in shown
        assert (assumed["calls"], data["spent_usd"], server.received) == (0, None, [])
        out: Path = tmp_path / "out"
        run_command_line([str(word) for word in [*words, "--cap-usd", "0.014", "--out", out]])
        asked = len(server.received)
        data, shown = dry("lacuna", "run", "--resume", out)
        (seen,) = data["assumptions"]
        # The server counts 100 tokens in, 40 of them cached, and 10 out, whatever is said.
        assert (seen["calls"], seen["output_tokens"], seen["cached_share"]) == (asked, 10, 0.4)
        assert f"by the {asked} calls that were paid for: 10 output tokens a call" in shown
        assert data["runs"] == 10 - asked // 8
        assert len(server.received) == asked
