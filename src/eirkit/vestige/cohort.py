"""Statistics over analysed runs: folders of tables come in, a row for each cohort and every test on it go out.

Runs in tokens and runs in entities are never pooled. What was fixed in advance comes from a suite file; those tests are
corrected for being several, all others are exploratory and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from eirkit.errors import InputFileError
from eirkit.vestige.analyses import demand_failure, gap_failure, mediated, recovery, reread_rate, used_later
from eirkit.vestige.analyses.cohort_row import cohort_row
from eirkit.vestige.analyses.cohort_runs import By, Cells, Runs, read_runs
from eirkit.vestige.analyses.finding import Finding
from eirkit.vestige.analyses.plan import Plan, holm
from eirkit.vestige.analyses.setting import Cohort, Settings
from eirkit.vestige.covariates import with_base_lines

BY: tuple[By, ...] = get_args(By)
Analyse = Callable[[Cohort], list[Finding]]
ANALYSES: Mapping[str, Analyse] = {
    "demand": demand_failure.analyse,
    "rereads": reread_rate.analyse,
    "gaps": gap_failure.analyse,
    "clipping": recovery.analyse,
    "mediation": mediated.analyse,
    "later": used_later.analyse,
}
OF_ENTITIES = ("later",)  # the others need files
TESTS: tuple[str, ...] = tuple(
    question.name
    for module in (demand_failure, reread_rate, gap_failure, recovery, mediated, used_later)
    for question in module.QUESTIONS
)
ENTITY_TESTS = frozenset(question.name for question in used_later.OF_ENTITIES)


def analyse_cohorts(
    folders: Sequence[Path],
    plan: Plan,
    *,
    by: By = "all",
    base_lines: Mapping[str, float] | None = None,
    disjoint: Sequence[Path] = (),
    analyses: Sequence[str] = tuple(ANALYSES),
) -> dict[str, Any]:
    """Return cohorts and tests of analysed folders.

    Args:
        base_lines: source lines of the gold files by task.
        disjoint: analysed folders whose runs tell how hard tasks are, and nothing else.

    Raises:
        InputFileError: a folder is no complete analysis, or all are empty.
    """
    runs, cells = read_runs([*folders, *disjoint])
    runs = with_base_lines(runs, base_lines or {})
    is_own = runs.folder < len(folders)
    own, others = runs.at(is_own), runs.at(~is_own)
    if not len(own):
        raise InputFileError(f"{folders[0]} holds no runs; analyse a corpus that has some")
    rows, tests = [], []
    for cohort in split(own, cells, others, by, plan.settings, folder_names(folders)):
        rows.append(cohort_row(cohort))
        tests += [{"cohort": cohort.name, **one.as_json()} for one in findings(cohort, analyses)]
    units = {row["cohort"]: row["unit"] for row in rows}
    return {
        "by": by,
        "cohorts": rows,
        "tests": marked(tests, plan, units),
        "repeated_runs": len(own) - len(np.unique(own.identity)),
        "plan": {**_as_json(plan), "not_run": not_run(tests, plan, units)},
    }


def folder_names(folders: Sequence[Path]) -> list[str]:
    """Return the folders' own names, or their paths where two have the same."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def split(
    runs: Runs, cells: Cells, others: Runs, by: By, settings: Settings, folders: Sequence[str]
) -> Iterator[Cohort]:
    """Yield the cohorts, the largest first; whatever is in another one tells of difficulty."""
    labels = _labels(runs, by, folders)
    names, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    for place in np.argsort(-counts, kind="stable"):
        inside = places == place
        chosen = runs.at(inside)
        elsewhere = runs.at(~inside & (runs.unit == chosen.unit[0])).with_more(others)
        own_cells = cells.at(np.isin(cells.run, chosen.number))
        yield Cohort(str(names[place]), chosen, own_cells, elsewhere, settings)


def findings(cohort: Cohort, analyses: Sequence[str] = tuple(ANALYSES)) -> list[Finding]:
    """Return what the chosen analyses find in a cohort."""
    apt = [name for name in analyses if cohort.in_tokens or name in OF_ENTITIES]
    return [found for name in apt for found in ANALYSES[name](cohort)]


def not_run(tests: Sequence[Mapping[str, Any]], plan: Plan, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the planned tests that have no row: left out by choice, or meant for runs that are not here.

    Args:
        units: of every cohort.
    """
    made = {(test["cohort"], test["name"]) for test in tests}
    missing = []
    for name in dict.fromkeys(plan.planned):
        apt: list[str | None] = [
            cohort for cohort, unit in units.items() if (unit == "entities") == (name in ENTITY_TESTS)
        ]
        missing += [{"name": name, "cohort": cohort} for cohort in apt or [None] if (cohort, name) not in made]
    return missing


def marked(tests: list[dict[str, Any]], plan: Plan, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the tests with whether each was planned, and the planned ones corrected over all cohorts.

    A planned test that was not run counts as one without a p value: otherwise leaving tests out would sharpen the rest.
    """
    places = [place for place, test in enumerate(tests) if test["name"] in plan.planned]
    values = [tests[place]["p"] for place in places] + [None] * len(not_run(tests, plan, units))
    corrected = dict(zip(places, holm(values), strict=False))
    return [{**test, "planned": place in corrected, "p_holm": corrected.get(place)} for place, test in enumerate(tests)]


def _labels(runs: Runs, by: By, folders: Sequence[str]) -> Any:
    if by == "all":
        labels = np.full(len(runs), "all", dtype=object)
    elif by == "folder":
        labels = np.array([folders[number] for number in runs.folder], dtype=object)
    else:
        labels = np.array([name or "unknown" for name in getattr(runs, by)], dtype=object)
    if len(set(runs.unit)) > 1:
        labels = labels + np.array([f" ({unit})" for unit in runs.unit], dtype=object)
    return labels.astype(str)


def _as_json(plan: Plan) -> dict[str, Any]:
    settings = plan.settings
    return {
        "planned": list(plan.planned),
        "recorded": plan.recorded,
        "digest": plan.digest,
        "seed": settings.seed,
        "resamples": settings.resamples,
        "mediation_resamples": settings.mediation_resamples,
        "draws": settings.draws,
        "resampled": settings.resampled,
    }
