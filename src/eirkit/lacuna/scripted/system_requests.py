"""Finds the parts of the requests that memory systems make of a model, and answers those of a graph from facts.

Which facts a text states is the reader's business: one of records, one of conversations.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, Protocol

Answer = dict[str, Any]
_CURRENT = ("CURRENT_MESSAGE", "CURRENT MESSAGE", "TEXT", "JSON")  # names that graph systems use for the current text
_ANY_DAY = "2000-01-01T00:00:00Z"  # who and what is mentioned does not depend on the day
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?")
_RECORD = re.compile(r"\b(A_\d{1,6}) = (\d{1,20}(?: \d{1,20})*(?: until step \d{1,6})?)")


def day_stated(text: str) -> int:
    """Return the day after "Today is "; 0 if none is stated."""
    stated = text.partition("Today is ")[2][:10]
    try:
        return date.fromisoformat(stated).toordinal()
    except ValueError:
        return 0


def question_in(text: str) -> str | None:
    """Return the question at the end of a task; None if it has none."""
    _, found, asked = f"\n{text}".rpartition("\nQuestion: ")
    return asked.strip() if found else None


def records_in(text: str) -> list[tuple[str, str]]:
    """Return the records of a text, such as `A_07 = 0042`, as labels and values."""
    return _RECORD.findall(text)


def labels_in(text: str) -> list[str]:
    """Return the labels of records in a text, each once."""
    words = "".join(sign if sign.isalnum() or sign == "_" else " " for sign in text).split()
    return list(dict.fromkeys(word for word in words if word.startswith("A_") and word[2:].isdigit()))


class GraphFact(NamedTuple):
    """A fact between two entities."""

    source: str
    target: str
    relation: str
    text: str
    topic: object  # facts on one topic contradict each other, unless they are the same


class FactReader(Protocol):
    """Reads facts from texts."""

    def new_facts(self, text: str, before: Sequence[str], since: str | None) -> list[GraphFact]:
        """Return what a text states, given earlier texts and the time at which it was said."""
        ...

    def fact_in(self, text: str) -> GraphFact | None:
        """Return the fact that was stored as this text; None if it is none."""
        ...


def headed(prompt: str) -> dict[str, str]:
    """Return the text below each `## Heading`."""
    sections = (part.partition("\n") for part in f"\n{prompt}".split("\n## ")[1:])
    return {name.strip(): text.strip() for name, _, text in sections}


def tagged(prompt: str, *names: str) -> str:
    """Return the text between `<NAME>` and `</NAME>` for the first name that occurs."""
    for name in names:
        start = prompt.find(f"<{name}>") + len(name) + 2
        if start > len(name) + 1 and (end := prompt.find(f"</{name}>", start)) >= 0:
            return prompt[start:end].strip()
    return ""


def listed(text: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON list; none if it is not one."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def stamp(text: str) -> str | None:
    """Return the first time in a text, as ISO 8601; None if there is none."""
    found = _STAMP.search(text)
    return None if found is None else found[0].replace(" ", "T").replace("+00:00", "Z")


def graph_answer(reader: FactReader, schema: Mapping[str, Any], prompt: str) -> Answer | None:
    """Return the JSON for a schema; None if the schema is not one of a graph's requests."""
    fields = schema.get("properties", {})
    for field, respond in _QUESTIONS.items():
        if field in fields:
            return respond(reader, prompt)
    return None


def _facts(reader: FactReader, prompt: str, otherwise: str | None = None) -> list[GraphFact]:
    """Return what the current text states; `otherwise` is its time if the request tells none."""
    before = [str(one.get("content", "")) for one in listed(tagged(prompt, "PREVIOUS MESSAGES", "PREVIOUS_MESSAGES"))]
    since = stamp(tagged(prompt, "REFERENCE_TIME", "REFERENCE TIME")) or otherwise
    return reader.new_facts(tagged(prompt, *_CURRENT), before, since)


def _entities(reader: FactReader, prompt: str) -> Answer:
    names = [name for fact in _facts(reader, prompt, _ANY_DAY) for name in (fact.source, fact.target)]
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in dict.fromkeys(names)]}


def _edges(reader: FactReader, prompt: str) -> Answer:
    since = stamp(tagged(prompt, "REFERENCE_TIME", "REFERENCE TIME"))
    return {
        "edges": [
            {
                "source_entity_name": fact.source,
                "target_entity_name": fact.target,
                "relation_type": fact.relation,
                "fact": fact.text,
                "valid_at": since,
                "invalid_at": None,
            }
            for fact in _facts(reader, prompt)
        ]
    }


def _resolutions(reader: FactReader, prompt: str) -> Answer:
    """Two entities are one if they have the same name, and never otherwise."""
    existing = {one.get("name"): one.get("candidate_id", -1) for one in listed(tagged(prompt, "EXISTING ENTITIES"))}
    return {
        "entity_resolutions": [
            {"id": one["id"], "name": one["name"], "duplicate_candidate_id": existing.get(one["name"], -1)}
            for one in listed(tagged(prompt, "ENTITIES"))
        ]
    }


def _duplicates(reader: FactReader, prompt: str) -> Answer:
    """The same fact is a duplicate; another one on the same topic is contradicted."""
    new = reader.fact_in(tagged(prompt, "NEW FACT"))
    known = _numbered(reader, tagged(prompt, "EXISTING FACTS"))
    others = _numbered(reader, tagged(prompt, "FACT INVALIDATION CANDIDATES"))
    return {
        "duplicate_facts": [number for number, fact in known if fact == new],
        "contradicted_facts": [
            number for number, fact in known + others if new is not None and fact.topic == new.topic and fact != new
        ],
    }


def _numbered(reader: FactReader, text: str) -> list[tuple[int, GraphFact]]:
    """Return the numbered facts of a printed list, `{'idx': 3, 'fact': 'A_07 = 0042'}`, that can be read."""
    try:
        rows = literal_eval(text.strip() or "[]")
    except (ValueError, SyntaxError):
        return []
    return [(int(row["idx"]), fact) for row in rows if (fact := reader.fact_in(str(row["fact"]))) is not None]


def _timestamps(reader: FactReader, prompt: str) -> Answer:
    return {"valid_at": stamp(tagged(prompt, "REFERENCE TIME", "REFERENCE_TIME")), "invalid_at": None}


def _many_timestamps(reader: FactReader, prompt: str) -> Answer:
    facts = listed(tagged(prompt, "FACTS"))
    return {"timestamps": [{"valid_at": stamp(json.dumps(one)), "invalid_at": None} for one in facts]}


def _summaries(reader: FactReader, prompt: str) -> Answer:
    """Summarize an entity by the facts about it that are said now, or else by its previous summary."""
    text = tagged(prompt, "MESSAGES", "EPISODES")
    said: dict[str, str] = {}
    for fact in reader.new_facts(text, (), stamp(text)):
        said[fact.source] = fact.text
    return {
        "summaries": [
            {"name": one["name"], "summary": said.get(one["name"], one.get("summary", ""))}
            for one in listed(tagged(prompt, "ENTITIES"))
        ]
    }


# By a field that only this request has; the first match answers.
_QUESTIONS: dict[str, Callable[[FactReader, str], Answer]] = {
    "extracted_entities": _entities,
    "edges": _edges,
    "entity_resolutions": _resolutions,
    "duplicate_facts": _duplicates,
    "timestamps": _many_timestamps,
    "summaries": _summaries,
    "valid_at": _timestamps,
}
