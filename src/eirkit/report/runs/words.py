"""Tables and sections about runs in words: accuracy by ability with intervals, fates with examples, bytes and floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.lacuna.conversation.totals import ALL, INSTRUCTION
from eirkit.lacuna.findings.conversation_measures import (
    LABELLED_EVIDENCE,
    SERVER_COMPACTION,
    STANDING_INSTRUCTIONS,
    WORD_FATES,
    WORD_MEASURES,
)
from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.lacuna.tasks.workload import Units, units_of
from eirkit.report.document import Headline, Section
from eirkit.report.table import Column, Table, counted, in_viewer, share

Row = Mapping[str, Any]
SIDE_BY_SIDE = 5  # conditions in one table of abilities
LONGEST_PROMPT = 40  # characters of a summary prompt in the name of a row
_TOLD_APART = ("workload", "preset", "context_tokens", "summary_prompt")  # named where rows differ in it
INSTRUCTIONS = "instructions"  # the workload that is about them
CHECKS = f"{INSTRUCTION}: followed, of all checks of standing instructions; these are no questions and not in {ALL}."
_BROKEN = ("dropped", "ignored", "overridden", "came_back")
EACH_FATE = 1  # examples of each fate and memory
POOLED = "right answers over all questions asked, all tasks together"
MEANS = "Means over tasks; of characters returned, over questions."
INTERVAL = "95% interval: the wider of the exact one over questions and the t interval over tasks"


def word_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the tables of the scored rows: accuracy, abilities, fates, and what was stored."""
    scored = [row for row in rows if "words" in row]
    tell = _units(scored).tell
    yield from (table.reworded(tell) for table in (_tables(scored) if scored else ()))


def _units(rows: Sequence[Row]) -> Units:
    """Return what conversations are called: worlds are generated, files of others hold conversations."""
    return units_of([row["workload"] for row in rows])


def _tables(scored: Sequence[Row]) -> Iterator[Table]:
    names = _names(scored)
    if (about := _followed(scored)) is not None:
        yield _instructions(scored, names)
    if any("evidence" in row["words"] for row in scored):
        yield _evidence(scored, names)
    if any("server" in row["words"] for row in scored):
        yield _server(scored, names)
    yield _accuracy(scored, names)
    for start in range(0, len(scored), SIDE_BY_SIDE):
        end = start + SIDE_BY_SIDE
        yield _abilities(scored[start:end], names[start:end], start // SIDE_BY_SIDE + 1)
    shown = [one for one in WORD_FATES if any(row["words"]["fates"].get(one.id) for row in scored)]
    if shown:
        columns = (Column("condition", "condition", role="name"), *map(Column.of, shown))
        lines = tuple({"condition": n, **row["words"]["fate_shares"]} for n, row in zip(names, scored, strict=True))
        yield Table("word-fates", WORD_FATES.title, columns, lines)
    if about is None and any(row["words"]["instructions"]["checks"] for row in scored):
        yield _instructions(scored, names)
    kept = [one for one in WORD_MEASURES if one.id != "asked"]
    columns = (
        Column("condition", "condition", role="name"),
        *(Column.of(one, digits=1 if one.unit == "count" else 0) for one in kept),
    )
    lines = tuple(
        {"condition": n, **{one.id: row["words"][one.id] for one in kept}} for n, row in zip(names, scored, strict=True)
    )
    yield Table("word-memory", WORD_MEASURES.title, columns, lines, MEANS)


def _instructions(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Return what became of the user's standing instructions."""
    columns = (Column("condition", "condition", role="name"), *map(Column.of, STANDING_INSTRUCTIONS))
    lines = tuple({"condition": name, **row["words"]["instructions"]} for name, row in zip(names, rows, strict=True))
    return Table("word-instructions", STANDING_INSTRUCTIONS.title, columns, lines)


def _server(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Return the bits that survived compactions by servers, beside those needed."""
    columns = (Column("condition", "condition", role="name"), *(Column.of(one) for one in SERVER_COMPACTION))
    found = [(name, row["words"].get("server")) for name, row in zip(names, rows, strict=True)]
    lines = tuple({"condition": name, **one} for name, one in found if one)
    return Table("word-server", SERVER_COMPACTION.title, columns, lines)


def _evidence(rows: Sequence[Row], names: Sequence[str]) -> Table:
    """Return how often the evidence that a benchmark labels was shown."""
    columns = (Column("condition", "condition", role="name"), *map(Column.of, LABELLED_EVIDENCE))
    found = [(name, row["words"].get("evidence", {})) for name, row in zip(names, rows, strict=True)]
    lines = tuple({"condition": name, **one} for name, one in found if one)
    return Table("word-evidence", LABELLED_EVIDENCE.title, columns, lines)


def _accuracy(rows: Sequence[Row], names: Sequence[str]) -> Table:
    columns = (
        Column("condition", "condition", role="name"),
        Column("worlds", "tasks"),
        Column.of(WORD_MEASURES["asked"], meaning=""),
        Column("accuracy", RUN_MEASURES["accuracy"].label, 3, meaning=POOLED),
        Column("low", "from", 3, meaning=INTERVAL),
        Column("high", "to", 3),
    )
    lines = []
    for name, row in zip(names, rows, strict=True):
        every = row["words"]["abilities"][0]
        lines.append({**every, "condition": name, "worlds": row["words"]["worlds"]})
    labelled = any("evidence" in row["words"] for row in rows)
    title = "Replies that contain the labelled answer" if labelled else "Questions answered correctly"
    return Table("word-accuracy", title, columns, tuple(lines))


def _abilities(rows: Sequence[Row], names: Sequence[str], part: int) -> Table:
    """Return accuracy by ability, one column for each condition."""
    found: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(rows):
        for one in row["words"]["abilities"]:
            found.setdefault(one["ability"], {"ability": one["ability"], "asked": one["asked"]})[str(place)] = one[
                "accuracy"
            ]
    columns = (
        Column("ability", "ability"),
        Column.of(WORD_MEASURES["asked"], meaning=""),
        *(Column(str(place), name, 3) for place, name in enumerate(names)),
    )
    suffix = "" if part == 1 else f"-{part}"
    note = f"Accuracy: {POOLED}." + (f" {CHECKS}" if INSTRUCTION in found else "")
    return Table(f"word-abilities{suffix}", "Accuracy by ability", columns, tuple(found.values()), note)


def intervals_table(rows: Sequence[Row]) -> Table:
    """Return every ability of every row with its interval."""
    columns = (
        Column("condition", "condition", role="name"),
        Column("ability", "ability"),
        Column("right", "right"),
        Column("asked", "asked"),
        Column("accuracy", RUN_MEASURES["accuracy"].label, 3, meaning=POOLED),
        Column("low", "from", 3, meaning=INTERVAL),
        Column("high", "to", 3),
    )
    scored = [row for row in rows if "words" in row]
    lines = tuple(
        {"condition": name, **one}
        for name, row in zip(_names(scored), scored, strict=True)
        for one in row["words"]["abilities"]
    )
    note = CHECKS if any(one["ability"] == INSTRUCTION for one in lines) else ""
    return Table("word-intervals", "Accuracy by ability, with intervals", columns, lines, note)


def answer_in_words(rows: Sequence[Row]) -> str:
    """Return the answer of a sweep in one line: its best and its worst condition."""
    scored = [row for row in rows if "words" in row]
    every = [row["words"]["abilities"][0]["accuracy"] for row in scored]  # as in the table below it
    right = list(zip(every, _names(scored), strict=True))
    evidence = [
        (row["words"]["evidence"]["all_shown"], name)
        for (_, name), row in zip(right, scored, strict=True)
        if "evidence" in row["words"] and row["words"]["evidence"]["all_shown"] is not None
    ]
    if evidence:
        return f"All labelled evidence shown: {_ends(evidence)}. Replies that contain the answer: {_ends(right)}."
    said = f"Questions answered correctly: {_ends(right)}."
    if (kept := _followed(scored)) is not None:
        said = f"Standing instructions followed: {_ends(kept)}. {said}"
    return said


def _ends(found: Sequence[tuple[float, str]]) -> str:
    """Return the best and the worst of some conditions."""
    best, worst = max(found, key=lambda one: one[0]), min(found, key=lambda one: one[0])
    return " to ".join(dict.fromkeys(f"{share(value)} ({name})" for value, name in (best, worst)))


def _followed(rows: Sequence[Row]) -> list[tuple[float, str]] | None:
    """Return how often standing instructions were followed, where the workload is about them."""
    found = [(row["words"]["instructions"]["kept"], name) for name, row in zip(_names(rows), rows, strict=True)]
    asked = all(row["workload"] == INSTRUCTIONS for row in rows) and all(kept is not None for kept, _ in found)
    return found if asked else None


def word_headline(rows: Sequence[Row]) -> Headline:
    """Return the best condition's accuracy, and for every condition the commonest reasons of wrong answers."""
    scored = [row for row in rows if "words" in row]
    names = _names(scored)
    every = [row["words"]["abilities"][0] for row in scored]
    best = max(range(len(scored)), key=lambda place: every[place]["accuracy"])
    figure = every[best]["accuracy"]
    caption = f"of questions about the conversations were answered correctly ({names[best]})"
    if (kept := _followed(scored)) is not None:
        figure, name = max(kept, key=lambda one: one[0])
        caption = f"of the checks of standing instructions found them followed ({name})"
    said, unit = [], _units(scored).task
    for name, row, one in zip(names, scored, every, strict=True):
        fates = sorted(((n, fate) for fate, n in row["words"]["fates"].items() if n), reverse=True)
        why = ", ".join(f"{WORD_FATES[fate].label} {n}" for n, fate in fates[:3])
        right = f"{share(one['accuracy'])} of {one['asked']:,} questions over {counted(row['words']['worlds'], unit)}"
        said.append(f"{name}: {right} ({share(one['low'])} to {share(one['high'])}){f'; wrong: {why}' if why else ''}.")
    if kept is not None:
        said = [*_instruction_lines(scored, names), *said]
    return Headline(share(figure), caption, tuple(said))


def _instruction_lines(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Yield for every condition what became of standing instructions."""
    for name, row in zip(names, rows, strict=True):
        found = row["words"]["instructions"]
        wrong = [f", {STANDING_INSTRUCTIONS[one].label} {share(found[one])}" for one in _BROKEN if found[one]]
        yield f"{name}: followed {share(found['kept'])} of {found['checks']:,} checks{''.join(wrong)}."


def words_section(rows: Sequence[Row], records: Sequence[Row]) -> Section:
    """Return the section of a page: all tables, and one example of each fate with the passage that shows it."""
    tables = (*word_tables(rows), intervals_table(rows))
    examples = tuple(_examples(records))
    columns = (
        Column("condition", "condition", role="name"),
        Column("fate", "fate"),
        Column("run", "run", link="view"),
        Column("t", "question", link="view"),
        Column("evidence", "what shows it", role="text"),
    )
    shown = (Table("word-examples", "One example of each", columns, examples),) if examples else ()
    return Section("Answers in words", system_remarks(rows), (*tables, *shown))


def _examples(records: Sequence[Row]) -> Iterator[Row]:
    """Yield the first wrong answers of each condition and fate."""
    seen: dict[tuple[str, str], int] = {}
    for record in records:
        condition = condition_in_words(record["access"])
        for t, fate, evidence in record.get("words", {}).get("wrong", ()):
            key = condition, fate
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= EACH_FATE:
                label = WORD_FATES[fate].label
                place = {"run": record["run"], "t": t, "view": in_viewer(run=record["run"], t=t)}
                yield {"condition": condition, "fate": label, **place, "evidence": evidence}


def condition_in_words(access: Row) -> str:
    """Return the name of a condition: its memory system, or how the conversation was shown."""
    return str(access["memory"] or access["condition"])


def _names(rows: Sequence[Row]) -> list[str]:
    """Return the names of rows: the condition, and the model, other coordinates or settings where rows differ."""
    names = [condition_in_words(row) for row in rows]
    models = {row["model"] for row in rows}
    different = [key for key in _TOLD_APART if len({row.get(key) for row in rows}) > 1]
    settings = [", ".join(f"{k}={v}" for k, v in row["memory_settings"].items()) for row in rows]
    found = []
    for name, row, told in zip(names, rows, settings, strict=True):
        more = [row["model"]] if len(models) > 1 else []
        more += [_coordinate(key, row[key]) for key in different if row.get(key) is not None]
        more += [told] if told and names.count(name) > 1 else []
        found.append(", ".join([name, *more]))
    return found


def _coordinate(key: str, value: Any) -> str:
    if key == "context_tokens":
        return f"{value} tokens"
    words = str(value)
    return words if len(words) <= LONGEST_PROMPT else f"{words[: LONGEST_PROMPT - 1]}…"
