"""Collects every measure that eirkit reports, and writes the glossary as JSON and as a page of the site."""

from __future__ import annotations

from eirkit.lacuna.findings.conversation_measures import (
    ANSWER_CAUSE_MEASURES,
    CONVERSATION_MEASURES,
    LABELED_EVIDENCE,
    RETRIEVAL_MEASURES,
    SERVER_COMPACTION,
    STANDING_INSTRUCTIONS,
    SYMPTOM_MEASURES,
)
from eirkit.lacuna.findings.measures import (
    ARM_MEASURES,
    CAUSE_MEASURES,
    KIND_MEASURES,
    MEMORY_MEASURES,
    OUTCOME_MEASURES,
    PROBE_MEASURES,
    RUN_MEASURES,
    SIMULATION_MEASURES,
    SPENDING_MEASURES,
)
from eirkit.measures import POOLED, UNITS, Glossary, Measure
from eirkit.report.table import markdown_text
from eirkit.vestige.measures import (
    BREAK_MEASURES,
    COHORT_MEASURES,
    COMPACTOR_MEASURES,
    CUT_LINES,
    LOG_MEASURES,
    READING_MEASURES,
    TRIAL_MEASURES,
    WEEK_MEASURES,
)

GLOSSARY = Glossary(
    (
        RUN_MEASURES,
        CAUSE_MEASURES,
        KIND_MEASURES,
        OUTCOME_MEASURES,
        MEMORY_MEASURES,
        SPENDING_MEASURES,
        ARM_MEASURES,
        PROBE_MEASURES,
        SYMPTOM_MEASURES,
        ANSWER_CAUSE_MEASURES,
        CONVERSATION_MEASURES,
        RETRIEVAL_MEASURES,
        STANDING_INSTRUCTIONS,
        SERVER_COMPACTION,
        LABELED_EVIDENCE,
        SIMULATION_MEASURES,
        LOG_MEASURES,
        READING_MEASURES,
        BREAK_MEASURES,
        WEEK_MEASURES,
        TRIAL_MEASURES,
        COMPACTOR_MEASURES,
        CUT_LINES,
        COHORT_MEASURES,
    )
)
_INTRODUCTION = """\
# Glossary

Every quantity that eirkit reports has one identifier, one label and one meaning. The identifier is its key in JSON
documents and CSV files, the label its name in the terminal, on pages, in LaTeX tables, in comparisons and in the
viewer. *Better* says which direction is better; a dash means neither.

This page is generated from the declarations in the source.
"""
_HEAD = "| label | identifier | meaning | unit | pooled | better |\n| --- | --- | --- | --- | --- | --- |"


def glossary_measures() -> dict[str, tuple[Measure, ...]]:
    """Return the measures of every group, for the front end."""
    return {group.id: group.measures for group in GLOSSARY.groups}


def glossary_page() -> str:
    """Return the glossary as Markdown."""
    sections = ("\n".join([f"## {group.title}\n", _HEAD, *map(_line, group), ""]) for group in GLOSSARY.groups)
    return "\n".join([_INTRODUCTION, *sections])


def _line(measure: Measure) -> str:
    unit = f"share of {measure.of}" if measure.of else UNITS[measure.unit]
    meaning = markdown_text(f"{measure.meaning[0].upper()}{measure.meaning[1:]}.")
    name = f'<a id="measure-{measure.id}"></a>{measure.label}'
    cells = (name, f"`{measure.id}`", meaning, unit, POOLED[measure.pooled], measure.better or "–")
    return f"| {' | '.join(cells)} |"
