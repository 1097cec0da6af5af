"""The archive of a reproduction: what others need to check it, beside its page and its records.

archive.json lists every file with its checksum, the versions, the settings and the seeds. rows.csv has every compared
figure, CITATION.cff says how to cite it, and croissant.json describes the files in the vocabulary of ML Croissant.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from eirkit import __version__
from eirkit.folders import replace_file
from eirkit.lacuna.runs.manifest import dependency_versions
from eirkit.records.database import DATABASE
from eirkit.records.documents import MANIFEST, write_struct
from eirkit.records.evidence import Seeds
from eirkit.records.export import RUNS, write_export
from eirkit.records.listing import ListedFile, changed_files, describe_file, listed_files
from eirkit.records.settings import ModelSettings
from eirkit.report.table import Column, Table
from eirkit_paper.runner import StudyOutcome, source_digest
from eirkit_paper.study import StudyRow

ARCHIVE, SCHEMA = "archive.json", "archive/1"
ROWS, CITATION, CROISSANT = "rows.csv", "CITATION.cff", "croissant.json"
PAPER = "Dude, Where's My State? Execution Information Requirements for Stateful Agents"
AUTHORS = (("Nikita", "Mehrotra"), ("Ashish", "Tiwari"), ("Priyanshu", "Gupta"), ("Sumit", "Gulwani"))
COLUMNS = ("study", *StudyRow.__struct_fields__)
NUMBERS = {"published", "ours", "low", "high", "p", "agrees_if_off", "off_by", "n", "spread"}


FOLDER, RECORDS = "runs", "records"  # databases of runs, and their lines, which alone are part of the archive


class ArchiveSettings(Struct, frozen=True, kw_only=True, rename={"source": "from"}):
    """What a reproduction was made with."""

    study_seeds: Seeds | None
    data: str | None  # the name of the folder of analyses
    models: tuple[str, ...] = ()
    options: ModelSettings | None = None  # of the models
    seeds: tuple[int, ...] = ()
    memories: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()  # studies with figures of models
    source: bool = False  # whether the runs were made otherwise


class Archive(Struct, frozen=True, kw_only=True):
    """The list of an archive: versions, settings, studies and all files."""

    eirkit: str
    python: str
    platform: str
    dependencies: dict[str, str]
    source_sha256: str
    settings: ArchiveSettings
    studies: tuple[str, ...]
    files: dict[str, ListedFile]


def write_archive(folder: Path, outcomes: Sequence[StudyOutcome], settings: ArchiveSettings) -> Path:
    """Write what makes a folder checkable; return the path of its list of files."""
    write_records(folder)
    write_derived(folder, outcomes, folder)
    document = Archive(
        eirkit=__version__,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        dependencies=dict(dependency_versions()),
        source_sha256=source_digest(),
        settings=settings,
        studies=tuple(outcome.study.id for outcome in outcomes if outcome.findings is not None),
        files={path.relative_to(folder).as_posix(): describe_file(path) for path in archived_files(folder)},
    )
    write_struct(folder / ARCHIVE, SCHEMA, document)
    return folder / ARCHIVE


def write_records(folder: Path) -> None:
    """Write the lines of all runs of a reproduction anew."""
    shutil.rmtree(folder / RECORDS, ignore_errors=True)
    for path in sorted((folder / FOLDER).rglob("*"), key=lambda path: (len(path.parts), path)):
        own = folder / RECORDS / path.parent.relative_to(folder / FOLDER)
        if path.name == DATABASE and (path.parent / MANIFEST).is_file():
            write_export(path.parent, own)
        elif path.name == RUNS:  # lines that were given in place of a database
            shutil.copytree(path.parent, own, dirs_exist_ok=True)


def changed_in(folder: Path, listed: Mapping[str, ListedFile]) -> Iterator[str]:
    """Yield what differs between an archive and its list of files."""
    for change in changed_files(folder, ARCHIVE, listed):
        if not change.startswith(f"{FOLDER}/"):
            yield change


def archived_files(folder: Path) -> Iterator[Path]:
    """Yield the files of an archive; databases from which the runs can be continued are none."""
    return (path for path in listed_files(folder, ARCHIVE) if path.relative_to(folder).parts[0] != FOLDER)


def write_derived(folder: Path, outcomes: Sequence[StudyOutcome], archive: Path) -> None:
    """Write all figures as one table, how to cite them, and the description of an archive whose records are there."""
    _write(folder / ROWS, _rows(outcomes).csv())
    _write(folder / CITATION, _citation())
    records = sorted((archive / RECORDS).rglob(RUNS))
    described = {ROWS: folder / ROWS, **{path.relative_to(archive).as_posix(): path for path in records}}
    _write(folder / CROISSANT, json.dumps(_croissant(described), ensure_ascii=False, indent=1) + "\n")


def _write(path: Path, text: str) -> None:
    replace_file(path, text.encode("utf-8"))


def _rows(outcomes: Sequence[StudyOutcome]) -> Table:
    rows = [
        {"study": outcome.study.id, **{name: getattr(row, name) for name in COLUMNS[1:]}}
        for outcome in outcomes
        if outcome.findings is not None
        for row in outcome.findings.rows
    ]
    return Table("rows", "Rows", tuple(Column(name, name) for name in COLUMNS), tuple(rows))


def _citation() -> str:
    authors = "\n".join(f"      - given-names: {given}\n        family-names: {family}" for given, family in AUTHORS)
    return f"""cff-version: 1.2.0
type: dataset
title: "Reproduction of: {PAPER}"
message: "If you use these runs, cite the paper, and say who made them."
version: "{__version__}"
authors:
  - name: eirkit
references:
  - type: article
    title: "{PAPER}"
    authors:
{authors}
"""


_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def _croissant(described: Mapping[str, Path]) -> dict[str, Any]:
    """Return the description of the rows, and of the recorded runs where there are some."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "eirkit-reproduction",
        "description": f"Figures of “{PAPER}” beside a reproduction with eirkit {__version__}, with its recorded runs.",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "version": __version__,
        "citeAs": f"{PAPER}. {', '.join(' '.join(name) for name in AUTHORS)}.",
        "distribution": [_file_object(name, path) for name, path in described.items()],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "figures",
                "name": "figures",
                "description": "One line for each comparison of a published figure.",
                "field": [_field(name) for name in COLUMNS],
            }
        ],
    }


def _file_object(name: str, path: Path) -> dict[str, Any]:
    known = describe_file(path)
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{known.bytes} B",
        "encodingFormat": "text/csv" if name == ROWS else "application/jsonlines",
        "sha256": known.sha256,
    }


def _field(name: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"figures/{name}",
        "name": name,
        "description": name.replace("_", " "),
        "dataType": "sc:Float" if name in NUMBERS else "sc:Text",
        "source": {"fileObject": {"@id": ROWS}, "extract": {"column": name}},
    }
