"""Sentences about compactions and clears, for pages and commands: what they dropped, and what became of it.

Their columns in tables are named in `eirkit.vestige.measures`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from eirkit.measures import Measure
from eirkit.records.analysis import BreakCost, BreakCounts, BreakTotals, InstructionCounts
from eirkit.report.table import Column, Table, counted, number
from eirkit.vestige.measures import BREAK_MEASURES

_BOUNDED = ("dropped_tokens", "overwritten_tokens", "never_reread_tokens")  # only from below where the log is silent


def break_words(breaks: BreakTotals) -> str:
    """Return a sentence on what compactions and clears dropped, and for how many this was not measured."""
    both = break_counts(breaks)
    total, unmeasured = breaks.compactions + breaks.clears, breaks.unmeasured
    if unmeasured == total:
        return f"{both}: what they dropped is not measured, since no file was used."
    part = f"; not measured for {unmeasured:,} of {total:,}: no file was used" if unmeasured else ""
    unknown = breaks.unknown_tokens
    dropped, more = counted(breaks.dropped_tokens, "token"), "more"
    if unknown:
        dropped, more = (
            (f"at least {dropped}", more) if breaks.dropped_tokens else ("an unknown number of tokens", "tokens")
        )
    elif not breaks.dropped_tokens:
        dropped = "nothing"
    rest = f"; of {unknown:,} {more} the logs do not show whether they stayed" if unknown else ""
    again = breaks.reread_dropped_tokens
    read = f"; {again:,} of them {'was' if again == 1 else 'were'} read again" if again else ""
    return f"{both} dropped {dropped} that may have been needed{read}{rest}{part}."


def break_line(cost: BreakCost) -> str:
    """Return what became of the files that may have been needed, each number with what it counts."""
    if not cost.measured:
        return "what may have been needed is not measured: no file was used"
    if not cost.live_files:
        return "nothing that may have been needed was in the context"
    needed = f"{counted(cost.live_files, 'file')} of {counted(cost.live_tokens, 'token')} may have been needed"
    unknown = cost.unknown_tokens
    if not unknown and not cost.dropped_tokens:
        return f"{needed}; none of that {BREAK_MEASURES['dropped_tokens'].label}"
    known = f"{'at least ' if unknown else ''}{counted(cost.dropped_tokens, 'token')}"
    part = "an unknown part" if unknown and not cost.dropped_tokens else known
    dropped = f"{part} of that {BREAK_MEASURES['dropped_tokens'].label}"
    fates = ", ".join(_fates(cost))
    rest = f"; unknown for {counted(unknown, 'token')}" if unknown else ""
    return f"{needed}; {dropped}{f': {fates}' if fates else ''}{rest}"


def _fates(cost: BreakCost) -> Iterator[str]:
    """Yield what became of the dropped tokens."""
    again, blind, never = cost.reread_dropped_tokens, cost.overwritten_tokens, cost.never_reread_tokens
    if cost.reread_files:
        showed = f"which showed {counted(cost.reread_tokens, 'token')}"
        yield f"{number(again)} read again in {counted(cost.reread_files, 'file')}, {showed}"
    if blind or cost.overwritten_files:
        whole = f" in {counted(cost.overwritten_files, 'file')}" if cost.overwritten_files else ""
        yield f"{number(blind)} edited without rereading{whole}"
    if never:
        # Of a file that is read again in part, the rest is among these tokens.
        whole = f" ({counted(cost.never_reread_files, 'file')} not at all)" if cost.never_reread_files else ""
        yield f"{number(never)} never read again{whole}"
    elif cost.never_reread_files:
        yield f"{counted(cost.never_reread_files, 'file')} not read again"


def break_facts(breaks: BreakTotals) -> Iterator[tuple[str, str]]:
    """Yield the tokens of all compactions and clears of an analysis: a label, and a number with its meaning."""
    total = breaks.compactions + breaks.clears
    if breaks.unmeasured:
        yield "… not measured", f"{breaks.unmeasured:,} of {total:,}: no file was used"
    if breaks.unmeasured == total:
        return
    for measure, tokens in break_amounts(breaks):
        found = counted(tokens, "token")
        if breaks.unknown_tokens and measure.id in _BOUNDED:
            found = f"at least {found}" if tokens else "unknown"
        yield measure.label, f"{found}: {measure.meaning}"


def break_amounts(breaks: BreakTotals) -> Iterator[tuple[Measure, int]]:
    """Yield the measures of breaks with their tokens; those of unknown fate only where there are any."""
    for measure in BREAK_MEASURES:
        tokens: int = getattr(breaks, measure.id)
        if tokens or measure.id != "unknown_tokens":
            yield measure, tokens


def breaks_table(breaks: Sequence[BreakCost]) -> Table:
    """Return where context was lost: who started it where that is known, and what became of the files."""
    has_unknown = any(cost.unknown_tokens for cost in breaks)
    is_told = any(cost.trigger != "unknown" for cost in breaks)
    columns = (
        Column("run_id", "run", role="name"),
        Column("kind", "what"),
        Column("cut", "turn"),
        *((Column("trigger", "started"),) if is_told else ()),
        *(Column.of(measure) for measure in BREAK_MEASURES if measure.id != "unknown_tokens" or has_unknown),
    )
    rows = tuple(asdict(cost) for cost in breaks if cost.measured)
    return Table("breaks", "Where context was lost, in tokens of files", columns, rows)


def instruction_words(counts: InstructionCounts) -> str:
    """Return what became of rules, or of open to-dos, at compactions and clears: each counted once."""
    names = {
        "verbatim": "kept word for word",
        "substance": "kept in substance",
        "gone": "not found in what was left",
        "unknown": "unknown",
        "broken": "not found and then broken",
    }
    apart = {**asdict(counts), "gone": counts.gone - counts.broken}
    return ", ".join(f"{apart[key]:,} {words}" for key, words in names.items() if apart[key])


def break_counts(breaks: BreakCounts) -> str:
    """Return `2 compactions (1 automatic, 1 by hand) and 4 clears`."""
    compactions = f"{counted(breaks.compactions, 'compaction')}{started_by(breaks)}"
    counts = ((compactions, breaks.compactions), (counted(breaks.clears, "clear"), breaks.clears))
    return " and ".join(words for words, count in counts if count)


def started_by(breaks: BreakCounts) -> str:
    """Return ` (1 automatic, 1 by hand, 1 unknown)` of compactions; nothing where no log says who started them."""
    automatic, manual = breaks.automatic_compactions, breaks.manual_compactions
    if not automatic + manual:
        return ""
    parts = (
        (automatic, "automatic"),
        (manual, "by hand"),
        (breaks.compactions - automatic - manual, "unknown"),
    )
    return f" ({', '.join(f'{count:,} {words}' for count, words in parts if count)})"


def break_name(cost: BreakCost) -> str:
    """Return `manual compaction`, or the kind of a break alone where the log does not say who started it."""
    who = {"auto": "automatic ", "manual": "manual "}.get(cost.trigger, "")
    return f"{who if cost.kind == 'compaction' else ''}{cost.kind}"
