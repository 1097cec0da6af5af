"""Runs measured one after the other; one that cannot be costs itself and says why."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from eirkit.errors import EirkitError, MissingExtraError
from eirkit.vestige.analysis import Analysis, Options, measure
from eirkit.vestige.gold import Gold, Patch
from eirkit.vestige.source import Skipped
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import Recording

_PATCHES = 1 << 10  # that are kept taken apart; runs of one task often follow each other
_YOUNG = 20_000  # objects between two looks for cycles


@contextmanager
def few_cycles() -> Iterator[None]:
    """Look for cycles less often meanwhile: a run is a hundred thousand small facts, and none refers back."""
    before = gc.get_threshold()
    gc.set_threshold(max(_YOUNG, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def measured(
    items: Iterable[Recording | Skipped], options: Options, count: Counter, gold: Gold | None
) -> Iterator[Analysis | Skipped]:
    """Yield the analysis of each run; what was skipped stays so."""
    patch_of = lru_cache(maxsize=_PATCHES)(_no_patch if gold is None else gold.get)
    for item in items:
        yield item if isinstance(item, Skipped) else measured_or_skipped(item, patch_of(item.task_id), options, count)


def measured_or_skipped(
    recording: Recording, patch: Patch | None, options: Options, count: Counter
) -> Analysis | Skipped:
    """Return a run's analysis, or why there is none."""
    try:
        return measure(recording, patch, options, count)
    except (MissingExtraError, MemoryError):
        raise
    except EirkitError as error:
        return Skipped(recording.source, str(error))
    except Exception as error:  # noqa: BLE001 - the one place where a run is driven
        cause = f"{type(error).__name__}: {error}"[:200]
        return Skipped(recording.source, f"run {recording.run_id} could not be measured ({cause}); report it")


def _no_patch(task_id: str) -> Patch | None:
    return None
