"""What survived a compaction that nobody can read: bits kept, from the answers, beside the bits needed.

A server's compaction is probed by questions for the present value of a fact. A fact of M classes is log2 M bits, and a
right answer counts as these bits. A value that was lost is answered as unknown, or guessed; a guess is right once in M
times, so each wrong answer takes away log2 M / (M - 1), and the expected sum is what was kept. Mistakes of the reader
count as lost, which the same worlds under the condition `whole` show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from eirkit.agents.telemetry import Trace
from eirkit.findings.conversations import WordVerdict
from eirkit.findings.intervals import clustered_share, proportion
from eirkit.findings.word_measures import SERVER_COMPACTION
from eirkit.tasks.conversations import ToldWorld, unspell
from eirkit.tasks.words.floor import floor_bits, present_requirement

PROBES = ("now", "all", "day")  # forms of questions for a present value: of a fact, a set, and a date


def server_record(task: ToldWorld, trace: Trace, verdicts: Sequence[WordVerdict]) -> dict[str, Any]:
    """Return what the answers of a run tell about the compactions of its server, as plain data."""
    cut = len(task.told) - 1
    compacted = {one.t for one in trace.exchanges if one.is_compacted}
    unknown = task.language.table["unknown"].casefold()
    submitted = {one.t: unspell(one.submitted) for one in trace.decisions if one.submitted is not None}
    right = {one.t: one.right for one in verdicts}
    probed: dict[tuple[str, str], tuple[float, float, bool]] = {}  # by fact: bits, bits kept, right
    for asked in task.asked:
        if asked.answer is None:
            continue  # "unknown" is right also where nothing was kept
        key = asked.question.attribute, asked.question.subject
        if asked.question.form in PROBES and asked.t in compacted and asked.after == cut and key not in probed:
            fact = present_requirement(task.world, cut, key)
            guessed = asked.t in submitted and submitted[asked.t] != unknown
            lost = fact.bits / (fact.classes - 1) if guessed and fact.classes > 1 else 0.0
            probed[key] = fact.bits, fact.bits if right[asked.t] else -lost, right[asked.t]
    return {
        "compactions": sum(bool(one.reply.carried) for one in trace.exchanges),
        "needed_bits": floor_bits(task.world, cut),
        "probed_facts": len(probed),
        "right_facts": sum(is_right for _, _, is_right in probed.values()),
        "probed_bits": sum(bits for bits, _, _ in probed.values()),
        "kept_bits": sum(kept for _, kept, _ in probed.values()),
    }


def pool_server(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return bits needed, probed and kept, a world on average, over the worlds that were compacted."""
    found = [run for run in runs if run["compactions"] and run["probed_facts"]]
    pooled: dict[str, Any] = dict.fromkeys(one.id for one in SERVER_COMPACTION)
    pooled["server_compacted"] = len(found)
    if not found:
        return pooled
    exact = proportion(sum(run["right_facts"] for run in found), sum(run["probed_facts"] for run in found))
    share = clustered_share([(run["kept_bits"], run["probed_bits"]) for run in found], exact)
    probed = fsum(run["probed_bits"] for run in found) / len(found)  # whatever the order in which runs ended
    return pooled | {
        "server_needed_bits": fsum(run["needed_bits"] for run in found) / len(found),
        "server_probed_bits": probed,
        "server_kept_bits": share.estimate * probed,
        "server_kept_low": share.low * probed,
        "server_kept_high": share.high * probed,
    }
