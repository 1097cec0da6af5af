"""What the extensions of this distribution add, by name: the only place of the core that names them.

Nothing here is imported before it is used. Packages of other people register by entry points in the groups below and
get the same treatment.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

OURS = frozenset({"eirkit", "eirkit_bridges", "eirkit_coding", "eirkit_memories", "eirkit_paper"})

# For each group: the name of a plug-in and the module that registers it.
PLUGINS: Mapping[str, Mapping[str, str]] = {
    "eirkit.memories": {
        "adk": "eirkit_memories.adk",
        "amem": "eirkit_memories.amem",
        "anthropic-memory": "eirkit_memories.anthropic_memory",
        "autogen": "eirkit_memories.autogen",
        "graphiti": "eirkit_memories.graphiti",
        "langgraph": "eirkit_memories.langgraph",
        "langmem": "eirkit_memories.langmem",
        "letta": "eirkit_memories.letta",
        "llamaindex": "eirkit_memories.llamaindex",
        "mcp": "eirkit_memories.mcp",
        "mem0": "eirkit_memories.mem0",
        "openai-agents": "eirkit_memories.openai_agents",
        "pgvector": "eirkit_memories.pgvector",
        "qdrant": "eirkit_memories.qdrant",
    },
    "eirkit.formats": {
        "aider": "eirkit_coding.sessions.aider",
        "amp": "eirkit_coding.sessions.threads",
        "claude-code": "eirkit_coding.sessions.claude_code",
        "cline": "eirkit_coding.sessions.threads",
        "codex": "eirkit_coding.sessions.codex",
        "codex-exec": "eirkit_coding.sessions.printed",
        "copilot-cli": "eirkit_coding.sessions.copilot_cli",
        "cursor": "eirkit_coding.sessions.blocks",
        "droid": "eirkit_coding.sessions.blocks",
        "gemini-cli": "eirkit_coding.sessions.gemini_cli",
        "goose": "eirkit_coding.sessions.goose",
        "kimi-code": "eirkit_coding.sessions.kimi_code",
        "langfuse": "eirkit_bridges.trace_rows",
        "langsmith": "eirkit_bridges.trace_rows",
        "opencode": "eirkit_coding.sessions.opencode",
        "otlp": "eirkit_bridges.otlp",
        "qwen-code": "eirkit_coding.sessions.qwen_code",
        "stream-json": "eirkit_coding.sessions.printed",
        "trae-agent": "eirkit_coding.sessions.trae",
    },
    "eirkit.pages": {
        "compaction-benchmark": "eirkit_coding.compactors.page",
        "reproduction": "eirkit_paper.page",
    },
}
# Tables of the viewer by the kind of their folder.
VIEWED: Mapping[str, str] = {"compaction": "eirkit_coding.compactors.viewer:CompactionTables"}
# Further plug-ins with environments of their own, which `doctor --install` makes.
INSTALLED: tuple[str, ...] = ("eirkit_coding.compactors.compactor:compactors",)


def load(reference: str) -> Any:
    """Return what `module:Name` of an extension refers to."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
