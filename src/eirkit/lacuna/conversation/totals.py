"""Pools the records of runs in words over a cell: accuracy by ability, fates, bytes, and bits kept by servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from eirkit.lacuna.conversation import ABILITIES
from eirkit.lacuna.findings.conversation_measures import COUNTS, SERVER_COMPACTION, UNSEEN, WORD_FATES
from eirkit.lacuna.findings.intervals import clustered_share, proportion
from eirkit.lacuna.findings.statistics import mean

ALL = "all"
EVIDENCE = ("all_shown", "some_shown")
INSTRUCTION = "instruction"  # not among the questions: it is checked at every answer


def pool_words(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a cell, from what the records of its runs say about answers in words."""
    asked = sum(n for run in runs for _, n in run["abilities"].values())
    fates = {one.id: sum(run["fates"].get(one.id, 0) for run in runs) for one in WORD_FATES}
    sizes = ("stored_texts", "stored_bytes", "said_bytes", "floor_bytes")
    return {
        "worlds": len(runs),
        "asked": asked,
        "abilities": _abilities(runs),
        "fates": fates,
        "fate_shares": {one.id: mean(_share(run, one.id) for run in runs) for one in WORD_FATES},
        **{name: _mean_known([run[name] for run in runs]) for name in sizes},
        "returned_bytes": _ratio(runs, "returned_bytes", "recalls"),
        "instructions": _instructions([run["instruction"] for run in runs]),
        **({"evidence": _evidence([run["evidence"] for run in runs])} if "evidence" in runs[0] else {}),
        **({"server": pool_server([run["server"] for run in runs])} if "server" in runs[0] else {}),
    }


def _evidence(runs: Sequence[Mapping[str, int]]) -> dict[str, float | None]:
    """Return how many questions have labelled evidence, and for which share of them it was shown."""
    told = [run for run in runs if run["labelled"]]
    shares = {name: mean(run[name] / run["labelled"] for run in told) if told else None for name in EVIDENCE}
    return {"labelled": sum(run["labelled"] for run in told), **shares}


def _instructions(runs: Sequence[Mapping[str, int]]) -> dict[str, float | None]:
    """Return how often standing instructions were checked, and the share of checks with each outcome."""
    told = [run for run in runs if run["asked"]]
    outcomes = {name: mean(run[name] / run["asked"] for run in told) for name in COUNTS[1:5]} if told else {}
    if any(run.get(UNSEEN) for run in told):
        outcomes |= {"ignored": None, "dropped": None}
    gone = [run["came_back"] / run["withdrawn"] for run in runs if run.get("withdrawn")]
    return {
        "checks": sum(run["asked"] for run in told),
        **(outcomes or dict.fromkeys(COUNTS[1:5])),
        "came_back": mean(gone) if gone else None,
    }


def _abilities(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return right answers by ability, all of them first, each with an interval over worlds."""
    counts: list[Mapping[str, Sequence[int]]] = [run["abilities"] for run in runs]
    rows = [_line(ALL, [(sum(r for r, _ in one.values()), sum(n for _, n in one.values())) for one in counts])]
    others = sorted({name for run in counts for name in run} - set(ABILITIES))
    for ability in (*ABILITIES, *others):
        pairs = [(right, n) for run in counts for name, (right, n) in run.items() if name == ability]
        if pairs:
            rows.append(_line(ability, pairs))
    kept = [(run["instruction"]["kept"], run["instruction"]["asked"]) for run in runs]
    return [*rows, _line(INSTRUCTION, kept)] if any(n for _, n in kept) else rows


def _line(ability: str, worlds: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return one ability: its rate, and the wider of the exact interval and the t interval over worlds."""
    counted = [(right, n) for right, n in worlds if n]
    right, asked = sum(r for r, _ in counted), sum(n for _, n in counted)
    exact = proportion(right, asked)
    found = clustered_share(counted, exact)
    return {
        "ability": ability,
        "right": right,
        "asked": asked,
        "accuracy": exact.estimate,
        "low": found.low,
        "high": found.high,
    }


def _share(run: Mapping[str, Any], fate: str) -> float:
    return float(run["fates"].get(fate, 0) / sum(n for _, n in run["abilities"].values()))


def _mean_known(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if it is unknown for any run."""
    known = [float(value) for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _ratio(runs: Sequence[Mapping[str, Any]], above: str, below: str) -> float | None:
    calls = sum(run[below] for run in runs)
    return sum(run[above] for run in runs) / calls if calls else None


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
