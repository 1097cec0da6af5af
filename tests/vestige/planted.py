"""Analyses of planted corpora in this process, from disk to tables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from eirkit.records.analysis import CohortStatistics, CohortTest
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import analyze_corpus
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, plain_lines
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import open_gold_patches
from eirkit.vestige.tokens import estimating_counter


def analyzed(source: Path, out: Path, gold: Path | None = None) -> Path:
    """Analyze a corpus on disk and return the folder of its tables."""
    patches = None if gold is None else open_gold_patches(gold)
    analyze_corpus(
        read_corpus([source]),
        out,
        AnalysisOptions(read_windows(None), rule="paper"),
        estimating_counter(),
        gold=patches,
    )
    return out


def analyzed_lines(lines: Iterable[bytes], folder: Path, name: str = "corpus") -> Path:
    """Analyze lines of the plain format."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(b"".join(lines))
    return analyzed(folder / f"{name}.jsonl", folder / name)


def analyzed_corpus(corpus: PlantedCorpus, folder: Path, seed: int = 0) -> Path:
    """Draw a corpus in the plain format and analyze it."""
    return analyzed_lines(plain_lines(corpus, seed), folder, corpus.name)


def by_name(found: CohortStatistics, cohort: str | None = None) -> dict[str, CohortTest]:
    """Return the tests of a cohort, the only one unless named."""
    return {test.name: test for test in found.tests if cohort in (None, test.cohort)}
