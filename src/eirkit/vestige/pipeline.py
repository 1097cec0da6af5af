"""From a corpus to a folder of tables: every run is measured, written and summed up; what cannot be is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eirkit.errors import EirkitError, InputFileError, MissingExtraError
from eirkit.vestige.analysis import TABLES, Analysis, Options, measure
from eirkit.vestige.gold import Gold, Patch
from eirkit.vestige.source import Skipped
from eirkit.vestige.summary import Summary
from eirkit.vestige.tables import TableWriter, columns_of
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import Recording

_PATCHES = 1 << 10  # that are kept taken apart; runs of one task often follow each other

Progress = Callable[[str, int, int], None]  # source, runs, skipped


def analyze_corpus(
    items: Iterable[Recording | Skipped],
    out: Path,
    options: Options,
    count: Counter,
    *,
    gold: Gold | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the tables of a corpus and return its summary.

    Raises:
        InputFileError: nothing could be read, or, if `strict`, anything could not.
        UsageError: `out` is not empty and no analysis of ours.
    """
    summary = Summary()
    with TableWriter(out, TABLES) as writer:
        for item in _measured(items, options, count, gold):
            if isinstance(item, Skipped):
                _skip(summary, item, strict)
                continue
            writer.add(item.run.run_id, {"runs": columns_of(type(item.run), [item.run]), **item.tables})
            summary.add(item)
            if progress is not None:
                progress(item.run.source, summary.runs, len(summary.skipped))
        if not summary.runs:
            raise InputFileError(_nothing(summary))
        document = summary.as_json()
        writer.finish({"eirkit": version("eirkit"), "options": _options(options), **document})
    return {"out": str(out), **document}


def _measured(
    items: Iterable[Recording | Skipped], options: Options, count: Counter, gold: Gold | None
) -> Iterator[Analysis | Skipped]:
    patch_of = lru_cache(maxsize=_PATCHES)(_no_patch if gold is None else gold.get)
    for item in items:
        yield item if isinstance(item, Skipped) else measured_or_skipped(item, patch_of(item.task_id), options, count)


def measured_or_skipped(
    recording: Recording, patch: Patch | None, options: Options, count: Counter
) -> Analysis | Skipped:
    """Return a run's analysis; one that cannot be measured costs itself and says why."""
    try:
        return measure(recording, patch, options, count)
    except MissingExtraError:
        raise
    except EirkitError as error:
        return Skipped(recording.source, str(error))
    except Exception as error:  # noqa: BLE001 - the one place where a run is driven
        cause = f"{type(error).__name__}: {error}"[:200]
        return Skipped(recording.source, f"run {recording.run_id} could not be measured ({cause}); report it")


def _no_patch(task_id: str) -> Patch | None:
    return None


def _skip(summary: Summary, item: Skipped, strict: bool) -> None:
    if strict:
        raise InputFileError(f"{item.source}: {item.reason}, or leave out --strict")
    summary.skipped.append(item)


def _nothing(summary: Summary) -> str:
    if not summary.skipped:
        return "no runs found; give files or folders of logs, see `eirkit vestige formats`"
    first = summary.skipped[0]
    return f"no run could be read; {len(summary.skipped)} skipped, the first is {first.source}: {first.reason}"


def _options(options: Options) -> dict[str, Any]:
    return {
        "visibility": options.visibility,
        "goal_tests": options.goal_tests,
        "own_edits": options.own_edits,
        "windows_dated": options.windows.dated,
    }
