"""Inspect logs: `.eval`, a zip of a header and one file for each sample, and the older single JSON file.

A log comes in; one run for each sample and epoch goes out. Of a log that was never finished the journal takes the
place of the header. The turns are the sample's messages; where a context was compacted, or only events were kept, the
events of the model and its tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.building import (
    begins_with_info,
    items_of,
    mapping_of,
    number_of,
    skipped,
    string_of,
    whole_document,
)
from eirkit.vestige.formats.inspect_samples import has_session, sample_turns
from eirkit.vestige.source import Document, Skipped
from eirkit.vestige.trajectory import Recording, formats

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_HEADERS = ("header.json", "_journal/start.json")
_LOG_KEYS = (b'"eval"', b'"status"', b'"run_id"', b'"version"')


@formats.add("inspect")
class Inspect:
    """Logs of Inspect."""

    run_per_member = "samples/"  # in an archive

    def recognises(self, document: Document) -> bool:
        """True for an archive with a header and samples, or for an object with an evaluation's facts at the top."""
        head = document.head
        if begins_with_info(head):
            return False
        if head.startswith(b"PK"):
            try:
                inside = {_inner(document, member) for member in document.members()}
            except InputFileError:
                return False
            return any(header in inside for header in _HEADERS) and any(map(_is_sample_or_journal, inside))
        return head.lstrip()[:1] == b"{" and all(key in head for key in _LOG_KEYS)

    def read(self, document: Document) -> Iterator[Recording | Skipped]:
        """Yield the samples one at a time."""
        if not document.head.startswith(b"PK"):
            yield from _read_json_log(document)
            return
        try:
            members = {_inner(document, member): member for member in document.members()}
        except InputFileError as error:
            yield skipped(document, error)
            return
        header: Mapping[str, Any] = {}
        for name in _HEADERS:
            found = whole_document(members[name]) if name in members and not header else header
            if isinstance(found, Skipped):
                yield found
            else:
                header = found
        samples = [member for name, member in members.items() if name.startswith("samples/")]
        for member in samples:
            sample = whole_document(member)
            yield sample if isinstance(sample, Skipped) else _run(member, header, sample)
        if not samples:
            yield skipped(document, "holds no sample; there is nothing to analyse")


def _read_json_log(document: Document) -> Iterator[Recording | Skipped]:
    log = whole_document(document)
    if isinstance(log, Skipped):
        yield log
        return
    samples: Sequence[Any] = log["samples"] if isinstance(log.get("samples"), list) else ()
    for number, sample in enumerate(samples, 1):
        if isinstance(sample, dict):
            yield _run(document, log, sample, str(number))
        else:
            yield skipped(document, "is no sample; restore the log", str(number))
    if not samples:
        yield skipped(document, "holds no sample; there is nothing to analyse")


def _is_sample_or_journal(name: str) -> bool:
    return name.startswith(("samples/", "_journal/"))


def _inner(document: Document, member: Document) -> str:
    return member.source.removeprefix(f"{document.source}:")


def _run(
    document: Document, header: Mapping[str, Any], sample: Mapping[str, Any], place: str = ""
) -> Recording | Skipped:
    try:
        return _recording(document, header, sample, f"{document.source}:{place}" if place else document.source)
    except InputFileError as error:
        return skipped(document, error, place)


def _recording(document: Document, header: Mapping[str, Any], sample: Mapping[str, Any], source: str) -> Recording:
    evaluation = mapping_of(header.get("eval"))
    prompt, turns = sample_turns(sample)
    sample_id, epoch = string_of(sample.get("id")) or document.name, string_of(sample.get("epoch")) or "1"
    log_id = string_of(evaluation.get("eval_id")) or string_of(evaluation.get("task_id"))
    scores = {name: mapping_of(score).get("value") for name, score in mapping_of(sample.get("scores")).items()}
    reward = next(filter(_is_number, map(_grade, scores.values())), None)
    usage = mapping_of(sample.get("model_usage"))
    return Recording(
        run_id="/".join(filter(None, (log_id, sample_id, epoch))),
        task_id=sample_id,
        format="inspect",
        source=source,
        turns=turns,
        model=string_of(evaluation.get("model")) or next(iter(usage), ""),
        reward=reward,
        resolved=None if reward is None else reward >= 1,
        prompt=prompt,
        exit_status=_ending(sample),
        details={
            "evaluation": string_of(evaluation.get("task")),
            "scores": scores,
            "model_usage": usage,
            "error": string_of(mapping_of(sample.get("error")).get("message")),
            "keeps_folder": has_session(sample),  # its other shells start every command anew
        },
    )


def _grade(value: object) -> float | None:
    return _GRADES.get(value) if isinstance(value, str) else number_of(value)


def _is_number(value: float | None) -> bool:
    return value is not None


def _ending(sample: Mapping[str, Any]) -> str:
    if sample.get("error"):
        return "error"
    limit = string_of(mapping_of(sample.get("limit")).get("type"))
    if limit:
        return f"{limit} limit"
    choices = items_of(mapping_of(sample.get("output")).get("choices"))
    return string_of(choices[0].get("stop_reason")) if choices else ""
