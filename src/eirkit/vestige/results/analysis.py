"""A finished analysis of logs: its summary, its runs, statistics and SQL over its tables.

Reading needs nothing of what analyzes logs. Runs are read from Parquet in groups when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any, overload
from weakref import finalize

from msgspec.structs import asdict, replace
from rich.table import Table

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.records.analysis import (
    TABLES,
    AnalysisSummary,
    Anomaly,
    BreakCost,
    ClippedView,
    CohortKey,
    CohortStatistics,
    CutRow,
    DroppedState,
    EntityDemand,
    FileUse,
    Gaps,
    HiddenLine,
    InstructionFate,
    LiveState,
    RunBreak,
    RunDetails,
    RunRow,
    StateRow,
    ToolCoverage,
    Visibility,
)
from eirkit.vestige.cohorts.cohort import ANALYSES, TESTS, analyze_cohorts
from eirkit.vestige.cohorts.covariates import read_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan, Resampled, read_plan
from eirkit.vestige.corpus.query import MOST_ROWS, QueryResult, query_apart
from eirkit.vestige.measures import LOG_MEASURES
from eirkit.vestige.tables import T, arrow, read_analysis, read_rows, read_table, rows_of, run_ids, table_of

_BATCH_ROWS = 1 << 10


class Runs(Sequence[RunRow]):
    """The runs of an analysis in the order of its table, read in groups when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._group: tuple[int, Any] | None = None  # the row group read last, with its number

    @cached_property
    def _file(self) -> Any:
        path, pyarrow = self.folder / "runs.parquet", arrow()
        try:
            return pyarrow.parquet.ParquetFile(path)
        except (OSError, pyarrow.ArrowException) as error:
            cause = " ".join(str(error).split())
            raise InputFileError(f"cannot read {path}: {cause}; run `eirkit vestige analyze` again") from error

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    def __iter__(self) -> Iterator[RunRow]:
        for batch in self._file.iter_batches(_BATCH_ROWS):
            yield from rows_of(batch, RunRow, self.folder)

    @overload
    def __getitem__(self, place: int) -> RunRow: ...
    @overload
    def __getitem__(self, place: slice) -> list[RunRow]: ...
    def __getitem__(self, place: int | slice) -> RunRow | list[RunRow]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"there are {len(self):,} runs, and none numbered {place}")
        left, group = place % len(self), 0
        while left >= (rows := self._file.metadata.row_group(group).num_rows):
            left, group = left - rows, group + 1
        if self._group is None or self._group[0] != group:
            self._group = group, self._file.read_row_group(group)
        return rows_of(self._group[1].slice(left, 1), RunRow, self.folder)[0]

    def __repr__(self) -> str:
        return f"<{len(self):,} runs of {self.folder}>"


class Analysis:
    """The analysis in a folder that `eirkit vestige analyze` or `analyze` wrote.

    Args:
        temporary: remove the folder when nothing refers to this object any more.
    """

    def __init__(self, folder: str | Path, *, temporary: bool = False) -> None:
        self.folder, self.temporary = Path(folder), temporary
        if temporary:
            finalize(self, rmtree, self.folder, ignore_errors=True)

    @cached_property
    def summary(self) -> AnalysisSummary:
        """What the runs needed and lost as a whole; `analysis.json` holds the same.

        Raises:
            InputFileError: the folder holds no complete analysis.
        """
        return read_analysis(self.folder)

    @cached_property
    def runs(self) -> Runs:
        """One row for each run, read lazily."""
        read_analysis(self.folder)
        return Runs(self.folder)

    def run_ids(self) -> list[str]:
        """Return the names of all runs."""
        read_analysis(self.folder)
        return run_ids(self.folder)

    def run(self, run_id: str) -> RunDetails:
        """Return what `show` shows of a run.

        Raises:
            UnknownNameError: there is no run with that name.
        """
        visibility = self.summary.options.visibility
        found = read_rows(self.folder, RunRow, run_id)
        if not found:
            raise UnknownNameError("run", run_id, self.run_ids())
        run = found[0]
        return RunDetails(
            **asdict(run),
            visibility=visibility,
            cuts=self._rows(CutRow, run_id),
            live_at_peak=live_at_peak(run, self._rows(StateRow, run_id), visibility),
            calls_by_tool=self._rows(ToolCoverage, run_id),
            files=self._rows(FileUse, run_id),
            clips=self._rows(ClippedView, run_id),
            hidden_lines=self._rows(HiddenLine, run_id),
            anomalies=self._rows(Anomaly, run_id),
            breaks=self._rows(BreakCost, run_id),
            dropped=self._rows(DroppedState, run_id),
            gaps=self._rows(Gaps, run_id),
            entities=self._rows(EntityDemand, run_id),
            instructions=self._rows(InstructionFate, run_id),
        )

    def breaks(self) -> list[RunBreak]:
        """Return the compactions and clears of all runs."""
        return rows_of(read_table(self.folder, table_of(BreakCost)), RunBreak, self.folder)

    def _rows(self, row: type[T], run_id: str) -> tuple[T, ...]:
        return tuple(read_rows(self.folder, row, run_id))

    def cohorts(
        self,
        *others: Analysis | str | Path,
        by: CohortKey = "all",
        suite: str | Path | None = None,
        base_lines: str | Path | Mapping[str, float] | None = None,
        disjoint: Sequence[Analysis | str | Path] = (),
        only: Sequence[str] = (),
        resample: Resampled | None = None,
        seed: int | None = None,
    ) -> CohortStatistics:
        """Return what `vestige cohort` computes over these runs, pooled with those of others.

        Args:
            by: how runs are split into cohorts.
            suite: a TOML file with the tests fixed in advance; without it all are exploratory.
            base_lines: source lines of each task's gold files, or a file of them.
            disjoint: analyses of other runs, from which only the difficulty of tasks is estimated.
            only: names of the analyses to run; all if empty.
            resample: what the bootstraps of gaps resample.
            seed: of bootstraps and posteriors.
        """
        plan = AnalysisPlan() if suite is None else read_plan(Path(suite), TESTS)
        base_lines = plan.base_lines if base_lines is None else base_lines
        settings = replace(
            plan.settings,
            resampled=resample or plan.settings.resampled,
            seed=plan.settings.seed if seed is None else seed,
        )
        return analyze_cohorts(
            [self.folder, *map(_folder, others)],
            AnalysisPlan(plan.planned, plan.recorded, plan.digest, settings),
            by=by,
            base_lines=read_base_lines(Path(base_lines)) if isinstance(base_lines, (str, Path)) else base_lines,
            disjoint=list(map(_folder, (*plan.disjoint, *disjoint))),
            analyses=tuple(only) or tuple(ANALYSES),
        )

    def query(self, sql: str, most_rows: int = MOST_ROWS) -> QueryResult:
        """Return the rows of one SELECT over the tables, from a process with limits on time and memory."""
        return query_apart(self.folder, sql, most_rows)

    def to_arrow(self, table: str = "runs") -> Any:
        """Return a table as a pyarrow table."""
        if table not in TABLES:
            raise UnknownNameError("table", table, TABLES)
        read_analysis(self.folder)
        return read_table(self.folder, table)

    def to_pandas(self, table: str = "runs") -> Any:
        """Return a table as a pandas data frame.

        Raises:
            UsageError: pandas is not installed.
        """
        try:
            import_module("pandas")
        except ImportError:
            raise UsageError("data frames need pandas: pip install pandas, or use to_arrow()") from None
        return self.to_arrow(table).to_pandas()

    def __repr__(self) -> str:
        return f"<Analysis of {self.summary.runs:,} runs in {self.folder}>"

    def __rich__(self) -> Table:
        table = Table(title=f"Analysis in {self.folder}", show_header=False)
        for label, value in self._facts():
            table.add_row(label, value)
        return table

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self._facts())
        return f"<table><caption>Analysis in {escape(str(self.folder))}</caption>{rows}</table>"

    def _facts(self) -> Iterator[tuple[str, str]]:
        summary = self.summary
        outcomes = summary.outcomes
        yield "runs", f"{summary.runs:,}"
        yield "formats", ", ".join(f"{name} {count:,}" for name, count in summary.formats.items())
        yield "outcomes", f"{outcomes.resolved:,} resolved, {outcomes.failed:,} failed, {outcomes.unknown:,} unknown"
        if summary.goal_access is not None:
            yield LOG_MEASURES["goal_accessed"].label, f"{summary.goal_access:.1%}"
        if summary.mean_peak_covered_tokens is not None:
            mean = f"{summary.mean_peak_covered_tokens:,.0f} tokens, mean over runs that touched a goal file"
            yield LOG_MEASURES["peak_demand_tokens"].label, mean
        if summary.skipped:
            yield "skipped", f"{len(summary.skipped):,}"


def _folder(analysis: Analysis | str | Path) -> Path:
    return analysis.folder if isinstance(analysis, Analysis) else Path(analysis)


def live_at_peak(run: RunRow, states: Sequence[StateRow], visibility: Visibility) -> tuple[LiveState, ...]:
    """Return the states that were live at a run's peak, the largest first."""
    in_tokens = run.unit == "tokens"
    cut = run.peak_cut if in_tokens else run.later_used_peak_cut
    in_environment = in_tokens and visibility == "environment"
    live = [
        state
        for state in states
        if cut and state.last_used and (state.made_at if in_environment else state.first_seen) < cut <= state.last_used
    ]
    ranked = sorted(live, key=lambda state: (-state.tokens, state.path))
    return tuple(
        LiveState(state.path, state.version, state.tokens, state.first_seen, state.last_used) for state in ranked
    )
