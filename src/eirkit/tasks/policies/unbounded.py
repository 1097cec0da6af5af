"""`unbounded`: keeps every record; the upper bound of comparisons."""

from eirkit.tasks.policy import NEVER, Ranked, policies


@policies.add("unbounded")
class Unbounded(Ranked):
    """Keep every record, whatever h is."""

    def capacity(self, h: int) -> int:
        return NEVER
