"""Pools answers about conversations over a cell: accuracy by ability, symptoms, causes, bytes, bits kept by servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from typing import TypeVar

from eirkit.lacuna.findings.conversation_measures import ABILITIES
from eirkit.lacuna.findings.intervals import clustered_share, proportion
from eirkit.lacuna.findings.statistics import mean
from eirkit.records.runs import (
    ANSWER_CAUSES,
    SYMPTOMS,
    ConversationRun,
    EvidenceCounts,
    InstructionCounts,
    Retrieval,
    ServerCompactions,
)
from eirkit.records.sweeps import (
    AbilityRow,
    ConversationRow,
    EvidenceShares,
    InstructionShares,
    RetrievalRow,
    ServerRow,
)

Named = TypeVar("Named", bound=str)

ALL = "all"
INSTRUCTION = "instruction"  # not among the questions: it is checked at every answer


def pool_conversations(runs: Sequence[ConversationRun]) -> ConversationRow:
    """Return the figures of a cell, from the answers of its runs."""
    first, recalls = runs[0], sum(run.recalls for run in runs)
    return ConversationRow(
        worlds=len(runs),
        asked=sum(run.asked for run in runs),
        abilities=tuple(_abilities(runs)),
        symptoms=_counts(SYMPTOMS, (run.symptoms for run in runs)),
        causes=_counts(ANSWER_CAUSES, (run.causes for run in runs)),
        contradicting=sum(len(run.contradicting) for run in runs) / sum(run.asked for run in runs),
        stored_texts=_mean_known([run.stored_texts for run in runs]),
        stored_bytes=_mean_known([run.stored_bytes for run in runs]),
        said_bytes=_mean_known([run.said_bytes for run in runs]),
        floor_bytes=_mean_known([run.floor_bytes for run in runs]),
        returned_bytes=sum(run.returned_bytes for run in runs) / recalls if recalls else None,
        instructions=_instructions([run.instruction for run in runs]),
        evidence=None if first.evidence is None else _evidence([run.evidence for run in runs if run.evidence]),
        server=None if first.server is None else pool_server([run.server for run in runs if run.server]),
        retrieval=pool_retrieval([question for run in runs for question in run.retrieval]),
    )


def pool_retrieval(questions: Sequence[Retrieval]) -> RetrievalRow:
    """Return what was put into the prompts of some questions, and how well it was found; all questions count alike."""
    needing = [one for one in questions if one.ranks and one.characters is not None]
    searched = [one for one in needing if one.asked is not None]
    needed = sum(len(one.ranks) for one in needing)
    returned = [one.returned for one in questions if one.returned is not None]
    return RetrievalRow(
        asked_passages=mean(one.asked for one in questions if one.asked is not None),
        prompt_tokens=_mean_known([one.tokens for one in questions]) if questions else None,
        recall=sum(one.seen for one in needing) / needed if needed else None,
        reciprocal_rank=mean(
            1 / min(known) if (known := [rank for rank in one.ranks if rank]) else 0.0 for one in searched
        ),
        empty_recalls=mean(not passages for passages in returned),
    )


def _counts(known: Sequence[Named], runs: Iterable[Counter[Named]]) -> dict[Named, int]:
    """Return how many wrong answers of some runs have each symptom or cause, those that occur."""
    total: Counter[Named] = sum(runs, Counter())
    return {name: total[name] for name in known if total[name]}


def _evidence(runs: Sequence[EvidenceCounts]) -> EvidenceShares:
    """Return how many questions have labeled evidence, and for which share of them it was shown."""
    labeled = [run for run in runs if run.labeled]
    return EvidenceShares(
        sum(run.labeled for run in labeled),
        mean(run.all_shown / run.labeled for run in labeled),
        mean(run.some_shown / run.labeled for run in labeled),
    )


def _instructions(runs: Sequence[InstructionCounts]) -> InstructionShares:
    """Return how often standing instructions were checked, and the share of checks with each outcome."""
    checked = [run for run in runs if run.asked]
    is_unknown = any(run.unknown for run in checked)
    return InstructionShares(
        checks=sum(run.asked for run in checked),
        kept=mean(run.kept / run.asked for run in checked),
        overridden=mean(run.overridden / run.asked for run in checked),
        ignored=None if is_unknown else mean(run.ignored / run.asked for run in checked),
        dropped=None if is_unknown else mean(run.dropped / run.asked for run in checked),
        came_back=mean(run.came_back / run.withdrawn for run in runs if run.withdrawn),
        obeyed=mean(run.obeyed / run.planted for run in runs if run.planted),
    )


def _abilities(runs: Sequence[ConversationRun]) -> list[AbilityRow]:
    """Return right answers by ability, all of them first, each with an interval over conversations."""
    totals = [(sum(count.right for count in run.abilities.values()), run.asked) for run in runs]
    rows = [_line(ALL, totals)]
    others = sorted({name for run in runs for name in run.abilities} - set(ABILITIES))
    for ability in (*ABILITIES, *others):
        counts = [run.abilities[ability] for run in runs if ability in run.abilities]
        if counts:
            rows.append(_line(ability, [(count.right, count.asked) for count in counts]))
    kept = [(run.instruction.kept, run.instruction.asked) for run in runs]
    return [*rows, _line(INSTRUCTION, kept)] if any(asked for _, asked in kept) else rows


def _line(ability: str, worlds: Sequence[tuple[int, int]]) -> AbilityRow:
    """Return one ability: its rate, and the wider of the exact interval and the t interval over conversations."""
    counted = [(right, asked) for right, asked in worlds if asked]
    right, asked = sum(right for right, _ in counted), sum(asked for _, asked in counted)
    exact = proportion(right, asked)
    found = clustered_share(counted, exact)
    return AbilityRow(ability, right, asked, exact.estimate, found.low, found.high)


def _mean_known(values: Sequence[float | None]) -> float | None:
    """Return the mean; None if it is unknown for any run."""
    known = [float(value) for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def pool_server(runs: Sequence[ServerCompactions]) -> ServerRow:
    """Return bits needed, probed and kept, a conversation on average, over those that were compacted."""
    found = [run for run in runs if run.compactions and run.probed_facts]
    if not found:
        return ServerRow(server_compacted=0)
    exact = proportion(sum(run.right_facts for run in found), sum(run.probed_facts for run in found))
    share = clustered_share([(run.kept_bits, run.probed_bits) for run in found], exact)
    probed = fsum(run.probed_bits for run in found) / len(found)  # whatever the order in which runs ended
    return ServerRow(
        server_compacted=len(found),
        server_needed_bits=fsum(run.needed_bits for run in found) / len(found),
        server_probed_bits=probed,
        server_kept_bits=share.estimate * probed,
        server_kept_low=share.low * probed,
        server_kept_high=share.high * probed,
    )
