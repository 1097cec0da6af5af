"""Times exact counts for Stepwise Top-k at m = 16, q = 10^4: one cut, a whole curve, and each backend."""

from __future__ import annotations

import importlib.util
import resource
import time

from eirkit.eir.counting import count_chains, valid_vectors
from eirkit.eir.frontier import demand_of_frontiers
from eirkit.eir.windows import count_visible, parts, window_at
from eirkit.lacuna.tasks.generation import generate, graph_of
from eirkit.lacuna.tasks.task import TaskSpec

SEEDS = range(4)


def main() -> None:
    graphs = [graph_of(generate(TaskSpec("stepwise-topk", seed=seed))) for seed in SEEDS]
    windows = [window_at(graph, 16, t) for graph in graphs for t in range(16, 64)]
    hardest = max(windows, key=lambda w: max(len(valid_vectors(part, 2)) for part in parts(w)))
    size = max(len(valid_vectors(part, 2)) for part in parts(hardest))
    print(f"hardest of {len(windows)} windows: {size:,} vectors in its largest part")
    backends = [name for name in ("numpy", "numba") if name == "numpy" or importlib.util.find_spec(name)]
    for backend in backends:
        count_visible(windows[0], 2, 2, 10**4, backend)  # compile or warm up
        seconds = _time(lambda backend=backend: count_visible(hardest, 2, 2, 10**4, backend))
        print(f"  hardest cut, {backend:6} {seconds:7.2f} s   (limit 20 s)")
    whole = valid_vectors(window_at(graphs[0], 16, 40), 2)
    unsaturated = whole.held.astype(int)
    unsaturated.sort(axis=1)
    last = (unsaturated[:, :2].sum(axis=1) < 2)[:, None]
    apart = _time(lambda: count_visible(window_at(graphs[0], 16, 40), 2, 2, 10**4, "numpy"))
    together = _time(lambda: count_chains(whole, last, "numpy"))
    print(
        f"cut 40 in parts {apart:.2f} s, as one set of {len(whole):,} vectors {together:.2f} s: {together / apart:.0f}×"
    )
    for backend in backends[-1:]:
        curve = _time(lambda backend=backend: demand_of_frontiers(graphs[0], 16, 2, 2, 10**4, backend=backend))
        print(f"whole curve of 65 cuts, {backend}: {curve:.1f} s   (limit 600 s)")
    maximum = _time(lambda: demand_of_frontiers(graphs[0], 16, 2, 1, 10**4))
    print(f"Stepwise Maximum, 65 cuts: {maximum:.2f} s   (limit 2 s)")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB   (limit 1 GB a cut)")


def _time(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
