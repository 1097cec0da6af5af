"""What was put into the prompt of a question and how well it was found, recomputed by hand from known rankings."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.conversation.reading import needed_statements
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.findings.conversations import pool_retrieval
from eirkit.lacuna.memories.budgets import PromptBudget
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.conversations import conversation_session, judge_answers
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.runs import Retrieval
from eirkit.records.settings import Access

NOISE = "Nothing of what is asked is in here, and it is a long line of words."  # 68 characters
DEEP = 6  # passages before the one that is needed


class Planted(KeyValue):
    """Puts the first turn that an answer needs at a known rank: 1, DEEP + 1, not at all, or it returns nothing."""

    def __init__(self, task: WorldConversation) -> None:
        super().__init__()
        self.task, self.place = task, 0

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        asked = self.task.questions[self.place]
        self.place += 1
        needed = needed_statements(asked.question, self.task.said_before(asked), self.task.truth_at(asked))
        turn = [self.task.turns[needed[0].passage]] if needed else [NOISE]
        return ([*turn, NOISE], [*([NOISE] * DEEP), *turn], [NOISE], [])[(self.place - 1) % 4][:limit]


def asked_world(seed: int) -> WorldConversation:
    workload = find_workload("conversation")
    task = generate(workload.specify({"workload": "conversation", "preset": "small"}).with_seed(seed))
    assert isinstance(task, WorldConversation)
    return task


def retrieved(task: WorldConversation, budget: str) -> tuple[Retrieval, ...]:
    access = Access("external", None, "bm25", h=None, budget=budget)
    memory = Planted(task)
    wait_for(memory.reset("one"))
    session = conversation_session(access, task)
    trace = wait_for(drive(session, make_reader(ModelOptions()), memory, budget=PromptBudget.of(budget, 20)))
    return judge_answers(access, task, trace)[1].retrieval


@pytest.mark.parametrize(
    ("budget", "k", "is_deep_shown"), [("documented", 20, True), ("k=3", 3, False), ("tokens=64", 50, False)]
)
def test_ranks_recall_and_reciprocal_rank_are_those_that_were_planted(budget, k, is_deep_shown):
    recalls, needed_in_all, ranks = [], 0, []
    for seed in range(3):
        task = asked_world(seed)
        found = retrieved(task, budget)
        assert [one.t for one in found] == [one.t for one in task.questions]
        for number, (asked, one) in enumerate(zip(task.questions, found, strict=True)):
            needed = needed_statements(asked.question, task.said_before(asked), task.truth_at(asked))
            assert (one.asked, len(one.ranks)) == (k, len(needed))
            came = (2, DEEP + 1, 1, 0)[number % 4]
            assert one.returned == min(came, k)
            turn = task.turns[needed[0].passage] if needed else NOISE
            texts = ([turn, NOISE], [NOISE] * DEEP + [turn], [NOISE], [])[number % 4][:k]
            room, shown = (10**9 if budget != "tokens=64" else 256), 0
            for text in texts:  # lines of one passage each, as long as they fit
                if shown + len(text) > room:
                    break
                shown += len(text)
            assert one.characters == shown
            if not needed:
                continue
            at = (1, DEEP + 1 if k > DEEP else None, None, None)[number % 4]
            assert one.ranks[0] == at
            is_shown = at == 1 or (at is not None and is_deep_shown)
            assert bool(one.seen) == is_shown
            needed_in_all += len(needed)
            # A turn may make several statements; each that the answer needs is found with it.
            together = sum(other.passage == needed[0].passage for other in needed)
            recalls.append(together if is_shown else 0)
            ranks.append(0.0 if at is None else 1 / at)
    pooled = pool_retrieval([one for seed in range(3) for one in retrieved(asked_world(seed), budget)])
    assert pooled.recall == pytest.approx(sum(recalls) / needed_in_all)
    assert pooled.reciprocal_rank == pytest.approx(sum(ranks) / len(ranks))
    assert pooled.asked_passages == k
    questions = [len(asked_world(seed).questions) for seed in range(3)]
    assert pooled.empty_recalls == pytest.approx(sum(n // 4 for n in questions) / sum(questions))


def test_figures_are_means_over_questions_and_over_statements():
    questions = [
        Retrieval(1, 5, 5, 5, 400, (2, None, 1), 2),  # best rank 1; two of three statements shown
        Retrieval(2, 5, 4, 4, 800, (4,), 1),  # 1/4
        Retrieval(3, 5, 0, 0, 0, (None,), 0),  # 0, and an empty recall
        Retrieval(4, 5, 5, 5, 400),  # needs nothing: not in recall nor in ranks
    ]
    found = pool_retrieval(questions)
    assert found.prompt_tokens == (400 + 800 + 0 + 400) / 4 / 4
    assert found.recall == (2 + 1 + 0) / 5
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 4 + 0) / 3)
    assert found.empty_recalls == 1 / 4
    assert found.asked_passages == 5


def test_the_conversation_itself_has_its_length_and_no_ranks():
    task = asked_world(0)
    said = sum(map(len, task.turns)) + len(task.turns) - 1  # a line each
    whole = [one for one in shown_itself(task, Access("whole", None, h=None)) if one.t > len(task.questions) // 2]
    assert max(one.characters or 0 for one in whole) == said
    assert {(one.asked, one.returned, one.shown) for one in whole} == {(None, None, None)}
    assert all(one.seen == len(one.ranks) and not any(one.ranks) for one in whole)
    cut = shown_itself(task, Access("truncated", None, h=None, budget="tokens=100"))
    assert max(one.characters or 0 for one in cut) == 400
    assert sum(one.seen for one in cut) < sum(len(one.ranks) for one in cut)


def shown_itself(task: WorldConversation, access: Access) -> tuple[Retrieval, ...]:
    trace = wait_for(drive(conversation_session(access, task), make_reader(ModelOptions())))
    return judge_answers(access, task, trace)[1].retrieval
