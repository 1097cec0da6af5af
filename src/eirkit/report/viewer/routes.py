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
from typing import Any

from eirkit import extensions
from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.lacuna.findings.causes import RunScore
from eirkit.limits import time_limit
from eirkit.registry import records_read
from eirkit.report.logs.sentences import advice_rows
from eirkit.report.viewer.folders import (
    ViewedFolder,
    abstract,
    changed_at,
    failure_groups,
    find_places,
    lost_runs,
    place_at,
    progress_of,
    stamp,
)
from eirkit.report.viewer.heat import heat, layout_of
from eirkit.report.viewer.lacuna_run import LacunaRun, pressure_lines, similar_to
from eirkit.report.viewer.logs import LogFolders, lines_around, place_of, turn_document
from eirkit.report.viewer.prompts import SpokenRun
from eirkit.report.viewer.reported import evidence_document, more_of, possible_document, report_html, shorten
from eirkit.report.viewer.run_index import RunIndex, own_words, recorded_score, siblings
from eirkit.report.viewer.tables import CutQuery, CutTables, Query, RowTable, alike, as_json
from eirkit.report.viewer.vestige_run import AnalysisTables, run_document
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
    _indexes: dict[str, RunIndex] = field(default_factory=dict)
    _analyses: dict[str, tuple[str, AnalysisTables | CutTables]] = field(default_factory=dict)
    _possible: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    _runs: OrderedDict[tuple[str, str], SpokenRun] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, path: str, asked: Asked) -> dict[str, Any]:
        """Return the JSON document for a request path.

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

    def folders(self, asked: Asked) -> dict[str, Any]:
        """Return every folder that can be shown."""
        found = [
            {
                "key": place.key,
                "kind": place.kind,
                "stamp": stamp(place),
                "about": abstract(place),
                "changed": changed_at(place),
            }
            for place in find_places(self.root)
        ]
        return {"name": self.root.name, "folders": found}

    def changes(self, asked: Asked) -> dict[str, Any]:
        """Return a text that changes whenever the folder changes, and how much of the folder was read."""
        place = self._place(asked)
        share = 1.0 if place.kind in TABLES else self._index(place).read_share
        return {"stamp": stamp(place), "read_share": share}

    def overview(self, asked: Asked) -> dict[str, Any]:
        """Return the progress of a folder or the summary of its analysis, and the columns of its runs."""
        place = self._place(asked)
        if place.kind in TABLES:
            tables = self._tables(place)
            return {"kind": place.kind, **_summarised(tables), **_columns(tables.table)}
        index = self._index(place)
        lost = lost_runs(place.path, index)
        return {
            "kind": place.kind,
            "progress": progress_of(place, index, self.clock()).as_json(),
            "failures": failure_groups(lost),
            **_columns(index.table()),
        }

    def runs(self, asked: Asked) -> dict[str, Any]:
        """Return one page of runs, with the values to filter by."""
        place = self._place(asked)
        table, query = self._table(place), query_of(asked)
        page = table.page(query, number_of(asked, "offset", 0), number_of(asked, "limit", PAGE))
        share = 1.0 if place.kind in TABLES else self._index(place, read=False).read_share
        return {"fields": as_json(table.fields), **page, "facets": table.facets(query), "read_share": share}

    def grid(self, asked: Asked) -> dict[str, Any]:
        """Return the heat map of one column by others: those asked for, else those that say most."""
        table, query = self._table(self._place(asked)), query_of(asked)
        layout = layout_of(table, query, {name: one_of(asked, name, "") for name in ("x", "y", "value")})
        if layout is None:
            raise InputFileError("these runs have no figure to lay out; look at the table")
        return heat(table, query, layout)

    def evidence(self, asked: Asked) -> dict[str, Any]:
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

    def possible(self, asked: Asked) -> dict[str, Any]:
        """Return accuracy over the bits held, for the cells of a sweep beside what any memory could reach."""
        place = self._place(asked)
        if place.kind != "sweep":
            raise InputFileError(f"{place.key} is no sweep; choose another folder")
        now, known = stamp(place), self._possible.get(place.key)
        if known is None or known[0] != now:
            with time_limit(PAGE_SECONDS, "this folder"):
                found = possible_document(place.path, len(self._index(place)), plugins=self.plugins)
            known = self._possible[place.key] = (now, found)
        return known[1]

    def run(self, asked: Asked) -> dict[str, Any]:
        """Return one run."""
        place = self._place(asked)
        if place.kind == "analysis":
            document = run_document(self._analysis(place), one_of(asked, "run"), self.gold)
            document["has_logs"] = bool(self.logs.roots)
            return document
        run = self._lacuna(place, one_of(asked, "run"))
        with time_limit(PAGE_SECONDS, "this run"):
            others = siblings(self._index(place, read=False), run.record)
            return {**run.document(), "words": own_words(run.record), "siblings": others}

    def cut(self, asked: Asked) -> dict[str, Any]:
        """Return one cut of a compaction benchmark: its lines, and which of them each compactor kept."""
        place = self._place(asked)
        tables = self._tables(place) if place.kind == "compaction" else None
        if tables is None or isinstance(tables, AnalysisTables):
            raise InputFileError(f"{place.key} is no compaction benchmark; choose another folder")
        turn, budget, offset = (number_of(asked, name, 0) for name in ("turn", "budget", "offset"))
        query = CutQuery(turn, budget, one_of(asked, "lines", "needed"), offset, LINES)
        with time_limit(PAGE_SECONDS, "this log"):
            return tables.cut(one_of(asked, "run"), query, self.logs)

    def step(self, asked: Asked) -> dict[str, Any]:
        """Return one step of a lacuna run: its exchanges, how its error arose and spread, and its cone."""
        return _as_object(shorten(self._step(asked)))

    def similar(self, asked: Asked) -> dict[str, Any]:
        """Return the failures of the folder that are like the one at a step; nothing for a right step."""
        place = self._place(asked)
        run, index = self._lacuna(place, one_of(asked, "run")), self._index(place, read=False)
        with time_limit(PAGE_SECONDS, "this folder"):
            card = run.card(number_of(asked, "t", 1))
            found = None if card is None else similar_to(index, run, card)
        return {"similar": None if found is None else found.as_json()}

    def pressure(self, asked: Asked) -> dict[str, Any]:
        """Return EIR and capacity over a lacuna run."""
        run = self._lacuna(self._place(asked), one_of(asked, "run"))
        with time_limit(PAGE_SECONDS, "this run"):
            return pressure_lines(run)

    def turn(self, asked: Asked) -> dict[str, Any]:
        """Return one turn of a recorded run, as its log has it."""
        return _as_object(shorten(self._turn(asked)))

    def source(self, asked: Asked) -> dict[str, Any]:
        """Return the lines of a log around a turn or an offset."""
        row = self._row(asked)
        with time_limit(PAGE_SECONDS, "this log"):
            text = self.logs.text(row)
            if "offset" in asked:
                offset = min(number_of(asked, "offset", 0), len(text))
            else:
                offset = place_of(text, self.logs.recording(row).turns, number_of(asked, "turn", 1)) or 0
            return {**lines_around(text, offset), "source": row["source"], "offset": offset}

    def text(self, asked: Asked) -> dict[str, Any]:
        """Return more of a long text."""
        whole = self._turn(asked) if "turn" in asked else self._step(asked)
        return more_of(whole, one_of(asked, "part"), number_of(asked, "offset", 0))

    def _step(self, asked: Asked) -> dict[str, Any]:
        run, t = self._lacuna(self._place(asked), one_of(asked, "run")), number_of(asked, "t", 1)
        with time_limit(PAGE_SECONDS, "this run"):
            return _step_document(run, t)

    def _turn(self, asked: Asked) -> dict[str, Any]:
        row = self._row(asked)
        with time_limit(PAGE_SECONDS, "this log"):
            return turn_document(self.logs, row, number_of(asked, "turn", 1))

    def _row(self, asked: Asked) -> dict[str, Any]:
        return self._analysis(self._place(asked)).run(one_of(asked, "run"))

    def _place(self, asked: Asked) -> ViewedFolder:
        return place_at(self.root, one_of(asked, "at"))

    def _table(self, place: ViewedFolder) -> RowTable:
        return self._tables(place).table if place.kind in TABLES else self._index(place).table()

    def _index(self, place: ViewedFolder, *, read: bool = True) -> RunIndex:
        with self._lock:
            index = self._indexes.get(place.key)
            if index is None:
                score = recorded_score if place.kind == "sweep" else self._scorer(place.path)
                index = self._indexes[place.key] = RunIndex(place.path, score)
        if read or not len(index):
            index.refresh()
        return index

    def _scorer(self, folder: Path) -> Callable[[Mapping[str, Any]], RunScore | None]:
        return lambda record: LacunaRun(folder, record, plugins=self.plugins).score()

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

    def _lacuna(self, place: ViewedFolder, name: str) -> SpokenRun:
        if place.kind in TABLES:
            raise InputFileError(f"{place.key} holds recorded runs, which have no steps; choose another folder")
        with self._lock:
            if (place.key, name) in self._runs:
                return self._runs[place.key, name]
        index = self._index(place, read=False)
        while not index.has(name) and not index.complete:
            index.refresh()
        if not index.has(name):
            index.refresh()  # it may just have ended
        run = SpokenRun(place.path, index.record(name), plugins=self.plugins)
        with self._lock:
            self._runs[place.key, name] = run
            if len(self._runs) > KEPT:
                self._runs.popitem(last=False)
        return run


def _step_document(run: SpokenRun, t: int) -> dict[str, Any]:
    if not 1 <= t <= len(run.graph):
        raise InputFileError(f"the task has {len(run.graph)} steps, and none numbered {t}; choose another")
    events = [event for event in run.events if "t" in event and run.step_of(event) == t]
    said = [exchange for exchange in run.exchanges if run.step_of(exchange) == t]
    card = run.card(t)
    return {
        "t": t,
        "card": None if card is None else card.as_json(),
        "exchanges": said,
        "inexact": "" if all(one["exact"] for one in said) else run.replayed.reason,
        "actions": [event for event in events if event["type"] == "action"],
        "memory": [event for event in events if event["type"] == "memory"],
        **run.around(t),
    }


def _summarised(tables: AnalysisTables | CutTables) -> dict[str, Any]:
    if not isinstance(tables, AnalysisTables):
        return {"answers": tables.answers}
    return {"summary": {**tables.summary, "advice": advice_rows(tables.summary)}}


def _columns(table: RowTable) -> dict[str, Any]:
    return {"fields": as_json(table.fields), "alike": alike(table)}


def _as_object(value: Any) -> dict[str, Any]:
    return dict(value)


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


ROUTES: dict[str, Callable[[Viewer, Asked], dict[str, Any]]] = {
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
