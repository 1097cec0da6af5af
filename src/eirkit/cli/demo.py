"""`eirkit demo`: the three questions on embedded defaults, in half a minute and offline, and a page of it all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.chart import EIGHTHS
from eirkit.cli.live_line import LiveLine
from eirkit.cli.output import emit, json_option, table
from eirkit.findings.causes import CAUSE_MEASURES
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.show.exports import write_page
from eirkit.show.pages.page_factory import pages
from eirkit.tasks.simulation.table import SIMULATION_MEASURES

EIR_PRESSURE = SIMULATION_MEASURES["eir_pressure"]


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/demo"),
    show_default=True,
    help="Where report.html, demo.json and the records go.",
)
@json_option
def demo(out: Path, as_json: bool) -> None:
    """Answer the main questions on embedded defaults and write them as one page."""
    with LiveLine("a small neural network is at work") as line:
        line.show(0, "half a minute at most")
        page = pages.get("demo")(out, (), tests=False)
    document = dict(page.answers)
    (report, *_) = write_page(page, out / "report.html")
    (out / "demo.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    emit(document, as_json, lambda console: _render(console, document, report))


def _render(console: Console, document: dict[str, Any], report: Path) -> None:
    _render_demand(console, document["demand"], document["contrast"])
    _render_retention(console, document["retention"])
    _render_recovery(console, document["recovery"])
    _render_causes(console, document)
    _render_recorded(console, document["recorded"])
    console.print(f"The same as a page: {report.resolve()}", highlight=False, markup=False, soft_wrap=True)


def _render_demand(console: Console, rows: list[dict[str, Any]], contrast: dict[str, float]) -> None:
    shown = [(r["workload"], _spark(r["bits"][::4]), f"{r['peak_bits']:.1f}", f"{r['records']:.1f}") for r in rows]
    title = "1. How much must survive?  (64 steps, a window of 16 results of 4 digits)"
    console.print(table(title, ("task", "bits after each step", "peak bits", "own results"), shown))
    console.print(
        f"The same inputs: {contrast['every_step_bits']:.1f} bits if every sum is asked for, "
        f"{contrast['final_only_bits']:.1f} if only the total is.\n",
        highlight=False,
    )


def _render_retention(console: Console, rows: list[dict[str, Any]]) -> None:
    shown = [
        (r["workload"], r["h"], f"{r['eir_pressure']:.1f}", *(f"{rate:.0%}" for rate in r["miss_rate"].values()))
        for r in rows
    ]
    title = f"2. Does a policy keep it?  (steps that miss an input, mean of {rows[0]['tasks']} tasks)"
    console.print(table(title, ("task", "h", EIR_PRESSURE.label, *rows[0]["miss_rate"]), shown))
    console.print(
        f"{EIR_PRESSURE.label}: {EIR_PRESSURE.meaning}; above 1 no agent is always right.\n",
        highlight=False,
    )


def _render_recovery(console: Console, rows: list[dict[str, Any]]) -> None:
    shown = [
        (r["fan_in"], r["fetched"], f"{r['results_kept']:.0f}", f"{r['nothing_kept']:,.0f}", f"{r['depth']:.0f}")
        for r in rows
    ]
    title = f"3. What does it cost to have a lost result again?  (reads, mean of {rows[0]['cones']:,})"
    console.print(table(title, ("inputs a step", "stored", "others kept", "nothing kept", "steps back"), shown))
    console.print()


def _render_causes(console: Console, document: dict[str, Any]) -> None:
    rows, rescued, example = document["causes"], document["rescue"], document["substitutes"]["example"]
    shown = [
        (r["h"], f"{r['accuracy']:.0%}", *(f"{r['errors'][one.id] / r['steps']:.0%}" for one in CAUSE_MEASURES))
        for r in rows
    ]
    title = f"4. Why was a step wrong?  (stepwise-sum, {document['agent']}, {rows[0]['runs']} runs a line)"
    heads = ("h", RUN_MEASURES["accuracy"].label, *(one.label for one in CAUSE_MEASURES))
    console.print(table(title, heads, shown))
    arms = {row["arm"]: f"{row['accuracy']:.0%}" for row in rescued["rows"]}
    millions = document["agent_parameters"] / 1e6
    console.print(
        f"The agent is a neural network of {millions:.1f} million parameters that comes with eirkit.\n"
        + (f"Step {example['t']}: {example['sentence']}\n" if example else "")
        + f"Give back what was missing and {arms['oracle']} of such steps are right; another value as long: "
        f"{arms['sham']}; nothing: {arms['control']}.\n",
        highlight=False,
    )


def _render_recorded(console: Console, found: dict[str, Any]) -> None:
    console.print("5. What did recorded runs need?", style="bold", highlight=False)
    console.print(
        f"{found['run_id']}, {found['turns']} turns: {found['peak_demand_tokens']:,} tokens at its peak; "
        f"{found['dead_read_tokens']:,} of {found['read_tokens']:,} tokens read led nowhere.",
        highlight=False,
    )


def _spark(bits: list[float]) -> str:
    top = max(bits)
    return "".join(EIGHTHS[round(8 * value / top)] for value in bits)
