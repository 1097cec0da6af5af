"""Inspect as a driver: replies come in, Inspect's own `eval` carries them, and what its log holds goes out.

Nothing of Inspect is imported before it is used, so that this can be imported where it is not installed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.lacuna.models.model import Model, Reply
from eirkit.lacuna.runs.suite import Suite
from eirkit.records.database import FinishedRun, SweepWriter
from eirkit.records.events import Event, encode_events
from eirkit.records.runs import RunRecord
from tests.bridges.driving import Saying

needs_inspect = pytest.mark.skipif(
    find_spec("inspect_ai") is None, reason="Inspect is not installed; `make session NAME=inspect` brings it"
)
# Inspect's own code and that of its dependencies warns about things that are not ours to mend.
their_warnings = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning", "ignore::FutureWarning"
)


def evaluate(folder: Path, model: Model | str, **options: Any) -> Any:
    """Evaluate the task with a model of ours and return Inspect's log, as its own reader gives it."""
    from inspect_ai import eval as evaluate_tasks
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import get_model

    from eirkit_bridges.inspect_ai import lacuna

    asked = get_model(f"eirkit/{model if isinstance(model, str) else 'reference/calculator'}", memoize=False)
    if not isinstance(model, str):
        asked.api.model = model
    limits = {name: options.pop(name) for name in ("token_limit", "time_limit", "solver") if name in options}
    (log,) = evaluate_tasks(
        lacuna(**options),
        model=asked,
        log_dir=str(folder),
        display="none",
        log_realtime=False,
        fail_on_error=False,
        **limits,
    )
    return read_eval_log(log.location, resolve_attachments=True)


def events_of(sample: Any) -> list[dict[str, Any]]:
    """Return the events in a sample's store, with the texts that its model events hold, and without why replies ended.

    Inspect states an end for every reply, and our own agents state none.
    """
    calls = iter([event for event in sample.events if event.event == "model"])
    found = []
    for event in sample.store["eirkit:events"]:
        if event["type"] == "exchange":
            call = next(calls)
            message = call.output.message
            event = {**event, "prompt": call.input[-1].text, "reply": message.text}
            event.pop("finish", None)
            if message.tool_calls:
                event["calls"] = [{"name": c.function, "arguments": c.arguments} for c in message.tool_calls]
        found.append(event)
    return found


def by_inspect(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    """Drive a suite of one run, and leave the folder of a run with what Inspect's log holds of it.

    A run is named after its model, which Inspect calls otherwise; that name alone is put right.
    """
    (grid,) = suite.grids
    options = {name: values[0] for name, values in grid.axes.items() if name != "model"}
    ((cell, _),) = suite.plan()
    log = evaluate(folder / "logs", Saying(said), **options, seeds=list(grid.seeds), protocol=cell.options.protocol)
    (sample,) = log.samples
    assert sample.error is None, sample.error
    record = sample.store["eirkit:run"]
    named = {record["cell"]: cell.id, record["setting"]["model"]: cell.model}
    record, *events = (_renamed(one, named) for one in (record, *events_of(sample)))
    run = FinishedRun(msgspec.convert(record, RunRecord), encode_events(msgspec.convert(events, list[Event])))
    with SweepWriter(folder / "out") as writer:
        writer.add([run], durable=False)
    return folder / "out"


def _renamed(document: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    text = json.dumps(document)
    for name, other in names.items():
        text = text.replace(name, other)
    renamed: dict[str, Any] = json.loads(text)
    return renamed
