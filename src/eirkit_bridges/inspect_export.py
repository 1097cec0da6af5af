"""Exports the runs of an `eirkit lacuna run` folder as Inspect logs, one `.eval` file for each cell.

A run becomes a sample with its messages and model events, its scores with causes, and the whole record in its store.
Inspect's own code writes the logs, so Inspect can read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from eirkit.errors import UsageError
from eirkit.lacuna.findings.statistics import deviation, mean
from eirkit.lacuna.runs.manifest import SECOND, read_manifest, start_time
from eirkit.lacuna.runs.store import is_unused_folder
from eirkit.packages import load_vendor
from eirkit.records.database import SweepDatabase
from eirkit.records.events import ActionTaken, Event, ModelExchange
from eirkit.records.runs import RunRecord, RunScore, RunUsage
from eirkit.records.settings import AnyTask, Task
from eirkit.records.sweeps import Manifest

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
    written = {}
    with SweepDatabase(folder) as database:
        cells = finished_runs(database)
        out.mkdir(parents=True, exist_ok=True)
        for cell, records in cells.items():
            path = out / f"{begun:%Y-%m-%dT%H-%M-%S}+00-00_lacuna_{cell}.eval"
            log.write_eval_log(_log(log, database, manifest, records, begun), str(path))
            written[path] = len(records)
    return written, manifest.runs - sum(written.values())


def finished_runs(database: SweepDatabase) -> dict[str, list[RunRecord]]:
    """Return the finished runs of each cell, also of a sweep whose writer was killed.

    Raises:
        UsageError: no run is finished.
    """
    cells: dict[str, list[RunRecord]] = {}
    for record in database.records():
        cells.setdefault(record.pooled_cell, []).append(record)
    if not cells:
        folder = database.folder
        raise UsageError(f"{folder} holds no finished run; finish it with `eirkit lacuna run --resume {folder}`")
    return cells


def _log(log: Any, database: SweepDatabase, manifest: Manifest, records: Sequence[RunRecord], begun: datetime) -> Any:
    first, setting = records[0], records[0].setting
    samples = [_Sampling(log, manifest, record, begun).sample(database.events(record.run)) for record in records]
    took = sum(record.usage.latency_seconds for record in records)
    ids = list(dict.fromkeys(sample.id for sample in samples))
    access = {name: value for name, value in msgspec.to_builtins(setting.access).items() if value is not None}
    return log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            eval_id=first.pooled_cell,
            run_id=manifest.plan_sha256[:22],
            created=begun.isoformat(),
            task="eirkit/lacuna",
            task_id=first.pooled_cell,
            task_args={**msgspec.to_builtins(setting.task), **access},
            solver="eirkit/controlled" if setting.access.is_controlled else "eirkit/managed",
            dataset=log.EvalDataset(name=setting.task.workload, samples=len(ids), sample_ids=ids),
            model=setting.model,
            model_args=setting.settings.extra,
            config=log.EvalConfig(epochs=max(sample.epoch for sample in samples)),
            packages={"eirkit": manifest.eirkit},
        ),
        plan=log.EvalPlan(),
        results=_results(log, [record.score for record in records if record.score is not None]),
        stats=log.EvalStats(
            started_at=begun.isoformat(),
            completed_at=(begun + timedelta(seconds=took)).isoformat(),
            model_usage={setting.model: _usage([record.usage for record in records])},
        ),
        samples=samples,
    )


def _results(log: Any, found: Sequence[RunScore]) -> Any:
    counted = [counts_of(score) for score in found]
    columns: dict[str, list[float]] = {"accuracy": [score.accuracy for score in found]}
    for name in counted[0] if counted else ():
        columns[name] = [counts[name] for counts in counted]
    scores = [
        log.EvalScore(
            name=name,
            scorer="accuracy" if name == "accuracy" else "causes",
            scored_samples=len(found),
            metrics=_metrics(log, column),
        )
        for name, column in columns.items()
    ]
    return log.EvalResults(total_samples=len(found), completed_samples=len(found), scores=scores)


def _metrics(log: Any, column: Sequence[float]) -> dict[str, Any]:
    found = {"mean": mean(column) or 0.0}
    if len(column) > 1:  # the sample deviation that Inspect uses, from the population deviation
        found["stderr"] = (deviation(column) or 0.0) / (len(column) - 1) ** 0.5
    return {name: log.EvalMetric(name=name, value=value) for name, value in found.items()}


def counts_of(score: RunScore) -> dict[str, float]:
    """Return the counts of a run, under the names that the bridge's scorers use."""
    return {
        **{str(cause): float(count) for cause, count in score.errors.items()},
        "missed_steps": float(score.missed),
        "final_correct": float(score.final_correct),
        "answered": score.answered_fraction,
        "reads": float(score.reads),
        "recomputations": float(score.recomputations),
    }


class _Sampling:
    """Builds the sample of one run."""

    def __init__(self, log: Any, manifest: Manifest, record: RunRecord, begun: datetime) -> None:
        self.log, self.manifest, self.record, self.begun = log, manifest, record, begun
        self.inspect = load_vendor("inspect_ai.model", FEATURE, EXTRA)
        self.happened = load_vendor("inspect_ai.event", FEATURE, EXTRA)
        self.tools = load_vendor("inspect_ai.tool", FEATURE, EXTRA)
        self.scorer = load_vendor("inspect_ai.scorer", FEATURE, EXTRA)
        self.seconds = 0.0  # since the run began
        self.rules = manifest.rules.get(record.rules_sha256, "")

    def sample(self, events: Sequence[Event]) -> Any:
        record, task = self.record, self.record.setting.task
        exchanges = [event for event in events if isinstance(event, ModelExchange)]
        calls = [self._model_event(event, number) for number, event in enumerate(exchanges, 1)]
        return self.log.EvalSample(
            id=f"{task.label}-seed{record.seed}",
            epoch=1 if record.setting.repeat is None else 1 + record.setting.repeat.number,
            input=f"{_described(task)}, seed {record.seed}",
            target="",
            messages=self._messages(events, calls),
            output=calls[-1].output if calls else self.inspect.ModelOutput(),
            scores=self._scores(),
            metadata={"spec": {**msgspec.to_builtins(task), "seed": record.seed}, "fingerprint": record.fingerprint},
            store={RECORD: msgspec.to_builtins(record), EVENTS: msgspec.to_builtins([*map(without_texts, events)])},
            events=calls,
            model_usage={record.setting.model: _usage([record.usage])},
            started_at=self.begun.isoformat(),
            completed_at=(self.begun + timedelta(seconds=self.seconds)).isoformat(),
            total_time=self.seconds,
            working_time=self.seconds,
            uuid=record.run,
        )

    def _scores(self) -> dict[str, Any]:
        record, found = self.record, self.record.score
        if found is None:
            return {}
        told = f"{found.correct} of {found.steps} steps; ended: {record.ending}"
        return {
            "accuracy": self.scorer.Score(value=found.accuracy, explanation=told, metadata={"run": record.run}),
            "causes": self.scorer.Score(value=counts_of(found)),
        }

    def _model_event(self, event: ModelExchange, number: int) -> Any:
        run, model = self.record.run, self.record.setting.model
        prompt = shown_text(event.prompt, event.prompt_sha256)
        asked = [*self._system(), self.inspect.ChatMessageUser(content=prompt, id=f"{number}-asked")]
        calls = [
            self.tools.ToolCall(f"call_{number}_{place}", call.name, call.arguments)
            for place, call in enumerate(event.calls, 1)
        ]
        message = self.inspect.ChatMessageAssistant(
            content=shown_text(event.reply, event.reply_sha256),
            tool_calls=calls or None,
            model=model,
            source="generate",
            id=f"{number}-said",
        )
        choice = self.inspect.ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
        output = self.inspect.ModelOutput(
            model=model, choices=[choice], usage=_usage([event]), time=event.latency_seconds
        )
        start = self.begun + timedelta(seconds=self.seconds)
        self.seconds += event.latency_seconds
        return self.happened.ModelEvent(
            uuid=f"{run}-{number}",
            timestamp=start,
            working_start=self.seconds - event.latency_seconds,
            model=model,
            input=asked,
            tools=[],
            tool_choice="auto",
            config=self.inspect.GenerateConfig(max_tokens=self.record.setting.settings.max_tokens),
            output=output,
            completed=self.begun + timedelta(seconds=self.seconds),
            working_time=event.latency_seconds,
        )

    def _system(self) -> list[Any]:
        return [self.inspect.ChatMessageSystem(content=self.rules, id="rules")] if self.rules else []

    def _messages(self, events: Sequence[Event], calls: Sequence[Any]) -> list[Any]:
        messages, waiting, made = self._system(), [], iter(calls)
        for event in events:
            if isinstance(event, ModelExchange):
                call = next(made)
                messages += [call.input[-1], call.output.message]
                waiting = list(call.output.message.tool_calls or ())
            elif isinstance(event, ActionTaken) and waiting:
                asked = waiting.pop(0)
                messages.append(
                    self.inspect.ChatMessageTool(
                        content=event.detail, tool_call_id=asked.id, function=asked.function, id=f"{asked.id}-done"
                    )
                )
        return messages


def without_texts(event: Event) -> Event:
    """Return an event without the texts, which the messages of the sample hold already."""
    return replace(event, prompt=None, reply=None, calls=()) if isinstance(event, ModelExchange) else event


def shown_text(text: str | None, digest: str | None) -> str:
    """Return a text of an event, or its hash if the sweep stored no texts."""
    return f"(not stored; sha256 {digest})" if text is None else text


def _usage(counted: Iterable[RunUsage | ModelExchange]) -> Any:
    """Return summed counts; Inspect's input tokens exclude cached ones, ours include them."""
    kind = load_vendor("inspect_ai.model", FEATURE, EXTRA).ModelUsage
    counts = [(usage.input_tokens, usage.output_tokens, usage.cached_tokens) for usage in counted]
    inputs, outputs, cached = map(sum, zip(*counts, strict=True))
    return kind(
        input_tokens=inputs - cached,
        output_tokens=outputs,
        total_tokens=inputs + outputs,
        input_tokens_cache_read=cached,
    )


def _described(task: AnyTask) -> str:
    if isinstance(task, Task):
        return f"{task.workload}: {task.n} steps, dependency window {task.m}"
    return f"{task.workload}: {task.questions} questions, {task.preset}"
