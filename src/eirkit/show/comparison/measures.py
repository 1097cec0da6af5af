"""Lists the measures that comparisons report, and finds the group and table title of each."""

from __future__ import annotations

from eirkit.findings.measures import CAUSE_MEASURES, FATE_MEASURES, MEMORY_MEASURES, RUN_MEASURES, SPENDING_MEASURES
from eirkit.logs.measures import LOG_MEASURES
from eirkit.measures import Glossary, Measure, MeasureGroup

COMPARED = Glossary((RUN_MEASURES, CAUSE_MEASURES, FATE_MEASURES, MEMORY_MEASURES, SPENDING_MEASURES, LOG_MEASURES))
COSTS = (MEMORY_MEASURES, SPENDING_MEASURES)


def measure_of(key: str) -> Measure:
    """Return the declaration of a compared measure."""
    return COMPARED[key]


def group_of(key: str) -> MeasureGroup:
    """Return the table that a compared measure belongs to."""
    return COMPARED.group_of(key)


def title_of(group: MeasureGroup) -> str:
    """Return the title of a table of differences; if all its shares have one denominator, the title names it."""
    wholes = {one.of for one in group}
    (whole,) = wholes if len(wholes) == 1 else ("",)
    return f"{group.title}, share of {whole}" if whole and whole not in group.title else group.title
