"""Tables and small multiples for papers: every figure against the runs by hand, and LaTeX that balances."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from eirkit.cli import run
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.records.evidence import (
    SETTINGS,
    CapabilityResult,
    CapabilitySettings,
    EvidenceSettings,
    ProbeSettings,
    ProbeSetup,
    RescueSettings,
)
from eirkit.records.settings import Task
from eirkit.records.sweeps import FailureGroup
from eirkit.report.exports import write_figures, write_tables
from eirkit.report.runs.folder import Evidence, SweepFolder, read_sweep
from eirkit.report.runs.page import pivoted_page
from eirkit.report.runs.pivot import Pivot, chosen_cells, read_pivot
from tests import runs
from tests.report.folders import make_analysis, make_sweep, write_log

MODELS = ("reference/calculator", "reference/sloppy")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sweep(tmp_path_factory.mktemp("pivot") / "sweep", seeds="0:3")


def page_of(sweep, *, measures=("accuracy",), across="", panels="", only=("workload=stepwise-sum",)):
    return pivoted_page(sweep, (), read_pivot(measures, across, panels, only))


def by_hand(sweep: Path, model: str, h: int) -> str:
    """The mean and the standard deviation of the runs of a cell, from their records."""
    own = [
        record.score.correct / record.score.steps
        for record in runs.records(sweep)
        if (record.setting.model, record.setting.access.h) == (model, h)
        and record.setting.task.workload == "stepwise-sum"
    ]
    middle = sum(own) / len(own)
    return f"{100 * middle:.1f} ± {100 * math.sqrt(sum((one - middle) ** 2 for one in own) / len(own)):.1f}"


def test_a_cell_is_the_mean_and_the_deviation_of_its_own_runs(sweep):
    page = page_of(sweep)
    (table,) = [one for one in page.tables() if one.id.startswith("paper-")]
    assert [column.title for column in table.columns] == ["model", "h = 2", "h = 4", "h = 8"]
    for row in table.rows:
        for h in (2, 4, 8):
            assert row[f"h={h}"] == by_hand(sweep, str(row["model"]), h)
    assert table.note.endswith("over 3 runs")
    (figure,) = [one for one in page.charts() if one.id.startswith("paper-")]
    assert [panel.title for panel in figure.panels] == list(MODELS)
    for panel in figure.panels:
        (line,) = panel.series
        assert line.x == (2, 4, 8)
        assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
        assert [f"{100 * y:.1f}" for y in line.y] == [by_hand(sweep, panel.title, h).split()[0] for h in line.x]


def test_settings_are_chosen_and_turned(sweep):
    page = page_of(sweep, measures=("accuracy", "miss_rate"), across="model", panels="h", only=("h=2,4",))
    tables = [one for one in page.tables() if one.id.startswith("paper-")]
    assert [one.title for one in tables] == ["Accuracy by workload, h and model", "Miss rate by workload, h and model"]
    assert len(tables[0].rows) == 4
    figure = next(one for one in page.charts() if one.id.startswith("paper-"))
    assert [panel.title for panel in figure.panels] == ["h = 2", "h = 4"]
    assert [series.name for series in figure.panels[0].series] == ["stepwise-max", "stepwise-sum"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"measures": ("speed",)}, "no measure named 'speed'"),
        ({"only": ("h",)}, "not SETTING=VALUE"),
        ({"only": ("h=3",)}, "no setting has h = 3"),
        ({"only": ("color=red",)}, "no setting named 'color'"),
        ({"across": "n"}, "n does not vary here"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(sweep, asked, words):
    with pytest.raises(UsageError, match=words):
        page_of(sweep, **asked)


def test_progress_failures_and_evidence_are_those_of_the_chosen_cells(sweep, capsys):
    whole = read_sweep(sweep)
    first = whole.rows[0]
    group = FailureGroup(first.workload, first.model, first.condition, "limit", "busy", 2, "run")
    broken = [structs.replace(row, scored=2, failures={"limit": 1}) if row.h == 2 else row for row in whole.rows]
    task = next(row.task for row in whole.rows if row.workload == "stepwise-sum")
    rescues = [evidence_of(whole, rescue(task, h=h)) for h in (2, 4)]
    whole = replace(whole, rows=tuple(broken), failures=(group,), evidence=tuple(rescues))
    for h, failed in ((2, True), (4, False)):
        found = chosen_cells(whole, read_pivot((), "", "", (f"h={h}", f"model={first.model}")))
        cells = len(found.rows)
        assert (found.planned, found.scored) == (3 * cells, (2 if failed else 3) * cells)
        assert [group.runs for group in found.failures] == [1] * (cells if failed else 0)
        assert [group.message for group in found.failures][:1] == (["busy"] if failed else [])
        assert [one.settings.h for one in found.evidence] == [h]
    assert run(["report", str(sweep), "--only", "h=4,2", "--out", str(sweep / "page.html")]) == 0
    assert "Only settings with h = 2, 4: 8 of 12." in " ".join(capsys.readouterr().out.split())


def rescue(task: Task, **given: object) -> RescueSettings:
    usual = {"h": 4, "policy": "window", "truth": "true", "managed": False, "seeds": "0:2", "models": MODELS}
    return RescueSettings(task=task, options=ModelOptions().asked("text"), **{**usual, **given})


def evidence_of(sweep: SweepFolder, settings: EvidenceSettings) -> Evidence:
    """Return evidence with these settings; its result is not looked at."""
    command = next(name for name, kind in SETTINGS.items() if isinstance(settings, kind))
    result = CapabilityResult(rows=(), threshold=0.9, eligible=(), excluded=())
    return Evidence(command, sweep.folder, sweep.manifest, settings, result)


def capability(*tasks: Task) -> CapabilitySettings:
    return CapabilitySettings(
        tasks=tasks,
        windows=(4,),
        threshold=0.9,
        calculator=True,
        seeds="0:2",
        models=MODELS,
        options=ModelOptions().asked("text"),
    )


def probe(*tasks: Task) -> ProbeSettings:
    return ProbeSettings(
        tasks=tasks, plan=ProbeSetup(), seeds="0:2", models=MODELS, options=ModelOptions().asked("text")
    )


def test_the_rescue_of_a_memory_that_was_not_chosen_is_left_out(sweep):
    whole = read_sweep(sweep)
    first = structs.replace(whole.rows[0], condition="external", policy=None, panel="native")
    rows = [structs.replace(first, memory=name, cell=name) for name in ("bm25", "text")] + [whole.rows[0]]
    managed = {"h": first.h, "managed": True, "panel": "native"}
    asked = [rescue(first.task, **managed, memory=name) for name in ("bm25", "text")]
    asked += [rescue(first.task, h=first.h), capability(first.task)]
    evidence = [evidence_of(whole, settings) for settings in asked]
    whole = replace(whole, rows=tuple(rows), evidence=tuple(evidence))
    for place, name in enumerate(("bm25", "text", "controlled")):
        found = chosen_cells(whole, read_pivot((), "", "", (f"memory={name}",)))
        assert found.evidence == (evidence[place], evidence[-1])
    assert chosen_cells(whole, read_pivot((), "", "", (f"h={first.h}",))).evidence == tuple(evidence)


@pytest.mark.parametrize("make", [rescue, probe, capability])
def test_an_experiment_on_tasks_of_another_size_is_left_out(sweep, make):
    whole = read_sweep(sweep)
    rows = [structs.replace(whole.rows[0], m=m, cell=str(m)) for m in (4, 8)]
    more = {"h": rows[0].h} if make is rescue else {}
    evidence = tuple(evidence_of(whole, make(row.task, **more)) for row in rows)
    whole = replace(whole, rows=tuple(rows), evidence=evidence)
    found = chosen_cells(whole, read_pivot((), "", "", ("m=8",)))
    assert found.evidence == (evidence if make is capability else evidence[1:])
    assert chosen_cells(whole, read_pivot((), "", "", ("workload=stepwise-sum",))).evidence == evidence


def test_only_sweeps_are_laid_out(tmp_path):
    with pytest.raises(UsageError, match="is no sweep"):
        pivoted_page(_analysis(tmp_path), (), Pivot())


def _analysis(folder: Path) -> Path:
    write_log(folder / "logs")
    return make_analysis(folder / "analysis", folder / "logs")


def test_the_command_writes_floats_that_balance_and_figures_in_every_form(sweep, tmp_path, capsys):
    out = tmp_path / "page.html"
    given = ("--only", "workload=stepwise-sum", "--tables", "latex", "--figures", "csv", "--out", str(out))
    assert run(["report", str(sweep), *given]) == 0
    text = (tmp_path / "page-files" / "paper-accuracy-by-model-and-h.tex").read_text()
    assert re.findall(r"\\(begin|end)\{(\w+\*?)\}", text) == [
        ("begin", "table*"), ("begin", "tabular"), ("end", "tabular"), ("end", "table*"),
    ]  # fmt: skip
    assert r"\label{tab:paper-accuracy-by-model-and-h}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in body} == {3}
    assert text.count(r"$\pm$") == 7  # six cells and the caption
    assert text.count("{") == text.count("}")
    page = page_of(sweep)
    for form in ("svg", "png", "pdf"):
        drawn = [path.name for path in write_figures(page, tmp_path / form, form, "column")]
        assert f"paper-accuracy-by-model-and-h-panels.{form}" in drawn
    assert any(path.name.startswith("paper-") for path in write_tables(page, tmp_path / "csv", "csv"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"measures": ("search_ms",)}, "no run here has search_ms"),
        ({"across": "h", "panels": "h"}, "names h twice"),
        ({"measures": ("accuracy",), "only": ("workload=stepwise-sum", "h=2")}, "fewer than two settings vary"),
    ],
)
def test_what_was_asked_for_and_cannot_be_laid_out_is_an_error(sweep, asked, said):
    with pytest.raises(UsageError, match=said):
        page_of(sweep, **asked)
