"""The memory systems that come with the package; importing this registers them."""

from eirkit.lacuna.memories import (
    amem,
    bm25,
    broken,
    graphiti,
    key_value,
    langmem,
    letta,
    mcp,
    mem0,
    null,
    oracle,
    text,
    vector,
)

__all__ = [
    "amem",
    "bm25",
    "broken",
    "graphiti",
    "key_value",
    "langmem",
    "letta",
    "mcp",
    "mem0",
    "null",
    "oracle",
    "text",
    "vector",
]
