"""Shows what memories of a contract or a task can reach: how often each size is right, and what an error costs."""

from __future__ import annotations

import math
from dataclasses import asdict
from shlex import quote
from typing import Any

from eirkit.eir.lossy import Frontier, FrontierPoint, StateInterval, capacities
from eirkit.lacuna.tasks.frontier import TaskFrontier, TaskPoint
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec, without_seed
from eirkit.report.document import Axis, Chart, Document, Section, Series, facts
from eirkit.report.table import Cell, Column, Table, counted

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
        data["capacity"] = {**_point(found.point(_states(capacity))), "bits": capacity}
    if groups and capacity is not None:
        encoder = found.encoder(_states(capacity))
        members = [(code, str(x)) for code, x in zip(encoder.codes, found.table.histories, strict=True)]
        data["encoder"] = {
            "codes": [{"code": code, "history": name} for code, name in members],
            "answers": [
                {str(u): str(encoder.decode(code, u)) for u in found.table.asked} for code in range(encoder.states)
            ]
            if encoder.retrievals is None
            else None,  # they depend on what is fetched
        }
        items.append(_groups(sorted(members, key=lambda pair: pair[0])))
    how = facts("method", "How it was computed", _method(found, points))
    name = quote(contract)
    then = f"eirkit eir count {name} --groups" if capacity else f"eirkit eir frontier {name} --capacity 1 --groups"
    title = f"How right a memory can be: {contract}"
    sections = (Section("", (), (*items, how)),)
    return Document("eir-frontier", title, _answer(data), data, sections, next=then), chart


def task_frontier_document(
    task: TaskInstance, found: TaskFrontier, error: float, capacity: float | None
) -> tuple[Document, Chart]:
    """Return the document about a generated task, and its chart."""
    spec = task.spec
    grid = [found.point(h * found.record_bits) for h in range(found.records + 1)]
    low, high = found.bits_for(error)
    data: dict[str, Any] = {
        **without_seed(spec),
        "seed": spec.seed,
        "q": spec.q,
        "fingerprint": task.fingerprint,
        "asking_steps": found.asking,
        "free_steps": found.free,
        "record_bits": found.record_bits,
        "enough_bits": found.enough_bits,
        "error": error,
        "bits_lower": low,
        "bits_upper": high,
        "method": found.method,
        "rows": [{"records": h, **asdict(point)} for h, point in enumerate(grid)],
    }
    answer = []
    if capacity is not None:
        point = found.point(capacity)
        data["capacity"] = asdict(point)
        reached = "one that knew them beforehand reaches" if spec.preset else "keeping what fits reaches"
        answer.append(
            f"With {_bits(capacity)} no memory is right at more than {point.upper:.3f} of the {found.asking} "
            f"{_asking(spec)}; {reached} {point.kept:.3f}."
        )
    enough = f", and {high:.1f} are enough; {found.enough_bits:.1f} bits are always enough"
    answer.append(f"At most {error:g} wrong answers take at least {low:.1f} bits{'' if spec.preset else enough}.")
    chart = _task_chart(spec.workload, grid)
    how = facts("method", "How it was computed", {"ceiling": found.method, "steps": _steps(spec, found)})
    then = f"eirkit lacuna run {quote(spec.workload)}" if spec.preset else f"eirkit eir curve {quote(spec.workload)}"
    title = f"How right a memory can be: {spec.workload}"
    sections = (Section("", (), (*([chart] if len(grid) > 2 else []), _task_table(spec, grid), how)),)
    return Document("eir-frontier", title, tuple(answer), data, sections, next=then), chart


def _bits(amount: float) -> str:
    return f"{amount:g} {'bit' if amount == 1 else 'bits'}"


def _asking(spec: TaskSpec) -> str:
    return "questions" if spec.preset else "steps that refer to earlier ones"


def _steps(spec: TaskSpec, found: TaskFrontier) -> str:
    free = f"; {found.free} more are right without memory" if found.free else ""
    return f"{found.asking} scored {_asking(spec)}{free}"


def _task_chart(workload: str, grid: list[TaskPoint]) -> Chart:
    bits = tuple(point.bits for point in grid)
    series = (
        Series("no memory exceeds", "line", bits, tuple(point.upper for point in grid), dashed=True),
        Series("some memory reaches", "line", bits, tuple(point.exists for point in grid), dashed=True),
        Series("keeping what fits", "line", bits, tuple(point.kept for point in grid)),
    )
    axes = Axis("bits of the memory"), Axis("right answers", low=0.0, high=1.0, percent=True)
    return Chart("frontier", f"What a memory can reach: {workload}", f"All from {bits[-1]:.1f} bits on.", *axes, series)


def _task_table(spec: TaskSpec, grid: list[TaskPoint]) -> Table:
    columns = (
        Column("records", "records"),
        Column("bits", "bits", 1),
        Column("kept", "keeping them"),
        Column("exists", "some memory"),
        Column("upper", "at most"),
    )
    rows: list[dict[str, Cell]] = [{"records": h, **asdict(point)} for h, point in enumerate(grid)]
    title = f"{spec.workload}: right answers at {_asking(spec)}"
    if spec.preset:
        note = (
            "Keeping them: answers, by a memory that knows what will be asked. At most: no memory is right more often."
        )
        return Table("frontier-rows", title, columns, tuple(rows), note)
    note = (
        "Keeping them: as many whole records as fit (`--memory encoder`). Some memory: at each step by itself, one "
        "exists that is right so often. "
        "At most: no memory is right more often."
    )
    return Table("frontier-rows", title, columns, tuple(rows), note)


def _states(bits: float) -> int:
    """Return the whole states that fit into some bits; rounding must not lose the last one of log2(3) bits."""
    return int(2 ** min(bits, 60.0) * (1 + 1e-12))


def _data(
    found: Frontier, points: list[FrontierPoint], error: float, allowed: StateInterval, runs: StateInterval
) -> dict[str, Any]:
    return {
        "form": "process" if found.count.futures is None else "finite",
        "histories": len(found.table.histories),
        "questions": len(found.table.asked),
        "classes": found.count.classes,
        "bits": found.count.bits,
        "bits_lower": math.log2(found.count.at_least),
        "retrievals": found.count.retrievals,
        "error": error,
        "response": _states_for(allowed),
        "run": {"states": runs.upper, "bits": math.log2(runs.upper), **_states_for(runs)},
        "exact": all(point.exact for point in points),
        "method": EXACT if found.solved else BOUNDED,
        "rows": [_point(point) for point in points],
    }


def _states_for(found: StateInterval) -> dict[str, Any]:
    return {
        "states_lower": found.lower,
        "states_upper": found.upper,
        "bits_lower": math.log2(found.lower),
        "bits_upper": math.log2(found.upper),
    }


def _point(point: FrontierPoint) -> dict[str, Any]:
    return {
        "states": point.states,
        "bits": point.bits,
        "lower": point.lower,
        "upper": point.upper,
        "exact": point.exact,
        "run": point.run,
        "run_upper": point.run_upper,
    }


def _answer(data: dict[str, Any]) -> tuple[str, ...]:
    said = []
    if "capacity" in data:
        at = data["capacity"]
        share = _between(at["lower"], at["upper"])
        said.append(
            f"With {_bits(at['bits'])}{_fetching(data)} the best memory is right in {share} of the responses, "
            f"and throughout in {_between(at['run'], at['run_upper'])} of the runs."
        )
    response, run = data["response"], data["run"]
    said.append(
        f"At most {data['error']:g} wrong responses take {_between(response['bits_lower'], response['bits_upper'])} "
        f"bits; at most {data['error']:g} wrong runs take {_between(run['bits_lower'], run['bits_upper'])}. "
        f"No error takes {_between(data['bits_lower'], data['bits'])}."
    )
    return tuple(said)


def _fetching(data: dict[str, Any]) -> str:
    return f" and {counted(data['retrievals'], 'retrieval')}" if data["retrievals"] else ""


def _between(low: float, high: float) -> str:
    first, last = f"{low:.3f}", f"{high:.3f}"
    return first if first == last else f"{first} to {last}"


def _chart(contract: str, points: list[FrontierPoint]) -> Chart:
    bits = tuple(point.bits for point in points)
    series = (
        Series("no memory exceeds", "line", bits, tuple(point.upper for point in points), dashed=True),
        Series("an encoder reaches", "line", bits, tuple(point.lower for point in points)),
    )
    axes = Axis("bits of the memory"), Axis("right responses", low=0.0, high=1.0, percent=True)
    said = f"{points[0].lower:.2f} of the responses are right without memory, all with {points[-1].bits:.2f} bits."
    return Chart("frontier", f"What a memory can reach: {contract}", said, *axes, series)


def _table(points: list[FrontierPoint]) -> Table:
    exact = all(point.exact for point in points)
    shares = (
        (Column("lower", "right responses"),) if exact else (Column("lower", "at least"), Column("upper", "at most"))
    )
    runs = (
        (Column("run", "right runs"),)
        if all(point.run == point.run_upper for point in points)
        else (Column("run", "runs at least"), Column("run_upper", "at most"))
    )
    columns = (Column("bits", "bits"), Column("states", "states"), *shares, *runs)
    rows: list[dict[str, Cell]] = [_point(point) for point in points]
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
