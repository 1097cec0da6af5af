"""What recorded runs needed: the distribution of peak demand, and how goals were known and reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eirkit.report.analysed import Analysed, Outcome
from eirkit.report.chart import Axis, Chart, Series
from eirkit.report.page import Section
from eirkit.report.table import Column, Table
from eirkit.report.vestige_words import goal_is_known
from eirkit.report.wording import counted, number, share

GOALS = {
    "gold": "the reference patch",
    "log": "the log itself",
    "own-edits": "none given: files that the run itself edited",
}
OUTCOMES = {False: "succeeded", True: "failed", None: "outcome unknown"}


def demand_section(found: Analysed) -> Section | None:
    """Return the distribution of what runs needed at their peak."""
    in_tokens = [run for run in found.runs if run.peak is not None and run.covered]
    runs = in_tokens or [run for run in found.runs if run.unit == "entities"]
    if not runs:
        return None
    unit = "tokens" if in_tokens else runs[0].unit
    words = (
        "Peak demand is the largest amount that was live at any cut: seen before it, unchanged, and used after it by "
        "work that leads to the goal."
        if in_tokens
        else "These runs have no goal files, so whatever a later step used counts as needed."
    )
    uncovered = sum(1 for run in found.runs if run.peak is not None and not run.covered)
    left_out = f"{counted(uncovered, 'run')} that touched no goal file {'is' if uncovered == 1 else 'are'} not drawn."
    said = (words, left_out) if uncovered else (words,)
    return Section("What had to be kept", said, (demand_chart(runs, unit), _quantiles(found)))


def demand_chart(runs: Sequence[Outcome], unit: str) -> Chart:
    """Return how many runs needed how much, in bins that double, by outcome."""
    needed = [(run, run.later_used if run.peak is None else run.peak) for run in runs]
    places = {_bin(value) for _, value in needed}
    some = sorted(places - {0})
    bins = [*({0} & places), *(range(some[0], some[-1] + 1) if some else ())]
    names = tuple(_bin_name(place) for place in bins)
    present = [outcome for outcome in OUTCOMES if any(run.failed is outcome for run, _ in needed)]
    series = []
    for outcome in present:
        tally = Counter(_bin(value) for run, value in needed if run.failed is outcome)
        series.append(Series(OUTCOMES[outcome], "bars", names, tuple(float(tally[place]) for place in bins)))
    values = sorted(value for _, value in needed)
    middle = values[len(values) // 2]
    half = f"Half of {counted(len(values), 'run')} needed {middle:,.0f} {unit} or more"
    told = f"{half}; the most any needed is {values[-1]:,.0f}."
    axes = Axis(f"peak, {unit}", "category"), Axis("runs", low=0.0)
    return Chart("demand", "Peak demand of runs", told, *axes, tuple(series), stacked=True)


def _bin(value: float) -> int:
    """Return 0 for nothing, else which doubling a value lies in."""
    return int(value).bit_length()


def _bin_name(place: int) -> str:
    if place == 0:
        return "0"
    low = 1 << (place - 1)
    return "1" if low == 1 else f"{_short(low)}+"


def _short(value: int) -> str:
    if value >= 1 << 20:
        return f"{value >> 20}M"
    return f"{value >> 10}k" if value >= 1 << 10 else str(value)


def _quantiles(found: Analysed) -> Table:
    columns = (
        Column("unit", "unit"),
        Column("runs", "runs", meaning="in tokens: of three tool turns or more"),
        *(Column(f"peak_{p}", f"{p[1:]}%", 0) for p in ("p50", "p90", "p99")),
        *(Column(f"files_{p}", f"things, {p[1:]}%", 1) for p in ("p50", "p90", "p99")),
    )
    rows = tuple({"unit": unit, **figures} for unit, figures in found.document["later_used"].items())
    note = "Held at the peak and used later, whatever for: the quantiles that runs without a goal have too."
    return Table("used-later", "Held for later use", columns, rows, note)


def goal_section(found: Analysed) -> Section | None:
    """Return how the goal was known, and how many runs touched it."""
    document = found.document
    if document["goal_access"] is None or not goal_is_known(document):
        return None
    rows = [
        ("runs that touched a goal file", f"{document['covered_runs']:,} ({share(document['goal_access'])})"),
        ("mean peak, all runs", f"{number(document['mean_peak_tokens'])} tokens"),
        ("mean peak, where the goal was touched", f"{number(document['mean_peak_covered_tokens'])} tokens"),
        (
            "mean peak if all of the environment is visible",
            f"{number(document['mean_peak_environment_tokens'])} tokens",
        ),
        *(
            (f"goal from {GOALS.get(source, source)}", counted(n, "run"))
            for source, n in document["goal_sources"].items()
        ),
    ]
    columns = (Column("figure", "figure"), Column("value", "value"))
    table = Table("goal", "Goal access", columns, tuple({"figure": name, "value": value} for name, value in rows))
    words = "Without a touched goal file demand is 0 in these means: missing coverage, which is not lack of need."
    return Section("Goals, and who reached them", (words,), (table,))
