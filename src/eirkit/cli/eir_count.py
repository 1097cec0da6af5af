"""`eirkit eir count`: counts the bits that a contract in a Python file requires."""

from __future__ import annotations

from shlex import quote
from typing import Any

import click

from eirkit.cli.command import command, option
from eirkit.cli.output import Show, document_options
from eirkit.eir.bisimulation import count_process
from eirkit.eir.contract import LIMIT, ContractCount, Process, load_contract
from eirkit.eir.enumeration import count_contract
from eirkit.show.document import Document, facts
from eirkit.show.page import Section
from eirkit.show.table import Cell, Column, Table


@command(example="eirkit eir count examples/timezone.py:timezone")
@click.argument("contract", metavar="FILE.py:NAME")
@option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="Evaluations after which to give up.",
)
@option("--groups", is_flag=True, help="Also list which histories, or states, share a class.")
@document_options
def count(contract: str, limit: int, groups: bool, show: Show) -> None:
    """Count how many bits the contract NAME in FILE.py requires at the cut that it describes.

    NAME is an object or a class with `histories`, `futures` and `respond(history, future)`; or with `states`,
    `moves(state)`, `step(state, move) -> (output, next_state)` and `horizon` (steps left, None for unlimited).
    """
    found = load_contract(contract)
    counted = count_process(found, limit=limit) if isinstance(found, Process) else count_contract(found, limit=limit)
    data = {"contract": contract, **as_document(counted)}
    if groups:
        data["groups"] = [[str(member) for member in group] for group in counted.groups]
    show(_document(contract, counted, data, groups))


def as_document(counted: ContractCount) -> dict[str, Any]:
    """Return what `--json` prints about a count."""
    return {
        "form": "process" if counted.futures is None else "finite",
        "classes": counted.classes,
        "bits": counted.bits,
        "representation_bits": counted.representation_bits,
        "histories": counted.histories,
        "futures": counted.futures,
        "horizon": counted.horizon,
        "evaluations": counted.evaluations,
        "method": counted.method,
    }


def _document(contract: str, counted: ContractCount, data: dict[str, Any], groups: bool) -> Document:
    pasts = "states" if counted.futures is None else "histories"
    answer = (f"{counted.bits:.3f} bits must survive this cut.", _whole(counted.representation_bits))
    found: dict[str, Cell] = {
        pasts: counted.histories,
        "classes": f"{counted.classes:,}: {pasts} of one class need the same answers, whatever comes next",
        "EIR": f"log2({counted.classes:,}) = {counted.bits:.3f} bits",
        "method": f"{counted.method}; {counted.evaluations:,} evaluations",
    }
    items = [facts("count", "How it was counted", found)]
    if groups:
        rows: list[dict[str, Cell]] = [
            {"class": n, "member": str(m)} for n, group in enumerate(counted.groups, 1) for m in group
        ]
        columns = (Column("class", "class"), Column("member", pasts, role="text"))
        items.append(Table("groups", f"{pasts.capitalize()} by class", columns, tuple(rows)))
    then = "eirkit eir curve stepwise-sum" if groups else f"eirkit eir count {quote(contract)} --groups"
    return Document(
        "eir-count", f"Bits required by {contract}", answer, data, (Section("", (), tuple(items)),), next=then
    )


def _whole(bits: int) -> str:
    if bits == 0:
        return "Nothing has to be remembered."
    return f"A fixed-length code needs {bits} whole bits; with fewer, no agent can be right in every case."
