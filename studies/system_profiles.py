"""Runs memory systems in each of their profiles on the six workloads and on conversations, and reports both.

Records are written and sought by `reference/recoverer`, and scripts answer in the place of every model. Each system and
profile has a folder of its own below DIR, from which an interrupted study continues; for one that is not installed, a
line says how to install it.
python -m studies.system_profiles DIR [--seeds 0:2] [--minutes M] [--json | --markdown] [SYSTEM …]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES
from eirkit.lacuna.findings.statistics import mean
from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.memory import SEARCH_LIMIT, find_memory
from eirkit.lacuna.memories.questions import settings_of
from eirkit.records.database import DATABASE
from eirkit.records.runs import Outcome
from eirkit.records.sweeps import CellFloor, CellRow, ConversationRow
from eirkit.report.table import Table
from eirkit_paper.studies.comparison import listed
from studies.printing import show

WHOLE = "whole"  # no memory: the reader is shown the whole conversation
PLAIN = (WHOLE, "key-value", "text", "bm25", "vector", "vector-minilm", "agent-file", "agent-tools")
VENDORS = ("mem0", "amem", "graphiti", "letta", "langmem", "mcp", "anthropic-memory")
LIBRARIES = ("langgraph", "adk", "autogen", "llamaindex", "openai-agents", "qdrant", "pgvector")
WORKLOADS = ("store-recall", "stepwise-topk", "stepwise-sum", "stepwise-max", "full-lookup", "running-max")
RECORDS = ("--workload", ",".join(WORKLOADS), "--n", "12", "--m", "6", "--h", "2", "--model", "reference/recoverer")
WORDS = ("words", "--preset", "small", "--model", "scripted/reader")
GRIDS = {"records": RECORDS, "words": WORDS}


class KeptMemory(Struct, frozen=True, kw_only=True):
    """What is kept of what a memory did in a sweep."""

    outcomes: dict[Outcome, int]
    floor: CellFloor | None
    bytes: int | None
    model_calls: int
    input_tokens: int
    output_tokens: int
    searches: int
    search_seconds: float | None
    passages: int | None = SEARCH_LIMIT  # that each search asked for; None: all


class KeptRow(Struct, frozen=True, kw_only=True):
    """What is kept of a row of a sweep."""

    workload: str
    model: str
    memory: str | None
    memory_settings: dict[str, Any]
    condition: str
    policy: str | None
    panel: str
    scored: int
    accuracy: float | None
    memory_system: KeptMemory | None
    preset: str = ""
    context_tokens: int | None = None
    summary_prompt: str | None = None
    conversation: ConversationRow | None = None


Row = CellRow | KeptRow
RECORDS = "Records: six workloads, n = 12, m = 6, h = 2"
PATIENCE = 600  # seconds for one call, which on a busy machine may take many


def profiles_of(name: str) -> list[tuple[str, str | None]]:
    """Return the name of each profile of a system, and its setting; a system without profiles is plain."""
    if name == WHOLE:
        return [("plain", None)]
    kind = find_memory(name)
    named = list(kind.profiles) or ["plain"]
    return [(one, one if "profile" in settings_of(kind) else None) for one in named]


def run_one(name: str, profile: str | None, kind: str, folder: Path, seeds: str, minutes: float | None) -> None:
    """Run a system in a profile, or continue what an earlier call began; what is not done in time is left for later."""
    more = [f"{name}.timeout_seconds={PATIENCE}", *([] if profile is None else [f"{name}.profile={profile}"])]
    given = [part for setting in more for part in ("--set", setting)]
    memory = () if name == WHOLE else ("--memory", name, *given)
    new = (*GRIDS[kind], "--no-control", *memory, "--seeds", seeds, "--out", str(folder))
    arguments = ("--resume", str(folder)) if folder.exists() else new
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "eirkit", "lacuna", "run", *arguments, "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            said = run.communicate(timeout=None if minutes is None else 60 * minutes)[1]
        except subprocess.TimeoutExpired:
            run.terminate()  # the runs that are finished are recorded
            run.communicate()
            return
    if run.returncode:
        raise SystemExit(f"{name}: {said.strip().splitlines()[-1] if said.strip() else 'failed without a word'}")


def rows_of(folder: Path) -> list[CellRow]:
    """Return the rows of a sweep, of the runs so far where it is not finished."""
    return list(read_summary(folder).rows) if (folder / DATABASE).exists() else []


def record_lines(found: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    """Yield what each system did with records: accuracy by workload, what was found, its size and cost."""
    for name, every in found.items():
        rows = [row for row in every if row.scored]
        if not rows:
            continue
        systems = [row.memory_system for row in rows if row.memory_system is not None]
        needed = sum(sum(system.outcomes.values()) for system in systems)
        used = sum(system.outcomes.get("used", 0) for system in systems)
        floors = [system.floor for system in systems if system.floor is not None]
        held = max((floor.held_bits for floor in floors), default=None)
        least = max((floor.needed_bits for floor in floors), default=None)
        yield {
            "memory": name,
            **{row.workload: f"{row.accuracy:.3f}" for row in rows},
            "runs": sum(row.scored for row in rows),
            "used of needed": f"{used} of {needed}",
            "bits held, needed": None if held is None or least is None else f"{held:.0f}, {least:.0f}",
            "bytes": max((system.bytes for system in systems if system.bytes is not None), default=None),
            "own calls": sum(system.model_calls for system in systems),
            "own tokens": sum(system.input_tokens + system.output_tokens for system in systems),
            "ms/search": f"{1000 * mean(system.search_seconds for system in systems if system.searches):.0f}",
        }


def word_lines(found: Mapping[str, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    """Yield what each system did in conversations: accuracy, why answers were wrong, size and cost."""
    for name, rows in found.items():
        for row in rows:
            system, answers = row.memory_system, row.conversation
            if not row.scored or system is None or answers is None:
                continue
            every = answers.abilities[0]
            wrong = sorted(((count, cause) for cause, count in answers.causes.items()), reverse=True)
            yield {
                "memory": name,
                "worlds": answers.worlds,
                "right": f"{every.right} of {every.asked}",
                "accuracy": f"{every.accuracy:.3f}",
                "from": f"{every.low:.3f}",
                "to": f"{every.high:.3f}",
                "why wrong": ", ".join(f"{ANSWER_CAUSE_MEASURES[cause].label} {count}" for count, cause in wrong)
                or None,
                "texts": answers.stored_texts,
                "bytes": system.bytes,
                "own calls": system.model_calls,
                "own tokens": system.input_tokens + system.output_tokens,
                "ms/recall": f"{1000 * (system.search_seconds or 0.0):.0f}",
            }


def folders_in(folder: Path, kind: str) -> list[Path]:
    """Return the folders of one kind that were run, by name."""
    return sorted(path for path in (folder / kind).glob("*") if path.is_dir())


def study(records: Mapping[str, Sequence[Row]], words: Mapping[str, Sequence[Row]]) -> list[Table]:
    """Return the tables of what was run."""
    return [
        listed("records", RECORDS, record_lines(records)),
        listed("words", "Conversations: preset small, 24 questions a world", word_lines(words)),
    ]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.system_profiles", description=__doc__)
    parser.add_argument("dir", type=Path)
    parser.add_argument("systems", nargs="*", default=[*PLAIN, *VENDORS, *LIBRARIES])
    parser.add_argument("--seeds", default="0:2")
    parser.add_argument("--minutes", type=float, help="of one sweep; the next call continues it")
    parser.add_argument("--kinds", default="records,words")
    parser.add_argument("--profile", help="this one alone")
    parser.add_argument("--only-report", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_intermixed_args(arguments)
    for name in () if given.only_report else given.systems:
        if name != WHOLE and (why := reason_absent(name, {})) is not None:
            print(f"{name} is left out: {why}", file=sys.stderr)
            continue
        for profile, setting in profiles_of(name):
            for kind in given.kinds.split(","):
                if given.profile in (None, profile) and (name != WHOLE or kind == "words"):
                    run_one(name, setting, kind, given.dir / kind / f"{name}-{profile}", given.seeds, given.minutes)
    found = ({path.name: rows_of(path) for path in folders_in(given.dir, kind)} for kind in GRIDS)
    show(study(*found), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
