"""`eirkit vestige cohort`: statistics over analysed runs, each with what it does and does not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option, table
from eirkit.vestige.analyses.cohort_runs import By
from eirkit.vestige.analyses.plan import Plan, read_plan
from eirkit.vestige.analyses.setting import Resampled
from eirkit.vestige.cohort import ANALYSES, BY, TESTS, analyse_cohorts
from eirkit.vestige.covariates import read_base_lines

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("folders", metavar="DIR...", type=_PATH, nargs=-1, required=True)
@click.option("--by", type=click.Choice(BY), default="all", show_default=True, help="Split the runs into cohorts.")
@click.option("--suite", type=_PATH, help="A TOML file with [cohort] planned = the tests that were fixed in advance.")
@click.option("--base-lines", type=_PATH, help="Source lines of each task's gold files: JSON, or CSV task_id,lines.")
@click.option("--disjoint", type=_PATH, multiple=True, help="An analysis of other runs, to tell how hard tasks are.")
@click.option("--only", type=click.Choice(tuple(ANALYSES)), multiple=True, help="These analyses instead of all.")
@click.option("--resample", type=click.Choice(("tasks", "runs")), help="What gap bootstraps draw.  [default: tasks]")
@click.option("--seed", type=click.IntRange(min=0), help="Of bootstraps and posteriors.  [default: 0]")
@json_option
def cohort(
    folders: tuple[Path, ...],
    by: By,
    suite: Path | None,
    base_lines: Path | None,
    disjoint: tuple[Path, ...],
    only: tuple[str, ...],
    resample: Resampled | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Compare failed and resolved runs of the analyses in DIR; runs of several are pooled unless --by splits them."""
    plan = Plan() if suite is None else read_plan(suite, TESTS)
    given = {name: value for name, value in (("resampled", resample), ("seed", seed)) if value is not None}
    plan = replace(plan, settings=replace(plan.settings, **given))  # type: ignore[arg-type]
    lines = None if base_lines is None else read_base_lines(base_lines)
    document = analyse_cohorts(
        folders, plan, by=by, base_lines=lines, disjoint=disjoint, analyses=only or tuple(ANALYSES)
    )
    emit(document, as_json, lambda console: _render(console, document))


def _render(console: Console, document: Mapping[str, Any]) -> None:
    columns = ("cohort", "runs", "resolved", "unknown", "tasks", "goal access", "mean peak", "failure AUC", "95%")
    rows = [
        (
            row["cohort"],
            f"{row['runs']:,}",
            f"{row['resolved']:,}",
            row["unknown"],
            row["tasks"],
            _share(row["goal_access"]),
            _peak(row),
            row["failure_auc"],
            _interval(row["auc_low"], row["auc_high"]),
        )
        for row in document["cohorts"]
    ]
    console.print(table("Cohorts", columns, rows))
    for row in document["cohorts"]:
        if row["note"]:
            _say(console, f"{row['cohort']}: {row['note']}")
    for row in document["cohorts"]:
        _render_tests(console, row["cohort"], [test for test in document["tests"] if test["cohort"] == row["cohort"]])
    _render_plan(console, document)


def _render_tests(console: Console, name: str, tests: list[dict[str, Any]]) -> None:
    shown = [test for test in tests if test["estimate"] is not None and not _is_quantile(test)]
    rows = [
        (
            test["name"],
            _number(test["estimate"]),
            _interval(test["low"], test["high"]),
            _p(test["p"]),
            _p(test["p_holm"]),
            f"{test['n']:,}",
            "planned" if test["planned"] else "exploratory",
        )
        for test in shown
    ]
    if rows:
        columns = ("test", "estimate", "95%", "p", "p, Holm", "n", "fixed")
        console.print(table(f"Tests on {name}", columns, rows))
    for test in shown:
        _explain(console, test)
    _render_quantiles(console, name, [test for test in tests if _is_quantile(test)])
    _render_missing(console, [test for test in tests if test["estimate"] is None])


def _explain(console: Console, test: Mapping[str, Any]) -> None:
    limits = f" It does not show {test['does_not_show']}." if test["does_not_show"] else ""
    _say(console, f"{test['name']}: {test['scale']}. It shows {test['shows']}.{limits}")
    if test["note"]:
        _say(console, f"  note: {test['note']}")


def _is_quantile(test: Mapping[str, Any]) -> bool:
    return bool(test["name"].startswith("used-later-")) and test["estimate"] is not None


def _render_quantiles(console: Console, name: str, tests: list[dict[str, Any]]) -> None:
    rows = [
        (test["scale"], f"{test['estimate']:,.1f}", _interval(test["low"], test["high"]), f"{test['n']:,}")
        for test in tests
    ]
    if rows:
        console.print(table(f"Held at the peak for later use, {name}", ("quantile", "value", "95%", "runs"), rows))
        _say(console, f"It does not show {tests[0]['does_not_show']}.")


def _render_missing(console: Console, tests: list[dict[str, Any]]) -> None:
    """Print why there is no estimate, each reason once with the tests that it stops."""
    reasons: dict[str, list[str]] = {}
    for test in tests:
        reasons.setdefault(test["note"], []).append(test["name"])
    for reason, names in reasons.items():
        _say(console, f"no estimate of {', '.join(names)}: {reason}")


def _render_plan(console: Console, document: Mapping[str, Any]) -> None:
    plan = document["plan"]
    if document["repeated_runs"]:
        _say(console, f"{document['repeated_runs']} runs occur more than once; every interval takes them for new runs")
    if not plan["planned"]:
        _say(console, "nothing was fixed in advance: every test is exploratory; a suite file (--suite) fixes some")
        return
    when = f" on {plan['recorded']}" if plan["recorded"] else ""
    _say(
        console, f"fixed in advance{when}: {', '.join(plan['planned'])} (suite {plan['digest'][:12]}); Holm over these"
    )


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _peak(row: Mapping[str, Any]) -> str | None:
    if row["mean_peak_tokens"] is not None:
        return f"{row['mean_peak_tokens']:,.0f} tokens"
    return None if row["mean_peak_entities"] is None else f"{row['mean_peak_entities']:.1f} entities"


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{_number(low)} … {_number(high)}"


def _number(value: float | None) -> str | None:
    if value is None:
        return None
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if 0 < abs(value) < 0.01 else f"{value:.3f}"


def _p(value: float | None) -> str | None:
    return None if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
