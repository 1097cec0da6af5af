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
from eirkit.lacuna.scripted.notes import StatementReader, WordFacts
from eirkit.lacuna.scripted.reader import make_reader

ENGLISH = load_language()
TODAY = date(2031, 2, 3).toordinal()
DESK = "Mira Zorneb"
DIALS = dict.fromkeys(("misses", "confuses", "keeps_old", "returns_withdrawn", "invents"), 0.0)


def known(*passages: str):
    return learn(dated_statements(ENGLISH, passages, TODAY))


def ask(knowledge, form="now", attribute="tea", other=None):
    return knowledge.answer(WorldQuestion(form, attribute, DESK, other))


def test_what_is_said_to_have_ended_is_no_longer_so_and_was_so_before():
    old = "[2031-01-06] Mira Zorneb drinks Kalvex tea. (until 2031-01-13)"
    new = "[2031-01-13] Mira Zorneb now drinks Hudrim tea."
    alone, both = known(old), known(new, old)
    assert ask(alone) is None
    assert ask(alone, "as_of", other=date(2031, 1, 8).toordinal()) == "Kalvex"
    assert ask(alone, "as_of", other=date(2031, 1, 20).toordinal()) is None
    assert ask(alone, "before") == "Kalvex"
    assert (ask(both), ask(both, "before")) == ("Hudrim", "Kalvex")
    assert ask(known(old.partition(" (")[0])) == "Kalvex", "without the mark it still holds"


def test_an_end_without_a_day_unsettles_what_was_said_and_nothing_later():
    old, new, again = (
        EndedText("[2031-01-06] Mira Zorneb drinks Kalvex tea."),
        "[2031-01-13] Mira Zorneb now drinks Hudrim tea.",
        "[2031-01-20] Mira Zorneb now drinks Kalvex tea.",
    )
    assert ask(known(old)) is None
    assert (ask(known(new, old)), ask(known(new, old, again))) == ("Hudrim", "Kalvex")
    undated = "Mira Zorneb drinks Kalvex tea."
    assert (ask(known(undated)), ask(known(EndedText(undated)))) == ("Kalvex", None)
    assert ask(known(EndedText(undated, "2031-01-13"))) is None


def test_an_end_empties_sets_and_unsettles_counts():
    allergic = "[2031-01-06] Mira Zorneb is allergic to Kalvex.{}"
    assert ask(known(allergic.format("")), "all", "allergies") == ("Kalvex",)
    assert ask(known(allergic.format(" (until 2031-01-13)")), "all", "allergies") == ()
    boxes = WorldQuestion("now", "boxes", "Holvax")
    assert known("[2031-01-06] There are 383 boxes in Holvax.").answer(boxes) == 383
    assert known("[2031-01-06] There are 383 boxes in Holvax. (until 2031-01-13)").answer(boxes) is None


def test_facts_of_a_graph_join_names_and_never_dates_or_amounts():
    facts = WordFacts(StatementReader(ENGLISH, DIALS))
    said = "user: Mira Zorneb drinks Kalvex tea. There are 383 boxes in Holvax.\nassistant: Noted.\n"
    said += "user: Note 2031-07-24 as the date of the kickoff of project Kelvav."
    found = facts.new_facts(said, (), "2031-01-06T00:00:00Z")
    assert [(one.source, one.target) for one in found] == [
        ("Mira Zorneb", "Kalvex"), ("Holvax", "boxes"), ("Kelvav", "kickoff"),
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
    said = "user", "Mira Zorneb drinks Kalvex tea. Sign every answer with Borulvan."
    tea, sign = calls(said)
    assert (tea.name, tea.arguments["content"]) == (
        "archival_memory_insert",
        "[2031-02-03] Mira Zorneb drinks Kalvex tea.",
    )
    assert (sign.name, sign.arguments["label"]) == ("memory_insert", "human")
    (changed,) = calls(("user", "Sign every answer with Milvek instead."), block=sign.arguments["new_string"])
    assert changed.name == "memory_replace"
    assert changed.arguments["old_string"] == sign.arguments["new_string"]
    assert "Milvek" in changed.arguments["new_string"]
    assert calls(said, ("assistant", '[{"function": {"name": "archival_memory_insert"}}]'), returned()) == ()


def test_an_agent_looks_up_who_is_half_named_before_it_writes():
    said = "user", "Mira drinks Kalvex tea."
    assert calls(said) == (ToolCall("archival_memory_search", {"query": "Mira"}),)
    (kept,) = calls(said, SOUGHT, returned("[2031-01-06] Mira Zorneb's phone number is 4174-2663."))
    assert kept.arguments["content"] == "[2031-02-03] Mira Zorneb drinks Kalvex tea."


def test_an_agent_searches_for_a_question_and_for_what_the_results_lead_to():
    form = next(one.text for (group, form), ways in ENGLISH.questions.items() if form == "hop" for one in ways)
    assert "{t}" in form
    asked = form.format(t="Holvax")
    question = "user", f"Look it up.\n\nQuestion: {asked}"
    assert calls(question) == (ToolCall("archival_memory_search", {"query": asked}),)
    (more,) = calls(question, SOUGHT, returned("[2031-01-06] Mira Zorneb leads the Holvax team."))
    assert more.arguments["query"].endswith("Mira Zorneb")
    assert calls(question, SOUGHT, returned("[2031-01-06] Nothing of it.")) == ()
    found = SOUGHT, returned("[2031-01-06] Mira Zorneb leads the Holvax team."), SOUGHT, returned()
    assert calls(question, *found) == (), "it does not search for ever"


@pytest.mark.parametrize("result", ["", "None", '{"message": "None"}', '{"message": "[1, 2]"}', "[]"])
def test_a_result_without_texts_is_read_as_nothing(result):
    (kept,) = calls(("user", "Mira drinks Kalvex tea."), SOUGHT, ("user", result))
    assert kept.arguments["content"] == "[2031-02-03] Mira drinks Kalvex tea."


SESSION = (
    "================================ System Message ================================\n\nToday is 2031-02-03.\n\n"
    "================================ Human Message =================================\n\n"
    "Please forget Mira Zorneb's phone number."
)
KNOWN = """<instance id=a1 schema_type="Memory">
{'content': "Mira Zorneb's phone number is 4174-2663."}
</instance>"""


@pytest.mark.parametrize("deletes", [True, False])
def test_a_store_manager_deletes_what_is_withdrawn_or_replaces_it_where_it_has_no_tool_to_delete(deletes):
    tools = ("Memory", "PatchDoc", *(("RemoveDoc",) if deletes else ()))
    request = Request((Message("user", KNOWN), Message("user", SESSION)), tuple(Tool(name, "", {}) for name in tools))
    (call,) = make_reader(ModelOptions()).use_tools(request).calls
    assert call.arguments["json_doc_id"] == "a1"
    assert call.name == ("RemoveDoc" if deletes else "PatchDoc")
    assert deletes or call.arguments["patches"][0]["value"] == "Please forget Mira Zorneb's phone number."
