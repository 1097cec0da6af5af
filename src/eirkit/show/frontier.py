"""Shows what memories of a contract can reach: how often each size can be right, and how many bits an error costs."""

from __future__ import annotations

import math
from shlex import quote
from typing import Any

from eirkit.eir.lossy import Frontier, FrontierPoint, StateInterval, capacities
from eirkit.show.document import Axis, Chart, Document, Section, Series, facts
from eirkit.show.table import Cell, Column, Table

EXACT = "exact: every partition of the histories into as many groups as there are states"
BOUNDED = "certified: an encoder from below; covering and rate–distortion duals over all decoders from above"


def frontier_document(
    contract: str, found: Frontier, error: float, capacity: float | None, groups: bool
) -> tuple[Document, Chart]:
    """Return the document about a contract, and its chart; `groups` adds the codes of the encoder of that capacity."""
    points = [found.point(states) for states in capacities(found.atoms)]
    allowed, runs = found.states_for(error), found.states_for_run(error)
    data = {"contract": contract, **_data(found, points, error, allowed, runs)}
    chart = _chart(contract, points)
    items: list[Chart | Table] = [*([chart] if len(points) > 2 else []), _table(points)]
    if capacity is not None:
        data["capacity"] = {"bits": capacity, **_point(found.point(_states(capacity)))}
    if groups and capacity is not None:
        encoder = found.encoder(_states(capacity))
        members = [(code, str(x)) for code, x in zip(encoder.codes, found.table.histories, strict=True)]
        data["encoder"] = {
            "codes": [{"code": code, "history": name} for code, name in members],
            "answers": [
                {str(u): str(encoder.decode(code, u)) for u in found.table.asked} for code in range(encoder.states)
            ],
        }
        items.append(_groups(sorted(members, key=lambda pair: pair[0])))
    how = facts("method", "How it was computed", _method(found, points))
    name = quote(contract)
    then = f"eirkit eir count {name} --groups" if capacity else f"eirkit eir frontier {name} --capacity 1 --groups"
    title = f"How right a memory can be: {contract}"
    sections = (Section("", (), (*items, how)),)
    return Document("eir-frontier", title, _answer(data), data, sections, next=then), chart


def _states(bits: float) -> int:
    """Return the whole states that fit into some bits; rounding must not lose the last one of log2(3) bits."""
    return int(2 ** min(bits, 60.0) * (1 + 1e-12))


def _data(
    found: Frontier, points: list[FrontierPoint], error: float, allowed: StateInterval, runs: int
) -> dict[str, Any]:
    return {
        "form": "process" if found.count.futures is None else "finite",
        "histories": len(found.table.histories),
        "questions": len(found.table.asked),
        "classes": found.count.classes,
        "bits": found.count.bits,
        "error": error,
        "response": {
            "states_lower": allowed.lower,
            "states_upper": allowed.upper,
            "bits_lower": math.log2(allowed.lower),
            "bits_upper": math.log2(allowed.upper),
        },
        "run": {"states": runs, "bits": math.log2(runs)},
        "exact": all(point.exact for point in points),
        "method": EXACT if found.solved else BOUNDED,
        "rows": [_point(point) for point in points],
    }


def _point(point: FrontierPoint) -> dict[str, Any]:
    return {
        "states": point.states,
        "bits": point.bits,
        "lower": point.lower,
        "upper": point.upper,
        "exact": point.exact,
        "run": point.run,
    }


def _answer(data: dict[str, Any]) -> tuple[str, ...]:
    said = []
    if "capacity" in data:
        at = data["capacity"]
        share = _between(at["lower"], at["upper"])
        said.append(
            f"With {at['bits']:g} bits the best memory is right in {share} of the responses, "
            f"and throughout in {at['run']:.3f} of the runs."
        )
    response, run = data["response"], data["run"]
    said.append(
        f"At most {data['error']:g} wrong responses take {_between(response['bits_lower'], response['bits_upper'])} "
        f"bits; at most {data['error']:g} wrong runs take {run['bits']:.3f}. No error takes {data['bits']:.3f}."
    )
    return tuple(said)


def _between(low: float, high: float) -> str:
    first, last = f"{low:.3f}", f"{high:.3f}"
    return first if first == last else f"{first} to {last}"


def _chart(contract: str, points: list[FrontierPoint]) -> Chart:
    bits = tuple(point.bits for point in points)
    series = (
        Series("no memory exceeds", "line", bits, tuple(point.upper for point in points), dashed=True),
        Series("an encoder reaches", "line", bits, tuple(point.lower for point in points)),
    )
    axes = Axis("bits held"), Axis("right responses", low=0.0, high=1.0, percent=True)
    said = f"{points[0].lower:.2f} of the responses are right without memory, all with {points[-1].bits:.2f} bits."
    return Chart("frontier", f"What a memory can reach: {contract}", said, *axes, series)


def _table(points: list[FrontierPoint]) -> Table:
    exact = all(point.exact for point in points)
    shares = (
        (Column("lower", "right responses"),) if exact else (Column("lower", "at least"), Column("upper", "at most"))
    )
    columns = (Column("bits", "bits"), Column("states", "states"), *shares, Column("run", "right runs"))
    rows: list[dict[str, Cell]] = [
        {"bits": p.bits, "states": p.states, "lower": p.lower, "upper": p.upper, "run": p.run} for p in points
    ]
    note = "" if exact else "Right responses: an encoder reaches the first number, no memory exceeds the second."
    return Table("frontier-rows", "Best memory of each size", columns, tuple(rows), note)


def _groups(members: list[tuple[int, str]]) -> Table:
    rows: list[dict[str, Cell]] = [{"code": code + 1, "history": name} for code, name in members]
    columns = (Column("code", "code"), Column("history", "history", role="text"))
    return Table("codes", "Histories by code", columns, tuple(rows))


def _method(found: Frontier, points: list[FrontierPoint]) -> dict[str, Cell]:
    pasts = "states" if found.count.futures is None else "histories"
    return {
        pasts: f"{len(found.table.histories):,}, of which {found.atoms:,} differ in what they need",
        "questions": f"{len(found.table.asked):,}, of which {len(found.table.starts):,} divide the {pasts} differently",
        "method": EXACT if found.solved else BOUNDED,
        "largest gap": f"{max(point.upper - point.lower for point in points):.3f}",
    }
