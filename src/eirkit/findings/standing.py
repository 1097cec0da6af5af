"""Counts what became of the user's standing instructions in the answers of a run in words."""

from __future__ import annotations

from collections import Counter

from eirkit.agents.conversing import without_marker
from eirkit.agents.telemetry import Trace
from eirkit.tasks.conversations import ToldWorld
from eirkit.tasks.words.instructions import judge, standing_at_answers

# Of instructions in force: checks, and how they ended. Of withdrawn ones: checks, and how many were followed still.
COUNTS = ("asked", "kept", "overridden", "ignored", "dropped", "withdrawn", "came_back")
UNKNOWN = "unknown"  # not kept, and nobody can tell whether it was shown


def instruction_record(task: ToldWorld, trace: Trace) -> dict[str, int]:
    """Return how each standing instruction fared at each answer of a run."""
    counts = Counter(dict.fromkeys(COUNTS, 0))
    standing = list(standing_at_answers(task.world))
    for exchange in trace.exchanges:
        if not exchange.t:
            continue  # a summary
        said = without_marker(exchange.reply.text)
        # What a server compacted nobody can read, so why an instruction was not kept is then unknown.
        seen = None if exchange.is_compacted else "\n".join(message.content for message in exchange.request.messages)
        for state in standing[exchange.t - 1]:
            verdict = judge(state, said, seen)
            if state.current is None:
                counts["withdrawn"] += 1
                counts["came_back"] += verdict == "overridden"
            else:
                counts["asked"] += 1
                counts[verdict] += 1
    return dict(counts)
