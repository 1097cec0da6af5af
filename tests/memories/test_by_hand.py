"""Memory systems against their vendors' own interfaces, called by hand in the same environment with the same inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from studies.vendor_calls import DAYS, SCRIPTS, VendorLists, World, ask_vendor
from studies.vendor_lists import BUDGETS, Case, cases_of, cut, questions_of, sessions_of

from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.memories.factory import passages_asked
from eirkit.lacuna.memories.memory import Item, MemorySystem, memories
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.scripted.extractor import make_scripted
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.budgets import MOST_PASSAGES
from tests.memories.stories import needs, opened

slow = pytest.mark.slow
SYSTEMS = [pytest.param(name, marks=[needs(name), slow]) for name in SCRIPTS]
RECORDS = [  # more than any system returns unless it is asked for more than its default
    (f"A_{number}", f"A_{number:03} = {37 * number:04}") for number in (3, 7, 12, 31, 55, 56, *range(101, 121))
]
FIRST = [(f"A_{number}", f"A_{number:02} = {1000 + 7 * number}") for number in range(1, 9)]  # as check_memory
OVERWRITES = [*FIRST, *((f"A_{number}", f"A_{number:02} = {4000 + number}") for number in (1, 2, 3))]
READER = "scripted/reader+language=english"


def asked_for(name: str) -> int:
    """Return how many passages a run asks a system for."""
    return passages_asked(MemoryPlan(name, {})) or MOST_PASSAGES


def asked_of_vendor(name: str, records: Sequence[tuple[str, str]], query: str) -> VendorLists:
    model = make_scripted("extractor", ModelOptions())
    (found,) = asyncio.run(ask_vendor(name, model, [World(records=records, questions=[(query, "", None)])]))
    return found


def asked_of_adapter(name: str, records: Sequence[tuple[str, str]], query: str) -> tuple[list[str], list[str]]:
    """Return what the adapter holds and finds of the same records."""

    async def work(memory: MemorySystem) -> tuple[list[str], list[str]]:
        for label, text in records:
            await memory.write(Item(label, text))
        await memory.flush()
        return list(await memory.contents() or ()), list(await memory.search(query, asked_for(name)))

    return opened(work, name, timeout_seconds=300.0)


def test_every_system_with_packages_of_its_own_has_a_script():
    assert set(SCRIPTS) == {name for name in memories.names() if memories.get(name).requirements.packages}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_vendors_own_calls_return_the_same_list(name):
    _, found = asked_of_adapter(name, RECORDS, "What is A_055?")
    assert [found] == asked_of_vendor(name, RECORDS, "What is A_055?").found
    assert any("A_055 = 2035" in text for text in found)


def undated(texts: Sequence[str]) -> list[str]:
    return [DAYS.sub("", line) for text in texts for line in text.split("\n")]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_vendors_own_store_holds_the_same_after_conversations(name):
    (told,) = generate_many(find_workload("words").specify({"workload": "words", "preset": "small"}), range(3, 4))
    assert isinstance(told, WorldConversation)
    sessions, (question, day) = sessions_of(told), questions_of(told)[0]

    async def work(memory: MemorySystem) -> tuple[list[str], list[str]]:
        for number, (said, at) in enumerate(sessions, 1):
            await memory.observe([Message(**one) for one in said], f"session-{number}", at)
        await memory.flush()
        return list(await memory.contents() or ()), list(await memory.recall(question, day, asked_for(name)))

    asks = "model" in memories.get(name).requirements.endpoint
    held, found = opened(work, name, timeout_seconds=300.0, **({"model": READER} if asks else {}))
    world = World(sessions=sessions, questions=[(question, day, None)])
    (theirs,) = asyncio.run(ask_vendor(name, make_reader(ModelOptions()), [world]))
    assert undated(found) == undated(theirs.found[0])
    assert set(undated(held)) >= set(undated(theirs.held)), "some also list the messages themselves"
    assert theirs.held
    assert theirs.found[0]


# In small worlds, in which a budget of 500 tokens would hold all that is said.
SMALL_BUDGETS = (*BUDGETS[:2], "tokens=100")
# What a model looked up has no number of results; the test above has it.
SEARCHED = ("mem0", "langmem", "amem", "graphiti", "llamaindex", "qdrant", "langgraph", "autogen", "adk",
            "openai-agents", "pgvector")  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=[needs(name), slow]) for name in SEARCHED])
def test_in_every_budget_a_run_has_the_lists_of_the_vendors_own_calls(name):
    """Three worlds of 24 questions; `python -m studies.vendor_lists` does the same with larger ones."""
    cases = list(cases_of(name, {}, "small", "0:3", SMALL_BUDGETS))
    assert len(cases) == 3 * 24 * len(SMALL_BUDGETS)
    assert [(*case[:3], case.differs) for case in cases if case.differs] == []
    for budget in SMALL_BUDGETS:
        assert any(case.shown for case in cases if case.budget == budget)
    assert any(case.unshown for case in cases if case.budget == "tokens=100"), "the budget cut something"


def test_lists_that_differ_are_told_from_those_that_do_not():
    texts = ("a" * 30, "b" * 20 + "\n" + "c" * 20, "d")
    assert cut(texts, 16) == ["a" * 30, "b" * 20]
    assert cut(("e" * 70,), 16) == ["e" * 64]
    same = Case("tokens=16", 0, 1, ("a" * 30, "b" * 20), ((2, "c" * 20), (3, "d")), texts)
    assert same.differs == ""
    assert same._replace(shown=("a" * 30,)).differs == "shown"
    assert same._replace(vendor=(texts[1], texts[0], "d")).differs == "shown"
    assert same._replace(unshown=((2, "c" * 20),)).differs == "left out"
    assert same._replace(unshown=((2, "c" * 20), (3, "e"))).differs == "left out"
    assert Case("k=2", 0, 1, ("a",), (), ("a", "b")).differs == "shown"


@pytest.mark.parametrize("name", [pytest.param(name, marks=[needs(name), slow]) for name in ("mem0", "letta", "amem")])
def test_the_vendor_itself_holds_both_values_after_an_overwrite_and_returns_the_earlier_one_first(name):
    """What `check_memory` says of it as documented is no false alarm."""
    theirs = asked_of_vendor(name, OVERWRITES, "A_01")
    assert {"A_01 = 1007", "A_01 = 4001"} <= set(theirs.held)
    assert next(text for text in theirs.found[0] if "A_01" in text) == "A_01 = 1007"
    assert asked_of_adapter(name, OVERWRITES, "A_01")[1] == theirs.found[0]


@needs("graphiti")
@slow
def test_graphiti_itself_ends_what_is_overwritten_and_returns_it_as_well():
    theirs = asked_of_vendor("graphiti", OVERWRITES, "A_01")
    ended = [text for text in theirs.held if text != DAYS.sub("", text)]
    assert [DAYS.sub("", text) for text in sorted(ended)] == ["A_01 = 1007", "A_02 = 1014", "A_03 = 1021"]
    (found,) = theirs.found
    assert {"A_01 = 4001", "A_01 = 1007"} <= {DAYS.sub("", text) for text in found}
    _, ours = asked_of_adapter("graphiti", OVERWRITES, "A_01")
    assert [text.text if isinstance(text, EndedText) else text for text in ours] == undated(found)
    assert [isinstance(text, EndedText) for text in ours] == [text in ended for text in found]
