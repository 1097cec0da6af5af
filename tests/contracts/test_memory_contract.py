"""What every memory system owes its users, checked for all of the registry that can run here, and for a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.lacuna.memory import MemorySystem, memories
from eirkit.lacuna.stores.making import reason_absent
from eirkit.testing import check_memory

# Broken on purpose, or not a memory of what was written: what each of them must fail at, and nothing else.
EXCUSED = {
    "null": "can be read by its label",
    "oracle": "can be read by its label",
    "broken-drops": "can be read by its label",
    "broken-late": "within",
    "broken-raises": "the store is gone",
    "broken-labels": "no record was found by its label",
}
USERS_OWN = f"{Path(__file__).parents[2] / 'examples' / 'notebook_memory.py'}:Notebook"
HEAVY = ("mem0", "amem", "graphiti", "letta", "langmem", "mcp")  # `make test-memories` runs these
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
            check_memory(kind, seconds=0.2 if name == "broken-late" else SECONDS)
    else:
        assert len(check_memory(kind, seconds=SECONDS).held) == 9


def test_a_system_without_a_verb_is_named():
    class Half:
        async def setup(self) -> None: ...

    with pytest.raises(AssertionError, match="it has no reset"):
        check_memory(Half)  # type: ignore[arg-type]
