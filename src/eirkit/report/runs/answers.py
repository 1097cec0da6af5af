"""Headline of a sweep's page: how much was lost, why steps were wrong, and whether restoring results repaired it.

Statements about lost information come only from cells that pass the full-information control. Where it was not run or
is undecided the page says that its figures are descriptive; cells that fail it say nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eirkit.lacuna.findings.command_line import selftest_command
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, OUTCOME_MEASURES
from eirkit.lacuna.findings.summary import LOST, NOT_ASKED, is_unread
from eirkit.records.events import Cause
from eirkit.records.evidence import RescueResult
from eirkit.records.runs import CAUSES, Outcome
from eirkit.records.settings import TEXT
from eirkit.records.sweeps import CellRow, FailureGroup, Manifest
from eirkit.report.document import Headline
from eirkit.report.runs.folder import Coordinates
from eirkit.report.table import counted, listed, share

MOST_REASONS = 4  # in the headline


@dataclass(frozen=True, slots=True)
class Losses:
    """What some cells lost, and why their steps were wrong. A share with no cases is None."""

    cells: int
    runs: int
    external: bool  # losses of an external memory; otherwise of the records in context
    memory: str | None  # its name, if there is only one
    needed: int | None  # results that were needed from an external memory
    lost_share: float | None
    unasked_share: float | None  # part of lost_share: records never written or never searched for
    unused_share: float | None  # not part of lost_share: records returned but not used for the answer
    unclear_share: float | None  # not part of lost_share: records of which it is not known whether they were returned
    steps: int  # scored
    wrong_steps: int
    error_shares: Mapping[Cause, float | None]  # of scored steps; mean over runs
    claims: bool  # the cells pass the control; otherwise the figures are only descriptive

    @property
    def all_came_back(self) -> bool:
        """True if an external memory lost nothing."""
        return self.external and self.lost_share == 0 and not self.unclear_share


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a rescue at steps with a miss; for several models, the smallest effect."""

    steps: int
    oracle: float  # the lowest of the models
    sham: float  # the highest
    control: float  # the highest
    condition: str
    claims: bool
    alike: bool = True  # measured under a condition of the sweep itself
    models: int = 1
    memory: str | None = None  # behind the agent; then the steps are those at which it did not bring what was missing
    shown: bool = True  # restoring did more than nothing and more than a sham

    @property
    def sentence(self) -> str:
        """The result in words; it is called repair only if it is shown and no step was right without an injection."""
        least, most = ("", "") if self.models == 1 else ("at least ", "at most ")
        each = "" if self.models == 1 else f" with each of {self.models} models"
        oracle, sham = f"{least}{share(self.oracle)}", f"{most}{share(self.sham)}"
        if self.shown and self.control == 0:
            return f"restoring it repairs {oracle}{each} (sham {sham})"
        arms = f"sham {sham}, nothing {most}{share(self.control)}"
        said = f"of steps {self.where} {oracle} are right with it restored{each} ({arms})"
        return said if self.shown else f"restoring it is not shown to repair anything: {said}"

    @property
    def where(self) -> str:
        """The words that follow `steps`, saying which steps were measured."""
        return "with a miss" if self.memory is None else f"where {self.memory} did not retrieve an input"


def losses_of(rows: Sequence[CellRow]) -> Losses | None:
    """Return the losses over cells that pass the control, else over those not excluded; None without any."""
    scored = [row for row in rows if row.scored and row.validity.sentence is None and not is_unread(row)]
    sound = [row for row in scored if row.claims]
    basis = sound or [row for row in scored if not row.is_withheld]
    if not basis:
        return None
    stored = [row for row in basis if _asked(row)]
    counted_rows = stored or basis
    memories = list({row.memory for row in stored})
    missed = _mean_over_runs((row.miss_rate, row.scored) for row in basis)
    return Losses(
        cells=len(counted_rows),
        runs=sum(row.scored for row in counted_rows),
        external=bool(stored),
        memory=memories[0] if len(memories) == 1 else None,
        needed=sum(map(_asked, stored)) if stored else None,
        lost_share=_share_of(stored, *LOST) if stored else missed,
        unasked_share=_share_of(stored, *NOT_ASKED) if stored else None,
        unused_share=_share_of(stored, "not_used") if stored else None,
        unclear_share=_share_of(stored, "unclear") if stored else None,
        steps=sum(row.steps for row in counted_rows),
        wrong_steps=sum(sum(row.errors.values()) for row in counted_rows),
        error_shares={cause: _error_share(counted_rows, cause) for cause in CAUSES},
        claims=bool(sound),
    )


def _error_share(rows: Sequence[CellRow], cause: Cause) -> float | None:
    """Return the share of scored steps that were wrong for one cause, as a mean over the runs of all rows."""
    return _mean_over_runs((row.error_shares[cause], row.scored) for row in rows)


def _mean_over_runs(figures: Iterable[tuple[float | None, int]]) -> float | None:
    """Return the mean of figures of cells, weighted by their runs; None if no figure is known."""
    known = [(figure, runs) for figure, runs in figures if figure is not None]
    runs = sum(runs for _, runs in known)
    return math.fsum(figure * runs for figure, runs in known) / runs if runs else None


def _asked(row: CellRow) -> int:
    """Return how many results were needed from an external memory."""
    return 0 if row.memory_system is None else sum(row.memory_system.outcomes.values())


def _share_of(rows: Sequence[CellRow], *outcomes: Outcome) -> float:
    """Return the share of needed records with one of these outcomes, as a mean over the runs that needed any.

    Records that were not used, and unclear ones, are not lost.
    """
    systems = [row.memory_system for row in rows if row.memory_system is not None]
    total = math.fsum(
        system.needing_runs * system.outcome_shares.get(outcome, 0.0) for system in systems for outcome in outcomes
    )
    return total / sum(system.needing_runs for system in systems)


def repair_of(result: RescueResult, condition: str = "") -> Repair | None:
    """Return the result of a rescue over models that have not failed the control; None if there are none.

    Models are not pooled: for several models it has the lowest oracle and the highest sham and control accuracy.

    Args:
        condition: what it was measured on; taken from the result by default.
    """
    rows = [row for row in result.rows if row.accuracy is not None and not row.is_withheld]
    accuracies = {
        arm: [row.accuracy for row in rows if row.arm == arm and row.accuracy is not None]
        for arm in ("oracle", "sham", "control")
    }
    if not all(accuracies.values()):
        return None
    restored = [row for row in rows if row.arm == "oracle"]
    models = {row.model for row in restored}
    return Repair(
        steps=sum(row.steps for row in restored),
        oracle=min(accuracies["oracle"]),
        sham=max(accuracies["sham"]),
        control=max(accuracies["control"]),
        condition=condition or result.where,
        claims=all(row.claims for row in rows),
        models=len(models),
        memory=result.memory,
        shown=_is_shown(result, models),
    )


def _is_shown(result: RescueResult, models: Collection[str]) -> bool:
    """True if restoring did more than nothing and more than a sham, with every model."""
    if any(validity.finding for model, validity in result.validity.items() if model in models):
        return False
    chosen = [contrast for contrast in result.contrasts if contrast.arms[0] == "oracle" and contrast.model in models]
    return len(chosen) == 2 * len(models) and all(contrast.difference.low > 0 for contrast in chosen)


def headline_of(
    rows: Sequence[CellRow],
    losses: Losses | None,
    repair: Repair | None,
    rescue_command: str,
    control_command: str,
    failures: Sequence[FailureGroup] = (),
    ranked: Headline | None = None,
) -> Headline:
    """Return the headline: one number, then the answer in sentences.

    Args:
        ranked: the ranking of several memories, which takes the place of what they lost together.
        failures: groups of runs that infrastructure errors broke; they are the answer if no run was scored.
    """
    if failures and not any(row.scored for row in rows):
        return _breakdown(failures)
    doubts = [f"{row.model}{row.held}: {doubt}." for row in rows if (doubt := row.validity.sentence) is not None]
    if losses is None:
        silence = doubts or _silence(rows)
        best = max((row for row in rows if row.accuracy is not None), key=lambda row: row.accuracy or 0.0, default=None)
        if best is None:
            return Headline("0", "runs have come to their end", tuple(silence))
        told = f"of the steps were right with {best.model}{best.held}; nothing may be said about lost information"
        return Headline(share(best.accuracy), told, tuple(silence))
    opening = [_answer(rows, losses, repair), *_range(rows, losses)] if ranked is None else list(ranked.sentences)
    sentences = [*opening, *doubts]
    if repair is None and losses.wrong_steps and not losses.all_came_back:
        what = "it repairs them" if ranked is None else "lost records repairs wrong steps"
        sentences.append(f"Whether restoring {what} was not measured; run `{rescue_command}`.")
    if repair is not None and losses.wrong_steps and not repair.claims:
        sentences.append("No full-information control of the rescue's own passes, so what restoring did describes.")
    if losses.lost_share or losses.wrong_steps or not losses.claims:  # else nothing is claimed that could be doubted
        control = f"run `{control_command}`"
        if all(row.model.startswith("agent/") for row in rows):  # which eirkit cannot start
            control = "let the agent come again to `eirkit mcp serve` with --h at least n, where nothing is missing"
        sentences += [*_standing(rows, losses, control), *_left_out(rows, losses)]
    if ranked is not None:
        return Headline(ranked.number, ranked.caption, tuple(sentences))
    if (ends := None if losses.external else _least_and_most_accurate(rows, losses)) is not None:
        return Headline(*ends, tuple(sentences))
    return Headline(share(1.0 if losses.all_came_back else losses.lost_share), _caption(losses), tuple(sentences))


@dataclass(frozen=True, slots=True)
class UnreadReplies:
    """A model whose replies mostly had not the form that was asked for, and the command that looks into it."""

    model: str
    unread: int
    replies: int
    command: str
    is_text: bool  # that the form was one line of text, which every server takes

    @property
    def sentence(self) -> str:
        which = f"{share(self.unread / self.replies)} of {self.replies:,} replies"
        said = f"{self.model}: {which} could not be read in the form asked for, so nothing is said about memory"
        otherwise = "" if self.is_text else ", and use `--protocol text` if its server takes no notice of that form"
        return f"{said}; run `{self.command}`{otherwise}."


def unread_replies(rows: Sequence[CellRow], manifest: Manifest) -> list[UnreadReplies]:
    """Return the models whose replies mostly could not be read, over the settings in which that is so."""
    given = {model: grid["model_options"] for grid in manifest.settings["grid"] for model in grid["model"]}
    found: dict[str, list[CellRow]] = {}
    for row in rows:
        if row.scored and is_unread(row) and row.model in given:  # not an agent that came by itself
            found.setdefault(row.model, []).append(row)
    return [
        UnreadReplies(
            model,
            sum(row.faults["malformed"] for row in own),
            sum(row.steps for row in own),
            selftest_command(model, manifest),
            given[model].get("protocol") == TEXT,
        )
        for model, own in found.items()
    ]


def unread_headline(rows: Sequence[CellRow], manifest: Manifest) -> Headline | None:
    """Return the headline of a sweep in whose every setting most replies could not be read; None for another one."""
    scored = [row for row in rows if row.scored]
    if not (found := unread_replies(scored, manifest)) or not all(map(is_unread, scored)):
        return None
    unread = sum(one.unread for one in found) / sum(one.replies for one in found)
    caption = "of replies could not be read in the form asked for"
    return Headline(share(unread), caption, tuple(one.sentence for one in found))


def _least_and_most_accurate(rows: Sequence[CellRow], losses: Losses) -> tuple[str, str] | None:
    """Return the lowest accuracy of the settings that are shown and, in words, the highest; None for one setting."""
    shown = _shown(rows, losses)
    if len(shown) < 2:
        return None
    least, most = (pick(shown, key=lambda row: row.accuracy or 0.0) for pick in (min, max))
    if least.accuracy == most.accuracy:
        return share(least.accuracy), f"of steps were right in each of {counted(len(shown), 'setting')}"
    named = Coordinates(shown)
    rest = f"{share(most.accuracy)} ({named.label(most)})"
    return share(least.accuracy), f"of steps were right ({named.label(least)}), {rest}"


def _breakdown(failures: Sequence[FailureGroup]) -> Headline:
    """Return the headline if every run failed: the reasons with their numbers of runs, most frequent first."""
    reasons: Counter[str] = Counter()
    for group in failures:
        reasons[f"{group.kind}: {group.message}"] += group.runs
    ordered = reasons.most_common()
    told = [f"{counted(runs, 'run')}: {reason.rstrip('.')}." for reason, runs in ordered[:MOST_REASONS]]
    if len(ordered) > MOST_REASONS:
        told.append(f"{len(ordered) - MOST_REASONS} more reasons are listed below.")
    lost = sum(reasons.values())
    return Headline(
        "0", f"of {counted(lost, 'run')} came to an end; all of them failed, and none is scored", tuple(told)
    )


def _silence(rows: Sequence[CellRow]) -> list[str]:
    if not any(row.scored for row in rows):
        return ["No run has come to its end, so there is nothing to say yet."]
    return [
        "No model here answers well enough where nothing is missing, so nothing is claimed about lost information.",
        "See the control below, or try another model.",
    ]


def _caption(losses: Losses) -> str:
    if losses.all_came_back:
        used = "" if losses.unused_share else " and used"
        return f"of records needed from memory were retrieved{used} ({losses.needed:,} of {losses.needed:,})"
    if losses.external:
        return "of records needed from memory were not retrieved"
    return "of the steps that need an earlier answer lacked it in context"


def _answer(rows: Sequence[CellRow], losses: Losses, repair: Repair | None) -> str:
    shown = [row for row in _shown(rows, losses) if row.miss_rate is not None]
    together = losses.external or len(shown) < 2
    parts = [_loss(losses), _causes(losses.error_shares)] if together else _by_setting(shown)
    if repair is not None and losses.wrong_steps:
        is_whole = repair.alike and losses.cells == 1  # what is said before is about the same steps
        parts.append(repair.sentence if is_whole else f"{repair.sentence}, measured on {repair.condition}")
    return f"{'; '.join(parts)}."


def _loss(losses: Losses) -> str:
    lost = share(losses.lost_share)
    if not losses.external:
        said = f"{lost} of the steps that need an earlier answer lacked it in context"
        return f"{said}, and all were correct" if losses.lost_share and not losses.wrong_steps else said
    whose, unasked = "it" if losses.memory else "them", losses.unasked_share or 0.0
    beside = (("not_used", losses.unused_share), ("unclear", losses.unclear_share))
    who = losses.memory or "The memories together"
    unused = [f"{share(value)} {OUTCOME_MEASURES[outcome].label}" for outcome, value in beside if value]
    if losses.all_came_back:
        return f"{who} retrieved every record that the task needed from {whose}{_aside(unused)}"
    never = " or ".join(OUTCOME_MEASURES[outcome].label for outcome in NOT_ASKED)
    if unasked and math.isclose(unasked, losses.lost_share or 0.0):
        memory = losses.memory or "the memories"
        return f"{lost} of the records needed from {memory} were {never} by the agent, so no memory was tested"
    left = [f"{share(unasked)} {never}"] if unasked else []
    return f"{who} did not retrieve {lost} of the records needed from {whose}{_aside([*left, *unused])}"


def _aside(parts: Sequence[str]) -> str:
    return f" ({'; '.join(parts)})" if parts else ""


def _by_setting(rows: Sequence[CellRow]) -> list[str]:
    """Return what was lost and what was wrong in the settings at each end.

    Figures of all settings together would say which of them were run, such as which values of h.
    """
    named = Coordinates(rows)
    least, most = (pick(rows, key=lambda row: row.miss_rate or 0.0) for pick in (min, max))
    lacked = "of the steps that need an earlier answer lacked it in context"
    if least.miss_rate == most.miss_rate:
        loss = f"{share(least.miss_rate)} {lacked} in each of {counted(len(rows), 'setting')}"
    else:
        loss = (
            f"{share(least.miss_rate)} ({named.label(least)}) to {share(most.miss_rate)} ({named.label(most)}) {lacked}"
        )
    worst = max(rows, key=lambda row: _wrong(row.error_shares))
    return [loss, _causes(worst.error_shares, named.label(worst))]


def _wrong(shares: Mapping[Cause, float | None]) -> float:
    return math.fsum(value for value in shares.values() if value is not None)


def _causes(shares: Mapping[Cause, float | None], worst: str = "") -> str:
    """Return the share of wrong steps and the share of each cause, in words.

    Args:
        worst: the setting with the most wrong steps, if these are its shares.
    """
    if not (wrong := _wrong(shares)):
        return "no step was wrong"
    told = [f"{CAUSE_MEASURES[cause].label} {share(shares[cause])}" for cause in CAUSES if shares[cause]]
    said = f"at most {share(wrong)} of steps were wrong ({worst})" if worst else f"{share(wrong)} of steps were wrong"
    return f"{said}: {', '.join(told)}"


def _shown(rows: Sequence[CellRow], losses: Losses) -> list[CellRow]:
    """Return the rows that the losses are about."""
    sound = [row for row in rows if row.scored and row.validity.sentence is None]
    return [row for row in sound if (row.claims if losses.claims else not row.is_withheld)]


def _range(rows: Sequence[CellRow], losses: Losses) -> list[str]:
    """Return a sentence that says over how many cells that is and, of memories, which lost least and most."""
    shown = _shown(rows, losses)
    if losses.external:
        shown = [row for row in shown if _asked(row)]
    lost = [(_share_of([row], *LOST) if losses.external else row.miss_rate, row) for row in shown]
    known = [(value, row) for value, row in lost if value is not None]
    if len(known) < 2:
        return []
    named = Coordinates([row for _, row in known])
    (least, best), (most, worst) = (pick(known, key=lambda pair: pair[0]) for pick in (min, max))
    pooled = f" ({named.counts})" if len(named.varying) > 1 else ""
    where = f"That is over {counted(losses.cells, 'setting')}{pooled} and {counted(losses.runs, 'run')}"
    if losses.all_came_back or not losses.external:
        return [f"{where}."]
    if least == most:
        return [f"{where}; the first share is {share(least)} in each."]
    return [f"{where}: from {share(least)} ({named.label(best)}) to {share(most)} ({named.label(worst)})."]


def _left_out(rows: Sequence[CellRow], losses: Losses) -> list[str]:
    """Return a sentence that names the models whose cells do not count, since the control does not speak for them."""
    silent = [row for row in rows if row.scored and row.validity.sentence is None and not row.claims]
    if not losses.claims or not silent:
        return []
    models = listed(list(dict.fromkeys(row.model for row in silent)))
    return [f"Not counted here: {counted(len(silent), 'setting')} of {models}; the control below says why."]


def _standing(rows: Sequence[CellRow], losses: Losses, control: str) -> Iterator[str]:
    """Yield whether the figures are claims about lost information, and if not, why and what would make them."""
    if losses.claims:
        yield "Where nothing is missing the same models answer well enough, so these are claims about lost information."
        return
    shown = [row for row in rows if row.scored and not row.is_withheld]
    open_controls = {f"{row.model} on {row.workload}": row.control for row in shown if row.control is not None}
    if open_controls:
        yield (
            "Whether these models answer well enough where nothing is missing is undecided, so this describes and "
            "claims nothing about lost information."
        )
    yield from (f"{name}: {standing.reason}." for name, standing in open_controls.items())
    if any(row.control is None for row in shown):
        which = " for some models" if open_controls else ""
        described = "this describes and claims nothing about lost information"
        yield f"No full-information control was run{which}, so {described}; {control}."
