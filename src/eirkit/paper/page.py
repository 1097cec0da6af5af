"""Builds the tables and pages of `eirkit reproduce`, and writes them to its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError
from eirkit.paper.runner import StudyOutcome
from eirkit.paper.study import (
    JUDGED,
    KINDS,
    MEANINGS,
    VERDICTS,
    Findings,
    Study,
    StudyRow,
    document_of,
)
from eirkit.paper.verdicts import AGREES, DIFFERS, ERROR, TOO_WIDE
from eirkit.records import write_document
from eirkit.show.document import Headline, Listing, Page, Section, anchor
from eirkit.show.exports import FigureForm, TableForm, write_figures, write_page, write_tables
from eirkit.show.folders import pages
from eirkit.show.table import Cell, Column, Table, counted

_LARGE, _HUGE = 1e4, 1e6


def all_rows(identity: str, findings: Findings) -> Table:
    """Return every row with all it says, for other programs."""
    columns = tuple(Column(name, name) for name in StudyRow.__slots__)
    rows = tuple({name: getattr(row, name) for name in StudyRow.__slots__} for row in findings.rows)
    return Table(f"{identity}-rows", "Rows", columns, rows)


def row_tables(identity: str, findings: Findings) -> tuple[Table, ...]:
    """Return the rows of each section as a table."""
    sections: dict[str, list[StudyRow]] = {}
    for row in findings.rows:
        sections.setdefault(row.section, []).append(row)
    return tuple(_table(identity, title, rows) for title, rows in sections.items())


def _table(identity: str, title: str, rows: Sequence[StudyRow]) -> Table:
    name = f"{identity}-{anchor(title)}"
    made = [row.ours_by for row in rows if row.ours_by or row.ours is not None]  # what is not here is nobody's column
    agents = list(dict.fromkeys(made)) or [""]
    models = {row.published_by for row in rows}
    note = f"Published figures by {rows[0].published_by}." if len(models) == 1 and rows[0].published_by else ""
    if len(agents) > 1 and len({row.label for row in rows}) < len(rows):  # several of ours beside a figure
        return _by_agent(name, title, rows, agents, note)
    columns = [
        Column("label", "figure", role="text"),
        *([Column("by", "by", role="name", priority=1)] if len(models) > 1 else []),
        *_COMPARED,
    ]
    columns += [Column("basis", "judged by", role="text", priority=2)] if any(row.basis for row in rows) else []
    whole = all(value is None or value == int(value) for row in rows for value in (row.published, row.ours))
    columns += [Column("ours_by", "ours by", role="text", priority=2)] if len(agents) > 1 else []
    given = ({"label": row.label, "by": row.published_by, "ours_by": row.ours_by} for row in rows)
    cells = tuple({**names, **_compared(row, whole)} for names, row in zip(given, rows, strict=True))
    note = " ".join(filter(None, (note, f"Ours by {agents[0]}." if agents[0] and len(agents) == 1 else "")))
    return Table(name, title, tuple(columns), cells, note)


_COMPARED = (
    Column("published", "published", figures=True),
    Column("ours", "ours", figures=True),
    Column(
        "range",
        "range",
        figures=True,
        priority=1,
        meaning="published figures with which ours would agree",
    ),
    Column("verdict", "verdict"),
    Column(
        "missed",
        "if off",
        figures=True,
        meaning="probability of *agrees* if the truth differed by 0.1, or by a tenth of a figure that is no share",
    ),
)


def _compared(row: StudyRow, whole: bool) -> Mapping[str, Cell]:
    spread = None if row.low is None or row.low == row.high else f"{number(row.low)} … {number(row.high)}"
    published, ours = (_cell(value, whole) for value in (row.published, row.ours))
    return {
        "published": published,
        "ours": ours,
        "range": spread,
        "verdict": row.verdict,
        "missed": row.agrees_if_off,
        "basis": row.basis,
    }


def _cell(value: float | None, whole: bool) -> Cell:
    """Return a figure as a number, so that it keeps its precision; as text where only powers of ten can be read."""
    if value is not None and whole:
        return int(value)
    return value if value is None or abs(value) < _LARGE else number(value)


def _by_agent(name: str, title: str, rows: Sequence[StudyRow], agents: Sequence[str], note: str) -> Table:
    """Return one line a published figure, with a column and a verdict for each agent."""
    figures: dict[tuple[str, float | None, str], dict[str, StudyRow]] = {}
    for row in rows:
        figures.setdefault((row.label, row.published, row.published_by), {})[row.ours_by] = row
    is_named = not note
    columns = [
        Column("label", "figure", role="text"),
        *([Column("by", "by", role="name", priority=1)] if is_named else []),
        Column("published", "published", figures=True),
    ]
    columns += [Column(agent, agent or "ours", figures=True) for agent in agents]
    lines: list[Mapping[str, Cell]] = []
    for (label, published, by), of in figures.items():
        shown = {agent: _figure(of.get(agent)) for agent in agents}
        lines.append(
            {"label": label, "by": by, "published": number(published), **shown, "verdict": _verdicts(of, agents)}
        )
    return Table(name, title, (*columns, Column("verdict", "verdict", role="text")), tuple(lines), note)


def _verdicts(of: Mapping[str, StudyRow], agents: Sequence[str]) -> str:
    """Return the verdicts in the order of the columns; once where they agree."""
    found = [of[agent].verdict for agent in agents if agent in of] or [row.verdict for row in of.values()]
    return found[0] if len(set(found)) == 1 else " / ".join(found)


def _figure(row: StudyRow | None) -> str | None:
    if row is None or row.ours is None:
        return None
    return f"{number(row.ours)} ± {number(row.spread)}" if row.spread else number(row.ours)


def number(value: float | None) -> str | None:
    """Return a figure for display: three decimals, none if it is large, then powers of ten."""
    if value is None:
        return None
    if abs(value) >= _HUGE:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:z.3f}"


PAGE, DOCUMENT, SCHEMA = "index.html", "reproduction.json", "reproduction/1"
FORMS: tuple[TableForm, ...] = ("csv", "markdown", "latex")


def overview(outcomes: Sequence[StudyOutcome]) -> Table:
    """Return one line a study."""
    lines: list[Mapping[str, Cell]] = []
    for outcome in outcomes:
        study, found = outcome.study, outcome.findings
        counts = Counter(row.verdict for row in found.rows) if found else Counter[str]()
        judged = {verdict: counts[verdict] if found else None for verdict in (AGREES, DIFFERS, TOO_WIDE)}
        extent = found.extent if found else None
        lines.append({"id": study.id, "kind": study.kind, "verdict": outcome.verdict, "extent": extent, **judged})
    columns = (
        Column("id", "study", role="name"),
        Column("kind", "kind", priority=1),
        Column("verdict", "verdict"),
        Column("extent", "judged", meaning="the others are too wide, another experiment, or need something"),
        Column(AGREES, "agree"),
        Column(DIFFERS, "differ"),
        Column(TOO_WIDE, "too wide"),
    )
    return Table("studies", "Studies", columns, tuple(lines), "Numbers count published figures.")


def reproduction_page(outcomes: Sequence[StudyOutcome]) -> Page:
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
    sentences = (
        *(
            (f"Still awaited: {counted(awaited, 'study', 'studies')}; this page is written with each.",)
            if awaited
            else ()
        ),
        *summary_sentences(found),
    )
    rows = distinct_rows(found)
    agree, judged = (sum(row.verdict in which for row in rows) for which in ((AGREES,), JUDGED))
    return Headline(f"{agree} of {judged}", "judged figures agree with the paper", sentences)


def distinct_rows(found: Sequence[Findings]) -> list[StudyRow]:
    """Return one row for each published figure: several agents or studies may have the same one."""
    rows: dict[tuple[str, ...], StudyRow] = {}
    for row in (row for findings in found for row in findings.rows if not row.same_as):
        key = (row.figure,) if row.figure else (row.source, row.section, row.label, row.published_by)
        kept = rows.get(key)
        if kept is None or (row.verdict in JUDGED and kept.verdict not in JUDGED):
            rows[key] = row
    return list(rows.values())


def summary_sentences(found: Sequence[Findings]) -> tuple[str, ...]:
    """Return how many figures agree, how many would differ by chance, and why the others are not judged."""
    rows = Counter(row.verdict for row in distinct_rows(found))
    judged, tested = (
        sum(rows[verdict] for verdict in JUDGED),
        sum(row.p is not None for row in distinct_rows(found) if row.verdict in JUDGED),
    )
    others = ", ".join(f"{rows[verdict]} {verdict}" for verdict in VERDICTS if verdict not in JUDGED and rows[verdict])
    return (
        f"{counted(sum(rows.values()), 'distinct published figure')}: {rows[AGREES]} agree, {rows[DIFFERS]} differ"
        f"{', ' + others if others else ''}.",
        *(
            (
                f"Of the {judged} judged figures {tested} are compared by a test, of which about "
                f"{tested * ERROR:.0f} would differ by chance if every truth were the same.",
            )
            if tested
            else ()
        ),
    )


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


def write_study(outcome: StudyOutcome, folder: Path, form: FigureForm | None) -> None:
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


def write_overview(outcomes: Sequence[StudyOutcome], folder: Path) -> Path:
    """Write what all studies share: the page, the same as a document, and the list; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "studies.md").write_text(overview(outcomes).markdown() + "\n", "utf-8")
    page, *_ = write_page(reproduction_page(outcomes), folder / PAGE)
    write_document(folder / DOCUMENT, SCHEMA, document_of_all(outcomes))
    return page


def document_of_all(outcomes: Sequence[StudyOutcome]) -> dict[str, Any]:
    """Return all studies as scripts read them."""
    ended = [one for one in outcomes if not one.is_awaited]
    return {
        "studies": [document_of(one.study, one.findings) for one in ended if one.findings is not None],
        "lost": [{"id": one.study.id, "reason": one.reason} for one in ended if one.findings is None],
        "awaited": [one.study.id for one in outcomes if one.is_awaited],
    }


@pages.add("reproduction")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Refuse in favour of the page that is there."""
    raise InputFileError(
        f"{folder} is a reproduction, whose page is {folder / 'index.html'}; "
        f"open that one, or make it anew with `eirkit reproduce --out {folder}`"
    )
