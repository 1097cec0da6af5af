"""Page and page sections for rescue, capability and probe folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from eirkit.lacuna.findings.command_line import evidence_command
from eirkit.lacuna.findings.measures import ARM_MEASURES, PROBE_MEASURES, RUN_MEASURES
from eirkit.lacuna.findings.validity import what_decides
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.evidence import ArmRow, CapabilityResult, EvidenceResult, ProbeResult, RescueResult
from eirkit.records.settings import Arm
from eirkit.records.sweeps import Gate, Manifest
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series
from eirkit.report.folders import pages, refuse_others
from eirkit.report.runs.answers import repair_of
from eirkit.report.runs.folder import Evidence, read_evidence
from eirkit.report.table import Cell, Column, Table, counted, listed, points, share

GATES = ("the gate on accuracy given right inputs", "the paper's gate on accuracy end to end")
ARMS: tuple[Arm, ...] = ("control", "sham", "oracle")  # of the chart


def rescue_section(result: RescueResult) -> Section:
    """Return the section on a rescue: accuracy with missing results restored, with a sham and without injection."""
    rows = [row for row in result.rows if not row.is_withheld]
    words = [
        f"{_condition(result)}: whole trajectories with an injection at every step that misses something. The sham "
        "carries the required label and another value of the same length."
    ]
    if result.memory:
        words.append(
            f"{result.memory} stands behind the agent in every arm. The steps counted are those at which it did "
            "not bring what was missing in the arm without an injection; they are the same in all arms."
        )
    words += [f"Withheld: {failed.model} on {failed.workload}: {failed.reason}" for failed in result.excluded]
    words += [f"Claims nothing: {one.model} on {one.workload}: {one.reason}" for one in result.undecided]
    if any(row.control is None for row in rows):
        words.append("No full-information control was run: differences describe; add `--control`.")
    charts = (rescue_chart(rows),) if any(row.accuracy is not None for row in rows) else ()
    return Section("What restoring missed records does", tuple(words), (*charts, _contrasts(result, rows)))


def _condition(result: RescueResult) -> str:
    loop = "the action loop" if result.managed else "Controlled Retention"
    memory = f"{result.memory} ({result.panel} panel)" if result.memory else result.policy
    return f"{result.where}, {memory}, {loop}, {counted(result.seeds, 'seed')} a model"


def rescue_chart(rows: Sequence[ArmRow]) -> Chart:
    """Return a chart of accuracy at missed steps by arm, for each model."""
    known = {(row.model, row.arm): row.accuracy for row in rows if row.accuracy is not None}
    models = tuple(dict.fromkeys(model for model, _ in known))
    series = tuple(
        Series.of(ARM_MEASURES[arm], "bars", models, tuple(known.get((model, arm)) for model in models)) for arm in ARMS
    )
    measures = [ARM_MEASURES[arm] for arm in ARMS]
    (whole,) = {measure.of for measure in measures}
    told = listed([f"{ARM_MEASURES[arm].label} {_between([known.get((m, arm)) for m in models])}" for arm in ARMS])
    axes = Axis("model", "category"), Axis(f"accuracy, share of {whole}", low=0.0, high=1.0, percent=True)
    note = "; ".join(f"{measure.label}: {measure.meaning}" for measure in measures)
    return Chart("rescue", ARM_MEASURES.title, f"Accuracy: {told}.", *axes, series, f"{note}.")


def _between(accuracies: Sequence[float | None]) -> str:
    """Return the accuracy of an arm; for several models, its range."""
    found = [accuracy for accuracy in accuracies if accuracy is not None]
    return " to ".join(dict.fromkeys(share(end) for end in ((min(found), max(found)) if found else (None,))))


def _contrasts(result: RescueResult, rows: Sequence[ArmRow]) -> Table:
    allowed = {row.model for row in rows}
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
    lines: tuple[dict[str, Cell], ...] = tuple(
        {
            "model": contrast.model,
            "arms": " − ".join(contrast.arms) + (", old values" if contrast.of == "misled" else ""),
            "pairs": contrast.pairs,
            "difference": contrast.difference.estimate,
            "low": contrast.difference.low,
            "high": contrast.difference.high,
            "mcnemar_p": contrast.mcnemar_p,
            "permutation_p": contrast.permutation_p,
        }
        for contrast in result.contrasts
        if contrast.model in allowed
    )
    return Table("rescue-contrasts", "Arms against each other, paired by seed and step", columns, lines)


def gates_table(judged: Sequence[tuple[str, str, tuple[Gate, Gate]]]) -> Table:
    """Return both gates of the control, of some models on some workloads, with their verdicts."""
    columns = (
        Column("model", "model", role="name"),
        Column("workload", "workload", role="name"),
        Column("gate", "gate", role="name", meaning="ours decides who supports claims; the paper's is shown beside it"),
        Column("estimate", "accuracy", 3),
        Column("low", "from", 3, meaning="95% interval: exact over steps; of the paper's gate, also t over runs"),
        Column("high", "to", 3),
        Column("counted", "of", meaning="steps with right inputs; the paper's: runs"),
        Column("threshold", "threshold", 2),
        Column("verdict", "verdict"),
    )
    names = ("given right inputs", "the paper's, end to end")
    lines: tuple[dict[str, Cell], ...] = tuple(
        {
            "model": model,
            "workload": workload,
            "gate": name,
            "estimate": gate.estimate,
            "low": gate.low,
            "high": gate.high,
            "counted": gate.counted,
            "threshold": gate.threshold,
            "verdict": gate.verdict,
        }
        for model, workload, gates in judged
        for name, gate in zip(names, gates, strict=True)
    )
    return Table("gates", "Both gates, where nothing is missing", columns, lines)


def capability_section(result: CapabilityResult) -> Section:
    """Return the section on accuracy with full information, and on which models pass the control."""
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
        f"{share(result.threshold)} of steps right whose inputs are at hand and right; one that is undecided is shown "
        "and claims nothing.",
        *undecided_words([(row.model, row.workload, row.gates) for row in result.rows]),
    )
    lines = tuple({column.key: getattr(row, column.key) for column in columns} for row in result.rows)
    gates = gates_table([(row.model, row.workload, row.gates) for row in result.rows])
    return Section("Full-information control", words, (Table("capability", "Capability", columns, lines), gates))


def undecided_words(judged: Sequence[tuple[str, str, tuple[Gate, Gate]]]) -> list[str]:
    """Return for every undecided gate what to run."""
    return [
        f"{model} on {workload}: {GATES[place]} is undecided ({gate.estimate:.3f}, 95% interval {gate.low:.3f} to "
        f"{gate.high:.3f}, threshold {gate.threshold}); {what_decides(gate)}."
        for model, workload, gates in judged
        for place, gate in enumerate(gates)
        if gate.command
    ]


def probe_section(result: ProbeResult) -> Section:
    """Return the section on how models recover a lost result."""
    columns = (
        Column("workload", "workload"),
        Column("model", "model"),
        *map(Column.of, PROBE_MEASURES),
    )
    lines = tuple({column.key: getattr(row, column.key) for column in columns} for row in result.rows)
    return Section("Finding the way to a lost result", (), (Table("probes", "Recovery probes", columns, lines),))


def section_of(result: EvidenceResult) -> Section:
    """Return the section on the result of an experiment."""
    if isinstance(result, RescueResult):
        return rescue_section(result)
    return capability_section(result) if isinstance(result, CapabilityResult) else probe_section(result)


class EvidenceAnswers(Struct, frozen=True):
    """The result of an experiment, as scripts receive it."""

    document: EvidenceResult


def evidence_page(found: Evidence) -> Page:
    """Return the page of one evidence command's folder."""
    name, result = found.folder.resolve().name, found.result
    sections = (section_of(result), _manifest_section(found.manifest, evidence_command(found.settings, name)))
    if isinstance(result, RescueResult):
        headline = _rescue_headline(result)
    else:
        headline = _capability_headline(result) if isinstance(result, CapabilityResult) else _probe_headline(result)
    if found.missing:
        left = counted(found.missing, "run")
        words = f"Not finished: {left} still to come; continue with `eirkit lacuna {found.command} --resume {name}`."
        headline = replace(headline, sentences=(*headline.sentences, words))
    return Page(sections[0].title, headline, sections, name, EvidenceAnswers(result), f"lacuna-{found.command}")


def _manifest_section(manifest: Manifest, command: str) -> Section:
    """Return the section with the manifest and the command that repeats the experiment."""
    known = {"eirkit": manifest.eirkit, "python": manifest.python, "platform": manifest.platform}
    sources = {f"source {path}": digest for path, digest in manifest.sources.items()}
    rows = tuple({"name": n, "value": v} for n, v in (known | manifest.dependencies | sources).items())
    table = Table("versions", "Versions and sources", (Column("name", "name"), Column("value", "value")), rows)
    return Section("How to make this again", (), (Listing("command", "The command", command), table))


def _rescue_headline(result: RescueResult) -> Headline:
    found = repair_of(result)
    if found is None:
        words = "Nothing was missing, or the control excludes every model, so there is nothing to repair."
        return Headline("–", "nothing was repaired", (words,))
    least, most = ("", "") if found.models == 1 else ("at least ", "at most ")
    step = units_of([result.workload]).step
    sentence = (
        f"Of {counted(found.steps, step)} {found.where} {least}{share(found.oracle)} are right once it is "
        f"restored (sham {most}{share(found.sham)}, nothing {most}{share(found.control)})"
        f"{'' if found.models == 1 else f', with each of {found.models} models'}."
    )
    more = [
        f"Restored against sham, {effect.model}: {points(effect.effect)} percentage points, 95% interval "
        f"{points(effect.low)} to {points(effect.high)}."
        for effect in result.repair_effects
    ]
    more += [f"{model}: {validity.sentence}." for model, validity in result.validity.items() if validity.sentence]
    more += [f"{one.model}: {one.reason}; until then this describes." for one in result.undecided]
    if any(row.control is None for row in result.rows):
        more.append("No full-information control was run, so this describes; add `--control`.")
    if not found.shown:
        why = "Restoring must do more than nothing and more than a sham; here the intervals do not show both."
        return Headline("–", "no repair is shown", (why, sentence, *more))
    caption = f"of {step}s {found.where} are right once it is restored"
    if found.models > 1:
        caption += ", with the model for which it does least"
    return Headline(share(found.oracle), caption, (sentence, *more))


def _capability_headline(result: CapabilityResult) -> Headline:
    passing, cells = len(result.eligible), len(result.rows)
    sentence = (
        f"{passing} of {counted(cells, 'cell')} are shown to answer {share(result.threshold)} of steps right "
        f"whose inputs are at hand and right; {len(result.excluded)} excluded, {len(result.undecided)} undecided."
    )
    papers = [row.gates[1].verdict for row in result.rows]
    beside = listed([f"{papers.count(verdict)} {verdict}" for verdict in ("passes", "fails", "undecided")])
    said = f"The paper's gate, {result.rows[0].gates[1].threshold} end to end: {beside}." if papers else ""
    return Headline(f"{passing}/{cells}", "cells may carry claims about lost information", (sentence, said))


def _probe_headline(result: ProbeResult) -> Headline:
    probes = sum(row.probes for row in result.rows)
    found = sum(row.successful for row in result.rows)
    share_found = share(found / probes) if probes else "–"
    sentence = f"{found} of {counted(probes, 'probe')} ended with the lost result rebuilt."
    return Headline(share_found, "of probes found their way to the lost result", (sentence,))


@pages.add("lacuna-evidence")
def page_of_evidence(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a rescue, capability or probe folder."""
    refuse_others(others)
    return evidence_page(read_evidence(folder, plugins=plugins))
