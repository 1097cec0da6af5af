"""`lfu`: drops the least frequently used record."""

from eirkit.tasks.policy import Ranked, policies


@policies.add("lfu")
class Lfu(Ranked):
    """Drop the record with the fewest uses since it entered (entering is one), the least recently used among equals."""

    lowest = "uses"
    ties = "touched"
