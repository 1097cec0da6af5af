"""Tests whether failed runs reread files at other rates than resolved runs, by distance: a Poisson regression.

Rereads per token of exposure, with task effects absorbed, log2 run length, model indicators and errors clustered by
run. Distance is log2(midpoint of the bin / 500). Bins beyond the stable range or with too few rereads are reported but
not fitted.
"""

from __future__ import annotations

import numpy as np

from eirkit.records.analysis import DistanceBin, Excluded, FindingDetails
from eirkit.vestige.cohorts.finding import (
    BY_RUN,
    Cohort,
    Finding,
    Question,
    finding_of_fit,
    log2_1p,
    model_columns,
    model_note,
    no_finding,
    with_note,
)
from eirkit.vestige.cohorts.run_columns import Floats, Mask, RereadCells
from eirkit.vestige.inference.design import Columns
from eirkit.vestige.inference.poisson import poisson

LAST_STABLE_BIN = 5  # 16–32k tokens
FEWEST_REREADS = 5  # in a bin, over all runs; a rate from fewer is mostly noise
REFERENCE_TOKENS = 500
NEEDED = Question(
    "reread-failed-needed-distance",
    "ratio of reread rates per doubling of distance: failed against resolved, needed files against others; cells",
    "whether failed runs return less often than resolved runs to distant needed files, beyond other files",
    "whether the file was forgotten: it may still be in the context, or not on the run's path",
)
ALL_FILES = Question(
    "reread-failed-distance",
    "ratio of reread rates per doubling of distance: failed against resolved, one slope for all files; cells",
    "whether failed runs return less often to any file at a distance",
    "anything about files that the solution needed; it is the baseline for the term that does",
)


QUESTIONS = (NEEDED, ALL_FILES)


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the three-way term and the all-file term."""
    runs = cohort.runs
    cells = cohort.cells
    place = np.full(int(runs.number.max()) + 1 if len(runs) else 0, -1)
    place[runs.number] = np.arange(len(runs))
    failed = runs.failed[place[cells.run]] if len(cells.run) else np.empty(0)
    judged = ~np.isnan(failed)
    bins = _bins(cells.at(judged))
    keep = judged & _is_kept(cells, bins)
    kept, rows = cells.at(keep), place[cells.run[keep]] if len(cells.run) else np.empty(0, dtype=np.int64)
    excluded = (
        Excluded("cells of runs with an unknown outcome", int((~judged).sum())),
        Excluded("cells in sparse bins or beyond 32k tokens", int((judged & ~keep).sum())),
    )
    if not len(kept.run):
        note = "no cell of rereads is left; the test needs runs that read files, and bins with rereads"
        return [no_finding(question, note, excluded=excluded) for question in QUESTIONS]
    models = {name: np.asarray(column)[rows] for name, column in model_columns(runs.model).items()}
    run_columns = {"log2 tokens": log2_1p(runs.tokens)[rows], **models}
    found = []
    for question, (term, columns) in zip(QUESTIONS, _designs(kept, failed[keep]), strict=True):
        fit = poisson(
            kept.rereads, {**columns, **run_columns}, runs.task[rows], kept.run, exposure=kept.exposure_tokens
        )
        finding = finding_of_fit(question, fit, term, BY_RUN, excluded, FindingDetails(bins=bins))
        found.append(with_note(finding, model_note(runs.model)))
    return found


def _designs(cells: RereadCells, failed: Floats) -> tuple[tuple[str, Columns], tuple[str, Columns]]:
    x = np.log2(cells.midpoint_tokens / REFERENCE_TOKENS)
    needed = cells.needed.astype(np.float64)
    own = {"failed": failed, "needed": needed, "distance": x, "failed × distance": failed * x}
    more = {
        "failed × needed": failed * needed,
        "needed × distance": needed * x,
        "failed × needed × distance": failed * needed * x,
    }
    return ("failed × needed × distance", {**own, **more}), ("failed × distance", own)


def _bins(cells: RereadCells) -> tuple[DistanceBin, ...]:
    """Return exposure and rereads of each bin over all runs, and whether it is fitted."""
    found = []
    for needed in (True, False):
        for place in np.unique(cells.bin[cells.needed == needed]):
            own = (cells.needed == needed) & (cells.bin == place)
            rereads = int(cells.rereads[own].sum())
            found.append(
                DistanceBin(
                    needed,
                    int(cells.midpoint_tokens[own][0]),
                    int(cells.exposure_tokens[own].sum()),
                    rereads,
                    bool(place <= LAST_STABLE_BIN and rereads >= FEWEST_REREADS),
                )
            )
    return tuple(found)


def _is_kept(cells: RereadCells, bins: tuple[DistanceBin, ...]) -> Mask:
    keep = np.zeros(len(cells.run), dtype=bool)
    for row in bins:
        if row.entered:
            keep |= (cells.needed == row.needed) & (cells.midpoint_tokens == row.midpoint_tokens)
    return keep
