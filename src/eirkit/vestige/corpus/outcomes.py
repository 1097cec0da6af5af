"""Reads which tasks were resolved from the result files of evaluations (`--outcomes`).

Supported: SWE-bench reports of one instance or of a whole run, lists of instances, leaderboards' lists of resolved
names, OpenHands' `output.swebench_eval.md`, and CSV or JSON lines of `instance_id` and `resolved`.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import NAMED, ReadLimits, Skipped, StoredDocument, open_document
from eirkit.vestige.sources.folders import find_documents
from eirkit.vestige.sources.streams import open_file

LIMITS = ReadLimits(document_bytes=1 << 28)
_PEEK_BYTES = 4096
_LINES = (".jsonl", ".ndjson")
_NAME_KEYS = ("run_id", "instance_id", "task_id")
# How reports begin, which is cheap to check in every file beside the runs.
_MARKS = (
    b'"resolved_ids"',
    b'"resolved_instances"',
    b'"submitted_instances"',
    b'"total_instances"',
    b'"no_generation"',
)
_USUAL_NAMES = frozenset(
    {"results.json", "report.json", "results.csv", "results.jsonl", "outcomes.csv", "outcomes.jsonl"}
)
_REPORT_ENDING = "swebench_eval.md"
_SECTION = re.compile(r"#++ ++(.*)")
_ITEM = re.compile(r"^[-*] +\[?([\w.-]+__[\w.-]+)")
_ANSWERS = {"resolved instances": True, "unresolved instances": False, "empty patch instances": False}
_WORDS = {"true": True, "1": True, "yes": True, "resolved": True}
_DENIALS = {"false": False, "0": False, "no": False, "unresolved": False, "": None}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes that result files give for tasks and runs."""

    known: Mapping[str, bool] = field(default_factory=dict)
    others: bool | None = None  # for names not listed: a list of resolved names implies that the rest failed

    def get(self, *names: str) -> bool | None:
        """Return the outcome under the first name that is known; None if unknown."""
        return next((self.known[name] for name in names if name in self.known), self.others)


class OutcomesBeside:
    """The result files beside runs or in a folder above them, up to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: dict[Path, Outcomes] = {}
        self._above: tuple[Path | None, list[Path]] = (None, [])  # the folder asked about last, and those above it

    def get(self, folder: Path | None, *names: str) -> bool | None:
        """Return what the nearest result file says about a run in a folder."""
        if folder != self._above[0]:
            self._above = folder, list(self._places(folder))
        for place in self._above[1]:
            if place not in self._found:
                self._found[place] = _merge(map(_read_quietly, _reports_in(place)))
            outcome = self._found[place].get(*names)
            if outcome is not None:
                return outcome
        return None

    def files(self, folder: Path | None) -> Iterator[Path]:
        """Yield the result files that `get` reads for runs in a folder."""
        for place in self._places(folder):
            yield from (report.path for report in _reports_in(place) if isinstance(report.path, Path))

    def _places(self, folder: Path | None) -> Iterator[Path]:
        top = self.root.parent
        while folder is not None and folder.is_relative_to(top):
            yield folder
            if folder in (top, folder.parent):
                return
            folder = folder.parent


def outcomes_within(archive: StoredDocument) -> Outcomes:
    """Return what the result files in an archive say; they are found by their usual names."""
    return _merge(_read_quietly(member) for member in archive.all_members() if _has_usual_name(member.name))


def read_outcomes(path: Path) -> Outcomes:
    """Return the outcomes in a file, or in all result files in a folder and below it.

    Raises:
        InputFileError: the file is missing, damaged, or of no known shape.
    """
    reports = _reports_at(path)
    outcomes = _merge(map(_read_quietly, reports)) if path.is_dir() else _read(reports[0]) or Outcomes()
    if not outcomes.known and outcomes.others is None:
        raise InputFileError(
            f"{path} holds no outcomes; give a SWE-bench report, or CSV or JSON lines of instance_id and resolved"
        )
    return outcomes


def damage_in(path: Path) -> Iterator[Skipped]:
    """Yield what could not be read of the outcomes in a file or a folder."""
    for report in _reports_at(path):
        try:
            yield from damaged_rows(report)
        except InputFileError as error:
            yield Skipped(report.source, str(error).removeprefix(report.source).lstrip(": "))


def damage_beside(paths: Sequence[Path]) -> Iterator[Skipped]:
    """Yield what could not be read of the result files beside the given path; those below it are read with it."""
    for folder in dict.fromkeys(path.parent for path in paths):
        reports = [] if any(folder.is_relative_to(path) for path in paths) else _reports_in(folder)
        for report in reports:
            if report.path not in paths and _read_quietly(report) is not None:
                yield from damaged_rows(report)


def damaged_rows(report: StoredDocument) -> Iterator[Skipped]:
    """Yield the damaged rows of a result file, and how many more there are."""
    damaged = 0
    for number, row in _numbered(report):
        if isinstance(row, Exception):
            damaged += 1
            if damaged <= NAMED:
                yield Skipped(f"{report.source}:{number}", str(row))
    if damaged > NAMED:
        yield Skipped(report.source, f"{damaged - NAMED:,} more rows are damaged; the first {NAMED} are named")


def holds_outcomes(document: StoredDocument) -> bool:
    """Return whether a document is a result file and not a run."""
    return _may_be_report(document) and _read(document) is not None


def _reports_at(path: Path) -> list[StoredDocument]:
    if not path.is_dir():
        return [open_document(path, LIMITS)]
    found = find_documents([path], LIMITS)
    return [each for each in found if isinstance(each, StoredDocument) and _may_be_report(each)]


def _may_be_report(document: StoredDocument) -> bool:
    if _has_usual_name(document.name):
        return True
    return document.name.endswith(".json") and any(mark in document.head[:_PEEK_BYTES] for mark in _MARKS)


def _has_usual_name(name: str) -> bool:
    return name in _USUAL_NAMES or name.endswith(_REPORT_ENDING)


def _reports_in(folder: Path) -> Iterator[StoredDocument]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        if _has_usual_name(name) or _begins_like_report(folder / name):
            yield open_document(folder / name, LIMITS)


def _begins_like_report(path: Path) -> bool:
    if path.suffix != ".json" or path.name.endswith(".traj.json"):
        return False
    try:
        with open_file(path, path.name) as stream:
            beginning = stream.read(_PEEK_BYTES)
    except (InputFileError, OSError):
        return False
    return any(mark in beginning for mark in _MARKS)


def _merge(several: Iterable[Outcomes | None]) -> Outcomes:
    """Return all that is known; where two files disagree, the outcome is unknown."""
    known: dict[str, bool] = {}
    doubtful: set[str] = set()
    others: bool | None = None
    for outcomes in filter(None, several):
        doubtful |= {name for name, outcome in outcomes.known.items() if known.get(name, outcome) != outcome}
        known |= outcomes.known
        others = outcomes.others if others is None else others
    return Outcomes({name: outcome for name, outcome in known.items() if name not in doubtful}, others)


def _read_quietly(document: StoredDocument) -> Outcomes | None:
    # Damage is reported elsewhere; here a damaged file gives no outcome.
    try:
        return _read(document)
    except InputFileError:
        return None


def _read(document: StoredDocument) -> Outcomes | None:
    if document.name.endswith(".md"):
        return _from_markdown(document.text())
    if document.name.endswith((".csv", ".tsv")):
        text = document.text()
        delimiter = "\t" if document.name.endswith(".tsv") else ","
        try:
            return _from_rows(list(csv.DictReader(StringIO(text, newline=""), delimiter=delimiter)))
        except csv.Error as error:
            raise InputFileError(f"{document.source}: not CSV ({error}); restore it") from error
    if document.name.endswith(_LINES) or document.is_parquet:
        return _from_rows(row for _, row in _numbered(document))
    return _from_json(document.json())


def _numbered(document: StoredDocument) -> Iterator[tuple[int, object]]:
    """Yield the rows of a file with their numbers; an exception stands for a damaged row."""
    if document.name.endswith(_LINES):
        yield from document.lines()
    elif document.is_parquet:
        yield from document.rows()


def _from_json(value: Any) -> Outcomes | None:
    if isinstance(value, list):
        return _from_rows(value)
    if not isinstance(value, dict):
        return None
    if "resolved_ids" in value:
        refuted = (*_names(value.get("unresolved_ids")), *_names(value.get("empty_patch_ids")))
        return Outcomes({**dict.fromkeys(refuted, False), **dict.fromkeys(_names(value["resolved_ids"]), True)})
    if isinstance(value.get("resolved"), list):
        return Outcomes(dict.fromkeys(_names(value["resolved"]), True), others=False)
    if isinstance(value.get("instances"), list | dict):
        return _from_json(value["instances"]) if "instances" not in value["instances"] else None
    return _from_mapping(value)


def _from_mapping(value: Mapping[str, Any]) -> Outcomes | None:
    if isinstance(value.get("resolved"), bool):
        return _from_rows([value])
    known = {}
    for name, report in value.items():
        outcome = report.get("resolved") if isinstance(report, dict) else report
        if isinstance(outcome, bool):
            known[name] = outcome
        elif not isinstance(report, dict):
            return None  # a settings file in which some value happens to be true
    return Outcomes(known) if known else None


def _from_rows(rows: Iterable[Any]) -> Outcomes | None:
    known = {}
    for row in rows:
        if isinstance(row, dict):
            name = next((row[key] for key in _NAME_KEYS if isinstance(row.get(key), str)), None)
            outcome = _outcome(row.get("resolved"))
            if name is not None and outcome is not None:
                known[name] = outcome
    return Outcomes(known) if known else None


def _from_markdown(text: str) -> Outcomes | None:
    known, answer = {}, None
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            answer = _ANSWERS.get(section[1].rstrip(" ").lower())
        item = _ITEM.match(line)
        if item and answer is not None:
            known[item[1]] = answer
    return Outcomes(known) if known else None


def _outcome(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int | float) else ""
    return _WORDS.get(word, _DENIALS.get(word))


def _names(value: Any) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()
