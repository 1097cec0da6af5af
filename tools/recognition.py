"""Prints how far the rule of docs/session.md agrees with a person on the labeled passages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eirkit.lacuna.agents.recognition import recognize

ROOT = Path(__file__).parents[1]
PASSAGES = ROOT / "tests/lacuna/agents/passages.jsonl"
VERDICTS = ("present", "absent", "uncertain")
BY_HAND = "by hand"  # systems that end so are texts written to be hard
LONGEST = 160  # characters of a text that is shown


@dataclass(frozen=True, slots=True)
class Judged:
    """One record that was sought in the texts of one line of the labeled set."""

    system: str
    texts: tuple[str, ...]
    step: int
    values: tuple[int, ...]
    truth: str  # as a person reads it
    verdict: str  # by the rule
    held_out: bool  # labeled after the rule was final

    @property
    def agrees(self) -> bool:
        return self.truth == self.verdict


def judge_passages() -> list[Judged]:
    """Apply the rule to every record that was sought in the labeled passages."""
    judged = []
    for line in PASSAGES.read_text("utf-8").splitlines():
        passage = json.loads(line)
        for asked in passage["asked"]:
            step, values = asked["step"], tuple(asked["values"])
            found = recognize(passage["texts"], {step: values}, best_first=passage.get("best_first", False))
            verdict = "present" if step in found.present else "absent"
            if step in found.uncertain - found.stated.keys():
                verdict = "uncertain"
            texts, held_out = tuple(passage["texts"]), passage.get("held_out", False)
            judged.append(Judged(passage["system"], texts, step, values, asked["truth"], verdict, held_out))
    return judged


def uncertain_share(judged: Sequence[Judged]) -> float:
    return sum(one.verdict == "uncertain" for one in judged) / len(judged)


def agreement(judged: Sequence[Judged]) -> float:
    return sum(one.agrees for one in judged) / len(judged)


def agreement_section() -> str:
    """Return the agreement as Markdown tables."""
    judged = judge_passages()
    counts = Counter((one.truth, one.verdict) for one in judged)
    lines = ["| read by a person as | present by the rule | absent | uncertain | all |", "|---|--:|--:|--:|--:|"]
    for truth in VERDICTS:
        row = [counts[truth, verdict] for verdict in VERDICTS]
        lines.append(f"| {truth} | {' | '.join(map(str, row))} | {sum(row)} |")
    lines += ["", "| texts of | texts | records | agreement | uncertain by the rule |", "|---|--:|--:|--:|--:|"]
    systems = sorted({one.system for one in judged}, key=lambda name: (name.endswith(BY_HAND), name.lower()))
    for system in systems:
        lines.append(_row(system, [one for one in judged if one.system == system]))
    lines.append(_row("all but those by hand", [one for one in judged if not one.system.endswith(BY_HAND)]))
    lines.append(_row("all", judged))
    lines.append(_row("labeled after the rule was final", [one for one in judged if one.held_out]))
    lines += ["", "Every disagreement:", "", "| text | record | a person | the rule |", "|---|---|---|---|"]
    for one in judged:
        if not one.agrees:
            record = f"A_{one.step} = {' '.join(map(str, one.values))}"
            lines.append(f"| {_shown(one.texts)} | {record} | {one.truth} | {one.verdict} |")
    return "\n".join(lines) + "\n"


def _row(name: str, judged: Sequence[Judged]) -> str:
    texts = len({one.texts for one in judged})
    return f"| {name} | {texts} | {len(judged)} | {agreement(judged):.1%} | {uncertain_share(judged):.1%} |"


def _shown(texts: Sequence[str]) -> str:
    text = json.dumps(" ⏎ ".join(texts).replace("\n", " ⏎ "), ensure_ascii=False)[1:-1].replace('\\"', '"')
    text = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return "`` " + text.replace("|", "¦").replace("`", "'") + " ``"


if __name__ == "__main__":
    print(agreement_section())
