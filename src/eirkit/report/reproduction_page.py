"""The page of a reproduction: outcomes of studies come in; one page goes out, and each study's tables as files.

A page can be written while studies are still awaited; whoever reads one meanwhile finds the old page or the new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.records import write_document
from eirkit.report.exports import FigureForm, TableForm, write_figures, write_tables
from eirkit.report.page import Headline, Listing, Page, Section
from eirkit.report.reproducing import Outcome
from eirkit.report.study import KINDS, Findings, Study, document_of
from eirkit.report.study_tables import all_rows, row_tables
from eirkit.report.table import Cell, Column, Table
from eirkit.report.verdict import DIFFERS, JUDGED, MEANINGS, REPRODUCED, SPREAD, VERDICTS
from eirkit.report.wording import counted
from eirkit.report.writing import write_page

PAGE, DOCUMENT, SCHEMA = "index.html", "reproduction.json", "reproduction/1"
FORMS: tuple[TableForm, ...] = ("csv", "markdown", "latex")


def overview(outcomes: Sequence[Outcome]) -> Table:
    """Return one line a study."""
    lines: list[Mapping[str, Cell]] = []
    for outcome in outcomes:
        study, found = outcome.study, outcome.findings
        counts = Counter(row.verdict for row in found.rows) if found else Counter[str]()
        judged = {verdict: counts[verdict] if found else None for verdict in (REPRODUCED, SPREAD, DIFFERS)}
        extent = found.extent if found else None
        lines.append({"id": study.id, "kind": study.kind, "verdict": outcome.verdict, "extent": extent, **judged})
    columns = (
        Column("id", "study"),
        Column("kind", "kind"),
        Column("verdict", "verdict"),
        Column("extent", "judged", meaning="the others need a model, recorded runs or a memory system"),
        Column(REPRODUCED, "reproduced"),
        Column(SPREAD, "in spread"),
        Column(DIFFERS, "differ"),
    )
    return Table("studies", "Studies", columns, tuple(lines), "Numbers count published figures.")


def reproduction_page(outcomes: Sequence[Outcome]) -> Page:
    """Return the page of all studies."""
    awaited = sum(one.is_awaited for one in outcomes)
    headline = _headline([one.findings for one in outcomes if one.findings], awaited)
    meanings = Table(
        "verdicts",
        "What the verdicts mean",
        (Column("verdict", "verdict"), Column("meaning", "meaning")),
        tuple({"verdict": verdict, "meaning": MEANINGS[verdict]} for verdict in VERDICTS),
    )
    first = Section("All studies", items=(overview(outcomes), meanings))
    sections = [_section(one.study, one.findings) for one in outcomes if one.findings]
    answers = {one.study.id: one.findings.verdict for one in outcomes if one.findings}
    return Page("The paper reproduced", headline, (first, *sections), "eirkit reproduce", answers, "study")


def _headline(found: Sequence[Findings], awaited: int) -> Headline:
    studies = Counter(findings.verdict for findings in found if findings.is_mostly_judged)
    scarcely = sum(findings.judged > 0 and not findings.is_mostly_judged for findings in found)
    intervals = sum(bool(row.basis) for findings in found for row in findings.rows)
    rows = Counter(row.verdict for findings in found for row in findings.rows)
    agree, judged = studies[REPRODUCED] + studies[SPREAD], sum(studies[verdict] for verdict in JUDGED)
    compared = sum(rows[verdict] for verdict in JUDGED)
    sentences = (
        *(
            (f"Still awaited: {counted(awaited, 'study', 'studies')}; this page is written with each.",)
            if awaited
            else ()
        ),
        f"{studies[REPRODUCED]} studies reproduce every published figure that could be judged, {studies[SPREAD]} lie "
        f"within the spread of as many seeds as the paper used; in {studies[DIFFERS]} some figure differs, and the "
        "study says why.",
        f"{compared} comparisons were judged, several for a figure where several reference agents stand in for a "
        f"model: {rows[REPRODUCED] + rows[SPREAD]} agree. {sum(rows.values()) - compared} more need a "
        "model, recorded runs or a memory system.",
        *((f"Studies judged on less than half of their figures are not counted: {scarcely}.",) if scarcely else ()),
        *((f"Estimates judged by our 95% interval and not by a spread over seeds: {intervals}.",) if intervals else ()),
    )
    return Headline(f"{agree} of {judged}", "judged studies agree with the paper", sentences)


def study_page(study: Study, findings: Findings) -> Page:
    """Return the page of one study, of which its files are made."""
    headline = Headline(findings.verdict, f"{study.title}; judged: {findings.extent} figures", ())
    return Page(study.title, headline, (_section(study, findings),), study.id, kind="study")


def _section(study: Study, findings: Findings) -> Section:
    words = (
        f"{study.title}. Verdict: {findings.verdict}, {findings.extent} figures judged. In the paper: {study.place}. "
        f"{KINDS[study.kind].capitalize()}.",
    )
    why = tuple(f"Why: {reason}." for reason in findings.reasons)
    tables = tuple(_own(study, table) for table in (*row_tables(study.id, findings), *findings.tables))
    said = (Listing(f"{study.id}-commands", "With what is not configured here", "\n".join(findings.commands)),)
    items = (*tables, *findings.figures, *(said if findings.commands else ()))
    return Section(study.id, (*words, *findings.words, *why), items, study.id)


def _own(study: Study, table: Table) -> Table:
    """Return a table under an id that no other study has."""
    return table if table.id.startswith(study.id) else replace(table, id=f"{study.id}-{table.id}")


def write_reproduction(outcomes: Sequence[Outcome], folder: Path, form: FigureForm | None) -> Path:
    """Write the page, and each study's tables and, where a form is given, figures; return the page's path."""
    for outcome in outcomes:
        write_study(outcome, folder, form)
    return write_overview(outcomes, folder)


def write_study(outcome: Outcome, folder: Path, form: FigureForm | None) -> None:
    """Write the tables of one study, the data of its charts and, where a form is given, its figures."""
    if outcome.findings is None:
        return
    page, own = study_page(outcome.study, outcome.findings), folder / outcome.study.id
    for table_form in FORMS:
        write_tables(page, own, table_form)
    (own / "rows.csv").write_text(all_rows(outcome.study.id, outcome.findings).csv(), "utf-8")
    for figure in outcome.findings.figures:
        for chart in figure.panels:
            (own / f"{chart.id}.csv").write_text(chart.csv(), "utf-8")
    if form is not None:
        write_figures(page, own, form)


def write_overview(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write what all studies share: the page, the same as a document, and the list; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "studies.md").write_text(overview(outcomes).markdown() + "\n", "utf-8")
    page, *_ = write_page(reproduction_page(outcomes), folder / PAGE)
    write_document(folder / DOCUMENT, SCHEMA, document_of_all(outcomes))
    return page


def document_of_all(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return all studies as scripts read them."""
    ended = [one for one in outcomes if not one.is_awaited]
    return {
        "studies": [document_of(one.study, one.findings) for one in ended if one.findings is not None],
        "lost": [{"id": one.study.id, "reason": one.reason} for one in ended if one.findings is None],
        "awaited": [one.study.id for one in outcomes if one.is_awaited],
    }
