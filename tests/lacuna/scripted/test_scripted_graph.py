"""The scripted answers to a graph's questions: records become facts, the same record a duplicate, another a change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.scripted.extractor import RecordFacts
from eirkit.lacuna.scripted.system_requests import graph_answer

BEFORE = '<PREVIOUS MESSAGES>\n[{"content": "A_01 = 0007"}]\n</PREVIOUS MESSAGES>\n'
SINCE = "<REFERENCE_TIME>\n2024-01-01 00:03:00+00:00  # ISO 8601\n</REFERENCE_TIME>"

labels = st.integers(0, 999_999).map(lambda number: f"A_{number}")
values = st.lists(st.integers(0, 9999).map(lambda number: f"{number:04}"), min_size=1, max_size=4).map(" ".join)


def ask(field: str, prompt: str) -> Any:
    replied = graph_answer(RecordFacts(), {"properties": {field: {}}}, prompt)
    assert replied is not None
    return replied[field]


def resolve(new: str, known: list[str], others: list[str]) -> dict[str, Any]:
    """Ask about a fact as Graphiti does: two lists with one numbering, printed as Python prints them."""
    numbered = [{"idx": number, "fact": fact} for number, fact in enumerate([*known, *others])]
    prompt = (
        f"<EXISTING FACTS>\n{numbered[: len(known)]}\n</EXISTING FACTS>\n"
        f"<FACT INVALIDATION CANDIDATES>\n{numbered[len(known) :]}\n</FACT INVALIDATION CANDIDATES>\n"
        f"<NEW FACT>\n{new}\n</NEW FACT>"
    )
    return graph_answer(RecordFacts(), {"properties": {"duplicate_facts": {}, "contradicted_facts": {}}}, prompt) or {}


def test_only_the_text_at_hand_is_read():
    found = ask("extracted_entities", f"{BEFORE}<TEXT>\nA_02 = 0042\n</TEXT>")
    assert [one["name"] for one in found] == ["A_02", "0042"]


@given(labels, values)
def test_a_record_becomes_one_fact_word_for_word(label, held):
    (edge,) = ask("edges", f"{BEFORE}<CURRENT_MESSAGE>\n{label} = {held}\n</CURRENT_MESSAGE>\n{SINCE}")
    assert (edge["source_entity_name"], edge["target_entity_name"]) == (label, held)
    assert edge["fact"] == f"{label} = {held}"
    assert edge["valid_at"] == "2024-01-01T00:03:00Z"


def test_entities_are_the_same_by_name_alone():
    new = [{"id": 0, "name": "A_02"}, {"id": 1, "name": "0042"}]
    old = [{"candidate_id": 0, "name": "A_20"}, {"candidate_id": 1, "name": "0042"}]
    prompt = f"<ENTITIES>{json.dumps(new)}</ENTITIES><EXISTING ENTITIES>{json.dumps(old)}</EXISTING ENTITIES>"
    found = ask("entity_resolutions", prompt)
    assert [one["duplicate_candidate_id"] for one in found] == [-1, 1]


@given(labels, values, values)
def test_the_same_record_is_a_duplicate_and_another_value_a_contradiction(label, held, other):
    said = resolve(f"{label} = {held}", [f"{label} = {other}"], [f"{label}9 = {held}", "the river is wide"])
    same = held == other
    assert said == {"duplicate_facts": [0] if same else [], "contradicted_facts": [] if same else [0]}


def test_a_contradiction_is_found_among_the_candidates_too():
    assert resolve("A_02 = 0042", ["A_02 = 0042"], ["A_03 = 0042", "A_02 = 0007"]) == {
        "duplicate_facts": [0],
        "contradicted_facts": [2],
    }


def test_facts_hold_from_when_they_were_said():
    assert ask("valid_at", "<FACT>A_02 = 0042</FACT><REFERENCE TIME>2024-01-01T00:03:00+00:00</REFERENCE TIME>") == (
        "2024-01-01T00:03:00Z"
    )
    facts = [{"fact": "A_02 = 0042", "reference_time": "2024-01-01T00:03:00Z"}, {"fact": "A_03 = 0001"}]
    found = ask("timestamps", f"<FACTS>{json.dumps(facts)}</FACTS>")
    assert [one["valid_at"] for one in found] == ["2024-01-01T00:03:00Z", None]


def test_an_entity_is_summed_up_by_its_record():
    entities = [{"name": "A_02", "summary": ""}, {"name": "0007", "summary": "A_01 = 0007"}]
    prompt = f'<MESSAGES>["A_02 = 0042"]</MESSAGES><ENTITIES>{json.dumps(entities)}</ENTITIES>'
    assert [one["summary"] for one in ask("summaries", prompt)] == ["A_02 = 0042", "A_01 = 0007"]


@pytest.mark.parametrize("field", ["facts", "keywords", "should_evolve"])
def test_questions_of_other_systems_are_left_to_others(field):
    assert graph_answer(RecordFacts(), {"properties": {field: {}}}, "A_02 = 0042") is None


@given(st.text(max_size=200))
def test_a_prompt_without_records_gets_empty_answers(prompt):
    for field in ("extracted_entities", "edges", "entity_resolutions", "duplicate_facts", "timestamps", "summaries"):
        assert ask(field, prompt) == []
