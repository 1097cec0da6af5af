"""Analysed runs as facts for a page, without a folder: runs that were measured in this process come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.report.analysed import Analysed, Outcome, auc_of
from eirkit.vestige.analysis import Analysis
from eirkit.vestige.summary import Summary


def analysed_here(name: str, analyses: Sequence[Analysis], options: Mapping[str, Any]) -> Analysed:
    """Return the same for runs that were measured in this process; no table is written."""
    summary = Summary()
    for analysis in analyses:
        summary.add(analysis)
    outcomes = tuple(
        Outcome(
            None if one.run.peak_demand_tokens is None else float(one.run.peak_demand_tokens),
            float(one.run.later_used_peak),
            one.run.unit,
            one.run.goal_accessed,
            None if one.run.resolved is None else not one.run.resolved,
        )
        for one in analyses
    )
    return Analysed(name, summary.as_json(), outcomes, auc_of(outcomes), None, options)
