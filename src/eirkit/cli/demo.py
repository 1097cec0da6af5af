"""`eirkit demo`: answers the three questions on built-in examples, offline, and writes a page about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote

import click
from msgspec.structs import asdict

from eirkit.cli.command import OUTPUT, Show, command, document_options, option
from eirkit.cli.execution import LiveLine
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES, SIMULATION_MEASURES
from eirkit.records.runs import CAUSES
from eirkit.report.demo.figures import Demonstration, RecordedFigures
from eirkit.report.document import Document, Listing, Page, Section, plain_data
from eirkit.report.exports import write_page
from eirkit.report.folders import pages
from eirkit.report.table import Column, Table, number
from eirkit.report.terminal import spark

EIR_PRESSURE = SIMULATION_MEASURES["eir_pressure"]


@command(example="eirkit demo --out out/demo")
@option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/demo"),
    show_default=True,
    metavar="DIR",
    group=OUTPUT,
    help="Folder for report.html, demo.json and the records.",
)
@document_options
def demo(out: Path, show: Show) -> None:
    """Answer the three questions on built-in examples and write an HTML page about them.

    Needs no network and no API key: the agent is a small neural network that is part of eirkit.
    """
    with LiveLine("running a small neural network") as line:
        line.show(0, "12 tasks with 16, 12 and 8 results in sight, and a rescue")
        page = pages.get("demo")(out, (), tests=False)
    (report, *_) = write_page(page, out / "report.html")
    (out / "demo.json").write_text(json.dumps(plain_data(page.answers), indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert isinstance(page.answers, Demonstration)
    show(_document(page, page.answers, report, out))


def _document(page: Page, data: Demonstration, report: Path, out: Path) -> Document:
    head = page.headline
    where = Section("", (), (Listing("page", "", f"page: {report.resolve()}"),))
    return Document(
        "demo",
        page.title,
        head.sentences[:1],
        data,
        (*_sections(page, data), where),
        details=page.sections,
        next=f"eirkit view {quote(str(out))}",
        number=head.number,
        caption=head.caption,
    )


def _sections(page: Page, data: Demonstration) -> Iterator[Section]:
    """Yield the tables of the page, with the columns that fit a screen, and what its other sections come to."""
    tables = {table.id: table for table in page.tables()}
    every, final = data.contrast.every_step_bits, data.contrast.final_only_bits
    curves = tuple(spark([bits or 0.0 for bits in row.bits[::4]]) for row in data.demand)
    peaks = tables["peaks"]
    workload, peak, records, _ = peaks.columns
    yield _shown(
        replace(peaks, rows=tuple({**row, "curve": curve} for row, curve in zip(peaks.rows, curves, strict=True))),
        "1. How much must survive? (64 steps, a window of 16 results of 4 digits)",
        (workload, Column("curve", "bits after each step"), peak, records),
        f"The same inputs need {every:.1f} bits if every sum is asked for, {final:.1f} if only the total is.",
    )
    policies = tables["policies-table"]
    yield _shown(
        policies,
        f"2. Does a policy keep it? (steps that miss an input, mean of {data.retention[0].tasks} tasks)",
        policies.columns,
        f"{EIR_PRESSURE.label}: {EIR_PRESSURE.meaning}; above 1 errors are certain.",
    )
    recovery = tables["recovery"]
    title = f"3. What does it cost to get a lost result back? (reads, mean of {data.recovery[0].cones:,})"
    yield _shown(recovery, title, recovery.columns)
    yield from _causes(data)
    yield _recorded(data.recorded)


def _shown(table: Table, title: str, columns: tuple[Column, ...], note: str = "") -> Section:
    return Section("", (), (replace(table, title=title, columns=columns, note=note),))


def _causes(data: Demonstration) -> tuple[Section, Section]:
    rows, rescued, example = data.causes, data.rescue, data.substitutes.example
    causes = [cause for cause in CAUSES if any(row.errors[cause] for row in rows)]
    columns = (
        Column("h", "h"),
        Column.of(RUN_MEASURES["accuracy"], digits=2, meaning=""),
        *(Column.of(CAUSE_MEASURES[cause], digits=2, meaning="") for cause in causes),
    )
    shown = tuple({**asdict(row), **{cause: row.errors[cause] / row.steps for cause in causes}} for row in rows)
    title = f"4. Why was a step wrong? (stepwise-sum, {data.agent}, {rows[0].runs} runs per line)"
    arms = {row.arm: f"{row.accuracy or 0.0:.0%}" for row in rescued.rows}
    millions = data.agent_parameters / 1e6
    words = [f"The agent is a neural network of {millions:.1f} million parameters that comes with eirkit."]
    words += [f"Step {example.t}: {example.sentence}"] if example else []
    words.append(
        f"With the missing result restored, {arms['oracle']} of such steps are right; with another value of the same "
        f"length, {arms['sham']}; with nothing, {arms['control']}."
    )
    return Section("", (), (Table("demo-causes", title, columns, shown),)), Section("", tuple(words))


def _recorded(found: RecordedFigures) -> Section:
    said = (
        f"{found.run_id}, {found.turns} turns: {number(found.peak_demand_tokens)} tokens at its peak, "
        f"{number(found.dead_read_tokens)} of {number(found.read_tokens)} read in vain."
    )
    return Section("5. What did recorded runs need?", (said,))
