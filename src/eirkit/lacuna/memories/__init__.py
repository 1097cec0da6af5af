"""Runs memory systems: construction, time limits, separate processes and environments, model endpoint, embeddings."""

FACTORY = "eirkit.lacuna.memories.factory"  # makes memory systems, imported with the first of them

# The built-in memory systems and their modules, imported on first use; those of extensions are in `eirkit.extensions`.
PLUGINS = {
    "agent-file": "eirkit.lacuna.memories.agent_managed",
    "agent-tools": "eirkit.lacuna.memories.agent_managed",
    "bm25": "eirkit.lacuna.memories.in_process",
    "broken-drops": "eirkit.lacuna.memories.in_process",
    "broken-floods": "eirkit.lacuna.memories.in_process",
    "broken-labels": "eirkit.lacuna.memories.in_process",
    "broken-late": "eirkit.lacuna.memories.in_process",
    "broken-raises": "eirkit.lacuna.memories.in_process",
    "encoder": "eirkit.lacuna.memories.encoder",
    "key-value": "eirkit.lacuna.memories.in_process",
    "null": "eirkit.lacuna.memories.in_process",
    "oracle": "eirkit.lacuna.memories.in_process",
    "sham": "eirkit.lacuna.memories.in_process",
    "text": "eirkit.lacuna.memories.in_process",
    "vector": "eirkit.lacuna.memories.in_process",
    "vector-minilm": "eirkit.lacuna.memories.in_process",
    "words-add-only": "eirkit.lacuna.conversation.broken_memories",
    "words-exact": "eirkit.lacuna.conversation.broken_memories",
    "words-forgets": "eirkit.lacuna.conversation.broken_memories",
    "words-keeps-withdrawn": "eirkit.lacuna.conversation.broken_memories",
    "words-keeps-mistakes": "eirkit.lacuna.conversation.broken_memories",
    "words-last-writer": "eirkit.lacuna.conversation.broken_memories",
    "words-late": "eirkit.lacuna.conversation.broken_memories",
    "words-leaks": "eirkit.lacuna.conversation.broken_memories",
    "words-merges": "eirkit.lacuna.conversation.broken_memories",
    "words-obeys-documents": "eirkit.lacuna.conversation.broken_memories",
    "words-returns-all": "eirkit.lacuna.conversation.broken_memories",
    "words-truncates": "eirkit.lacuna.conversation.broken_memories",
}
