"""`belady`: drops the record needed furthest in the future; needs hindsight, so it is a bound, not a policy."""

from eirkit.tasks.policy import Hindsight, policies


@policies.add("belady")
class Belady(Hindsight):
    """Drop the record that is needed last, or never again; the oldest among those never needed.

    It misses the fewest references if missed records are fetched again: a policy that keeps another record instead
    can swap it for this one at the next miss. With recovery off, or per step, another choice can do better. Checked
    against all choices in `tests/lacuna/test_policies_optimality.py`.
    """
