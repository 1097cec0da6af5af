"""Studies of controls: the audit of seven channels with planted leaks, and accuracy where no input is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eirkit.lacuna.runs.audit import CHANNELS
from eirkit.lacuna.runs.capability import Control, measure_capability
from eirkit.lacuna.runs.leaks import audit
from eirkit.lacuna.runs.runner import runner_or_temporary
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import CapabilityCell
from eirkit.report.table import Cell
from eirkit_paper.published import value_of, values_of
from eirkit_paper.studies.agents import (
    CODES,
    StudyAgent,
    agents_for,
    commands,
    groups,
    of_groups,
    reference,
    row_of,
    seeds_of,
    study_plan,
)
from eirkit_paper.studies.comparison import exact, listed, sectioned
from eirkit_paper.study import Findings, Setting, StudyRow

INSTANCES = 100
PLANTED_INSTANCES = 5
CHANNEL_ROWS = {
    "payload-width": "Payload width",
    "identifiers": "Identifier set",
    "occupancy": "Occupancy",
    "ordering": "Ordering",
    "serialization": "JSON determinism",
    "message-length": "Message length at saturation",
    "reset-isolation": "Reset isolation",
}
PLACE = "tab:smuggling-audit"
PUBLISHED_CHECKS = {channel: int(value_of(PLACE, row, "Checks")) for channel, row in CHANNEL_ROWS.items()}
CHECKS = (
    "The published instances are not known, so numbers of checks are shown side by side and not judged. Judged are the "
    "findings; whether a leak planted in a channel is found there is a check of our own."
)
SEEDS = 18
WORKLOADS = ("stepwise-sum", "store-recall", "running-max", "stepwise-max", "stepwise-topk")
COLUMNS = ("Stepwise Sum", "Store–Recall", "Running Max.", "Stepwise Max.", "Stepwise Top-k")
# Model → accuracy on those workloads, h = m, mean over m in {4, 8, 16} and three seeds.
PUBLISHED_SHARES = {model: values_of("tab:capability", row, *COLUMNS) for model, row in CODES.items()}
AIDED = ("Stepwise Sum", "Store–Recall", "Running Maximum", "Stepwise Maximum", "Stepwise Top-k")
SLOPPY = "The rows with a calculator are of an agent that makes mistakes (`reference/sloppy`)."


def channel_audit(setting: Setting) -> Findings:
    """Compare the findings of the audit; the sizes of instances are our own."""
    found = audit(INSTANCES)
    planted = {
        channel: next(row.findings for row in audit(PLANTED_INSTANCES, channel).rows if row.channel == channel)
        for channel in CHANNELS
    }
    rows = [
        exact(f"{name}: findings", value_of(PLACE, CHANNEL_ROWS[name], "Findings"), findings, digits=0)
        for name, findings in ((row.channel, row.findings) for row in found.rows)
    ]
    caught = sum(findings > 0 for findings in planted.values())
    lines: list[dict[str, Cell]] = [
        {
            "channel": row.channel,
            "published checks": PUBLISHED_CHECKS[row.channel],
            "our checks": row.checks,
            "found when planted": planted[row.channel],
        }
        for row in found.rows
    ]
    total = int(value_of(PLACE, "Total", "Checks"))
    totals: dict[str, Cell] = {"channel": "total", "published checks": total, "our checks": found.checks}
    relations = (
        f"Ours: once for each of {found.value_slots} displayed value slots, {found.saturated} decisions with h records "
        f"shown, and five times for each of {found.decisions} decisions."
    )
    checks = listed("checks", "Checks, and what a planted leak gives", [*lines, totals])
    rows.append(exact("channels in which a planted leak is found", len(CHANNELS), caught, digits=0))
    sections = {f"Findings, {INSTANCES} instances": rows}
    return Findings(sectioned(sections), (checks,), words=(CHECKS, relations))


def capability(setting: Setting) -> Findings:
    """Compare the control; unaided figures are traits of models."""
    seeds = seeds_of(setting, SEEDS)
    exact = agents_for(setting, "calculator")[0]
    sloppy = exact if setting.model is not None else reference("sloppy", runner=setting.runner)
    plain, aided = _threes(exact, seeds), _threes(sloppy, seeds)
    sections = {
        "Unaided, h = m in {4, 8, 16}, recovery off": list(_unaided(exact, plain, seeds)),
        "With a calculator": [
            row_of(
                sloppy,
                name,
                value_of("sec:capability-results", "Calculator control", column),
                of_groups([cells[name].calculator_accuracy for cells in aided], seeds),
                "every model",
            )
            for name, column in zip(WORKLOADS, AIDED, strict=True)
        ],
    }
    words = (SLOPPY,) if setting.model is None else ()
    return Findings(sectioned(sections), words=words, commands=commands(setting, "capability"))


def _unaided(
    agent: StudyAgent, threes: Sequence[dict[str, CapabilityCell]], seeds: Sequence[int]
) -> Iterator[StudyRow]:
    for model, published in PUBLISHED_SHARES.items():
        for name, accuracy in zip(WORKLOADS, published, strict=True):
            ours = of_groups([cells[name].accuracy for cells in threes], seeds)
            yield row_of(agent, name, accuracy, ours, model)


def _threes(agent: StudyAgent, seeds: Sequence[int]) -> list[dict[str, CapabilityCell]]:
    specs, found = [TaskSpec(name) for name in WORKLOADS], []
    with runner_or_temporary(agent.runner) as runner:
        planned = Control(seeds=seeds).plan([agent.model], specs, agent.options)
        results = runner.complete(study_plan(*planned))
        for group in groups(seeds):
            cells = measure_capability([agent.model], specs, Control(seeds=group), agent.options, results)
            found.append({cell.workload: cell for cell in cells})
    return found
