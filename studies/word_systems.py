"""Runs memory systems on the same conversations and reports accuracy, fates, bytes, and one example of each fate.

Every system is used as its makers document it, and `scripted/reader` answers in the place of every model. A system has
a folder of its own below DIR, from which an interrupted study continues; for one that is not installed, a line says
how to install it. python -m studies.word_systems DIR [--seeds 0:12] [--json | --markdown] [SYSTEM …]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eirkit.agents.stores.memory_factory import reason_absent
from eirkit.findings.word_measures import WORD_FATES
from eirkit.runs.store import scan_runs
from eirkit.runs.summary import summarise
from eirkit.runs.sweep import recorded_suite
from eirkit.show.runs.words import intervals_table, word_tables
from eirkit.show.table import Table
from eirkit.show.viewer.lacuna_run import LacunaRun
from eirkit.tasks.conversations import ToldWorld
from eirkit.tasks.words.language import show_answer
from studies.printing import show

WHOLE = "whole"  # no memory: the reader is shown the whole conversation
PLAIN = ("text", "bm25", "vector", "vector-minilm", "agent-file", "agent-tools")
VENDORS = ("mem0", "graphiti", "langmem", "letta", "amem", "mcp", "anthropic-memory")
PATIENCE = "timeout_seconds=600"  # a call of a vendor's system takes seconds, longer on a busy machine
GRID = ("words", "--preset", "small", "--model", "scripted/reader", "--no-control")


def run_system(name: str, folder: Path, seeds: str) -> None:
    """Run a system on the worlds of some seeds, or finish what an earlier call began."""
    patience = ("--memory-set", f"{name}.{PATIENCE}") if name in VENDORS else ()
    memory = () if name == WHOLE else ("--memory", name, *patience)
    grid = ("--resume", str(folder)) if folder.exists() else (*GRID, *memory, "--seeds", seeds, "--out", str(folder))
    subprocess.run([sys.executable, "-m", "eirkit", "lacuna", "run", *grid, "--json"], check=True, capture_output=True)


def rows_of(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the rows of sweeps, of the runs so far where one is not finished."""
    return [row for folder in folders for row in summarise(recorded_suite(folder), folder).rows]


def examples(folder: Path) -> Iterator[str]:
    """Yield one wrong answer of each fate: what was said, asked and returned, as a list in Markdown."""
    seen: set[str] = set()
    for record, _ in scan_runs(folder / "runs.jsonl"):
        run = LacunaRun(folder, record, plugins=False)
        for t, fate, evidence in record["words"]["wrong"]:
            if fate not in seen and isinstance(run.task.instance, ToldWorld):
                seen.add(fate)
                yield "\n".join(_example(run, run.task.instance, t, fate, evidence))


def _example(run: LacunaRun, task: ToldWorld, t: int, fate: str, evidence: str) -> Iterator[str]:
    step, told = run.document()["steps"][t - 1], run.around(t)["told"]
    calls = [one for one in run.events if one["type"] == "memory" and one["verb"] == "recall" and one["t"] == t]
    yield f"- **{WORD_FATES[fate].label}** (world {task.spec.seed}, question {t}): {told['question']}"
    right = show_answer(task.language, task.asked[t - 1].question, task.asked[t - 1].answer)
    yield f"    - right: {right}; answered: {step['submitted'][0]}"
    yield from (f"    - said: {turn['text']}" for turn in told["turns"] if turn["needed"])
    yield f"    - what shows it: {' / '.join(evidence.splitlines())}"
    for text in (text for call in calls for text in call["found"]):
        yield f"    - returned: {' / '.join(text.splitlines())}"


def study(folders: Sequence[Path]) -> list[Table]:
    """Return the tables of some sweeps."""
    rows = rows_of(folders)
    return [*word_tables(rows), intervals_table(rows)]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.word_systems", description=__doc__)
    parser.add_argument("dir", type=Path)
    parser.add_argument("systems", nargs="*", default=[WHOLE, *PLAIN, *VENDORS])
    parser.add_argument("--seeds", default="0:12")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_intermixed_args(arguments)
    folders = []
    for name in given.systems:
        why = None if name == WHOLE else reason_absent(name, {})
        if why is not None:
            print(f"{name} is left out: {why}", file=sys.stderr)
            continue
        run_system(name, given.dir / name, given.seeds)
        folders.append(given.dir / name)
    show(study(folders), arguments)
    if not given.json:
        for folder in folders:
            if found := list(examples(folder)):
                print(f"\n**{folder.name}: one example of each fate**\n", *found, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
