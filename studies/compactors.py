"""Tries compactors on sets of recorded runs, and compares what real compactions lost with what the runs read again.

python -m studies.compactors DATA [BENCH]

DATA is a folder with sets of recorded runs; BENCH is one with sessions of real agents, a folder for each agent, as
`tests/coding/bench` plays them. Writes `compactors_kept.csv` and `compactors_read_again.csv` beside this file, from
which docs/findings.md takes its figures.

Tokens are those of lines; a line is read again if a later turn shows it of the same file before the file is written as
a whole. The sham predicts as many tokens as were needed and lost, of any lines that were lost.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.coding.bench.agents import AGENTS

from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, mean_difference
from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.lines import is_distinctive
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.tokens import CachedCounter, exact_counter
from eirkit.vestige.trajectory import Trajectory
from eirkit_coding.compaction.context import LineCounter
from eirkit_coding.compaction.cuts import ContextCut, CutPlan, kept_state
from eirkit_coding.compactors.benchmark import CompactionBenchmark, planned_cuts, run_benchmark
from eirkit_coding.compactors.comparison import compare_compactors
from eirkit_coding.compactors.trial import CompactorChoice

HERE = Path(__file__).parent
SIMPLE = ("oracle", "random", "null", "keep-last", "head-and-tail", "clear-tool-results")
# By name: the sets, where they are cut, the compactors and the budgets.
BENCHMARKS = {
    "mini-swe-agent": (("mini-swe-agent-v1", "mini-swe-agent-v2"), "tokens:10000", SIMPLE, (2000, 4000, 8000)),
    "claude-code-real": (("claude-code-real",), "real", (*SIMPLE, "recorded"), (5000, 20000, 50000)),
}
SHARES = ("kept", "regret", "gain", "beyond_random")
KEPT = (
    *("set", "compactor", "budget", "runs", "cuts", "tried", "failed", "used_tokens"),
    *(f"{name}_{part}" for name in SHARES for part in ("share", "low", "high")),
    *("least_regret", "rules_kept", "paths_kept"),
)
COUNTED = (
    *(f"needed_{fate}_{after}" for fate in ("lost", "kept") for after in ("again", "not")),
    *("any_lost_again", "any_lost_not", "files_read_first", "files_edited_first", "files_carried_only"),
    "lost_not_of_files_read_again",
)


def kept_rows(data: Path) -> Iterator[dict[str, Any]]:
    """Yield what each compactor kept within each budget."""
    for name, (sets, plan, names, budgets) in BENCHMARKS.items():
        paths = tuple(data / one for one in sets)
        choices = tuple(map(CompactorChoice, names))
        with TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            run_benchmark(CompactionBenchmark(paths, choices, budgets, CutPlan.parse(plan)), out)
            for row in compare_compactors(out, names, budgets).rows:
                yield {"set": name, **{key: _rounded(getattr(row, key)) for key in KEPT if key != "set"}}


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Compaction:
    """One real compaction: the tokens of its lines by whether they were needed, lost and read again."""

    set: str
    run_id: str
    turn: int
    tokens: Counter[str]

    @property
    def lost(self) -> int:
        return self.tokens["needed_lost_again"] + self.tokens["needed_lost_not"]

    @property
    def sham(self) -> float:
        """The share of all lost tokens that was read again."""
        any_lost = self.tokens["any_lost_again"] + self.tokens["any_lost_not"]
        return self.tokens["any_lost_again"] / any_lost if any_lost else 0.0


def compactions(name: str, paths: Sequence[Path]) -> Iterator[Compaction]:
    """Yield every compaction of some logs, if they say what took the place of the context."""
    count = exact_counter()
    for recording in read_corpus(paths):
        if isinstance(recording, Skipped) or recording.domain != "files":
            continue
        counting, counter = CachedCounter(count), LineCounter(count)
        trajectory = interpret(recording, counting)
        for cut in planned_cuts(trajectory, None, CutPlan("real"), counting, counter):
            if cut.replaced_by:
                found = _tokens(cut, counter) + _files(trajectory, cut)
                yield Compaction(name, recording.run_id, cut.turn, found)


def _tokens(cut: ContextCut, counter: LineCounter) -> Counter[str]:
    found: Counter[str] = Counter()
    _, present = kept_state(cut, cut.replaced_by or (), counter)
    again = frozenset().union(*cut.later_reads.values())
    for key, line in cut.needed.items():
        is_again = any(key in cut.later_reads.get(path, ()) for path in line.paths)
        is_lost = key not in present
        found[f"needed_{'lost' if is_lost else 'kept'}_{'again' if is_again else 'not'}"] += line.tokens
        if is_lost and not is_again and any(path in cut.later_reads for path in line.paths):
            found["lost_not_of_files_read_again"] += line.tokens
    for key, known in cut.lines.items():
        if is_distinctive(key) and key not in present:
            found[f"any_lost_{'again' if key in again else 'not'}"] += known.tokens
    return found


def _files(trajectory: Trajectory, cut: ContextCut) -> Counter[str]:
    """Return how the needed files of a cut were first used after it."""
    found: Counter[str] = Counter()
    for path in {path for line in cut.needed.values() for path in line.paths}:
        for turn in trajectory.turns[cut.turn - 1 :]:
            if any(read.path == path and not read.rewritten for read in turn.reads):
                found["files_read_first"] += 1
                break
            if any(write.path == path for write in turn.writes):
                found["files_edited_first"] += 1
                break
        else:
            found["files_carried_only"] += 1
    return found


def summary(found: Sequence[Compaction]) -> dict[str, Any]:
    """Return how well "needed and lost" tells what is read again, beside the sham."""
    totals: Counter[str] = sum((one.tokens for one in found), Counter())
    again, lost = totals["needed_lost_again"], sum(one.lost for one in found)
    read = again + totals["needed_kept_again"]
    losing = [one for one in found if one.lost]
    gains = [one.tokens["needed_lost_again"] / one.lost - one.sham for one in losing]
    runs = [one.run_id for one in losing]
    sure = mean_difference(gains, runs) if len(set(runs)) >= FEWEST_CLUSTERS else None
    return {
        "compactions": len(found),
        "losing": len(losing),
        **{name: totals[name] for name in COUNTED},
        "precision": _ratio(again, lost),
        "sham_precision": _ratio(sum(one.lost * one.sham for one in losing), lost),
        "recall": _ratio(again, read),
        "better_than_sham": sum(gain > 0 for gain in gains),
        "gain_mean": None if sure is None else _rounded(sure.estimate),
        "gain_low": None if sure is None else _rounded(sure.low),
        "gain_high": None if sure is None else _rounded(sure.high),
    }


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def again_rows(data: Path, bench: Path | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each set with real compactions, for each agent of the bench, and for the whole bench."""
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        if found := list(compactions(folder.name, [folder])):
            yield {"set": folder.name, **summary(found)}
    played = sorted(path for path in bench.iterdir() if path.is_dir()) if bench is not None else ()
    logs = {path.name: sorted((path / "home").glob(AGENTS[path.name].log)) for path in played}
    by_agent = {name: list(compactions(name, paths)) for name, paths in logs.items()}
    for name, found in by_agent.items():
        if found:
            yield {"set": f"bench {name}", **summary(found)}
    if every := [one for found in by_agent.values() for one in found]:
        yield {"set": "bench, all", **summary(every)}


def write(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows beside this file, with the columns of the first."""
    found = list(rows)
    with (HERE / name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, found[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[1:3]]
    write("compactors_kept.csv", kept_rows(folders[0]))
    write("compactors_read_again.csv", again_rows(folders[0], folders[1] if folders[1:] else None))
