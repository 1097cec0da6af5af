"""Wrong answers of memory systems in conversations, with what was said, stored and returned, as lists in Markdown.

Reads the folders that `studies.system_profiles` ran; `studies.system_results` puts what is found on a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from eirkit.lacuna.conversation.language import show_answer
from eirkit.lacuna.conversation.workload import ToldWorld
from eirkit.lacuna.findings.conversation_measures import WORD_FATES
from eirkit.lacuna.runs.store import scan_runs
from eirkit.report.viewer.lacuna_run import LacunaRun


def examples(folder: Path) -> Iterator[str]:
    """Yield one wrong answer of each fate: what was said, asked and returned, as a list in Markdown."""
    seen: set[str] = set()
    for record, _ in scan_runs(folder / "runs.jsonl"):
        run = LacunaRun(folder, record, plugins=False)
        for t, fate, evidence in record["words"]["wrong"]:
            if fate not in seen and isinstance(run.task.instance, ToldWorld):
                seen.add(fate)
                yield "\n".join(_example(run, run.task.instance, t, fate, evidence))


def _example(run: LacunaRun, task: ToldWorld, t: int, fate: str, evidence: str) -> Iterator[str]:
    step, told = run.document()["steps"][t - 1], run.around(t)["told"]
    calls = [one for one in run.events if one["type"] == "memory" and one["verb"] == "recall" and one["t"] == t]
    yield f"- **{WORD_FATES[fate].label}** (world {task.spec.seed}, question {t}): {told['question']}"
    right = show_answer(task.language, task.asked[t - 1].question, task.asked[t - 1].answer)
    yield f"    - right: {right}; answered: {step['submitted'][0]}"
    yield from (f"    - said: {turn['text']}" for turn in told["turns"] if turn["needed"])
    yield f"    - what shows it: {' / '.join(evidence.splitlines())}"
    for text in (text for call in calls for text in call["found"]):
        yield f"    - returned: {' / '.join(text.splitlines())}"
