"""The published figures of recorded runs, and the test of ours that answers to each."""

from __future__ import annotations

from dataclasses import dataclass

from eirkit_paper.published import PublishedFigure, figures_by_id, value_of, values_of

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
