"""The ranking of `eirkit choose` in sentences, tables and a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from eirkit.lacuna.findings.conversation_measures import RETRIEVAL_MEASURES
from eirkit.lacuna.findings.conversations import INSTRUCTION
from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, ROUNDING
from eirkit.lacuna.findings.measures import MEMORY_MEASURES
from eirkit.lacuna.findings.ranking import LOOKS, MOST_TASKS, POWER, Standing
from eirkit.measures import Measure
from eirkit.report.document import Axis, Chart, Headline, Section, Series
from eirkit.report.runs.choice import ABILITY, CHECKS, Choice
from eirkit.report.runs.folder import measure_of
from eirkit.report.table import Cell, Column, Table, counted, listed, number


def answer_of(choice: Choice) -> tuple[str, ...]:
    """Return the result in sentences: who is best, under which conditions, and what would separate the first."""
    return (
        *_order(choice),
        *choice.whole,
        *_limits(choice),
        *_different_passages(choice),
        *((f"Conditions: {'; '.join(choice.conditions)}.",) if choice.conditions else ()),
        *(f"{exclusion[0].upper()}{exclusion[1:]}." for exclusion in choice.exclusions),
    )


def _limits(choice: Choice) -> Iterator[str]:
    """Yield whose runs ended at their limit of actions, which is no fault of a memory."""
    if choice.limited:
        told = [f"{limited:,} of {runs:,} runs of {name}" for name, (limited, runs) in choice.limited.items()]
        yield (
            f"{listed(told)} ended at their limit of actions, not at a fault of the memory, and the "
            f"{choice.units.step}s after it count as wrong: the limit may have decided their place; run them again "
            "with more --actions."
        )


def _different_passages(choice: Choice) -> Iterator[str]:
    """Yield of which memories more passages are asked for than of others, which may decide their place."""
    asked: dict[str, list[str]] = {}
    for standing in choice.ranking.standings:
        if standing.name in choice.passages:
            asked.setdefault(choice.passages[standing.name], []).append(standing.name)
    if len(asked) > 1:
        told = [f"{number} passages of {listed(names)}" for number, names in asked.items()]
        yield f"A search asks for {listed(told)}: the number may have decided their place."


def _order(choice: Choice) -> tuple[str, ...]:
    """Return who is best or may be, who is worse, and what would separate the first."""
    ranking, task = choice.ranking, choice.units.task
    best, *others = ranking.leaders
    value = {standing.name: _shown(choice.measure, standing.value) for standing in ranking.standings}
    over = f"over {counted(ranking.tasks, task)}" + (f" in {ranking.cases:,} cases" * (ranking.cases > ranking.tasks))
    said = _named(choice.measure)
    if ranking.tasks < FEWEST_CLUSTERS:
        figures = listed([f"{standing.name} {value[standing.name]}" for standing in ranking.standings])
        return (f"{said[0].upper()}{said[1:]}: {figures}. {_too_few(choice)}", *_price(choice))
    if not others:
        second = ranking.standings[1]
        behind = _distance(choice.measure, second)
        first = f"{best} is best in {said}, {value[best]} {over}; {second.name}, the next, is {behind} behind."
        return (first, *_look(choice))
    names = listed([f"{name} ({value[name]})" for name in ranking.leaders])
    worse = [standing.name for standing in ranking.standings if standing.place == "worse"]
    are = f"; {listed(worse)} {'is' if len(worse) == 1 else 'are'} worse than the best" if worse else ""
    return (f"Each of these may be best in {said} {over}: {names}{are}.", *_look(choice), *_separation(choice))


def _look(choice: Choice) -> Iterator[str]:
    """Yield that the leaders of an earlier look were compared once more."""
    if len(choice.looks) > 1:
        before = listed([f"{tasks:,}" for tasks in choice.looks[:-1]])
        yield (
            f"Look {len(choice.looks)} of at most {len(LOOKS)}, at the leaders alone on all of their "
            f"{choice.units.task}s; the earlier was over {before}, and who was worse then stays so."
        )


def _too_few(choice: Choice) -> str:
    """Return why nothing is ranked: too few tasks, or too few of them with such questions."""
    tasks, task = choice.ranking.tasks, choice.units.task
    if choice.given == tasks:
        are = "is" if tasks == 1 else "are"
        return f"{counted(tasks, task)} {are} too few to rank; use {FEWEST_CLUSTERS} or more seeds."
    had = f"Of {counted(choice.given, task)}, {tasks:,} had such questions, too few to rank"
    return f"{had}; {choice.seeds:,} seeds would give about {choice.wanted:,} that have." if choice.seeds else f"{had}."


def _price(choice: Choice) -> Iterator[str]:
    """Yield what the run that is proposed next would cost."""
    if choice.again and (price := choice.price) is not None:
        minutes = None if price.seconds is None else round(price.seconds / 60)
        parts = (
            counted(price.runs, "run"),
            counted(price.calls, "model call") if price.calls else "",
            "" if price.usd is None else f"${price.usd:,.2f}",
            "" if minutes is None else f"{counted(minutes, 'minute')} of calls" if minutes else "less than a minute",
        )
        yield f"At the cost and pace of these runs, the next would take {listed(list(filter(None, parts)))}."


def ranked_headline(choice: Choice) -> Headline:
    """Return the ranking as the headline of a page."""
    best = choice.ranking.standings[0]
    others = [name for name in choice.ranking.leaders if name != best.name]
    first = f"{choice.measure.label} with {best.name}"
    count = len(choice.ranking.standings)
    told = f"{first}; {listed(others)} may be best too" if others else f"{first}, the best of {count}"
    if choice.ranking.tasks < FEWEST_CLUSTERS:
        told = (
            f"{first}, the highest of {count}; {counted(choice.ranking.tasks, choice.units.task)} are too few to rank"
        )
    return Headline(_shown(choice.measure, best.value), told, answer_of(choice))


def _separation(choice: Choice) -> Iterator[str]:
    """Yield whether more tasks are worth their cost: how many would separate the first two, and what they cost."""
    ranking, tasks = choice.ranking, f"{choice.units.task}s"
    first, second = ranking.leaders[:2]
    margin, unit = _amount(choice.measure, ranking.margin), _unit(choice.measure)
    lead = f"{first} is ahead of {second} by {_amount(choice.measure, ranking.lead or 0.0)}{unit}"
    if ranking.is_settled:
        yield f"Stop: each of them is shown to be at most {margin}{unit} behind the best."
        return
    same = [name for name in ranking.leaders[1:] if ranking[name].equal]
    if same and ranking.leaders[0] == ranking.standings[0].name:
        lead = (
            f"{listed([first, *same])} had the same {_named(choice.measure)} in every case; harder {tasks} may differ"
        )
    if len(choice.looks) == len(LOOKS):
        yield f"{lead}. This was the last of {len(LOOKS)} looks: stop, or compare them anew on other {tasks}."
        return
    if choice.wanted is None:
        yield f"{lead}. Stop: more than {MOST_TASKS:,} {tasks} would be needed to separate them."
        return
    alone = "" if len(ranking.leaders) == len(ranking.standings) else " of the leaders alone"
    number = f"about {choice.wanted:,} further {tasks}{_by_seeds(choice)}{alone}"
    if (ranking.lead or 0.0) >= ranking.margin:
        yield f"{lead}; {number} would show such a difference with probability {POWER}."
    else:
        yield (
            f"{lead}. {number[0].upper()}{number[1:]} would show a difference of {margin}{unit} (--margin), if there "
            f"is one, with probability {POWER}."
        )
    yield from _price(choice)
    if choice.again:
        yield "Then rank the new folder together with the ones here."
    else:
        yield f"No single command runs them together on new {tasks}."


def _by_seeds(choice: Choice) -> str:
    """Return how many seeds the wanted tasks take, where that is another number."""
    return "" if choice.seeds == choice.wanted or choice.seeds is None else f" (of {choice.seeds:,} seeds)"


def _named(measure: Measure) -> str:
    return f"“{measure.label}”" if " " in measure.label else measure.label


def _shown(measure: Measure, value: float) -> str:
    unit = " ms" if measure.unit == "milliseconds" else ""
    return f"{value:.3f}" if measure.unit == "share" else f"{number(value, 2)}{unit}"


def _amount(measure: Measure, value: float) -> str:
    """Return a difference, of shares in points, with as many digits as tell it from zero."""
    shown, digits = (100 * value, 1) if measure.unit == "share" else (value, 2)
    while digits < MOST_DIGITS and round(shown, digits) == 0 and abs(shown) > ROUNDING:
        digits += 1
    return f"{shown:z,.{digits}f}".replace("-", "−")


def _unit(measure: Measure) -> str:
    return {"share": " points", "milliseconds": " ms"}.get(measure.unit, "")


def _distance(measure: Measure, one: Standing) -> str:
    return distance_text(measure, one, _unit(measure))


def distance_text(measure: Measure, one: Standing, unit: str = "") -> str:
    """Return how far one is behind the best, with the interval of it."""
    text = partial(_amount, measure)
    if one.low is None or one.high is None:
        return f"{text(one.behind)}{unit}"
    return f"{text(one.behind)}{unit} ({text(one.low)} to {text(one.high)})"


_BESIDE = (  # what is asked of each search, and what each candidate kept, took and cost
    Column("passages", "passages", figures=True, meaning="that one search asks for", priority=1),
    replace(Column.of(RETRIEVAL_MEASURES["prompt_tokens"], digits=0, priority=1), measure=""),
    Column.of(RETRIEVAL_MEASURES["recall"], priority=3),
    Column(
        "lost",
        "lost",
        digits=3,
        percent=True,
        meaning="records needed from memory that were not retrieved",
        priority=2,
    ),
    Column.of(MEMORY_MEASURES["model_calls"], digits=1, priority=3),
    Column(
        "size", "bits, needed", figures=True, meaning="bits stored at the peak, and needed by any memory", priority=4
    ),
    Column.of(MEMORY_MEASURES["search_ms"], priority=5),
    replace(
        Column.of(MEMORY_MEASURES["bytes"], priority=5),
        meaning=f"{MEMORY_MEASURES['bytes'].meaning}, mean over runs",
        measure="",  # its definition says how a table of cells pools it
    ),
    Column.of(measure_of("memory_cost_usd"), priority=6),
    Column.of(measure_of("cost_usd"), priority=6),
)


def ranking_table(choice: Choice) -> Table:
    """Return the candidates from best to worst, with what each kept, took and cost."""
    measure, ranking = choice.measure, choice.ranking
    alike, best = f"same in every {choice.units.task}", ranking.standings[0]
    lines: list[dict[str, Cell]] = []
    for standing in ranking.standings:
        details = choice.details[standing.name]
        held, needed = details["held_bits"], details["needed_bits"]
        lines.append(
            {
                "name": standing.name,
                "tasks": standing.tasks,
                "place": f"{standing.place}, limited" if standing.name in choice.limited else standing.place,
                "value": standing.value,
                "behind": alike
                if standing.equal and standing is not best
                else ""
                if standing.place == "best" or (standing is best and standing.high is None)
                else distance_text(measure, standing),
                "passages": choice.passages.get(standing.name),
                **details,
                "size": None if held is None or needed is None else f"{held:,.0f}, {needed:,.0f}",
            }
        )
    limited = "; limited: runs ended at their limit of actions" if choice.limited else ""
    columns = (
        Column("name", choice.by, role="name"),
        Column("place", "place", meaning=f"compared with the best{limited}"),
        *([Column("tasks", "tasks")] if len(choice.looks) > 1 else []),
        _value_column(choice),
        Column("behind", "behind the best", figures=True, meaning="with an interval; all hold at once"),
        *(column for column in _BESIDE if column.key != measure.id and any(line.get(column.key) for line in lines)),
    )
    return Table("ranking", f"Ranking by {measure.label}", columns, tuple(lines)).reworded(choice.units.tell)


def _value_column(choice: Choice) -> Column:
    """Return the column of the measure, which says what it is the mean of."""
    column, units = replace(Column.of(choice.measure, percent=False), key="value"), choice.units
    if not choice.pooled:
        return column
    asked = choice.measure.of if INSTRUCTION in choice.abilities else f"{units.step}s asked"
    return replace(column, whole=f"{asked}, all {units.task}s together", measure="")


def parts_table(choice: Choice) -> Table | None:
    """Return who is best for each value of the settings that vary beside the candidates; None if none does."""
    lines: list[dict[str, Cell]] = []
    for axis, of in choice.parts.items():
        for value, ranking in of.items():
            best = ranking.standings[0].value
            # So few that not even one that was never right is shown to be worse than the best.
            is_open = best > 0 and any(one.value == 0 for one in ranking.standings if one.name in ranking.leaders)
            few = ranking.tasks < FEWEST_CLUSTERS or is_open
            named = [
                standing
                for standing in ranking.standings
                if (standing.value == best if few else standing.name in ranking.leaders)
            ]
            ends = dict.fromkeys(f"{end:.3f}" for end in (best, named[-1].value))
            lines.append(
                {
                    "axis": f"{axis} = {value}" if axis not in ("workload", "model", "memory", ABILITY) else value,
                    "best": listed([standing.name for standing in named]) + ("; too few to rank" if few else ""),
                    "value": best,
                    "values": " to ".join(ends),
                    "tasks": ranking.tasks,
                }
            )
    if not lines:
        return None
    columns = (
        Column("axis", "where", role="name"),
        Column("best", "best, or may be best", role="text"),
        Column("values", f"their {measure_of(choice.measure.id).label}", figures=True, raw="value"),
        Column("tasks", "tasks"),
    )
    title = "Best by ability" if set(choice.parts) == {ABILITY} else "Best by setting"
    note = f"{INSTRUCTION}: followed, of {CHECKS}" if INSTRUCTION in choice.parts.get(ABILITY, ()) else ""
    return Table("best-by-setting", title, columns, tuple(lines), note).reworded(choice.units.tell)


MOST_DIGITS = 4  # of a difference that is nearly zero
_MONEY, _TIME = "money", "mean search time"


def cost_words(choice: Choice) -> tuple[str, ...]:
    """Return who is cheapest in money, time and size, in sentences."""
    return tuple(_cheapest(choice))


def _cheapest(choice: Choice) -> Iterator[str]:
    """Yield what the best costs, or who costs least of those that may be best.

    The others are left out: what returns nothing is cheap, but nobody would choose it. Who does not say is named.
    """
    if choice.ranking.tasks < FEWEST_CLUSTERS:
        return
    leaders, costs, parts = choice.ranking.leaders, tuple(_costs(choice)), []
    alone = len(leaders) == 1
    for least, what, form, values in costs:
        known = {name: value for name in leaders if (value := values[name]) is not None}
        if known:
            lowest = form.format(min(known.values()))
            first = [name for name, value in known.items() if form.format(value) == lowest]  # who look the same
            silent = [name for name in leaders if name not in known]
            unknown = f", unknown of {listed(silent)}" if silent else ""
            parts.append(f"{what} {lowest}" if alone else f"{least} {what}, {listed(first)} ({lowest}){unknown}")
    if parts:
        head = (
            f"Cost of {leaders[0]}, which alone leads" if alone else f"Cheapest of {listed(leaders)}, which may be best"
        )
        paid = any(what == _MONEY for _, what, _, _ in costs)
        unpaid = "" if paid else "; the models cost nothing (scripted, or without a price)"
        load = " Times depend on the load of the machine." if any(_TIME in part for part in parts) else ""
        yield f"{head}: {'; '.join(parts)}{unpaid}.{load}"


def _costs(choice: Choice) -> Iterator[tuple[str, str, str, Mapping[str, float | None]]]:
    """Yield each kind of cost: what the least of it is called, its name, how a figure is written, and the figures."""
    details = choice.details
    money = {name: (one["cost_usd"] or 0.0) + (one["memory_cost_usd"] or 0.0) for name, one in details.items()}
    if any(money.values()):
        yield "least", _MONEY, "${:,.4f} a run", money
    calls = {name: one["model_calls"] or 0.0 for name, one in details.items()}
    if any(calls.values()):
        yield "fewest", "model calls of its own", "{:,.0f} a run", calls
    yield "lowest", _TIME, "{:,.2f} ms", {name: one["search_ms"] for name, one in details.items()}
    yield "fewest", MEMORY_MEASURES["bytes"].label, "{:,.0f}", {name: one["bytes"] for name, one in details.items()}


def ranking_chart(choice: Choice) -> Chart:
    """Return the candidates' means from best to worst, of accuracy with the interval of each."""
    standings = choice.ranking.standings
    names, values = tuple(standing.name for standing in standings), tuple(standing.value for standing in standings)
    series = Series.of(choice.measure, "bars", names, values)
    if choice.intervals:
        low, high = (tuple(getattr(choice.intervals[name], end) for name in names) for end in ("low", "high"))
        series = replace(series, mark="points", low=low, high=high)
    if choice.pooled:
        series = replace(series, measure="")  # its definition is the mean over runs
    told = listed([f"{standing.name} {_shown(choice.measure, standing.value)}" for standing in standings])
    axis = Axis.of(choice.measure)
    return Chart(
        "ranking-chart",
        f"{choice.measure.label.capitalize()} by {choice.by}",
        f"{told}.",
        Axis(choice.by, "category"),
        replace(axis, title=choice.units.tell(axis.title)),
        (series,),
    )


def systems_section(remarks: Sequence[str]) -> Section | None:
    """Return the section of a page on how each memory was used and what it warned of, below what was found."""
    return Section("How memories were used", tuple(remarks)) if remarks else None


def choice_section(choice: Choice, *, chart: bool = True) -> Section:
    """Return the ranking as a section of a page whose headline has the answer: chart and tables."""
    words = (*cost_words(choice), *(f"Note: {warning}." for warning in choice.warnings))
    items = (*((ranking_chart(choice),) if chart else ()), ranking_table(choice), *filter(None, [parts_table(choice)]))
    return Section(f"Which {choice.by}", words, items, id="choice")
