"""Holds explained faults of memory systems against the vendors' own interfaces, called with the same conversations.

For every wrong answer of a world, a script in the system's own environment lists what the vendor's store holds and what
its search returns. The study prints whether both agree with the recorded run and with the cause that it was given.
python -m studies.faults_by_hand FOLDER FILE SEED …, where FOLDER is one of `studies.system_profiles`; the results are
added to FILE.
python -m studies.faults_by_hand overwrites FILE NAME …: the overwrite of `check_memory`, through the same interfaces.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.scripted.extractor import make_scripted
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Event, MemoryExchange
from eirkit.report.viewer.lacuna_run import LacunaRun
from studies.vendor_calls import DAYS, ask_vendor


def recalled(events: Sequence[Event], t: int) -> list[str]:
    """Return what the memory returned for a question."""
    calls = [event for event in events if isinstance(event, MemoryExchange) and event.verb == "recall"]
    return [text for call in calls if call.t == t for text in call.found or ()]


def sessions_of(task: WorldConversation) -> list[tuple[list[dict[str, str]], str]]:
    """Return the messages of each session in which something is said, and its day."""
    return [
        ([{"role": one.role, "content": one.text} for one in told.messages], date.fromordinal(told.day).isoformat())
        for told in task.sessions
        if told.messages
    ]


def questions_of(task: WorldConversation, numbers: Sequence[int]) -> list[tuple[str, str]]:
    """Return some questions, and the day on which each is asked."""
    asked = (task.questions[number - 1] for number in numbers)
    return [(one.text, date.fromordinal(one.day).isoformat()) for one in asked]


def compare(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield of each wrong answer of a world whether the vendor's list is the same, and has what shows the fault."""
    name = folder.name.removesuffix("-as-documented")
    with SweepDatabase(folder) as database:
        record = next(record for record in database.records() if record.seed == seed)
    assert record.conversation is not None
    run = LacunaRun(folder, record, plugins=False)
    task = run.task.instance
    assert isinstance(task, WorldConversation)
    sessions = sessions_of(task)
    wrong = record.conversation.wrong
    questions = questions_of(task, [answer.t for answer in wrong])
    model = make_reader(ModelOptions())
    held, found = asyncio.run(ask_vendor(name, model, sessions=sessions, questions=questions))
    for answer, theirs in zip(wrong, found, strict=True):
        ours = [DAYS.sub("", text) for text in recalled(run.events, answer.t)]
        shown = [DAYS.sub("", line) for line in answer.evidence.splitlines()]
        yield {
            "memory": name,
            "world": seed,
            "question": answer.t,
            "cause": answer.cause,
            "what shows it": " / ".join(shown),
            "same list": ours == [DAYS.sub("", text) for text in theirs],
            "held": _has(held, shown),
            "returned": _has(theirs, shown),
        }


def _has(texts: Sequence[str], shown: Sequence[str]) -> bool:
    """True if every line that shows a fault begins a line of some texts; the record cuts a long one."""
    lines = [DAYS.sub("", line) for text in texts for line in text.splitlines()]
    return all(any(line.startswith(one) for line in lines) for one in shown)


def overwrite(name: str) -> Iterator[dict[str, Any]]:
    """Yield what a vendor's search returns for labels that were written again."""
    first = [(f"A_{number}", f"A_{number:02} = {1000 + 7 * number}") for number in range(1, 9)]
    again = [(f"A_{number}", f"A_{number:02} = {4000 + number}") for number in (1, 2, 3)]
    labels = [text.split()[0] for _, text in again]
    model = make_scripted("extractor", ModelOptions())
    asked = ask_vendor(name, model, records=[*first, *again], questions=[(one, "") for one in labels])
    held, found = asyncio.run(asked)
    for label, (_, old), (_, new), theirs in zip(labels, first, again, found, strict=False):
        both = all(any(text in one for one in held) for text in (old, new))
        order = [said[0] for one in theirs if (said := re.search(rf"{label} = \d+", one))]
        yield {"memory": name, "world": "overwrites", "label": label, "holds both": both, "returned": order}


def main(arguments: Sequence[str]) -> None:
    what, file, *chosen = arguments
    path = Path(file)
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for one in chosen:
        new = list(overwrite(one) if what == "overwrites" else compare(Path(what), int(one)))
        named = {(row["memory"], row["world"]) for row in new}
        kept = [row for row in kept if (row["memory"], row["world"]) not in named] + new
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for row in new:
            print(*row.values(), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
