"""How the scripted extractor uses the tools of LangMem, Letta and a graph server on records."""

from __future__ import annotations

import asyncio
import json

import pytest

from eirkit.errors import ModelError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ModelOptions, Request, Tool, ToolCall
from eirkit.lacuna.scripted.extractor import make_scripted
from eirkit.lacuna.scripted.memory_tools import use_record_tools

GRAPH = ("search_nodes", "open_nodes", "create_entities", "add_observations", "delete_observations")
ARCHIVE = ("archival_memory_insert", "archival_memory_search")


def asked(tools: tuple[str, ...], *messages: tuple[str, str]) -> Request:
    described = tuple(Tool(name, "", {}) for name in tools)
    return Request(tuple(Message(role, text) for role, text in messages), tools=described)


def graph(*nodes: tuple[str, list[str]]) -> str:
    return json.dumps({"entities": [{"name": name, "entityType": "record", "observations": o} for name, o in nodes]})


def test_a_graph_server_is_searched_first_and_then_written():
    task = ("user", "Keep this.\n\nuser: A_07 = 0042")
    assert use_record_tools(asked(GRAPH, task)) == (ToolCall("search_nodes", {"query": "A_07"}),)
    empty = asked(GRAPH, task, ("assistant", "…"), ("user", graph()))
    made = {"name": "A_07", "entityType": "record", "observations": ["A_07 = 0042"]}
    assert use_record_tools(empty) == (ToolCall("create_entities", {"entities": [made]}),)
    held = asked(GRAPH, task, ("assistant", "…"), ("user", graph(("A_07", ["A_07 = 0001"]))))
    assert use_record_tools(held) == (
        ToolCall("delete_observations", {"deletions": [{"entityName": "A_07", "observations": ["A_07 = 0001"]}]}),
        ToolCall("add_observations", {"observations": [{"entityName": "A_07", "contents": ["A_07 = 0042"]}]}),
    )
    same = asked(GRAPH, task, ("assistant", "…"), ("user", graph(("A_07", ["A_07 = 0042"]))))
    assert use_record_tools(same) == ()
    done = asked(GRAPH, task, ("assistant", "…"), ("user", graph()), ("assistant", "…"), ("user", "ok"))
    assert use_record_tools(done) == ()


def test_labels_of_a_question_are_sought_once_each():
    question = ("user", "Look up.\n\nQuestion: A_07, A_08 and A_07?")
    calls = use_record_tools(asked(GRAPH, question))
    assert calls is not None
    assert [one.arguments["query"] for one in calls] == ["A_07", "A_08"]
    assert use_record_tools(asked(GRAPH, question, ("assistant", "…"), ("user", graph()))) == ()


def test_an_agent_archives_a_record_and_searches_for_a_question_as_it_is():
    kept = use_record_tools(asked(ARCHIVE, ("system", "…"), ("user", "A_07 = 0042 0043")))
    assert kept == (ToolCall("archival_memory_insert", {"content": "A_07 = 0042 0043", "tags": ["A_07"]}),)
    sought = use_record_tools(asked(ARCHIVE, ("user", "Look up.\n\nQuestion: A_07?")))
    assert sought == (ToolCall("archival_memory_search", {"query": "A_07?"}),)
    worked = ("assistant", '{"name": "archival_memory_insert"}')
    assert use_record_tools(asked(ARCHIVE, ("user", "A_07 = 0042"), worked, ("user", "ok"))) == ()


@pytest.mark.parametrize(
    ("held", "calls"),
    [("", "Memory"), ("{'content': 'A_07 = 0001'}", "PatchDoc"), ("{'content': 'A_07 = 0042'}", None)],
)
def test_a_document_is_inserted_patched_or_left(held, calls):
    shown = f'<instance id=x schema_type="Memory">\n{held}\n</instance>' if held else ""
    said = "================ Human Message ================\n\nA_07 = 0042"
    found = use_record_tools(asked(("Memory", "PatchDoc"), ("system", shown), ("user", said)))
    assert found is not None
    assert [one.name for one in found] == ([calls] if calls else [])


def test_unknown_tools_are_refused_with_the_remedy():
    model = make_scripted("extractor", ModelOptions())
    with pytest.raises(ModelError, match=r"does not know these tools .* --set NAME.model=PROVIDER/MODEL"):
        asyncio.run(model.reply(asked(("paint",), ("user", "A_07 = 0042"))))


FACTS = "<existing_facts>\n<fact>A_01 = 0001</fact>\n</existing_facts>\nReturn <facts>"


def test_a_block_of_facts_is_told_new_records_in_its_own_form():
    model = make_scripted("extractor", ModelOptions())
    told = asyncio.run(model.reply(asked((), ("user", "A_01 = 0001 A_02 = 0002"), ("user", FACTS))))
    assert told.text == "<facts><fact>A_02 = 0002</fact></facts>"
    fewer = "fewer than 2 facts <existing_facts>A_01 = 0001\nA_02 = 0002</existing_facts>"
    assert asyncio.run(model.reply(asked((), ("user", fewer)))).text == "<facts><fact>A_02 = 0002</fact></facts>"


def test_files_are_listed_then_viewed_then_written():
    task = ("user", "Keep this.\n\nuser: A_07 = 0042")
    model = make_scripted("extractor", ModelOptions())

    def calls(*more: tuple[str, str]) -> list[dict[str, object]]:
        return [dict(one.arguments) for one in asyncio.run(model.reply(asked(("memory",), task, *more))).calls]

    listing = ("user", "Here're the files:\n4.0K\t/memories\n12\t/memories/A_07.md")
    assert calls() == [{"command": "view", "path": "/memories"}]
    made = {"command": "create", "path": "/memories/A_07.md", "file_text": "A_07 = 0042\n"}
    assert calls(("assistant", "…"), ("user", "4.0K\t/memories")) == [made]
    assert calls(("assistant", "…"), listing) == [{"command": "view", "path": "/memories/A_07.md"}]
    shown = ("user", "Here's the content of /memories/A_07.md with line numbers:\n     1\tA_07 = 0001\n     2\t")
    change = {"command": "str_replace", "path": "/memories/A_07.md", "old_str": "A_07 = 0001", "new_str": "A_07 = 0042"}
    assert calls(("assistant", "…"), listing, ("assistant", "…"), shown) == [change]
