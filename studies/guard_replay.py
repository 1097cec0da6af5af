"""Counts how often files are reused, and replays recorded runs with inserted compactions to the live guard.

python -m studies.guard_replay DATA [--write COUNTS.json]

DATA is a folder with sets of runs that keep their messages. Tasks are split in two by a digest of their name: one half
is counted, the other replayed. Each run is cut after a third and two thirds of its replies; there the context becomes
the prompt, one line of summary and the last two replies, as a compaction leaves it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.formats.message_rows import read_messages
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import Recording, Trajectory
from eirkit_coding.guard.guard import LIKELY, FileHistory, Loss, Monitor, count_reuse, known_files, reuse_chance

SUMMARY = {"role": "user", "content": "Summary of the conversation so far: work is under way."}
KEPT_REPLIES = 2
PROMPT_MESSAGES = 2
RESAMPLES = 1000
COUNTED_SETS = ("mini-swe-agent-v1", "mini-swe-agent-v2", "openhands-completions", "openhands-events", "swe-agent")
REPLAYED_SETS = ("mini-swe-agent-v1", "mini-swe-agent-v2")


@dataclass(frozen=True, slots=True)
class Judged:
    """One loss, and whether the run used the file afterwards."""

    task: str
    loss: Loss
    again: bool


def is_counted(task: str) -> bool:
    """Tell whether a task belongs to the half that is counted; the other is replayed."""
    return sha256(task.encode()).digest()[0] % 2 == 0


def trajectories(data: Path, sets: Sequence[str]) -> Iterator[Trajectory]:
    for name in sets:
        if (data / name).is_dir():
            for found in read_corpus([data / name]):
                if not isinstance(found, Skipped):
                    yield interpret(found, estimating_counter())


def pasts(run: Trajectory) -> Iterator[tuple[FileHistory, bool]]:
    """Yield every file's past at the cuts after a third and two thirds, and whether it was used again."""
    for cut in cuts(len(run.turns)):
        later = used_from(run, cut)
        for path, past in known_files(run, cut).items():
            yield past, path in later


def cuts(turns: int) -> list[int]:
    """Return the turns before which a run is cut."""
    return sorted({cut for cut in (turns // 3, 2 * turns // 3) if cut > KEPT_REPLIES})


def used_from(run: Trajectory, cut: int) -> set[str]:
    """Return the files that were read or edited from a turn on; to remove or replace one asks for nothing in it."""
    late = [turn for turn in run.turns if turn.number >= cut]
    edits = {write.path for turn in late for write in turn.writes if write.kind == "edit"}
    return edits | {read.path for turn in late for read in turn.reads}


def replayed(task: str, messages: Sequence[dict[str, Any]]) -> Iterator[Judged]:
    """Yield what the guard said at each cut of one run."""
    prompt, turns = read_messages(messages)
    run = interpret(Recording(task, task, "live", "", turns, prompt=prompt), estimating_counter())
    replies = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    for cut in cuts(len(replies)):
        monitor = Monitor()
        monitor.see(messages[: replies[cut - 1]])
        tail = messages[replies[cut - 1 - KEPT_REPLIES] : replies[cut - 1]]
        later = used_from(run, cut)
        for loss in monitor.see([*messages[:PROMPT_MESSAGES], SUMMARY, *tail]):
            yield Judged(task, loss, loss.path in later)


def recorded_messages(data: Path, name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for path in sorted((data / name).rglob("*.traj.json")):
        document = json.loads(path.read_bytes())
        task = str(document.get("instance_id") or path.parent.name)
        if not is_counted(task):
            yield task, document["messages"]


def figures(judged: Sequence[Judged], warns: Sequence[bool]) -> tuple[float, float]:
    """Return precision and recall of a choice of warnings."""
    hits = sum(1 for one, warned in zip(judged, warns, strict=True) if warned and one.again)
    return hits / max(1, sum(warns)), hits / max(1, sum(one.again for one in judged))


def intervals(judged: Sequence[Judged], warns: Sequence[bool]) -> dict[str, Any]:
    """Return precision and recall with 95% intervals by resampling whole tasks."""
    tasks = sorted({one.task for one in judged})
    by_task = {task: [i for i, one in enumerate(judged) if one.task == task] for task in tasks}
    draw = np.random.default_rng(0)
    samples = []
    for _ in range(RESAMPLES):
        chosen = [i for task in draw.choice(tasks, len(tasks)) for i in by_task[str(task)]]
        samples.append(figures([judged[i] for i in chosen], [warns[i] for i in chosen]))
    low, high = np.quantile(samples, [0.025, 0.975], axis=0)
    names, found = ("precision", "recall"), figures(judged, warns)
    return {name: [round(float(x[i]), 3) for x in (found, low, high)] for i, name in enumerate(names)}


def study(data: Path) -> dict[str, Any]:
    """Return the counts of one half and what the guard reached on the other."""
    halves: dict[bool, list[tuple[FileHistory, bool]]] = {True: [], False: []}
    for run in trajectories(data, COUNTED_SETS):
        halves[is_counted(run.recording.task_id)].extend(pasts(run))
    counts = count_reuse(halves[True])
    document: dict[str, Any] = {"counts": counts, "pasts": len(halves[True]), "sets": {}}
    for name in REPLAYED_SETS:
        judged = [one for task, messages in recorded_messages(data, name) for one in replayed(task, messages)]
        if judged:
            warns = {
                "guard": [reuse_chance(past_of(one.loss), counts) >= LIKELY for one in judged],
                "every loss": [True] * len(judged),
                "edited files": [one.loss.written for one in judged],
            }
            document["sets"][name] = {
                "losses": len(judged),
                "used again": sum(one.again for one in judged),
                **{event: intervals(judged, chosen) for event, chosen in warns.items()},
            }
    return document


def past_of(loss: Loss) -> FileHistory:
    return FileHistory(loss.uses, loss.idle_turns, loss.written)


def main(arguments: Sequence[str]) -> None:
    document = study(Path(arguments[0]))
    if "--write" in arguments:
        target = Path(arguments[arguments.index("--write") + 1])
        target.write_text(json.dumps({"counts": document["counts"]}, indent=1) + "\n", "utf-8")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
