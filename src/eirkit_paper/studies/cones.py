"""Studies of recovery cones without agents: cone table, growth, matched pairs, cost and geometry.

The paper's cone is what a result depends on ("its dependencies … form its recovery cone"), without the result itself;
ours counts it, because reading it again is part of recovering it. Here one node per cone is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.findings.statistics import bootstrap
from eirkit.lacuna.tasks.cones import ConeArrays, measure_cones
from eirkit.lacuna.tasks.workload import References, draw_references
from eirkit.records.evidence import Interval
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.report.table import Cell, Table
from eirkit.seeds import below, words
from eirkit_paper.published import digits_of, value_of, values_of
from eirkit_paper.studies.comparison import THREE, compare, exact, in_section, listed, sectioned
from eirkit_paper.study import Findings, Setting, StudyRow
from eirkit_paper.verdicts import DIFFERS

SEEDS = 9000  # graphs of each type; a published mean is over three
N, M, FROM_STEP = 64, 8, 32
TYPES = {1: "chain", 2: "balanced", 4: "bushy"}
DRAWN = 3  # graphs of each type in figures, as many as the paper has

# The cone table: fan-in → mean size, naive cost, depth; and the ratio printed as speed-up.
_ROWS = {fan_in: name.capitalize() for fan_in, name in TYPES.items()}
_COLUMNS = ("Memoized recompute", "Naive recompute", "Depth")
TABLE = {fan_in: values_of("tab:rq3-cone", row, *_COLUMNS) for fan_in, row in _ROWS.items()}
# Digits printed behind the point; before it where negative.
DIGITS = {fan_in: tuple(digits_of("tab:rq3-cone", row, one) for one in _COLUMNS) for fan_in, row in _ROWS.items()}
_SPEEDUP = ("tab:rq3-cone", "Memoization speedup")
SPEEDUP = {
    fan_in: (value_of(_SPEEDUP[0], row, _SPEEDUP[1]), digits_of(_SPEEDUP[0], row, _SPEEDUP[1]))
    for fan_in, row in _ROWS.items()
}
CONES = value_of("fig:results-recovery", "Cones a graph type", "")
# The growth paragraph, over all steps of three graphs: fan-in → largest size, median size, share of sizes above 30.
_GROWTH = "sec:results-rq2"
GROWTH: dict[int, tuple[float, float, float | None]] = {
    1: (*values_of(_GROWTH, "Chain", "largest cone", "median cone"), None),  # type: ignore[dict-item]
    4: values_of(_GROWTH, "Bushy", "largest cone", "median cone", "share above 30"),  # type: ignore[dict-item]
}
# (size, depth) of the four cones that make the published pairs.
_PAIR = {row: partial(value_of, _GROWTH, row) for row in ("Matched size", "Matched depth")}
_SIZE, _LESS, _MORE = (int(_PAIR["Matched size"](column)) for column in ("size", "depths", "depth of the other"))
_DEPTH, _OTHER = (int(_PAIR["Matched depth"](column)) for column in ("depth", "size of the other"))
PAIRS = {
    f"equal size {_SIZE}": ((_SIZE, _LESS), (_SIZE, _MORE)),
    f"equal depth {_DEPTH}": ((_DEPTH, _DEPTH), (_OTHER, _DEPTH)),
}
CONVENTION = (
    "Reading: a cone is what the missing result depends on, without the result itself (section 3.2: its dependencies "
    "“form its recovery cone”; the table's caption: “visits each required ancestor once”; the largest bushy cone in 64 "
    "steps is 63). Steps count from 1, so that t ≥ 32 is 33 steps and three graphs give the published 99 cones. "
    "`eirkit lacuna cones` counts the result too: one more in size, naive cost and depth."
)

Figures = NDArray[np.float64]  # one number a graph and cone
Measures = tuple[Figures, Figures, Figures]  # size, naive cost, depth
Reading = Callable[[int, Sequence[int]], Measures]  # fan-in, seeds


@cache
def _cones(fan_in: int, seeds: Sequence[int], reach: int = M) -> ConeArrays:
    return measure_cones(draw_references(seeds, N, reach, fan_in))


def cones(fan_in: int, seeds: Sequence[int], reach: int = M) -> ConeArrays:
    """Return all cones of many graphs; those of one call serve the next."""
    return _cones(fan_in, seeds if isinstance(seeds, range) else tuple(seeds), reach)


def of_steps(measured: ConeArrays, first: int = FROM_STEP, last: int = N, target: int = 0) -> Measures:
    """Return the measures of some steps' cones; `target` is 1 where the result itself counts."""
    chosen = slice(first - 1, last)
    size, naive, depth = measured.size[:, chosen], measured.naive[:, chosen], measured.depth[:, chosen]
    return tuple(values.astype(float) - 1 + target for values in (size, naive, depth))  # type: ignore[return-value]


def in_threes(figures: Figures) -> Figures:
    """Put the graphs in consecutive threes: shape (threes, cones of three graphs)."""
    whole = len(figures) // THREE * THREE
    return figures[:whole].reshape(whole // THREE, -1)


def draw_with_replacement(fan_in: int, seeds: Sequence[int]) -> References:
    """Return references that may coincide, each kept once."""
    steps = np.arange(1, N + 1)
    available = np.minimum(steps - 1, M)
    drawn = below(words(seeds, N * fan_in, "with replacement").reshape(-1, N, fan_in), available[:, None])
    refs = np.sort(np.where(available[:, None] > 0, drawn + np.maximum(1, steps - M)[:, None], 0), axis=2)
    refs[:, :, 1:][refs[:, :, 1:] == refs[:, :, :-1]] = 0
    return refs.astype(np.int32)


def published_reading(fan_in: int, seeds: Sequence[int]) -> Measures:
    return of_steps(cones(fan_in, seeds))


READINGS: dict[str, Reading] = {
    "without the target, steps 32 … 64": published_reading,
    "target counted": lambda fan_in, seeds: of_steps(cones(fan_in, seeds), target=1),
    "target counted, steps 31 … 63": lambda fan_in, seeds: of_steps(cones(fan_in, seeds), 31, 63, 1),
    "references drawn with replacement": lambda f, seeds: of_steps(measure_cones(draw_with_replacement(f, seeds))),
    "lookback 7": lambda fan_in, seeds: of_steps(cones(fan_in, seeds, 7)),
    "lookback 9": lambda fan_in, seeds: of_steps(cones(fan_in, seeds, 9)),
}


def table_rows(reading: Reading, seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield the nine means of the cone table under one reading."""
    for fan_in, published in TABLE.items():
        measures = zip(("size", "naive cost", "depth"), published, reading(fan_in, seeds), DIGITS[fan_in], strict=True)
        for name, figure, values, digits in measures:
            yield compare(f"{TYPES[fan_in]}: {name}", figure, in_threes(values).mean(axis=1), digits=digits)


def recovery_cones(setting: Setting) -> Findings:
    """Compare the cone table, and say how it stands under other readings of its definition."""
    seeds = _seeds(setting)
    rows = list(table_rows(published_reading, seeds))
    for fan_in, (speedup, digits) in SPEEDUP.items():
        size, naive, _ = published_reading(fan_in, seeds)
        ratios = in_threes(naive).mean(axis=1) / in_threes(size).mean(axis=1)
        rows.append(compare(f"{TYPES[fan_in]}: speed-up", speedup, ratios, digits=digits))
    counted = THREE * published_reading(1, range(1))[0].shape[1]
    rows.append(exact("cones a graph type", CONES, counted, digits=0))
    section = in_section("Mean node evaluations, m = 8, n = 64, t ≥ 32", rows)
    return Findings(section, (_readings(seeds),), words=(CONVENTION, _range(seeds)))


def _readings(seeds: Sequence[int]) -> Table:
    """Return how the nine means lie under every reading: a convention is chosen by the text, and this is its check."""
    lines: list[dict[str, Cell]] = []
    for name, reading in READINGS.items():
        found = list(table_rows(reading, seeds))
        bushy = next(row for row in found if row.label == "bushy: size")
        outside = [row.label for row in found if row.verdict == DIFFERS]
        lines.append(
            {
                "reading": name,
                "means that differ": len(outside),
                "which": ", ".join(outside) or "–",
                "bushy size (published 45.3)": bushy.ours,
            }
        )
    return listed("readings", "The nine means under other readings of “the recovery cone of deep nodes”", lines)


def _range(seeds: Sequence[int]) -> str:
    return f"The range is that of {len(seeds) // THREE:,} means over three graphs."


def _seeds(setting: Setting) -> Sequence[int]:
    return range(SEEDS) if setting.seeds is None else setting.seeds


def cone_growth(setting: Setting) -> Findings:
    """Compare how cones grow over the trajectory, and the matched pairs."""
    seeds = _seeds(setting)
    rows = []
    for fan_in, (largest, middle, share) in GROWTH.items():
        # A step without references has nothing to recover; the paper's geometry shows "every non-leaf node".
        sizes = in_threes(of_steps(cones(fan_in, seeds), 2)[0])
        rows.append(compare(f"{TYPES[fan_in]}: largest size", largest, sizes.max(axis=1), digits=0))
        rows.append(compare(f"{TYPES[fan_in]}: median size", middle, np.median(sizes, axis=1), digits=0))
        if share is not None:
            rows.append(compare(f"{TYPES[fan_in]}: share above 30", share, (sizes > 30).mean(axis=1), digits=2))
    pairs = [exact(f"pair of {name}: cones found", 2, _found(sites, seeds), digits=0) for name, sites in PAIRS.items()]
    sections = {"Cone sizes of all steps with references": rows, "Matched pairs among all graphs": pairs}
    return Findings(sectioned(sections), figures=(_growth_figure(seeds),), words=(CONVENTION, _range(seeds)))


def _found(sites: tuple[tuple[int, int], ...], seeds: Sequence[int]) -> int:
    measured = [of_steps(cones(fan_in, seeds), 2) for fan_in in TYPES]
    return sum(any(bool(((s == size) & (d == depth)).any()) for s, _, d in measured) for size, depth in sites)


def _growth_figure(seeds: Sequence[int]) -> Figure:
    steps = tuple(range(2, N + 1))
    medians = {}
    for fan_in, name in TYPES.items():
        sizes = of_steps(cones(fan_in, seeds), 2)[0]
        low, middle, high = (tuple(map(float, np.quantile(sizes, q, axis=0))) for q in (0.25, 0.5, 0.75))
        medians[name] = Series(name, "line", steps, middle, low, high)
    said = ", ".join(f"{name} {series.y[18]:.0f} → {series.y[-1]:.0f}" for name, series in medians.items())
    chart = Chart(
        "cone-growth",
        "Cone size by step",
        f"Median cone size at step 20 and at step 64: {said}. Bands are interquartile ranges over graphs.",
        Axis("step"),
        Axis("nodes to evaluate", low=0),
        tuple(medians.values()),
    )
    return Figure("cone-growth", "Cones grow with the trajectory", (chart,))


def recovery_cost(setting: Setting) -> Findings:
    """Draw what a recovery costs with and without reuse, one-read retrieval beside it."""
    seeds = _seeds(setting)
    rows = []
    for fan_in, published in TABLE.items():
        size, naive, _ = published_reading(fan_in, seeds)
        for name, stated, values, digits in (
            ("with reuse", published[0], size, DIGITS[fan_in][0]),
            ("without reuse", published[1], naive, DIGITS[fan_in][1]),
        ):
            rows.append(compare(f"{TYPES[fan_in]}: {name}", stated, in_threes(values).mean(axis=1), digits=digits))
    figure = Figure("recovery-cost", "Reuse avoids repeated work", (_cost_chart(seeds),))
    section = in_section("Mean node evaluations, t ≥ 32", rows)
    return Findings(section, figures=(figure,), words=(CONVENTION, _range(seeds)))


def _cost_chart(seeds: Sequence[int]) -> Chart:
    names = tuple(TYPES.values())
    measured = {fan_in: published_reading(fan_in, seeds[:DRAWN]) for fan_in in TYPES}  # the paper's 99 cones a type
    kept = _bars("with reuse", [measured[fan_in][0] for fan_in in TYPES], names)
    anew = _bars("without reuse", [measured[fan_in][1] for fan_in in TYPES], names)
    said = "; ".join(f"{name} {a:,.0f} and {b:,.0f}" for name, a, b in zip(names, kept.y, anew.y, strict=True))
    return Chart(
        "recovery-cost",
        "Node evaluations to recover one result",
        f"Mean evaluations with and without reuse over 99 cones a type: {said}. Retrieval is one read.",
        Axis("graph", "category"),
        Axis("node evaluations", "log", low=0.5),
        (kept, anew, Series("retrieval", "rule", (names[0],), (1.0,), dashed=True)),
        "intervals: 95%, bootstrap of whole graphs",
    )


def _bars(name: str, measured: Sequence[Figures], names: tuple[str, ...]) -> Series:
    bounds = [_interval(values) for values in measured]
    means = tuple(float(values.mean()) for values in measured)
    return Series(name, "bars", names, means, tuple(b.low for b in bounds), tuple(b.high for b in bounds))


def _interval(values: Figures) -> Interval:
    return bootstrap(lambda chosen: float(values[list(chosen)].mean()), len(values))


def recovery_geometry(setting: Setting) -> Findings:
    """Draw the extra work without reuse, and size against depth of every cone with references."""
    seeds = _seeds(setting)
    rows = []
    for fan_in, (speedup, digits) in SPEEDUP.items():
        size, naive, _ = published_reading(fan_in, seeds)
        ratios = in_threes(naive).mean(axis=1) / in_threes(size).mean(axis=1)
        rows.append(compare(f"{TYPES[fan_in]}: work without reuse / with", speedup, ratios, digits=digits))
    size, _, depth = of_steps(cones(1, seeds), 2)
    rows.append(exact("chain: cones on the diagonal", 1.0, float((size == depth).mean()), digits=3))
    panels = (_ratio_chart(rows[:3]), _geometry_chart(seeds[:DRAWN]))
    figure = Figure("recovery-geometry", "Dependency geometry decides work and latency", panels)
    return Findings(in_section("Size, depth and reuse", rows), figures=(figure,), words=(CONVENTION, _range(seeds)))


def _ratio_chart(rows: Sequence[StudyRow]) -> Chart:
    names = tuple(TYPES.values())
    ours, low, high = (tuple(getattr(row, part) for row in rows) for part in ("ours", "low", "high"))
    said = ", ".join(f"{name} {value:,.0f}" for name, value in zip(names, ours, strict=True))
    return Chart(
        "work-without-reuse",
        "Work without reuse over work with it",
        f"Naive recomputation over the cone's size: {said}.",
        Axis("graph", "category"),
        Axis("times", "log", low=0.5),
        (
            Series("ours", "bars", names, ours, low, high),
            Series("published", "points", names, tuple(row.published for row in rows), dashed=True),
        ),
    )


def _geometry_chart(seeds: Sequence[int]) -> Chart:
    series = []
    for fan_in, name in TYPES.items():
        size, _, depth = of_steps(cones(fan_in, seeds), 2)
        places = sorted({(float(d), float(s)) for d, s in zip(depth.ravel(), size.ravel(), strict=True)})
        series.append(Series(name, "points", tuple(d for d, _ in places), tuple(s for _, s in places)))
    tops = ", ".join(f"{one.name} {max(one.y):.0f} at depth {one.x[one.y.index(max(one.y))]:.0f}" for one in series)  # type: ignore[type-var]
    return Chart(
        "size-and-depth",
        "Size and depth of every cone with references",
        f"Chains lie on the diagonal, the others above it; the largest cones: {tops}.",
        Axis("depth: longest chain"),
        Axis("size: nodes to evaluate", low=0),
        tuple(series),
        f"{DRAWN} graphs of each type",
    )
