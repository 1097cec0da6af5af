"""Random specifications and graphs for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Graph


@st.composite
def specs(draw: st.DrawFn, workload: str, largest_n: int = 20) -> TaskSpec:
    """Any specification that the workload accepts, small enough to compute by hand."""
    n = draw(st.integers(2, largest_n))
    return TaskSpec(
        workload,
        n=n,
        m=draw(st.integers(1, n - 1 if workload in ("full-lookup", "record-store") else 8)),
        lookback=draw(st.none() | st.integers(1, 8)),
        fan_in=draw(st.integers(1, 5)),
        slots=1 if workload == "stepwise-topk" else draw(st.integers(1, 3)),
        digits=draw(st.integers(1, 9)),
        k=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 2**64 - 1)),
        queries=draw(st.sampled_from(["uniform", "zipf", "zipf-shuffled"])),
        warm_up=draw(st.integers(0, n)),
    )


@st.composite
def graphs(draw: st.DrawFn, largest: int) -> Graph:
    """Any dependency graph of 1 … largest steps with at most four references a step."""
    n = draw(st.integers(1, largest))
    return tuple(
        tuple(sorted(draw(st.sets(st.integers(1, t - 1), max_size=4)))) if t > 1 else () for t in range(1, n + 1)
    )
