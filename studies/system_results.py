"""Keeps what the studies of memory systems found in one file, and writes it into the page about them.

python -m studies.system_results keep DIR GATE BY_HAND: from the folders of `studies.system_profiles`, and the files of
`studies.system_gate` and `studies.faults_by_hand`.
python -m studies.system_results write: the generated parts of the page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from eirkit.lacuna.memories.environments import node_folder, python_of
from eirkit.lacuna.memories.memory import SEARCH_LIMIT, find_memory, requirements_of
from eirkit.records.sweeps import CellRow
from eirkit.report.table import Table
from eirkit.testing.memories import REQUIREMENTS
from eirkit_paper.studies.comparison import listed
from studies.printing import markdown
from studies.system_profiles import (
    RECORDS,
    WHOLE,
    WORKLOADS,
    KeptMemory,
    KeptRow,
    folders_in,
    record_lines,
    rows_of,
)

RESULTS = Path(__file__).with_name("system_results.json")
SCRIPTED = "a script extracted and read, not a language model"
COSTS = ("bytes", "own calls", "own tokens")
COLUMNS = ("memory", *WORKLOADS, "runs", "used of needed", "bits held, needed", *COSTS, "ms/search")

LEFT = re.compile(r"(\d+) requirements were not tested, as [\d,]+ s were over: ")


class KeptSystem(Struct, frozen=True, omit_defaults=True):
    """What is kept of the sweeps of one system and profile."""

    versions: str
    rows: list[KeptRow]


class Results(Struct, frozen=True):
    """Everything that the pages show."""

    by_hand: list[dict[str, Any]]
    gate: list[dict[str, Any]]
    records: dict[str, KeptSystem]


def read_results() -> Results:
    """Return what is kept."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def keep(folder: Path, gate: Path, by_hand: Path) -> Results:
    """Return what was found in the folders of a study, and in the files of a gate and of calls by hand."""
    found: dict[str, KeptSystem] = {}
    for path in folders_in(folder, "records"):
        if rows := [_kept(row) for row in rows_of(path) if row.scored]:
            found[path.name] = KeptSystem(versions_of(_system(path.name)), rows)
    called = json.loads(by_hand.read_text("utf-8"))
    return Results([row for row in called if "label" in row], json.loads(gate.read_text("utf-8")), found)


def _kept(row: CellRow) -> KeptRow:
    system = row.memory_system
    memory: KeptMemory | None = None
    if system is not None:
        passages = SEARCH_LIMIT if system.profile is None else system.profile.passages
        own = {name: getattr(system, name) for name in KeptMemory.__struct_fields__ if name != "passages"}
        memory = KeptMemory(**own, passages=passages)
    own = {name: getattr(row, name) for name in KeptRow.__struct_fields__ if name != "memory_system"}
    return KeptRow(**own, memory_system=memory)


def conditions(rows: Iterable[KeptRow]) -> str:
    """Return the line above every table: how many passages each search asked for, and who took a model's place."""
    asked = {row.memory_system.passages for row in rows if row.memory_system is not None}
    if asked <= {SEARCH_LIMIT}:
        told = f"Made with {SEARCH_LIMIT} passages a search, whatever the vendor's own default, until it is run again"
    else:
        numbers = [str(number) for number in sorted(number for number in asked if number is not None)]
        told = f"Searches asked for {', '.join([*numbers, *(['all'] if None in asked else [])])} passages"
    return f"**{told}; {SCRIPTED}.**"


def _system(folder: str) -> str:
    return re.sub(r"-(plain|as-documented|store-only)$", "", folder)


def versions_of(name: str) -> str:
    """Return the versions of what a system's environment was made for; nothing for built-in memories."""
    if name == WHOLE or not (needed := requirements_of(find_memory(name))).installs:
        return ""
    wanted = [re.split(r"[\[<>=!~]", one)[0] for one in needed.installs[-1] if not one.startswith("-")]
    ask = "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    command = [str(python_of(name) or sys.executable), "-c", ask, wanted[0]]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for package in needed.node:
        described = node_folder(name) / "node_modules" / package / "package.json"
        said = f"{package} {json.loads(described.read_text('utf-8'))['version']}"
    return said


def _ordered(title: str, lines: Sequence[Mapping[str, Any]]) -> Table:
    """Return lines as a table with its columns in their order."""
    return listed("records", title, [{name: line.get(name) for name in COLUMNS} for line in lines])


def system_page(found: Results) -> dict[str, str]:
    """Return the tables about memory systems."""
    rows = {name: system.rows for name, system in sorted(found.records.items())}
    how = conditions([row for own in rows.values() for row in own])
    return {
        "profiles": f"{how}\n\n{markdown([_ordered(RECORDS, list(record_lines(rows)))])}",
        "gate": markdown([_gate(found.gate)]),
        "overwrites": markdown([_overwrites(found.by_hand)]),
    }


def _overwrites(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return what vendors' own searches returned for labels that were written again."""
    lines: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda one: str(one["memory"])):
        line = lines.setdefault(row["memory"], {"memory": row["memory"], "both values are held": "yes"})
        line["both values are held"] = "yes" if row["holds both"] and line["both values are held"] == "yes" else "no"
        line[row["label"]] = ", ".join(text.partition(" = ")[2] for text in row["returned"])
    return listed("overwrites", "Labels written again, by the vendors' own interfaces: values in order", lines.values())


def _gate(rows: Sequence[Mapping[str, Any]]) -> Table:
    lines = [
        {
            "memory": row["memory"],
            "profile": row["profile"],
            "result": LEFT.split(row["broken"])[0].rstrip("; ") or _holds(row["notes"]),
            "of 10,000 records, written": _written([*row["notes"], row["broken"]]),
            "not tested": "; ".join(dict.fromkeys(_untested([*row["notes"], row["broken"]]))) or None,
            "CPU seconds": row["cpu s"],
        }
        for row in rows
    ]
    return listed("gate", "The gate on real systems", lines)


def _holds(notes: Sequence[str]) -> str:
    """Return what is said of a system of which nothing is broken, as far as it was tried."""
    left = sum(int(found[1]) for note in notes if (found := LEFT.search(note)))
    return f"{len(REQUIREMENTS) - left} of {len(REQUIREMENTS)} requirements hold" if left else "everything holds"


def _written(notes: Sequence[str]) -> str | None:
    """Return how many records a system was given where it was tried with many, and why no more."""
    told = re.compile(r"many records: (.+?), \d+ sought|(?:lost|not found) among many: .*? after ([\d,]+) writes")
    found = [said[1] or said[2] for note in notes if (said := told.search(note))]
    return found[0].replace(" written", "").replace(" of 10,000", "") if found else None


def _untested(notes: Sequence[str]) -> list[str]:
    ends = [note[found.end() :] for note in notes if (found := LEFT.search(note))]
    left = [f"every one from “{end.partition('; ')[0]}” on" for end in ends]
    said = (note.partition(" not tested")[0] for note in notes if re.search("(was|were) not tested:", note))
    return [*(one.removesuffix(" was").removesuffix(" were") for one in said), *left]


def main(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == "keep":
        found = msgspec.json.encode(keep(*map(Path, arguments[1:])), order="sorted")
        RESULTS.write_bytes(msgspec.json.format(found, indent=1) + b"\n")
    else:
        print("\n\n".join(system_page(read_results()).values()))


if __name__ == "__main__":
    main(sys.argv[1:])
