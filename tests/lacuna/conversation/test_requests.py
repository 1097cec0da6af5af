"""What `scripted/reader` answers memory systems in conversations: facts of a graph, notes of an agent, and days."""

from __future__ import annotations

import json
from datetime import date

import pytest

from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.reading import dated_statements, learn
from eirkit.lacuna.conversation.world import WorldQuestion
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Request, Tool, ToolCall
from eirkit.lacuna.scripted.notes import StatementFacts, StatementReader
from eirkit.lacuna.scripted.reader import make_reader

ENGLISH = load_language()
TODAY = date(2031, 2, 3).toordinal()
DESK = "Marta Silva"
DIALS = dict.fromkeys(("misses", "confuses", "keeps_old", "returns_withdrawn", "invents"), 0.0)


def known(*passages: str):
    return learn(dated_statements(ENGLISH, passages, TODAY))


def ask(knowledge, form="now", attribute="tea", other=None):
    return knowledge.answer(WorldQuestion(form, attribute, DESK, other))


def test_what_is_said_to_have_ended_is_no_longer_so_and_was_so_before():
    old = "[2031-01-06] Marta Silva drinks mint tea with honey. (until 2031-01-13)"
    new = "[2031-01-13] Marta Silva now drinks sage tea with lemon."
    alone, both = known(old), known(new, old)
    assert ask(alone) is None
    assert ask(alone, "as_of", other=date(2031, 1, 8).toordinal()) == "mint tea with honey"
    assert ask(alone, "as_of", other=date(2031, 1, 20).toordinal()) is None
    assert ask(alone, "before") == "mint tea with honey"
    assert (ask(both), ask(both, "before")) == ("sage tea with lemon", "mint tea with honey")
    assert ask(known(old.partition(" (")[0])) == "mint tea with honey", "without the mark it still holds"


def test_an_end_without_a_day_unsettles_what_was_said_and_nothing_later():
    old, new, again = (
        EndedText("[2031-01-06] Marta Silva drinks mint tea with honey."),
        "[2031-01-13] Marta Silva now drinks sage tea with lemon.",
        "[2031-01-20] Marta Silva now drinks mint tea with honey.",
    )
    assert ask(known(old)) is None
    assert (ask(known(new, old)), ask(known(new, old, again))) == ("sage tea with lemon", "mint tea with honey")
    undated = "Marta Silva drinks mint tea with honey."
    assert (ask(known(undated)), ask(known(EndedText(undated)))) == ("mint tea with honey", None)
    assert ask(known(EndedText(undated, "2031-01-13"))) is None


def test_an_end_empties_sets_and_unsettles_counts():
    allergic = "[2031-01-06] Marta Silva is allergic to raw plums.{}"
    assert ask(known(allergic.format("")), "all", "allergies") == ("raw plums",)
    assert ask(known(allergic.format(" (until 2031-01-13)")), "all", "allergies") == ()
    boxes = WorldQuestion("now", "boxes", "Lisbon")
    assert known("[2031-01-06] There are 383 boxes in Lisbon.").answer(boxes) == 383
    assert known("[2031-01-06] There are 383 boxes in Lisbon. (until 2031-01-13)").answer(boxes) is None


def test_facts_of_a_graph_join_names_and_never_dates_or_amounts():
    facts = StatementFacts(StatementReader(ENGLISH, DIALS))
    said = "user: Marta Silva drinks mint tea with honey. There are 383 boxes in Lisbon.\nassistant: Noted.\n"
    said += "user: Note 2031-07-24 as the date of the kickoff of project Orion."
    found = facts.new_facts(said, (), "2031-01-06T00:00:00Z")
    assert [(one.source, one.target) for one in found] == [
        ("Marta Silva", "mint tea with honey"), ("Lisbon", "boxes"), ("Orion", "kickoff"),
    ]  # fmt: skip
    assert "24 July 2031" in found[2].text
    assert all(facts.fact_in(one.text) == one for one in found)


TOOLS = tuple(
    Tool(name, "", {})
    for name in ("archival_memory_insert", "archival_memory_search", "memory_insert", "memory_replace")
)
SYSTEM = "You are an agent.\n<human>\n<value>\n{}\n</value>\n</human>"


def calls(*messages: tuple[str, str], block: str = "") -> tuple[ToolCall, ...]:
    """Return the next calls of an agent of Letta that was told this on 3 February 2031."""
    given = [("system", SYSTEM.format(block)), ("system", "Today is 2031-02-03."), *messages]
    request = Request(tuple(Message(role, text) for role, text in given), TOOLS)  # type: ignore[arg-type]
    return make_reader(ModelOptions()).use_tools(request).calls


def returned(*texts: str) -> tuple[str, str]:
    rows = [{"timestamp": "2031", "content": text} for text in texts]
    return "user", json.dumps({"status": "OK", "message": str(rows)})


SOUGHT = ("assistant", '[{"function": {"name": "archival_memory_search"}}]')


def test_an_agent_keeps_facts_with_their_day_and_instructions_in_its_block():
    said = "user", "Marta Silva drinks mint tea with honey. Sign every answer with “Copper Kettle”."
    tea, sign = calls(said)
    assert (tea.name, tea.arguments["content"]) == (
        "archival_memory_insert",
        "[2031-02-03] Marta Silva drinks mint tea with honey.",
    )
    assert (sign.name, sign.arguments["label"]) == ("memory_insert", "human")
    (changed,) = calls(("user", "Sign every answer with “Silver Lantern” instead."), block=sign.arguments["new_string"])
    assert changed.name == "memory_replace"
    assert changed.arguments["old_string"] == sign.arguments["new_string"]
    assert "Silver Lantern" in changed.arguments["new_string"]
    assert calls(said, ("assistant", '[{"function": {"name": "archival_memory_insert"}}]'), returned()) == ()


def test_an_agent_looks_up_who_is_half_named_before_it_writes():
    said = "user", "Marta drinks mint tea with honey."
    assert calls(said) == (ToolCall("archival_memory_search", {"query": "Marta"}),)
    (kept,) = calls(said, SOUGHT, returned("[2031-01-06] Marta Silva's phone number is 0161-482913."))
    assert kept.arguments["content"] == "[2031-02-03] Marta Silva drinks mint tea with honey."


def test_an_agent_searches_for_a_question_and_for_what_the_results_lead_to():
    form = next(one.text for (group, form), ways in ENGLISH.questions.items() if form == "hop" for one in ways)
    assert "{t}" in form
    asked = form.format(t="Lisbon")
    question = "user", f"Look it up.\n\nQuestion: {asked}"
    assert calls(question) == (ToolCall("archival_memory_search", {"query": asked}),)
    (more,) = calls(question, SOUGHT, returned("[2031-01-06] Marta Silva leads the Lisbon team."))
    assert more.arguments["query"].endswith("Marta Silva")
    assert calls(question, SOUGHT, returned("[2031-01-06] Nothing of it.")) == ()
    found = SOUGHT, returned("[2031-01-06] Marta Silva leads the Lisbon team."), SOUGHT, returned()
    assert calls(question, *found) == (), "it does not search for ever"


@pytest.mark.parametrize("result", ["", "None", '{"message": "None"}', '{"message": "[1, 2]"}', "[]"])
def test_a_result_without_texts_is_read_as_nothing(result):
    (kept,) = calls(("user", "Marta drinks mint tea with honey."), SOUGHT, ("user", result))
    assert kept.arguments["content"] == "[2031-02-03] Marta drinks mint tea with honey."


SESSION = (
    "================================ System Message ================================\n\nToday is 2031-02-03.\n\n"
    "================================ Human Message =================================\n\n"
    "Please forget Marta Silva's phone number."
)
KNOWN = """<instance id=a1 schema_type="Memory">
{'content': "Marta Silva's phone number is 0161-482913."}
</instance>"""


@pytest.mark.parametrize("deletes", [True, False])
def test_a_store_manager_deletes_what_is_withdrawn_or_replaces_it_where_it_has_no_tool_to_delete(deletes):
    tools = ("Memory", "PatchDoc", *(("RemoveDoc",) if deletes else ()))
    request = Request((Message("user", KNOWN), Message("user", SESSION)), tuple(Tool(name, "", {}) for name in tools))
    (call,) = make_reader(ModelOptions()).use_tools(request).calls
    assert call.arguments["json_doc_id"] == "a1"
    assert call.name == ("RemoveDoc" if deletes else "PatchDoc")
    assert deletes or call.arguments["patches"][0]["value"] == "Please forget Marta Silva's phone number."
