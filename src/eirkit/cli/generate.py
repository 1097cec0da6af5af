"""`eirkit lacuna generate`: tasks with their answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from eirkit.cli.options import WorkloadCommand, WorkloadName, task_options
from eirkit.cli.output import emit, json_option, table
from eirkit.errors import UsageError
from eirkit.records import RecordWriter
from eirkit.tasks.generation import from_graph, generate_batches, prepare
from eirkit.tasks.generation import generate as generate_task
from eirkit.tasks.graph import load_graph
from eirkit.tasks.task import TaskInstance, TaskSpec, show_label

SCHEMA = "task/1"
CHUNK = 64  # tasks a write: few locks, little memory


@click.command(cls=WorkloadCommand)
@click.argument("workload", type=WorkloadName())
@task_options
@click.option("--graph", type=click.Path(path_type=Path), help='Take references from {"steps":[{"t","refs"}]}.')
@click.option("--count", type=click.IntRange(1, 10_000_000), help="Make this many tasks, seeds counted upwards.")
@click.option("--out", type=click.Path(path_type=Path), help="With --count: the JSON-lines file to write.")
@json_option
def generate(spec: TaskSpec, graph: Path | None, count: int | None, out: Path | None, as_json: bool) -> None:
    """Print the WORKLOAD's task of one seed, answers included; or write many with --count N --out FILE."""
    if count is not None or out is not None:
        if count is None or out is None or graph is not None:
            raise UsageError(
                "--count, --out and --graph do not fit together so; for many tasks give --count N --out FILE.jsonl"
            )
        document = _write_many(spec, count, out)
        emit(document, as_json, lambda console: console.print(f"{count} tasks written to {out}"))
        return
    task = generate_task(spec) if graph is None else from_graph(spec, load_graph(graph))
    emit(task.as_json(lists=_lists(task.spec)), as_json, lambda console: _render(console, task))


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


def _render(console: Console, task: TaskInstance) -> None:
    def show(values: tuple[int, ...] | None) -> str:
        return "" if values is None else " ".join(f"{value:0{task.spec.digits}d}" for value in values)

    rows = [
        (s.t, s.kind, show(s.input), " ".join(show_label(task.spec, r) for r in s.refs), show(s.answer))
        for s in task.steps
    ]
    console.print(table(f"{task.spec.workload}, seed {task.spec.seed}", ("t", "kind", "input", "refs", "answer"), rows))
    console.print(f"graph {task.fingerprint}")
