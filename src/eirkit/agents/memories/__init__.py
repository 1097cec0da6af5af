"""The built-in memory systems: a table of names and modules, imported on first use."""

PLUGINS = {
    "amem": "eirkit.agents.memories.amem",
    "bm25": "eirkit.agents.memories.in_process",
    "broken-drops": "eirkit.agents.memories.in_process",
    "broken-floods": "eirkit.agents.memories.in_process",
    "broken-labels": "eirkit.agents.memories.in_process",
    "broken-late": "eirkit.agents.memories.in_process",
    "broken-raises": "eirkit.agents.memories.in_process",
    "graphiti": "eirkit.agents.memories.graphiti",
    "key-value": "eirkit.agents.memories.in_process",
    "langmem": "eirkit.agents.memories.langmem",
    "letta": "eirkit.agents.memories.letta",
    "mcp": "eirkit.agents.memories.mcp",
    "mem0": "eirkit.agents.memories.mem0",
    "null": "eirkit.agents.memories.in_process",
    "oracle": "eirkit.agents.memories.in_process",
    "text": "eirkit.agents.memories.in_process",
    "vector": "eirkit.agents.memories.in_process",
    "vector-minilm": "eirkit.agents.memories.in_process",
}
