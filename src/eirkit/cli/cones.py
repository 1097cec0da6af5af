"""`eirkit lacuna cones`: what it costs to rebuild a lost result, over many random graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import click
from rich.console import Console

from eirkit.cli.options import IntegerList, SeedList
from eirkit.cli.output import emit, json_option, table
from eirkit.tasks.cones import LARGE_CONE, ConePair, ConeSurvey, Growth, matched_pairs, survey_cones
from eirkit.tasks.task import TaskSpec

_WIDEST = 5  # pairs shown of each kind; --json has all


@click.command()
@click.option("--fan-in", "fan_ins", type=IntegerList(1), default="1,2,4", show_default=True, help="References a step.")
@click.option("--n", type=int, default=64, show_default=True, help="Steps.")
@click.option("--m", type=int, default=8, show_default=True, help="Dependency window.")
@click.option("--lookback", type=int, help="How far back references reach; m unless given.")
@click.option("--from-step", type=int, default=32, show_default=True, help="Average over cones of this step and later.")
@click.option("--seeds", type=SeedList(), default="0:300", show_default=True, help="Graphs: 3, 0,4,9 or 0:300.")
@click.option("--pairs", "with_pairs", is_flag=True, help="Cones of equal size and other depth, and the reverse.")
@click.option("--growth", "with_growth", is_flag=True, help="Cone size by step.")
@json_option
def cones(
    fan_ins: list[int],
    from_step: int,
    seeds: Sequence[int],
    with_pairs: bool,
    with_growth: bool,
    as_json: bool,
    **shape: Any,
) -> None:
    """Print mean recovery costs: one retrieval, recomputation with results kept, and without.

    A cone is the missing step and all its ancestors. The spread is the standard deviation of means over three graphs.
    """
    specs = [TaskSpec("stepwise-sum", fan_in=fan_in, **shape) for fan_in in fan_ins]
    surveys = [survey_cones(spec, seeds, from_step) for spec in specs]
    document: dict[str, Any] = {"rows": [_row(survey) for survey in surveys]}
    if with_pairs:
        document["pairs"] = [asdict(pair) for pair in _pairs(surveys)]
    if with_growth:
        document["distribution"] = [{"fan_in": s.spec.fan_in, **_growth(s.distribution())} for s in surveys]
        steps = range(1, shape["n"] + 1)
        document["growth"] = [{"fan_in": s.spec.fan_in, "t": t, **_growth(s.growth(t))} for s in surveys for t in steps]
    emit(document, as_json, lambda console: _render(console, document))


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


def _render(console: Console, document: dict[str, Any]) -> None:
    rows = [_shown(row) for row in document["rows"]]
    console.print(table("Reads to recover one lost result", (*rows[0],), [(*row.values(),) for row in rows]))
    for matched, other in (("size", "depth"), ("depth", "size")) if "pairs" in document else ():
        _render_pairs(console, document["pairs"], matched, other)
    for name, title in (("distribution", "Cone size over all steps"), ("growth", "Cone size by step")):
        if name in document:
            listed = document[name]
            console.print(table(title, (*listed[0],), [(*row.values(),) for row in listed]))


def _render_pairs(console: Console, pairs: list[dict[str, Any]], matched: str, other: str) -> None:
    chosen = [pair for pair in pairs if pair["matched"] == matched]
    widest = sorted(chosen, key=lambda pair: pair["low"][other] - pair["high"][other])[:_WIDEST]
    rows = [
        (pair["low"][matched], *(pair[end][key] for end in ("low", "high") for key in (other, "fan_in", "seed", "t")))
        for pair in widest
    ]
    columns = (matched, *(f"{key} {end}" for end in ("a", "b") for key in (other, "fan-in", "seed", "t")))
    console.print(table(f"Equal {matched}, different {other}", columns, rows))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row for reading: each mean with its spread, large numbers as powers of ten."""

    def short(value: float | None) -> str:
        return "–" if value is None else f"{value:.1f}" if value < 1e5 else f"{Decimal(value):.1e}"

    means = {name: f"{short(row[name])} ± {short(row[f'{name}_spread'])}" for name in ("memoized", "naive", "depth")}
    return {
        "fan-in": row["fan_in"],
        "cones": row["cones"],
        "retrieved": row["atomic"],
        "results kept": means["memoized"],
        "nothing kept": means["naive"],
        "ratio": short(row["speedup"]),
        "depth": means["depth"],
    }
