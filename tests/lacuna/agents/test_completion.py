"""The completion protocol: what a base model goes on with, and that nothing but digits follows."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.agents.completion import EXAMPLES, render_completion, worked_examples
from eirkit.lacuna.agents.protocol import Answer, Fault, read_answer
from eirkit.lacuna.models.factory import make_model, protocol_of
from eirkit.lacuna.models.local import GEMMA, PARTS, grammar_of
from eirkit.lacuna.models.model import ModelOptions, NumberForm, Reply, Request
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Visible, publish
from eirkit.records.settings import COMPLETION
from tests.lacuna.running import eirkit
from tests.runs import records

installed = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec(f"{PARTS}_part1") is None,
    reason="no base model here; `make session NAME=local` brings it",
)


def shown_at(spec, t):
    """Return what is visible at a step with the records of all steps before it."""
    task = generate(spec)
    public = publish(task, prepare(spec))
    before = tuple((step.t, step.answer) for step in task.steps[: t - 1])
    return task.step(t), Visible(public.without_steps(), public.steps[t - 1], False, before, protocol=COMPLETION)


def record_of(line):
    label, _, values = line.partition(": ")
    return int(label.removeprefix("A")), tuple(map(int, values.split()))


@pytest.mark.parametrize("workload", ["store-recall", "full-lookup", "stepwise-sum", "stepwise-max", "stepwise-topk"])
def test_examples_follow_the_rule_of_the_task(workload):
    spec = TaskSpec(workload, n=24, m=8)
    rule = prepare(spec)
    text = worked_examples(spec, rule, rule.width(spec)).content
    assert worked_examples(spec.with_seed(0), rule, rule.width(spec)).content == text
    *blocks, end = text.split("\n\n")
    assert (len(blocks), end) == (2 * EXAMPLES, "")
    for listed, line in zip(blocks[::2], blocks[1::2], strict=True):
        first, *lines = listed.split("\n")
        known = dict(map(record_of, lines))
        asked, _, answer = line.partition(": ")
        assert first == asked
        labels = [int(word[1:]) for word in asked.split() if word.startswith("A")]
        assert not any(label in range(1, spec.n + 1) for label in labels)  # of the task
        given = tuple(int(word) for word in asked.split() if word.isdigit())
        operands = [known[label] for label in labels]
        assert rule.operate(spec, given or None, operands) == tuple(map(int, answer.split()))


@pytest.mark.parametrize(("t", "asked"), [(1, "A1"), (2, "A1")])
def test_a_step_that_copies_asks_for_the_record_that_it_copies(t, asked):
    step, visible = shown_at(TaskSpec("store-recall", n=12, m=4), t)
    first, *lines, empty, last = render_completion(visible)[1].content.split("\n")
    assert (first, empty, last) == (asked, "", f"{asked}:")
    assert dict(map(record_of, lines))[int(asked[1:])] == step.answer


def test_a_step_that_computes_names_its_operator_input_and_references():
    step, visible = shown_at(TaskSpec("stepwise-sum", n=12, m=4), 9)
    refs = " ".join(f"A{r}" for r in step.refs)
    assert render_completion(visible)[1].content.split("\n")[-1] == f"sum {step.input[0]:04d} {refs}:"


def test_nothing_but_the_values_is_an_answer():
    form = NumberForm(7, 2, 10_000)
    assert grammar_of(2, 4) == 'root ::= " " [0-9] [0-9] [0-9] [0-9] " " [0-9] [0-9] [0-9] [0-9]'
    assert read_answer(Reply(" 0042 0815"), form, COMPLETION) == Answer(7, (42, 815))
    assert isinstance(read_answer(Reply(" 42, I think"), form, COMPLETION), Fault)


def test_only_models_that_go_on_with_text_take_it():
    assert protocol_of(f"local/{GEMMA}", ModelOptions()) == COMPLETION
    assert protocol_of("local/mine.gguf", ModelOptions(protocol=COMPLETION)) == COMPLETION
    with pytest.raises(UsageError, match="completion is for base models"):
        protocol_of("openai/gpt-5", ModelOptions(protocol=COMPLETION))


@installed
def test_a_reply_does_not_depend_on_those_before_it():
    async def replies(steps):
        model = make_model(f"local/{GEMMA}", ModelOptions())
        try:
            found = {}
            for t in steps:
                _, visible = shown_at(TaskSpec("store-recall", n=12, m=4), t)
                form = NumberForm(t, 1, 10_000)
                found[t] = (await model.reply(Request(render_completion(visible), form=form, visible=visible))).text
            return found
        finally:
            await model.close()

    forwards = asyncio.run(replies(range(1, 9)))
    assert forwards == asyncio.run(replies(range(8, 0, -1)))
    assert all(len(text) == 5 and text[1:].isdigit() for text in forwards.values())


@installed
def test_a_base_model_takes_part_in_runs_with_and_without_a_memory(tmp_path):
    task = ("store-recall", "--n", "8", "--m", "4", "--h", "2", "--seeds", "0", "--model", f"local/{GEMMA}")
    for name, more in (("plain", ()), ("bm25", ("--memory", "bm25"))):
        out = ("--cache", str(tmp_path / "replies"), "--out", str(tmp_path / name))
        assert eirkit("lacuna", "run", *task, *more, "--no-control", *out) == 0
        (run,) = records(tmp_path / name)
        assert run.score.answered == run.score.steps == 8
