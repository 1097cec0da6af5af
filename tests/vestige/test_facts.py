"""Facts are frozen dataclasses in everything but the time they take to make, and that none derives from them."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from inspect import signature

import pytest

from eirkit.vestige.facts import fact


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


@pytest.mark.parametrize("given", [((1,), {}), ((1, (2,)), {"c": "x"}), ((), {"a": 1, "c": None})])
def test_a_fact_is_made_like_a_dataclass(given):
    places, names = given
    quick, plain = Quick(*places, **names), Plain(*places, **names)
    assert type(quick) is Quick
    assert asdict(quick) == asdict(plain)
    assert str(quick) == str(plain).replace("Plain", "Quick")
    assert hash(quick) == hash(plain)
    assert list(signature(Quick).parameters) == list(signature(Plain).parameters)


def test_a_fact_is_frozen_and_can_be_copied_sent_and_changed_into_another():
    one = Quick(1, (2,), "x")
    with pytest.raises(FrozenInstanceError):
        one.a = 2
    assert one == copy(one) == pickle.loads(pickle.dumps(one)) == replace(replace(one, a=3), a=1)
    assert not hasattr(one, "__dict__")


@pytest.mark.parametrize("given", [((), {}), ((1, 2, 3, 4), {}), ((1,), {"d": 1})])
def test_wrong_arguments_are_refused(given):
    with pytest.raises(TypeError):
        Quick(*given[0], **given[1])


def test_what_is_more_than_values_is_refused():
    class Filled:
        a: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="more than a value"):
        fact(Filled)
    with pytest.raises(TypeError, match="derives from a fact"):
        type("Derived", (Quick,), {})
