"""`scripted/extractor`: answers the model calls of memory systems about records without a model.

A record is two entities, its label and its values, and one fact between them: the record itself. A record with another
value contradicts the earlier one.

A system that calls a model to decide what to keep, or to extract entities, gets a correct reply for records such as
`A_07 = 0042`. The system itself is unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eirkit.errors import ModelError, UnknownNameError
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.openai_dialect import JSON_WORDS, SCHEMA_WORDS
from eirkit.lacuna.models.factory import refuse_settings
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage, models
from eirkit.lacuna.scripted.memory_tools import FILES, keep_records, use_record_tools
from eirkit.lacuna.scripted.own_tools import OWN_TOOLS, manage_records
from eirkit.lacuna.scripted.reader import make_quoter, make_reader
from eirkit.lacuna.scripted.system_requests import Answer, GraphFact, graph_answer, headed, records_in, tagged
from eirkit.records.runs import CHARACTERS_PER_TOKEN


class RecordFacts:
    """Reads records as facts between a label and its values."""

    def new_facts(self, text: str, before: Sequence[str], since: str | None) -> list[GraphFact]:
        found = dict.fromkeys(records_in(text))
        return [GraphFact(label, values, "HAS_VALUE", f"{label} = {values}", label) for label, values in found]

    def fact_in(self, text: str) -> GraphFact | None:
        return next(iter(self.new_facts(text, (), None)), None)


_UNKNOWN = (
    "scripted/extractor does not {} of the memory system; give it a real model with --set NAME.model=PROVIDER/MODEL"
)


class Extractor(Reference):
    """Answers the requests of Mem0, A-MEM and Graphiti in JSON, and uses the tools of LangMem, Letta and MCP.

    It is scripted: it recognizes records and these requests, and refuses any other. Token counts are estimated as a
    quarter of the characters.
    """

    async def reply(self, request: Request) -> Reply:
        if request.tools:
            return _use_tools(request)
        said = [message.content for message in request.messages if message.role == "user"]
        if said and "<existing_facts>" in said[-1]:
            text = _facts(said[:-1], tagged(said[-1], "existing_facts"), said[-1])
        else:
            text = respond(request.messages[-1].content, said[-1] if said else "")
        seen = sum(len(message.content) for message in request.messages)
        return Reply(text, usage=Usage(_tokens(seen), _tokens(len(text))))


def respond(last: str, prompt: str) -> str:
    """Return the reply to a prompt.

    Args:
        last: the last message, which states the required format.

    Raises:
        ModelError: JSON is required and the request is not one that the script knows.
    """
    if last.startswith(SCHEMA_WORDS):
        answer = _fill(json.loads(last.removeprefix(SCHEMA_WORDS)), prompt)
    elif last.startswith(JSON_WORDS):
        answer = _extract(prompt)
    else:
        return "\n".join(_scripted_records(prompt))
    if answer is None:
        raise ModelError(_UNKNOWN.format("recognize this request"), "rejected")
    return json.dumps(answer)


def _facts(said: Sequence[str], existing: str, prompt: str) -> str:
    """Return what a block of LlamaIndex asks for: new records, or fewer than its limit of those that it has."""
    stated = prompt.partition("fewer than ")[2].partition(" facts")[0]
    limit = int(stated) if stated.isdigit() else 0
    known = _scripted_records(existing)
    new = [record for record in _scripted_records("\n".join(said)) if record not in known]
    kept = known[1 - limit :] if limit > 1 else new
    return f"<facts>{''.join(f'<fact>{record}</fact>' for record in kept)}</facts>"


def _use_tools(request: Request) -> Reply:
    names = {tool.name for tool in request.tools}
    use = manage_records if names & OWN_TOOLS else keep_records if FILES in names else use_record_tools
    calls = use(request)
    if calls is None:
        raise ModelError(_UNKNOWN.format("know these tools"), "rejected")
    seen = sum(len(message.content) for message in request.messages)
    said = sum(len(json.dumps(dict(call.arguments))) for call in calls)
    return Reply("" if calls else "Done.", calls, Usage(_tokens(seen), _tokens(said)))


def _extract(prompt: str) -> Answer | None:
    """Return what Mem0 should add: the records among the new messages that are not in the memories it shows."""
    sections = headed(prompt)
    if "New Messages" not in sections:
        return None
    known = set(_scripted_records(sections.get("Existing Memories", "")))
    new = [record for record in _scripted_records(sections["New Messages"]) if record not in known]
    return {"memory": [{"id": str(number), "text": record} for number, record in enumerate(new)]}


def _fill(schema: Any, prompt: str) -> Answer | None:
    fields = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    if "should_evolve" in fields:
        return _evolve()
    if {"keywords", "context", "tags"} <= fields.keys():
        return _analyze(prompt)
    return graph_answer(RecordFacts(), schema, prompt) if fields else None


def _analyze(prompt: str) -> Answer:
    """Return keywords, context and tags for a note of A-MEM, which embeds them with the note."""
    records = _scripted_records(prompt.rpartition("Content for analysis:")[2])
    words = [word for record in records for word in record.replace(" = ", " ").split()]
    return {
        "keywords": [*dict.fromkeys(words), "record"],
        "context": " ".join(f"{record.replace(' = ', ' has the value ')}." for record in records) or "Not a record",
        "tags": ["record", "label", "value"],
    }


def _evolve() -> Answer:
    """Return the decision for A-MEM that no note changes another, because records are independent."""
    nothing: tuple[str, ...] = (
        "actions",
        "suggested_connections",
        "tags_to_update",
        "new_context_neighborhood",
        "new_tags_neighborhood",
    )
    return {"should_evolve": False, **{field: [] for field in nothing}}


def _scripted_records(text: str) -> list[str]:
    return list(dict.fromkeys(f"{label} = {values}" for label, values in records_in(text)))


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


@models.add("scripted")
def make_scripted(name: str, options: ModelOptions) -> Reference:
    """Return the scripted model with this name."""
    kind, _, settings = name.partition("+")
    if kind == "reader":
        return make_reader(options, settings)
    if name == "quoter":
        return make_quoter(options)
    if name != "extractor":
        raise UnknownNameError("scripted model", name, ("extractor", "quoter", "reader"))
    refuse_settings("scripted", options, ())
    return Extractor(options)
