"""Shows a week with coding agents: one screen in a terminal, and the same with more rows and a chart as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from eirkit.lacuna.models.prices import MILLION, Price, PriceList
from eirkit.report.document import Axis, Chart, Document, Section, Series
from eirkit.report.logs.break_sentences import break_counts, started_by
from eirkit.report.logs.sentences import CENT, advice_lines, advice_rows
from eirkit.report.table import Cell, Column, Table, counted, listed, share
from eirkit.vestige.audits.occupancy import name_in, plain_name
from eirkit.vestige.measures import BREAK_MEASURES, LOG_MEASURES, READING_MEASURES, WEEK_MEASURES
from eirkit_coding.week.responses import Response
from eirkit_coding.week.totals import Money, Pricing

NAMES = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI", "opencode": "opencode"}
MOST_DAYS = 14  # of which those without a response are listed, too
ON_SCREEN = 4  # projects, models and agents in a terminal; a page has all
GROUPS = ("project", "model", "agent")
KINDS = ("fresh", "cache_read", "cache_write", "output")
UNNAMED = "unknown"


def pricing(prices: PriceList) -> Pricing:
    """Return the function that gives a response its price, the user's list before the built-in one."""
    by_name: dict[str, Price] = {}
    for listed_prices in (prices.built_in, prices.own):
        by_name |= {plain_name(name): price for name, price in listed_prices.items() if not name.endswith("*")}

    @cache
    def price_of(model: str) -> Price | None:
        name = name_in(by_name, model)
        return None if name is None else by_name[name]

    def cost(one: Response) -> Money | None:
        price = price_of(one.model)
        if price is None or not price.covers(one.prompt_tokens):
            return None
        minutes = price.input if price.cache_write is None else price.cache_write
        hour = minutes if price.cache_write_1h is None else price.cache_write_1h
        return Money(
            one.fresh_tokens * price.input / MILLION,
            one.cache_read_tokens * price.cached / MILLION,
            (one.cache_write_tokens * minutes + one.cache_write_hour_tokens * hour) / MILLION,
            one.output_tokens * price.output / MILLION,
        )

    return cost


def price_dates(prices: PriceList, models: Sequence[str]) -> list[str]:
    """Return on which days the prices of some models were looked up, the earliest first."""
    by_name = {plain_name(name): price for one in (prices.built_in, prices.own) for name, price in one.items()}
    found = (name_in(by_name, model) for model in models)
    return sorted({by_name[name].as_of.isoformat() for name in found if name is not None})


def week_document(data: Mapping[str, Any], zone: tzinfo | None, command: str, then: str = "") -> Document:
    """Return the document of a week.

    Args:
        command: what was typed, without its `--since`, and without a project that nothing is logged of.
        then: what to run next where something was logged.
    """
    span = f"{_day(data['since'], zone)} to {_day(data['until'], zone)}"
    where = f" in {Path(data['project']).name}" if data["project"] else ""
    title = f"Coding agents{where}, {span}"
    if not data["total"]["responses"]:
        said = f"No response with its tokens is logged{where} from {span}."
        then = "eirkit week -h"
        if data["other_projects"]:
            names = _names("project", data["other_projects"])
            said += f" Projects with responses then: {listed(names, ON_SCREEN)}."
            known = next((name for name in names if name != UNNAMED), "NAME")
            then = f"{command} --project {quote(known)}"
            return Document("week", title, (said, *_looked(data), *_unread(data)), data, next=then)
        if data["newest"] is not None and data["newest"] < data["since"]:
            then = f"{command} --since {_day(data['newest'], zone)}"
        return Document("week", title, (said, *_looked(data), *_unread(data), *_missed(data, zone)), data, next=then)
    sections = [
        *_advice(data),
        Section("", (), (_spent(data), _lost(data), _days(data), _shares(data))),
        Section("Notes", tuple(_notes(data))),
    ]
    details = (
        Section("Day by day", (), (_chart(data),)),
        Section("Everything by project, model and agent", (), tuple(_groups(data))),
        *(Section(one.title, (), (one,)) for one in _lists(data) if one.rows),
    )
    return Document("week", title, tuple(_answer(data, span)), data, tuple(sections), details, next=then)


def _day(at: float, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d")


def _answer(data: Mapping[str, Any], span: str) -> Iterator[str]:
    total, before = data["total"], data["before"]
    cost = "" if total["usd"] is None else f", ${total['usd']:,.2f}{_partly(total)}"
    least = "At least " if total["unknown_responses"] else ""
    used = f"{least}{total['tokens']:,} tokens in {counted(total['responses'], 'response')}{cost}, {span}"
    yield f"{used}{_compaction_words(total)}."
    days = counted(len(data["days"]), "day")
    if before["responses"]:
        least = "at least " if before["unknown_responses"] else ""
        yield f"The {days} before had {least}{before['tokens']:,} tokens{_money_words(before)}{_change(data)}."
    else:
        yield f"Nothing is logged of the {days} before."


def _compaction_words(total: Mapping[str, Any]) -> str:
    """Return what compactions cost, as the end of a sentence on what everything did."""
    if not total["compactions"]:
        return ", without a compaction"
    lost = break_counts(total)
    if not total["reread_tokens"]:
        return f"; what {lost} cost is unknown: nothing that they dropped is known to have been read again"
    has_price = (total["reread_usd"] or 0) >= CENT
    cost = f"${total['reread_usd']:,.2f}" if has_price else counted(total["reread_tokens"], "token")
    return f"; {lost} cost at least {cost} of it, for reading again what they dropped"


def _partly(total: Mapping[str, Any]) -> str:
    return f" for {share(1 - total['unpriced_tokens'] / total['tokens'])} of them" if total["unpriced_tokens"] else ""


def _money_words(total: Mapping[str, Any]) -> str:
    return "" if total["usd"] is None else f" and cost ${total['usd']:,.2f}{_partly(total)}"


def _change(data: Mapping[str, Any]) -> str:
    now, before = data["total"]["tokens"], data["before"]["tokens"]
    is_bound = data["total"]["unknown_responses"] or data["before"]["unknown_responses"]
    if not before or not now or is_bound:
        return ""
    return f": now {now / before:.1f} times as many tokens" if now >= 2 * before else f": now {now / before - 1:+.0%}"


def _spent(data: Mapping[str, Any]) -> Table:
    labels = {
        "fresh": WEEK_MEASURES["fresh_tokens"].label,
        "cache_read": WEEK_MEASURES["cache_read_tokens"].label,
        "cache_write": WEEK_MEASURES["cache_write_tokens"].label,
        "output": "output",
    }
    columns = (
        Column("kind", "kind", role="name"),
        Column("tokens", "tokens"),
        Column("usd", "$", 2),
        Column("before_tokens", "before"),
        Column("before_usd", "$ before", 2),
    )
    rows = [{"kind": labels[kind], **_both(data, f"{kind}_tokens", f"{kind}_usd")} for kind in KINDS]
    rows.append({"kind": "all", **_both(data, "tokens", "usd")})
    dates = data["prices"]["as_of"]
    dated = f"as of {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if dates else "(none is known)"
    return Table(
        "spent", "Tokens and money", columns, tuple(rows), f"At list prices {dated}; --prices FILE overrides them."
    )


def _both(data: Mapping[str, Any], tokens: str, usd: str) -> dict[str, Cell]:
    now, before = data["total"], data["before"]
    return {
        "tokens": now[tokens],
        "usd": now[usd],
        "before_tokens": before[tokens],
        "before_usd": before[usd] if before["responses"] else None,
    }


def _lost(data: Mapping[str, Any]) -> Table:
    columns = (
        Column("figure", "figure", role="name"),
        Column("now", "now", figures=True),
        Column("before", "before", figures=True),
    )
    rows = [
        {"figure": name, "now": now, "before": before}
        for name, now, before in _figures(data["total"], data["before"], data["fullest"])
    ]
    return Table("context", "What the context held and lost", columns, tuple(rows))


def _figures(
    now: Mapping[str, Any], before: Mapping[str, Any], fullest: Mapping[str, Any] | None
) -> Iterator[tuple[str, str, str]]:
    full = "" if fullest is None or fullest["share"] is None else f" ({share(fullest['share'])} of the window)"
    largest = LOG_MEASURES["peak_context_tokens"].label
    yield largest, f"{now['peak_context_tokens']:,}{full}", f"{before['peak_context_tokens']:,}"
    labels = {
        "compactions": "compactions",
        "dropped_tokens": "dropped, maybe needed",
        "reread_dropped_tokens": "… and read again",
        "read_tokens": READING_MEASURES["read_tokens"].label,
        "repeat_tokens": READING_MEASURES["repeat_tokens"].label,
        "instructions_dropped": "instructions not kept",
        "instructions_broken": "… and then broken",
    }
    for key, label in labels.items():
        yield label, _figure(now, key), _figure(before, key)
        if key == "dropped_tokens" and (now["unknown_tokens"] or before["unknown_tokens"]):
            yield "… or not, unknown", f"{now['unknown_tokens']:,}", f"{before['unknown_tokens']:,}"


def _figure(total: Mapping[str, Any], key: str) -> str:
    lost = total["compactions"] + total["clears"]
    if key == "dropped_tokens" and (total["unmeasured"] or total["unknown_tokens"]):
        is_part = 0 < total["unmeasured"] < lost
        part = f", not measured for {total['unmeasured']:,} of {lost:,}" if is_part else ""
        return f"{f'at least {total[key]:,}' if total[key] else 'unknown'}{part}"
    if key == "compactions" and total[key]:
        return f"{total[key]:,}{started_by(total)}"
    if key == "repeat_tokens" and total["read_tokens"]:
        return f"{total[key]:,} ({share(total[key] / total['read_tokens'])})"
    if key == "reread_dropped_tokens" and (total["reread_usd"] or 0) >= CENT:
        return f"{total[key]:,} (at least ${total['reread_usd']:,.2f})"
    return f"{total[key]:,}"


def _advice(data: Mapping[str, Any]) -> Iterator[Section]:
    if words := tuple(advice_lines(advice_rows(data))):
        yield Section("Worth doing", words)


_SUMS = (
    Column("tokens", "tokens"),
    Column("usd", "$", 2),
    Column("before_tokens", "before", priority=2),
    Column("peak_context_tokens", LOG_MEASURES["peak_context_tokens"].label, priority=1),
    Column("compactions", "compactions", priority=1),
    Column("repeat_tokens", "read again"),
)


def _days(data: Mapping[str, Any]) -> Table:
    rest = (Column("responses", "responses"), *(one for one in _SUMS if one.key != "before_tokens"))
    rows = [row for row in data["days"] if row["responses"] or len(data["days"]) <= MOST_DAYS]
    empty = len(data["days"]) - len(rows)
    note = f"{counted(empty, 'day')} without a response {'is' if empty == 1 else 'are'} left out." if empty else ""
    return Table("days", "By day", (Column("day", "day"), *rest), tuple(rows), note)


def _shares(data: Mapping[str, Any]) -> Table:
    """Return the largest projects, models and agents below each other, as much as fits a screen."""
    rows: list[dict[str, Cell]] = []
    left_out = 0
    for kind in GROUPS:
        known = data[f"{kind}s"]
        names = _names(kind, known)
        rows += [{**row, "kind": kind, "name": name} for row, name in zip(known[:ON_SCREEN], names, strict=False)]
        left_out += len(known) - len(known[:ON_SCREEN])
    shown = ("tokens", "usd", "before_tokens", "repeat_tokens")
    columns = (Column("kind", "by"), Column("name", "name", role="name"), *(one for one in _SUMS if one.key in shown))
    note = f"{counted(left_out, 'more row')} in --json and --html." if left_out else ""
    return Table("shares", "By project, model and agent", columns, tuple(rows), note)


def _groups(data: Mapping[str, Any]) -> Iterator[Table]:
    for kind in GROUPS:
        known = data[f"{kind}s"]
        rows = tuple({**row, kind: name} for row, name in zip(known, _names(kind, known), strict=True))
        yield Table(f"{kind}s", f"By {kind}", (Column(kind, kind, role="name"), *_SUMS), rows)


def _names(kind: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of groups; a project is its folder, or its whole path where two folders have one name."""
    values = [str(row[kind]) for row in rows]
    if kind == "agent":
        return [NAMES.get(value, value) for value in values]
    if kind == "project":
        short = [Path(value).name or value for value in values]
        values = [name if short.count(name) == 1 else value for name, value in zip(short, values, strict=True)]
    return [value or UNNAMED for value in values]


def _notes(data: Mapping[str, Any]) -> Iterator[str]:
    if data["unpriced"]:
        names = listed([one["model"] or UNNAMED for one in data["unpriced"]], 3)
        tokens = data["total"]["unpriced_tokens"]
        yield f"No price is known for {tokens:,} tokens of {names}: add them with --prices FILE (docs/models.md)."
    yield from _looked(data)
    yield from _unread(data)


def _unread(data: Mapping[str, Any]) -> Iterator[str]:
    for one in data["skipped"][:3]:
        yield f"Not read: {one['source']}: {one['reason']}"
    if len(data["skipped"]) > 3:
        yield f"{len(data['skipped']) - 3:,} more could not be read; --json lists them."


def _looked(data: Mapping[str, Any]) -> Iterator[str]:
    agents = [f"{NAMES.get(one['agent'], one['agent'])} ({counted(one['logs'], 'log')})" for one in data["sources"]]
    yield f"Logs of {listed(agents)}." if agents else "No logs of Claude Code, Codex, Gemini CLI or opencode were read."
    if data["other_formats"]:
        yield f"Left out, because their tokens are not read yet: {listed(data['other_formats'])}."


def _missed(data: Mapping[str, Any], zone: tzinfo | None) -> Iterator[str]:
    """Yield where logs were looked for, and from when the newest of them is."""
    absent = {one for one in data["looked_in"] if not Path(one).exists()}
    yield f"Looked in {listed([f'{one} (not there)' if one in absent else one for one in data['looked_in']])}."
    if data["newest"] is not None:
        yield f"The newest log found is of {datetime.fromtimestamp(data['newest'], zone):%Y-%m-%d %H:%M}."


def _chart(data: Mapping[str, Any]) -> Chart:
    days = tuple(str(row["day"])[5:] for row in data["days"])
    names = {
        "fresh": "input, not cached",
        "cache_read": "cache reads",
        "cache_write": "cache writes",
        "output": "output",
    }
    series = tuple(
        Series(names[kind], "bars", days, tuple(float(row[f"{kind}_tokens"]) for row in data["days"])) for kind in KINDS
    )
    most = max(data["days"], key=lambda row: row["tokens"])
    told = f"Most tokens were used on {most['day']}: {most['tokens']:,}."
    return Chart(
        "by-day", "Tokens by day", told, Axis("day", "category"), Axis("tokens", low=0.0), series, stacked=True
    )


def _lists(data: Mapping[str, Any]) -> Iterator[Table]:
    where = (Column("run_id", "session", role="name"), Column("turn", "turn"))
    files = (
        Column("path", "file", role="name"),
        Column("project", "project", role="name"),
        Column("repeat_tokens", "tokens read again"),
        Column("repeat_reads", "times"),
        Column("runs", "sessions"),
    )
    yield Table("files", "Files that were read again though unchanged", files, tuple(data["files"]))
    losses = (
        *where,
        Column("kind", "kind"),
        Column("trigger", "started"),
        Column.of(BREAK_MEASURES["live_tokens"]),
        Column.of(BREAK_MEASURES["dropped_tokens"]),
        *((Column.of(BREAK_MEASURES["unknown_tokens"]),) if data["total"]["unknown_tokens"] else ()),
        Column.of(BREAK_MEASURES["reread_dropped_tokens"]),
    )
    yield Table("losses", "Compactions that dropped most", losses, tuple(data["losses"]))
    rules = (*where, Column("text", "instruction", role="text"), Column("broken_by", "broken by", role="text"))
    yield Table("instructions", "Instructions not found in what compactions left", rules, tuple(data["instructions"]))
