"""Decides whether a submission holds, and the reason if not: its files, sizes, versions, settings, runs and scores.

Nothing that a submission says is taken over: the scores of the board are computed from its records. What does not
follow is refused, with the file and the reason. Replies of a hosted model cannot be asked for again; those of scripts
can, and a sample of them is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from eirkit import __version__
from eirkit.errors import InputFileError
from eirkit.lacuna.runs.cells import Cell, recorded_cell
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.replay import UNREADABLE, Replays, reason_not_made_anew
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import describe_sweep
from eirkit.records.documents import MANIFEST, read_struct
from eirkit.records.export import EVENTS, RUNS, read_runs
from eirkit.records.listing import changed_files
from eirkit.registry import records_read, references_in, relocate
from eirkit.report.runs.folder import SweepFolder
from eirkit.report.table import clean
from eirkit.seeds import below, show_seeds, words
from eirkit_bridges.board.submission import (
    CONTROLS,
    DOCUMENT,
    LONGEST_NAME,
    OWN,
    SCHEMA,
    SOURCES,
    VERSIONS,
    Submission,
    claimed_scores,
    is_candidate,
    read_parts,
    twins_missing,
)

MOST_PROBLEMS = 20  # that are listed for one submission
MOST_BYTES = 1 << 32  # of a submission
LARGEST_LIST = 1 << 24  # bytes of its list of files and scores
LARGEST_EVENTS = 1 << 25  # bytes of the events of one run; they take up to thirty times as much in memory
_SHORTEST_RECORD = 500  # bytes of a line of runs.jsonl
_DERIVED = ("settings", "plan_sha256", "cells", "runs", "prompt_sha256", "rules", "sources")


@dataclass(slots=True)
class RunAgain:
    """How many runs were made anew with model and memory."""

    runs: Counter[str] = field(default_factory=Counter)  # of memories, by cell
    references: int = 0  # runs of null and sham
    why_not: dict[str, str] = field(default_factory=dict)  # by cell: why its runs cannot be made anew

    def __bool__(self) -> bool:
        return bool(self.runs or self.references)


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission and what is wrong with it; nothing of it is shown unless it holds."""

    folder: Path
    name: str
    problems: tuple[str, ...] = ()
    parts: tuple[SweepFolder, ...] = ()  # empty if anything is wrong
    document: Submission | None = None  # None if it cannot be read
    runs: int = 0  # played again from their replies
    anew: RunAgain = field(default_factory=RunAgain)
    rerun_seed: int = 0  # that chose them

    @property
    def holds(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check: a folder, how many of its runs to run again, and whether its own code may be run."""

    folder: Path
    rerun: int = 0
    rerun_seed: int = 0  # which of them
    plugins: bool = False


def check(request: CheckRequest) -> Checked:
    """Check one submission; whatever it holds, this returns."""
    folder = request.folder
    try:
        if not (folder / DOCUMENT).is_file():
            return Checked(folder, folder.name, (f"{DOCUMENT}: is missing; make it with `eirkit submit`",))
        if found := [*islice(_unexpected(folder), MOST_PROBLEMS)]:
            return Checked(folder, folder.name, tuple(found))  # before anything of it is opened
        if (size := (folder / DOCUMENT).stat().st_size) > LARGEST_LIST:
            why = f"{DOCUMENT}: {size:,} bytes, where it may have no more than {LARGEST_LIST:,} bytes"
            return Checked(folder, folder.name, (why,))
        document = read_struct(folder / DOCUMENT, SCHEMA, Submission)
        name = clean(document.name)[:LONGEST_NAME]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            return Checked(folder, name, (f"{size:,} bytes, where at most {MOST_BYTES:,} are read",))
        with records_read(plugins=request.plugins):
            return _checked(request, name, document)
    except UNREADABLE as error:
        return Checked(folder, folder.name, (f"{DOCUMENT}: {_words(error)}",))


def _checked(request: CheckRequest, name: str, document: Submission) -> Checked:
    folder = request.folder
    problems = [*changed_files(folder, DOCUMENT, document.files)]
    parts = [part for part in (OWN, CONTROLS) if part == OWN or (folder / part).is_dir()]
    suites: list[Suite] = []
    read: tuple[SweepFolder, ...] = ()
    runs, anew = 0, RunAgain()
    for part in parts if not problems else ():
        suite, found = _settings(folder / part, document, request.plugins)
        problems += [f"{part}/{MANIFEST}: {why}" for why in found]
        if suite is None:
            continue
        suites.append(suite)
        if found:
            continue
        count, wrong = _runs(folder / part, suite, request.plugins)
        runs, problems = runs + count, problems + [f"{part}/{RUNS}: {why}" for why in wrong]
    if not problems:
        read = tuple(read_parts(folder))
        problems += [f"{DOCUMENT}: {why}" for why in _claims(read, suites, document)]
    if not problems and request.rerun:
        for part in parts:
            problems += [f"{part}/{RUNS}: {why}" for why in _made_anew(folder / part, request, anew)]
    if problems:
        return Checked(folder, name, tuple(problems[:MOST_PROBLEMS]), runs=runs)
    return Checked(folder, name, (), read, document, runs, anew, request.rerun_seed)


def _settings(folder: Path, document: Submission, plugins: bool) -> tuple[Suite | None, list[str]]:
    """Return the suite of a sweep, None if it cannot be read, and what is wrong with its manifest."""
    try:
        manifest = read_manifest(folder)
    except InputFileError as error:
        return None, [_words(error)]
    if manifest.eirkit != __version__:
        return None, [f"made by eirkit {manifest.eirkit}, this is {__version__}; check it with that version"]
    same = ("eirkit",) if folder.name == CONTROLS else VERSIONS  # the references may be run later and elsewhere
    found = [f"its {key} is not that of {DOCUMENT}" for key in same if getattr(manifest, key) != getattr(document, key)]
    grids = (manifest.settings, *manifest.settings.get("grid", ()))  # keys above the grids are defaults of all
    if (named := [name for grid in grids for name in references_in(grid)]) and not plugins:
        return None, [f"{named[0]} is code of its own; add --plugins only if you trust who wrote it"]
    if named:
        for place, path in enumerate(manifest.sources):
            copy = folder.parent / SOURCES / f"{place}-{Path(path).name}"
            if copy.is_file():
                relocate(path, copy.resolve())
    try:
        suite = read_suite(manifest.settings)
        again = describe_sweep(suite, None, {}, None, manifest.control)
    except UNREADABLE as error:
        return None, [f"its settings cannot be read ({_words(error)})"]
    if not suite.texts:
        return None, ["its texts were not kept, so nothing can be checked; run it without --no-texts"]
    changed = [key for key in _DERIVED if getattr(manifest, key) != msgspec.to_builtins(getattr(again, key))]
    return suite, [*found, *(f"its {key} does not follow from its settings" for key in changed)]


def _unexpected(folder: Path) -> Iterator[str]:
    """Yield what no submission has: links, special files, and files from which anything else might be read."""
    names = (MANIFEST, RUNS, EVENTS)
    known = {DOCUMENT, *(f"{part}/{name}" for part in (OWN, CONTROLS) for name in names)}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield f"{name}: is no ordinary file"
        elif path.is_file() and name not in known and path.parent != folder / SOURCES:
            yield f"{name}: is no file of a submission"


def _runs(folder: Path, suite: Suite, plugins: bool) -> tuple[int, list[str]]:
    """Play all runs of a sweep again; there must be one for each planned cell and seed, and no other."""
    if len(suite) > (folder / RUNS).stat().st_size // _SHORTEST_RECORD:
        return 0, [f"{len(suite):,} runs are planned, more than it has"]
    left = {cell.run_id(seed) for cell, seeds in suite.plan() for seed in seeds}
    replays = Replays(plugins, {cell.id: cell.setting for cell, _ in suite.plan()})
    planned, count = len(left), 0
    problems: list[str] = []
    try:
        for run in read_runs(folder, LARGEST_EVENTS):
            count += 1
            name = run.record.run
            was_played, wrong = replays.check(run.record, run.lines)
            if name not in left or run.control:
                problems.append(f"run {name}: was not planned")
            elif not was_played:
                problems.append(f"run {name}: its replies are missing")
            left.discard(name)
            problems += [f"run {name}: {why}" for why in wrong]
            if len(problems) >= MOST_PROBLEMS:
                return count, problems
    except UNREADABLE as error:
        return count, [*problems, f"cannot be read: {_words(error)}"]
    if left:
        problems.append(f"{len(left):,} of {planned:,} planned runs are missing, such as {min(left)}")
    return count, problems


def _claims(read: Sequence[SweepFolder], suites: Sequence[Suite], document: Submission) -> Iterator[str]:
    """Yield which claims of a submission its records do not support."""
    first, *others = suites
    for cell, name in twins_missing(first, others):
        yield f"{cell.access.memory} has no {name} row on the same tasks"
        return
    seeds = show_seeds(sorted({seed for _, seeds in first.plan() for seed in seeds}))
    if document.seeds != seeds:
        yield f"its seeds are {str(document.seeds)[:80]}, those of the runs {seeds}"
    again = claimed_scores(read)
    if len(document.scores) != len(again):
        yield f"{len(document.scores)} rows of scores, where the records have {len(again)}"
    for claimed, mine in zip(document.scores, again, strict=False):
        if changed := [name for name in mine.__struct_fields__ if getattr(claimed, name) != getattr(mine, name)]:
            where = f"{mine.memory}, {mine.workload}{'' if mine.h is None else f', h = {mine.h}'}"
            yield f"{where}: {', '.join(sorted(changed))} do not follow from the records"


def _made_anew(folder: Path, request: CheckRequest, anew: RunAgain) -> Iterator[str]:
    """Run some runs of memories and some of references again, where they are scripts; yield what differs."""
    cells: dict[str, Cell] = {}
    able: dict[bool, list[str]] = {True: [], False: []}  # ids of runs, by whether they are of a memory
    for run in read_runs(folder, LARGEST_EVENTS):
        if (name := run.record.cell) not in cells:
            cells[name] = recorded_cell(run.record.setting)
            if (why := reason_not_made_anew(cells[name])) is not None:
                anew.why_not[name] = why
        if name not in anew.why_not and cells[name].access.memory is not None:  # rows without one are not shown
            able[is_candidate(cells[name])].append(run.record.run)
    drawn = {run: is_own for is_own, runs in able.items() for run in _drawn(runs, request, folder.name)}
    replays = Replays(request.plugins)
    for run in read_runs(folder, LARGEST_EVENTS):
        if run.record.run not in drawn:
            continue
        if drawn[run.record.run]:
            anew.runs[run.record.cell] += 1
        else:
            anew.references += 1
        if wrong := replays.made_anew(run.record, run.lines):
            yield f"run {run.record.run}: {wrong}"


def _drawn(runs: Sequence[str], request: CheckRequest, part: str) -> list[str]:
    """Return the runs to run again."""
    if not runs:
        return []
    order = words([request.rerun_seed], len(runs), "rerun", part)[0]
    places = sorted(range(len(runs)), key=lambda place: (int(below(order[place], 1 << 31)), place))
    return [runs[place] for place in places[: request.rerun]]


def without_copies(checked: Sequence[Checked]) -> list[Checked]:
    """Refuse submissions with the records of another one, times included, which no two sweeps share.

    The first by name stays, and of equal names the first by folder; who made the records is not in them.
    """
    owners: dict[str, Checked] = {}
    found: dict[Path, Checked] = {}
    for made in sorted(checked, key=lambda made: (made.name, made.folder)):
        listed = made.document.files if made.holds and made.document is not None else {}
        digests = [listed[name].sha256 for name in (f"{OWN}/{RUNS}", f"{OWN}/{EVENTS}") if name in listed]
        if (first := next((owners[digest] for digest in digests if digest in owners), None)) is not None:
            told = f"{OWN}/: the same records as {first.name} ({first.folder.name}), the first by name; submit your own"
            found[made.folder] = Checked(made.folder, made.name, (told,), runs=made.runs)
        else:
            found[made.folder] = made
            owners |= dict.fromkeys(digests, made)
    return [found[made.folder] for made in checked]


def _words(error: BaseException) -> str:
    return " ".join(f"{error}".split())[:300] or type(error).__name__
