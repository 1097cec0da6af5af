"""`eirkit lacuna run`: agents under a memory condition, as one sweep that can be killed and resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group

from eirkit.cli.output import emit, json_option, table
from eirkit.cli.run_options import axis_options, given_keys
from eirkit.cli.sweep_progress import SweepProgress
from eirkit.errors import UsageError
from eirkit.lacuna.sweeps.estimation import CellEstimate, estimate_suite, total
from eirkit.lacuna.sweeps.experiment import resume_sweep, start_sweep
from eirkit.lacuna.sweeps.manifest import read_manifest
from eirkit.lacuna.sweeps.model_pool import Funds
from eirkit.lacuna.sweeps.suite import Suite, load_suite, read_suite
from eirkit.lacuna.sweeps.suite_values import UNLIMITED
from eirkit.lacuna.sweeps.summary import Summary

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("suite", type=_PATH, required=False)
@axis_options
@click.option("--out", type=_PATH, help="A new or empty folder; a fresh one under ./out unless given.")
@click.option("--resume", type=_PATH, metavar="DIR", help="Finish the sweep in this folder; enough by itself.")
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; run nothing.")
@click.option("--cap-usd", type=click.FloatRange(0), help="Stop cleanly before more than this is spent.")
@click.option("--prices", type=_PATH, help="A price file over the built-in one.")
@click.option("--cache", type=_PATH, help="A file that keeps replies; what it holds is not asked again.")
@json_option
def run(
    suite: Path | None,
    out: Path | None,
    resume: Path | None,
    dry_run: bool,
    cap_usd: float | None,
    prices: Path | None,
    cache: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Run agents through tasks: a SUITE.toml, options, or a suite with options over it.

    Every option with a list makes the grid larger. Without --memory and --condition it is Controlled Retention over the
    last h records; with --memory the last h stay visible and the rest must come from the memory system.
    """
    if resume is not None and out is not None:
        raise UsageError("--resume writes where the sweep was begun; leave out --out")
    wanted = _wanted(suite, resume, given_keys(options))
    if dry_run:
        return _estimate(wanted, prices, as_json)
    folder = resume or out or _announced(fresh_folder(Path("out"), wanted.name))
    funds = Funds(cap_usd, prices, cache)
    try:
        with SweepProgress() as progress:
            if resume is None:
                summary = start_sweep(wanted, folder, funds, progress)
            else:
                summary = resume_sweep(folder, wanted, funds, progress)
    except KeyboardInterrupt:
        click.echo(f"eirkit: interrupted; continue with `eirkit lacuna run --resume {folder}`", err=True)
        return 130
    emit({"out": str(folder), **summary.as_json()}, as_json, lambda console: _render(console, folder, summary))
    return 0 if summary.complete else 1


def _wanted(suite: Path | None, resume: Path | None, given: Mapping[str, Any]) -> Suite:
    """Return the suite of the file or of the folder, with the options over it; of the options alone otherwise."""
    if suite is not None:
        return load_suite(suite, given)
    if resume is not None:
        return read_suite(read_manifest(resume).suite, given)
    if not {"workload", "model"} <= given.keys():
        raise UsageError("nothing to run; give a SUITE.toml, or --workload and --model, or --resume DIR")
    return read_suite(given)


def _announced(folder: Path) -> Path:
    click.echo(f"writing to {folder}", err=True)
    return folder


def fresh_folder(parent: Path, name: str) -> Path:
    """Return the first folder name-1, name-2, … that is not there yet."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def _estimate(suite: Suite, prices: Path | None, as_json: bool) -> int:
    estimates = estimate_suite(suite, prices)
    document = {"rows": [one.as_json() for one in estimates], **asdict(total(estimates)), "runs": len(suite)}
    emit(document, as_json, lambda console: _render_estimates(console, estimates, document))
    return 0


def _render_estimates(console: Console, estimates: list[CellEstimate], document: Mapping[str, Any]) -> None:
    rows = [one.as_json() for one in estimates]
    columns: dict[str, Sequence[object]] = {
        "seeds": [row["seeds"] for row in rows],
        "calls": [row["calls"] for row in rows],
        "tokens in": [row["input_tokens"] for row in rows],
        "tokens out": [row["output_tokens"] for row in rows],
        "cost": [_dollars(row["cost_usd"]) for row in rows],
        "at most": [_dollars(row["most_usd"]) for row in rows],
    }
    console.print(_table("One trial run a cell with a reference agent, times its seeds", rows, columns))
    cost, most = _dollars(document["cost_usd"]), _dollars(document["most_usd"])
    calls, tokens = document["calls"], document["input_tokens"] + document["output_tokens"]
    console.print(
        f"{document['runs']:,} runs, {calls:,} calls, {tokens:,} tokens, {cost}, at most {most}", markup=False
    )


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"


def _render(console: Console, folder: Path, summary: Summary) -> None:
    rows = summary.rows
    columns: dict[str, Sequence[object]] = {
        "scored": [f"{row['scored']}/{row['attempted']}" for row in rows],
        "accuracy": [_with_spread(row) for row in rows],
        "aligned": [row["first_error_at_first_miss"] for row in rows],
        "computation": [row["errors"]["computation"] for row in rows],
        "supply": [row["errors"]["state_supply"] for row in rows],
        "cascade": [row["errors"]["cascade"] for row in rows],
    }
    console.print(_table("Accuracy, and why steps were wrong", rows, columns))
    for line in _remarks(summary):
        console.print(line, markup=False, highlight=False)
    if not summary.complete:
        console.print(f"continue with `eirkit lacuna run --resume {folder}`", markup=False, highlight=False)
    console.print(f"records in {folder}", markup=False, highlight=False)


def _with_spread(row: Mapping[str, Any]) -> str | None:
    return None if row["accuracy"] is None else f"{row['accuracy']:.3f}±{row['accuracy_sd']:.3f}"


def _remarks(summary: Summary) -> Iterator[str]:
    for row in summary.rows:
        if row["suspect"]:
            yield f"suspect: {row['model']}, {_condition(row)}, h = {row['h']}: {row['suspect']}; check the adapter"
    for failure in summary.failures:
        yield f"not scored: {failure.runs} of {failure.model}, {failure.workload} ({failure.kind}): {failure.message}"
    yield from (f"stopped: {line}" for line in summary.stopped)


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Sequence[object]]) -> Group:
    """Return a table whose title says what all rows share and whose first columns say what tells them apart."""
    where: dict[str, list[object]] = {
        "workload": [row["workload"] for row in rows],
        "model": [row["model"] for row in rows],
        "condition": [_condition(row) for row in rows],
        "n": [row["n"] for row in rows],
        "m": [row["m"] for row in rows],
        "B_oracle": [_budget(row["b_oracle"]) for row in rows],
        "B": [_budget(row["b"]) for row in rows],
        "h": [row["h"] for row in rows],
        "m/h": [f"{row['pressure']:.2f}" for row in rows],
    }
    shared = {name: values[0] for name, values in where.items() if len(set(values)) == 1 and name not in ("h", "m/h")}
    told = ", ".join(f"{name} = {value}" for name, value in shared.items() if value != 0)
    shown = {name: values for name, values in where.items() if name not in shared} | dict(columns)
    return table(f"{title} ({told})" if told else title, tuple(shown), list(zip(*shown.values(), strict=True)))


def _condition(row: Mapping[str, Any]) -> str:
    if row["policy"] is None:
        return str(row["memory"] or row["condition"])
    return str(row["condition"]) if row["policy"] == "window" else f"{row['condition']} {row['policy']}"


def _budget(value: int | str) -> int | str:
    return "∞" if value == UNLIMITED else value
