"""Checks that the intervals of `eirkit vestige cohort` cover planted effects, and the false-positive rate of its tests.

python -m studies.cohorts_calibration [COHORTS] [WORKERS] [FOLDER]; writes studies/cohorts_calibration.csv, and what
each cohort gave into FOLDER (out/ unless given), from where a stopped run continues.

Every cohort is drawn, written as logs, analyzed from disk and tested, so that the whole pipeline is tested and not only
the regression.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from eirkit.engine.interface import PieceResult
from eirkit.engine.processes import Processes
from eirkit.records.analysis import CohortTest
from eirkit.report.table import Column, Table
from eirkit.report.terminal import table_lines
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.cohorts.cohort import analyze_cohorts
from eirkit.vestige.cohorts.covariates import read_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan, Settings
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import analyze_corpus
from eirkit.vestige.corpus.planted_corpus import (
    CENTER_LINES,
    PlantedCorpus,
    PlantedEffects,
    draw_blocks,
    plain_lines,
    write_logs,
)
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import open_gold_patches
from eirkit.vestige.tokens import estimating_counter

COHORTS = 200
LEVEL = 0.05
TABLE = Path(__file__).with_suffix(".csv")
SETTINGS = Settings(resamples=200, draws=600)
DEMAND = ("demand-failure", "demand-failure-tokens", "demand-failure-difficulty")
GAPS = ("fair-clock-gap", "fair-clock-gap-without-length", "end-censored-gap", "closed-gap", "placebo-needed-gap")
CLIPPING = ("clipping-mixed", "clipping-correlated-effects", "clipping-disjoint-difficulty")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of cohort: what is planted, which analyses look, and what each test should find."""

    corpus: PlantedCorpus
    analyses: tuple[str, ...]
    truths: dict[str, float]  # by test
    logs: bool = False  # shell logs instead of plain lines
    settings: Settings = SETTINGS
    moving: Callable[[PlantedCorpus, int], dict[str, float]] | None = None  # truths that depend on the cohort drawn


@dataclass(frozen=True, slots=True)
class Found:
    """One test on one cohort."""

    scenario: str
    test: str
    truth: float
    estimate: float | None
    low: float | None
    high: float | None
    p: float | None


def all_at(value: float, *tests: str) -> dict[str, float]:
    """Return the same truth for several tests."""
    return dict.fromkeys(tests, value)


def indirect(corpus: PlantedCorpus, seed: int) -> dict[str, float]:
    """Return the planted indirect risk difference of one cohort; the size has no effect of its own on failure."""
    (block,) = draw_blocks(corpus, seed)
    true, lines = corpus.effects, np.log2(1 + block.base_lines[block.is_clipped])
    ends = np.percentile(lines, (25, 75))
    low, high = (_expit(-0.6 + log(true.size_never_odds) * (end - CENTER_LINES)) for end in ends)
    spared, struck = (_risk(corpus, never) for never in (0, 1))
    return {"mediation-never-recovered": (high - low) * (struck - spared)}


def _risk(corpus: PlantedCorpus, never: int) -> float:
    odds = corpus.intercept - never * log(corpus.effects.never_odds)
    return 0.7 * _expit(odds) + 0.3 * _expit(odds + log(corpus.effects.rework_odds))


def _expit(x: float) -> float:
    return 1 / (1 + exp(-x))


NULL = PlantedCorpus(300, 60, name="null")
LOGS = PlantedCorpus(200, 40, 1, "logs", clipped=0.7)
CLIPPED = replace(LOGS, name="clipped", effects=PlantedEffects(never_odds=0.5))
PATHS = replace(
    LOGS, name="paths", task_sd=0.0, effects=PlantedEffects(never_odds=0.5, rework_odds=2, size_never_odds=1.5)
)
GAP = replace(NULL, name="gap", needed_reads="gap", effects=PlantedEffects(gap_odds=1.25))
SCENARIOS: dict[str, Scenario] = {
    "nothing planted": Scenario(
        NULL,
        ("demand", "rereads", "gaps"),
        all_at(1, *DEMAND, *GAPS, "placebo-other-gap", "reread-failed-needed-distance", "reread-failed-distance"),
    ),
    "demand": Scenario(
        replace(NULL, name="demand", models=1, task_sd=0.0, effects=PlantedEffects(demand_odds=1.25)),
        ("demand",),
        all_at(1.25, *DEMAND),
    ),
    "difficulty drives demand": Scenario(
        replace(NULL, name="confounded", runs=600, models=1, confounding=0.5), ("demand",), all_at(1, *DEMAND)
    ),
    "needed files": Scenario(
        replace(NULL, name="needed", effects=PlantedEffects(reread_ratio=0.85, reread_failed_ratio=0.9)),
        ("rereads",),
        all_at(0.85, "reread-failed-needed-distance"),
    ),
    "all files": Scenario(
        replace(NULL, name="every", effects=PlantedEffects(reread_all_ratio=0.92, reread_failed_ratio=0.9)),
        ("rereads",),
        {**all_at(0.92, "reread-failed-distance"), **all_at(1, "reread-failed-needed-distance")},
    ),
    "gap": Scenario(GAP, ("gaps",), {**all_at(1.25, *GAPS), "placebo-other-gap": 1}),
    "gap, runs resampled": Scenario(
        GAP, ("gaps",), all_at(1.25, "fair-clock-gap"), settings=structs.replace(SETTINGS, resampled="runs")
    ),
    "nothing planted, logs": Scenario(
        replace(LOGS, name="quiet"),
        ("clipping", "mediation"),
        {
            **all_at(0, "clipping-raw-difference", "mediation-never-recovered", "mediation-rework"),
            **all_at(1, *CLIPPING, "size-never-recovered", "never-recovered-failure", "rework-failure"),
        },
        logs=True,
    ),
    "clipping": Scenario(CLIPPED, ("clipping",), all_at(0.5, *CLIPPING), logs=True),
    "paths": Scenario(
        PATHS,
        ("mediation",),
        {"size-never-recovered": 1.5, "never-recovered-failure": 2.0, "rework-failure": 2.0},
        logs=True,
        moving=indirect,
    ),
}


def judge(piece: tuple[str, int]) -> list[Found]:
    """Draw one cohort, analyze it from disk, and return what each test found."""
    name, seed = piece
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory() as folder:
        tests = _tests(scenario, seed, Path(folder))
    truths = scenario.truths | (scenario.moving(scenario.corpus, seed) if scenario.moving else {})
    return [
        Found(name, test.name, truths[test.name], test.estimate, test.low, test.high, test.p)
        for test in tests
        if test.name in truths
    ]


def _tests(scenario: Scenario, seed: int, folder: Path) -> tuple[CohortTest, ...]:
    plan = AnalysisPlan(settings=structs.replace(scenario.settings, seed=seed))
    if scenario.logs:
        logs = write_logs(scenario.corpus, seed, folder)
        _analyze(logs, folder / "out", folder / "gold")
        lines = read_base_lines(folder / "base-lines.json")
        return analyze_cohorts([folder / "out"], plan, base_lines=lines, analyses=scenario.analyses).tests
    # As many runs again where others must tell how hard the tasks are.
    halves = 2 if "demand" in scenario.analyses else 1
    whole = list(plain_lines(replace(scenario.corpus, runs=halves * scenario.corpus.runs), seed))
    for half in range(halves):
        part = whole[half * scenario.corpus.runs :][: scenario.corpus.runs]
        (folder / f"{half}.jsonl").write_bytes(b"".join(part))
        _analyze(folder / f"{half}.jsonl", folder / f"out-{half}")
    own, others = folder / "out-0", [folder / f"out-{half}" for half in range(1, halves)]
    return analyze_cohorts([own], plan, disjoint=others, analyses=scenario.analyses).tests


def _analyze(corpus: Path, out: Path, gold: Path | None = None) -> None:
    patches = None if gold is None else open_gold_patches(gold)
    analyze_corpus(
        read_corpus([corpus]),
        out,
        AnalysisOptions(read_windows(None), rule="paper"),
        estimating_counter(),
        gold=patches,
    )


def summarize(found: Iterable[Found]) -> list[dict[str, Any]]:
    """Return coverage and rejections of each test in each scenario."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        groups.setdefault((one.scenario, one.test), []).append(one)
    order = list(SCENARIOS)
    return [_row(*key, groups[key]) for key in sorted(groups, key=lambda key: order.index(key[0]))]


def _row(scenario: str, test: str, found: list[Found]) -> dict[str, Any]:
    known = [one for one in found if None not in (one.estimate, one.low, one.high)]
    inside = sum(1 for one in known if one.low <= one.truth <= one.high)  # type: ignore[operator]
    return {
        "planted": scenario,
        "test": test,
        "truth": _rounded(float(np.mean([one.truth for one in found]))),
        "cohorts": len(found),
        "estimated": len(known),
        "median estimate": _rounded(float(np.median([one.estimate for one in known]))) if known else None,
        "coverage of 95%": _rounded(inside / len(known)) if known else None,
        "p < 0.05": _rounded(sum((one.p or 0) < LEVEL for one in known) / len(known)) if known else None,
    }


def _rounded(value: float) -> float:
    return round(value, 4)


def run(cohorts: int, workers: int | None, store: Path) -> list[Found]:
    """Return what all tests found; cohorts in the store are not drawn again."""
    store.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in store.read_text("utf-8").splitlines()] if store.exists() else []
    have = {(one["scenario"], one["seed"]) for one in done}
    pieces = [(name, seed) for seed in range(cohorts) for name in SCENARIOS if (name, seed) not in have]
    with store.open("a", encoding="utf-8") as stream:
        for outcome in Processes(workers, batch=1).map(judge, pieces):
            if not isinstance(outcome, PieceResult):
                print(f"lost: {pieces[outcome.number]}: {outcome.reason}", file=sys.stderr)
                continue
            name, seed = pieces[outcome.number]
            done.append({"scenario": name, "seed": seed, "found": [asdict(one) for one in outcome.value]})
            print(json.dumps(done[-1]), file=stream, flush=True)
    return [Found(**one) for piece in done if piece["seed"] < cohorts for one in piece["found"]]


def main(cohorts: str = str(COHORTS), workers: str = "0", folder: str = "out") -> None:
    """Run the study, print its table and write it beside this file."""
    started = time.perf_counter()
    found = run(int(cohorts), int(workers) or None, Path(folder) / "cohorts_calibration.jsonl")
    rows = summarize(sorted(found, key=lambda one: (one.scenario, one.test)))
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    columns = tuple(Column(name, name) for name in rows[0])
    print("\n".join(line.text for line in table_lines(Table("calibration", "Calibration", columns, tuple(rows)), 120)))
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
