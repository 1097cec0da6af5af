"""`scripted/extractor`: answers the model calls of memory systems (Mem0, A-MEM, Graphiti) without a model.

A record is two entities, its label and its
values, and one fact between them: the record itself. A record with another value contradicts the earlier one.

A system that calls a model to decide what to keep, or to extract entities, gets a correct reply for records such as
`A_07 = 0042`. The system itself is unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from eirkit.agents.model import ModelOptions, Reply, Request, Usage, models
from eirkit.agents.models.reader import make_reader
from eirkit.agents.models.reference import Reference
from eirkit.agents.serving.model_factory import refuse_settings
from eirkit.agents.stores.openai_dialect import JSON_WORDS, SCHEMA_WORDS
from eirkit.errors import ModelError, UnknownNameError

Answer = dict[str, Any]

_RECORD = re.compile(r"\b(A_\d{1,6}) = (\d{1,20}(?: \d{1,20})*)")
_CURRENT = ("CURRENT_MESSAGE", "CURRENT MESSAGE", "TEXT", "JSON")  # names that graph systems use for the current text
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?")


def graph_answer(schema: Mapping[str, Any], prompt: str) -> Answer | None:
    """Return the JSON for a schema; None if the schema is not one of a graph's requests."""
    fields = schema.get("properties", {})
    for field, respond in _QUESTIONS.items():
        if field in fields:
            return respond(prompt)
    return None


def _entities(prompt: str) -> Answer:
    names = [name for record in _records(_section(prompt, *_CURRENT)) for name in record]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in dict.fromkeys(names)]}


def _edges(prompt: str) -> Answer:
    since = _stamp(_section(prompt, "REFERENCE_TIME", "REFERENCE TIME"))
    return {
        "edges": [
            {
                "source_entity_name": label,
                "target_entity_name": values,
                "relation_type": "HAS_VALUE",
                "fact": f"{label} = {values}",
                "valid_at": since,
                "invalid_at": None,
            }
            for label, values in _records(_section(prompt, *_CURRENT))
        ]
    }


def _resolutions(prompt: str) -> Answer:
    """Two entities are one if they have the same name, and never otherwise."""
    existing = {one.get("name"): one.get("candidate_id", -1) for one in _list(_section(prompt, "EXISTING ENTITIES"))}
    return {
        "entity_resolutions": [
            {"id": one["id"], "name": one["name"], "duplicate_candidate_id": existing.get(one["name"], -1)}
            for one in _list(_section(prompt, "ENTITIES"))
        ]
    }


def _duplicates(prompt: str) -> Answer:
    """The same record is a duplicate; the same label with another value is contradicted."""
    new = dict(_records(_section(prompt, "NEW FACT")))
    known = _facts(_section(prompt, "EXISTING FACTS"))
    others = _facts(_section(prompt, "FACT INVALIDATION CANDIDATES"))
    return {
        "duplicate_facts": [number for number, (label, values) in known if new.get(label) == values],
        "contradicted_facts": [
            number for number, (label, values) in known + others if new.get(label, values) != values
        ],
    }


def _timestamps(prompt: str) -> Answer:
    return {"valid_at": _stamp(_section(prompt, "REFERENCE TIME", "REFERENCE_TIME")), "invalid_at": None}


def _many_timestamps(prompt: str) -> Answer:
    facts = _list(_section(prompt, "FACTS"))
    return {"timestamps": [{"valid_at": _stamp(json.dumps(one)), "invalid_at": None} for one in facts]}


def _summaries(prompt: str) -> Answer:
    """Summarise an entity by the latest record of its label, or else by its previous summary."""
    said = dict(_records(_section(prompt, "MESSAGES", "EPISODES")))
    return {
        "summaries": [
            {"name": (name := one["name"]), "summary": f"{name} = {said[name]}" if name in said else one["summary"]}
            for one in _list(_section(prompt, "ENTITIES"))
        ]
    }


# By a field that only this request has; the first match answers.
_QUESTIONS: dict[str, Callable[[str], Answer]] = {
    "extracted_entities": _entities,
    "edges": _edges,
    "entity_resolutions": _resolutions,
    "duplicate_facts": _duplicates,
    "timestamps": _many_timestamps,
    "summaries": _summaries,
    "valid_at": _timestamps,
}


def _section(prompt: str, *names: str) -> str:
    """Return the text between `<NAME>` and `</NAME>` for the first name that occurs."""
    for name in names:
        start = prompt.find(f"<{name}>") + len(name) + 2
        if start > len(name) + 1 and (end := prompt.find(f"</{name}>", start)) >= 0:
            return prompt[start:end].strip()
    return ""


def _records(text: str) -> list[tuple[str, str]]:
    return list(dict.fromkeys(_RECORD.findall(text)))


def _facts(text: str) -> list[tuple[int, tuple[str, str]]]:
    """Return the numbered facts of a printed list, `{'idx': 3, 'fact': 'A_07 = 0042'}`, that are records."""
    parts = re.findall(r"['\"]idx['\"]: (\d+), ['\"]fact['\"]: (.*?)(?=\}, \{|\}\]|$)", text, re.DOTALL)
    return [(int(number), records[0]) for number, fact in parts if (records := _records(fact))]


def _list(text: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _stamp(text: str) -> str | None:
    found = _STAMP.search(text)
    return None if found is None else found[0].replace(" ", "T").replace("+00:00", "Z")


CHARACTERS_PER_TOKEN = 4  # an estimate, because there is no tokenizer

_SCRIPTED_RECORD = re.compile(r"\bA_\d{1,6} = \d{1,20}(?: \d{1,20})*")


class Extractor(Reference):
    """Answers the requests of Mem0, A-MEM and Graphiti about records, in the requested JSON.

    It is scripted: it recognises records and these requests, and refuses any other. Token counts are estimated as a
    quarter of the characters.
    """

    async def reply(self, request: Request) -> Reply:
        said = [message.content for message in request.messages if message.role == "user"]
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
        raise ModelError(
            "scripted/extractor does not recognise this request of the memory system; give it a real model with "
            "--memory-set NAME.model=PROVIDER/MODEL",
            "rejected",
        )
    return json.dumps(answer)


def _extract(prompt: str) -> Answer | None:
    """Return what Mem0 should add: the records among the new messages that are not in the memories it shows."""
    sections = _sections(prompt)
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
        return _analyse(prompt)
    return graph_answer(schema, prompt) if fields else None


def _analyse(prompt: str) -> Answer:
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


def _sections(prompt: str) -> dict[str, str]:
    """Return the text below each `## Heading`."""
    parts = re.split(r"^## (.+)$", prompt, flags=re.MULTILINE)
    return {name.strip(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _scripted_records(text: str) -> list[str]:
    return list(dict.fromkeys(_SCRIPTED_RECORD.findall(text)))


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


@models.add("scripted")
def make_scripted(name: str, options: ModelOptions) -> Reference:
    """Return the scripted model with this name."""
    if name == "reader":
        return make_reader(options)
    if name != "extractor":
        raise UnknownNameError("scripted model", name, ("extractor", "reader"))
    refuse_settings("scripted", options, ())
    return Extractor(options)
