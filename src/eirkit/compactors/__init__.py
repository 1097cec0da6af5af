"""Compactors: what an agent goes on with when its context is too large; a table of names, imported on first use."""

PLUGINS = {
    "adk-compaction": "eirkit.compactors.adk",
    "clear-tool-results": "eirkit.compactors.built_in",
    "head-and-tail": "eirkit.compactors.built_in",
    "inspect-edit": "eirkit.compactors.inspect_ai",
    "inspect-trim": "eirkit.compactors.inspect_ai",
    "keep-last": "eirkit.compactors.built_in",
    "langchain-clear-tool-uses": "eirkit.compactors.langchain",
    "langchain-summary": "eirkit.compactors.langchain",
    "null": "eirkit.compactors.built_in",
    "openhands-condenser": "eirkit.compactors.openhands",
    "oracle": "eirkit.compactors.built_in",
    "random": "eirkit.compactors.built_in",
    "recorded": "eirkit.compactors.built_in",
    "strands-sliding-window": "eirkit.compactors.strands",
    "strands-summary": "eirkit.compactors.strands",
    "summary": "eirkit.compactors.summary",
}
