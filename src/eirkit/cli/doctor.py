"""`eirkit doctor`: lists what is usable here, what is missing, and how to install it."""

from __future__ import annotations

import platform
from typing import Any

import eirkit
from eirkit.agents.stores.environments import install as install_memory
from eirkit.availability import list_availability
from eirkit.cli.command import command, option
from eirkit.cli.output import Show, document_options, say
from eirkit.show.document import Document
from eirkit.show.page import Section
from eirkit.show.table import Column, Table

FAMILIES = ("memories", "models", "formats", "engines")
COLUMNS = (
    Column("name", "name", role="name"),
    Column("usable", "usable"),
    Column("reason", "what is missing, or what it does", role="text"),
)


@command(example="eirkit doctor")
@option(
    "--install",
    metavar="NAMES",
    multiple=True,
    help="Create environments for these memory systems: mem0,letta. Can be repeated.",
)
@document_options
def doctor(install: tuple[str, ...], show: Show) -> None:
    """List the memory systems, models, log formats and engines that are usable here, and how to get the others."""
    for name in filter(None, ",".join(install).split(",")):
        install_memory(name.strip(), say)
    show(_document({"python": platform.python_version(), "eirkit": eirkit.__version__, **list_availability()}))


def _document(data: dict[str, Any]) -> Document:
    tables = tuple(Table(family, family.capitalize(), COLUMNS, tuple(data[family])) for family in FAMILIES)
    usable = {family: sum(one["usable"] for one in data[family]) for family in FAMILIES}
    counts = ", ".join(f"{usable[family]} of {len(data[family])} {family}" for family in FAMILIES)
    answer = f"eirkit {data['eirkit']} on Python {data['python']}: {counts} are usable."
    missing = [one["name"] for one in data["memories"] if not one["usable"] and "--install" in one["reason"]]
    then = f"eirkit doctor --install {missing[0]}" if missing else "eirkit demo"
    return Document("doctor", "What is usable here", (answer,), data, (Section("", (), tables),), next=then)
