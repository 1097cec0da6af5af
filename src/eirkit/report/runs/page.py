"""Builds the page of a `lacuna run` folder: order of its sections, memory systems, costs, suggested next commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.findings.measures import FATE_MEASURES, MEMORY_MEASURES, RUN_MEASURES, SPENDING_MEASURES
from eirkit.lacuna.findings.validity import doubt_of, system_remarks
from eirkit.lacuna.runs.capability import is_undecided
from eirkit.lacuna.runs.cells import CONTROLLED, cell_of
from eirkit.lacuna.runs.command_line import rescue_command, rescue_condition, seeds_text, suite_text, sweep_command
from eirkit.lacuna.runs.store import RUNS, scan_runs
from eirkit.lacuna.runs.summary import in_words, silences
from eirkit.lacuna.tasks.task import without_seed
from eirkit.report.document import Axis, Chart, Listing, Page, Section, Series
from eirkit.report.folders import kind_of, pages, records_of
from eirkit.report.runs.accuracy import accuracy_section, causes_section, first_miss_section, pressure_section
from eirkit.report.runs.answers import Losses, Repair, answers_json, headline_of, losses_of, repair_of
from eirkit.report.runs.choice import choice_in
from eirkit.report.runs.demand import demand_section
from eirkit.report.runs.evidence import SECTIONS
from eirkit.report.runs.folder import Coordinates, Evidence, SweepFolder, condition_of, read_sweep
from eirkit.report.runs.pivot import Pivot, chosen_cells, chosen_words, pivot_section
from eirkit.report.runs.possible import possible_section
from eirkit.report.runs.ranking import choice_section, ranked_headline
from eirkit.report.runs.words import word_headline, words_section
from eirkit.report.table import Column, Table, counted, listed, share

Row = Mapping[str, Any]


def memory_section(sweep: SweepFolder) -> Section | None:
    """Return the section on the fates of records needed from external memories, and on what the memories cost."""
    named = Coordinates(found := [row for row in sweep.rows if row["memory_system"] is not None])
    if not (rows := named.ordered(found)):
        return None
    words = [
        f"{condition_of(row)}, {row['workload']}, h = {row['h']}: {finding}"
        for row in rows
        for finding in row["memory_system"]["diagnosis"]
    ]
    if any(row["panel"] == "native" and row["scored"] for row in rows):
        words.append(
            "Native panel: each system keeps as much as it likes, so its rows do not compare with those held to h "
            "records; `--panel strict` makes them compare."
        )
    words += system_remarks(rows)
    asked = [row for row in rows if sum(row["memory_system"]["fates"].values())]
    charts = (fates_chart(asked, Coordinates(asked)),) if asked else ()
    tables = (_fates_table(rows, named), _costs_table(rows, named)) if any(row["scored"] for row in rows) else ()
    return Section("Memory systems", tuple(words), (*charts, *tables))


def fates_chart(rows: Sequence[Row], named: Coordinates) -> Chart:
    """Return a stacked chart of the fates of needed records, as shares."""
    places = tuple(named.label(row) if named.varying else condition_of(row) for row in rows)
    shares = [row["memory_system"]["fate_shares"] for row in rows]
    series = tuple(
        Series.of(one, "bars", places, tuple(found[one.id] for found in shares))
        for one in FATE_MEASURES
        if any(found[one.id] for found in shares)
    )
    used = FATE_MEASURES["used"]
    pairs = sorted(zip([found["used"] for found in shares], places, strict=True))
    (least, worst), (most, best) = pairs[0], pairs[-1]
    told = f"Of {used.of}, {used.label}: {share(most)} with {best}"
    told += f", {share(least)} with {worst}." if best != worst else "."
    axes = Axis("memory", "category"), Axis(f"share of {used.of}", low=0.0, high=1.0, percent=True)
    return Chart("fates", FATE_MEASURES.title, told, *axes, series, stacked=True)


def _fates_table(rows: Sequence[Row], named: Coordinates) -> Table:
    columns = (*_places(named), Column.of(MEMORY_MEASURES["needed"]), *map(Column.of, FATE_MEASURES))
    lines = tuple({**_place(row, named), **_fates(row["memory_system"])} for row in rows)
    return Table("fates-by-cell", FATE_MEASURES.title, columns, lines)


def _fates(system: Row) -> dict[str, Any]:
    return {"needed": sum(system["fates"].values()), **system["fate_shares"]}


def _costs_table(rows: Sequence[Row], named: Coordinates) -> Table:
    shown = [one for one in MEMORY_MEASURES if one.id != "needed"]
    columns = (*_places(named), *map(Column.of, shown))
    lines = tuple({**_place(row, named), **_costs(row["memory_system"])} for row in rows)
    return Table("memory-costs", MEMORY_MEASURES.title, columns, lines)


def _places(named: Coordinates) -> tuple[Column, ...]:
    return tuple(Column(name, name) for name in named.varying) or (Column("memory", "memory"),)


def _place(row: Row, named: Coordinates) -> dict[str, int | str]:
    return named.cells(row) or {"memory": condition_of(row)}


def _costs(found: Row) -> dict[str, Any]:
    floor = found["floor"] or {"held_bits": None, "needed_bits": None}
    return {
        "write_ms": _milliseconds(found["write_seconds"]),
        "search_ms": _milliseconds(found["search_seconds"]),
        "slowest_ms": _milliseconds(found["slowest_seconds"]),
        **{name: found[name] for name in ("records", "bytes", "model_calls")},
        **{name: floor[name] for name in ("held_bits", "needed_bits")},
        "memory_tokens": found["input_tokens"] + found["output_tokens"],
        "memory_cost_usd": found["cost_usd"],
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def spending_section(sweep: SweepFolder) -> Section | None:
    """Return the section on calls, tokens and money by model; None if no agent used tokens."""
    spent = ("input_tokens", "output_tokens", "cost_usd", "unreported_calls")
    if not any(row.get(name) for row in sweep.rows for name in spent):
        return None
    models = dict.fromkeys(row["model"] for row in sweep.rows)
    lines = tuple(_spent(model, [row for row in sweep.rows if row["model"] == model]) for model in models)
    columns = (
        Column("model", "model"),
        Column("runs", "runs"),
        *(Column.of(one) for one in SPENDING_MEASURES if one.id != "agent_tokens"),
    )
    known = [line["cost_usd"] for line in lines]
    whole = "not known for every model" if None in known else f"${sum(known):,.2f}"
    calls = sum(line["calls"] for line in lines)
    words = [f"{calls:,} calls, {whole}."]
    if silent := sum(row.get("unreported_calls") or 0 for row in sweep.rows):
        words.append(f"Of {counted(silent, 'call')} the server stated no numbers of tokens: they are not known.")
    return Section("Money and tokens", tuple(words), (Table("spending", "What the models took", columns, lines),))


def _spent(model: str, rows: Sequence[Row]) -> dict[str, Any]:
    names = ("calls", "cache_hits", "input_tokens", "output_tokens", "reasoning_tokens", "truncated_replies", "reasked")
    tried = [row for row in rows if row["calls"] is not None]
    costs = [row["cost_usd"] for row in tried]
    sums: dict[str, int | None] = {name: sum(row.get(name, 0) for row in tried) for name in names}
    if any(row.get("unreported_calls") for row in tried):
        sums |= dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"))
    runs = sum(row["scored"] for row in rows)
    return {"model": model, "runs": runs, **sums, "cost_usd": None if None in costs else sum(costs)}


TITLE_IN_WORDS = "What this memory kept of conversations, and why answers were wrong"
TITLE = "What this memory kept, and why steps were wrong"


def page_of(sweep: SweepFolder, pivot: Pivot | None = None) -> Page:
    """Return the page of a sweep.

    Args:
        pivot: what its table and figure for papers show, and which cells the page is about; all by default.
    """
    pivot, cells = pivot or Pivot(), len(sweep.rows)
    sweep = chosen_cells(sweep, pivot)
    page = (_page_in_words if in_words(sweep.rows) else _page_in_steps)(sweep, pivot)
    said = chosen_words(pivot, len(sweep.rows), cells)
    return replace(page, headline=replace(page.headline, sentences=(*page.headline.sentences, *said)))


def _page_in_steps(sweep: SweepFolder, pivot: Pivot) -> Page:
    losses, repair = losses_of(sweep.rows), repair_near(sweep)
    choice = choice_in(sweep)
    ranked = None if choice is None else ranked_headline(choice)
    headline = headline_of(sweep.rows, losses, repair, next_rescue(sweep), next_control(sweep), sweep.failures, ranked)
    sections = tuple(section for section in _sections(sweep, losses, pivot) if section is not None)
    if choice is not None:
        sections = (choice_section(choice), *sections)
    ranking = None if choice is None else choice.as_json()
    answers = {**answers_json(losses, repair), "choice": ranking, "rows": [dict(row) for row in sweep.rows]}
    return Page(TITLE, headline, sections, sweep.name, answers, "lacuna-run")


def _page_in_words(sweep: SweepFolder, pivot: Pivot) -> Page:
    cells = {row["cell"] for row in sweep.rows}
    told = words_section(sweep.rows, [one for one, _ in scan_runs(sweep.folder / RUNS) if cell_of(one) in cells])
    rescues = [SECTIONS["rescue"](one) for one in sweep.found_by("rescue")]
    parts = (
        _progress(sweep),
        told,
        pivot_section(sweep, pivot),
        *rescues,
        _control(sweep),
        spending_section(sweep),
        rebuilding_section(sweep),
    )
    sections = tuple(section for section in parts if section is not None)
    headline, choice = word_headline(sweep.rows), choice_in(sweep)
    if choice is not None:
        ranked = ranked_headline(choice)
        headline = replace(ranked, sentences=(*ranked.sentences, *headline.sentences))
        sections = (choice_section(choice), *sections)
    answers = {"choice": None if choice is None else choice.as_json(), "rows": [dict(row) for row in sweep.rows]}
    return Page(TITLE_IN_WORDS, headline, sections, sweep.name, answers, "lacuna-run")


def repair_near(sweep: SweepFolder) -> Repair | None:
    """Return the result of a rescue that belongs to a sweep, preferably one measured under the same conditions."""
    workloads = {row["workload"] for row in sweep.rows}
    found = [one for one in sweep.found_by("rescue") if one.document["workload"] in workloads]
    measured = [repair for one in found if (repair := _measured(sweep, one)) is not None]
    return min(measured, key=lambda repair: not repair.alike, default=None)


def _measured(sweep: SweepFolder, found: Evidence) -> Repair | None:
    alike = _is_alike(sweep, found)
    where = _within(sweep, found) if alike else rescue_condition(found.manifest["settings"])
    repair = repair_of(found.document, where)
    return None if repair is None else replace(repair, alike=alike)


def _within(sweep: SweepFolder, found: Evidence) -> str:
    """Return which cells of a sweep a rescue was measured on, by the settings that vary in it."""
    asked = found.manifest["settings"]
    said = {
        "workload": asked["task"]["workload"],
        "policy": asked["policy"],
        "memory": asked.get("memory"),
        "model": " and ".join(asked["models"]),
    }
    parts = [str(value) for name, value in said.items() if value and len({row[name] for row in sweep.rows}) > 1]
    return ", ".join([*parts, f"h = {asked['h']}"])


def _is_alike(sweep: SweepFolder, found: Evidence) -> bool:
    """Return True if the sweep ran every model of a rescue on the same task, policy or memory, and capacity."""
    asked = found.manifest["settings"]
    memory = asked.get("memory")
    if asked["managed"] and memory is None:
        return False  # the action loop without recovery, which sweeps do not run
    held = {
        row["model"]
        for row in sweep.rows
        if row["h"] == asked["h"]
        and (_has_memory(row, asked) if memory else (row["condition"], row["policy"]) == (CONTROLLED, asked["policy"]))
        and row["cell"] in sweep.tasks
        and without_seed(sweep.tasks[row["cell"]]) == asked["task"]
    }
    return set(asked["models"]) <= held


def _has_memory(row: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return True if a cell has the same memory, memory settings and panel as a rescue."""
    return all(row[name] == asked[name] for name in ("memory", "memory_settings", "panel"))


def _sections(sweep: SweepFolder, losses: Losses | None, pivot: Pivot) -> Iterable[Section | None]:
    yield _progress(sweep)
    yield accuracy_section(sweep) if any(row["scored"] for row in sweep.rows) else None
    yield pivot_section(sweep, pivot)
    yield causes_section(sweep)
    yield memory_section(sweep)
    rescues = sweep.found_by("rescue")
    yield from (SECTIONS["rescue"](one) for one in rescues)
    if not rescues and losses is not None and losses.wrong_steps:
        words = f"Not measured; run `{next_rescue(sweep)}`, then make this page again."
        yield Section("What restoring missed records does", (words,))
    yield pressure_section(sweep)
    yield demand_section(sweep)
    yield possible_section(sweep)
    yield first_miss_section(sweep)
    yield from (SECTIONS[one.command](one) for one in sweep.evidence if one.command != "rescue")
    yield _control(sweep)
    yield spending_section(sweep)
    yield rebuilding_section(sweep)


def _progress(sweep: SweepFolder) -> Section | None:
    """Return the section on unfinished, failed and suspect runs; None if there are none."""
    words = []
    if sweep.scored < sweep.planned:
        left = f"{sweep.planned - sweep.scored:,} of {counted(sweep.planned, 'run')} are not scored"
        words.append(f"{left}{', since the cap was reached' * sweep.is_capped}; go on with `{sweep.resume}`.")
    words += [f"{line}." for line in silences(sweep.rows)]
    words += [f"{row['model']}, h = {row['h']}: {doubt}." for row in sweep.rows if (doubt := doubt_of(row))]
    words += [f"Suspect: {row['model']}, h = {row['h']}: {row['suspect']}." for row in sweep.rows if row["suspect"]]
    columns = tuple(Column(name, name) for name in ("workload", "model", "condition", "kind", "runs", "message"))
    failed = Table("failures", "Runs that the world broke; never counted as wrong", columns, sweep.failures)
    if not words and not sweep.failures:
        return None
    return Section("What is not in these figures", tuple(words), (failed,) if sweep.failures else ())


def _control(sweep: SweepFolder) -> Section:
    seen = {(row["model"], row["workload"]): row["control"] for row in sweep.rows}
    lines = tuple(
        {
            "model": model,
            "workload": workload,
            "accuracy": standing["accuracy"],
            "passes": "undecided" if is_undecided(standing) else "yes" if standing["passes"] else "no",
            "reason": standing["reason"],
        }
        for (model, workload), standing in seen.items()
        if standing is not None
    )
    if not lines:
        words = f"Not run: whatever stands above about lost information describes. Run `{next_control(sweep)}`."
        return Section("Full-information control", (words,))
    columns = (
        Column("model", "model"),
        Column("workload", "workload"),
        Column.of(RUN_MEASURES["accuracy"]),
        Column("passes", "may carry claims"),
        Column("reason", "why"),
    )
    return Section("Full-information control", (), (Table("control", "Where nothing is missing", columns, lines),))


def next_rescue(sweep: SweepFolder) -> str:
    """Return the rescue command for the cell with the most errors caused by missing state."""
    able = [row for row in sweep.rows if row["scored"]] or list(sweep.rows)
    worst = max(able, key=lambda row: (row["claims"], row["errors"]["state_supply"], row["miss_rate"] or 0))
    return rescue_command(worst, sweep.tasks.get(worst["cell"]), _options(sweep), sweep.seeds, sweep.folder / "rescue")


def _options(sweep: SweepFolder) -> Mapping[str, Any]:
    """Return the model options of a sweep; empty if its grids differ in them."""
    found = [grid["model_options"] for grid in sweep.manifest.suite["grid"]]
    return found[0] if all(one == found[0] for one in found) else {}


def next_control(sweep: SweepFolder) -> str:
    return f"{sweep.resume} --control"


def rebuilding_section(sweep: SweepFolder) -> Section:
    """Return the section with seeds, models, versions and the command that reproduces the folder."""
    then = sweep.manifest
    rows: dict[str, str] = {
        "seeds": seeds_text(sweep.seeds),
        "models": listed(list(dict.fromkeys(str(row["model"]) for row in sweep.rows)), most=20),
        "cells, runs": f"{then.cells:,}, {then.runs:,}",
        "eirkit": then.eirkit,
        "Python": then.python,
        "platform": then.platform,
        "suite SHA-256": then.suite_sha256,
        "prompts SHA-256": then.prompt_sha256,
        "prices SHA-256": then.prices_sha256,
        **{f"source {path}": digest for path, digest in then.sources.items()},
        **then.dependencies,
    }
    columns = (Column("name", "name"), Column("value", "value"))
    table = Table("manifest", "Manifest", columns, tuple({"name": n, "value": v} for n, v in rows.items()))
    command = Listing(
        "command", "The command that makes these records again", sweep_command(then, f"{sweep.name}-again")
    )
    suite = Listing("suite", "The suite, as TOML", suite_text(then.suite))
    return Section("How to make this again", (), (command, suite, table))


@pages.add("lacuna-run")
def sweep_page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Return the page of a sweep, with evidence from its subfolders and from other folders."""
    return page_of(read_sweep(folder, others, plugins=plugins))


def pivoted_page(folder: Path, others: Sequence[Path], pivot: Pivot, *, plugins: bool = False) -> Page:
    """Return the page of a sweep that is laid out as asked for.

    Raises:
        UsageError: the folder is no sweep, or lacks what is asked for.
    """
    if kind_of(folder) != "lacuna-run":
        raise UsageError(f"{folder} is no sweep; --measure, --across, --panels and --only are for one of `lacuna run`")
    with records_of(folder, plugins=plugins):
        return page_of(read_sweep(folder, others, plugins=plugins), pivot)
