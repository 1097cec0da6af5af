"""Requirements of `check_memory` that name faults seen in practice: through search, over time, and with many records.

A search may rank as it likes, so a record is sought by its whole text, which any ranking puts first, and by its label;
what a passage says about a label is compared with what was written under it. Failures name the fault and show the call.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from eirkit.lacuna.agents.recognition import recognize
from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.memories.validity import EndedText
from eirkit.testing.opened_memory import Factory, OpenedMemory, SuiteLimits

FEWEST_RECORDS = 64  # written however long it takes, so that a store of twenty is found out
WRITING_SECONDS = 20.0  # after which no more are written
SAMPLED = 24  # of many records, which are sought
MOST_MISSED = 0.1  # of exact searches; a ranking of embeddings may confuse a few of thousands of records
GRACE_SECONDS = 3.0  # in which a record that `flush` should have made visible is looked for
WRITERS = 16
MOST_DOUBT = 0.01  # that writes which are lost at any rate were lost by chance only where several wrote at a time
OVERWRITTEN, ROUNDS = 9, 4  # records and overwrites of each: they show that one in seven is lost in 99 of 100 trials
LAST_STEP = 731  # at which a record ends
_STATED = re.compile(r"\bA_(?:0++(?=\d))?+(\d++) = (-?\w++(?:[.,'’]\d++)*+)")

Fault = Callable[[Factory, SuiteLimits], Awaitable[str | None]]


def _item(number: int, value: object) -> Item:
    return Item(f"A_{number}", f"A_{number:02} = {value}")


def _shown(text: str | None) -> str:
    return "nothing" if text is None else repr(text if len(text) <= 60 else f"{text[:40]}…{text[-15:]}")


def _wrong_values(passages: Sequence[str], written: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Return what passages state under a label that was written otherwise, the truth, and whether that came too."""
    stated = [pair for passage in passages for pair in _STATED.findall(passage)]
    found = []
    for number, value in stated:
        truth = written.get(f"A_{number}")
        right = None if truth is None else truth.partition(" = ")[2]
        if truth is not None and value != right:
            found.append((f"A_{int(number):02} = {value}", truth, (number, right) in stated))
    return found


def has_record(passage: str, item: Item) -> bool:
    """True if a passage has a record: word for word, in JSON, or label and value in a sentence of the system's own."""
    if item.text in passage:
        return True
    label, _, value = item.text.partition(" = ")
    if not value.isdecimal():
        forms = (value, *(json.dumps(value, ensure_ascii=ascii)[1:-1] for ascii in (False, True)))
        return label in passage and any(form in passage for form in forms)
    number = int(label[2:])
    return number in recognize((passage,), {number: (int(value),)}).present


async def _sought(opened: OpenedMemory, item: Item) -> bool:
    """True if a record is found by its whole text or, in systems that look up names, by its label.

    Raises:
        AssertionError: it is found only as one that no longer holds.
    """
    ended = None
    for query in (item.text, item.text.partition(" = ")[0]):
        about = [passage for passage in await opened.search(query) if has_record(passage, item)]
        if any(not isinstance(passage, EndedText) for passage in about):
            return True
        ended = ended or next((f"search({query!r}) returned {_shown(passage)}" for passage in about), None)
    assert ended is None, f"current value marked as ended: {ended}, which holds"
    return False


async def _true_values(system: Factory, limits: SuiteLimits) -> None:
    """A search states under a label only what was written under it."""
    async with OpenedMemory(system, limits) as opened:
        items = [_item(number, 1000 + 13 * number) for number in (1, 2, 3, 10, 11, 12, 41, 100, 101)]
        # A value with zeros, one that is known before, and one of many digits.
        items += [_item(42, "0042"), _item(43, 1013), _item(44, 900_000_001)]
        await opened.reset("values")
        await opened.write(*items)
        written = {item.label: item.text for item in items}
        for item in items:
            passages = await opened.find(item)
            for stated, truth, both in _wrong_values(passages, written):
                call = f"search({item.text.split()[0]!r}) returned {stated!r}"
                if both:
                    raise AssertionError(f"contradiction: {call} beside {truth!r}, which was written")
                raise AssertionError(f"wrong value: {call}; {truth!r} was written")
            kept = await opened.read(item.label)
            fault = "lost write" if kept is None else _wrong_read(item, kept)
            assert item.text in (kept or ""), (
                f"{fault}: read({item.label!r}) returned {_shown(kept)}; {item.text!r} was written"
            )
        for label in ("A_4", "A_20", "A_1001", "a_1"):
            kept, fault = await opened.read(label), "case ignored" if label.islower() else "prefix match"
            assert kept is None, f"{fault}: read({label!r}) returned {_shown(kept)}; nothing was written under {label}"


def _wrong_read(item: Item, kept: str) -> str:
    """Return what is wrong with a read that returned another text than was written."""
    label, separator, _ = kept.partition(" = ")
    other = f"A_{label.removeprefix('A_').lstrip('0')}"
    return "prefix match" if separator and other != item.label and other.startswith(item.label) else "wrong value"


async def _found(system: Factory, limits: SuiteLimits) -> None:
    """A record is found by its whole text once it is written and flushed, the last one included."""
    async with OpenedMemory(system, limits) as opened:
        items = await opened.fill("found")
        before = await opened.held(items)
        for item in before:
            await opened.find(item)
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), (
                f"lost by a search: read({item.label!r}) returned {_shown(kept)} after a search for it"
            )
        for number in range(90, 93):
            items.append(_item(number, 1000 + 13 * number))
            await opened.write(items[-1])
            if await _sought(opened, items[-1]):
                continue
            late = await _appears(opened, items[-1])
            call = f"search({items[-1].text!r}) right after write and flush"
            assert late is None, f"late: {call} returned nothing of it; it was found {late:.1f} s later"
            missed = await _missed(opened, items)
            newest = "last write" if len(missed) == 1 else f"last {len(missed)} writes"
            assert missed == items or missed != items[-len(missed) :], f"{newest} invisible: {call} did not return it"
            await _check_held(opened, missed, items)
            raise AssertionError(f"lost write: {call} did not return it")
        missed = await _missed(opened, items)
        await _check_held(opened, missed, items)
        assert not missed, f"lost write: search({missed[0].text!r}) returned nothing of {missed[0].label}"


async def _missed(opened: OpenedMemory, items: Sequence[Item]) -> list[Item]:
    """Return the records that no search finds."""
    return [item for item in items if not await _sought(opened, item)]


async def _check_held(opened: OpenedMemory, missed: Sequence[Item], items: Sequence[Item]) -> None:
    """Raise AssertionError if `read` returns records that no search finds."""
    held = [item for item in missed if item.text in (await opened.read(item.label) or "")]
    if held:
        lie = f"read({held[0].label!r}) returns it and search({held[0].text!r}) does not"
        raise AssertionError(f"read and search disagree on {len(held)} of {len(items)} records: {lie}")


async def _appears(opened: OpenedMemory, item: Item) -> float | None:
    """Return after how many seconds a record is found; None if not in time."""
    started = time.monotonic()
    while time.monotonic() - started < GRACE_SECONDS:
        await asyncio.sleep(0.05)
        if await _sought(opened, item):
            return time.monotonic() - started
    return None


async def _overwrites(system: Factory, limits: SuiteLimits) -> str:
    """After an overwrite, search and read give the new value first, and a repeated write leaves one record."""
    async with OpenedMemory(system, limits) as opened:
        current = await opened.fill("overwrites", count=OVERWRITTEN)
        first, lost, tried = current[0], [], 0
        for item in current:
            await opened.find(item)  # whose answer must not be kept for later
        for rounds in range(ROUNDS):
            new = [_item(number, 4000 + 100 * rounds + number) for number in range(1, len(current) + 1)]
            await opened.write(*new)
            for old, item in zip(current, new, strict=True):
                kept = await opened.read(item.label)
                if item.text in (kept or ""):
                    _check_current(await opened.find(item), old, item)
                else:
                    lost.append(f"read({item.label!r}) returned {_shown(kept)} after {item.text!r}")
            current, tried = new, tried + len(new)
        if lost:
            await _blame_overwrites(system, limits, lost, tried)
        once = await _times(opened, current[0])
        await opened.write(current[0])
        _check_current(await opened.find(current[0]), first, current[0])
        twice = await _times(opened, current[0])
        assert twice <= max(1, once), f"duplicate after a retry: search({current[0].text!r}) returned it {twice} times"
    return f"overwrites: {tried} tried, {ROUNDS} of each of {len(current)} records"


async def _blame_overwrites(system: Factory, limits: SuiteLimits, lost: Sequence[str], tried: int) -> None:
    """Raise AssertionError with what is at fault where overwrites are lost: any write, or those alone."""
    turns = await _in_turn(system, limits, tried)
    if turns.gone:
        raise AssertionError(f"{turns.lost}, and {len(lost)} of {tried} overwrites")
    if len(lost) == tried:
        raise AssertionError(f"overwrite ignored: {lost[0]}")
    raise AssertionError(f"overwrites lost: {len(lost)} of {tried}; {lost[0]}")


async def _times(opened: OpenedMemory, item: Item) -> int:
    """Return how many passages have a record that holds; some systems also return it with others, in a summary."""
    found = await opened.search(item.text)
    return sum(has_record(text, item) and not isinstance(text, EndedText) for text in found)


def _check_current(passages: Sequence[str], old: Item, item: Item) -> None:
    """Raise AssertionError if a search states an old value; one that is marked as ended misleads nobody."""
    about = [text for text in passages if has_record(text, old) or has_record(text, item)]
    holding = [text for text in about if not isinstance(text, EndedText)]
    call, after = f"search({item.text.split()[0]!r}) returned", f"after {item.text!r}"
    if holding:
        assert has_record(holding[0], item), f"stale value: {call} {_shown(holding[0])} first, {after}"
    elif about:
        current = next((text for text in about if has_record(text, item)), None)
        assert current is None, f"current value marked as ended: {call} {_shown(current)}, which holds"
        raise AssertionError(f"stale value: {call} {_shown(about[0])} alone, {after}")


async def _deletes(system: Factory, limits: SuiteLimits) -> str | None:
    """Where it can forget, what it forgot is gone, stays gone after later writes, and the rest is there."""
    async with OpenedMemory(system, limits) as opened:
        if not opened.can_forget:
            return "forgetting was not tested: it has no forget"
        written = [*await opened.fill("deletes"), _item(10, 5010), _item(11, 5011)]
        await opened.write(*written[-2:])
        gone, *items = await opened.held(written) or written  # what was never kept is another fault
        await opened.search(gone.text)  # whose answer must not be kept for later
        await opened.forget(gone.label)
        for item in items:
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), (
                f"deleted too much: read({item.label!r}) returned {_shown(kept)} after forget({gone.label!r})"
            )
        for moment, next_one in (
            ("after forget", None),
            ("after forget and another write", _item(80, 4080)),
            ("after forget and a new value", _item(int(gone.label[2:]), 6001)),
        ):
            if next_one is not None:
                await opened.write(next_one)
            found = [text for text in await opened.search(gone.text) if has_record(text, gone)]
            kept = await opened.read(gone.label)
            assert not found, f"delete forgotten: search({gone.text!r}) still returned it {moment}"
            again = next_one is not None and next_one.label == gone.label
            is_right = gone.text not in (kept or "") if again else kept is None
            assert is_right, f"delete forgotten: read({gone.label!r}) returned {_shown(kept)} {moment}"
    return None


async def _expires(system: Factory, limits: SuiteLimits) -> None:
    """A record that holds for a time is returned with its end."""
    async with OpenedMemory(system, limits) as opened:
        await opened.reset("expires")
        items = [_item(number, f"{4000 + number} until step {LAST_STEP}") for number in range(21, 29)]
        await opened.write(*items)
        for item in items:
            plain = Item(item.label, item.text.partition(" until ")[0])
            kept = await opened.read(item.label)
            if item.text not in (kept or "") and not has_record(kept or "", plain):
                continue  # what was never kept is another fault
            for call, text in [
                (f"read({item.label!r})", kept or ""),
                *((f"search({plain.text.split()[0]!r})", text) for text in await opened.find(item)),
            ]:
                assert not has_record(text, plain) or str(LAST_STEP) in text, (
                    f"end of validity lost: {call} returned {_shown(text)}; {item.text!r} was written"
                )


async def _long_texts(system: Factory, limits: SuiteLimits) -> str | None:
    """Long, multi-line and Unicode texts come back whole."""
    words = " ".join(f"w{number:03}" for number in range(380))  # as much as a search may return
    texts = {
        "long": f"A_51 = {words}",
        "multi-line": "A_52 = first line\n    second  line\n\nthird line, the end",
        "Unicode": "A_53 = Zoë naïve 東京 🗼 Straße e\u0301 ﬁ ² 👩\u200d🚀, the end",
        "padded": "A_55 = two spaces at the end  ",
        "quoted": """A_54 = it's "so" & <b>50%</b> \\ {x} 'DROP', the end""",
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
            if kept is None:
                continue  # what was never kept is another fault
            assert item.text in (kept or ""), (
                f"{kind} text cut or changed: read({item.label!r}) returned {_shown(kept)}"
            )
            found = await opened.search(item.text)
            passages = [text for text in found if item.text[:4] in text]
            best = max(passages, key=len, default=None)
            others = bool(found) and not passages  # a ranking that prefers other texts cuts nothing
            whole = others or any(has_record(text, item) for text in passages)
            assert whole, f"{kind} text cut or changed: search({item.text[:20]!r}…) returned {_shown(best)}"
    return None


async def _many(system: Factory, limits: SuiteLimits) -> str:
    """Old records are kept, and found, while many more are written."""
    async with OpenedMemory(system, limits) as opened:
        items, why = await _written(opened, limits)
        sampled = [items[place] for place in sorted({n * (len(items) - 1) // (SAMPLED - 1) for n in range(SAMPLED)})]
        gone = [item for item in sampled if item.text not in (await opened.read(item.label) or "")]
        after = f"after {len(items):,} writes"
        if gone:
            turns = await _in_turn(system, limits, FEWEST_RECORDS)
            assert not turns.gone, turns.lost
        for item in gone:
            kept = await opened.read(item.label)
            call = f"read({item.label!r})"
            assert kept is None or item.text.split()[0] in kept, f"{_wrong_read(item, kept)}: {call} returned {kept!r}"
            raise AssertionError(f"lost among many: {call} no longer returns it {after}")
        missed = [item for item in sampled if not await _sought(opened, item)]
        assert len(missed) <= MOST_MISSED * len(sampled), (
            f"not found among many: search({missed[0].text!r}) does not return it {after}, but read does "
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
        items = _many_writes(7000)[: opened.most_records]
        await opened.reset("concurrent")
        await opened.write_together(items)
        gone, missed = await _not_there(opened, items)
    if not gone and not missed:
        return None
    turns = await _in_turn(system, limits, max(FEWEST_RECORDS, enough_in_turn(len(gone), len(items))))
    together = f"of {len(items)} writes at the same time"
    if gone and turns.gone:
        raise AssertionError(f"{turns.lost}, and {together} {len(gone)}")
    if gone:
        lost = f"{together} {len(gone)} {'is' if len(gone) == 1 else 'are'} lost"
        call = f"read({gone[0].label!r}) returns something else"
        in_turn = f"one after the other all {turns.written} are kept"
        if turns.written < enough_in_turn(len(gone), len(items)):
            raise AssertionError(f"lost write: {lost}; {call}; {in_turn}, too few to tell whether writers race")
        raise AssertionError(f"racing writers: {lost}; {call}; {in_turn}")
    call = f"search({missed[0].text!r}) does not return it, but read does"
    also = f"one after the other {len(turns.missed) or 'none'}"
    raise AssertionError(f"not found by search: {together} {len(missed)}, {also}; {call}")


def enough_in_turn(gone: int, together: int) -> int:
    """Return how many writes in turn must all be kept before those that are gone are blamed on a race.

    If any write were lost at one rate, all that are gone would be among those at the same time with a probability of
    about (together / all)^gone.
    """
    return 0 if not gone else math.ceil(together * (MOST_DOUBT ** (-1 / gone) - 1))


def _many_writes(base: int) -> list[Item]:
    return [_item(number, base + number) for number in range(21, 21 + WRITERS)]  # none begins as another


async def _not_there(opened: OpenedMemory, items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Return the records that `read` does not return, and those that it returns and no search finds."""
    held = await opened.held(items)
    return [item for item in items if item not in held], await _missed(opened, held)


@dataclass(frozen=True, slots=True)
class WritesInTurn:
    """What became of records that were written one after the other, some in each of several scopes."""

    written: int
    gone: tuple[str, ...]  # labels that `read` did not return
    missed: tuple[str, ...]  # that `read` returned and no search found

    @property
    def lost(self) -> str:
        """What is lost, in words."""
        return f"lost write: of {self.written} writes one after the other {len(self.gone)}, such as {self.gone[0]}"


async def _in_turn(system: Factory, limits: SuiteLimits, count: int) -> WritesInTurn:
    """Write so many records one after the other, as time allows; what drops writes is found without other causes."""
    started = time.monotonic()
    written, gone, missed = 0, [], []
    async with OpenedMemory(system, limits) as opened:
        while written < count:
            items = _many_writes(8000 + written % 1000)[: opened.most_records]
            await opened.reset(f"in-turn-{written}")
            await opened.write(*items)
            gone_now, missed_now = await _not_there(opened, items)
            gone += [item.label for item in gone_now]
            missed += [item.label for item in missed_now]
            written += len(items)
            if written >= FEWEST_RECORDS and (gone or time.monotonic() - started > WRITING_SECONDS):
                break
    return WritesInTurn(written, tuple(gone), tuple(missed))


async def _keeps(system: Factory, limits: SuiteLimits) -> str:
    """Writes one after the other are all kept."""
    turns = await _in_turn(system, limits, FEWEST_RECORDS)
    assert not turns.gone, turns.lost
    return f"writes: {turns.written} one after the other, none lost"


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
                leaked = next((text for text in passages if has_record(text, wrong)), None)
                assert leaked is None, f"another user's value: search({query!r}) returned {_shown(leaked)}"
                assert item.text in (kept or ""), f"lost write: read({item.label!r}) returned {_shown(kept)}"
        theirs = await other.held(theirs)
        if one.can_forget:
            await one.forget(mine[0].label)
        await one.reset("user-three")
        for item in theirs:
            kept = await other.read(item.label)
            assert item.text in (kept or ""), (
                f"another user's delete: read({item.label!r}) returned {_shown(kept)} after another's forget and reset"
            )


async def restarts(system: Factory, limits: SuiteLimits) -> str | None:
    """Where it can be reopened, everything is there after a restart."""
    async with OpenedMemory(system, limits) as opened:
        if not opened.can_reopen:
            return "a restart was not tested: it has no reopen(scope)"
        items = await opened.fill("restarts")
        items[0] = _item(1, 4001)
        await opened.write(items[0])
        items = await opened.held(items)  # what was never kept was not lost in the restart
        await opened.restart("restarts")
        for item in items:
            kept = await opened.read(item.label)
            assert item.text in (kept or ""), f"lost in a restart: read({item.label!r}) returned {_shown(kept)}"
            assert await _sought(opened, item), f"lost in a restart: search({item.text!r}) does not return it"
        if opened.can_forget:
            await opened.forget("A_1")
            await opened.restart("restarts")
            kept = await opened.read("A_1")
            assert kept is None, f"delete lost in a restart: read('A_1') returned {_shown(kept)} after forget"
    return None


FAULTS: tuple[Fault, ...] = (
    _keeps,
    _true_values,
    _found,
    _overwrites,
    _deletes,
    _expires,
    _long_texts,
    _many,
    _concurrent,
    _users,
    restarts,
)
