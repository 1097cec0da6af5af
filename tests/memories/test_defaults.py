"""How many results the installed code of each vendor returns by default, and that a search gets what it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eirkit.lacuna.memories.environments import python_of
from eirkit.lacuna.memories.factory import passages_asked
from eirkit.lacuna.memories.memory import AS_DOCUMENTED, STORE_ONLY, Item, MemorySystem, memories
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.memories.questions import settings_of
from tests.memories.stories import needs, opened
from tests.processes import completed

HEAD = """
import inspect, json
def default(function, name):
    return inspect.signature(function).parameters[name].default
"""
# For each profile an expression that reads the default from the package, in the environment of the system.
READ: dict[str, tuple[str, dict[str, str]]] = {
    "mem0": (
        "from mem0 import Memory",
        dict.fromkeys((AS_DOCUMENTED, STORE_ONLY), "default(Memory.search, 'top_k')"),
    ),
    "langmem": (
        "from langgraph.store.memory import InMemoryStore\n"
        "from langmem import create_search_memory_tool\n"
        "from langmem.knowledge.extraction import MemoryStoreManager\n"
        "tool = create_search_memory_tool(('a',), store=InMemoryStore())",
        {AS_DOCUMENTED: "default(MemoryStoreManager.search, 'limit')", STORE_ONLY: "tool.args['limit']['default']"},
    ),
    "amem": (
        "from agentic_memory.memory_system import AgenticMemorySystem\n"
        "from agentic_memory.retrievers import ChromaRetriever",
        {
            AS_DOCUMENTED: "default(AgenticMemorySystem.search_agentic, 'k')",
            STORE_ONLY: "default(ChromaRetriever.search, 'k')",
        },
    ),
    "graphiti": (
        "from graphiti_core import Graphiti",
        dict.fromkeys((AS_DOCUMENTED, STORE_ONLY), "default(Graphiti.search, 'num_results')"),
    ),
    "letta": (
        "from letta.server.rest_api.routers.v1.passages import PassageSearchRequest",
        {STORE_ONLY: "PassageSearchRequest.model_fields['limit'].default"},
    ),
    "langgraph": (
        "from langgraph.store.base import BaseStore",
        {AS_DOCUMENTED: "default(BaseStore.search, 'limit')"},
    ),
    "adk": (
        "from google.adk.memory import in_memory_memory_service as service",
        {AS_DOCUMENTED: "service._MAX_SEARCH_RESULTS"},
    ),
    "autogen": (
        "from autogen_ext.memory.chromadb import PersistentChromaDBVectorMemoryConfig",
        {AS_DOCUMENTED: "PersistentChromaDBVectorMemoryConfig().k"},
    ),
    "llamaindex": (
        "from llama_index.core.memory import VectorMemoryBlock",
        {AS_DOCUMENTED: "VectorMemoryBlock.model_fields['similarity_top_k'].default"},
    ),
    "openai-agents": (
        "from agents import SQLiteSession",
        {AS_DOCUMENTED: "default(SQLiteSession.get_items, 'limit')"},
    ),
    "qdrant": (
        "from qdrant_client import QdrantClient",
        {STORE_ONLY: "default(QdrantClient.query_points, 'limit')"},
    ),
}
UNREAD = {  # what a model looked up has no number, SQL has no default, and eirkit chooses Anthropic's files
    ("letta", AS_DOCUMENTED),
    ("mcp", AS_DOCUMENTED),
    ("mcp", STORE_ONLY),
    ("anthropic-memory", AS_DOCUMENTED),
    ("anthropic-memory", STORE_ONLY),
    ("pgvector", STORE_ONLY),
}
MOST = {"adk": 10}  # a vendor's search returns no more, whatever it is asked for
OPEN = {"graphiti": {"min_score": 0.0}}  # by default it hides what is less similar
ASKED, HELD = 15, 20  # more than any default but Mem0's and Letta's
FINDS_ALL = ("mem0", "langmem", "amem", "graphiti", "letta", "langgraph", "adk", "autogen", "llamaindex",
             "openai-agents", "qdrant", "pgvector")  # fmt: skip


def read_from_package(name: str, values: dict[str, str], imported: str) -> dict[str, Any]:
    """Return what expressions are worth in the environment of a system."""
    code = f"{HEAD}\n{imported}\nprint(json.dumps({{{', '.join(f'{key!r}: {one}' for key, one in values.items())}}}))"
    own = {"OPENAI_API_KEY": "none", "MEM0_TELEMETRY": "False", "MEM0_DIR": "/nonexistent", "HF_HUB_OFFLINE": "1"}
    done = completed([python_of(name), "-c", code], check=True, env=own)
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


def test_every_profile_of_a_vendor_is_read_or_has_no_number():
    profiles = {(name, one) for name in memories.names() for one in memories.get(name).profiles}
    assert profiles == UNREAD | {(name, profile) for name, (_, values) in READ.items() for profile in values}


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in READ])
def test_a_search_asks_for_the_default_of_the_installed_package(name):
    imported, values = READ[name]
    asked = {profile: passages_asked(MemoryPlan(name, {"profile": profile})) for profile in values}
    assert asked == read_from_package(name, values, imported)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in FINDS_ALL])
def test_a_search_returns_as_many_as_it_is_asked_for_where_the_vendor_can(name):
    async def work(memory: MemorySystem) -> list[str]:
        for number in range(101, 101 + HELD):
            await memory.write(Item(f"A_{number}", f"A_{number} is {37 * number}"))
        await memory.flush()
        return list(await memory.search("What is A_110?", ASKED))

    kind = memories.get(name)
    more: dict[str, Any] = (
        {"profile": STORE_ONLY} if STORE_ONLY in kind.profiles and "profile" in settings_of(kind) else {}
    )
    more |= OPEN.get(name, {})
    assert len(opened(work, name, timeout_seconds=300.0, **more)) == min(ASKED, MOST.get(name, ASKED))
