"""Builds the page of any result folder, or compares two, with the function registered for their kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.registry import Registry
from eirkit.show.comparison.pairs import Comparison
from eirkit.show.folders import kind_of, maker_of
from eirkit.show.page import Page


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


pages: Registry[PageMaker] = Registry("page", group="eirkit.pages", package="eirkit.show.pages")
comparers: Registry[Comparer] = Registry(
    "comparison", group="eirkit.comparisons", package="eirkit.show.pages", table="COMPARERS"
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
    with _records_of(folder):
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
    with _records_of(a, b):
        return comparers.get(kinds[0])(a, b, plugins=plugins)


@contextmanager
def _records_of(*folders: Path) -> Iterator[None]:
    """Turn unexpected errors into InputFileError, since records may have been edited or damaged."""
    try:
        yield
    except EirkitError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        where = " or ".join(map(str, folders))
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputFileError(f"{where} holds records that cannot be read ({why}); restore the folder") from error
