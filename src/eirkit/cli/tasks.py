"""`eirkit lacuna generate` and `lacuna cones`: tasks with their answers, and what recomputing costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from eirkit.cli.command import OUTPUT, Show, command, document_options, new_records, option
from eirkit.cli.options import (
    SEEDS_HELP,
    IntegerList,
    SeedList,
    WorkloadName,
    graph_option,
    task_options,
    task_words,
    workload_argument,
    workload_command,
)
from eirkit.errors import UsageError
from eirkit.lacuna.tasks.cones import LARGE_CONE, ConePair, ConeSurvey, Growth, matched_pairs, survey_cones
from eirkit.lacuna.tasks.generation import from_graph, generate_batches, prepare
from eirkit.lacuna.tasks.generation import generate as generate_task
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec, show_label
from eirkit.lacuna.tasks.workload import load_graph
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table, counted

SCHEMA = "task/1"
CHUNK = 64  # tasks a write: few locks, little memory


@workload_command(example="eirkit lacuna generate store-recall --n 12 --m 4 --seed 1")
@workload_argument(WorkloadName())
@task_options
@graph_option
@option("--count", type=click.IntRange(1, 10_000_000), help="Write this many tasks, with seeds from --seed upwards.")
@option(
    "--out",
    type=click.Path(path_type=Path),
    group=OUTPUT,
    metavar="FILE",
    help="With --count: the JSON-lines file to write.",
)
@document_options
def generate(spec: TaskSpec, graph: Path | None, count: int | None, out: Path | None, show: Show) -> None:
    """Print the task of WORKLOAD for one seed with its answers, or write many with --count N --out FILE."""
    if count is not None or out is not None:
        if count is None or out is None or graph is not None:
            raise UsageError(
                "--count and --out belong together and exclude --graph; for many tasks give --count N --out FILE.jsonl"
            )
        data = _write_many(spec, count, out)
        said = f"{counted(count, 'task')} written to {out}."
        then = f"eirkit lacuna simulate {task_words(spec)}"
        show(Document("lacuna-generate", f"Tasks of {spec.workload}", (said,), data, next=then))
        return
    task = generate_task(spec) if graph is None else from_graph(spec, load_graph(graph))
    show(_document(task))


def _write_many(spec: TaskSpec, count: int, out: Path) -> dict[str, Any]:
    seeds = range(spec.seed, spec.seed + count)
    spec.with_seed(seeds[-1])  # refuses a range that ends beyond the last seed, before any work
    lists = _lists(spec)
    stderr = Console(stderr=True)
    with (
        new_records(out, SCHEMA) as writer,
        Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress,
    ):
        bar = progress.add_task("generating", total=count)
        for batch in generate_batches(spec, seeds):
            for start in range(0, len(batch), CHUNK):
                rows = range(start, min(start + CHUNK, len(batch)))
                writer.append(*(batch.task(row).as_json(lists=lists) for row in rows))
                progress.advance(bar, len(rows))
    return {"out": str(out), "tasks": count, "seeds": [seeds[0], seeds[-1]]}


def _lists(spec: TaskSpec) -> bool:
    workload = prepare(spec)
    return workload.lists or workload.width(spec) > 1


def _document(task: TaskInstance) -> Document:
    spec = task.spec

    def show(values: tuple[int, ...] | None) -> str:
        return "" if values is None else " ".join(f"{value:0{spec.digits}d}" for value in values)

    rows = tuple(
        {
            "t": step.t,
            "kind": step.kind,
            "input": show(step.input),
            "refs": " ".join(show_label(spec, ref) for ref in step.refs),
            "answer": show(step.answer),
        }
        for step in task.steps
    )
    columns = (
        Column("t", "t"),
        Column("kind", "kind"),
        Column("input", "input"),
        Column("refs", "refs", role="text", meaning="earlier results that the step uses"),
        Column("answer", "answer"),
    )
    scored = sum(step.scored for step in task.steps)
    answer = f"A task of {counted(len(task.steps), 'step')}, {scored:,} of them scored."
    title = f"{spec.workload}, seed {spec.seed}"
    sections = (Section("", (), (Table("steps", title, columns, rows),)), Section("", (f"graph {task.fingerprint}",)))
    data = task.as_json(lists=_lists(spec))
    return Document("lacuna-generate", title, (answer,), data, sections, next=f"eirkit eir curve {task_words(spec)}")


_WIDEST = 5  # pairs shown of each kind; --json has all


@command(example="eirkit lacuna cones --fan-in 1,2,4 --m 8 --seeds 0:30")
@option(
    "--fan-in",
    "fan_ins",
    type=IntegerList(1),
    default="1,2,4",
    show_default=True,
    group="Task",
    help="Earlier results that each step uses; one row of the table for each value.",
)
@option("--n", type=int, default=64, show_default=True, group="Task", help="Number of steps.")
@option("--m", type=int, default=8, show_default=True, group="Task", help="Dependency window, in steps.")
@option("--lookback", type=int, group="Task", help="How many steps back references reach.  [default: m]")
@option("--from-step", type=int, default=32, show_default=True, help="Average over the cones of this and later steps.")
@option("--seeds", type=SeedList(), default="0:300", show_default=True, help=SEEDS_HELP)
@option("--pairs", "with_pairs", is_flag=True, help="Also list cones of equal size and unequal depth, and the reverse.")
@option("--growth", "with_growth", is_flag=True, help="Also list cone sizes by step.")
@document_options
def cones(
    fan_ins: list[int],
    from_step: int,
    seeds: Sequence[int],
    with_pairs: bool,
    with_growth: bool,
    show: Show,
    **shape: Any,
) -> None:
    """Compute what recovering a lost result costs: one retrieval, or recomputation with and without other results.

    A cone is the missing step and all its ancestors. The spread is the standard deviation of means over three graphs.
    """
    specs = [TaskSpec("stepwise-sum", fan_in=fan_in, **shape) for fan_in in fan_ins]
    surveys = [survey_cones(spec, seeds, from_step) for spec in specs]
    data: dict[str, Any] = {"rows": [_row(survey) for survey in surveys]}
    if with_pairs:
        data["pairs"] = [asdict(pair) for pair in _pairs(surveys)]
    if with_growth:
        data["distribution"] = [{"fan_in": s.spec.fan_in, **_growth(s.distribution())} for s in surveys]
        steps = range(1, shape["n"] + 1)
        data["growth"] = [{"fan_in": s.spec.fan_in, "t": t, **_growth(s.growth(t))} for s in surveys for t in steps]
    section = Section("", (), tuple(_tables(data)))
    then = f"eirkit lacuna probe stepwise-sum --m {shape['m']} --model reference/recoverer"
    show(Document("lacuna-cones", "Cost of recovering a lost result", (_answer(data),), data, (section,), next=then))


def _row(survey: ConeSurvey) -> dict[str, Any]:
    size, naive, depth = survey.size, survey.naive, survey.depth
    return {
        "fan_in": survey.spec.fan_in,
        "cones": survey.cones,
        "atomic": 1,
        "memoized": size.mean,
        "naive": naive.mean,
        "depth": depth.mean,
        "speedup": survey.speedup,
        "memoized_spread": size.spread,
        "naive_spread": naive.spread,
        "depth_spread": depth.spread,
    }


def _growth(growth: Growth) -> dict[str, Any]:
    return {"median": growth.median, "max": growth.largest, f"share_above_{LARGE_CONE}": growth.share_large}


def _pairs(surveys: Sequence[ConeSurvey]) -> list[ConePair]:
    return [*matched_pairs(surveys, "size"), *matched_pairs(surveys, "depth")]


def _answer(data: dict[str, Any]) -> str:
    last = data["rows"][-1]
    kept, naive = _short(last["memoized"]), _short(last["naive"])
    return (
        f"At fan-in {last['fan_in']}, recomputing a lost result takes {kept} reads on average if intermediate results "
        f"are kept and {naive} if not; retrieving it takes 1."
    )


def _tables(data: dict[str, Any]) -> Iterator[Table]:
    columns = (
        Column("fan_in", "fan-in"),
        Column("cones", "cones"),
        Column("atomic", "retrieved", meaning="reads to fetch the result itself"),
        Column("memoized", "results kept", figures=True, meaning="reads to recompute it, each step once"),
        Column("naive", "nothing kept", figures=True, meaning="reads if every use recomputes its inputs"),
        Column("ratio", "ratio", figures=True),
        Column("depth", "depth", figures=True),
    )
    yield Table("cones", "Reads to recover one lost result", columns, tuple(map(_shown, data["rows"])))
    for matched, other in (("size", "depth"), ("depth", "size")) if "pairs" in data else ():
        yield _pair_table(data["pairs"], matched, other)
    for name, title in (("distribution", "Cone size over all steps"), ("growth", "Cone size by step")):
        if name in data:
            keys = {"fan_in": "fan-in", "t": "t", "median": "median", "max": "max"}
            listed = [Column(key, keys.get(key, f"share above {LARGE_CONE}")) for key in data[name][0]]
            yield Table(name, title, tuple(listed), tuple(data[name]))


def _pair_table(pairs: list[dict[str, Any]], matched: str, other: str) -> Table:
    chosen = [pair for pair in pairs if pair["matched"] == matched]
    widest = sorted(chosen, key=lambda pair: pair["low"][other] - pair["high"][other])[:_WIDEST]
    keys = {other: other, "fan_in": "fan-in", "seed": "seed", "t": "t"}
    ends = {"low": "a", "high": "b"}
    rows: list[dict[str, Cell]] = [
        {
            matched: pair["low"][matched],
            **{f"{key}_{letter}": pair[end][key] for end, letter in ends.items() for key in keys},
        }
        for pair in widest
    ]
    columns = [
        Column(f"{key}_{letter}", f"{title} {letter}") for letter in ends.values() for key, title in keys.items()
    ]
    title = f"Equal {matched}, different {other}"
    return Table(f"equal-{matched}", title, (Column(matched, matched), *columns), tuple(rows))


def _short(value: float | None) -> str:
    """Return a mean with one digit; a large one as a power of ten."""
    return "–" if value is None else f"{value:.1f}" if value < 1e5 else f"{Decimal(value):.1e}"


def _shown(row: dict[str, Any]) -> dict[str, Cell]:
    """Return the row for reading: each mean with its spread."""
    means = {name: f"{_short(row[name])} ± {_short(row[f'{name}_spread'])}" for name in ("memoized", "naive", "depth")}
    return {**{key: row[key] for key in ("fan_in", "cones", "atomic")}, **means, "ratio": _short(row["speedup"])}
