"""Studies of recovery probes, in which a model rebuilds a lost result by reads: success, overhead, early stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eirkit.lacuna.findings.prediction import Recovery, reads_given_cone
from eirkit.lacuna.runs.probe import Probed, ProbeExperiment, run_probes
from eirkit.lacuna.runs.runner import Runner, runner_or_temporary
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.evidence import ProbeRow, ProbeScore, ProbeSetup
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.report.table import Cell, Table
from eirkit_paper.published import Printed, figures_by_id, values_of
from eirkit_paper.studies.agents import (
    CODES,
    FOUR,
    GPT,
    MINI,
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
from eirkit_paper.studies.comparison import in_section, listed
from eirkit_paper.study import Findings, Setting, StudyRow

SEEDS = 24
DRAWN = 3  # seeds whose probes are drawn one by one
SPECS = [TaskSpec(name, m=8) for name in ("stepwise-sum", "stepwise-max", "stepwise-topk")]
TITLES = {"stepwise-sum": "Stepwise Sum", "stepwise-max": "Stepwise Maximum", "stepwise-topk": "Stepwise Top-k"}
QUITS = (0.02, 0.1, 0.3)  # probabilities a reply, for no reason but that they differ; the share completed is theirs
BY_WORKLOAD, TRAVERSAL, TRACE = "tab:rq2-recovery-workloads", "tab:rq3-amp", "fig:rq3-trace"


def _share_completed(place: str, row: str, column: str) -> float:
    """Return a printed number of completed probes as a share of those it is printed for."""
    figure = figures_by_id()[f"{place}|{row}|{column}"]
    return Printed(figure.value / (figure.n or 1), figure.id)


# Workload → share completed; four models and two fan-ins pooled.
COMPLETED = {name: _share_completed(BY_WORKLOAD, title, "Successful") for name, title in TITLES.items()}
# Model → success rate, off-cone reads, early stops on Stepwise Sum; the same overhead and rereads for all.
BY_MODEL = {
    model: values_of(TRAVERSAL, row, "Success rate", "Off-cone reads", "Early stops") for model, row in CODES.items()
}
OVERHEAD, REREADS = values_of(TRAVERSAL, CODES[GPT], "Read overhead", "Redundant rereads")
TRACED = _share_completed(TRACE, "Probes", "completed")


def quitters(runner: Runner | None) -> tuple[StudyAgent, ...]:
    return tuple(replace(reference("quitter", p, runner), name=f"quitter, p = {p}") for p in QUITS)


def _probed(agent: StudyAgent, specs: Sequence[TaskSpec], seeds: Sequence[int]) -> list[Probed]:
    """Return the probes of each group of seeds."""
    question = ProbeExperiment(specs, seeds, [agent.model], agent.options)
    with runner_or_temporary(agent.runner) as runner:
        results = runner.complete(study_plan(*question.plan().cells))
        return [replace(question, seeds=group).measure(results) for group in groups(seeds)]


def _rows_of(agent: StudyAgent, specs: Sequence[TaskSpec], seeds: Sequence[int]) -> list[tuple[ProbeRow, ...]]:
    return [rows for rows, _ in _probed(agent, specs, seeds)]


def _overheads(rows: Sequence[ProbeRow], seeds: Sequence[int]) -> list[float]:
    return of_groups([row.read_overhead for row in rows], seeds)


def recovery_probes(setting: Setting) -> Findings:
    """Compare traversal on Stepwise Sum, model by model."""
    seeds = seeds_of(setting, SEEDS)
    agents = (
        agents_for(setting, "recoverer")
        if setting.model is not None
        else (*agents_for(setting, "recoverer"), *quitters(setting.runner))
    )
    rows: list[StudyRow] = []
    for agent in agents:
        found = [group[0] for group in _rows_of(agent, SPECS[:1], seeds)]
        rows += _traversal(agent, found, seeds)
    section = in_section("Stepwise Sum, m = 8, n = 64, fan-ins 2 and 4", rows)
    tables = (_independence(setting.runner),) if setting.model is None else ()
    return Findings(section, tables, commands=commands(setting, "recovery-probes"))


def _traversal(agent: StudyAgent, rows: Sequence[ProbeRow], seeds: Sequence[int]) -> Iterator[StudyRow]:
    """Yield a traversal beside the models that it stands for: the recoverer for those that never stop early."""
    steady = {name: figures for name, figures in BY_MODEL.items() if figures[0] == 1}
    everyone = ", ".join(BY_MODEL)
    stops = agent.is_reference and agent.name != "recoverer"
    models = {MINI: BY_MODEL[MINI]} if stops else {", ".join(steady): steady[GPT]}
    share = of_groups([row.successful / row.probes for row in rows], seeds)
    early = of_groups([float(row.early_stops) for row in rows], seeds)
    for model, (success, _, stopped) in models.items():
        yield row_of(agent, "success rate", success, share, model)
        yield row_of(agent, "early stops", stopped, early, model)
    if overheads := _overheads(rows, seeds):
        yield row_of(agent, "read overhead of successes", OVERHEAD, overheads, everyone)
    again = of_groups([float(row.redundant) for row in rows], seeds)
    yield row_of(agent, "redundant rereads", REREADS, again, everyone)
    off = of_groups([float(row.off_cone) for row in rows], seeds)
    yield row_of(agent, "off-cone reads", steady[GPT][1], off, ", ".join(steady))


def _independence(runner: Runner | None) -> Table:
    """Return the test that reads depend on the cone and not on the pressure.

    The naive recoverer has no place here: most of its probes end at the limit of actions, and the slope among the rest
    changes its sign with that limit.
    """
    agent, recoveries = reference("recoverer", runner=runner), []
    for h in (8, 4, 2):
        _, probes = run_probes(
            ProbeExperiment(SPECS[:1], range(24), [agent.model], agent.options, ProbeSetup(h=h)), runner
        )
        recoveries += [Recovery(p.minimum, 8 / h, len(p.order)) for p in probes]
    test = reads_given_cone(recoveries)
    line: dict[str, Cell] = {
        "agent": agent.name,
        "reads a unit of m/h": test.estimate,
        "p": test.p,
        "recoveries": test.n,
    }
    return listed("reads-given-the-cone", "Reads among equal cones do not depend on the pressure at the miss", [line])


def probes_by_workload(setting: Setting) -> Findings:
    """Compare how many probes are completed on three workloads, and what a completed one costs."""
    seeds = seeds_of(setting, SEEDS)
    agents = quitters(setting.runner) if setting.model is None else agents_for(setting)
    rows: list[StudyRow] = []
    for agent in agents:
        found = _rows_of(agent, SPECS, seeds)
        for place, spec in enumerate(SPECS):
            own, completed = [group[place] for group in found], COMPLETED[spec.workload]
            share = of_groups([row.successful / row.probes for row in own], seeds)
            title = TITLES[spec.workload]
            rows.append(row_of(agent, f"{title}: completed", completed, share, FOUR))
            if overheads := _overheads(own, seeds):
                rows.append(row_of(agent, f"{title}: overhead of completed ones", float(OVERHEAD), overheads, FOUR))
            again = of_groups([float(row.redundant) for row in own], seeds)
            rows.append(row_of(agent, f"{title}: redundant rereads", float(REREADS), again, FOUR))
    section = in_section("Probes, m = 8, n = 64, fan-ins 2 and 4", rows)
    return Findings(section, commands=commands(setting, "recovery-probes-by-workload"))


def read_traces(setting: Setting) -> Findings:
    """Draw reads against the fewest possible, probe by probe, and where early stops end."""
    seeds = seeds_of(setting, SEEDS)
    agents = (
        agents_for(setting)
        if setting.model is not None
        else (*agents_for(setting, "recoverer"), quitters(setting.runner)[1])
    )
    probes: list[tuple[StudyAgent, ProbeScore]] = []
    rows: list[StudyRow] = []
    for agent in agents:
        found = _probed(agent, SPECS[:1], seeds)
        probes += [(agent, probe) for _, traced in found for probe in traced if probe.seed in seeds[:DRAWN]]
        own = [group[0] for group, _ in found]
        share = of_groups([row.successful / row.probes for row in own], seeds)
        rows.append(row_of(agent, "completed probes", TRACED, share, FOUR))
        if overheads := _overheads(own, seeds):
            rows.append(row_of(agent, "read overhead of completed probes", float(OVERHEAD), overheads, FOUR))
    done = [probe for _, probe in probes if probe.success]
    figure = Figure("read-traces", "Recoveries that succeed are read-optimal", (_trace_chart(probes, len(done)),))
    section = in_section("Probes of Stepwise Sum", rows)
    return Findings(section, figures=(figure,), commands=commands(setting, "read-traces"))


def _trace_chart(probes: Sequence[tuple[StudyAgent, ProbeScore]], completed: int) -> Chart:
    named = [(f"{agent.name}, seed {probe.seed}, fan-in {probe.fan_in}", probe) for agent, probe in probes]
    kept = tuple(name for name, probe in named if probe.success)
    stopped = [(name, probe) for name, probe in named if not probe.success]
    overheads = tuple(probe.overhead for _, probe in named if probe.success)
    said = (
        f"; the other {len(stopped)} stop at {min(p.overhead for _, p in stopped):.0%} of it or later"
        if stopped
        else ""
    )
    return Chart(
        "read-overhead",
        "Reads over the fewest possible",
        f"The {completed} completed of {len(probes)} probes take {_most(overheads)} of the fewest reads{said}.",
        Axis("probe", "category"),
        Axis("reads / minimum", low=0),
        (
            Series("completed", "points", kept, overheads),
            Series("stopped early", "points", tuple(n for n, _ in stopped), tuple(p.overhead for _, p in stopped)),
            Series("optimal", "rule", (named[0][0],), (1.0,), dashed=True),
        ),
    )


def _most(overheads: Sequence[float]) -> str:
    return f"{max(overheads):.2f}" if overheads else "none"
