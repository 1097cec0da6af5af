"""Calibration: each broken memory is named by what it really did, and none with odd manners is accused of anything."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from eirkit.lacuna.memories.factory import make_memory
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.testing import check_memory
from tests.lacuna.running import eirkit
from tests.testing.contracts import record_memories
from tests.testing.contracts.record_memories import (
    BROKEN,
    LOG,
    SAID,
    SOUND,
    CutsAt120,
    InSqlite,
    OneAtATime,
    Reorders,
    Sound,
)

FILE = record_memories.__file__
LONG = ("--slots", "30")  # records of more than 120 characters


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eirkit.testing.memory_faults.GRACE_SECONDS", 0.1)  # some are never found


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_the_gate_names_what_a_broken_memory_did(kind):
    with pytest.raises(AssertionError, match=BROKEN[kind]):
        check_memory(kind, seconds=20, records=64)
    assert kind.__name__ in Path(LOG).read_text(), "it has done nothing of the kind"


@pytest.mark.parametrize("kind", SOUND, ids=lambda kind: kind.__name__)
def test_the_gate_accuses_no_sound_memory(kind):
    assert check_memory(kind, seconds=20, records=64).held


@pytest.mark.parametrize("kind", [Sound, Reorders, OneAtATime, InSqlite], ids=lambda kind: kind.__name__)
def test_the_gate_accuses_no_sound_memory_in_a_process_of_its_own(kind):
    plan = MemoryPlan(f"{FILE}:{kind.__name__}", {})
    assert check_memory(lambda: make_memory(plan), seconds=60, records=64, reuse=True).held


def test_what_knows_one_value_of_each_record_is_refused(capsys):
    how = ("--model", "reference/recoverer", "--memory", "oracle", "--out", "refused")
    assert eirkit("lacuna", "run", "record-store", *how) == 2
    assert "those of record-store change; choose another memory" in " ".join(capsys.readouterr().err.split())


def ran(capsys, kinds: list[type], seeds: str, *more: str) -> dict[str, dict]:
    """Return the rows of runs with some memories, by their names."""
    memories = ",".join(f"{FILE}:{kind.__name__}" for kind in kinds)
    how = ("--model", "reference/recoverer", "--h", "4", "--seeds", seeds, "--no-control", "--out", "out", "--json")
    assert eirkit("lacuna", "run", "record-store", "--memory", memories, *how, *more) == 0
    return {row["memory"].rpartition(":")[2]: row for row in json.loads(capsys.readouterr().out)["rows"]}


def did() -> dict[str, set[str]]:
    """Return what each memory did, by its own log."""
    found = defaultdict(set)
    for line in Path(LOG).read_text().splitlines():
        name, what, _ = line.split("\t")
        found[name].add(what)
    return found


@pytest.mark.parametrize("more", [(), LONG], ids=["short", "long"])
def test_a_run_says_of_a_broken_memory_what_it_did_and_nothing_else(more, capsys):
    kinds = [kind for kind in BROKEN if (kind is CutsAt120) == (more == LONG)]
    rows, truth = ran(capsys, kinds, "0:3", *more), did()
    for kind in kinds:
        name = kind.__name__
        may = [SAID[what] for what in truth[name]]
        said = {finding.partition(" (")[0] for finding in rows[name]["memory_system"]["diagnosis"]}
        assert said <= set().union(*may), f"{name} did {truth[name]}"
        assert all(not one or one & said for one in may), f"{name} did {truth[name]}, of which {said} is said"


def test_a_run_accuses_no_sound_memory(capsys):
    rows = ran(capsys, list(SOUND), "0:1")
    for name, row in rows.items():
        assert row["memory_system"]["diagnosis"] == [], name
        assert row["accuracy"] == 1, name
