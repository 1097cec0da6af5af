"""Runs a language model on the paper's control, pressure curve and rescue, offline; with and without a memory.

python -m studies.language_model FOLDER [--model local/gemma-270m] [--seeds 0:100] [--workload NAME] [--tables]; the
same command goes on where it was stopped. It writes studies/language_model.csv and prints its tables; with `--workload`
it only runs that one, beside another process in the same folder, and with `--tables` it runs nothing. The weights come
with `make session NAME=local`.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import eirkit
from eirkit.lacuna.findings.statistics import end_to_end_accuracy, informed_accuracy
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import Budget, SpendingLimits
from eirkit.lacuna.runs.capability import PAPER_THRESHOLD, THRESHOLD
from eirkit.lacuna.runs.recorded_rescues import RescueExperiment
from eirkit.lacuna.runs.rescue import RescueSetup
from eirkit.lacuna.runs.runner import Results
from eirkit.lacuna.runs.sweep import open_plan, write_result
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import MANIFEST
from eirkit.records.evidence import Interval, RescueResult
from eirkit.records.runs import CAUSES, RunScore
from eirkit.report.table import Cell, Column, Table
from eirkit.seeds import read_seeds
from studies.printing import show

WORKLOADS, WINDOWS = ("store-recall", "full-lookup"), (8, 4, 16)
MEMORY, MEMORY_WINDOW = "bm25", 8
CSV = Path(__file__).with_name("language_model.csv")


class Study:
    """The sweeps and rescues in a folder."""

    def __init__(self, folder: Path, model: str, seeds: Sequence[int]) -> None:
        self.folder, self.model, self.seeds = folder, model, seeds
        self.replies = (
            folder / "replies.sqlite"
        )  # a step that is asked for again, at another h or in an arm, is not run twice

    def run(self, workloads: Sequence[str] = WORKLOADS) -> None:
        """Run what is missing: the control of every window, and the rest where a gate passes."""
        for m in WINDOWS:
            for workload in workloads:
                self.sweep(workload, m, [m])
                if self.passes(workload, m):
                    self.sweep(workload, m, [m * part // 4 for part in (3, 2, 1)])
                    self.rescue(workload, m)
                    if m == MEMORY_WINDOW:
                        self.sweep(workload, m, [m // 2], MEMORY)

    def scores(self, workload: str, m: int, h: int, memory: str | None = None) -> list[RunScore]:
        folder = self._place(workload, m, memory)
        if not (folder / MANIFEST).is_file():
            return []
        runs = [run.record for run in eirkit.open(folder).runs]
        return [run.score for run in runs if run.score is not None and run.setting.access.h == h]

    def passes(self, workload: str, m: int) -> bool:
        """Whether one of the two gates is passed where nothing is missing."""
        scores = self.scores(workload, m, m)
        return informed_accuracy(scores).low >= THRESHOLD or end_to_end_accuracy(scores).low >= PAPER_THRESHOLD

    def rescues(self) -> Iterator[tuple[str, int, RescueResult]]:
        for workload in WORKLOADS:
            for m in WINDOWS:
                if (self._place(workload, m, "rescue") / MANIFEST).is_file():
                    experiment = self._experiment(workload, m)
                    with SweepDatabase(self._place(workload, m, "rescue")) as database:
                        yield workload, m, experiment.answer(Results(database))

    def sweep(self, workload: str, m: int, held: Sequence[int], memory: str | None = None) -> None:
        print(f"{workload}, m = {m}, h = {held}, {memory or 'no memory'}", file=sys.stderr)
        eirkit.run(
            workload,
            model=self.model,
            memory=memory,
            m=m,
            h=list(held),
            seeds=self.seeds,
            texts=False,
            control=False,
            cache=self.replies,
            out=self._place(workload, m, memory),
        )

    def rescue(self, workload: str, m: int) -> None:
        print(f"rescue of {workload}, m = {m}, h = {m // 2}", file=sys.stderr)
        experiment, folder = self._experiment(workload, m), self._place(workload, m, "rescue")
        plan = experiment.plan()
        with open_plan(plan, folder, Budget(SpendingLimits(cache=self.replies))) as runner:
            write_result(plan, folder, experiment.answer(runner.complete(plan)))

    def _experiment(self, workload: str, m: int) -> RescueExperiment:
        setup = RescueSetup(TaskSpec(workload, m=m, lookback=m), m // 2)
        return RescueExperiment(setup, self.seeds, (self.model,), ModelOptions(), control=False)

    def _place(self, workload: str, m: int, what: str | None) -> Path:
        return self.folder / f"{workload}-{m}-{what or 'alone'}"


def control_table(study: Study) -> Table:
    rows: list[dict[str, Cell]] = []
    for workload in WORKLOADS:
        for m in sorted(WINDOWS):
            if scores := study.scores(workload, m, m):
                ours, papers = informed_accuracy(scores), end_to_end_accuracy(scores)
                rows.append(
                    {
                        "workload": workload,
                        "m": m,
                        "runs": len(scores),
                        **_figures("informed", ours),
                        "ours": _verdict(ours, THRESHOLD),
                        **_figures("accuracy", papers),
                        "papers": _verdict(papers, PAPER_THRESHOLD),
                    }
                )
    columns = (
        Column("workload", "workload", role="name"),
        Column("m", "m = h"),
        Column("runs", "runs"),
        Column("informed_shown", "accuracy given right inputs", figures=True),
        Column("ours", f"our gate, {THRESHOLD}"),
        Column("accuracy_shown", "accuracy", figures=True),
        Column("papers", f"the paper's gate, {PAPER_THRESHOLD}"),
    )
    return Table("control", "Nothing missing", columns, tuple(rows))


def pressure_table(study: Study) -> Table:
    rows: list[dict[str, Cell]] = []
    for workload in WORKLOADS:
        for m in sorted(WINDOWS):
            held = [(h, None) for h in (m, m * 3 // 4, m // 2, m // 4)] + [(m // 2, MEMORY)]
            for h, memory in held:
                scores = study.scores(workload, m, h, memory)
                if not scores or not study.passes(workload, m):
                    continue
                steps = sum(run.steps for run in scores)
                causes = {cause: sum(run.errors[cause] for run in scores) / steps for cause in CAUSES}
                rows.append(
                    {
                        "workload": workload,
                        "m": m,
                        "h": h,
                        "memory": memory or "–",
                        "runs": len(scores),
                        **_figures("accuracy", end_to_end_accuracy(scores)),
                        **_figures("informed", informed_accuracy(scores)),
                        **causes,
                    }
                )
    columns = (
        Column("workload", "workload", role="name"),
        Column("m", "m"),
        Column("h", "h"),
        Column("memory", "memory"),
        Column("accuracy_shown", "accuracy", figures=True),
        Column("informed_shown", "accuracy given right inputs", figures=True),
        Column("state_supply", "missing input", percent=True),
        Column("cascade", "carried-over error", percent=True),
        Column("computation", "own error", percent=True),
    )
    return Table("pressure", "Fewer records in context", columns, tuple(rows))


def rescue_table(study: Study) -> Table:
    rows: list[dict[str, Cell]] = []
    for workload, m, result in study.rescues():
        arms = {row.arm: row for row in result.rows}
        effects = {contrast.arms: contrast.difference for contrast in result.contrasts if contrast.of == "accuracy"}
        rows.append(
            {
                "workload": workload,
                "m": m,
                "h": m // 2,
                "steps": arms["control"].steps,
                **{arm: arms[arm].accuracy for arm in ("control", "oracle", "sham")},
                **_figures("over_sham", effects["oracle", "sham"]),
                **_figures("over_control", effects["oracle", "control"]),
            }
        )
    columns = (
        Column("workload", "workload", role="name"),
        Column("m", "m"),
        Column("h", "h"),
        Column("steps", "steps with a miss"),
        Column("control", "nothing restored", 3),
        Column("sham", "sham", 3),
        Column("oracle", "oracle", 3),
        Column("over_sham_shown", "oracle − sham", figures=True),
        Column("over_control_shown", "oracle − nothing", figures=True),
    )
    return Table("rescue", "Accuracy at steps with a miss, by what is restored", columns, tuple(rows))


def _figures(name: str, interval: Interval) -> dict[str, Cell]:
    shown = f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high, f"{name}_shown": shown}


def _verdict(interval: Interval, threshold: float) -> str:
    if interval.low >= threshold:
        return "passes"
    return "fails" if interval.high < threshold else "undecided"


def write_csv(tables: Sequence[Table]) -> None:
    """Write every figure of the tables, one a line."""
    with CSV.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("table", "workload", "m", "h", "memory", "figure", "value"))
        for table in tables:
            for row in table.rows:
                place = [table.id, row["workload"], row["m"], row.get("h", row["m"]), row.get("memory", "–")]
                for figure, value in row.items():
                    if isinstance(value, float | int) and figure not in ("m", "h"):
                        writer.writerow([*place, figure, round(value, 4)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="local/gemma-270m")
    parser.add_argument("--seeds", default="0:100")
    parser.add_argument("--workload", choices=WORKLOADS)
    parser.add_argument("--tables", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    study = Study(chosen.folder, chosen.model, read_seeds(chosen.seeds))
    if not chosen.tables:
        study.run((chosen.workload,) if chosen.workload else WORKLOADS)
    if chosen.workload:
        return
    tables = [control_table(study), pressure_table(study), rescue_table(study)]
    write_csv(tables)
    show(tables, ["--markdown"])


if __name__ == "__main__":
    main()
