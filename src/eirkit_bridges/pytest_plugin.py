"""The pytest plugin behind `pytest --eirkit-memory`: conformance and regression tests of a memory system.

`eirkit_pytest` loads it on demand. Each memory system gets one test item for conformance and one for each workload.
Results travel in the properties of the items, so that JUnit files and pytest-xdist workers carry them; they are written
and compared in the main process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.errors import EirkitError, UsageError
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.findings.measures import CAUSE_MEASURES
from eirkit.lacuna.runs.budget import SpendingLimits
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.values import read_memory_options
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskInstance, number_spec
from eirkit.seeds import read_seeds
from eirkit_bridges.memory_suite import (
    CaseChange,
    RegressionCase,
    accuracy_of,
    check_writable,
    compare,
    conform,
    least_pairs,
    pair_up,
    read_cases,
    run_case,
    suite_of,
    write_cases,
)

PROPERTY = "eirkit_case"  # of a report: the case as JSON
NOTES = "eirkit_notes"  # of a report: what was tried, and what was not


@dataclass(frozen=True, slots=True)
class PytestOptions:
    """The eirkit options on the pytest command line."""

    memories: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]]  # by memory
    workloads: tuple[str, ...]
    grid: Mapping[str, Any]  # the rest of a suite
    funds: SpendingLimits  # of each case
    at_least: float | None
    record: Path | None
    recorded: Mapping[str, RegressionCase]
    baseline: Path | None
    earlier: Mapping[str, RegressionCase]
    alpha: float  # for each case; the overall level is divided among them
    records: int  # written where a memory is tried with many


def _options(config: pytest.Config) -> PytestOptions:
    def given(name: str) -> Any:
        return config.getoption(f"--eirkit-{name}")

    recorded = _recorded(Path(given("recorded")), given("memory") or ()) if given("recorded") else {}
    memories = tuple(given("memory") or dict.fromkeys(case.memory for case in recorded.values()))
    if given("record"):
        check_writable(Path(given("record")))
    workloads = tuple(given("workload").split(","))
    cases = len(recorded) or len(memories) * len(workloads)
    alpha = given("alpha") / max(1, cases)
    needed, seeds = least_pairs(alpha), read_seeds(given("seeds"))
    baseline = Path(given("baseline")) if given("baseline") else None
    if baseline is not None and not recorded and len(seeds) < needed:
        raise UsageError(
            f"{len(seeds)} seeds are too few for a verdict at this level; give --eirkit-seeds at least {needed}"
        )
    if given("records") < 1:
        raise UsageError(f"--eirkit-records is {given('records')}; give 1 or more")
    if given("at-least") is not None and not 0 <= given("at-least") <= 1:
        raise UsageError(f"--eirkit-at-least {given('at-least'):g} is not an accuracy; give a value between 0 and 1")
    grid = {name: given(name) for name in ("model", "seeds", "h", "m", "n")}
    grid["model_options"] = {"base_url": given("base-url")}
    settings = _settings(given("memory-set"), memories)
    for name, workload in product(() if recorded else memories, workloads):
        suite_of(name, workload, settings.get(name, {}), grid)
    return PytestOptions(
        memories=memories,
        settings=settings,
        workloads=workloads,
        grid=grid,
        funds=SpendingLimits(given("cap-usd"), Path(given("prices")) if given("prices") else None),
        at_least=given("at-least"),
        record=Path(given("record")) if given("record") else None,
        recorded=recorded,
        baseline=baseline,
        earlier=read_cases(baseline) if baseline else {},
        alpha=alpha,
        records=given("records"),
    )


def _recorded(path: Path, memories: Sequence[str]) -> dict[str, RegressionCase]:
    """Return the recorded cases; raise UsageError for a memory that is not among them."""
    cases = read_cases(path)
    known = dict.fromkeys(case.memory for case in cases.values())
    if not cases:
        raise UsageError(f"{path} holds no runs; record them with --eirkit-record")
    if unknown := [name for name in memories if name not in known]:
        raise UsageError(
            f"{path} has no runs of {', '.join(unknown)}, only of {', '.join(known)}; "
            "record them, or leave out --eirkit-recorded to run them"
        )
    return cases


def _settings(given: Sequence[str], memories: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each memory; a setting without a memory name applies to all."""
    found: dict[str, dict[str, Any]] = {name: {} for name in memories}
    for text in given:
        name, value = _setting(text)
        memory, _, key = name.rpartition(".")
        meant = read_memory_options({memory: {key: value}}, memories) if memory else memories
        for one in meant:
            found[one][key] = value
    return found


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--eirkit-memory-set {text!r} is not a setting; write MEMORY.NAME=VALUE, such as Mine.size=3")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value


def pytest_configure(config: pytest.Config) -> None:
    """Read the options, and reject invalid ones before any test runs."""
    if not (config.getoption("--eirkit-memory") or config.getoption("--eirkit-recorded")):
        return
    try:
        config.pluginmanager.register(MemoryUnderTest(_options(config)), "eirkit-memory-under-test")
    except EirkitError as error:
        raise pytest.UsageError(str(error)) from error


class MemoryUnderTest:
    """Adds the test items and collects their results."""

    def __init__(self, options: PytestOptions) -> None:
        self.options = options
        self.cases: dict[str, tuple[RegressionCase, str]] = {}  # with the outcome of its item
        self.notes: list[str] = []  # of conformance

    @pytest.hookimpl(tryfirst=True)  # so that -k can select them
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        made = list(self._items(session))
        items.extend(made)
        # No file was collected, so the terminal reporter would not count these items.
        session.ihook.pytest_collectreport(report=pytest.CollectReport("eirkit", "passed", None, [*made]))

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        options = self.options
        for name in options.memories:
            if not options.recorded:
                yield MemoryItem.made(session, name, "conformance", partial(_conform, name, options))
            recorded = [case.workload for case in options.recorded.values() if case.memory == name]
            workloads = recorded if options.recorded else options.workloads
            for workload in workloads:
                yield MemoryItem.made(session, name, workload, partial(_regress, name, workload, options))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties if report.when == "call" else ():
            if name == PROPERTY:
                case = msgspec.json.decode(str(value), type=RegressionCase)
                self.cases[case.key] = case, report.outcome
            elif name == NOTES:
                self.notes.append(str(value))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker = hasattr(session.config, "workerinput")
        if self.options.record is not None and self.cases and not worker:
            write_cases(self.options.record, {key: case for key, (case, _) in self.cases.items()})

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.cases and not self.notes:
            return
        terminalreporter.section("memory systems")
        for note in self.notes:
            terminalreporter.line(f"conformance: {note}")
        for case, outcome in self.cases.values():
            terminalreporter.line(f"{outcome}: {_told(case, self.options)}")
        if self.options.record is not None:
            terminalreporter.line(f"recorded in {self.options.record}")


class MemoryItem(pytest.Item):
    """One test of a memory system."""

    work: Callable[[MemoryItem], None]

    @classmethod
    def made(cls, session: pytest.Session, memory: str, name: str, work: Callable[[MemoryItem], None]) -> MemoryItem:
        item = cls.from_parent(session, name=name, nodeid=f"eirkit[{memory}]::{name}")
        item.work = work
        return item

    def runtest(self) -> None:
        self.work(self)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the message alone; a traceback through the harness adds nothing."""
        if isinstance(excinfo.value, AssertionError | EirkitError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.nodeid.partition("::")[0], None, self.nodeid


def _conform(name: str, options: PytestOptions, item: MemoryItem) -> None:
    suite = suite_of(name, options.workloads[0], options.settings.get(name, {}), options.grid)
    found = conform(suite, options.records)
    item.user_properties.append(("eirkit_requirements", len(found.held)))
    item.user_properties.append((NOTES, "; ".join([f"{name}: {len(found.held)} requirements hold", *found.notes])))


def _regress(name: str, workload: str, options: PytestOptions, item: MemoryItem) -> None:
    """Run a memory system on a workload, or read recorded runs, and apply the baseline and the threshold."""
    if options.recorded:
        case = options.recorded[f"{name} {workload}"]
    else:
        case = run_case(name, workload, options.settings.get(name, {}), options.grid, options.funds)
    if not case.runs:
        pytest.skip(f"no run was scored: {', '.join(case.lost) or 'none was planned'}")
    item.user_properties.append((PROPERTY, msgspec.json.encode(case).decode()))
    found = accuracy_of(case)
    item.user_properties += [
        ("eirkit_accuracy", round(found.estimate, 6)),
        ("eirkit_accuracy_low", round(found.low, 6)),
        ("eirkit_accuracy_high", round(found.high, 6)),
        ("eirkit_seeds", len(case.runs)),
    ]
    if options.baseline is not None:
        change = compare(case.runs, pair_up(case, options.earlier, options.baseline).runs, options.alpha)
        item.user_properties += [("eirkit_difference", round(change.difference.estimate, 6)), ("eirkit_p", change.p)]
        if change.dropped:
            pytest.fail(f"accuracy dropped: {_changed(change)}; {_causes(case)}", pytrace=False)
    if options.at_least is not None and found.high < options.at_least:
        pytest.fail(f"accuracy is below {options.at_least:g}: {_told(case, options)}", pytrace=False)


def _told(case: RegressionCase, options: PytestOptions) -> str:
    found = accuracy_of(case)
    text = f"{case.memory}, {case.workload}: {found.estimate:.3f} [{found.low:.3f}, {found.high:.3f}]"
    earlier = options.earlier.get(case.key)
    if earlier is not None and len(case.runs.keys() & earlier.runs.keys()) >= least_pairs(options.alpha):
        text += f"; {_changed(compare(case.runs, earlier.runs, options.alpha))}"
    lost = sum(case.lost.values())
    return f"{text}; {len(case.runs)} seeds" + (f", {lost} lost to infrastructure" if lost else "")


def _changed(change: CaseChange) -> str:
    by = change.difference
    size = f"{by.estimate:+.3f} [{by.low:+.3f}, {by.high:+.3f}]"
    return f"{change.then:.3f} → {change.now:.3f}, by {size}, p = {change.p:.4f}"


def _causes(case: RegressionCase) -> str:
    return "wrong steps: " + ", ".join(
        f"{case.errors.get(measure.id, 0)} {measure.label}" for measure in CAUSE_MEASURES
    )


def task_of(marker: pytest.Mark | None) -> TaskInstance:
    """Return the task of the marker `lacuna`, for the fixture."""
    cell, seed = _marked(marker)
    return generate(number_spec(cell.task, "the marker").with_seed(seed))


def session_of(marker: pytest.Mark | None, task: TaskInstance) -> Session:
    """Return the session of the marker `lacuna`, for the fixture."""
    cell, _ = _marked(marker)
    return make_session(cell.access, task, prepare(task.spec))


def _marked(marker: pytest.Mark | None) -> tuple[Cell, int]:
    """Return the cell and the seed of a marker; raise UsageError if it describes more than one task."""
    given = dict(marker.kwargs) if marker else {}
    if marker and marker.args:
        given["workload"] = marker.args[0] if len(marker.args) == 1 else list(marker.args)
    seed = given.pop("seed", 0)
    if "seeds" in given or not isinstance(seed, int):
        raise UsageError("the marker lacuna describes one task; give one seed, such as seed=3")
    suite = read_suite({"workload": "stepwise-sum", "model": "reference/calculator", **given, "seeds": seed})
    cells = [cell for cell, _ in suite.plan()]
    if len(cells) != 1:
        several = [name for name, value in given.items() if isinstance(value, list | tuple) and len(value) != 1]
        raise UsageError(
            f"the marker lacuna describes one task, not {len(cells)}; give one value of {', '.join(several)}"
        )
    return cells[0], seed
