"""Says what to do about an analysis: the few things that cost most, in sentences with tokens, money and the turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from eirkit.agents.serving.prices import MILLION, load_prices
from eirkit.logs.audits.occupancy import name_in, plain_name
from eirkit.show.document import Section
from eirkit.show.table import Column, Table, counted, in_viewer

CENT = 0.01  # less money is not worth a word
COLUMNS = (
    Column("words", "what to do"),
    Column("run_id", "run", role="name", link="view"),
    Column("turn", "turn", link="view"),
    Column("tokens", "tokens"),
    Column("usd", "at least, $", 2, meaning="the tokens once, at the model's present price of input"),
)


def advice_rows(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return what to do, one row for each thing; an older analysis has none."""
    rows = document.get("advice", ())
    return tuple({**one, "words": _words(one), "tokens": _spent(one), "usd": input_cost(one)} for one in rows)


def advice_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what to act on, numbered, with its cost and the turn to look at."""
    for number, one in enumerate(rows, 1):
        tokens = "" if one["tokens"] is None else counted(one["tokens"], "token")
        if tokens and one.get("kind") == "compaction":
            tokens += " dropped"
        money = "" if one["usd"] is None or one["usd"] < CENT else f"at least ${one['usd']:.2f}"
        place = f"turn {one['turn']} of {one['run_id']}"
        yield f"{number}. {one['words']} [{'; '.join(filter(None, (tokens, money, place)))}]"


def advice_section(document: Mapping[str, Any]) -> Section | None:
    """Return the section with which a page begins."""
    rows = advice_rows(document)
    if not rows:
        return None
    columns = tuple(one for one in COLUMNS if one.key != "usd" or any(row["usd"] is not None for row in rows))
    linked = tuple({**row, "view": in_viewer(run=row["run_id"], turn=row["turn"])} for row in rows)
    return Section("What to do", (), (Table("advice", "Worth acting on", columns, linked),))


def input_cost(thing: Mapping[str, Any]) -> float | None:
    """Return what the tokens spent again cost once as input of its model; None if either is unknown."""
    names = _prices()
    name = name_in(names, str(thing.get("model") or ""))
    tokens = thing.get("count") if thing.get("kind") == "compaction" else _spent(thing)
    return None if name is None or tokens is None else tokens * names[name] / MILLION


def _spent(thing: Mapping[str, Any]) -> int | None:
    """Return the tokens of a thing; those that a cut output hid were not spent."""
    tokens: int | None = None if thing.get("kind") == "clip" else thing.get("tokens")
    return tokens


@cache
def _prices() -> dict[str, float]:
    listed = load_prices().built_in
    return {plain_name(name): float(price.input) for name, price in listed.items() if not name.endswith("*")}


def _words(thing: Mapping[str, Any]) -> str:
    subject = str(thing["subject"])
    if thing["kind"] == "file":
        runs = f" in {counted(thing['runs'], 'run')}" if thing["runs"] > 1 else ""
        again = f"{subject}, or a part of it, was shown again {counted(thing['count'], 'time')}{runs} though unchanged"
        return f"{again}: note what matters of it in the agent's memory file, or split it."
    if thing["kind"] == "compaction":
        again = f"; reading them again took {counted(thing['count'], 'token')}" if thing["count"] else ""
        return f"A {subject} dropped files that were still needed{again}: compact between tasks, or name what to keep."
    if thing["kind"] == "instruction":
        lost = f"{_quoted(subject)} was lost at the compaction before turn {thing['cut']}"
        return f"{lost}, then broken ({thing['by'][:60]}): put it into the agent's instruction file."
    first, *others = subject.split(", ")
    shown = f"{first} and {counted(len(others), 'other file')}" if others else first
    hid = f"An output that showed {shown} was cut by about {counted(thing['tokens'], 'token')}"
    return f"{hid}, and not looked at again: read in parts, narrow the search, or raise the limit of the output."


def _quoted(text: str) -> str:
    return f"“{text if len(text) <= 80 else text[:79] + '…'}”"
