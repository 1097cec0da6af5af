"""`eirkit lacuna generate` and `lacuna cones`: tasks with their answers, and what recomputing costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

import click
import msgspec
from msgspec import UNSET, Struct, UnsetType
from rich.console import Console
from rich.progress import Progress

from eirkit.cli.command import OUTPUT, Show, command, document_options, option
from eirkit.cli.conversation import conversation_document, write_conversations
from eirkit.cli.new_file import new_records
from eirkit.cli.options import (
    SEEDS_HELP,
    IntegerList,
    SeedList,
    TaskName,
    graph_option,
    preset_option,
    task_option,
    task_options,
    task_words,
    typed_task_options,
    workload_argument,
    workload_command,
)
from eirkit.errors import UsageError
from eirkit.lacuna.tasks.cones import LARGE_CONE, ConePair, ConeSurvey, Growth, matched_pairs, survey_cones
from eirkit.lacuna.tasks.generation import from_graph, generate_batches, prepare
from eirkit.lacuna.tasks.generation import generate as generate_task
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec, show_label
from eirkit.lacuna.tasks.workload import conversations, load_graph
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table, counted

SCHEMA = "task/1"
CHUNK = 64  # tasks a write: few locks, little memory


@workload_command(example="eirkit lacuna generate store-recall --n 12 --m 4 --seed 1", told=True)
@workload_argument(TaskName())
@task_options
@preset_option
@graph_option
@option("--seeds", type=SeedList(), group="Task", help=f"With --out: many tasks. {SEEDS_HELP}")
@option(
    "--out",
    type=click.Path(path_type=Path),
    group=OUTPUT,
    metavar="FILE",
    help="With --seeds: the JSON-lines file to write.",
)
@document_options
def generate(
    spec: TaskSpec, preset: str | None, graph: Path | None, seeds: Sequence[int] | None, out: Path | None, show: Show
) -> None:
    """Print the task of WORKLOAD for one seed with its answers, or write many with --seeds 0:N --out FILE.

    A conversation is dated dialogues about invented people, in which facts are told, changed and withdrawn, with
    questions, their answers and the bits that these require.
    """
    if (seeds is None) != (out is None) or (out is not None and graph is not None):
        raise UsageError(
            "--seeds and --out belong together and exclude --graph; for many tasks give --seeds 0:N --out FILE.jsonl"
        )
    if spec.workload in conversations:
        # What was typed besides is refused by name.
        typed = {name: getattr(spec, name) for name in typed_task_options()}
        workload = conversations.get(spec.workload)()
        told = workload.specify({"workload": spec.workload, **typed, **({} if preset is None else {"preset": preset})})
        if seeds is None or out is None:
            show(conversation_document(told, spec.seed))
        else:
            show(write_conversations(told, seeds, out))
        return
    if preset is not None:
        raise UsageError(f"{spec.workload} takes no --preset; `eirkit lacuna generate conversation` does")
    if seeds is not None and out is not None:
        data = _write_many(spec, seeds, out)
        said = f"{counted(data.tasks, 'task')} written to {out}."
        then = f"eirkit lacuna simulate {task_words(spec)}"
        show(Document("lacuna-generate", f"Tasks of {spec.workload}", (said,), data, next=then))
        return
    task = generate_task(spec) if graph is None else from_graph(spec, load_graph(graph))
    show(_document(task))


class WrittenTasks(Struct, frozen=True):
    """A file of tasks."""

    out: str
    tasks: int
    seeds: tuple[int, int]  # first and last


def _write_many(spec: TaskSpec, seeds: Sequence[int], out: Path) -> WrittenTasks:
    lists = _lists(spec)
    stderr = Console(stderr=True)
    with (
        new_records(out, SCHEMA) as writer,
        Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress,
    ):
        bar = progress.add_task("generating", total=len(seeds))
        for batch in generate_batches(spec, seeds):
            for start in range(0, len(batch), CHUNK):
                rows = range(start, min(start + CHUNK, len(batch)))
                writer.append(*(msgspec.to_builtins(batch.task(row).document(lists=lists)) for row in rows))
                progress.advance(bar, len(rows))
    return WrittenTasks(str(out), len(seeds), (seeds[0], seeds[-1]))


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
    data = task.document(lists=_lists(spec))
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
@task_option("n")
@task_option("m", default=8)
@task_option("lookback")
@option("--from-step", type=int, default=32, show_default=True, help="Average over the cones of this and later steps.")
@option("--seeds", type=SeedList(), default="0:300", show_default=True, help=SEEDS_HELP)
@option("--all", "everything", is_flag=True, help="Also list sizes by step, and cones of equal size or depth.")
@document_options
def cones(
    fan_ins: list[int],
    from_step: int,
    seeds: Sequence[int],
    everything: bool,
    show: Show,
    **shape: Any,
) -> None:
    """Compute what recovering a lost result costs: one retrieval, or recomputation with and without other results.

    A cone is the missing step and all its ancestors. The spread is the standard deviation of means over three graphs.
    """
    specs = [TaskSpec("stepwise-sum", fan_in=fan_in, **shape) for fan_in in fan_ins]
    surveys = [survey_cones(spec, seeds, from_step) for spec in specs]
    steps = range(1, shape["n"] + 1)
    data = ConesDocument(
        [ConeRow.of(survey) for survey in surveys],
        [*matched_pairs(surveys, "size"), *matched_pairs(surveys, "depth")] if everything else UNSET,
        [_growth(s, s.distribution()) for s in surveys] if everything else UNSET,
        [_growth(s, s.growth(t), t) for s in surveys for t in steps] if everything else UNSET,
    )
    section = Section("", (), tuple(_tables(data)))
    then = f"eirkit lacuna probe stepwise-sum --m {shape['m']} --model reference/recoverer"
    show(Document("lacuna-cones", "Cost of recovering a lost result", (_answer(data),), data, (section,), next=then))


class ConeRow(Struct, frozen=True):
    """Reads to recover one lost result, averaged over cones; the spread is over means of three graphs."""

    fan_in: int
    cones: int
    atomic: int
    memoized: float
    naive: float
    depth: float
    speedup: float
    memoized_spread: float | None
    naive_spread: float | None
    depth_spread: float | None

    @classmethod
    def of(cls, survey: ConeSurvey) -> Self:
        size, naive, depth = survey.size, survey.naive, survey.depth
        means = (size.mean, naive.mean, depth.mean)
        return cls(survey.spec.fan_in, survey.cones, 1, *means, survey.speedup, size.spread, naive.spread, depth.spread)


class ConeSizes(Struct, frozen=True):
    """Sizes of cones: of all, or of those of one step."""

    fan_in: int
    t: int | UnsetType
    median: float
    max: int
    share_large: float = msgspec.field(name=f"share_above_{LARGE_CONE}")


class ConesDocument(Struct, frozen=True):
    """What recovering a lost result costs."""

    rows: list[ConeRow]
    pairs: list[ConePair] | UnsetType = UNSET
    distribution: list[ConeSizes] | UnsetType = UNSET
    growth: list[ConeSizes] | UnsetType = UNSET


def _growth(survey: ConeSurvey, growth: Growth, t: int | UnsetType = UNSET) -> ConeSizes:
    return ConeSizes(survey.spec.fan_in, t, growth.median, growth.largest, growth.share_large)


def _answer(data: ConesDocument) -> str:
    last = data.rows[-1]
    kept, naive = _short(last.memoized), _short(last.naive)
    return (
        f"At fan-in {last.fan_in}, recomputing a lost result takes {kept} reads on average if intermediate results "
        f"are kept and {naive} if not; retrieving it takes 1."
    )


def _tables(data: ConesDocument) -> Iterator[Table]:
    columns = (
        Column("fan_in", "fan-in"),
        Column("cones", "cones"),
        Column("atomic", "retrieved", meaning="reads to fetch the result itself"),
        Column("memoized", "results kept", figures=True, meaning="reads to recompute it, each step once"),
        Column("naive", "nothing kept", figures=True, meaning="reads if every use recomputes its inputs"),
        Column("ratio", "ratio", figures=True),
        Column("depth", "depth", figures=True),
    )
    yield Table("cones", "Reads to recover one lost result", columns, tuple(map(_shown, data.rows)))
    if data.pairs is not UNSET:
        yield _pair_table(data.pairs, "size", "depth")
        yield _pair_table(data.pairs, "depth", "size")
    sizes = (
        Column("fan_in", "fan-in"),
        Column("median", "median"),
        Column("max", "max"),
        Column(f"share_above_{LARGE_CONE}", f"share above {LARGE_CONE}"),
    )
    if data.distribution is not UNSET:
        yield Table("distribution", "Cone size over all steps", sizes, tuple(msgspec.to_builtins(data.distribution)))
    if data.growth is not UNSET:
        steps = (sizes[0], Column("t", "t"), *sizes[1:])
        yield Table("growth", "Cone size by step", steps, tuple(msgspec.to_builtins(data.growth)))


def _pair_table(pairs: Sequence[ConePair], matched: str, other: str) -> Table:
    chosen = [pair for pair in pairs if pair.matched == matched]
    widest = sorted(chosen, key=lambda pair: getattr(pair.low, other) - getattr(pair.high, other))[:_WIDEST]
    keys = {other: other, "fan_in": "fan-in", "seed": "seed", "t": "t"}
    ends = {"low": "a", "high": "b"}
    rows: list[dict[str, Cell]] = [
        {
            matched: getattr(pair.low, matched),
            **{f"{key}_{letter}": getattr(getattr(pair, end), key) for end, letter in ends.items() for key in keys},
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


def _shown(row: ConeRow) -> dict[str, Cell]:
    """Return the row for reading: each mean with its spread."""
    return {
        "fan_in": row.fan_in,
        "cones": row.cones,
        "atomic": row.atomic,
        "memoized": f"{_short(row.memoized)} ± {_short(row.memoized_spread)}",
        "naive": f"{_short(row.naive)} ± {_short(row.naive_spread)}",
        "depth": f"{_short(row.depth)} ± {_short(row.depth_spread)}",
        "ratio": _short(row.speedup),
    }
