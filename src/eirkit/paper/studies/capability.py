"""Study of the full-information control: accuracy with no missing inputs, with and without a calculator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eirkit.paper.published import values_of
from eirkit.paper.studies.agents import (
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
from eirkit.paper.studies.comparison import sectioned
from eirkit.paper.study import Findings, Setting, StudyRow
from eirkit.runs.capability import CapabilityCell, Control, measure_capability
from eirkit.runs.runner import runner_or_temporary
from eirkit.tasks.task import TaskSpec

SEEDS = 18
WORKLOADS = ("stepwise-sum", "store-recall", "running-max", "stepwise-max", "stepwise-topk")
COLUMNS = ("Stepwise Sum", "Store–Recall", "Running Max.", "Stepwise Max.", "Stepwise Top-k")
# Model → accuracy on those workloads, h = m, mean over m in {4, 8, 16} and three seeds.
TABLE = {model: values_of("tab:capability", row, *COLUMNS) for model, row in CODES.items()}
COMPUTES = "the published figure is what that model can compute unaided; the calculator computes everything"
SLOPPY = (
    "Unaided figures are traits of the published models. Independent of the model is that every cell is perfect with a "
    "calculator, which is judged with an agent that makes mistakes (`reference/sloppy`)."
)


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
                1.0,
                of_groups([cells[name].calculator_accuracy for cells in aided], seeds),
                "every model",
                "",
            )
            for name in WORKLOADS
        ],
    }
    words = (SLOPPY,) if setting.model is None else ()
    return Findings(sectioned(sections), words=words, commands=commands(setting, "capability"))


def _unaided(
    agent: StudyAgent, threes: Sequence[dict[str, CapabilityCell]], seeds: Sequence[int]
) -> Iterator[StudyRow]:
    for model, published in TABLE.items():
        for name, accuracy in zip(WORKLOADS, published, strict=True):
            ours = of_groups([cells[name].accuracy for cells in threes], seeds)
            yield row_of(agent, name, accuracy, ours, model, COMPUTES)


def _threes(agent: StudyAgent, seeds: Sequence[int]) -> list[dict[str, CapabilityCell]]:
    specs, found = [TaskSpec(name) for name in WORKLOADS], []
    with runner_or_temporary(agent.runner) as runner:
        planned = Control(seeds=seeds).plan([agent.model], specs, agent.options)
        results = runner.complete(study_plan(*planned))
        for group in groups(seeds):
            cells = measure_capability([agent.model], specs, Control(seeds=group), agent.options, results)
            found.append({cell.workload: cell for cell in cells})
    return found
