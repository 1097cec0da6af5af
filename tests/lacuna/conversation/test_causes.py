"""Memories of conversations with one known fault each: every wrong answer has that cause, and nothing else is named.

Whether a store or a search has what the answer needed is looked up here anew, in the events alone: BrokenNotes keep one
plain sentence for each statement, so that a statement is there if the sentence is.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from eirkit.cli import run as run_command
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.conversation.reading import needed_statements, plain_sentence, show_note
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES
from eirkit.lacuna.memories.budgets import PromptBudget
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.memory import MemorySystem, memories
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.conversations import conversation_session, judge_answers
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.runs import ConversationRun, WrongAnswer
from eirkit.records.settings import Access

WORLDS = "small+updates=2+planted=1+sentences=9"
SHOWN = 5  # passages

# The cause of all wrong answers, or of nearly all; others with the largest share that they truly have.
BROKEN: dict[str, tuple[str, dict[str, float]]] = {
    "words-add-only": ("not_retrieved", {}),
    "words-last-writer": ("deleted", {}),
    "words-merges": ("contradicted", {"altered": 0.1}),  # the own value was forgotten, another's came
    "words-forgets": ("deleted", {}),
    "words-leaks": ("other_user", {"not_retrieved": 0.02}),  # another user's people have the same names
    "words-truncates": ("cut_off", {}),
    "words-keeps-withdrawn": ("never_stored", {}),
    "words-keeps-mistakes": ("never_stored", {}),
    "words-obeys-documents": ("altered", {}),
    "words-late": ("not_retrieved", {}),
    "words-returns-all": ("below_budget", {}),
    "words-misdates": ("misdated", {}),
    "words-contradicts": ("contradicted", {}),
    "words-alters": ("altered", {}),
    "words-swaps-people": ("altered", {"not_retrieved": 0.1, "never_stored": 0.02}),  # said as well of the other
    "words-ranks-last": ("below_budget", {}),
    "words-deletes-updated": ("deleted", {}),
    "words-loses-seventh": ("never_stored", {}),
    "words-behind": ("never_stored", {}),
}
SYMPTOMS = {  # what is wrong with all answers of memories whose fault gives them away
    "words-add-only": "outdated",
    "words-merges": "anothers",
    "words-keeps-withdrawn": "withdrawn_value",
    "words-keeps-mistakes": "withdrawn_value",
    "words-obeys-documents": "planted_value",
    "words-ranks-last": "said_unknown",
}


@dataclass(frozen=True)
class Judged:
    """One run on one world."""

    task: WorldConversation
    calls: Sequence[Consultation]
    record: ConversationRun

    def returned(self, t: int) -> str:
        return "\n".join(text for one in self._recall(t) for text in one.passages)

    def beyond(self, t: int) -> str:
        return "\n".join(text for one in self._recall(t) for text in one.unshown)

    def stores(self, t: int) -> list[str]:
        """What the store had after each session before a question."""
        after = self.task.questions[t - 1].after
        observed = [one for one in self.calls if one.call.verb == "observe"]
        return ["\n".join(one.stored or ()) for one in observed[:after]]

    def _recall(self, t: int) -> list[Consultation]:
        return [one for one in self.calls if one.call.verb == "recall" and one.t == t]

    def needed(self, t: int) -> list[str]:
        """The plain sentences of what a question needs, with their dates."""
        asked = self.task.questions[t - 1]
        found = needed_statements(asked.question, self.task.said_before(asked), self.task.truth_at(asked))
        return [f"{show_note(one.day, '')}user: {plain_sentence(self.task.language, one.statement)}" for one in found]


def worlds(preset: str, seeds: range) -> list[WorldConversation]:
    spec = find_workload("conversation").specify({"workload": "conversation", "preset": preset})
    return [task for task in generate_many(spec, seeds) if isinstance(task, WorldConversation)]


def played(memory: MemorySystem, seeds: range, preset: str = WORLDS, passages: int = SHOWN) -> list[Judged]:
    """Return the runs of a memory with the reader that has no fault."""
    access, found = Access("external", None, "words-exact"), []
    for task in worlds(preset, seeds):
        wait_for(memory.reset(str(task.spec.seed)))
        session = conversation_session(access, task)
        trace = wait_for(drive(session, make_reader(ModelOptions()), memory, budget=PromptBudget(passages)))
        found.append(Judged(task, trace.consultations, judge_answers(access, task, trace)[1]))
    return found


def is_true(run: Judged, answer: WrongAnswer) -> bool:
    """True if the texts of a run show the cause of a wrong answer, by search for whole sentences."""
    needed, stores, t = run.needed(answer.t), run.stores(answer.t), answer.t
    shown, last = run.returned(t), stores[-1] if stores else ""
    undated = [one.partition("user: ")[2] for one in needed]
    lacking = [one for one in needed if one not in shown]
    if answer.cause == "never_stored":
        return any(all(one not in store for store in stores) for one in lacking)
    if answer.cause == "not_retrieved":
        said = [one.partition("user: ")[2].replace(" now ", " ") for one in lacking]
        return any(one in last.replace(" now ", " ") for one in said)
    if answer.cause == "below_budget":
        return any(one in run.beyond(t) or "-----" in shown for one in lacking)
    if answer.cause == "deleted":
        return bool(lacking) and any(
            earlier.count("\n") and earlier not in later for earlier, later in pairwise(stores)
        )
    if answer.cause == "misdated":
        return bool(lacking) and all(one in shown for one in undated)
    if answer.cause == "contradicted":
        return not lacking
    if answer.cause == "cut_off":
        return any(one not in last and one[:25] in last for one in lacking)
    return bool(answer.evidence) and answer.evidence.splitlines()[0] in f"{shown}\n{last}"


def test_a_memory_without_a_fault_has_no_wrong_answer():
    for run in played(memories.get("words-exact")(), range(40)):
        assert run.record.wrong == ()
        assert run.record.contradicting == ()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_memory_is_named_by_its_cause(name):
    cause, others = BROKEN[name]
    runs = played(memories.get(name)(), range(24))
    wrong = [(run, answer) for run in runs for answer in run.record.wrong]
    counts = Counter(answer.cause for _, answer in wrong)
    assert len(wrong) >= 5
    assert set(counts) <= {cause, *others}, counts
    for other, share in others.items():
        assert counts[other] <= share * len(wrong), counts
    false = [(run.task.spec.seed, answer) for run, answer in wrong if not is_true(run, answer)]
    assert false == []
    if name in SYMPTOMS:
        assert {answer.symptom for _, answer in wrong} == {SYMPTOMS[name]}
    for run, answer in wrong:
        texts = (*run.stores(answer.t), run.returned(answer.t), run.beyond(answer.t))
        assert answer.evidence or answer.statement
        assert any(answer.statement in turn for turn in run.task.turns) or len(answer.statement) == 300
        assert any(answer.evidence in text for text in texts) or len(answer.evidence) == 300


def test_a_memory_that_contradicts_itself_is_said_to_also_where_the_answer_is_right_by_luck():
    runs = played(memories.get("words-contradicts")(), range(8))
    wrong = {(run.task.spec.seed, answer.t) for run in runs for answer in run.record.wrong}
    said = {(run.task.spec.seed, t) for run in runs for t in run.record.contradicting}
    assert wrong <= said
    assert len(said - wrong) > 20


def command(*words: str) -> str:
    """Run one of our commands; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run_command(list(words)) == 0
    return printed.getvalue()


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> tuple[str, str]:
    """The folder of one sweep of all broken memories, and what its command prints."""
    folder = str(tmp_path_factory.mktemp("causes") / "runs")
    how = ("--preset", WORLDS, "--model", "scripted/reader", "--seeds", "0:5", "--no-control", "--out", folder)
    return folder, command("lacuna", "run", "conversation", "--memory", ",".join(BROKEN), *how)


@pytest.mark.parametrize("name", BROKEN)
def test_run_and_show_name_the_cause_of_a_broken_memory(name, swept):
    folder, printed = swept
    cause = ANSWER_CAUSE_MEASURES[BROKEN[name][0]]
    said = " ".join(printed.split())
    assert re.search(rf"{name}: [\d,]+ wrong answers?\. Main cause: {re.escape(cause.label)} \(", said)
    found = json.loads(command("show", folder, "--memory", name, "--only", cause.label, "--json"))
    name_of_run = found["runs"][0]["run"]
    wrong = json.loads(command("show", folder, name_of_run, "--json"))["wrong"]
    t = next(one["t"] for one in wrong if one["cause"] == cause.label)
    explained = " ".join(command("show", folder, name_of_run, str(t)).split())
    assert f"Cause: {cause.label}; {cause.meaning}." in explained
    # No statement decides where a document's demand came, and the user demanded nothing.
    assert name == "words-obeys-documents" or "The statement that decides it: " in explained
    assert any(f"{heading} " in explained for heading in ("stored", "returned", "What shows it:"))
