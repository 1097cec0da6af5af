"""The built-in memory systems: a table of names and modules, imported on first use."""

PLUGINS = {
    "amem": "eirkit.agents.memories.amem",
    "bm25": "eirkit.agents.memories.bm25",
    "broken-drops": "eirkit.agents.memories.broken",
    "broken-floods": "eirkit.agents.memories.broken",
    "broken-labels": "eirkit.agents.memories.broken",
    "broken-late": "eirkit.agents.memories.broken",
    "broken-raises": "eirkit.agents.memories.broken",
    "graphiti": "eirkit.agents.memories.graphiti",
    "key-value": "eirkit.agents.memories.key_value",
    "langmem": "eirkit.agents.memories.langmem",
    "letta": "eirkit.agents.memories.letta",
    "mcp": "eirkit.agents.memories.mcp",
    "mem0": "eirkit.agents.memories.mem0",
    "null": "eirkit.agents.memories.null",
    "oracle": "eirkit.agents.memories.oracle",
    "text": "eirkit.agents.memories.text",
    "vector": "eirkit.agents.memories.vector",
    "vector-minilm": "eirkit.agents.memories.vector",
}
