"""Studies of recorded runs: cohorts, rereading, clipping, anomalies, mediation, domains.

The runs are not shipped. `--data DIR` holds an analysis of `eirkit vestige analyze` in any of DIR/verified,
DIR/coderforge, DIR/openhands, DIR/tau-bench, DIR/tau-retail, DIR/tau-airline and DIR/terminal-bench, and the source
lines of the tasks' gold files in DIR/base-lines.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from eirkit.records.analysis import CohortRow, CohortStatistics, RunRow
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.vestige.cohorts.cohort import analyze_cohorts
from eirkit.vestige.cohorts.covariates import read_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan
from eirkit.vestige.cohorts.size_failure import DEMAND_AS_SIZE
from eirkit.vestige.demand.validation import DISTRACTOR, CaseVerdict, known_cases, validate
from eirkit.vestige.tables import is_analysis, read_analysis, read_rows
from eirkit_paper.published import SLACK, PublishedFigure, figures_by_id, paper_cohorts, value_of, values_of
from eirkit_paper.studies.comparison import absent, banded, exact, in_section, listed, row_from, sectioned
from eirkit_paper.study import NEEDS_RUNS, Findings, Setting, StudyRow
from eirkit_paper.verdicts import DIFFERS, NOT_SAME, judge_estimates, judge_exact

VERIFIED, CODERFORGE, OPENHANDS, TAU, TERMINAL = "verified", "coderforge", "openhands", "tau-bench", "terminal-bench"
TITLES = {VERIFIED: "Verified", CODERFORGE: "CoderForge", OPENHANDS: "OpenHands/Qwen3"}
# Cohort → runs, goal access, mean peak demand, failure AUC.
COLUMNS = ("Runs", "Goal access", "Mean peak demand", "Failure AUC")
COHORTS = {cohort: values_of("tab:swe-retrospective", row, *COLUMNS) for cohort, row in TITLES.items()}
ALL_RUNS = int(value_of("sec:deployment-estimator", "All cohorts", "runs"))
SWE, REREAD, DOMAINS = "sec:deployment-swebench", "tab:reread-distance", "sec:deployment-cross-domain"


@dataclass(frozen=True, slots=True)
class Published:
    """One printed estimate and the test of ours that answers to it."""

    cohort: str
    test: str
    label: str
    figure: PublishedFigure
    nothing: float | None = 1.0  # what the estimate is where there is no association; None: it is not about one

    @property
    def value(self) -> float:
        return self.figure.number


def printed(cohort: str, test: str, label: str, place: str, key: str, nothing: float | None = 1.0) -> Published:
    """Return an estimate from the place, row and column (`row|column`) of its figure."""
    return Published(cohort, test, label, figures_by_id()[f"{place}|{key}"], nothing)


REREADS = tuple(
    printed(VERIFIED, test, label, place, key)
    for test, label, place, key in (
        (
            "reread-failed-distance",
            "Failed × log2 distance: rate ratio",
            REREAD,
            "Failed × log2 distance|Estimate",
        ),
        (
            "reread-failed-needed-distance",
            "Failed × needed × log2 distance: rate ratio",
            REREAD,
            "Failed × needed × log2 distance|Estimate",
        ),
        (
            "fair-clock-gap",
            "Fair-clock needed-file gap: odds ratio a doubling",
            REREAD,
            "Fair-clock needed-file gap, per doubling|Estimate",
        ),
        ("end-censored-gap", "End-censored gap: odds ratio", SWE, "End-censored gap|odds ratio"),
        ("closed-gap", "Closed gap: odds ratio", SWE, "Closed gap|odds ratio"),
        ("placebo-needed-gap", "Joint closed gap, needed files", SWE, "Joint closed gap, needed files|odds ratio"),
        ("placebo-other-gap", "Joint closed gap, other files", SWE, "Joint closed gap, other files|odds ratio"),
    )
)


def _openhands(test: str, label: str, key: str, nothing: float = 1.0) -> Published:
    return printed(OPENHANDS, test, label, SWE, key, nothing)


DEMAND = (
    _openhands(
        "clipped-demand-failure-tokens",
        "Demand, given length: odds ratio a doubling",
        "Demand, given length|odds ratio",
    ),
    _openhands(
        "clipped-demand-failure-difficulty",
        "Demand, given length and difficulty",
        "Demand, given length and difficulty|odds ratio",
    ),
)
MEDIATION = (
    _openhands(
        "size-failure-tokens",
        "Gold-file lines, given length: odds ratio a doubling",
        "Gold-file lines, given length|odds ratio",
    ),
    _openhands(
        "size-failure-difficulty", "Gold-file lines, given difficulty", "Gold-file lines, given difficulty|odds ratio"
    ),
    _openhands(
        "size-never-recovered", "Gold-file lines → never recovered", "Gold-file lines to never recovered|odds ratio"
    ),
    _openhands("never-recovered-failure", "Never recovered → failure", "Never recovered to failure|odds ratio"),
    _openhands(
        "mediation-never-recovered",
        "Indirect risk difference",
        "Indirect risk difference|25th to 75th percentile",
        0.0,
    ),
    _openhands("rework-failure", "Rework → failure", "Rework to failure|odds ratio"),
)
RECOVERY = (
    _openhands(
        "clipping-raw-difference",
        "Never recovered − recovered: resolved",
        "Never recovered − recovered|resolved",
        0.0,
    ),
    _openhands("clipping-mixed", "Random intercepts: odds ratio of success", "Random intercepts|odds ratio"),
    _openhands("clipping-correlated-effects", "Correlated random effects", "Correlated random effects|odds ratio"),
    _openhands("clipping-disjoint-difficulty", "Difficulty from other runs", "Difficulty from other runs|odds ratio"),
)
# Clipped views, runs with one, those of goal (OpenHands: later modified) files, runs with one; re-exposed lines, their
# runs, never re-exposed lines, their runs.
CLIPPED = (
    "clipped views",
    "runs with a clipped view",
    "clipped views of goal files",
    "runs with one of goal files",
    "changed old lines shown again",
    "runs with such lines",
    "changed old lines never shown again",
    "runs with those",
)
CLIPPING = {cohort: values_of(SWE, title.partition("/")[0], *CLIPPED) for cohort, title in TITLES.items()}
ANOMALIES = {
    column: (label, value_of(SWE, "Anomalies", name))
    for column, label, name in (
        ("edit_failures", "edit-application failures", "edit-application failures"),
        ("repeated_commands", "identical command and output", "identical command and output"),
        ("repeated_edits", "repeated edits after a failed test", "repeated edits"),
        ("submits_after_failed_test", "submissions after a failed test", "submissions after a failed test"),
    )
}


def needed(setting: Setting, *cohorts: str) -> tuple[str, ...]:
    """Return the commands that make what is missing; nothing where all is there."""
    lacking = [name for name in cohorts if folder_of(setting, name) is None]
    made = [paper_cohorts()[name].command for name in lacking]
    return (*made, "eirkit reproduce STUDY --data DATA") if made else ()


def folder_of(setting: Setting, cohort: str) -> Path | None:
    """Return the analysis of a cohort by the paper's rule, if it is there."""
    if setting.data is None:
        return None
    folder = setting.data / cohort
    is_there = is_analysis(folder) and read_analysis(folder).options.rule == "paper"
    return folder if is_there else None


@cache
def _analyzed(folder: Path) -> CohortStatistics:
    lines = folder.parent / "base-lines.json"
    sizes = read_base_lines(lines) if lines.is_file() else None
    return analyze_cohorts([folder], AnalysisPlan(), by="folder", base_lines=sizes)


def lacks(cohort: str) -> str:
    wanted = paper_cohorts()[cohort]
    return f"no analysis of the {wanted.runs:,} {cohort} runs in --data ({wanted.source})"


def _commands(setting: Setting, study: str, *cohorts: str) -> tuple[str, ...]:
    return tuple(line.replace("STUDY", study) for line in needed(setting, *cohorts))


def vestige_cohorts(setting: Setting) -> Findings:
    """Compare runs, goal access, demand and failure AUC of the three cohorts."""
    rows: list[StudyRow] = []
    for cohort, figures in COHORTS.items():
        folder = folder_of(setting, cohort)
        labels = ("runs", "goal access", "mean peak demand, tokens", "failure AUC")
        named = [f"{TITLES[cohort]}: {label}" for label in labels]
        if folder is None:
            rows += [
                absent(label, value, NEEDS_RUNS, lacks(cohort)) for label, value in zip(named, figures, strict=True)
            ]
        else:
            rows += _cohort_rows(cohort, named, figures, _analyzed(folder).cohorts[0])
    section = in_section("VESTIGE over completed software-agent runs", rows)
    return Findings(section, commands=_commands(setting, "vestige-cohorts", *COHORTS))


def _cohort_rows(
    cohort: str, labels: Sequence[str], published: Sequence[float], found: CohortRow
) -> Iterator[StudyRow]:
    rows = [
        exact(labels[0], published[0], found.runs, digits=0),
        exact(labels[1], published[1], found.goal_access or 0.0),
        exact(labels[2], published[2], found.mean_peak_tokens or 0.0, digits=0),
    ]
    auc = found.failure_auc
    if auc is None:
        rows.append(absent(labels[3], published[3], NEEDS_RUNS, found.note or "no outcomes in the analysis"))
    else:
        one = printed(cohort, "", labels[3], "tab:swe-retrospective", f"{TITLES[cohort]}|Failure AUC", 0.5)
        rows.append(estimate(one, auc, found.auc_low, found.auc_high))
    yield from (same_cohort(cohort, found.runs, row) for row in rows)


def same_cohort(cohort: str, runs: int, row: StudyRow) -> StudyRow:
    """Return a row that is judged only if it is about as many runs as the paper's."""
    expected = paper_cohorts()[cohort]
    if row.ours is None or expected.is_met(runs):
        return row
    return replace(row, verdict=NOT_SAME, why=expected.differs(runs))


def estimate(one: Published, ours: float, low: float | None, high: float | None) -> StudyRow:
    """Return a row that is judged by both 95% intervals; without one of ours it is a plain figure."""
    if low is None or high is None:
        return row_from(one.label, one.value, judge_exact(one.value, ours, one.figure.rounding))
    stated = (one.value, one.figure.low, one.figure.high)
    judged = judge_estimates(stated, (ours, low, high), one.figure.rounding, ratio=one.nothing == 1.0)
    row = row_from(one.label, one.value, judged)
    return row if row.verdict == DIFFERS else replace(row, why=_says_little(one, low, high))


def _says_little(one: Published, low: float, high: float) -> str:
    """Return what an interval that holds the published figure does not show: that there is anything at all."""
    if one.nothing is None or not low <= one.nothing <= high:
        return ""
    return f"{one.label}: our interval also holds {one.nothing:g}, no association, so that this agreement says little"


def tested(setting: Setting, wanted: Sequence[Published]) -> Iterator[StudyRow]:
    """Yield printed estimates beside ours on the same cohort."""
    for one in wanted:
        folder = folder_of(setting, one.cohort)
        if folder is None:
            yield absent(one.label, one.value, NEEDS_RUNS, lacks(one.cohort))
            continue
        found = next(test for test in _analyzed(folder).tests if test.name == one.test)
        # Another exposure than the published one makes another estimate, whatever its name.
        if found.estimate is None or DEMAND_AS_SIZE in (found.note or ""):
            yield absent(one.label, one.value, NEEDS_RUNS, found.note)
        else:
            runs = _analyzed(folder).cohorts[0].runs
            yield same_cohort(one.cohort, runs, estimate(one, found.estimate, found.low, found.high))


def reread_distance(setting: Setting) -> Findings:
    """Compare how rereading falls with distance, and the gap sensitivities."""
    section = in_section("Rereading and gaps on Verified", tested(setting, REREADS))
    return Findings(section, commands=_commands(setting, "reread-distance", VERIFIED))


def pressure_and_failure(setting: Setting) -> Findings:
    """Compare peak demand and failure, before and after what tasks differ in."""
    rows = list(tested(setting, DEMAND))
    shown = [row for row in rows if row.ours is not None]
    figure = _odds(rows) if shown else _printed_odds(rows)
    section = in_section("Demand and failure in the OpenHands clipping cohort", rows)
    return Findings(section, figures=(figure,), commands=_commands(setting, "pressure-and-failure", OPENHANDS))


def _odds(rows: Sequence[StudyRow]) -> Figure:
    names = tuple(row.label for row in rows)
    ours = banded("ours", "points", names, [(row.ours or 1.0, row.low or 1.0, row.high or 1.0) for row in rows])
    return _odds_figure(names, (ours,), ", ".join(f"{row.label} {row.ours:.3f}" for row in rows if row.ours))


def _printed_odds(rows: Sequence[StudyRow]) -> Figure:
    names = tuple(row.label for row in rows)
    values = tuple(row.published for row in rows)
    low, high = (tuple(getattr(one.figure, end) for one in DEMAND) for end in ("low", "high"))
    said = " and ".join(f"{one.value} ({one.figure.low} to {one.figure.high})" for one in DEMAND)
    series = Series("published", "points", names, values, low, high, dashed=True)
    return _odds_figure(names, (series,), f"published {said}; ours needs runs")


def _odds_figure(names: tuple[str, ...], series: tuple[Series, ...], said: str) -> Figure:
    one = Series("no association", "rule", (names[0],), (1.0,), dashed=True)
    axes = Axis("adjusted for", "category"), Axis("odds ratio of failure a doubling of demand")
    chart = Chart("demand-and-failure", "Demand and failure", f"Odds ratios: {said}.", *axes, (*series, one))
    return Figure("pressure-and-failure", "Higher demand, and failure", (chart,))


def demand_and_mediation(setting: Setting) -> Findings:
    """Compare what may lie between size and failure, and recovery of clipped lines."""
    sections = {
        "Recovery of clipped lines and success": tested(setting, RECOVERY),
        "Size, recovery, rework and failure": tested(setting, MEDIATION),
    }
    made = _commands(setting, "demand-and-mediation", OPENHANDS)
    return Findings(sectioned(sections), commands=made)


def clipping_and_anomalies(setting: Setting) -> Findings:
    """Compare counts of clipped views, of lines that were lost to them, and of anomaly signatures."""
    sections = {
        "Clipped views and changed old lines": list(_clipping_rows(setting)),
        "Anomaly signatures over all three cohorts": list(_anomaly_rows(setting)),
    }
    return Findings(sectioned(sections), commands=_commands(setting, "clipping-and-anomalies", *COHORTS))


Count = Callable[[Sequence[RunRow]], int]


def _total(column: str) -> Count:
    return lambda runs: sum(getattr(run, column) for run in runs)


def _runs_with(column: str) -> Count:
    return lambda runs: sum(getattr(run, column) > 0 for run in runs)


def _counts(cohort: str) -> dict[str, Count]:
    on = "clipped_modified_views" if cohort == OPENHANDS else "clipped_goal_views"
    which = "later modified" if cohort == OPENHANDS else "gold-patch"
    return {
        "clipped views": _total("clipped_views"),
        "runs with one": _runs_with("clipped_views"),
        f"clipped views of {which} files": _total(on),
        f"runs with one of {which} files": _runs_with(on),
        "changed old lines shown again": _total("lines_recovered"),
        "runs with such lines": _runs_with("lines_recovered"),
        "changed old lines never shown again": _total("lines_never_recovered"),
        "runs with those": _runs_with("lines_never_recovered"),
    }


def _clipping_rows(setting: Setting) -> Iterator[StudyRow]:
    for cohort, figures in CLIPPING.items():
        folder = folder_of(setting, cohort)
        runs = read_rows(folder, RunRow) if folder else []
        for (name, count), published in zip(_counts(cohort).items(), figures, strict=True):
            label = f"{TITLES[cohort]}: {name}"
            if folder is None:
                yield absent(label, published, NEEDS_RUNS, lacks(cohort))
            else:
                why = other_number(len(runs), COHORTS[cohort][0])
                yield same_cohort(cohort, len(runs), exact(label, published, count(runs), why, 0))


def _anomaly_rows(setting: Setting) -> Iterator[StudyRow]:
    folders = [folder_of(setting, cohort) for cohort in COHORTS]
    runs = [row for folder in folders if folder for row in read_rows(folder, RunRow)]
    for column, (name, published) in ANOMALIES.items():
        if None in folders:
            yield absent(name, published, NEEDS_RUNS, "not all three cohorts are in --data")
        else:
            why = other_number(len(runs), ALL_RUNS)
            row = exact(name, published, _total(column)(runs), why, 0)
            is_met = abs(len(runs) - ALL_RUNS) <= SLACK * ALL_RUNS
            yield row if is_met else replace(row, verdict=NOT_SAME, why=why)


def other_number(runs: int, published: float) -> str:
    """Return how many runs there are and should be; nothing if there are as many."""
    return "" if runs == published else f"{runs:,} runs of {published:,.0f}"


def domain_anchors(setting: Setting) -> Findings:
    """Compare demand in the units of each domain: entities of transactions, files of shell runs."""
    wanted = (
        printed(TAU, "task-entities-auc", "τ-Bench: failure AUC of task entities", DOMAINS, "τ-Bench|failure AUC", 0.5),
        *(
            printed(cohort, f"used-later-entities-{share}", label, DOMAINS, key, None)
            for cohort, share, label, key in (
                ("tau-retail", 50, "τ-Bench, retail: entities, median", "τ-Bench, retail|median entities"),
                ("tau-retail", 99, "τ-Bench, retail: entities, 99%", "τ-Bench, retail|99th percentile"),
                ("tau-airline", 50, "τ-Bench, airline: entities, median", "τ-Bench, airline|median entities"),
                ("tau-airline", 99, "τ-Bench, airline: entities, 99%", "τ-Bench, airline|99th percentile"),
            )
        ),
        *(
            printed(TERMINAL, f"used-later-{unit}-{share}", f"Terminal-Bench: {unit}, {told}", DOMAINS, key, None)
            for unit in ("files", "tokens")
            for share, told, key in (
                (50, "median", f"Terminal-Bench|median {unit}"),
                (90, "90%", f"Terminal-Bench|90th percentile, {unit}"),
                (99, "99%", f"Terminal-Bench|99th percentile, {unit}"),
            )
        ),
    )
    anchors = [
        {"benchmark": "SWE-bench / SWE-rebench", "state entity": "versioned file", "anchor": "reference-patch file"},
        {"benchmark": "τ-Bench", "state entity": "typed database entity", "anchor": "reference task state"},
        {"benchmark": "Terminal-Bench 2.0", "state entity": "versioned shell path", "anchor": "realized trace only"},
    ]
    rows = in_section("Demand in native units", tested(setting, wanted))
    made = _commands(setting, "domain-anchors", TAU, "tau-retail", "tau-airline", TERMINAL)
    return Findings(rows, (listed("anchors", "What is counted, and what it is anchored to", anchors),), commands=made)


def _known_peaks(found: Sequence[CaseVerdict]) -> int:
    return sum(one.peak_tokens == one.case.peak_tokens for one in found)


def known_dependencies(setting: Setting) -> Findings:
    """Compare the 36 synthetic cases with known dependencies and an injected distractor."""
    found = [validate(case) for case in known_cases()]
    cases = value_of("sec:deployment-estimator", "Known dependencies", "cases")
    rows = [
        exact("cases", cases, len(found), digits=0),
        exact("cases with every required file", cases, sum(not one.missing for one in found), digits=0),
        exact("cases without the distractor", cases, sum(DISTRACTOR not in one.surplus for one in found), digits=0),
        exact("cases with the known peak", float(cases), _known_peaks(found), digits=0),
    ]
    return Findings(in_section("Synthetic runs with known dependencies", rows))
