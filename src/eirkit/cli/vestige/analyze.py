"""`eirkit vestige analyze`: reads logs and writes tables of what each run needed and lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from time import monotonic
from typing import Any

import click
from msgspec import to_builtins

from eirkit.cli.command import OUTPUT, Show, command, document_options, option
from eirkit.cli.execution import LINE_SECONDS, LiveLine, engine_options
from eirkit.engine.interface import Engine
from eirkit.folders import files_below
from eirkit.records.analysis import (
    DEMAND_RULES,
    OWN_EDITS,
    VISIBILITIES,
    AnalysisSummary,
    DemandRule,
    OwnEdits,
    SkippedInput,
    Visibility,
)
from eirkit.report.document import Document, Section, facts
from eirkit.report.logs.break_sentences import break_counts, break_facts, break_words, breaks_table, instruction_words
from eirkit.report.logs.sentences import (
    GOALS,
    advice_lines,
    advice_rows,
    coverage_facts,
    coverage_warnings,
    goal_is_known,
    is_silent,
    largest_table,
    later_runs,
    repeated_table,
    signature_counts,
    split_facts,
    sub_agent_facts,
)
from eirkit.report.table import counted
from eirkit.vestige.corpus.reader import LOG_ENDINGS
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES
from eirkit.vestige.results.analyze import analyze as analyze_logs
from eirkit.vestige.sources.documents import complaints
from eirkit.vestige.sources.remote import Location, Remote, as_location

_ENDINGS = tuple(ending + packed for ending in LOG_ENDINGS for packed in ("", ".gz", ".zst"))
_EVERY_SECONDS = 0.1


class CorpusProgress(LiveLine):
    """Shows the progress of an analysis; use it in a with statement.

    Args:
        line_seconds: seconds between two lines where stderr is not a terminal.
    """

    def __init__(self, paths: Sequence[Location], line_seconds: float = LINE_SECONDS) -> None:
        self._paths = paths
        self._total: int | None = None
        super().__init__("reading", line_seconds=line_seconds)
        self._every = _EVERY_SECONDS if self.is_watched else line_seconds
        self._shown = self.started
        self._source, self._files = "", 0

    def __call__(self, source: str, runs: int, skipped: int) -> None:
        file = source.partition(":")[0]
        self._files += file != self._source
        self._source, now = file, monotonic()
        if now - self._shown >= self._every:
            self._shown = now
            rate = f"{counted(runs, 'run')}  {self.rate(runs):,.0f}/s"
            state = f"{rate}  {counted(skipped, 'part')} skipped" if skipped else rate
            left = self._left()
            self.show(self._files, state if self.is_watched else f"{state}{left}", self._total or None)

    def _left(self) -> str:
        """Return how many files are read and how long the rest will take, if that is known."""
        if self._total is None:
            total = sum(map(_logs, self._paths))
            self._total = 0 if total == 1 else total  # 0: unknown, as one file may hold any number of runs
        if not self._total:
            return ""
        seconds = max(0.0, (self._total - self._files) / max(1e-9, self.rate(self._files)))
        files = f"  file {min(self._files, self._total):,} of {self._total:,}"
        return (
            f"{files}  about {seconds / 60:,.0f} min left" if seconds >= 60 else f"{files}  about {seconds:.0f} s left"
        )


def _logs(path: Location) -> int:
    """Return how many files look like logs by their names."""
    if isinstance(path, Remote):
        return sum(name.endswith(_ENDINGS) for name, _ in path.files()) if path.is_dir() else 1
    if not path.is_dir():
        return 1
    return sum(file.name.endswith(_ENDINGS) for file in files_below(path))


class _Location(click.Path):
    """A path, or a URL of a file system that fsspec knows."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return as_location(value) if isinstance(value, str) else value


_PATH = click.Path(path_type=Path)
LOCATION = _Location()
SKIPPED_SHOWN = 10
OTHER_VISIBILITY = {
    "environment": ("… with unseen files", "a file counts from when it exists (--visibility environment)"),
    "seen": ("… of seen files", "a file counts from when the run first saw it (--visibility seen)"),
}
PAPER_EDITS = {"last": "the files that the run itself edited last", "all": "all files that the run itself edited"}


@command(example="eirkit vestige analyze examples/two_runs.jsonl --out out/analysis")
@click.argument("paths", metavar="PATH...", type=LOCATION, nargs=-1, required=True)
@option("--log-format", group="Input", metavar="NAME", help="Format of all logs.  [default: detected from the content]")
@option(
    "--gold", type=_PATH, group="Input", help="Reference patches: <task>/gold.patch, or rows of instance_id, patch."
)
@option("--outcomes", type=_PATH, group="Input", metavar="FILE", help="Outcomes of runs whose logs do not state them.")
@option("--windows", type=_PATH, group="Input", metavar="FILE", help="TOML with context windows of further models.")
@option("--strict", is_flag=True, group="Input", help="Fail on damaged input instead of skipping and naming it.")
@option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    default="seen",
    show_default=True,
    group="Measurement",
    help="What can be needed: files that the run has seen, or all of its environment.",
)
@option(
    "--goal-tests", is_flag=True, group="Measurement", help="Count test files of the reference patch as goal files."
)
@option(
    "--demand",
    "rule",
    type=click.Choice(DEMAND_RULES),
    default="edit-aware",
    show_default=True,
    group="Measurement",
    help="Whether an edit uses the text that it changes. In the paper it does not.",
)
@option(
    "--own-edits",
    type=click.Choice(OWN_EDITS),
    default="last",
    show_default=True,
    group="Measurement",
    help="Goal of the paper's demand where none is given: the last edits of a run, or all.",
)
@option("--out", type=_PATH, required=True, metavar="DIR", group=OUTPUT, help="A new folder, or one to continue.")
@engine_options
@document_options
def analyze(
    paths: tuple[Location, ...],
    out: Path,
    gold: Path | None,
    outcomes: Path | None,
    log_format: str | None,
    visibility: Visibility,
    goal_tests: bool,
    rule: DemandRule,
    own_edits: OwnEdits,
    windows: Path | None,
    strict: bool,
    engine: Engine | None,
    show: Show,
) -> None:
    """Read the logs at PATH and write what each run needed and lost as Parquet tables.

    PATH is a file, a folder, or a URL that fsspec knows, such as s3://bucket/runs or hf://datasets/NAME. Large corpora
    are analyzed by several processes; an interrupted analysis continues when the command is repeated.
    """
    with CorpusProgress(paths) as progress:
        found = analyze_logs(
            *paths,
            out=out,
            gold=gold,
            outcomes=outcomes,
            windows=windows,
            log_format=log_format,
            visibility=visibility,
            goal_tests=goal_tests,
            rule=rule,
            own_edits=own_edits,
            strict=strict,
            engine=engine,
            progress=progress,
        )
    show(_document(found.summary, out))


def _document(summary: AnalysisSummary, folder: Path) -> Document:
    advice = advice_rows(summary.advice)
    found = facts("summary", "What these runs needed and lost", list(_lines(summary)))
    others = largest_table(summary.largest), breaks_table(summary.costliest_breaks)
    tables = (found, *others, repeated_table(summary.repeated_files))
    sections = [Section("", (), tuple(table for table in tables if table.rows))]
    if lines := tuple(advice_lines(advice)):
        sections.insert(0, Section("What to do", lines))
    if warnings := tuple(coverage_warnings(summary)):
        sections.append(Section("", warnings))
    if skipped := tuple(_skipped(summary.skipped)):
        sections.append(Section("", skipped))
    out = quote(str(folder))
    then = f"eirkit report {out}"
    if (worst := _worst_run(summary)) is not None:
        then = f"eirkit show {out} {quote(worst)}"
    more = {"visibility": summary.options.visibility, "advice": to_builtins(advice)}
    data = {"out": str(folder), **to_builtins(summary), **more}
    return Document(
        "vestige-analyze", f"Analysis in {folder}", _answer(summary, folder), data, tuple(sections), next=then
    )


def _has_measured_breaks(summary: AnalysisSummary) -> bool:
    breaks = summary.breaks
    return breaks.compactions + breaks.clears > breaks.unmeasured


def _worst_run(summary: AnalysisSummary) -> str | None:
    """Return the run whose compaction dropped most; where none was measured, that with the largest demand."""
    if _has_measured_breaks(summary) and summary.costliest_breaks:
        return max(summary.costliest_breaks, key=lambda cost: cost.dropped_tokens).run_id
    return summary.largest[0].run_id if summary.largest else None


def _answer(summary: AnalysisSummary, folder: Path) -> tuple[str, ...]:
    runs = f"{counted(summary.runs, 'run')} analyzed; tables in {folder}."
    if is_silent(summary):
        return ("No call was understood, so what these runs needed is not known.", runs)
    lost = (break_words(summary.breaks),) if _has_measured_breaks(summary) else ()
    if not summary.goal_access:
        return *lost, runs
    covered = summary.mean_peak_covered_tokens or 0
    need = f"Runs that touched a goal file needed {covered:,.0f} tokens of files at their peak, on average."
    return *lost, need, runs


def _lines(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    counts = summary.outcomes
    named = ((counts.resolved, "resolved"), (counts.failed, "failed"), (counts.unknown, "with unknown outcome"))
    outcomes = ", ".join(f"{count} {name}" for count, name in named if count)
    yield "runs", f"{summary.runs:,} ({outcomes}), {counted(summary.turns, 'turn')}"
    yield "formats", ", ".join(f"{name} {count}" for name, count in summary.formats.items())
    yield from coverage_facts(summary)
    yield from split_facts(summary)
    yield from sub_agent_facts(summary)
    for source, count in summary.goal_sources.items():
        by_paper = source == "own-edits" and summary.options.rule == "paper"
        said = f"none given: {PAPER_EDITS[summary.options.own_edits]}" if by_paper else GOALS[source]
        yield "goal", f"{said} ({counted(count, 'run')})"
    yield from _demand_lines(summary)
    for unit, later in summary.later_used.items():
        shares = f"{later.peak_p50:,.0f} (50%), {later.peak_p90:,.0f} (90%), {later.peak_p99:,.0f} (99%)"
        long = later_runs(unit, later.runs)
        said = f"{shares} {unit}, over {long}" if later.peak_p99 else f"nothing that {long} had seen"
        yield LOG_MEASURES["later_used_peak"].label, said
    if summary.read_tokens:
        read, again = READING_MEASURES["read_tokens"], READING_MEASURES["repeat_share"]
        yield read.label, f"{summary.read_tokens:,}: {read.meaning}"
        yield (
            again.label,
            f"{summary.repeat_share:.1%} ({summary.repeat_tokens:,} tokens): {again.meaning}",
        )
        yield READING_MEASURES["dead_read_share"].label, _in_vain(summary)
    yield from _loss_lines(summary)


def _in_vain(summary: AnalysisSummary) -> str:
    if summary.dead_read_share is None:
        return "unknown: no goal file was touched"
    vain = READING_MEASURES["dead_read_share"]
    whose = "" if summary.judged_read_tokens == summary.read_tokens else f" of {vain.of}"
    found = f"{summary.dead_read_share:.1%}{whose} ({summary.dead_read_covered_tokens:,} tokens)"
    if own := summary.goal_sources.get("own-edits"):
        # What is read before an edit that stays leads to it, so that this share is small by construction.
        runs = "" if set(summary.goal_sources) == {"own-edits"} else f" for {counted(own, 'run')}"
        found += f"; no goal was given{runs}, so what was edited counts as the goal"
    return f"{found}: {vain.meaning}"


def _demand_lines(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    if summary.goal_access is None:
        return
    reached = "edited a file" if set(summary.goal_sources) == {"own-edits"} else "read or wrote a goal file"
    runs, peak = counted(summary.goal_runs, "run"), LOG_MEASURES["peak_demand_tokens"].label
    share = f"{summary.goal_access:.1%} of {runs} {reached}"
    yield (
        LOG_MEASURES["goal_accessed"].label,
        share if goal_is_known(summary) else f"unknown: no goal was given and none of {runs} edited a file",
    )
    if not summary.goal_access:
        yield peak, "not measured: no run touched a goal file, which is not the same as no need"
        return
    in_environment = summary.options.visibility == "seen"
    label, meaning = OTHER_VISIBILITY["environment" if in_environment else "seen"]
    other = summary.mean_peak_environment_tokens if in_environment else summary.mean_peak_seen_tokens
    covered = summary.mean_peak_covered_tokens or 0
    yield (
        peak,
        f"{summary.mean_peak_tokens:,.0f} tokens on average, {covered:,.0f} where a goal file was touched",
    )
    yield label, f"{other:,.0f} tokens on average: {meaning}"
    if summary.options.rule != "paper":
        paper = f"{summary.mean_peak_paper_tokens:,.0f} tokens on average"
        rule = "an edit uses nothing, and without a goal the last edit is it"
        yield "… by the paper's rule", f"{paper}: {rule} (--demand paper)"


def _loss_lines(summary: AnalysisSummary) -> Iterator[tuple[str, str]]:
    if summary.mean_peak_context_share is not None:
        window = LOG_MEASURES["peak_context_share"]
        yield window.label, f"{summary.mean_peak_context_share:.1%} of {window.of} at the peak, mean over runs"
    breaks = summary.breaks
    if breaks.compactions or breaks.clears:
        yield "context lost", break_counts(breaks)
        yield from break_facts(breaks)
    if summary.clipped_views:
        goal_views = summary.clipped_goal_views
        yield LOG_MEASURES["clipped_views"].label, f"{summary.clipped_views:,}, {goal_views:,} of goal files"
    for label, counts in (("instructions", summary.instructions), ("open to-dos", summary.todos)):
        if told := instruction_words(counts):
            yield label, told
    found = [f"{label} {count:,}" for label, count in signature_counts(summary) if count]
    if found:
        yield "signatures", ", ".join(found)


def _skipped(skipped: Sequence[SkippedInput]) -> Iterator[str]:
    causes = complaints(skipped)
    yield from (f"skipped: {cause}" for cause in causes[:SKIPPED_SHOWN])
    if len(causes) > SKIPPED_SHOWN:
        yield f"skipped: {counted(len(causes) - SKIPPED_SHOWN, 'more cause')}; --json and analysis.json name them all"
