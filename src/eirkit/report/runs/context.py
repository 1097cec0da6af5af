"""What of a conversation is put into a prompt: accuracy over prompt tokens, and whether a memory is needed at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.records.budgets import PASSAGES, TOKENS, split_budget
from eirkit.records.runs import CHARACTERS_PER_TOKEN
from eirkit.records.settings import SHOWN_ITSELF, TRUNCATED, WHOLE
from eirkit.records.sweeps import AbilityRow, CellRow, ConversationRow
from eirkit.report.document import Axis, Chart, Section, Series
from eirkit.report.table import Cell, listed

MOST_LINES = 8  # memories in one chart, the most accurate ones
LONGEST_PROMPT = 40  # characters of a summary prompt in the name of a row
FLOOR = "EIR: {floor:,.0f} bytes, the least that a store needs"
_NAMES = {WHOLE: "the whole conversation", TRUNCATED: "the end of the conversation"}
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


class PromptPoint(Struct, frozen=True):
    """What one setting put into the prompt of a question, and how many questions it answered correctly."""

    setting: str
    condition: str  # external, or in which way the conversation itself was shown
    budget: str  # empty where it has none
    tokens: float
    accuracy: float
    low: float
    high: float
    floor_bytes: float | None  # that any store needs to answer every question

    @property
    def is_text(self) -> bool:
        """True if the conversation itself was shown, and no memory was asked."""
        return self.condition in SHOWN_ITSELF


def points_of(scored: Sequence[NamedRow]) -> list[PromptPoint]:
    """Return the points of the settings whose prompts are known."""
    return [
        PromptPoint(
            named.setting,
            named.row.condition,
            named.row.budget or "",
            named.tokens,
            named.every.accuracy,
            named.every.low,
            named.every.high,
            named.answers.floor_bytes,
        )
        for named in scored
        if named.tokens
    ]


def context_section(scored: Sequence[NamedRow]) -> Section | None:
    """Return the section on accuracy over prompt tokens; None if all settings put the same into prompts."""
    points = points_of(scored)
    if len({point.tokens for point in points}) < 2:
        return None
    words = (
        "A prompt has what the memory returned for one question, or the conversation itself, and is counted in tokens "
        f"of {CHARACTERS_PER_TOKEN} characters.",
        *whole_words(scored),
    )
    return Section("Accuracy over prompt tokens", words, (context_chart(points),))


def context_chart(points: Sequence[PromptPoint]) -> Chart:
    """Return accuracy over prompt tokens: a line for each memory through its budgets, and the conversation itself."""
    lines: dict[str, list[PromptPoint]] = {}
    for point in sorted(points, key=lambda point: (point.tokens, point.accuracy)):
        lines.setdefault(point.setting, []).append(point)
    memories = sorted(
        (own for own in lines.values() if not own[0].is_text), key=lambda own: -max(one.accuracy for one in own)
    )
    texts = sorted((own for own in lines.values() if own[0].is_text), key=lambda own: own[0].condition == WHOLE)
    drawn = [*memories[:MOST_LINES], *texts]  # the whole conversation on top of an end that is as long
    floors = {point.floor_bytes for point in points} - {None}
    series = [_series(own) for own in drawn]
    if len(floors) == 1:  # the same tasks
        floor = next(iter(floors)) or 0.0
        series.append(Series(FLOOR.format(floor=floor), "rule", (floor / CHARACTERS_PER_TOKEN,), dashed=True))
    note = (
        "A line goes through the budgets of one memory, with 95% intervals over conversations. EIR is what a "
        "store needs for all questions together; a prompt needs no more than its own question does."
    )
    note += f" The {MOST_LINES} most accurate memories of {len(memories)}." if len(memories) > MOST_LINES else ""
    return Chart(
        "prompt-tokens",
        "Accuracy over prompt tokens",
        f"Accuracy with prompt tokens: {'; '.join(map(_described, drawn))}.",
        Axis("prompt tokens of a question", "log"),
        replace(Axis.of(RUN_MEASURES["accuracy"]), title="questions answered correctly"),
        tuple(series),
        note=note,
    )


def _series(own: Sequence[PromptPoint]) -> Series:
    return Series(
        _NAMES.get(own[0].setting, own[0].setting),
        "line" if len(own) > 1 else "points",
        tuple(point.tokens for point in own),
        tuple(point.accuracy for point in own),
        tuple(point.low for point in own),
        tuple(point.high for point in own),
        dashed=own[0].is_text and len(own) > 1,
    )


def _described(own: Sequence[PromptPoint]) -> str:
    """Return the figures of a line in words."""
    return f"{own[0].setting} {listed([f'{one.accuracy:.1%} with {one.tokens:,.0f}' for one in own], len(own))}"
