"""Builds the tables and pages of `eirkit reproduce`, and writes them to its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from eirkit.errors import InputFileError
from eirkit.records.documents import write_struct
from eirkit.report.document import Headline, Listing, Page, Section, anchor
from eirkit.report.exports import FigureForm, TableForm, write_figures, write_page, write_tables
from eirkit.report.folders import pages
from eirkit.report.table import Cell, Column, Table, counted
from eirkit_paper.published import figures_by_id
from eirkit_paper.runner import StudyOutcome
from eirkit_paper.study import (
    JUDGED,
    KINDS,
    MEANINGS,
    VERDICTS,
    Findings,
    Study,
    StudyResult,
    StudyRow,
    distinct,
)
from eirkit_paper.verdicts import AGREES, DIFFERS, ERROR, TOO_WIDE

_LARGE, _HUGE = 1e4, 1e6
OWN_CHECKS = "Own checks"
HOLDS, FAILS = "holds", "fails"  # of an own check


def all_rows(identity: str, findings: Findings) -> Table:
    """Return every row with all it says, for other programs."""
    columns = tuple(Column(name, name) for name in StudyRow.__struct_fields__)
    rows = tuple({name: getattr(row, name) for name in StudyRow.__struct_fields__} for row in findings.rows)
    return Table(f"{identity}-rows", "Rows", columns, rows)


def row_tables(identity: str, findings: Findings) -> tuple[Table, ...]:
    """Return the rows of each section as a table; those of which the paper prints nothing have one of their own."""
    sections: dict[tuple[str, bool], list[StudyRow]] = {}
    for row in findings.rows:
        sections.setdefault((row.section, row.is_printed), []).append(row)
    return tuple(
        _table(identity, title if is_printed else f"{OWN_CHECKS}: {title}", rows)
        for (title, is_printed), rows in sections.items()
    )


def _stated(row: StudyRow) -> float | None:
    return row.published if row.is_printed else row.expected


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
        *(_COMPARED if rows[0].is_printed else (_EXPECTED, *_COMPARED[1:])),
    ]
    columns += [Column("basis", "judged by", role="text", priority=2)] if any(row.basis for row in rows) else []
    whole = all(value is None or value == int(value) for row in rows for value in (_stated(row), row.ours))
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


_EXPECTED = Column(
    "published", "expected", figures=True, meaning="what a check must give, or what follows from printed figures"
)


def _compared(row: StudyRow, whole: bool) -> Mapping[str, Cell]:
    spread = None if row.low is None or row.low == row.high else f"{number(row.low)} … {number(row.high)}"
    published, ours = (_cell(value, whole) for value in (_stated(row), row.ours))
    return {
        "published": published,
        "ours": ours,
        "range": spread,
        "verdict": _verdict(row),
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
        figures.setdefault((row.label, _stated(row), row.published_by), {})[row.ours_by] = row
    is_named = not note
    columns = [
        Column("label", "figure", role="text"),
        *([Column("by", "by", role="name", priority=1)] if is_named else []),
        _COMPARED[0] if rows[0].is_printed else _EXPECTED,
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
    found = [_verdict(of[agent]) for agent in agents if agent in of] or [_verdict(row) for row in of.values()]
    return found[0] if len(set(found)) == 1 else " / ".join(found)


def _verdict(row: StudyRow) -> str:
    return row.verdict if row.is_printed else {AGREES: HOLDS, DIFFERS: FAILS}.get(row.verdict, row.verdict)


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
        counts = Counter(row.verdict for row in found.printed) if found else Counter[str]()
        judged = {verdict: counts[verdict] if found else None for verdict in (AGREES, DIFFERS, TOO_WIDE)}
        extent = found.extent if found else None
        line = {"id": study.id, "kind": study.kind, "verdict": outcome.verdict, "extent": extent, **judged}
        lines.append({**line, "own": own_checks(found.own_checks) if found else None})
    columns = (
        Column("id", "study", role="name"),
        Column("kind", "kind", priority=1),
        Column("verdict", "verdict"),
        Column(
            "extent",
            "judged",
            meaning="of the printed figures; the others are too wide, another experiment, or need something",
        ),
        Column(AGREES, "agree"),
        Column(DIFFERS, "differ"),
        Column(TOO_WIDE, "too wide"),
        Column("own", "own checks hold", priority=1, meaning="of which the paper prints no figure"),
    )
    note = "Numbers count figures that the paper prints, each once; own checks are counted apart."
    return Table("studies", "Studies", columns, tuple(lines), note)


def own_checks(rows: Sequence[StudyRow]) -> str | None:
    """Return how many of the own checks that could be made hold."""
    made = [row for row in rows if row.verdict in JUDGED]
    return f"{sum(row.verdict == AGREES for row in made)} of {len(made)}" if made else None


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
    sections = [_section(outcome.study, outcome.findings) for outcome in outcomes if outcome.findings]
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
    judged = sum(row.verdict in JUDGED for row in rows)
    return Headline(f"{judged} of {len(rows)}", "printed figures are judged", sentences)


def distinct_rows(found: Sequence[Findings]) -> list[StudyRow]:
    """Return one row for each printed figure of all studies."""
    return distinct(row for findings in found for row in findings.rows)


def summary_sentences(found: Sequence[Findings]) -> tuple[str, ...]:
    """Return how many printed figures are judged, how many would differ by chance, and what the others lack."""
    printed = distinct_rows(found)
    rows = Counter(row.verdict for row in printed)
    judged, tested = (
        sum(rows[verdict] for verdict in JUDGED),
        sum(row.p is not None for row in printed if row.verdict in JUDGED),
    )
    others = ", ".join(f"{rows[verdict]} {verdict}" for verdict in VERDICTS if verdict not in JUDGED and rows[verdict])
    unseen = _without_a_row(printed)
    own = own_checks([row for findings in found for row in findings.own_checks if not row.same_as])
    return (
        f"{judged} of {counted(len(printed), 'printed figure')} {'is' if judged == 1 else 'are'} judged: "
        f"{rows[AGREES]} agree, {rows[DIFFERS]} differ{'. Not judged: ' + others if others else ''}.",
        *((unseen,) if unseen else ()),
        *((f"Of our own checks, of which the paper prints no figure, {own} hold.",) if own else ()),
        *(
            (
                f"Of the {judged} judged figures {tested} are compared by a test, of which about "
                f"{tested * ERROR:.0f} would differ by chance if every truth were the same.",
            )
            if tested
            else ()
        ),
    )


def _without_a_row(rows: Sequence[StudyRow]) -> str:
    """Return how many figures the paper prints beside those of the same studies that have a row."""
    shown = {row.figure.removesuffix("|±") for row in rows}
    known = figures_by_id()
    studies = {known[name].study for name in shown if name in known}
    left = [one for one in known.values() if one.study in studies and not one.same_as and one.id not in shown]
    of_models = sum(bool(one.cells) and not one.reason for one in left)
    parts = (f"{of_models} are compared where models run", f"{len(left) - of_models} are not compared")
    said = " and ".join(part for part, number in zip(parts, (of_models, len(left) - of_models), strict=True) if number)
    return f"The paper prints {len(left)} more in the same places: {said}." if left else ""


def study_page(study: Study, findings: Findings) -> Page:
    """Return the page of one study, of which its files are made."""
    headline = Headline(findings.verdict, f"{study.title}; judged: {findings.extent} printed figures", ())
    return Page(study.title, headline, (_section(study, findings),), study.id, kind="study")


def _section(study: Study, findings: Findings) -> Section:
    words = (
        f"{study.title}. Verdict: {findings.verdict}, {findings.extent} printed figures judged. "
        f"In the paper: {study.place}. {KINDS[study.kind].capitalize()}.",
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
    write_struct(folder / DOCUMENT, SCHEMA, reproduction_of(outcomes))
    return page


class LostStudy(Struct, frozen=True):
    """A study without findings, and why."""

    id: str
    reason: str


class Reproduction(Struct, frozen=True):
    """All studies as scripts read them."""

    studies: tuple[StudyResult, ...]
    lost: tuple[LostStudy, ...]
    awaited: tuple[str, ...]


def reproduction_of(outcomes: Sequence[StudyOutcome]) -> Reproduction:
    """Return all studies as scripts read them."""
    ended = [outcome for outcome in outcomes if not outcome.is_awaited]
    return Reproduction(
        tuple(one.study.result(one.findings) for one in ended if one.findings is not None),
        tuple(LostStudy(one.study.id, one.reason) for one in ended if one.findings is None),
        tuple(one.study.id for one in outcomes if one.is_awaited),
    )


@pages.add("reproduction")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Refuse in favor of the page that is there."""
    raise InputFileError(
        f"{folder} is a reproduction, whose page is {folder / 'index.html'}; "
        f"open that one, or make it anew with `eirkit reproduce --out {folder}`"
    )
