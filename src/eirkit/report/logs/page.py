"""Builds the page of a `vestige analyze` folder: headline, cohort statistics, largest demands, skipped logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import to_builtins
from msgspec.structs import asdict

from eirkit.records.analysis import AnalysisSummary, CohortTest
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series, facts
from eirkit.report.folders import pages, refuse_others
from eirkit.report.logs.analyzed import Analyzed, read_analyzed
from eirkit.report.logs.break_sentences import break_words
from eirkit.report.logs.cohort_tables import cohort_table, cohort_tests
from eirkit.report.logs.needs import (
    breaks_section,
    clipping_section,
    demand_section,
    goal_section,
    reading_section,
    signatures_section,
)
from eirkit.report.logs.sentences import (
    advice_section,
    coverage_section,
    coverage_warnings,
    goal_is_known,
    is_silent,
    largest_table,
    later_runs,
    need_sentence,
    sub_agents_section,
)
from eirkit.report.table import Column, Table, counted, listed, number, share
from eirkit.vestige.measures import READING_MEASURES

EXPLORATORY = "Nothing was fixed in advance, so every test is exploratory; `eirkit vestige cohort --suite` fixes some."


def cohort_sections(found: Analyzed, where: str) -> Iterator[Section]:
    """Yield the sections on the failure AUC of each cohort and on the tests."""
    if found.cohorts is None:
        return
    rows = found.cohorts.cohorts
    yield Section("Does need go with failure?", (), (cohort_table(rows),))
    tests = [test for test in found.cohorts.tests if not test.name.startswith("used-later-")]
    if not tests:
        yield Section(
            "Tests", (f"Not run on so many runs for a page; run `eirkit vestige cohort {shlex.quote(where)}`.",)
        )
        return
    if all(test.estimate is None for test in tests):
        yield Section("Tests", (f"These runs are too few or too alike: none of {len(tests)} tests has an estimate.",))
        return
    own = {row.cohort: [test for test in tests if test.cohort == row.cohort] for row in rows}
    parts = [part for name, tests in own.items() for part in cohort_tests(name, tests)]
    words = (EXPLORATORY, *(word for part in parts for word in part.words))
    charts = _ratio_chart([test for test in tests if test.estimate is not None])
    yield Section("Tests", words, (*charts, *(item for part in parts for item in part.items)))


def _ratio_chart(tests: Sequence[CohortTest]) -> tuple[Chart, ...]:
    """Return a chart of ratios with their intervals; a ratio of 1 means no association."""
    shown = [test for test in tests if "ratio" in test.scale and test.low is not None and test.low > 0]
    if not shown:
        return ()
    apart = [test.name for test in shown if not (test.low or 0) <= 1 <= (test.high or 0)]
    told = f"Intervals without 1, which is no association: {listed(apart) if apart else 'none'}."
    points = Series(
        "ratio",
        "points",
        tuple(test.name for test in shown),
        tuple(test.estimate for test in shown),
        tuple(test.low for test in shown),
        tuple(test.high for test in shown),
    )
    none = Series("no association", "rule", (shown[0].name,), (1.0,), dashed=True)
    axes = Axis("test", "category"), Axis("odds or rate ratio", "log")
    return (Chart("ratios", "Ratios with 95% intervals", told, *axes, (points, none)),)


TITLE = "What these recorded runs needed, and what they lost"


def page_of(found: Analyzed, where: str) -> Page:
    """Return the page of an analysis.

    Args:
        where: the folder, as printed in suggested commands.
    """
    sections = tuple(section for section in _sections(found, where) if section is not None)
    answers = to_builtins({"summary": found.summary, "cohorts": found.cohorts})
    return Page(TITLE, headline_of(found), sections, found.name, answers, "vestige-analysis")


def _sections(found: Analyzed, where: str) -> Iterator[Section | None]:
    yield advice_section(found.summary)
    yield demand_section(found)
    yield goal_section(found)
    yield from cohort_sections(found, where)
    yield reading_section(found.summary)
    yield clipping_section(found.summary)
    yield signatures_section(found.summary)
    yield breaks_section(found.summary)
    yield worst_section(found, where)
    yield sub_agents_section(found.summary)
    yield coverage_section(found.summary)
    yield skipped_section(found)
    yield again_section(found, where)


def headline_of(found: Analyzed) -> Headline:
    """Return the headline: mean peak demand, and how it relates to the outcomes."""
    summary = found.summary
    if is_silent(summary):
        return Headline("–", "no call was understood", tuple(coverage_warnings(summary)))
    if summary.goal_access:
        peak = number(summary.mean_peak_covered_tokens)
        caption = "tokens that work toward the goal still needed at the peak, mean over runs that touched a goal file"
        first = f"At their peak your runs had to keep {peak} tokens on average to reach their goal; {_read(summary)}"
        return Headline(peak, caption, (first, *_more(found)))
    unit, quantiles = next(iter(summary.later_used.items()), ("tokens", None))
    if quantiles is None or not quantiles.peak_p99:
        words = (
            "No run touched a goal file or used later what it had seen, so nothing was measured; that is not the same "
            "as no need."
        )
        return Headline("–", "nothing was measured", (words, *_more(found)))
    peak = number(quantiles.peak_p50)
    caption = f"{unit} held at the peak that a later step used, median over runs"
    whose = later_runs(unit, quantiles.runs)
    first = f"Half of {whose} held {peak} {unit} or more that a later step used; {_read(summary)}"
    return Headline(peak, caption, (first, *_more(found)))


def _read(summary: AnalysisSummary) -> str:
    if not summary.read_tokens:
        return "reads of files were not recorded."
    again, vain = READING_MEASURES["repeat_share"], READING_MEASURES["dead_read_share"]
    said = f"of {again.of}, {share(summary.repeat_share)} were {again.label}"
    if not summary.covered_runs:
        return f"{said}."
    return f"{said}; of {vain.of}, {share(summary.dead_read_share)} were {vain.label}."


def _more(found: Analyzed) -> Iterator[str]:
    summary = found.summary
    access = summary.goal_access
    outcomes = summary.outcomes
    known = outcomes.resolved + outcomes.failed
    runs = counted(summary.goal_runs, "run")
    if access is not None and goal_is_known(summary):
        reached = "edited a file" if set(summary.goal_sources) == {"own-edits"} else "touched a goal file"
        succeeded = (
            f"{outcomes.resolved:,} of {known:,} with a known outcome succeeded" if known else "no outcome is known"
        )
        whole = "" if summary.runs == summary.goal_runs else f"of all {counted(summary.runs, 'run')} "
        yield f"{share(access)} of {runs} {reached}; {whole}{succeeded}."
    elif access is not None:
        yield f"No goal was given and none of {runs} edited a file, so what a goal needed is not known; give `--gold`."
    auc = found.auc
    if auc is not None and auc.estimate is not None:
        left_out = sum(run.peak is not None and not run.covered and run.failed is not None for run in found.runs)
        yield need_sentence(auc.estimate, auc.low, auc.high, left_out)
    elif access and known:
        yield "Whether need goes with failure is not measured: covered runs of both outcomes are needed."
    elif access:
        yield "Whether need goes with failure is not measured: outcomes of both kinds are needed; give `--outcomes`."
    breaks = summary.breaks
    if breaks.compactions + breaks.clears:
        yield break_words(breaks)


def worst_section(found: Analyzed, where: str) -> Section | None:
    """Return the section that lists the runs with the largest demand."""
    table = largest_table(found.summary.largest)
    words = f"One of them: `eirkit show {shlex.quote(where)} RUN`."
    return Section("Runs to look at first", (words,), (table,)) if table.rows else None


def skipped_section(found: Analyzed) -> Section | None:
    """Return the section that lists skipped input."""
    skipped = found.summary.skipped
    if not skipped:
        return None
    columns = (Column("source", "source"), Column("reason", "reason"))
    table = Table("skipped", "Skipped input", columns, tuple(map(asdict, skipped[:100])))
    told = f"{counted(len(skipped), 'part')} of the logs {'was' if len(skipped) == 1 else 'were'} skipped."
    return Section("What is not in these figures", (told,), (table,))


def again_section(found: Analyzed, where: str) -> Section:
    """Return the section with the command that repeats the analysis; the reader fills in the path of the logs."""
    summary, options = found.summary, found.summary.options
    words = ["eirkit", "vestige", "analyze", "LOGS", "--out", where]
    if options.visibility != "seen":
        words += ["--visibility", options.visibility]
    words += ["--goal-tests"] if options.goal_tests else []
    if options.rule == "paper":
        words += ["--demand", "paper"]
    if options.own_edits != "last":
        words += ["--own-edits", options.own_edits]
    if "gold" in summary.goal_sources:
        words += ["--gold", "PATCHES"]
    every = {**{name: str(value) for name, value in asdict(options).items()}, "eirkit": summary.eirkit}
    shown = {name: value for name, value in every.items() if value}
    table = facts("options", "How runs were measured", shown, heading="name")
    return Section("How to make this again", (), (Listing("command", "The command", shlex.join(words)), table))


@pages.add("vestige-analysis")
def analysis_page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of analyzed runs."""
    refuse_others(others)
    return page_of(read_analyzed(folder, tests=tests), str(folder))
