"""LACUNA in Inspect: the task as its command line runs it, its scores, our runs as its logs. `session inspect`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.cli import run as run_command_line
from eirkit.errors import UsageError, install_command
from eirkit.lacuna.models.model import Reply, Usage
from eirkit.records.database import DATABASE, FinishedRun, SweepDatabase, SweepWriter
from eirkit.records.events import ModelExchange
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.trajectory import Recording
from eirkit_bridges.inspect_export import finished_runs, shown_text
from tests.bridges.driving import Saying, record_script, stored_events, stored_runs, suite_of, telemetry, timeless
from tests.bridges.inspect_driving import evaluate, events_of, needs_inspect, their_warnings
from tests.processes import completed

HAS_INSPECT = find_spec("inspect_ai") is not None
pytestmark = their_warnings
TASK = {"workload": "stepwise-sum", "n": 12, "m": 4, "h": 2}
CONDITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "controlled": ("calculator", {}),
    "controlled under LRU": ("calculator", {"policy": "lru"}),
    "recovery": ("recoverer", {"condition": "lru", "b": 6}),
    "tools": ("recoverer", {"condition": "kv", "protocol": "tools"}),
    "summaries": ("recoverer", {"condition": "compaction", "context_tokens": 64}),
    "memory": ("recoverer", {"memory": "key-value"}),
}


def sweep(folder: Path, agent: str, **options: Any) -> Path:
    """Run the native loop."""
    given = [
        f"--{name.replace('_', '-')}" if value is True else f"--{name.replace('_', '-')}={value}"
        for name, value in {**TASK, **options}.items()
    ]
    arguments = ["lacuna", "run", *given, "--seeds", "0:3", "--model", f"reference/{agent}", "--out", str(folder)]
    assert run_command_line(arguments) == 0
    return folder


def as_json(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return msgspec.json.decode(msgspec.json.encode(value))


def nameless(value: Any, *keys: str) -> Any:
    """Leave out how long things took and what a run is called after its model."""
    return {key: item for key, item in timeless(value).items() if key not in ("run", "cell", "setting", *keys)}


@needs_inspect
@pytest.mark.parametrize("name", CONDITIONS)
def test_the_same_agent_leaves_the_same_answers_in_inspect_and_in_the_native_loop(name, tmp_path):
    agent, options = CONDITIONS[name]
    native = sweep(tmp_path / "native", agent, **options)
    log = evaluate(tmp_path / "logs", f"reference/{agent}", **TASK, **options, seeds="0:3")
    assert log.status == "success"
    runs = stored_runs(native)
    assert len(runs) == len(log.samples) == 3
    for record, sample in zip(runs, log.samples, strict=True):
        # What a reply costs is known of our own agents, and nobody knows it of a model that Inspect asks.
        events = as_json(stored_events(native, record))
        own = [nameless(event, "cost_usd") for event in events]
        assert [nameless(event, "cost_usd") for event in events_of(sample)] == own
        assert nameless(sample.store["eirkit:run"], "usage") == nameless(as_json(record), "usage")
        assert record.score is not None
        assert sample.scores["accuracy"].value == record.score.accuracy
        causes = {cause: sample.scores["causes"].value[cause] for cause in record.score.errors}
        assert causes == record.score.errors


@needs_inspect
def test_the_metrics_are_means_over_samples(tmp_path):
    log = evaluate(tmp_path, "reference/guesser", **TASK, seeds="0:4")
    by_name = {score.name: score.metrics for score in log.results.scores}
    values = [sample.scores["accuracy"].value for sample in log.samples]
    assert by_name["accuracy"]["mean"].value == pytest.approx(sum(values) / 4)
    assert {"state_supply", "computation", "cascade", "missed_steps"} <= set(by_name)


@needs_inspect
def test_the_model_sees_the_session_and_nothing_else(tmp_path):
    log = evaluate(tmp_path, "reference/calculator", **TASK, seeds="0")
    (sample,) = log.samples
    calls = [event for event in sample.events if event.event == "model"]
    assert len(calls) == 12
    for call in calls:
        assert [message.role for message in call.input] == ["system", "user"]
        shown = "\n".join(message.text for message in call.input)
        assert "seed" not in shown
        assert shown.count("A_") <= 2 + 2 + 1  # two retained records, two references, and the rules


@needs_inspect
@pytest.mark.parametrize("limit", [{"token_limit": 500}, {"time_limit": 1}], ids=["tokens", "time"])
def test_a_limit_of_inspect_leaves_a_record_of_how_far_the_run_came(limit, tmp_path):
    class Costly:
        """Each reply takes a hundred tokens and a quarter of a second."""

        async def reply(self, request: Any) -> Any:
            await asyncio.sleep(0.25)
            return Reply("ANSWER 1 0", usage=Usage(90, 10))

        async def close(self) -> None:
            pass

        def settings(self) -> dict[str, Any]:
            return {}

    log = evaluate(tmp_path, Costly(), **TASK, seeds="0", **limit)
    (sample,) = log.samples
    assert f"{sample.limit.type}_limit" in limit
    assert sample.error is None, sample.error
    run = sample.store["eirkit:run"]
    assert run["ending"] == "limit"
    assert 0 < run["score"]["answered"] + run["score"]["kinds"].get("protocol", 0) < 12
    assert run["score"]["kinds"]["unreached"] > 0


@needs_inspect
def test_a_model_that_fails_is_an_error_and_never_a_score(tmp_path):
    class Broken:
        async def reply(self, request: Any) -> Any:
            raise ValueError("out of order")

        async def close(self) -> None:
            pass

        def settings(self) -> dict[str, Any]:
            return {}

    log = evaluate(tmp_path, Broken(), **TASK, seeds="0")
    (sample,) = log.samples
    assert "out of order" in sample.error.message
    assert not sample.scores


@needs_inspect
def test_another_solver_is_told_what_the_scorer_needs(tmp_path):
    from inspect_ai.solver import generate

    log = evaluate(tmp_path, Saying([Reply("hello")]), **TASK, seeds="0", solver=generate())
    assert "use the solver eirkit/controlled or eirkit/managed" in log.samples[0].error.message


def inspect(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("inspect")
    environment = {**os.environ, "NO_COLOR": "1", "INSPECT_DISPLAY": "plain", "COLUMNS": "200"}
    return completed([str(command), *arguments], cwd=cwd, env=environment)


@needs_inspect
def test_the_command_line_finds_the_task_and_our_models(tmp_path):
    options = ["-T", "workload=stepwise-sum", "-T", "h=2", "-T", "n=8", "-T", "m=4", "-T", "seeds=0,4"]
    done = inspect(
        "eval", "eirkit/lacuna", *options, "--model", "eirkit/reference/calculator", "--log-dir", "logs", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (tmp_path / "logs").glob("*.eval")
    runs = list(read_corpus([path]))
    assert [run.task_id for run in runs] == [f"stepwise-sum-n8-m4-fan2-seed{seed}" for seed in (0, 4)]
    assert [len(run.turns) for run in runs] == [8, 8]
    assert all(isinstance(run, Recording) and run.reward is not None for run in runs)


@needs_inspect
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-T", "hh=3"], "did you mean 'h'?"),
        (["-T", "workload=stepwise-summ"], "did you mean 'stepwise-sum'?"),
        (["-T", "condition=lru", "-T", "policy=lru"], "a policy needs condition"),
    ],
)
def test_wrong_options_are_told_without_a_traceback(options, said, tmp_path):
    done = inspect("eval", "eirkit/lacuna", *options, "--model", "eirkit/reference/calculator", cwd=tmp_path)
    assert done.returncode != 0
    told = " ".join((done.stdout + done.stderr).split())
    assert said in told
    assert "Traceback" not in told


@needs_inspect
@pytest.mark.parametrize("name", ["controlled", "tools", "memory"])
def test_runs_become_logs_that_inspect_reads_and_vestige_too(name, tmp_path):
    from inspect_ai.log import list_eval_logs, read_eval_log

    agent, options = CONDITIONS[name]
    native = sweep(tmp_path / "native", agent, **options)
    assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / "logs")]) == 0
    (listed,) = list_eval_logs(str(tmp_path / "logs"))
    log = read_eval_log(listed)
    assert (log.status, log.eval.task, log.eval.model) == ("success", "eirkit/lacuna", f"reference/{agent}")
    records = stored_runs(native)
    evaluated = evaluate(tmp_path / "evaluated", f"reference/{agent}", **TASK, **options, seeds="0:3")
    for record, ours, theirs in zip(records, log.samples, evaluated.samples, strict=True):
        assert ours.id == theirs.id
        assert ours.scores["accuracy"].value == theirs.scores["accuracy"].value
        assert ours.scores["causes"].value == theirs.scores["causes"].value
        assert [(m.role, m.text) for m in ours.messages] == [(m.role, m.text) for m in theirs.messages]
        assert len([event for event in ours.events if event.event == "model"]) == record.usage.calls
    own = {score.name: score.metrics["mean"].value for score in log.results.scores}
    other = {score.name: score.metrics["mean"].value for score in evaluated.results.scores}
    assert own == pytest.approx(other)
    spread = {score.name: score.metrics["stderr"].value for score in log.results.scores}
    assert spread == pytest.approx({score.name: score.metrics["stderr"].value for score in evaluated.results.scores})
    runs = list(read_corpus([tmp_path / "logs"]))
    assert [len(run.turns) for run in runs] == [record.usage.calls for record in records]


@needs_inspect
def test_exporting_twice_gives_the_same_samples_and_a_used_folder_is_refused(tmp_path, capsys):
    native = sweep(tmp_path / "native", "calculator")
    for name in ("a", "b"):
        assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / name), "--json"]) == 0
    (first,), (second,) = ((tmp_path / name).glob("*.eval") for name in ("a", "b"))
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as two:
        assert one.namelist() == two.namelist()
        assert all(one.read(name) == two.read(name) for name in one.namelist() if name.startswith("samples/"))
    assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / "a")]) == 2
    assert "is not empty; choose another --out" in capsys.readouterr().err


def test_replies_that_are_kept_are_exported_also_where_they_have_no_text(tmp_path):
    record_script(suite_of(model_options={"protocol": "tools"}), tmp_path / "native", calls=True)
    (run,) = stored_runs(tmp_path / "native")
    exchanges = [event for event in stored_events(tmp_path / "native", run) if isinstance(event, ModelExchange)]
    assert any(exchange.reply == "" for exchange in exchanges)
    for exchange in exchanges:
        assert shown_text(exchange.reply, exchange.reply_sha256) == exchange.reply


@needs_inspect
def test_a_sweep_without_texts_still_becomes_a_log(tmp_path):
    native = sweep(tmp_path / "native", "calculator", no_texts=True)
    assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / "logs")]) == 0
    assert telemetry(native)
    (run, *_) = read_corpus([tmp_path / "logs"])
    assert run.turns[0].text.startswith("(not stored; sha256 ")


def test_of_a_killed_sweep_what_is_finished_is_exported_and_the_rest_counted(tmp_path):
    native = sweep(tmp_path / "native", "calculator")
    with SweepDatabase(native) as database:
        assert sum(map(len, finished_runs(database).values())) == 3
    keep_runs(native, 1)
    with SweepDatabase(native) as database:
        assert sum(map(len, finished_runs(database).values())) == 1
    keep_runs(native, 0)  # killed before the first run ended
    with (
        SweepDatabase(native) as database,
        pytest.raises(UsageError, match="holds no finished run; finish it with `eirkit lacuna run --resume "),
    ):
        finished_runs(database)


def keep_runs(folder: Path, count: int) -> None:
    """Leave what a sweep has that was killed after some runs."""
    with SweepWriter(folder) as writer:
        runs = list(writer.records())[:count]
        lines = [writer.event_lines(run.run) for run in runs]
    (folder / DATABASE).unlink()
    with SweepWriter(folder) as writer:
        writer.add([FinishedRun(run, own) for run, own in zip(runs, lines, strict=True)], durable=False)


@needs_inspect
def test_an_export_says_how_many_runs_it_lacks(tmp_path, capsys):
    native = sweep(tmp_path / "native", "calculator")
    keep_runs(native, 1)
    assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / "logs")]) == 0
    assert "Left out: 2 planned run" in capsys.readouterr().out


@pytest.mark.skipif(HAS_INSPECT, reason="the extra is installed here")
def test_without_the_extra_it_says_what_to_install(tmp_path, capsys):
    native = sweep(tmp_path / "native", "calculator")
    assert run_command_line(["export", "inspect", str(native), "--out", str(tmp_path / "logs")]) == 2
    assert install_command("inspect") in capsys.readouterr().err


def test_the_entry_point_is_there_and_loads_nothing_by_itself():
    (point,) = [point for point in entry_points(group="inspect_ai") if point.name == "eirkit"]
    assert point.value == "eirkit_bridges.inspect_ai"
    code = "import eirkit.cli, sys; print(json.dumps([n for n in sys.modules if n.startswith('inspect_ai')]))"
    done = completed([sys.executable, "-c", f"import json; {code}"], check=True)
    assert json.loads(done.stdout) == []
