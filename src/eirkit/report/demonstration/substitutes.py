"""What a learned agent wrote where a result was missing: a sweep's records come in, one step and a count go out.

The agent of the demonstration writes the operands that it looked up before its answer, so its records show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eirkit.lacuna.generation import generate
from eirkit.lacuna.models.reading import read_records
from eirkit.lacuna.sweeps.run_store import RUNS, read_events, scan_runs
from eirkit.lacuna.task import Payload, TaskSpec, show_label, show_values
from eirkit.report.wording import listed

Row = Mapping[str, Any]
BETWEEN = "|"  # operands of a reply


@dataclass(frozen=True, slots=True)
class Substitute:
    """One lookup of a result that was not in sight."""

    prompt: str
    reply: str
    t: int
    label: str  # whose result was looked up
    written: str
    true: str
    like: tuple[str, ...]  # labels in sight whose value it is
    submitted: str
    answer: str

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        whose = f", the value of {listed(self.like)}," if self.like else ""
        gone = f"{self.label} ({self.true}) was out of sight"
        return f"{gone}; it wrote {self.written}{whose} and answered {self.submitted} instead of {self.answer}."


def substitutes(folder: Path, h: int) -> Iterator[Substitute]:
    """Yield what was written for missing results with h records in sight, by run and step.

    Replies that do not show an operand for every reference are left out.
    """
    for record, _ in scan_runs(folder / RUNS):
        if record["access"]["h"] == h:
            spec = TaskSpec(**record["task"], seed=record["seed"])
            answers = {step.t: step.answer for step in generate(spec).steps}
            yield from _of_run(read_events(folder, record["events"]), answers, spec)


def _of_run(events: list[dict[str, Any]], answers: Mapping[int, Payload], spec: TaskSpec) -> Iterator[Substitute]:
    exchanges = {event["t"]: event for event in events if event["type"] == "exchange"}
    for event in events:
        if event["type"] == "decision" and event["missing"] and event["submitted"] is not None:
            yield from _of_step(exchanges[event["t"]], event, answers, spec)


def _of_step(exchange: Row, decision: Row, answers: Mapping[int, Payload], spec: TaskSpec) -> Iterator[Substitute]:
    operands = [part.strip() for part in exchange["reply"].partition("\n")[0].split(BETWEEN)]
    if len(operands) != len(decision["required"]):
        return
    shown = {t: show_values(spec.digits, values) for t, values in read_records(exchange["prompt"]).items()}
    for t, written in zip(decision["required"], operands, strict=True):
        if t in decision["missing"]:
            yield Substitute(
                prompt=exchange["prompt"],
                reply=exchange["reply"],
                t=decision["t"],
                label=show_label(spec, t),
                written=written,
                true=show_values(spec.digits, answers[t]),
                like=tuple(show_label(spec, one) for one, value in shown.items() if value == written),
                submitted=show_values(spec.digits, decision["submitted"]),
                answer=show_values(spec.digits, answers[decision["t"]]),
            )


def substitutes_json(found: Sequence[Substitute]) -> dict[str, Any]:
    """Return how many lookups of missing results there were, how many copied one in sight, and the first wrong step."""
    wrong = next((one for one in found if one.submitted != one.answer), None)
    return {
        "lookups": len(found),
        "copied": sum(bool(one.like) for one in found),
        "right": sum(one.written == one.true for one in found),
        "example": None if wrong is None else {**asdict(wrong), "sentence": wrong.sentence},
    }
