"""Adds up a stretch of time over all logs: tokens, money, rereads and losses by day, project, model and agent.

Every sum comes with that of the stretch of the same length before. Money is what a price list makes of the logged
tokens; tokens of models without a price are counted and named, never taken for free.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import TypeVar

from msgspec import structs

from eirkit.vestige.audits.occupancy import ContextWindows, window_of
from eirkit.vestige.measures import LEAST_REPEATS, LEAST_TOKENS, LEAST_USD
from eirkit_coding.week.bill import Money, Pricing, Request, explain, requests_of
from eirkit_coding.week.facts import ContextLoss, FileReading, InstructionLoss, LogFacts
from eirkit_coding.week.responses import Response, UnknownResponse, unique
from eirkit_coding.week.results import (
    AgentRow,
    DayRow,
    FullestContext,
    GroupRow,
    ModelRow,
    ModelTokens,
    ProjectRow,
    ProjectTokens,
    RepeatedFile,
    StatedCosts,
    WeekAdvice,
    WeekSummary,
    WeekSums,
)
from eirkit_coding.week.windows import which_window

LISTED = 10  # files, losses and instructions of each list
ADVICE = 5
LEAST_SHARE = 0.01  # of the whole bill; less is not worth acting on
_RunEvent = FileReading | ContextLoss | InstructionLoss
Event = Response | _RunEvent
_Row = TypeVar("_Row", bound=GroupRow)


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
            datetime.fromtimestamp(moment, self.zone) - timedelta(days=days) for moment in (self.since, self.until)
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


_Group = list[tuple[Event, Money | None]]  # events, with what they cost


def _sums(group: _Group, unknown_responses: int = 0) -> WeekSums:
    """Return the sums over the events of a group; money stays exact until it is summed."""
    if not group:
        return WeekSums(unknown_responses=unknown_responses)
    responses = [(event, money) for event, money in group if isinstance(event, Response)]
    readings = [event for event, _ in group if isinstance(event, FileReading)]
    losses = [(event, money) for event, money in group if isinstance(event, ContextLoss)]
    instructions = [event for event, _ in group if isinstance(event, InstructionLoss)]
    paid = [money for _, money in responses if money is not None]
    is_priced = bool(paid) or not responses

    def usd(costs: Iterable[Decimal]) -> float | None:
        return float(sum(costs, Decimal(0))) if is_priced else None

    return WeekSums(
        tokens=sum(response.tokens for response, _ in responses),
        usd=usd(money.total for money in paid),
        responses=len(responses),
        unknown_responses=unknown_responses,
        fresh_tokens=sum(response.fresh_tokens for response, _ in responses),
        cache_read_tokens=sum(response.cache_read_tokens for response, _ in responses),
        cache_write_tokens=sum(
            response.cache_write_tokens + response.cache_write_hour_tokens for response, _ in responses
        ),
        cache_write_hour_tokens=sum(response.cache_write_hour_tokens for response, _ in responses),
        output_tokens=sum(response.output_tokens for response, _ in responses),
        unpriced_tokens=sum(response.tokens for response, money in responses if money is None),
        peak_context_tokens=max((response.tokens for response, _ in responses), default=0),
        read_tokens=sum(reading.tokens for reading in readings),
        repeat_tokens=sum(reading.repeat_tokens for reading in readings),
        compactions=sum(loss.compactions for loss, _ in losses),
        manual_compactions=sum(loss.manual_compactions for loss, _ in losses),
        automatic_compactions=sum(loss.automatic_compactions for loss, _ in losses),
        clears=sum(loss.clears for loss, _ in losses),
        unmeasured=sum(loss.compactions + loss.clears for loss, _ in losses if not loss.measured),
        dropped_tokens=sum(loss.dropped_tokens for loss, _ in losses),
        unknown_tokens=sum(loss.unknown_tokens for loss, _ in losses),
        reread_tokens=sum(loss.reread_tokens for loss, _ in losses),
        reread_dropped_tokens=sum(loss.reread_dropped_tokens for loss, _ in losses),
        instructions_dropped=len(instructions),
        instructions_broken=sum(loss.broken_turn is not None for loss in instructions),
        fresh_usd=usd(money.fresh for money in paid),
        cache_read_usd=usd(money.cache_read for money in paid),
        cache_write_usd=usd(money.cache_write + money.cache_write_hour for money in paid),
        cache_write_hour_usd=usd(money.cache_write_hour for money in paid),
        output_usd=usd(money.output for money in paid),
        reread_usd=usd(money.fresh for _, money in losses if money is not None),
    )


@dataclass(slots=True)
class _Groups:
    """The events of one stretch, as a whole and by day, project, model and agent."""

    total: _Group = field(default_factory=list)
    days: defaultdict[str, _Group] = field(default_factory=lambda: defaultdict(list))
    projects: defaultdict[str, _Group] = field(default_factory=lambda: defaultdict(list))
    models: defaultdict[str, _Group] = field(default_factory=lambda: defaultdict(list))
    agents: defaultdict[str, _Group] = field(default_factory=lambda: defaultdict(list))

    def add(self, event: Event, agent: str, day: str, money: Money | None) -> None:
        own = self.days[day], self.projects[event.project], self.models[event.model], self.agents[agent]
        for group in (self.total, *own):
            group.append((event, money))


@dataclass(frozen=True, slots=True)
class WeekQuestion:
    """What is asked about the logs."""

    stretch: Stretch
    pricing: Pricing
    windows: ContextWindows
    project: str = ""  # the last part of a folder's path, or the whole path; "" for all


def sum_up(logs: Sequence[LogFacts], asked: WeekQuestion) -> WeekSummary:
    """Return the sums, the lists of what cost most, and what is worth doing."""
    now, before = asked.stretch, asked.stretch.before()
    groups, earlier = _Groups(), _Groups()
    chosen: list[Event] = []
    for event, agent in _events(logs, asked.project):
        is_now = now.has(event.at)
        if is_now or before.has(event.at):
            money = asked.pricing(_paid(event)) if isinstance(event, (Response, ContextLoss)) else None
            (groups if is_now else earlier).add(event, agent, now.day(event.at), money)
        if is_now:
            chosen.append(event)
    unknown = list(_unknown(logs, asked.project))
    requests = [request for request in _requests(logs, asked) if now.has(request.response.at)]
    bill = explain(requests)
    expired = [request for request in requests if request.cause == "expired"]
    total = _sums(groups.total, sum(now.has(response.at) for response in unknown))
    files = repeated_files((event for event in chosen if isinstance(event, FileReading)), asked.pricing)
    losses = [event for event in chosen if isinstance(event, ContextLoss)]
    instructions = [event for event in chosen if isinstance(event, InstructionLoss)]
    models = _rows(ModelRow, "model", groups.models, earlier.models)
    unpriced = sorted((row for row in models if row.unpriced_tokens), key=lambda row: -row.unpriced_tokens)
    days = sorted({*now.days(), *groups.days})
    return WeekSummary(
        total=total,
        bill=bill,
        stated=_stated(requests),
        window=which_window(requests, losses),
        before=_sums(earlier.total, sum(before.has(response.at) for response in unknown)),
        days=tuple(DayRow(day=day, **structs.asdict(_sums(groups.days[day]))) for day in days),
        projects=_rows(ProjectRow, "project", groups.projects, earlier.projects),
        models=models,
        agents=_rows(AgentRow, "agent", groups.agents, earlier.agents),
        fullest=_fullest(chosen, logs, asked.windows),
        losses=tuple(sorted(losses, key=lambda loss: (-loss.dropped_tokens, loss.at, loss.run_id))[:LISTED]),
        files=tuple(files[:LISTED]),
        instructions=tuple(instructions[:LISTED]),
        unpriced=tuple(ModelTokens(row.model, row.unpriced_tokens) for row in unpriced),
        advice=tuple(advice(files, losses, instructions, expired, asked.pricing, total.usd)[:ADVICE]),
        other_projects=() if total.responses else tuple(_others(logs, asked)),
    )


def _requests(logs: Sequence[LogFacts], asked: WeekQuestion) -> Iterator[Request]:
    """Yield the requests of a project, each beside the one that its context continues."""
    chosen = [one for one in unique(log.responses for log in logs) if is_within(one.project, asked.project)]
    return requests_of(chosen, asked.pricing)


def _stated(requests: Iterable[Request]) -> StatedCosts:
    known = [(one.response.stated_usd, one.money.total) for one in requests if one.response.stated_usd is not None]
    return StatedCosts(
        len(known), sum(stated for stated, _ in known), float(sum((usd for _, usd in known), Decimal(0)))
    )


def unknown_by_log(logs: Sequence[LogFacts], asked: WeekQuestion) -> Mapping[str, int]:
    """Return how many responses of the stretch have no valid numbers of tokens, by log."""
    return Tally(response.source for response in _unknown(logs, asked.project) if asked.stretch.has(response.at))


def _rows(
    kind: type[_Row], named: str, groups: Mapping[str, _Group], earlier: Mapping[str, _Group]
) -> tuple[_Row, ...]:
    """Return the rows of projects, models or agents, the most tokens first, and by name where these are equal."""
    rows = []
    for name, group in sorted(groups.items()):
        before = _sums(earlier.get(name, []))
        sums = {**structs.asdict(_sums(group)), named: name}
        rows.append(kind(before_tokens=before.tokens, before_usd=before.usd, **sums))
    return tuple(sorted(rows, key=lambda row: -row.tokens))


def _others(logs: Sequence[LogFacts], asked: WeekQuestion) -> Iterator[ProjectTokens]:
    """Yield the projects with responses in the stretch, where the one that was asked for has none."""
    found: Tally[str] = Tally()
    for response in unique(log.responses for log in logs if asked.project):
        found[response.project] += response.tokens if asked.stretch.has(response.at) else 0
    yield from (ProjectTokens(project, tokens) for project, tokens in found.most_common() if tokens)


def _unknown(logs: Sequence[LogFacts], project: str) -> Iterator[UnknownResponse]:
    """Yield the responses whose tokens no log tells, copies of one in several logs once."""
    seen: set[str] = set()
    for log in logs:  # one that grew until its numbers were invalid is known in part
        seen.update({known.key for known in log.responses} - {unknown.key for unknown in log.unknown})
    for response in (response for log in logs for response in log.unknown):
        if response.key not in seen and is_within(response.project, project):
            yield response
        seen.add(response.key)


def _paid(event: Response | ContextLoss | FileReading) -> Response:
    """Return a response as it is; of a loss or a read, what was read again because of it, as input of its model."""
    if isinstance(event, Response):
        return event
    again = event.repeat_tokens if isinstance(event, FileReading) else event.reread_tokens
    return Response("", event.at, event.project, event.model, again, 0, 0, 0, 0)


def _input_usd(again: Iterable[ContextLoss | FileReading], pricing: Pricing) -> float | None:
    """Return what reading again cost at least, in models with a price; None if none has one."""
    found = [money.fresh for event in again if (money := pricing(_paid(event))) is not None]
    return float(sum(found, Decimal(0))) if found else None


def _events(logs: Sequence[LogFacts], project: str) -> Iterator[tuple[Event, str]]:
    """Yield responses, reads and losses with the agent's name; copies of one in several logs once."""
    agent_of = {response.key: log.agent for log in reversed(logs) for response in log.responses}
    for response in unique(log.responses for log in logs):
        if is_within(response.project, project):
            yield response, agent_of[response.key]
    seen: set[Event] = set()
    for log in logs:
        events: list[_RunEvent] = [*log.readings, *log.losses, *log.instructions]
        own = [(event, _original(event)) for event in events]
        # A session that was resumed in another file begins there with a copy, whose times are those of the original.
        yield from (
            (event, log.agent) for event, original in own if original not in seen and is_within(event.project, project)
        )
        seen.update(original for _, original in own)


def _original(event: _RunEvent) -> Event:
    """Return what is equal in all copies of an event: all but the session and its turns."""
    if isinstance(event, InstructionLoss):
        return structs.replace(event, run_id="", turn=0, broken_turn=None)
    return structs.replace(event, run_id="", turn=0)


def is_within(folder: str, project: str) -> bool:
    """Return whether a folder is the project that was asked for, by its path or the last part of it."""
    asked = project.rstrip("/")
    path = folder.rstrip("/")
    return not asked or path == asked or path.startswith(f"{asked}/") or path.rpartition("/")[2] == asked


def _fullest(chosen: Iterable[Event], logs: Sequence[LogFacts], windows: ContextWindows) -> FullestContext | None:
    """Return the response with the fullest context, with the share of the window where its size is known."""
    responses = (event for event in chosen if isinstance(event, Response))
    found = max(responses, key=lambda response: (response.tokens, -response.at), default=None)
    if found is None:
        return None
    stated = (log.windows[found.model] for log in logs if found in log.responses and found.model in log.windows)
    window = next(stated, None) or window_of(windows, found.model)
    share = None if window is None else found.tokens / window
    return FullestContext(found.tokens, window, share, found.at, found.project, found.model)


def repeated_files(readings: Iterable[FileReading], pricing: Pricing) -> list[RepeatedFile]:
    """Return the files that were shown again though unchanged, the most tokens first."""
    groups: dict[tuple[str, str], list[FileReading]] = {}
    for reading in readings:
        if reading.repeat_tokens:
            groups.setdefault((reading.project, reading.path), []).append(reading)
    files = []
    for (project, path), again in groups.items():
        most = max(again, key=lambda reading: (reading.repeat_tokens, -reading.at))
        files.append(
            RepeatedFile(
                project=project,
                path=path,
                repeat_tokens=sum(reading.repeat_tokens for reading in again),
                repeat_reads=len(again),
                runs=len({reading.run_id for reading in again}),
                run_id=most.run_id,
                turn=most.turn,
                model=most.model,
                usd=_input_usd(again, pricing),
            )
        )
    return sorted(files, key=lambda file: (-file.repeat_tokens, file.project, file.path))


def _about_caches(expired: Sequence[Request]) -> Iterator[WeekAdvice]:
    """Yield what requests after long pauses paid again."""
    by_session: defaultdict[str, Decimal] = defaultdict(Decimal)
    for request in expired:
        by_session[request.response.thread.partition("/")[0]] += request.lost
    if not by_session:
        return
    yield WeekAdvice(
        kind="expired",
        subject="cache",
        tokens=sum(request.lost_tokens for request in expired),
        count=len(expired),
        run_id=min(by_session, key=lambda session: (-by_session[session], session)),
        turn=0,
        project="",
        usd=float(sum(by_session.values())),
    )


def advice(
    files: Iterable[RepeatedFile],
    losses: Iterable[ContextLoss],
    instructions: Iterable[InstructionLoss],
    expired: Sequence[Request],
    pricing: Pricing,
    bill: float | None,
) -> list[WeekAdvice]:
    """Return what is worth acting on: the dearest first, broken rules last.

    What cost less than a dollar, or than a hundredth of the bill, is left out; a broken rule has no price. So is what
    the user compacted or cleared by hand: when to do it, and what came next, was decided.
    """
    about_files = (
        WeekAdvice(
            kind="file",
            subject=file.full_name,
            tokens=file.repeat_tokens,
            count=file.repeat_reads,
            run_id=file.run_id,
            turn=file.turn,
            model=file.model,
            runs=file.runs,
            project=file.project,
            usd=file.usd,
        )
        for file in files
        if file.repeat_tokens >= LEAST_TOKENS and file.repeat_reads >= LEAST_REPEATS
    )
    about_losses = (
        WeekAdvice(
            kind="compaction",
            run_id=loss.run_id,
            model=loss.model,
            project=loss.project,
            turn=loss.turn,
            subject=loss.kind,
            tokens=loss.dropped_tokens,
            count=loss.reread_tokens,
            trigger=loss.trigger,
            usd=_input_usd([loss], pricing),
        )
        for loss in losses
        if loss.trigger != "manual" and loss.dropped_tokens >= LEAST_TOKENS
    )
    least = max(float(LEAST_USD), LEAST_SHARE * (bill or 0.0))
    dear = sorted(
        (
            thing
            for thing in (*about_files, *about_losses, *_about_caches(expired))
            if thing.usd is not None and thing.usd >= least
        ),
        key=lambda thing: (-(thing.usd or 0.0), thing.kind == "file", thing.subject),
    )
    broken = (
        WeekAdvice(
            kind="instruction",
            run_id=loss.run_id,
            model=loss.model,
            project=loss.project,
            turn=loss.broken_turn,
            subject=loss.text,
            cut=loss.turn,
            by=loss.broken_by,
        )
        for loss in instructions
        if loss.broken_turn is not None
    )
    return [*dear, *broken]
