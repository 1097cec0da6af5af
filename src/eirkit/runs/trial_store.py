"""The folder of an evidence command: what was asked for, every trial that came to its end, and what came of it.

Trials go in as they end and are read back when the same command is given the same folder again, so that one that was
killed goes on where it was. The files are those of a sweep.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from eirkit.agents.exchange import canonical
from eirkit.agents.model import ModelOptions
from eirkit.agents.serving.scrubbing import Scrubber
from eirkit.agents.telemetry import Trace, trace_of
from eirkit.errors import ModelError, UsageError
from eirkit.records import read_document, write_document
from eirkit.runs.attempt import usage_record
from eirkit.runs.event_lines import event_lines
from eirkit.runs.manifest import FILE, prices_sha256, refuse_secrets, sources_of, surroundings
from eirkit.runs.store import RUNS, SUMMARY, FinishedRun, RunStore, is_untouched, read_events, scan_runs
from eirkit.runs.trial import Result, Trial

SCHEMA = "evidence/1"


class TrialStore:
    """Keeps trials in a folder; use it in a with statement.

    Args:
        command: what the folder is for.
        settings: everything that decides which trials there are, as plain data.
        names: workloads, models and policies, among them files whose content is noted.

    Raises:
        UsageError: when it is entered: the folder holds something else, or was begun otherwise.
    """

    def __init__(
        self,
        folder: Path,
        command: str,
        settings: Mapping[str, Any],
        *,
        names: Iterable[str | None] = (),
        prices: Path | None = None,
    ) -> None:
        self.folder, self.command, self.settings = folder, command, settings
        self._manifest = {
            "command": command,
            "settings": settings,
            "sources": sources_of(names),
            "prices_sha256": prices_sha256(prices),
            **surroundings(),
        }
        self._store = RunStore(folder)
        self._kept: dict[str, Mapping[str, Any]] = {}  # run records by id
        self._scrub = Scrubber.of_environment(os.environ)

    def __enter__(self) -> TrialStore:
        refuse_secrets("the command", self._manifest["settings"], os.environ)
        _refuse_other(self.folder, self._manifest)
        self._store.__enter__()
        try:
            if not (self.folder / FILE).exists():
                write_document(self.folder / FILE, SCHEMA, self._manifest)
            complete = set(self._store.recover())
        except BaseException:
            self._store.__exit__(None, None, None)
            raise
        found = (record for record, _ in scan_runs(self.folder / RUNS))
        self._kept = {record["run"]: record for record in found if record["run"] in complete}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.__exit__(kind, error, trace)

    def find(self, model: str, options: ModelOptions, trial: Trial) -> Trace | None:
        record = self._kept.get(run_id(model, options, trial))
        return None if record is None else trace_of(read_events(self.folder, record["events"]), record["ending"])

    def keep(self, model: str, options: ModelOptions, trial: Trial, result: Result) -> None:
        run, task = run_id(model, options, trial), trial.session.task.spec
        where = {"run": run, "seed": task.seed, "model": model}
        if isinstance(result, Trace):
            how = {"settings": options.asked(), "trial": dict(trial.what), "rules": _rules(result)}
            usage = usage_record(result, result.exchanges)
            record = {**where, **how, "ending": result.ending, "usage": usage}
            finished = FinishedRun(record, event_lines(result, run), len(result.log))
            self._store.commit([finished], durable=bool(usage["cost_usd"] or usage["input_tokens"]))
            return
        kind = result.kind if isinstance(result, ModelError) else "plug-in"
        lost = {"cell": self.command, "workload": task.workload, "condition": str(trial.what["evidence"])}
        self._store.fail({**where, **lost, "kind": kind, "message": self._scrub.excerpt(str(result))})

    def summarise(self, document: Mapping[str, Any]) -> None:
        """Write what the command says."""
        write_document(self.folder / SUMMARY, f"{self.command}/1", document)


def run_id(model: str, options: ModelOptions, trial: Trial) -> str:
    """Return a name that follows from everything that can change the record of a trial."""
    asked = {"model": model, "settings": options.asked(), **trial.what}
    return f"{sha256(canonical(asked)).hexdigest()[:12]}-{trial.session.task.spec.seed}"


def _rules(trace: Trace) -> str:
    """Return the system message, which events leave out because every request repeats it."""
    first = trace.exchanges[0].request.messages[0] if trace.exchanges else None
    return "" if first is None else first.content


def _refuse_other(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise UsageError where the folder holds anything but the beginning of this same command."""
    if not (folder / FILE).exists():
        if not is_untouched(folder):
            raise UsageError(f"{folder} holds something else; choose a new or empty --out")
        return
    then = read_document(folder / FILE, SCHEMA)
    for name in ("command", "settings", "sources", "eirkit"):
        if canonical({name: then.get(name)}) != canonical({name: manifest[name]}):
            raise UsageError(f"{folder} was begun with other {name}; repeat that command or choose another --out")
