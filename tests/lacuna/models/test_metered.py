"""Retries, limits, cache and accounting around models that misbehave on schedule."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InfrastructureError, ModelError, PluginError, SpendCapReached, UsageError
from eirkit.lacuna.models.ledger import Ledger, ModelSpend
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import (
    LONGEST_WAIT_SECONDS,
    MAY_BE_BILLED,
    PASSING,
    Metered,
    make_metered,
    most_usd,
    pause_seconds,
)
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Usage
from eirkit.lacuna.models.prices import Price
from eirkit.lacuna.models.reply_cache import ReplyCache
from eirkit.lacuna.runs.journal import SpendJournal
from eirkit.records.database import SweepWriter
from eirkit.records.money import exact_usd

KINDS = [
    "rate-limit",
    "server",
    "timeout",
    "unreachable",
    "dropped",
    "malformed",
    "too-large",
    "rejected",
    "unrecorded",
]
PRICE = Price(input=Decimal(1), output=Decimal(2), cached=Decimal("0.5"), as_of=date(2026, 1, 1))
REQUEST = Request((Message("user", "x" * 100),), max_tokens=100)
PAID = Reply("ANSWER 1 1", usage=Usage(100, 10, 40, cost_usd=None))
PAID_USD = Decimal("0.0001")  # (60 · 1.0 + 40 · 0.5 + 10 · 2.0) / 1,000,000


@dataclass
class Scripted:
    """A model that gives what it is told to give, in order; the last thing for ever."""

    script: list
    asked: int = 0
    at_once: int = 0
    busiest: int = 0
    seconds: float = 0.0
    closed: int = 0
    obeys: bool = False  # whether it keeps to limits on tokens

    async def reply(self, request):
        self.asked += 1
        self.at_once += 1
        self.busiest = max(self.busiest, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        given = self.script[min(self.asked, len(self.script)) - 1]
        if self.obeys and given.usage.output_tokens > request.max_tokens:
            return msgspec.structs.replace(
                given, usage=msgspec.structs.replace(given.usage, output_tokens=request.max_tokens), finish="length"
            )
        if isinstance(given, BaseException):
            raise given
        return given

    async def close(self):
        self.closed += 1

    def settings(self):
        return {"asked": 0, "refused": [] if self.asked == 0 else ["temperature"]}


@dataclass
class Stopwatch:
    """A clock that only passes when somebody sleeps."""

    time: float = 0.0
    slept: list = field(default_factory=list)

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds


def metered(*script, retries=4, timeout_seconds=300.0, connections=8, **parts):
    options = ModelOptions(retries=retries, timeout_seconds=timeout_seconds, connections=connections)
    return Metered(Scripted(list(script)), "test/m", options, clock=parts.pop("clock", Stopwatch()), **parts)


def ask(model, times=1):
    async def run():
        return [await model.reply(REQUEST) for _ in range(times)]

    return asyncio.run(run())


def failing(kind, after=None):
    return ModelError(f"{kind}; do something", kind, after)


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_pass_is_tried_again_and_nothing_else(kind):
    model = metered(failing(kind), retries=3)
    with pytest.raises(ModelError, match=kind) as caught:
        ask(model)
    attempts = 4 if kind in PASSING else 1
    assert model.model.asked == attempts
    assert (model.tally.retries, model.tally.failures, model.tally.calls) == (attempts - 1, 1, 0)
    assert str(caught.value) == (f"after 4 attempts: {kind}" if attempts > 1 else kind) + "; do something"
    assert (caught.value.kind, caught.value.__context__, caught.value.__cause__) == (kind, None, None)


def test_pauses_double_without_jitter():
    model = metered(failing("server"), retries=6)
    with pytest.raises(ModelError):
        ask(model)
    assert model.clock.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    model = metered(failing("unreachable"))
    with pytest.raises(ModelError):
        ask(model)
    assert model.clock.slept == [0.1, 0.2, 0.4, 0.8]


def test_a_server_that_asks_for_time_gets_it():
    model = metered(failing("rate-limit", 3.5), failing("server", 0.0), failing("rate-limit", 60.0), PAID)
    assert ask(model)[0].text == PAID.text
    assert model.clock.slept == [3.5, 1.0, 60.0]


def test_a_server_that_asks_for_too_much_time_is_left_alone():
    model = metered(failing("rate-limit", LONGEST_WAIT_SECONDS + 1))
    with pytest.raises(ModelError):
        ask(model)
    assert (model.model.asked, model.clock.slept) == (1, [])


@given(st.sampled_from(sorted(PASSING)), st.integers(0, 40))
def test_no_pause_is_longer_than_the_longest(kind, retry):
    pauses = [pause_seconds(failing(kind), r) for r in range(retry + 2)]
    assert all(0 < a <= b <= 8.0 for a, b in pairwise(pauses))


def test_a_model_that_never_answers_is_a_timeout():
    model = metered(PAID, retries=0, timeout_seconds=0.05)
    model.model.seconds = 60
    with pytest.raises(ModelError, match=r"no reply in 0\.05 s") as caught:
        ask(model)
    assert caught.value.kind == "timeout"


def test_connections_are_limited():
    model = metered(PAID, connections=3)
    model.model.seconds = 0.01

    async def run():
        await asyncio.gather(*(model.reply(REQUEST) for _ in range(20)))

    asyncio.run(run())
    assert (model.model.asked, model.model.busiest) == (20, 3)


def test_tokens_and_money_are_counted():
    model = metered(failing("rate-limit"), PAID, price=PRICE)
    first, second = ask(model, 2)
    assert first.usage == Usage(100, 10, 40, cost_usd=float(PAID_USD))
    assert second.usage == first.usage
    assert model.tally == ModelSpend(
        calls=2, input_tokens=200, output_tokens=20, cached_tokens=80, cost_usd=2 * PAID_USD, retries=1
    )
    assert model.ledger.spent_usd == 2 * PAID_USD


def test_an_unknown_price_is_unknown_and_not_nothing():
    model = metered(PAID)
    assert ask(model)[0].usage.cost_usd is None
    assert (model.tally.unpriced_calls, model.tally.cost_usd) == (1, 0.0)


def test_a_model_that_knows_its_cost_is_believed():
    free = Reply("x", usage=Usage(5, 5, cost_usd=0.0))
    model = metered(free)
    assert ask(model)[0].usage.cost_usd == 0.0
    assert model.tally.unpriced_calls == 0


def test_a_reply_without_counts_is_charged_at_its_worst_and_said_to_be():
    model = metered(Reply("x", usage=Usage(cost_usd=None)), price=PRICE)
    assert ask(model)[0].usage.cost_usd is None
    most = most_usd(PRICE, REQUEST)
    assert (model.tally.unpriced_calls, model.tally.cost_usd, model.tally.unconfirmed_usd) == (1, 0.0, most)
    assert model.ledger.spent_usd == most


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_have_been_billed_counts_against_the_cap(kind):
    model = metered(failing(kind), retries=0, price=PRICE)
    with pytest.raises(ModelError):
        ask(model)
    most = most_usd(PRICE, REQUEST) if kind in MAY_BE_BILLED else 0.0
    assert (model.tally.unconfirmed_usd, model.ledger.spent_usd) == (most, most)


def test_a_failure_that_says_whether_it_may_be_billed_is_believed():
    most = most_usd(PRICE, REQUEST)
    for kind in KINDS:
        for billed in (False, True):
            model = metered(ModelError("no; do something", kind, may_be_billed=billed), retries=0, price=PRICE)
            with pytest.raises(ModelError):
                ask(model)
            assert model.ledger.spent_usd == (most if billed else 0)


def test_a_cancelled_call_counts_against_the_cap():
    model = metered(PAID, price=PRICE, ledger=Ledger(cap_usd=1.0))
    model.model.seconds = 60

    async def run():
        task = asyncio.create_task(model.reply(REQUEST))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert model.ledger.spending.in_flight_usd == model.ledger.spent_usd == most_usd(PRICE, REQUEST)


def test_the_cap_stops_before_it_is_exceeded():
    most = most_usd(PRICE, REQUEST)
    cap = most + Decimal("3.5") * PAID_USD
    model = metered(PAID, price=PRICE, ledger=Ledger(cap_usd=cap))
    with pytest.raises(SpendCapReached, match="raise the cap and resume"):
        ask(model, 20)
    # The last calls get what is left: a call needs 1.3 of its cost, because its prompt may be denser, and uncached.
    calls = int(cap / PAID_USD)
    assert (model.model.asked, model.tally.calls, model.tally.failures) == (calls, calls, 0)
    assert model.ledger.spent_usd == calls * PAID_USD <= cap


def test_a_resumed_sweep_remembers_what_it_spent():
    ledger = Ledger(cap_usd=1.0)
    ledger.spending.billed_usd = Decimal(1)
    model = metered(PAID, price=PRICE, ledger=ledger)
    with pytest.raises(SpendCapReached):
        ask(model)
    assert model.model.asked == 0


def test_a_cap_without_a_price_is_refused():
    model = metered(PAID, ledger=Ledger(cap_usd=1.0))
    for attempt in (model.preflight, lambda: ask(model)):
        with pytest.raises(UsageError, match="add it to a price file"):
            attempt()


def test_a_cap_holds_beyond_what_a_price_covers_because_nothing_is_sent():
    tier = replace(PRICE, up_to_tokens=100)  # the request has 100 bytes and a frame, so it may have more tokens
    capped = metered(PAID, price=tier, ledger=Ledger(cap_usd=1000.0))
    with pytest.raises(SpendCapReached, match="may be longer than the 100 tokens for which the price of"):
        ask(capped)
    assert (capped.model.asked, capped.ledger.spent_usd) == (0, 0.0)
    assert len(ask(metered(PAID, price=tier))) == 1, "without a cap it is sent"
    assert len(ask(metered(PAID, price=replace(PRICE, up_to_tokens=132), ledger=Ledger(cap_usd=1000.0)))) == 1


def test_a_journal_that_cannot_be_written_allows_no_call(tmp_path):
    journal = SpendJournal(tmp_path, 1.0, is_new=True)
    model = metered(PAID, price=PRICE, ledger=journal)
    with SweepWriter(tmp_path) as database:
        journal.open(database)
        database._opened.execute("PRAGMA query_only = ON")  # whatever is written there fails
        with pytest.raises(UsageError, match="nothing can be written there"):
            ask(model)
    assert model.model.asked == 0


def test_calls_in_flight_are_waited_for_before_giving_up():
    # Twenty worst cases at once would exceed the cap, twenty actual costs do not.
    cap = most_usd(PRICE, REQUEST) + 20 * PAID_USD
    model = metered(PAID, price=PRICE, ledger=Ledger(cap), connections=20)
    model.model.seconds = 0.001

    async def run():
        return await asyncio.gather(*(model.reply(REQUEST) for _ in range(20)))

    assert len(asyncio.run(run())) == 20
    assert 1 < model.model.busiest <= cap / most_usd(PRICE, REQUEST)


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=12),
    st.floats(0, 3e-3),
    st.integers(1, 8),
)
def test_no_order_of_events_exceeds_the_cap(usages, cap, connections):
    # Costs within what a request may cost at most: at most 132 input and 100 output tokens here.
    script = [Reply("x", usage=Usage(max(1, i), o, cost_usd=None)) for i, o in usages]
    ledger = Ledger(cap_usd=cap)
    model = metered(*script, price=PRICE, ledger=ledger, connections=connections)
    model.model.obeys = True

    async def run():
        return await asyncio.gather(*(model.reply(REQUEST) for _ in range(len(usages))), return_exceptions=True)

    outcomes = asyncio.run(run())
    replies = [o for o in outcomes if isinstance(o, Reply)]
    assert all(isinstance(o, (Reply, SpendCapReached)) for o in outcomes)
    # Above the cap is at most what prompts have that are much denser than those before them, and that is told.
    assert ledger.spent_usd <= exact_usd(cap) + ledger.spending.over_usd
    dearest = max(i for i, _ in usages) / Decimal(1_000_000)
    assert ledger.spending.over_usd <= dearest
    assert ledger.spent_usd >= sum(exact_usd(r.usage.cost_usd) for r in replies)
    assert ledger.held_usd == 0


def test_two_models_share_one_cap():
    ledger = Ledger(cap_usd=most_usd(PRICE, REQUEST) + Decimal("1.5") * PAID_USD)
    first, second = (metered(PAID, price=PRICE, ledger=ledger) for _ in range(2))
    for model in (first, second, first, second):
        ask(model)
    with pytest.raises(SpendCapReached):
        ask(first)
    assert ledger.spent_usd == 4 * PAID_USD


def test_the_same_question_is_paid_once(tmp_path):
    for expected in (1, 0):
        model = metered(PAID, price=PRICE, cache=ReplyCache(tmp_path / "c"))
        replies = ask(model, 3)
        asyncio.run(model.close())
        assert model.model.asked == expected
        assert {r.text for r in replies} == {PAID.text}
        assert replies[-1].usage == Usage(100, 10, 40, cost_usd=0.0, from_cache=True)
        hits = 3 - expected
        assert (model.tally.calls, model.tally.cache_hits) == (expected, hits)
        assert (model.tally.cache_input_tokens, model.tally.cache_output_tokens) == (100 * hits, 10 * hits)
        assert model.tally.cost_usd == expected * PAID_USD


def test_the_cache_works_when_the_money_is_gone(tmp_path):
    ask(model := metered(PAID, price=PRICE, cache=ReplyCache(tmp_path / "c")))
    asyncio.run(model.close())
    broke = metered(PAID, price=PRICE, cache=ReplyCache(tmp_path / "c"), ledger=Ledger(cap_usd=0.0))
    assert ask(broke)[0].text == PAID.text
    asyncio.run(broke.close())


def test_failures_are_not_kept(tmp_path):
    cache = ReplyCache(tmp_path / "c")
    model = metered(failing("rejected"), PAID, cache=cache)
    with pytest.raises(ModelError):
        ask(model)
    assert ask(model)[0].usage.from_cache is False
    cache.close()


class FullDisk(ReplyCache):
    """A cache on a disk with no room left."""

    def put(self, key, reply):
        raise InfrastructureError("no room; make some")


def test_a_reply_that_cannot_be_kept_is_still_a_reply(tmp_path):
    model = metered(PAID, cache=FullDisk(tmp_path / "c"))
    assert ask(model)[0].text == PAID.text
    assert model.tally.unsaved == 1
    asyncio.run(model.close())


class Faster(ReplyCache):
    """A cache in which another process is always first."""

    def put(self, key, reply):
        return super().put(key, Reply("the other one's", usage=Usage(7, 7))) and super().put(key, reply)


def test_where_another_writer_was_first_its_words_count(tmp_path):
    model = metered(PAID, price=PRICE, cache=Faster(tmp_path / "c"))
    first, second = ask(model, 2)
    assert first.text == second.text == "the other one's"
    assert first.usage.cost_usd == float(PAID_USD)
    asyncio.run(model.close())


def test_latency_is_that_of_the_attempt_that_worked():
    model = metered(failing("server"), PAID)
    assert ask(model)[0].latency_seconds == 0.0  # on this clock only pauses take time, and they do not count


def test_other_failures_are_the_models_and_not_tried_again():
    model = metered(InfrastructureError("the disk; look at it"))
    with pytest.raises(PluginError, match="the disk") as caught:
        ask(model)
    assert (caught.value.side, caught.value.name) == ("model", type(model.model).__name__)
    assert model.model.asked == 1


@given(st.lists(st.builds(ModelSpend, st.integers(0, 9), st.integers(0, 9), cost_usd=st.integers(0, 9))))
def test_tallies_add_up(tallies):
    total = sum(tallies, ModelSpend())
    assert total.calls == sum(t.calls for t in tallies)
    assert total.cost_usd == sum(t.cost_usd for t in tallies)


def test_a_string_is_enough():
    free = make_metered("reference/calculator", ModelOptions())
    assert (free.name, free.price.is_free()) == ("reference/calculator", True)
    assert make_metered("reference/calculator", ModelOptions(base_url="http://127.0.0.1:9/v1")).price is None
