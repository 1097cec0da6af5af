"""Detects which command wrote a result folder; builds its page, or compares two, with the function for its kind.

File names and schemas are repeated here so that detection imports nothing else; a test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.folders import open_ordinary
from eirkit.registry import Registry, records_read, references_in
from eirkit.report.comparison import Comparison, SettingChange
from eirkit.report.document import Page

_RESOLVED = ("workload", "policy", "memory", "condition")  # axes of a suite that are looked up when it is read


def foreign(names: Iterable[object]) -> list[str]:
    """Return the names of the form `file.py:Name` or `module:Name`, which run foreign code when looked up."""
    return [name for name in names if isinstance(name, str) and ":" in name]


def foreign_in(suite: Mapping[str, Any]) -> list[str]:
    """Return such names in the suite of a manifest, except models, which are not looked up when it is read."""
    grids = (suite, *suite.get("grid", ()))  # keys above the grids are defaults of all
    named = foreign(name for grid in grids for axis in _RESOLVED for name in _listed(grid.get(axis)))
    settings = [{"memory_options": grid.get("memory_options")} for grid in grids]
    return [*named, *(name for one in settings for name in references_in(one))]


def foreign_in_settings(settings: Mapping[str, Any]) -> list[str]:
    """Return such names in the settings of a rescue, capability or probe folder, including models."""
    tasks = settings["tasks"] if "tasks" in settings else [settings["task"]]
    held = (settings.get("policy"), settings.get("memory"), settings.get("plan", {}).get("policy"))
    return foreign([*(task["workload"] for task in tasks), *held, *settings["models"]])


def _listed(value: object) -> Iterator[object]:
    yield from value if isinstance(value, (list, tuple)) else (value,)


Kind = Literal["lacuna-run", "lacuna-evidence", "vestige-analysis", "compaction-benchmark", "reproduction"]

MARKS: dict[str, dict[str, Kind]] = {
    "manifest.json": {"manifest/1": "lacuna-run", "evidence/1": "lacuna-evidence"},
    "analysis.json": {"analysis/1": "vestige-analysis"},
    "compact.json": {"compaction-benchmark/1": "compaction-benchmark"},
}
_MAKERS: dict[Kind, str] = {
    "lacuna-run": "lacuna run",
    "vestige-analysis": "vestige analyze",
    "compaction-benchmark": "vestige compact",
    "reproduction": "reproduce",
}
STUDIES = "study/1"  # schema of the files of a reproduction, one for each study
STUDIES_FOLDER = "studies"
MOST_LOOKED_AT = 20  # files
_HEAD_BYTES = 256  # eirkit documents begin with their schema
_SCHEMA = re.compile(rb'\s*\{\s*"schema"\s*:\s*"([^"\\]*)"')
_COMMAND = re.compile(rb'"command"\s*:\s*"([a-z-]+)"')  # in the manifest of an evidence folder, after its schema


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
        if (folder / name).is_file() and (kind := kinds.get(_schema_of(folder / name))) is not None:
            return kind
    studies = islice((folder / STUDIES_FOLDER).glob("*.json"), MOST_LOOKED_AT)
    if any(_schema_of(path) == STUDIES for path in studies):
        return "reproduction"
    raise InputFileError(f"{folder} holds no records; give a folder that {makers} wrote with --out")


def maker_of(folder: Path) -> str:
    """Return the command that wrote a folder, such as `lacuna run`.

    Raises:
        InputFileError: the folder holds no results that can be reported.
    """
    kind = kind_of(folder)
    if kind == "lacuna-evidence":
        found = _COMMAND.search(_head(folder / "manifest.json"))
        return "lacuna evidence" if found is None else f"lacuna {found[1].decode()}"
    return _MAKERS[kind]


def _schema_of(path: Path) -> str:
    found = _SCHEMA.match(_head(path))
    return "" if found is None else found[1].decode("utf-8", "replace")


def _head(path: Path) -> bytes:
    try:
        with open_ordinary(path) as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def refuse_others(others: Sequence[Path]) -> None:
    """Raise UsageError if --with was given for a folder that is not a sweep."""
    if others:
        raise UsageError("--with adds evidence to the page of a sweep, which this folder is not; leave it out")


class PageMaker(Protocol):
    """A function that builds the page of one kind of folder."""

    def __call__(self, folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page: ...


class Comparer(Protocol):
    """A function that compares two folders of one kind."""

    def __call__(self, a: Path, b: Path, *, plugins: bool) -> Comparison: ...


pages: Registry[PageMaker] = Registry("page", group="eirkit.pages", package="eirkit.report", table="PAGES")
comparers: Registry[Comparer] = Registry(
    "comparison", group="eirkit.comparisons", package="eirkit.report", table="COMPARERS"
)


def page_for(folder: Path, others: Sequence[Path] = (), *, tests: bool = True, plugins: bool = False) -> Page:
    """Return the page of a folder.

    Args:
        others: evidence folders that belong to a sweep but are stored elsewhere.
        tests: also run the cohort tests of analysed runs, which are slow.
        plugins: also run code that the records name, such as a workload `file.py:Name`.

    Raises:
        InputFileError: the folder holds no results that can be reported.
    """
    make = pages.get(kind_of(folder))
    with records_of(folder, plugins=plugins):
        return make(folder, others, tests=tests, plugins=plugins)


def compare(a: Path, b: Path, *, plugins: bool = False) -> Comparison:
    """Return the comparison of two folders of the same kind.

    Raises:
        InputFileError: the folders are of different kinds, or of a kind that cannot be compared.
    """
    kinds = kind_of(a), kind_of(b)
    if kinds[0] != kinds[1] or kinds[0] not in comparers:
        made = [f"{folder} is of `{maker_of(folder)}`" for folder in dict.fromkeys((a, b))]
        raise InputFileError(f"{' and '.join(made)}; compare two of `lacuna run` or two of `vestige analyze`")
    with records_of(a, b, plugins=plugins):
        return comparers.get(kinds[0])(a, b, plugins=plugins)


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


def changes_between(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[SettingChange, ...]:
    """Return every setting in which two documents differ, in the order of the first document."""
    first, second = dict(_flat(a)), dict(_flat(b))
    names = [*first, *(name for name in second if name not in first)]
    return tuple(
        SettingChange(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of a document under names like `suite.grid.0.h`; a list of plain values is one leaf."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(part, (Mapping, list)) for part in value):
        for position, part in enumerate(value):
            yield from _flat(part, f"{name}.{position}")
    elif isinstance(value, (list, tuple)):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
