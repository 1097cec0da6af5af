"""Wrong answers of memory systems in conversations, with what was said, stored and returned, as lists in Markdown.

Reads the folders that `studies.system_profiles` ran; `studies.system_results` puts what is found on a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from eirkit.lacuna.conversation.language import show_answer
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Event, MemoryExchange
from eirkit.records.runs import WrongAnswer
from eirkit.report.viewer.lacuna_run import LacunaRun


def examples(folder: Path) -> Iterator[str]:
    """Yield one wrong answer of each outcome: what was said, asked and returned, as a list in Markdown."""
    seen: set[str] = set()
    with SweepDatabase(folder) as database:
        records = list(database.records())
    for record in records:
        run = LacunaRun(folder, record, plugins=False)
        for wrong in () if record.conversation is None else record.conversation.wrong:
            if wrong.outcome not in seen and isinstance(run.task.instance, WorldConversation):
                seen.add(wrong.outcome)
                yield "\n".join(_example(run, run.task.instance, wrong))


def recalled(events: Sequence[Event], t: int) -> list[str]:
    """Return what the memory returned for a question."""
    calls = [event for event in events if isinstance(event, MemoryExchange) and event.verb == "recall"]
    return [text for call in calls if call.t == t for text in call.found or ()]


def _example(run: LacunaRun, task: WorldConversation, wrong: WrongAnswer) -> Iterator[str]:
    t, asked = wrong.t, run.question(wrong.t)
    assert asked is not None
    yield f"- **{WORD_FATES[wrong.outcome].label}** (world {task.spec.seed}, question {t}): {asked.question}"
    right = show_answer(task.language, task.questions[t - 1].question, task.questions[t - 1].answer)
    submitted = run.decisions[t].submitted
    yield f"    - right: {right}; answered: {None if submitted is None else submitted}"
    yield from (f"    - said: {turn.text}" for turn in asked.turns if turn.needed)
    yield f"    - what shows it: {' / '.join(wrong.evidence.splitlines())}"
    for text in recalled(run.events, t):
        yield f"    - returned: {' / '.join(text.splitlines())}"
