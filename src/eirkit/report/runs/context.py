"""What of a conversation is put into a prompt: accuracy over prompt tokens, and whether a memory is needed at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eirkit.lacuna.agents.conditions import TRUNCATED, WHOLE
from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.lacuna.memories.budgets import PASSAGES, TOKENS, split_budget
from eirkit.records.runs import CHARACTERS_PER_TOKEN
from eirkit.records.sweeps import AbilityRow, CellRow, ConversationRow
from eirkit.report.document import Axis, Chart, Section, Series
from eirkit.report.table import Cell, listed, share

MOST_LINES = 8  # memories in one chart, the most accurate ones
LONGEST_PROMPT = 40  # characters of a summary prompt in the name of a row
FLOOR = "EIR: {floor:,.0f} bytes, the least that a store needs"
_TOLD_APART = ("workload", "preset", "context_tokens", "summary_prompt")  # named where rows differ in it
_SAME_TASKS = ("workload", "preset", "questions", "model", "seeds")  # of rows that are compared in a sentence


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A scored row about conversations, and the name of its condition."""

    setting: str
    budget: str  # empty where no row has another one
    row: CellRow
    answers: ConversationRow

    @property
    def name(self) -> str:
        """The setting with its budget."""
        return f"{self.setting} {budget_words(self.budget)}" if self.budget else self.setting

    @property
    def place(self) -> dict[str, Cell]:
        """The cells that name it in a table."""
        return {"condition": self.setting, "budget": self.budget}

    @property
    def every(self) -> AbilityRow:
        """All questions."""
        return self.answers.abilities[0]

    @property
    def tokens(self) -> float | None:
        """What was put into the prompt of a question."""
        return self.answers.retrieval.prompt_tokens


def budget_words(budget: str) -> str:
    """Return a budget as it stands behind a name in a sentence."""
    kind, number = split_budget(budget)
    if kind == TOKENS:
        return f"at {number:,} tokens"
    return f"with {number:,} passages" if kind == PASSAGES else "as documented"


def named_rows(rows: Sequence[CellRow]) -> list[NamedRow]:
    """Return the scored rows; named by condition, and by model, other coordinates or settings where rows differ."""
    scored = [(row, row.conversation) for row in rows if row.conversation is not None]
    names = [row.memory or row.condition for row, _ in scored]
    models = {row.model for row, _ in scored}
    different = [key for key in _TOLD_APART if len({getattr(row, key) for row, _ in scored} - {None}) > 1]
    has_budgets = len({row.budget for row, _ in scored} - {None}) > 1
    settings: dict[str, set[str]] = {}
    for name, (row, _) in zip(names, scored, strict=True):
        settings.setdefault(name, set()).add(_settings(row))
    found = []
    for name, (row, answers) in zip(names, scored, strict=True):
        more = [row.model] if len(models) > 1 else []
        more += [_coordinate(key, getattr(row, key)) for key in different if getattr(row, key)]
        more += [_settings(row)] if row.memory_settings and len(settings[name]) > 1 else []
        found.append(NamedRow(", ".join([name, *more]), (has_budgets and row.budget) or "", row, answers))
    return found


def _settings(row: CellRow) -> str:
    return ", ".join(f"{key}={value}" for key, value in row.memory_settings.items())


def _coordinate(key: str, value: int | str) -> str:
    if key == "context_tokens":
        return f"{value} tokens"
    words = str(value)
    return words if len(words) <= LONGEST_PROMPT else f"{words[: LONGEST_PROMPT - 1]}…"


def whole_words(scored: Sequence[NamedRow]) -> Iterator[str]:
    """Yield, where the whole conversation was shown on the same tasks and is better or cheaper than the best memory."""
    groups: dict[tuple[object, ...], list[NamedRow]] = {}
    for named in scored:
        groups.setdefault(tuple(getattr(named.row, key) for key in _SAME_TASKS), []).append(named)
    for same in groups.values():
        whole = next((named for named in same if named.row.condition == WHOLE), None)
        memories = [named for named in same if named.row.memory is not None and named.tokens is not None]
        if whole is None or whole.tokens is None or not memories:
            continue
        best = max(memories, key=lambda named: (named.every.accuracy, -(named.tokens or 0.0)))
        where = "" if len(groups) == 1 else f"{whole.setting}: "
        yield from (f"{where}{said}" for said in _compared(whole, best))


def _compared(whole: NamedRow, best: NamedRow) -> Iterator[str]:
    ours, theirs = whole.every.accuracy, best.every.accuracy
    length, cost = whole.tokens or 0.0, best.tokens or 0.0
    if ours < theirs and length > cost:
        return
    how = "as often as" if ours == theirs else "more often than" if ours > theirs else "less often, but shorter, than"
    yield (
        f"With the whole conversation in the prompt ({length:,.0f} tokens a question) {ours:.1%} of the answers were "
        f"right, {how} with the best memory, {best.name} ({theirs:.1%}, {cost:,.0f} tokens)."
    )


def context_section(scored: Sequence[NamedRow]) -> Section | None:
    """Return the section on accuracy over prompt tokens; None if fewer than two settings differ in them."""
    chart = context_chart(scored)
    if chart is None:
        return None
    words = (
        "A prompt has what the memory returned for one question, or the conversation itself, and is counted in tokens "
        f"of {CHARACTERS_PER_TOKEN} characters.",
        *whole_words(scored),
    )
    return Section("Accuracy over prompt tokens", words, (chart,))


def context_chart(scored: Sequence[NamedRow]) -> Chart | None:
    """Return accuracy over prompt tokens: a line for each memory through its budgets, and the conversation itself."""
    lines: dict[str, list[NamedRow]] = {}
    for named in scored:
        if named.tokens:
            lines.setdefault(named.setting, []).append(named)
    if len({named.tokens for own in lines.values() for named in own}) < 2:
        return None
    floors = {named.answers.floor_bytes for own in lines.values() for named in own} - {None}
    own_text = [name for name, own in lines.items() if own[0].row.condition in (WHOLE, TRUNCATED)]
    memories = sorted((name for name in lines if name not in own_text), key=lambda name: -_best(lines[name]))
    left_out = len(memories) - MOST_LINES
    series = [_series(name, lines[name]) for name in (*memories[:MOST_LINES], *own_text)]
    if len(floors) == 1:  # the same tasks
        floor = next(iter(floors)) or 0.0
        series.append(Series(FLOOR.format(floor=floor), "rule", (floor / CHARACTERS_PER_TOKEN,), dashed=True))
    note = "Each line goes through the budgets of one memory, with 95% intervals over conversations."
    note += f" The {MOST_LINES} most accurate memories of {len(memories)}." if left_out > 0 else ""
    return Chart(
        "prompt-tokens",
        "Accuracy over prompt tokens",
        _described([*memories[:MOST_LINES], *own_text], lines),
        Axis("prompt tokens of a question", "log"),
        replace(Axis.of(RUN_MEASURES["accuracy"]), title="questions answered correctly"),
        tuple(series),
        note=note,
    )


def _best(own: Sequence[NamedRow]) -> float:
    return max(named.every.accuracy for named in own)


def _series(name: str, own: Sequence[NamedRow]) -> Series:
    points = sorted(own, key=lambda named: (named.tokens or 0.0, named.every.accuracy))
    is_text = own[0].row.condition in (WHOLE, TRUNCATED)
    return Series(
        {WHOLE: "the whole conversation", TRUNCATED: "the end of the conversation"}.get(name, name),
        "line" if len(points) > 1 else "points",
        tuple(named.tokens for named in points),
        tuple(named.every.accuracy for named in points),
        tuple(named.every.low for named in points),
        tuple(named.every.high for named in points),
        dashed=is_text and len(points) > 1,
    )


def _described(names: Sequence[str], lines: Mapping[str, Sequence[NamedRow]]) -> str:
    """Return the figures of a chart in words."""
    said = []
    for name in names:
        own = sorted(lines[name], key=lambda named: named.tokens or 0.0)
        points = listed([f"{share(named.every.accuracy)} with {named.tokens:,.0f}" for named in own], len(own))
        said.append(f"{name}: {points}")
    return f"Accuracy with prompt tokens: {'; '.join(said)}."
