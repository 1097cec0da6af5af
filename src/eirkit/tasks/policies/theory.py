"""`theory`: drops the record whose last possible use comes first."""

from collections.abc import Sequence

from eirkit.tasks.policy import Ranked, Structure, policies


@policies.add("theory")
class TheoryInformed(Ranked):
    """Drop the record whose last possible use comes first, the oldest among equals.

    The workload states the last possible use before any reference is drawn: a RECALL answer can never be used, and an
    answer outside the window can no longer be used.
    """

    lowest = "worth"

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        return structure.last_use
