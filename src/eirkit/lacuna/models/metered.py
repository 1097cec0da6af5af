"""Retries model calls: which failures, how often, after which pause; with cache, time limit and connection limit.

Back-off follows a fixed schedule without jitter, so that runs are reproducible. A reply takes at
most `(retries + 1) · (timeout + longest wait)`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from decimal import Decimal
from math import ceil
from typing import Any, Protocol

from msgspec.structs import replace

from eirkit.errors import InfrastructureError, ModelError, SpendCapReached, UsageError
from eirkit.lacuna.models.factory import make_model, runs_at_once
from eirkit.lacuna.models.ledger import PAYER, Hold, Ledger, ModelSpend
from eirkit.lacuna.models.model import (
    LENGTH,
    RAISED_TOKENS,
    STOP,
    USUAL_TOKENS,
    ActionForm,
    Model,
    ModelOptions,
    ModelWrapper,
    Preflight,
    Reply,
    Request,
    Usage,
    attribute_to,
    close_model,
    prompt_chars,
    reply_key,
    set_aside,
)
from eirkit.lacuna.models.prices import MILLION, Price, PriceList, load_prices
from eirkit.lacuna.models.reply_cache import ReplyCache
from eirkit.records.money import NOTHING, CallSizes, exact_usd
from eirkit.records.settings import COMPLETION
from eirkit.registry import call

PASSING = {"rate-limit", "server", "timeout", "unreachable", "dropped", "malformed"}  # kinds that are retried
MAY_BE_BILLED = {"server", "timeout", "dropped", "malformed", "too-large"}  # kinds for which providers may charge
LONGEST_WAIT_SECONDS = 60.0  # no retry if the server asks for more
_FIRST_PAUSE = {"unreachable": 0.1}  # no load on the server to avoid
_USUAL_PAUSE, _LONGEST_PAUSE = 0.5, 8.0


def pause_seconds(failure: ModelError, retry: int) -> float:
    """Return the pause before retry 0, 1, …: what the server asks for, else doubling from the kind's first pause."""
    if failure.retry_after_seconds:
        return failure.retry_after_seconds
    return min(_LONGEST_PAUSE, _FIRST_PAUSE.get(failure.kind, _USUAL_PAUSE) * 2.0**retry)


def cost_usd(price: Price, usage: Usage) -> Decimal | None:
    """Return the cost of a reply; None if its usage is unknown or its prompt is too long for the price."""
    if price.is_free():
        return Decimal(0)
    if usage.input_tokens + usage.output_tokens == 0 or not price.covers(usage.input_tokens):
        return None
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * price.cached + usage.output_tokens * price.output) / MILLION


def most_usd(price: Price, request: Request) -> Decimal | None:
    """Return an upper bound on the cost of a request: one token per byte, plus a few per message.

    A server that compacts reads the prompt once more and writes a summary, which is taken to be no longer.

    None if its prompt may be too long for the price.
    """
    tokens = _most_tokens(request)
    if not price.is_free() and not price.covers(tokens):
        return None
    limit = request.max_tokens or USUAL_TOKENS
    if request.compaction is not None:
        limit, tokens = limit + tokens, 2 * tokens
    return (tokens * max(price.input, price.cached) + limit * price.output) / MILLION


def _most_tokens(request: Request) -> int:
    """Return an upper bound on the tokens of a prompt."""
    tools = (f"{t.name}{t.description}{t.parameters}" for t in request.tools)
    carried = (json.dumps(dict(item)) for item in request.carried)
    schema = () if request.schema is None else (json.dumps(dict(request.schema)),)
    texts = [*(m.content for m in request.messages), *tools, *carried, *schema]
    return sum(len(text.encode("utf-8", "replace")) + 32 for text in texts)


PRICE_LONGER = "add the price of longer prompts to a price file"
_SHORT_REPLY = 16  # tokens of a reply, before a model has given one
_DENSER = 1.1  # by how much a prompt may be denser than any before it


class Clock(Protocol):
    """The clock of a metered model."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The system clock."""

    def now(self) -> float:
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Metered(ModelWrapper):
    """A model whose calls are limited and accounted for.

    Args:
        name: `provider/name`, as the user wrote it; part of the cache's key.
        price: what its tokens cost; None if unknown.
        ledger: the spending of the sweep, shared by all its models.
        cache: replies to be used again wherever the same is asked.
        unfinished: replies of each run, with which a run continues that was cut short.
    """

    def __init__(
        self,
        model: Model,
        name: str,
        options: ModelOptions,
        *,
        price: Price | None = None,
        ledger: Ledger | None = None,
        cache: ReplyCache | None = None,
        unfinished: ReplyCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.model, self.name, self.options = model, name, options
        self.price, self.ledger = price, ledger or Ledger()
        self.cache, self.unfinished = cache, unfinished
        self.clock = clock or SystemClock()
        self.tally = ModelSpend()
        # Fixed at construction: parameters that a server rejects later must not change the cache keys.
        self._identity = dict(call("model", model.settings))
        self.at_most = runs_at_once(model, options)
        self._slots = asyncio.Semaphore(self.at_most)
        self._reasons = self._rise_refused = False  # found out when a reply was cut

    async def reply(self, request: Request) -> Reply:
        may_rise = request.max_tokens is None and self.options.max_tokens == USUAL_TOKENS
        request = replace(request, max_tokens=self.options.limit(request))
        places = self._places(request)
        for cache, key in places:
            if (kept := cache.get(key)) is not None:
                return self._hit(kept)
        reply = await self._ask(request, may_rise)
        for cache, key in places:
            reply = self._keep(cache, key, reply)
        return reply

    def _places(self, request: Request) -> list[tuple[ReplyCache, str]]:
        """Return where a reply may be kept, and under which key."""
        if self.cache is None and self.unfinished is None:
            return []
        key, payer = reply_key(self.name, self._identity, request), PAYER.get()
        # What a base model does beside its answers follows from what it sees as objects, which its text does not say.
        by_rule = self._identity.get("protocol") == COMPLETION and isinstance(request.form, ActionForm)
        shared = [] if self.cache is None or by_rule else [(self.cache, key)]
        if self.unfinished is None or payer is None:
            return shared
        return [(self.unfinished, payer.account.own_key(key)), *shared]

    async def close(self) -> None:
        await close_model(self.model)
        self._slots = asyncio.Semaphore(self.at_most)  # it may be used in another event loop next
        for cache in filter(None, (self.cache, self.unfinished)):
            cache.close()

    def settings(self) -> Mapping[str, Any]:
        """Return the model's own settings; limits and prices do not change a reply."""
        return call("model", self.model.settings)

    def preflight(self) -> None:
        self._require_price()
        if isinstance(self.model, Preflight):
            call("model", self.model.preflight)

    def _require_price(self) -> None:
        if self.ledger.cap_usd is not None and self.price is None:
            raise UsageError(
                f"the price of {self.name} is unknown, so the cap cannot be enforced; add it to a price file (--prices)"
            )

    async def _ask(self, request: Request, may_rise: bool) -> Reply:
        """Return the reply; one that was cut while the model was reasoning is asked for again with a larger limit."""
        self._require_price()
        async with self._slots:
            raised = may_rise and self._reasons
            reply = await self._persist(replace(request, max_tokens=RAISED_TOKENS) if raised else request)
            if raised or not may_rise or self._rise_refused or not cut_while_reasoning(reply):
                return reply
            self._reasons = True
            try:
                again = await self._persist(replace(request, max_tokens=RAISED_TOKENS))
            except ModelError as failure:
                if failure.kind != "rejected":
                    raise
                self._reasons, self._rise_refused = False, True  # the server allows no more tokens
                return reply
        usage, seconds = reply.usage + again.usage, reply.latency_seconds + again.latency_seconds
        return replace(again, usage=usage, latency_seconds=seconds)

    async def _persist(self, request: Request) -> Reply:
        retry, outcome = 0, await self._attempt(request)
        while isinstance(outcome, ModelError):
            if outcome.is_adapted:
                outcome = await self._attempt(request)
                continue
            if retry == self.options.retries or not _is_passing(outcome):
                raise self._given_up(outcome, retry + 1)
            self.tally += ModelSpend(retries=1)
            # The slot is kept while waiting, which reduces the load on a busy server.
            await self.clock.sleep(pause_seconds(outcome, retry))
            retry, outcome = retry + 1, await self._attempt(request)
        return outcome

    def _given_up(self, failure: ModelError, attempts: int) -> ModelError:
        self.tally += ModelSpend(failures=1)
        tries = f"after {attempts} attempts: " if attempts > 1 else ""
        return ModelError(f"{tries}{failure}", failure.kind, failure.retry_after_seconds)

    async def _attempt(self, request: Request) -> Reply | ModelError:
        """Return the reply or the failure; the ledger is settled in any case, also on cancellation.

        Raises:
            SpendCapReached: also if what the cap left did not buy the whole reply.
        """
        most = self._most_usd(request)
        held = await self.ledger.hold(most, self.name, prompt_chars(request), lambda: self._least_usd(request))
        if held.is_rest:
            request = self._lowered(request, held.usd)
        outcome = await self._call(request, held)
        if held.is_rest and _is_lost(outcome):
            raise self.ledger.exhaust(self.ledger.reached("call may cost", self._most_usd(request)))
        return outcome

    async def _call(self, request: Request, held: Hold) -> Reply | ModelError:
        usage, in_flight = None, False
        taken = ModelSpend(unconfirmed_usd=held.usd)  # until a reply arrives, assume that the request is billed
        started = self.clock.now()
        try:
            async with asyncio.timeout(limit := self.options.seconds(self.options.limit(request))):
                reply = await self.model.reply(request)
            reply = self._complete(reply, request, self.clock.now() - started)
            taken, usage = _taken(reply, held.usd), reply.usage
            return reply
        except TimeoutError:
            return ModelError(
                f"{self.name}: no reply in {limit} s; raise the timeout or choose a faster model", "timeout"
            )
        except ModelError as failure:
            if not _may_be_billed(failure):
                taken = ModelSpend()
            return failure
        except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
            task = asyncio.current_task()
            in_flight = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
            attribute_to(self.model, "reply", error)
        finally:
            self.tally += taken
            if in_flight:
                self.ledger.abandon(held)
            else:
                self.ledger.settle(held, taken.cost_usd, taken.unconfirmed_usd, usage)

    def _most_usd(self, request: Request) -> Decimal:
        """Return an upper bound on the cost of a call; under a cap the bound must be known."""
        if self.price is None:
            return NOTHING
        most = most_usd(self.price, request)
        if most is None and self.ledger.cap_usd is not None:
            raise SpendCapReached(
                f"the next prompt may be longer than the {self.price.up_to_tokens} tokens for which the price of "
                f"{self.name} holds, so the cap cannot be enforced; {PRICE_LONGER}"
            )
        return most or NOTHING

    def _least_usd(self, request: Request) -> Decimal:
        """Return what a call needs at least: a prompt as dense as any so far, and a reply of average length."""
        if self.price is None:
            return NOTHING
        tokens = self._prompt_tokens(request) * max(self.price.input, self.price.cached)
        seen = self.ledger.spending.sizes.get(self.name, CallSizes(1, _SHORT_REPLY))
        return (tokens + ceil(seen.output_tokens / seen.calls) * self.price.output) / MILLION

    def _prompt_tokens(self, request: Request) -> int:
        """Return how many tokens a prompt has at most, by the densest so far; before there is one, by its bytes."""
        seen, most = self.ledger.spending.sizes.get(self.name), _most_tokens(request)
        return most if seen is None else min(most, ceil(prompt_chars(request) * seen.tokens_per_char * _DENSER))

    def _lowered(self, request: Request, usd: Decimal) -> Request:
        """Return a request whose limit on tokens an amount can pay for."""
        assert self.price is not None
        left = usd * MILLION - self._prompt_tokens(request) * max(self.price.input, self.price.cached)
        limit = int(left / self.price.output) if self.price.output else RAISED_TOKENS
        return replace(request, max_tokens=max(1, min(self.options.limit(request), limit)))

    def _complete(self, reply: Reply, request: Request, seconds: float) -> Reply:
        """Return the reply with its cost, its time, its limit, and what the model thought aloud set apart."""
        cost = reply.usage.cost_usd
        if cost is None and self.price is not None:
            priced = cost_usd(self.price, reply.usage)
            cost = None if priced is None else float(priced)
        text, thought = set_aside(reply.text)
        limit, finish = self.options.limit(request), reply.finish
        if finish in ("", STOP) and reply.usage.output_tokens == limit in (self.options.max_tokens, RAISED_TOKENS):
            finish = LENGTH  # some servers do not say that they cut a reply
        return replace(
            reply,
            text=text,
            finish=finish,
            usage=replace(reply.usage, cost_usd=cost),
            latency_seconds=seconds,
            reasoning=f"{reply.reasoning}{thought}",
            max_tokens=request.max_tokens or 0,
        )

    def _hit(self, kept: Reply) -> Reply:
        usage = replace(kept.usage, cost_usd=0.0, from_cache=True)
        self.tally += ModelSpend(
            cache_hits=1, cache_input_tokens=usage.input_tokens, cache_output_tokens=usage.output_tokens
        )
        return replace(kept, usage=usage)

    def _keep(self, cache: ReplyCache, key: str, reply: Reply) -> Reply:
        try:
            kept = cache.put(key, reply)
        except InfrastructureError:
            self.tally += ModelSpend(unsaved=1)  # a paid reply is used even if it cannot be stored
            return reply
        # If another writer was first, its reply is used, so that runs from the cache see the same reply.
        return kept if kept is reply else replace(kept, usage=reply.usage, latency_seconds=reply.latency_seconds)


def make_metered(
    string: str,
    options: ModelOptions,
    *,
    prices: PriceList | None = None,
    ledger: Ledger | None = None,
    cache: ReplyCache | None = None,
) -> Metered:
    """Return the metered model that a string names; built-in prices are the default."""
    found = (prices or load_prices()).find(string, options.base_url)
    price = found.batched() if found is not None and options.batched else found
    return Metered(make_model(string, options), string, options, price=price, ledger=ledger, cache=cache)


def cut_while_reasoning(reply: Reply) -> bool:
    """True if a reply reached its limit on tokens and some of them were reasoning, or nothing else came."""
    shown = reply.text.strip() or reply.calls
    return reply.finish == LENGTH and bool(reply.reasoning or reply.usage.reasoning_tokens or not shown)


def _is_lost(outcome: Reply | ModelError) -> bool:
    """True if a lowered limit cut a reply or was refused; a reply that ended by itself is what it would have been."""
    return outcome.kind == "rejected" if isinstance(outcome, ModelError) else outcome.finish == LENGTH


def _is_passing(failure: ModelError) -> bool:
    return failure.kind in PASSING and (failure.retry_after_seconds or 0.0) <= LONGEST_WAIT_SECONDS


def _may_be_billed(failure: ModelError) -> bool:
    return failure.kind in MAY_BE_BILLED if failure.may_be_billed is None else failure.may_be_billed


def _taken(reply: Reply, most: Decimal) -> ModelSpend:
    usage = reply.usage
    return ModelSpend(
        calls=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=exact_usd(usage.cost_usd or 0),
        unpriced_calls=int(usage.cost_usd is None),
        unconfirmed_usd=most if usage.cost_usd is None else NOTHING,
    )
