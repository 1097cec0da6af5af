"""`learned`: scores records with tables trained to imitate Belady on generated streams."""

from importlib.resources import files

from eirkit.tasks.policy import policies
from eirkit.tasks.scoring import Scored, Tables


@policies.add("learned")
class Learned(Scored):
    """Drop the record with the lowest learned score, from its kind, last possible use, uses and idle time.

    docs/learned-policy.md describes the training data and the limits of the policy.
    """

    tables = Tables.read(files(__package__) / "learned.json")
