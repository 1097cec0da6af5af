"""Every figure of bundled/lacuna-tiny in its documentation: capability, the paper's studies, and what varies them.

OPENBLAS_NUM_THREADS=1 python -m studies.bundled_figures FOLDER [PROCESSES]; writes FOLDER/figures.json. Replies are
made in parallel, by shares of the seeds, into caches; studies are then run whole over what the caches hold together.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.serving.funds import Funds, Purse
from eirkit.lacuna.serving.reply_cache import ReplyCache
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec, without_seed
from eirkit.report.study import Setting
from eirkit.studies.agents import Who, run_cell
from eirkit.studies.catalogue import find_study

MODEL = "bundled/lacuna-tiny"
SEEDS, SHARE = 102, 17
WORKLOADS = ("stepwise-sum", "running-max", "stepwise-max", "store-recall", "full-lookup", "stepwise-topk")
WINDOWS = (4, 8, 16)
# Studies that share cells are made by one process.
GROUPS = (
    ("pressure-grid", "alignment-and-rescue", "error-heat-map", "cascade-gap", "store-recall-theory"),
    ("two-by-two",),
    ("sufficient-capacity",),
    ("full-lookup-sweep",),
    ("rescue", "stepwise-maximum-rescue"),
)


def capability_specs() -> Iterator[TaskSpec]:
    for workload in WORKLOADS:
        for m in WINDOWS:
            yield TaskSpec(workload, m=m)


def variations() -> Iterator[TaskSpec]:
    """Yield what the network was also trained for, at 16 records, each once."""
    for workload in WORKLOADS:
        for digits in (1, 2, 3):
            yield TaskSpec(workload, digits=digits)
    for k in (1, 3, 4):
        yield TaskSpec("stepwise-topk", k=k)
    for workload in ("stepwise-sum", "stepwise-max"):
        for fan_in in (1, 3, 4):
            yield TaskSpec(workload, fan_in=fan_in)
        yield TaskSpec(workload, slots=2)
    yield TaskSpec("store-recall", slots=2)
    yield TaskSpec("stepwise-sum", n=256)


def accuracies(spec: TaskSpec, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the accuracy of every run where nothing is missing."""
    runs = run_cell(spec, Access(h=spec.m), Who(MODEL, MODEL, ModelOptions()), seeds)
    own = [run.score.step_accuracy for run in runs]
    return {"task": without_seed(spec), "accuracy": [run.score.accuracy for run in runs], "step_accuracy": own}


def fill(group: tuple[str, ...], seeds: Sequence[int], cache: Path) -> str:
    """Run studies over a share of the seeds, for the replies alone."""
    for study in group:
        find_study(study).run(Setting(model=MODEL, seeds=seeds, purse=Purse(Funds(cache=cache))))
    return f"{'+'.join(group)} {seeds[0]}:{seeds[-1] + 1}"


def whole(study: str, seeds: Sequence[int], cache: Path) -> dict[str, Any]:
    """Run one study over all seeds."""
    found = find_study(study).run(Setting(model=MODEL, seeds=seeds, purse=Purse(Funds(cache=cache))))
    return found.as_json()


def merge(parts: Sequence[Path], target: Path) -> None:
    """Put the replies of many caches into one."""
    cache = ReplyCache(target)
    len(cache)
    cache.close()
    with sqlite3.connect(target) as connection:
        for part in parts:
            connection.execute("ATTACH ? AS part", (str(part),))
            connection.execute("INSERT OR IGNORE INTO replies SELECT key, reply FROM part.replies")
            connection.commit()
            connection.execute("DETACH part")


def make(folder: Path, processes: int) -> Iterator[dict[str, Any]]:
    """Compute everything; yield what there is when the studies are done, and again at the end."""
    seeds = range(SEEDS)
    shares = [seeds[start : start + SHARE] for start in range(0, SEEDS, SHARE)]
    caches = {(group, share): folder / f"cache-{group[0]}-{share[0]}.sqlite" for group in GROUPS for share in shares}
    with ProcessPoolExecutor(processes) as pool:
        filled = [pool.submit(fill, group, share, cache) for (group, share), cache in caches.items()]
        full = [(spec, pool.submit(accuracies, spec, share)) for spec in capability_specs() for share in shares]
        for done in as_completed(filled):
            _say(done.result())
        merge(list(caches.values()), folder / "cache.sqlite")
        _say("merged")
        names = [name for group in GROUPS for name in group]
        found = {name: pool.submit(whole, name, seeds, folder / "cache.sqlite") for name in names}
        varied = [pool.submit(accuracies, spec, seeds[: 2 * SHARE]) for spec in variations()]
        made = {"model": MODEL, "seeds": SEEDS, "capability": _joined(full)}
        made["studies"] = {name: one.result() for name, one in found.items()}
        yield made
        yield {**made, "variations": [one.result() for one in varied]}


def _say(words: str) -> None:
    print(f"{time.monotonic():.0f} s {words}", file=sys.stderr, flush=True)


def _joined(parts: Sequence[tuple[TaskSpec, Any]]) -> list[dict[str, Any]]:
    cells: dict[TaskSpec, dict[str, Any]] = {}
    for spec, part in parts:
        found = part.result()
        cell = cells.setdefault(replace(spec, seed=0), {"task": found["task"], "accuracy": [], "step_accuracy": []})
        cell["accuracy"] += found["accuracy"]
        cell["step_accuracy"] += found["step_accuracy"]
    return list(cells.values())


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for made in make(folder, int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count() or 1):
        text = json.dumps(made, ensure_ascii=False, allow_nan=False, indent=1)
        (folder / "figures.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
