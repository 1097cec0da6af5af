"""Forgets everything: the floor below every memory system."""

from collections.abc import Sequence

from eirkit.lacuna.memory import memories


@memories.add("null")
class Null:
    """Accepts every write and finds nothing."""

    async def reset(self, scope: str) -> None:
        pass

    async def write(self, text: str) -> None:
        pass

    async def flush(self) -> None:
        pass

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        pass
