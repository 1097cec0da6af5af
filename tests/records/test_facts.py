"""Facts are frozen dataclasses in everything but the time they take to make, and that none derives from them."""

from __future__ import annotations

import gc
import pickle
from copy import copy
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from inspect import signature

import pytest

from eirkit.lacuna.tasks.policy import Record
from eirkit.records.facts import as_slots, as_struct, fact
from eirkit.records.facts import replace as changed

pytest.importorskip("msgspec", reason="comes with the extra `fast`; without it only one way is left")


@as_struct
class Struct:
    """One."""

    a: int
    b: tuple[int, ...] = ()
    c: str | None = None

    @property
    def double(self) -> int:
        return 2 * self.a


@as_slots
class Slots:
    """One."""

    a: int
    b: tuple[int, ...] = ()
    c: str | None = None

    @property
    def double(self) -> int:
        return 2 * self.a


@dataclass(frozen=True, slots=True)
class Plain:
    """One."""

    a: int
    b: tuple[int, ...] = ()
    c: str | None = None


both = pytest.mark.parametrize("quick", [Struct, Slots])


@both
@pytest.mark.parametrize("given", [((1,), {}), ((1, (2,)), {"c": "x"}), ((), {"a": 1, "b": (3,)})])
def test_it_is_made_as_any_dataclass_is(quick, given):
    positional, named = given
    one, plain = quick(*positional, **named), Plain(*positional, **named)
    assert asdict(one) == asdict(plain)
    assert repr(one) == repr(plain).replace("Plain", quick.__name__)
    assert one == quick(*positional, **named)
    assert one != plain
    assert hash(one) == hash(quick(*positional, **named))
    assert replace(one, a=9).a == 9
    assert one.double == 2 * plain.a


def test_one_with_another_value_is_made_as_dataclasses_do_it():
    one = Struct(1, (2,), "x")
    assert changed(one, a=9, c=None) == replace(one, a=9, c=None) == Struct(9, (2,))
    with pytest.raises(TypeError):
        changed(one, d=1)


@both
def test_it_looks_like_any_dataclass(quick):
    assert is_dataclass(quick)
    assert quick.__slots__ == Plain.__slots__
    assert quick.__match_args__ == Plain.__match_args__
    assert quick.__annotations__ == Plain.__annotations__
    assert quick.__doc__ == Plain.__doc__
    assert [one.name for one in fields(quick)] == ["a", "b", "c"]
    assert list(signature(quick).parameters) == list(signature(Plain).parameters)
    assert (quick.__module__, quick.__qualname__) == (__name__, quick.__name__)


@both
@pytest.mark.parametrize("wrong", [((), {}), ((1, (), None, 4), {}), ((1,), {"d": 2})])
def test_it_refuses_what_any_dataclass_refuses(quick, wrong):
    for kind in (quick, Plain):
        with pytest.raises(TypeError):
            kind(*wrong[0], **wrong[1])


@both
def test_it_cannot_be_changed(quick):
    with pytest.raises(AttributeError):  # a dataclass raises a kind of it
        quick(1).a = 2
    with pytest.raises((AttributeError, TypeError)):  # a slotted class has no place for it
        quick(1).d = 2


@both
def test_it_travels_between_processes(quick):
    record = Record(1, 2, 3, 4)
    assert pickle.loads(pickle.dumps(record)) == record
    assert pickle.loads(pickle.dumps(quick(1, (2,), "x"))) == quick(1, (2,), "x")


@pytest.mark.parametrize("make", [fact, as_struct, as_slots])
def test_what_needs_more_is_left_to_dataclasses(make):
    with pytest.raises(TypeError, match=r"b is not a plain field; use dataclass\(frozen=True, slots=True\)"):

        @make
        class Factory:
            a: int
            b: list[int] = field(default_factory=list)


@both
def test_it_can_be_copied_and_has_no_place_for_more(quick):
    one = quick(1, (2,), "x")
    assert copy(one) == one
    assert type(one) is quick
    assert not hasattr(one, "__dict__")


@both
def test_nothing_derives_from_it(quick):
    with pytest.raises(TypeError, match="subclasses a fact"):
        type("Derived", (quick,), {})


def test_the_garbage_collector_does_not_search_structs():
    assert not gc.is_tracked(Struct(1, (2, 3)))
