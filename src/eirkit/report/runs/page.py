"""Builds the page of a `lacuna run` folder: order of its sections, memory systems, costs, suggested next commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from eirkit import extensions
from eirkit.errors import UsageError
from eirkit.lacuna.findings.command_line import rescue_command, rescue_condition, suite_text, sweep_command
from eirkit.lacuna.findings.measures import MEMORY_MEASURES, OUTCOME_MEASURES, SPENDING_MEASURES
from eirkit.lacuna.findings.summary import silences
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.records.evidence import RescueSettings
from eirkit.records.money import cost_in_words
from eirkit.records.runs import OUTCOMES
from eirkit.records.settings import CONTROLLED
from eirkit.records.sweeps import CellRow, MemoryRow
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series, facts
from eirkit.report.folders import kind_of, pages, records_of
from eirkit.report.runs.accuracy import accuracy_section, causes_section, first_miss_section, pressure_section
from eirkit.report.runs.answers import (
    Losses,
    Repair,
    headline_of,
    losses_of,
    repair_of,
    unread_headline,
    unread_replies,
)
from eirkit.report.runs.choice import Choice, ChoiceFigures, choice_in
from eirkit.report.runs.demand import demand_section
from eirkit.report.runs.evidence import gates_table, rescue_section, section_of, standings_table, undecided_words
from eirkit.report.runs.folder import Coordinates, SweepFolder, condition_of, read_sweep
from eirkit.report.runs.pivot import Pivot, chosen_cells, chosen_words, pivot_section
from eirkit.report.runs.possible import possible_section
from eirkit.report.runs.ranking import choice_section, ranked_headline, systems_section
from eirkit.report.table import Cell, Column, Table, counted, listed, share
from eirkit.seeds import seeds_text


def memory_section(sweep: SweepFolder) -> Section | None:
    """Return the section on the outcomes of records needed from external memories, and on what the memories cost."""
    named = Coordinates(found := [row for row in sweep.rows if row.memory_system is not None])
    if not (rows := [(row, row.memory_system) for row in named.ordered(found) if row.memory_system is not None]):
        return None
    words = [
        f"{condition_of(row)}, {row.workload}{row.held}: {finding}"
        for row, system in rows
        for finding in system.diagnosis
    ]
    if any(row.panel == "native" and row.scored for row, _ in rows):
        words.append(
            "Native panel: each system keeps as much as it likes, so its rows do not compare with those held to h "
            "records; `--panel strict` makes them compare."
        )
    asked = [(row, system) for row, system in rows if sum(system.outcomes.values())]
    charts = (outcomes_chart(asked, Coordinates([row for row, _ in asked])),) if asked else ()
    if not any(row.scored for row, _ in rows):
        return Section("Memory systems", tuple(words), charts)
    return Section("Memory systems", tuple(words), (*charts, *memory_tables(rows, named)))


OF_OWN_CALLS = ("model_calls", "memory_tokens", "memory_cost_usd")  # shown where a memory called a model
_LABEL_IS_ENOUGH = ("write_ms", "search_ms", "records", "bytes")
COUNTED_BY = "who says what is stored: the system itself, or eirkit from what it was given where the system cannot tell"


def memory_tables(rows: Sequence[tuple[CellRow, MemoryRow]], named: Coordinates) -> tuple[Table, Table]:
    """Return what became of the records needed from memories, and what these stored and cost."""
    places = tuple(Column(name, name, role="name") for name in named.varying) or (Column("memory", "memory"),)
    shown = [outcome for outcome in OUTCOMES if any(system.outcome_shares.get(outcome) for _, system in rows)]
    columns = (
        *places,
        Column.of(MEMORY_MEASURES["needed"]),
        *(Column.of(OUTCOME_MEASURES[outcome]) for outcome in shown),
    )
    lines: list[dict[str, Cell]] = [
        {**_place(row, named), "needed": sum(system.outcomes.values())}
        | {str(outcome): value for outcome, value in system.outcome_shares.items()}
        for row, system in rows
    ]
    left_out = {"needed"} if any(system.model_calls for _, system in rows) else {"needed", *OF_OWN_CALLS}
    kept = [measure for measure in MEMORY_MEASURES if measure.id not in left_out]
    plain: dict[str, Any] = {measure.id: {"meaning": ""} for measure in kept if measure.id in _LABEL_IS_ENOUGH}
    plain["slowest_ms"] = {"priority": 1}
    costs = (
        *places,
        *(Column.of(measure, **plain.get(measure.id, {})) for measure in kept),
        Column("counted", "counted by", priority=2, meaning=COUNTED_BY),
    )
    figures = tuple({**_place(row, named), **memory_figures(system)} for row, system in rows)
    return (
        Table("outcomes", OUTCOME_MEASURES.title, columns, tuple(lines)),
        Table("costs", MEMORY_MEASURES.title, costs, figures),
    )


def outcomes_chart(rows: Sequence[tuple[CellRow, MemoryRow]], named: Coordinates) -> Chart:
    """Return a stacked chart of the outcomes of needed records, as shares."""
    places = tuple(named.label(row) if named.varying else condition_of(row) for row, _ in rows)
    shares = [system.outcome_shares for _, system in rows]
    series = tuple(
        Series.of(OUTCOME_MEASURES[outcome], "bars", places, tuple(found[outcome] for found in shares))
        for outcome in OUTCOMES
        if any(found[outcome] for found in shares)
    )
    used = OUTCOME_MEASURES["used"]
    pairs = sorted(zip([found["used"] for found in shares], places, strict=True))
    (least, worst), (most, best) = pairs[0], pairs[-1]
    told = f"Of {used.of}, {used.label}: {share(most)} with {best}"
    told += f", {share(least)} with {worst}." if best != worst else "."
    axes = Axis("memory", "category"), Axis(f"share of {used.of}", low=0.0, high=1.0, percent=True)
    return Chart("fates", OUTCOME_MEASURES.title, told, *axes, series, stacked=True)


def _place(row: CellRow, named: Coordinates) -> dict[str, Cell]:
    return {**named.cells(row)} or {"memory": condition_of(row)}


def memory_figures(system: MemoryRow) -> dict[str, Cell]:
    """Return time, size and cost of a memory, by the ids of their measures."""
    write, search, floor = system.write_seconds, system.search_seconds, system.floor
    return {
        "write_ms": None if write is None else 1000 * write,
        "search_ms": None if search is None else 1000 * search,
        "slowest_ms": 1000 * system.slowest_seconds,
        "records": system.records,
        "bytes": system.bytes,
        "model_calls": system.model_calls,
        "held_bits": None if floor is None else floor.held_bits,
        "needed_bits": None if floor is None else floor.needed_bits,
        "memory_tokens": system.input_tokens + system.output_tokens,
        "memory_cost_usd": system.cost_usd,
        "counted": None if floor is None else floor.counted,
    }


def spending_section(sweep: SweepFolder) -> Section | None:
    """Return the section on calls, tokens and money by model; None if no agent used tokens."""
    rows = sweep.rows
    if not any(row.input_tokens or row.output_tokens or row.cost_usd or row.unreported_calls for row in rows):
        return None
    lines = tuple(
        _spent(model, [row for row in rows if row.model == model]) for model in dict.fromkeys(row.model for row in rows)
    )
    columns = (
        Column("model", "model"),
        Column("runs", "runs"),
        *(Column.of(measure) for measure in SPENDING_MEASURES if measure.id != "agent_tokens"),
    )
    costs = [row.cost_usd for row in rows if row.calls is not None]
    whole = "not known for every model" if None in costs else f"${sum(cost or 0.0 for cost in costs):,.2f}"
    calls, spending = f"{sum(row.calls or 0 for row in rows):,} calls", sweep.spending
    words = [f"{calls}, {whole if spending is None else cost_in_words(spending)}."]
    if spending is not None and spending.control_usd:
        most = "at most " if spending.in_flight_usd or spending.unconfirmed_usd else ""  # the control may have had them
        words = [
            f"Of the folder: {cost_in_words(spending)}. The table has {calls} of the sweep itself, without the "
            f"full-information control ({most}${spending.control_usd:,.4f})."
        ]
    if silent := sum(row.unreported_calls or 0 for row in rows):
        words.append(f"Of {counted(silent, 'call')} the server stated no numbers of tokens: they are not known.")
    return Section("Money and tokens", tuple(words), (Table("spending", "What the models took", columns, lines),))


def _spent(model: str, rows: Sequence[CellRow]) -> dict[str, Cell]:
    names = ("calls", "cache_hits", "input_tokens", "output_tokens", "reasoning_tokens", "truncated_replies", "reasked")
    tried = [row for row in rows if row.calls is not None]
    costs = [row.cost_usd for row in tried]
    sums: dict[str, Cell] = {name: sum(getattr(row, name) for row in tried) for name in names}
    if any(row.unreported_calls for row in tried):
        sums |= dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"))
    cost = None if None in costs else sum(cost or 0.0 for cost in costs)
    return {"model": model, "runs": sum(row.scored for row in rows), **sums, "cost_usd": cost}


# Make the page of a sweep of conversations and its headline; imported with the first of them.
CONVERSATIONS = "eirkit.report.runs.words:conversation_page"
CONVERSATIONS_HEADLINE = "eirkit.report.runs.words:conversation_headline"


class SweepAnswers(Struct, frozen=True):
    """The figures of a sweep's page, as scripts receive them."""

    losses: Losses | None
    repair: Repair | None
    choice: ChoiceFigures | None
    rows: tuple[CellRow, ...]


TITLE = "What {memory} kept, and why steps were wrong"
CONTROLLED_TITLE = "What stayed in context, and why steps were wrong"


def page_of(sweep: SweepFolder, pivot: Pivot | None = None) -> Page:
    """Return the page of a sweep.

    Args:
        pivot: what its table and figure for papers show, and which cells the page is about; all by default.
    """
    pivot, cells = pivot or Pivot(), len(sweep.rows)
    sweep = chosen_cells(sweep, pivot)
    told = any(row.conversation is not None for row in sweep.rows)
    make: Callable[[SweepFolder, Pivot], Page] = extensions.load(CONVERSATIONS) if told else _page_in_steps
    page = make(sweep, pivot)
    headline = _unread_first(sweep, page.headline)
    said = chosen_words(pivot, len(sweep.rows), cells)
    return replace(page, headline=replace(headline, sentences=(*headline.sentences, *said)))


def _unread_first(sweep: SweepFolder, headline: Headline) -> Headline:
    """Return that replies could not be read, if that is so in every setting; else the headline, with what was not."""
    if (unread := unread_headline(sweep.rows, sweep.manifest)) is not None:
        return unread
    models = unread_replies(sweep.rows, sweep.manifest)
    return replace(headline, sentences=(*headline.sentences, *(model.sentence for model in models)))


def headline_in(sweep: SweepFolder) -> Headline:
    """Return the headline of the page of a sweep, without making the page."""
    choice = choice_in(sweep)
    if any(row.conversation is not None for row in sweep.rows):
        make: Callable[[SweepFolder, Choice | None], Headline] = extensions.load(CONVERSATIONS_HEADLINE)
        return _unread_first(sweep, make(sweep, choice))
    return _unread_first(sweep, _headline_in_steps(sweep, losses_of(sweep.rows), repair_near(sweep), choice))


def _headline_in_steps(
    sweep: SweepFolder, losses: Losses | None, repair: Repair | None, choice: Choice | None
) -> Headline:
    ranked = None if choice is None else ranked_headline(choice)
    rescue, control = next_rescue(sweep), next_control(sweep)
    return headline_of(sweep.rows, losses, repair, rescue, control, sweep.failures, ranked)


def _page_in_steps(sweep: SweepFolder, pivot: Pivot) -> Page:
    losses, repair = losses_of(sweep.rows), repair_near(sweep)
    choice = choice_in(sweep)
    headline = _headline_in_steps(sweep, losses, repair, choice)
    sections = tuple(section for section in _sections(sweep, losses, pivot) if section is not None)
    if choice is not None:
        sections = (choice_section(choice), *sections)
    answers = SweepAnswers(losses, repair, None if choice is None else choice.figures(), sweep.rows)
    memories = {row.memory for row in sweep.rows if row.memory is not None}
    title = TITLE.format(memory=these_memories(len(memories))) if memories else CONTROLLED_TITLE
    return Page(title, headline, sections, sweep.name, answers, "lacuna-run")


def these_memories(number: int) -> str:
    """Return what a title calls the memories of a sweep."""
    return "this memory" if number == 1 else "these memories"


def repair_near(sweep: SweepFolder) -> Repair | None:
    """Return the result of a rescue that belongs to a sweep, preferably one measured under the same conditions."""
    workloads = {row.workload for row in sweep.rows}
    found = [rescue for rescue in sweep.rescues() if rescue.result.workload in workloads]
    measured = []
    for rescue in found:
        alike = _is_alike(sweep, rescue.settings)
        where = _within(sweep, rescue.settings) if alike else rescue_condition(rescue.settings)
        if (repair := repair_of(rescue.result, where)) is not None:
            measured.append(replace(repair, alike=alike))
    return min(measured, key=lambda repair: not repair.alike, default=None)


def _within(sweep: SweepFolder, asked: RescueSettings) -> str:
    """Return which cells of a sweep a rescue was measured on, by the settings that vary in it."""
    said = {
        "workload": asked.task.workload,
        "policy": asked.policy,
        "memory": asked.memory,
        "model": " and ".join(asked.models),
    }
    parts = [value for name, value in said.items() if value and len({getattr(row, name) for row in sweep.rows}) > 1]
    return ", ".join([*parts, asked.task.workload if asked.h is None else f"h = {asked.h}"])


def _is_alike(sweep: SweepFolder, asked: RescueSettings) -> bool:
    """Return True if the sweep ran every model of a rescue on the same task, policy or memory, and capacity."""
    if asked.managed and asked.memory is None:
        return False  # the action loop without recovery, which sweeps do not run
    wanted: tuple[object, ...] = (CONTROLLED, asked.policy)
    if asked.memory is not None:
        wanted = (asked.memory, asked.memory_settings, asked.panel, asked.budget)
    held = set()
    for row in sweep.rows:
        own: tuple[object, ...] = (row.condition, row.policy)
        if asked.memory is not None:
            own = (row.memory, row.memory_settings, row.panel, row.budget)
        if row.scored and row.h == asked.h and own == wanted and row.task == asked.task:
            held.add(row.model)
    return set(asked.models) <= held


def _sections(sweep: SweepFolder, losses: Losses | None, pivot: Pivot) -> Iterable[Section | None]:
    is_external = any(row.memory is not None for row in sweep.rows)
    yield progress_section(sweep)
    if not is_external:  # the chart that such a sweep is made for
        yield pressure_section(sweep)
    yield accuracy_section(sweep) if any(row.scored for row in sweep.rows) else None
    yield pivot_section(sweep, pivot)
    yield causes_section(sweep)
    yield memory_section(sweep)
    yield systems_section(system_remarks((row.memory, row.memory_system) for row in sweep.rows))
    rescues = sweep.rescues()
    yield from (rescue_section(rescue.result) for rescue in rescues)
    if not rescues and losses is not None and losses.wrong_steps:
        words = f"Not measured; run `{next_rescue(sweep)}`, then make this page again."
        yield Section("What restoring missed records does", (words,))
    if is_external:
        yield pressure_section(sweep)
    yield demand_section(sweep)
    yield possible_section(sweep)
    yield first_miss_section(sweep)
    yield from (section_of(evidence.result) for evidence in sweep.evidence if evidence.command != "rescue")
    yield control_section(sweep)
    yield spending_section(sweep)
    yield rebuilding_section(sweep)


def progress_section(sweep: SweepFolder) -> Section | None:
    """Return the section on unfinished, failed and suspect runs; None if there are none."""
    words = []
    if sweep.scored < sweep.planned:
        left = f"{sweep.planned - sweep.scored:,} of {counted(sweep.planned, 'run')} are not scored"
        words.append(f"{left}{', since the cap was reached' * sweep.is_capped}; go on with `{sweep.resume}`.")
    words += [f"{line}." for line in silences(sweep.rows)]
    words += [f"{row.model}{row.held}: {doubt}." for row in sweep.rows if (doubt := row.validity.sentence)]
    words += [f"Suspect: {row.model}{row.held}: {row.suspect}." for row in sweep.rows if row.suspect]
    if not words and not sweep.failures:
        return None
    names = ("workload", "model", "condition", "kind", "runs", "message")
    columns = tuple(Column(name, "setting" if name == "condition" else name) for name in names)
    title = "Runs that infrastructure broke; never counted as wrong"
    failed = Table("failures", title, columns, tuple(map(asdict, sweep.failures)))
    return Section("What is not in these figures", tuple(words), (failed,) if sweep.failures else ())


CONTROLLED_BY = (
    "Accuracy given right inputs decides: a model that passes may carry claims about lost information, one that fails "
    "is excluded, and figures of one that is undecided are shown and claim nothing. The paper's gate is beside it."
)


def control_section(sweep: SweepFolder) -> Section:
    seen = {(row.model, row.workload): row.control for row in sweep.rows}
    judged = {place: standing for place, standing in seen.items() if standing is not None}
    if not judged:
        words = f"Not run: whatever stands above about lost information describes. Run `{next_control(sweep)}`."
        return Section("Full-information control", (words,))
    gates = [(*place, standing.gates) for place, standing in judged.items()]
    tables = gates_table(gates), standings_table(judged)
    return Section("Full-information control", (CONTROLLED_BY, *undecided_words(gates)), tables)


def next_rescue(sweep: SweepFolder) -> str:
    """Return the rescue command for the cell with the most errors caused by missing state."""
    able = [row for row in sweep.rows if row.scored] or list(sweep.rows)
    worst = max(able, key=lambda row: (row.claims, row.errors["state_supply"], row.miss_rate or 0))
    return rescue_command(worst, sweep.manifest, sweep.seeds, sweep.folder / "rescue", sweep.spending)


def next_control(sweep: SweepFolder) -> str:
    return f"{sweep.resume} --control"


def rebuilding_section(sweep: SweepFolder) -> Section:
    """Return the section with seeds, models, versions and the command that reproduces the folder."""
    then = sweep.manifest
    rows: dict[str, str] = {
        "seeds": seeds_text(sweep.seeds),
        "models": listed(list(dict.fromkeys(row.model for row in sweep.rows)), most=20),
        "settings, runs": f"{then.cells:,}, {then.runs:,}",
        "eirkit": then.eirkit,
        "Python": then.python,
        "platform": then.platform,
        "plan SHA-256": then.plan_sha256,
        "prompts SHA-256": then.prompt_sha256,
        "prices SHA-256": then.prices_sha256,
        **{f"source {path}": digest for path, digest in then.sources.items()},
        **then.dependencies,
    }
    again = sweep_command(then, f"{sweep.name}-again")
    command = Listing("command", "The command that makes these records again", again)
    suite = Listing("suite", "The suite, as TOML", suite_text(then.settings))
    return Section("How to make this again", (), (command, suite, facts("manifest", "Manifest", rows, heading="name")))


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
        raise UsageError(f"{folder} is no sweep; --measure, --by and --only are for one of `lacuna run`")
    with records_of(folder, plugins=plugins):
        return page_of(read_sweep(folder, others, plugins=plugins), pivot)
