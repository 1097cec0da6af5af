"""Runs the computations of `eirkit demo` and collects their results in one document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eirkit.agents.bundled.layout import load_weights
from eirkit.agents.models.bundled import WEIGHTS
from eirkit.demo.page import demonstration_page
from eirkit.demo.questions import AGENT, RESCUED, example, planted, run_chain, substitutes, substitutes_json, theory
from eirkit.findings.causes import CAUSES
from eirkit.show.page import Page
from eirkit.show.pages.page_factory import pages
from eirkit.show.runs.folder import SweepFolder


@pages.add("demo")
def page(folder: Path, others: Sequence[Path], *, tests: bool, plugins: bool = False) -> Page:
    """Run the demonstration into a folder and return its page; `answers` are its figures."""
    sweep, run, corpus = run_chain(folder / "run"), example(), planted()
    (rescued,) = sweep.found_by("rescue")
    auc = corpus.auc
    document: dict[str, Any] = {
        **theory(),
        "agent": AGENT,
        "agent_parameters": load_weights(WEIGHTS).parameters,
        "causes": _causes(sweep),
        "rescue": {name: rescued.document[name] for name in ("rows", "repair_effect", "contrasts", "failures")},
        "substitutes": substitutes_json(list(substitutes(sweep.folder, RESCUED))),
        "recorded": {
            "run_id": run.run.run_id,
            "turns": run.run.turns,
            "peak_demand_tokens": run.run.peak_demand_tokens,
            "peak_cut": run.run.peak_cut,
            "read_tokens": run.run.read_tokens,
            "dead_read_tokens": run.run.dead_read_tokens,
            "planted_runs": len(corpus.runs),
            "failure_auc": None if auc is None else auc.estimate,
        },
    }
    return demonstration_page(document, sweep, run, corpus)


def _causes(sweep: SweepFolder) -> list[dict[str, Any]]:
    """Return accuracy and wrong steps by cause at each capacity."""
    by_cell = sweep.by_cell()
    return [
        {
            "h": row["h"],
            "accuracy": row["accuracy"],
            "runs": row["scored"],
            "steps": sum(run.score.steps for run in by_cell[row["cell"]]),
            "errors": {cause: row["errors"][cause] for cause in CAUSES},
        }
        for row in sweep.rows
    ]
