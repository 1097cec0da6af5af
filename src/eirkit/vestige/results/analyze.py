"""Analyzes logs into a folder of tables: what `eirkit vestige analyze` and a notebook call."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

from eirkit.engine.interface import Engine, make_engine
from eirkit.errors import UsageError
from eirkit.records.analysis import DemandRule, OwnEdits, Visibility
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, Progress, analyze_here, analyze_in_parts, is_small
from eirkit.vestige.results.analysis import Analysis
from eirkit.vestige.sources.remote import Location, Remote, as_location

SMALL_BYTES = 24 << 20  # a few seconds of work: less than starting workers and merging their parts would save


def analyze(
    *paths: str | Location,
    out: str | Path | None = None,
    gold: str | Path | None = None,
    outcomes: str | Path | None = None,
    windows: str | Path | None = None,
    log_format: str | None = None,
    visibility: Visibility = "seen",
    goal_tests: bool = False,
    rule: DemandRule = "edit-aware",
    own_edits: OwnEdits = "last",
    estimate_tokens: bool = False,
    strict: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Read the logs at some paths and return what each run needed and lost.

    Args:
        paths: files, folders, or URLs that fsspec knows.
        out: a new folder for the tables, or one to continue; None for a temporary one that lives as long as the result.
        gold: reference patches: a folder `<task>/gold.patch`, or rows of instance_id and patch.
        outcomes: outcomes of runs whose logs do not state them.
        windows: TOML with context windows of further models.
        log_format: format of all logs; None detects it from the content.
        visibility: what can be needed: files that the run has seen, or all of its environment.
        goal_tests: count test files of the reference patch as goal files.
        rule: whether an edit uses the text that it changes; in the paper it does not.
        own_edits: goal of the paper's demand where none is given: the last edits of a run, or all.
        estimate_tokens: count tokens as characters / 4, which is faster.
        strict: fail on damaged input instead of skipping it.
        engine: runs parts of the corpus; it is closed at the end. None: processes of this machine, or none if the
            corpus is small.
        progress: called with a source, the number of runs and of skipped parts so far.

    Raises:
        InputFileError: nothing could be read, or, if `strict`, anything could not.
        UsageError: `out` is not empty and no analysis of these logs, or an option is wrong.
    """
    if not paths:
        raise UsageError("no logs were given; name files or folders of logs, see `eirkit vestige formats`")
    options = AnalysisOptions(read_windows(_path(windows)), visibility, goal_tests, own_edits, rule)
    corpus = Corpus(tuple(map(_location, paths)), _path(gold), _path(outcomes), log_format)
    found = Analysis(mkdtemp(prefix="eirkit-analysis-") if out is None else out, temporary=out is None)
    engine = engine or (None if is_small(corpus, SMALL_BYTES) else make_engine("local"))
    if engine is None:
        analyze_here(corpus, found.folder, options, estimate=estimate_tokens, strict=strict, progress=progress)
    else:
        with closing(engine):
            analyze_in_parts(
                corpus, found.folder, options, engine, estimate=estimate_tokens, strict=strict, progress=progress
            )
    return found


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path).expanduser()


def _location(path: str | Location) -> Location:
    found = as_location(path) if isinstance(path, str) else path
    return found if isinstance(found, Remote) else found.expanduser()
