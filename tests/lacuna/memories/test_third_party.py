"""A memory system of somebody else's: what it may leave out, how its settings are named, and what it is told."""

from __future__ import annotations

import json

import pytest

from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import memory_aliases
from eirkit.testing import check_memory
from tests.lacuna.running import eirkit

SOURCE = """
class Mine:
    def __init__(self, *, keep: int = 99, fails: str = "") -> None:
        self.keep, self.fails, self.kept = keep, fails, {}

    def _do(self, verb):
        if self.fails == verb:
            raise KeyError("no such shelf")

    async def reset(self, scope): self.kept = {}

    async def write(self, item):
        self._do("write")
        if len(self.kept) < self.keep:
            self.kept[item.label] = item.text

    async def search(self, query, limit):
        self._do("search")
        return [text for text in self.kept.values() if text.split(" = ")[0] in query.split()][:limit]

    async def read(self, label): return self.kept.get(label)

    async def usage(self): return {"records": 3} if self.fails == "usage" else None

"""

OTHERS = """
import sys
from eirkit.lacuna.memories.memory import Item, MemorySystem


class Needs(Mine):
    def __init__(self, path): super().__init__()


class Bare:
    async def search(self, query, limit): return []


def make(): return Mine()


instance = Mine()
"""
LEAVES = """
class Leaves(Mine):
    def __init__(self): raise SystemExit(3)
"""
TASKS = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", "0:2")
COMMAND = ("lacuna", "run", *TASKS, "--model", "reference/recoverer", "--memory", "mine.py:Mine")


@pytest.fixture
def mine(tmp_path, monkeypatch, capsys):
    """Return a way to run the system: exit code, document, complaint."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE, "utf-8")

    def run(*more):
        code = eirkit(*COMMAND, "--json", *more)
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return run


def test_a_system_that_cannot_tell_its_size_is_run_and_its_size_unknown(mine):
    code, found, _ = mine("--out", "out")
    (row,) = found["rows"]
    assert (code, row["scored"], row["accuracy"]) == (0, 2, 1.0)
    assert (row["memory_system"]["records"], row["memory_system"]["bytes"]) == (None, None)
    assert row["memory_system"]["floor"]["counted"] == "writes", "what it was given is counted in place of its word"


@pytest.mark.parametrize("name", ["mine.py:Mine", "Mine"])
def test_settings_name_the_system_as_the_grid_does_or_by_its_class(mine, name):
    code, found, _ = mine("--out", "out", "--set", f"{name}.keep=1")
    (row,) = found["rows"]
    assert code == 0
    assert row["memory_settings"] == {"keep": 1}
    assert row["memory_system"]["outcomes"]["not_stored"] > 0


def test_settings_of_nobody_are_refused_with_the_names_that_count(mine):
    code, _, complaint = mine("--out", "out", "--set", "yours.keep=1")
    assert (code, complaint.count("\n")) == (2, 1)
    assert complaint.rstrip().endswith("known: mine.py:Mine")


@pytest.mark.parametrize("verb", ["write", "search"])
def test_what_it_raises_is_told_with_the_verb_that_raised_it(mine, verb):
    code, found, _ = mine("--out", "out", "--set", f"Mine.fails={verb}")
    assert code == 1
    (failure,) = found["failures"]
    assert failure["kind"] == "memory"
    said = f"KeyError: 'no such shelf' (raised by {verb}); correct it and start anew with another --out"
    assert failure["message"] == said


def test_where_nothing_is_scored_the_reason_comes_first_and_nothing_else_is_drawn(mine, capsys):
    code = eirkit(*COMMAND, "--out", "out", "--set", "Mine.fails=write")
    shown = capsys.readouterr().out.splitlines()
    assert (code, shown[0]) == (1, "None of 2 runs is scored.")
    assert shown[2].startswith("not scored: 2 of reference/recoverer, store-recall (memory): KeyError")
    assert not any("Accuracy" in line or "--resume" in line or "native panel" in line for line in shown)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Needs", "memory 'mine.py:Needs' requires path; give --set Needs.path=VALUE"),
        ("Bare", "has no method reset, write, read; see docs/add-a-memory.md"),
        ("Mien", "no memory in mine.py named 'Mien'; did you mean 'Mine'? known: Bare, Mine, Needs\n"),
        ("Leaves", "memory 'mine.py:Leaves' cannot be constructed (SystemExit: 3); correct its settings"),
    ],
)
def test_a_class_that_cannot_be_used_is_told_what_it_lacks(mine, capsys, tmp_path, name, said):
    (tmp_path / "mine.py").write_text(SOURCE + OTHERS, "utf-8")
    if name == "Leaves":
        (tmp_path / "mine.py").write_text(SOURCE + LEAVES, "utf-8")
    assert eirkit(*COMMAND[:-1], f"mine.py:{name}", "--out", "out") == 2
    assert said in capsys.readouterr().err


def test_a_size_that_is_none_of_ours_is_told_what_to_return(mine):
    _, found, _ = mine("--out", "out", "--set", "Mine.fails=usage")
    (failure,) = found["failures"]
    assert "usage returned a dict; return a MemoryUsage, or None if unknown" in failure["message"]


def test_a_system_that_cannot_forget_is_told_what_to_add_for_the_strict_panel(mine):
    code, _, complaint = mine("--out", "out", "--panel", "strict")
    assert (code, complaint.count("\n")) == (2, 1)
    assert "add `async def forget(self, label: str) -> None` to Mine" in complaint


def test_a_system_may_be_called_by_its_class_and_by_its_registered_name():
    assert memory_aliases("vector") == {"vector", "Vector"}
    module = "eirkit.lacuna.memories.in_process:Vector"
    assert memory_aliases(module) == {module, "vector", "Vector"}


class Unclear(KeyValue):
    """Finds nothing, says no size, and cannot be closed."""

    async def search(self, query, limit):
        return []

    async def usage(self):
        return None

    async def teardown(self):
        if self._kept:
            raise OSError("the lid is stuck")


def test_the_suite_names_what_is_wrong_first_and_not_what_closing_said():
    with pytest.raises(AssertionError, match="no record was found by its label") as broken:
        check_memory(Unclear, records=64)
    finds = next(part for part in str(broken.value).split("; ") if "at least one written record" in part)
    assert "lid" not in finds
    assert "usage" not in str(broken.value).lower(), "no size is no fault"
