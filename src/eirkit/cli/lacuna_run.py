"""`eirkit lacuna run`: runs or resumes a sweep; columns, remarks and the next command of what it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from decimal import ROUND_CEILING, Decimal
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from eirkit.cli.command import Show, document_options, say
from eirkit.cli.options import workload_command
from eirkit.cli.run_options import axis_options, given_keys, suite_argument
from eirkit.cli.runner_options import (
    RunnerOptions,
    SweepProgress,
    control_option,
    estimate_document,
    runner_options,
    spending_remarks,
    totals,
)
from eirkit.errors import UsageError
from eirkit.lacuna.findings.fates import NOT_ASKED, RETURNED
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, FATE_MEASURES, MEMORY_MEASURES, RUN_MEASURES
from eirkit.lacuna.findings.validity import doubt_of, is_withheld, system_remarks
from eirkit.lacuna.memories.plan import EXTRACTOR, memory_factory
from eirkit.lacuna.models.ledger import RAISE
from eirkit.lacuna.models.metered import PRICE_LONGER
from eirkit.lacuna.models.prices import add_up
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.capability import NO_CONTROL
from eirkit.lacuna.runs.control import FOLDER as CONTROL
from eirkit.lacuna.runs.control import control_plan
from eirkit.lacuna.runs.estimate import cap_of_next_run, estimate_plan, read_recorded
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.suite import Suite, load_suite, read_suite
from eirkit.lacuna.runs.summary import RunSummary, in_words, silences
from eirkit.lacuna.runs.sweep import recorded_suite, resume_sweep, start_sweep
from eirkit.lacuna.runs.values import UNLIMITED
from eirkit.report.document import Document, Listing, Section
from eirkit.report.runs.words import answer_in_words, word_tables
from eirkit.report.table import Column, Table, counted, share

Row = Mapping[str, Any]

COUNTED_BY = "who says what is held: the system itself, or eirkit from what it was given where the system cannot tell"

Columns = dict[Column, list[Any]]


def fate_columns(rows: Sequence[Row]) -> Columns:
    """Return columns with the fates of needed records; fates that no record had are left out."""
    systems = [row["memory_system"] for row in rows]
    shown = [one for one in FATE_MEASURES if any(system["fates"][one.id] for system in systems)]
    return {
        Column.of(MEMORY_MEASURES["needed"]): [sum(one["fates"].values()) for one in systems],
        **{Column.of(one): [system["fate_shares"].get(one.id) for system in systems] for one in shown},
    }


def cost_columns(rows: Sequence[Row]) -> Columns:
    """Return time, size and the systems' own calls, if there were any, for the same rows."""
    found = [row["memory_system"] for row in rows]
    figures: dict[str, list[Any]] = {
        "write_ms": [_milliseconds(one["write_seconds"]) for one in found],
        "search_ms": [_milliseconds(one["search_seconds"]) for one in found],
        "records": [one["records"] for one in found],
        "bytes": [one["bytes"] for one in found],
        "held_bits": [_bits(one["floor"], "held_bits") for one in found],
        "needed_bits": [_bits(one["floor"], "needed_bits") for one in found],
    }
    if any(one["model_calls"] for one in found):
        figures["model_calls"] = [one["model_calls"] for one in found]
        figures["memory_tokens"] = [one["input_tokens"] + one["output_tokens"] for one in found]
    counted_by = [None if one["floor"] is None else one["floor"]["counted"] for one in found]
    plain = {"write_ms", "search_ms", "records", "bytes"}  # whose labels say it all
    columns: Columns = {
        Column.of(MEMORY_MEASURES[key], **({"meaning": ""} if key in plain else {})): values
        for key, values in figures.items()
    }
    return columns | {Column("counted", "counted by", priority=1, meaning=COUNTED_BY): counted_by}


def memory_remarks(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a remark on each system, and on rows that cannot be compared."""
    yield from _held(rows)
    several = len({row["panel"] for row in rows}) > 1
    for row in rows:
        where = f"memory {row['memory']}, {row['workload']}, h = {row['h']}{', ' + row['panel'] if several else ''}"
        yield from (f"{where}: {finding}" for finding in row["memory_system"]["diagnosis"])
    if any(row["memory_system"]["model_calls"] and _is_scripted(row) for row in rows):
        yield (
            f"{EXTRACTOR} answered what the systems asked of a model: a script, not a model, and its tokens are an "
            "estimate; give them a model with --memory-set NAME.model=PROVIDER/MODEL"
        )
    if any(row["panel"] == "native" and row["scored"] for row in rows):
        remedy = "" if several else "; add --panel strict"
        yield (
            "native panel: each system keeps as much as it likes, so its rows do not compare with those held to h"
            f"{remedy}"
        )


def _held(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each system and panel, over its scored rows without a diagnosed problem."""
    good: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if not row["memory_system"]["diagnosis"] and row["scored"]:
            good.setdefault((row["memory"], row["panel"]), []).append(row)
    for (memory, panel), held in good.items():
        brought, left = (sum(_sum(row, *fates) for row in held) for fates in (RETURNED, NOT_ASKED))
        tasks = _tasks(held)
        where, never = f"({panel} panel; {tasks})", " or ".join(FATE_MEASURES[fate].label for fate in NOT_ASKED)
        if not brought and not left:
            yield f"{memory} was not tested {where}: no record was needed from it"
        elif not brought:
            yield (
                f"{memory} was not tested {where}: the {left} records needed from it were {never}; try an agent that "
                "writes and searches, such as reference/recoverer"
            )
        elif not left:
            yield f"{memory} returned every record needed from it {where}: {brought} of {brought}"
        else:
            yield (
                f"{memory} returned every record it was asked for {where}: {brought} of {brought + left}; {left} were "
                f"{never}"
            )


def _tasks(rows: Sequence[Row]) -> str:
    """Return the workloads of rows and their capacities, in words."""
    by_h: dict[int, dict[str, None]] = {}
    for row in rows:
        by_h.setdefault(row["h"], {})[row["workload"]] = None
    return "; ".join(f"{', '.join(workloads)} at h = {h}" for h, workloads in by_h.items())


def _sum(row: Row, *fates: str) -> int:
    return sum(row["memory_system"]["fates"][fate] for fate in fates)


def _is_scripted(row: Row) -> bool:
    return memory_factory().model_of(row["memory"], row["memory_settings"]) == EXTRACTOR


def _bits(floor: Mapping[str, Any] | None, which: str) -> float | None:
    return None if floor is None else float(floor[which])


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


ALIGNED = RUN_MEASURES["first_error_at_first_miss"]
OF_LOSS = ("state_supply", "cascade")  # causes that are withheld where the control fails
WITHHELD = "withheld"  # in place of a figure that may not be claimed
_NAMES = ("workload", "model", "condition")
_KEYS = {"B_oracle": "b_oracle", "B": "b"}  # budgets, which may be ∞


@workload_command(example="eirkit lacuna run words --model scripted/reader --memory text,bm25 --seeds 0:8", told=True)
@suite_argument
@axis_options
@control_option
@runner_options("A new or empty folder.  [default: a new one in ./out]")
@document_options
def run(
    suite: Path | None,
    control: bool | None,
    runner: RunnerOptions,
    show: Show,
    **options: Any,
) -> int:
    """Run agents on the tasks of a WORKLOAD or a SUITE.toml; options replace values of the suite.

    Options that take lists, separated by commas, make a grid. Without --memory and --condition only the last h records
    are visible (controlled retention); with --memory everything else must come from the memory system. In conversations
    (words) everything must come from it, and without it the whole conversation is shown.
    """
    wanted = _wanted(suite, runner.resume, given_keys(options))
    if runner.dry_run:
        show(_estimate(wanted, control, runner))
        return 0
    named = runner.resume or runner.out
    folder = named or fresh_folder(Path("out"), wanted.name)
    try:
        with (
            SweepProgress("" if named else f"writing to {folder}") as progress,
            closing(runner.engine) if runner.engine else nullcontext(),
        ):
            how = (runner.limits, progress, control, runner.engine)
            if runner.resume is None:
                summary = start_sweep(wanted, folder, *how)
            else:
                summary = resume_sweep(folder, wanted, *how)
    except KeyboardInterrupt:
        say(f"eirkit: interrupted; continue with `eirkit lacuna run --resume {quote(str(folder))}`")
        return 130
    show(_document(folder, summary, partial(_cap_of_next_run, folder, wanted, runner)))
    return 0 if summary.complete and not summary.failures else 1


def _wanted(suite: Path | None, resume: Path | None, given: Mapping[str, Any]) -> Suite:
    """Return the suite of the file or of the folder, with the options over it; of the options alone otherwise."""
    if suite is not None:
        return load_suite(suite, given)
    if resume is not None:
        return recorded_suite(resume, given)
    if not {"workload", "model"} <= given.keys():
        raise UsageError("nothing to run; give a WORKLOAD and --model, a SUITE.toml, or --resume DIR")
    return read_suite(given)


def fresh_folder(parent: Path, name: str) -> Path:
    """Return the first folder name-1, name-2, … that does not exist yet."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def _estimate(suite: Suite, control: bool | None, runner: RunnerOptions) -> Document:
    budget, before = runner.kept_budget(), control_plan(suite, control)
    estimates = estimate_plan(suite, budget, runner.recorded())
    controls = estimate_plan(before, budget, runner.recorded(CONTROL), every_seed=True)
    sweep, own = (add_up([one.expected for one in some]) for some in (estimates, controls))
    left, left_before = (sum(one.runs for one in some) for some in (estimates, controls))
    rows = [one.as_json() for one in estimates]
    data = {
        "rows": rows,
        **asdict(add_up([sweep, own])),
        "runs": left,
        "sweep": {**asdict(sweep), "runs": left},
        "control": {**asdict(own), "runs": left_before},
        **runner.basis(estimates),
    }
    answer = totals({**data, "runs": left + left_before})
    shown = [{**row, "condition": _condition(row)} for row in rows]
    return estimate_document("lacuna-run", shown, data, answer, tuple(_parts(data)) if left_before else ())


def _parts(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the estimates of the sweep and of its control separately."""
    yield totals(data["sweep"], "the sweep, below: ")
    yield totals(data["control"], "before it, the control with nothing missing (--no-control leaves it out): ")


def _cap_of_next_run(folder: Path, suite: Suite, runner: RunnerOptions) -> str | None:
    """Return a cap at which one more run can finish, in dollars and rounded up; None if that is unknown."""
    budget = Budget(SpendingLimits(prices=runner.limits.prices), folder)
    recorded = read_recorded(folder)
    before = control_plan(suite, read_manifest(folder).control)
    estimates = [
        *estimate_plan(suite, budget, recorded),
        *estimate_plan(before, budget, read_recorded(folder, CONTROL), every_seed=True),
    ]
    cap = cap_of_next_run(estimates, recorded.journal)
    if cap is None:
        return None
    return f"{cap.quantize(Decimal(1).scaleb(min(-2, cap.adjusted() - 1)), ROUND_CEILING):f}"


def _again(folder: Path, summary: RunSummary, cap: Callable[[], str | None]) -> str:
    """Return the command that goes on with a sweep; one that its cap has stopped needs a higher one."""
    again = f"eirkit lacuna run --resume {quote(str(folder))}"
    if not any(RAISE in reason for reason in summary.stopped):
        is_unpriced = any(PRICE_LONGER in reason for reason in summary.stopped)
        return f"{again} --prices FILE" if is_unpriced else again
    higher = cap()
    return f"{again} --dry-run" if higher is None else f"{again} --cap-usd {higher}"


def _document(folder: Path, summary: RunSummary, cap: Callable[[], str | None]) -> Document:
    sections = [Section("", (), tuple(_tables(summary.rows)))] if summary.scored else []
    sections.append(Section("", tuple(_remarks(summary)), (Listing("records", "", f"records in {folder}"),)))
    again = not summary.complete and not _must_begin_anew(summary)
    where = quote(str(folder))
    several = len({row["memory"] for row in summary.rows if row["scored"] and row["memory"] is not None}) > 1
    then = _again(folder, summary, cap) if again else f"eirkit {'choose' if several else 'report'} {where}"
    data = {"out": str(folder), **summary.as_json()}
    return Document("lacuna-run", f"Sweep in {folder}", (_answer(summary),), data, tuple(sections), next=then)


def _answer(summary: RunSummary) -> str:
    if not summary.scored:
        return f"None of {counted(summary.planned, 'run')} is scored."
    rows = sorted((row for row in summary.rows if row["accuracy"] is not None), key=lambda row: -row["accuracy"])
    best, worst = rows[0], rows[-1]
    if in_words(rows):
        return answer_in_words(rows)
    if len(rows) == 1:
        said = f"{best['model']} answered {share(best['accuracy'])} of the steps correctly"
        return f"{said} with {_condition(best)}, h = {best['h']}."
    first, last = (f"{share(row['accuracy'])} ({_difference(row, rows)})" for row in (best, worst))
    return f"Steps answered correctly: from {first} to {last}, over {len(rows)} cells."


def _difference(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings that distinguish a row from the others."""
    everywhere = [_settings(one) for one in rows]
    varying = {n: value for n, value in _settings(row).items() if len({one[n] for one in everywhere}) > 1}
    said = (str(v) if n in _NAMES else f"{n} = {v}" for n, v in varying.items())
    return ", ".join(said) or f"h = {row['h']}"


def _settings(row: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings that identify a cell, by table heading."""
    return {
        "workload": row["workload"],
        "model": row["model"],
        "condition": _condition(row),
        "panel": row["panel"] if row["memory"] else None,
        "n": row["n"],
        "m": row["m"],
        "B_oracle": _budget(row["b_oracle"]),
        "B": _budget(row["b"]),
        "h": row["h"],
    }


def _must_begin_anew(summary: RunSummary) -> bool:
    """True where a memory in the user's own file failed every run: once corrected, it is not the one of this sweep."""
    own = any(".py:" in str(row["memory"] or "") for row in summary.rows)
    return own and not summary.scored and any(failure.kind == "memory" for failure in summary.failures)


def _tables(rows: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    if in_words(rows):
        yield from word_tables(rows)
        return
    causes = [one for one in CAUSE_MEASURES if any(row["errors"][one.id] for row in rows)]
    columns: dict[Column, Sequence[object]] = {
        Column("scored", "scored", figures=True): [f"{row['scored']}/{row['attempted']}" for row in rows],
        Column("accuracy", RUN_MEASURES["accuracy"].label, figures=True): [_with_spread(row) for row in rows],
        **{Column.of(one, figures=True): [_cause(row, one.id) for row in rows] for one in causes},
        Column.of(ALIGNED, figures=True, priority=1): [_claim(row, _aligned(row)) for row in rows],
    }
    yield _table("causes", "Accuracy, and why steps were wrong", rows, columns)
    if stored := [row for row in rows if row["memory_system"] is not None]:
        yield _table("fates", FATE_MEASURES.title, stored, fate_columns(stored), brief=True)
        yield _table("costs", MEMORY_MEASURES.title, stored, cost_columns(stored), brief=True)


def _cause(row: Mapping[str, Any], cause: str) -> object:
    """Return the share of steps wrong for a cause; causes about lost information are withheld like other claims."""
    figure = row["error_shares"][cause]
    return _claim(row, figure) if cause in OF_LOSS else figure


def _claim(row: Mapping[str, Any], figure: object) -> object:
    """Return a figure about lost information, unless the cell failed the control."""
    return WITHHELD if is_withheld(row) else figure


def _aligned(row: Mapping[str, Any]) -> float | None:
    """Return the share of runs whose first error is at their first miss; None where no step was wrong at all."""
    return row["first_error_at_first_miss"] if any(row["errors"].values()) else None


def _with_spread(row: Mapping[str, Any]) -> str | None:
    return None if row["accuracy"] is None else f"{row['accuracy']:.3f}±{row['accuracy_sd']:.3f}"


def _remarks(summary: RunSummary) -> Iterator[str]:
    for model, workload, reason in summary.excluded:
        verdict, _, why = reason.partition(": ")
        yield f"{verdict}: {model}, {workload}: {why}"
    if any(row["control"] is None and row["scored"] for row in summary.rows):
        which = "" if all(row["control"] is None for row in summary.rows) else " for some models"
        yield f"{NO_CONTROL}{which}: causes are descriptive; add --control"
    for row in summary.rows:
        if row["max_turn"]:
            never = CAUSE_MEASURES["not_answered"].label
            open_steps = f"{row['errors']['not_answered']:,} of {row['steps']:,} steps"
            yield (
                f"{row['max_turn']} of {row['scored']} runs of {_condition(row)}, {row['workload']}, h = {row['h']} "
                f"ended at their limit of actions ({never}: {open_steps}); raise --actions"
            )
    yield from silences(summary.rows)
    for row in summary.rows:
        if doubt := doubt_of(row):
            yield f"{row['model']}, {_condition(row)}, h = {row['h']}: {doubt}"
        if row["suspect"]:
            yield f"suspect: {row['model']}, {_condition(row)}, h = {row['h']}: {row['suspect']}; check the adapter"
    for failure in summary.failures:
        yield f"not scored: {failure.runs} of {failure.model}, {failure.workload} ({failure.kind}): {failure.message}"
    recorded = [row for row in summary.rows if row["memory_system"] is not None and "words" not in row]
    yield from (*memory_remarks(recorded), *system_remarks(summary.rows))
    yield from (*spending_remarks(summary.spending), *(f"stopped: {line}" for line in summary.stopped))


def _table(
    id: str,
    title: str,
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[Column, Sequence[object]],
    *,
    brief: bool = False,
) -> Table:
    """Return a table whose title has the settings all rows share, and whose first columns have those that differ.

    Args:
        brief: name no more than is needed, below a table that says the rest.
    """
    settings = [_settings(row) for row in rows]
    where: dict[Column, list[object]] = {
        Column(_KEYS.get(name, name), name, role="name", figures=name in _KEYS): [one[name] for one in settings]
        for name in settings[0]
    }
    where[Column("pressure", "m/h", 2, priority=2)] = [row["pressure"] for row in rows]
    always = ("condition",) if brief else ("h", "pressure")
    shared = {c: values[0] for c, values in where.items() if len(set(values)) == 1 and c.key not in always}
    told = ", ".join(f"{column.title} = {value}" for column, value in shared.items() if value not in (0, None))
    kept = {c: v for c, v in where.items() if c not in shared and not (brief and c.key == "pressure")}
    shown: dict[Column, Sequence[Any]] = {**kept, **columns}
    cells = tuple({column.key: values[at] for column, values in shown.items()} for at in range(len(rows)))
    return Table(id, f"{title} ({told})" if told and not brief else title, tuple(shown), cells)


def _condition(row: Mapping[str, Any]) -> str:
    if row["policy"] is None:
        return str(row["memory"] or row["condition"])
    return str(row["condition"]) if row["policy"] == "window" else f"{row['condition']} {row['policy']}"


def _budget(value: int | str) -> int | str:
    return "∞" if value == UNLIMITED else value
