"""Computes the answers of `eirkit demo`: demand, retention, recovery, a causal chain and recorded runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from math import log2
from pathlib import Path
from statistics import fmean
from typing import Any

from eirkit.eir.demand import final_sum, pressure
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.agents.prompt_reader import read_records
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.models.network.decoding import cached_replies
from eirkit.lacuna.runs.arms import RescueSetup
from eirkit.lacuna.runs.budget import Budget
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.recorded_rescues import RescueExperiment
from eirkit.lacuna.runs.store import RUNS, is_unused_folder, read_events, scan_runs
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import open_plan, start_sweep, write_result
from eirkit.lacuna.tasks.cones import survey_cones
from eirkit.lacuna.tasks.generation import generate, graph_of, prepare
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import Payload, TaskSpec, show_label, show_values
from eirkit.lacuna.tasks.workload import best_online
from eirkit.report.logs.analysed import Analysed, analysed_here
from eirkit.report.runs.folder import SweepFolder, read_sweep
from eirkit.report.table import listed
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import Analysis, AnalysisOptions, measure
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, PlantedEffects, plain_lines
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


def theory() -> dict[str, Any]:
    """Return the results that need no agent."""
    return {
        "demand": [demand_row(name) for name in WORKLOADS],
        "contrast": contrast(),
        "retention": [retention_row(name, h) for name, h in CELLS],
        "recovery": [recovery_row(fan_in) for fan_in in (1, 2, 4)],
    }


def demand_row(workload: str) -> dict[str, Any]:
    """Return what must survive each cut of the workload's default task, and how many records that would fill."""
    spec = TaskSpec(workload)
    maker = prepare(spec)
    cuts = SAMPLED.get(workload)
    curve = maker.demand(spec, graph_of(generate(spec)), cuts)
    record_bits = log2(maker.alphabet(spec))
    return {
        "workload": workload,
        "bits": list(curve.bits),
        "peak_bits": curve.peak.lower_bits,
        "cuts": "all" if cuts is None else list(cuts),
        "records": pressure(curve, 1, record_bits).peak,
        "method": curve.method,
    }


def contrast() -> dict[str, float]:
    """Return the peak when every step's sum is asked for, and when only the total is: same inputs, other contract."""
    spec = TaskSpec("stepwise-sum")
    online = prepare(spec).demand(spec, graph_of(generate(spec)))
    offline = max(final_sum(spec.q, spec.n, t) for t in range(spec.n + 1))
    return {"every_step_bits": online.peak.lower_bits, "final_only_bits": log2(offline)}


def retention_row(workload: str, h: int) -> dict[str, Any]:
    """Return the share of steps with a missing input under each policy with h records, and the pressure."""
    tasks = [generate(TaskSpec(workload, seed=seed)) for seed in TASKS]
    spec = tasks[0].spec
    maker = prepare(spec)
    under = pressure(maker.demand(spec, graph_of(tasks[0])), h, log2(maker.alphabet(spec)))
    rates = {policy: fmean(simulate(task, policy, h).miss_rate for task in tasks) for policy in POLICIES}
    best = best_online(maker.draws(spec), h)
    online = {} if best is None else {"online_miss_rate": best.miss_rate}
    return {"workload": workload, "h": h, "eir_pressure": under.peak, "tasks": len(tasks), "miss_rate": rates, **online}


def recovery_row(fan_in: int) -> dict[str, Any]:
    """Return the mean cost of rebuilding a lost result late in a task."""
    survey = survey_cones(TaskSpec("stepwise-sum", m=8, fan_in=fan_in), GRAPHS, from_step=32)
    return {
        "fan_in": fan_in,
        "cones": survey.cones,
        "fetched": 1,
        "results_kept": survey.size.mean,
        "nothing_kept": survey.naive.mean,
        "depth": survey.depth.mean,
    }


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
    write_result(plan, folder, question.document(found, controls))


def _clear(folder: Path) -> None:
    """Remove an earlier demonstration, and nothing else."""
    if is_unused_folder(folder):
        return
    try:
        earlier = read_manifest(folder).suite["name"] == NAME
    except UsageError:
        earlier = False
    if not earlier:
        raise UsageError(f"{folder} holds something else than a demonstration; choose another --out")
    shutil.rmtree(folder)


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

    def lines(self, *, sealed: bool = False) -> Iterator[tuple[int, Any | Exception]]:
        return ((number, json.loads(line)) for number, line in enumerate(self.content.splitlines(), 1))

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
        return iter(())

    def members(self) -> Sequence[LogDocument]:
        return ()


def example() -> Analysis:
    """Return the analysis of the run that comes with the package."""
    text = (files("eirkit.report") / "assets" / EXAMPLE).read_text("utf-8")
    (analysis,) = _measured(TextLog(EXAMPLE, text))
    return analysis


def planted() -> Analysed:
    """Return the analysis of a corpus in which need goes with failure, because it was put there."""
    text = b"".join(plain_lines(CORPUS, SEED)).decode()
    return analysed_here("planted", list(_measured(TextLog("planted.jsonl", text))), {"visibility": "seen"})


def _measured(log: TextLog) -> Iterator[Analysis]:
    """Yield the analysis of each run; these logs give their own token counts, so the counter is never asked."""
    options, count = AnalysisOptions(read_windows()), estimating_counter()
    for recording in Plain().read(log):
        if isinstance(recording, Skipped):
            raise InputFileError(f"{recording.source}: {recording.reason}; the package is damaged, install it again")
        yield measure(recording, None, options, count)
