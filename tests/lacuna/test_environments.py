"""Environments of memory systems: where they lie, when they count as there, and what installing one says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eirkit.agents.memories.in_process import KeyValue
from eirkit.agents.memory import Requirements
from eirkit.agents.stores import environments
from eirkit.agents.stores.environments import install, is_importable, python_of, reason_not_installed
from eirkit.agents.stores.memory_factory import check_plan, make_memory, reason_absent
from eirkit.agents.stores.memory_plan import MemoryPlan
from eirkit.errors import InfrastructureError, UnknownNameError, UsageError
from eirkit.folders import own_folder
from tests.processes import completed


class Foreign(KeyValue):
    """Needs a package that nobody has."""

    requirements = Requirements(packages=("eirkit_nobody_has_this",), installs=(("eirkit-nobody-has-this",),))


class Native(KeyValue):
    """Needs a package that everybody has."""

    requirements = Requirements(packages=("json",))


FOREIGN, NATIVE = f"{__name__}:Foreign", f"{__name__}:Native"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    return tmp_path


def test_environments_lie_where_the_user_says_or_in_the_cache(elsewhere, monkeypatch):
    assert own_folder() == elsewhere
    monkeypatch.setenv("EIRKIT_HOME", "")
    assert own_folder() == Path.home() / ".cache" / "eirkit"


def test_what_needs_no_packages_is_always_here():
    assert is_importable(KeyValue.requirements)
    assert is_importable(Native.requirements)
    assert not is_importable(Foreign.requirements)
    assert reason_not_installed("key-value", KeyValue.requirements) is None


def test_a_system_that_is_nowhere_says_how_to_get_it(elsewhere):
    assert reason_absent(FOREIGN) == f"its packages are not installed; run eirkit doctor --install {FOREIGN}"
    with pytest.raises(UsageError, match=r"cannot run here: its packages are not installed; run eirkit doctor"):
        check_plan(MemoryPlan(FOREIGN, {}))


def test_an_environment_counts_once_it_is_complete(elsewhere):
    python = elsewhere / "environments" / "mine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert python_of("mine") is None, "an installation that broke off is none"
    (elsewhere / "environments" / "mine" / "complete").touch()
    assert python_of("mine") == python
    assert reason_not_installed("mine", Foreign.requirements) is None


def test_a_packaged_system_runs_in_a_process_of_its_own_even_where_its_packages_are_here(elsewhere):
    assert make_memory(MemoryPlan(NATIVE, {})).python == Path(sys.executable)


def test_only_what_needs_packages_can_be_installed(elsewhere):
    with pytest.raises(UsageError, match="needs no packages; use it as it is"):
        install("key-value")
    with pytest.raises(UnknownNameError):
        install("nonsense")
    assert list(elsewhere.iterdir()) == []


def test_the_last_word_of_a_failed_installation_is_passed_on():
    with pytest.raises(InfrastructureError, match=r"failed \(no such thing\); check the network and the disk"):
        environments._run([sys.executable, "-c", "import sys; sys.exit('no such thing')"])


@pytest.mark.slow
def test_installing_makes_an_environment_that_can_run_the_package(elsewhere):
    said: list[str] = []
    python = install(NATIVE, said.append)
    assert said == [f"{NATIVE}: pip install bm25s click numpy rich"]
    code = "import eirkit.agents.memories as memories; print(memories.__name__)"
    done = completed([str(python), "-c", code], env={"PYTHONPATH": str(Path(environments.__file__).parents[3])})
    assert done.stdout.strip() == "eirkit.agents.memories", done.stderr
    assert python_of(NATIVE) == python
    assert install(NATIVE, said.append) == python
    assert len(said) == 1, "what is complete is left as it is"
    with pytest.raises(InfrastructureError, match="eirkit-nobody-has-this failed"):
        install(FOREIGN)
    assert python_of(FOREIGN) is None
