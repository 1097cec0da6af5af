"""`lru`: drops the least recently used record."""

from eirkit.tasks.policy import Ranked, policies


@policies.add("lru")
class Lru(Ranked):
    """Drop the record that was asked for longest ago; entering counts as being asked for."""

    lowest = "touched"
