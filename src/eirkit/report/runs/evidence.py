"""Page and page sections for rescue, capability and probe folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.lacuna.findings.measures import ARM_MEASURES, PROBE_MEASURES, RUN_MEASURES
from eirkit.lacuna.runs.command_line import evidence_command
from eirkit.lacuna.tasks.workload import units_of
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series
from eirkit.report.folders import pages, refuse_others
from eirkit.report.runs.answers import repair_of
from eirkit.report.runs.folder import Evidence, read_evidence
from eirkit.report.table import Column, Table, counted, listed, points, share

Row = Mapping[str, Any]
ARMS = tuple(one for one in ARM_MEASURES if one.id in ("control", "sham", "oracle"))


def rescue_section(found: Evidence) -> Section:
    """Return the section on a rescue: accuracy with missing results restored, with a sham and without injection."""
    document = found.document
    rows = [row for row in document["rows"] if not _is_withheld(row)]
    words = [
        f"{_condition(document)}: whole trajectories with an injection at every step that misses something. The sham "
        "carries the required label and another value of the same length."
    ]
    if document.get("memory"):
        words.append(
            f"{document['memory']} stands behind the agent in every arm. The steps counted are those at which it did "
            "not bring what was missing in the arm without an injection; they are the same in all arms."
        )
    words += [f"Withheld: {model} on {workload}: {reason}" for model, workload, reason in document["excluded"]]
    if any(row["control"] is None for row in rows):
        words.append("No full-information control was run: differences describe; add `--control`.")
    measured = [row for row in rows if row["accuracy"] is not None]
    charts = (rescue_chart(measured),) if measured else ()
    return Section("What restoring missed records does", tuple(words), (*charts, _contrasts(document, rows)))


def _condition(document: Row) -> str:
    loop = "the action loop" if document["managed"] else "Controlled Retention"
    memory = f"{document['memory']} ({document['panel']} panel)" if document.get("memory") else document["policy"]
    held = f"m = {document['m']}, h = {document['h']}, {memory}"
    return f"{document['workload']}, {held}, {loop}, {counted(document['seeds'], 'seed')} a model"


def _is_withheld(row: Row) -> bool:
    return row["control"] is not None and not row["claims"]


def rescue_chart(rows: Sequence[Row]) -> Chart:
    """Return a chart of accuracy at missed steps by arm, for each model."""
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    series = tuple(
        Series.of(arm, "bars", models, tuple(_accuracy(rows, model, arm.id) for model in models)) for arm in ARMS
    )
    (whole,) = {arm.of for arm in ARMS}
    told = listed([f"{arm.label} {_between(rows, arm.id)}" for arm in ARMS])
    axes = Axis("model", "category"), Axis(f"accuracy, share of {whole}", low=0.0, high=1.0, percent=True)
    note = "; ".join(f"{arm.label}: {arm.meaning}" for arm in ARMS)
    return Chart("rescue", ARM_MEASURES.title, f"Accuracy: {told}.", *axes, series, f"{note}.")


def _accuracy(rows: Sequence[Row], model: str, arm: str) -> float | None:
    return next((row["accuracy"] for row in rows if row["model"] == model and row["arm"] == arm), None)


def _between(rows: Sequence[Row], arm: str) -> str:
    """Return the accuracy of an arm; for several models, its range."""
    found = [row["accuracy"] for row in rows if row["arm"] == arm]
    ends = dict.fromkeys(share(value) for value in ((min(found), max(found)) if found else (None,)))
    return " to ".join(ends)


def _contrasts(document: Row, rows: Sequence[Row]) -> Table:
    allowed = {row["model"] for row in rows}
    columns = (
        Column("model", "model"),
        Column("arms", "arms"),
        Column("pairs", "pairs", meaning="steps that both arms missed, by seed and step"),
        Column("difference", "difference", 3, percent=True),
        Column("low", "from", 3, percent=True, meaning="95% interval: exact over steps, and t over trajectories"),
        Column("high", "to", 3, percent=True),
        Column("mcnemar_p", "McNemar p", 3, least=0.001),
        Column("permutation_p", "permutation p", 3, least=0.001, meaning="sign flips of whole trajectories"),
    )
    lines = tuple(
        {
            "model": one["model"],
            "arms": " − ".join(one["arms"]) + (", old values" if one.get("of") == "misled" else ""),
            "pairs": one["pairs"],
            "difference": one["difference"]["estimate"],
            "low": one["difference"]["low"],
            "high": one["difference"]["high"],
            "mcnemar_p": one["mcnemar_p"],
            "permutation_p": one["permutation_p"],
        }
        for one in document["contrasts"]
        if one["model"] in allowed
    )
    return Table("rescue-contrasts", "Arms against each other, paired by seed and step", columns, lines)


def capability_section(found: Evidence) -> Section:
    """Return the section on accuracy with full information, and on which models pass the control."""
    rows = found.document["rows"]
    columns = (
        Column("model", "model"),
        Column("workload", "workload"),
        Column.of(RUN_MEASURES["accuracy"]),
        Column("calculator_accuracy", "with calculator", 3, percent=True),
        Column.of(RUN_MEASURES["scored"]),
        Column("verdict", "verdict"),
        Column("passes", "may carry claims"),
        Column("reason", "why"),
    )
    words = (
        "Nothing is missing here. A cell carries claims if it is shown to answer "
        f"{share(found.document['threshold'])} of steps right whose inputs are shown and right.",
    )
    return Section("Full-information control", words, (Table("capability", "Capability", columns, tuple(rows)),))


def probe_section(found: Evidence) -> Section:
    """Return the section on how models recover a lost result."""
    columns = (
        Column("workload", "workload"),
        Column("model", "model"),
        *map(Column.of, PROBE_MEASURES),
    )
    table = Table("probes", "Recovery probes", columns, tuple(found.document["rows"]))
    return Section("Finding the way to a lost result", (), (table,))


SECTIONS: Mapping[str, Callable[[Evidence], Section]] = {
    "rescue": rescue_section,
    "capability": capability_section,
    "probe": probe_section,
}


def evidence_page(found: Evidence) -> Page:
    """Return the page of one evidence command's folder."""
    name = found.folder.resolve().name
    sections = (
        SECTIONS[found.command](found),
        manifest_section(found.manifest, evidence_command(found.manifest, name)),
    )
    headline = _HEADLINES[found.command](found.document)
    if found.missing:
        left = counted(found.missing, "run")
        words = f"Not finished: {left} still to come; continue with `eirkit lacuna {found.command} --resume {name}`."
        headline = replace(headline, sentences=(*headline.sentences, words))
    title = sections[0].title
    return Page(title, headline, sections, name, {"document": found.document}, f"lacuna-{found.command}")


def manifest_section(manifest: Row, command: str) -> Section:
    """Return the section with the manifest and the command that repeats the experiment."""
    known = ("eirkit", "python", "platform")
    rows = [{"name": name, "value": str(manifest[name])} for name in known]
    rows += [{"name": name, "value": version} for name, version in manifest["dependencies"].items()]
    rows += [{"name": f"source {path}", "value": digest} for path, digest in manifest["sources"].items()]
    table = Table("versions", "Versions and sources", (Column("name", "name"), Column("value", "value")), tuple(rows))
    return Section("How to make this again", (), (Listing("command", "The command", command), table))


def _rescue_headline(document: Row) -> Headline:
    found = repair_of(document)
    if found is None:
        words = "Nothing was missing, or no model may carry claims, so there is nothing to repair."
        return Headline("–", "nothing was repaired", (words,))
    least, most = ("", "") if found.models == 1 else ("at least ", "at most ")
    step = units_of([document["workload"]]).step
    sentence = (
        f"Of {counted(found.steps, step)} {found.where} {least}{share(found.oracle)} are right once it is "
        f"restored (sham {most}{share(found.sham)}, nothing {most}{share(found.control)})"
        f"{'' if found.models == 1 else f', with each of {found.models} models'}."
    )
    more = [
        f"Restored against sham, {one['model']}: {points(one['effect'])} percentage points, 95% interval "
        f"{points(one['low'])} to {points(one['high'])}."
        for one in document.get("repair_effects", ())
    ]
    more += [f"{model}: {one['sentence']}." for model, one in document.get("validity", {}).items() if one["sentence"]]
    if not found.claims:
        more.append("No full-information control was run, so this describes; add `--control`.")
    if not found.shown:
        why = "Restoring must do more than nothing and more than a sham; here the intervals do not show both."
        return Headline("–", "no repair is shown", (why, sentence, *more))
    caption = f"of {step}s {found.where} are right once it is restored"
    if found.models > 1:
        caption += ", with the model for which it does least"
    return Headline(share(found.oracle), caption, (sentence, *more))


def _capability_headline(document: Row) -> Headline:
    passing, cells = len(document["eligible"]), len(document["rows"])
    sentence = (
        f"{passing} of {counted(cells, 'cell')} are shown to answer {share(document['threshold'])} of steps right "
        "whose inputs are shown and right."
    )
    return Headline(f"{passing}/{cells}", "cells may carry claims about lost information", (sentence,))


def _probe_headline(document: Row) -> Headline:
    probes = sum(row["probes"] for row in document["rows"])
    found = sum(row["successful"] for row in document["rows"])
    share_found = share(found / probes) if probes else "–"
    sentence = f"{found} of {counted(probes, 'probe')} ended with the lost result rebuilt."
    return Headline(share_found, "of probes found their way to the lost result", (sentence,))


_HEADLINES: Mapping[str, Callable[[Row], Headline]] = {
    "rescue": _rescue_headline,
    "capability": _capability_headline,
    "probe": _probe_headline,
}


@pages.add("lacuna-evidence")
def page_of_evidence(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a rescue, capability or probe folder."""
    refuse_others(others)
    return evidence_page(read_evidence(folder, plugins=plugins))
