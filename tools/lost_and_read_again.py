"""Compares what real compactions lost with what the runs read again: `python tools/lost_and_read_again.py LOGS...`.

Prints one JSON document, from which docs/compactors-study.md takes its figures. Tokens are those of lines; a line is
read again if a later turn shows it of the same file before the file is written as a whole.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from eirkit.compactors.benchmark import planned_cuts
from eirkit.logs.actions.touches import interpret
from eirkit.logs.compaction.cuts import ContextCut, CutPlan
from eirkit.logs.compaction.outcome import kept_state
from eirkit.logs.compaction.sized_lines import LineCounter, identifies
from eirkit.logs.corpus.reader import read_corpus
from eirkit.logs.sources.documents import Skipped
from eirkit.logs.tokens import CachedCounter, exact_counter
from eirkit.logs.trajectory import Trajectory


def real_cuts(paths: Iterable[Path]) -> Iterator[tuple[Trajectory, ContextCut, LineCounter]]:
    """Yield every compaction of the logs."""
    count = exact_counter()
    for recording in read_corpus(list(paths)):
        if isinstance(recording, Skipped) or recording.domain != "files":
            continue
        counting, counter = CachedCounter(count), LineCounter(count)
        trajectory = interpret(recording, counting)
        for cut in planned_cuts(trajectory, None, CutPlan("real"), counting, counter):
            yield trajectory, cut, counter


def tokens_of(cut: ContextCut, counter: LineCounter) -> Counter[str]:
    """Return the tokens of a cut by whether they were needed, lost and read again."""
    found: Counter[str] = Counter(cuts=1, needing=bool(cut.needed))
    _, kept = kept_state(cut, cut.replaced_by or (), counter)
    shown = {line.key for line in counter.message_lines(cut.replaced_by or ())}
    again = frozenset().union(*cut.later_reads.values())
    for key, line in cut.needed.items():
        is_again = any(key in cut.later_reads.get(path, ()) for path in line.paths)
        found[f"needed_{'kept' if key in kept else 'lost'}_{'again' if is_again else 'not'}"] += line.tokens
    for key, known in cut.lines.items():
        if identifies(key) and key not in shown:  # the sham: any line that was lost
            found[f"any_lost_{'again' if key in again else 'not'}"] += known.tokens
    return found


def files_of(trajectory: Trajectory, cut: ContextCut) -> Counter[str]:
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


def main(paths: list[str]) -> None:
    """Print the totals, and how many compactions agree with them."""
    totals: Counter[str] = Counter()
    precisions: list[tuple[float, float]] = []
    for trajectory, cut, counter in real_cuts(map(Path, paths)):
        found = tokens_of(cut, counter)
        totals += found + files_of(trajectory, cut)
        lost = found["needed_lost_again"] + found["needed_lost_not"]
        if lost:
            any_lost = found["any_lost_again"] + found["any_lost_not"]
            precisions.append((found["needed_lost_again"] / lost, found["any_lost_again"] / any_lost))
    lost, again = totals["needed_lost_again"] + totals["needed_lost_not"], totals["needed_lost_again"]
    ratios = {
        "lost_share": lost / (lost + totals["needed_kept_again"] + totals["needed_kept_not"]),
        "precision": again / lost,
        "recall": again / (again + totals["needed_kept_again"]),
        "sham_precision": totals["any_lost_again"] / (totals["any_lost_again"] + totals["any_lost_not"]),
        "kept_read_again": totals["needed_kept_again"] / (totals["needed_kept_again"] + totals["needed_kept_not"]),
        "better_than_sham": sum(one > sham for one, sham in precisions),
        "compared": len(precisions),
    }
    print(json.dumps({**dict(sorted(totals.items())), **ratios}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
