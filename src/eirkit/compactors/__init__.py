"""Compactors: what an agent goes on with when its context is too large; a table of names, imported on first use."""

PLUGINS = {
    "adk-compaction": "eirkit.compactors.adk",
    "clear-tool-results": "eirkit.compactors.tool_results",
    "head-and-tail": "eirkit.compactors.windows",
    "inspect-edit": "eirkit.compactors.inspect_ai",
    "inspect-trim": "eirkit.compactors.inspect_ai",
    "keep-last": "eirkit.compactors.windows",
    "langchain-clear-tool-uses": "eirkit.compactors.langchain",
    "langchain-summary": "eirkit.compactors.langchain",
    "null": "eirkit.compactors.windows",
    "openhands-condenser": "eirkit.compactors.openhands",
    "oracle": "eirkit.compactors.selections",
    "random": "eirkit.compactors.selections",
    "recorded": "eirkit.compactors.selections",
    "strands-sliding-window": "eirkit.compactors.strands",
    "strands-summary": "eirkit.compactors.strands",
    "summary": "eirkit.compactors.summary",
}
