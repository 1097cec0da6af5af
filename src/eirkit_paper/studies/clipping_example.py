"""Study of one run in which a clipped view omits a line that the reference patch changes.

The published run is one of OpenHands; it is drawn if `--data` has such runs, and a synthetic run otherwise.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from eirkit.errors import MissingExtraError
from eirkit.records.analysis import ActionRow, CutRow, HiddenLine, RunRow
from eirkit.report.document import Axis, Chart, Figure, Series
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_logs
from eirkit.vestige.tables import read_rows
from eirkit_paper.studies.comparison import absent, exact, in_section
from eirkit_paper.studies.recorded import OPENHANDS, folder_of, lacks, needed
from eirkit_paper.study import NEEDS_RUNS, Findings, Setting

LABEL = "a clipped view omits a line that the run edits before it is shown (0 no, 1 yes)"
PLANTED_RUNS = 24  # enough that some run never sees the line again


def clipping_example(setting: Setting) -> Findings:
    """Draw the first run in which a changed line was clipped and never shown again before the edit."""
    folder = folder_of(setting, OPENHANDS)
    if folder is not None:
        run_id = _lost(folder)
        row = exact(LABEL, 1, float(run_id is not None), "none of the given runs has one", 0)
        figures = () if run_id is None else (_figure(folder, run_id, ""),)
        return Findings(in_section("Figure 1, panel A", [row]), figures=figures)
    row = absent(LABEL, 1, NEEDS_RUNS, lacks(OPENHANDS))
    commands = tuple(line.replace("STUDY", "clipping-example") for line in needed(setting, OPENHANDS))
    found = Findings(in_section("Figure 1, panel A", [row]), commands=commands)
    try:
        return replace(found, figures=(_planted(),), words=("The figure shows a planted run, not the published one.",))
    except MissingExtraError as error:
        return replace(found, words=(f"No figure: {error}.",))


def _planted() -> Figure:
    with TemporaryDirectory() as name:
        folder = Path(name)
        logs = write_logs(PlantedCorpus(PLANTED_RUNS, PLANTED_RUNS, clipped=1.0), 0, folder)
        corpus = Corpus((logs,), folder / "gold")
        analyze_here(
            corpus,
            folder / "analysis",
            AnalysisOptions(read_windows(), rule="paper"),
            estimate=True,
            progress=lambda *told: None,
        )
        run_id = _lost(folder / "analysis")
        if run_id is None:
            raise ValueError("no planted run lost its line; plant more runs")
        return _figure(folder / "analysis", run_id, "a planted run")


def _lost(folder: Path) -> RunRow | None:
    """Return the first run with a changed old line that was clipped and not shown again."""
    return next((run for run in read_rows(folder, RunRow) if run.lines_never_recovered > 0), None)


def _figure(folder: Path, run: RunRow, note: str) -> Figure:
    cuts = read_rows(folder, CutRow, run.run_id)
    hidden = [line for line in read_rows(folder, HiddenLine, run.run_id) if line.outcome == "never"]
    goal = set(run.goal_files)
    actions = read_rows(folder, ActionRow, run.run_id)
    edits = [action.turn for action in actions if action.kind == "write" and action.path in goal]
    clipped, edited = hidden[0].turn, min(edits, default=None)
    demand = tuple(cut.demand_tokens or 0 for cut in cuts)
    place = f"line {hidden[0].line} of {hidden[0].path}"
    then = f", which is edited in turn {edited} without having been shown" if edited else ""
    marks = (
        Series("clipped view", "rule", (clipped,)),
        *((Series("edit", "rule", (edited,), dashed=True),) if edited else ()),
    )
    chart = Chart(
        "clipping-example",
        "Demand over one run with a clipped view",
        f"A view in turn {clipped} leaves out {place}{then}; peak demand is {max(demand):,} tokens.",
        Axis("cut: before turn"),
        Axis("tokens that later work uses", low=0),
        (Series("demand", "step", tuple(cut.cut for cut in cuts), demand), *marks),
        note,
    )
    return Figure("clipping-example", "An edit without having seen the line", (chart,), note)
