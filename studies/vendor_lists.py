"""Holds what memory systems returned in recorded runs against their vendors' own interfaces, question by question.

Each world is run in each budget. A script in the system's own environment (`studies.vendor_calls`) is told the same
conversations and asks the same questions, with the vendor's default, ten results, and as many as a budget of tokens
asks for; what is shown of them is cut here by a rule of its own. Every list that differs is printed, with both lists.
python -m studies.vendor_lists NAME … [--preset standard] [--seeds 0:3] [--budgets documented,k=10,tokens=500]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.lacuna.scripted.reader import make_reader
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.records.database import SweepDatabase
from eirkit.records.events import MemoryExchange
from eirkit.seeds import read_seeds
from studies.vendor_calls import VendorLists, World, ask_vendor

BUDGETS = ("documented", "k=10", "tokens=500")
PATIENCE = 900  # seconds for one call, which on a busy machine may take many


class Case(NamedTuple):
    """What came back for one question, in the product and from the vendor."""

    budget: str
    seed: int
    t: int
    shown: tuple[str, ...]
    unshown: tuple[tuple[int, str], ...]  # with the rank of each
    vendor: tuple[str, ...]

    @property
    def differs(self) -> str:
        """What is not the same; empty if everything is."""
        kind, _, number = self.budget.partition("=")
        expected = cut(self.vendor, int(number)) if kind == "tokens" else list(self.vendor)
        if list(self.shown) != expected:
            return "shown"
        left = [self.vendor[rank - 1].endswith(text) for rank, text in self.unshown]
        came = max([len(self.shown), *(rank for rank, _ in self.unshown)])
        return "" if all(left) and came == len(self.vendor) else "left out"


def cut(texts: Sequence[str], tokens: int) -> list[str]:
    """Return texts, best first, up to a number of tokens of four characters; the last one up to the end of a line."""
    room, shown = 4 * tokens, list[str]()
    for text in texts:
        part = text
        while len(part) > room and "\n" in part:
            part = part.rpartition("\n")[0]
        part = part if len(part) <= room else "" if shown else text[:room]
        shown += [part] if part else []
        room -= len(part)
        if part != text:
            break
    return shown


def results_asked(budget: str) -> int | None:
    """Return how many results a vendor is asked for; None for its own default."""
    kind, _, number = budget.partition("=")
    return {"documented": None, "k": int(number or 0), "tokens": max(50, int(number or 0) // 10)}[kind]


def sessions_of(task: WorldConversation) -> list[tuple[list[dict[str, str]], str]]:
    """Return the messages of each session in which something is said, and its day."""
    return [
        ([{"role": one.role, "content": one.text} for one in told.messages], date.fromordinal(told.day).isoformat())
        for told in task.sessions
        if told.messages
    ]


def questions_of(task: WorldConversation) -> list[tuple[str, str]]:
    """Return the questions, and the day on which each is asked."""
    return [(one.text, date.fromordinal(one.day).isoformat()) for one in task.questions]


def ask_product(
    name: str, settings: Mapping[str, Any], preset: str, seeds: str, budgets: Sequence[str], out: Path
) -> dict[tuple[str, int, int], MemoryExchange]:
    """Return what recorded runs had back for each budget, seed and question."""
    memory = {"memory": name, "memory_options": {name: {"timeout_seconds": PATIENCE, **settings}}}
    start_sweep(
        read_suite(
            {
                "workload": "conversation",
                "preset": preset,
                "model": "scripted/reader",
                **memory,
                "budget": list(budgets),
                "seeds": seeds,
            }
        ),
        out,
        control=False,
    )
    found = {}
    with SweepDatabase(out) as database:
        for record in database.records():
            budget = record.setting.access.budget
            for event in database.events(record.run):
                if isinstance(event, MemoryExchange) and event.verb == "recall":
                    found[budget, record.seed, event.t] = event
    return found


def cases_of(
    name: str, settings: Mapping[str, Any], preset: str, seeds: str, budgets: Sequence[str] = BUDGETS
) -> Iterator[Case]:
    """Yield a case for each budget, world and question."""
    spec = find_workload("conversation").specify({"workload": "conversation", "preset": preset})
    tasks = [task for task in generate_many(spec, read_seeds(seeds)) if isinstance(task, WorldConversation)]
    worlds = [
        World(
            sessions=sessions_of(task),
            questions=[(*asked, results_asked(budget)) for budget in budgets for asked in questions_of(task)],
        )
        for task in tasks
    ]
    with TemporaryDirectory() as folder:
        ours = ask_product(name, settings, preset, seeds, budgets, Path(folder) / "out")
    theirs: list[VendorLists] = asyncio.run(ask_vendor(name, make_reader(ModelOptions()), worlds))
    for seed, task, vendor in zip(read_seeds(seeds), tasks, theirs, strict=True):
        lists = iter(vendor.found)
        for budget in budgets:
            for asked in task.questions:
                event = ours[budget, seed, asked.t]
                left = tuple(zip(event.unshown_ranks, event.unshown, strict=True))
                yield Case(budget, seed, asked.t, tuple(event.found or ()), left, tuple(next(lists)))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.vendor_lists")
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--seeds", default="0:3")
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    given = parser.parse_args(arguments)
    for name in given.names:
        cases = list(cases_of(name, {}, given.preset, given.seeds, given.budgets.split(",")))
        for case in cases:
            if case.differs:
                print(name, *case[:3], case.differs, *(f"\n  ours    {text!r}" for text in case.shown))
                print(*(f"  vendor  {text!r}\n" for text in case.vendor), sep="", end="")
        for budget in given.budgets.split(","):
            own = [case for case in cases if case.budget == budget]
            same, some = sum(not case.differs for case in own), sum(bool(case.vendor) for case in own)
            print(f"{name} | {budget} | {same} of {len(own)} lists are the same | {some} are not empty", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
