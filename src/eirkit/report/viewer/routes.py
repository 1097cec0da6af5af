"""The JSON endpoints of the viewer and their parameters: which path returns which document.

Folders are opened only by keys that the viewer has issued, and runs only by names in a folder's records.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from eirkit import extensions
from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.limits import time_limit
from eirkit.records.analysis import RunRow
from eirkit.records.events import ActionTaken, MemoryExchange
from eirkit.records.money import cost_in_words
from eirkit.registry import records_read
from eirkit.report.logs.sentences import advice_rows
from eirkit.report.viewer import lacuna_run
from eirkit.report.viewer.documents import (
    CardInput,
    Changes,
    Folders,
    Grid,
    LacunaRun,
    ListedFolder,
    MemoryCall,
    Overview,
    Pressure,
    ShownAction,
    ShownSection,
    Similar,
    StepCard,
    StepDetails,
    taken,
)
from eirkit.report.viewer.excerpts import TextPiece, more_of, shorten
from eirkit.report.viewer.folders import (
    ViewedFolder,
    abstract,
    changed_at,
    failure_groups,
    find_places,
    place_at,
    progress_of,
    stamp,
)
from eirkit.report.viewer.heat import heat, layout_of
from eirkit.report.viewer.lacuna_run import pressure_lines, similar_to
from eirkit.report.viewer.logs import LogExcerpt, LogFolders, LoggedTurn, lines_around, logged_turn, place_of
from eirkit.report.viewer.reported import answer_of, evidence_document, possible_document, report_html
from eirkit.report.viewer.run_table import FolderRuns
from eirkit.report.viewer.tables import CutContext, CutQuery, CutTables, Page, Query, RowTable, SharedValue, alike
from eirkit.report.viewer.vestige_run import AnalysisTables, RunView, run_view
from eirkit.vestige.demand.gold_patches import GoldPatches

PAGE_SECONDS = 60.0  # of processor time for what one request reads of a run or a log
PAGE = 100  # rows by default
LINES = 1_000  # of a cut at a time
TABLES = ("analysis", *extensions.VIEWED)  # kinds of folders whose rows are tables, not runs of a sweep
KEPT = 16  # runs and folders that stay open
Asked = Mapping[str, Sequence[str]]  # URL parameters


@dataclass(slots=True)
class Viewer:
    """Answers the requests of the viewer for one root folder.

    Args:
        plugins: whether code that a run names, such as a workload of the user's, may be run.
        clock: returns the time in seconds, comparable with file modification times.
    """

    root: Path
    logs: LogFolders
    clock: Callable[[], float]
    plugins: bool = False
    gold: GoldPatches | None = None  # reference patches
    # What was read of each folder, with the stamp that the folder had then.
    _folders: dict[str, tuple[str, FolderRuns]] = field(default_factory=dict)
    _analyses: dict[str, tuple[str, AnalysisTables | CutTables]] = field(default_factory=dict)
    _possible: dict[str, tuple[str, ShownSection]] = field(default_factory=dict)
    _answers: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    _runs: OrderedDict[tuple[str, str], lacuna_run.LacunaRun] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, path: str, asked: Asked) -> Struct:
        """Return the document for a request path.

        Raises:
            UsageError: there is no such path, folder, run or column; the message is shown to the user.
        """
        route = ROUTES.get(path)
        if route is None:
            raise InputFileError(f"nothing is at {path}; reload the page")
        with records_read(plugins=self.plugins):
            return route(self, asked)

    def warm(self) -> None:
        """Read ahead what the first page will request, while the browser is opening."""
        places = find_places(self.root)
        if places[0].key == "." or len(places) == 1:
            for path in ("/api/overview", "/api/runs"):
                with suppress(EirkitError):  # the page will report it
                    self.answer(path, {"at": [places[0].key]})

    def folders(self, asked: Asked) -> Folders:
        """Return every folder that can be shown."""
        places = find_places(self.root)
        found = (
            ListedFolder(place.key, place.kind, stamp(place), abstract(place), changed_at(place)) for place in places
        )
        return Folders(self.root.name, tuple(found))

    def changes(self, asked: Asked) -> Changes:
        """Return a text that changes whenever the folder changes."""
        return Changes(stamp(self._place(asked)))

    def overview(self, asked: Asked) -> Overview:
        """Return the progress of a folder or the summary of its analysis, and the columns of its runs."""
        place = self._place(asked)
        if place.kind in TABLES:
            tables = self._tables(place)
            found = Overview(kind=place.kind, fields=tuple(tables.table.fields), alike=alike(tables.table))
            if not isinstance(tables, AnalysisTables):
                return replace(found, answers=tuple(tables.answers))
            return replace(found, summary=tables.summary, advice=advice_rows(tables.summary.advice))
        runs = self._folder(place)
        progress, shared = progress_of(place, runs, self.clock()), alike(runs.table)
        if runs.spending is not None:
            shared = (*shared, SharedValue("cost", cost_in_words(runs.spending)))
        return Overview(
            kind=place.kind,
            fields=tuple(runs.table.fields),
            alike=shared,
            progress=progress,
            failures=failure_groups(runs.lost),
            answers=() if progress is None or progress.state == "running" else self._answer_of(place),
        )

    def _answer_of(self, place: ViewedFolder) -> tuple[str, ...]:
        """Return how the report of a sweep begins; nothing for what it cannot be made of, which the report will say."""
        if place.kind != "sweep":
            return ()
        now, known = stamp(place), self._answers.get(place.key)
        if known is None or known[0] != now:
            found: tuple[str, ...] = ()
            with suppress(EirkitError), time_limit(PAGE_SECONDS, "this folder"):
                found = answer_of(place.path, self._folder(place).rows, plugins=self.plugins)
            known = self._answers[place.key] = (now, found)
        return known[1]

    def runs(self, asked: Asked) -> Page:
        """Return one page of runs, with the values to filter by."""
        table = self._table(self._place(asked))
        return table.page(query_of(asked), number_of(asked, "offset", 0), number_of(asked, "limit", PAGE))

    def grid(self, asked: Asked) -> Grid:
        """Return the heat map of one column by others: those asked for, else those that say most."""
        table, query = self._table(self._place(asked)), query_of(asked)
        layout = layout_of(table, query, {name: one_of(asked, name, "") for name in ("x", "y", "value")})
        if layout is None:
            raise InputFileError("these runs have no figure to lay out; look at the table")
        return heat(table, query, layout)

    def evidence(self, asked: Asked) -> ShownSection:
        """Return what a rescue, capability or probe folder came to."""
        place = self._place(asked)
        if place.kind != "evidence":
            raise InputFileError(f"{place.key} is no rescue, capability or probe; choose another folder")
        with time_limit(PAGE_SECONDS, "this folder"):
            return evidence_document(place, plugins=self.plugins)

    def report(self, asked: Asked) -> str:
        """Return the report of a folder as HTML."""
        with time_limit(PAGE_SECONDS, "this folder"):
            return report_html(self._place(asked), plugins=self.plugins)

    def possible(self, asked: Asked) -> ShownSection:
        """Return accuracy over the bits held, for the cells of a sweep beside what any memory could reach."""
        place = self._place(asked)
        if place.kind != "sweep":
            raise InputFileError(f"{place.key} is no sweep; choose another folder")
        now, known = stamp(place), self._possible.get(place.key)
        if known is None or known[0] != now:
            with time_limit(PAGE_SECONDS, "this folder"):
                found = possible_document(place.path, self._folder(place).rows, plugins=self.plugins)
            known = self._possible[place.key] = (now, found)
        return known[1]

    def run(self, asked: Asked) -> LacunaRun | RunView:
        """Return one run."""
        place = self._place(asked)
        if place.kind == "analysis":
            return run_view(self._analysis(place), one_of(asked, "run"), self.gold, has_logs=bool(self.logs.roots))
        run = self._lacuna(place, one_of(asked, "run"))
        with time_limit(PAGE_SECONDS, "this run"):
            return run.document(self._folder(place))

    def cut(self, asked: Asked) -> CutContext:
        """Return one cut of a compaction benchmark: its lines, and which of them each compactor kept."""
        place = self._place(asked)
        tables = self._tables(place) if place.kind == "compaction" else None
        if tables is None or isinstance(tables, AnalysisTables):
            raise InputFileError(f"{place.key} is no compaction benchmark; choose another folder")
        turn, budget, offset = (number_of(asked, name, 0) for name in ("turn", "budget", "offset"))
        query = CutQuery(turn, budget, one_of(asked, "lines", "needed"), offset, LINES)
        with time_limit(PAGE_SECONDS, "this log"):
            return tables.cut(one_of(asked, "run"), query, self.logs)

    def step(self, asked: Asked) -> StepDetails:
        """Return one step of a lacuna run: its exchanges, how its error arose and spread, and its cone."""
        return shorten(self._step(asked))

    def similar(self, asked: Asked) -> Similar:
        """Return the failures of the folder that are like the one at a step; nothing for a right step."""
        place = self._place(asked)
        run = self._lacuna(place, one_of(asked, "run"))
        with time_limit(PAGE_SECONDS, "this folder"):
            card = run.card(number_of(asked, "t", 1))
            return Similar(None if card is None else similar_to(self._folder(place), run, card))

    def pressure(self, asked: Asked) -> Pressure:
        """Return EIR and capacity over a lacuna run."""
        run = self._lacuna(self._place(asked), one_of(asked, "run"))
        with time_limit(PAGE_SECONDS, "this run"):
            return pressure_lines(run)

    def turn(self, asked: Asked) -> LoggedTurn:
        """Return one turn of a recorded run, as its log has it."""
        return shorten(self._turn(asked))

    def source(self, asked: Asked) -> LogExcerpt:
        """Return the lines of a log around a turn or an offset."""
        row = self._row(asked)
        with time_limit(PAGE_SECONDS, "this log"):
            text = self.logs.text(row)
            if "offset" in asked:
                offset = min(number_of(asked, "offset", 0), len(text))
            else:
                offset = place_of(text, self.logs.recording(row).turns, number_of(asked, "turn", 1)) or 0
            return lines_around(text, offset, row.source)

    def text(self, asked: Asked) -> TextPiece:
        """Return more of a long text."""
        whole = self._turn(asked) if "turn" in asked else self._step(asked)
        return more_of(whole, one_of(asked, "part"), number_of(asked, "offset", 0))

    def _step(self, asked: Asked) -> StepDetails:
        run, t = self._lacuna(self._place(asked), one_of(asked, "run")), number_of(asked, "t", 1)
        with time_limit(PAGE_SECONDS, "this run"):
            return _step_details(run, t)

    def _turn(self, asked: Asked) -> LoggedTurn:
        row = self._row(asked)
        with time_limit(PAGE_SECONDS, "this log"):
            return logged_turn(self.logs, row, number_of(asked, "turn", 1))

    def _row(self, asked: Asked) -> RunRow:
        return self._analysis(self._place(asked)).run(one_of(asked, "run"))

    def _place(self, asked: Asked) -> ViewedFolder:
        return place_at(self.root, one_of(asked, "at"))

    def _table(self, place: ViewedFolder) -> RowTable:
        return self._tables(place).table if place.kind in TABLES else self._folder(place).table

    def _folder(self, place: ViewedFolder) -> FolderRuns:
        """Return the runs of a folder, read again if the folder has changed."""
        now = stamp(place)
        with self._lock:
            known = self._folders.get(place.key)
            if known is None or known[0] != now:
                known = self._folders[place.key] = (now, FolderRuns(place.path))
            return known[1]

    def _analysis(self, place: ViewedFolder) -> AnalysisTables:
        tables = self._tables(place) if place.kind == "analysis" else None
        if not isinstance(tables, AnalysisTables):
            raise InputFileError(f"{place.key} is no analysis of recorded runs; choose another folder")
        return tables

    def _tables(self, place: ViewedFolder) -> AnalysisTables | CutTables:
        now = stamp(place)
        with self._lock:
            known = self._analyses.get(place.key)
            if known is None or known[0] != now:
                made = AnalysisTables if place.kind == "analysis" else extensions.load(extensions.VIEWED[place.kind])
                known = self._analyses[place.key] = (now, made(place.path))
            return known[1]

    def _lacuna(self, place: ViewedFolder, name: str) -> lacuna_run.LacunaRun:
        if place.kind in TABLES:
            raise InputFileError(f"{place.key} holds recorded runs, which have no steps; choose another folder")
        with self._lock:
            if (place.key, name) in self._runs:
                return self._runs[place.key, name]
        run = lacuna_run.LacunaRun(place.path, self._folder(place).record(name), plugins=self.plugins)
        with self._lock:
            self._runs[place.key, name] = run
            if len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        return run


def _step_details(run: lacuna_run.LacunaRun, t: int) -> StepDetails:
    if not 1 <= t <= len(run.graph):
        raise InputFileError(f"the task has {len(run.graph)} steps, and none numbered {t}; choose another")
    exchanges = tuple(exchange for exchange in run.replayed.exchanges if run.step_at(exchange.t) == t)
    card = run.card(t)
    return StepDetails(
        t=t,
        card=None
        if card is None
        else StepCard(
            card.correct,
            tuple(card.sentences()),
            tuple(CardInput(needed.name, needed.step, needed.lines, needed.fate) for needed in card.inputs),
        ),
        exchanges=exchanges,
        inexact="" if all(exchange.exact for exchange in exchanges) else run.replayed.reason,
        actions=tuple(
            taken(ShownAction, event)
            for event in run.events
            if isinstance(event, ActionTaken) and run.step_at(event.t) == t
        ),
        memory=tuple(
            taken(MemoryCall, event, found=event.found or ())
            for event in run.events
            if isinstance(event, MemoryExchange) and run.step_at(event.t) == t
        ),
        spread=run.spread(t),
        cone=run.cone(t),
        conversation=run.question(t),
    )


def query_of(asked: Asked) -> Query:
    """Parse the URL parameters of a table: f.NAME=LABEL, min.NAME, max.NAME, q, sort=NAME or sort=-NAME."""
    sort = one_of(asked, "sort", "")
    return Query(
        equal=tuple((key[2:], tuple(values)) for key, values in sorted(asked.items()) if key.startswith("f.")),
        least=tuple((key[4:], real_of(values[0])) for key, values in sorted(asked.items()) if key.startswith("min.")),
        most=tuple((key[4:], real_of(values[0])) for key, values in sorted(asked.items()) if key.startswith("max.")),
        words=one_of(asked, "q", ""),
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
    )


def one_of(asked: Asked, name: str, otherwise: str | None = None) -> str:
    """Return the value of a URL parameter."""
    if name in asked:
        return asked[name][0]
    if otherwise is None:
        raise UsageError(f"the address lacks {name}=; reload the page")
    return otherwise


def number_of(asked: Asked, name: str, otherwise: int) -> int:
    """Return the value of a URL parameter as an integer of at least 0."""
    text = one_of(asked, name, str(otherwise))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise UsageError(f"{name}= must be a whole number; reload the page")
    return int(text)


def real_of(text: str) -> float:
    """Return a bound given in the URL as a number."""
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{text!r} is no number; correct the filter") from None
    return value


ROUTES: dict[str, Callable[[Viewer, Asked], Struct]] = {
    "/api/folders": Viewer.folders,
    "/api/changes": Viewer.changes,
    "/api/overview": Viewer.overview,
    "/api/runs": Viewer.runs,
    "/api/grid": Viewer.grid,
    "/api/evidence": Viewer.evidence,
    "/api/possible": Viewer.possible,
    "/api/run": Viewer.run,
    "/api/cut": Viewer.cut,
    "/api/step": Viewer.step,
    "/api/similar": Viewer.similar,
    "/api/pressure": Viewer.pressure,
    "/api/turn": Viewer.turn,
    "/api/source": Viewer.source,
    "/api/text": Viewer.text,
}
