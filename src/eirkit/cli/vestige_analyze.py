"""`eirkit vestige analyze`: from logs to tables and a page of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.corpus_progress import CorpusProgress
from eirkit.cli.engine_options import engine_options
from eirkit.cli.fitting import named_table, paired_table, room_of
from eirkit.cli.output import emit, json_option, legend
from eirkit.engine.engine_factory import make_engine
from eirkit.engine.mapping import Engine
from eirkit.logs.audits.occupancy import read_windows
from eirkit.logs.corpus.analysis import AnalysisOptions
from eirkit.logs.corpus.pipeline import Corpus, analyze_here, analyze_in_parts, is_small
from eirkit.logs.demand.goal import OWN_EDITS, OwnEdits
from eirkit.logs.demand.live_states import VISIBILITIES, Visibility
from eirkit.logs.sources.remote import Location, as_location
from eirkit.show.logs.sentences import break_counts, goal_is_known, goal_runs, later_runs
from eirkit.show.phrases import counted


class _Location(click.Path):
    """A path, or a URL of a file system that fsspec knows."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        return as_location(value) if isinstance(value, str) else value


_PATH = click.Path(path_type=Path)
_LOCATION = _Location()
SKIPPED_SHOWN = 10
SMALL_BYTES = 24 << 20  # a few seconds of work: less than starting workers and putting parts together would save
GOALS = {
    "gold": "the reference patch",
    "log": "the log itself",
    "own-edits": "none given: the files that the run itself edited last",
}
SIGNATURES = {
    "edit_failures": ("failed edit",),
    "repeated_commands": ("repeated command",),
    "repeated_edits": ("repeated edit",),
    "submits_after_failed_test": ("submission after a failed test", "submissions after a failed test"),
}
ALL_EDITS = "none given: all files that the run itself edited"


@click.command()
@click.argument("paths", metavar="PATH...", type=_LOCATION, nargs=-1, required=True)
@click.option("--out", type=_PATH, required=True, help="A new or empty folder, or one of an earlier analysis.")
@click.option("--gold", type=_PATH, help="Reference patches: <task>/gold.patch, or rows of instance_id and patch.")
@click.option("--outcomes", type=_PATH, help="A file of results; what a run itself records comes first.")
@click.option("--format", "format_name", help="Read everything as this format; see `eirkit vestige formats`.")
@click.option("--visibility", type=click.Choice(VISIBILITIES), default="seen", show_default=True)
@click.option("--goal-tests", is_flag=True, help="Count test files of the reference patch as goal files.")
@click.option(
    "--own-edits", type=click.Choice(OWN_EDITS), default="last", show_default=True, help="Goal without --gold."
)
@click.option("--windows", type=_PATH, help="A TOML file of context windows over the built-in one.")
@click.option("--estimate-tokens", is_flag=True, help="A quarter of the characters instead of exact tokens.")
@click.option("--strict", is_flag=True, help="Refuse damaged input instead of skipping and naming it.")
@engine_options
@json_option
def analyze(
    paths: tuple[Location, ...],
    out: Path,
    gold: Path | None,
    outcomes: Path | None,
    format_name: str | None,
    visibility: Visibility,
    goal_tests: bool,
    own_edits: OwnEdits,
    windows: Path | None,
    estimate_tokens: bool,
    strict: bool,
    engine: Engine | None,
    as_json: bool,
) -> None:
    """Read the logs at PATH and write what each run needed and lost as Parquet tables.

    PATH is a file, a folder, or a URL that fsspec knows, such as s3://bucket/runs or hf://datasets/NAME.
    A large corpus is measured by several processes, and goes on where it was when it is killed and started again.
    """
    options = AnalysisOptions(read_windows(windows), visibility, goal_tests, own_edits)
    corpus = Corpus(paths, gold, outcomes, format_name)
    how: dict[str, Any] = {"estimate": estimate_tokens, "strict": strict}
    engine = engine or (None if is_small(corpus, SMALL_BYTES) else make_engine("local"))
    with CorpusProgress(paths) as progress:
        if engine is None:
            document = analyze_here(corpus, out, options, **how, progress=progress)
        else:
            with closing(engine):
                document = analyze_in_parts(corpus, out, options, engine, **how, progress=progress)
    emit({**document, "visibility": visibility}, as_json, lambda console: _render(console, document, options))


def _render(console: Console, document: Mapping[str, Any], options: AnalysisOptions) -> None:
    lines = list(_lines(document, options))
    console.print(paired_table(console, "What these runs needed and lost", ("figure", "value"), lines))
    _render_largest(console, document["largest"])
    _render_breaks(console, document["costliest_breaks"])
    repeated = [(row["path"], row["repeat_reads"], f"{row['repeat_tokens']:,}") for row in document["repeated_files"]]
    if repeated:
        console.print(named_table(console, "Shown again though unchanged", ("file", "reads", "tokens"), repeated))
    _render_skipped(console, document["skipped"])
    say = f"tables in {document['out']}; one run: `eirkit vestige show {document['out']} RUN_ID`"
    console.print(say, markup=False, highlight=False, soft_wrap=True)


def _lines(document: Mapping[str, Any], options: AnalysisOptions) -> Iterator[tuple[str, str]]:
    outcomes = ", ".join(f"{count} {name}" for name, count in document["outcomes"].items() if count)
    yield "runs", f"{document['runs']:,} ({outcomes}), {counted(document['turns'], 'turn')}"
    yield "formats", ", ".join(f"{name} {count}" for name, count in document["formats"].items())
    for source, count in document["goal_sources"].items():
        said = ALL_EDITS if source == "own-edits" and options.own_edits == "all" else GOALS[source]
        yield "goal", f"{said} ({counted(count, 'run')})"
    yield from _demand_lines(document, options)
    for unit, found in document["later_used"].items():
        shares = ", ".join(f"{found[f'peak_{p}']:,.0f} ({p[1:]}%)" for p in ("p50", "p90", "p99"))
        long = later_runs(unit, found["runs"])
        said = f"{shares} {unit}, over {long}" if found["peak_p99"] else f"nothing that {long} had seen"
        yield "used later, peak", said
    if document["read_tokens"]:
        yield "read", f"{document['read_tokens']:,} tokens of file content"
        yield (
            "… again",
            f"{document['repeat_tokens']:,} tokens, {document['repeat_share']:.1%}: unchanged, shown before",
        )
        yield "… in vain", _in_vain(document)
    yield from _loss_lines(document)


def _in_vain(document: Mapping[str, Any]) -> str:
    if document["dead_read_share"] is None:
        return "– (no goal was reached)"
    dead = f"{document['dead_read_covered_tokens']:,} tokens, {document['dead_read_share']:.1%}"
    whose = "" if document["covered_runs"] == document["runs"] else " of what runs that reached their goal read"
    return f"{dead}{whose}: nothing that led to the goal used them"


def _demand_lines(document: Mapping[str, Any], options: AnalysisOptions) -> Iterator[tuple[str, str]]:
    if document["goal_access"] is None:
        return
    reached = "edited a file" if set(document["goal_sources"]) == {"own-edits"} else "read or wrote a goal file"
    runs = counted(goal_runs(document), "run")
    share = f"{document['goal_access']:.1%} of {runs} {reached}"
    yield (
        "goal reached",
        share if goal_is_known(document) else f"– (no goal was given and none of {runs} edited a file)",
    )
    if not document["goal_access"]:
        yield "peak demand", "not measured: no run reached a goal file, which is not the same as no need"
        return
    other = "environment" if options.visibility == "seen" else "seen"
    covered = document["mean_peak_covered_tokens"] or 0
    yield (
        "peak demand",
        f"{document['mean_peak_tokens']:,.0f} tokens in the mean, {covered:,.0f} where the goal was reached",
    )
    yield f"… if {other}", f"{document[f'mean_peak_{other}_tokens']:,.0f} tokens in the mean"


def _loss_lines(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if document["mean_peak_context_share"] is not None:
        yield "context", f"{document['mean_peak_context_share']:.1%} of the model's window at the peak, in the mean"
    breaks = document["breaks"]
    if breaks["compactions"] or breaks["clears"]:
        yield "context lost", break_counts(breaks)
        yield from _break_lines(breaks)
    if document["clipped_views"]:
        yield "clipped views", f"{document['clipped_views']:,}, {document['clipped_goal_views']:,} of goal files"
    found = [counted(document[kind], *words) for kind, words in SIGNATURES.items() if document[kind]]
    if found:
        yield "signatures", ", ".join(found)


def _break_lines(breaks: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    total = breaks["compactions"] + breaks["clears"]
    if breaks["unmeasured"]:
        yield "… not measured", f"{breaks['unmeasured']:,} of {total:,}: no file was used"
    if breaks["unmeasured"] == total:
        return
    yield (
        "… still needed",
        f"{counted(breaks['live_tokens'], 'token')} in the context, of files that were still to be used",
    )
    yield "… not carried", f"{counted(breaks['dropped_tokens'], 'token')} of these, which are"
    yield "  … read again", f"{breaks['reread_dropped_tokens']:,}, in files that were shown once more"
    yield "  … edited unread", f"{breaks['overwritten_tokens']:,}, in files that were edited without rereading them"
    yield (
        "  … never again",
        f"{breaks['never_reread_tokens']:,}, in files that were neither read again nor edited first",
    )


def _render_largest(console: Console, runs: list[dict[str, Any]]) -> None:
    shown = [run for run in runs if run["goal_accessed"] or run["later_used_peak"]]
    several = len({run["unit"] for run in shown}) > 1
    left_out = () if room_of(console) >= NARROW else (*LEFT_OUT, *(("read",) if several else ()))
    columns = [name for name in LARGEST if name not in left_out and (several or name != "unit")]
    rows = [[LARGEST[name](run) for name in columns] for run in shown]
    if rows:
        console.print(named_table(console, "Runs with the largest demand", columns, rows))


def _render_breaks(console: Console, breaks: list[dict[str, Any]]) -> None:
    names = ("live_tokens", "dropped_tokens", "reread_dropped_tokens", "overwritten_tokens", "never_reread_tokens")
    measured = [one for one in breaks if one["measured"]]
    rows = [(one["run_id"], one["kind"], one["cut"], *(f"{one[name]:,}" for name in names)) for one in measured]
    if rows:
        columns = ("run", "what", "turn", "needed", "not carried", "reread", "edited", "neither")
        console.print(named_table(console, "Where context was lost, in tokens of files", columns, rows))
        meaning = "the sum of what was in files read again, edited without rereading them, or neither"
        legend(console, **{"not carried": meaning})


def _amount(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _render_skipped(console: Console, skipped: list[dict[str, str]]) -> None:
    for one in skipped[:SKIPPED_SHOWN]:
        console.print(f"skipped: {one['source']}: {one['reason']}", markup=False, highlight=False, soft_wrap=True)
    if len(skipped) > SKIPPED_SHOWN:
        console.print(f"skipped: {len(skipped) - SKIPPED_SHOWN} more; --json and analysis.json name them all")


NARROW = 95  # columns, below which a table leaves some out
LEFT_OUT = ("again", "context")
LARGEST: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "run": lambda run: run["run_id"],
    "turns": lambda run: run["turns"],
    "peak demand": lambda run: _amount(run["peak_demand_tokens"] if run["goal_accessed"] else None),
    "at cut": lambda run: run["peak_cut"],
    "used later": lambda run: f"{run['later_used_peak']:,}",
    "unit": lambda run: run["unit"],
    "read": lambda run: _amount(run["read_tokens"]),
    "again": lambda run: _amount(run["repeat_tokens"]),
    "in vain": lambda run: _amount(run["dead_read_tokens"] if run["goal_accessed"] else None),
    "context": lambda run: _amount(run["peak_context_tokens"]),
}
