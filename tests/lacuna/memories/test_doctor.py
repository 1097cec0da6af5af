"""`eirkit doctor`: every plug-in with whether it can be used, and what to do about those that cannot."""

from __future__ import annotations

import json

import pytest

from eirkit.cli.doctor import PLANTED, list_availability, reason_it_fails
from eirkit.lacuna.memories.memory import memories
from eirkit.lacuna.models.model import models
from eirkit.vestige.trajectory import formats
from tests.lacuna.running import eirkit

FAMILIES = ("memories", "models", "formats", "engines")


@pytest.fixture
def nothing_installed(tmp_path, monkeypatch):
    """No environment of a memory system, and no key of anybody."""
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_document_names_everything_that_is_registered(nothing_installed, capsys):
    assert eirkit("doctor", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert {"python", "eirkit", *FAMILIES} <= document.keys()
    for family, registry in (("memories", memories), ("models", models), ("formats", formats)):
        assert [one["name"] for one in document[family]] == list(registry.names())
    for family in FAMILIES:
        for one in document[family]:
            assert one.keys() >= {"name", "usable", "reason"}
            assert isinstance(one["usable"], bool)
            assert one["reason"], f"{one['name']} says nothing"


def test_what_comes_with_the_package_is_usable_everywhere(nothing_installed):
    found = {memory.name: memory for memory in list_availability().memories}
    for name in ("null", "key-value", "text", "bm25", "vector", "oracle", "broken-drops", "broken-late"):
        assert found[name].usable, found[name].reason


def test_what_is_not_usable_says_what_to_do(nothing_installed):
    remedies = ("eirkit doctor --install", "pip install", "set ", "give ", "install ", "start ", "export ")
    found = list_availability()
    for family in FAMILIES:
        for plugin in getattr(found, family):
            if not plugin.usable:
                assert any(remedy in plugin.reason for remedy in remedies), f"{family} {plugin.name}: {plugin.reason}"


def test_a_missing_system_is_named_with_the_command_that_gets_it(nothing_installed):
    found = {memory.name: memory for memory in list_availability().memories}
    assert not found["mem0"].usable
    assert "eirkit doctor --install mem0" in found["mem0"].reason


def test_the_text_is_short_and_names_what_is_usable_and_how_to_get_the_rest(nothing_installed, capsys):
    assert eirkit("doctor") == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) <= 25
    said = " ".join(printed.split())
    found = list_availability()
    plain = [one for one in (*found.memories, *found.models) if not one.name.startswith(PLANTED)]
    assert [one.name for one in plain if one.name not in said] == []
    assert "broken-drops" not in said
    assert "doctor --install NAME" in said
    assert "openai: set OPENAI_API_KEY, the key of openai's own server, or give --base-url of another one" in said
    assert printed.splitlines()[-1] == "next: eirkit doctor --install mem0", "not the first of the alphabet"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("bm25", None),
        ("vector", None),
        ("broken-raises", "the store is gone"),
        ("null", "it returned none of the records that were stored in it"),
    ],
)
def test_a_system_is_tried_with_records_that_it_must_find(nothing_installed, name, why):
    said = reason_it_fails(name)
    assert (said is None) == (why is None)
    assert why is None or why in said


@pytest.mark.parametrize(
    ("name", "said"),
    [("nonsense", "no memory named 'nonsense'"), ("key-value", "needs no packages; use it as it is")],
)
def test_what_cannot_be_installed_is_one_line(nothing_installed, name, said, capsys):
    assert eirkit("doctor", "--install", name) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
