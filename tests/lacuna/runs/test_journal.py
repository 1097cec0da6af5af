"""The money of a folder: cap, prices and calls are kept there, survive kills, and equal what the server counted."""

from __future__ import annotations

import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run as run_command_line
from eirkit.cli.runner_options import spending_remarks
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.journal import read_journal
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.records.database import DATABASE, PaidCall, SweepDatabase
from eirkit.records.money import exact_usd
from eirkit.records.sweeps import Summary
from tests.lacuna.asking import Asking, name_of
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as, fails, says
from tests.processes import running, wait_until

PRICES = '[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n'
CALL_USD = Decimal("0.11")  # at that price, for the 110 tokens that the server counts
RUNS, STEPS = 6, 12
TASKS = {"workload": "store-recall", "n": STEPS, "m": 6, "h": 3, "seeds": f"0:{RUNS}"}
FOREVER = 600.0  # seconds: the client is killed long before


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answers_as("calculator")) as server:
        yield server


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(PRICES)
    return path


def suite(server: ModelServer, connections: int = 2, **options: Any) -> Any:
    options = {"base_url": server.url, "reask": False, "max_tokens": 20, "connections": connections, **options}
    return read_suite({"model": "openai/any", **TASKS, "model_options": options})


def in_rows(summary: Summary) -> Decimal:
    """Return every cent that the rows have."""
    found = Decimal(0)
    for row in summary.rows:
        found += exact_usd(row.cost_usd or 0) + exact_usd(row.unconfirmed_usd)
        if row.memory_system is not None:
            found += exact_usd(row.memory_system.cost_usd or 0)
    return found


def calls_of(folder: Path) -> list[PaidCall]:
    with SweepDatabase(folder) as database:
        return list(database.calls())


def finished_runs(folder: Path) -> int:
    with SweepDatabase(folder) as database:
        return database.count() + database.count(control=True)


def counted(server: ModelServer) -> Decimal:
    return len(server.received) * CALL_USD


def call(capfd: Any, *words: object) -> tuple[int, dict[str, Any], str]:
    capfd.readouterr()
    code = run_command_line([str(word) for word in words])
    out, complaint = capfd.readouterr()
    return code, json.loads(out) if out else {}, complaint


def test_the_command_that_a_stopped_sweep_prints_keeps_its_cap(tmp_path, server, prices, capfd):
    wanted = ["--n", STEPS, "--m", 6, "--h", 3, "--seeds", f"0:{RUNS}", "--set", "max_tokens=20"]
    model = ["--model", "openai/any", "--base-url", server.url, "--set", "connections=2"]
    out, first = tmp_path / "out", ["--prices", prices, "--cap-usd", "4.5"]
    run_command_line([str(w) for w in ["lacuna", "run", "store-recall", *wanted, *model, *first, "--out", out]])
    printed = capfd.readouterr().out
    assert f"eirkit lacuna run --resume {out}" in printed
    assert f"spent: ${counted(server):.4f}; the cap is $4.5000" in printed
    prices.unlink()  # the folder has its own
    for more in ([], ["--json"]):
        capfd.readouterr()
        run_command_line(["lacuna", "run", "--resume", str(out), *more])
        assert counted(server) <= Decimal("4.5")
    data = json.loads(capfd.readouterr().out)
    assert data["spending"]["cap_usd"] == 4.5
    assert exact_usd(data["spending"]["spent_usd"]) == counted(server)
    assert data["rows"][0]["cost_usd"] == data["spending"]["spent_usd"], "no cent is missing from the rows"


@pytest.mark.parametrize(
    ("cap", "every", "more"),
    [("0.01", 0, []), ("1.1", 0, []), ("4.5", 0, ["--set", "max_tokens=400"]), ("5", 2, []), ("3", 0, ["--control"])],
    ids=["no call", "no run", "long replies", "half of the calls fail", "control"],
)
def test_the_next_step_after_a_cap_finishes_another_run_until_all_are(tmp_path, prices, capfd, cap, every, more):
    """The printed command is run as it is; each time at least one more run of the sweep or its control is finished."""
    good = answers_as("calculator")

    def script(received: Received) -> Answer:
        is_bad = every and len(server.received) % every == 0
        return fails(500, headers=[("retry-after-ms", "1")]) if is_bad else good(received)

    out = tmp_path / "out"
    wanted = ["--n", STEPS, "--m", 6, "--h", 3, "--seeds", "0:4", "--set", "max_tokens=20", *more]
    with ModelServer(script) as server:
        model = ["--model", "openai/any", "--base-url", server.url, "--prices", prices, "--cap-usd", cap]
        words = ["lacuna", "run", "store-recall", *wanted, *model, "--out", out]
        finished, code, turns = 0, 1, 0
        while code:
            code = run_command_line([str(word) for word in words])
            printed = capfd.readouterr().out
            now = finished_runs(out)
            assert turns == 0 or now > finished, printed
            finished, turns = now, turns + 1
            if code:
                (line,) = [line for line in printed.splitlines() if line.startswith("next: ")]
                assert f"eirkit lacuna run --resume {out} --cap-usd " in line
                words = shlex.split(line)[2:]
    assert turns > 1
    assert json.loads((out / "summary.json").read_text())["scored"] == 4


def test_where_no_call_was_answered_the_next_step_is_an_estimate(tmp_path, prices, capfd):
    with ModelServer([fails(500, headers=[("retry-after-ms", "1")])]) as server:
        wanted = ["--n", STEPS, "--m", 6, "--h", 3, "--seeds", "0:4", "--set", "max_tokens=20", "--prices", prices]
        model = ["--model", "openai/any", "--base-url", server.url, "--cap-usd", "5", "--out", tmp_path / "out"]
        assert run_command_line([str(word) for word in ["lacuna", "run", "store-recall", *wanted, *model]]) == 1
    assert f"next: eirkit lacuna run --resume {tmp_path / 'out'} --dry-run" in capfd.readouterr().out


def test_a_report_of_a_sweep_that_its_cap_stopped_asks_for_a_higher_one(tmp_path, server, prices, capfd):
    start_sweep(suite(server), tmp_path / "out", SpendingLimits("4.5", prices))
    _, document, _ = call(capfd, "report", tmp_path / "out", "--json")
    again = f"eirkit lacuna run --resume {tmp_path / 'out'} --cap-usd USD"
    words = [line for section in document["sections"] for line in section["words"] if "--resume" in line]
    assert [again in line for line in words] == [True] * len(words)
    assert any(
        line.endswith(f"runs are not scored, since the cap was reached; go on with `{again}`.") for line in words
    )


def test_only_an_explicit_option_changes_the_terms_and_the_journal_says_so(tmp_path, server, prices, capfd):
    folder = tmp_path / "out"
    assert not start_sweep(suite(server), folder, SpendingLimits("4.5", prices)).complete
    assert len(server.received) > STEPS
    dearer = tmp_path / "dearer.toml"
    dearer.write_text(PRICES.replace("1000", "2000"))
    assert not resume_sweep(folder, funds=SpendingLimits(prices=dearer)).complete
    assert read_journal(folder).cap_usd == Decimal("4.5"), "prices alone do not lift the cap"
    assert read_journal(folder).spending.total_usd <= Decimal("4.5")
    code, data, _ = call(capfd, "lacuna", "run", "--resume", folder, "--cap-usd", "none", "--json")
    assert (code, data["complete"], data["spending"]["cap_usd"]) == (0, True, None)
    with SweepDatabase(folder) as database:
        assert database.terms() == {"cap_usd": None}
        ((_, _, price),) = database.prices()
    assert json.loads(price)["input"] == "2000", "the last one"
    assert {call.billed_usd for call in calls_of(folder)} == {Decimal("0.11"), Decimal("0.22")}


def test_a_capped_sweep_never_continues_without_a_price(tmp_path, server, prices):
    folder = tmp_path / "out"
    start_sweep(suite(server), folder, SpendingLimits("4.5", prices))
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        connection.execute("DELETE FROM prices")
    asked = len(server.received)
    with pytest.raises(UsageError, match="the price of openai/any is unknown, so the cap cannot be enforced"):
        resume_sweep(folder)
    assert len(server.received) == asked


def test_every_cent_is_in_the_rows_after_the_cap_and_after_the_resume(tmp_path, prices):
    """Runs cost more than is expected of them, so that the cap cuts the first."""
    good, call_usd = answers_as("calculator"), Decimal("0.31")

    def dear(received: Received) -> Answer:
        answer = good(received)
        return replace(answer, body=answer.body.replace(b'"prompt_tokens": 100', b'"prompt_tokens": 300'))

    folder = tmp_path / "out"
    with ModelServer(dear) as server:
        first = start_sweep(suite(server, connections=4), folder, SpendingLimits("2.7", prices))
        assert (first.scored, first.complete) == (0, False)
        assert 0 < len(server.received) < STEPS, "the cap does not reach for a single run"
        assert in_rows(first) == len(server.received) * call_usd
        assert first.rows[0].calls == len(server.received)
        second = resume_sweep(folder, funds=SpendingLimits(100))
        assert second.complete
        assert in_rows(second) == len(server.received) * call_usd == read_journal(folder).spending.billed_usd
        assert second.rows[0].input_tokens == 300 * len(server.received)
        assert len(server.received) > RUNS * STEPS, "something was paid for twice, and it is counted twice"


def after(asked: int, then: Callable[[Received], Answer]) -> Callable[[Received], Answer]:
    """Answer well so often, then keep the client waiting."""
    seen: list[None] = []

    def answer(received: Received) -> Answer:
        seen.append(None)
        good = then(received)
        return good if len(seen) <= asked else replace(good, delay_seconds=FOREVER)

    return answer


def test_what_was_in_flight_at_a_kill_counts_until_it_is_known(tmp_path, prices):
    folder, connections = tmp_path / "out", 3
    with ModelServer(after(20, answers_as("calculator"))) as server:
        words = ["lacuna", "run", "store-recall", "--n", STEPS, "--m", 6, "--h", 3, "--seeds", f"0:{RUNS}"]
        words += [
            "--model",
            "openai/any",
            "--base-url",
            server.url,
            "--set",
            f"connections={connections}",
            "--set",
            "max_tokens=20",
        ]
        words += ["--prices", prices, "--cap-usd", 80, "--out", folder]
        with running([sys.executable, "-m", "eirkit", *words], stdout=subprocess.DEVNULL) as command:
            wait_until(lambda: len(server.received) >= 20 + connections, "so many calls are in flight", command)
            command.send_signal(signal.SIGKILL)
        then = read_journal(folder)
        in_flight = then.spending.in_flight_usd
        assert then.spending.billed_usd == 20 * CALL_USD
        assert in_flight >= connections * CALL_USD, "a hold is no less than the bill"
        server.script = answers_as("calculator")
        found = resume_sweep(folder)
        assert found.complete
        assert found.spending.in_flight_usd == float(in_flight)
        assert in_rows(found) == read_journal(folder).spending.total_usd
        billed = exact_usd(found.spending.billed_usd)
        assert counted(server) == billed + connections * CALL_USD, "nothing else is missing from the ledger"
    spent = next(spending_remarks(found.spending))
    assert spent.startswith(f"spent: ${billed:.4f}, and at most ${in_flight:.4f} more for calls that were in flight;")


def test_two_ways_to_the_same_sum_with_a_control_and_a_memory_that_asks(tmp_path, prices, server):
    folder = tmp_path / "control"
    found = start_sweep(suite(server), folder, SpendingLimits(1000, prices), control=True)
    spent = found.spending
    assert exact_usd(spent.spent_usd) == counted(server)
    assert in_rows(found) + exact_usd(spent.control_usd) == counted(server)
    assert spent.control_usd > 0

    memory = {"memory": [name_of(Asking)], "memory_options": {name_of(Asking): {"model": f"{__file__}:paid/x"}}}
    memory["memory_options"][name_of(Asking)]["embedding"] = "ngrams"
    tasks = {**TASKS, "h": 1, "model": "reference/recoverer", **memory}
    found = start_sweep(read_suite(tasks), tmp_path / "memory", SpendingLimits(prices=prices))
    row = found.rows[0].memory_system
    assert row is not None
    assert row.model_calls * PaidModel.USD == exact_usd(row.cost_usd) == in_rows(found) > 0
    attempts = read_journal(tmp_path / "memory").attempts.values()
    assert {one.run.rpartition("-")[2] for one in attempts} == {str(seed) for seed in range(RUNS)}
    assert all(one.usd.keys() == {"memory"} for one in attempts)


class PaidModel:
    """Says what it costs."""

    USD = Decimal("0.0003")

    async def reply(self, request: Request) -> Reply:
        return Reply("noted", usage=Usage(10, 3, cost_usd=float(self.USD)))

    async def close(self) -> None:
        pass

    def settings(self) -> dict[str, Any]:
        return {}


def paid(name: str, options: ModelOptions) -> PaidModel:
    return PaidModel()


def test_a_provider_that_bills_above_the_declared_maximum_is_told_apart(tmp_path, prices, capfd):
    def dear(received: Received) -> Answer:
        good = answers_as("calculator")(received)
        body = json.loads(good.body)
        body["usage"] = {"prompt_tokens": 9000, "completion_tokens": 1000, "total_tokens": 10_000}
        return replace(good, body=json.dumps(body).encode())

    with ModelServer(dear) as server:
        cap, bill = Decimal(50), Decimal(10)
        found = start_sweep(
            suite(server, connections=20, protocol="text"), tmp_path / "out", SpendingLimits(cap, prices)
        )
        spent = read_journal(tmp_path / "out").spending
        assert spent.billed_usd == bill * len(server.received)
        assert 0 < spent.over_calls <= len(server.received)
        assert 0 < spent.billed_usd - cap <= spent.over_usd, "only by what was billed above the declared maximum"
        assert found.spending.over_usd == float(spent.over_usd)
        before = len(server.received)
        raised = spent.billed_usd + 3 * bill + 5
        call(capfd, "lacuna", "run", "--resume", tmp_path / "out", "--cap-usd", raised, "--json")
        assert len(server.received) > before
        assert bill * len(server.received) <= raised, "later holds are as large as the bills were"


BILLED = [301, 302, 303, 307, 308, 408, 409, 425, 500, 501, 502, 504, 520, 521, 522, 523, 524, 525, 599]


@pytest.mark.parametrize("status", BILLED)
def test_a_gateway_that_bills_its_failures_does_not_pass_a_cap(tmp_path, prices, status, capfd):
    """The gateway passes every request on, keeps its own account of all of them, and returns every second reply."""
    bills: list[Decimal] = []

    def gateway(received: Received) -> Answer:
        if len(bills) % 2:
            bills.append(CALL_USD)
            return answers_as("calculator")(received)
        chars = sum(len(message["content"]) for message in received.body["messages"])
        bills.append(Decimal(chars // 4 + received.body["max_tokens"]) / 1000)
        headers = (("retry-after-ms", "1"), ("Location", "/v1/chat/completions"))
        return fails(status, "upstream gave up", headers=headers)

    with ModelServer(gateway) as server:
        found = start_sweep(suite(server), tmp_path / "out", SpendingLimits("8", prices))
    spent = read_journal(tmp_path / "out").spending
    assert len(bills) == len(server.received) > 2
    assert sum(bills) <= spent.total_usd <= 8, "the cap holds against the gateway's own account"
    assert in_rows(found) == spent.total_usd
    assert len(calls_of(tmp_path / "out")) == len(bills), "each call is in the database"
    said = "\n".join(spending_remarks(found.spending))
    more = f"and at most ${spent.unconfirmed_usd:,.4f} more for calls without a usable reply or count of tokens"
    assert more in said


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 503, 529])
def test_a_request_that_was_refused_costs_nothing(tmp_path, prices, status):
    with ModelServer([fails(status, headers=[("retry-after-ms", "1")])]) as server:
        found = start_sweep(suite(server), tmp_path / "out", SpendingLimits("8", prices))
    assert len(server.received) >= RUNS
    assert found.spending.spent_usd == 0


def test_a_failure_that_teaches_the_model_to_ask_differently_is_counted_too(tmp_path, prices):
    """A chat template without a system role fails with a 500; the call after it has a reservation of its own."""
    bills: list[Decimal] = []

    def gateway(received: Received) -> Answer:
        first, *_ = received.body["messages"]
        bills.append(CALL_USD)
        if first["role"] == "system":
            return fails(500, "Conversation roles must alternate user/assistant/user/assistant/...")
        return says("ANSWER 1 1")

    with ModelServer(gateway) as server:
        found = start_sweep(suite(server, retries=0), tmp_path / "out", SpendingLimits("30", prices))
    spent = read_journal(tmp_path / "out").spending
    assert found.scored > 0
    assert spent.unconfirmed_usd > 0
    assert sum(bills) <= spent.total_usd <= 30


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE calls SET billed_usd = '0.10' WHERE id = 1",
        "UPDATE calls SET reserved_usd = '0.01' WHERE id = (SELECT max(id) FROM calls)",
        "UPDATE terms SET value = '45'",
        "UPDATE attempts SET part = 'control' WHERE id = 1",
        "UPDATE prices SET price = CAST(replace(CAST(price AS TEXT), '1', '2') AS BLOB)",
        "DELETE FROM attempts WHERE id = 1",
    ],
)
def test_changed_money_is_refused(tmp_path, server, prices, change):
    folder = tmp_path / "out"
    start_sweep(suite(server), folder, SpendingLimits("4.5", prices))
    asked = len(server.received)
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        assert connection.execute(change).rowcount
    with pytest.raises(InputFileError, match=r"; restore the file$"):
        resume_sweep(folder)
    assert len(server.received) == asked


def test_a_start_that_was_killed_before_its_manifest_can_be_repeated_with_other_terms(tmp_path, server, prices):
    folder = tmp_path / "out"
    start_sweep(suite(server), folder, SpendingLimits(0, prices))
    for path in folder.iterdir():
        if path.name not in (DATABASE, ".lock"):
            path.unlink()
    found = start_sweep(suite(server), folder, SpendingLimits(prices=prices))
    assert found.complete
    assert found.spending.cap_usd is None


@pytest.mark.parametrize("tokens", [1 << 63, 10**30])
def test_a_server_that_counts_too_many_tokens_leaves_a_record(tmp_path, prices, tokens):
    """More than the database can hold: such a call counts with the most that it may have cost."""

    def absurd(received: Received) -> Answer:
        good = answers_as("calculator")(received)
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        return replace(good, body=json.dumps({**json.loads(good.body), "usage": usage}).encode())

    with ModelServer(absurd) as server:
        found = start_sweep(suite(server), tmp_path / "out", SpendingLimits("4.5", prices))
    assert not found.complete
    assert 0 < found.spending.unconfirmed_usd == found.spending.spent_usd <= 4.5
    resume_sweep(tmp_path / "out")
