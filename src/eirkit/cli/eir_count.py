"""`eirkit eir count`: the classes of a contract that the user wrote."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console

from eirkit.cli.output import emit, json_option, table
from eirkit.eir.bisimulation import count_process
from eirkit.eir.contract import LIMIT, ContractCount, Process, load_contract
from eirkit.eir.enumeration import count_contract


@click.command()
@click.argument("contract", metavar="FILE.py:NAME")
@click.option("--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, help="Evaluations allowed.")
@click.option("--groups", is_flag=True, help="Also list which histories, or states, share a class.")
@json_option
def count(contract: str, limit: int, groups: bool, as_json: bool) -> None:
    """Count the classes of the contract NAME in FILE.py: how much must survive the cut that it describes.

    NAME is an object or a class with `histories`, `futures` and `respond(history, future)`; or with `states`,
    `moves(state)`, `step(state, move) -> (output, next_state)` and `horizon` (steps left, None for ever).
    """
    found = load_contract(contract)
    counted = count_process(found, limit=limit) if isinstance(found, Process) else count_contract(found, limit=limit)
    document = {"contract": contract, **as_document(counted)}
    if groups:
        document["groups"] = [[str(member) for member in group] for group in counted.groups]
    emit(document, as_json, lambda console: _render(console, counted, groups))


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


def _render(console: Console, counted: ContractCount, groups: bool) -> None:
    pasts = "states" if counted.futures is None else "histories"
    if groups:
        rows = [(number, str(member)) for number, group in enumerate(counted.groups, 1) for member in group]
        console.print(table(f"{pasts} by class", ("class", pasts), rows))
    console.print(f"[bold]{counted.bits:.3f} bits[/bold] must survive this cut.", highlight=False)
    console.print(
        f"{pasts}: {counted.histories:,}, classes: {counted.classes:,}. "
        f"{pasts.capitalize()} of one class need the same answers, whatever comes next.",
        highlight=False,
    )
    console.print(f"EIR = log2({counted.classes:,}); {_whole(counted.representation_bits)}", highlight=False)
    console.print(f"{counted.method}; {counted.evaluations:,} evaluations", style="dim", highlight=False)


def _whole(bits: int) -> str:
    if bits == 0:
        return "nothing has to be remembered."
    return f"a fixed-length code needs {bits} whole bits, and with fewer no agent can be right in every case."
