"""Checks the archive of a reproduction: every file, every score from its transcript, every figure from the scores.

Replies and what memory systems returned are played again through the session of their run, so that a changed answer,
score or figure is found even where its checksum was written anew. Runs without texts are scored again only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eirkit.errors import EirkitError, InputFileError, UntrustedError
from eirkit.paper.archive import ARCHIVE, SCHEMA
from eirkit.paper.figure_rows import RecordedModels
from eirkit.paper.model_runs import FOLDER, model_findings
from eirkit.paper.page import DOCUMENT
from eirkit.paper.page import SCHEMA as REPRODUCTION
from eirkit.paper.rederivation import stated_wrongly, written_otherwise
from eirkit.paper.run_measures import PaperRunIndex
from eirkit.paper.study import Study, StudyRow
from eirkit.records import read_document
from eirkit.runs.journal import Journal, read_journal
from eirkit.runs.replay import check_runs
from eirkit.runs.store import RUNS, changed_files

UNPAID = "its calls or their cost are not those of the ledger"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and what is wrong."""

    files: int
    runs: int
    replayed: int
    rows: int
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def verify_archive(folder: Path, find: Callable[[str], Study], *, plugins: bool = False) -> Verification:
    """Check an archive.

    Args:
        find: returns the study with an id.
        plugins: whether code that its records name may be run, and files be opened.

    Raises:
        InputFileError: the folder is no archive, or its list is damaged.
        UntrustedError: its records name code or a file, and `plugins` does not allow it.
    """
    if not (folder / ARCHIVE).is_file():
        raise InputFileError(f"{folder} has no {ARCHIVE}; give the folder of `eirkit reproduce`")
    document = read_document(folder / ARCHIVE, SCHEMA)
    problems = [*changed_files(folder, ARCHIVE, document["files"]), *stated_wrongly(folder, document, find)]
    runs = replayed = 0
    for path in sorted(folder.rglob(RUNS)):
        found, again, wrong = _runs(path, path.relative_to(folder).as_posix(), plugins)
        runs, replayed, problems = runs + found, replayed + again, [*problems, *wrong]
    rows, wrong = _rows(folder, document["settings"], find)
    problems += wrong
    if not problems:
        problems += written_otherwise(folder, document, find, _given(folder, document["settings"]))
    return Verification(len(document["files"]), runs, replayed, rows, tuple(problems))


def _given(folder: Path, settings: Mapping[str, Any]) -> RecordedModels | None:
    if not settings.get("models"):
        return None
    return RecordedModels(PaperRunIndex(folder / FOLDER), settings["models"], settings["seeds"], settings["memories"])


def _runs(path: Path, name: str, plugins: bool) -> tuple[int, int, list[str]]:
    """Play every run of a file again, or score it again where its replies were not kept."""
    count = replayed = 0
    problems = []
    try:
        journal = read_journal(path.parent) or Journal()
        for record, was_played, wrong in check_runs(path, plugins=plugins):
            count, replayed = count + 1, replayed + was_played
            problems += [f"{name}: run {record['run']}: {one}" for one in wrong]
            problems += [] if _is_paid(record, journal) else [f"{name}: run {record['run']}: {UNPAID}"]
    except UntrustedError:
        raise
    except (EirkitError, KeyError, TypeError, ValueError, OSError) as error:
        problems.append(f"{name}: cannot be read: {str(error) or type(error).__name__}")
    return count, replayed, problems


def _is_paid(record: Mapping[str, Any], journal: Journal) -> bool:
    """True if the ledger has the calls of a run and what they cost; calls at a kill may have been paid for twice."""
    usage, paid = record["usage"], journal.of_run(record["run"])
    if not usage.get("cost_usd"):
        return True
    calls = sum(attempt.usage["calls"] for attempt in paid)
    usd = sum(amount for attempt in paid for amount in attempt.usd.values())
    needed, cost = usage["calls"] - usage["cache_hits"], usage["cost_usd"]
    return bool(calls >= needed and float(usd) >= cost - 1e-9)


def _rows(folder: Path, settings: Mapping[str, Any], find: Callable[[str], Study]) -> tuple[int, list[str]]:
    """Compute every figure of recorded runs again and compare it with the one of the document."""
    try:
        document = read_document(folder / DOCUMENT, REPRODUCTION)
        stated = {study["id"]: study["rows"] for study in document["studies"]}
    except (InputFileError, KeyError, TypeError) as error:
        return 0, [f"{DOCUMENT}: cannot be read: {error}"]
    if (given := _given(folder, settings)) is None:
        return 0, []
    count, problems = 0, []
    for name in settings["compared"]:
        again = model_findings(find(name), given, only_present=bool(settings.get("from"))).rows
        rows = [row for row in stated.get(name, []) if row["figure"]]
        count += len(again)
        if len(rows) != len(again):
            problems.append(f"{DOCUMENT}: {name}: {len(rows)} figures, where the records have {len(again)}")
        problems += [
            f"{DOCUMENT}: {name}: {row['label']} does not follow from the records"
            for row, mine in zip(rows, again, strict=False)
            if not _equal(row, mine)
        ]
    return count, problems


def _equal(row: Mapping[str, Any], again: StudyRow) -> bool:
    """True if a stated row is the one that the records give, as far as it follows from them."""
    mine = asdict(again)
    return all(row.get(name) == mine[name] for name in mine if name not in ("source", "same_as"))
