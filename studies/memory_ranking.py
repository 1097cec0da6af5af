"""Ranks all memory systems in conversations, as documented and at equal budgets, in two sizes.

Scripts stand in for every model, so that what differs is what a system keeps, finds and returns. Each system and size
has a folder below DIR, from which an interrupted study goes on; a system that is not installed is named with what to
do. Slow systems are given fewer worlds: NAME=WORLDS.
python -m studies.memory_ranking run DIR [--sizes standard,large] [--budgets …] [--worlds 24] [--minutes M] [NAME[=N] …]
python -m studies.memory_ranking keep DIR writes studies/memory_ranking.csv from what was run.
python -m studies.memory_ranking [--json | --markdown] prints the tables of that file; `overview` those of the
documentation.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.memories.environments import python_of
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.memory import find_memory
from eirkit.measures import MeasureGroup
from eirkit.records.database import DATABASE
from eirkit.records.settings import SHOWN_ITSELF, WHOLE
from eirkit.records.sweeps import CellRow
from eirkit.report.table import Table
from eirkit_paper.studies.comparison import listed
from studies.printing import show

KEPT = Path(__file__).with_suffix(".csv")
SYSTEMS = (
    *("whole", "truncated", "text", "bm25", "vector", "vector-minilm", "agent-file", "agent-tools"),
    *("mem0", "langmem", "amem", "graphiti", "letta", "mcp", "anthropic-memory"),
    *("langgraph", "adk", "autogen", "llamaindex", "openai-agents", "qdrant", "pgvector"),
)
SIZES = ("standard", "large")
BUDGETS = ("documented", "k=10", "tokens=500", "tokens=2000", "tokens=8000")
WORLDS = 24
PATIENCE = 900  # seconds for one call, which on a busy machine may take many
_NAME = re.compile(r"[\w.-]+")


class Row(Struct, frozen=True, kw_only=True):
    """A system under one budget in one size; None where it does not apply or is not known."""

    system: str
    version: str
    profile: str
    size: str
    budget: str
    worlds: int
    questions: int
    accuracy: float
    low: float  # of the wider of two 95% intervals
    high: float
    k: float | None  # passages that a recall asked for
    prompt_tokens: float | None  # of one question, of four characters
    recall: float | None  # share of needed statements that were shown
    reciprocal_rank: float | None
    empty: float | None  # share of recalls that returned nothing
    recall_ms: float | None
    observe_ms: float | None
    stored_bytes: float | None
    model_calls: int
    model_tokens: int
    symptom: str  # the commonest of wrong answers, with its share; empty where all are right
    cause: str


def version_of(name: str) -> str:
    """Return the name and version of the package of a system; of eirkit's own, nothing."""
    needed = None if name in SHOWN_ITSELF else find_memory(name).requirements
    if needed is None or not needed.installs:
        return ""
    if needed.node:
        return needed.node[0]
    named = [found[0] for one in needed.installs[-1] if (found := _NAME.match(one))]
    package = name if name in named else named[0]
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    python = str(python_of(name) or sys.executable)
    found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    return f"{package} {found.stdout.strip()}"


def run_one(name: str, size: str, budgets: str, worlds: int, folder: Path, minutes: float | None) -> None:
    """Run a system, or continue what an earlier call began; what is not done in time is left for later."""
    settings = () if name in SHOWN_ITSELF else ("--set", f"{name}.timeout_seconds={PATIENCE}")
    new = ("conversation", "--preset", size, "--model", "scripted/reader", "--no-control", "--no-texts")
    new += ("--memory", name, *settings, "--budget", budgets, "--seeds", f"0:{worlds}", "--out", str(folder))
    arguments = ("--resume", str(folder)) if folder.exists() else new
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "eirkit", "lacuna", "run", *arguments, "--json"]
    # MiniLM's matrices are small: threads only wait for each other, which cost five times the processor's time.
    own = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    with subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            said = run.communicate(timeout=None if minutes is None else 60 * minutes)[1]
        except subprocess.TimeoutExpired:
            run.terminate()  # the runs that are finished are recorded
            run.communicate()
            print(f"{name}, {size}: stopped after {minutes:g} minutes; the same command goes on", file=sys.stderr)
            return
    if run.returncode:
        why = said.strip().splitlines()[-1:] or ["it ended without a word"]
        print(f"{name}, {size}: {why[0]}", file=sys.stderr)


def rows_in(folder: Path) -> Iterator[Row]:
    """Yield the rows of a folder of this study, by size and system; unfinished sweeps have fewer worlds."""
    for size in SIZES:
        for name in SYSTEMS:
            where = folder / size / name
            rows = read_summary(where).rows if (where / DATABASE).exists() else ()
            version = version_of(name) if any(row.scored for row in rows) else ""
            yield from (_row(name, version, size, row) for row in rows if row.scored)


def _row(name: str, version: str, size: str, row: CellRow) -> Row:
    answers, memory = row.conversation, row.memory_system
    if answers is None:
        raise ValueError(f"{name}, {size}: a row without answers; run it with this program")
    every, seen = answers.abilities[0], answers.retrieval
    return Row(
        system=name,
        version=version,
        profile="" if memory is None or memory.profile is None else memory.profile.name,
        size=size,
        budget=row.budget or "",
        worlds=answers.worlds,
        questions=every.asked,
        accuracy=every.accuracy,
        low=every.low,
        high=every.high,
        k=seen.asked_passages,
        prompt_tokens=seen.prompt_tokens,
        recall=seen.recall,
        reciprocal_rank=seen.reciprocal_rank,
        empty=seen.empty_recalls,
        recall_ms=_milliseconds(None if memory is None else memory.search_seconds),
        observe_ms=_milliseconds(None if memory is None else memory.write_seconds),
        stored_bytes=None if memory is None else memory.bytes or answers.stored_bytes,
        model_calls=0 if memory is None else memory.model_calls,
        model_tokens=0 if memory is None else memory.input_tokens + memory.output_tokens,
        symptom=_commonest(answers.symptoms, SYMPTOM_MEASURES),
        cause=_commonest(answers.causes, ANSWER_CAUSE_MEASURES),
    )


def _commonest(counts: Mapping[str, int], measures: MeasureGroup) -> str:
    wrong = sum(counts.values())
    if not wrong:
        return ""
    most, found = max(counts.items(), key=lambda pair: pair[1])
    return f"{measures[most].label} {found / wrong:.0%}"


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds


def write_rows(rows: Sequence[Row], path: Path = KEPT) -> None:
    """Write rows with as many digits as a reader can use; an unknown value is empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(Row.__struct_fields__)
        for row in rows:
            values = asdict(row).values()
            lines.writerow([f"{one:.6g}" if isinstance(one, float) else "" if one is None else one for one in values])


def read_rows(path: Path = KEPT) -> list[Row]:
    """Return the rows that were kept."""
    with path.open(encoding="utf-8", newline="") as lines:
        found = [{name: value for name, value in line.items() if value} for line in csv.DictReader(lines)]
    empty: dict[str, Any] = {one.name: "" if one.type is str else None for one in msgspec.structs.fields(Row)}
    return [msgspec.convert({**empty, **line}, Row, strict=False) for line in found]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table for each size and budget, the most accurate first."""
    found = []
    for size in SIZES:
        own = [row for row in rows if row.size == size]
        for budget in [one for one in BUDGETS if any(row.budget == one for row in own)]:
            # What is shown itself is the same under several budgets and was run in one.
            alike = [row for row in own if row.budget in (budget, "")]
            best = sorted(alike, key=lambda row: (-row.accuracy, row.prompt_tokens or 0.0))
            title = f"Conversations of size {size}, budget {budget}"
            found.append(listed(f"{size}-{budget}", title, map(_line, best)))
    return found


OVERVIEW = (
    "memory",
    "conversations",
    "as documented",
    "tokens",
    "500",
    "2,000",
    "8,000",
    "own calls, tokens",
    "because",
)


def overview(rows: Sequence[Row], size: str) -> list[str]:
    """Return the lines of one table of a size: each system with its accuracy under each budget, best at 500 first.

    The whole conversation has no budget; its tokens stand beside it.
    """
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.size == size:
            found.setdefault(row.system, {})["documented" if row.system == WHOLE else row.budget] = row

    def place(name: str) -> tuple[float, ...]:
        budgets = ("documented",) if name == WHOLE else BUDGETS[2:]
        return tuple(-found[name][budget].accuracy if budget in found[name] else 0.0 for budget in budgets)

    lines = [f"| {' | '.join(OVERVIEW)} |", f"|---|{'---:|' * (len(OVERVIEW) - 2)}---|"]
    for name in sorted(found, key=place):
        usual = found[name]["documented"]
        calls = f"{usual.model_calls / usual.worlds:,.0f}, {usual.model_tokens / usual.worlds:,.0f}"
        cells = (
            " ".join(filter(None, (name, usual.version.replace("@", " ").rpartition(" ")[2]))),
            str(usual.worlds),
            _percent(usual),
            _number(usual.prompt_tokens) or "–",
            *(_percent(found[name].get(budget)) for budget in BUDGETS[2:]),
            calls if usual.model_calls else "–",
            usual.cause or "–",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _percent(row: Row | None) -> str:
    return "–" if row is None else f"{row.accuracy:.1%}"


def _line(row: Row) -> dict[str, Any]:
    return {
        "memory": row.system,
        "package": row.version or None,
        "worlds": row.worlds,
        "accuracy": f"{row.accuracy:.3f} ({row.low:.3f}–{row.high:.3f})",
        "k": _number(row.k),
        "prompt tokens": _number(row.prompt_tokens),
        "recall@k": _share(row.recall),
        "MRR": _share(row.reciprocal_rank),
        "empty": _share(row.empty),
        "ms a recall": _number(row.recall_ms),
        "bytes": _number(row.stored_bytes),
        "own calls": row.model_calls,
        "own tokens": row.model_tokens,
        "wrong answers, mostly": row.symptom or None,
        "because": row.cause or None,
    }


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def main(arguments: Sequence[str]) -> None:
    if arguments == ["overview"]:
        for size in SIZES:
            print("\n".join([f"{size}:", *overview(read_rows(), size), ""]))
        return
    if not arguments or arguments[0].startswith("--"):
        show(tables(read_rows()), arguments)
        return
    parser = argparse.ArgumentParser(prog="python -m studies.memory_ranking")
    parser.add_argument("what", choices=("run", "keep"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME[=WORLDS]")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument(
        "--minutes", type=float, default=None, help="of one system and size; the rest is left for later"
    )
    given = parser.parse_intermixed_args(arguments)
    if given.what == "keep":
        write_rows(list(rows_in(given.folder)))
        return
    for one in given.names or SYSTEMS:
        name, _, worlds = one.partition("=")
        if name not in SHOWN_ITSELF and (why := reason_absent(name, {})) is not None:
            print(f"{name} is left out: {why}", file=sys.stderr)
            continue
        for size in given.sizes.split(","):
            folder = given.folder / size / name
            run_one(name, size, given.budgets, int(worlds or given.worlds), folder, given.minutes)


if __name__ == "__main__":
    main(sys.argv[1:])
