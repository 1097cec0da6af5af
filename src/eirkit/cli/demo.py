"""`eirkit demo`: answers the three questions on built-in examples, offline, and writes a page about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import click
from msgspec.structs import asdict

from eirkit.cli.command import OUTPUT, Show, command, document_options, option
from eirkit.cli.execution import LiveLine
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, RUN_MEASURES, SIMULATION_MEASURES
from eirkit.records.runs import CAUSES
from eirkit.report.demo.figures import (
    ContractContrast,
    DemandRow,
    Demonstration,
    RecordedFigures,
    RecoveryRow,
    RetentionRow,
)
from eirkit.report.demo.page import POLICY_NAMES
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
        line.show(0, "at most half a minute")
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
        (*_sections(data), where),
        details=page.sections,
        next=f"eirkit view {quote(str(out))}",
        number=head.number,
        caption=head.caption,
    )


def _sections(data: Demonstration) -> Iterator[Section]:
    yield _demand(data.demand, data.contrast)
    yield _retention(data.retention)
    yield _recovery(data.recovery)
    yield from _causes(data)
    yield _recorded(data.recorded)


def _demand(rows: Sequence[DemandRow], contrast: ContractContrast) -> Section:
    columns = (
        Column("workload", "task", role="name"),
        Column("curve", "bits after each step"),
        Column("peak_bits", "peak bits", 1),
        Column("records", "results that hold as much", 1),
    )
    shown = tuple({**asdict(row), "curve": spark([bits or 0.0 for bits in row.bits[::4]])} for row in rows)
    every, final = contrast.every_step_bits, contrast.final_only_bits
    note = f"The same inputs need {every:.1f} bits if every sum is asked for, {final:.1f} if only the total is."
    title = "1. How much must survive? (64 steps, a window of 16 results of 4 digits)"
    return Section("", (), (Table("demo-demand", title, columns, shown, note),))


def _retention(rows: Sequence[RetentionRow]) -> Section:
    policies = tuple(rows[0].miss_rate)
    columns = (
        Column("workload", "task", role="name"),
        Column("h", "h"),
        Column("eir_pressure", EIR_PRESSURE.label, 1),
        *(Column(name, POLICY_NAMES.get(name, name), 2, percent=True) for name in policies),
    )
    shown = tuple({**asdict(row), **row.miss_rate} for row in rows)
    title = f"2. Does a policy keep it? (steps that miss an input, mean of {rows[0].tasks} tasks)"
    note = f"{EIR_PRESSURE.label}: {EIR_PRESSURE.meaning}; above 1 errors are certain."
    return Section("", (), (Table("demo-retention", title, columns, shown, note),))


def _recovery(rows: Sequence[RecoveryRow]) -> Section:
    columns = (
        Column("fan_in", "inputs per step"),
        Column("fetched", "stored"),
        Column("results_kept", "others kept", 0),
        Column("nothing_kept", "nothing kept", 0),
        Column("depth", "steps back", 0),
    )
    title = f"3. What does it cost to get a lost result back? (reads, mean of {rows[0].cones:,})"
    return Section("", (), (Table("demo-recovery", title, columns, tuple(map(asdict, rows))),))


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
