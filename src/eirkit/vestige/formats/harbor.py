"""Trial folders of Harbor, as Terminal-Bench 2 leaves them: `result.json` is the run, all else there belongs to it.

The turns come from `agent/trajectory.json` in ATIF with its continuations, or from `agent/episodes`, one request and
response of the model in each; task, model, reward and the agent's end come from the result and the verifier's files.
A job's own `result.json`, which sums up its trials, is no run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.atif import Atif
from eirkit.vestige.formats.building import is_own_file, mapping_of, number_of, skipped, string_of, whole_document
from eirkit.vestige.formats.harbor_episodes import take_episodes
from eirkit.vestige.source import Document, Limits, Skipped, open_document
from eirkit.vestige.trajectory import Recording, formats

_RESULT = "result.json"
_JOB_FILES = frozenset({_RESULT, "config.json", "job.log", "lock.json", "metrics.json", "report.html"})
_REWARD_LIMITS = Limits(document_bytes=1 << 16)


@formats.add("harbor")
class Harbor:
    """Trial folders, told by their result."""

    def recognises(self, document: Document) -> bool:
        """True for the result of a trial."""
        return document.name == _RESULT and _is_trial(document.head)

    def claims(self, folder: Path, names: Sequence[str]) -> Collection[str]:
        """Return everything beside a trial's result, and the files that sum up a job."""
        if _RESULT not in names:
            return ()
        try:
            head = open_document(folder / _RESULT).head
        except InputFileError:
            return ()
        if _is_trial(head):
            return [name for name in names if name != _RESULT]
        return [name for name in names if name in _JOB_FILES] if _is_job(head) else ()

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the trial's run, then its sub-agents."""
        result = whole_document(document)
        if isinstance(result, Skipped):
            yield result
        elif document.parent is None:
            yield skipped(document, "is a trial inside an archive, apart from its other files; unpack the archive")
        else:
            yield from _trial(document, document.parent, result)


def _is_trial(head: bytes) -> bool:
    marks = (b'"trial_name"', b'"agent_result"', b'"verifier_result"', b'"agent_info"')
    return head.lstrip()[:1] == b"{" and b'"task_name"' in head and any(mark in head for mark in marks)


def _is_job(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"n_total_trials"' in head and b'"stats"' in head


def _trial(document: Document, folder: Path, result: Mapping[str, Any]) -> Iterator[Recording | Skipped]:
    run: Recording | None = None
    for found in _agents_logs(document, folder):
        if isinstance(found, Skipped):
            yield found
        elif run is None:
            run = _with_outcome(found, document, folder, result)
            yield run
        else:
            yield _under(run, found)
    if run is None:
        yield skipped(document, "has no turns in agent/trajectory.json or agent/episodes; leave the trial out")


def _under(run: Recording, helper: Recording) -> Recording:
    """Return a sub-agent as a run of its own; the trial's outcome is not its."""
    own = helper.run_id.removeprefix(str(run.details["session"])).lstrip("/")
    parent = string_of(helper.details.get("parent_run")).removeprefix(str(run.details["session"])).lstrip("/")
    return replace(
        helper,
        run_id=f"{run.run_id}/{own}",
        task_id=run.task_id,
        format="harbor",
        source=run.source,
        details={**helper.details, "parent_run": f"{run.run_id}/{parent}".rstrip("/")},
    )


def _agents_logs(document: Document, folder: Path) -> Iterator[Recording | Skipped]:
    trajectory = folder / "agent" / "trajectory.json"
    if is_own_file(trajectory, folder):
        source = f"{document.source.removesuffix(document.name)}agent/trajectory.json"
        yield from Atif().read(open_document(trajectory, source=source))
    else:
        yield from take_episodes(document, folder)


def _with_outcome(run: Recording, document: Document, folder: Path, result: Mapping[str, Any]) -> Recording:
    reward = _reward(result, folder)
    task, trial = string_of(result.get("task_name")), string_of(result.get("trial_name")) or folder.name
    return replace(
        run,
        run_id=trial,
        task_id=task or trial,
        format="harbor",
        source=document.source,
        model=_model(result) or run.model,
        reward=reward,
        resolved=None if reward is None else reward >= 1,
        exit_status=string_of(mapping_of(result.get("exception_info")).get("exception_type")),
        details={**run.details, "session": run.run_id, "agent_result": _totals(result)},
    )


def _reward(result: Mapping[str, Any], folder: Path) -> float | None:
    verified = mapping_of(result.get("verifier_result"))
    rewards = mapping_of(verified.get("rewards"))
    stated = number_of(rewards.get("reward", verified.get("reward")))
    if stated is None and len(rewards) == 1:
        stated = number_of(next(iter(rewards.values())))
    return _reward_on_disk(folder) if stated is None else stated


def _reward_on_disk(folder: Path) -> float | None:
    path = folder / "verifier" / "reward.txt"
    if not is_own_file(path, folder):
        return None
    try:
        return number_of(float(open_document(path, _REWARD_LIMITS).text().strip()))
    except (InputFileError, ValueError):
        return None


def _model(result: Mapping[str, Any]) -> str:
    informed = mapping_of(mapping_of(result.get("agent_info")).get("model_info"))
    configured = mapping_of(mapping_of(result.get("config")).get("agent"))
    return string_of(informed.get("name")) or string_of(configured.get("model_name"))


def _totals(result: Mapping[str, Any]) -> dict[str, float]:
    counts = mapping_of(result.get("agent_result"))
    totals = {name: number_of(counts.get(name)) for name in ("n_input_tokens", "n_output_tokens", "cost_usd")}
    return {name: value for name, value in totals.items() if value is not None}
