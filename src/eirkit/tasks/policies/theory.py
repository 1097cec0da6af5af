"""The theory-informed policy: what can no longer matter goes first."""

from collections.abc import Sequence

from eirkit.tasks.policy import Ranked, Structure, policies


@policies.add("theory")
class TheoryInformed(Ranked):
    """Drop the record whose last possible use comes first, the oldest among equals.

    The workload says when that is, before any reference is drawn: a RECALL answer can never be used, an answer outside
    the window no more.
    """

    lowest = "worth"

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        return structure.last_use
