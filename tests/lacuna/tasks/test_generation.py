"""Tasks: pinned bytes, the same bytes everywhere, tasks over given graphs, and files of many tasks."""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.cli import run
from eirkit.errors import ContractError, SpecError, UsageError
from eirkit.lacuna.tasks.generation import (
    from_graph,
    generate,
    generate_batch,
    generate_batches,
    generate_many,
    graph_of,
)
from eirkit.lacuna.tasks.task import Payload, TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Workload, workloads
from eirkit.records.lines import encode, read_records
from tests.lacuna.strategies import graphs
from tests.processes import completed

EXAMPLES = Path(__file__).parents[3] / "examples"


def as_bytes(task: TaskInstance) -> bytes:
    return encode("task/1", msgspec.to_builtins(task.document(lists=True)))


def test_a_task_worked_by_hand() -> None:
    """3056; 4845+3056; 9517+3056+7901 = 20474; 859+7901+474; … modulo 10^4. Pinned: a published seed names a task."""
    task = generate(TaskSpec("stepwise-sum", n=8, m=4, seed=0))
    assert [(s.input, s.refs, s.answer) for s in task.steps] == [
        ((3056,), (), (3056,)),
        ((4845,), (1,), (7901,)),
        ((9517,), (1, 2), (474,)),
        ((859,), (2, 3), (9234,)),
        ((7393,), (3, 4), (7101,)),
        ((3800,), (3, 5), (1375,)),
        ((3087,), (4, 6), (3696,)),
        ((5261,), (4, 7), (8191,)),
    ]
    assert task.fingerprint == "3cecae0a9215c512d12c6112a1a7f144a11c68300cffd560095c4bcfe1b212f1"


GOLDEN = {
    "record-store": ("0bb5c33302ff15b7", [(0,), (0,), (1266,)], [(2,), (2,), ()]),
    "full-lookup": ("f1d295340c12b0af", [(1612,), (9268,), (6016,)], [(16,), (7,), (11,)]),
    "running-max": ("fe5af2317bc5abb0", [(9870,), (9870,), (9870,)], [(61,), (62,), (63,)]),
    "stepwise-max": ("e21ab0b54e4360e0", [(9870,), (9870,), (9870,)], [(56, 61), (47, 48), (51, 60)]),
    "stepwise-sum": ("e21ab0b54e4360e0", [(5055,), (969,), (3735,)], [(56, 61), (47, 48), (51, 60)]),
    "stepwise-topk": ("e21ab0b54e4360e0", [(9876, 9870), (9870, 9870), (9956, 9870)], [(56, 61), (47, 48), (51, 60)]),
    "store-recall": ("1a5d9596cd15088b", [(182,), (1167,), (6061,)], [(53,), (), (49,)]),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_published_seeds_keep_their_tasks(name: str) -> None:
    task = generate(TaskSpec(name, seed=3))
    fingerprint, answers, references = GOLDEN[name]
    assert task.fingerprint.startswith(fingerprint)
    assert [step.answer for step in task.steps[-3:]] == answers
    assert [step.refs for step in task.steps[-3:]] == references


@pytest.mark.parametrize(
    ("queries", "labels"), [("zipf", [1, 1, 2, 3, 1, 2, 14, 8]), ("zipf-shuffled", [16, 16, 2, 14, 16, 2, 1, 5])]
)
def test_published_seeds_keep_their_queries(queries: str, labels: list[int]) -> None:
    task = generate(TaskSpec("full-lookup", queries=queries, seed=3))
    assert [step.refs[0] for step in task.steps[16:24]] == labels


def test_another_process_makes_the_same_bytes() -> None:
    program = (
        "import hashlib, msgspec\n"
        "from eirkit.lacuna.tasks.generation import generate_batch\n"
        "from eirkit.lacuna.tasks.task import TaskSpec\n"
        "from eirkit.lacuna.tasks.workload import workloads\n"
        "from eirkit.records.lines import encode\n"
        "made = hashlib.sha256()\n"
        "for name in workloads.names():\n"
        "    task = generate_batch(TaskSpec(name), range(9)).task(7)\n"
        "    made.update(encode('task/1', msgspec.to_builtins(task.document(lists=True))))\n"
        "print(made.hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    done = completed([sys.executable, "-c", program], check=True, env=environment)
    here = sha256(b"".join(as_bytes(generate(TaskSpec(name, seed=7))) for name in workloads.names()))
    assert done.stdout.strip() == here.hexdigest()


def test_many_tasks_come_in_the_order_of_their_seeds_across_batches() -> None:
    spec, seeds = TaskSpec("store-recall", n=12), [9, 2, 7, 4, 0, 1, 3]
    alone = [generate(spec.with_seed(seed)) for seed in seeds]
    batches = list(generate_batches(spec, seeds, largest=3))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    assert [batch.task(row) for batch in batches for row in range(len(batch))] == alone
    assert list(generate_many(spec, seeds)) == alone


def test_batches_of_large_tasks_are_small() -> None:
    batch = next(generate_batches(TaskSpec("stepwise-topk", n=50_000, k=100), range(1000)))
    assert len(batch) == 1


@pytest.mark.parametrize("seeds", [[-1], [0, 2**64], np.array([-1, 3])])
def test_what_is_no_seed_is_refused(seeds: list[int]) -> None:
    with pytest.raises(SpecError, match=r"seed = .* is out of range; choose 0 … 2\^64 − 1"):
        generate_batch(TaskSpec("stepwise-sum"), seeds)


@given(graphs(largest=10), st.sampled_from(["stepwise-sum", "stepwise-max", "stepwise-topk"]))
def test_a_task_over_a_given_graph_has_that_graph(graph: tuple[tuple[int, ...], ...], name: str) -> None:
    task = from_graph(TaskSpec(name, seed=5), graph)
    assert graph_of(task) == graph
    assert task.spec.n == len(graph)
    workload = workloads.get(name)()
    for step in task.steps:
        assert step.answer == workload.operate(task.spec, step.input, [task.step(r).answer for r in step.refs])


def test_a_drawn_graph_given_back_gives_the_same_task() -> None:
    task = generate(TaskSpec("stepwise-sum", seed=11))
    again = from_graph(task.spec, graph_of(task))
    assert (again.steps, again.fingerprint) == (task.steps, task.fingerprint)


@pytest.mark.parametrize("name", ["store-recall", "full-lookup", "running-max"])
def test_a_workload_that_draws_its_own_references_takes_no_graph(name: str) -> None:
    with pytest.raises(SpecError, match="draws its own references"):
        from_graph(TaskSpec(name, m=1), ((), (1,)))


class TooLarge(Workload):
    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: object) -> Payload:
        return (spec.q,)


class TooWide(Workload):
    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: object) -> Payload:
        return (0, 0)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (f"{__name__}:TooLarge", "answered outside 0 … 9999; reduce"),
        (f"{__name__}:TooWide", "answered (0, 0); return a tuple of 1 integers"),
    ],
)
def test_a_users_workload_that_breaks_its_word_is_told_so(name: str, complaint: str) -> None:
    with pytest.raises(ContractError) as error:
        generate(TaskSpec(name))
    assert complaint in str(error.value)


def test_what_is_no_workload_is_refused() -> None:
    with pytest.raises(UsageError, match="json:loads is not a workload; subclass"):
        generate(TaskSpec("json:loads"))


def test_a_users_file_is_a_workload_like_any_other(capsys: pytest.CaptureFixture[str]) -> None:
    """By hand, fan-in 3: w − a + b − c modulo q, a the oldest reference."""
    path = EXAMPLES / "alternating_sum.py"
    assert run(["lacuna", "generate", f"{path}:AlternatingSum", "--fan-in", "3", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    answers = {step["t"]: step["answer"] for step in steps}
    for step in steps:
        signed = sum((1 if place % 2 else -1) * answers[r] for place, r in enumerate(step["refs"]))
        assert step["answer"] == (step["input"] + signed) % 10_000


def test_a_users_module_is_a_workload_too() -> None:
    program = "import sys; from eirkit.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "lacuna", "generate", "alternating_sum:AlternatingSum", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    done = completed(command, check=True, env=environment)
    here = generate(TaskSpec(f"{EXAMPLES / 'alternating_sum.py'}:AlternatingSum"))
    assert [step["answer"] for step in json.loads(done.stdout)["steps"]] == [step.answer[0] for step in here.steps]


def test_the_page_shows_the_users_file_as_it_is() -> None:
    page = (EXAMPLES.parent / "docs" / "extend.md").read_text(encoding="utf-8")
    assert (EXAMPLES / "alternating_sum.py").read_text(encoding="utf-8") in page


def test_a_file_of_many_tasks_holds_each_seeds_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new folder" / "tasks.jsonl"
    arguments = ["lacuna", "generate", "stepwise-topk", "--n", "8", "--seeds", "5:305", "--out", str(out)]
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"out": str(out), "tasks": 300, "seeds": [5, 304]}
    written = list(read_records(out, "task/1"))
    assert written == [
        json.loads(msgspec.json.encode(generate(TaskSpec("stepwise-topk", n=8, seed=seed)).document(lists=True)))
        for seed in range(5, 305)
    ]
    assert [entry.name for entry in out.parent.iterdir()] == ["tasks.jsonl"]


def test_an_existing_file_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tasks.jsonl"
    out.write_text("mine")
    assert run(["lacuna", "generate", "stepwise-sum", "--seeds", "0:2", "--out", str(out)]) == 2
    assert "exists; choose a new file or remove it" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path: Path) -> None:
    arguments = ["lacuna", "generate", f"{__name__}:TooLarge", "--seeds", "0:2", "--out", str(tmp_path / "tasks.jsonl")]
    assert run(arguments) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("full-lookup", "--n", "16"),
        ("full-lookup", "--queries", "often"),
        ("stepwise-topk", "--slots", "2"),
        ("stepwise-sum", "--n", "0"),
        ("stepwise-sum", "--fan-in", "0"),
        ("stepwise-sum", "--digits", "12"),
        ("stepwise-sum", "--seed", "-1"),
        ("stepwise-sum", "--warm-up", "65"),
        ("stepwise-sum", "--seeds", "0:2"),
        ("stepwise-sum", "--out", "x.jsonl"),
        ("stepwise-sum", "--seeds", f"{2**64 - 1}:{2**64 + 1}", "--out", "x.jsonl"),
        ("stepwise-summ",),
        ("nowhere.py:Workload",),
    ],
)
def test_an_impossible_request_gets_one_line_and_exit_code_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lacuna", "generate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "; " in err
