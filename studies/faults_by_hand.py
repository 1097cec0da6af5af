"""Holds explained faults of memory systems against the vendors' own interfaces, called with the same conversations.

For every wrong answer of a world, a script in the system's own environment lists what the vendor's store holds and what
its search returns. The study prints whether both agree with the recorded run and with the fate that it was given.
python -m studies.faults_by_hand FOLDER FILE SEED …, where FOLDER is one of `studies.system_profiles`; the results are
added to FILE.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import eirkit
from eirkit.agents.model import ModelOptions
from eirkit.agents.models.reader import make_reader
from eirkit.agents.stores.embeddings import find_embedding
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.agents.stores.environments import python_of
from eirkit.runs.store import scan_runs
from eirkit.show.viewer.lacuna_run import LacunaRun
from eirkit.tasks.conversations import ToldWorld

HEAD = """
import asyncio, json, os, sys
url, folder, sessions, questions = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
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
found = [[one["memory"] for one in memory.search(q, filters=mine, top_k=5)["results"]] for q in questions]
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
found = [[one.value["content"]["content"] for one in store.search(where, query=q, limit=5)] for q in questions]
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
    found = [[one.fact for one in await graph.search(q, group_ids=["g"], num_results=5)] for q in questions]
    print(json.dumps([held, found]))
asyncio.run(main())
""",
}
QUIET = {
    "OPENAI_API_KEY": "none",
    "MEM0_TELEMETRY": "False",
    "GRAPHITI_TELEMETRY_ENABLED": "false",
    "EMBEDDING_DIM": "384",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
DAYS = re.compile(r"^\[[\d-]+\] | \(until [\d-]+\)$")  # which the adapters add


async def ask_vendor(name: str, sessions: Sequence[Any], questions: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return what a vendor's store holds after some sessions, and what its search returns for each question."""
    endpoint = ModelEndpoint(make_reader(ModelOptions()), find_embedding("minilm"))
    url = await endpoint.start()
    source = str(Path(eirkit.__file__).parents[1])
    with TemporaryDirectory() as folder:
        own = {**QUIET, "HOME": folder, "MEM0_DIR": folder, "PATH": os.environ["PATH"], "PYTHONPATH": source}
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


def compare(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield of each wrong answer of a world whether the vendor's list is the same, and has what shows the fault."""
    name = folder.name.removesuffix("-as-documented")
    record = next(one for one, _ in scan_runs(folder / "runs.jsonl") if one["seed"] == seed)
    run = LacunaRun(folder, record, plugins=False)
    task = run.task.instance
    assert isinstance(task, ToldWorld)
    sessions = sessions_of(task)
    wrong = record["words"]["wrong"]
    held, found = asyncio.run(ask_vendor(name, sessions, [task.asked[t - 1].text for t, _, _ in wrong]))
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
            "same list": ours == theirs,
            "held": all(line in held for line in shown),
            "returned": all(line in theirs for line in shown),
        }


def main(arguments: Sequence[str]) -> None:
    folder, file, *seeds = arguments
    path = Path(file)
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for seed in map(int, seeds):
        new = list(compare(Path(folder), seed))
        kept = [one for one in kept if (one["memory"], one["world"]) != (new[0]["memory"], seed)] + new
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for one in new:
            print(*one.values(), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
