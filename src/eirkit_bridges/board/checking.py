"""Decides whether a submission holds, and the reason if not: its files, sizes, versions, settings, runs and scores.

Nothing that a submission says is taken over: the scores of the board are computed from its records. What does not
follow is refused, with the file and the reason. Replies of a hosted model cannot be asked for again; those of scripts
can, and a sample of them is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from eirkit import __version__
from eirkit.errors import InputFileError
from eirkit.lacuna.runs.cells import Cell, recorded_cell
from eirkit.lacuna.runs.manifest import FILE, Manifest, describe, read_manifest
from eirkit.lacuna.runs.replay import UNREADABLE, Replays, check_runs, reason_not_made_anew
from eirkit.lacuna.runs.store import RUNS, changed_files, scan_runs
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.values import show_seeds
from eirkit.records.event_blocks import EVENTS
from eirkit.records.lines import read_document
from eirkit.registry import records_read, references_in, relocate
from eirkit.report.runs.folder import SweepFolder
from eirkit.report.table import clean
from eirkit.seeds import below, words
from eirkit_bridges.board.submission import (
    CONTROLS,
    DOCUMENT,
    LONGEST_NAME,
    OWN,
    SCHEMA,
    SOURCES,
    VERSIONS,
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
_DERIVED = ("suite", "suite_sha256", "cells", "runs", "prompt_sha256", "rules", "sources")


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
    document: Mapping[str, Any] = field(default_factory=dict)
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
        document = read_document(folder / DOCUMENT, SCHEMA, LARGEST_LIST)
        name = clean(str(document["name"]))[:LONGEST_NAME]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            return Checked(folder, name, (f"{size:,} bytes, where at most {MOST_BYTES:,} are read",))
        with records_read(plugins=request.plugins):
            return _checked(request, name, document)
    except UNREADABLE as error:
        return Checked(folder, folder.name, (f"{DOCUMENT}: {_words(error)}",))


def _checked(request: CheckRequest, name: str, document: Mapping[str, Any]) -> Checked:
    folder = request.folder
    problems = [*changed_files(folder, DOCUMENT, document["files"])]
    parts = [one for one in (OWN, CONTROLS) if one == OWN or (folder / one).is_dir()]
    suites: list[Suite] = []
    read: tuple[SweepFolder, ...] = ()
    runs, anew = 0, RunAgain()
    for part in parts if not problems else ():
        suite, found = _settings(folder / part, document, request.plugins)
        problems += [f"{part}/{FILE}: {one}" for one in found]
        if suite is None:
            continue
        suites.append(suite)
        if found:
            continue
        count, wrong = _runs(folder / part, suite, request.plugins)
        runs, problems = runs + count, problems + [f"{part}/{RUNS}: {one}" for one in wrong]
    if not problems:
        read = tuple(read_parts(folder))
        problems += [f"{DOCUMENT}: {one}" for one in _claims(read, suites, document)]
    if not problems and request.rerun:
        for part in parts:
            problems += [f"{part}/{RUNS}: {one}" for one in _made_anew(folder / part, request, anew)]
    if problems:
        return Checked(folder, name, tuple(problems[:MOST_PROBLEMS]), runs=runs)
    return Checked(folder, name, (), read, document, runs, anew, request.rerun_seed)


def _settings(folder: Path, document: Mapping[str, Any], plugins: bool) -> tuple[Suite | None, list[str]]:
    """Return the suite of a sweep, None if it cannot be read, and what is wrong with its manifest."""
    try:
        manifest = read_manifest(folder)
    except InputFileError as error:
        return None, [_words(error)]
    if manifest.eirkit != __version__:
        return None, [f"made by eirkit {manifest.eirkit}, this is {__version__}; check it with that version"]
    found = [f"its {key} is not that of {DOCUMENT}" for key in VERSIONS if getattr(manifest, key) != document[key]]
    if found and folder.name == CONTROLS:
        found = [one for one in found if "eirkit" in one.split()[1]]  # the references may be run later and elsewhere
    grids = (manifest.suite, *manifest.suite.get("grid", ()))  # keys above the grids are defaults of all
    if (named := [name for grid in grids for name in references_in(grid)]) and not plugins:
        return None, [f"{named[0]} is code of its own; add --plugins only if you trust who wrote it"]
    if named:
        _find_sources(folder.parent, manifest)
    try:
        suite = read_suite(manifest.suite)
        again = describe(suite, None, {}, control=manifest.control)
    except UNREADABLE as error:
        return None, [f"its settings cannot be read ({_words(error)})"]
    if not suite.texts:
        return None, ["its texts were not kept, so nothing can be checked; run it without --no-texts"]
    changed = [key for key in _DERIVED if getattr(manifest, key) != _plain(getattr(again, key))]
    return suite, [*found, *(f"its {key} does not follow from its settings" for key in changed)]


def _unexpected(folder: Path) -> Iterator[str]:
    """Yield what no submission has: links, special files, and files from which anything else might be read."""
    names = (FILE, RUNS, EVENTS)
    known = {DOCUMENT, *(f"{part}/{name}" for part in (OWN, CONTROLS) for name in names)}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            yield f"{name}: is no ordinary file"
        elif path.is_file() and name not in known and path.parent != folder / SOURCES:
            yield f"{name}: is no file of a submission"


def _find_sources(folder: Path, manifest: Manifest) -> None:
    for place, path in enumerate(manifest.sources):
        copy = folder / SOURCES / f"{place}-{Path(path).name}"
        if copy.is_file():
            relocate(path, copy.resolve())


def _runs(folder: Path, suite: Suite, plugins: bool) -> tuple[int, list[str]]:
    """Play all runs of a sweep again; there must be one for each planned cell and seed, and no other."""
    if len(suite) > (folder / RUNS).stat().st_size // _SHORTEST_RECORD:
        return 0, [f"{len(suite):,} runs are planned, more than it has"]
    left = {cell.run_id(seed) for cell, seeds in suite.plan() for seed in seeds}
    coordinates = {cell.id: _plain(cell.as_json()) for cell, _ in suite.plan()}
    planned, count = len(left), 0
    problems: list[str] = []
    try:
        for record, was_played, wrong in check_runs(
            folder / RUNS, plugins=plugins, planned=coordinates, largest_block=LARGEST_EVENTS
        ):
            count += 1
            run = str(record["run"])[:40]
            if record["run"] not in left:
                problems.append(f"run {run}: was not planned, or is there twice")
            elif not was_played:
                problems.append(f"run {run}: its replies are missing")
            left.discard(record["run"])
            problems += [f"run {run}: {one}" for one in wrong]
            if len(problems) >= MOST_PROBLEMS:
                return count, problems
    except UNREADABLE as error:
        return count, [*problems, f"cannot be read: {_words(error)}"]
    if left:
        problems.append(f"{len(left):,} of {planned:,} planned runs are missing, such as {min(left)}")
    return count, problems


def _claims(read: Sequence[SweepFolder], suites: Sequence[Suite], document: Mapping[str, Any]) -> Iterator[str]:
    """Yield which claims of a submission its records do not support."""
    first, *others = suites
    for cell, name in twins_missing(first, others):
        yield f"{cell.access.memory} has no {name} row on the same tasks"
        return
    seeds = show_seeds(sorted({seed for _, seeds in first.plan() for seed in seeds}))
    if document["seeds"] != seeds:
        yield f"its seeds are {str(document['seeds'])[:80]}, those of the runs {seeds}"
    again = claimed_scores(read)
    claimed = document["scores"]
    if len(claimed) != len(again):
        yield f"{len(claimed)} rows of scores, where the records have {len(again)}"
    for said, mine in zip(claimed, again, strict=False):
        if changed := [name for name in mine.keys() | said.keys() if said.get(name) != _plain(mine.get(name))]:
            where = f"{mine['memory']}, {mine['workload']}, h = {mine['h']}"
            yield f"{where}: {', '.join(sorted(changed))} do not follow from the records"


def _plain(value: Any) -> Any:
    """Return a value as JSON would give it back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _made_anew(folder: Path, request: CheckRequest, anew: RunAgain) -> Iterator[str]:
    """Run some runs of memories and some of references again, where they are scripts; yield what differs."""
    cells: dict[str, Cell] = {}
    able: dict[bool, list[Mapping[str, Any]]] = {True: [], False: []}  # by whether they are of a memory
    for record, _ in scan_runs(folder / RUNS):
        if (name := record["cell"]) not in cells:
            cells[name] = recorded_cell(record)
            if (why := reason_not_made_anew(cells[name])) is not None:
                anew.why_not[name] = why
        if name not in anew.why_not and cells[name].access.memory is not None:  # rows without one are not shown
            able[is_candidate(cells[name])].append(record)
    replays = Replays(folder, request.plugins, largest_block=LARGEST_EVENTS)
    for is_own, records in able.items():
        for one in _drawn(records, request, folder.name):
            if is_own:
                anew.runs[one["cell"]] += 1
            else:
                anew.references += 1
            if wrong := replays.made_anew(one):
                yield f"run {one['run']}: {wrong}"


def _drawn(records: Sequence[Mapping[str, Any]], request: CheckRequest, part: str) -> list[Mapping[str, Any]]:
    """Return the runs to run again."""
    if not records:
        return []
    order = words([request.rerun_seed], len(records), "rerun", part)[0]
    places = sorted(range(len(records)), key=lambda place: (int(below(order[place], 1 << 31)), place))
    return [records[place] for place in places[: request.rerun]]


def without_copies(checked: Sequence[Checked]) -> list[Checked]:
    """Refuse submissions with the records of another one, times included, which no two sweeps share.

    The first by name stays, and of equal names the first by folder; who made the records is not in them.
    """
    owners: dict[str, Checked] = {}
    found: dict[Path, Checked] = {}
    for one in sorted(checked, key=lambda one: (one.name, one.folder)):
        listed = one.document["files"] if one.holds else {}
        digests = [listed[name]["sha256"] for name in (f"{OWN}/{RUNS}", f"{OWN}/{EVENTS}") if name in listed]
        if (first := next((owners[digest] for digest in digests if digest in owners), None)) is not None:
            told = f"{OWN}/: the same records as {first.name} ({first.folder.name}), the first by name; submit your own"
            found[one.folder] = Checked(one.folder, one.name, (told,), runs=one.runs)
        else:
            found[one.folder] = one
            owners |= dict.fromkeys(digests, one)
    return [found[one.folder] for one in checked]


def _words(error: BaseException) -> str:
    return " ".join(f"{error}".split())[:300] or type(error).__name__
