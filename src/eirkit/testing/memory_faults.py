"""Requirements of `check_memory` that name faults seen in practice: through search, over time, and with many records.

A search may rank as it likes, so a record is sought by its whole text, which any ranking puts first, and by its label;
what a passage says about a label is compared with what was written under it. Failures name the fault and show the call.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from eirkit.agents.memory import Item
from eirkit.testing.opened_memory import Factory, OpenedMemory, SuiteLimits
from eirkit.validity import EndedText

FEWEST_RECORDS = 64  # written however long it takes, so that a store of twenty is found out
WRITING_SECONDS = 20.0  # after which no more are written
SAMPLED = 24  # of many records, which are sought
MOST_MISSED = 0.1  # of exact searches; a ranking of embeddings may confuse a few of thousands of records
GRACE_SECONDS = 3.0  # in which a record that `flush` should have made visible is looked for
WRITERS = 16
_STATED = re.compile(r"\bA_(?:0++(?=\d))?+(\d++) = ([^\s;]+)")

Fault = Callable[[Factory, SuiteLimits], Awaitable[str | None]]


def _item(number: int, value: object) -> Item:
    return Item(f"A_{number}", f"A_{number:02} = {value}")


def _shown(text: str | None) -> str:
    return "nothing" if text is None else repr(text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}")


def _wrong_values(passages: Sequence[str], written: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what passages state under a label that was written otherwise, as pairs of the statement and the truth."""
    found = []
    for passage in passages:
        for number, value in _STATED.findall(passage):
            truth = written.get(f"A_{number}")
            if truth is not None and value != truth.partition(" = ")[2].split()[0]:
                found.append((f"A_{int(number):02} = {value}", truth))
    return found


async def _sought(opened: OpenedMemory, item: Item) -> bool:
    """True if a record is found by its whole text or, in systems that look up names, by its label.

    Raises:
        AssertionError: it is found only as one that no longer holds.
    """
    ended = None
    for query in (item.text, item.text.partition(" = ")[0]):
        about = [passage for passage in await opened.search(query) if item.text in passage]
        if any(not isinstance(passage, EndedText) for passage in about):
            return True
        ended = ended or next((f"search({query!r}) returned {_shown(passage)}" for passage in about), None)
    assert ended is None, f"current value marked as ended: {ended}, which holds"
    return False


async def _true_values(system: Factory, limits: SuiteLimits) -> None:
    """A search states under a label only what was written under it."""
    async with OpenedMemory(system, limits) as opened:
        items = [_item(number, 1000 + 13 * number) for number in (1, 2, 3, 10, 11, 12, 41, 100, 101)]
        await opened.reset("values")
        await opened.write(*items)
        written = {item.label: item.text for item in items}
        for item in items:
            passages = await opened.find(item)
            for stated, truth in _wrong_values(passages, written):
                raise AssertionError(
                    f"wrong value: search({item.text.split()[0]!r}) returned {stated!r}; {truth!r} was written"
                )
        for label in ("A_4", "A_20", "A_1001"):
            kept = await opened.read(label)
            assert kept is None, (
                f"prefix match: read({label!r}) returned {_shown(kept)}; nothing was written under {label}"
            )


async def _found(system: Factory, limits: SuiteLimits) -> None:
    """A record is found by its whole text once it is written and flushed, the last one included."""
    async with OpenedMemory(system, limits) as opened:
        items = await opened.fill("found")
        for number in range(90, 93):
            items.append(_item(number, 1000 + 13 * number))
            await opened.write(items[-1])
            if await _sought(opened, items[-1]):
                continue
            late = await _appears(opened, items[-1])
            call = f"search({items[-1].text!r}) right after write and flush"
            assert late is None, f"late: {call} returned nothing of it; it was found {late:.1f} s later"
            await _missed(opened, items[:-1])  # earlier writes that search lacks tell more than the last one
            raise AssertionError(f"last write invisible: {call} did not return it")
        missed = await _missed(opened, items)
        assert not missed, f"lost write: search({missed[0].text!r}) returned nothing of {missed[0].label}"


async def _missed(opened: OpenedMemory, items: Sequence[Item]) -> list[Item]:
    """Return the records that no search finds; raise AssertionError if `read` returns some of them."""
    missed = [item for item in items if not await _sought(opened, item)]
    held = [item for item in missed if item.text in (await opened.read(item.label) or "")]
    if held:
        lie = f"read({held[0].label!r}) returns it and search({held[0].text!r}) does not"
        raise AssertionError(f"read and search disagree on {len(held)} of {len(items)} records: {lie}")
    return missed


async def _appears(opened: OpenedMemory, item: Item) -> float | None:
    """Return after how many seconds a record is found; None if not in time."""
    started = time.monotonic()
    while time.monotonic() - started < GRACE_SECONDS:
        await asyncio.sleep(0.05)
        if await _sought(opened, item):
            return time.monotonic() - started
    return None


async def _overwrites(system: Factory, limits: SuiteLimits) -> None:
    """After an overwrite, search and read give the new value first, and a repeated write leaves one record."""
    async with OpenedMemory(system, limits) as opened:
        items = await opened.fill("overwrites")
        new = [_item(number, 4000 + number) for number in (1, 2, 3)]
        await opened.write(*new)
        for old, item in zip(items, new, strict=False):
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), (
                f"overwrite ignored: read({item.label!r}) returned {_shown(kept)} after {item.text!r}"
            )
            _check_current(await opened.find(item), old, item)
        await opened.write(new[0])
        _check_current(await opened.find(new[0]), items[0], new[0])
        again = [text for text in await opened.search(new[0].text) if new[0].text in text]
        again = [text for text in again if not isinstance(text, EndedText)]
        assert len(again) < 2, f"duplicate after a retry: search({new[0].text!r}) returned it {len(again)} times"


def _check_current(passages: Sequence[str], old: Item, item: Item) -> None:
    """Raise AssertionError if a search states an old value; one that is marked as ended misleads nobody."""
    about = [text for text in passages if old.text in text or item.text in text]
    holding = [text for text in about if not isinstance(text, EndedText)]
    call, after = f"search({item.text.split()[0]!r}) returned", f"after {item.text!r}"
    if holding:
        assert item.text in holding[0], f"stale value: {call} {_shown(holding[0])} first, {after}"
    elif about:
        current = next((text for text in about if item.text in text), None)
        assert current is None, f"current value marked as ended: {call} {_shown(current)}, which holds"
        raise AssertionError(f"stale value: {call} {_shown(about[0])} alone, {after}")


async def _deletes(system: Factory, limits: SuiteLimits) -> str | None:
    """Where it can forget, a forgotten record stays gone in search, also after later writes."""
    async with OpenedMemory(system, limits) as opened:
        if not opened.can_forget:
            return "forgetting was not tested: it has no forget"
        items = await opened.fill("deletes")
        await opened.forget(items[0].label)
        for moment in ("after forget", "after forget and another write"):
            passages = [text for text in await opened.search(items[0].text) if items[0].text in text]
            kept = await opened.read(items[0].label)
            assert not passages, f"delete forgotten: search({items[0].text!r}) still returned it {moment}"
            assert kept is None, f"delete forgotten: read({items[0].label!r}) still returned it {moment}"
            await opened.write(_item(80, 4080))
    return None


async def _long_texts(system: Factory, limits: SuiteLimits) -> str | None:
    """Long, multi-line and Unicode texts come back whole."""
    words = " ".join(f"w{number:03}" for number in range(150))
    texts = {
        "long": f"A_51 = {words}",
        "multi-line": "A_52 = first line\nsecond line\nthird line, the end",
        "Unicode": "A_53 = Zoë naïve 東京 🗼 Straße, the end",
    }
    async with OpenedMemory(system, limits) as opened:
        await opened.reset("texts")
        items = {kind: Item(text[:4], text) for kind, text in texts.items()}
        await opened.write(*items.values())
        if opened.is_scripted:
            return (
                "long, multi-line and Unicode texts were not tested: scripted/extractor, which says what is kept, "
                "knows records of digits alone; give the system a model of its own"
            )
        for kind, item in items.items():
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), (
                f"{kind} text cut or changed: read({item.label!r}) returned {_shown(kept)}"
            )
            passages = [text for text in await opened.search(item.text) if item.text[:6] in text]
            best = max(passages, key=len, default=None)
            whole = any(item.text in text for text in passages)
            assert whole, f"{kind} text cut or changed: search({item.text[:20]!r}…) returned {_shown(best)}"
    return None


async def _many(system: Factory, limits: SuiteLimits) -> str:
    """Old records are kept while many more are written."""
    async with OpenedMemory(system, limits) as opened:
        items, why = await _written(opened, limits)
        sampled = items[:: max(1, len(items) // SAMPLED)][:SAMPLED]
        gone = [item for item in sampled if item.text not in (await opened.read(item.label) or "")]
        after = f"after {len(items):,} writes"
        assert not gone, f"lost among many: read({gone[0].label!r}) no longer returns it {after}"
        missed = [item for item in sampled if not await _sought(opened, item)]
        assert len(missed) <= MOST_MISSED * len(sampled), (
            f"lost among many: search({missed[0].text!r}) does not return it {after} "
            f"({len(missed)} of {len(sampled)} tried)"
        )
    return f"many records: {len(items):,} written{why}, {len(sampled)} sought, {len(missed)} not found"


async def _written(opened: OpenedMemory, limits: SuiteLimits) -> tuple[list[Item], str]:
    """Write many records; return them, and why they are fewer than were asked for."""
    await opened.reset("many")
    most = min(limits.records, opened.most_records or limits.records)
    items: list[Item] = []
    started = time.monotonic()
    while len(items) < most and (len(items) < FEWEST_RECORDS or time.monotonic() - started < WRITING_SECONDS):
        last = min(len(items) + 16, most)
        batch = [_item(number, 20_000 + 7 * number) for number in range(len(items) + 1, last + 1)]
        await opened.write(*batch, flush=False)
        items += batch
    took = time.monotonic() - started
    await opened.flush()
    if len(items) < most:
        return items, f" of {limits.records:,} in {took:,.1f} s, {1000 * took / len(items):,.1f} ms a write"
    return items, f" of {limits.records:,}, because it declares to hold no more" if most < limits.records else ""


async def _concurrent(system: Factory, limits: SuiteLimits) -> str | None:
    """Writes at the same time are all kept."""
    async with OpenedMemory(system, limits) as opened:
        if opened.is_queued:
            return "writes at the same time were not tested: its process takes one call at a time"
        await opened.reset("concurrent")
        items = [_item(number, 7000 + number) for number in range(1, WRITERS + 1)]
        await opened.write_together(items)
        gone = [item for item in items if item.text not in (await opened.read(item.label) or "")]
        lost = [item for item in items if item not in gone and not await _sought(opened, item)]
        told = f"of {WRITERS} writes at the same time {len(gone) + len(lost)} are lost"
        assert not gone, f"racing writers: {told}; read({gone[0].label!r}) returns something else"
        assert not lost, f"racing writers: {told}; search({lost[0].text!r}) does not return it"
    return None


async def _users(system: Factory, limits: SuiteLimits) -> None:
    """Two users with the same labels each find their own values."""
    async with OpenedMemory(system, limits) as one, OpenedMemory(system, limits) as other:
        mine, theirs = [[_item(number, base + number) for number in (1, 2, 3)] for base in (1000, 2000)]
        await one.reset("user-one")
        await other.reset("user-two")
        await one.write(*mine)
        await other.write(*theirs)
        for opened, own, foreign in ((one, mine, theirs), (other, theirs, mine)):
            for item, wrong in zip(own, foreign, strict=True):
                query = item.text.split()[0]
                kept, passages = await opened.read(item.label), await opened.search(query)
                assert wrong.text not in (kept or ""), (
                    f"another user's value: read({item.label!r}) returned {_shown(kept)}"
                )
                leaked = next((text for text in passages if wrong.text in text), None)
                assert leaked is None, f"another user's value: search({query!r}) returned {_shown(leaked)}"


async def restarts(system: Factory, limits: SuiteLimits) -> str | None:
    """Where it can be reopened, everything is there after a restart."""
    async with OpenedMemory(system, limits) as opened:
        if not opened.can_reopen:
            return "a restart was not tested: it has no reopen(scope)"
        items = await opened.fill("restarts")
        await opened.restart("restarts")
        for item in items:
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), f"lost in a restart: read({item.label!r}) returned {_shown(kept)}"
            assert await _sought(opened, item), f"lost in a restart: search({item.text!r}) does not return it"
    return None


FAULTS: tuple[Fault, ...] = (
    _true_values,
    _found,
    _overwrites,
    _deletes,
    _long_texts,
    _many,
    _concurrent,
    _users,
    restarts,
)
