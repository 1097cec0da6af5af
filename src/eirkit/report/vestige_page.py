"""The page of analysed runs: what they needed, what they lost, and which runs to look at first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from eirkit.report.analysed import Analysed
from eirkit.report.page import Headline, Listing, Page, Section
from eirkit.report.table import Column, Table
from eirkit.report.vestige_cohorts import cohort_sections
from eirkit.report.vestige_losses import breaks_section, clipping_section, reading_section, signatures_section
from eirkit.report.vestige_needs import demand_section, goal_section
from eirkit.report.wording import counted, number, share

TITLE = "What these recorded runs needed, and what they lost"
WORST = (
    Column("run_id", "run"),
    Column("turns", "turns"),
    Column("peak_demand_tokens", "peak demand", meaning="tokens that work towards the goal still needed"),
    Column("peak_cut", "at cut", meaning="before which turn"),
    Column("later_used_peak", "used later", meaning="the same with every later use counted"),
    Column("read_tokens", "read"),
    Column("repeat_tokens", "again", meaning="unchanged, shown before"),
    Column("dead_read_tokens", "in vain", meaning="used by nothing that led to the goal"),
    Column("peak_context_tokens", "largest prompt"),
)


def page_of(found: Analysed, where: str) -> Page:
    """Return the page of what was analysed.

    Args:
        where: the folder, as commands are to name it.
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
    """Return the first screen: the mean peak of what had to be kept, and what became of it."""
    document = found.document
    if document["goal_access"]:
        peak = number(document["mean_peak_covered_tokens"])
        caption = "tokens that work towards the goal still needed at the peak, mean over runs that reached a goal file"
        first = f"At their peak your runs had to keep {peak} tokens to reach their goal; {_read(document)}"
        return Headline(peak, caption, (first, *_more(found)))
    unit, quantiles = next(iter(document["later_used"].items()), ("tokens", None))
    if quantiles is None:
        words = (
            "No run is long enough, or reached a goal file, so nothing was measured; that is not the same as no need."
        )
        return Headline("–", "nothing was measured", (words,))
    peak = number(quantiles["peak_p50"])
    caption = f"{unit} held at the peak that a later step used, median over runs"
    first = f"Half of your runs held {peak} {unit} or more that a later step used; {_read(document)}"
    return Headline(peak, caption, (first, *_more(found)))


def _read(document: Mapping[str, Any]) -> str:
    if not document["read_tokens"]:
        return "reads of files were not recorded."
    dead, again = share(document["dead_read_share"]), share(document["repeat_share"])
    return f"{dead} of what they read was used by nothing that led there, {again} had been read before, unchanged."


def _more(found: Analysed) -> Iterator[str]:
    document = found.document
    access = document["goal_access"]
    outcomes = document["outcomes"]
    known = outcomes["resolved"] + outcomes["failed"]
    runs = counted(document["runs"], "run")
    if access is not None:
        reached = "edited a file" if set(document["goal_sources"]) == {"own-edits"} else "touched a goal file"
        succeeded = (
            f"{outcomes['resolved']:,} of {known:,} with a known outcome succeeded" if known else "no outcome is known"
        )
        yield f"{share(access)} of {runs} {reached}; {succeeded}."
    auc = found.auc
    if auc is not None and auc.estimate is not None:
        ends = "" if auc.low is None or auc.high is None else f" (95% interval {auc.low:.2f} to {auc.high:.2f})"
        yield (
            f"A failed run needed more than a successful one with probability {auc.estimate:.2f}{ends}; 0.50 would be "
            "chance. This is association, not cause."
        )
    elif access is not None:
        yield "Whether need goes with failure is not measured: outcomes of both kinds are needed; give `--outcomes`."
    breaks = document["breaks"]
    if breaks["compactions"] + breaks["clears"]:
        lost = number(breaks["dropped_tokens"])
        yield f"{breaks['compactions']} compactions and {breaks['clears']} clears dropped {lost} tokens still needed."


def worst_section(found: Analysed, where: str) -> Section | None:
    """Return the runs with the largest demand."""
    rows = found.document["largest"]
    if not rows:
        return None
    table = Table("largest", "Runs with the largest demand", WORST, tuple(rows))
    return Section(
        "Runs to look at first", (f"One of them: `eirkit vestige show {shlex.quote(where)} RUN`.",), (table,)
    )


def skipped_section(found: Analysed) -> Section | None:
    """Return what could not be read."""
    rows = found.document["skipped"]
    if not rows:
        return None
    columns = (Column("source", "source"), Column("reason", "reason"))
    table = Table("skipped", "Skipped input", columns, tuple(rows[:100]))
    return Section("What is not in these figures", (f"{counted(len(rows), 'piece')} of input were skipped.",), (table,))


def again_section(found: Analysed, where: str) -> Section:
    """Return how to make the analysis again; where the logs are is the reader's own knowledge."""
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
