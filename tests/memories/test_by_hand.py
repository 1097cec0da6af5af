"""Memory systems against their vendors' own interfaces, called by hand in the same environment with the same inputs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eirkit.agents.memory import Item, MemorySystem
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.scripted import make_scripted
from eirkit.agents.stores.embeddings import find_embedding
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.agents.stores.environments import node_folder, python_of
from tests.memories.stories import needs, opened

pytestmark = pytest.mark.slow
LABELS = (3, 7, 12, 31, 55, 56, 120)
TEXTS = [f"A_{number:03} = {37 * number:04}" for number in LABELS]
QUERY = "What is A_055?"
SOURCE = str(Path(__file__).parents[2] / "src")

HEAD = """
import asyncio, json, sys
from urllib.request import Request, urlopen
url, folder, texts, query = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
def embed(text):
    body = json.dumps({"model": "any", "input": [text]}).encode()
    asked = Request(url + "/embeddings", body, {"Content-Type": "application/json"})
    return json.load(urlopen(asked))["data"][0]["embedding"]
"""
BY_HAND = {
    "qdrant": """
from qdrant_client import QdrantClient, models
client = QdrantClient(":memory:")
client.create_collection("c", vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE))
points = [models.PointStruct(id=n, vector=embed(text), payload={"t": text}) for n, text in enumerate(texts)]
client.upsert("c", points)
print(json.dumps([one.payload["t"] for one in client.query_points("c", query=embed(query), limit=5).points]))
""",
    "pgvector": """
import shutil, tempfile
from pathlib import Path
from eirkit.agents.memories.pgvector import connect
from eirkit.agents.stores.letta_server import Postgres
folder = tempfile.mkdtemp()  # below a folder that the server's user can enter
server = Postgres(Path(folder))
try:
    connection = connect(server.start())
    connection.execute("CREATE EXTENSION vector")
    connection.execute("CREATE TABLE items (t text, e vector(384))")
    for text in texts:
        connection.execute("INSERT INTO items VALUES (%s, %s)", (text, str(embed(text))))
    asked = (str(embed(query)),)
    rows = connection.execute("SELECT t FROM items ORDER BY e <=> %s::vector LIMIT 5", asked).fetchall()
    print(json.dumps([text for (text,) in rows]))
finally:
    server.stop()
    shutil.rmtree(folder)
""",
    "langgraph": """
from langgraph.store.memory import InMemoryStore
store = InMemoryStore(index={"dims": 384, "embed": lambda texts: [embed(one) for one in texts], "fields": ["text"]})
for n, text in enumerate(texts):
    store.put(("me",), str(n), {"text": text})
print(json.dumps([one.value["text"] for one in store.search(("me",), query=query, limit=5)]))
""",
    "langmem": """
from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager
store = InMemoryStore(index={"dims": 384, "embed": lambda texts: [embed(one) for one in texts]})
model = ChatOpenAI(model="any", base_url=url, api_key="none")
manager = create_memory_store_manager(model, namespace=("memories",), store=store)
for text in texts:
    manager.invoke({"messages": [{"role": "user", "content": text}]})
print(json.dumps([one.value["content"]["content"] for one in store.search(("memories",), query=query, limit=5)]))
""",
    "adk": """
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.sessions import InMemorySessionService
from google.genai import types
async def main():
    sessions, memory = InMemorySessionService(), InMemoryMemoryService()
    for text in texts:
        session = await sessions.create_session(app_name="a", user_id="u")
        said = types.Content(role="user", parts=[types.Part(text=text)])
        await sessions.append_event(session, Event(author="user", content=said))
        session = await sessions.get_session(app_name="a", user_id="u", session_id=session.id)
        await memory.add_session_to_memory(session)
    found = await memory.search_memory(app_name="a", user_id="u", query=query)
    print(json.dumps([one.content.parts[0].text for one in found.memories]))
asyncio.run(main())
""",
    "autogen": """
import chromadb
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemory, CustomEmbeddingFunctionConfig, PersistentChromaDBVectorMemoryConfig)
class Ours(chromadb.EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return [embed(text) for text in input]
async def main():
    config = PersistentChromaDBVectorMemoryConfig(
        persistence_path=folder, embedding_function_config=CustomEmbeddingFunctionConfig(function=Ours))
    memory = ChromaDBVectorMemory(config)
    for text in texts:
        await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
    print(json.dumps([one.content for one in (await memory.query(query)).results]))
asyncio.run(main())
""",
    "llamaindex": """
import chromadb, re
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore
async def main():
    store = ChromaVectorStore(chroma_collection=chromadb.EphemeralClient().create_collection("c" * 3))
    model = OpenAILikeEmbedding(model_name="any", api_base=url, api_key="none")
    block = VectorMemoryBlock(vector_store=store, embed_model=model)
    for text in texts:
        await block.aput([ChatMessage(role="user", content=text)], from_short_term_memory=True)
    found = await block.aget([ChatMessage(role="user", content=query)])
    print(json.dumps(re.findall(r"<message role='user'>(.*?)</message>", found)))
asyncio.run(main())
""",
    "openai-agents": """
from agents import SQLiteSession
async def main():
    session = SQLiteSession("me")
    for text in texts:
        await session.add_items([{"role": "user", "content": text}])
    print(json.dumps(["\\n".join(one["content"] for one in reversed(await session.get_items()))]))
asyncio.run(main())
""",
    "anthropic-memory": """
from anthropic.tools import BetaLocalFilesystemMemoryTool
tool = BetaLocalFilesystemMemoryTool(folder)
for text in texts:
    tool.call({"command": "create", "path": "/memories/" + text[:5] + ".md", "file_text": text})
shown = tool.call({"command": "view", "path": "/memories/A_055.md"})
print(json.dumps([shown.partition(":\\n")[2].partition("\\t")[2]]))
""",
    "mcp": """
import os
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    own = {"MEMORY_FILE_PATH": folder + "/graph.json", "PATH": os.environ["PATH"]}
    server = os.environ["NODE_MODULES"] + "/@modelcontextprotocol/server-memory/dist/index.js"
    async with stdio_client(StdioServerParameters(command="node", args=[server], env=own)) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            for text in texts:
                node = {"name": text[:5], "entityType": "record", "observations": [text]}
                await session.call_tool("create_entities", {"entities": [node]})
            found = await session.call_tool("search_nodes", {"query": "A_055"})
            nodes = json.loads(found.content[0].text)["entities"]
            print(json.dumps([one["name"] + " (record):\\n" + "\\n".join(one["observations"]) for one in nodes]))
asyncio.run(main())
""",
    "graphiti": """
from datetime import UTC, datetime, timedelta
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType
async def main():
    driver = KuzuDriver(folder + "/kuzu")
    driver._database = "g"
    for one in get_fulltext_indices(GraphProvider.KUZU):
        await driver.execute_query(one)
    model = LLMConfig(api_key="none", model="any", small_model="any", base_url=url)
    embedder = OpenAIEmbedderConfig(api_key="none", base_url=url, embedding_model="any", embedding_dim=384)
    graph = Graphiti(graph_driver=driver, llm_client=OpenAIGenericClient(model), embedder=OpenAIEmbedder(embedder),
                     cross_encoder=OpenAIRerankerClient(model))
    for n, text in enumerate(texts):
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=n)
        await graph.add_episode(name=text[:5], episode_body=text, source_description="a record", reference_time=at,
                                source=EpisodeType.text, group_id="g")
    print(json.dumps([one.fact for one in await graph.search(query, group_ids=["g"], num_results=5)]))
asyncio.run(main())
""",
    "amem": """
from agentic_memory.memory_system import AgenticMemorySystem
from eirkit.agents.stores.embeddings import weights_folder
system = AgenticMemorySystem(model_name=str(weights_folder()), llm_model="any", storage_path=folder)
for text in texts:
    system.add_note(text)
found = [system.read(one["id"]).content for one in system.search_agentic(query, k=5)]
print(json.dumps(found[:5]))
""",
    "letta": """
import subprocess
from ast import literal_eval
from letta_client import Letta
from eirkit.agents.memories.letta import BLOCKS, CONTEXT_TOKENS
from eirkit.agents.memories.mcp_client import CONSULT
start = [sys.executable, "-m", "eirkit.agents.stores.letta_server", "--port", "0", "--with-parent"]
with subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
    at = json.loads(server.stdout.readline())
    client = Letta(base_url=at["url"], api_key=at["password"], timeout=300)
    embedding = {"embedding_endpoint_type": "openai", "embedding_endpoint": url, "embedding_model": "any",
                 "embedding_dim": 384}
    model = {"model": "any", "model_endpoint_type": "openai", "model_endpoint": url,
             "context_window": CONTEXT_TOKENS, "parallel_tool_calls": True}
    archive = client.archives.create(name="by-hand", embedding_config=embedding)
    agent = client.agents.create(
        llm_config=model, embedding_config=embedding, tools=["archival_memory_insert", "archival_memory_search"],
        memory_blocks=[{"label": label, "value": value} for label, value in BLOCKS.items()],
        include_base_tool_rules=False)
    client.agents.archives.attach(archive.id, agent_id=agent.id)
    def say(text):
        said = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": text}])
        client.agents.messages.reset(agent.id, add_default_initial_messages=False)
        return said.messages
    for text in texts:
        say(text)
    asked = say(CONSULT + "\\n\\nQuestion: " + query)
    returned = [literal_eval(one.tool_return) for one in asked if one.message_type == "tool_return_message"]
    print(json.dumps([one["content"] for found in returned for one in found][:5]))
    server.stdin.close()
""",
    "mem0": """
import os
from pathlib import Path
from eirkit.agents.memories.mem0 import stop_words
os.environ["FASTEMBED_CACHE_PATH"] = str(stop_words(Path(folder) / "keywords"))
from mem0 import Memory
own = {"model": "any", "openai_base_url": url}
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": own},
    "embedder": {"provider": "openai", "config": {**own, "embedding_dims": 384}},
    "vector_store": {"provider": "qdrant", "config": {"path": folder + "/q", "embedding_model_dims": 384}},
    "history_db_path": folder + "/h.db",
})
for text in texts:
    memory.add(text, user_id="u")
print(json.dumps([one["memory"] for one in memory.search(query, filters={"user_id": "u"}, top_k=5)["results"]]))
""",
}
QUIET = {
    "OPENAI_API_KEY": "none",
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "EMBEDDING_DIM": "384",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OMP_NUM_THREADS": "1",
}


def by_hand(name: str, folder: Path) -> list[str]:
    """Return what a script of the vendor's own calls prints, in the system's environment."""

    async def work() -> str:
        endpoint = ModelEndpoint(make_scripted("extractor", ModelOptions()), find_embedding("minilm"))
        url = await endpoint.start()
        own = {**QUIET, "HOME": str(folder), "MEM0_DIR": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
        own |= {"OPENAI_BASE_URL": url, "NODE_MODULES": str(node_folder("mcp") / "node_modules")}
        script = HEAD + BY_HAND[name]
        command = [str(python_of(name) or sys.executable), "-c", script, url, str(folder), json.dumps(TEXTS), QUERY]
        try:
            done = await asyncio.to_thread(subprocess.run, command, env=own, capture_output=True, text=True)
        finally:
            await endpoint.stop()
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    found: list[str] = json.loads(asyncio.run(work()).splitlines()[-1])
    return found


def ours(name: str) -> list[str]:
    """Return what the adapter finds of the same records."""

    async def work(memory: MemorySystem) -> list[str]:
        for number, text in zip(LABELS, TEXTS, strict=True):
            await memory.write(Item(f"A_{number}", text))
        await memory.flush()
        return list(await memory.search(QUERY, 5))

    return opened(work, name, timeout_seconds=300.0)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in BY_HAND])
def test_the_vendors_own_calls_return_the_same_list(name, tmp_path):
    found = ours(name)
    assert found == by_hand(name, tmp_path)
    assert any("A_055 = 2035" in text for text in found)
