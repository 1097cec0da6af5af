"""Behaviors as data, and the comparison of what eirkit says about each with what its server knows.

A behavior runs the real command line against a loopback server. Every step of every run is compared: records,
summary, terminal text and page may say what is true, or that it cannot be known; anything else is a disagreement.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.findings.summary import SUMMARY_SCHEMA
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.documents import SUMMARY, read_struct, schema_of
from eirkit.records.events import Event, ModelExchange, Verdicts
from eirkit.records.evidence import RescueResult
from eirkit.records.runs import RunRecord
from eirkit.records.sweeps import CellRow, Summary
from eirkit.testing.selftest.planted import Lookup, PlantedAgent, PlantedRun, Traits
from eirkit.testing.selftest.server import LoopbackServer, Script, Served

Command = Callable[[list[str]], int]  # the command line: arguments to exit code
MODEL = "openai/planted"
RESCUE_SCHEMA = "rescue/1"
PRICES = (100.0, 400.0)  # US dollars for a million tokens of input and of output
# What each cause claims, in the words of `planted.Class`; a cause that claims nothing is always allowed.
CLAIMS: dict[str, frozenset[str]] = {
    "state_supply": frozenset({"lost"}),
    "cascade": frozenset({"carried", "after"}),
    "computation": frozenset({"own"}),
    "not_answered": frozenset({"silent", "after"}),
    "malformed": frozenset({"garbled"}),
    "truncated": frozenset({"cut"}),
}
FATES_COMPARED = frozenset(get_args(Lookup))  # fates of records needed from a memory; others claim nothing


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that eirkit and the server said about one behavior."""

    code: int  # exit code of the command
    text: str  # the terminal
    errors: str  # stderr
    page: str  # text of the report, without markup
    summary: Summary | None  # of a sweep
    rescue: RescueResult | None
    records: tuple[RunRecord, ...]  # in order
    events: tuple[tuple[Event, ...], ...]  # of each run
    agent: PlantedAgent
    log: tuple[Served, ...]
    before: str = ""  # stdout of the command before
    then: str = ""  # stdout of the command after

    @property
    def row(self) -> CellRow:
        """The first row of a sweep."""
        if self.summary is None:
            raise LookupError("no summary was written")
        return self.summary.rows[0]

    def pairs(self) -> Iterator[tuple[RunRecord, tuple[Event, ...], PlantedRun]]:
        """Yield each stored run with the run of the server that has its prompts."""
        left = list(self.agent.runs)
        for record, events in zip(self.records, self.events, strict=True):
            prompts = [event.prompt or "" for event in events if isinstance(event, ModelExchange)]
            found = next((run for run in left if _was_sent(prompts, run)), None)
            if found is None:
                raise LookupError(f"the server was never sent the prompts that are recorded for run {record.run}")
            left.remove(found)
            yield record, events, found


def _was_sent(prompts: list[str], run: PlantedRun) -> bool:
    """True if a run has these prompts; where a server takes no system message, the rules come before them."""
    sent = set(run.prompts)
    return all(one in sent or any(text.endswith(f"\n{one}") for text in sent) for one in prompts)


Check = Callable[[Observed], Iterator[str]]


@dataclass(frozen=True, slots=True)
class PlantedBehavior:
    """One way to misbehave, how it is run, and what must hold beyond the comparison of every step."""

    name: str
    about: str
    traits: Traits = field(default_factory=Traits)
    options: str = "--h 4"  # of the command
    command: str = "lacuna run"
    seeds: str = "0:3"
    workload: str = "stepwise-sum"
    task: str = "--n 24 --m 4"
    checks: tuple[Check, ...] = ()
    case: int | None = None  # the case of the issue that it reproduces
    steps: bool = True  # compare every step; False where no run records of the command have any
    script: Script | None = None  # of the server, in place of an agent with the traits
    before: str = ""  # a command that is run first
    then: str = ""  # a command that is run afterwards


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one behavior."""

    name: str
    family: str
    about: str
    steps: int  # compared
    disagreements: tuple[str, ...]


def try_behavior(behavior: PlantedBehavior, family: str, command: Command) -> Result:
    """Run a behavior and return where eirkit disagrees with the server."""
    with TemporaryDirectory(prefix="eirkit-selftest-") as parent:
        observed = observe(behavior, Path(parent), command)
        found = list(disagreements(behavior, observed))
        answers = (record.conversation.asked for record in observed.records if record.conversation is not None)
        compared = sum(run.n for run in observed.agent.runs) if behavior.steps else sum(answers)
    return Result(behavior.name, family, behavior.about, compared, tuple(found))


def observe(behavior: PlantedBehavior, parent: Path, command: Command) -> Observed:
    """Run the command of a behavior against its server and gather what was said."""
    agent, folder = PlantedAgent(behavior.traits), parent / "runs"
    (parent / "prices.toml").write_text(
        f'[prices]\n"{MODEL}" = {{ input = {PRICES[0]}, output = {PRICES[1]}, as_of = 2026-01-01 }}\n', "utf-8"
    )
    with LoopbackServer(behavior.script or agent) as server:
        places = {"parent": str(parent), "folder": str(folder), "url": server.url}
        given = f"{behavior.command} {behavior.workload} --set connections=1 {behavior.task} --seeds {behavior.seeds}"
        where = ["--model", MODEL, "--base-url", server.url, "--out", str(folder)]
        where += [] if "--protocol" in behavior.options else ["--protocol", "text"]
        before = _also(command, behavior.before, places)
        code, text, errors = call(command, [*f"{given} {behavior.options}".format(**places).split(), *where])
        then = _also(command, behavior.then, places)
        page = parent / "page.html"
        if (folder / SUMMARY).exists():
            call(command, ["report", str(folder), "--out", str(page)])
    records: list[RunRecord] = []
    events: list[tuple[Event, ...]] = []
    if (folder / DATABASE).exists():
        with SweepDatabase(folder) as database:
            records = list(database.records())
            events = [tuple(database.events(record.run)) for record in records]
    schema, result = schema_of(folder / SUMMARY), folder / SUMMARY
    return Observed(
        code,
        text,
        errors,
        plain_text(page.read_text("utf-8")) if page.exists() else "",
        read_struct(result, SUMMARY_SCHEMA, Summary) if schema == SUMMARY_SCHEMA else None,
        read_struct(result, RESCUE_SCHEMA, RescueResult) if schema == RESCUE_SCHEMA else None,
        tuple(records),
        tuple(events),
        agent,
        tuple(server.log),
        before,
        then,
    )


def _also(command: Command, words: str, places: Mapping[str, str]) -> str:
    """Return the stdout of a further command; empty if there is none."""
    return call(command, words.format(**places).split())[1] if words else ""


def call(command: Command, arguments: list[str]) -> tuple[int, str, str]:
    """Run one command of eirkit in this process; return its exit code, stdout and stderr."""
    out, errors = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = command(arguments)
    return code, out.getvalue(), errors.getvalue()


def plain_text(page: str) -> str:
    """Return the words of a page, without markup, scripts and styles."""
    body = re.sub(r"(?s)<(script|style).*?</\1>", " ", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def disagreements(behavior: PlantedBehavior, observed: Observed) -> Iterator[str]:
    """Yield what eirkit claims and the server refutes."""
    if behavior.steps:
        if not observed.records:
            yield f"no run was stored: {' '.join(observed.errors.split())[-200:]}"
            return
        try:
            yield from _steps(observed)
            yield from _totals(observed)
        except LookupError as error:
            yield str(error)
    for check in behavior.checks:
        yield from check(observed)


def claims_of(events: tuple[Event, ...]) -> dict[int, tuple[str, str]]:
    """Return the recorded cause and kind of every step that is recorded as wrong."""
    wrong = next(event.wrong for event in events if isinstance(event, Verdicts))
    return {step.t: (step.cause, step.kind or "") for step in wrong}


def _steps(observed: Observed) -> Iterator[str]:
    """Yield steps whose recorded outcome or cause is false."""
    for record, events, run in observed.pairs():
        claimed = claims_of(events)
        for t in range(1, run.n + 1):
            where = f"seed {record.seed}, step {t}"
            if run.is_right(t) != (t not in claimed):
                yield f"{where}: the answer was {'right' if run.is_right(t) else 'wrong'}, recorded as {claimed.get(t)}"
            elif t in claimed and (means := CLAIMS.get(claimed[t][0])) and not means & run.classes(t):
                yield f"{where}: {'/'.join(claimed[t])} is claimed; true is {', '.join(sorted(run.classes(t)))}"


def _totals(observed: Observed) -> Iterator[str]:
    """Yield figures of the summary, the terminal and the page that no step supports."""
    if observed.summary is None:
        return
    row = observed.row
    runs = [run for _, _, run in observed.pairs()]
    scored = sum(run.n for run in runs)
    right = sum(run.is_right(t) for run in runs for t in range(1, run.n + 1)) / scored
    if row.accuracy is None or abs(row.accuracy - right) > 1e-9:
        yield f"accuracy is {row.accuracy} in the summary and {right:.3f} by the server"
    consuming = sum(bool(refs) for run in runs for refs in run.refs.values())
    missed = sum(run.is_missed(t) for run in runs for t in run.steps) / max(1, consuming)
    if row.miss_rate is None or abs(row.miss_rate - missed) > 1e-9:
        yield f"the miss rate is {row.miss_rate} in the summary and {missed:.3f} by the server"
    most = _most(runs)
    errors: Counter[str] = Counter()
    for record in observed.records:
        errors.update({} if record.score is None else record.score.errors)
    for cause in CAUSE_MEASURES:
        allowed, counted = most.get(cause.id), errors[cause.id]
        if allowed is None:
            continue
        if counted > allowed:
            yield f"{counted} steps are counted as {cause.label}; at most {allowed} can be"
        for place, text in (("terminal", observed.text), ("page", observed.page)):
            for share in re.findall(rf"\b{re.escape(cause.label)} (\d+)%", text):
                if int(share) > 100 * allowed / scored + 0.5:
                    yield f"the {place} says {cause.label} {share}%; at most {100 * allowed / scored:.0f}% can be"


def _most(runs: list[PlantedRun]) -> dict[str, int]:
    """Return how many wrong steps can truly have each cause."""
    found: Counter[str] = Counter()
    for run in runs:
        for t in range(1, run.n + 1):
            if not run.is_right(t):
                found.update(cause for cause, means in CLAIMS.items() if means & run.classes(t))
    return {cause: found[cause] for cause in CLAIMS}
