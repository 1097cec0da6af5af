"""`eirkit choose`: ranks the memories, models or other settings of sweeps on the tasks that all of them were given."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from statistics import fmean

from msgspec import Struct, structs

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.lacuna import EXTRACTOR, MODEL, READER, RUN_MODEL
from eirkit.lacuna.findings.command_line import merged_grid, restricted_grid, sweep_command
from eirkit.lacuna.findings.conversations import INSTRUCTION
from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, clustered_share, mean_share, proportion
from eirkit.lacuna.findings.ranking import LOOKS, MARGIN, Ranking, rank, tasks_to_separate
from eirkit.lacuna.findings.summary import LOST, pool_outcomes
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.lacuna.tasks.workload import Units, find_workload, units_of
from eirkit.measures import Measure
from eirkit.records.budgets import condition_budget, passages_of_budget
from eirkit.records.evidence import Interval
from eirkit.records.settings import DOCUMENTED
from eirkit.records.sweeps import CellRow
from eirkit.report.folders import kind_of, maker_of, records_of
from eirkit.report.runs.context import named_rows, whole_words
from eirkit.report.runs.folder import (
    AXES,
    FIGURES,
    ScoredRun,
    SweepFolder,
    is_candidate,
    measure_of,
    read_sweep,
)
from eirkit.report.table import counted, listed

Placed = Sequence[tuple[SweepFolder, CellRow]]  # the cells, each with its sweep
Level = int | str | None  # a value on an axis
FOLDER = "folder"
_PREFERRED = ("memory", "model")  # what people choose between, if it varies
MORE = "-more"  # added to the name of a folder
LEADERS = "leaders"  # the folder of a run of what several folders hold
MOST_NAMES = 1_000_000  # more than anybody keeps beside each other
ABILITY = "ability"  # of questions in words
BY = (*AXES, FOLDER)
CHECKS = "checks of standing instructions"  # which are no questions
_DETAILS = ("used", "prompt_tokens", "recall", "bytes", "model_calls", "memory_cost_usd", "cost_usd")


class Price(Struct, frozen=True):
    """What runs cost: all of their calls, of the model that reads and of the memory."""

    runs: int
    usd: float | None  # None where the models cost nothing, or nobody knows
    calls: int  # of models
    seconds: float | None  # that the calls take, one after another; None if they took no time


class ChoiceFigures(Ranking, frozen=True, kw_only=True):
    """A choice as scripts receive it."""

    by: str
    measure: str
    parts: dict[str, dict[str, Ranking]]  # by axis, then by its value
    details: dict[str, dict[str, float | None]]  # by candidate
    warnings: tuple[str, ...]
    systems: tuple[str, ...]
    again: str
    looks: tuple[int, ...]
    wanted_tasks: int | None
    wanted_seeds: int | None
    wanted_price: Price | None
    abilities: tuple[str, ...]
    mean_over: str
    at_action_limit: dict[str, int]
    passages: dict[str, str]
    conditions: tuple[str, ...]
    exclusions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The ranking of candidates, overall and for each value of the settings that vary beside them."""

    by: str
    measure: Measure
    ranking: Ranking
    parts: Mapping[str, Mapping[str, Ranking]]  # by axis, then by its value
    details: Mapping[str, Mapping[str, float | None]]  # by candidate: figures over the same cases
    warnings: tuple[str, ...]
    systems: tuple[str, ...]  # how each memory system was used, and what it warned of
    again: str  # the command that runs the leaders alone on new tasks; empty if there is no single one
    looks: tuple[int, ...] = ()  # tasks at each look; the second and third are at the leaders of the one before
    wanted: int | None = None  # further tasks that would tell the first two leaders apart, if those alone are run
    units: Units = field(default_factory=Units)  # what tasks and steps are called
    pooled: bool = False  # accuracy counts all questions alike; otherwise it is the mean over cases
    abilities: tuple[str, ...] = ()  # of questions in words that alone are ranked by; empty: all
    seeds: int | None = None  # that give the wanted tasks; more than these if not every task has such questions
    given: int = 0  # tasks that all candidates were given, with such questions or without
    price: Price | None = None  # of that run, at the cost and pace of these
    folder: Path = Path()  # of the first candidate
    limited: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # runs at their limit of actions, of how many
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # of each candidate's accuracy alone
    passages: Mapping[str, str] = field(default_factory=dict)  # that a search of each candidate's memory asks for
    whole: tuple[str, ...] = ()  # whether the whole conversation does without a memory, in sentences
    conditions: tuple[str, ...] = ()  # what all candidates have in common: who read, who extracted, the budget
    exclusions: tuple[str, ...] = ()  # which candidates and cases do not count

    def figures(self) -> ChoiceFigures:
        """Return everything that scripts receive."""
        return ChoiceFigures(
            **structs.asdict(self.ranking),
            by=self.by,
            measure=self.measure.id,
            parts={axis: dict(of) for axis, of in self.parts.items()},
            details={name: dict(figures) for name, figures in self.details.items()},
            warnings=self.warnings,
            systems=self.systems,
            again=self.again,
            looks=self.looks,
            wanted_tasks=self.wanted,
            wanted_seeds=self.seeds,
            wanted_price=self.price,
            abilities=self.abilities,
            mean_over=f"{self.units.step}s" if self.pooled else "cases",
            at_action_limit={name: limited for name, (limited, _) in self.limited.items()},
            passages=dict(self.passages),
            conditions=self.conditions,
            exclusions=self.exclusions,
        )


@dataclass(frozen=True, slots=True)
class CaseValues:
    """The values of all candidates in the cases that they share."""

    cases: Sequence[Case]
    of: Mapping[str, Sequence[float]]
    weights: Sequence[float] | None = None  # of the cases in every mean; None: they count alike

    def take(self, places: Sequence[int]) -> CaseValues:
        """Return some of the cases."""
        kept = {name: [own[place] for place in places] for name, own in self.of.items()}
        weights = None if self.weights is None else [self.weights[place] for place in places]
        return CaseValues([self.cases[place] for place in places], kept, weights)

    def rank(self, measure: Measure, outside: float, margin: float) -> Ranking:
        """Return the ranking; workloads count alike.

        Args:
            outside: the chance that any of its orders is wrong.
        """
        return rank(
            self.of,
            [case.task for case in self.cases],
            strata=[case.place.get("workload") for case in self.cases],
            less_is_better=measure.better == "less",
            share=measure.unit == "share",
            outside=outside,
            weights=self.weights,
            margin=margin,
        )

    def accuracy(self, name: str, steps: int) -> Interval:
        """Return the accuracy of a candidate with the interval that the tables of a sweep have.

        Args:
            steps: that were scored in all its runs.
        """
        values, tasks = self.of[name], [case.task for case in self.cases]
        if self.weights is None:
            return mean_share(values, tasks, steps)
        asked, right = Counter[str](), Counter[str]()
        for task, value, weight in zip(tasks, values, self.weights, strict=True):
            asked[task] += round(weight)
            right[task] += round(value * weight)
        return clustered_share([(right[task], asked[task]) for task in asked], proportion(right.total(), asked.total()))


def choose(
    sweeps: Sequence[SweepFolder],
    by: str | None = None,
    measure: str = "accuracy",
    abilities: Sequence[str] = (),
    margin: float = MARGIN,
) -> Choice:
    """Return the ranking of what the sweeps tried.

    Where the leaders were also given tasks that the others were not, such as those of the run that `Choice.again`
    names, they are compared once more on all of theirs: at most three looks share the level (`LOOKS`).

    Args:
        margin: a difference that nobody cares about, of shares in their unit, of other measures of the best value.
        by: the setting whose values are the candidates; by default the memory, else the model, else what varies first.
        abilities: rank by the accuracy of questions in words that test one of these.

    Raises:
        InputFileError: nothing varies, or the candidates were given no task in common.
        UsageError: no question tests such an ability.
    """
    placed: Placed = [(sweep, row) for sweep in sweeps for row in sweep.rows if row.scored]
    if not placed:
        raise InputFileError("no run is scored in these folders; finish a sweep with `eirkit lacuna run --resume DIR`")
    by = by or default_axis(placed)
    if by == "budget":  # what puts the same into a prompt under every budget is none of its candidates
        placed = [(sweep, row) for sweep, row in placed if row.budget] or placed
    placed, names, absent = with_figures(placed, by, measure)
    if len(names.all) < 2:
        only = f"{names.all[0]}{f' that has a figure for {measure}' if absent else ''}"
        remedy = "give another --by or more folders"
        raise InputFileError(f"there is nothing to choose between: {by} has one value, {only}; {remedy}")
    confounded = confounded_axes(placed, names, by)
    table = tabulate(placed, names, by, confounded, measure)
    cases, found = shared_cases(table, names.all)
    if not cases:
        raise InputFileError(_nothing_shared(placed, names, measure))
    first_runs = [run for runs in next(iter(found.values())) for run in runs]
    known = sorted({name for run in first_runs for name in run.abilities}) if measure == "accuracy" else []
    declared = _check_abilities(measure_of(measure), abilities, known)
    rankings = len(known) if abilities else 1

    def values_of(cases: Sequence[Case], found: Mapping[str, Sequence[Sequence[ScoredRun]]]) -> CaseValues:
        return _asked(cases, found, abilities) if abilities else _overall(cases, found, measure)

    values = values_of(cases, found)
    if not values.cases:
        raise InputFileError(f"no question of {listed(abilities)} was asked of all of them; choose another --only")
    ranking = values.rank(declared, LOOKS[0] / rankings, margin)
    several = () if len(abilities) == 1 else abilities or known
    asked = {name: _asked(cases, found, [name]) for name in known if name in several}
    parts = {name: one.rank(declared, LOOKS[0] / len(known), margin) for name, one in asked.items() if one.cases}
    all_parts = {**_parts(values, declared, margin), **({ABILITY: parts} if parts else {})}
    given, looks = cases, [ranking.tasks]
    intervals = {name: values.accuracy(name, _steps(found[name])) for name in names.all if measure == "accuracy"}
    for outside in LOOKS[1:]:
        if len(ranking.leaders) < 2 or ranking.tasks < FEWEST_CLUSTERS:
            break
        cases, own = shared_cases(table, ranking.leaders)
        values = values_of(cases, own)
        if len({case.task for case in values.cases}) == ranking.tasks:
            break
        ranking = _followed(ranking, values.rank(declared, outside / rankings, margin))
        found, given = {**found, **own}, cases
        intervals.update({name: values.accuracy(name, _steps(own[name])) for name in intervals if name in own})
        looks.append(ranking.tasks)
    wanted = _wanted_tasks(ranking, declared, looks, rankings)
    # As many seeds as give the wanted tasks, if as many of them do as did here.
    seeds = len({case.task.rpartition("/")[2] for case in values.cases})
    needed = None if wanted is None else -(-wanted * seeds // ranking.tasks)
    are, have = ("is", "has") if len(absent) == 1 else ("are", "have")
    without = [f"{listed(absent)} {have} no figure for {measure} and {are} left out"] if absent else []
    if left_out := len(table) - len(given):
        are = "is" if left_out == 1 else "are"
        without.append(f"{counted(left_out, 'case')} that not all were given, or have no value for, {are} left out")
    leading = [(sweep, row) for sweep, row in placed if names.of(sweep, row) in ranking.leaders]
    first = next(sweep for sweep, row in leading if names.of(sweep, row) == ranking.leaders[0])
    return Choice(
        by,
        declared,
        ranking,
        all_parts,
        {name: details_of([run for runs in found[name] for run in runs]) for name in names.all},
        tuple(_warnings(sweeps, placed, confounded, by)),
        system_remarks((row.memory, row.memory_system) for _, row in placed),
        command_for(sweeps, leading, needed),
        tuple(looks),
        wanted,
        units_of({row.workload for _, row in placed}),
        values.weights is not None,
        tuple(abilities),
        needed,
        len({case.task for case in given}),
        None if needed is None else price_of(leading, needed),
        first.folder,
        {name: counts for name, own in found.items() if (counts := _limited(own))[0]},
        intervals,
        _passages(placed, names),
        tuple(whole_words(named_rows([row for _, row in placed])))
        if measure == "accuracy" and not left_out and len(looks) == 1
        else (),
        tuple(_conditions(placed, by, confounded)),
        (*without, *_not_run(sweeps)),
    )


def _followed(before: Ranking, now: Ranking) -> Ranking:
    """Return a look at the leaders of an earlier one, with those who were found to be worse then."""
    left = tuple(standing for standing in before.standings if standing.name not in before.leaders)
    return structs.replace(now, standings=(*now.standings, *left))


def _conditions(placed: Placed, by: str, confounded: Sequence[str]) -> Iterator[str]:
    """Yield who read, who extracted and under which budget, where it is the same for all candidates."""
    rows = [row for _, row in placed]
    for name, told in (("model", "read by"), ("budget", "budget of the prompt:")):
        if name in AXES and name != by and name not in confounded:
            asked = [row for row in rows if name == "model" or row.conversation is not None]
            values = dict.fromkeys(str(value) for row in asked if (value := AXES[name](row)) not in ("", None))
            if values:
                yield f"{told} {listed(list(values))}"
    extracted = [row for row in rows if row.memory_system is not None and row.memory_system.model_calls]
    if extracted:
        scripts = [EXTRACTOR if row.conversation is None else READER for row in extracted]
        used = {
            str(row.memory_settings.get(MODEL, script)): row.model
            for row, script in zip(extracted, scripts, strict=True)
        }
        named = dict.fromkeys(model if given == RUN_MODEL else given for given, model in used.items())
        yield f"models that memories called: {listed(list(named))}"


def _not_run(sweeps: Sequence[SweepFolder]) -> Iterator[str]:
    """Yield which models a control excluded, and which sweeps are not finished."""
    for one in dict.fromkeys(excluded for sweep in sweeps for excluded in sweep.excluded):
        yield f"{one.model} on {one.workload} is excluded by its control: {one.reason}"
    for sweep in sweeps:
        if sweep.scored < sweep.planned:
            yield f"{sweep.name} is not finished: {sweep.scored:,} of {sweep.planned:,} runs are scored"


def _passages(placed: Placed, names: Names) -> dict[str, str]:
    """Return how many passages a search asks the memory of each candidate for, where that is one number."""
    found: dict[str, set[str]] = {}
    for sweep, row in placed:
        for asked in sweep.manifest.passages:
            if (asked.memory, asked.settings) == (row.memory, row.memory_settings):
                number = "all" if asked.passages is None else str(asked.passages)
                if row.budget and row.budget != DOCUMENTED:
                    number = str(passages_of_budget(row.budget))
                found.setdefault(names.of(sweep, row), set()).add(number)
    return {name: next(iter(numbers)) for name, numbers in found.items() if len(numbers) == 1}


def _steps(cases: Sequence[Sequence[ScoredRun]]) -> int:
    return sum(run.score.steps for runs in cases for run in runs)


def _limited(cases: Sequence[Sequence[ScoredRun]]) -> tuple[int, int]:
    """Return how many runs ended at their limit of actions, and how many there are."""
    runs = [run for own in cases for run in own]
    return sum(run.score.max_turn for run in runs), len(runs)


def choose_folders(
    folders: Sequence[Path],
    by: str | None,
    measure: str,
    abilities: Sequence[str] = (),
    margin: float = MARGIN,
    *,
    plugins: bool = False,
) -> tuple[Choice, list[SweepFolder]]:
    """Return the ranking of what the sweeps in some folders tried, and the sweeps.

    Raises:
        InputFileError: a folder is not one of `lacuna run`, or nothing can be ranked.
    """
    for folder in folders:
        if kind_of(folder, "`lacuna run`") != "lacuna-run":
            raise InputFileError(f"{folder} is of `{maker_of(folder)}`; give folders of `lacuna run`")
    with records_of(*folders, plugins=plugins):
        sweeps = [read_sweep(folder, plugins=plugins) for folder in dict.fromkeys(folders)]
        found = choose(sweeps, by, measure, abilities, margin)
    twice = listed([str(one) for one, n in Counter(folders).items() if n > 1])
    told = (*found.warnings, *([f"{twice} was given more than once and counts once"] if twice else []))
    return replace(found, warnings=told), sweeps


def choice_in(sweep: SweepFolder) -> Choice | None:
    """Return the ranking of the memory systems of a sweep; None if it has fewer than two with tasks in common."""
    scored = [row for row in sweep.rows if row.scored and is_candidate(row)]
    if len({(AXES["memory"](row), settings_of(row)) for row in scored}) < 2:
        return None
    try:
        return choose([sweep], "memory")
    except InputFileError:
        return None


def _nothing_shared(placed: Placed, names: Names, measure: str) -> str:
    """Return why no case has a value of every candidate: some have none at all, or none is shared."""
    if without := without_figure(placed, names, measure):
        label, able = measure_of(measure).label, [key for key in rankable() if not without_figure(placed, names, key)]
        return f"the runs of {listed(without)} have no figure for {measure} ({label}); rank by {listed(able, 12)}"
    units = units_of({row.workload for _, row in placed})
    return f"no {units.task} was given to all of {listed(names.all)}; run them with the same seeds, {units.task}s and h"


def _overall(cases: Sequence[Case], found: Mapping[str, Sequence[Sequence[ScoredRun]]], measure: str) -> CaseValues:
    """Return the values of a measure; of accuracy in words, all questions count alike."""
    of = FIGURES[measure]
    values = {
        name: [fmean(value for run in runs if (value := of(run)) is not None) for runs in own]
        for name, own in found.items()
    }
    first = [runs[0] for runs in next(iter(found.values()))]
    told = measure == "accuracy" and all(run.abilities for run in first)
    return CaseValues(cases, values, [run.score.steps for run in first] if told else None)


def _asked(
    cases: Sequence[Case], found: Mapping[str, Sequence[Sequence[ScoredRun]]], abilities: Sequence[str]
) -> CaseValues:
    """Return the accuracy of questions that test one of some abilities, in the cases that have any."""
    asked = [place for place in range(len(cases)) if all(_questions(of[place], abilities)[1] for of in found.values())]
    counts = {name: [_questions(of[place], abilities) for place in asked] for name, of in found.items()}
    weights = [_questions(next(iter(found.values()))[place][:1], abilities)[1] for place in asked]
    values = {name: [right / n for right, n in pairs] for name, pairs in counts.items()}
    return CaseValues([cases[place] for place in asked], values, weights)


def _check_abilities(declared: Measure, abilities: Sequence[str], known: Sequence[str]) -> Measure:
    """Return the measure as it is called where only some abilities count."""
    if not abilities:
        return declared
    if not known:
        raise UsageError(
            "abilities are of questions in words, ranked by accuracy; leave out --only or --measure, "
            "or give folders of `lacuna run words`"
        )
    for name in abilities:
        if name not in known:
            raise UnknownNameError("ability", name, known)
    if set(abilities) == {INSTRUCTION}:
        told = "checks of standing instructions that the answers followed"
        return replace(declared, label="instructions followed", meaning=told, of=CHECKS)
    both = f"questions asked and {CHECKS}" if INSTRUCTION in abilities else declared.of
    return replace(declared, label=f"{declared.label} on {listed(list(abilities))}", of=both)


def _parts(values: CaseValues, measure: Measure, margin: float) -> dict[str, dict[str, Ranking]]:
    """Return a ranking for each value of every setting that varies beside the candidates."""
    found: dict[str, dict[str, Ranking]] = {}
    cases = values.cases
    for axis in cases[0].place:
        levels = sorted({case.place[axis] for case in cases}, key=lambda value: (isinstance(value, str), value))
        if len(levels) < 2 or None in levels:
            continue
        for level in levels:
            chosen = [index for index, case in enumerate(cases) if case.place[axis] == level]
            found.setdefault(axis, {})[str(level)] = values.take(chosen).rank(measure, LOOKS[0] / len(levels), margin)
    return found


def _questions(runs: Sequence[ScoredRun], abilities: Sequence[str]) -> tuple[int, int]:
    """Return how many questions of some abilities were answered correctly, and how many there were."""
    counts = [run.abilities[ability] for run in runs for ability in abilities if ability in run.abilities]
    return sum(count.right for count in counts), sum(count.asked for count in counts)


def details_of(runs: Sequence[ScoredRun]) -> dict[str, float | None]:
    """Return what is shown beside the measure: records returned and used, lost, latency, size and money."""
    found: dict[str, float | None] = {}
    for name in _DETAILS:
        known = [value for run in runs if (value := FIGURES[name](run)) is not None]
        found[name] = fmean(known) if known else None
    memories = [run.memory for run in runs if run.memory is not None]
    searches = sum(memory.searches for memory in memories) or None  # each counts alike, as in the table of the sweep
    found["search_ms"] = searches and 1000 * sum(memory.search_seconds for memory in memories) / searches
    outcomes = pool_outcomes(memory.outcomes for memory in memories)
    found["lost"] = sum(outcomes.of(outcome) or 0.0 for outcome in LOST) if outcomes.runs else None
    floors = [memory.floor for memory in memories if memory.floor is not None]
    found["held_bits"] = max((floor.held_bits for floor in floors), default=None)
    found["needed_bits"] = max((floor.needed_bits for floor in floors), default=None)
    return found


def _warnings(sweeps: Sequence[SweepFolder], placed: Placed, confounded: Sequence[str], by: str) -> Iterator[str]:
    if confounded:
        yield f"the candidates also differ in {listed(list(confounded))}, so a difference may be due to that"
    counted_rows = [row for _, row in placed if row.conversation is None]  # conversations have no h and no panels
    panels = {row.panel for row in counted_rows if row.memory is not None}
    if by == "memory" and (
        len(panels) > 1 or (panels == {"native"} and any(row.memory is None for row in counted_rows))
    ):
        remedy = "to compare them, run `eirkit lacuna run` with --panel strict"
        yield f"some candidates kept as much as they liked and others h records; {remedy}"
    versions = sorted({sweep.manifest.eirkit for sweep in sweeps})
    if len(versions) > 1:
        yield f"the folders were made by different versions of eirkit: {listed(versions)}"
    for _, row in placed:
        if (doubt := row.validity.sentence) is not None:
            yield f"{AXES['memory'](row)}, {row.model}{row.held}: {doubt}"


def _wanted_tasks(ranking: Ranking, measure: Measure, looks: Sequence[int], rankings: int) -> int | None:
    """Return how many further tasks of the leaders alone would tell the first two apart with probability 0.8.

    A lead below the margin is not worth seeing: then it is the number that would show a difference of the margin. None
    if the ranking is settled, no further look is left, or it cannot be said.
    """
    if ranking.tasks < FEWEST_CLUSTERS:
        return 2 * FEWEST_CLUSTERS
    if ranking.is_settled or ranking.lead is None or ranking.spread is None or len(looks) == len(LOOKS):
        return None
    total = tasks_to_separate(
        max(ranking.lead, ranking.margin),
        ranking.spread,
        len(ranking.leaders),
        share=measure.unit == "share",
        outside=LOOKS[len(looks)] / rankings,
    )
    return None if total is None else max(FEWEST_CLUSTERS, total - ranking.tasks)


def rankable() -> list[str]:
    """Return the measures that candidates can be ranked by."""
    return [key for key in FIGURES if measure_of(key).better is not None]


def check_measure(name: str) -> str:
    """Return the identifier of a measure that candidates can be ranked by.

    Raises:
        UsageError: there is no such measure, or neither direction of it is better.
    """
    if name not in rankable():
        raise UsageError(f"candidates cannot be ranked by {name!r}; known: {', '.join(rankable())}")
    return name


@dataclass(frozen=True, slots=True)
class Case:
    """One task in one cell, for which every candidate has a value."""

    task: str
    place: Mapping[str, Level]  # its values on the axes other than the one that is ranked


def default_axis(placed: Placed) -> str:
    varying = [name for name, of in AXES.items() if len({of(row) for _, row in placed}) > 1]
    preferred = [name for name in _PREFERRED if name in varying]
    return (preferred or varying or [FOLDER])[0]


class Names:
    """Names the candidate of a cell; settings of a memory are added where one memory has several."""

    def __init__(self, placed: Placed, by: str) -> None:
        self._by = by
        settings: dict[str, set[str]] = {}
        for sweep, row in placed:
            settings.setdefault(self._plain(sweep, row), set()).add(settings_of(row))
        self._several = {name for name, found in settings.items() if by == "memory" and len(found) > 1}
        self.all = tuple(dict.fromkeys(self.of(sweep, row) for sweep, row in placed))

    def of(self, sweep: SweepFolder, row: CellRow) -> str:
        """Return the candidate that a cell belongs to."""
        name = self._plain(sweep, row)
        if name.isdecimal():
            return f"{self._by} = {name}"
        return f"{name} ({settings_of(row) or 'default'})" if name in self._several else name

    def _plain(self, sweep: SweepFolder, row: CellRow) -> str:
        return str(sweep.folder) if self._by == FOLDER else str(AXES[self._by](row))


def settings_of(row: CellRow) -> str:
    """Return the profile of a memory and its other settings."""
    settings = dict(row.memory_settings)
    used = None if row.memory_system is None else row.memory_system.profile
    profile = settings.get("profile") if used is None else used.name
    for name in ("profile", "timeout_seconds"):  # how long a call may take changes no result
        settings.pop(name, None)
    own = [f"{name}={value}" for name, value in sorted(settings.items())]
    return ", ".join([*filter(None, [profile]), *own])


def confounded_axes(placed: Placed, names: Names, by: str) -> tuple[str, ...]:
    """Return the other axes on which every candidate has one value, and not all the same."""
    found, budgets = [], _budgets(placed)
    for name, of in AXES.items():
        values: dict[str, set[Level]] = {}
        for sweep, row in placed:
            own: Iterable[Level] = budgets_of(row, budgets) if name == "budget" else (of(row),)
            values.setdefault(names.of(sweep, row), set()).update(own)
        apart = len({value for one in values.values() for value in one}) > 1
        if name != by and apart and all(len(one) == 1 for one in values.values()):
            found.append(name)
    return tuple(found)


def _budgets(placed: Placed) -> tuple[str, ...]:
    """Return the budgets of what has one."""
    return tuple(dict.fromkeys(row.budget for _, row in placed if row.budget))


def budgets_of(row: CellRow, budgets: Sequence[str]) -> tuple[str, ...]:
    """Return for which of some budgets a cell stands: its own, or all for which it puts the same into a prompt."""
    counted = [budget for budget in budgets if condition_budget(row.condition, budget) == (row.budget or DOCUMENTED)]
    return tuple(counted) or (row.budget or "",)


Tabulated = Sequence[tuple["Case", Mapping[str, Sequence[ScoredRun]]]]  # each case with its runs by candidate


def tabulate(placed: Placed, names: Names, by: str, confounded: Sequence[str], measure: str) -> Tabulated:
    """Return every case with the runs of each candidate that has a figure for the measure."""
    axes = [name for name in AXES if name != by and name not in confounded]
    runs = {id(sweep): sweep.by_cell() for sweep, _ in placed}
    budgets = _budgets(placed)
    table: dict[tuple[Level, ...], tuple[Case, dict[str, list[ScoredRun]]]] = {}
    for sweep, row in placed:
        for budget in budgets_of(row, budgets):
            place = {name: budget if name == "budget" else AXES[name](row) for name in axes}
            for run in runs[id(sweep)].get(row.cell, ()):
                if FIGURES[measure](run) is None:
                    continue
                task = f"{run.fingerprint}/{run.seed}"
                _, own = table.setdefault((task, *place.values()), (Case(task, place), {}))
                own.setdefault(names.of(sweep, row), []).append(run)
    return list(table.values())


def shared_cases(table: Tabulated, names: Sequence[str]) -> tuple[list[Case], dict[str, list[Sequence[ScoredRun]]]]:
    """Return the cases that some candidates share, and their runs in the same order."""
    shared = [(case, own) for case, own in table if all(name in own for name in names)]
    return [case for case, _ in shared], {name: [own[name] for _, own in shared] for name in names}


def without_figure(placed: Placed, names: Names, measure: str) -> list[str]:
    """Return the candidates none of whose runs has a figure."""
    runs: dict[str, list[ScoredRun]] = {name: [] for name in names.all}
    for sweep, row in placed:
        runs[names.of(sweep, row)] += [run for run in sweep.runs if run.cell == row.cell]
    return [name for name, own in runs.items() if all(FIGURES[measure](run) is None for run in own)]


def with_figures(placed: Placed, by: str, measure: str) -> tuple[Placed, Names, list[str]]:
    """Return the cells without the candidates that have no figure, their names, and who is left out.

    Nobody is left out if nobody has a figure.
    """
    names = Names(placed, by)
    absent = without_figure(placed, names, measure)
    if not absent or len(absent) == len(names.all):
        return placed, names, []
    kept = [(sweep, row) for sweep, row in placed if names.of(sweep, row) not in absent]
    return kept, Names(kept, by), absent


def command_for(
    sweeps: Sequence[SweepFolder], leading: Sequence[tuple[SweepFolder, CellRow]], seeds: int | None
) -> str:
    """Return the command, or nothing if there is no single one.

    New seeds are used, because the leaders were chosen by the results of the old ones.

    Args:
        leading: the cells of the leaders, each with its sweep.
        seeds: how many would tell them apart; None if that is unknown.
    """
    own = list({id(sweep): sweep for sweep, _ in leading}.values())
    grid = merged_grid([sweep.manifest for sweep in own])
    if grid is None or seeds is None:
        return ""
    if not all(":" not in name and find_workload(name).endless for name in grid["workload"]):
        return ""
    first = max(seed for sweep in sweeps for seed in sweep.seeds) + 1
    restricted = {**restricted_grid(grid, [row for _, row in leading]), "seeds": f"{first}:{first + seeds}"}
    manifest = structs.replace(own[0].manifest, settings={**own[0].manifest.settings, "grid": [restricted]})
    return sweep_command(manifest, f"{own[0].name}{MORE}" if len(own) == 1 else LEADERS, own[0].spending)


def price_of(leading: Sequence[tuple[SweepFolder, CellRow]], seeds: int) -> Price:
    """Return what the leaders would cost on so many seeds, at the cost and pace of their runs."""
    cells = {row.cell: sweep.by_cell().get(row.cell, ()) for sweep, row in leading}
    runs = [run for sweep, row in leading for run in sweep.by_cell().get(row.cell, ())]
    memories = [run.memory for run in runs if run.memory is not None]
    taken = sum(memory.write_seconds + memory.search_seconds for memory in memories)
    taken += sum(run.usage.latency_seconds for run in runs)
    paid = sum(run.usage.cost_usd or 0.0 for run in runs) + sum(memory.cost_usd or 0.0 for memory in memories)
    calls = sum(run.usage.calls for run in runs) + sum(memory.model_calls for memory in memories)
    times = len(cells) * seeds
    return Price(
        times,
        paid * times / len(runs) if paid else None,
        round(calls * times / len(runs)),
        taken * times / len(runs) if taken else None,
    )


def beside(command: str, folder: Path) -> str:
    """Return the command with a folder to write to that is beside another and does not exist yet."""
    *words, name = shlex.split(command)
    names = (folder.with_name(f"{name}{'' if n == 1 else f'-{n}'}") for n in count(1))
    free = next(path for path in islice(names, MOST_NAMES) if not path.exists())
    return shlex.join([*words, str(free)])
