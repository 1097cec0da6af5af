"""All behaviours by family, and the loop that tries them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from eirkit.errors import UnknownNameError
from eirkit.selftest import agents, memories, models, money
from eirkit.selftest.behaviour import Command, PlantedBehaviour, Result, try_behaviour

FAMILIES: dict[str, tuple[PlantedBehaviour, ...]] = {
    "models": models.BEHAVIOURS,
    "memories": memories.BEHAVIOURS,
    "agents": agents.BEHAVIOURS,
    "money": money.BEHAVIOURS,
}


def choose(only: Sequence[str] = ()) -> list[tuple[str, PlantedBehaviour]]:
    """Return behaviours with their families: all, or those whose name or family is given."""
    listed = [(family, one) for family, behaviours in FAMILIES.items() for one in behaviours]
    known = [*FAMILIES, *(one.name for _, one in listed)]
    for name in only:
        if name not in known:
            raise UnknownNameError("behaviour", name, known)
    return [(family, one) for family, one in listed if not only or family in only or one.name in only]


def try_all(
    chosen: Sequence[tuple[str, PlantedBehaviour]], command: Command, observe: Callable[[int, str], None]
) -> Iterator[Result]:
    """Try behaviours one after the other; `observe` is told how many are done and which comes next."""
    for done, (family, behaviour) in enumerate(chosen):
        observe(done, behaviour.name)
        yield try_behaviour(behaviour, family, command)


def by_family(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Yield the results of each family."""
    for family, found in groupby(results, key=lambda one: one.family):
        yield family, list(found)
