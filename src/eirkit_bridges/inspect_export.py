"""Exports the runs of an `eirkit lacuna run` folder as Inspect logs, one `.eval` file for each cell.

A run becomes a sample with its messages and model events, its scores with causes, and the whole record in its store.
Inspect's own code writes the logs, so Inspect can read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.findings.statistics import deviation, mean
from eirkit.lacuna.runs.cells import cell_of
from eirkit.lacuna.runs.manifest import SECOND, Manifest, read_manifest, start_time
from eirkit.lacuna.runs.store import RUNS, is_unused_folder, read_events, scan_runs
from eirkit.packages import load_vendor

Record = Mapping[str, Any]
FEATURE, EXTRA = "writing Inspect logs", "inspect"
EVENTS, RECORD = "eirkit:events", "eirkit:run"  # in the store of a sample, as the solvers of inspect_ai.py leave them


def export_logs(folder: Path, out: Path) -> tuple[dict[Path, int], int]:
    """Write the logs of finished runs; return the number of samples in each, and of runs that are not finished.

    Raises:
        UsageError: the output folder is not empty, or the sweep has no finished run.
        MissingExtraError: Inspect is not installed.
    """
    log = load_vendor("inspect_ai.log", FEATURE, EXTRA)
    manifest = read_manifest(folder)
    if not is_unused_folder(out):
        raise UsageError(f"{out} is not empty; choose another --out")
    begun = datetime.fromtimestamp(start_time(folder) // SECOND, UTC)
    cells, missing = finished_runs(folder, manifest)
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for cell, records in cells.items():
        path = out / f"{begun:%Y-%m-%dT%H-%M-%S}+00-00_lacuna_{cell}.eval"
        log.write_eval_log(_log(log, folder, manifest, records, begun), str(path))
        written[path] = len(records)
    return written, missing


def finished_runs(folder: Path, manifest: Manifest) -> tuple[dict[str, list[Record]], int]:
    """Return the finished runs of each cell, also of a sweep whose writer was killed, and how many others are planned.

    Raises:
        UsageError: no run is finished.
    """
    cells: dict[str, list[Record]] = {}
    for record, _ in scan_runs(folder / RUNS) if (folder / RUNS).is_file() else ():
        cells.setdefault(cell_of(record), []).append(record)
    if not cells:
        raise UsageError(f"{folder} holds no finished run; finish it with `eirkit lacuna run --resume {folder}`")
    return cells, manifest.runs - sum(map(len, cells.values()))


def _log(log: Any, folder: Path, manifest: Manifest, records: Sequence[Record], begun: datetime) -> Any:
    first = records[0]
    samples = [_Sampling(log, manifest, record, begun).sample(folder) for record in records]
    took = sum(record["usage"]["latency_seconds"] for record in records)
    ids = list(dict.fromkeys(sample.id for sample in samples))
    access = {name: value for name, value in first["access"].items() if value is not None}
    return log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            eval_id=cell_of(first),
            run_id=manifest.suite_sha256[:22],
            created=begun.isoformat(),
            task="eirkit/lacuna",
            task_id=cell_of(first),
            task_args={**first["task"], **access},
            solver="eirkit/controlled" if first["access"]["condition"] == "controlled" else "eirkit/managed",
            dataset=log.EvalDataset(name=first["task"]["workload"], samples=len(ids), sample_ids=ids),
            model=first["model"],
            model_args=first["settings"]["extra"],
            config=log.EvalConfig(epochs=max(sample.epoch for sample in samples)),
            packages={"eirkit": manifest.eirkit},
        ),
        plan=log.EvalPlan(),
        results=_results(log, records),
        stats=log.EvalStats(
            started_at=begun.isoformat(),
            completed_at=(begun + timedelta(seconds=took)).isoformat(),
            model_usage={first["model"]: _usage([record["usage"] for record in records])},
        ),
        samples=samples,
    )


def _results(log: Any, records: Sequence[Record]) -> Any:
    values = [scores_of(record) for record in records]
    columns: dict[str, list[float]] = {"accuracy": [accuracy for accuracy, _ in values]}
    for name in values[0][1]:
        columns[name] = [counts[name] for _, counts in values]
    scores = [
        log.EvalScore(
            name=name,
            scorer="accuracy" if name == "accuracy" else "causes",
            scored_samples=len(records),
            metrics=_metrics(log, column),
        )
        for name, column in columns.items()
    ]
    return log.EvalResults(total_samples=len(records), completed_samples=len(records), scores=scores)


def _metrics(log: Any, column: Sequence[float]) -> dict[str, Any]:
    found = {"mean": mean(column) or 0.0}
    if len(column) > 1:  # the sample deviation that Inspect uses, from the population deviation
        found["stderr"] = (deviation(column) or 0.0) / (len(column) - 1) ** 0.5
    return {name: log.EvalMetric(name=name, value=value) for name, value in found.items()}


def scores_of(record: Record) -> tuple[float, dict[str, float]]:
    """Return the accuracy and the counts of a run, under the names that the bridge's scorers use."""
    score = record["score"]
    steps = max(1, score["steps"])
    counts = {
        **{str(cause): float(count) for cause, count in score["errors"].items()},
        "missed_steps": float(score["missed"]),
        "final_correct": float(score["final_correct"]),
        "answered": score["answered"] / steps,
        "reads": float(score["reads"]),
        "recomputations": float(score["recomputations"]),
    }
    return score["correct"] / steps, counts


class _Sampling:
    """Builds the sample of one run."""

    def __init__(self, log: Any, manifest: Manifest, record: Record, begun: datetime) -> None:
        self.log, self.manifest, self.record, self.begun = log, manifest, record, begun
        self.inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
        self.happened = load_vendor("inspect_ai.event", FEATURE, EXTRA)
        self.tools = load_vendor("inspect_ai.tool", FEATURE, EXTRA)
        self.scorer = load_vendor("inspect_ai.scorer", FEATURE, EXTRA)
        self.seconds = 0.0  # since the run began
        self.rules = manifest.rules.get(record["rules_sha256"], "")

    def sample(self, folder: Path) -> Any:
        record, task = self.record, self.record["task"]
        events = read_events(folder, record["events"])
        said = [event for event in events if event["type"] == "exchange"]
        calls = [self._model_event(event, number) for number, event in enumerate(said, 1)]
        accuracy, counts = scores_of(record)
        score = self.scorer.Score
        told = f"{record['score']['correct']} of {record['score']['steps']} steps; ended: {record['ending']}"
        return self.log.EvalSample(
            id=f"{task['workload']}-n{task['n']}-m{task['m']}-fan{task['fan_in']}-seed{record['seed']}",
            epoch=1 + record.get("repeat", {}).get("number", 0),
            input=f"{task['workload']}: {task['n']} steps, dependency window {task['m']}, seed {record['seed']}",
            target="",
            messages=self._messages(events, calls),
            output=calls[-1].output if calls else self.inspect.ModelOutput(),
            scores={
                "accuracy": score(value=accuracy, explanation=told, metadata={"run": record["run"]}),
                "causes": score(value=counts),
            },
            metadata={"spec": {**task, "seed": record["seed"]}, "fingerprint": record["fingerprint"]},
            store={RECORD: dict(record), EVENTS: [self._bare(event) for event in events]},
            events=calls,
            model_usage={record["model"]: _usage([record["usage"]])},
            started_at=self.begun.isoformat(),
            completed_at=(self.begun + timedelta(seconds=self.seconds)).isoformat(),
            total_time=self.seconds,
            working_time=self.seconds,
            uuid=record["run"],
        )

    def _bare(self, event: Record) -> dict[str, Any]:
        """Return an event without the texts, which the messages of the sample hold already."""
        return {name: value for name, value in event.items() if name not in ("prompt", "reply", "calls")}

    def _model_event(self, event: Record, number: int) -> Any:
        record = self.record
        asked = [*self._system(), self.inspect.ChatMessageUser(content=_text(event, "prompt"), id=f"{number}-asked")]
        calls = [
            self.tools.ToolCall(f"call_{number}_{place}", call["name"], call["arguments"])
            for place, call in enumerate(event.get("calls", ()), 1)
        ]
        message = self.inspect.ChatMessageAssistant(
            content=_text(event, "reply"),
            tool_calls=calls or None,
            model=record["model"],
            source="generate",
            id=f"{number}-said",
        )
        choice = self.inspect.ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
        output = self.inspect.ModelOutput(
            model=record["model"], choices=[choice], usage=_usage([event]), time=event["latency_seconds"]
        )
        start = self.begun + timedelta(seconds=self.seconds)
        self.seconds += event["latency_seconds"]
        return self.happened.ModelEvent(
            uuid=f"{record['run']}-{number}",
            timestamp=start,
            working_start=self.seconds - event["latency_seconds"],
            model=record["model"],
            input=asked,
            tools=[],
            tool_choice="auto",
            config=self.inspect.GenerateConfig(max_tokens=record["settings"]["max_tokens"]),
            output=output,
            completed=self.begun + timedelta(seconds=self.seconds),
            working_time=event["latency_seconds"],
        )

    def _system(self) -> list[Any]:
        return [self.inspect.ChatMessageSystem(content=self.rules, id="rules")] if self.rules else []

    def _messages(self, events: Sequence[Record], calls: Sequence[Any]) -> list[Any]:
        messages, waiting, made = self._system(), [], iter(calls)
        for event in events:
            if event["type"] == "exchange":
                call = next(made)
                messages += [call.input[-1], call.output.message]
                waiting = list(call.output.message.tool_calls or ())
            elif event["type"] == "action" and waiting:
                one = waiting.pop(0)
                messages.append(
                    self.inspect.ChatMessageTool(
                        content=event["detail"], tool_call_id=one.id, function=one.function, id=f"{one.id}-done"
                    )
                )
        return messages


def _text(event: Record, name: str) -> str:
    """Return a text of an event, or its hash if the sweep stored no texts."""
    return str(event[name]) if name in event else f"(not stored; sha256 {event[f'{name}_sha256']})"


def _usage(counted: Sequence[Record]) -> Any:
    """Return summed counts; Inspect's input tokens exclude cached ones, ours include them."""
    kind = load_vendor("inspect_ai.model", FEATURE, EXTRA).ModelUsage
    inputs, outputs, cached = (
        sum(usage[name] for usage in counted) for name in ("input_tokens", "output_tokens", "cached_tokens")
    )
    return kind(
        input_tokens=inputs - cached,
        output_tokens=outputs,
        total_tokens=inputs + outputs,
        input_tokens_cache_read=cached,
    )
