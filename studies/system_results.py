"""Keeps what the studies of memory systems found in one file, and writes it into the pages about them.

python -m studies.system_results keep DIR GATE BY_HAND: from the folders of `studies.system_profiles`, and the files of
`studies.system_gate` and `studies.faults_by_hand`.
python -m studies.system_results write: the generated parts of both pages.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.memories.environments import node_folder, python_of
from eirkit.lacuna.memories.memory import SEARCH_LIMIT, find_memory, requirements_of
from eirkit.records.sweeps import CellRow
from eirkit.report.runs.words import word_tables
from eirkit.report.table import Table
from eirkit.testing.memories import REQUIREMENTS
from eirkit_paper.studies.comparison import listed
from studies.printing import markdown
from studies.system_profiles import GRIDS, WHOLE, WORKLOADS, KeptMemory, KeptRow, folders_in, rows_of, study
from studies.word_examples import examples

RESULTS = Path(__file__).with_name("system_results.json")
DOCS = Path(__file__).parents[1] / "docs"
PLAIN = "plain"
ORDER = (WHOLE, "text", "bm25", "vector", "vector-minilm", "agent-file", "agent-tools")  # first on the page, as named
SCRIPTED = "a script extracted and read, not a language model"
COSTS = ("bytes", "own calls", "own tokens")
RIGHT = ("accuracy", "from", "to")
COLUMNS = {
    "records": ("memory", *WORKLOADS, "runs", "used of needed", "bits held, needed", *COSTS, "ms/search"),
    "words": ("memory", "worlds", "right", *RIGHT, "why wrong", "texts", *COSTS, "ms/recall"),
    "by hand": ("memory", "world", "question", "fate", "what shows it", "same list", "held", "returned"),
}
LEGEND = "rank: the ranks"  # where the ranking of `choose` ends and its explanation begins

LEFT = re.compile(r"(\d+) requirements were not tested, as [\d,]+ s were over: ")


class KeptSystem(Struct, frozen=True, omit_defaults=True):
    """What is kept of the sweeps of one system and profile."""

    versions: str
    rows: list[KeptRow]
    examples: list[str] = []


class Results(Struct, frozen=True):
    """Everything that the pages show."""

    by_hand: list[dict[str, Any]]
    choices: dict[str, str]
    gate: list[dict[str, Any]]
    ranking: str
    records: dict[str, KeptSystem]
    words: dict[str, KeptSystem]


def read_results() -> Results:
    """Return what is kept."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=Results)


def keep(folder: Path, gate: Path, by_hand: Path) -> Results:
    """Return what was found in the folders of a study, and in the files of a gate and of calls by hand."""
    found: dict[str, dict[str, KeptSystem]] = {kind: {} for kind in GRIDS}
    for kind in GRIDS:
        for path in folders_in(folder, kind):
            rows = [_kept(row) for row in rows_of(path) if row.scored]
            if rows:
                shown = list(examples(path)) if kind == "words" and not path.name.endswith("store-only") else []
                found[kind][path.name] = KeptSystem(versions_of(_system(path.name)), rows, shown)
    return Results(
        by_hand=json.loads(by_hand.read_text("utf-8")),
        choices=choices(folder / "words", found["words"]),
        gate=json.loads(gate.read_text("utf-8")),
        ranking=ranking(folder / "words", [name for name in found["words"] if name != f"{WHOLE}-{PLAIN}"]),
        **found,
    )


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


def choices(folder: Path, words: Mapping[str, KeptSystem]) -> dict[str, str]:
    """Return how `eirkit choose` ranks the memories as their makers mean them, for each number of worlds."""
    usual = [name for name in _usual(words) if name != f"{WHOLE}-{PLAIN}"]
    counts = {name: _worlds(words[name]) for name in usual}
    said = {}
    for least in sorted(set(counts.values()), reverse=True):
        said[str(least)] = ranking(folder, [name for name in usual if counts[name] >= least])
    return said


def _worlds(system: KeptSystem) -> int:
    answers = system.rows[0].conversation
    return 0 if answers is None else answers.worlds


def ranking(folder: Path, names: Sequence[str]) -> str:
    """Return how `eirkit choose` ranks some folders."""
    command = [sys.executable, "-m", "eirkit", "choose", *names]
    own = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env=own)
    return done.stdout.partition(LEGEND)[0].rstrip()


def _usual(names: Iterable[str]) -> list[str]:
    """Return the folders of memories as their makers mean them; a key-value store cannot be asked in words."""
    rank = {f"{name}-{PLAIN}": number for number, name in enumerate(ORDER)}
    meant = (name for name in names if not name.endswith("store-only") and name != f"key-value-{PLAIN}")
    return sorted(meant, key=lambda name: (rank.get(name, len(rank)), name))


def word_page(found: Results) -> dict[str, str]:
    """Return the generated parts of the page about conversations."""
    usual = {name: found.words[name] for name in _usual(found.words)}
    rows = [row for system in usual.values() for row in system.rows]
    tables = [table for table in word_tables(rows) if table.rows]
    ran = {_system(name): system.examples for name, system in usual.items()}
    rankings = [found.choices[count] for count in sorted(found.choices, key=int, reverse=True)]
    how = conditions(rows)
    return {
        "what-ran": markdown([_ran(usual)]),
        "ranking": "\n\n".join([how, *map(_printed, rankings)]),
        "figures": f"{how}\n\n{markdown(tables)}",
        "by-hand": markdown([_by_hand([row for row in found.by_hand if "question" in row])]),
        "examples": "\n\n".join(f"### {name}\n\n" + "\n".join(one) for name, one in ran.items() if one),
    }


def _by_hand(rows: Sequence[Mapping[str, Any]]) -> Table:
    marks = {True: "yes", False: "no"}
    lines = [
        {name: marks.get(value, value) if isinstance(value, bool) else value for name, value in row.items()}
        | {"fate": WORD_FATES[row["fate"]].label}
        for row in rows
    ]
    return _ordered("by hand", "Faults held against the vendor's own store and search", lines)


def _ordered(kind: str, title: str, lines: Sequence[Mapping[str, Any]]) -> Table:
    """Return lines as a table with the columns of its kind in their order."""
    return listed(kind, title, [{name: line.get(name) for name in COLUMNS[kind]} for line in lines])


def _ran(words: Mapping[str, KeptSystem]) -> Table:
    lines = [
        {"memory": _system(name), "version": system.versions or None, "worlds": _worlds(system)}
        for name, system in words.items()
    ]
    return listed("ran", "What ran", lines)


def system_page(found: Results) -> dict[str, str]:
    """Return the generated parts of the page about memory systems."""
    rows = [{name: system.rows for name, system in getattr(found, kind).items()} for kind in GRIDS]
    tables = []
    for kind, table in zip(GRIDS, study(*rows), strict=True):
        lines = sorted(table.rows, key=lambda row: row["memory"])
        tables.append(_ordered(kind, table.title, list(map(_rounded, lines))))
    how = conditions([row for of_kind in rows for own in of_kind.values() for row in own])
    return {
        "profiles": f"{how}\n\n{markdown(tables)}",
        "every-ranking": f"{how}\n\n{_printed(found.ranking)}",
        "gate": markdown([_gate(found.gate)]),
        "overwrites": markdown([_overwrites([row for row in found.by_hand if "label" in row])]),
    }


def _overwrites(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return what vendors' own searches returned for labels that were written again."""
    lines: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda one: str(one["memory"])):
        line = lines.setdefault(row["memory"], {"memory": row["memory"], "both values are held": "yes"})
        line["both values are held"] = "yes" if row["holds both"] and line["both values are held"] == "yes" else "no"
        line[row["label"]] = ", ".join(text.partition(" = ")[2] for text in row["returned"])
    return listed("overwrites", "Labels written again, by the vendors' own interfaces: values in order", lines.values())


def _printed(text: str) -> str:
    return f"```text\n{text}\n```"


def _rounded(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line with the mean number of texts over worlds as readers need it."""
    return {**line, "texts": f"{line['texts']:.1f}"} if line.get("texts") is not None else line


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


PAGES: dict[str, Callable[[Results], dict[str, str]]] = {
    "words-under-test.md": word_page,
    "memories-under-test.md": system_page,
}


def renewed(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with its generated parts up to date."""
    for name, text in parts.items():
        begin = f"<!-- {name}: generated by studies/system_results.py -->\n"
        if begin not in page:
            raise SystemExit(f"the page has no place for {name}; add the line {begin.strip()}")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{text}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return page


def main(arguments: Sequence[str]) -> None:
    if arguments and arguments[0] == "keep":
        found = msgspec.json.encode(keep(*map(Path, arguments[1:])), order="sorted")
        RESULTS.write_bytes(msgspec.json.format(found, indent=1) + b"\n")
    else:
        found = read_results()
        for name, parts in PAGES.items():
            (DOCS / name).write_text(renewed((DOCS / name).read_text("utf-8"), parts(found)), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
