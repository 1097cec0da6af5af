"""Tables and sections about runs in words: accuracy by ability with intervals, symptoms and causes, bytes and floor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct
from msgspec.structs import asdict

from eirkit.lacuna.findings.conversation_measures import (
    ANSWER_CAUSE_MEASURES,
    CONVERSATION_MEASURES,
    LABELED_EVIDENCE,
    RETRIEVAL_MEASURES,
    SERVER_COMPACTION,
    STANDING_INSTRUCTIONS,
    SYMPTOM_MEASURES,
)
from eirkit.lacuna.findings.conversations import ALL, INSTRUCTION
from eirkit.lacuna.findings.measures import MEMORY_MEASURES, RUN_MEASURES
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.lacuna.tasks.workload import units_of
from eirkit.measures import MeasureGroup
from eirkit.records.database import SweepDatabase
from eirkit.records.runs import RunRecord
from eirkit.records.sweeps import CellRow, ConversationRow
from eirkit.report.document import Headline, Page, Section
from eirkit.report.runs.accuracy import given_right_inputs
from eirkit.report.runs.choice import Choice, ChoiceFigures, choice_in
from eirkit.report.runs.context import NamedRow, context_section, named_rows, whole_words
from eirkit.report.runs.evidence import rescue_section
from eirkit.report.runs.folder import SweepFolder
from eirkit.report.runs.page import (
    control_section,
    progress_section,
    rebuilding_section,
    spending_section,
    these_memories,
)
from eirkit.report.runs.pivot import Pivot, pivot_section
from eirkit.report.runs.ranking import choice_section, ranked_headline, systems_section
from eirkit.report.table import Cell, Column, Table, counted, in_viewer, listed, share

SIDE_BY_SIDE = 5  # conditions in one table of abilities
INSTRUCTIONS = "instructions"  # the workload that is about them
CHECKS = f"{INSTRUCTION}: checks of standing instructions that were followed; {ALL} counts questions only."
_BROKEN = ("dropped", "ignored", "overridden", "came_back", "obeyed")
CONTRADICTING = CONVERSATION_MEASURES["contradicting"]
PARTS_OF_WRONG = (
    ("word-symptoms", SYMPTOM_MEASURES, "symptoms"),
    ("word-causes", ANSWER_CAUSE_MEASURES, "causes"),
)
EACH_CAUSE = 1  # examples of each cause and memory
GIVEN_ALL = "right answers to questions for which every needed statement was shown"
POOLED = "right answers over all questions asked, all tasks together"
_RETRIEVED = "Means over questions and recalls; of bytes, over tasks; of memory cost, the sum."
MEANS = "Means over tasks; of characters retrieved, over questions."
INTERVAL = "95% interval: the wider of the exact one over questions and the t interval over tasks"
NAME = Column("condition", "setting", role="name")
BUDGET = Column("budget", "budget", role="name", meaning="how much a memory may put into a prompt")
ACCURACY = (
    Column("accuracy", RUN_MEASURES["accuracy"].label, 3, meaning=POOLED),
    Column("low", "from", 3, meaning=INTERVAL),
    Column("high", "to", 3),
)


def _naming(scored: Sequence[NamedRow]) -> tuple[Column, ...]:
    """Return the columns that name the lines of a table."""
    return (NAME, BUDGET) if any(named.budget for named in scored) else (NAME,)


def word_tables(rows: Sequence[CellRow]) -> Iterator[Table]:
    """Yield the tables of the scored rows: accuracy, abilities, symptoms, causes, and what was stored."""
    scored = named_rows(rows)
    tell = units_of([named.row.workload for named in scored]).tell
    yield from (table.reworded(tell) for table in (_tables(scored) if scored else ()))


def _tables(scored: Sequence[NamedRow]) -> Iterator[Table]:
    about = _followed(scored)
    instructions = [(named, named.answers.instructions) for named in scored]
    if about is not None:
        yield _figures("word-instructions", STANDING_INSTRUCTIONS, instructions)
    if evidence := [(named, seen) for named in scored if (seen := named.answers.evidence) is not None]:
        yield _figures("word-evidence", LABELED_EVIDENCE, evidence)
    if server := [(named, bits) for named in scored if (bits := named.answers.server) is not None]:
        yield _figures("word-server", SERVER_COMPACTION, server)
    yield _accuracy(scored)
    for start in range(0, len(scored), SIDE_BY_SIDE):
        yield _abilities(scored[start : start + SIDE_BY_SIDE], start // SIDE_BY_SIDE + 1)
    for id, measures, part in PARTS_OF_WRONG:
        yield from _of_wrong(id, measures, [(named, getattr(named.answers, part)) for named in scored])
    if about is None and any(checks.checks for _, checks in instructions):
        yield _figures("word-instructions", STANDING_INSTRUCTIONS, instructions)
    kept = [measure for measure in CONVERSATION_MEASURES if measure.id not in ("asked", CONTRADICTING.id)]
    columns = (*_naming(scored), *(Column.of(measure, digits=1 if measure.unit == "count" else 0) for measure in kept))
    lines = tuple(
        {**named.place, **{measure.id: getattr(named.answers, measure.id) for measure in kept}} for named in scored
    )
    yield Table("word-memory", CONVERSATION_MEASURES.title, columns, lines, MEANS)
    yield retrieval_table(scored)


def _of_wrong(id: str, measures: MeasureGroup, counts: Sequence[tuple[NamedRow, Mapping[str, int]]]) -> Iterator[Table]:
    """Yield the shares of wrong answers with each symptom or cause; nothing if all answers are right."""
    shown = [measure for measure in measures if any(found.get(measure.id) for _, found in counts)]
    lines = []
    for named, found in counts:
        wrong = sum(found.values())
        shares = {measure.id: found.get(measure.id, 0) / wrong if wrong else None for measure in shown}
        lines.append({**named.place, "wrong": wrong, **shares})
    if shown:
        yield Table(
            id,
            measures.title,
            (*_naming([named for named, _ in counts]), Column("wrong", "wrong answers"), *map(Column.of, shown)),
            tuple(lines),
        )


def retrieval_table(scored: Sequence[NamedRow]) -> Table:
    """Return what each condition put into the prompt of a question, how well it was found, and what that cost."""
    columns = (
        *_naming(scored),
        Column.of(RETRIEVAL_MEASURES["asked_passages"], digits=0),
        Column.of(RETRIEVAL_MEASURES["prompt_tokens"], digits=0),
        Column.of(RETRIEVAL_MEASURES["recall"]),
        Column.of(RETRIEVAL_MEASURES["reciprocal_rank"], digits=2),
        Column.of(RETRIEVAL_MEASURES["empty_recalls"]),
        Column.of(MEMORY_MEASURES["search_ms"]),
        Column.of(CONVERSATION_MEASURES["stored_bytes"], digits=0),
        Column.of(MEMORY_MEASURES["memory_cost_usd"]),
    )
    lines = tuple({**named.place, **asdict(named.answers.retrieval), **_of_system(named)} for named in scored)
    shown = (column for column in columns if any(line.get(column.key) is not None for line in lines))
    return Table("word-retrieval", RETRIEVAL_MEASURES.title, tuple(shown), lines, _RETRIEVED)


def _of_system(named: NamedRow) -> dict[str, Cell]:
    """Return what the memory took for a recall, what it stores and what its model cost."""
    system, stored = named.row.memory_system, named.answers.stored_bytes
    if system is None:
        return {"stored_bytes": stored}
    milliseconds = None if system.search_seconds is None else 1000 * system.search_seconds
    return {"stored_bytes": stored, "search_ms": milliseconds, "memory_cost_usd": system.cost_usd or None}


def _figures(id: str, measures: MeasureGroup, found: Sequence[tuple[NamedRow, Struct]]) -> Table:
    """Return the figures of each condition that has them."""
    columns = (*_naming([named for named, _ in found]), *map(Column.of, measures))
    return Table(id, measures.title, columns, tuple({**named.place, **asdict(shares)} for named, shares in found))


def _accuracy(scored: Sequence[NamedRow]) -> Table:
    columns = (
        *_naming(scored),
        Column("worlds", "tasks"),
        Column.of(CONVERSATION_MEASURES["asked"], meaning=""),
        *ACCURACY,
        Column.of(RUN_MEASURES["informed_accuracy"], meaning=GIVEN_ALL),
        Column("informed_low", "from", 3, meaning="95% interval, exact over these questions"),
        Column("informed_high", "to", 3),
        *([Column.of(CONTRADICTING)] if any(named.answers.contradicting for named in scored) else []),
    )
    lines = tuple(
        {
            **asdict(named.every),
            **named.place,
            CONTRADICTING.id: named.answers.contradicting,
            "worlds": named.answers.worlds,
            **given_right_inputs(named.row),
        }
        for named in scored
    )
    labeled = any(named.answers.evidence is not None for named in scored)
    title = "Replies that contain the labeled answer" if labeled else "Questions answered correctly"
    return Table("word-accuracy", title, columns, lines)


def _abilities(scored: Sequence[NamedRow], part: int) -> Table:
    """Return accuracy by ability, one column for each condition."""
    found: dict[str, dict[str, Cell]] = {}
    for place, named in enumerate(scored):
        for ability in named.answers.abilities:
            line = found.setdefault(ability.ability, {"ability": _row_of(ability.ability), "asked": ability.asked})
            line[str(place)] = ability.accuracy
    columns = (
        Column("ability", "ability"),
        Column.of(CONVERSATION_MEASURES["asked"], meaning=""),
        *(Column(str(place), named.name, 3) for place, named in enumerate(scored)),
    )
    suffix = "" if part == 1 else f"-{part}"
    note = f"Accuracy: {POOLED}." + (f" {CHECKS}" if INSTRUCTION in found else "")
    return Table(f"word-abilities{suffix}", "Accuracy by ability", columns, tuple(found.values()), note)


def _row_of(ability: str) -> str:
    """Return what a row is called: of instructions, checks of answers are counted and not questions of their own."""
    return f"{ability} (checks)" if ability == INSTRUCTION else ability


def intervals_table(rows: Sequence[CellRow]) -> Table:
    """Return every ability of every row with its interval."""
    scored = named_rows(rows)
    columns = (
        *_naming(scored),
        Column("ability", "ability"),
        Column("right", "right"),
        Column("asked", "asked"),
        *ACCURACY,
    )
    abilities = [(named, ability) for named in scored for ability in named.answers.abilities]
    lines = tuple(
        {**named.place, **asdict(ability), "ability": _row_of(ability.ability)} for named, ability in abilities
    )
    note = CHECKS if any(ability.ability == INSTRUCTION for _, ability in abilities) else ""
    return Table("word-intervals", "Accuracy by ability, with intervals", columns, lines, note)


def answer_in_words(rows: Sequence[CellRow]) -> tuple[str, ...]:
    """Return the answer of a sweep: its best and its worst condition, and whether a memory was needed."""
    return (_ends_in_words(rows), *whole_words(named_rows(rows)))


def _ends_in_words(rows: Sequence[CellRow]) -> str:
    scored = named_rows(rows)
    right = [(named.every.accuracy, named.name) for named in scored]  # as in the table below it
    evidence = [
        (named.answers.evidence.all_shown, named.name)
        for named in scored
        if named.answers.evidence is not None and named.answers.evidence.all_shown is not None
    ]
    if evidence:
        return f"All labeled evidence shown: {_ends(evidence)}. Replies that contain the answer: {_ends(right)}."
    said = _answered(right)
    if (kept := _followed(scored)) is not None:
        said = f"Standing instructions followed: {_ends(kept)}. {said}"
    return said


def _answered(right: Sequence[tuple[float, str]]) -> str:
    """Return who answered most and fewest of the questions correctly."""
    most, fewest = max(right)[0], min(right)[0]
    first, last = (listed([name for value, name in right if value == end]) for end in (most, fewest))
    if most == fewest:
        return f"{first} answered {share(most)} of the questions correctly."
    if len(right) == 2:
        return f"{first} answered {share(most)} of the questions correctly, {last} {share(fewest)}."
    return f"{first} answered the most questions correctly, {share(most)}; {last} the fewest, {share(fewest)}."


def _ends(found: Sequence[tuple[float, str]]) -> str:
    """Return the best and the worst of some conditions."""
    best, worst = max(found, key=lambda pair: pair[0]), min(found, key=lambda pair: pair[0])
    return " to ".join(dict.fromkeys(f"{share(value)} ({name})" for value, name in (best, worst)))


def _followed(scored: Sequence[NamedRow]) -> list[tuple[float, str]] | None:
    """Return how often standing instructions were followed, where the workload is about them."""
    found = [(kept, named.name) for named in scored if (kept := named.answers.instructions.kept) is not None]
    about = all(named.row.workload == INSTRUCTIONS for named in scored)
    return found if about and len(found) == len(scored) else None


def word_headline(rows: Sequence[CellRow]) -> Headline:
    """Return the best condition's accuracy, and for every condition the main cause of its wrong answers."""
    scored = named_rows(rows)
    best = max(scored, key=lambda named: named.every.accuracy)
    figure = best.every.accuracy
    caption = f"of questions about the conversations were answered correctly ({best.name})"
    if (kept := _followed(scored)) is not None:
        figure, name = max(kept, key=lambda pair: pair[0])
        caption = f"of the checks of standing instructions found them followed ({name})"
    said, unit = [], units_of([named.row.workload for named in scored]).task
    for named in sorted(scored, key=lambda named: -named.every.accuracy):
        every, answers = named.every, named.answers
        right = f"{share(every.accuracy)} of {every.asked:,} questions over {counted(answers.worlds, unit)}"
        said.append(f"{named.name}: {right} ({share(every.low)} to {share(every.high)}). {_why(answers)}".strip())
    if kept is not None:
        said = [*_instruction_lines(scored), *said]
    return Headline(share(figure), caption, tuple(said))


def why_wrong(rows: Sequence[CellRow]) -> Iterator[str]:
    """Yield for every condition why most of its wrong answers are wrong, the least accurate first."""
    for named in sorted(named_rows(rows), key=lambda named: named.every.accuracy):
        if said := _why(named.answers):
            yield f"{named.name}: {said}"


def _why(answers: ConversationRow) -> str:
    """Return the main cause of wrong answers with their main symptom, and whether shown texts contradict themselves."""
    wrong, said = sum(answers.causes.values()), []
    if wrong:
        said.append(f"{counted(wrong, 'wrong answer')}.")
        for what, measures, counts in (
            ("cause", ANSWER_CAUSE_MEASURES, answers.causes),
            ("symptom", SYMPTOM_MEASURES, answers.symptoms),
        ):
            most, found = max(counts.items(), key=lambda pair: pair[1])
            said.append(f"Main {what}: {measures[most].label} ({found:,}).")
    if answers.contradicting:
        said.append(f"What was shown contradicts itself for {share(answers.contradicting)} of the questions.")
    return " ".join(said)


def _instruction_lines(scored: Sequence[NamedRow]) -> Iterator[str]:
    """Yield for every condition what became of standing instructions."""
    for named in scored:
        found = named.answers.instructions
        broken = {measure: getattr(found, measure) for measure in _BROKEN}
        wrong = [f", {STANDING_INSTRUCTIONS[name].label} {share(value)}" for name, value in broken.items() if value]
        yield f"{named.name}: followed {share(found.kept)} of {found.checks:,} checks{''.join(wrong)}."


def words_section(rows: Sequence[CellRow], runs: Iterable[RunRecord]) -> Section:
    """Return the section of a page: all tables, and one example of each cause with the text that shows it."""
    tables = (*word_tables(rows), intervals_table(rows))
    examples = tuple(_examples(runs))
    columns = (
        NAME,
        Column("cause", "cause"),
        Column("symptom", "symptom"),
        Column("run", "run", link="view"),
        Column("t", "question", link="view"),
        Column("evidence", "what shows it", role="text"),
    )
    shown = (Table("word-examples", "One example of each", columns, examples),) if examples else ()
    return Section("Answers about the conversations", (), (*tables, *shown))


def _examples(runs: Iterable[RunRecord]) -> Iterator[dict[str, Cell]]:
    """Yield the first wrong answers of each condition and cause."""
    seen: dict[tuple[str, str], int] = {}
    for run in runs:
        access = run.setting.access
        condition = access.memory or access.condition
        for wrong in () if run.conversation is None else run.conversation.wrong:
            key = condition, wrong.cause
            seen[key] = seen.get(key, 0) + 1
            if seen[key] <= EACH_CAUSE:
                yield {
                    "condition": condition,
                    "cause": ANSWER_CAUSE_MEASURES[wrong.cause].label,
                    "symptom": SYMPTOM_MEASURES[wrong.symptom].label,
                    "run": run.run,
                    "t": wrong.t,
                    "view": in_viewer(run=run.run, t=wrong.t),
                    "evidence": wrong.evidence or wrong.statement,
                }


TITLE = "What {memory} kept of conversations, and why answers were wrong"


class ConversationAnswers(Struct, frozen=True):
    """The figures of the page of a sweep of conversations, as scripts receive them."""

    choice: ChoiceFigures | None
    rows: tuple[CellRow, ...]


def conversation_headline(sweep: SweepFolder, choice: Choice | None) -> Headline:
    """Return the headline of the page of a sweep of conversations."""
    headline = word_headline(sweep.rows)
    if choice is None:
        return replace(headline, sentences=(*whole_words(named_rows(sweep.rows)), *headline.sentences))
    ranked = ranked_headline(choice)
    return replace(ranked, sentences=(*ranked.sentences, *headline.sentences))


def conversation_page(sweep: SweepFolder, pivot: Pivot) -> Page:
    """Return the page of a sweep of conversations."""
    cells = {row.cell for row in sweep.rows}
    with SweepDatabase(sweep.folder) as database:
        told = words_section(sweep.rows, (run for run in database.records() if run.pooled_cell in cells))
    parts = (
        progress_section(sweep),
        context_section(named_rows(sweep.rows)),
        told,
        systems_section(system_remarks((row.memory, row.memory_system) for row in sweep.rows)),
        pivot_section(sweep, pivot),
        *(rescue_section(rescue.result) for rescue in sweep.rescues()),
        control_section(sweep),
        spending_section(sweep),
        rebuilding_section(sweep),
    )
    sections = tuple(section for section in parts if section is not None)
    choice = choice_in(sweep)
    headline = conversation_headline(sweep, choice)
    if choice is not None:
        sections = (choice_section(choice), *sections)
    answers = ConversationAnswers(None if choice is None else choice.figures(), sweep.rows)
    title = TITLE.format(memory=these_memories(len({row.memory or row.condition for row in sweep.rows})))
    return Page(title, headline, sections, sweep.name, answers, "lacuna-run")
