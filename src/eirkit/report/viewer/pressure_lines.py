"""What had to survive each cut of a run's task against what its memory could hold: two lines, and the pressure between.

A task and a capacity in records come in. Counting may take seconds, so curves are kept and counted one at a time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from threading import Lock
from typing import Any

from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import EirkitError
from eirkit.lacuna.generation import demand_of, generate, prepare
from eirkit.lacuna.task import TaskSpec
from eirkit.report.viewer.lacuna_run import LacunaRun

KEPT_CURVES = 256
_counting = Lock()  # two at once would each take twice as long


def pressure_lines(run: LacunaRun) -> dict[str, Any]:
    """Return bits needed and bits that fit after each step t = 0 … n, or why there are none."""
    task = run.task.instance
    if run.is_probe:
        return {"unknown": "a probe is about one lost answer and has no capacity"}
    if task is None:
        return {"unknown": run.task.reason}
    try:
        with _counting:
            curve = _curve(task.spec)
    except EirkitError as error:
        return {"unknown": str(error)}
    record_bits = math.log2(prepare(task.spec).alphabet(task.spec))
    h = run.record.get("access", run.trial).get("h") or task.spec.m
    against = pressure(curve, h, record_bits)
    return {
        "needed_bits": curve.lower_bits,
        "upper_bits": None if curve.certified else curve.upper_bits,
        "capacity_bits": against.capacity_bits,
        "pressure": against.ratios,
        "peak_pressure": against.peak,
        "record_bits": record_bits,
        "held_bits": [len(decision.retained) * record_bits for decision in run.trace.decisions],
        "method": curve.method,
        "h": h,
    }


@lru_cache(maxsize=KEPT_CURVES)
def _curve(spec: TaskSpec) -> DemandCurve:
    return demand_of(generate(spec))
