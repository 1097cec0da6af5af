"""Checks the archive of a reproduction: every file, every score from its transcript, every figure from the scores.

Replies and what memory systems returned are played again through the session of their run, so that a changed answer,
score or figure is found even where its checksum was written anew. Runs without texts are scored again only.

The archive is also written again from its records and kept findings, as somebody who changes a page, a table or the
list of versions can write the checksums anew; what follows from the records cannot be changed without them. Findings of
theory and simulation are taken as they were kept: they have no records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit import __version__
from eirkit.errors import EirkitError, InputFileError, UntrustedError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.journal import Journal, read_journal
from eirkit.lacuna.runs.manifest import FILE, PLAN_SCHEMA, plan_facts, prompt_facts
from eirkit.lacuna.runs.replay import check_runs
from eirkit.lacuna.runs.store import RUNS, archived_files, changed_files
from eirkit.lacuna.runs.values import show_seeds
from eirkit.records.lines import read_document
from eirkit.report.exports import FIGURES
from eirkit_paper.archive import ARCHIVE, CITATION, CROISSANT, ROWS, SCHEMA, write_derived
from eirkit_paper.model_runs import FOLDER, ModelSetting, RecordedModels, model_findings, takes_models
from eirkit_paper.page import DOCUMENT, PAGE, write_overview, write_study
from eirkit_paper.page import SCHEMA as REPRODUCTION
from eirkit_paper.run_measures import PaperRunIndex
from eirkit_paper.runner import KEPT, StudyOutcome, source_digest
from eirkit_paper.runner import SCHEMA as STUDY
from eirkit_paper.study import Findings, Setting, Study, StudyRow, findings_from

UNPAID = "its calls or their cost are not those of the ledger"
LIST = "studies.md"
IN_MANIFEST = {
    *("schema", "command", "settings", "plan_sha256", "cells", "runs", "prompt_sha256", "rules"),
    *("prices_sha256", "sources", "eirkit", "python", "platform", "dependencies", "passages", "crc32"),
}
ALWAYS = (PAGE, DOCUMENT, LIST, ROWS, CITATION, CROISSANT)


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


def stated_wrongly(folder: Path, archive: Mapping[str, Any], find: Callable[[str], Study]) -> Iterator[str]:
    """Yield what an archive says about itself that its other files do not say."""
    if (then := archive.get("eirkit")) != __version__:
        yield f"{ARCHIVE}: made with eirkit {then}, and this is {__version__}; check it with that version"
    elif archive.get("source_sha256") != source_digest():
        yield f"{ARCHIVE}: made with another source of eirkit {__version__}; check it with the one that made it"
    settings = archive["settings"]
    try:
        document = read_document(folder / DOCUMENT, REPRODUCTION)
    except InputFileError as error:
        yield f"{DOCUMENT}: cannot be read: {error}"
        return
    if archive.get("studies") != [study["id"] for study in document["studies"]]:
        yield f"{ARCHIVE}: its studies are not those of {DOCUMENT}"
    wanted = [name for name in archive.get("studies", []) if settings.get("models") and takes_models(find(name))]
    if not settings.get("from") and sorted(settings["compared"]) != sorted(wanted):
        yield f"{ARCHIVE}: the studies that it compares with models are not those that it has"
    if settings.get("data") is not None and not any(find(name).kind == "recorded" for name in archive["studies"]):
        yield f"{ARCHIVE}: it names data, and has no study of recorded runs"
    if settings.get("models") and settings["compared"] and not settings.get("from"):
        yield from _manifest(folder, archive, find)


def _manifest(folder: Path, archive: Mapping[str, Any], find: Callable[[str], Study]) -> Iterator[str]:
    """Yield what the manifest of the runs says that does not follow from the models, studies and seeds."""
    name, settings = f"{FOLDER}/{FILE}", archive["settings"]
    try:
        manifest = read_document(folder / name, PLAN_SCHEMA)
    except InputFileError as error:
        yield f"{name}: cannot be read: {error}"
        return
    if manifest.get("eirkit") != archive.get("eirkit"):
        yield f"{name}: made with eirkit {manifest.get('eirkit')}, the archive with {archive.get('eirkit')}"
    for part in ("python", "platform", "dependencies"):
        if manifest.get(part) != archive.get(part):
            yield f"{name}: its {part} is not that of {ARCHIVE}"
    stated = {part: settings.get(part) for part in ("models", "memories", "options")}
    stated |= {"seeds": show_seeds(settings["seeds"]), "studies": settings["compared"]}
    for part, value in stated.items():
        if manifest["settings"].get(part) != value:
            yield f"{name}: its {part} are not those of {ARCHIVE}"
    if settings.get("study_seeds") not in (None, stated["seeds"]):
        yield f"{ARCHIVE}: the seeds of its studies are not those of its models"
    try:
        given = (tuple(settings["models"]), ModelOptions(**settings["options"]), settings["seeds"])
        plan = ModelSetting(*given, tuple(settings["memories"])).plan([find(one) for one in settings["compared"]])
    except (EirkitError, TypeError, ValueError) as error:
        yield f"{ARCHIVE}: its settings cannot be read: {error}"
        return
    if more := sorted(manifest.keys() - IN_MANIFEST):
        yield f"{name}: it has {', '.join(more)}, which no manifest has"
    names_code = any(":" in model for model in settings["models"])
    planned = plan_facts(plan) | ({} if names_code else prompt_facts(plan))
    for part, value in planned.items():
        if manifest.get(part) != value:
            yield f"{name}: its {part} is not that of the models, studies and seeds of {ARCHIVE}"


def written_otherwise(
    folder: Path, archive: Mapping[str, Any], find: Callable[[str], Study], given: RecordedModels | None
) -> Iterator[str]:
    """Yield the files that are not what their records and findings give, and those that nothing gives."""
    outcomes = [StudyOutcome(find(name), _findings(folder, archive, find(name), given)) for name in archive["studies"]]
    is_whole = all(one.findings is not None for one in outcomes)
    with TemporaryDirectory() as name:
        again = Path(name)
        for outcome in outcomes:
            write_study(outcome, again, None)
        if is_whole:
            write_overview(outcomes, again)
            write_derived(again, outcomes, folder)
        made = {path.relative_to(again).as_posix(): path.read_bytes() for path in archived_files(again, ARCHIVE)}
    yield from (f"{file}: is missing" for file in ALWAYS if not (folder / file).is_file())
    for file, content in made.items():
        if (folder / file).is_file() and (folder / file).read_bytes() != content:
            yield f"{file}: does not follow from the records and findings"
    studies = {one.study.id for one in outcomes}
    for path in archived_files(folder, ARCHIVE):
        place = path.relative_to(folder)
        is_drawn = place.parts[0] in studies and place.suffix.lstrip(".") in FIGURES
        is_known = place.parts[0] in (FOLDER, KEPT) or place.as_posix() in (*ALWAYS, *made) or is_drawn
        if not is_known and (is_whole or place.parts[0] not in studies):
            yield f"{place.as_posix()}: is no part of a reproduction"


def _findings(folder: Path, archive: Mapping[str, Any], study: Study, given: RecordedModels | None) -> Findings | None:
    """Return what a study found, from recorded runs or as it was kept; None if neither is there."""
    settings = archive["settings"]
    more: Findings | None = None
    if given is not None and takes_models(study):
        more = model_findings(study, given, only_present=bool(settings.get("from")))
        if study.has_agents:
            return more
    path = folder / KEPT / f"{study.id}.json"
    if path.is_file():
        try:
            kept = findings_from(read_document(path, STUDY)["findings"])
        except (InputFileError, KeyError, TypeError):
            return None
    elif study.kind == "recorded" and settings.get("data") is None:
        kept = study.run(Setting())
    else:
        return None
    return kept if more is None else replace(kept, rows=(*kept.rows, *more.rows))
