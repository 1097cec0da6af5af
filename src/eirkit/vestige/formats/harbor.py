"""Reads trial folders of Harbor (Terminal-Bench 2): `result.json` is the run, and the other files belong to it.

The turns come from `agent/trajectory.json` in ATIF with its continuations, or from `agent/episodes` with one request
and response each; task, model, reward and the agent's end come from the result and the verifier's files. A job's own
`result.json`, which sums up its trials, is not a run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.atif import Atif
from eirkit.vestige.formats.messages import take_reply, take_results, text_of, usage_of
from eirkit.vestige.formats.run_builder import (
    RunBuilder,
    is_own_file,
    items_of,
    mapping_of,
    number_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.sources.documents import LogDocument, ReadLimits, Skipped, open_document
from eirkit.vestige.sources.members import Folder, path_within
from eirkit.vestige.trajectory import NAMED, Recording, formats

_EPISODE = re.compile(r"episode-([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")


def _episode_folders(trial: Folder) -> list[Folder]:
    """Return the folders of a trial's episodes in numerical order."""
    folder = trial / "agent" / "episodes"
    found = [path for path in _listed(folder) if _EPISODE.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.partition("-")[2]))


def _listed(folder: Folder) -> list[Folder]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def take_episodes(document: LogDocument, trial: Folder) -> Iterator[Recording | Skipped]:
    """Yield the unreadable parts of the episodes, then the run."""
    source = document.source.removesuffix(document.name)
    compactions = _compactions(trial, source)
    yield from (value for value in compactions if isinstance(value, Skipped))
    summaries = [_summary(mapping_of(value)) for value in compactions]
    builder, model, length = RunBuilder(), "", 0
    for folder in _episode_folders(trial):
        files = {
            name: _value(folder / f"{name}.json", source, trial) for name in ("request", "response", "tool-results")
        }
        yield from (value for value in files.values() if isinstance(value, Skipped))
        request, response = mapping_of(files["request"]), _message(mapping_of(files["response"]))
        messages = items_of(request.get("messages"))
        for message in messages[-2:]:  # results without a file of their own
            take_results(builder, message.get("content"), {})
        if not response:
            continue
        if 0 < len(messages) < length:
            builder.break_off("compaction")
            # The text of the first message of a compacted request, which is the summary.
            builder.carry(summaries.pop(0) if summaries else (text_of(messages[0].get("content")) if messages else ""))
        _take_prompt(builder, request, messages)
        length = len(messages) or length
        model = model or string_of(response.get("model")) or string_of(request.get("model"))
        builder.begin()
        take_reply(builder, response.get("content"))
        builder.use(usage_of(response.get("usage")))
        take_results(builder, _blocks(files["tool-results"]), {})
    if builder.turn_count:
        yield _recording(document, builder, model)


def _recording(document: LogDocument, builder: RunBuilder, model: str) -> Recording:
    return Recording(
        run_id=document.source,
        task_id="",
        format="harbor",
        source=document.source,
        turns=builder.turns(),
        model=model,
        prompt=builder.prompt,
    )


def _value(path: Folder, source: str, trial: Folder) -> object:
    """Return the content of a file, None if it does not exist, or why it cannot be read."""
    if not is_own_file(path, trial):
        return None
    label = f"{source}{path_within(path, trial)}"
    try:
        return open_document(path, source=label).json()
    except InputFileError as error:
        return Skipped(label, str(error).removeprefix(f"{label}: "))


def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the model's message, which may be wrapped in an object."""
    around = next((response[key] for key in ("response", "message") if isinstance(response.get(key), dict)), response)
    return response if "content" in response else mapping_of(around)


def _take_prompt(builder: RunBuilder, request: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> None:
    if not builder.turn_count:
        builder.hear(text_of(request.get("system")))
        for message in messages:
            builder.hear(text_of(message.get("content")))


def _blocks(results: object) -> object:
    """Return the results as a list, whether bare or inside an object or message."""
    if isinstance(results, dict):
        return next((results[key] for key in ("content", "results", "tool_results") if key in results), [results])
    return results


def _compactions(trial: Folder, source: str) -> list[object]:
    paths = [path for path in _listed(trial / "agent" / "compactions") if path.suffix == ".json"]
    return [_value(path, source, trial) for path in sorted(paths, key=_order)]


def _order(path: Folder) -> tuple[int, str]:
    found = _NUMBER.search(path.name)
    return int(found.group()) if found else 0, path.name


def _summary(compaction: Mapping[str, Any]) -> str:
    response = mapping_of(compaction.get("response"))
    places = (compaction.get("summary"), compaction.get("content"), response.get("content"), compaction.get("text"))
    return next(filter(None, map(text_of, places)), "")


_RESULT = "result.json"
_JOB_FILES = frozenset({_RESULT, "config.json", "job.log", "lock.json", "metrics.json", "report.html"})
_REWARD_LIMITS = ReadLimits(document_bytes=1 << 16)


@formats.add("harbor")
class Harbor:
    """Trial folders, identified by their result."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the document is the result of a trial."""
        return NAMED if document.name == _RESULT and _is_trial(document.head) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
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

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the trial's run, then its sub-agents."""
        result = whole_document(document)
        if isinstance(result, Skipped):
            yield result
        elif document.parent is None:
            yield skipped(
                document,
                "is a trial at an address, where its other files cannot be read; copy its folder here",
            )
        else:
            yield from _trial(document, document.parent, result)


def _is_trial(head: bytes) -> bool:
    marks = (b'"trial_name"', b'"agent_result"', b'"verifier_result"', b'"agent_info"')
    return head.lstrip()[:1] == b"{" and b'"task_name"' in head and any(mark in head for mark in marks)


def _is_job(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"n_total_trials"' in head and b'"stats"' in head


def _trial(document: LogDocument, folder: Folder, result: Mapping[str, Any]) -> Iterator[Recording | Skipped]:
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
    """Return a sub-agent as a run of its own, without the trial's outcome."""
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


def _agents_logs(document: LogDocument, folder: Folder) -> Iterator[Recording | Skipped]:
    trajectory = folder / "agent" / "trajectory.json"
    if is_own_file(trajectory, folder):
        source = f"{document.source.removesuffix(document.name)}agent/trajectory.json"
        yield from Atif().read(open_document(trajectory, source=source))
    else:
        yield from take_episodes(document, folder)


def _with_outcome(run: Recording, document: LogDocument, folder: Folder, result: Mapping[str, Any]) -> Recording:
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


def _reward(result: Mapping[str, Any], folder: Folder) -> float | None:
    verified = mapping_of(result.get("verifier_result"))
    rewards = mapping_of(verified.get("rewards"))
    stated = number_of(rewards.get("reward", verified.get("reward")))
    if stated is None and len(rewards) == 1:
        stated = number_of(next(iter(rewards.values())))
    return _reward_on_disk(folder) if stated is None else stated


def _reward_on_disk(folder: Folder) -> float | None:
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
