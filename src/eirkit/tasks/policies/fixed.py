"""`fixed`: keeps the last h STOREs and admits nothing else."""

from collections.abc import Sequence

from eirkit.tasks.policy import Ranked, Structure, policies


@policies.add("fixed")
class Fixed(Ranked):
    """Keep the last h STOREs: answers to questions and fetched records are refused.

    Where a workload has no STORE, every record is one, and the policy is the exact window.
    """

    lowest = "worth"
    ties = "id"

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        return tuple(int(kind == "store") for kind in structure.kinds)
