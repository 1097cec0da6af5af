"""Adds up a stretch of time over all logs: tokens, money, rereads and losses by day, project, model and agent.

Every sum comes with that of the stretch of the same length before. Money is what a price list makes of the logged
tokens; tokens of models without a price are counted and named, never taken for free.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from eirkit.vestige.audits.occupancy import ContextWindows, window_of
from eirkit.vestige.corpus.summary import LEAST_REPEATS, LEAST_TOKENS, LEAST_USD
from eirkit_coding.week.facts import ContextLoss, FileReading, InstructionLoss, LogFacts
from eirkit_coding.week.responses import Response, UnknownResponse, unique

LISTED = 10  # files, losses and instructions of each list
ADVICE = 5
LEAST_SHARE = Decimal("0.01")  # of the whole bill; less is not worth acting on
DIMENSIONS = ("day", "project", "model", "agent")


@dataclass(frozen=True, slots=True)
class Money:
    """What one response cost in US dollars, by kind of token."""

    fresh: Decimal
    cache_read: Decimal
    cache_write: Decimal
    output: Decimal


Pricing = Callable[[Response], Money | None]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, and how it is divided into days."""

    since: float
    until: float
    zone: tzinfo | None = None  # None: that of this machine

    @classmethod
    def week(cls, until: float, zone: tzinfo | None = None, days: int = 7) -> Stretch:
        """Return the days up to a moment, its own day included."""
        day = datetime.fromtimestamp(until, zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return cls((day - timedelta(days=days - 1)).timestamp(), until, zone)

    def before(self) -> Stretch:
        """Return the stretch before: the same number of days earlier, so that equal weekdays are compared."""
        days = max(1, (self._day(self.until) - self._day(self.since)).days + 1)
        first, last = (
            datetime.fromtimestamp(one, self.zone) - timedelta(days=days) for one in (self.since, self.until)
        )
        return Stretch(first.timestamp(), last.timestamp(), self.zone)

    def has(self, at: float) -> bool:
        return self.since <= at <= self.until

    def day(self, at: float) -> str:
        return self._day(at).isoformat()

    def days(self) -> list[str]:
        """Return all its days, those without work included."""
        first, last = self._day(self.since), self._day(self.until)
        return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]

    def _day(self, at: float) -> date:
        return datetime.fromtimestamp(at, self.zone).date()


@dataclass(slots=True)
class WeekTotals:
    """The sums of one day, project, model, agent, or of everything."""

    responses: int = 0
    unknown_responses: int = 0  # besides these: the log has no valid numbers of their tokens
    fresh_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    fresh_usd: Decimal = Decimal(0)
    cache_read_usd: Decimal = Decimal(0)
    cache_write_usd: Decimal = Decimal(0)
    output_usd: Decimal = Decimal(0)
    reread_usd: Decimal = Decimal(0)  # part of the above: what reading again after compactions cost at least
    unpriced_tokens: int = 0
    peak_context_tokens: int = 0
    read_tokens: int = 0
    repeat_tokens: int = 0
    compactions: int = 0
    manual_compactions: int = 0  # that the user started
    automatic_compactions: int = 0  # that the agent started; of the others the logs do not say
    clears: int = 0
    unmeasured: int = 0  # of compactions and clears: no file was used later, so that what they dropped is not known
    dropped_tokens: int = 0
    unknown_tokens: int = 0  # of which the logs do not show whether they were dropped, too
    reread_tokens: int = 0  # that reading again showed, with the numbers of lines and what was shown besides
    reread_dropped_tokens: int = 0  # of the dropped ones
    instructions_dropped: int = 0
    instructions_broken: int = 0

    @property
    def tokens(self) -> int:
        return self.fresh_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens

    @property
    def usd(self) -> Decimal | None:
        """What the tokens with a price cost; None if none has one."""
        paid = self.fresh_usd + self.cache_read_usd + self.cache_write_usd + self.output_usd
        return None if self.unpriced_tokens and self.unpriced_tokens == self.tokens else paid

    def add(self, one: object, money: Money | None) -> None:
        """Add a response with what it cost, a read or a loss."""
        if isinstance(one, Response):
            self._respond(one, money)
        elif isinstance(one, FileReading):
            self.read_tokens += one.tokens
            self.repeat_tokens += one.repeat_tokens
        elif isinstance(one, ContextLoss):
            self.compactions += one.compactions
            self.manual_compactions += one.manual_compactions
            self.automatic_compactions += one.automatic_compactions
            self.clears += one.clears
            self.unmeasured += 0 if one.measured else one.compactions + one.clears
            self.dropped_tokens += one.dropped_tokens
            self.unknown_tokens += one.unknown_tokens
            self.reread_tokens += one.reread_tokens
            self.reread_dropped_tokens += one.reread_dropped_tokens
            self.reread_usd += Decimal(0) if money is None else money.fresh
        elif isinstance(one, InstructionLoss):
            self.instructions_dropped += 1
            self.instructions_broken += one.broken_turn is not None

    def _respond(self, one: Response, money: Money | None) -> None:
        self.responses += 1
        self.fresh_tokens += one.fresh_tokens
        self.cache_read_tokens += one.cache_read_tokens
        self.cache_write_tokens += one.cache_write_tokens + one.cache_write_hour_tokens
        self.output_tokens += one.output_tokens
        self.peak_context_tokens = max(self.peak_context_tokens, one.tokens)
        if money is None:
            self.unpriced_tokens += one.tokens
        else:
            self.fresh_usd += money.fresh
            self.cache_read_usd += money.cache_read
            self.cache_write_usd += money.cache_write
            self.output_usd += money.output

    def as_json(self) -> dict[str, Any]:
        names = [name for name in self.__slots__ if not name.endswith("_usd")]
        is_known = self.usd is not None
        parts = {name: float(getattr(self, name)) if is_known else None for name in self.__slots__ if name not in names}
        usd = None if self.usd is None else float(self.usd)
        return {"tokens": self.tokens, "usd": usd, **{name: getattr(self, name) for name in names}, **parts}


@dataclass(slots=True)
class _Groups:
    """The sums of one stretch, as a whole and by each dimension."""

    total: WeekTotals = field(default_factory=WeekTotals)
    by: dict[str, dict[str, WeekTotals]] = field(default_factory=lambda: {name: {} for name in DIMENSIONS})

    def add(self, one: Any, agent: str, day: str, money: Money | None) -> None:
        self.total.add(one, money)
        for name, key in zip(DIMENSIONS, (day, one.project, one.model, agent), strict=True):
            self.by[name].setdefault(key, WeekTotals()).add(one, money)


@dataclass(frozen=True, slots=True)
class WeekQuestion:
    """What is asked about the logs."""

    stretch: Stretch
    pricing: Pricing
    windows: ContextWindows
    project: str = ""  # the last part of a folder's path, or the whole path; "" for all


def sum_up(logs: Sequence[LogFacts], asked: WeekQuestion) -> dict[str, Any]:
    """Return the sums, the lists of what cost most, and what is worth doing, as JSON data."""
    now, before = asked.stretch, asked.stretch.before()
    groups, earlier = _Groups(), _Groups()
    chosen: list[Any] = []
    for one, agent in _events(logs, asked.project):
        is_now = now.has(one.at)
        if is_now or before.has(one.at):
            money = asked.pricing(_paid(one)) if isinstance(one, (Response, ContextLoss)) else None
            (groups if is_now else earlier).add(one, agent, now.day(one.at), money)
        if is_now:
            chosen.append(one)
    unknown = list(_unknown(logs, asked.project))
    groups.total.unknown_responses = sum(now.has(one.at) for one in unknown)
    earlier.total.unknown_responses = sum(before.has(one.at) for one in unknown)
    days = {**{day: WeekTotals() for day in now.days()}, **groups.by["day"]}
    return {
        "total": groups.total.as_json(),
        "before": earlier.total.as_json(),
        "days": _rows("day", dict(sorted(days.items())), {}, is_ranked=False),
        **{f"{name}s": _rows(name, groups.by[name], earlier.by[name]) for name in DIMENSIONS[1:]},
        "fullest": _fullest(chosen, logs, asked.windows),
        "losses": [_named(one) for one in _largest(chosen, ContextLoss, lambda one: one.dropped_tokens)],
        "files": repeated_files((one for one in chosen if isinstance(one, FileReading)), asked.pricing)[:LISTED],
        "instructions": [_named(one) for one in chosen if isinstance(one, InstructionLoss)][:LISTED],
        "unpriced": _unpriced(groups.by["model"]),
        "advice": advice(chosen, asked.pricing, groups.total.usd)[:ADVICE],
        "other_projects": [] if groups.total.responses else _others(logs, asked),
        "unknown": dict(Tally(one.source for one in unknown if now.has(one.at))),
    }


def _others(logs: Sequence[LogFacts], asked: WeekQuestion) -> list[dict[str, Any]]:
    """Return the projects with responses in the stretch, where the one that was asked for has none."""
    found: Tally[str] = Tally()
    for one in unique(log.responses for log in logs if asked.project):
        found[one.project] += one.tokens if asked.stretch.has(one.at) else 0
    return [{"project": project, "tokens": tokens} for project, tokens in found.most_common() if tokens]


def _unknown(logs: Sequence[LogFacts], project: str) -> Iterator[UnknownResponse]:
    """Yield the responses whose tokens no log tells, copies of one in several logs once."""
    seen: set[str] = set()
    for log in logs:  # one that grew until its numbers were invalid is known in part
        seen.update({one.key for one in log.responses} - {one.key for one in log.unknown})
    for one in (one for log in logs for one in log.unknown):
        if one.key not in seen and is_within(one.project, project):
            yield one
        seen.add(one.key)


def _paid(one: Response | ContextLoss | FileReading) -> Response:
    """Return a response as it is; of a loss or a read, what was read again because of it, as input of its model."""
    if isinstance(one, Response):
        return one
    again = one.repeat_tokens if isinstance(one, FileReading) else one.reread_tokens
    return Response("", one.at, one.project, one.model, again, 0, 0, 0, 0)


def _input_usd(again: Iterable[ContextLoss | FileReading], pricing: Pricing) -> Decimal | None:
    """Return what reading again cost at least, in models with a price; None if none has one."""
    found = [money.fresh for one in again if (money := pricing(_paid(one))) is not None]
    return sum(found, Decimal(0)) if found else None


def _events(logs: Sequence[LogFacts], project: str) -> Iterator[tuple[Any, str]]:
    """Yield responses, reads and losses with the agent's name; copies of one in several logs once."""
    agent_of = {one.key: log.agent for log in reversed(logs) for one in log.responses}
    for one in unique(log.responses for log in logs):
        if is_within(one.project, project):
            yield one, agent_of[one.key]
    seen: set[tuple[Any, ...]] = set()
    for log in logs:
        events: list[Any] = [*log.readings, *log.losses, *log.instructions]
        own = [(one, _told(one)) for one in events]
        # A session that was resumed in another file begins there with a copy, whose times are those of the original.
        yield from ((one, log.agent) for one, told in own if told not in seen and is_within(one.project, project))
        seen.update(told for _, told in own)


def _told(one: Any) -> tuple[Any, ...]:
    """Return what is equal in all copies of an event."""
    names = (name for name in type(one).__annotations__ if name not in ("run_id", "turn", "broken_turn"))
    return type(one), *(getattr(one, name) for name in names)


def is_within(folder: str, project: str) -> bool:
    """Return whether a folder is the project that was asked for, by its path or the last part of it."""
    asked = project.rstrip("/")
    path = folder.rstrip("/")
    return not asked or path == asked or path.startswith(f"{asked}/") or path.rpartition("/")[2] == asked


def _rows(
    name: str, groups: Mapping[str, WeekTotals], earlier: Mapping[str, WeekTotals], *, is_ranked: bool = True
) -> list[dict[str, Any]]:
    rows = [{name: key, **totals.as_json(), **_earlier(earlier, key, is_ranked)} for key, totals in groups.items()]
    return sorted(rows, key=lambda row: (-row["tokens"], row[name])) if is_ranked else rows


def _earlier(earlier: Mapping[str, WeekTotals], key: str, is_ranked: bool) -> dict[str, Any]:
    known = earlier.get(key, WeekTotals())
    usd = None if known.usd is None else float(known.usd)
    return {"before_tokens": known.tokens, "before_usd": usd} if is_ranked else {}


def _fullest(chosen: Iterable[Any], logs: Sequence[LogFacts], windows: ContextWindows) -> dict[str, Any] | None:
    """Return the response with the fullest context, with the share of the window where its size is known."""
    one = max((one for one in chosen if isinstance(one, Response)), key=lambda one: (one.tokens, -one.at), default=None)
    if one is None:
        return None
    stated = next((log.windows[one.model] for log in logs if one in log.responses and one.model in log.windows), None)
    window = stated or window_of(windows, one.model)
    share = None if window is None else one.tokens / window
    about = {"at": one.at, "project": one.project, "model": one.model}
    return {"tokens": one.tokens, "window_tokens": window, "share": share, **about}


def _largest(chosen: Iterable[Any], kind: type, size: Callable[[Any], int]) -> list[Any]:
    own: list[Any] = [one for one in chosen if isinstance(one, kind)]
    return sorted(own, key=lambda one: (-size(one), one.at, one.run_id))[:LISTED]


def _named(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in type(one).__annotations__}


def repeated_files(readings: Iterable[FileReading], pricing: Pricing) -> list[dict[str, Any]]:
    """Return the files that were shown again though unchanged, the most tokens first."""
    groups: dict[tuple[str, str], list[FileReading]] = {}
    for one in readings:
        if one.repeat_tokens:
            groups.setdefault((one.project, one.path), []).append(one)
    rows = []
    for (project, path), again in groups.items():
        most = max(again, key=lambda one: (one.repeat_tokens, -one.at))
        tokens, runs = sum(one.repeat_tokens for one in again), len({one.run_id for one in again})
        found = {"project": project, "path": path, "repeat_tokens": tokens, "repeat_reads": len(again), "runs": runs}
        usd = _input_usd(again, pricing)
        where = {"run_id": most.run_id, "turn": most.turn, "model": most.model}
        rows.append({**found, **where, "usd": None if usd is None else float(usd)})
    return sorted(rows, key=lambda row: (-row["repeat_tokens"], row["project"], row["path"]))


def _unpriced(models: Mapping[str, WeekTotals]) -> list[dict[str, Any]]:
    found = Tally({model: totals.unpriced_tokens for model, totals in models.items() if totals.unpriced_tokens})
    return [{"model": model, "tokens": tokens} for model, tokens in found.most_common()]


def advice(chosen: Sequence[Any], pricing: Pricing, bill: Decimal | None) -> list[dict[str, Any]]:
    """Return what is worth acting on, in the form that `show` puts into words: the dearest first, broken rules last.

    What cost less than a dollar, or than a hundredth of the bill, is left out; a broken rule has no price. So is what
    the user compacted or cleared by hand: when to do it, and what came next, was decided.
    """
    files = [
        {"kind": "file", "subject": _full_name(row), "tokens": row["repeat_tokens"], "count": row["repeat_reads"]}
        | {name: row[name] for name in ("run_id", "turn", "model", "runs", "project", "usd")}
        for row in repeated_files((one for one in chosen if isinstance(one, FileReading)), pricing)
        if row["repeat_tokens"] >= LEAST_TOKENS and row["repeat_reads"] >= LEAST_REPEATS
    ]
    losses = [
        {**_where(one), "kind": "compaction", "turn": one.turn, "subject": one.kind, "tokens": one.dropped_tokens}
        | {"count": one.reread_tokens, "trigger": one.trigger, "usd": None if usd is None else float(usd)}
        for one in chosen
        if isinstance(one, ContextLoss) and one.trigger != "manual" and one.dropped_tokens >= LEAST_TOKENS
        for usd in [_input_usd([one], pricing)]
    ]
    least = float(max(LEAST_USD, LEAST_SHARE * (bill or 0)))
    dear = [one for one in (*files, *losses) if one["usd"] is not None and one["usd"] >= least]
    broken = [
        {**_where(one), "kind": "instruction", "turn": one.broken_turn, "subject": one.text, "tokens": None}
        | {"cut": one.turn, "by": one.broken_by, "usd": None}
        for one in chosen
        if isinstance(one, InstructionLoss) and one.broken_turn is not None
    ]
    return [*sorted(dear, key=lambda one: (-one["usd"], one["kind"], one["subject"])), *broken]


def _full_name(row: Mapping[str, Any]) -> str:
    path, project = row["path"], row["project"].rstrip("/").rpartition("/")[2]
    return path if path.startswith("/") or not project else f"{project}/{path}"


def _where(one: Any) -> dict[str, Any]:
    return {"run_id": one.run_id, "model": one.model, "project": one.project}
