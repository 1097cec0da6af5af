"""The scripted extractor: what it answers to each question it knows, and that it refuses the rest."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import ModelError, UnknownNameError
from eirkit.lacuna.memories.openai_dialect import JSON_WORDS, SCHEMA_WORDS, read_request
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.scripted.extractor import make_scripted, respond
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec, show_record

RECORDS = st.builds(
    lambda t, values: f"A_{t} = {' '.join(f'{value:04}' for value in values)}",
    st.integers(1, 999_999),
    st.lists(st.integers(0, 9_999), min_size=1, max_size=4),
)


def new_messages(new: str, existing: str = "[]") -> str:
    """Return a prompt with the headings of Mem0's."""
    sections = {"Summary": "", "Last k Messages": "user: A_99 = 1", "Existing Memories": existing, "New Messages": new}
    return "\n\n".join(f"## {name}\n{text}" for name, text in sections.items()) + "\n\n## Current Date\ntoday"


def schema(*fields: str) -> str:
    return SCHEMA_WORDS + json.dumps({"type": "object", "properties": {field: {} for field in fields}})


def texts(prompt: str) -> list[str]:
    return [one["text"] for one in json.loads(respond(JSON_WORDS, prompt))["memory"]]


def test_mem0_is_told_the_records_among_the_new_messages_and_no_others():
    existing = json.dumps([{"id": "0", "text": "A_07 = 0041"}, {"id": "1", "text": "A_08 = 0001"}])
    assert texts(new_messages("user: A_07 = 0042\n", existing)) == ["A_07 = 0042"]
    assert texts(new_messages("user: A_08 = 0001 and A_09 = 0002 0003\n", existing)) == ["A_09 = 0002 0003"]
    assert texts(new_messages("user: good morning\n")) == []


@given(st.lists(RECORDS, max_size=6, unique=True))
def test_every_record_is_extracted_once_in_its_order(records):
    said = "".join(f"user: {record}\n" for record in [*records, *records])
    assert texts(new_messages(said)) == records


@pytest.mark.parametrize("workload", ["stepwise-sum", "stepwise-topk", "store-recall", "full-lookup"])
def test_the_records_of_real_tasks_are_records(workload):
    task = generate(TaskSpec(workload, n=16, m=4, slots=1 if workload == "stepwise-topk" else 3))
    shown = [show_record(task.spec, step.t, step.answer) for step in task.steps]
    assert texts(new_messages("".join(f"user: {record}\n" for record in shown))) == shown


def test_amem_gets_keywords_context_and_tags_of_the_note_alone():
    prompt = "An example: A_99 = 1\n\nContent for analysis:\n A_07 = 0042"
    found = json.loads(respond(schema("keywords", "context", "tags"), prompt))
    assert found["keywords"] == ["A_07", "0042", "record"]
    assert found["context"] == "A_07 has the value 0042."
    assert len(found["tags"]) == 3
    assert json.loads(respond(schema("keywords", "context", "tags"), "Content for analysis:\n what?"))["context"]


def test_amem_is_told_that_no_note_changes_another():
    fields = ("should_evolve", "actions", "suggested_connections", "tags_to_update", "new_context_neighborhood")
    found = json.loads(respond(schema(*fields, "new_tags_neighborhood"), "memory_id:1 A_07 = 0042"))
    assert found == {"should_evolve": False} | {field: [] for field in (*fields[1:], "new_tags_neighborhood")}


def test_a_graph_gets_its_entities():
    found = json.loads(respond(schema("extracted_entities"), "<CURRENT MESSAGE>A_07 = 0042</CURRENT MESSAGE>"))
    assert [one["name"] for one in found["extracted_entities"]] == ["A_07", "0042"]


@pytest.mark.parametrize("last", [schema("mood"), schema(), SCHEMA_WORDS + "[]", JSON_WORDS])
def test_a_question_it_does_not_know_is_refused_with_a_remedy(last):
    with pytest.raises(ModelError, match=r"does not recognize this request .* --set NAME.model=") as caught:
        respond(last, "How do you feel?")
    assert caught.value.kind == "rejected"


def test_where_no_json_is_wanted_it_repeats_the_records():
    assert respond("A_1 = 5, then A_2 = 6", "A_1 = 5, then A_2 = 6") == "A_1 = 5\nA_2 = 6"


def ask(*messages: Message) -> Reply:
    return asyncio.run(make_scripted("extractor", ModelOptions()).reply(Request(messages)))


def test_its_tokens_are_a_quarter_of_the_characters_rounded_up():
    prompt = new_messages("user: A_07 = 0042\n")
    reply = ask(Message("system", "x" * 399), Message("user", prompt), Message("system", JSON_WORDS))
    seen = 399 + len(prompt) + len(JSON_WORDS)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (-(-seen // 4), -(-len(reply.text) // 4))
    assert reply.usage.cost_usd == 0.0


def test_the_endpoint_asks_in_the_form_that_it_reads():
    wanted = {"type": "json_schema", "json_schema": {"schema": {"properties": {"should_evolve": {}}}}}
    body = {"messages": [{"role": "user", "content": "A_07 = 0042"}], "response_format": wanted}
    assert json.loads(ask(*read_request(body).messages).text)["should_evolve"] is False


def test_there_is_one_scripted_model():
    with pytest.raises(UnknownNameError, match="did you mean 'extractor'"):
        make_scripted("extracter", ModelOptions())
    with pytest.raises(UnknownNameError, match="setting of scripted models"):
        make_scripted("extractor", ModelOptions(extra={"mood": 1}))
