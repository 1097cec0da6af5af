"""What counts as searched in vain: only what a query names."""

import pytest

from eirkit.lacuna.agents.current_step import CurrentStep
from eirkit.lacuna.tasks.view import PublicStep


def arrival(**more):
    step = PublicStep(9, "compute", (1,), (3, 5))
    return CurrentStep(step, frozenset(), (3, 5), (3, 5), frozenset(), (), **more)


@pytest.mark.parametrize(
    ("sought", "fetched", "unavailable"),
    [
        (set(), {}, ()),  # written, never asked for: it could have been had
        ({3}, {}, (3,)),  # asked for by its number and not found
        ({3, 5}, {5: (7,)}, (3,)),
        ({4}, {}, ()),  # a search for something else says nothing
    ],
)
def test_a_result_is_unavailable_once_it_was_sought_by_number_and_not_found(sought, fetched, unavailable):
    assert arrival(sought=sought, fetched=fetched, found="").unavailable == unavailable


def test_what_no_memory_was_given_is_unavailable():
    step = PublicStep(9, "compute", (1,), (3, 5))
    assert CurrentStep(step, frozenset(), (3, 5), (3, 5), frozenset({5}), ()).unavailable == (5,)
