"""Sweeps with memory systems that fail: the cell says so, the others go on, and resuming completes it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eirkit.errors import UsageError
from eirkit.lacuna.memories.factory import passages_asked
from eirkit.lacuna.memories.memory import AS_DOCUMENTED, SEARCH_LIMIT, STORE_ONLY, memories
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.runs.manifest import read_manifest, write_manifest
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import resume_sweep, start_sweep
from eirkit.lacuna.runs.workers import FAILURES_IN_A_ROW
from eirkit.records.budgets import MOST_PASSAGES
from eirkit.records.events import MemoryExchange
from tests.lacuna.mortal import Shared
from tests.lacuna.running import eirkit
from tests.processes import PATIENCE_SECONDS
from tests.runs import events, record, replayed

MORTAL, OUTAGE = (f"tests.lacuna.mortal:{name}" for name in ("Mortal", "Outage"))
GRID: dict[str, Any] = {"workload": "store-recall", "model": "reference/recoverer", "n": 16, "m": 8, "h": 2}
TASKS = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", "0:3")
RUN = ("lacuna", "run", *TASKS, "--model", "reference/recoverer", "--no-control")


def rows_of(summary: Any) -> dict[str, Any]:
    return {row.memory: row for row in summary.rows}


def kill_once_buried(grave: Path) -> threading.Thread:
    """Kill the process that writes its id into a file, with a signal that nothing can catch."""

    def watch() -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if grave.exists() and (pid := grave.read_text()):
                os.kill(int(pid), signal.SIGKILL)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_killing_a_stores_process_costs_one_run_and_resuming_brings_it_back(tmp_path, capsys):
    grave, out = tmp_path / "grave", tmp_path / "out"
    killer = kill_once_buried(grave)
    setting = f"{MORTAL}.grave={grave}"
    names = f"{MORTAL},key-value"
    code = eirkit(*RUN, "--memory", names, "--set", setting, "--out", str(out), "--json")
    killer.join()
    document = json.loads(capsys.readouterr().out)
    mortal, other = document["rows"]
    assert code == 1
    assert (mortal["attempted"], mortal["scored"], mortal["failures"]) == (3, 2, {"memory": 1})
    assert mortal["accuracy"] == 1, "a lost run is no zero"
    assert (other["scored"], other["accuracy"]) == (3, 1)
    (failure,) = document["failures"]
    assert failure["kind"] == "memory"
    assert "died during write" in failure["message"]
    assert failure["message"].endswith("fix it and resume")

    assert eirkit("lacuna", "run", "--resume", str(out), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["complete"]
    assert document["failures"] == []
    assert [(row["scored"], row["accuracy"]) for row in document["rows"]] == [(3, 1), (3, 1)]


def test_a_memory_that_keeps_failing_gives_up_its_cell_only(tmp_path):
    down, seeds = tmp_path / "down", FAILURES_IN_A_ROW + 4
    down.touch()
    grid = GRID | {
        "memory": [OUTAGE, "key-value"],
        "seeds": f"0:{seeds}",
        "memory_options": {OUTAGE: {"file": str(down)}},
    }
    suite = read_suite(grid)
    first = start_sweep(suite, tmp_path / "out")
    rows = rows_of(first)
    assert (rows[OUTAGE].scored, rows[OUTAGE].attempted) == (0, FAILURES_IN_A_ROW)
    assert rows[OUTAGE].memory_system.diagnosis == (f"raises ({FAILURES_IN_A_ROW} runs lost)",)
    assert rows["key-value"].scored == seeds
    (said,) = first.stopped
    assert said.startswith("1 cell was skipped because its memory system kept failing")
    down.unlink()
    second = resume_sweep(tmp_path / "out")
    assert second.complete
    assert second.failures == second.stopped == ()
    assert rows_of(second)[OUTAGE].accuracy == 1


@pytest.mark.parametrize("workload", ["store-recall", "stepwise-sum"])
def test_runs_at_the_same_time_never_see_each_other(tmp_path, workload):
    """One store, eight runs at a time, whose tasks have the same labels and other values."""
    Shared.most_at_once = 0
    grid = GRID | {
        "workload": workload,
        "model": "tests.lacuna.faulty:Answering/recoverer",
        "memory": "shared-by-all",
        "seeds": "0:24",
        "model_options": {"connections": 8},
    }
    summary = start_sweep(read_suite(grid), tmp_path / "out", control=False)
    (row,) = summary.rows
    assert Shared.most_at_once > 1, "nothing ran at the same time"
    assert (row.scored, row.accuracy) == (24, 1)
    outcomes = row.memory_system.outcomes
    assert outcomes["used"] == sum(outcomes.values()) > 0


@pytest.mark.parametrize("memory", ["key-value", "text", "bm25"])
def test_strict_memories_hold_h_records_and_the_panel_says_so(tmp_path, memory):
    grid = GRID | {"memory": memory, "panel": ["strict", "native"], "seeds": "0:3"}
    strict, native = start_sweep(read_suite(grid), tmp_path / "out").rows
    assert (strict.panel, native.panel) == ("strict", "native")
    assert strict.memory_system.records == 2
    assert native.memory_system.records == 8, "every STORE is written once"
    assert strict.memory_system.outcomes["not_stored"] > 0
    assert native.accuracy == 1 > strict.accuracy


SLOW = """
import time
from pathlib import Path

from eirkit.records.database import SweepDatabase

class Slow:
    '''Takes its time, and notes at the start of every run how many are on the disk.'''
    def __init__(self):
        self.kept = {}
    def reset(self, scope):
        self.kept = {}
        with SweepDatabase(Path(__file__).with_name("out")) as database:
            ended = database.count()
        with Path(__file__).with_name("seen").open("a") as seen:
            seen.write(f"{ended}\\n")
        time.sleep(0.3)
    def write(self, item):
        self.kept[item.label] = item.text
    def search(self, query, limit):
        return [text for label, text in self.kept.items() if text.split()[0] in query][:limit]
    def read(self, label):
        return self.kept.get(label)
"""


def test_runs_that_take_long_are_stored_one_by_one(tmp_path):
    """Whoever stops a sweep of a slow system keeps every run that has ended."""
    (tmp_path / "slow.py").write_text(SLOW)
    out = ("--memory", f"{tmp_path / 'slow.py'}:Slow", "--out", str(tmp_path / "out"))
    assert eirkit(*RUN, *out) == 0
    assert (tmp_path / "seen").read_text().split() == ["0", "1", "2"]


PLAIN = """
class Plain:
    def __init__(self):
        self.kept = {}
    def reset(self, scope):
        self.kept = {}
    def write(self, item):
        self.kept[item.label] = item.text
    def search(self, query, limit):
        return list(self.kept.values())[-limit:]
    def read(self, label):
        return self.kept.get(label)
"""


def test_a_class_of_plain_functions_is_given_each_turn_of_a_conversation(tmp_path):
    (tmp_path / "plain.py").write_text(PLAIN)
    memory, out = f"{tmp_path / 'plain.py'}:Plain", tmp_path / "out"
    suite = {"workload": "conversation", "preset": "small", "model": "scripted/reader", "seeds": "0:1"}
    assert start_sweep(read_suite({**suite, "memory": memory}), out).complete
    asked = [event for event in events(out) if isinstance(event, MemoryExchange) and event.verb == "recall"]
    assert {len(event.found) for event in asked} == {SEARCH_LIMIT}


ASKED = """
from pathlib import Path

from eirkit.lacuna.memories.in_process import Text
from eirkit.lacuna.memories.memory import Profile

class Asked(Text):
    profiles = {
        "as-documented": Profile("everything", "", passages=20, passages_from="its own default"),
        "whole": Profile("everything", "", passages=None, passages_from="no number"),
        "store-only": Profile("the store", ""),
    }

    def __init__(self, profile="as-documented", log=""):
        super().__init__()
        self.log = log

    async def search(self, query, limit):
        with Path(self.log).open("a") as log:
            log.write(f"{limit} ")
        return await super().search(query, limit)
"""


@pytest.mark.parametrize("workload", ["words", "store-recall"])
@pytest.mark.parametrize(("profile", "asked"), [("as-documented", 20), ("whole", MOST_PASSAGES), ("store-only", 5)])
def test_a_search_asks_for_the_number_of_its_profile_and_the_manifest_has_it(tmp_path, workload, profile, asked):
    (tmp_path / "asked.py").write_text(ASKED)
    memory, log, out = f"{tmp_path / 'asked.py'}:Asked", tmp_path / "log", tmp_path / "out"
    settings = {"profile": profile, "log": str(log)}
    size = {"preset": "small"} if workload == "words" else {"n": 16, "m": 8, "h": 2}
    model = "scripted/reader" if workload == "words" else "reference/recoverer"
    suite = {"workload": workload, "model": model, **size, "memory": memory, "seeds": "0:1"}
    start_sweep(read_suite({**suite, "memory_options": {memory: settings}}), out)
    assert set(log.read_text().split()) == {str(asked)}
    (number,) = read_manifest(out).passages
    recorded = None if profile == "whole" else asked
    assert (number.memory, number.profile, number.passages) == (memory, profile, recorded)
    assert record(out).memory.profile.passages == recorded
    if workload == "words":
        recalled = [event for event in events(out) if isinstance(event, MemoryExchange) and event.verb == "recall"]
        assert (max(len(event.found) for event in recalled) > SEARCH_LIMIT) == (asked > SEARCH_LIMIT)
    assert replayed(out, plugins=True) == [(True, [])]


def test_a_sweep_is_not_resumed_with_another_number_of_passages(tmp_path):
    (tmp_path / "asked.py").write_text(ASKED)
    memory, out = f"{tmp_path / 'asked.py'}:Asked", tmp_path / "out"
    grid = {**GRID, "memory": memory, "memory_options": {memory: {"log": str(tmp_path / "log")}}, "seeds": "0:1"}
    start_sweep(read_suite(grid), out)
    then = read_manifest(out)
    write_manifest(replace(then, passages=tuple(replace(own, passages=5) for own in then.passages)), out)
    with pytest.raises(UsageError, match="another number of passages"):
        resume_sweep(out)


ENDED = """
from eirkit.lacuna.memories.in_process import Text
from eirkit.lacuna.memories.validity import EndedText

class Ended(Text):
    async def search(self, query, limit):
        return [EndedText(text) for text in await super().search(query, 20)]
"""


def test_what_a_memory_marks_as_ended_is_recorded_with_its_mark(tmp_path):
    (tmp_path / "ended.py").write_text(ENDED)
    memory, out = f"{tmp_path / 'ended.py'}:Ended", tmp_path / "out"
    suite = {"workload": "words", "model": "scripted/reader", "preset": "small", "memory": memory, "seeds": "0:1"}
    start_sweep(read_suite(suite), out)
    calls = [event for event in events(out) if isinstance(event, MemoryExchange) and event.verb == "recall"]
    assert all(text.endswith("(no longer valid)") for call in calls for text in (*call.found, *call.unshown))
    assert any(call.found for call in calls)
    assert any(call.unshown for call in calls)


# The default of the call that the adapter makes, read from the installed packages by tests/memories/test_defaults.py;
# None: it has none or returns all.
VENDORS = {
    ("mem0", AS_DOCUMENTED): 20,
    ("mem0", STORE_ONLY): 20,
    ("langmem", AS_DOCUMENTED): 10,
    ("langmem", STORE_ONLY): 10,
    ("amem", AS_DOCUMENTED): 5,
    ("amem", STORE_ONLY): 5,
    ("graphiti", AS_DOCUMENTED): 10,
    ("graphiti", STORE_ONLY): 10,
    ("letta", AS_DOCUMENTED): None,
    ("letta", STORE_ONLY): 50,
    ("mcp", AS_DOCUMENTED): None,
    ("mcp", STORE_ONLY): None,
    ("anthropic-memory", AS_DOCUMENTED): None,
    ("anthropic-memory", STORE_ONLY): SEARCH_LIMIT,
    ("langgraph", AS_DOCUMENTED): 10,
    ("adk", AS_DOCUMENTED): 10,
    ("autogen", AS_DOCUMENTED): 3,
    ("llamaindex", AS_DOCUMENTED): 2,
    ("openai-agents", AS_DOCUMENTED): None,
    ("qdrant", STORE_ONLY): 10,
    ("pgvector", STORE_ONLY): SEARCH_LIMIT,
}


def test_every_vendor_is_asked_for_its_own_number():
    kinds = {name: memories.get(name) for name in memories.names()}
    profiles = [(name, profile) for name, kind in kinds.items() for profile in kind.profiles]
    asked = {(name, profile): passages_asked(MemoryPlan(name, {"profile": profile})) for name, profile in profiles}
    assert asked == VENDORS
    described = {"preset": "", "server": {"command": ["mine"]}}
    assert passages_asked(MemoryPlan("mcp", described)) == SEARCH_LIMIT
    assert passages_asked(MemoryPlan("autogen", {"kind": "list"})) is None
    assert passages_asked(MemoryPlan("llamaindex", {"block": "facts"})) is None
