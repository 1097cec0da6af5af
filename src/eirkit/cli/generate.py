"""`eirkit lacuna generate`: generates tasks with their answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from eirkit.cli.command import OUTPUT, option
from eirkit.cli.options import WorkloadName, graph_option, task_options, task_words, workload_argument, workload_command
from eirkit.cli.output import Show, document_options
from eirkit.errors import UsageError
from eirkit.records import RecordWriter
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.phrases import counted
from eirkit.show.table import Column, Table
from eirkit.tasks.generation import from_graph, generate_batches, prepare
from eirkit.tasks.generation import generate as generate_task
from eirkit.tasks.graph import load_graph
from eirkit.tasks.task import TaskInstance, TaskSpec, show_label

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
    _refuse_to_overwrite(out)
    seeds = range(spec.seed, spec.seed + count)
    spec.with_seed(seeds[-1])  # refuses a range that ends beyond the last seed, before any work
    lists = _lists(spec)
    stderr = Console(stderr=True)
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with (
            RecordWriter(unfinished, SCHEMA) as writer,
            Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress,
        ):
            bar = progress.add_task("generating", total=count)
            for batch in generate_batches(spec, seeds):
                for start in range(0, len(batch), CHUNK):
                    rows = range(start, min(start + CHUNK, len(batch)))
                    writer.append(*(batch.task(row).as_json(lists=lists) for row in rows))
                    progress.advance(bar, len(rows))
        _refuse_to_overwrite(out)
        unfinished.rename(out)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}; choose another file") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return {"out": str(out), "tasks": count, "seeds": [seeds[0], seeds[-1]]}


def _refuse_to_overwrite(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists; choose a new file or remove it")


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
