"""Facts are frozen dataclasses in everything but the time they take to make, and that none derives from them."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from inspect import signature

import pytest

from eirkit.facts import fact
from eirkit.tasks.policy import Record


@fact
class Quick:
    """One."""

    a: int
    b: tuple[int, ...] = ()
    c: str | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """One."""

    a: int
    b: tuple[int, ...] = ()
    c: str | None = None


@pytest.mark.parametrize("given", [((1,), {}), ((1, (2,)), {"c": "x"}), ((), {"a": 1, "b": (3,)})])
def test_it_is_made_as_any_dataclass_is(given):
    positional, named = given
    quick, plain = Quick(*positional, **named), Plain(*positional, **named)
    assert asdict(quick) == asdict(plain)
    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert quick == Quick(*positional, **named)
    assert hash(quick) == hash(plain)
    assert replace(quick, a=9).a == 9


def test_it_looks_like_any_dataclass():
    assert is_dataclass(Quick)
    assert Quick.__slots__ == Plain.__slots__
    assert [one.name for one in fields(Quick)] == ["a", "b", "c"]
    assert list(signature(Quick).parameters) == list(signature(Plain).parameters)
    assert Quick.__init__.__qualname__ == "Quick.__init__"


@pytest.mark.parametrize("wrong", [((), {}), ((1, (), None, 4), {}), ((1,), {"d": 2})])
def test_it_refuses_what_any_dataclass_refuses(wrong):
    for kind in (Quick, Plain):
        with pytest.raises(TypeError):
            kind(*wrong[0], **wrong[1])


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Quick(1).a = 2
    with pytest.raises((AttributeError, TypeError)):  # a slotted class has no place for it
        Quick(1).d = 2


def test_it_travels_between_processes():
    record = Record(1, 2, 3, 4)
    assert pickle.loads(pickle.dumps(record)) == record
    assert pickle.loads(pickle.dumps(Quick(1, (2,), "x"))) == Quick(1, (2,), "x")


def test_what_needs_more_is_left_to_dataclasses():
    with pytest.raises(TypeError, match=r"b is not a plain field; use dataclass\(frozen=True, slots=True\)"):

        @fact
        class Factory:
            a: int
            b: list[int] = field(default_factory=list)


def test_it_can_be_copied_and_has_no_place_for_more():
    one = Quick(1, (2,), "x")
    assert copy(one) == one
    assert type(one) is Quick
    assert not hasattr(one, "__dict__")


def test_nothing_derives_from_it():
    with pytest.raises(TypeError, match="subclasses a fact"):
        type("Derived", (Quick,), {})
