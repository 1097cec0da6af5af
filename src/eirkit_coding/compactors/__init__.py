"""Compactors: what an agent goes on with when its context is too large; a table of names, imported on first use."""

PLUGINS = {
    "adk-compaction": "eirkit_coding.compactors.adk",
    "clear-tool-results": "eirkit_coding.compactors.built_in",
    "head-and-tail": "eirkit_coding.compactors.built_in",
    "inspect-edit": "eirkit_coding.compactors.inspect_ai",
    "inspect-trim": "eirkit_coding.compactors.inspect_ai",
    "keep-last": "eirkit_coding.compactors.built_in",
    "langchain-clear-tool-uses": "eirkit_coding.compactors.langchain",
    "langchain-summary": "eirkit_coding.compactors.langchain",
    "null": "eirkit_coding.compactors.built_in",
    "openhands-condenser": "eirkit_coding.compactors.openhands",
    "oracle": "eirkit_coding.compactors.built_in",
    "random": "eirkit_coding.compactors.built_in",
    "recorded": "eirkit_coding.compactors.built_in",
    "strands-sliding-window": "eirkit_coding.compactors.strands",
    "strands-summary": "eirkit_coding.compactors.strands",
    "summary": "eirkit_coding.compactors.summary",
}
