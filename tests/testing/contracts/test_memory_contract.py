"""What every memory system owes its users, checked for all of the registry that can run here, and for a user's own."""

from __future__ import annotations

import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, MemorySystem, memories
from eirkit.testing import check_memory
from tests.processes import PATIENCE_SECONDS

# Broken on purpose, or not a memory of what was written: what each of them must fail at, and nothing else.
EXCUSED = {
    "null": "can be read by its label",
    "oracle": "can be read by its label",
    "broken-drops": "can be read by its label",
    "broken-late": "within",
    "broken-raises": "the store is gone",
    "broken-floods": "wrong limit",
    "broken-labels": "no record was found by its label",
    "sham": "no record was found by its label",
}
USERS_OWN = f"{Path(__file__).parents[3] / 'examples' / 'notebook_memory.py'}:Notebook"
# Those with packages run in `make session NAME=memories`; those with a model are tried in test_memory_faults.py.
HEAVY = tuple(
    name for name in memories.names() if (needed := memories.get(name).requirements).packages or needed.endpoint
)
SECONDS = 20.0  # far above what any built-in takes, below what the late one does

IN_PROCESS = [name for name in memories.names() if name not in HEAVY]


def kind_of(name: str) -> type[MemorySystem]:
    if (why := reason_absent(name)) is not None:
        pytest.skip(why)
    return memories.get(name)


@pytest.mark.parametrize("name", [*IN_PROCESS, pytest.param(USERS_OWN, id="user's own")])
def test_a_memory_system_conforms_or_is_found_out(name):
    kind = kind_of(name)
    if name in EXCUSED:
        with pytest.raises(AssertionError, match=EXCUSED[name]):
            check_memory(kind, seconds=0.2 if name == "broken-late" else SECONDS, records=64)
    else:
        assert len(check_memory(kind, seconds=SECONDS, records=64).held) == 18


def test_a_system_without_a_verb_is_named():
    class Half:
        async def setup(self) -> None: ...

    with pytest.raises(AssertionError, match=r"it has no reset, write, .*the verbs it needs") as caught:
        check_memory(Half, records=64)  # type: ignore[arg-type]
    assert str(caught.value).count("it has no") == 1, "one mistake is told once"
    assert "18 requirements fail for it" in str(caught.value)


class FourVerbs:
    """Neither inherits nor waits: four plain functions."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        self.lines = {}

    def write(self, item: Item) -> None:
        self.lines[item.label] = item.text

    def search(self, query: str, limit: int) -> list[str]:
        return [text for text in self.lines.values() if text.split(" = ")[0] in query.split()][:limit]

    def read(self, label: str) -> str | None:
        return self.lines.get(label)


class ThreadBound(FourVerbs):
    """Breaks where two verbs run on different threads, as a SQLite connection does."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def write(self, item: Item) -> None:
        self.threads.add(threading.get_ident())
        assert len(self.threads) == 1
        super().write(item)

    def read(self, label: str) -> str | None:
        assert not self.threads or threading.get_ident() in self.threads
        return super().read(label)


@pytest.mark.parametrize("kind", [FourVerbs, ThreadBound])
def test_four_plain_functions_are_a_memory_system(kind):
    assert len(check_memory(kind, records=64).held) == 18


def test_a_plain_function_that_hangs_is_late_and_nothing_waits_for_it():
    never = threading.Event()
    waited_for: list[str] = []

    class Hanging(FourVerbs):
        def search(self, query: str, limit: int) -> list[str]:
            never.wait(PATIENCE_SECONDS)
            waited_for.append(query)
            return []

        def teardown(self) -> None:
            pass

    with pytest.raises(AssertionError, match=r"did not finish search within 0\.25 s"):
        check_memory(Hanging, seconds=0.25, records=64)
    assert not waited_for
    never.set()


def test_a_plain_function_that_raises_is_named_with_its_verb():
    class Raising(FourVerbs):
        def flush(self) -> None:
            next(iter(()))

    with pytest.raises(AssertionError, match=r"RuntimeError: coroutine raised StopIteration \(raised by flush\)"):
        check_memory(Raising, records=64)


def test_a_verb_may_return_something_to_wait_for():
    class Handing(KeyValue):
        def flush(self) -> Coroutine[Any, Any, None]:
            return super().flush()

    assert len(check_memory(Handing, records=64).held) == 18


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (KeyValue(), r"give the class, check_memory\(KeyValue\)"),
        ("key-value", "was given a str; give the class of a memory system"),
        (None, "was given a NoneType"),
    ],
)
def test_what_makes_no_system_is_told_in_one_line(given, said):
    with pytest.raises(UsageError, match=said):
        check_memory(given)
