"""Explains a bill: what kind of token cost how much, in how large a context, and what was paid for a second time.

A request that reads less from the cache than the request before it had cached pays for the difference again. What it
pays more than reading would have cost is lost; why, is said only where the log shows it: a pause longer than the cache
lives, or a part of the context that was taken out. The parts of a bill overlap, and say how much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from eirkit_coding.week.responses import Response
from eirkit_coding.week.results import Bill, BillPart, Cause, CompactionBill, PartKind, SessionBill

LONG = 100_000  # tokens of a prompt, from which a context is long
SIZES = (25_000, 50_000, LONG, 150_000, 200_000)  # of prompts, between which the bill is divided
LOST_SHARE = 0.1  # of what was cached; real sessions have either nearly nothing or at least a fifth
MINUTES, HOUR = 300.0, 3600.0  # that a cache written for minutes, or for an hour, lives after its last use
SESSIONS = 10  # listed


@dataclass(frozen=True, slots=True)
class Money:
    """What one response cost in US dollars, by kind of token."""

    fresh: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_hour: Decimal
    output: Decimal
    cached_token: Decimal = Decimal(0)  # what reading a token from the cache costs
    output_token: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        return self.fresh + self.cache_read + self.cache_write + self.cache_write_hour + self.output


Pricing = Callable[[Response], Money | None]


@dataclass(frozen=True, slots=True)
class Request:
    """A response that has a price, beside the one whose context it continues."""

    response: Response
    money: Money
    before: Response | None
    lost_tokens: int  # that had been cached and were paid for again
    lost: Decimal  # what that cost more than reading them
    cause: PartKind | None  # of the loss
    left_out_tokens: int  # that a compaction earlier in the thread took out, and that this would have read


def requests_of(responses: Sequence[Response], pricing: Pricing) -> Iterator[Request]:
    """Yield the responses with a price in the order in which they came.

    Args:
        responses: all that are known, also those before a stretch, in the order in which they came.
    """
    known: dict[str, Response] = {}
    last: dict[str, Response] = {}  # by thread
    lives: dict[str, float] = {}  # by thread: how long its cache lives
    left_out: dict[str, int] = {}
    for response in responses:
        newest = last.get(response.thread)
        before = newest if response.before is None else known.get(response.before)
        cut = "compaction" if before is not None and before.is_summary else response.cut
        if before is not None and not response.is_summary:
            is_compacted = cut == "compaction"
            left_out[response.key] = (
                max(0, before.tokens - response.prompt_tokens) if is_compacted else left_out.get(before.key, 0)
            )
        life = lives.get(response.thread, lives.get(before.thread) if before is not None else None)
        if money := pricing(response):
            yield _request(response, money, before, newest, life, cut, left_out.get(response.key, 0))
        if response.cache_write_tokens:
            lives[response.thread] = MINUTES
        elif response.cache_write_hour_tokens:
            lives[response.thread] = HOUR
        elif life is not None:
            lives[response.thread] = life
        known[response.key] = last[response.thread] = response


def _request(
    response: Response,
    money: Money,
    before: Response | None,
    newest: Response | None,
    life: float | None,
    cut: str,
    left_out_tokens: int,
) -> Request:
    if before is None:
        return Request(response, money, None, 0, Decimal(0), None, 0)
    expected = min(before.cached_tokens, response.prompt_tokens)
    again = expected - response.cache_read_tokens
    if cut == "compaction":  # all that it writes is the new context
        again = response.prompt_tokens - response.cache_read_tokens
    elif again <= LOST_SHARE * expected:
        return Request(response, money, before, 0, Decimal(0), None, left_out_tokens)
    written = response.cache_write_tokens + response.cache_write_hour_tokens
    from_written = min(again, written)
    paid = Decimal(0)
    if from_written:
        paid += (money.cache_write + money.cache_write_hour) * from_written / written
    if again > from_written and response.fresh_tokens:
        paid += money.fresh * (again - from_written) / response.fresh_tokens
    used = max(before.at, newest.at if newest is not None else before.at)
    cause: PartKind
    if cut == "compaction":
        return Request(response, money, before, again, paid, "compacted", left_out_tokens)
    if before.model != response.model:
        cause = "model changed"
    elif life is not None and response.at - used > life:
        cause = "expired"
    elif cut:
        cause = "resumed" if cut == "resumed" else "cleared"
    else:
        cause = "unexplained"
    return Request(response, money, before, again, paid - again * money.cached_token, cause, left_out_tokens)


@dataclass(slots=True)
class _Part:
    """Sums over some requests."""

    requests: int = 0
    tokens: int = 0
    usd: Decimal = field(default_factory=Decimal)
    long_usd: Decimal = field(default_factory=Decimal)

    def add(self, tokens: int, usd: Decimal, *, is_long: bool) -> None:
        self.requests += 1
        self.tokens += tokens
        self.usd += usd
        self.long_usd += usd if is_long else 0

    def part(self, kind: PartKind, least: int = 0, most: int | None = None) -> BillPart:
        return BillPart(kind, self.requests, self.tokens, float(self.usd), float(self.long_usd), least, most)


_KINDS: tuple[tuple[PartKind, str, str], ...] = (
    ("cache reads", "cache_read_tokens", "cache_read"),
    ("cache writes, minutes", "cache_write_tokens", "cache_write"),
    ("cache writes, an hour", "cache_write_hour_tokens", "cache_write_hour"),
    ("input, not cached", "fresh_tokens", "fresh"),
    ("output", "output_tokens", "output"),
)
_PARTS: tuple[PartKind, ...] = (
    "sub-agents",
    "expired",
    "model changed",
    "cleared",
    "resumed",
    "unexplained",
    "compacted",
)


def explain(requests: Collection[Request]) -> Bill:
    """Return where the money went."""
    kinds: dict[PartKind, _Part] = {kind: _Part() for kind, *_ in _KINDS}
    parts: defaultdict[PartKind, _Part] = defaultdict(_Part)
    sizes = [_Part() for _ in range(len(SIZES) + 1)]
    for request in requests:
        response, money = request.response, request.money
        is_long = response.prompt_tokens > LONG
        for kind, tokens, usd in _KINDS:
            if getattr(response, tokens):
                kinds[kind].add(getattr(response, tokens), getattr(money, usd), is_long=is_long)
        place = sum(response.prompt_tokens > size for size in SIZES)
        sizes[place].add(response.tokens, money.total, is_long=is_long)
        if response.sub_agent:
            parts["sub-agents"].add(response.tokens, money.total, is_long=is_long)
        if request.cause is not None:
            parts[request.cause].add(request.lost_tokens, request.lost, is_long=is_long)
    bounds = zip((0, *SIZES), (*SIZES, None), sizes, strict=True)
    return Bill(
        kinds=tuple(part.part(kind) for kind, part in kinds.items()),
        sizes=tuple(part.part("size", least, most) for least, most, part in bounds if part.requests),
        parts=tuple(parts[kind].part(kind) for kind in _PARTS if kind in parts),
        compaction=_compaction(requests),
        sessions=tuple(_sessions(requests)),
    )


def _compaction(requests: Iterable[Request]) -> CompactionBill:
    """Return what compactions cost and saved, as far as responses tell."""
    written = summaries = logged = saved = Decimal(0)
    later = left_out = unlogged = 0
    for request in requests:
        response, money = request.response, request.money
        if request.cause == "compacted":
            written += request.lost
            if response.summary_tokens and request.before is not None:
                unlogged += 1
                summaries += request.before.tokens * money.cached_token
                summaries += response.summary_tokens * money.output_token
        if response.is_summary:
            logged += money.total
        elif request.left_out_tokens:
            later += 1
            left_out += request.left_out_tokens
            saved += request.left_out_tokens * money.cached_token
    return CompactionBill(float(written), float(logged), unlogged, float(summaries), later, left_out, float(saved))


def _sessions(requests: Iterable[Request]) -> Iterator[SessionBill]:
    """Yield the dearest sessions, each with the parts of its bill, which do not overlap."""
    groups: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        groups[request.response.thread.partition("/")[0]].append(request)
    totals = {name: sum((one.money.total for one in group), Decimal(0)) for name, group in groups.items()}
    for name in sorted(groups, key=lambda name: (-totals[name], name))[:SESSIONS]:
        group = groups[name]
        causes: defaultdict[PartKind, Decimal] = defaultdict(Decimal)
        for request in group:
            for cause, usd in _shares(request).items():
                causes[cause] += usd
        ordered = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
        yield SessionBill(
            session=name,
            project=group[0].response.project,
            at=group[0].response.at,
            requests=len(group),
            usd=float(totals[name]),
            peak_tokens=max(request.response.prompt_tokens for request in group),
            causes=tuple(Cause(kind, float(usd)) for kind, usd in ordered if usd),
        )


def _shares(request: Request) -> Mapping[PartKind, Decimal]:
    """Return what a request cost by cause, without overlap: the sum is the whole request."""
    response, money = request.response, request.money
    if response.sub_agent:
        return {"sub-agents": money.total}
    lost = request.lost if request.cause is not None else Decimal(0)
    reading: PartKind = "long reads" if response.prompt_tokens > LONG else "short reads"
    found: dict[PartKind, Decimal] = {
        reading: money.cache_read,
        "output": money.output,
        "new input": money.cache_write + money.cache_write_hour + money.fresh - lost,
    }
    if request.cause is not None:
        found[request.cause] = lost
    return found
