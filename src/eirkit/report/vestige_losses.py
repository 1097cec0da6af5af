"""What recorded runs lost on the way: reading twice and in vain, clipped views, signatures of trouble, compactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eirkit.report.chart import Axis, Chart, Series
from eirkit.report.page import Section
from eirkit.report.table import Column, Table
from eirkit.report.vestige_words import break_words
from eirkit.report.wording import counted, number, share

Document = Mapping[str, Any]
SIGNATURES = {
    "edit_failures": "edits that failed",
    "repeated_commands": "commands repeated",
    "repeated_edits": "edits repeated",
    "submits_after_failed_test": "submissions after a failed test",
    "overflow_errors": "context overflows",
}


def reading_section(document: Document) -> Section | None:
    """Return how much of what was read was read again or in vain."""
    if not document["read_tokens"]:
        return None
    known = bool(document["covered_runs"])
    whose = "" if document["covered_runs"] == document["runs"] else " where the goal was reached"
    vain = f", {share(document['dead_read_share'])} in vain{whose}." if known else "; what was in vain is not known."
    told = (
        f"{number(document['read_tokens'])} tokens of file content were read: {share(document['repeat_share'])} again "
        f"though unchanged{vain}"
    )
    kinds = {
        "all reads": "read_tokens",
        "read again": "repeat_tokens",
        **({"in vain": "dead_read_covered_tokens"} if known else {}),
    }
    names, values = tuple(kinds), tuple(float(document[key]) for key in kinds.values())
    axes = Axis("reads", "category"), Axis("tokens", low=0.0)
    chart = Chart("reads", "Tokens of file content", told, *axes, (Series("tokens", "bars", names, values),))
    columns = (Column("path", "file"), Column("repeat_reads", "reads"), Column("repeat_tokens", "tokens"))
    table = Table("read-again", "Shown again though unchanged", columns, tuple(document["repeated_files"]))
    return Section("Reading again, and in vain", (), (chart, table) if table.rows else (chart,))


def clipping_section(document: Document) -> Section | None:
    """Return what clipped views left out, and whether it was seen later."""
    if not document["clipped_views"]:
        return None
    counts = (
        ("clipped views", "clipped_views"),
        ("… of goal files", "clipped_goal_views"),
        ("… of files that the run modified later", "clipped_modified_views"),
        ("lines to be changed that a later view showed", "lines_recovered"),
        ("lines to be changed that no later view showed", "lines_never_recovered"),
        ("lines that cannot be told", "lines_ambiguous"),
    )
    rows = tuple({"figure": name, "count": document[key]} for name, key in counts)
    lost, seen = document["lines_never_recovered"], document["lines_recovered"]
    words = (
        f"{counted(document['clipped_views'], 'view')} were clipped; {lost:,} of {lost + seen:,} lines that the goal "
        "changes and a clipped view left out were never shown again."
    )
    table = Table("clipping", "Clipped views", (Column("figure", "figure"), Column("count", "count")), rows)
    return Section("Clipped views", (words,), (table,))


def signatures_section(document: Document) -> Section | None:
    """Return how often the signatures of trouble occur."""
    found = {name: document[key] for key, name in SIGNATURES.items() if document[key]}
    if not found:
        return None
    runs = document["runs"]
    told = ", ".join(f"{name} {count:,}" for name, count in found.items())
    series = Series("count", "bars", tuple(found), tuple(float(count) for count in found.values()))
    axes = Axis("signature", "category"), Axis("count", low=0.0)
    chart = Chart("signatures", f"Signatures of trouble in {counted(runs, 'run')}", f"{told}.", *axes, (series,))
    return Section("Signatures of trouble", (), (chart,))


def breaks_section(document: Document) -> Section | None:
    """Return what compactions and clears dropped of what was still needed."""
    breaks = document["breaks"]
    if not breaks["compactions"] + breaks["clears"]:
        return None
    words = (break_words(breaks),)
    if breaks.get("unmeasured", 0) == breaks["compactions"] + breaks["clears"]:
        return Section("Compactions and clears", words)
    fates = (
        f"Of {counted(breaks['live_tokens'], 'token')} still needed {number(breaks['dropped_tokens'])} were not "
        f"carried over: {number(breaks.get('reread_dropped_tokens'))} in files that were read again, "
        f"{number(breaks.get('overwritten_tokens'))} in files edited without reading them again, "
        f"{number(breaks['never_reread_tokens'])} in files never read again."
    )
    columns = (
        Column("run_id", "run"),
        Column("kind", "kind"),
        Column("cut", "at cut"),
        Column("live_tokens", "live", meaning="still in the context, and used by later work"),
        Column("dropped_tokens", "not carried", meaning="the sum of the next three"),
        Column("reread_dropped_tokens", "read again"),
        Column("overwritten_tokens", "edited unread", meaning="edited without reading it again"),
        Column("never_reread_tokens", "never again"),
    )
    rows = tuple(one for one in document["costliest_breaks"] if one.get("measured", True))
    table = Table("breaks", "The costliest breaks, in tokens of files", columns, rows)
    return Section("Compactions and clears", (*words, fates), (table,))
