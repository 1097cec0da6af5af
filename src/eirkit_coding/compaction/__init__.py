"""What a compaction could keep of a recorded run at a cut: the context, what was needed of it, and the best choice."""

from typing import Literal

# The folder of `vestige compact`: what it is about, with its results, and a record for each run of the log.
MANIFEST, MANIFEST_SCHEMA = "compact.json", "compaction-benchmark/1"
COMPACTIONS, COMPACTIONS_SCHEMA = "compactions.jsonl", "compactions/1"
CompactionStatus = Literal["ok", "over budget", "invalid", "raised", "too late", "not asked"]
