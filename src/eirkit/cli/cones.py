"""`eirkit lacuna cones`: computes what it costs to rebuild a lost result, over many random graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from eirkit.cli.command import command, option
from eirkit.cli.options import SEEDS_HELP, IntegerList, SeedList
from eirkit.cli.output import Show, document_options
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.table import Cell, Column, Table
from eirkit.tasks.cones import LARGE_CONE, ConePair, ConeSurvey, Growth, matched_pairs, survey_cones
from eirkit.tasks.task import TaskSpec

_WIDEST = 5  # pairs shown of each kind; --json has all


@command(example="eirkit lacuna cones --fan-in 1,2,4 --m 8 --seeds 0:30")
@option(
    "--fan-in",
    "fan_ins",
    type=IntegerList(1),
    default="1,2,4",
    show_default=True,
    group="Task",
    help="Earlier results that each step uses; one row of the table for each value.",
)
@option("--n", type=int, default=64, show_default=True, group="Task", help="Number of steps.")
@option("--m", type=int, default=8, show_default=True, group="Task", help="Dependency window, in steps.")
@option("--lookback", type=int, group="Task", help="How many steps back references reach.  [default: m]")
@option("--from-step", type=int, default=32, show_default=True, help="Average over the cones of this and later steps.")
@option("--seeds", type=SeedList(), default="0:300", show_default=True, help=SEEDS_HELP)
@option("--pairs", "with_pairs", is_flag=True, help="Also list cones of equal size and unequal depth, and the reverse.")
@option("--growth", "with_growth", is_flag=True, help="Also list cone sizes by step.")
@document_options
def cones(
    fan_ins: list[int],
    from_step: int,
    seeds: Sequence[int],
    with_pairs: bool,
    with_growth: bool,
    show: Show,
    **shape: Any,
) -> None:
    """Compute what recovering a lost result costs: one retrieval, or recomputation with and without other results.

    A cone is the missing step and all its ancestors. The spread is the standard deviation of means over three graphs.
    """
    specs = [TaskSpec("stepwise-sum", fan_in=fan_in, **shape) for fan_in in fan_ins]
    surveys = [survey_cones(spec, seeds, from_step) for spec in specs]
    data: dict[str, Any] = {"rows": [_row(survey) for survey in surveys]}
    if with_pairs:
        data["pairs"] = [asdict(pair) for pair in _pairs(surveys)]
    if with_growth:
        data["distribution"] = [{"fan_in": s.spec.fan_in, **_growth(s.distribution())} for s in surveys]
        steps = range(1, shape["n"] + 1)
        data["growth"] = [{"fan_in": s.spec.fan_in, "t": t, **_growth(s.growth(t))} for s in surveys for t in steps]
    section = Section("", (), tuple(_tables(data)))
    then = f"eirkit lacuna probe stepwise-sum --m {shape['m']} --model reference/recoverer"
    show(Document("lacuna-cones", "Cost of recovering a lost result", (_answer(data),), data, (section,), next=then))


def _row(survey: ConeSurvey) -> dict[str, Any]:
    size, naive, depth = survey.size, survey.naive, survey.depth
    return {
        "fan_in": survey.spec.fan_in,
        "cones": survey.cones,
        "atomic": 1,
        "memoized": size.mean,
        "naive": naive.mean,
        "depth": depth.mean,
        "speedup": survey.speedup,
        "memoized_spread": size.spread,
        "naive_spread": naive.spread,
        "depth_spread": depth.spread,
    }


def _growth(growth: Growth) -> dict[str, Any]:
    return {"median": growth.median, "max": growth.largest, f"share_above_{LARGE_CONE}": growth.share_large}


def _pairs(surveys: Sequence[ConeSurvey]) -> list[ConePair]:
    return [*matched_pairs(surveys, "size"), *matched_pairs(surveys, "depth")]


def _answer(data: dict[str, Any]) -> str:
    last = data["rows"][-1]
    kept, naive = _short(last["memoized"]), _short(last["naive"])
    return (
        f"At fan-in {last['fan_in']}, recomputing a lost result takes {kept} reads on average if intermediate results "
        f"are kept and {naive} if not; retrieving it takes 1."
    )


def _tables(data: dict[str, Any]) -> Iterator[Table]:
    columns = (
        Column("fan_in", "fan-in"),
        Column("cones", "cones"),
        Column("atomic", "retrieved", meaning="reads to fetch the result itself"),
        Column("memoized", "results kept", figures=True, meaning="reads to recompute it, each step once"),
        Column("naive", "nothing kept", figures=True, meaning="reads if every use recomputes its inputs"),
        Column("ratio", "ratio", figures=True),
        Column("depth", "depth", figures=True),
    )
    yield Table("cones", "Reads to recover one lost result", columns, tuple(map(_shown, data["rows"])))
    for matched, other in (("size", "depth"), ("depth", "size")) if "pairs" in data else ():
        yield _pair_table(data["pairs"], matched, other)
    for name, title in (("distribution", "Cone size over all steps"), ("growth", "Cone size by step")):
        if name in data:
            keys = {"fan_in": "fan-in", "t": "t", "median": "median", "max": "max"}
            listed = [Column(key, keys.get(key, f"share above {LARGE_CONE}")) for key in data[name][0]]
            yield Table(name, title, tuple(listed), tuple(data[name]))


def _pair_table(pairs: list[dict[str, Any]], matched: str, other: str) -> Table:
    chosen = [pair for pair in pairs if pair["matched"] == matched]
    widest = sorted(chosen, key=lambda pair: pair["low"][other] - pair["high"][other])[:_WIDEST]
    keys = {other: other, "fan_in": "fan-in", "seed": "seed", "t": "t"}
    ends = {"low": "a", "high": "b"}
    rows: list[dict[str, Cell]] = [
        {
            matched: pair["low"][matched],
            **{f"{key}_{letter}": pair[end][key] for end, letter in ends.items() for key in keys},
        }
        for pair in widest
    ]
    columns = [
        Column(f"{key}_{letter}", f"{title} {letter}") for letter in ends.values() for key, title in keys.items()
    ]
    title = f"Equal {matched}, different {other}"
    return Table(f"equal-{matched}", title, (Column(matched, matched), *columns), tuple(rows))


def _short(value: float | None) -> str:
    """Return a mean with one digit; a large one as a power of ten."""
    return "–" if value is None else f"{value:.1f}" if value < 1e5 else f"{Decimal(value):.1e}"


def _shown(row: dict[str, Any]) -> dict[str, Cell]:
    """Return the row for reading: each mean with its spread."""
    means = {name: f"{_short(row[name])} ± {_short(row[f'{name}_spread'])}" for name in ("memoized", "naive", "depth")}
    return {**{key: row[key] for key in ("fan_in", "cones", "atomic")}, **means, "ratio": _short(row["speedup"])}
