"""Memory conditions one by one: what is at hand, what may be done, and what is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.agents.conditions import (
    SUMMARY_PROMPT,
    Cache,
    Compaction,
    Condition,
    External,
    KeyValueStore,
    ManagedOptions,
    Paging,
    RefusedAction,
    Scratch,
    ScratchLru,
)
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.protocol import Drop, Note, Read, Search, Write
from eirkit.lacuna.agents.recognition import records_in
from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.tasks.task import TaskSpec, show_record
from tests.lacuna.sessions import CONTEXT_TOKENS, managed, play, public, retention, script, task_of

SPEC = TaskSpec("stepwise-sum", n=20, m=8)
NEAR = {t: show_record(SPEC, t, (t,)) for t in range(1, 21)}
VALUES = {t: (t,) for t in range(1, 21)}
RECORD_CHARACTERS = len(NEAR[1]) + 1  # with its line break


def reason(condition: Condition, action, near=NEAR) -> str:
    with pytest.raises(RefusedAction) as refusal:
        condition.perform(action, near)
    return refusal.value.reason


def test_the_default_keeps_nothing_and_allows_nothing():
    condition = Condition()
    assert condition.recognize(VALUES).present == frozenset()
    assert condition.submit(1, (1,), True) is None
    assert condition.fetch(1, (1,), 2) is None
    assert not condition.obtainable(1)
    assert {reason(condition, action) for action in (Write(1), Drop(1), Note("x"), Search("x"))} == {"not-offered"}
    with pytest.raises(ValueError, match="no summary"):
        condition.summarize("x")


def test_a_cache_keeps_what_its_policy_keeps():
    condition = Cache(retention(task_of(), "lru", 2))
    assert [condition.submit(t, (t,), True) for t in (1, 2)] == [None, None]
    condition.consume((1,))
    assert condition.submit(3, (3,), True) == 2
    assert condition.submit(4, (4,), takes_slot=False) is None
    assert condition.fetch(3, (3,), 5) is None
    assert condition.fetch(2, (2,), 5) == 1
    assert condition.in_context().records == (2, 3)
    assert reason(condition, Write(1)) == "not-offered"


def test_key_value_memory_is_the_models_to_fill():
    condition = KeyValueStore(2)
    assert condition.submit(1, (1,), True) is None
    assert condition.in_context().records == ()
    condition.perform(Write(1), NEAR)
    condition.perform(Write(1), NEAR)
    assert condition.in_context().room == "1 of 2 records used"
    condition.perform(Write(3), NEAR)
    assert reason(condition, Write(2)) == "memory-full"
    assert reason(condition, Write(2), near={}) == "not-at-hand"
    assert reason(condition, Drop(2)) == "not-in-memory"
    assert reason(condition, Note("x")) == "not-offered"
    condition.perform(Drop(1), NEAR)
    condition.perform(Write(2), NEAR)
    assert condition.in_context().records == (2, 3)


def test_scratch_text_holds_exactly_h_records():
    condition = Scratch(SPEC, 1, 2)
    for t in (1, 2):
        condition.perform(Note(NEAR[t]), NEAR)
    assert condition.in_context().notes == "1. A_01 = 0001\n2. A_02 = 0002"
    assert condition.in_context().room == f"{2 * RECORD_CHARACTERS} of {2 * RECORD_CHARACTERS} characters used"
    assert reason(condition, Note("x")) == "memory-full"
    assert reason(condition, Note("x" * 2 * RECORD_CHARACTERS)) == "too-long"
    assert reason(condition, Drop(3)) == "not-in-memory"
    assert reason(condition, Drop(0)) == "not-in-memory"
    condition.perform(Drop(1), NEAR)
    condition.perform(Note("A_03=3"), NEAR)
    assert condition.recognize(VALUES).present == {2, 3}
    assert reason(condition, Write(1)) == "not-offered"


def test_scratch_text_keeps_what_the_model_wrote_right_or_wrong():
    condition = Scratch(SPEC, 1, 4)
    condition.perform(Note("A_01 = 0001 and A_02 = 0009"), NEAR)
    assert condition.recognize(VALUES).present == {1}
    condition.perform(Note("A_01 = 0005"), NEAR)
    assert condition.recognize(VALUES).present == set()


def test_scratch_text_under_lru_lets_the_least_used_line_go():
    condition = ScratchLru(SPEC, 1, 3)
    for t in (1, 2, 3):
        condition.perform(Note(NEAR[t]), NEAR)
    condition.consume((1,))
    condition.perform(Note(NEAR[4]), NEAR)
    assert condition.in_context().notes == "1. A_03 = 0003\n2. A_01 = 0001\n3. A_04 = 0004"
    assert reason(condition, Drop(1)) == "not-offered"
    assert reason(condition, Note("x" * 3 * RECORD_CHARACTERS)) == "too-long"
    condition.perform(Note("x" * (3 * RECORD_CHARACTERS - 1)), NEAR)
    assert condition.recognize(VALUES).present == set()


@given(st.lists(st.text("abA_1= 0", min_size=1, max_size=40).map(str.strip).filter(bool), max_size=30), st.booleans())
def test_notes_never_outgrow_their_room(texts, lru):
    condition = (ScratchLru if lru else Scratch)(SPEC, 1, 2)
    for text in texts:
        with suppress(RefusedAction):
            condition.perform(Note(text), {})
        held = (condition.in_context().notes or "").split("\n")
        assert sum(len(line.partition(". ")[2]) + 1 for line in held if line) <= condition.limit


def test_external_memory_is_asked_and_shows_the_last_records():
    condition = External(retention(task_of(), "window", 1))
    condition.submit(1, (1,), True)
    assert condition.perform(Write(1), NEAR) == MemoryCall("write", NEAR[1], (1,))
    assert condition.perform(Search("A_01"), NEAR) == MemoryCall("search", "A_01", (1,))
    assert condition.obtainable(1)
    assert not condition.obtainable(2)
    assert reason(condition, Write(2), near={}) == "not-at-hand"
    assert reason(condition, Drop(1)) == "not-offered"
    condition.submit(2, (2,), True)
    assert condition.fetch(1, (1,), 3) is None
    assert condition.in_context().records == (2,)


def test_forced_paging_shows_nothing_and_needs_reads():
    condition = Paging()
    condition.submit(1, (1,), True)
    condition.fetch(1, (1,), 2)
    assert condition.in_context().records == ()
    task = public(task_of())
    with pytest.raises(SpecError, match="allow reads"):
        ManagedSession(task, Paging())
    assert "READ" in ManagedSession(task, Paging(), ManagedOptions(reads=None)).commands
    assert reason(condition, Read(1)) == "not-offered"


# --- compaction


def fill(session_task, upto: int) -> list[str]:
    return [f"NEXT\nANSWER {t} {t}" for t in range(1, upto + 1)]


CHARACTERS = 4 * CONTEXT_TOKENS
FULL = CHARACTERS // RECORD_CHARACTERS  # records before the text is too long; the next one is one too many


def test_the_context_must_hold_something():
    with pytest.raises(SpecError, match="64 or more"):
        Compaction(SPEC, 63)


def test_records_stay_until_they_are_too_long_then_a_summary_is_due():
    task = task_of(n=40)
    session = managed(task, "compaction")
    played = play(session, script(*fill(task, FULL + 1), "the sum\nA_21 = 0021\x00", "NEXT", "DONE"))
    before, asked, after = played.prompts[FULL], played.prompts[FULL + 1], played.prompts[FULL + 2]
    assert f"A_{FULL:02d} = {FULL:04d}\nEND NOTES" in before
    room = CHARACTERS // 2
    assert asked.endswith(f"SUMMARY at most {room} characters\n{SUMMARY_PROMPT.replace('{characters}', str(room))}")
    assert "NOTES\nthe sum\nA_21 = 0021\N{REPLACEMENT CHARACTER}\nEND NOTES" in after
    (noted,) = [a for a in played.actions if a.action == "SUMMARY"]
    assert (noted.outcome, noted.t, noted.detail) == ("done", FULL + 1, "20 of 20 characters kept")
    assert played.decisions[FULL + 1].retained == (21,)


def test_nothing_else_happens_while_a_summary_is_due():
    task = task_of(n=40)
    session = managed(task, "compaction")
    said = [*fill(task, FULL), f"NEXT\nANSWER {FULL + 1} 7\nNEXT\nANSWER {FULL + 2} 7", "A_01 = 0001", "DONE"]
    played = play(session, script(*said))
    words = [a.action.split()[0] for a in played.actions[2 * FULL :]]
    assert words == ["NEXT", "ANSWER", "SUMMARY", "NEXT", "ANSWER", "DONE"]
    assert played.decisions[FULL + 1].retained == (1,)


def test_a_summary_is_cut_to_its_room_and_costs_an_action():
    session = managed(task_of(n=64), "compaction")

    def agent(request):
        if "SUMMARY" in request.messages[-1].content:
            return Reply("y" * 10**5)
        return Reply(f"NEXT\nANSWER {session.position + 1} 7" if session.position < 64 else "DONE")

    played = play(session, agent)
    summaries = [a for a in played.actions if a.action == "SUMMARY"]
    assert summaries
    assert {a.detail for a in summaries} == {f"{CHARACTERS // 2} of 100000 characters kept"}
    assert [a.number for a in played.actions] == list(range(1, 2 * 64 + len(summaries) + 2))
    for prompt in played.prompts:
        if "SUMMARY" not in prompt:
            assert len(prompt.partition("NOTES\n")[2].partition("\nEND NOTES")[0]) <= CHARACTERS


def test_a_given_prompt_is_used_as_it_stands():
    task = task_of(n=40)
    strange = 'Return {"json": {0}} of {characters} characters, {nothing}'
    session = managed(task, "compaction", summary_prompt=strange)
    played = play(session, script(*fill(task, FULL + 1), "A_01 = 0001", "DONE"))
    assert played.prompts[FULL + 1].endswith(strange.replace("{characters}", str(CHARACTERS // 2)))


def test_what_is_read_joins_the_text():
    task = task_of(n=40)
    session = managed(task, "compaction", reads=None)
    played = play(session, script("NEXT\nANSWER 1 7\nNEXT", *["READ 1"] * 60))
    assert sum(a.action == "SUMMARY" for a in played.actions) == 2
    assert "A_01 = 0007\nA_01 = 0007" in played.prompts[2]


# --- records in text


WRITTEN = [
    ("A_07 = 0042", {7}),
    ("A_7=42", {7}),
    ("A_7: 42, the first", {7}),
    ("1. A_07 = 0042; A_08 = 0001", {7}),
    ("A_07 = 0041", set()),
    ("A_07 = 0042\nA_07 = 0041", set()),
    ("A_07 = 0041\nA_07 = 0042", set()),  # one text, two values
    ("BA_07 = 0042", set()),
    ("A_07 is 42", {7}),
    ("A_7 = ٤٢", {7}),
    ("A_9 = 1, 2", {9}),
    ("A_9 = 1 2 3 apples", set()),
    ("A_9 = 1", set()),
    ("A_9 = " + "9" * 5000, set()),
    ("A_" + "9" * 5000 + " = 1", set()),
]


@pytest.mark.parametrize(("text", "steps"), WRITTEN)
def test_records_are_found_in_text_if_their_values_are_right(text, steps):
    assert records_in(text, {7: (42,), 9: (1, 2)}) == steps


@given(st.text())
def test_any_text_can_be_searched(text):
    assert records_in(text, VALUES) <= set(VALUES)


@pytest.mark.parametrize("make", [KeyValueStore, lambda h: Scratch(SPEC, 1, h), lambda h: ScratchLru(SPEC, 1, h)])
def test_a_memory_for_nothing_is_refused(make):
    with pytest.raises(SpecError, match="h >= 1"):
        make(0)
