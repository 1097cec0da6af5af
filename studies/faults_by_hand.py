"""Holds explained faults of memory systems against the vendors' own interfaces, called with the same conversations.

For every wrong answer of a world, a script in the system's own environment lists what the vendor's store holds and what
its search returns. The study prints whether both agree with the recorded run and with the fate that it was given.
python -m studies.faults_by_hand FOLDER FILE SEED …, where FOLDER is one of `studies.system_profiles`; the results are
added to FILE.
python -m studies.faults_by_hand overwrites FILE NAME …: the overwrite of `check_memory`, through the same interfaces.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import eirkit
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.scripted import make_scripted
from eirkit.agents.stores.embeddings import find_embedding
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.agents.stores.environments import node_folder, python_of
from eirkit.runs.store import scan_runs
from eirkit.show.viewer.lacuna_run import LacunaRun
from eirkit.tasks.conversations import ToldWorld

HEAD = """
import asyncio, json, os, sys
url, folder, sessions, questions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
"""
# A memory that is a set of tools is used by a model: told the sessions, then asked what it looks up for each question.
WITH_TOOLS = """
from urllib.request import Request, urlopen
from eirkit.agents.memories.mcp_client import CONSULT, KEEP
def reply(messages, tools):
    body = json.dumps({"model": "any", "messages": messages, "tools": tools}).encode()
    with urlopen(Request(url + "/chat/completions", body, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)["choices"][0]["message"]
async def use(tools, call, task, at):
    system = f"You have a memory, which you use by tools. Today is {at}."
    messages, results = [{"role": "system", "content": system}, {"role": "user", "content": task}], []
    while calls := (said := reply(messages, tools)).get("tool_calls"):
        messages.append(said)
        for one in calls:
            results.append(await call(one["function"]["name"], json.loads(one["function"]["arguments"])))
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": results[-1]})
    return list(dict.fromkeys(results))
async def work(tools, call):
    for messages, at in sessions:
        said = "\\n".join(one["role"] + ": " + one["content"] for one in messages)
        await use(tools, call, KEEP + "\\n\\n" + said, at)
    return [await use(tools, call, CONSULT + "\\n\\nQuestion: " + q, at) for q, at in questions]
"""
SCRIPTS = {
    "mem0": """
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
for messages, at in sessions:
    memory.add(messages, user_id="u", metadata={"date": at}, prompt=f"The Observation Date is {at}.")
mine = {"user_id": "u"}
held = [one["memory"] for one in memory.get_all(filters=mine, top_k=100_000)["results"]]
found = [[one["memory"] for one in memory.search(q, filters=mine, top_k=5)["results"]] for q, _ in questions]
print(json.dumps([held, found]))
""",
    "langmem": """
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager
embedding = OpenAIEmbeddings(model="any", base_url=url, check_embedding_ctx_length=False)
store, where = InMemoryStore(index={"dims": 384, "embed": embedding}), ("memories",)
manager = create_memory_store_manager(ChatOpenAI(model="any", base_url=url), namespace=where, store=store)
for messages, at in sessions:
    manager.invoke({"messages": [{"role": "system", "content": f"Today is {at}."}, *messages]})
held = [one.value["content"]["content"] for one in store.search(where, limit=100_000)]
found = [[one.value["content"]["content"] for one in store.search(where, query=q, limit=5)] for q, _ in questions]
print(json.dumps([held, found]))
""",
    "graphiti": """
from datetime import UTC, datetime
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
async def main():
    driver = KuzuDriver(folder + "/kuzu")
    driver._database = "g"
    for one in get_fulltext_indices(GraphProvider.KUZU):
        await driver.execute_query(one)
    model = LLMConfig(api_key="none", model="any", small_model="any", base_url=url)
    embedder = OpenAIEmbedderConfig(api_key="none", base_url=url, embedding_model="any", embedding_dim=384)
    graph = Graphiti(graph_driver=driver, llm_client=OpenAIGenericClient(model), embedder=OpenAIEmbedder(embedder),
                     cross_encoder=OpenAIRerankerClient(model))
    for number, (messages, at) in enumerate(sessions, 1):
        body = "\\n".join(one["role"] + ": " + one["content"] for one in messages)
        await graph.add_episode(
            name=f"session-{number}", episode_body=body, source_description="a conversation", group_id="g",
            reference_time=datetime.fromisoformat(at).replace(tzinfo=UTC), source=EpisodeType.message)
    held = [one.fact for one in await EntityEdge.get_by_group_ids(driver, ["g"])]
    found = [[one.fact for one in await graph.search(q, group_ids=["g"], num_results=5)] for q, _ in questions]
    print(json.dumps([held, found]))
asyncio.run(main())
""",
    "amem": """
from agentic_memory.memory_system import AgenticMemorySystem
from eirkit.agents.stores.embeddings import weights_folder
system = AgenticMemorySystem(model_name=str(weights_folder()), llm_model="any", storage_path=folder)
for messages, at in sessions:
    for one in messages:
        system.add_note(one["role"] + ": " + one["content"], time=at.replace("-", "") + "0000")
held = [one["content"] for one in system.retriever.collection.get()["metadatas"]]
found = [[system.read(one["id"]).content for one in system.search_agentic(q, k=5)] for q, _ in questions]
print(json.dumps([held, found]))
""",
    "letta": """
from ast import literal_eval
from subprocess import PIPE, Popen
from urllib.request import Request, urlopen
from eirkit.agents.memories.mcp_client import CONSULT
command = [sys.executable, "-P", "-m", "eirkit.agents.stores.letta_server", "--port", "0", "--with-parent"]
server = Popen(command, stdin=PIPE, stdout=PIPE, text=True)
running = json.loads(server.stdout.readline())
def ask(verb, path, body=None):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + running["password"]}
    given = None if body is None else json.dumps(body).encode()
    with urlopen(Request(running["url"] + "/v1/" + path, given, headers, method=verb)) as answer:
        return json.loads(answer.read() or "null")
model = {"model": "any", "model_endpoint_type": "openai", "model_endpoint": url, "context_window": 128_000}
embedding = {"embedding_model": "any", "embedding_endpoint_type": "openai", "embedding_endpoint": url}
agent = "agents/" + ask("POST", "agents/", {
    "llm_config": {**model, "parallel_tool_calls": True},
    "embedding_config": {**embedding, "embedding_dim": 384},
    "memory_blocks": [{"label": "persona", "value": "I keep what the user tells me."}, {"label": "human", "value": ""}],
    "tools": ["archival_memory_insert", "archival_memory_search"],
    "include_base_tool_rules": False,
})["id"]
def tell(messages, at):
    told = [{"role": "system", "content": f"Today is {at}."}, *messages]
    done = ask("POST", agent + "/messages", {"messages": told})["messages"]
    ask("PATCH", agent + "/reset-messages", {"add_default_initial_messages": False})
    return [one["tool_return"] for one in done if one["message_type"] == "tool_return_message"]
def block():
    return [text] if (text := ask("GET", agent + "/core-memory/blocks/human")["value"].strip()) else []
def look_up(question, at):
    lists = tell([{"role": "user", "content": CONSULT + "\\n\\nQuestion: " + question}], at)
    passages = [one["content"] for text in lists if text.startswith("[") for one in literal_eval(text)]
    return list(dict.fromkeys([*block(), *passages]))[:5]
for messages, at in sessions:
    tell(messages, at)
found = [look_up(q, at) for q, at in questions]
held = block() + [one["text"] for one in ask("GET", agent + "/archival-memory?limit=1000")]
print(json.dumps([held, found]))
server.stdin.close()
server.wait()
""",
    "autogen": """
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import ChromaDBVectorMemory, CustomEmbeddingFunctionConfig
from autogen_ext.memory.chromadb import PersistentChromaDBVectorMemoryConfig
from eirkit.agents.stores.embeddings import chroma_embedding
async def main():
    embedding = CustomEmbeddingFunctionConfig(function=lambda: chroma_embedding(url), params={})
    config = PersistentChromaDBVectorMemoryConfig(persistence_path=folder, embedding_function_config=embedding)
    memory = ChromaDBVectorMemory(config)
    for messages, at in sessions:
        for one in messages:
            text = (f"[{at}] {one['role']}: " if at else "") + one["content"]
            await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
    found = [[one.content for one in (await memory.query(q)).results] for q, _ in questions]
    print(json.dumps([memory._collection.get()["documents"], found]))
asyncio.run(main())
""",
    "llamaindex": """
import re, chromadb
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore
collection = chromadb.EphemeralClient().create_collection("by-hand")
embedding = OpenAILikeEmbedding(model_name="any", api_base=url, api_key="none")
block = VectorMemoryBlock(vector_store=ChromaVectorStore(chroma_collection=collection), embed_model=embedding)
def lines(text):
    found = re.findall(r"<message role='(.*?)'>(\\[.*?\\] )?(.*?)</message>", text, re.DOTALL)
    return [day + role + ": " + said if day else said for role, day, said in found]
async def look_up(question):
    found = await block.aget([ChatMessage(role="user", content=question)])
    return ["\\n".join(lines(batch)) for batch in found.split("\\n\\n") if batch]
async def main():
    for messages, at in sessions:
        day = f"[{at}] " if at else ""
        said = [ChatMessage(role=one["role"], content=day + one["content"]) for one in messages]
        await block.aput(said, from_short_term_memory=True)
    found = [await look_up(q) for q, _ in questions]
    print(json.dumps([[line for one in collection.get()["documents"] for line in lines(one)], found]))
asyncio.run(main())
""",
    "mcp": WITH_TOOLS
    + """
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
def nodes(*results):
    every = [one for result in results for one in json.loads(result).get("entities", [])]
    texts = ["\\n".join([one["name"] + " (" + one["entityType"] + "):", *one["observations"]]) for one in every]
    return list(dict.fromkeys(texts))
async def main():
    own = {"MEMORY_FILE_PATH": folder + "/graph.json", "PATH": os.environ["PATH"]}
    server = os.environ["NODE_MODULES"] + "/@modelcontextprotocol/server-memory/dist/index.js"
    async with stdio_client(StdioServerParameters(command="node", args=[server], env=own)) as streams:
        async with ClientSession(*streams) as session:
            await session.initialize()
            tools = [{"type": "function", "function": {"name": one.name, "parameters": one.input_schema}}
                     for one in (await session.list_tools()).tools]
            async def call(name, arguments):
                return (await session.call_tool(name, arguments)).content[0].text
            found = [nodes(*results)[:5] for results in await work(tools, call)]
            print(json.dumps([nodes(await call("read_graph", {})), found]))
asyncio.run(main())
""",
    "anthropic-memory": WITH_TOOLS
    + """
from anthropic.tools import BetaLocalFilesystemMemoryTool
from eirkit.agents.memories.anthropic_memory import TOOL
tool = BetaLocalFilesystemMemoryTool(folder)
def text(result):
    lines = result.split("\\n")[1:] if result.startswith("Here's the content of") else []
    return "\\n".join(line.partition("\\t")[2] for line in lines).rstrip("\\n")
async def call(name, arguments):
    return tool.call(arguments)
found = [[one for one in map(text, results) if one][:5] for results in asyncio.run(work([TOOL], call))]
held = [open(os.path.join(at, one)).read() for at, _, files in os.walk(folder + "/memories") for one in files]
print(json.dumps([[text.rstrip("\\n") for text in held], found]))
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
UNDATED = ("autogen", "llamaindex")  # a record has no day, and theirs would be a part of the text that is embedded
DAYS = re.compile(r"^\[[\d-]+\] | \(until [\d-]+\)$")  # which the adapters add


async def ask_vendor(
    name: str, sessions: Sequence[Any], questions: Sequence[tuple[str, str]], model: str = "reader"
) -> tuple[list[str], list[list[str]]]:
    """Return what a vendor's store holds after some sessions, and what its search returns for each dated question."""
    endpoint = ModelEndpoint(make_scripted(model, ModelOptions()), find_embedding("minilm"))
    url = await endpoint.start()
    source = str(Path(eirkit.__file__).parents[1])
    with TemporaryDirectory() as folder:
        own = {**QUIET, "HOME": folder, "MEM0_DIR": folder, "PATH": os.environ["PATH"], "PYTHONPATH": source}
        own |= {"OPENAI_BASE_URL": url, "NODE_MODULES": str(node_folder("mcp") / "node_modules")}
        told = (url, folder, json.dumps(sessions), json.dumps(questions))
        command = [str(python_of(name)), "-c", HEAD + SCRIPTS[name], *told]
        try:
            done = await asyncio.to_thread(subprocess.run, command, env=own, capture_output=True, text=True)
        finally:
            await endpoint.stop()
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-1000:]}")
    held, found = json.loads(done.stdout.splitlines()[-1])
    return held, found


def sessions_of(task: ToldWorld) -> list[tuple[list[dict[str, str]], str]]:
    """Return the messages of each session in which something is said, and its day."""
    return [
        ([{"role": one.role, "content": one.text} for one in told.messages], date.fromordinal(told.day).isoformat())
        for told in task.sessions
        if told.messages
    ]


def questions_of(task: ToldWorld, numbers: Sequence[int]) -> list[tuple[str, str]]:
    """Return some questions, and the day on which each is asked."""
    asked = (task.asked[number - 1] for number in numbers)
    return [(one.text, date.fromordinal(one.day).isoformat()) for one in asked]


def compare(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield of each wrong answer of a world whether the vendor's list is the same, and has what shows the fault."""
    name = folder.name.removesuffix("-as-documented")
    record = next(one for one, _ in scan_runs(folder / "runs.jsonl") if one["seed"] == seed)
    run = LacunaRun(folder, record, plugins=False)
    task = run.task.instance
    assert isinstance(task, ToldWorld)
    sessions = sessions_of(task)
    wrong = record["words"]["wrong"]
    held, found = asyncio.run(ask_vendor(name, sessions, questions_of(task, [t for t, _, _ in wrong])))
    for (t, fate, evidence), theirs in zip(wrong, found, strict=True):
        calls = [one for one in run.events if one["type"] == "memory" and one["verb"] == "recall" and one["t"] == t]
        ours = [DAYS.sub("", text) for call in calls for text in call["found"]]
        shown = [DAYS.sub("", line) for line in evidence.splitlines()]
        yield {
            "memory": name,
            "world": seed,
            "question": t,
            "fate": fate,
            "what shows it": " / ".join(shown),
            "same list": ours == [DAYS.sub("", text) for text in theirs],
            "held": _has(held, shown),
            "returned": _has(theirs, shown),
        }


def _has(texts: Sequence[str], shown: Sequence[str]) -> bool:
    """True if every line that shows a fault begins a line of some texts; the record cuts a long one."""
    lines = [DAYS.sub("", line) for text in texts for line in text.splitlines()]
    return all(any(line.startswith(one) for line in lines) for one in shown)


def overwrite(name: str) -> Iterator[dict[str, Any]]:
    """Yield what a vendor's search returns for labels that were written again, one session for each record."""
    first = [f"A_{number:02} = {1000 + 7 * number}" for number in range(1, 9)]
    again = [f"A_{number:02} = {4000 + number}" for number in (1, 2, 3)]
    days = (date(2031, 1, 6) + timedelta(number) for number in range(len(first) + len(again)))
    sessions = [
        ([{"role": "user", "content": text}], "" if name in UNDATED else day.isoformat())
        for text, day in zip([*first, *again], days, strict=True)
    ]
    labels = [text.split()[0] for text in again]
    held, found = asyncio.run(ask_vendor(name, sessions, [(one, "2031-02-01") for one in labels], "extractor"))
    for label, old, new, theirs in zip(labels, first, again, found, strict=False):
        both = all(any(text in one for one in held) for text in (old, new))
        order = [said[0] for one in theirs if (said := re.search(rf"{label} = \d+", one))]
        yield {"memory": name, "world": "overwrites", "label": label, "holds both": both, "returned": order}


def main(arguments: Sequence[str]) -> None:
    what, file, *chosen = arguments
    path = Path(file)
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for one in chosen:
        new = list(overwrite(one) if what == "overwrites" else compare(Path(what), int(one)))
        named = {(row["memory"], row["world"]) for row in new}
        kept = [row for row in kept if (row["memory"], row["world"]) not in named] + new
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for row in new:
            print(*row.values(), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
