"""Real memory systems in conversations: what they keep and recall as their makers mean them, with a scripted model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES
from eirkit.lacuna.memories.memory import MemorySystem
from eirkit.lacuna.models.message import Message
from tests.lacuna.running import eirkit
from tests.memories.stories import needs, opened

pytestmark = pytest.mark.slow
SYSTEMS = ("mem0", "mcp", "langmem", "letta", "graphiti", "amem")
EXTRACTING = ("mem0", "mcp", "langmem", "letta")  # they hold what their model says and nothing else
READER = "scripted/reader+language=english"
each = pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in SYSTEMS])


def run(folder: Path, capsys: pytest.CaptureFixture[str], name: str, *more: str) -> dict[str, Any]:
    """Return the row of a small world that was told to a memory system."""
    given = ("--preset", "small+questions=10", "--seeds", "0", "--model", "scripted/reader", "--no-control")
    out = ("--out", str(folder / "out"), "--json")
    assert eirkit("lacuna", "run", "words", *given, "--memory", name, *more, *out) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    return dict(row)


def told(at: str, *said: str) -> tuple[list[Message], str, str]:
    return [Message("user", text) for text in said], f"session-{at}", at


def kept(
    name: str,
    sessions: Sequence[tuple[list[Message], str, str]],
    question: str,
    at: str = "2031-03-01",
    **settings: Any,
) -> Any:
    """Return what a system holds after some sessions, and what it recalls for a question."""

    async def work(memory: MemorySystem) -> tuple[list[str], list[str]]:
        for messages, session, day in sessions:
            await memory.observe(messages, session, day)
        await memory.flush()
        return list(await memory.contents() or ()), list(await memory.recall(question, at, 5))

    return opened(work, name, **{"model": READER, **settings})


@each
def test_every_wrong_answer_of_a_run_has_a_cause_that_the_store_shows(name, tmp_path, capsys):
    row = run(tmp_path, capsys, name)
    assert row["scored"] == 1
    symptoms, causes = (Counter(row["conversation"][part]) for part in ("symptoms", "causes"))
    wrong = sum(one["asked"] - one["right"] for one in row["conversation"]["abilities"][:1])
    assert causes.total() == symptoms.total() == wrong
    assert causes["store_unknown"] == 0, "the store can be listed"
    assert set(causes) <= {one.id for one in ANSWER_CAUSE_MEASURES}
    system = row["memory_system"]
    assert (system["profile"]["name"], system["model_calls"] > 0) == ("as-documented", True)
    assert row["conversation"]["stored_texts"] > 0


SESSIONS = (
    told("2031-01-06", "Marta Silva works for Acorn Media.", "Marta Lopez works for Flint Books."),
    told("2031-01-13", "Marta Silva now works at Redwood Foods."),
)


@each
def test_what_is_said_is_kept_with_its_day_and_its_person(name):
    held, found = kept(name, SESSIONS, "Where does Marta Silva work?")
    text = "\n".join(held)
    assert all(word in text for word in ("Marta Lopez", "Flint Books", "Redwood Foods"))
    assert "[2031-01-13]" in "\n".join(found)
    assert "Redwood Foods" in "\n".join(found)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in EXTRACTING])
def test_a_model_that_misses_everything_leaves_nothing_in_the_store(name):
    held, found = kept(name, SESSIONS, "Where does Marta Silva work?", model=f"{READER}+misses=1")
    assert (held, found) == ([], [])


@needs("graphiti")
def test_graphiti_keeps_episodes_and_ends_facts_that_later_ones_replace():
    held, found = kept("graphiti", SESSIONS, "Where does Marta Silva work?")
    old = "[2031-01-06] Marta Silva works at Acorn Media. (until 2031-01-13)"
    assert old in held
    assert "[2031-01-13] Marta Silva now works at Redwood Foods." in found
    assert "[2031-01-13] user: Marta Silva now works at Redwood Foods." in held, "the session itself"
    held, found = kept("graphiti", SESSIONS, "Where does Marta Silva work?", model=f"{READER}+misses=1")
    assert (len(held), found) == (2, []), "only the sessions themselves"


@needs("letta")
def test_letta_cannot_take_back_what_its_agent_archived():
    said = (
        told("2031-01-06", "Marta Silva's phone number is 0161-482913."),
        told("2031-01-13", "Please forget Marta Silva's phone number."),
    )
    held, _ = kept("letta", said, "What is Marta Silva's phone number?")
    assert any("0161-482913" in text for text in held)
    assert any(text.startswith("[2031-01-13]") for text in held), "the withdrawal is a passage of its own"
