"""Agents, memories and models whose behavior is known: what eirkit says of them must be what was planted.

Each class of cases gave a false sentence in an earlier version: values in other words were declared lost, steps without
an answer were booked as lost information, changed values as another label's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from statistics import fmean

import pytest

from eirkit.lacuna.agents.conditions import Compaction, ManagedOptions
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.situation import situation_of
from eirkit.lacuna.findings.causes import judge, score
from eirkit.lacuna.findings.fates import count_fates
from eirkit.lacuna.findings.intervals import paired
from eirkit.lacuna.findings.validity import check_validity
from eirkit.lacuna.memories.in_process import KeyValue, find_labels
from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.runs.capability import assess_gate
from eirkit.lacuna.runs.rescue import ArmRow, Contrast, Rescue
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import TaskSpec
from tests.lacuna.running import agent, task_of
from tests.lacuna.sessions import controlled, managed, public

TASK = task_of("stepwise-sum", n=24, m=8, seed=3)


def play(session, model, memory=None, task=TASK):
    """Run a session and return its trace, verdicts and score."""

    async def run():
        if memory is not None:
            await memory.setup()
            await memory.reset("planted")
        return await drive(session, model, memory)

    trace = asyncio.run(run())
    verdicts = judge(task, prepare(task.spec), trace.decisions, trace.actions)
    return trace, verdicts, score(verdicts, trace.decisions)


def causes_of(found) -> dict[str, int]:
    return {cause: n for cause, n in found.errors.items() if n}


# --- values in other words


class Worded(KeyValue):
    """Returns every record in words of its own."""

    def __init__(self, words) -> None:
        super().__init__()
        self.words = words

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = [self._kept[label] for label in find_labels(query) if label in self._kept]
        return [self.words(*text.split(" = ")) for text in found][:limit]

    async def read(self, label: str) -> str | None:
        return self.words(*self._kept[label].split(" = ")) if label in self._kept else None


WORDINGS = {
    "sentence": lambda label, value: f"The answer of {label} is {int(value)}.",
    "markdown": lambda label, value: f"- **{label}**: `{value}`",
    "json": lambda label, value: json.dumps({"id": 9, "key": label, "value": int(value)}),
    "grouped": lambda label, value: f"{label} equals {int(value):,}",
    "table": lambda label, value: f"| record | value |\n|---|---|\n| {label} | {value} |",
}


@pytest.mark.parametrize("words", WORDINGS.values(), ids=WORDINGS)
def test_a_memory_is_not_declared_lossy_for_its_wording(words):
    trace, verdicts, found = play(managed(TASK, "external", 4), agent("recoverer"), Worded(words))
    assert (found.accuracy, causes_of(found)) == (1.0, {})
    fates = count_fates(trace.decisions, verdicts, trace.consultations).fates
    assert {fate for fate, n in fates.items() if n} == {"used"}
    assert found.missed == sum(bool(decision.missing) for decision in trace.decisions) > 10


class NoteTaker:
    """Notes every answer in its own words, and reads its notes by itself; slips at some steps."""

    def __init__(self, note: str, slips: Sequence[int] = ()) -> None:
        self.note, self.slips = note, slips
        self.answers: dict[int, int] = {}  # as noted; a real agent would read them from its notes

    async def reply(self, request: Request) -> Reply:
        prompt = situation_of(request)
        if prompt.t == prompt.spec.n and prompt.visible.answered:
            return Reply("DONE")
        if prompt.t == 0 or prompt.visible.answered:
            noted = self.note.format(t=prompt.t, v=self.answers[prompt.t]) if prompt.t else ""
            return Reply(f"NOTE {noted}\nNEXT" if noted else "NEXT")
        notes = request.messages[-1].content.partition("NOTES")[2].partition("END NOTES")[0]
        seen = {t: v for t, v in self.answers.items() if re.search(rf"A_0*{t}\b", notes)}
        (value,) = prompt.operate({t: (v,) for t, v in seen.items()})
        if prompt.t in self.slips:
            value = (value + 1) % prompt.spec.q
        self.answers[prompt.t] = value
        return Reply(f"ANSWER {prompt.t} {value}")


@pytest.mark.parametrize("note", ["A_{t} is {v}", "**A_{t}** = {v}", "answer of A_{t}: {v:,}", "A_{t} -> {v}"])
def test_notes_in_other_words_are_notes(note):
    session = managed(TASK, "scratch", 40)
    trace, _, found = play(session, NoteTaker(note))
    assert (found.accuracy, found.miss_rate, causes_of(found)) == (1.0, 0.0, {})
    assert all(not decision.missing and not decision.uncertain for decision in trace.decisions)


@pytest.mark.parametrize("note", ["A_{t} = {v}", "**A_{t}** = {v}", "A_{t} is {v}"])
def test_slips_are_slips_whatever_the_notes_look_like(note):
    slips = (9, 20)
    _, verdicts, found = play(managed(TASK, "scratch", 40), NoteTaker(note, slips))
    own = {verdict.t for verdict in verdicts if verdict.cause == "computation"}
    assert own == set(slips)
    assert set(causes_of(found)) <= {"computation", "cascade"}


class Summarizer(NoteTaker):
    """Summarizes in Markdown when its context is full."""

    async def reply(self, request: Request) -> Reply:
        if request.visible.summary_characters is not None:
            kept = sorted(self.answers)[-9:]
            return Reply("## Progress\n" + "\n".join(f"- **A_{t}** = {self.answers[t]}" for t in kept))
        prompt = situation_of(request)
        if prompt.t and prompt.visible.answered and prompt.t < prompt.spec.n:
            return Reply("NEXT")
        return await super().reply(request)


def test_a_summary_in_markdown_holds_what_it_says():
    session = ManagedSession(public(TASK), Compaction(TASK.spec, 128), ManagedOptions())
    _, verdicts, found = play(session, Summarizer("", slips=(15,)))
    assert {verdict.t for verdict in verdicts if verdict.cause == "computation"} == {15}
    assert (found.miss_rate, found.errors["state_supply"]) == (0.0, 0)


# --- steps without an answer


class Faulty:
    """Answers right from what it sees, except at some steps, where the reply is another."""

    def __init__(self, at: Sequence[int], reply: str) -> None:
        self.at, self.text = at, reply

    async def reply(self, request: Request) -> Reply:
        prompt = situation_of(request)
        (value,) = prompt.operate(prompt.values)
        return Reply(self.text if prompt.t in self.at else f"ANSWER {prompt.t} {value}")


AT = (4, 9, 17)
SILENT = [("", "not_answered"), ("  \n", "not_answered"), ("ANSWER x", "malformed"), ("I am not sure.", "malformed")]


@pytest.mark.parametrize(("text", "cause"), SILENT)
def test_where_nothing_is_lost_no_reply_makes_missing_state(text, cause):
    _, verdicts, found = play(controlled(TASK, 8), Faulty(AT, text))
    assert {verdict.t for verdict in verdicts if verdict.cause == cause} == set(AT)
    assert (found.errors["state_supply"], found.miss_rate, found.missed) == (0, 0.0, 0)
    assert set(causes_of(found)) <= {cause, "cascade"}  # later steps build on what was never answered


def test_what_is_lost_is_lost_beside_empty_replies():
    _, verdicts, found = play(controlled(TASK, 4), Faulty(AT, ""))
    silent = {verdict.t for verdict in verdicts if not verdict.answered}
    assert silent == set(AT)
    lost = {verdict.t for verdict in verdicts if verdict.cause == "state_supply"}
    assert lost == {verdict.t for verdict in verdicts if verdict.missed and verdict.answered and not verdict.correct}
    assert found.errors["not_answered"] == len(AT)


class Honest(Faulty):
    """Declines to answer where a record is missing, and says which."""

    async def reply(self, request: Request) -> Reply:
        prompt = situation_of(request)
        if prompt.missing:
            return Reply(f"I cannot answer: A_{prompt.missing[0]} is not shown.")
        return await super().reply(request)


def test_declining_for_a_missing_record_is_missing_state():
    _, verdicts, _ = play(controlled(TASK, 4), Honest((), ""))
    declined = [verdict for verdict in verdicts if verdict.missed]
    assert declined
    assert {(verdict.cause, verdict.kind) for verdict in declined} == {("state_supply", "declined")}


# --- rankings and changed values


class Ranked(Worded):
    """Returns the right value and a wrong one, the right one first or last."""

    def __init__(self, right_first: bool) -> None:
        super().__init__(lambda label, value: f"{label} = {value}")
        self.right_first = right_first

    async def search(self, query: str, limit: int) -> Sequence[str]:
        right = await super().search(query, limit)
        pairs = [(text, f"{text[:-4]}{(int(text[-4:]) + 7) % 10_000:04d}") for text in right]
        return [text for pair in pairs for text in (pair if self.right_first else reversed(pair))][:limit]


@pytest.mark.parametrize("right_first", [True, False])
def test_the_best_passage_is_the_first(right_first):
    trace, verdicts, found = play(managed(TASK, "external", 4), agent("recoverer"), Ranked(right_first))
    fates = count_fates(trace.decisions, verdicts, trace.consultations).fates
    told = {fate for fate, n in fates.items() if n}
    if right_first:
        assert (found.accuracy, told) == (1.0, {"contradicted_value"})
    else:
        assert told == {"other_value"}
        assert {verdict.kind for verdict in verdicts if verdict.cause == "state_supply"} == {"misinformed"}
        assert set(causes_of(found)) <= {"state_supply", "cascade"}


class Changing(KeyValue):
    """Stores something else than what is written."""

    def __init__(self, change) -> None:
        super().__init__()
        self.change = change

    async def write(self, item: Item) -> None:
        label, _, value = item.text.partition(" = ")
        await super().write(Item(item.label, self.change(label, value, self._kept)))


CHANGES = {
    "constant": (lambda label, value, kept: f"{label} = 9999", {"other_value"}),
    "digit": (lambda label, value, kept: f"{label} = {value[:3]}{(int(value[3]) + 1) % 10}", {"other_value"}),
    "cut": (lambda label, value, kept: f"{label} = {value}"[:-2], {"cut_value"}),
    "another": (
        lambda label, value, kept: f"{label} = {next(iter(kept.values())).partition(' = ')[2] if kept else value}",
        {"swapped_value", "used"},  # the first record keeps its own value
    ),
}


@pytest.mark.parametrize(("change", "fates"), CHANGES.values(), ids=CHANGES)
def test_a_changed_value_is_called_what_it_is(change, fates):
    trace, verdicts, found = play(managed(TASK, "external", 4), agent("recoverer"), Changing(change))
    told = count_fates(trace.decisions, verdicts, trace.consultations).fates
    assert {fate for fate, n in told.items() if n} <= fates
    assert sum(told.values()) > 10
    assert found.errors["computation"] == 0  # the agent computed everything right


def test_a_truncating_store_is_blamed_even_where_the_record_could_be_read():
    session = managed(TASK, "external", 4, reads=None)
    trace, verdicts, found = play(session, agent("recoverer"), Changing(CHANGES["cut"][0]))
    assert count_fates(trace.decisions, verdicts, trace.consultations).fates["cut_value"] > 10
    assert found.errors["computation"] == 0
    assert {verdict.kind for verdict in verdicts if verdict.cause == "state_supply"} == {"misinformed"}


# --- models that have the information from elsewhere, and few steps


class Remembering:
    """An endpoint that remembers every answer it gave, whatever is shown to it."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, ...]] = {}

    async def reply(self, request: Request) -> Reply:
        prompt = situation_of(request)
        self.known = {} if prompt.t == 1 else self.known
        self.known[prompt.t] = prompt.operate(self.known)
        return Reply(f"ANSWER {prompt.t} {self.known[prompt.t][0]}")


def test_a_model_that_remembers_is_a_leak_and_not_a_finding():
    _, _, found = play(controlled(TASK, 4), Remembering())
    assert (found.accuracy, found.errors["state_supply"]) == (1.0, 0)
    assert found.unexplained == found.blind == found.missed > 10
    checked = check_validity(found.blind, found.unexplained, TASK.spec, recognized=False)
    assert checked.finding == "leak"
    assert checked.sentence.startswith(
        f"leak: {found.blind} of {found.blind} steps are right although an input was lost"
    )


@pytest.mark.parametrize("name", ["calculator", "guesser"])
@pytest.mark.parametrize("workload", ["stepwise-sum", "store-recall", "stepwise-max", "stepwise-topk"])
def test_agents_without_memory_raise_no_alarm(name, workload):
    blind = right = 0
    for seed in range(4):
        task = task_of(workload, n=32, m=8, seed=seed)
        _, _, found = play(controlled(task, 2), agent(name), task=task)
        blind, right = blind + found.blind, right + found.unexplained
    assert blind > 10
    assert check_validity(blind, right, task.spec, recognized=False).finding is None


def test_the_substituter_is_right_by_what_it_sees_and_raises_no_alarm():
    task = task_of("stepwise-max", n=48, m=8, seed=1)
    _, _, found = play(controlled(task, 2), agent("substituter"), task=task)
    assert found.blind > 10
    assert check_validity(found.blind, found.unexplained, task.spec, recognized=False).finding is None


def test_rescue_claims_no_repair_where_nothing_was_broken():
    made = rescue_of({"control": [True] * 20, "oracle": [True] * 20, "sham": [False] * 20})
    assert made.repair_effects({"m"})[0].difference.estimate == 1.0
    assert not made.repairs("m")
    assert made.repair_effect is None


def test_rescue_claims_no_repair_from_one_step():
    made = rescue_of({"control": [False], "oracle": [True], "sham": [False]})
    assert (made.repairs("m"), made.repair_effect) == (False, None)
    (one,) = made.repair_effects({"m"})
    assert one.difference.low < 0 < one.difference.high


def test_rescue_claims_a_repair_that_is_one():
    made = rescue_of({"control": [False] * 20, "oracle": [True] * 20, "sham": [False] * 20})
    assert (made.repairs("m"), made.repair_effect) == (True, 1.0)


def rescue_of(arms: dict[str, list[bool]]) -> Rescue:
    """A rescue of one trajectory with these outcomes, without a run."""
    pairs = [("oracle", "sham"), ("oracle", "control"), ("sham", "control")]
    contrasts = tuple(
        Contrast(
            model="m",
            arms=(a, b),
            pairs=len(arms[a]),
            trajectories=1,
            difference=paired([list(zip(arms[a], arms[b], strict=True))]),
            mcnemar_p=1.0,
            permutation_p=1.0,
        )
        for a, b in pairs
    )
    unknown = dict.fromkeys(
        ("trajectory_accuracy", "trajectory_accuracy_sd", "self_consistent_accuracy", "missed_steps")
    )
    rows = tuple(
        ArmRow(model="m", arm=arm, steps=len(got), accuracy=fmean(got), scored=1, attempted=1, **unknown)
        for arm, got in arms.items()
    )
    calm = check_validity(len(arms["control"]), 0, TASK.spec, recognized=False)
    return Rescue(rows, contrasts, (), {"m": calm})


@pytest.mark.parametrize("seed", range(6))
def test_a_model_with_two_percent_slips_passes_the_gate(seed):
    spec = TaskSpec("stepwise-sum", n=64, m=16)
    options = ModelOptions(seed=seed, extra={"p": "0.02"})
    cell = assess_gate("reference/sloppy", spec, options)
    assert (cell.verdict, cell.passes) == ("passes", True)
    assert cell.gates[0].low >= 0.9


@pytest.mark.parametrize(("p", "verdict"), [("0.5", "fails"), ("0.1", "undecided")])
def test_the_gate_says_what_it_can(p, verdict):
    cell = assess_gate("reference/sloppy", TaskSpec("stepwise-sum", n=24, m=8), ModelOptions(extra={"p": p}))
    assert (cell.verdict, cell.passes) == (verdict, False)
    assert cell.reason.startswith("undecided: ") == (verdict == "undecided")
    assert ("; run `eirkit lacuna capability " in cell.reason) == (verdict == "undecided")
