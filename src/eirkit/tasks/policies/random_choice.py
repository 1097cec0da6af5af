"""`random`: drops a record drawn uniformly at random."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from eirkit.seeds import Words, words
from eirkit.tasks.policy import Drawn, policies


@policies.add("random")
class Random(Drawn):
    """Drop a candidate, the newcomer included, with equal probability; depends on the seed and the store's clock."""

    @classmethod
    def draw(cls, seeds: Sequence[int] | NDArray[Any], ticks: int) -> Words:
        return words(seeds, ticks, "policy", "random")
