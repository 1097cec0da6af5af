"""The first screen of a lacuna run: summary rows come in; shares, the sentences that say them and a dictionary go out.

Whatever speaks of lost information comes from cells that pass the full-information control; without one the page says
that it describes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eirkit.findings.causes import CAUSES
from eirkit.findings.fates import FATES, Fate
from eirkit.show.page import Headline
from eirkit.show.phrases import counted, share
from eirkit.show.runs.folder import Coordinates

Row = Mapping[str, Any]
MOST_REASONS = 4  # on the first screen


@dataclass(frozen=True, slots=True)
class Losses:
    """What some cells lost, and why their steps were wrong. Shares of nothing are None."""

    cells: int
    runs: int
    external: bool  # of what an external memory was there for; else of what was held in sight
    memory: str | None  # its name, where there is one alone
    needed: int | None  # results that were needed from an external memory
    lost_share: float | None
    unasked_share: float | None  # part of it, of an external memory: never written, or never searched for
    unused_share: (
        float | None
    )  # no part of it: came back from an external memory, and the answer does not follow from it
    wrong_steps: int
    state_supply_share: float | None
    cascade_share: float | None
    computation_share: float | None
    unanswered_share: float | None  # of wrong steps; part of the former: never reached, or left without an answer
    claims: bool  # the cells pass the control; else this describes and claims nothing

    @property
    def all_came_back(self) -> bool:
        """True where an external memory lost nothing."""
        return self.external and self.lost_share == 0


@dataclass(frozen=True, slots=True)
class Repair:
    """What the rescue found at steps that miss something. Of several models the least that it shows for any of them."""

    steps: int
    oracle: float  # the lowest of the models
    sham: float  # the highest
    control: float  # the highest
    condition: str
    claims: bool
    alike: bool = True  # measured under a condition of the sweep itself
    models: int = 1
    memory: str | None = None  # behind the agent; then the steps are those at which it did not bring what was missing

    @property
    def sentence(self) -> str:
        """What came of restoring what was missing; it is called repair only where nothing was right without."""
        least, most = ("", "") if self.models == 1 else ("at least ", "at most ")
        each = "" if self.models == 1 else f" with each of {self.models} models"
        oracle, sham = f"{least}{share(self.oracle)}", f"{most}{share(self.sham)}"
        if self.control == 0:
            return f"restoring it repairs {oracle}{each} (sham {sham})"
        arms = f"sham {sham}, nothing {most}{share(self.control)}"
        return f"of steps that {self.lacking} {oracle} are right with it restored{each} ({arms})"

    @property
    def lacking(self) -> str:
        """Which steps they are, after `steps that`."""
        return "miss something" if self.memory is None else f"{self.memory} left lacking"


def losses_of(rows: Sequence[Row]) -> Losses | None:
    """Return the losses over the cells that may carry claims, else over those without a control; None without any."""
    scored = [row for row in rows if row["scored"]]
    sound = [row for row in scored if row["claims"]]
    basis = sound or [row for row in scored if row["control"] is None]
    if not basis:
        return None
    stored = [row for row in basis if _asked(row)]
    counted_rows = stored or basis
    errors = {cause: sum(row["errors"][cause] for row in counted_rows) for cause in CAUSES}
    wrong = sum(errors.values())
    shares = {f"{cause}_share": errors[cause] / wrong if wrong else None for cause in CAUSES}
    return Losses(
        cells=len(counted_rows),
        runs=sum(row["scored"] for row in counted_rows),
        external=bool(stored),
        memory=_only({str(row["memory"]) for row in stored}),
        needed=sum(map(_asked, stored)) if stored else None,
        lost_share=_lost_by_stores(stored) if stored else _missed(basis),
        unasked_share=_share_of(stored, "unwritten", "not_sought") if stored else None,
        unused_share=_share_of(stored, "not_used") if stored else None,
        wrong_steps=wrong,
        unanswered_share=sum(map(_unanswered, counted_rows)) / wrong if wrong else None,
        claims=bool(sound),
        **shares,
    )


def _only(names: set[str]) -> str | None:
    return names.pop() if len(names) == 1 else None


def _unanswered(row: Row) -> int:
    kinds: Mapping[str, int] = row["kinds"]
    return kinds.get("unreached", 0) + kinds.get("unanswered", 0)


def _asked(row: Row) -> int:
    """Return how many results were needed from an external memory."""
    return 0 if row["memory_system"] is None else sum(_fates(row).values())


def _fates(row: Row) -> Mapping[str, int]:
    fates: Mapping[str, int] = row["memory_system"]["fates"]
    return fates


def _lost_by_stores(rows: Sequence[Row]) -> float:
    """Return the share of needed results out of sight that did not come back; what came back unused is not lost."""
    return _share_of(rows, *(fate for fate in FATES if fate not in ("used", "not_used")))


def _share_of(rows: Sequence[Row], *fates: Fate) -> float:
    """Return the share of needed results that had one of these fates."""
    return sum(_fates(row)[fate] for row in rows for fate in fates) / sum(map(_asked, rows))


def _missed(rows: Sequence[Row]) -> float | None:
    """Return the mean over runs of the share of consuming steps at which something was not held."""
    known = [row for row in rows if row["miss_rate"] is not None]
    runs = sum(row["scored"] for row in known)
    return math.fsum(row["miss_rate"] * row["scored"] for row in known) / runs if runs else None


def repair_of(document: Row, condition: str = "") -> Repair | None:
    """Return what a rescue says over the models that have not failed the control; None without any.

    Steps of different models are not pooled: of several models it is the least repair and the most that a sham did.

    Args:
        condition: what it was measured on; as the document has it unless given.
    """
    rows = [
        row for row in document["rows"] if row["accuracy"] is not None and (row["claims"] or row["control"] is None)
    ]
    arms = {arm: [row for row in rows if row["arm"] == arm] for arm in ("oracle", "sham", "control")}
    if not all(arms.values()):
        return None
    return Repair(
        steps=sum(row["steps"] for row in arms["oracle"]),
        oracle=min(row["accuracy"] for row in arms["oracle"]),
        sham=max(row["accuracy"] for row in arms["sham"]),
        control=max(row["accuracy"] for row in arms["control"]),
        condition=condition or f"{document['workload']}, m = {document['m']}, h = {document['h']}",
        claims=all(row["claims"] for row in rows),
        models=len({row["model"] for row in arms["oracle"]}),
        memory=document.get("memory"),
    )


def headline_of(
    rows: Sequence[Row],
    losses: Losses | None,
    repair: Repair | None,
    rescue_command: str,
    control_command: str,
    failures: Sequence[Row] = (),
) -> Headline:
    """Return the first screen: one number, then the answer in sentences.

    Args:
        failures: groups of runs that the world broke, which are the answer where no other run is left.
    """
    if failures and not any(row["scored"] for row in rows):
        return _breakdown(failures)
    if losses is None:
        return Headline("–", "nothing may be said yet", tuple(_silence(rows, _control(rows, control_command))))
    sentences = [_answer(losses, repair), *_range(rows, losses)]
    if repair is None and losses.wrong_steps and not losses.all_came_back:
        sentences.append(f"Whether restoring it repairs them was not measured; run `{rescue_command}`.")
    if repair is not None and losses.wrong_steps and not repair.claims:
        sentences.append("The rescue had no full-information control of its own, so what restoring did describes.")
    if losses.lost_share or losses.wrong_steps or not losses.claims:  # else nothing is claimed that could be doubted
        sentences.append(_standing(losses, _control(rows, control_command)))
    number = share(1.0 if losses.all_came_back else losses.lost_share)
    return Headline(number, _caption(losses), tuple(sentences))


def _control(rows: Sequence[Row], command: str) -> str:
    """Return how to have a control; an agent that comes by itself cannot be sent for."""
    if all(row["model"].startswith("agent/") for row in rows):
        return "let the agent come again to `eirkit mcp serve` with --h at least n, where nothing is missing"
    return f"run `{command}`"


def _breakdown(failures: Sequence[Row]) -> Headline:
    """Return why no run came to its end: each reason once, with how many runs it cost, the costliest first."""
    reasons: dict[str, int] = {}
    for group in failures:
        reason = f"{group['kind']}: {group['message']}"
        reasons[reason] = reasons.get(reason, 0) + group["runs"]
    ordered = sorted(reasons.items(), key=lambda entry: -entry[1])
    told = [f"{counted(runs, 'run')}: {reason.rstrip('.')}." for reason, runs in ordered[:MOST_REASONS]]
    if len(ordered) > MOST_REASONS:
        told.append(f"{len(ordered) - MOST_REASONS} more reasons are listed below.")
    lost = sum(reasons.values())
    return Headline(
        "0", f"of {counted(lost, 'run')} came to an end; all of them failed, and none is scored", tuple(told)
    )


def _silence(rows: Sequence[Row], control: str) -> list[str]:
    if not any(row["scored"] for row in rows):
        return ["No run has come to its end, so there is nothing to say yet."]
    return [
        "No model here answers well enough where nothing is missing, so nothing is claimed about lost information.",
        f"See the control below, try another model, or look closer: {control}.",
    ]


def _caption(losses: Losses) -> str:
    if losses.all_came_back:
        back = "came back" if losses.unused_share else "came back into use"
        return (
            f"of the results that the task needed back from the memory {back} ({losses.needed:,} of {losses.needed:,})"
        )
    if losses.external:
        return "of the results that the task needed back from the memory did not come back"
    return "of the steps that build on earlier results lacked one of them"


def _answer(losses: Losses, repair: Repair | None) -> str:
    parts = [_loss(losses), _causes(losses)]
    if repair is not None and losses.wrong_steps:
        parts.append(repair.sentence if repair.alike else f"{repair.sentence}, measured on {repair.condition}")
    return f"{'; '.join(parts)}."


def _loss(losses: Losses) -> str:
    lost = share(losses.lost_share)
    if not losses.external:
        if losses.lost_share and not losses.wrong_steps:
            return f"{lost} of the steps needed what was no longer in sight, and the agent had it all the same"
        return f"{lost} of the steps needed an earlier result that was no longer in sight"
    needed, unasked = f"the task needed from {'it' if losses.memory else 'them'}", losses.unasked_share or 0.0
    unused = [f"{share(losses.unused_share)} came back and did not enter the answer"] if losses.unused_share else []
    if losses.all_came_back:
        return f"{_named(losses)} brought back all that {needed}{_aside(unused)}"
    if unasked and math.isclose(unasked, losses.lost_share or 0.0):
        return (
            f"The agent never wrote or never searched for {lost} of what the task needed from "
            f"{losses.memory or 'the memories'}, which puts no memory to the test"
        )
    left = [f"{share(unasked)} was never written or never searched for"] if unasked else []
    return f"{_named(losses)} lost {lost} of what {needed}{_aside([*left, *unused])}"


def _aside(parts: Sequence[str]) -> str:
    return f" ({'; '.join(parts)})" if parts else ""


def _named(losses: Losses) -> str:
    """Return the memory by its name, where there is one alone."""
    return losses.memory or "The memories together"


def _causes(losses: Losses) -> str:
    if not losses.wrong_steps:
        return "no step was wrong"
    cascade = f", {share(losses.cascade_share)} follow from an earlier wrong answer" if losses.cascade_share else ""
    supply, unanswered = share(losses.state_supply_share), losses.unanswered_share or 0.0
    arithmetic = share((losses.computation_share or 0.0) - unanswered)
    never = f", {share(unanswered)} were never answered" if unanswered else ""
    return f"{supply} of wrong steps are missing state{cascade}{never}, {arithmetic} are the model’s own mistakes"


def _range(rows: Sequence[Row], losses: Losses) -> list[str]:
    """Name the cells that lost least and most, where there are several."""
    shown = [row for row in rows if row["scored"] and (row["claims"] or not losses.claims)]
    if losses.external:
        shown = [row for row in shown if _asked(row)]
    lost = [(_lost_by_stores([row]) if losses.external else row["miss_rate"], row) for row in shown]
    known = [(value, row) for value, row in lost if value is not None]
    if len(known) < 2:
        return []
    named = Coordinates([row for _, row in known])
    (least, best), (most, worst) = min(known, key=_first), max(known, key=_first)
    where = f"That is over {counted(losses.cells, 'cell')} and {counted(losses.runs, 'run')}"
    if least == most:
        return [f"{where}." if losses.all_came_back else f"{where}, {share(least)} in each."]
    return [f"{where}: from {share(least)} ({named.label(best)}) to {share(most)} ({named.label(worst)})."]


def _first(pair: tuple[float, Row]) -> float:
    return pair[0]


def _standing(losses: Losses, control: str) -> str:
    if losses.claims:
        return (
            "Where nothing is missing the same models answer well enough, so these are claims about lost information."
        )
    return (
        f"No full-information control was run, so this describes and claims nothing about lost information; {control}."
    )


def answers_json(losses: Losses | None, repair: Repair | None) -> dict[str, Any]:
    """Return the figures of the first screen under their names."""
    return {
        "losses": None if losses is None else asdict(losses),
        "repair": None if repair is None else asdict(repair),
    }
