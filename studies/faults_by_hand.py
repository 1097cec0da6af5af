"""Holds explained faults of memory systems against the vendors' own interfaces, called with the same conversations.

For every wrong answer of a world, a script in the system's own environment lists what the vendor's store holds and what
its search returns. The study prints whether both agree with the recorded run and with the fate that it was given.
python -m studies.faults_by_hand FOLDER FILE SEED …, where FOLDER is one of `studies.system_profiles`; the results are
added to FILE.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from eirkit.agents.model import ModelOptions
from eirkit.agents.models.reader import make_reader
from eirkit.runs.store import scan_runs
from eirkit.show.viewer.lacuna_run import LacunaRun
from eirkit.tasks.conversations import ToldWorld
from studies.vendor_calls import DAYS, ask_vendor


def sessions_of(task: ToldWorld) -> list[tuple[list[dict[str, str]], str]]:
    """Return the messages of each session in which something is said, and its day."""
    return [
        ([{"role": one.role, "content": one.text} for one in told.messages], date.fromordinal(told.day).isoformat())
        for told in task.sessions
        if told.messages
    ]


def questions_of(task: ToldWorld, numbers: Sequence[int]) -> list[tuple[str, str]]:
    """Return some questions, and the day on which each is asked."""
    asked = (task.asked[number - 1] for number in numbers)
    return [(one.text, date.fromordinal(one.day).isoformat()) for one in asked]


def compare(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield of each wrong answer of a world whether the vendor's list is the same, and has what shows the fault."""
    name = folder.name.removesuffix("-as-documented")
    record = next(one for one, _ in scan_runs(folder / "runs.jsonl") if one["seed"] == seed)
    run = LacunaRun(folder, record, plugins=False)
    task = run.task.instance
    assert isinstance(task, ToldWorld)
    sessions = sessions_of(task)
    wrong = record["words"]["wrong"]
    questions = questions_of(task, [t for t, _, _ in wrong])
    model = make_reader(ModelOptions())
    held, found = asyncio.run(ask_vendor(name, model, sessions=sessions, questions=questions))
    for (t, fate, evidence), theirs in zip(wrong, found, strict=True):
        calls = [one for one in run.events if one["type"] == "memory" and one["verb"] == "recall" and one["t"] == t]
        ours = [DAYS.sub("", text) for call in calls for text in call["found"]]
        shown = [DAYS.sub("", line) for line in evidence.splitlines()]
        yield {
            "memory": name,
            "world": seed,
            "question": t,
            "fate": fate,
            "what shows it": " / ".join(shown),
            "same list": ours == [DAYS.sub("", text) for text in theirs],
            "held": _has(held, shown),
            "returned": _has(theirs, shown),
        }


def _has(texts: Sequence[str], shown: Sequence[str]) -> bool:
    """True if every line that shows a fault begins a line of some texts; the record cuts a long one."""
    lines = [DAYS.sub("", line) for text in texts for line in text.splitlines()]
    return all(any(line.startswith(one) for line in lines) for one in shown)


def main(arguments: Sequence[str]) -> None:
    folder, file, *seeds = arguments
    path = Path(file)
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for seed in map(int, seeds):
        new = list(compare(Path(folder), seed))
        kept = [one for one in kept if (one["memory"], one["world"]) != (new[0]["memory"], seed)] + new
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for one in new:
            print(*one.values(), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
