"""The board as a static site: one page with the ranking of each track, one page for each entry, and the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import msgspec
from msgspec import UNSET, Struct, UnsetType

from eirkit.errors import UsageError
from eirkit.folders import replace_file
from eirkit.lacuna import RUN_MODEL
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES
from eirkit.lacuna.findings.measures import MEMORY_MEASURES, OUTCOME_MEASURES
from eirkit.lacuna.findings.ranking import Place
from eirkit.lacuna.memories.memory import SEARCH_LIMIT
from eirkit.lacuna.tasks.workload import Units
from eirkit.measures import MeasureGroup
from eirkit.records.evidence import Interval
from eirkit.records.sweeps import CellRow
from eirkit.report.comparison import measure_of
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series, facts
from eirkit.report.html import render
from eirkit.report.table import Cell, Column, Table, counted, points, share
from eirkit_bridges.board.checking import Checked
from eirkit_bridges.board.standings import Entry, Track, lost_of
from eirkit_bridges.board.submission import VERSIONS

INDEX, DATA, ENTRIES = "index.html", "board.json", "entries"
MOST_BARS = 40  # of one chart
_SCRIPTS = ("scripted/", "reference/")
_SHOWN = ("search_ms", "bytes", "cost_usd", "memory_cost_usd")


def write_site(out: Path, tracks: Sequence[Track], checked: Sequence[Checked]) -> list[Path]:
    """Write the site into a new folder, or over an earlier board; return what was written."""
    if out.exists() and any(out.iterdir()) and not (out / DATA).is_file():
        raise UsageError(f"{out} holds other files; choose a new folder for --out")
    written = {out / INDEX: render(index_page(tracks, checked)), out / DATA: _data(tracks, checked)}
    for track in tracks:
        for place, entry in enumerate(track.entries):
            written[out / ENTRIES / f"{entry.id}.html"] = render(entry_page(track, place))
    (out / ENTRIES).mkdir(parents=True, exist_ok=True)
    for path in set((out / ENTRIES).glob("*.html")) - set(written):
        path.unlink()  # of an entry that is no longer there
    for path, text in written.items():
        replace_file(path, text.encode("utf-8", "replace"))
    return list(written)


def index_page(tracks: Sequence[Track], checked: Sequence[Checked]) -> Page:
    """Return the page with all rankings, and with what was refused."""
    refused = [one for one in checked if not one.holds]
    entries = sum(len(track.entries) for track in tracks)
    sections = [_track_section(track) for track in tracks]
    if refused:
        sections.append(Section("Refused", ("Nothing of these submissions is shown.",), (refused_table(refused),)))
    sections.append(Section("How to check this", tuple(_how(checked))))
    return Page(
        "Board of memory systems",
        Headline(str(entries), f"{'entry' if entries == 1 else 'entries'} checked", tuple(summary(tracks, checked))),
        tuple(sections),
        "every score is computed from the records of its submission",
        kind="board",
    )


def summary(tracks: Sequence[Track], checked: Sequence[Checked]) -> Iterator[str]:
    """Yield what the board shows, in sentences."""
    refused = sum(not one.holds for one in checked)
    runs = sum(one.runs for one in checked if one.holds)
    anew, references = _rerun(checked), sum(one.anew.references for one in checked)
    yield (
        f"{counted(len(checked) - refused, 'submission')} of {len(checked):,} passed the check: "
        f"{counted(runs, 'run')} were played again from their replies; {anew:,} of memories and {references:,} of null "
        f"and sham were also run again with model and memory{_drawn(checked)}."
    )
    yield from _conditions([row for track in tracks for entry in track.entries for row in entry.rows])
    for track in tracks[:3]:
        leaders = [entry.name for entry in track.entries if entry.id in track.ranking.leaders]
        most = f"{leaders[0]}" if len(leaders) == 1 else f"{len(leaders)} entries, first by mean {leaders[0]},"
        yield f"Not shown to be surpassed on {track.title}: {most} at {share(track.entries[0].accuracy.estimate)}."


def _conditions(rows: Sequence[CellRow]) -> Iterator[str]:
    """Yield how many passages searches asked for, and that scripts took the place of models where they did."""
    profiles = [None if row.memory_system is None else row.memory_system.profile for row in rows]
    asked = {SEARCH_LIMIT if profile is None else profile.passages for profile in profiles}
    models = {row.model for row in rows}
    models |= {str(row.memory_settings["model"]) for row in rows if "model" in row.memory_settings}
    if rows and asked == {SEARCH_LIMIT}:
        yield f"Every search asked for {SEARCH_LIMIT} passages, whatever the default of the system is."
    if rows and all(name == RUN_MODEL or name.startswith(_SCRIPTS) for name in models):
        yield "Scripts extracted and read; no language model took part."


def _rerun(checked: Sequence[Checked]) -> int:
    """Return how many runs of memories were run again."""
    return sum(one.anew.runs.total() for one in checked)


def _made_anew(entry: Entry) -> int:
    """Return how many runs of this entry were run again."""
    return sum(entry.submission.anew.runs[row.cell] for row in entry.rows)


def _told_anew(entry: Entry) -> int | str:
    """Return how many runs of this entry were run again, or why none was."""
    why = {entry.submission.anew.why_not.get(row.cell) for row in entry.rows}
    return _made_anew(entry) or f"none: {' and '.join(sorted(filter(None, why))) or 'none of its runs was drawn'}"


def _drawn(checked: Sequence[Checked]) -> str:
    """Return which seed chose the runs that were run again."""
    return f" (drawn with seed {seed})" if (seed := _seed_of(checked)) is not None else ""


def _seed_of(checked: Sequence[Checked]) -> int | None:
    seeds = {one.rerun_seed for one in checked if one.anew}
    return seeds.pop() if len(seeds) == 1 else None


def _how(checked: Sequence[Checked]) -> Iterator[str]:
    seed = _seed_of(checked)
    again = "" if seed is None else f" --seed {seed}"
    yield f"`eirkit board FOLDERS --out site{again}` builds this page again and refuses what does not pass."
    yield (
        "Checked: files and checksums, versions, settings and tasks, every prompt, answer, verdict and score from the "
        "recorded replies and passages, one run for each planned seed, and null and sham rows on the same tasks. "
        "Replies of hosted models and what a memory system says of itself cannot be derived; `--repeats N` makes runs "
        "of scripts anew."
    )
    versions = sorted({made.document.eirkit for made in checked if made.holds and made.document is not None})
    yield f"Versions of eirkit: {', '.join(versions) or 'none'}."


def _track_section(track: Track) -> Section:
    ranking = track.ranking
    words = (
        f"{counted(ranking.cases, 'case')}. Above null and above sham: difference to a memory that keeps nothing, "
        "and to one that returns the content of other records, in percentage points, with its 95% interval.",
    )
    chart = (_chart(track),) if len(track.entries) <= MOST_BARS else ()
    return Section(track.title, words, (*chart, track_table(track)), id=f"track-{track.id}")


def _chart(track: Track) -> Chart:
    names = tuple(entry.name for entry in track.entries)
    measure = measure_of("accuracy")
    found, axis = [entry.accuracy for entry in track.entries], Axis.of(measure)
    series = Series(
        measure.label,
        "points",
        names,
        tuple(one.estimate for one in found),
        tuple(one.low for one in found),
        tuple(one.high for one in found),
        measure=measure.id,
        color=measure.color,
    )
    told = ", ".join(f"{name} {share(one.estimate)}" for name, one in zip(names, found, strict=True))
    return Chart(
        f"accuracy-{track.id}",
        f"Accuracy on {track.title}",
        f"{told}.",
        Axis("entry", "category"),
        replace(axis, title=track.units.tell(axis.title)),
        (series,),
    )


def track_table(track: Track) -> Table:
    """Return the ranking of a track, each entry with a link to its page."""
    models = {entry.candidate.model for entry in track.entries}
    rows = tuple(
        {"place": standing.place, "page": f"{ENTRIES}/{entry.id}.html", **_line(entry)}
        for entry, standing in zip(track.entries, track.ranking.standings, strict=True)
    )
    columns = (
        Column("memory", "memory", role="name", link="page"),
        Column("model", "model", role="name", priority=1 if len(models) > 1 else 3),
        Column("submission", "submission", role="name", priority=1),
        Column("place", "compared with the best", meaning="of this track, at 0.95 for all entries together"),
        Column.of(measure_of("accuracy")),
        Column("interval", "95% interval", figures=True, priority=1),
        Column("null", "above null", figures=True),
        Column("sham", "above sham", figures=True, priority=2),
        Column("lost", "lost", percent=True, meaning="records needed from memory that did not come back", priority=1),
        Column(
            "why", "main failure", meaning="the most frequent outcome of a needed record, or of a question", priority=2
        ),
        Column("bits", "bits held, needed", figures=True, priority=3),
        *(Column.of(measure_of(name), priority=4) for name in _SHOWN),
    )
    return Table(f"ranking-{track.id}", f"Ranking on {track.title}", columns, rows).reworded(track.units.tell)


def _line(entry: Entry) -> dict[str, Cell]:
    held, needed = entry.figures.get("held_bits"), entry.figures.get("needed_bits")
    return {
        "memory": entry.candidate.memory_label,
        "model": entry.candidate.model,
        "submission": entry.submission.name,
        "accuracy": entry.accuracy.estimate,
        "interval": f"{share(entry.accuracy.low)} to {share(entry.accuracy.high)}",
        "null": _gain(entry.over_null),
        "sham": _gain(entry.over_sham),
        "lost": lost_of(entry),
        "why": _why(entry),
        "bits": None if held is None or needed is None else f"{held:,.0f}, {needed:,.0f}",
        **{name: entry.figures.get(name) for name in _SHOWN},
    }


def _gain(found: Interval) -> str:
    return f"{points(found.estimate)} ({points(found.low)} to {points(found.high)})"


def entry_page(track: Track, place: int) -> Page:
    """Return the page of one entry: its place, its rows, outcomes, settings and what was checked."""
    entry, ranking = track.entries[place], track.ranking
    standing = ranking.standings[place]
    shown = "is shown to add something" if entry.over_null.low > 0 else "is not shown to add anything"
    checked = entry.submission
    sentences = (
        f"Compared with the best of {len(track.entries)} on {track.title}: {standing.place}.",
        f"Against a memory that keeps nothing: {_gain(entry.over_null)} percentage points, so it {shown}; against one "
        f"that returns the content of other records: {_gain(entry.over_sham)}.",
    )
    back = Table(
        "back",
        "Where this is ranked",
        (Column("track", "track", role="text", link="page"), Column("entries", "entries")),
        ({"track": track.title, "entries": len(track.entries), "page": f"../{INDEX}#track-{track.id}"},),
    )
    sections = (
        Section("Ranking", (), (back,)),
        Section("Rows", (), (_rows_table(entry),)),
        *([Section(_group_of(entry).title, (), (_outcomes_table(entry),))] if entry.outcomes else []),
        Section("What was checked", (), (_facts(entry), *_versions(checked))),
    )
    return Page(
        entry.name,
        Headline(share(entry.accuracy.estimate), f"of scored {entry.units.step}s are right", sentences),
        sections,
        f"submission {checked.name}",
        kind="board-entry",
    )


def _rows_table(entry: Entry) -> Table:
    columns = (
        Column("workload", "workload", role="name"),
        *(Column(name, name) for name in (("n", "m", "h") if entry.units == Units() else ())),
        Column.of(measure_of("accuracy")),
        Column("scored", "runs"),
        Column("needed", MEMORY_MEASURES["needed_bits"].label, digits=0),
        Column("held", MEMORY_MEASURES["held_bits"].label, digits=0),
    )
    lines = []
    for row in entry.rows:
        floor = None if row.memory_system is None else row.memory_system.floor
        bits = (
            {"needed": None, "held": None} if floor is None else {"needed": floor.needed_bits, "held": floor.held_bits}
        )
        lines.append({column.key: bits.get(column.key, getattr(row, column.key, None)) for column in columns})
    return Table("rows", "Accuracy by setting", columns, tuple(lines)).reworded(entry.units.tell)


def _group_of(entry: Entry) -> MeasureGroup:
    """Return the outcomes that the tasks of an entry can have."""
    return ANSWER_CAUSE_MEASURES if any(row.conversation for row in entry.rows) else OUTCOME_MEASURES


def _outcomes_table(entry: Entry) -> Table:
    group = _group_of(entry)
    columns = (
        Column("outcome", "outcome", role="text"),
        Column("share", "share", percent=True),
        Column("meaning", "meaning", role="text"),
    )
    rows: list[dict[str, Cell]] = [
        {"outcome": group[name].label, "share": found, "meaning": group[name].meaning}
        for name, found in entry.outcomes.items()
    ]
    (whole,) = {one.of for one in group}
    return Table("outcomes", f"{group.title}, as shares of {whole}", columns, tuple(rows))


def _why(entry: Entry) -> str | None:
    """Return the most frequent way in which a record or an answer failed, with its share."""
    group = _group_of(entry)
    failed = {name: found for name, found in entry.outcomes.items() if group[name].better == "less"}
    if not failed:
        return None
    most = max(failed, key=failed.__getitem__)
    return f"{group[most].label} {share(failed[most])}"


def _facts(entry: Entry) -> Table:
    checked, document = entry.submission, entry.submission.document
    assert document is not None  # it holds
    told: list[tuple[str, Cell]] = [
        ("submission", checked.name),
        ("model", entry.candidate.model),
        ("memory", entry.candidate.memory),
        ("settings of the memory", entry.candidate.settings or "default"),
        (f"accuracy of null on the same {entry.units.task}s", share(fmean(entry.null))),
        (f"accuracy of sham on the same {entry.units.task}s", share(fmean(entry.sham))),
        ("seeds", str(document.seeds)),
        ("runs played again from their replies", checked.runs),
        ("its runs made anew with model and memory", _told_anew(entry)),
        *((f"SHA-256 of {name}", file.sha256) for name, file in document.files.items()),
    ]
    return facts("checked", "The submission", told)


def _versions(checked: Checked) -> Iterator[Listing]:
    text = msgspec.json.format(
        msgspec.json.encode({name: getattr(checked.document, name) for name in VERSIONS}), indent=1
    )
    yield Listing("versions", "Versions", text.decode())


def refused_table(refused: Sequence[Checked]) -> Table:
    """Return what was refused, with every reason."""
    columns = (Column("folder", "submission", role="name"), Column("why", "file and reason", role="text"))
    rows = tuple({"folder": one.folder.name, "why": why} for one in refused for why in one.problems)
    return Table("refused", "Submissions that did not pass the check", columns, rows)


class Range(Struct, frozen=True):
    """A mean with its 95% interval."""

    mean: float
    low: float
    high: float


class EntryResult(Struct, frozen=True, kw_only=True):
    """One entry of the board as data."""

    id: str
    submission: str
    model: str
    memory: str
    settings: str
    place: Place  # compared with the best of its track
    accuracy: Range
    over_null: Range
    over_sham: Range
    outcomes: dict[str, float]
    figures: dict[str, float | None]
    runs: int
    made_anew: int


class TrackResult(Struct, frozen=True, kw_only=True):
    """Entries that were given the same tasks, from best to worst."""

    id: str
    title: str
    tasks: int
    cases: int
    level: float
    entries: tuple[EntryResult, ...]


class Rerun(Struct, frozen=True):
    """How many runs were made anew, and which seeds chose them."""

    runs: int
    references: int
    seeds: tuple[int, ...]


class Refused(Struct, frozen=True):
    """A submission that does not hold, and why."""

    folder: str
    problems: tuple[str, ...]


class BoardResult(Struct, frozen=True, kw_only=True):
    """The board as data; `out` is where its page was written."""

    tracks: tuple[TrackResult, ...]
    rerun: Rerun
    refused: tuple[Refused, ...]
    out: str | UnsetType = UNSET


def _data(tracks: Sequence[Track], checked: Sequence[Checked]) -> str:
    whole = msgspec.json.encode(board_result(tracks, checked))
    return msgspec.json.format(b'{"schema":"board/1",' + whole[1:], indent=1).decode() + "\n"


def board_result(tracks: Sequence[Track], checked: Sequence[Checked]) -> BoardResult:
    """Return the board as data."""
    return BoardResult(
        tracks=tuple(
            TrackResult(
                id=track.id,
                title=track.title,
                tasks=track.ranking.tasks,
                cases=track.ranking.cases,
                level=track.ranking.level,
                entries=tuple(_entry_result(entry, track, place) for place, entry in enumerate(track.entries)),
            )
            for track in tracks
        ),
        rerun=Rerun(
            _rerun(checked),
            sum(made.anew.references for made in checked),
            tuple(sorted({made.rerun_seed for made in checked if made.anew})),
        ),
        refused=tuple(Refused(made.folder.name, made.problems) for made in checked if not made.holds),
    )


def _entry_result(entry: Entry, track: Track, place: int) -> EntryResult:
    standing = track.ranking.standings[place]
    accuracy, null, sham = (
        Range(found.estimate, found.low, found.high) for found in (entry.accuracy, entry.over_null, entry.over_sham)
    )
    return EntryResult(
        id=entry.id,
        submission=entry.submission.name,
        model=entry.candidate.model,
        memory=entry.candidate.memory,
        settings=entry.candidate.settings,
        place=standing.place,
        accuracy=accuracy,
        over_null=null,
        over_sham=sham,
        outcomes=dict(entry.outcomes),
        figures=dict(entry.figures),
        runs=entry.submission.runs,
        made_anew=_made_anew(entry),
    )
