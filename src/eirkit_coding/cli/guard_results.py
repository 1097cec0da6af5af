"""`eirkit guard results`: what the trial of the guard shows, and on simulated trials how often that is right."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
from msgspec import Struct, to_builtins

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

_MEASURES = (
    TRIAL_MEASURES["reread_after_tokens"],
    TRIAL_MEASURES["to_edit_tokens"],
    TRIAL_MEASURES["to_edit_turns"],
    LOG_MEASURES["edit_failures"],
    TRIAL_MEASURES["broken_rules"],
)
_AGAINST: tuple[Arm, ...] = ("nothing", "sham")
_SIGNIFICANT = 0.05
SOUGHT = 0.25  # the change worth finding, as a share of the mean without the guard
_KINDS = {"none": "no effect", "constant": "the same everywhere", "varying": "varying"}


@command(example="eirkit guard results")
@option(
    "--trials",
    type=click.IntRange(1),
    help=f"Show on so many simulated trials of each kind, such as {TRIALS:,}, how often the intervals are right.",
)
@option(
    "--compactions",
    type=click.IntRange(3),
    default=PLANNED,
    show_default=True,
    help="With --trials: compactions of each trial.",
)
@option("--seed", type=click.IntRange(0, 1 << 63), default=0, show_default=True, help="With --trials: the first seed.")
@document_options
def results(trials: int | None, compactions: int, seed: int, show: Show) -> None:
    """Compare the arms of the guard's trial, with intervals that assume nothing but its random draws.

    The turns after each compaction are measured from the session's log, and the figures are stored. There is no answer
    until all planned compactions are measured.
    """
    if trials is not None:
        show(_simulation_document(trials, compactions, seed))
        return
    folder = guard_folder()
    draws = read_draws(folder)
    if not draws:
        raise UsageError("no compaction has been drawn yet; start with `eirkit guard install AGENT --trial`")
    planned = draws[-1].planned
    own = [draw for draw in draws if draw.seed == draws[-1].seed][:planned]
    found = measure(own, folder, time.time())
    show(_results_document(_Trial(own, planned, found)))


@dataclass(frozen=True, slots=True)
class _Trial:
    """The trial that was begun last."""

    draws: Sequence[DrawnCompaction]  # at most as many as planned
    planned: int
    measured: Measured

    @property
    def is_over(self) -> bool:
        return len(self.draws) == self.planned and not self.measured.open

    def effects(self) -> list[tuple[Measure, Effect]]:
        units = [TrialUnit(draw.block, draw.arm, _values(own)) for draw, own in self.measured.outcomes.items()]
        seed = self.draws[0].seed & ((1 << 64) - 1)
        return [
            (measure, effect)
            for other in _AGAINST
            for measure, effect in zip(_MEASURES, effects(units, "restore", other, seed=seed), strict=False)
        ]


def _values(outcome: CompactionOutcome) -> tuple[float, ...]:
    """Return the values of an outcome in the order of the measures."""
    return (
        float(outcome.reread_tokens),
        float(outcome.tokens_to_edit),
        float(outcome.turns_to_edit),
        float(outcome.failed_edits),
        float(outcome.broken_rules),
    )


class ArmRow(Struct, frozen=True):
    """One arm of the trial, with the means of its compactions; None without any."""

    arm: Arm
    drawn: int
    measured: int
    edited: float | None  # share after which a file was edited
    reread_after_tokens: float | None
    to_edit_tokens: float | None
    to_edit_turns: float | None
    edit_failures: float | None
    broken_rules: float | None


class EffectRow(Struct, frozen=True, kw_only=True):
    """One measure of one arm against another."""

    measure: str
    label: str
    arm: str
    against: str
    compactions: int
    mean: float | None
    mean_against: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None  # corrected for all comparisons
    sought: float | None  # the change worth finding
    power: float | None
    detectable: float | None
    wanted: int | None
    still_wanted: int | None


class LostCompaction(Struct, frozen=True):
    """A compaction that cannot be measured."""

    session: str
    reason: str


class TrialResults(Struct, frozen=True, kw_only=True):
    """What `eirkit guard results` prints as JSON."""

    seed: int
    planned: int
    drawn: int
    measured: int
    open: int
    lost: tuple[LostCompaction, ...]
    is_over: bool
    effect: float
    arms: tuple[ArmRow, ...]
    effects: tuple[EffectRow, ...]


class Calibration(Struct, frozen=True):
    """What `eirkit guard results --trials` prints as JSON."""

    trials: int
    compactions: int
    seed: int
    calibration: tuple[SimulatedCoverage, ...]


def _results_document(trial: _Trial, effect: float = SOUGHT) -> Document:
    found = trial.effects()
    corrected = holm([own.p for _, own in found])
    lost = trial.measured.lost
    results = TrialResults(
        seed=trial.draws[0].seed,
        planned=trial.planned,
        drawn=len(trial.draws),
        measured=len(trial.measured.outcomes),
        open=len(trial.measured.open),
        lost=tuple(LostCompaction(draw.session, reason) for draw, reason in lost),
        is_over=trial.is_over,
        effect=effect,
        arms=tuple(_arm(arm, trial) for arm in ARMS),
        effects=tuple(_row(measure, own, p, effect, trial) for (measure, own), p in zip(found, corrected, strict=True)),
    )
    sections = [
        _arms_section(results.arms),
        *(_effect_section(other, results.effects) for other in _AGAINST),
        _power_section(results.effects, effect),
    ]
    if lost:
        words = f"{counted(len(lost), 'compaction')} cannot be measured; the first one because {lost[0][1]}."
        sections.append(Section("Not measured", (words,)))
    return Document(
        "guard-results",
        "The trial of the guard",
        tuple(_answer(results)),
        to_builtins(results),
        tuple(sections),
        next="" if trial.is_over else "eirkit guard status",
    )


def _row(measure: Measure, found: Effect, p: float | None, effect: float, trial: _Trial) -> EffectRow:
    measured = len(trial.measured.outcomes)
    sought = effect * found.other_mean if found.other_mean else None
    wanted = None if sought is None else found.wanted(sought, measured)
    return EffectRow(
        measure=measure.id,
        label=measure.label,
        arm=found.arm,
        against=found.other,
        compactions=found.compactions,
        mean=found.mean,
        mean_against=found.other_mean,
        difference=found.estimate,
        low=found.low,
        high=found.high,
        p=found.p,
        p_holm=p,
        sought=sought,
        power=None if sought is None else found.power(sought),
        detectable=found.detectable(),
        wanted=wanted,
        still_wanted=None if wanted is None else max(0, wanted - measured),
    )


def _arm(arm: Arm, trial: _Trial) -> ArmRow:
    own = [outcome for draw, outcome in trial.measured.outcomes.items() if draw.arm == arm]
    drawn = sum(draw.arm == arm for draw in trial.draws)
    if not own:
        return ArmRow(arm, drawn, 0, None, None, None, None, None, None)
    means = (sum(values) / len(own) for values in zip(*map(_values, own), strict=True))
    return ArmRow(arm, drawn, len(own), sum(outcome.is_edited for outcome in own) / len(own), *means)


def _answer(results: TrialResults) -> Iterator[str]:
    if not results.is_over:
        waiting = f", {counted(results.open, 'session')} not over yet" if results.open else ""
        yield (
            f"No answer yet: {results.measured:,} of {results.planned:,} planned compactions are measured{waiting}. "
            "The figures below may change."
        )
        return
    clear = False
    for row in results.effects:
        if row.difference is None or row.p_holm is None or row.p_holm > _SIGNIFICANT:
            continue
        clear = True
        p = f"{row.p_holm:.3f}" if row.p_holm >= 0.001 else "< 0.001"
        verb = "lowers" if row.difference < 0 else "raises"
        yield (
            f"Restoring {verb} {row.label} by {number(abs(row.difference), 1)} per compaction "
            f"against {row.against} (95% {_interval(row)}; p {p}, "
            f"corrected for {len(results.effects)} comparisons)."
        )
    if not clear:
        yield (
            f"No effect is shown by {counted(results.measured, 'compaction')}: each difference between the arms could "
            "be chance. The intervals say which effects remain possible."
        )


def _interval(row: EffectRow) -> str:
    if row.difference is None:
        return "–"
    digits = 0 if max(abs(row.low or 0), abs(row.high or 0), abs(row.difference)) >= 100 else 2
    ends = ("no bound" if end is None else f"{end:+,.{digits}f}".replace("-", "−") for end in (row.low, row.high))
    return " to ".join(ends)


def _arms_section(arms: Sequence[ArmRow]) -> Section:
    columns = (
        Column("arm", "arm"),
        Column("drawn", "drawn"),
        Column("measured", "measured"),
        *(Column.of(measure, digits=0 if measure.unit == "tokens" else 2) for measure in _MEASURES),
    )
    edited = ", ".join(f"{row.arm} {share(row.edited)}" for row in arms)
    note = (
        f"Means per compaction, over the turns up to the next break, at most {MOST_TURNS}. "
        f"Compactions after which a file was edited: {edited}."
    )
    return Section("Means", (), (Table("arms", "", columns, to_builtins(arms), note),))


def _effect_section(other: Arm, rows: Sequence[EffectRow]) -> Section:
    columns = (
        Column("label", "restore against " + other),
        Column("difference", "difference", digits=2, signed=True),
        Column("interval", "95% interval", figures=True),
        Column("p", "p", least=0.001),
        Column("p_holm", "p, Holm", least=0.001),
    )
    own = [row for row in rows if row.against == other]
    is_any_unknown = any(row.difference is None for row in own)
    note = "–: too few compactions, or nearly all have the same value." if is_any_unknown else ""
    shown = tuple({**to_builtins(row), "interval": _interval(row)} for row in own)
    return Section(f"Restore against {other}", (), (Table(f"against-{other}", "", columns, shown, note),))


def _power_section(rows: Sequence[EffectRow], effect: float) -> Section:
    columns = (
        Column("label", "restore against nothing"),
        Column("sought", f"{effect:.0%} of the mean", digits=2),
        Column("power", "power", percent=True, digits=2),
        Column("detectable", f"seen with {POWER:.0%}", digits=2),
        Column("still_wanted", "compactions still needed"),
    )
    shown = tuple(to_builtins(row) for row in rows if row.against == "nothing")
    note = (
        f"Power: how likely the measured compactions are to show a change of {effect:.0%}. The next column: the "
        f"smallest change that they show with a power of {POWER:.0%}. The last: how many more are needed to show a "
        f"change of {effect:.0%} with that power."
    )
    return Section("Power", (), (Table("power", "", columns, shown, note),))


def _simulation_document(trials: int, compactions: int, seed: int) -> Document:
    found = list(calibrate(tuple(measure.label for measure in _MEASURES), trials, compactions, seed))
    shares = [coverage.covered / coverage.trials for coverage in found if coverage.trials]
    wrong = [coverage.decided / coverage.trials for coverage in found if coverage.kind == "none" and coverage.trials]
    if not shares or not wrong:
        raise UsageError(f"{compactions} compactions are too few to estimate an effect; give more with --compactions")
    words = (
        f"Over {trials:,} simulated trials of {compactions:,} compactions of each kind, the 95% intervals contain "
        f"the true effect in {min(shares):.1%} to {max(shares):.1%}, by measure and kind.",
        f"Without an effect, p is at most {_SIGNIFICANT} in {min(wrong):.1%} to {max(wrong):.1%}.",
    )
    data = to_builtins(Calibration(trials, compactions, seed, tuple(found)))
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
    rows: list[dict[str, Cell]] = []
    for coverage in found:
        if coverage.is_dependent == (word == "dependent"):
            counts = {"covered": coverage.covered, "decided": coverage.decided, "expected": coverage.expected}
            shares = {name: count / coverage.trials if coverage.trials else None for name, count in counts.items()}
            rows.append(
                {**shares, "effect": _KINDS[coverage.kind], "measure": coverage.measure, "trials": coverage.trials}
            )
    explained = {
        "independent": "Compactions of a session have nothing in common.",
        "dependent": "A session shares its pace, and an arm also changes what happens after the next compaction.",
    }
    return Section(f"{word.capitalize()} compactions", (explained[word],), (Table(word, "", columns, tuple(rows)),))
