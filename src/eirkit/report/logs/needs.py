"""Sections of an analysis page: peak demand, goals, repeated reads, clipped views, signatures, compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict

from eirkit.records.analysis import AnalysisSummary
from eirkit.report.document import Axis, Chart, Section, Series, facts
from eirkit.report.logs.analyzed import Analyzed, RunOutcome
from eirkit.report.logs.break_sentences import break_amounts, break_words, breaks_table, instruction_words
from eirkit.report.logs.sentences import GOALS, goal_is_known, repeated_table, signature_counts
from eirkit.report.table import Column, Table, counted, number, share
from eirkit.vestige.measures import LOG_MEASURES, READING_MEASURES

OUTCOMES = {False: "succeeded", True: "failed", None: "outcome unknown"}


def demand_section(found: Analyzed) -> Section | None:
    """Return the section on the distribution of peak demand."""
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


def demand_chart(runs: Sequence[RunOutcome], unit: str) -> Chart:
    """Return a histogram of demand by outcome, in bins that double in width."""
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
    axes = (
        Axis(
            f"{LOG_MEASURES['peak_demand_tokens' if unit == 'tokens' else 'later_used_peak'].label}, {unit}", "category"
        ),
        Axis("runs", low=0.0),
    )
    return Chart("demand", "Peak demand of runs", told, *axes, tuple(series), stacked=True)


def _bin(value: float) -> int:
    """Return the bin of a value: 0 for zero, else the number of its power of two."""
    return int(value).bit_length()


def _bin_name(place: int) -> str:
    if place < 2:
        return str(place)
    low = 1 << (place - 1)
    return f"{low >> 20}M+" if low >= 1 << 20 else f"{low >> 10}k+" if low >= 1 << 10 else f"{low}+"


def _quantiles(found: Analyzed) -> Table:
    columns = (
        Column("unit", "unit"),
        Column("runs", "runs", meaning="in tokens: of three tool turns or more"),
        *(Column(f"peak_{p}", f"{p[1:]}%", 0) for p in ("p50", "p90", "p99")),
        *(Column(f"files_{p}", f"things, {p[1:]}%", 1) for p in ("p50", "p90", "p99")),
    )
    rows = tuple({"unit": unit, **asdict(figures)} for unit, figures in found.summary.later_used.items())
    note = "Held at the peak and used later, whatever for: the quantiles that runs without a goal have too."
    return Table("used-later", "Held for later use", columns, rows, note)


def goal_section(found: Analyzed) -> Section | None:
    """Return the section on where goals come from and how many runs touched them."""
    summary = found.summary
    if summary.goal_access is None or not goal_is_known(summary):
        return None
    peak = LOG_MEASURES["peak_demand_tokens"].label
    rows = [
        (LOG_MEASURES["goal_accessed"].label, f"{summary.covered_runs:,} runs ({share(summary.goal_access)})"),
        (f"mean {peak}, all runs", f"{number(summary.mean_peak_tokens)} tokens"),
        (f"mean {peak}, runs that touched a goal file", f"{number(summary.mean_peak_covered_tokens)} tokens"),
        (
            f"mean {peak} if all of the environment is visible",
            f"{number(summary.mean_peak_environment_tokens)} tokens",
        ),
        *((f"goal from {GOALS.get(source, source)}", counted(n, "run")) for source, n in summary.goal_sources.items()),
    ]
    table = facts("goal", "Goal access", rows)
    words = "Without a touched goal file demand is 0 in these means: missing coverage, which is not lack of need."
    return Section("Goals, and who touched them", (words,), (table,))


CLIPPING = (
    "clipped_views",
    "clipped_goal_views",
    "clipped_modified_views",
    "lines_recovered",
    "lines_never_recovered",
    "lines_ambiguous",
)


def reading_section(summary: AnalysisSummary) -> Section | None:
    """Return the section on reads that were repeated or never used."""
    if not summary.read_tokens:
        return None
    known = bool(summary.covered_runs)
    again, vain = READING_MEASURES["repeat_share"], READING_MEASURES["dead_read_share"]
    wasted = f"{share(summary.dead_read_share)} (of {vain.of})" if known else "not known"
    told = (
        f"{number(summary.read_tokens)} tokens of files were read; {again.label}: "
        f"{share(summary.repeat_share)}; {vain.label}: {wasted}."
    )
    kinds = {"read_tokens": summary.read_tokens, "repeat_tokens": summary.repeat_tokens}
    kinds |= {"dead_read_tokens": summary.dead_read_covered_tokens} if known else {}
    names = tuple(READING_MEASURES[key].label for key in kinds)
    values = tuple(map(float, kinds.values()))
    axes = Axis("reads", "category"), Axis("tokens", low=0.0)
    chart = Chart("reads", "Tokens of files", told, *axes, (Series("tokens", "bars", names, values),))
    table = repeated_table(summary.repeated_files)
    return Section(READING_MEASURES.title, (), (chart, table) if table.rows else (chart,))


def clipping_section(summary: AnalysisSummary) -> Section | None:
    """Return the section on what clipped views hid, and whether it was seen later."""
    if not summary.clipped_views:
        return None
    shown = [LOG_MEASURES[key] for key in CLIPPING]
    rows = tuple(
        {"figure": measure.label, "count": getattr(summary, measure.id), "meaning": measure.meaning}
        for measure in shown
    )
    lost, seen = summary.lines_never_recovered, summary.lines_recovered
    words = (
        f"{counted(summary.clipped_views, 'view')} were clipped; {lost:,} of {lost + seen:,} lines that the goal "
        "changes and a clipped view left out were never shown again."
    )
    columns = (Column("figure", "figure"), Column("count", "count"), Column("meaning", "meaning"))
    table = Table("clipping", "Clipped views", columns, rows)
    return Section("Clipped views", (words,), (table,))


def signatures_section(summary: AnalysisSummary) -> Section | None:
    """Return the section on how often each anomaly signature occurs."""
    found = {label: count for label, count in signature_counts(summary) if count}
    if not found:
        return None
    runs = summary.runs
    told = ", ".join(f"{name} {count:,}" for name, count in found.items())
    series = Series("count", "bars", tuple(found), tuple(float(count) for count in found.values()))
    axes = Axis("signature", "category"), Axis("count", low=0.0)
    chart = Chart("signatures", f"Signatures of trouble in {counted(runs, 'run')}", f"{told}.", *axes, (series,))
    return Section("Signatures of trouble", (), (chart,))


def breaks_section(summary: AnalysisSummary) -> Section | None:
    """Return the section on what compactions and clears dropped that may have been needed."""
    breaks = summary.breaks
    if not breaks.compactions + breaks.clears:
        return None
    both = (("Rules of the user", summary.instructions), ("Open to-dos of the agent", summary.todos))
    told = [(name, instruction_words(counts)) for name, counts in both]
    words = (break_words(breaks), *(f"{name} at these: {fates}." for name, fates in told if fates))
    if breaks.unmeasured == breaks.compactions + breaks.clears:
        return Section("Compactions and clears", words)
    amounts = ", ".join(f"{measure.label} {number(tokens)}" for measure, tokens in break_amounts(breaks))
    fates = f"In tokens of files: {amounts}."
    return Section("Compactions and clears", (*words, fates), (breaks_table(summary.costliest_breaks),))
