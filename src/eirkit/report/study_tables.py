"""Rows of a study as tables: one a section, with a column for each agent where there are several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eirkit.report.page import anchor
from eirkit.report.study import Findings, Row
from eirkit.report.table import Cell, Column, Table

_LARGE, _HUGE = 1e4, 1e6


def all_rows(identity: str, findings: Findings) -> Table:
    """Return every row with all it says, for other programs."""
    columns = tuple(Column(name, name) for name in Row.__slots__)
    rows = tuple({name: getattr(row, name) for name in Row.__slots__} for row in findings.rows)
    return Table(f"{identity}-rows", "Rows", columns, rows)


def row_tables(identity: str, findings: Findings) -> tuple[Table, ...]:
    """Return the rows of each section as a table."""
    sections: dict[str, list[Row]] = {}
    for row in findings.rows:
        sections.setdefault(row.section, []).append(row)
    return tuple(_table(identity, title, rows) for title, rows in sections.items())


def _table(identity: str, title: str, rows: Sequence[Row]) -> Table:
    name = f"{identity}-{anchor(title)}"
    made = [row.ours_by for row in rows if row.ours_by or row.ours is not None]  # what is not here is nobody's column
    agents = list(dict.fromkeys(made)) or [""]
    models = {row.published_by for row in rows}
    note = f"Published figures by {rows[0].published_by}." if len(models) == 1 and rows[0].published_by else ""
    if len(agents) > 1:
        return _by_agent(name, title, rows, agents, note)
    columns = [Column("label", "figure"), *([Column("by", "by")] if len(models) > 1 else []), *_COMPARED]
    columns += [Column("basis", "judged by")] if any(row.basis for row in rows) else []
    whole = all(value is None or value == int(value) for row in rows for value in (row.published, row.ours))
    cells = tuple({"label": row.label, "by": row.published_by, **_compared(row, whole)} for row in rows)
    note = " ".join(filter(None, (note, f"Ours by {agents[0]}." if agents[0] else "")))
    return Table(name, title, tuple(columns), cells, note)


_COMPARED = (
    Column("published", "published"),
    Column("ours", "ours"),
    Column(
        "range",
        "range",
        meaning="where 99.7% of our means over as many seeds as the paper's lie, unless “judged by” says otherwise",
    ),
    Column("verdict", "verdict"),
)


def _compared(row: Row, whole: bool) -> Mapping[str, Cell]:
    spread = None if row.low is None or row.low == row.high else f"{number(row.low)} … {number(row.high)}"
    published, ours = (_cell(value, whole) for value in (row.published, row.ours))
    return {"published": published, "ours": ours, "range": spread, "verdict": row.verdict, "basis": row.basis}


def _cell(value: float | None, whole: bool) -> Cell:
    """Return a figure as a number, so that it keeps its precision; as text where only powers of ten can be read."""
    if value is not None and whole:
        return int(value)
    return value if value is None or abs(value) < _LARGE else number(value)


def _by_agent(name: str, title: str, rows: Sequence[Row], agents: Sequence[str], note: str) -> Table:
    """Return one line a published figure, with a column and a verdict for each agent."""
    figures: dict[tuple[str, float | None, str], dict[str, Row]] = {}
    for row in rows:
        figures.setdefault((row.label, row.published, row.published_by), {})[row.ours_by] = row
    is_named = not note
    columns = [Column("label", "figure"), *([Column("by", "by")] if is_named else []), Column("published", "published")]
    columns += [Column(agent, agent or "ours") for agent in agents]
    lines: list[Mapping[str, Cell]] = []
    for (label, published, by), of in figures.items():
        shown = {agent: _figure(of.get(agent)) for agent in agents}
        lines.append(
            {"label": label, "by": by, "published": number(published), **shown, "verdict": _verdicts(of, agents)}
        )
    return Table(name, title, (*columns, Column("verdict", "verdict")), tuple(lines), note)


def _verdicts(of: Mapping[str, Row], agents: Sequence[str]) -> str:
    """Return the verdicts in the order of the columns; once where they agree."""
    found = [of[agent].verdict for agent in agents if agent in of] or [row.verdict for row in of.values()]
    return found[0] if len(set(found)) == 1 else " / ".join(found)


def _figure(row: Row | None) -> str | None:
    if row is None or row.ours is None:
        return None
    if row.low is None or row.high is None or row.low == row.high:
        return number(row.ours)
    return f"{number(row.ours)} ± {number((row.high - row.low) / 6)}"


def number(value: float | None) -> str | None:
    """Return a figure as people read it: three digits behind the point, none where it is large, then powers of ten."""
    if value is None:
        return None
    if abs(value) >= _HUGE:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:z.3f}"
