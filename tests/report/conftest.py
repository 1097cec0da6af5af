"""Folders that several tests of pages read: made once, never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.report.demo.questions import run_chain
from eirkit.report.runs.folder import SweepFolder
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, PlantedEffects, write_plain
from tests.report.folders import make_analysis

PLANTED = PlantedCorpus(120, 30, coverage=0.8, effects=PlantedEffects(demand_odds=1.8))


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A sweep over three capacities with its control and its rescue, by an agent whose arithmetic is exact."""
    return run_chain(tmp_path_factory.mktemp("chain") / "run", "reference/calculator", range(30))


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An analysis of a corpus with a planted effect."""
    folder = tmp_path_factory.mktemp("planted")
    return make_analysis(folder / "analysis", write_plain(PLANTED, 0, folder / "runs.jsonl"))
