"""`eirkit selftest`: compares what eirkit says about misbehaving models, memories and agents with what is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from eirkit.cli import run
from eirkit.cli.agent_options import call_options, known_models
from eirkit.cli.command import NameList, Show, command, document_options, option, options, say
from eirkit.cli.execution import LiveLine
from eirkit.cli.run_options import given_keys
from eirkit.cli.runner_options import PartEstimate, funds_options, totals
from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.suite import Suite
from eirkit.report.document import Document, Section
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.testing.selftest import agents, conversations, memories, models, money
from eirkit.testing.selftest.behavior import Command, PlantedBehavior, Result, try_behavior
from eirkit.testing.selftest.endpoint import EndpointProperty, expected_cost, plans_for, try_endpoint

FAMILIES: dict[str, tuple[PlantedBehavior, ...]] = {
    "models": models.BEHAVIORS,
    "memories": memories.BEHAVIORS,
    "agents": agents.BEHAVIORS,
    "money": money.BEHAVIORS,
    "conversations": conversations.BEHAVIORS,
}


def choose(only: Sequence[str] = ()) -> list[tuple[str, PlantedBehavior]]:
    """Return behaviors with their families: all, or those whose name or family is given."""
    listed = [(family, behavior) for family, behaviors in FAMILIES.items() for behavior in behaviors]
    known = [*FAMILIES, *(one.name for _, one in listed)]
    for name in only:
        if name not in known:
            raise UnknownNameError("behavior", name, known)
    return [(family, one) for family, one in listed if not only or family in only or one.name in only]


def try_all(
    chosen: Sequence[tuple[str, PlantedBehavior]], command: Command, observe: Callable[[int, str], None]
) -> Iterator[Result]:
    """Try behaviors one after the other; `observe` is told how many are done and which comes next."""
    for done, (family, behavior) in enumerate(chosen):
        observe(done, behavior.name)
        yield try_behavior(behavior, family, command)


def by_family(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Yield the results of each family."""
    for family, found in groupby(results, key=lambda one: one.family):
        yield family, list(found)


@command(example="eirkit selftest --only memory-sentence,empty")
@option("--list", "listing", is_flag=True, help="List the behaviors; try none.")
@option(
    "--only", type=NameList(), default=None, metavar="NAMES", help="Behaviors or families to try, separated by commas."
)
@option("--model", known=known_models, group="Agent", help="Try this model instead, with a few short tasks.")
@option("--memory", metavar="NAME", group="Memory", help="Try this memory system instead.")
@options(*call_options)
@funds_options
@document_options
def selftest(
    listing: bool,
    only: Sequence[str] | None,
    model: str | None,
    memory: str | None,
    funds: SpendingLimits,
    dry_run: bool,
    show: Show,
    **called: Any,
) -> int:
    """Try models, memories and agents that misbehave in known ways, and check every sentence about them.

    A server on this machine plays each of them and knows what is true at every step. What records, terminal and page
    say must be true, or that it cannot be known. Exits with 1 if anything disagrees. Nothing outside this machine is
    called, and nothing is spent.

    With --model or --memory, your own is tried instead, before you spend more on it: whether its answers can be read,
    its replies are whole and counted, and nothing leaks into them.
    """
    if model or memory:
        if listing or only:
            raise UsageError("--list and --only are about planted behaviors; leave out --model and --memory")
        given = {"model": [[model]] if model else (), "memory": [memory] if memory else None, "no_texts": False}
        plans = plans_for(given_keys({**called, **given}))
        return _try_own(" and ".join(filter(None, (model, memory))), plans, funds, dry_run, show)
    if any(called.values()) or dry_run:
        raise UsageError("options of models and memories need one; add --model NAME or --memory NAME")
    chosen = choose(only or ())
    if listing:
        show(_listed(chosen))
        return 0
    with LiveLine("trying") as line:
        results = list(try_all(chosen, run, lambda done, name: line.show(done, name, len(chosen))))
    show(_document(results))
    return 1 if any(result.disagreements for result in results) else 0


def _try_own(tried: str, plans: Mapping[str, Suite], funds: SpendingLimits, dry_run: bool, show: Show) -> int:
    """Try a user's own model or memory; print what it may cost first."""
    expected = PartEstimate(**asdict(expected_cost(plans, funds)), runs=sum(map(len, plans.values())))
    said = totals(expected, "estimate: ", (tried,))
    if dry_run:
        show(Document("selftest-estimate", "Estimate", (said,), expected))
        return 0
    say(said)
    with TemporaryDirectory(prefix="eirkit-selftest-") as folder:
        found = try_endpoint(plans, Path(folder), funds)
    show(_findings(tried, OwnDocument(found, expected)))
    return 1 if any(finding.holds is False for finding in found) else 0


class OwnDocument(Struct, frozen=True):
    """What was seen of a user's own model or memory."""

    findings: Sequence[EndpointProperty]
    estimate: PartEstimate


class SelftestDocument(Struct, frozen=True):
    """What eirkit says about planted behaviors."""

    behaviors: Sequence[Result]
    steps: int
    disagree: int  # behaviors


def _findings(tried: str, data: OwnDocument) -> Document:
    found = data.findings
    verdicts = {True: "yes", False: "no", None: ""}
    rows: list[dict[str, Cell]] = [
        {"name": finding.name, "holds": verdicts[finding.holds], "detail": finding.detail} for finding in found
    ]
    columns = (
        Column("name", "property", role="text"),
        Column("holds", "holds"),
        Column("detail", "what was seen", role="text"),
    )
    wrong = [finding.name for finding in found if finding.holds is False]
    answer = f"{tried}: nothing was found that would spoil a measurement."
    if wrong:
        answer = (
            f"{tried}: a measurement would be spoilt, because this does not hold: {'; '.join(dict.fromkeys(wrong))}."
        )
    table = Table(
        "findings", "Two small sweeps, with everything in context and with almost nothing", columns, tuple(rows)
    )
    return Document("selftest-own", "Your own model and memory", (answer,), data, (Section("", (), (table,)),))


def _listed(chosen: Sequence[tuple[str, PlantedBehavior]]) -> Document:
    rows = tuple({"family": family, "name": one.name, "about": one.about} for family, one in chosen)
    columns = (
        Column("family", "family", role="name"),
        Column("name", "behavior", role="name"),
        Column("about", "what it does", role="text"),
    )
    answer = (f"{counted(len(rows), 'behavior')}.",)
    table = Table("behaviors", "Behaviors", columns, rows)
    return Document("selftest-list", "Behaviors", answer, {"behaviors": rows}, (Section("", (), (table,)),))


def _document(results: Sequence[Result]) -> Document:
    wrong = [result for result in results if result.disagreements]
    steps = sum(result.steps for result in results)
    agree = f"eirkit says what is true about {len(results) - len(wrong)} of {counted(len(results), 'behavior')}"
    rows: list[dict[str, Cell]] = [
        {
            "family": family,
            "behaviors": len(found),
            "steps": sum(result.steps for result in found),
            "disagree": sum(bool(result.disagreements) for result in found),
        }
        for family, found in by_family(results)
    ]
    columns = (
        Column("family", "family", role="name"),
        Column("behaviors", "behaviors"),
        Column("steps", "steps", meaning="compared one by one with what the server knows"),
        Column("disagree", "disagree", meaning="behaviors about which something false was said"),
    )
    tables = [Table("families", "Behaviors by family", columns, tuple(rows))]
    if wrong:
        told = (Column("name", "behavior", role="name"), Column("first", "first disagreement", role="text"))
        listed = tuple({"name": result.name, "first": result.disagreements[0]} for result in wrong)
        tables.append(Table("disagreements", "What is false", told, listed))
    then = f"eirkit selftest --only {wrong[0].name} --json" if wrong else "eirkit selftest --list"
    data = SelftestDocument(results, steps, len(wrong))
    return Document(
        "selftest",
        "What eirkit says about models, memories and agents with known faults",
        (f"{agree}, over {counted(steps, 'step')}.",),
        data,
        (Section("", (), tuple(tables)),),
        next=then,
    )
