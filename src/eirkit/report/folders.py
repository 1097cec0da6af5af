"""Detects which command wrote a result folder; builds its page with the function for its kind.

Other file names and schemas are repeated here so that detection imports little; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Literal, Protocol

from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.folders import open_ordinary
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, schema_of
from eirkit.records.evidence import EvidenceSettings, ProbeSettings, RescueSettings
from eirkit.registry import Registry, records_read
from eirkit.report.document import Page


def foreign(names: Iterable[object]) -> list[str]:
    """Return the names of the form `file.py:Name` or `module:Name`, which run foreign code when looked up."""
    return [name for name in names if isinstance(name, str) and ":" in name]


def foreign_in_settings(settings: EvidenceSettings) -> list[str]:
    """Return such names in the settings of a rescue, capability or probe, including models."""
    if isinstance(settings, RescueSettings):
        return foreign([settings.task.workload, settings.policy, settings.memory, *settings.models])
    held = [settings.plan.policy] if isinstance(settings, ProbeSettings) else []
    return foreign([*(task.workload for task in settings.tasks), *held, *settings.models])


Kind = Literal["lacuna-run", "lacuna-evidence", "vestige-analysis", "compaction-benchmark", "reproduction"]

MARKS: dict[str, dict[str, Kind]] = {
    "manifest.json": {RUNS_SCHEMA: "lacuna-run"},
    "analysis.json": {"analysis/1": "vestige-analysis"},
    "compact.json": {"compaction-benchmark/1": "compaction-benchmark"},
}
_MAKERS: dict[Kind, str] = {
    "vestige-analysis": "vestige analyze",
    "compaction-benchmark": "vestige compact",
    "reproduction": "reproduce",
}
STUDIES = "study/1"  # schema of the files of a reproduction, one for each study
STUDIES_FOLDER = "studies"
MOST_LOOKED_AT = 20  # files
_HEAD_BYTES = 256  # eirkit documents begin with their schema
_COMMAND = re.compile(rb'"command"\s*:\s*"([a-z-]+)"')  # in the manifest of a folder of runs, after its schema


def kind_of(folder: Path, makers: str = "`lacuna run`, `lacuna rescue` or `vestige analyze`") -> Kind:
    """Return the kind of a result folder.

    Args:
        makers: the commands whose folders may be given, for messages.

    Raises:
        InputFileError: the folder holds no results that can be reported.
    """
    if not folder.is_dir():
        raise InputFileError(f"{folder} is no folder; give one that {makers} wrote")
    for name, kinds in MARKS.items():
        if (folder / name).is_file() and (kind := kinds.get(schema_of(folder / name) or "")) is not None:
            return "lacuna-evidence" if kind == "lacuna-run" and command_of(folder) != "run" else kind
    studies = islice((folder / STUDIES_FOLDER).glob("*.json"), MOST_LOOKED_AT)
    if any(schema_of(path) == STUDIES for path in studies):
        return "reproduction"
    raise InputFileError(f"{folder} holds no records; give a folder that {makers} wrote with --out")


def maker_of(folder: Path) -> str:
    """Return the command that wrote a folder, such as `lacuna run`.

    Raises:
        InputFileError: the folder holds no results that can be reported.
    """
    kind = kind_of(folder)
    return _MAKERS.get(kind) or f"lacuna {command_of(folder) or 'evidence'}"


def command_of(folder: Path) -> str:
    """Return the command that made a folder of runs."""
    try:
        with open_ordinary(folder / MANIFEST) as stream:
            found = _COMMAND.search(stream.read(_HEAD_BYTES))
    except OSError:
        return ""
    return "" if found is None else found[1].decode()


def refuse_others(others: Sequence[Path]) -> None:
    """Raise UsageError if evidence was given for a folder that is not a sweep."""
    if others:
        raise UsageError("evidence is for the page of a sweep, which the first folder is not; leave the others out")


class PageMaker(Protocol):
    """A function that builds the page of one kind of folder."""

    def __call__(self, folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page: ...


pages: Registry[PageMaker] = Registry("page", group="eirkit.pages", package="eirkit.report", table="PAGES")


def page_for(folder: Path, others: Sequence[Path] = (), *, tests: bool = True, plugins: bool = False) -> Page:
    """Return the page of a folder.

    Args:
        others: evidence folders that belong to a sweep but are stored elsewhere.
        tests: also run the cohort tests of analyzed runs, which are slow.
        plugins: also run code that the records name, such as a workload `file.py:Name`.

    Raises:
        InputFileError: the folder holds no results that can be reported.
    """
    make = pages.get(kind_of(folder))
    with records_of(folder, plugins=plugins):
        return make(folder, others, tests=tests, plugins=plugins)


@contextmanager
def records_of(*folders: Path, plugins: bool) -> Iterator[None]:
    """Do as `damage_named`, and allow or refuse what the records name.

    Args:
        plugins: whether code that the records name may be run, and files be opened.
    """
    with damage_named(*folders), records_read(plugins=plugins):
        yield


@contextmanager
def damage_named(*folders: Path) -> Iterator[None]:
    """Turn unexpected errors into InputFileError, since records may have been edited or damaged."""
    try:
        yield
    except EirkitError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        where = " or ".join(map(str, folders))
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputFileError(f"{where} holds records that cannot be read ({why}); restore the folder") from error
