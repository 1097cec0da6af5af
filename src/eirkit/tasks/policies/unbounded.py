"""No limit at all: the ceiling of every comparison."""

from eirkit.tasks.policy import NEVER, Ranked, policies


@policies.add("unbounded")
class Unbounded(Ranked):
    """Keep everything, whatever h is granted."""

    def capacity(self, h: int) -> int:
        return NEVER
