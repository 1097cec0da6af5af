"""Section of a sweep's page that shows accuracy over the bits held: each cell beside what any memory could reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import asdict

from eirkit import extensions
from eirkit.errors import UsageError
from eirkit.lacuna.findings.intervals import mean_share
from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.lacuna.tasks import FORESIGHT, POLICIES
from eirkit.lacuna.tasks.frontier import TaskFrontier, TaskPoint, frontier_of
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import Interval
from eirkit.records.runs import RunFloor
from eirkit.records.settings import UNBOUNDED, Task
from eirkit.records.sweeps import CellRow
from eirkit.report.document import Axis, Chart, Figure, Section, Series
from eirkit.report.folders import foreign
from eirkit.report.runs.demand import MOST_TASKS, curve_of
from eirkit.report.runs.folder import Coordinates, ScoredRun, SweepFolder
from eirkit.report.table import Column, Table, listed

MOST_SERIES = 5  # names beside the three lines of a chart; the others share one
MOST_SEEDS = 100  # tasks whose graphs are looked at, where the ceiling depends on the graph
LEAST_CEILING = 0.01  # a share of less is a share of luck
MOST_REASONS = 4
CHANCE = 0.001  # of calling a report wrong that is right
FINE = 4  # points of the frontier for each record
TOLD = (
    "The ceiling is that of a memory which is told the right answer after each step. Agents that go on with their own "
    "wrong answers have less than that to reach, so their shares are at least what is said."
)
POSSIBLE = "What was possible"  # the title of the section
STEP_ACCURACY = RUN_MEASURES["step_accuracy"]
FORESEEING = "the references are known in advance, so the ceiling does not hold"
TEXTS = (
    "texts are stored; their size in bytes may be known, but not how many bits of them tell what is asked, so no "
    "ceiling is given"
)
POLICY = "eirkit.lacuna.tasks.policy"  # imported only for policies of others
OUTSIDE = "results may be fetched from outside the memory, so the ceiling does not hold"
CUT_SHORT = "runs ended at their limit of actions, which may be why no more was reached; raise --actions"


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of the size of a memory; `bits` is None where it is unknown, and `why` then says why."""

    bits: float | None
    why: str = ""


def held_by_store(floors: Iterable[RunFloor | None], in_sight: int, made: Sequence[int], record_bits: float) -> Held:
    """Return the largest size over all cuts of some runs with a memory system; its bytes where those are fewer bits.

    Floors count a record in sight once if the store may hold it too. Nobody says that it does, so those in sight are
    added, up to the number of records that there are.

    Args:
        floors: what each run held, as `findings.floor` writes it; None where nothing was recorded.
        in_sight: records that were in context beside the store, at most.
        made: how many records there are after each step.
    """
    found = list(floors)
    known = [floor for floor in found if floor is not None]
    if not known or len(known) < len(found):
        return Held(None, "what was stored was not recorded, as it is only for workloads whose EIR has a closed form")
    if any(floor.counted != "system" for floor in known):
        return Held(None, "how many records are stored is not reported")
    sizes = (
        min(
            min(int(count) + in_sight, most) * record_bits,
            math.inf if size is None else 8 * float(size) + in_sight * record_bits,
        )
        for floor in known
        for count, size, most in zip(floor.held_records, floor.held_bytes, made, strict=True)
    )
    return Held(max(sizes))


class PossibleFigures(Struct, frozen=True, kw_only=True):
    """What one cell held and reached, and what was possible, as scripts receive it."""

    workload: str
    cell: str
    bits_at_most: float | None
    step_accuracy: float
    low: float
    high: float
    ceiling: float | None
    keeping: float | None
    share_at_least: float | None
    share_at_most: float | None
    why_not: str


@dataclass(frozen=True, slots=True)
class PlacedCell:
    """One cell: what it held, how often it was right, and what was possible; the bounds are None where unknown."""

    label: str  # without the workload, which stands beside it
    series: str  # its label without h
    held: Held
    accuracy: Interval  # at scored steps that refer to earlier ones
    at: TaskPoint | None
    builds: bool = False  # its wrong answers spoil later ones, so `at.kept` takes somebody to correct them
    why: str = ""  # why it is not judged

    @property
    def share(self) -> tuple[float, float] | None:
        """The share of what was possible with that many bits: at least, at most."""
        if self.at is None or self.at.upper < LEAST_CEILING or self.why:
            return None
        reached, kept = self.accuracy.estimate, 0.0 if self.builds else self.at.kept
        return min(1.0, reached / self.at.upper), min(1.0, reached / kept) if kept > 0 else 1.0

    @property
    def share_in_words(self) -> str:
        low, high = self.share or (0.0, 1.0)
        first, last = f"{low:.2f}", f"{high:.2f}"
        if first == last:
            return first
        return f"at least {first}" if high == 1 else f"{first} to {last}"

    @property
    def impossible(self) -> bool:
        """True if it was right more often than any memory of this size can be, and chance does not explain it.

        Tasks are independent, and their shares lie between 0 and 1, so that Hoeffding's bound holds for their mean.
        """
        if self.at is None or self.accuracy.estimate <= self.at.upper:
            return False
        reached, ceiling = self.accuracy.estimate, self.at.upper
        parts = ((reached, ceiling), (1 - reached, 1 - ceiling))
        divergence = sum(one * math.log(one / other) for one, other in parts if one > 0)  # in nats
        return self.accuracy.clusters * divergence > -math.log(CHANCE)

    def figures(self, workload: str) -> PossibleFigures:
        """Return everything that scripts receive."""
        least, most = self.share or (None, None)
        return PossibleFigures(
            workload=workload,
            cell=self.label,
            bits_at_most=self.held.bits,
            step_accuracy=self.accuracy.estimate,
            low=self.accuracy.low,
            high=self.accuracy.high,
            ceiling=None if self.at is None else self.at.upper,
            keeping=None if self.at is None else self.at.kept,
            share_at_least=least,
            share_at_most=most,
            why_not=self.why or self.held.why,
        )


@dataclass(frozen=True, slots=True)
class TaskPossible:
    """The frontier of one task, and the cells that were run on it."""

    spec: TaskSpec
    frontier: TaskFrontier
    cells: tuple[PlacedCell, ...]

    @property
    def judged(self) -> list[PlacedCell]:
        return [cell for cell in self.cells if cell.share is not None and not cell.impossible]


def possible_section(*sweeps: SweepFolder) -> Section | None:
    """Return the section on what was possible with the bits that each cell held; None if nothing is known."""
    return section_of(*possible_in(*sweeps))


def section_of(found: Sequence[TaskPossible], unknown: Sequence[str]) -> Section | None:
    """Return that section from what `possible_in` found."""
    if not found:
        return Section(POSSIBLE, tuple(unknown)) if unknown else None
    words = (*sentences(found), *explained(found), *unknown)
    if all(cell.held.bits is None for one in found for cell in one.cells):
        return Section(POSSIBLE, words)  # the chart would have no point
    figure = Figure("possible", "Accuracy over the bits stored", tuple(possible_chart(one) for one in found))
    return Section(POSSIBLE, words, (figure, possible_table(found)))


def possible_in(*sweeps: SweepFolder) -> tuple[list[TaskPossible], list[str]]:
    """Return the frontier of each task of some sweeps with its cells, and why others have none."""
    tasks: dict[TaskSpec, list[tuple[SweepFolder, CellRow, list[ScoredRun]]]] = {}
    found, unknown = [], []
    for sweep in sweeps:
        by_cell = sweep.by_cell()
        for row in sweep.rows:
            if not isinstance(row.task, Task):
                unknown.append(f"{row.workload} is not judged: {TEXTS}.")
            elif runs := [run for run in by_cell.get(row.cell, ()) if run.score.consuming]:
                tasks.setdefault(TaskSpec.of(row.task), []).append((sweep, row, runs))
    named = Coordinates([row for cells in tasks.values() for _, row, _ in cells])
    for spec, cells in list(tasks.items())[:MOST_TASKS]:
        if foreign([spec.workload]) and not all(sweep.plugins for sweep in sweeps):
            unknown.append(f"No ceiling of {spec.workload}: it is code beside the run; add --plugins to run it.")
            continue
        try:
            seeds = sorted({run.seed for _, _, runs in cells for run in runs})
            chosen = seeds[: 1 if prepare(spec).closed_form else MOST_SEEDS]
            frontier = frontier_of(*(generate(replace(spec, seed=seed)) for seed in chosen or (0,)))
        except UsageError as error:
            unknown.append(f"No ceiling of {spec.workload}: {error}.")
            continue
        placed = tuple(_place(sweep, row, spec, named, runs, frontier) for sweep, row, runs in cells)
        found.append(TaskPossible(spec, frontier, placed))
    return found, list(dict.fromkeys(unknown))


def _place(
    sweep: SweepFolder,
    row: CellRow,
    spec: TaskSpec,
    named: Coordinates,
    runs: Sequence[ScoredRun],
    frontier: TaskFrontier,
) -> PlacedCell:
    accuracy = mean_share(
        [run.score.consuming_correct / run.score.consuming for run in runs],
        [run.seed for run in runs],
        sum(run.score.consuming for run in runs),
    )
    held, why = _held(row, spec, runs, frontier), _beyond(row, plugins=sweep.plugins)
    at = None if held.bits is None or why else frontier.point(held.bits)
    if row.max_turn and not why:
        why = CUT_SHORT  # no memory exceeds the ceiling, but what was reached falls short of it for another reason
    builds = frontier.builds_on_answers
    label, series = named.label(row, without=("workload",)), named.label(row, without=("workload", "h"))
    return PlacedCell(label, series, held, accuracy, at, builds, why)


def _held(row: CellRow, spec: TaskSpec, runs: Sequence[ScoredRun], frontier: TaskFrontier) -> Held:
    """Return what a cell's memory held: the records in context, or what a memory system reported."""
    if row.condition in UNBOUNDED:
        return Held(None, "text is kept, of which nobody knows how many bits tell of results")
    if row.policy == "unbounded":
        return Held(spec.n * frontier.record_bits)
    if row.memory is None:
        return Held((row.h or 0) * frontier.record_bits)
    in_sight = 0 if row.panel == "strict" else row.h or 0
    floors = [None if run.memory is None else run.memory.floor for run in runs]
    made = [0, *accumulate(prepare(spec).stores(spec, t) for t in range(1, spec.n + 1))]
    return held_by_store(floors, in_sight, made, frontier.record_bits)


def _beyond(row: CellRow, *, plugins: bool) -> str:
    """Return why the ceiling does not hold for a cell; empty if it does."""
    if row.b_oracle or row.b:
        return OUTSIDE
    name = row.policy if row.policy is not None else row.condition
    if name in POLICIES or row.memory is not None:
        return FORESEEING if name in FORESIGHT else ""
    if foreign([name]) and not plugins:
        return f"whether {name} knows the references in advance is not known; add --plugins to look"
    policies, hindsight = extensions.load(f"{POLICY}:policies"), extensions.load(f"{POLICY}:Hindsight")
    is_policy = name in policies or bool(foreign([name]))
    return FORESEEING if is_policy and issubclass(policies.get(name), hindsight) else ""


def sentences(found: Sequence[TaskPossible]) -> list[str]:
    """Return, for each task, how close the closest and the furthest cell came to what was possible."""
    several, said = len(found) > 1, []
    for one in found:
        cells = sorted(one.judged, key=lambda cell: (-(cell.share or (0.0, 0.0))[0], -cell.accuracy.estimate))
        start = f"{one.spec.workload}: " if several else ""
        said += [f"{start}{judgment(cell)}" for cell in (cells[:1] + cells[-1:] if len(cells) > 1 else cells)]
        said += [f"{start}{_impossible(cell)}" for cell in one.cells if cell.impossible]
    return said


def judgment(cell: PlacedCell) -> str:
    """Return one sentence on a cell that can be judged."""
    reached = cell.accuracy.estimate
    return (
        f"{cell.label} stored at most {cell.held.bits:,.1f} bits and was right at {reached:.3f} of the steps that need "
        f"earlier results: {cell.share_in_words} of what was possible with that many bits."
    )


def _impossible(cell: PlacedCell) -> str:
    ceiling = 0.0 if cell.at is None else cell.at.upper
    return (
        f"{cell.label} was right at {cell.accuracy.estimate:.3f} of the steps, and no memory of "
        f"{cell.held.bits:,.1f} bits is right at more than {ceiling:.3f}: it stores more than it says, or knows what "
        "will be asked."
    )


def explained(found: Sequence[TaskPossible]) -> Iterator[str]:
    """Return what the ceiling takes for granted, and which cells are not judged, with the reason."""
    if any(one.frontier.builds_on_answers and one.judged for one in found):
        yield TOLD
    reasons: dict[str, list[str]] = {}
    for cell in (cell for one in found for cell in one.cells):
        if why := cell.why or cell.held.why:
            reasons.setdefault(why, []).append(cell.label)
    for why, labels in list(reasons.items())[:MOST_REASONS]:
        told = list(dict.fromkeys(labels))
        names = listed(told, most=4) if len(told) <= 4 else f"{len(labels)} settings ({', '.join(told[:3])} and others)"
        yield f"{names} {'is' if len(told) == 1 else 'are'} not judged: {why}."


def possible_chart(one: TaskPossible) -> Chart:
    """Return accuracy over bits: what no memory exceeds, what keeping whole records reaches, and every cell."""
    frontier, placed = one.frontier, [cell for cell in one.cells if cell.held.bits is not None]
    grid = [frontier.point(i * frontier.record_bits / FINE) for i in range(FINE * frontier.records + 1)]
    furthest = max((cell.held.bits or 0.0 for cell in placed), default=0.0)
    if furthest > grid[-1].bits:
        grid.append(frontier.point(furthest))
    bits = tuple(point.bits for point in grid)
    peak = curve_of(one.spec).peak.lower_bits if prepare(one.spec).closed_form else None  # else it may take long
    kept = "keeping what fits, if corrected" if frontier.builds_on_answers else "keeping what fits (encoder)"
    lines = (
        Series("no memory exceeds", "line", bits, tuple(point.upper for point in grid), dashed=True),
        Series(kept, "line", bits, tuple(point.kept for point in grid)),
        *([Series("EIR: below it nobody is always right", "rule", (peak,), dashed=True)] if peak is not None else []),
    )
    axes = Axis("bits stored at the peak", low=0.0), replace(Axis.of(STEP_ACCURACY), title=STEP_ACCURACY.label)
    said = " ".join(sentences([one])) or "No setting can be judged: what they stored is not known."
    title = f"{one.spec.workload}, n = {one.spec.n}, m = {one.spec.m}"
    key = f"possible-{one.spec.workload.rpartition(':')[2]}-{one.spec.n}-{one.spec.m}"
    return Chart(key, title, said, *axes, (*lines, *_points(placed)), note=f"Ceiling: {frontier.method}.")


def _points(cells: Sequence[PlacedCell]) -> Iterator[Series]:
    names = list(dict.fromkeys(cell.series for cell in cells))
    apart = names if len(names) <= MOST_SERIES else names[: MOST_SERIES - 1]
    for name in (*apart, *(["other settings"] if len(apart) < len(names) else [])):
        own = [cell for cell in cells if (cell.series if cell.series in apart else "other settings") == name]
        yield Series(
            name,
            "points",
            tuple(cell.held.bits for cell in own),
            tuple(cell.accuracy.estimate for cell in own),
            tuple(cell.accuracy.low for cell in own),
            tuple(cell.accuracy.high for cell in own),
            dashed=all(cell.at is None for cell in own),
        )


def possible_table(found: Sequence[TaskPossible]) -> Table:
    """Return every cell with what it held, what it reached and what was possible."""
    several = len(found) > 1
    columns = (
        *([Column("workload", "workload")] if several else []),
        Column("cell", "setting", role="name"),
        Column("bits_at_most", "bits stored, at most", 1),
        Column.of(STEP_ACCURACY, percent=False),
        Column("low", "from", 3, meaning="95% interval, over tasks", priority=1),
        Column("high", "to", 3, priority=1),
        Column("keeping", "keeping what fits", 3, meaning="reached by as many whole records as fit into these bits"),
        Column("ceiling", "at most", 3, meaning="no memory of so many bits is right more often"),
        Column("share", "of the possible", figures=True, meaning="step accuracy over what the best memory reaches"),
    )
    lines = []
    for one in found:
        for cell in one.cells:
            share = None if cell.share is None else cell.share_in_words
            lines.append({**asdict(cell.figures(one.spec.workload)), "share": share})
    note = "Bits stored: unknown where the memory does not say what it keeps. A record counts as the bits of its value."
    return Table("possible-cells", "What each setting stored and reached", columns, tuple(lines), note)
