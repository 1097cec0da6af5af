"""`eirkit lacuna run`: agents under a memory condition, as one sweep that can be killed and resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group

from eirkit.agents.serving.prices import add_up
from eirkit.cli.bench_options import PATH, RunnerOptions, control_option, dollars, runner_options, show_totals
from eirkit.cli.memory_table import (
    cost_columns,
    cost_legend,
    fate_columns,
    fates_shown,
    heading,
    meanings,
    memory_remarks,
)
from eirkit.cli.output import WITHHELD, emit, json_option, legend, table
from eirkit.cli.run_options import axis_options, given_keys
from eirkit.cli.sweep_progress import SweepProgress
from eirkit.errors import UsageError
from eirkit.findings.causes import CAUSE_MEASURES
from eirkit.findings.fates import FATE_MEASURES, MEMORY_MEASURES
from eirkit.findings.pooling import RUN_MEASURES
from eirkit.runs.claims import NOT_RUN
from eirkit.runs.control import control_plan
from eirkit.runs.estimate import CellEstimate, estimate_plan
from eirkit.runs.suite import Suite, load_suite, read_suite
from eirkit.runs.summary import SPENDING_MEASURES, RunSummary
from eirkit.runs.sweep import recorded_suite, resume_sweep, start_sweep
from eirkit.runs.values import UNLIMITED
from eirkit.show.phrases import counted

ALIGNED = RUN_MEASURES["first_error_at_first_miss"]
OF_LOSS = ("state_supply", "cascade")  # causes that are withheld where the control fails


@click.command()
@click.argument("suite", type=PATH, required=False)
@axis_options
@control_option
@runner_options("A new or empty folder; a fresh one under ./out unless given.")
@json_option
def run(
    suite: Path | None,
    control: bool | None,
    runner: RunnerOptions,
    as_json: bool,
    **axes: Any,
) -> int:
    """Run agents through tasks: a SUITE.toml, options, or a suite with options over it.

    Every option with a list makes the grid larger. Without --memory and --condition it is Controlled Retention over the
    last h records; with --memory the last h stay visible and the rest must come from the memory system.
    """
    wanted = _wanted(suite, runner.resume, given_keys(axes))
    if runner.dry_run:
        return _estimate(wanted, control, runner.limits.prices, as_json)
    folder = runner.resume or runner.out or _announced(fresh_folder(Path("out"), wanted.name))
    try:
        with SweepProgress() as progress, closing(runner.engine) if runner.engine else nullcontext():
            how = (runner.limits, progress, control, runner.engine)
            if runner.resume is None:
                summary = start_sweep(wanted, folder, *how)
            else:
                summary = resume_sweep(folder, wanted, *how)
    except KeyboardInterrupt:
        click.echo(f"eirkit: interrupted; continue with `eirkit lacuna run --resume {folder}`", err=True)
        return 130
    emit({"out": str(folder), **summary.as_json()}, as_json, lambda console: _render(console, folder, summary))
    return 0 if summary.complete and not summary.failures else 1


def _wanted(suite: Path | None, resume: Path | None, given: Mapping[str, Any]) -> Suite:
    """Return the suite of the file or of the folder, with the options over it; of the options alone otherwise."""
    if suite is not None:
        return load_suite(suite, given)
    if resume is not None:
        return recorded_suite(resume, given)
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


def _estimate(suite: Suite, control: bool | None, prices: Path | None, as_json: bool) -> int:
    estimates, before = estimate_plan(suite, prices), control_plan(suite, control)
    controls = [one.expected for one in estimate_plan(before, prices, every_seed=True)]
    sweep = add_up([one.expected for one in estimates])
    totals = add_up([sweep, *controls])
    document = {
        "rows": [one.as_json() for one in estimates],
        **asdict(totals),
        "runs": len(suite),
        "sweep": {**asdict(sweep), "runs": len(suite)},
        "control": {**asdict(add_up(controls)), "runs": len(before)},
    }
    emit(document, as_json, lambda console: _render_estimates(console, estimates, document))
    return 0


def _render_estimates(console: Console, estimates: list[CellEstimate], document: Mapping[str, Any]) -> None:
    rows = [one.as_json() for one in estimates]
    columns: dict[str, Sequence[object]] = {
        "seeds": [row["seeds"] for row in rows],
        **{
            SPENDING_MEASURES[name].label: [row[name] for row in rows]
            for name in ("calls", "input_tokens", "output_tokens")
        },
        SPENDING_MEASURES["cost_usd"].label: [dollars(row["cost_usd"]) for row in rows],
        "at most": [dollars(row["most_usd"]) for row in rows],
    }
    console.print(_table("One trial run a cell with a reference agent, times its seeds", rows, columns))
    if not document["control"]["runs"]:
        show_totals(console, document)
        return
    show_totals(console, document["sweep"], "the sweep, as above: ")
    show_totals(
        console, document["control"], "before it, the control, where nothing is missing (--no-control leaves it out): "
    )
    show_totals(console, {**document, "runs": document["runs"] + document["control"]["runs"]}, "together: ")


def _render(console: Console, folder: Path, summary: RunSummary) -> None:
    if summary.scored:
        _render_figures(console, summary.rows)
    else:
        console.print(
            f"none of {counted(summary.planned, 'run')} is scored", style="bold", markup=False, highlight=False
        )
    for line in _remarks(summary):
        console.print(line, markup=False, highlight=False)
    if not summary.complete and not _must_begin_anew(summary):
        console.print(f"continue with `eirkit lacuna run --resume {folder}`", markup=False, highlight=False)
    console.print(f"records in {folder}", markup=False, highlight=False)


def _must_begin_anew(summary: RunSummary) -> bool:
    """True where a memory in the user's own file spoilt every run: once corrected, it is not the one of this sweep."""
    own = any(".py:" in str(row["memory"] or "") for row in summary.rows)
    return own and not summary.scored and any(failure.kind == "memory" for failure in summary.failures)


def _render_figures(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    causes = [one for one in CAUSE_MEASURES if any(row["errors"][one.id] for row in rows)]
    columns: dict[str, Sequence[object]] = {
        heading(RUN_MEASURES["scored"]): [f"{row['scored']}/{row['attempted']}" for row in rows],
        heading(RUN_MEASURES["accuracy"]): [_with_spread(row) for row in rows],
        **{heading(one): [_cause(row, one.id) for row in rows] for one in causes},
        heading(ALIGNED): [_claim(row, _aligned(row)) for row in rows],
    }
    console.print(_table("Accuracy, and why steps were wrong", rows, columns))
    legend(console, **meanings([*causes, ALIGNED]))
    if stored := [row for row in rows if row["memory_system"] is not None]:
        fates, costs = fate_columns(stored), cost_columns(stored)
        console.print(_table(FATE_MEASURES.title, stored, fates, True))
        legend(console, **meanings(fates_shown(stored)))
        console.print(_table(MEMORY_MEASURES.title, stored, costs, True))
        legend(console, **cost_legend(costs))


def _cause(row: Mapping[str, Any], cause: str) -> object:
    """Return the share of steps that were wrong for a cause; a cause that speaks of lost information is a claim."""
    figure = row["error_shares"][cause]
    return _claim(row, figure) if cause in OF_LOSS else figure


def _claim(row: Mapping[str, Any], figure: object) -> object:
    """Return a figure about lost information, unless the cell failed the control."""
    return WITHHELD if row["control"] is not None and not row["claims"] else figure


def _aligned(row: Mapping[str, Any]) -> float | None:
    """Return the share of runs whose first error is at their first miss; None where no step was wrong at all."""
    return row["first_error_at_first_miss"] if any(row["errors"].values()) else None


def _with_spread(row: Mapping[str, Any]) -> str | None:
    return None if row["accuracy"] is None else f"{row['accuracy']:.3f}±{row['accuracy_sd']:.3f}"


def _remarks(summary: RunSummary) -> Iterator[str]:
    for model, workload, reason in summary.excluded:
        yield f"excluded: {model}, {workload}: {reason.removeprefix('excluded: ')}"
    if any(row["control"] is None and row["scored"] for row in summary.rows):
        which = "" if all(row["control"] is None for row in summary.rows) else " for some models"
        yield f"{NOT_RUN}{which}: causes are descriptive; add --control"
    for row in summary.rows:
        if row["max_turn"]:
            never = CAUSE_MEASURES["not_answered"].label
            open_steps = f"{row['errors']['not_answered']:,} of {row['steps']:,} steps"
            yield (
                f"{row['max_turn']} of {row['scored']} runs of {_condition(row)}, {row['workload']}, h = {row['h']} "
                f"ended at their limit of actions ({never}: {open_steps}); raise --actions"
            )
    for row in summary.rows:
        if row["suspect"]:
            yield f"suspect: {row['model']}, {_condition(row)}, h = {row['h']}: {row['suspect']}; check the adapter"
    for failure in summary.failures:
        yield f"not scored: {failure.runs} of {failure.model}, {failure.workload} ({failure.kind}): {failure.message}"
    yield from memory_remarks([row for row in summary.rows if row["memory_system"] is not None])
    yield from (f"stopped: {line}" for line in summary.stopped)


def _table(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Sequence[object]], brief: bool = False
) -> Group:
    """Return a table whose title says what all rows share and whose first columns say what tells them apart.

    Args:
        brief: name no more than is needed, under a table that says the rest.
    """
    where: dict[str, list[object]] = {
        "workload": [row["workload"] for row in rows],
        "model": [row["model"] for row in rows],
        "condition": [_condition(row) for row in rows],
        "panel": [row["panel"] if row["memory"] else None for row in rows],
        "n": [row["n"] for row in rows],
        "m": [row["m"] for row in rows],
        "B_oracle": [_budget(row["b_oracle"]) for row in rows],
        "B": [_budget(row["b"]) for row in rows],
        "h": [row["h"] for row in rows],
        "m/h": [f"{row['pressure']:.2f}" for row in rows],
    }
    always = ("condition",) if brief else ("h", "m/h")
    shared = {name: values[0] for name, values in where.items() if len(set(values)) == 1 and name not in always}
    told = ", ".join(f"{name} = {value}" for name, value in shared.items() if value not in (0, None))
    left_out = {*shared, "m/h"} if brief else set(shared)
    shown = {name: values for name, values in where.items() if name not in left_out} | dict(columns)
    full = f"{title} ({told})" if told and not brief else title
    return table(full, tuple(shown), list(zip(*shown.values(), strict=True)))


def _condition(row: Mapping[str, Any]) -> str:
    if row["policy"] is None:
        return str(row["memory"] or row["condition"])
    return str(row["condition"]) if row["policy"] == "window" else f"{row['condition']} {row['policy']}"


def _budget(value: int | str) -> int | str:
    return "∞" if value == UNLIMITED else value
