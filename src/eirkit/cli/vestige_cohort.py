"""`eirkit vestige cohort`: statistics over analysed runs, each with what it does and does not show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from rich.console import Console

from eirkit.cli.fitting import named_table, room_of
from eirkit.cli.output import emit, json_option, legend, table
from eirkit.logs.cohorts.cohort import ANALYSES, BY, TESTS, analyse_cohorts
from eirkit.logs.cohorts.covariates import read_base_lines
from eirkit.logs.cohorts.plan import AnalysisPlan, Resampled, read_plan
from eirkit.logs.cohorts.run_columns import By
from eirkit.show.logs.sentences import cohort_sentence, goal_is_known
from eirkit.show.phrases import counted

Test = Mapping[str, Any]

NOTES = "; "  # between the notes on a test
UNCOVERED = "runs of n that touched no goal file and enter with demand 0: missing coverage, not lack of need"
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
    plan = AnalysisPlan() if suite is None else read_plan(suite, TESTS)
    given = {name: value for name, value in (("resampled", resample), ("seed", seed)) if value is not None}
    plan = replace(plan, settings=replace(plan.settings, **given))  # type: ignore[arg-type]
    lines = None if base_lines is None else read_base_lines(base_lines)
    document = analyse_cohorts(
        folders, plan, by=by, base_lines=lines, disjoint=disjoint, analyses=only or tuple(ANALYSES)
    )
    emit(document, as_json, lambda console: _render(console, document))


def _render(console: Console, document: Mapping[str, Any]) -> None:
    for row in document["cohorts"]:
        name = f"{row['cohort']}: " if len(document["cohorts"]) > 1 else ""
        _say(console, f"{name}{cohort_sentence(row)}")
    rows = document["cohorts"]
    columns = [name for name in COHORT if name != "unknown" or any(row["unknown"] for row in rows)]
    console.print(named_table(console, "Cohorts", columns, [[COHORT[name](row) for name in columns] for row in rows]))
    _render_uncovered(console, document["cohorts"])
    for row in document["cohorts"]:
        if row["note"]:
            _say(console, f"{row['cohort']}: {row['note']}")
    for row in document["cohorts"]:
        _render_tests(console, row["cohort"], [test for test in document["tests"] if test["cohort"] == row["cohort"]])
    _render_plan(console, document)


def _render_tests(console: Console, name: str, tests: list[dict[str, Any]]) -> None:
    shown = [test for test in tests if test["estimate"] is not None and not _is_quantile(test)]
    columns = [column for column, is_shown in _columns(shown).items() if is_shown]
    if shown:
        rows = [[CELLS[column](test) for column in columns] for test in shown]
        console.print(table(f"Tests on {name}", columns, rows))
    if "uncovered" in columns:
        legend(console, uncovered=UNCOVERED)
    _explain(console, shown)
    _render_quantiles(console, name, [test for test in tests if _is_quantile(test)])
    _render_missing(console, [test for test in tests if test["estimate"] is None], shown)


def _columns(tests: Sequence[Test]) -> dict[str, bool]:
    """Return the columns of a table of tests, and whether each says anything here."""
    planned = any(test["planned"] for test in tests)
    told = {"p, Holm": planned, "fixed": planned, "uncovered": any(map(_uncovered, tests))}
    return {column: told.get(column, True) for column in CELLS}


def _uncovered(test: Test) -> int | None:
    return test["details"].get("uncovered") or None


def _explain(console: Console, tests: Sequence[Test]) -> None:
    """Print what the tests show; a scale, a limit or a note that several share is printed once."""
    for (limits,), alike in _grouped(tests, "does_not_show"):
        said: list[str] = []
        for (scale,), group in _grouped(alike, "scale"):
            for line in said:
                _say(console, line, indent=2)
            for test in group:
                _say(console, f"{test['name']} shows {test['shows']}.")
            said = [f"{'Each is' if len(group) > 1 else 'It is'} the {scale}."]
        shown = f"{'None of them shows' if len(alike) > 1 else 'It does not show'} {limits}."
        _say(console, " ".join([*said, *([shown] if limits else [])]), indent=2)
    for names, note in _notes(tests):
        _say(console, f"note on {', '.join(names)}: {note}")
    _render_excluded(console, tests)


def _render_excluded(console: Console, tests: Sequence[Test]) -> None:
    """Print what did not enter tests that have an estimate; tests that left out the same are named together."""
    together: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for test in tests:
        left_out = tuple((part["reason"], part["rows"]) for part in test["excluded"])
        together.setdefault(left_out, []).append(test["name"])
    for left_out, names in together.items():
        if left_out:
            said = ", ".join(f"{rows:,} ({reason})" for reason, rows in left_out)
            _say(console, f"left out of {', '.join(names)}: {said}")


def _grouped(tests: Sequence[Test], *names: str) -> Iterable[tuple[tuple[str, ...], list[Test]]]:
    groups: dict[tuple[str, ...], list[Test]] = {}
    for test in tests:
        groups.setdefault(tuple(test[name] for name in names), []).append(test)
    return groups.items()


def _notes(tests: Iterable[Test]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each note once with the tests that it is on; notes on the same tests together."""
    tests_of: dict[str, list[str]] = {}
    for test in tests:
        for part in filter(None, test["note"].split(NOTES)):
            tests_of.setdefault(part, []).append(test["name"])
    together: dict[tuple[str, ...], list[str]] = {}
    for part, names in tests_of.items():
        together.setdefault(tuple(names), []).append(part)
    return ((names, NOTES.join(parts)) for names, parts in together.items())


def _is_quantile(test: Mapping[str, Any]) -> bool:
    return bool(test["name"].startswith("used-later-")) and test["estimate"] is not None


def _render_quantiles(console: Console, name: str, tests: list[dict[str, Any]]) -> None:
    rows = [
        (test["scale"], f"{test['estimate']:,.1f}", _interval(test["low"], test["high"]), f"{test['n']:,}")
        for test in tests
    ]
    if rows:
        columns = ("quantile", "value", "95%", "runs")
        console.print(named_table(console, f"Held at the peak for later use, {name}", columns, rows))
        _say(console, f"It does not show {tests[0]['does_not_show']}.")
        _render_excluded(console, tests)


def _render_missing(console: Console, tests: Sequence[Test], shown: Sequence[Test]) -> None:
    """Print why there is no estimate, each reason once with the tests that it stops; not what was noted before."""
    noted = {part for test in shown for part in test["note"].split(NOTES)}
    reasons: dict[str, list[str]] = {}
    for test in tests:
        own = NOTES.join(part for part in test["note"].split(NOTES) if part not in noted)
        reasons.setdefault(own or test["note"], []).append(test["name"])
    for reason, names in reasons.items():
        _say(console, f"no estimate of {', '.join(names)}: {reason}")


def _render_plan(console: Console, document: Mapping[str, Any]) -> None:
    plan = document["plan"]
    if document["repeated_runs"]:
        runs = counted(document["repeated_runs"], "run occurs", "runs occur")
        _say(console, f"{runs} more than once; every interval takes them for new runs")
    if not plan["planned"]:
        _say(console, "nothing was fixed in advance: every test is exploratory; a suite file (--suite) fixes some")
        return
    when = f" on {plan['recorded']}" if plan["recorded"] else ""
    family = "Holm over these"
    if plan["not_run"]:
        family += f", {len(plan['not_run']):,} that {'was' if len(plan['not_run']) == 1 else 'were'} not run among them"
    _say(console, f"fixed in advance{when}: {', '.join(plan['planned'])} (suite {plan['digest'][:12]}); {family}")


def _say(console: Console, line: str, *, indent: int = 0) -> None:
    margin = " " * indent
    how: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    for part in wrap(line, room_of(console), initial_indent=margin, subsequent_indent=margin, **how):
        console.print(part, markup=False, highlight=False, soft_wrap=True)


def _area(row: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return the failure AUC of runs whose need is known, with its interval."""
    names = ("failure_auc", "auc_low", "auc_high")
    area, low, high = (row[f"covered_{name}" if row["unit"] == "tokens" else name] for name in names)
    return area, _interval(low, high)


def _render_uncovered(console: Console, rows: Sequence[Test]) -> None:
    """Print what the area would be if runs without coverage had needed nothing."""
    for row in rows:
        left = row["auc_n"] - (row["covered_auc_n"] or 0) if row["unit"] == "tokens" else 0
        if left and row["failure_auc"] is not None:
            ends = _interval(row["auc_low"], row["auc_high"])
            who = counted(left, "run that touched no goal file", "runs that touched no goal file")
            said = f"AUC {row['failure_auc']:.3f}{f' ({ends})' if ends else ', without an interval'}"
            _say(console, f"{row['cohort']}: with {who} as needing 0, {said}")


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _peak(row: Mapping[str, Any]) -> str | None:
    if row["unit"] == "tokens" and not row["covered_runs"]:
        return None
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


CELLS: Mapping[str, Callable[[Test], object]] = {
    "test": lambda test: test["name"],
    "estimate": lambda test: _number(test["estimate"]),
    "95%": lambda test: _interval(test["low"], test["high"]),
    "p": lambda test: _p(test["p"]),
    "p, Holm": lambda test: _p(test["p_holm"]),
    "n": lambda test: f"{test['n']:,}",
    "uncovered": _uncovered,
    "fixed": lambda test: "planned" if test["planned"] else "exploratory",
}

COHORT: Mapping[str, Callable[[Test], object]] = {
    "cohort": lambda row: row["cohort"],
    "runs": lambda row: f"{row['runs']:,}",
    "resolved": lambda row: f"{row['resolved']:,}",
    "unknown": lambda row: row["unknown"],
    "tasks": lambda row: row["tasks"],
    "goal access": lambda row: _share(row["goal_access"] if goal_is_known(row) else None),
    "mean peak": lambda row: _peak(row),
    "failure AUC": lambda row: _area(row)[0],
    "95%": lambda row: _area(row)[1],
}
