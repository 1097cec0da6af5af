"""Computes the answers of `eirkit demo`: demand, retention, recovery, a causal chain and recorded runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

from eirkit.eir.demand import final_sum, pressure
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.models.network.decoding import cached_replies
from eirkit.lacuna.runs.budget import Budget
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.recorded_rescues import RescueExperiment
from eirkit.lacuna.runs.rescue import RescueSetup
from eirkit.lacuna.runs.store import is_unused_folder
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import open_plan, start_sweep, write_result
from eirkit.lacuna.tasks.cones import survey_cones
from eirkit.lacuna.tasks.generation import generate, graph_of, prepare
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import Payload, TaskSpec, number_spec, show_label, show_values, spec_of
from eirkit.lacuna.tasks.workload import best_online
from eirkit.records.database import SweepDatabase
from eirkit.records.events import Decision, Event, ModelExchange
from eirkit.report.demo.figures import (
    ContractContrast,
    DemandRow,
    RecoveryRow,
    RetentionRow,
    Substitute,
    Substitutes,
)
from eirkit.report.logs.analyzed import Analyzed, RunOutcome, auc_of
from eirkit.report.runs.folder import SweepFolder, read_sweep
from eirkit.report.table import listed
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions, AnalyzedRun, measure
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, PlantedEffects, plain_lines
from eirkit.vestige.corpus.summary import CorpusTotals
from eirkit.vestige.formats.plain import Plain
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.tokens import estimating_counter

WORKLOADS = ("running-max", "store-recall", "stepwise-max", "stepwise-sum", "full-lookup", "stepwise-topk")
# Its curve takes the longest by far; a cut in four is enough for a demonstration.
SAMPLED = {"stepwise-topk": range(0, 65, 4)}
CELLS = (("stepwise-sum", 16), ("stepwise-sum", 8), ("store-recall", 8), ("store-recall", 4))
POLICIES = ("fifo", "lru", "theory", "belady")
TASKS = range(30)
GRAPHS = range(300)


def demand_row(workload: str) -> DemandRow:
    """Return what must survive each cut of the workload's default task, and how many records that would fill."""
    spec = TaskSpec(workload)
    maker = prepare(spec)
    cuts = SAMPLED.get(workload)
    curve = maker.demand(spec, graph_of(generate(spec)), cuts)
    return DemandRow(
        workload,
        tuple(curve.bits),
        curve.peak.lower_bits,
        "all" if cuts is None else tuple(cuts),
        pressure(curve, 1, log2(maker.alphabet(spec))).peak,
        curve.method,
    )


def contrast() -> ContractContrast:
    """Return the peak when every step's sum is asked for, and when only the total is: same inputs, other contract."""
    spec = TaskSpec("stepwise-sum")
    online = prepare(spec).demand(spec, graph_of(generate(spec)))
    offline = max(final_sum(spec.q, spec.n, t) for t in range(spec.n + 1))
    return ContractContrast(online.peak.lower_bits, log2(offline))


def retention_row(workload: str, h: int) -> RetentionRow:
    """Return the share of steps with a missing input under each policy with h records, and the pressure."""
    tasks = [generate(TaskSpec(workload, seed=seed)) for seed in TASKS]
    spec = tasks[0].spec
    maker = prepare(spec)
    under = pressure(maker.demand(spec, graph_of(tasks[0])), h, log2(maker.alphabet(spec)))
    rates = {policy: fmean(simulate(task, policy, h).miss_rate for task in tasks) for policy in POLICIES}
    best = best_online(maker.draws(spec), h)
    return RetentionRow(workload, h, under.peak, len(tasks), rates, None if best is None else best.miss_rate)


def recovery_row(fan_in: int) -> RecoveryRow:
    """Return the mean cost of rebuilding a lost result late in a task."""
    survey = survey_cones(TaskSpec("stepwise-sum", m=8, fan_in=fan_in), GRAPHS, from_step=32)
    return RecoveryRow(fan_in, survey.cones, 1, survey.size.mean, survey.naive.mean, survey.depth.mean)


NAME = "demo"
AGENT = "bundled/lacuna-tiny"  # who answers: a network that has learned the operations, in the package
WORKLOAD = "stepwise-sum"
CAPACITIES = (16, 12, 8)
RESCUED = 12  # records held in the rescue
POLICY = "window"  # of the rescue: that of a sweep unless told otherwise
SEEDS = range(12)


def run_chain(folder: Path, agent: str = AGENT, seeds: range = SEEDS) -> SweepFolder:
    """Run the sweep and its rescue into a folder, over an earlier demonstration, and return what they say."""
    _clear(folder)
    axes = {"workload": WORKLOAD, "model": agent, "h": list(CAPACITIES), "seeds": seeds}
    with cached_replies({}):  # the rescue repeats many a step of the sweep, and its control whole
        start_sweep(read_suite({**axes, "name": NAME}), folder, control=True)
        _rescue(folder / "rescue", agent, seeds)
    return read_sweep(folder)


def _rescue(folder: Path, agent: str, seeds: range) -> None:
    question = RescueExperiment(RescueSetup(TaskSpec(WORKLOAD), RESCUED, POLICY), seeds, [agent], ModelOptions(), True)
    plan = question.plan()
    with open_plan(plan, folder, Budget()) as runner:
        found, controls = question.measure(runner.complete(plan))
    write_result(plan, folder, question.result(found, controls))


def _clear(folder: Path) -> None:
    """Remove an earlier demonstration, and nothing else."""
    if is_unused_folder(folder):
        return
    try:
        earlier = read_manifest(folder).settings.get("name") == NAME
    except UsageError:
        earlier = False
    if not earlier:
        raise UsageError(f"{folder} holds something else than a demonstration; choose another --out")
    shutil.rmtree(folder)


BETWEEN = "|"  # operands of a reply


def substitutes(folder: Path, h: int) -> Iterator[Substitute]:
    """Yield what was written for missing results with h records in sight, by run and step.

    Replies that do not show an operand for every reference are left out.
    """
    with SweepDatabase(folder) as database:
        for record in database.records():
            if record.setting.access.h == h:
                spec = number_spec(spec_of(record.setting.task, record.seed), "the demo")
                answers = {step.t: step.answer for step in generate(spec).steps}
                yield from _of_run(database.events(record.run), answers, spec)


def _of_run(events: Sequence[Event], answers: Mapping[int, Payload], spec: TaskSpec) -> Iterator[Substitute]:
    exchanges = {event.t: event for event in events if isinstance(event, ModelExchange)}
    given = {event.t: event.values for event in events if isinstance(event, Decision) and event.values}
    for event in events:
        if isinstance(event, Decision) and event.missing and event.values is not None:
            exchange = exchanges[event.t]
            if exchange.prompt is not None and exchange.reply is not None:
                visible = {t: given[t] for t in event.retained}
                yield from _of_step(exchange.prompt, exchange.reply, event, visible, answers, spec)


def _of_step(
    prompt: str,
    reply: str,
    decision: Decision,
    visible: Mapping[int, Payload],
    answers: Mapping[int, Payload],
    spec: TaskSpec,
) -> Iterator[Substitute]:
    operands = [part.strip() for part in reply.partition("\n")[0].split(BETWEEN)]
    if len(operands) != len(decision.required):
        return
    shown = {t: show_values(spec.digits, values) for t, values in visible.items()}
    submitted, answer = (
        show_values(spec.digits, decision.values or ()),
        show_values(spec.digits, answers[decision.t]),
    )
    for t, written in zip(decision.required, operands, strict=True):
        if t in decision.missing:
            label, true = show_label(spec, t), show_values(spec.digits, answers[t])
            like = tuple(show_label(spec, step) for step, value in shown.items() if value == written)
            whose = f", the value of {listed(like)}," if like else ""
            told = f"it wrote {written}{whose} and answered {submitted} instead of {answer}"
            yield Substitute(
                prompt=prompt,
                reply=reply,
                t=decision.t,
                label=label,
                written=written,
                true=true,
                like=like,
                submitted=submitted,
                answer=answer,
                sentence=f"{label} ({true}) was out of sight; {told}.",
            )


def count_substitutes(found: Sequence[Substitute]) -> Substitutes:
    """Return how many lookups of missing results there were, how many copied one in sight, and the first wrong step."""
    return Substitutes(
        len(found),
        sum(bool(substitute.like) for substitute in found),
        sum(substitute.written == substitute.true for substitute in found),
        next((substitute for substitute in found if substitute.submitted != substitute.answer), None),
    )


EXAMPLE = "example.jsonl"
CORPUS = PlantedCorpus(400, 80, coverage=0.9, effects=PlantedEffects(demand_odds=1.6))
SEED = 0


@dataclass(frozen=True, slots=True)
class TextLog:
    """A log in memory: JSON lines of ours, which need no lenient parser."""

    source: str
    content: str
    parent: Path | None = None

    @property
    def name(self) -> str:
        return self.source

    @property
    def head(self) -> bytes:
        return self.content.encode()[: 1 << 16]

    @property
    def quoted(self) -> Collection[bytes]:
        return ()

    @property
    def first_records(self) -> Sequence[Mapping[str, Any]]:
        return ()

    def json(self) -> Any:
        raise InputFileError(f"{self.source} is not one document; read its lines")

    def text(self) -> str:
        return self.content

    def lines(self) -> Iterator[tuple[int, Any | Exception]]:
        return ((number, json.loads(line)) for number, line in enumerate(self.content.splitlines(), 1))

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
        return iter(())

    def members(self) -> Sequence[LogDocument]:
        return ()


def example() -> AnalyzedRun:
    """Return the analysis of the run that comes with the package."""
    text = (files("eirkit.report") / "assets" / EXAMPLE).read_text("utf-8")
    (analysis,) = _measured(TextLog(EXAMPLE, text))
    return analysis


def planted() -> Analyzed:
    """Return the analysis of a corpus in which need goes with failure, because it was put there."""
    text = b"".join(plain_lines(CORPUS, SEED)).decode()
    totals, outcomes = CorpusTotals(), list[RunOutcome]()
    for found in _measured(TextLog("planted.jsonl", text)):
        totals.add(found)
        run = found.run
        failed = None if run.resolved is None else not run.resolved
        outcomes.append(RunOutcome(run.peak_demand_tokens, run.later_used_peak, run.unit, run.goal_accessed, failed))
    return Analyzed("planted", totals.summary(AnalysisOptions(read_windows())), tuple(outcomes), auc_of(outcomes))


def _measured(log: TextLog) -> Iterator[AnalyzedRun]:
    """Yield the analysis of each run; these logs give their own token counts, so the counter is never asked."""
    options, count = AnalysisOptions(read_windows()), estimating_counter()
    for recording in Plain().read(log):
        if isinstance(recording, Skipped):
            raise InputFileError(f"{recording.source}: {recording.reason}; the package is damaged, install it again")
        yield measure(recording, None, options, count)
