"""Builds the page of a `vestige analyze` folder: headline, sections, runs with the largest demand, skipped logs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.logs.measures import LOG_MEASURES, READING_MEASURES
from eirkit.show.logs.analysed import Analysed
from eirkit.show.logs.cohorts import cohort_sections
from eirkit.show.logs.needs import (
    breaks_section,
    clipping_section,
    demand_section,
    goal_section,
    reading_section,
    signatures_section,
)
from eirkit.show.logs.sentences import break_words, goal_is_known, goal_runs, is_reached, later_runs, need_sentence
from eirkit.show.page import Headline, Listing, Page, Section
from eirkit.show.phrases import counted, number, share
from eirkit.show.table import Column, Table

TITLE = "What these recorded runs needed, and what they lost"
WORST = (
    Column("run_id", "run"),
    Column("turns", "turns"),
    *(Column.of(LOG_MEASURES[key]) for key in ("peak_demand_tokens", "peak_cut", "later_used_peak")),
    Column("unit", "unit", meaning=f"in which {LOG_MEASURES['later_used_peak'].label} is counted"),
    *(Column.of(READING_MEASURES[key]) for key in ("read_tokens", "repeat_tokens", "dead_read_tokens")),
    Column.of(LOG_MEASURES["peak_context_tokens"]),
)


def page_of(found: Analysed, where: str) -> Page:
    """Return the page of an analysis.

    Args:
        where: the folder, as printed in suggested commands.
    """
    sections = tuple(section for section in _sections(found, where) if section is not None)
    answers = {"summary": dict(found.document), "cohorts": found.cohorts}
    return Page(TITLE, headline_of(found), sections, found.name, answers, "vestige-analysis")


def _sections(found: Analysed, where: str) -> Iterator[Section | None]:
    yield demand_section(found)
    yield goal_section(found)
    yield from cohort_sections(found, where)
    yield reading_section(found.document)
    yield clipping_section(found.document)
    yield signatures_section(found.document)
    yield breaks_section(found.document)
    yield worst_section(found, where)
    yield skipped_section(found)
    yield again_section(found, where)


def headline_of(found: Analysed) -> Headline:
    """Return the headline: mean peak demand, and how it relates to the outcomes."""
    document = found.document
    if document["goal_access"]:
        peak = number(document["mean_peak_covered_tokens"])
        caption = "tokens that work towards the goal still needed at the peak, mean over runs that reached a goal file"
        first = f"At their peak your runs had to keep {peak} tokens to reach their goal; {_read(document)}"
        return Headline(peak, caption, (first, *_more(found)))
    unit, quantiles = next(iter(document["later_used"].items()), ("tokens", None))
    if quantiles is None or not quantiles["peak_p99"]:
        words = (
            "No run reached a goal file or used later what it had seen, so nothing was measured; that is not the same "
            "as no need."
        )
        return Headline("–", "nothing was measured", (words, *_more(found)))
    peak = number(quantiles["peak_p50"])
    caption = f"{unit} held at the peak that a later step used, median over runs"
    whose = later_runs(unit, quantiles["runs"])
    first = f"Half of {whose} held {peak} {unit} or more that a later step used; {_read(document)}"
    return Headline(peak, caption, (first, *_more(found)))


def _read(document: Mapping[str, Any]) -> str:
    if not document["read_tokens"]:
        return "reads of files were not recorded."
    again, vain = READING_MEASURES["repeat_share"], READING_MEASURES["dead_read_share"]
    said = f"of {again.of}, {share(document['repeat_share'])} {again.label}"
    if not document["covered_runs"]:
        return f"{said}."
    return f"{said}; of {vain.of}, {share(document['dead_read_share'])} {vain.label}."


def _more(found: Analysed) -> Iterator[str]:
    document = found.document
    access = document["goal_access"]
    outcomes = document["outcomes"]
    known = outcomes["resolved"] + outcomes["failed"]
    runs = counted(goal_runs(document), "run")
    if access is not None and goal_is_known(document):
        reached = "edited a file" if set(document["goal_sources"]) == {"own-edits"} else "touched a goal file"
        succeeded = (
            f"{outcomes['resolved']:,} of {known:,} with a known outcome succeeded" if known else "no outcome is known"
        )
        whole = "" if document["runs"] == goal_runs(document) else f"of all {counted(document['runs'], 'run')} "
        yield f"{share(access)} of {runs} {reached}; {whole}{succeeded}."
    elif access is not None:
        yield f"No goal was given and none of {runs} edited a file, so what a goal needed is not known; give `--gold`."
    auc = found.auc
    if auc is not None and auc.estimate is not None:
        yield need_sentence(auc.estimate, auc.low, auc.high, _uncovered(found))
    elif access and known:
        yield "Whether need goes with failure is not measured: covered runs of both outcomes are needed."
    elif access:
        yield "Whether need goes with failure is not measured: outcomes of both kinds are needed; give `--outcomes`."
    breaks = document["breaks"]
    if breaks["compactions"] + breaks["clears"]:
        yield break_words(breaks)


def _uncovered(found: Analysed) -> int:
    """Return how many runs with a known outcome touched no goal file."""
    return sum(1 for run in found.runs if run.peak is not None and not run.covered and run.failed is not None)


def worst_section(found: Analysed, where: str) -> Section | None:
    """Return the section that lists the runs with the largest demand."""
    rows = [_without_unknown(row) for row in found.document["largest"] if row["later_used_peak"] or is_reached(row)]
    if not rows:
        return None
    several = len({row.get("unit") for row in rows}) > 1
    columns = tuple(column for column in WORST if column.key != "unit" or several)
    table = Table("largest", "Runs with the largest demand", columns, tuple(rows))
    return Section(
        "Runs to look at first", (f"One of them: `eirkit vestige show {shlex.quote(where)} RUN`.",), (table,)
    )


def _without_unknown(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a run's row, with goal figures set to None if the run touched no goal file."""
    return row if is_reached(row) else {**row, "peak_demand_tokens": None, "dead_read_tokens": None}


def skipped_section(found: Analysed) -> Section | None:
    """Return the section that lists skipped input."""
    rows = found.document["skipped"]
    if not rows:
        return None
    columns = (Column("source", "source"), Column("reason", "reason"))
    table = Table("skipped", "Skipped input", columns, tuple(rows[:100]))
    return Section("What is not in these figures", (f"{counted(len(rows), 'piece')} of input were skipped.",), (table,))


def again_section(found: Analysed, where: str) -> Section:
    """Return the section with the command that repeats the analysis; the reader fills in the path of the logs."""
    options = found.options
    words = ["eirkit", "vestige", "analyze", "LOGS", "--out", where]
    if options.get("visibility", "seen") != "seen":
        words += ["--visibility", options["visibility"]]
    words += ["--goal-tests"] if options.get("goal_tests") else []
    if options.get("own_edits", "last") != "last":
        words += ["--own-edits", options["own_edits"]]
    if "gold" in found.document["goal_sources"]:
        words += ["--gold", "PATCHES"]
    shown = {**{name: str(value) for name, value in options.items()}, "eirkit": str(found.document.get("eirkit", ""))}
    rows = tuple({"name": name, "value": value} for name, value in shown.items() if value)
    table = Table("options", "How runs were measured", (Column("name", "name"), Column("value", "value")), rows)
    return Section("How to make this again", (), (Listing("command", "The command", shlex.join(words)), table))
