"""The training program: what it draws is what agents are shown, its network is the one that ships, and it goes on.

Needs torch, which nothing else here does; `make session NAME=training` installs it and runs this file.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from studies.training.curriculum import MANY, NARROW, PAIRED_SUMS, PHASES, WIDE_SUMS, Kind, Phase  # noqa: E402
from studies.training.examples import IGNORED, Drawer, Focus, Shape, Steps, tokenize  # noqa: E402
from studies.training.export import export  # noqa: E402
from studies.training.run import Plan, Training, whole_replies  # noqa: E402
from studies.training.size import Size  # noqa: E402

from eirkit.lacuna.models.network import layout as f  # noqa: E402 - what follows wants torch
from eirkit.lacuna.models.network.decoding import decode  # noqa: E402
from eirkit.lacuna.models.network.layout import load_weights  # noqa: E402
from eirkit.lacuna.models.network.network import KeyValueCache, forward  # noqa: E402
from eirkit.lacuna.models.network.question import StepQuestion, prompt_tokens  # noqa: E402

SMALL = Size(width=32, layers=2, heads=2, hidden=64)
SHAPES = (NARROW, PAIRED_SUMS, MANY, WIDE_SUMS)


def drawer(shape: Shape, rows: int = 60, seed: int = 0) -> Drawer:
    return Drawer(shape, rows, torch.Generator().manual_seed(seed))


def question_of(steps: Steps, row: int) -> StepQuestion:
    width = int(steps.width[row])
    shown = int(steps.shown[row].sum())
    labels, values = steps.labels[row, :shown].tolist(), steps.values[row, :shown, :width].tolist()
    chosen = steps.chosen[row][steps.referenced[row]].tolist()
    fresh = tuple(steps.fresh[row, :width].tolist()) if steps.has_input[row] else None
    records = tuple((label, tuple(value)) for label, value in zip(labels, values, strict=True))
    refs = tuple(steps.labels[row, place].item() for place in chosen)
    return StepQuestion(int(steps.operator[row]), int(steps.digits[row]), width, records, fresh, refs)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_drawn_is_what_the_network_reads_at_work(shape):
    """Two ways to tokens: on the device for a whole batch, and from a question, one by one."""
    steps = drawer(shape).steps()
    batch = tokenize(steps, shape)
    for row in range(60):
        question = question_of(steps, row)
        drawn = [
            tuple(sorted(i for i in token if i < f.FEATURES))
            for token, there in zip(batch.features[row].tolist(), batch.there[row].tolist(), strict=True)
            if there
        ]
        read = [tuple(sorted(token)) for token in prompt_tokens(question)]
        assert drawn[: len(read)] == read
        assert drawn[len(read)][0] == (f.OPERAND if question.refs else f.ANSWER)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_step_has_full_information_and_the_right_answer(shape):
    steps = drawer(shape, 300, 1).steps()
    for row in range(300):
        question = question_of(steps, row)
        values = dict(question.records)
        assert set(question.refs) <= values.keys()
        assert len(values) == len(question.records) <= shape.records
        assert list(question.refs) == sorted(set(question.refs))
        rows = [*([question.input] if question.input else []), *(values[r] for r in question.refs)]
        columns = list(zip(*rows, strict=True))
        match question.operator:
            case f.SUM:
                right = [sum(column) % 10**question.digits for column in columns]
            case f.TOP:
                right = sorted((v for one in rows for v in one), reverse=True)[: question.width]
            case _:
                right = [max(column) for column in columns]
        assert steps.answer[row, : question.width].tolist() == right


def test_a_focus_fixes_what_it_names():
    steps = drawer(NARROW).steps(Focus(f.SUM, 16, 2, 3))
    assert set(steps.operator.tolist()) == {f.SUM}
    assert set(steps.shown.sum(1).tolist()) == {16}
    assert set(steps.digits.tolist()) == {3}
    assert set(steps.referenced.sum(1).tolist()) == {2}


def small_plan(batches: int) -> Plan:
    kinds = (Kind(NARROW, 32, 0.8), Kind(PAIRED_SUMS, 16, 0.2))
    return Plan(phases=(Phase(0, batches, 3e-3, 2, kinds),), size=SMALL)


def test_it_learns_and_goes_on_from_where_it_was(tmp_path):
    device = torch.device("cpu")
    whole = Training(small_plan(6), device, tmp_path / "whole")
    whole.run(math.inf, every=2)
    first = Training(small_plan(6), device, tmp_path / "part")
    first.plan = replace(first.plan, phases=(replace(first.plan.phases[0], end=6),))
    while first.done < 3:
        first.learn()
        first.done += 1
    from studies.training import checkpoint

    checkpoint.save(tmp_path / "part", first.network, first.optimizer, first.done)
    again = Training(small_plan(6), device, tmp_path / "again")
    again.resume(tmp_path / "part")
    assert again.done == 3
    again.run(math.inf, every=2)
    rounding = 1e-6  # of the same sums, taken in the same order by the same machine
    for one, other in zip(whole.network.parameters(), again.network.parameters(), strict=True):
        assert torch.allclose(one, other, atol=rounding)
    assert (tmp_path / "whole" / "log.csv").read_text().startswith("batch,seconds,exam,right,loss,rate")


def test_what_is_exported_computes_what_was_trained(tmp_path):
    """Two ways to scores: torch with rounded weights, and whole numbers in NumPy."""
    training = Training(small_plan(2), torch.device("cpu"), tmp_path)
    training.run(math.inf, every=2)
    export(tmp_path, tmp_path / "small.safetensors", SMALL)
    weights = load_weights(tmp_path / "small.safetensors")
    batch = drawer(NARROW, 8, 5).batch()
    features, there = batch.features.numpy(), batch.there.numpy()
    with torch.no_grad():
        trained = training.network.float()(batch.features, batch.there, True)[:, -1].numpy()
    ours = forward(weights, features, there, KeyValueCache(8, weights, features.shape[1]))
    spread = float(np.abs(trained).max())
    of_bfloat = 0.02  # embeddings are summed in bfloat16 there, with eight bits
    assert np.abs(trained - ours).max() <= of_bfloat * max(spread, 1e-3) + of_bfloat
    assert len(decode(weights, [StepQuestion(f.SUM, 4, 1, ((1, (5,)),), (1,), (1,))])) == 1


def test_exams_count_whole_replies():
    class Knows(torch.nn.Module):
        def forward(self, features, there, rounded):
            return torch.nn.functional.one_hot(batch.targets.clamp(min=0), 10).float()

    batch = drawer(NARROW, 20).batch()
    assert whole_replies(Knows(), batch) == 1.0
    wrong = batch.targets.clone()
    wrong[0, (wrong[0] != IGNORED).nonzero()[0]] += 1
    assert (
        whole_replies(Knows(), replace(batch, targets=wrong % 10 * (wrong != IGNORED) + wrong * (wrong == IGNORED)))
        == 0.95
    )


def test_the_learning_rate_rises_and_falls_in_every_phase():
    for phase in PHASES:
        rates = [phase.rate_at(batch) for batch in range(phase.begin, phase.end, 50)]
        assert max(rates) <= phase.rate
        assert rates[0] < max(rates) > rates[-1]
