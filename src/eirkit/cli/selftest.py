"""`eirkit selftest`: compares what eirkit says about misbehaving models, memories and agents with what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from eirkit.cli import run
from eirkit.cli.command import Show, command, document_options, option
from eirkit.cli.execution import LiveLine
from eirkit.cli.options import NameList
from eirkit.selftest.behaviour import PlantedBehaviour, Result
from eirkit.selftest.catalogue import by_family, choose, try_all
from eirkit.show.document import Document, Section
from eirkit.show.table import Cell, Column, Table, counted


@command(example="eirkit selftest --only memory-sentence,empty")
@option("--list", "listing", is_flag=True, help="List the behaviours; try none.")
@option(
    "--only", type=NameList(), default=None, metavar="NAMES", help="Behaviours or families to try, separated by commas."
)
@document_options
def selftest(listing: bool, only: Sequence[str] | None, show: Show) -> int:
    """Try models, memories and agents that misbehave in known ways, and check every sentence about them.

    A server on this machine plays each of them and knows what is true at every step. What records, terminal and page
    say must be true, or that it cannot be known. Exits with 1 if anything disagrees. Nothing outside this machine is
    called, and nothing is spent.
    """
    chosen = choose(only or ())
    if listing:
        show(_listed(chosen))
        return 0
    with LiveLine("trying") as line:
        results = list(try_all(chosen, run, lambda done, name: line.show(done, name, len(chosen))))
    show(_document(results))
    return 1 if any(one.disagreements for one in results) else 0


def _listed(chosen: Sequence[tuple[str, PlantedBehaviour]]) -> Document:
    rows = tuple({"family": family, "name": one.name, "about": one.about} for family, one in chosen)
    columns = (
        Column("family", "family", role="name"),
        Column("name", "behaviour", role="name"),
        Column("about", "what it does", role="text"),
    )
    answer = (f"{counted(len(rows), 'behaviour')}.",)
    table = Table("behaviours", "Behaviours", columns, rows)
    return Document("selftest-list", "Behaviours", answer, {"behaviours": rows}, (Section("", (), (table,)),))


def _document(results: Sequence[Result]) -> Document:
    wrong = [one for one in results if one.disagreements]
    steps = sum(one.steps for one in results)
    agree = f"eirkit says what is true about {len(results) - len(wrong)} of {counted(len(results), 'behaviour')}"
    rows: list[dict[str, Cell]] = [
        {
            "family": family,
            "behaviours": len(found),
            "steps": sum(one.steps for one in found),
            "disagree": sum(bool(one.disagreements) for one in found),
        }
        for family, found in by_family(results)
    ]
    columns = (
        Column("family", "family", role="name"),
        Column("behaviours", "behaviours"),
        Column("steps", "steps", meaning="compared one by one with what the server knows"),
        Column("disagree", "disagree", meaning="behaviours about which something false was said"),
    )
    tables = [Table("families", "Behaviours by family", columns, tuple(rows))]
    if wrong:
        told = (Column("name", "behaviour", role="name"), Column("first", "first disagreement", role="text"))
        listed = tuple({"name": one.name, "first": one.disagreements[0]} for one in wrong)
        tables.append(Table("disagreements", "What is false", told, listed))
    then = f"eirkit selftest --only {wrong[0].name} --json" if wrong else "eirkit selftest --list"
    data = {"behaviours": [asdict(one) for one in results], "steps": steps, "disagree": len(wrong)}
    return Document(
        "selftest",
        "What eirkit says about models, memories and agents with known faults",
        (f"{agree}, over {counted(steps, 'step')}.",),
        data,
        (Section("", (), tuple(tables)),),
        next=then,
    )
