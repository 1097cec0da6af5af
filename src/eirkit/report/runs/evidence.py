"""Page and page sections for rescue, capability and probe folders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.lacuna.findings.command_line import evidence_command
from eirkit.lacuna.findings.measures import (
    ARM_MEASURES,
    CAUSE_MEASURES,
    MEMORY_MEASURES,
    OUTCOME_MEASURES,
    PROBE_MEASURES,
    RUN_MEASURES,
)
from eirkit.lacuna.findings.validity import what_decides
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.evidence import ArmRow, CapabilityCell, CapabilityResult, EvidenceResult, ProbeResult, RescueResult
from eirkit.records.runs import CAUSES, OUTCOMES
from eirkit.records.settings import Arm
from eirkit.records.sweeps import Gate, Standing
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series, facts
from eirkit.report.folders import pages, refuse_others
from eirkit.report.runs.answers import repair_of
from eirkit.report.runs.folder import Evidence, read_evidence
from eirkit.report.table import Cell, Column, Table, cells_of, counted, listed, points, share

PAIR, PAIRS = "pair of model and workload", "pairs of model and workload"  # what a control judges
GATES = ("the gate on accuracy given right inputs", "the paper's gate on accuracy end to end")
ARMS: tuple[Arm, ...] = ("control", "sham", "oracle")  # of the chart


def rescue_section(result: RescueResult) -> Section:
    """Return the section on a rescue: accuracy with missing results restored, with a sham and without injection."""
    rows = [row for row in result.rows if not row.is_withheld]
    loop = "the action loop" if result.managed else "Controlled Retention"
    memory = f"{result.memory} ({result.panel} panel)" if result.memory else result.policy
    words = [
        f"{result.where}, {memory}, {loop}, {counted(result.seeds, 'seed')} a model: whole trajectories with an "
        "injection at every step that misses something. The sham carries the required label and another value of the "
        "same length."
    ]
    if result.memory:
        words.append(
            f"{result.memory} stands behind the agent in every arm. The steps counted are those at which it did "
            "not bring what was missing in the arm without an injection; they are the same in all arms."
        )
    words += [f"Withheld: {failed.model} on {failed.workload}: {failed.reason}" for failed in result.excluded]
    words += [f"Claims nothing: {judged.model} on {judged.workload}: {judged.reason}" for judged in result.undecided]
    if any(row.control is None for row in rows):
        words.append("No full-information control was run: differences describe; add `--control`.")
    charts = (rescue_chart(rows),) if any(row.accuracy is not None for row in rows) else ()
    return Section("What restoring missed records does", tuple(words), (*charts, *rescue_tables(result)))


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


def rescue_tables(result: RescueResult) -> tuple[Table, ...]:
    """Return the arms, what became of records needed from memory, and the arms against each other."""
    allowed = {row.model for row in result.rows if not row.is_withheld}
    tell = units_of([result.workload]).tell
    tables = (_arms(result), _outcomes(result), _contrasts(result, allowed))
    return tuple(table.reworded(tell) for table in tables if table.rows)


IN_WORDS = (
    "control: nothing is added; oracle: the sentences that state what is asked; sham: true sentences about others, of "
    "about the same length; stale: what was said of the same facts before; outdated values: answers that were right "
    "once"
)


def _arms(result: RescueResult) -> Table:
    spoken = result.m is None  # conversations
    columns = (
        _model_column(result),
        Column("arm", "arm"),
        Column("steps", "steps"),
        Column("accuracy", "accuracy", percent=True),
        *((Column("misled", "outdated values", percent=True),) if spoken else ()),
        Column.of(ARM_MEASURES["trajectory_accuracy"]),
        Column.of(RUN_MEASURES["self_consistent_accuracy"], priority=2),
        Column("scored_text", RUN_MEASURES["scored"].label, figures=True, raw="scored"),
    )
    rows = tuple({**cells_of(row, columns), "scored_text": f"{row.scored}/{row.attempted}"} for row in result.rows)
    if spoken:
        title = f"{result.workload}: accuracy at questions that what was shown did not answer"
        return Table("arms", title, columns, rows, IN_WORDS)
    kept, which = result.policy, "a miss"
    if result.memory:
        kept, which = f"{result.memory}, {result.panel} panel", "a miss that the memory did not fill in the control arm"
    note = "; ".join(f"{ARM_MEASURES[arm].label}: {ARM_MEASURES[arm].meaning}" for arm in ARMS)
    return Table("arms", f"{result.where}, {kept}: accuracy at steps with {which}", columns, rows, note)


def _outcomes(result: RescueResult) -> Table:
    """Return what became of records needed from memory in the control arm."""
    found = {row.model: row.outcomes for row in result.rows if row.arm == "control" and row.outcomes is not None}
    shown = [outcome for outcome in OUTCOMES if any(counts.get(outcome) for counts in found.values())]
    rows: list[dict[str, Cell]] = []
    for model, counts in found.items():
        needed = sum(counts.values())
        shares = {str(outcome): counts.get(outcome, 0) / needed if needed else None for outcome in shown}
        rows.append({"model": model, "needed": needed, **shares})
    measures = [OUTCOME_MEASURES[outcome] for outcome in shown]
    columns = (
        Column("model", "model", role="name"),
        Column.of(MEMORY_MEASURES["needed"]),
        *(Column.of(measure, whole=f"{measure.of}, all runs together") for measure in measures),
    )
    return Table("outcomes", f"Control arm: {OUTCOME_MEASURES.title.lower()}", columns, tuple(rows))


def _contrasts(result: RescueResult, allowed: Collection[str]) -> Table:
    columns = (
        _model_column(result),
        Column("arms", "arms"),
        Column("pairs", "pairs", meaning="steps that both arms missed, by seed and step"),
        Column("difference", "difference", signed=True),
        Column("low", "from", signed=True, meaning="95% interval: exact over steps, and t over trajectories"),
        Column("high", "to", signed=True),
        Column("mcnemar_p", "McNemar p", 2, least=0.001, priority=2),
        Column("permutation_p", "p", 3, least=0.001, meaning="sign flips of whole trajectories"),
    )
    lines: tuple[dict[str, Cell], ...] = tuple(
        {
            **cells_of(contrast, columns),
            "arms": " − ".join(contrast.arms) + (", outdated values" if contrast.of == "misled" else ""),
            "difference": contrast.difference.estimate,
            "low": contrast.difference.low,
            "high": contrast.difference.high,
        }
        for contrast in result.contrasts
        if contrast.model in allowed
    )
    return Table("contrasts", "Paired by seed and step", columns, lines)


def _model_column(result: RescueResult) -> Column:
    """Return the column of models; of one model, which the first sentence names, it can be left out."""
    return Column("model", "model", role="name", priority=int(len({row.model for row in result.rows}) == 1))


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
        {**cells_of(gate, columns), "model": model, "workload": workload, "gate": name}
        for model, workload, gates in judged
        for name, gate in zip(names, gates, strict=True)
    )
    return Table("gates", "Both gates, where nothing is missing", columns, lines)


def capability_section(result: CapabilityResult) -> Section:
    """Return the section on accuracy with full information, and on which models pass the control."""
    words = (
        "Nothing is missing here. A model carries claims if it is shown to answer "
        f"{share(result.threshold)} of steps right whose inputs are at hand and right; one that is undecided is shown "
        "and claims nothing.",
        *undecided_words([(row.model, row.workload, row.gates) for row in result.rows]),
    )
    return Section("Full-information control", words, capability_tables(result.rows))


def capability_tables(cells: Sequence[CapabilityCell]) -> tuple[Table, ...]:
    """Return accuracy with nothing missing, both gates, and which cells may carry claims."""
    causes = [cause for cause in CAUSES if any(cell.errors[cause] for cell in cells)]
    columns = (
        Column("model", "model", role="name"),
        Column("workload", "workload", role="name"),
        Column.of(RUN_MEASURES["accuracy"]),
        Column("accuracy_sd", "± sd", priority=2),
        *(Column.of(CAUSE_MEASURES[cause], priority=1) for cause in causes),
        Column("calculator_accuracy", "with calculator", percent=True),
        Column("scored_text", RUN_MEASURES["scored"].label, figures=True, raw="scored"),
    )
    rows = tuple(
        {
            **cells_of(cell, columns),
            **{cause: cell.errors[cause] / cell.steps if cell.steps else None for cause in causes},
            "scored_text": f"{cell.scored}/{cell.attempted}",
        }
        for cell in cells
    )
    shown = Table("cells", "Every needed answer is shown; recovery is off", columns, rows)
    gates = gates_table([(cell.model, cell.workload, cell.gates) for cell in cells])
    return shown, gates, standings_table({(cell.model, cell.workload): cell.standing() for cell in cells})


CLAIMS = {"passes": "yes", "fails": "no", "undecided": "undecided"}


def standings_table(judged: Mapping[tuple[str, str], Standing]) -> Table:
    """Return which models may carry claims on which workloads, and why."""
    columns = (
        Column("model", "model", role="name"),
        Column("workload", "workload", role="name"),
        Column("verdict", "may carry claims"),
        Column("reason", "why", role="text"),
    )
    lines = tuple(
        {
            "model": model,
            "workload": workload,
            "verdict": CLAIMS[standing.verdict],
            "reason": standing.reason.partition(": ")[2] or standing.reason,
        }
        for (model, workload), standing in judged.items()
    )
    return Table("control", "Claims about lost information", columns, lines)


def undecided_words(judged: Sequence[tuple[str, str, tuple[Gate, Gate]]]) -> list[str]:
    """Return for every undecided gate what to run."""
    return [
        f"{model} on {workload}: {GATES[place]} is undecided ({gate.estimate:.3f}, 95% interval {gate.low:.3f} to "
        f"{gate.high:.3f}, threshold {gate.threshold}); {what_decides(gate)}."
        for model, workload, gates in judged
        for place, gate in enumerate(gates)
        if gate.command
    ]


# Where a terminal is narrow, the least telling columns go first.
_PROBE_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "probes": {"figures": True},
    "minimum": {"priority": 1},
    "redundant": {"priority": 2},
    "off_cone": {"priority": 3},
}


def probe_table(result: ProbeResult) -> Table:
    """Return how each model recovered lost results."""
    columns = (
        Column("workload", "workload", role="name"),
        Column("model", "model", role="name"),
        *(Column.of(measure, **_PROBE_COLUMNS.get(measure.id, {})) for measure in PROBE_MEASURES),
    )
    rows = tuple({**cells_of(row, columns), "probes": f"{row.probes}/{row.attempted}"} for row in result.rows)
    return Table("probes", PROBE_MEASURES.title, columns, rows)


def section_of(result: EvidenceResult) -> Section:
    """Return the section on the result of an experiment."""
    if isinstance(result, RescueResult):
        return rescue_section(result)
    if isinstance(result, CapabilityResult):
        return capability_section(result)
    return Section("Finding the way to a lost result", (), (probe_table(result),))  # how models recover it


def evidence_page(found: Evidence) -> Page:
    """Return the page of one evidence command's folder."""
    name, result = found.folder.resolve().name, found.result
    manifest, command = found.manifest, Listing("command", "The command", evidence_command(found.settings, name))
    known = {"eirkit": manifest.eirkit, "python": manifest.python, "platform": manifest.platform}
    sources = {f"source {path}": digest for path, digest in manifest.sources.items()}
    versions = facts("versions", "Versions and sources", {**known, **manifest.dependencies, **sources}, heading="name")
    sections = (section_of(result), Section("How to make this again", (), (command, versions)))
    if isinstance(result, RescueResult):
        headline = _rescue_headline(result)
    else:
        headline = _capability_headline(result) if isinstance(result, CapabilityResult) else _probe_headline(result)
    if found.missing:
        left = counted(found.missing, "run")
        words = f"Not finished: {left} still to come; continue with `eirkit lacuna {found.command} --resume {name}`."
        headline = replace(headline, sentences=(*headline.sentences, words))
    return Page(sections[0].title, headline, sections, name, {"document": result}, f"lacuna-{found.command}")


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
    more += [f"{judged.model}: {judged.reason}; until then this describes." for judged in result.undecided]
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
    passing, judged = len(result.eligible), len(result.rows)
    sentence = (
        f"{passing} of {counted(judged, PAIR, PAIRS)} {'is' if passing == 1 else 'are'} shown to answer "
        f"{share(result.threshold)} of steps right whose inputs are at hand and right; {len(result.excluded)} "
        f"excluded, {len(result.undecided)} undecided."
    )
    papers = [row.gates[1].verdict for row in result.rows]
    beside = listed([f"{papers.count(verdict)} {verdict}" for verdict in ("passes", "fails", "undecided")])
    said = f"The paper's gate, {result.rows[0].gates[1].threshold} end to end: {beside}." if papers else ""
    return Headline(f"{passing}/{judged}", f"{PAIRS} may carry claims about lost information", (sentence, said))


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
