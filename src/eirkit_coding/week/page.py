"""Shows a week with coding agents: one screen in a terminal, and the same with more rows and a chart as a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache
from operator import attrgetter
from pathlib import Path
from shlex import quote

from msgspec import convert, to_builtins

from eirkit.lacuna.models.prices import MILLION, Price, PriceList
from eirkit.records.analysis import Advice, BreakCounts
from eirkit.report.document import Axis, Chart, Document, Section, Series
from eirkit.report.logs.break_sentences import break_counts, started_by
from eirkit.report.logs.sentences import CENT, advice_lines, advice_rows
from eirkit.report.table import Cell, Column, Table, counted, listed, share
from eirkit.vestige.measures import BREAK_MEASURES, LOG_MEASURES, READING_MEASURES, WEEK_MEASURES
from eirkit.vestige.model_names import name_in, plain_name
from eirkit.vestige.sources.documents import complaints
from eirkit_coding.week.bill import Money, Pricing
from eirkit_coding.week.responses import Response
from eirkit_coding.week.results import (
    BillPart,
    Bounds,
    FullestContext,
    GroupRow,
    PartKind,
    Week,
    WeekSums,
    WindowRow,
)

NAMES = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI", "opencode": "opencode"}
MOST_DAYS = 14  # of which those without a response are listed, too
ON_SCREEN = 3  # projects, models and agents in a terminal; a page has all
UNNAMED = "unknown"
TENTHS_BELOW = 0.1  # a smaller change is given with a decimal


def pricing(prices: PriceList) -> Pricing:
    """Return the function that gives a response its price, the user's list before the built-in one."""
    by_name = {name: price for name, price in _by_plain_name(prices).items() if not name.endswith("*")}

    @cache
    def price_of(model: str) -> Price | None:
        name = name_in(by_name, model)
        return None if name is None else by_name[name]

    def cost(response: Response) -> Money | None:
        price = price_of(response.model)
        if price is None or not price.covers(response.prompt_tokens):
            return None
        minutes = price.input if price.cache_write is None else price.cache_write
        hour = minutes if price.cache_write_1h is None else price.cache_write_1h
        return Money(
            response.fresh_tokens * price.input / MILLION,
            response.cache_read_tokens * price.cached / MILLION,
            response.cache_write_tokens * minutes / MILLION,
            response.cache_write_hour_tokens * hour / MILLION,
            response.output_tokens * price.output / MILLION,
            price.cached / MILLION,
            price.output / MILLION,
        )

    return cost


def price_dates(prices: PriceList, models: Sequence[str]) -> list[str]:
    """Return on which days the prices of some models were looked up, the earliest first."""
    by_name = _by_plain_name(prices)
    found = (name_in(by_name, model) for model in models)
    return sorted({by_name[name].as_of.isoformat() for name in found if name is not None})


def _by_plain_name(prices: PriceList) -> dict[str, Price]:
    """Return the prices by plain name, the user's before the built-in ones."""
    return {plain_name(name): price for known in (prices.built_in, prices.own) for name, price in known.items()}


def week_document(week: Week, zone: tzinfo | None, command: str, then: str = "") -> Document:
    """Return the document of a week.

    Args:
        command: what was typed, without its `--since`, and without a project that nothing is logged of.
        then: what to run next where something was logged.
    """
    span = f"{_day(week.since, zone)} to {_day(week.until, zone)}"
    where = f" in {Path(week.project).name}" if week.project else ""
    title, data = f"Coding agents{where}, {span}", to_builtins(week)
    if not week.total.responses:
        answer = f"No response with its tokens is logged{where} from {span}."
        then = "eirkit week -h"
        if week.other_projects:
            names = _project_names([other.project for other in week.other_projects])
            answer += f" Projects with responses then: {listed(names, ON_SCREEN)}."
            known = next((name for name in names if name != UNNAMED), "NAME")
            then = f"{command} --only {quote(known)}"
            return Document("week", title, (answer, *_looked(week), *_unread(week)), data, next=then)
        if week.newest is not None and week.newest < week.since:
            then = f"{command} --since {_day(week.newest, zone)}"
        return Document("week", title, (answer, *_looked(week), *_unread(week), *_missed(week, zone)), data, next=then)
    sections = [
        Section("", (), (_chart(week), _spent(week), *_dear(week), _lost(week), _days(week), _shares(week))),
        *_advice(week),
        Section("Notes", tuple(_notes(week))),
    ]
    details = (
        *(Section(table.title, (), (table,)) for table in _bill_tables(week) if table.rows),
        *_window(week),
        Section("Everything by project, model and agent", (), tuple(_groups(week))),
        *(Section(table.title, (), (table,)) for table in _lists(week) if table.rows),
    )
    number, caption = _bill(week, span)
    return Document("week", title, tuple(_answer(week)), data, tuple(sections), details, then, number, caption)


def _day(at: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d")


def _bill(week: Week, span: str) -> tuple[str, str]:
    """Return what the week cost, or its tokens where no price is known, and what that is for."""
    total = week.total
    least, tokens = "at least " if total.unknown_responses else "", f"{total.tokens:,}"
    used = f"tokens in {counted(total.responses, 'response')}, {span}"
    if total.usd is None:
        return tokens, f"{used}{' (at least)' if least else ''}"
    priced = (
        f" ({share(1 - total.unpriced_tokens / total.tokens)} of them have a price)" if total.unpriced_tokens else ""
    )
    return f"${total.usd:,.2f}", f"for {least}{tokens} {used}{priced}"


def _answer(week: Week) -> Iterator[str]:
    before = week.before
    yield from compaction_words(week)
    days = counted(len(week.days), "day")
    if before.responses:
        least = "at least " if before.unknown_responses else ""
        part = f" for {share(1 - before.unpriced_tokens / before.tokens)} of them" if before.unpriced_tokens else ""
        money = "" if before.usd is None else f" and cost ${before.usd:,.2f}{part}"
        yield f"The {days} before had {least}{before.tokens:,} tokens{money}{change_words(week.total, before)}."
    else:
        yield f"Nothing is logged of the {days} before."


def compaction_words(week: Week) -> Iterator[str]:
    """Yield what compactions dropped, cost and saved: one sentence, and one on what no log has."""
    total, bill = week.total, week.bill.compaction
    if not total.compactions:
        yield "No compaction."
        return
    lost = break_counts(convert(to_builtins(total), BreakCounts))
    parts = [f"{lost[0].upper()}{lost[1:]} dropped {_lost_tokens(total)}"]
    if total.reread_tokens:
        cost = f"${total.reread_usd:,.2f}" if (total.reread_usd or 0) >= CENT else counted(total.reread_tokens, "token")
        parts.append(f"reading {total.reread_dropped_tokens:,} of them again cost at least {cost}")
    if bill.written_usd >= CENT:
        parts.append(f"writing the new context cost ${bill.written_usd:,.2f}")
    if bill.summaries_usd >= CENT:
        parts.append(f"summaries cost ${bill.summaries_usd:,.2f}")
    if bill.saved_usd >= CENT:
        later = counted(bill.later_requests, "later request")
        parts.append(f"the smaller context saved {later} ${bill.saved_usd:,.2f} of cache reads")
    yield f"{'; '.join(parts)}."
    if bill.unlogged_usd >= CENT:
        yield f"Their summaries cost about ${bill.unlogged_usd:,.2f} more, which is in no log and not in the bill."


def _lost_tokens(total: WeekSums) -> str:
    """Return what was dropped, as the end of a sentence."""
    if not total.dropped_tokens:
        known = not (total.unmeasured or total.unknown_tokens)
        return f"{'nothing' if known else 'an unknown number of tokens'} of files that were used later"
    return f"{dropped(total).partition(', not')[0]} tokens of files that were used later"


def change_words(now: WeekSums, before: WeekSums) -> str:
    """Return how tokens and money changed, as the end of a sentence; money only where all of it is known."""
    if not before.tokens or not now.tokens or now.unknown_responses or before.unknown_responses:
        return ""
    said = f": tokens now {_growth(now.tokens, before.tokens)}"
    if now.usd and before.usd and not now.unpriced_tokens and not before.unpriced_tokens:
        said += f", cost {_growth(now.usd, before.usd)}"
    return said


def _growth(now: float, before: float) -> str:
    if now >= 2 * before:
        return f"{now / before:.1f} times as much"
    part = now / before - 1
    return f"{part:+.1%}" if abs(part) < TENTHS_BELOW else f"{part:+.0%}"


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of tokens: its names in the table and the chart, and its sums."""

    label: str
    bars: str
    tokens: Callable[[WeekSums], int]
    usd: Callable[[WeekSums], float | None]


KINDS = (
    *(
        _Kind(WEEK_MEASURES[f"{name}_tokens"].label, bars, attrgetter(f"{name}_tokens"), attrgetter(f"{name}_usd"))
        for name, bars in (
            ("fresh", "input, not cached"),
            ("cache_read", "cache reads"),
        )
    ),
    _Kind(
        "cache writes, minutes",
        "cache writes, minutes",
        lambda sums: sums.cache_write_tokens - sums.cache_write_hour_tokens,
        lambda sums: None if sums.cache_write_usd is None else sums.cache_write_usd - (sums.cache_write_hour_usd or 0),
    ),
    _Kind(
        "cache writes, an hour",
        "cache writes, an hour",
        attrgetter("cache_write_hour_tokens"),
        attrgetter("cache_write_hour_usd"),
    ),
    _Kind("output", "output", attrgetter("output_tokens"), attrgetter("output_usd")),
)
_ALL = _Kind("all", "", attrgetter("tokens"), attrgetter("usd"))


def _spent(week: Week) -> Table:
    columns = (
        Column("kind", "kind", role="name"),
        Column("tokens", "tokens"),
        Column("usd", "$", 2),
        Column("before_tokens", "before"),
        Column("before_usd", "$ before", 2),
    )
    now, before = week.total, week.before
    rows: list[dict[str, Cell]] = [
        {
            "kind": kind.label,
            "tokens": kind.tokens(now),
            "usd": kind.usd(now),
            "before_tokens": kind.tokens(before),
            "before_usd": kind.usd(before) if before.responses else None,
        }
        for kind in (*KINDS, _ALL)
        if kind.tokens(now) or kind.tokens(before) or kind is _ALL
    ]
    dates = week.prices.as_of
    dated = f"as of {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if dates else "(none is known)"
    return Table(
        "spent", "Tokens and money", columns, tuple(rows), f"At list prices {dated}; --prices FILE overrides them."
    )


_PARTS: Mapping[PartKind, str] = {
    "sub-agents": "sub-agents",
    "expired": "paid again, cache expired",
    "model changed": "paid again, model changed",
    "cleared": "paid again, results cleared",
    "resumed": "paid again, session resumed",
    "unexplained": "paid again, cause not logged",
    "compacted": "new context after compactions",
}


def _dear(week: Week) -> Iterator[Table]:
    """Yield what made the bill dear; nothing without prices."""
    if not week.total.usd:
        return
    columns = (
        Column("part", "part of the bill", role="name"),
        Column("requests", "requests"),
        Column("tokens", "tokens"),
        Column("usd", "$", 2),
        Column("long_usd", "$, prompt > 100k", 2),
    )
    rows: list[dict[str, Cell]] = []
    if long := [part for part in week.bill.sizes if part.long_usd]:
        usd = sum(part.usd for part in long)
        sums = {"requests": sum(part.requests for part in long), "tokens": sum(part.tokens for part in long)}
        rows.append({"part": "prompts above 100,000 tokens", **sums, "usd": usd, "long_usd": usd})
    rows += [{**to_builtins(part), "part": _PARTS[part.kind]} for part in week.bill.parts if part.usd >= CENT]
    note = "Parts overlap. Paid again: beyond what reading from the cache would have cost."
    if rows:
        yield Table("dear", "What made it dear", columns, tuple(rows), note)


_CAUSES: Mapping[PartKind, str] = {
    **_PARTS,
    "long reads": "cache reads of prompts above 100,000 tokens",
    "short reads": "cache reads of shorter prompts",
    "new input": "new input",
    "output": "output",
}


def _bill_tables(week: Week) -> Iterator[Table]:
    """Yield the bill by length of the prompt and by session."""
    sizes = (
        Column("size", "tokens of the prompt", role="name"),
        Column("requests", "requests"),
        Column("tokens", "tokens"),
        Column("usd", "$", 2),
    )
    rows: list[dict[str, Cell]] = [{**to_builtins(part), "size": _between(part)} for part in week.bill.sizes]
    yield Table("sizes", "By length of the prompt", sizes, tuple(rows), "Adds up to the bill.")
    sessions = (
        Column("session", "session", role="name"),
        Column("requests", "requests"),
        Column("peak_tokens", "longest prompt"),
        Column("usd", "$", 2),
        Column("why", "of which", role="text"),
    )
    dear: list[dict[str, Cell]] = [
        {
            **{key: cell for key, cell in to_builtins(one).items() if key != "causes"},
            "why": "; ".join(f"${cause.usd:,.2f} {_CAUSES[cause.kind]}" for cause in one.causes[:3]),
        }
        for one in week.bill.sessions
    ]
    yield Table("sessions", "Dearest sessions, with their largest costs", sessions, tuple(dear))


def _window(week: Week) -> Iterator[Section]:
    """Yield what smaller context windows would have saved, and whether that decides which to set."""
    found = week.window
    if not found.rows:
        return
    columns = (
        Column("window", "window", role="name"),
        Column("compactions", "compactions"),
        Column("nothing", "$ saved if nothing is read again", figures=True),
        Column("needed", "$ saved if all that is needed is", figures=True),
    )
    *others, recorded = found.rows
    rows: list[dict[str, Cell]] = [
        {
            "window": f"{row.window_tokens:,}{' (recorded)' if row is recorded else ''}",
            "compactions": row.compactions,
            "nothing": _interval(row.nothing_again),
            "needed": _interval(row.needed_again),
        }
        for row in found.rows
    ]
    note = (
        "A replay of these sessions, with 95% intervals over sessions. As needed count "
        f"{share(found.needed_share)} of what is cut, as of files at the recorded compactions. The recorded window "
        "should save nothing: what its row says instead is the replay's error."
    )
    table = Table("windows", "", columns, tuple(rows), note)
    yield Section("Which window to set", (_window_words(week, others),), (table,))


def _window_words(week: Week, others: Sequence[WindowRow]) -> str:
    found = week.window
    if found.error_tokens is None:
        return (
            f"These logs do not decide it: {counted(week.total.compactions, 'compaction')} are too few to predict from."
        )
    known = (
        f"what was read again after a compaction ({found.observed_tokens:,.0f} tokens on average) was predicted "
        f"{found.error_tokens:,.0f} tokens off on average, over {found.predicted:,} compactions"
    )
    error = abs(found.rows[-1].nothing_again.usd)
    agreed = [
        row
        for row in others
        if row.nothing_again.sign == row.needed_again.sign != 0
        and min(abs(row.nothing_again.usd), abs(row.needed_again.usd)) > error
    ]
    if not found.decides or not agreed:
        why = known if not found.decides else "the two bounds differ in sign, or by less than the replay's error"
        return f"These logs do not decide it: {why}. A trial that varies the window would."
    best = max(agreed, key=lambda row: min(row.nothing_again.usd, row.needed_again.usd))
    verb = "saved" if best.needed_again.sign > 0 else "cost"
    low, high = sorted((abs(best.nothing_again.usd), abs(best.needed_again.usd)))
    return f"{best.window_tokens:,} tokens would have {verb} ${low:,.2f} to ${high:,.2f}; {known}."


def _interval(bounds: Bounds) -> str:
    return f"{bounds.usd:,.2f} ({bounds.low:,.2f} to {bounds.high:,.2f})"


def _between(part: BillPart) -> str:
    return (
        f"above {part.least_tokens:,}"
        if part.most_tokens is None
        else f"{part.least_tokens + 1:,} to {part.most_tokens:,}"
    )


def _lost(week: Week) -> Table:
    columns = (
        Column("figure", "figure", role="name"),
        Column("now", "now", figures=True),
        Column("before", "before", figures=True),
    )
    rows = [
        {"figure": name, "now": now, "before": before}
        for name, now, before in _figures(week.total, week.before, week.fullest)
    ]
    note = "In tokens; compactions and instructions are counted."
    return Table("context", "What the context held and lost", columns, tuple(rows), note)


def _figures(now: WeekSums, before: WeekSums, fullest: FullestContext | None) -> Iterator[tuple[str, str, str]]:
    full = "" if fullest is None or fullest.share is None else f" ({share(fullest.share)} of the window)"
    largest = LOG_MEASURES["peak_context_tokens"].label
    yield largest, f"{now.peak_context_tokens:,}{full}", f"{before.peak_context_tokens:,}"
    yield "compactions", _compactions(now), _compactions(before)
    yield "dropped, maybe needed", dropped(now), dropped(before)
    if now.unknown_tokens or before.unknown_tokens:
        yield "not known whether dropped", f"{now.unknown_tokens:,}", f"{before.unknown_tokens:,}"
    yield "dropped, read again", _read_again(now), _read_again(before)
    yield READING_MEASURES["read_tokens"].label, f"{now.read_tokens:,}", f"{before.read_tokens:,}"
    yield READING_MEASURES["repeat_tokens"].label, _repeated(now), _repeated(before)
    yield "instructions not kept", f"{now.instructions_dropped:,}", f"{before.instructions_dropped:,}"
    yield "… and then broken", f"{now.instructions_broken:,}", f"{before.instructions_broken:,}"


def _compactions(total: WeekSums) -> str:
    return f"{total.compactions:,}{started_by(convert(to_builtins(total), BreakCounts)) if total.compactions else ''}"


def dropped(total: WeekSums) -> str:
    """Return the tokens that compactions and clears dropped, a lower bound where some were not measured."""
    if not total.unmeasured and not total.unknown_tokens:
        return f"{total.dropped_tokens:,}"
    lost = total.compactions + total.clears
    part = f", not measured for {total.unmeasured:,} of {lost:,}" if 0 < total.unmeasured < lost else ""
    return f"{f'at least {total.dropped_tokens:,}' if total.dropped_tokens else 'unknown'}{part}"


def _read_again(total: WeekSums) -> str:
    if not total.reread_tokens:
        return f"{total.reread_dropped_tokens:,}"
    cost = f" for at least ${total.reread_usd:,.2f}" if (total.reread_usd or 0) >= CENT else ""
    return f"{total.reread_dropped_tokens:,} (shown in {total.reread_tokens:,}{cost})"


def _repeated(total: WeekSums) -> str:
    part = f" ({share(total.repeat_tokens / total.read_tokens)})" if total.read_tokens else ""
    return f"{total.repeat_tokens:,}{part}"


def _advice(week: Week) -> Iterator[Section]:
    if words := tuple(advice_lines(advice_rows(convert(to_builtins(week.advice), list[Advice])))):
        yield Section("Worth doing", words)


_SUMS = (
    Column("tokens", "tokens"),
    Column("usd", "$", 2),
    Column("before_tokens", "before", priority=2),
    Column("peak_context_tokens", LOG_MEASURES["peak_context_tokens"].label, priority=1),
    Column("compactions", "compactions", priority=1),
    Column("repeat_tokens", "read again"),
)


def _days(week: Week) -> Table:
    rest = (Column("responses", "responses"), *(column for column in _SUMS if column.key != "before_tokens"))
    rows = [to_builtins(row) for row in week.days if row.responses or len(week.days) <= MOST_DAYS]
    empty = len(week.days) - len(rows)
    note = f"{counted(empty, 'day')} without a response {'is' if empty == 1 else 'are'} left out." if empty else ""
    return Table("days", "By day", (Column("day", "day"), *rest), tuple(rows), note)


def _shares(week: Week) -> Table:
    """Return the largest projects, models and agents below each other, as much as fits a screen."""
    rows: list[dict[str, Cell]] = []
    left_out = 0
    for kind, known, names in _named_groups(week):
        rows += [
            {**to_builtins(row), "kind": kind, "name": name}
            for row, name in zip(known[:ON_SCREEN], names, strict=False)
        ]
        left_out += len(known[ON_SCREEN:])
    shown = ("tokens", "usd", "before_tokens", "repeat_tokens")
    columns = (
        Column("kind", "by"),
        Column("name", "name", role="name"),
        *(column for column in _SUMS if column.key in shown),
    )
    note = f"{counted(left_out, 'more row')} in --json and on the page (--out)." if left_out else ""
    return Table("shares", "By project, model and agent", columns, tuple(rows), note)


def _groups(week: Week) -> Iterator[Table]:
    for kind, known, names in _named_groups(week):
        rows = tuple({**to_builtins(row), kind: name} for row, name in zip(known, names, strict=True))
        yield Table(f"{kind}s", f"By {kind}", (Column(kind, kind, role="name"), *_SUMS), rows)


def _named_groups(week: Week) -> Iterator[tuple[str, Sequence[GroupRow], list[str]]]:
    yield "project", week.projects, _project_names([row.project for row in week.projects])
    yield "model", week.models, [row.model or UNNAMED for row in week.models]
    yield "agent", week.agents, [NAMES.get(row.agent, row.agent) for row in week.agents]


def _project_names(folders: Sequence[str]) -> list[str]:
    """Return the names of projects: their folders, or whole paths where two folders have one name."""
    short = [Path(folder).name or folder for folder in folders]
    names = (name if short.count(name) == 1 else folder for name, folder in zip(short, folders, strict=True))
    return [name or UNNAMED for name in names]


def _notes(week: Week) -> Iterator[str]:
    if week.unpriced:
        names = listed([unpriced.model or UNNAMED for unpriced in week.unpriced], 3)
        tokens = week.total.unpriced_tokens
        yield f"No price is known for {tokens:,} tokens of {names}: add them with --prices FILE (docs/models.md)."
    if week.stated.responses:
        responses, stated, usd = counted(week.stated.responses, "response"), week.stated.stated_usd, week.stated.usd
        yield f"The agents' own cost of {responses} with a price: ${stated:,.2f}; at the prices here ${usd:,.2f}."
    yield from _looked(week)
    yield from _unread(week)


def _unread(week: Week) -> Iterator[str]:
    causes = complaints(week.skipped)
    yield from (f"Not read: {cause}" for cause in causes[:3])
    if len(causes) > 3:
        yield f"{counted(len(causes) - 3, 'more cause')}; --json lists what could not be read."


def _looked(week: Week) -> Iterator[str]:
    agents = [f"{NAMES.get(source.agent, source.agent)} ({counted(source.logs, 'log')})" for source in week.sources]
    yield f"Logs of {listed(agents)}." if agents else "No logs of Claude Code, Codex, Gemini CLI or opencode were read."
    if week.other_formats:
        yield f"Left out, because their tokens are not read yet: {listed(week.other_formats)}."


def _missed(week: Week, zone: tzinfo | None) -> Iterator[str]:
    """Yield where logs were looked for, and from when the newest of them is."""
    folders = [folder if Path(folder).exists() else f"{folder} (not there)" for folder in week.looked_in]
    yield f"Looked in {listed(folders)}."
    if week.newest is not None:
        yield f"The newest log found is of {datetime.fromtimestamp(week.newest, zone):%Y-%m-%d %H:%M}."


def _chart(week: Week) -> Chart:
    """Return what each day cost, by kind; its tokens where no price is known."""
    is_short = len(week.days) <= MOST_DAYS
    rows = [row for row in week.days if row.responses or is_short]
    days = tuple(row.day[5:] if is_short else row.day for row in rows)
    priced = bool(week.total.usd)

    def amount(kind: _Kind, row: WeekSums) -> float:
        return float((kind.usd(row) or 0.0) if priced else kind.tokens(row))

    series = tuple(
        Series(kind.bars, "bars", days, tuple(amount(kind, row) for row in rows))
        for kind in KINDS
        if kind.tokens(week.total)
    )
    most = max(rows, key=lambda row: (row.usd or 0.0) if priced else row.tokens)
    if priced:
        title, axis, described = "Money by day", "dollars", f"Most was spent on {most.day}: ${most.usd or 0.0:,.2f}."
    else:
        title, axis, described = "Tokens by day", "tokens", f"Most were used on {most.day}: {most.tokens:,}."
    return Chart("by-day", title, described, Axis("day", "category"), Axis(axis, low=0.0), series, stacked=True)


def _lists(week: Week) -> Iterator[Table]:
    where = (Column("run_id", "session", role="name"), Column("turn", "turn"))
    files = (
        Column("path", "file", role="name"),
        Column("project", "project", role="name"),
        Column("repeat_tokens", "tokens read again"),
        Column("repeat_reads", "times"),
        Column("runs", "sessions"),
    )
    yield Table("files", "Files that were read again though unchanged", files, to_builtins(week.files))
    losses = (
        *where,
        Column("kind", "kind"),
        Column("trigger", "started"),
        Column.of(BREAK_MEASURES["live_tokens"]),
        Column.of(BREAK_MEASURES["dropped_tokens"]),
        *((Column.of(BREAK_MEASURES["unknown_tokens"]),) if week.total.unknown_tokens else ()),
        Column.of(BREAK_MEASURES["reread_dropped_tokens"]),
    )
    yield Table("losses", "Compactions that dropped most", losses, to_builtins(week.losses))
    rules = (*where, Column("text", "instruction", role="text"), Column("broken_by", "broken by", role="text"))
    yield Table(
        "instructions", "Instructions not found in what compactions left", rules, to_builtins(week.instructions)
    )
