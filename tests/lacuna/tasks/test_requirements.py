"""What a memory system needs, in one record: what follows from it, and what is said where it is not met."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import replace

import pytest

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.memories.environments import install, reason_not_installed
from eirkit.lacuna.memories.factory import check_plan, make_memory, reason_absent
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import (
    Item,
    MemorySystem,
    Requirements,
    can_forget,
    memories,
    missing_verbs,
    requirements_of,
)
from eirkit.lacuna.memories.plan import MemoryPlan
from tests.lacuna.running import eirkit


class FourVerbs:
    """Does not inherit."""

    def reset(self, scope: str) -> None: ...

    def write(self, item: Item) -> None: ...

    def search(self, query: str, limit: int) -> list[str]:
        return []

    def read(self, label: str) -> None: ...


class Old(KeyValue):
    """Declares its needs as systems once did."""

    asks = ("model",)


class TooNew(KeyValue):
    """Needs a Python that nobody has."""

    requirements = Requirements(packages=("eirkit_nobody_has_this",), python=">=9.0")


class Undeclared(KeyValue):
    """Takes an endpoint and does not say what for."""

    def __init__(self, *, endpoint: str) -> None:
        super().__init__()


class Overdeclared(KeyValue):
    """Says that it asks a model and takes no address."""

    requirements = Requirements(endpoint=("model",))


class Wrong(KeyValue):
    """Has something else under that name."""

    requirements = ("numpy",)


def named(kind: type) -> str:
    return f"{__name__}:{kind.__name__}"


@pytest.mark.parametrize("name", memories.names())
def test_every_built_in_declares_what_its_constructor_takes(name):
    kind = memories.get(name)
    needed = requirements_of(kind)
    assert issubclass(kind, MemorySystem)
    assert not missing_verbs(kind)
    assert bool(needed.endpoint) == ("endpoint" in inspect.signature(kind).parameters)
    assert bool(needed.packages) == bool(needed.installs)


def test_a_class_that_does_not_inherit_needs_nothing_and_gets_the_defaults():
    assert requirements_of(FourVerbs) == Requirements()
    assert not can_forget(FourVerbs)
    check_plan(MemoryPlan(named(FourVerbs), {}))
    assert isinstance(make_memory(MemoryPlan(named(FourVerbs), {})), MemorySystem)


def test_only_a_system_that_defines_forget_can_forget():
    class Remembers(MemorySystem):
        async def reset(self, scope): ...
        async def write(self, item): ...
        async def search(self, query, limit): ...
        async def read(self, label): ...

    assert can_forget(KeyValue)
    assert not can_forget(Remembers)
    with pytest.raises(UsageError, match="cannot remove a record, so it has no strict panel"):
        check_plan(MemoryPlan(named(FourVerbs), {}, limit=4))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Old, r"Old declares `asks`, which has no effect; write requirements = Requirements\(endpoint=…\)"),
        (Undeclared, "takes an endpoint but does not declare its use; add requirements = Requirements"),
        (Overdeclared, r"declares an endpoint; add \*, endpoint: str"),
        (Wrong, "requirements of Wrong is not a Requirements object"),
        (TooNew, r"its packages need Python >=9\.0, and this is 3\."),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(kind, said):
    with pytest.raises(UsageError, match=said):
        check_plan(MemoryPlan(named(kind), {}))


def test_nothing_is_installed_for_a_python_that_the_packages_do_not_support(tmp_path, monkeypatch):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"needs Python >=9\.0; this is"):
        install(named(TooNew))
    assert list(tmp_path.iterdir()) == []


def test_versions_are_compared_by_number():
    needed = Requirements(python=">=3.9,<3.14")
    assert [needed.supports(version) for version in ((3, 8), (3, 9), (3, 13), (3, 14))] == [False, True, True, False]
    assert Requirements().supports((2, 7))
    assert reason_not_installed("key-value", replace(needed, packages=("json",))) is None, sys.version


@pytest.mark.parametrize(("field", "value"), [("endpoint", ("modle",)), ("weights", ("gpt",))])
def test_a_requirement_that_nobody_knows_is_refused(field, value):
    with pytest.raises(UnknownNameError, match=f"no requirement in {field} named"):
        Requirements(**{field: value})
    with pytest.raises(UsageError, match=r"write the versions as in '>=3\.11,<3\.14'"):
        Requirements(python="3.11")


def test_what_depends_on_settings_is_asked_with_them():
    kind = memories.get("mcp")
    described = {"preset": "", "server": {"command": ["serve", "{store}"]}}
    assert requirements_of(kind).node
    assert requirements_of(kind, {}).node
    assert requirements_of(kind, described).node == ()
    assert requirements_of(kind, described).packages == ("mcp",)
    assert "npm" not in (reason_absent("mcp", described) or "")


def test_doctor_lists_what_each_system_needs(capsys):
    assert eirkit("doctor", "--json") == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["memories"]}
    assert not any(found["key-value"]["requirements"].values())
    assert found["letta"]["requirements"]["python"] == ">=3.11,<3.14"
    assert found["graphiti"]["requirements"]["variables"] == ["GRAPHITI_USER", "GRAPHITI_PASSWORD"]
    assert found["vector-minilm"]["requirements"]["weights"] == ["minilm"]
