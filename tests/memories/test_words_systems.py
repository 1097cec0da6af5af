"""Real memory systems in conversations: what they keep and recall as their makers mean them, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eirkit.agents.memory import MemorySystem
from eirkit.agents.model import Message, ModelOptions
from eirkit.agents.models.reader import make_reader
from eirkit.agents.stores.embeddings import find_embedding
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.agents.stores.environments import python_of
from eirkit.findings.word_measures import WORD_FATES
from eirkit.tasks.conversations import ToldWorld
from eirkit.tasks.generation import find_workload, generate_many
from tests.lacuna.running import eirkit
from tests.memories.stories import needs, opened

pytestmark = pytest.mark.slow
SYSTEMS = ("mem0", "mcp", "langmem", "letta", "graphiti", "amem")
EXTRACTING = ("mem0", "mcp", "langmem", "letta")  # they hold what their model says and nothing else
READER = "scripted/reader+language=english"
each = pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in SYSTEMS])


def task(seed: int = 0, preset: str = "small") -> ToldWorld:
    spec = find_workload("words").specify({"workload": "words", "preset": preset})
    (told,) = generate_many(spec, range(seed, seed + 1))
    assert isinstance(told, ToldWorld)
    return told


def run(folder: Path, capsys: pytest.CaptureFixture[str], name: str, *more: str) -> dict[str, Any]:
    """Return the row of a small world that was told to a memory system."""
    given = ("--preset", "small+questions=10", "--seeds", "0", "--model", "scripted/reader", "--no-control")
    out = ("--out", str(folder / "out"), "--json")
    assert eirkit("lacuna", "run", "words", *given, "--memory", name, *more, *out) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    return dict(row)


def told(at: str, *said: str) -> tuple[list[Message], str, str]:
    return [Message("user", text) for text in said], f"session-{at}", at


def kept(name: str, sessions: Sequence[tuple[list[Message], str, str]], question: str, **settings: Any) -> Any:
    """Return what a system holds after some sessions, and what it recalls for a question."""

    async def work(memory: MemorySystem) -> tuple[list[str], list[str]]:
        for messages, session, at in sessions:
            await memory.observe(messages, session, at)
        await memory.flush()
        return list(await memory.contents() or ()), list(await memory.recall(question, "2031-03-01", 5))

    return opened(work, name, **{"model": READER, **settings})


@each
def test_every_wrong_answer_of_a_run_has_a_cause_that_the_store_shows(name, tmp_path, capsys):
    row = run(tmp_path, capsys, name)
    assert row["scored"] == 1
    fates = Counter(row["words"]["fates"])
    assert fates.total() == sum(one["asked"] - one["right"] for one in row["words"]["abilities"][:1])
    assert fates["word_unlisted"] == 0, "the store can be listed"
    assert set(fates) == {one.id for one in WORD_FATES}
    system = row["memory_system"]
    assert (system["profile"]["name"], system["model_calls"] > 0) == ("as-documented", True)
    assert row["words"]["stored_texts"] > 0


SESSIONS = (
    told("2031-01-06", "Mira Zorneb works for Kalvex.", "Mira Toldan works for Bristun."),
    told("2031-01-13", "Mira Zorneb now works at Hudrim."),
)


@each
def test_what_is_said_is_kept_with_its_day_and_its_person(name):
    held, found = kept(name, SESSIONS, "Where does Mira Zorneb work?")
    text = "\n".join(held)
    assert all(word in text for word in ("Mira Toldan", "Bristun", "Hudrim"))
    assert "[2031-01-13]" in "\n".join(found)
    assert "Hudrim" in "\n".join(found)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in EXTRACTING])
def test_a_model_that_misses_everything_leaves_nothing_in_the_store(name):
    held, found = kept(name, SESSIONS, "Where does Mira Zorneb work?", model=f"{READER}+misses=1")
    assert (held, found) == ([], [])


@needs("graphiti")
def test_graphiti_keeps_episodes_and_ends_facts_that_later_ones_replace():
    held, found = kept("graphiti", SESSIONS, "Where does Mira Zorneb work?")
    old = "[2031-01-06] Mira Zorneb works at Kalvex. (until 2031-01-13)"
    assert old in held
    assert "[2031-01-13] Mira Zorneb now works at Hudrim." in found
    assert "[2031-01-13] user: Mira Zorneb now works at Hudrim." in held, "the session itself"
    held, found = kept("graphiti", SESSIONS, "Where does Mira Zorneb work?", model=f"{READER}+misses=1")
    assert (len(held), found) == (2, []), "only the sessions themselves"


@needs("letta")
def test_letta_cannot_take_back_what_its_agent_archived():
    said = (
        told("2031-01-06", "Mira Zorneb's phone number is 4174-2663."),
        told("2031-01-13", "Please forget Mira Zorneb's phone number."),
    )
    held, _ = kept("letta", said, "What is Mira Zorneb's phone number?")
    assert any("4174-2663" in text for text in held)
    assert any(text.startswith("[2031-01-13]") for text in held), "the withdrawal is a passage of its own"


BY_HAND = """
import json, os, sys
from pathlib import Path
from eirkit.agents.memories.mem0 import stop_words
url, folder, sessions, question = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4]
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
print(json.dumps([one["memory"] for one in memory.search(question, filters={"user_id": "u"}, top_k=5)["results"]]))
"""


@needs("mem0")
def test_mem0_called_by_hand_with_the_same_messages_returns_the_same_list(tmp_path):
    told_world = task(3)
    sessions = [
        ([Message(one.role, one.text) for one in session.messages], f"s{number}", told_world.turns[0][1:11])
        for number, session in enumerate(told_world.sessions)
    ]
    asked = told_world.asked[0].text
    _, ours = kept("mem0", sessions, asked)

    async def by_hand() -> str:
        endpoint = ModelEndpoint(make_reader(ModelOptions()), find_embedding("minilm"))
        url = await endpoint.start()
        try:
            plain = [[[{"role": m.role, "content": m.content} for m in said], at] for said, _, at in sessions]
            command = [str(python_of("mem0")), "-c", BY_HAND, url, str(tmp_path), json.dumps(plain), asked]
            own = {
                "MEM0_TELEMETRY": "False",
                "MEM0_DIR": str(tmp_path),
                "OPENAI_API_KEY": "none",
                "HOME": str(tmp_path),
                "HF_HUB_OFFLINE": "1",
                "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            }
            done = await asyncio.to_thread(subprocess.run, command, env=own, capture_output=True, text=True, check=True)
            return done.stdout
        finally:
            await endpoint.stop()

    theirs = json.loads(asyncio.run(by_hand()).splitlines()[-1])
    assert [text.partition("] ")[2] for text in ours] == theirs
    assert len(theirs) == 5
