"""Most recently used: keep what has been left alone for longest. Good for a loop, bad for almost everything else.

eirkit lacuna simulate stepwise-sum --policy fifo,examples/most_recently_used.py:MostRecentlyUsed
"""

from collections.abc import Sequence

from eirkit.lacuna.tasks.policy import Policy, Record


class MostRecentlyUsed(Policy):
    """Drop the resident that was touched last; the newcomer always enters."""

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        return max(candidates[:-1], key=lambda record: record.touched).id
