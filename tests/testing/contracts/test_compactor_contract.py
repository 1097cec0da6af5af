"""Every compactor of the registry that needs no package conforms to `check_compactor`; what is wrong is found out."""

from __future__ import annotations

import pytest

from eirkit.errors import ContractError
from eirkit_coding.compaction.context import ContextMessage
from eirkit_coding.compactors.compactor import Compactor
from eirkit_coding.compactors.conformance import check_compactor

OWN = ("oracle", "random", "null", "keep-last", "head-and-tail", "clear-tool-results")
KNOWS_NO_BUDGET = ("clear-tool-results",)


@pytest.mark.parametrize("name", OWN)
def test_a_compactor_conforms(name):
    result = check_compactor(name)
    assert len(result.held) == 6
    assert bool(result.notes) == (name in KNOWS_NO_BUDGET)


class Loose(Compactor):
    """Keeps results without their calls."""

    def compact(self, messages, budget):
        return [one for one in messages if one.role == "tool"]


class Moody(Compactor):
    """Says how often it was asked."""

    asked = 0

    def compact(self, messages, budget):
        Moody.asked += 1
        return [ContextMessage("user", f"{Moody.asked}")]


class Silent(Compactor):
    def compact(self, messages, budget):
        return []


@pytest.mark.parametrize(("kind", "said"), [(Loose, "call and its result"), (Moody, "asked again")])
def test_a_compactor_that_does_not_conform_is_found_out(kind, said):
    with pytest.raises(AssertionError, match=said):
        check_compactor(kind)


def test_a_compactor_says_what_it_does():
    Silent.__doc__ = None
    with pytest.raises(AssertionError, match="docstring"):
        check_compactor(Silent)


def test_something_else_is_no_compactor():
    with pytest.raises(ContractError, match="is not a compactor"):
        check_compactor("json:loads")
