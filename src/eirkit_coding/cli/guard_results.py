"""`eirkit guard results`: what the trial of the guard shows, and on simulated trials how often that is right."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click

from eirkit.cli.command import Show, command, document_options, option
from eirkit.errors import UsageError
from eirkit.measures import Measure
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table, counted, number, share
from eirkit.vestige.cohorts.finding import holm
from eirkit.vestige.measures import LOG_MEASURES, TRIAL_MEASURES
from eirkit_coding.guard.effects import POWER, TRIALS, Effect, SimulatedCoverage, TrialUnit, calibrate, effects
from eirkit_coding.guard.hook import guard_folder
from eirkit_coding.guard.outcomes import MOST_TURNS, CompactionOutcome, Measured, measure
from eirkit_coding.guard.trial import ARMS, PLANNED, Arm, DrawnCompaction, read_draws

_FIELDS = ("reread_tokens", "tokens_to_edit", "turns_to_edit", "failed_edits", "broken_rules")
_MEASURES = (
    TRIAL_MEASURES["reread_after_tokens"],
    TRIAL_MEASURES["to_edit_tokens"],
    TRIAL_MEASURES["to_edit_turns"],
    LOG_MEASURES["edit_failures"],
    TRIAL_MEASURES["broken_rules"],
)  # in the order of the fields
_AGAINST: tuple[Arm, ...] = ("nothing", "sham")
_SIGNIFICANT = 0.05
_KINDS = {"none": "no effect", "constant": "the same everywhere", "varying": "varying"}


@command(example="eirkit guard results")
@option(
    "--effect",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.25,
    show_default=True,
    metavar="SHARE",
    help="The change worth finding, as a share of the mean without the guard.",
)
@option("--simulate", is_flag=True, help="Show on simulated trials how often the intervals contain the true effect.")
@option(
    "--trials", type=click.IntRange(1), default=TRIALS, show_default=True, help="With --simulate: trials of each kind."
)
@option(
    "--compactions",
    type=click.IntRange(3),
    default=PLANNED,
    show_default=True,
    help="With --simulate: compactions of each trial.",
)
@option(
    "--seed", type=click.IntRange(0, 1 << 63), default=0, show_default=True, help="With --simulate: the first seed."
)
@document_options
def results(effect: float, simulate: bool, trials: int, compactions: int, seed: int, show: Show) -> None:
    """Compare the arms of the guard's trial, with intervals that assume nothing but its random draws.

    The turns after each compaction are measured from the session's log, and the figures are stored. There is no answer
    until all planned compactions are measured.
    """
    if simulate:
        show(_simulation_document(trials, compactions, seed))
        return
    folder = guard_folder()
    draws = read_draws(folder)
    if not draws:
        raise UsageError("no compaction has been drawn yet; start with `eirkit guard install AGENT --trial`")
    planned = draws[-1].planned
    own = [draw for draw in draws if draw.seed == draws[-1].seed][:planned]
    found = measure(own, folder, time.time())
    show(_results_document(_Trial(own, planned, found), effect))


@dataclass(frozen=True, slots=True)
class _Trial:
    """The trial that was begun last."""

    draws: Sequence[DrawnCompaction]  # at most as many as planned
    planned: int
    measured: Measured

    @property
    def is_over(self) -> bool:
        return len(self.draws) == self.planned and not self.measured.open

    def units(self) -> list[TrialUnit]:
        return [TrialUnit(draw.block, draw.arm, _values(one)) for draw, one in self.measured.outcomes.items()]

    def effects(self) -> list[tuple[Measure, Effect]]:
        units = self.units()
        seed = self.draws[0].seed & ((1 << 64) - 1)
        return [
            (measure, one)
            for other in _AGAINST
            for measure, one in zip(_MEASURES, effects(units, "restore", other, seed=seed), strict=False)
        ]


def _values(outcome: CompactionOutcome) -> tuple[float, ...]:
    return tuple(float(getattr(outcome, name)) for name in _FIELDS)


def _results_document(trial: _Trial, effect: float) -> Document:
    found = trial.effects()
    corrected = holm([one.p for _, one in found])
    rows = [_row(measure, one, p, effect, trial) for (measure, one), p in zip(found, corrected, strict=True)]
    arms = [_arm(arm, trial) for arm in ARMS]
    lost = trial.measured.lost
    data = {
        "seed": trial.draws[0].seed,
        "planned": trial.planned,
        "drawn": len(trial.draws),
        "measured": len(trial.measured.outcomes),
        "open": len(trial.measured.open),
        "lost": [{"session": draw.session, "reason": reason} for draw, reason in lost],
        "is_over": trial.is_over,
        "effect": effect,
        "arms": arms,
        "effects": rows,
    }
    sections = [
        _arms_section(arms),
        *(_effect_section(other, rows) for other in _AGAINST),
        _power_section(rows, effect),
    ]
    if lost:
        words = f"{counted(len(lost), 'compaction')} cannot be measured; the first one because {lost[0][1]}."
        sections.append(Section("Not measured", (words,)))
    following = "" if trial.is_over else "eirkit guard status"
    return Document(
        "guard-results", "The trial of the guard", tuple(_answer(trial, rows)), data, tuple(sections), next=following
    )


def _row(measure: Measure, one: Effect, p: float | None, effect: float, trial: _Trial) -> dict[str, Any]:
    told = len(trial.measured.outcomes)
    sought = effect * one.other_mean if one.other_mean else None
    wanted = None if sought is None else one.wanted(sought, told)
    return {
        "measure": measure.id,
        "label": measure.label,
        "arm": one.arm,
        "against": one.other,
        "compactions": one.compactions,
        "mean": one.mean,
        "mean_against": one.other_mean,
        "difference": one.estimate,
        "low": one.low,
        "high": one.high,
        "p": one.p,
        "p_holm": p,
        "sought": sought,
        "power": None if sought is None else one.power(sought),
        "detectable": one.detectable(),
        "wanted": wanted,
        "still_wanted": None if wanted is None else max(0, wanted - told),
    }


def _arm(arm: Arm, trial: _Trial) -> dict[str, Any]:
    own = [one for draw, one in trial.measured.outcomes.items() if draw.arm == arm]
    drawn = Counter(draw.arm for draw in trial.draws)
    means = {
        measure.id: sum(getattr(one, name) for one in own) / len(own) if own else None
        for measure, name in zip(_MEASURES, _FIELDS, strict=True)
    }
    edited = sum(one.is_edited for one in own) / len(own) if own else None
    return {"arm": arm, "drawn": drawn[arm], "measured": len(own), "edited": edited, **means}


def _answer(trial: _Trial, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    told = len(trial.measured.outcomes)
    if not trial.is_over:
        waiting = f", {counted(len(trial.measured.open), 'session')} not over yet" if trial.measured.open else ""
        yield (
            f"No answer yet: {told:,} of {trial.planned:,} planned compactions are measured{waiting}. "
            "The figures below may change."
        )
        return
    clear = [row for row in rows if row["p_holm"] is not None and row["p_holm"] <= _SIGNIFICANT]
    for row in clear:
        verb = "lowers" if row["difference"] < 0 else "raises"
        yield (
            f"Restoring {verb} {row['label']} by {number(abs(row['difference']), 1)} per compaction "
            f"against {row['against']} (95% {_interval(row)}; p {_p(row['p_holm'])}, "
            f"corrected for {len(rows)} comparisons)."
        )
    if not clear:
        yield (
            f"No effect is shown by {counted(told, 'compaction')}: each difference between the arms could be chance. "
            "The intervals say which effects remain possible."
        )


def _interval(row: dict[str, Any]) -> str:
    if row["difference"] is None:
        return "–"
    low, high = row["low"], row["high"]
    digits = 0 if max(abs(low or 0), abs(high or 0), abs(row["difference"])) >= 100 else 2
    ends = ("no bound" if end is None else f"{end:+,.{digits}f}".replace("-", "−") for end in (low, high))
    return " to ".join(ends)


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _arms_section(arms: Sequence[dict[str, Any]]) -> Section:
    columns = (
        Column("arm", "arm"),
        Column("drawn", "drawn"),
        Column("measured", "measured"),
        *(_mean_column(measure) for measure in _MEASURES),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(dict(one) for one in arms)
    edited = ", ".join(f"{one['arm']} {share(one['edited'])}" for one in arms)
    note = (
        f"Means per compaction, over the turns up to the next break, at most {MOST_TURNS}. "
        f"Compactions after which a file was edited: {edited}."
    )
    return Section("Means", (), (Table("arms", "", columns, rows, note),))


def _mean_column(measure: Measure) -> Column:
    return Column.of(measure, digits=0 if measure.unit == "tokens" else 2)


def _effect_section(other: Arm, rows: Sequence[dict[str, Any]]) -> Section:
    columns = (
        Column("label", "restore against " + other),
        Column("difference", "difference", digits=2, signed=True),
        Column("interval", "95% interval", figures=True),
        Column("p", "p", least=0.001),
        Column("p_holm", "p, Holm", least=0.001),
    )
    shown: tuple[dict[str, Cell], ...] = tuple(
        {key: row.get(key) for key in ("label", "difference", "p", "p_holm")} | {"interval": _interval(row)}
        for row in rows
        if row["against"] == other
    )
    note = (
        "–: too few compactions, or nearly all have the same value."
        if any(r["difference"] is None for r in shown)
        else ""
    )
    return Section(f"Restore against {other}", (), (Table(f"against-{other}", "", columns, shown, note),))


def _power_section(rows: Sequence[dict[str, Any]], effect: float) -> Section:
    columns = (
        Column("label", "restore against nothing"),
        Column("sought", f"{effect:.0%} of the mean", digits=2),
        Column("power", "power", percent=True, digits=2),
        Column("detectable", f"seen with {POWER:.0%}", digits=2),
        Column("still_wanted", "compactions still needed"),
    )
    keys = ("label", "sought", "power", "detectable", "still_wanted")
    shown: tuple[dict[str, Cell], ...] = tuple(
        {key: row[key] for key in keys} for row in rows if row["against"] == "nothing"
    )
    note = (
        f"Power: how likely the measured compactions are to show a change of {effect:.0%}. The next column: the "
        f"smallest change that they show with a power of {POWER:.0%}. The last: how many more are needed to show a "
        f"change of {effect:.0%} with that power."
    )
    return Section("Power", (), (Table("power", "", columns, shown, note),))


def _simulation_document(trials: int, compactions: int, seed: int) -> Document:
    found = list(calibrate(tuple(measure.label for measure in _MEASURES), trials, compactions, seed))
    shares = [one.covered / one.trials for one in found if one.trials]
    wrong = [one.decided / one.trials for one in found if one.kind == "none" and one.trials]
    words = (
        f"Over {trials:,} simulated trials of {compactions:,} compactions of each kind, the 95% intervals contain "
        f"the true effect in {min(shares):.1%} to {max(shares):.1%}, by measure and kind.",
        f"Without an effect, p is at most {_SIGNIFICANT} in {min(wrong):.1%} to {max(wrong):.1%}.",
    )
    data = {"trials": trials, "compactions": compactions, "seed": seed, "calibration": [asdict(one) for one in found]}
    sections = (_simulated("independent", found), _simulated("dependent", found))
    return Document("guard-simulation", "Simulated trials of the guard", words, data, sections)


def _simulated(word: str, found: Sequence[SimulatedCoverage]) -> Section:
    columns = (
        Column("effect", "effect"),
        Column("measure", "measure"),
        Column("trials", "estimated"),
        Column("covered", "covered", percent=True),
        Column("decided", "p ≤ 0.05", percent=True),
        Column("expected", "by power", percent=True, meaning="how often p should be as small, by the power stated"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "effect": _KINDS[one.kind],
            "measure": one.measure,
            "trials": one.trials,
            "covered": one.covered / one.trials if one.trials else None,
            "decided": one.decided / one.trials if one.trials else None,
            "expected": one.expected / one.trials if one.trials else None,
        }
        for one in found
        if one.is_dependent == (word == "dependent")
    )
    told = {
        "independent": "Compactions of a session have nothing in common.",
        "dependent": "A session shares its pace, and an arm also changes what happens after the next compaction.",
    }
    return Section(f"{word.capitalize()} compactions", (told[word],), (Table(word, "", columns, rows),))
