"""Checks the archive of a reproduction: every file, every score from its transcript, every figure from the scores.

Replies and what memory systems returned are played again through the session of their run, so that a changed answer,
score or figure is found even where its checksum was written anew. Runs without texts are scored again only.

The archive is also written again from its records and kept findings, as somebody who changes a page, a table or the
list of versions can write the checksums anew; what follows from the records cannot be changed without them. Findings of
theory and simulation are taken as they were kept: they have no records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import structs
from msgspec.structs import replace

from eirkit import __version__
from eirkit.errors import EirkitError, InputFileError, UntrustedError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import plan_sha256
from eirkit.lacuna.runs.manifest import describe
from eirkit.lacuna.runs.replay import Replays
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, read_struct
from eirkit.records.export import RUNS, read_money, read_runs
from eirkit.records.listing import listed_files
from eirkit.records.money import AttemptSpend
from eirkit.records.runs import RunRecord
from eirkit.records.sweeps import Manifest
from eirkit.report.exports import FIGURES
from eirkit.seeds import show_seeds
from eirkit_paper.archive import (
    ARCHIVE,
    CITATION,
    CROISSANT,
    RECORDS,
    ROWS,
    SCHEMA,
    Archive,
    ArchiveSettings,
    archived_files,
    changed_in,
    write_derived,
)
from eirkit_paper.model_runs import ModelSetting, ModelStudySettings, RecordedModels, model_findings, takes_models
from eirkit_paper.page import DOCUMENT, PAGE, Reproduction, write_overview, write_study
from eirkit_paper.page import SCHEMA as REPRODUCTION
from eirkit_paper.run_measures import PaperRunIndex
from eirkit_paper.runner import KEPT, KeptStudy, StudyOutcome, source_digest
from eirkit_paper.runner import SCHEMA as STUDY
from eirkit_paper.study import Findings, Setting, Study, StudyRow

UNPAID = "its calls or their cost are not those of the ledger"
LIST = "studies.md"
IN_MANIFEST = {"schema", *Manifest.__struct_fields__, "crc32"}
ALWAYS = (PAGE, DOCUMENT, LIST, ROWS, CITATION, CROISSANT)


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, and what is wrong."""

    files: int
    runs: int
    replayed: int
    rows: int
    problems: tuple[str, ...]


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
    document = read_struct(folder / ARCHIVE, SCHEMA, Archive)
    problems = [*changed_in(folder, document.files), *stated_wrongly(folder, document, find)]
    runs = replayed = 0
    for path in sorted((folder / RECORDS).rglob(RUNS)):
        found, again, wrong = _runs(path.parent, path.relative_to(folder).as_posix(), plugins)
        runs, replayed, problems = runs + found, replayed + again, [*problems, *wrong]
    rows = 0
    try:
        rows, wrong = _rows(folder, document.settings, find)
        problems += wrong
    except EirkitError as error:
        problems.append(f"{RECORDS}/: cannot be read: {error}")
    if not problems:
        problems += written_otherwise(folder, document, find, _given(folder, document.settings))
    return Verification(len(document.files), runs, replayed, rows, tuple(problems))


def _given(folder: Path, settings: ArchiveSettings) -> RecordedModels | None:
    if not settings.models:
        return None
    return RecordedModels(PaperRunIndex(folder / RECORDS), settings.models, settings.seeds, settings.memories)


def _runs(folder: Path, name: str, plugins: bool) -> tuple[int, int, list[str]]:
    """Play every run of exported lines again, or score it again where its replies were not kept."""
    count = replayed = 0
    problems = []
    try:
        paid, replays = read_money(folder).by_run(), Replays(plugins)
        for run in read_runs(folder):
            record = run.record
            was_played, wrong = replays.check(record, run.lines)
            count, replayed = count + 1, replayed + was_played
            problems += [f"{name}: run {record.run}: {why}" for why in wrong]
            problems += [] if _is_paid(record, paid.get(record.run, [])) else [f"{name}: run {record.run}: {UNPAID}"]
    except UntrustedError:
        raise
    except (EirkitError, KeyError, TypeError, ValueError, ArithmeticError, OSError) as error:
        problems.append(f"{name}: cannot be read: {str(error) or type(error).__name__}")
    return count, replayed, problems


def _is_paid(record: RunRecord, attempts: list[AttemptSpend]) -> bool:
    """True if the ledger has the calls of a run and what they cost; calls at a kill may have been paid for twice."""
    if not record.usage.cost_usd:
        return True
    calls = sum(attempt.agent.calls for attempt in attempts)
    usd = sum(amount for attempt in attempts for amount in attempt.usd.values())
    return calls >= record.usage.calls - record.usage.cache_hits and float(usd) >= record.usage.cost_usd - 1e-9


def _rows(folder: Path, settings: ArchiveSettings, find: Callable[[str], Study]) -> tuple[int, list[str]]:
    """Compute every figure of recorded runs again and compare it with the one of the document."""
    try:
        document = read_struct(folder / DOCUMENT, REPRODUCTION, Reproduction)
    except InputFileError as error:
        return 0, [f"{DOCUMENT}: cannot be read: {error}"]
    stated = {study.id: study.rows for study in document.studies}
    if (given := _given(folder, settings)) is None:
        return 0, []
    count, problems = 0, []
    for name in settings.compared:
        again = model_findings(find(name), given, only_present=settings.source).rows
        rows = [row for row in stated.get(name, ()) if row.figure]
        count += len(again)
        if len(rows) != len(again):
            problems.append(f"{DOCUMENT}: {name}: {len(rows)} figures, where the records have {len(again)}")
        problems += [
            f"{DOCUMENT}: {name}: {row.label} does not follow from the records"
            for row, mine in zip(rows, again, strict=False)
            if not _equal(row, mine)
        ]
    return count, problems


def _equal(row: StudyRow, again: StudyRow) -> bool:
    """True if a stated row is the one that the records give, as far as it follows from them."""
    return replace(row, source=again.source, same_as=again.same_as) == again


def stated_wrongly(folder: Path, archive: Archive, find: Callable[[str], Study]) -> Iterator[str]:
    """Yield what an archive says about itself that its other files do not say."""
    if archive.eirkit != __version__:
        yield f"{ARCHIVE}: made with eirkit {archive.eirkit}, and this is {__version__}; check it with that version"
    elif archive.source_sha256 != source_digest():
        yield f"{ARCHIVE}: made with another source of eirkit {__version__}; check it with the one that made it"
    settings = archive.settings
    try:
        document = read_struct(folder / DOCUMENT, REPRODUCTION, Reproduction)
    except InputFileError as error:
        yield f"{DOCUMENT}: cannot be read: {error}"
        return
    if archive.studies != tuple(study.id for study in document.studies):
        yield f"{ARCHIVE}: its studies are not those of {DOCUMENT}"
    wanted = [name for name in archive.studies if settings.models and takes_models(find(name))]
    if not settings.source and sorted(settings.compared) != sorted(wanted):
        yield f"{ARCHIVE}: the studies that it compares with models are not those that it has"
    if settings.data is not None and not any(find(name).kind == "recorded" for name in archive.studies):
        yield f"{ARCHIVE}: it names data, and has no study of recorded runs"
    if settings.models and settings.compared and not settings.source:
        yield from _manifest(folder, archive, find)


def _manifest(folder: Path, archive: Archive, find: Callable[[str], Study]) -> Iterator[str]:
    """Yield what the manifest of the runs says that does not follow from the models, studies and seeds."""
    name, settings = f"{RECORDS}/{MANIFEST}", archive.settings
    try:
        manifest = read_struct(folder / name, RUNS_SCHEMA, Manifest)
    except InputFileError as error:
        yield f"{name}: cannot be read: {error}"
        return
    if manifest.eirkit != archive.eirkit:
        yield f"{name}: made with eirkit {manifest.eirkit}, the archive with {archive.eirkit}"
    for part in ("python", "platform", "dependencies"):
        if getattr(manifest, part) != getattr(archive, part):
            yield f"{name}: its {part} is not that of {ARCHIVE}"
    seeds = show_seeds(settings.seeds)
    if settings.study_seeds not in (None, seeds):
        yield f"{ARCHIVE}: the seeds of its studies are not those of its models"
    try:
        asked = settings.options
        options = ModelOptions() if asked is None else ModelOptions(**structs.asdict(asked))
        setting = ModelSetting(settings.models, options, settings.seeds, settings.memories)
        plan = setting.plan([find(study) for study in settings.compared])
    except (EirkitError, TypeError, ValueError) as error:
        yield f"{ARCHIVE}: its settings cannot be read: {error}"
        return
    stated = msgspec.convert(plan.settings, ModelStudySettings)
    try:
        recorded = msgspec.convert(manifest.settings, ModelStudySettings)
    except msgspec.ValidationError as error:
        yield f"{name}: its settings cannot be read: {error}"
        return
    for part in ModelStudySettings.__struct_fields__:
        if getattr(recorded, part) != getattr(stated, part):
            yield f"{name}: its {part} are not those of {ARCHIVE}"
    if more := sorted(msgspec.json.decode((folder / name).read_bytes()).keys() - IN_MANIFEST):
        yield f"{name}: it has {', '.join(more)}, which no manifest has"
    cells = sum(not cell.repeat for cell, _ in plan.plan())
    planned: dict[str, object] = {"plan_sha256": plan_sha256(plan), "cells": cells, "runs": len(plan)}
    if not any(":" in model for model in settings.models):  # describing their prompts would run code
        again = describe(plan, None, {})
        planned |= {"prompt_sha256": again.prompt_sha256, "rules": again.rules}
    for part, value in planned.items():
        if getattr(manifest, part) != value:
            yield f"{name}: its {part} is not that of the models, studies and seeds of {ARCHIVE}"


def written_otherwise(
    folder: Path, archive: Archive, find: Callable[[str], Study], given: RecordedModels | None
) -> Iterator[str]:
    """Yield the files that are not what their records and findings give, and those that nothing gives."""
    outcomes = [StudyOutcome(find(name), _findings(folder, archive, find(name), given)) for name in archive.studies]
    is_whole = all(one.findings is not None for one in outcomes)
    with TemporaryDirectory() as name:
        again = Path(name)
        for outcome in outcomes:
            write_study(outcome, again, None)
        if is_whole:
            write_overview(outcomes, again)
            write_derived(again, outcomes, folder)
        made = {path.relative_to(again).as_posix(): path.read_bytes() for path in listed_files(again, ARCHIVE)}
    yield from (f"{file}: is missing" for file in ALWAYS if not (folder / file).is_file())
    for file, content in made.items():
        if (folder / file).is_file() and (folder / file).read_bytes() != content:
            yield f"{file}: does not follow from the records and findings"
    studies = {one.study.id for one in outcomes}
    for path in archived_files(folder):
        place = path.relative_to(folder)
        is_drawn = place.parts[0] in studies and place.suffix.lstrip(".") in FIGURES
        is_known = place.parts[0] in (RECORDS, KEPT) or place.as_posix() in (*ALWAYS, *made) or is_drawn
        if not is_known and (is_whole or place.parts[0] not in studies):
            yield f"{place.as_posix()}: is no part of a reproduction"


def _findings(folder: Path, archive: Archive, study: Study, given: RecordedModels | None) -> Findings | None:
    """Return what a study found, from recorded runs or as it was kept; None if neither is there."""
    more: Findings | None = None
    if given is not None and takes_models(study):
        more = model_findings(study, given, only_present=archive.settings.source)
        if study.has_agents:
            return more
    path = folder / KEPT / f"{study.id}.json"
    if path.is_file():
        try:
            kept = read_struct(path, STUDY, KeptStudy).findings
        except InputFileError:
            return None
    elif study.kind == "recorded" and archive.settings.data is None:
        kept = study.run(Setting())
    else:
        return None
    return kept if more is None else replace(kept, rows=(*kept.rows, *more.rows))
