"""Sentences about a comparison: which side is better, by how much, and whether chance could explain it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from eirkit.findings.measures import FATE_MEASURES
from eirkit.measures import MeasureGroup
from eirkit.show.comparison.measures import group_of, measure_of
from eirkit.show.comparison.pairs import Comparison, Difference
from eirkit.show.phrases import counted, number, points, share

USED = FATE_MEASURES["used"]
DIGITS: Mapping[str, int] = {"milliseconds": 2, "dollars": 4}


def sides_of(found: Comparison) -> tuple[str, str]:
    """Return the names of both sides: the value of the only setting that differs, else the folder names."""
    if len(found.contrast) == 1:
        (only,) = found.contrast
        named = only.name in ("memory", "model", "workload")  # their values need no axis name
        return f"{only.a}" if named else f"{only.name} = {only.a}", f"{only.b}" if named else f"{only.name} = {only.b}"
    return found.a, found.b


def verdict_of(found: Comparison) -> str:
    """Return one sentence: the difference in the first measure with its interval, and over how many pairs."""
    first = found.overall[0]
    a, b = sides_of(found)
    over = f"over {counted(first.pairs, 'pair')} of {found.unit} of {counted(first.clusters, 'task')}"
    both = f"{shown(first, first.b)} against {shown(first, first.a)}"
    amount, said = shown_difference(first), measure_of(first.measure).label
    if first.low is None or first.high is None:
        return f"{b} − {a} in {said}: {amount} ({both}), of a single task, so no interval is known."
    if first.low == first.high == 0:
        return f"{b} and {a} have the same {said} in every pair: {shown(first, first.a)}, {over}."
    ends = f"95% interval {shown_difference(first, first.low, bare=True)} to {shown_difference(first, first.high)}"
    if first.low <= 0 <= first.high:
        return f"{b} and {a} cannot be told apart in {said}: {amount} ({ends}), {both}, {over}."
    return f"{b} {_comparative(first)} {a} in {said}: {amount} ({ends}), {both}, {over}."


def _comparative(one: Difference) -> str:
    better = measure_of(one.measure).better
    if better is None:
        return "is above" if one.difference > 0 else "is below"
    return "is better than" if (one.difference > 0) == (better == "more") else "is worse than"


def fates_sentence(found: Comparison) -> str:
    """Return the share of needed records that were used, and the most frequent other fate; empty without fates."""
    fates = [one for one in found.overall if group_of(one.measure) is FATE_MEASURES]
    used = next((one for one in fates if one.measure == USED.id), None)
    if used is None:
        return ""
    a, b = sides_of(found)
    first = f"{share(used.b)} with {b}{_most([(one.measure, one.b) for one in fates])}"
    second = f"{share(used.a)} with {a}{_most([(one.measure, one.a) for one in fates])}"
    return f"Of {USED.of}, {USED.label}: {first}, {second}."


def _most(fates: Iterable[tuple[str, float]]) -> str:
    """Return the most frequent other fate in brackets; empty if there was none."""
    others = [(value, name) for name, value in fates if name != USED.id and value > 0]
    if not others:
        return ""
    value, name = max(others)
    return f" ({measure_of(name).label}: {share(value)})"


def grouped(differences: Sequence[Difference]) -> Iterator[tuple[MeasureGroup, list[Difference]]]:
    """Yield the differences grouped by measure group."""
    for _, rows in groupby(differences, key=lambda one: group_of(one.measure).id):
        together = list(rows)
        yield group_of(together[0].measure), together


def shown(one: Difference, value: float, *, exact: bool = False) -> str:
    """Return a value of a measure, formatted for readers.

    Args:
        exact: print shares with one decimal, for a table.
    """
    unit = measure_of(one.measure).unit
    if unit == "share":
        return f"{value:.1%}" if exact else share(value)
    return number(value, DIGITS.get(unit, 1)).replace("-", "−")


def shown_difference(one: Difference, value: float | None = None, *, bare: bool = False) -> str:
    """Return a difference (the mean difference by default) with its sign; shares are in percentage points.

    Args:
        bare: omit the unit, because the table heading has it.
    """
    value = one.difference if value is None else value
    if measure_of(one.measure).unit == "share":
        return points(value) if bare else f"{points(value)} points"
    text = shown(one, value)
    return f"+{text}" if value > 0 else text
