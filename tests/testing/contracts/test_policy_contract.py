"""Every policy of the registry, and users' own files, conform to `check_policy`; what is wrong is found out."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from eirkit.errors import ContractError
from eirkit.lacuna.tasks.policies import Fifo
from eirkit.lacuna.tasks.policy import Policy, policies
from eirkit.testing import check_policy

EXAMPLES = Path(__file__).parents[3] / "examples"
USERS_OWN = [
    f"{EXAMPLES / 'most_recently_used.py'}:MostRecentlyUsed",
    f"{EXAMPLES / 'eirkit-example' / 'src' / 'eirkit_example' / 'policy.py'}:ServedFirst",
]


@pytest.mark.parametrize("name", [*policies.names(), *USERS_OWN], ids=lambda name: name.rpartition(":")[2])
def test_a_policy_conforms(name):
    result = check_policy(name)
    assert len(result.held) == 7
    assert bool(result.notes) == (name == "belady"), "only that one is told the future, and it says so"


class Elsewhere(Policy):
    """Names a record that nobody holds."""

    def victim(self, candidates, step):
        return 1_000


class Moody(Policy):
    """Chooses by how often anybody asked."""

    asked = itertools.count()

    def victim(self, candidates, step):
        return candidates[next(self.asked) % len(candidates)].id


class Prophet(Policy):
    """Looks ahead without saying so."""

    def __init__(self, future=()):
        self.future = future

    @classmethod
    def for_task(cls, outlook):
        return cls(outlook.future)

    def victim(self, candidates, step):
        later = [r for refs in self.future[step:] for r in refs]
        return min(candidates, key=lambda record: (record.id in later, record.id)).id


class Stingy(Fifo):
    """Holds fewer records than it is granted."""

    def capacity(self, h):
        return max(1, h - 1)


class Silent(Fifo):
    pass


Silent.__doc__ = None


class Broken(Policy):
    """Breaks."""

    def victim(self, candidates, step):
        raise IndexError("out of ideas")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Elsewhere, r"policy Elsewhere chose 1000, which is not a candidate; .* \(5 requirements fail for it\)"),
        (Moody, "when it was asked again"),
        (Prophet, "depend on later steps; extend Hindsight"),
        (Stingy, "records are granted"),
        (Silent, "it has no docstring"),
        (Broken, r"IndexError: out of ideas \(raised by victim\)"),
    ],
)
def test_what_is_wrong_is_named(kind, reason):
    with pytest.raises(AssertionError, match=reason):
        check_policy(kind)


def test_what_is_no_policy_is_told_in_one_line():
    with pytest.raises(ContractError, match="is not a policy"):
        check_policy("builtins:dict")
