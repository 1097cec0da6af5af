"""One call of a memory system: what is kept of it, how long it may take, and what the store is asked about a loss."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from eirkit.errors import PluginError, StoreError, describe
from eirkit.lacuna.agents.driver import consult
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.memories.calls import call_with_timeout
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import LONGEST_PASSAGE, SEARCH_LIMIT, Item, MemoryCall, MemorySystem, signature_of
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.runs.attempt import failure_kind
from eirkit.lacuna.tasks.task import Payload

SUBMITTED: dict[int, Payload] = {1: (5,), 2: (6,), 10: (7,)}
LATE = 0.02  # seconds: short, and far above what a built-in needs


class Answering(KeyValue):
    """Finds what it was made with, whatever is asked."""

    def __init__(self, *found: str) -> None:
        super().__init__()
        self.found = found

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return self.found


class Hanging(KeyValue):
    """Never comes back from one verb."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self.verb = verb

    async def write(self, item: Item) -> None:
        await self._do("write")
        await super().write(item)

    async def flush(self) -> None:
        await self._do("flush")

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await self._do("search")
        return await super().search(query, limit)

    async def read(self, label: str) -> str | None:
        await self._do("read")
        return await super().read(label)

    async def _do(self, verb: str) -> None:
        if verb == self.verb:
            await asyncio.sleep(3_600)


def ticking(*moments: float) -> Callable[[], float]:
    left: Iterator[float] = iter(moments)
    return lambda: next(left)


def search(memory: MemorySystem, steps: tuple[int, ...] = (1,), seconds: float = 5.0) -> Consultation:
    call = MemoryCall("search", " ".join(f"A_{step}" for step in steps), steps)
    return asyncio.run(consult(memory, 12, call, SUBMITTED, ticking(1.0, 3.5), seconds))


def filled(memory: KeyValue, **records: str) -> KeyValue:
    for label, text in records.items():
        asyncio.run(memory.write(Item(label, text)))
    return memory


def test_a_write_goes_under_a_label_without_zeros_and_takes_its_time():
    memory = KeyValue()
    call = MemoryCall("write", "A_07 = 0042", (7,))
    made = asyncio.run(consult(memory, 7, call, SUBMITTED, ticking(1.0, 3.5)))
    assert asyncio.run(memory.read("A_7")) == "A_07 = 0042"
    assert made == Consultation(7, call, (), 2.5)


def test_what_comes_back_is_cut_and_its_length_is_known():
    texts = ["A_1 = 5", "x" * (LONGEST_PASSAGE + 9), *["y"] * SEARCH_LIMIT]
    made = search(Answering(*texts))
    assert made.passages == ("A_1 = 5", "x" * LONGEST_PASSAGE, *["y"] * (SEARCH_LIMIT - 2))
    assert made.returned_characters == 7 + LONGEST_PASSAGE + 9 + SEARCH_LIMIT
    assert (made.lacking, made.latency_seconds) == ((), 2.5)


def test_what_is_cut_still_says_that_it_has_ended():
    old = EndedText("A_1 = 4 " + "x" * LONGEST_PASSAGE)
    made = search(Answering(old, "A_1 = 5"))
    assert len(made.passages[0]) == LONGEST_PASSAGE
    assert made.passages[0].endswith(" (no longer valid)")
    assert (made.lacking, made.stated) == ((), ())


def test_what_has_ended_is_no_value_and_no_other_value():
    shown = search(filled(Answering(EndedText("A_1 = 4", "2031-01-13")), A_1="A_1 = 5"))
    assert (shown.lacking, shown.held, shown.stated) == ((1,), (1,), ()), "nobody took the old value for the new one"
    assert search(Answering("A_1 = 4")).stated == ((1, ("4",)),), "without the mark it is another value"
    doubted = search(Answering(EndedText("A_1 = 5")))
    assert (doubted.lacking, doubted.uncertain) == ((), (1,)), "it came back, as one that does not hold"


def test_a_record_behind_the_cut_has_not_come_back():
    hidden = "x" * LONGEST_PASSAGE + " A_1 = 5"
    made = search(filled(Answering(hidden), A_1="A_1 = 5"))
    assert (made.lacking, made.held, made.mislabeled) == ((1,), (1,), ())


@pytest.mark.parametrize(
    ("found", "stored", "lacking", "held", "mislabeled"),
    [
        ((), {}, (1,), (), ()),  # never stored
        ((), {"A_1": "A_1 = 5"}, (1,), (1,), ()),  # stored and not found
        (("A_10 = 7",), {"A_1": "A_1 = 5"}, (1,), (1,), ()),  # another's record instead
        (("A_1 = 7",), {"A_1": "A_1 = 5"}, (1,), (1,), (1,)),  # its label with another's value
        (("A_1 = 7",), {"A_1": "A_1 = 7"}, (1,), (), (1,)),  # stored wrongly: the right record is not there
        (("A_1 = 5",), {}, (), (), ()),
        (("A_1 = 5", "A_1 = 7"), {}, (), (), ()),  # the first one counts, which is the best
        (("A_1 = 7", "A_1 = 5"), {}, (1,), (), (1,)),
        (("The answer of A_01 is 5.",), {}, (), (), ()),
        ((), {"A_1": "5"}, (1,), (1,), ()),  # under its label the value alone is enough
    ],
)
def test_the_store_is_asked_by_key_for_what_did_not_come_back(found, stored, lacking, held, mislabeled):
    made = search(filled(Answering(*found), **stored))
    assert (made.lacking, made.held, made.mislabeled) == (lacking, held, mislabeled)


def test_what_nobody_answered_is_not_lacking():
    assert search(KeyValue(), steps=(4, 99)).lacking == ()


@pytest.mark.parametrize("verb", ["flush", "search", "read"])
def test_a_search_has_its_time_and_no_more(verb):
    with pytest.raises(StoreError, match=rf"did not finish {verb} within 0.02 s; raise timeout_sec"):
        search(Hanging(verb), seconds=LATE)


def test_a_write_has_its_time_and_no_more():
    call = MemoryCall("write", "A_1 = 5", (1,))
    with pytest.raises(StoreError, match=r"did not finish write within 0.02 s"):
        asyncio.run(consult(Hanging("write"), 1, call, SUBMITTED, ticking(0.0), LATE))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, r"search returned None; return a list of strings, \[\] if nothing is found"),
        ("A_1 = 5", "search returned a str; return a list of strings"),
        ({"A_1": "A_1 = 5"}, "search returned a dict; return a list of strings"),
        (iter(["A_1 = 5"]), "search returned a list_iterator; return a list of strings"),
        ([b"A_1 = 5"], "search returned a list that contains a bytes; return a list of strings"),
        (["A_1 = 5", None], "search returned a list that contains a NoneType; return a list of strings"),
    ],
)
def test_what_is_no_sequence_of_texts_is_the_memorys_failure(found, said):
    class Odd(KeyValue):
        async def search(self, query: str, limit: int) -> Sequence[str]:
            return found  # type: ignore[no-any-return]

    with pytest.raises(StoreError, match=said) as raised:
        search(Odd())
    assert failure_kind(raised.value) == "memory"


def test_what_is_read_is_a_text_or_nothing():
    class Odd(Answering):
        async def read(self, label: str) -> str | None:
            return {"text": "A_1 = 5"}  # type: ignore[return-value]

    with pytest.raises(StoreError, match="read returned a dict; return the text under the label, or None"):
        search(Odd())


def test_a_verb_that_takes_other_arguments_is_told_its_signature():
    class Odd(KeyValue):
        async def write(self, label: str, text: str) -> None:  # type: ignore[override]
            pass

    call = MemoryCall("write", "A_1 = 5", (1,))
    with pytest.raises(
        StoreError, match=r"write cannot be called .*; write it as `async def write\(self, item: Item\)"
    ):
        asyncio.run(consult(Odd(), 1, call, SUBMITTED, ticking(0.0)))
    assert signature_of("forget") == "async def forget(self, label: str) -> None"


def test_a_type_error_inside_a_verb_stays_what_it_is():
    def fails() -> Awaitable[None]:
        return len(5)  # type: ignore[arg-type, return-value]

    with pytest.raises(PluginError, match="has no len") as raised:
        asyncio.run(call_with_timeout(5.0, "search", fails))
    assert describe(raised.value) == "TypeError: object of type 'int' has no len() (raised by search)"
    assert isinstance(raised.value.__cause__, TypeError)


@pytest.mark.parametrize("waits", [False, True])
def test_a_verb_that_exits_ends_its_run_alone(waits):
    async def exits() -> None:
        if waits:
            await asyncio.sleep(0)
        sys.exit(3)

    with pytest.raises(PluginError, match=r"raised SystemExit: 3 \(in write\)"):
        asyncio.run(call_with_timeout(5.0, "write", exits))


def test_a_timeout_of_the_systems_own_is_its_own_failure():
    async def fails() -> None:
        raise TimeoutError("inside")

    with pytest.raises(StoreError, match="did not finish search"):
        asyncio.run(call_with_timeout(5.0, "search", fails))


def test_whoever_stops_the_run_is_not_taken_for_a_slow_store():
    async def stopped() -> None:
        work = asyncio.create_task(call_with_timeout(60.0, "search", asyncio.sleep, 60))
        await asyncio.sleep(0)
        work.cancel()
        await work

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped())


def test_work_of_any_form_is_waited_for():
    async def several() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        return "slept"

    async def mending() -> str:
        try:
            await asyncio.get_running_loop().run_in_executor(None, int, "x")
        except ValueError:
            await asyncio.sleep(0.001)
        return "mended"

    async def all_of_them() -> list[object]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_result, "told")
        nested = asyncio.wait_for(several(), 5)
        return [
            await call_with_timeout(5.0, "search", lambda work=work: work)
            for work in (several(), mending(), future, nested)
        ]

    assert asyncio.run(all_of_them()) == ["slept", "mended", "told", "slept"]


def test_what_is_raised_after_a_wait_is_passed_on():
    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("later")

    with pytest.raises(PluginError, match="KeyError: 'later'"):
        asyncio.run(call_with_timeout(5.0, "search", fails))


def test_a_verb_that_is_not_async_is_an_error_of_the_adapter():
    with pytest.raises(StoreError, match="flush is not async; write it as `async def flush`"):
        asyncio.run(call_with_timeout(5.0, "flush", lambda: None))  # type: ignore[arg-type]
